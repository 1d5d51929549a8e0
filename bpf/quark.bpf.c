// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * quark: every fork, exec, exit, rename, reap and change of ids, directory or
 * cgroup, from BTF tracepoints, into one ring. A record's slot is reserved before its
 * clock is read, so that no older record can come after a complete drain
 * (base/ring.h). A record is made in full, then folded and packed (bpf/abi.h), so that
 * the ring holds more than twice as many. Only execs have all strings.
 *
 * Only tracepoints: locked-down kernels forbid fentry, kprobes and LSM hooks.
 * Loads on 6.1 and newer.
 */
#include "bpf/vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/abi.h"
#include "bpf/arch.bpf.h"
#include "bpf/quark_file.bpf.h"
#include "bpf/quark_limit.bpf.h"
#include "bpf/quark_pack.bpf.h"
#include "bpf/quark_path.bpf.h"
#include "bpf/quark_ring.bpf.h"
#include "bpf/quark_task.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* --- images ---------------------------------------------------------------- */

enum {
	EXE,
	CWD,
	CGROUP
};

/* All but the head's time, and arguments. */
static __always_inline void image_fill(struct scratch *s, __u32 slot, struct task_struct *task,
				       struct mm_struct *mm)
{
	struct abi_quark_image *im = &s->image;
	struct fs_struct *fs = task->fs;

	__builtin_memset(im, 0, sizeof(*im));
	fill_key(&im->head.key, task);
	fill_key(&im->parent, task_cast(task)->real_parent);
	bpf_probe_read_kernel(im->comm, sizeof(im->comm), task->comm);
	task_fill_ids(&im->ids, task);
	im->cgroup_len = walk_cgroup(s, slot, CGROUP, task);
	if (task->flags & PF_KTHREAD) {
		im->head.flags |= ABI_QUARK_KTHREAD;
		return;
	}
	if (mm && fs && mm->exe_file) {
		fill_file(im, mm->exe_file);
		im->exe_len = walk_path(s, slot, EXE, &mm->exe_file->f_path, fs);
	}
	if (fs)
		im->cwd_len = walk_path(s, slot, CWD, &fs->pwd, fs);
}

/* The kernel has just written this memory: it is present, or swapped out. */
static __always_inline __u32 read_args(struct scratch *s, struct mm_struct *mm)
{
	__u64 len = mm->arg_end - mm->arg_start;

	if (len > ABI_QUARK_ARGS_MAX) {
		s->image.head.flags |= ABI_QUARK_ARGS_CUT;
		len = ABI_QUARK_ARGS_MAX;
	}
	if (!bpf_probe_read_user(s->args, len, (void *)mm->arg_start))
		return len;
	s->image.head.flags |= ABI_QUARK_ARGS_CUT;
	return 0;
}

static __always_inline __u32 read_env(struct scratch *s, struct mm_struct *mm)
{
	__u64 len = mm->env_end - mm->env_start;

	if (len > quark_max_env)
		len = quark_max_env;
	if (len > ABI_QUARK_ENV_MAX)
		len = ABI_QUARK_ENV_MAX;
	if (!len || bpf_probe_read_user(s->env, len, (void *)mm->env_start))
		return 0;
	return len;
}

/* A path is at the end of its buffer. The barrier keeps the bound after its check. */
static __always_inline char *path_at(struct scratch *s, __u32 which, __u32 len)
{
	__u32 pos = ABI_QUARK_PATH_MAX - len;

	barrier_var(pos);
	return s->path[which] + (pos & (ABI_QUARK_PATH_MAX - 1));
}

static __always_inline __u32 image_put(struct bpf_dynptr *out, __u32 off, void *src, __u32 len,
				       __u32 max)
{
	if (len > max)
		return off;
	bpf_dynptr_write(out, off, src, len, 0);
	return off + len;
}

static __always_inline void put_strings(struct bpf_dynptr *out, __u32 off, struct scratch *s)
{
	const struct strings *len = &s->len;

	off = image_put(out, off, path_at(s, EXE, len->exe), len->exe, ABI_QUARK_PATH_MAX);
	off = image_put(out, off, s->args, len->args, ABI_QUARK_ARGS_MAX);
	off = image_put(out, off, path_at(s, CWD, len->cwd), len->cwd, ABI_QUARK_PATH_MAX);
	off = image_put(out, off, path_at(s, CGROUP, len->cgroup), len->cgroup, ABI_QUARK_PATH_MAX);
	image_put(out, off, s->env, len->env, ABI_QUARK_ENV_MAX);
}

/* --- changes without an exec ----------------------------------------------- */

/*
 * Reports the current ids of the process, which are its leader's; with PENDING_CWD and
 * PENDING_CGROUP in 'what' also those paths.
 */
static __noinline void process_changed(struct task_struct *task, __u64 what)
{
	__u32 cpu = bpf_get_smp_processor_id(), size;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);
	struct task_struct *leader = task_cast(task)->group_leader;
	struct fs_struct *fs = task->fs;
	struct abi_quark_id_change *c;
	struct bpf_dynptr out;

	if (!s)
		return;
	c = &s->change;
	ring_fill_head(&c->head, ABI_QUARK_ID_CHANGE, task);
	task_fill_ids(&c->ids, leader);
	s->len = (struct strings){};
	if (what & PENDING_CWD && fs)
		s->len.cwd = walk_path(s, cpu, CWD, &fs->pwd, fs);
	if (what & PENDING_CGROUP)
		s->len.cgroup = walk_cgroup(s, cpu, CGROUP, task);
	c->cwd_len = s->len.cwd;
	c->cgroup_len = s->len.cgroup;
	abi_quark_fold_ids(&c->ids, quark_home);
	size = record_pack(&c->head, sizeof(*c), CAPS_AT(abi_quark_id_change));
	if (!ring_reserve(ABI_QUARK_ID_CHANGE, size + s->len.cwd + s->len.cgroup, &out))
		return;
	put_strings(&out, size, s);
	ring_submit(&out, &c->head, size, false);
}

static __always_inline void send_name(struct task_struct *task, const char *comm)
{
	struct abi_quark_rename r;

	ring_fill_head(&r.head, ABI_QUARK_RENAME, task);
	__builtin_memset(r.comm, 0, sizeof(r.comm));
	bpf_probe_read_kernel_str(r.comm, sizeof(r.comm), comm);
	r.limited = take_renames(task);
	r.pad = 0;
	ring_send(&r.head, ABI_QUARK_RENAME, sizeof(r), 0);
}

/* Sends what the task's budget refused, before a record that depends on it. */
static __always_inline void send_pending(struct task_struct *task)
{
	__u64 pending = take_pending(task);

	if (pending & PENDING_NAME)
		send_name(task, task->comm);
	if (pending & ~(__u64)PENDING_NAME)
		process_changed(task, pending);
}

/* perf's rings of mapping records, one per CPU; empty: no marks on that CPU. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(max_entries, 1); /* CPUs, set before load */
	__type(key, __u32);
	__type(value, __u32);
} mapping_rings SEC(".maps");

/*
 * begin_new_exec() renames the task when the new address space is in place and the file is
 * not mapped yet. start_code is still 0 then (load_elf_binary() sets it later), unlike that
 * of a running program: another thread may rename this one earlier in its execve. perf
 * counts a mark for which the ring has no room, as it does mapping records.
 */
static __always_inline void mark_exec(void *ctx, struct task_struct *task)
{
	struct abi_exec_mark mark = { .tgid = task->tgid, .tid = task->pid };

	if ((__u64)task != bpf_get_current_task() || !BPF_CORE_READ(task, mm) ||
	    BPF_CORE_READ(task, mm, start_code))
		return;
	bpf_perf_event_output(ctx, &mapping_rings, BPF_F_CURRENT_CPU, &mark, sizeof(mark));
}

SEC("tp_btf/task_rename")
int BPF_PROG(quark_rename, struct task_struct *task, const char *comm)
{
	mark_exec(ctx, task);
	if (task->pid != task->tgid && !quark_threads)
		return 0;
	if (in_execve(task)) {
		/* The old image still has its own name. */
		if (take_pending(task) & PENDING_NAME)
			send_name(task, task->comm);
		return 0;
	}
	if (may_repeat(task, PENDING_NAME))
		send_name(task, comm);
	return 0;
}

/*
 * From 6.16 on the tracepoint has an argument for the last thread. Before, signal->live was
 * decremented already; two threads that exit at the same time may both see 0, of which
 * libquark takes the first.
 */
SEC("tp_btf/sched_process_exit")
int quark_exit(__u64 *ctx)
{
	struct trace_event_raw_sched_process_exit___6_16 *with = NULL;
	struct task_struct *task = (void *)ctx[0], *cast = task_cast(task);
	struct signal_struct *sig = cast->signal;
	struct task_struct *leader = cast->group_leader;
	const struct cred *cred = leader->real_cred;
	__u32 cpu = bpf_get_smp_processor_id();
	struct abi_quark_exit *e;
	struct scratch *s;
	bool group_dead;

	if (bpf_core_field_exists(with->group_dead))
		group_dead = ctx[1];
	else
		group_dead = !sig->live.counter;
	/* Now: another thread's exec may replace a leader that ended, with its name. */
	if (task == leader || quark_threads)
		send_pending(task);
	if (!group_dead && !quark_threads)
		return 0;
	s = bpf_map_lookup_elem(&scratches, &cpu);
	if (!s)
		return 0;
	e = &s->exit;
	ring_fill_head(&e->head, ABI_QUARK_EXIT, task);
	if (group_dead)
		e->head.flags |= ABI_QUARK_GROUP_DEAD;
	fill_key(&e->parent, cast->real_parent);
	bpf_probe_read_kernel(e->comm, sizeof(e->comm), leader->comm);
	/* The sum includes released threads, but not a leader that ended first. */
	e->cpu_time = sig->sum_sched_runtime + task->se.sum_exec_runtime;
	if (leader != task)
		e->cpu_time += leader->se.sum_exec_runtime;
	e->maxrss = sig->maxrss;
	e->minflt = sig->min_flt;
	e->majflt = sig->maj_flt;
	e->wait_status = task_wait_status(leader, sig);
	e->head.flags |= ABI_QUARK_LAST_IDS;
	e->uid = cred->uid.val;
	e->gid = cred->gid.val;
	e->pgid = pid_nr(sig, PIDTYPE_PGID);
	e->sid = pid_nr(sig, PIDTYPE_SID);
	e->pad = 0;
	abi_quark_fold_exit(e);
	ring_send(&e->head, ABI_QUARK_EXIT, sizeof(*e), 0);
	return 0;
}

/*
 * Only of leaders, with which the process ends. A leader replaced by another thread's
 * exec has that thread's pid.
 */
SEC("tp_btf/sched_process_free")
int BPF_PROG(quark_reap, struct task_struct *task)
{
	struct signal_struct *sig = task_cast(task)->signal;
	struct abi_quark_reap r;

	if (task->pid != task->tgid)
		return 0;
	ring_fill_head(&r.head, ABI_QUARK_REAP, task);
	bpf_probe_read_kernel(r.comm, sizeof(r.comm), task->comm);
	r.cpu_time = sig->sum_sched_runtime;
	r.utime = sig->utime;
	r.stime = sig->stime;
	r.minflt = sig->min_flt;
	r.majflt = sig->maj_flt;
	r.wait_status = task_wait_status(task, sig);
	r.pad = 0;
	ring_send(&r.head, ABI_QUARK_REAP, sizeof(r), 0);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(quark_exec, struct task_struct *task, pid_t old_pid)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);
	struct mm_struct *mm = task->mm;
	struct abi_quark_image *im;
	struct bpf_dynptr out;
	__u32 size;
	bool wake;

	if (!s)
		return 0;
	im = &s->image;
	take_pending(task); /* this record includes it */
	image_fill(s, cpu, task, mm);
	im->head.kind = ABI_QUARK_EXEC;
	im->head.tid = old_pid;
	im->head.cpu = cpu;
	if (mm) {
		im->args_len = read_args(s, mm);
		im->env_len = quark_max_env ? read_env(s, mm) : 0;
	}
	s->len = (struct strings){ im->exe_len, im->args_len, im->cwd_len, im->cgroup_len,
				   im->env_len };
	wake = new_file(im);
	abi_quark_fold_image(im, quark_home);
	size = record_pack(&im->head, sizeof(*im), CAPS_AT(abi_quark_image));
	if (!ring_reserve(ABI_QUARK_EXEC,
			  size + s->len.exe + s->len.args + s->len.cwd + s->len.cgroup + s->len.env,
			  &out))
		return 0;
	put_strings(&out, size, s);
	ring_submit(&out, &im->head, size, wake);
	return 0;
}

SEC("tp_btf/task_newtask")
int BPF_PROG(quark_fork, struct task_struct *task, __u64 clone_flags)
{
	struct task_struct *cur = bpf_get_current_task_btf();
	__u32 cpu = bpf_get_smp_processor_id();
	struct abi_quark_fork *f;
	struct scratch *s;

	/* pid 0 is the idle task of a CPU that comes up. */
	if (!task->pid || (clone_flags & CLONE_THREAD && !quark_threads))
		return 0;
	/* The child inherits the caller's directory and cgroup. */
	send_pending(cur->group_leader);
	s = bpf_map_lookup_elem(&scratches, &cpu);
	if (!s)
		return 0;
	f = &s->fork;
	ring_fill_head(&f->head, ABI_QUARK_FORK, task);
	fill_key(&f->parent, task_cast(task)->real_parent);
	fill_key(&f->origin, cur);
	f->clone_flags = clone_flags;
	bpf_probe_read_kernel(f->comm, sizeof(f->comm), task->comm);
	task_fill_ids(&f->ids, task);
	abi_quark_fold_fork(f, quark_home);
	ring_send(&f->head, ABI_QUARK_FORK, sizeof(*f), CAPS_AT(abi_quark_fork));
	/* Otherwise its cgroup is the caller's. */
	if (clone_flags & CLONE_INTO_CGROUP && !(clone_flags & CLONE_THREAD))
		process_changed(task, PENDING_CGROUP);
	return 0;
}

/*
 * The kernel has no tracepoints for changes of credentials and for chdir, so this hooks the
 * return of the system calls that make them. It slows down every system call of the host
 * by some tens of nanoseconds, so it is loaded only on request.
 */
SEC("tp_btf/sys_exit")
int BPF_PROG(quark_sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task;
	enum pending what;

	if (ret < 0)
		return 0;
	switch (SYSCALL_NR(regs)) {
	case NR_SETUID:
	case NR_SETGID:
	case NR_SETPGID:
	case NR_SETSID:
	case NR_SETREUID:
	case NR_SETREGID:
	case NR_SETRESUID:
	case NR_SETRESGID:
	case NR_CAPSET:
	case NR_UNSHARE:
	case NR_SETNS:
		what = PENDING_IDS;
		break;
	case NR_CHDIR:
	case NR_FCHDIR:
		what = PENDING_CWD;
		break;
	default:
		return 0;
	}
	task = bpf_get_current_task_btf();
	if (may_repeat(task->group_leader, what))
		process_changed(task, what);
	return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(quark_cgroup, struct cgroup *dst, const char *path, struct task_struct *task)
{
	if (task->pid == task->tgid && may_repeat(task, PENDING_CGROUP))
		process_changed(task, PENDING_CGROUP);
	return 0;
}

/* --- existing processes ---------------------------------------------------- */

static __always_inline void seq_path(struct seq_file *seq, struct scratch *s, __u32 which,
				     __u32 len)
{
	if (len <= ABI_QUARK_PATH_MAX)
		bpf_seq_write(seq, path_at(s, which, len), len);
}

/* Without arguments: other tasks' memory may have to be paged in; /proc has them. */
SEC("iter/task")
int quark_task(struct bpf_iter__task *ctx)
{
	struct seq_file *seq = ctx->meta->seq;
	struct task_struct *task = ctx->task;
	__u32 slot = quark_cpus, pad;
	struct abi_quark_image *im;
	struct signal_struct *sig;
	char zeros[8] = {};
	struct scratch *s;
	__u64 now;

	if (!task || task->pid != task->tgid)
		return 0;
	s = bpf_map_lookup_elem(&scratches, &slot);
	if (!s)
		return 0;
	im = &s->image;
	/* First: what is read includes all earlier changes. */
	now = bpf_ktime_get_boot_ns();
	image_fill(s, slot, task, task->mm);
	im->head.time = now;
	im->head.kind = ABI_QUARK_TASK;
	im->head.tid = task->pid;
	sig = task->signal;
	if (!sig->live.counter) {
		im->head.flags |= ABI_QUARK_GROUP_DEAD;
		im->wait_status = task_wait_status(task, sig);
	}
	bpf_seq_write(seq, im, sizeof(*im));
	seq_path(seq, s, EXE, im->exe_len);
	seq_path(seq, s, CWD, im->cwd_len);
	seq_path(seq, s, CGROUP, im->cgroup_len);
	/* Aligns the next record. */
	pad = -(sizeof(*im) + im->exe_len + im->cwd_len + im->cgroup_len) & 7;
	bpf_seq_write(seq, zeros, pad);
	return 0;
}
