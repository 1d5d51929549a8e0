// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * quark: every fork, exec, exit, rename, reap and change of ids, directory or
 * cgroup, from BTF tracepoints, into one ring. A record's slot is reserved first and the
 * clock read afterwards, so that a drained ring proves that nothing older is still to come
 * (base/ring.h). A record is put together in full, folded and packed (bpf/abi.h), so that
 * the ring holds more than twice as many; strings come at exec only.
 *
 * Tracepoints alone, since fentry, kprobes and LSM hooks are forbidden on
 * locked-down kernels. Loads on 6.1 and newer.
 */
#include "bpf/vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/abi.h"
#include "bpf/quark_pack.bpf.h"
#include "bpf/quark_task.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* asm/unistd_64.h; a 32-bit program's calls have other numbers and are not seen. */
#define NR_CHDIR 80
#define NR_FCHDIR 81
#define NR_SETUID 105
#define NR_SETGID 106
#define NR_SETPGID 109
#define NR_SETSID 112
#define NR_SETREUID 113
#define NR_SETREGID 114
#define NR_SETRESUID 117
#define NR_SETRESGID 119
#define NR_CAPSET 126

#define PATHS 3
#define PATH_BUF (ABI_QUARK_PATH_MAX + 512)
#define PATH_DEPTH 1024 /* components, at most */

/* Set before load. */
const volatile bool quark_no_wakeup;
const volatile bool quark_threads;
const volatile __u32 quark_max_env;
const volatile __u32 quark_cpus; /* possible ones: the iterator's slot */
const volatile __u32 quark_half; /* of the ring, bytes */
const volatile __u32 quark_home[ABI_QUARK_NAMESPACES];

struct walk {
	__u64 dentry, mnt, mnt_root, root_dentry, root_mnt; /* addresses */
	__u64 kn;
	__u32 pos; /* of the first byte; the string ends at ABI_QUARK_PATH_MAX */
	__u32 cut;
};

/* Lengths: a record that is packed has them no more. */
struct strings {
	__u32 exe, args, cwd, cgroup, env, pad;
};

/* Where an image's record is put together before its size is known. */
struct scratch {
	union {
		struct abi_quark_image image;
		struct abi_quark_id_change change;
		struct abi_quark_fork fork; /* the stack has no room beside walk_kernfs() */
	};
	struct strings len;
	struct walk walk;
	/* In front of args, whose room is also what the verifier adds to a path's end. */
	char path[PATHS][PATH_BUF];
	char args[ABI_QUARK_ARGS_MAX];
	char env[ABI_QUARK_ENV_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 * 1024 * 1024);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* CPUs, set before load */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct abi_quark_loss);
} losses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* CPUs and one for the iterator, set before load */
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static void lose(enum abi_quark_kind kind)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct abi_quark_loss *l = bpf_map_lookup_elem(&losses, &cpu);
	__u64 now = bpf_ktime_get_boot_ns();

	if (!l)
		return;
	l->lost[kind & 7]++;
	l->last = now;
	if (!l->first)
		l->first = now;
}

static __always_inline __u64 wakeup(void)
{
	if (!quark_no_wakeup)
		return 0;
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > quark_half ? BPF_RB_FORCE_WAKEUP
									: BPF_RB_NO_WAKEUP;
}

/* All but the time. */
static __always_inline void fill_head(struct abi_quark_head *h, enum abi_quark_kind kind,
				      struct task_struct *task, bool hot)
{
	h->kind = kind;
	h->flags = task->flags & PF_KTHREAD ? ABI_QUARK_KTHREAD : 0;
	fill_key(&h->key, task, hot);
	h->tid = task->pid;
	h->cpu = bpf_get_smp_processor_id();
}

/* A slot; false, and nothing to submit, when there is none. */
static __always_inline bool reserve(enum abi_quark_kind kind, __u32 size, struct bpf_dynptr *out)
{
	if (!bpf_ringbuf_reserve_dynptr(&ring, size, 0, out))
		return true;
	bpf_ringbuf_discard_dynptr(out, 0);
	lose(kind);
	return false;
}

/* Into the slot, which only now gets its time. */
static __always_inline void submit(struct bpf_dynptr *out, struct abi_quark_head *packed,
				   __u32 size)
{
	((packed_t *)packed)->time = bpf_ktime_get_boot_ns();
	bpf_dynptr_write(out, 0, packed, size, 0);
	bpf_ringbuf_submit_dynptr(out, wakeup());
}

/* A record without strings. */
static __always_inline void send(struct abi_quark_head *h, enum abi_quark_kind kind, __u32 size,
				 __u32 caps_at)
{
	struct bpf_dynptr out;

	size = pack(h, size, caps_at);
	if (reserve(kind, size, &out))
		submit(&out, h, size);
}

SEC("tp_btf/task_rename")
int BPF_PROG(quark_rename, struct task_struct *task, const char *comm)
{
	struct abi_quark_rename r;

	if ((task->pid != task->tgid && !quark_threads) || in_execve(task))
		return 0;
	fill_head(&r.head, ABI_QUARK_RENAME, task, true);
	__builtin_memset(r.comm, 0, sizeof(r.comm));
	bpf_probe_read_kernel_str(r.comm, sizeof(r.comm), comm);
	send(&r.head, ABI_QUARK_RENAME, sizeof(r), 0);
	return 0;
}

/*
 * From 6.16 the tracepoint says itself whether this is the last thread. Before it:
 * signal->live was decremented already. Two threads that exit at once may both see 0;
 * libquark takes the first of each process.
 */
SEC("tp_btf/sched_process_exit")
int quark_exit(__u64 *ctx)
{
	struct trace_event_raw_sched_process_exit___6_16 *with = NULL;
	struct task_struct *task = (void *)ctx[0];
	struct signal_struct *sig = task->signal;
	struct task_struct *leader = task->group_leader;
	const struct cred *cred = leader->real_cred;
	struct abi_quark_exit e;
	bool group_dead;

	if (bpf_core_field_exists(with->group_dead))
		group_dead = ctx[1];
	else
		group_dead = !sig->live.counter;
	if (!group_dead && !quark_threads)
		return 0;
	fill_head(&e.head, ABI_QUARK_EXIT, task, true);
	if (group_dead)
		e.head.flags |= ABI_QUARK_GROUP_DEAD;
	fill_key(&e.parent, task->real_parent, true);
	bpf_probe_read_kernel(e.comm, sizeof(e.comm), leader->comm);
	/* Threads that are gone are in the sum, a leader that ended first is not. */
	e.cpu_time = sig->sum_sched_runtime + task->se.sum_exec_runtime;
	if (leader != task)
		e.cpu_time += leader->se.sum_exec_runtime;
	e.maxrss = sig->maxrss;
	e.minflt = sig->min_flt;
	e.majflt = sig->maj_flt;
	e.wait_status = wait_status(leader, sig);
	e.head.flags |= ABI_QUARK_LAST_IDS;
	e.uid = cred->uid.val;
	e.gid = cred->gid.val;
	e.pgid = pid_nr(sig, PIDTYPE_PGID, true);
	e.sid = pid_nr(sig, PIDTYPE_SID, true);
	e.pad = 0;
	abi_quark_fold_exit(&e);
	send(&e.head, ABI_QUARK_EXIT, sizeof(e), 0);
	return 0;
}

/*
 * The leader's is the process's end. A leader that another thread's exec has
 * replaced carries that thread's pid by now.
 */
SEC("tp_btf/sched_process_free")
int BPF_PROG(quark_reap, struct task_struct *task)
{
	struct signal_struct *sig = task->signal;
	struct abi_quark_reap r;

	if (task->pid != task->tgid)
		return 0;
	fill_head(&r.head, ABI_QUARK_REAP, task, true);
	bpf_probe_read_kernel(r.comm, sizeof(r.comm), task->comm);
	r.cpu_time = sig->sum_sched_runtime;
	r.utime = sig->utime;
	r.stime = sig->stime;
	r.minflt = sig->min_flt;
	r.majflt = sig->maj_flt;
	r.wait_status = wait_status(task, sig);
	r.pad = 0;
	send(&r.head, ABI_QUARK_REAP, sizeof(r), 0);
	return 0;
}

/* --- strings --------------------------------------------------------------- */

struct walk_ctx {
	__u32 slot;
	__u32 which;
};

/* "/name" in front of what there is already. False when it has no room. */
static __always_inline bool prepend(struct scratch *s, __u32 which, const void *name, __u32 len)
{
	struct walk *w = &s->walk;
	__u32 pos = w->pos;
	char *buf;

	len &= 255;
	if (which >= PATHS || pos <= len || pos > ABI_QUARK_PATH_MAX) {
		w->cut = 1;
		return false;
	}
	pos = (pos - len - 1) & (ABI_QUARK_PATH_MAX - 1);
	buf = s->path[which];
	buf[pos] = '/';
	bpf_probe_read_kernel(buf + pos + 1, len, name);
	w->pos = pos;
	return true;
}

static __always_inline void enter_mount(struct walk *w, const struct vfsmount *mnt)
{
	w->mnt = (__u64)mnt;
	w->mnt_root = (__u64)BPF_CORE_READ(mnt, mnt_root);
}

static long walk_dentry(__u32 i, void *arg)
{
	struct walk_ctx *ctx = arg;
	__u32 slot = ctx->slot;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &slot);
	struct dentry *dentry, *parent;
	struct vfsmount *mnt;
	struct mount *m, *above;
	struct walk *w;

	if (!s)
		return 1;
	w = &s->walk;
	dentry = (struct dentry *)w->dentry;
	mnt = (struct vfsmount *)w->mnt;
	if (w->dentry == w->root_dentry && w->mnt == w->root_mnt)
		return 1;
	if (w->dentry == w->mnt_root) {
		m = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
		above = BPF_CORE_READ(m, mnt_parent);
		if (above == m)
			return 1; /* the namespace's root */
		w->dentry = (__u64)BPF_CORE_READ(m, mnt_mountpoint);
		enter_mount(w, (void *)above + bpf_core_field_offset(struct mount, mnt));
		return 0;
	}
	parent = BPF_CORE_READ(dentry, d_parent);
	if (!prepend(s, ctx->which, BPF_CORE_READ(dentry, d_name.name),
		     BPF_CORE_READ(dentry, d_name.len)))
		return 1;
	w->dentry = (__u64)parent;
	return parent == dentry || !parent; /* memfd and the like hang nowhere */
}

static __always_inline struct kernfs_node *kernfs_parent(struct kernfs_node *kn)
{
	struct kernfs_node___6_14 *old = (void *)kn;

	if (bpf_core_field_exists(kn->__parent))
		return BPF_CORE_READ(kn, __parent);
	return (void *)BPF_CORE_READ(old, parent);
}

static long walk_kernfs(__u32 i, void *arg)
{
	struct walk_ctx *ctx = arg;
	__u32 slot = ctx->slot;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &slot);
	struct kernfs_node *kn, *parent;
	const char *name;
	char probe[256];
	long len;

	if (!s)
		return 1;
	kn = (struct kernfs_node *)s->walk.kn;
	parent = kernfs_parent(kn);
	if (!parent)
		return 1; /* the root has no name */
	name = BPF_CORE_READ(kn, name);
	len = bpf_probe_read_kernel_str(probe, sizeof(probe), name);
	if (len <= 1 || !prepend(s, ctx->which, name, len - 1))
		return 1;
	s->walk.kn = (__u64)parent;
	return 0;
}

/* What was walked, at its place; "/" when it is empty. */
static __always_inline __u32 walked(struct scratch *s, __u32 which)
{
	__u32 pos = s->walk.pos;

	if (s->walk.cut)
		s->image.head.flags |= ABI_QUARK_PATH_CUT;
	if (pos < ABI_QUARK_PATH_MAX)
		return ABI_QUARK_PATH_MAX - pos;
	s->path[which][ABI_QUARK_PATH_MAX - 1] = '/';
	return 1;
}

static __always_inline __u32 walk_path(struct scratch *s, __u32 slot, __u32 which,
				       const struct path *path, const struct fs_struct *fs)
{
	struct walk_ctx ctx = { .slot = slot, .which = which };
	struct walk *w = &s->walk;

	w->dentry = (__u64)path->dentry;
	enter_mount(w, path->mnt);
	w->root_dentry = (__u64)fs->root.dentry;
	w->root_mnt = (__u64)fs->root.mnt;
	w->pos = ABI_QUARK_PATH_MAX;
	w->cut = 0;
	if (bpf_loop(PATH_DEPTH, walk_dentry, &ctx, 0) == PATH_DEPTH)
		w->cut = 1;
	return walked(s, which);
}

/* Hexadecimal digits of a container's id, alone or with more around it. */
#define CONTAINER_ID_LEN 64

static __always_inline bool names_container(struct kernfs_node *kn)
{
	char name[CONTAINER_ID_LEN + 1];

	return bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(kn, name)) ==
	       sizeof(name);
}

/* Where a controller of version 1 has the process; NULL: nowhere, or it is of version 2. */
static __always_inline struct kernfs_node *css_kn(struct css_set *set, __u32 id)
{
	struct cgroup_subsys_state *css;
	struct cgroup *cgroup;

	bpf_core_read(&css, sizeof(css), &set->subsys[0] + id);
	if (!css)
		return NULL;
	cgroup = BPF_CORE_READ(css, cgroup);
	if (BPF_CORE_READ(cgroup, root) == BPF_CORE_READ(set, dfl_cgrp, root))
		return NULL;
	return BPF_CORE_READ(cgroup, kn);
}

/*
 * One hierarchy: the unified one if it says anything, else memory's, else pids'. But
 * engines of version 1 leave a process where it was in the unified one: if memory's or
 * pids' names a container, it is there.
 */
static __always_inline struct kernfs_node *cgroup_kn(struct task_struct *task)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct kernfs_node *kn = BPF_CORE_READ(set, dfl_cgrp, kn);
	struct kernfs_node *memory = NULL, *pids = NULL;

	if (bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		memory = css_kn(set, bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id));
	if (bpf_core_enum_value_exists(enum cgroup_subsys_id, pids_cgrp_id))
		pids = css_kn(set, bpf_core_enum_value(enum cgroup_subsys_id, pids_cgrp_id));
	if (memory && names_container(memory))
		return memory;
	if (pids && names_container(pids))
		return pids;
	if (kernfs_parent(kn))
		return kn;
	if (memory && kernfs_parent(memory))
		return memory;
	return pids ? pids : kn;
}

static __always_inline __u32 walk_cgroup(struct scratch *s, __u32 slot, __u32 which,
					 struct task_struct *task)
{
	struct walk_ctx ctx = { .slot = slot, .which = which };

	s->walk.kn = (__u64)cgroup_kn(task);
	s->walk.pos = ABI_QUARK_PATH_MAX;
	s->walk.cut = 0;
	bpf_loop(PATH_DEPTH, walk_kernfs, &ctx, 0);
	return walked(s, which);
}

/* The rest is a flag: the time was asked for (6.13). */
#define NSEC_MASK 0x3fffffff

static __always_inline __u64 ctime_ns(struct inode *inode)
{
	struct inode___6_6 *i66 = (void *)inode;
	struct inode___6_1 *i61 = (void *)inode;

	if (bpf_core_field_exists(inode->i_ctime_sec))
		return BPF_CORE_READ(inode, i_ctime_sec) * 1000000000ULL +
		       (BPF_CORE_READ(inode, i_ctime_nsec) & NSEC_MASK);
	if (bpf_core_field_exists(i66->__i_ctime))
		return BPF_CORE_READ(i66, __i_ctime.tv_sec) * 1000000000ULL +
		       BPF_CORE_READ(i66, __i_ctime.tv_nsec);
	return BPF_CORE_READ(i61, i_ctime.tv_sec) * 1000000000ULL +
	       BPF_CORE_READ(i61, i_ctime.tv_nsec);
}

static __always_inline void fill_file(struct abi_quark_image *im, struct file *file)
{
	struct inode *inode = file->f_inode;

	im->dev = inode->i_sb->s_dev;
	im->ino = inode->i_ino;
	im->ctime_ns = ctime_ns(inode);
	im->size = inode->i_size;
}

enum {
	EXE,
	CWD,
	CGROUP
};

/* All but the head's time, and arguments. */
static __always_inline void fill_image(struct scratch *s, __u32 slot, struct task_struct *task,
				       struct mm_struct *mm, bool hot)
{
	struct abi_quark_image *im = &s->image;
	struct fs_struct *fs = task->fs;

	__builtin_memset(im, 0, sizeof(*im));
	fill_key(&im->head.key, task, hot);
	fill_key(&im->parent, FOLLOW(hot, task, real_parent), hot);
	bpf_probe_read_kernel(im->comm, sizeof(im->comm), task->comm);
	fill_ids(&im->ids, task, hot);
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

/* Memory that the kernel has just written: it is there, or was swapped out. */
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

/* A path stands at the end of its buffer. The barrier keeps the bound where it was checked. */
static __always_inline char *path_at(struct scratch *s, __u32 which, __u32 len)
{
	__u32 pos = ABI_QUARK_PATH_MAX - len;

	barrier_var(pos);
	return s->path[which] + (pos & (ABI_QUARK_PATH_MAX - 1));
}

static __always_inline __u32 put(struct bpf_dynptr *out, __u32 off, void *src, __u32 len, __u32 max)
{
	if (len > max)
		return off;
	bpf_dynptr_write(out, off, src, len, 0);
	return off + len;
}

static __always_inline void put_strings(struct bpf_dynptr *out, __u32 off, struct scratch *s)
{
	const struct strings *len = &s->len;

	off = put(out, off, path_at(s, EXE, len->exe), len->exe, ABI_QUARK_PATH_MAX);
	off = put(out, off, s->args, len->args, ABI_QUARK_ARGS_MAX);
	off = put(out, off, path_at(s, CWD, len->cwd), len->cwd, ABI_QUARK_PATH_MAX);
	off = put(out, off, path_at(s, CGROUP, len->cgroup), len->cgroup, ABI_QUARK_PATH_MAX);
	put(out, off, s->env, len->env, ABI_QUARK_ENV_MAX);
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

	if (!s)
		return 0;
	im = &s->image;
	fill_image(s, cpu, task, mm, true);
	im->head.kind = ABI_QUARK_EXEC;
	im->head.tid = old_pid;
	im->head.cpu = cpu;
	if (mm) {
		im->args_len = read_args(s, mm);
		im->env_len = quark_max_env ? read_env(s, mm) : 0;
	}
	s->len = (struct strings){ im->exe_len, im->args_len, im->cwd_len, im->cgroup_len,
				   im->env_len };
	abi_quark_fold_image(im, quark_home);
	size = pack(&im->head, sizeof(*im), CAPS_AT(abi_quark_image));
	if (!reserve(ABI_QUARK_EXEC,
		     size + s->len.exe + s->len.args + s->len.cwd + s->len.cgroup + s->len.env,
		     &out))
		return 0;
	put_strings(&out, size, s);
	submit(&out, &im->head, size);
	return 0;
}

/* --- changes without an exec ----------------------------------------------- */

/* What the process is now; the leader's credentials count for it. */
static __always_inline void changed(struct task_struct *task, bool cwd, bool cgroup)
{
	__u32 cpu = bpf_get_smp_processor_id(), size;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &cpu);
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	struct fs_struct *fs = task->fs;
	struct abi_quark_id_change *c;
	struct bpf_dynptr out;

	if (!s)
		return;
	c = &s->change;
	fill_head(&c->head, ABI_QUARK_ID_CHANGE, task, false);
	fill_ids(&c->ids, leader, false);
	s->len = (struct strings){};
	if (cwd && fs)
		s->len.cwd = walk_path(s, cpu, CWD, &fs->pwd, fs);
	if (cgroup)
		s->len.cgroup = walk_cgroup(s, cpu, CGROUP, task);
	c->cwd_len = s->len.cwd;
	c->cgroup_len = s->len.cgroup;
	abi_quark_fold_ids(&c->ids, quark_home);
	size = pack(&c->head, sizeof(*c), CAPS_AT(abi_quark_id_change));
	if (!reserve(ABI_QUARK_ID_CHANGE, size + s->len.cwd + s->len.cgroup, &out))
		return;
	put_strings(&out, size, s);
	submit(&out, &c->head, size);
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
	s = bpf_map_lookup_elem(&scratches, &cpu);
	if (!s)
		return 0;
	f = &s->fork;
	fill_head(&f->head, ABI_QUARK_FORK, task, true);
	fill_key(&f->parent, task->real_parent, true);
	fill_key(&f->origin, cur, true);
	f->clone_flags = clone_flags;
	bpf_probe_read_kernel(f->comm, sizeof(f->comm), task->comm);
	fill_ids(&f->ids, task, true);
	abi_quark_fold_fork(f, quark_home);
	send(&f->head, ABI_QUARK_FORK, sizeof(*f), CAPS_AT(abi_quark_fork));
	/* Else its cgroup is its origin's. */
	if (clone_flags & CLONE_INTO_CGROUP && !(clone_flags & CLONE_THREAD))
		changed(task, false, true);
	return 0;
}

/*
 * There is no tracepoint where credentials change, and none for chdir: the return
 * of the few system calls that do it. The hook costs every system call of the host
 * some tens of nanoseconds, so it is loaded only when it was asked for.
 */
SEC("tp_btf/sys_exit")
int BPF_PROG(quark_sys_exit, struct pt_regs *regs, long ret)
{
	struct task_struct *task;

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
		task = bpf_get_current_task_btf();
		changed(task, false, false);
		break;
	case NR_CHDIR:
	case NR_FCHDIR:
		task = bpf_get_current_task_btf();
		changed(task, true, false);
		break;
	}
	return 0;
}

SEC("tp_btf/cgroup_attach_task")
int BPF_PROG(quark_cgroup, struct cgroup *dst, const char *path, struct task_struct *task)
{
	if (task->pid == task->tgid)
		changed(task, false, true);
	return 0;
}

/* --- what was there before ------------------------------------------------- */

static __always_inline void seq_path(struct seq_file *seq, struct scratch *s, __u32 which,
				     __u32 len)
{
	if (len <= ABI_QUARK_PATH_MAX)
		bpf_seq_write(seq, path_at(s, which, len), len);
}

/* Arguments are in other tasks' memory, which may have to be paged in: /proc has them. */
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
	/* First, so that whatever came before it is in what is read now. */
	now = bpf_ktime_get_boot_ns();
	fill_image(s, slot, task, task->mm, false);
	im->head.time = now;
	im->head.kind = ABI_QUARK_TASK;
	im->head.tid = task->pid;
	sig = task->signal;
	if (!sig->live.counter) {
		im->head.flags |= ABI_QUARK_GROUP_DEAD;
		im->wait_status = wait_status(task, sig);
	}
	bpf_seq_write(seq, im, sizeof(*im));
	seq_path(seq, s, EXE, im->exe_len);
	seq_path(seq, s, CWD, im->cwd_len);
	seq_path(seq, s, CGROUP, im->cgroup_len);
	/* The next record is to be aligned again. */
	pad = -(sizeof(*im) + im->exe_len + im->cwd_len + im->cgroup_len) & 7;
	bpf_seq_write(seq, zeros, pad);
	return 0;
}
