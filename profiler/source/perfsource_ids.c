// SPDX-License-Identifier: Apache-2.0
/*
 * perfsource_ids: see perfsource_ids.h.
 *
 * An exec appears in the records as COMM with the exec flag, the moment of the
 * switch; then as the mapping of the executed file; the return to user code has
 * no record. Samples after the COMM have the new generation. The mapping makes
 * the exec event, because it has the file's name. Until a later record shows
 * that the process returned to user code, a sample in the kernel may be inside
 * execve, with registers of the old image.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "base/base.h"
#include "profiler/source/perfsource_ids.h"
#include "profiler/source/perfsource_parse.h"

/* Samples of a process may follow its EXIT: it still runs then. */
#define PERFIDS_GRACE (5 * CLOCK_NSEC_PER_SEC)

enum exec_state {
	EXEC_OVER, /* none, or it has run user code since */
	EXEC_BEGUN, /* nothing is mapped yet */
	EXEC_MAPPED, /* the file is mapped */
	EXEC_VDSO, /* the vDSO, too, which is the last */
};

struct perf_proc {
	struct hash_node node; /* perfids.procs, by pid */
	STAILQ_ENTRY(perf_proc) dead;
	struct quark_key key;
	struct quark_key parent;
	uint32_t ppid, uid, gid;
	uint32_t nthreads;
	enum exec_state exec;
	uint64_t exec_time; /* of the last exec seen */
	uint64_t died; /* 0: not yet */
	bool scanned; /* key.start_boottime is of /proc, in ticks */
	bool kthread;
	char comm[ABI_COMM_LEN]; /* of the leader */
};

struct perf_thread {
	struct hash_node node; /* perfids.threads, by tid */
	struct perf_proc *proc;
	uint32_t tid;
	char comm[ABI_COMM_LEN];
};

struct perfids {
	struct perfids_opts opts;
	struct hash procs, threads;
	STAILQ_HEAD(, perf_proc) dead; /* the first died first */
	uint64_t tick;
};

int perfids_new(struct perfids **pp, const struct perfids_opts *opts)
{
	struct perfids *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->opts = *opts;
	STAILQ_INIT(&p->dead);
	p->tick = procfs_tick();
	if (hash_init(&p->procs, 0) || hash_init(&p->threads, 0)) {
		perfids_free(p);
		return -ENOMEM;
	}
	*pp = p;
	return 0;
}

void perfids_free(struct perfids *p)
{
	struct hash_node *n, *tmp;
	size_t i;

	if (!p)
		return;
	if (p->threads.buckets)
		hash_for_each(&p->threads, i, n, tmp)
			free(container_of(n, struct perf_thread, node));
	if (p->procs.buckets)
		hash_for_each(&p->procs, i, n, tmp)
			free(container_of(n, struct perf_proc, node));
	hash_fini(&p->threads);
	hash_fini(&p->procs);
	free(p);
}

/* --- threads and processes ------------------------------------------------ */

static struct perf_proc *find_proc(struct perfids *p, uint32_t pid)
{
	struct hash_node *n;
	struct perf_proc *proc, *last = NULL;

	/* Of several with this pid the live one, or else the last that died. */
	hash_for_each_match(&p->procs, n, hash_u64(pid)) {
		proc = container_of(n, struct perf_proc, node);
		if (proc->key.pid == pid &&
		    (!last || !proc->died ||
		     (last->died && proc->died > last->died)))
			last = proc;
	}
	return last;
}

static struct perf_thread *find_thread(struct perfids *p, uint32_t tid)
{
	struct perf_thread *t;

	HASH_FIND(t, &p->threads, hash_u64(tid), node, t->tid == tid);
	return t;
}

static void drop_thread(struct perfids *p, struct perf_thread *t)
{
	t->proc->nthreads--;
	hash_remove(&p->threads, &t->node);
	free(t);
}

/* A tid of another process is a thread whose EXIT was dropped. */
static int add_thread(struct perfids *p, struct perf_proc *proc, uint32_t tid,
		      const char *comm)
{
	struct perf_thread *t = find_thread(p, tid);

	if (t && t->proc == proc)
		return 0;
	if (t)
		drop_thread(p, t);
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	t->proc = proc;
	t->tid = tid;
	memcpy(t->comm, comm, sizeof(t->comm));
	hash_insert(&p->threads, &t->node, hash_u64(tid));
	proc->nthreads++;
	return 0;
}

static void drop_threads(struct perfids *p, struct perf_proc *proc)
{
	struct hash_node *n, *tmp;
	struct perf_thread *t;
	size_t i;

	if (!proc->nthreads)
		return;
	hash_for_each(&p->threads, i, n, tmp) {
		t = container_of(n, struct perf_thread, node);
		if (t->proc == proc)
			drop_thread(p, t);
	}
}

static struct perf_proc *add_proc(struct perfids *p, uint32_t pid,
				  uint64_t start, const char *comm)
{
	struct perf_proc *proc = calloc(1, sizeof(*proc));

	if (!proc)
		return NULL;
	proc->key.pid = pid;
	proc->key.start_boottime = start;
	memcpy(proc->comm, comm, sizeof(proc->comm));
	hash_insert(&p->procs, &proc->node, hash_u64(pid));
	return proc;
}

/* Processes of which no sample can come any more. */
static void perfids_forget_dead(struct perfids *p, uint64_t time)
{
	struct perf_proc *proc;

	while ((proc = STAILQ_FIRST(&p->dead)) &&
	       proc->died + PERFIDS_GRACE < time) {
		STAILQ_REMOVE_HEAD(&p->dead, dead);
		drop_threads(p, proc);
		hash_remove(&p->procs, &proc->node);
		free(proc);
	}
}

/* --- events --------------------------------------------------------------- */

static void perfids_describe(const struct perf_proc *proc,
			     struct quark_process *qp)
{
	memset(qp, 0, sizeof(*qp));
	qp->pid = proc->key.pid;
	qp->key = proc->key;
	qp->parent_key = proc->parent;
	qp->proc_ppid = proc->ppid;
	qp->proc_uid = proc->uid;
	qp->proc_gid = proc->gid;
	if (proc->kthread)
		qp->x_flags |= QUARK_X_KTHREAD;
	memcpy(qp->comm, proc->comm, sizeof(qp->comm));
}

static void perfids_report(struct perfids *p, uint64_t what,
			   struct quark_process *qp, uint64_t time,
			   uint32_t tid)
{
	struct quark_event ev = {
		.events = what,
		.process = qp,
		.tid = tid,
		.boottime = time,
		.group_dead = what == QUARK_EV_EXIT,
	};

	p->opts.event(p->opts.event_arg, &ev);
}

/* The exec event. 'path' is the kernel's; NULL: unknown. */
static void exec_happened(struct perfids *p, struct perf_proc *proc,
			  uint64_t time, const char *path)
{
	struct quark_process qp;

	perfids_describe(proc, &qp);
	qp.exe = (char *)path; /* borrowed for the call */
	proc->exec = path ? EXEC_MAPPED : EXEC_OVER;
	perfids_report(p, QUARK_EV_EXEC, &qp, time, proc->key.pid);
}

/* Completes an exec whose mapping was dropped or does not exist. */
static void exec_settle(struct perfids *p, struct perf_proc *proc,
			uint64_t time)
{
	if (proc->exec == EXEC_BEGUN)
		exec_happened(p, proc, time, NULL);
	proc->exec = EXEC_OVER;
}

static void perfids_mark_dead(struct perfids *p, struct perf_proc *proc,
			      uint64_t time)
{
	struct quark_process qp;

	if (proc->died)
		return;
	exec_settle(p, proc, time);
	drop_threads(p, proc);
	proc->died = time;
	STAILQ_INSERT_TAIL(&p->dead, proc, dead);
	perfids_describe(proc, &qp);
	qp.flags |= QUARK_F_EXIT;
	qp.exit_boottime = time;
	qp.wait_status = PM_STATUS_UNKNOWN; /* no record has it */
	perfids_report(p, QUARK_EV_EXIT, &qp, time, proc->key.pid);
}

/*
 * Without a FORK record, which was dropped or came while /proc was scanned, a
 * process is treated as one that ran before.
 */
static struct perf_proc *perfids_get(struct perfids *p, uint32_t pid,
				     uint64_t time)
{
	static const char unknown[ABI_COMM_LEN];
	struct perf_proc *proc = find_proc(p, pid);
	struct quark_process qp;

	if (proc)
		return proc;
	proc = add_proc(p, pid, time, unknown);
	if (!proc)
		return NULL;
	perfids_describe(proc, &qp);
	p->opts.process(p->opts.arg, &qp, time);
	p->opts.want(p->opts.arg, pid);
	return proc;
}

/* --- records -------------------------------------------------------------- */

static void comm_of(struct perfids *p, uint32_t tid,
		    const struct perf_proc *proc, char *out)
{
	const struct perf_thread *t = find_thread(p, tid);

	memcpy(out, t ? t->comm : proc->comm, ABI_COMM_LEN);
}

static int feed_thread(struct perfids *p, const struct perfids_record *r)
{
	struct perf_proc *proc = perfids_get(p, r->pid, r->time);
	char comm[ABI_COMM_LEN];

	if (!proc)
		return -ENOMEM;
	comm_of(p, r->ptid, proc, comm);
	return add_thread(p, proc, r->tid, comm);
}

/* The FORK of a process that the scan has found already. */
static bool born_in_scan(const struct perfids *p, const struct perf_proc *proc,
			 uint64_t time)
{
	return proc->scanned && !proc->died &&
	       proc->key.start_boottime <= time &&
	       time - proc->key.start_boottime < 2 * p->tick;
}

static int feed_fork(struct perfids *p, const struct perfids_record *r)
{
	struct perf_proc *old, *parent, *proc;
	char comm[ABI_COMM_LEN];
	struct quark_process qp;

	if (r->pid == r->ppid)
		return feed_thread(p, r);
	old = find_proc(p, r->pid);
	if (old && born_in_scan(p, old, r->time))
		return 0;
	if (old)
		perfids_mark_dead(p, old, r->time);
	parent = perfids_get(p, r->ppid, r->time);
	if (!parent)
		return -ENOMEM;
	exec_settle(p, parent, r->time);
	comm_of(p, r->ptid, parent, comm);
	proc = add_proc(p, r->pid, r->time, comm);
	if (!proc)
		return -ENOMEM;
	proc->key.exec_id = parent->key.exec_id;
	proc->parent = parent->key;
	proc->ppid = r->ppid;
	proc->uid = parent->uid;
	proc->gid = parent->gid;
	perfids_describe(proc, &qp);
	perfids_report(p, QUARK_EV_FORK, &qp, r->time, r->tid);
	return add_thread(p, proc, r->tid, comm);
}

/*
 * The thread that calls execve has the leader's id by then, and is the only
 * one; the others' EXIT records came before, or were dropped.
 */
static int feed_exec(struct perfids *p, const struct perfids_record *r)
{
	struct perf_proc *proc = perfids_get(p, r->pid, r->time);
	struct perf_thread *leader = find_thread(p, r->pid);

	if (!proc)
		return -ENOMEM;
	exec_settle(p, proc, r->time);
	if (leader && leader->proc == proc)
		drop_thread(p, leader);
	drop_threads(p, proc);
	memcpy(proc->comm, r->comm, sizeof(proc->comm));
	proc->key.exec_id++;
	proc->exec = EXEC_BEGUN;
	proc->exec_time = r->time;
	return add_thread(p, proc, r->pid, r->comm);
}

static int feed_comm(struct perfids *p, const struct perfids_record *r)
{
	struct perf_proc *proc = perfids_get(p, r->pid, r->time);
	struct perf_thread *t;
	struct quark_process qp;
	int err;

	if (!proc)
		return -ENOMEM;
	err = add_thread(p, proc, r->tid, r->comm);
	if (err)
		return err;
	t = find_thread(p, r->tid);
	memcpy(t->comm, r->comm, sizeof(t->comm));
	if (r->pid != r->tid)
		return 0;
	exec_settle(p, proc, r->time);
	memcpy(proc->comm, r->comm, sizeof(proc->comm));
	perfids_describe(proc, &qp);
	perfids_report(p, QUARK_EV_SETPROCTITLE, &qp, r->time, r->tid);
	return 0;
}

static int feed_exit(struct perfids *p, const struct perfids_record *r)
{
	struct perf_proc *proc = find_proc(p, r->pid);
	struct perf_thread *t = find_thread(p, r->tid);

	if (!proc)
		return 0;
	if (t && t->proc == proc)
		drop_thread(p, t);
	if (!proc->nthreads)
		perfids_mark_dead(p, proc, r->time);
	return 0;
}

static int feed_gone(struct perfids *p, const struct perfids_record *r)
{
	struct perf_proc *proc = find_proc(p, r->pid);

	if (proc)
		perfids_mark_dead(p, proc, r->time);
	return 0;
}

static void from_proc(const struct perfsource_process *from,
		      struct perf_proc *proc, struct quark_process *qp)
{
	proc->uid = from->uid;
	proc->gid = from->gid;
	proc->ppid = from->stat.ppid;
	proc->kthread = from->stat.kthread;
	perfids_describe(proc, qp);
	qp->cwd = from->cwd;
	qp->cgroup = from->cgroup;
	qp->cmdline = from->cmdline;
	qp->cmdline_len = from->cmdline_len;
	if (from->cmdline_len == ABI_QUARK_ARGS_MAX)
		qp->x_flags |= QUARK_X_ARGS_CUT;
}

static int add_threads(struct perfids *p, struct perf_proc *proc,
		       const struct perfsource_process *from)
{
	size_t i;
	int err = 0;

	for (i = 0; !err && i < from->nthreads; i++)
		err = add_thread(p, proc, from->threads[i].tid,
				 from->threads[i].comm);
	return err;
}

static int feed_scan(struct perfids *p, const struct perfids_record *r)
{
	const struct perfsource_process *from = r->proc;
	struct perf_proc *proc = find_proc(p, r->pid), *parent;
	struct quark_process qp;

	if (proc)
		return 0;
	proc = add_proc(p, r->pid, from->stat.start, from->stat.comm);
	if (!proc)
		return -ENOMEM;
	proc->scanned = true;
	from_proc(from, proc, &qp);
	parent = find_proc(p, from->stat.ppid);
	if (parent)
		proc->parent = qp.parent_key = parent->key;
	qp.exe = from->exe;
	p->opts.process(p->opts.arg, &qp, r->time);
	return add_threads(p, proc, from);
}

/*
 * The reading lasted from proc->begin to the record's time. It belongs to the
 * present image if that existed during all of it.
 */
static int feed_read(struct perfids *p, const struct perfids_record *r)
{
	const struct perfsource_process *from = r->proc;
	struct perf_proc *proc = find_proc(p, r->pid);
	struct quark_process qp;

	if (!proc || proc->died || proc->key.start_boottime > from->begin ||
	    proc->exec_time > from->begin || proc->exec == EXEC_BEGUN)
		return 0;
	if (!proc->comm[0])
		memcpy(proc->comm, from->stat.comm, sizeof(proc->comm));
	from_proc(from, proc, &qp);
	/* After an exec the mapping has named the file. */
	if (!proc->exec_time)
		qp.exe = from->exe;
	perfids_report(p, QUARK_EV_ID_CHANGE, &qp, r->time, r->pid);
	return add_threads(p, proc, from);
}

int perfids_feed(struct perfids *p, const struct perfids_record *r)
{
	static int (*const feed[])(struct perfids *,
				   const struct perfids_record *) = {
		[PERFIDS_FORK] = feed_fork, [PERFIDS_EXEC] = feed_exec,
		[PERFIDS_COMM] = feed_comm, [PERFIDS_EXIT] = feed_exit,
		[PERFIDS_GONE] = feed_gone, [PERFIDS_SCAN] = feed_scan,
		[PERFIDS_READ] = feed_read,
	};

	perfids_forget_dead(p, r->time);
	return feed[r->kind](p, r);
}

void perfids_mapped(struct perfids *p, const struct pm_map_event *ev)
{
	struct perf_proc *proc;

	if (ev->kind != PM_MAP_MMAP)
		return;
	proc = find_proc(p, ev->tgid);
	if (!proc || proc->exec == EXEC_OVER)
		return;
	if (proc->exec == EXEC_BEGUN) {
		if (ev->path[0] == '/' && ev->path[1] != '/')
			exec_happened(p, proc, ev->time, ev->path);
	} else if (!strcmp(ev->path, "[vdso]")) {
		proc->exec = EXEC_VDSO;
	} else if (proc->exec == EXEC_VDSO) {
		proc->exec = EXEC_OVER; /* user code did that */
	}
}

/*
 * From the switch to the return to user code a process spends some hundred
 * microseconds, less than the time between two samples: one sample at most is
 * in there.
 */
static bool perfids_inside_exec(struct perfids *p, struct perf_proc *proc,
				const struct abi_sample *s)
{
	if (proc->exec == EXEC_OVER)
		return false;
	if (s->flags & ABI_SAMPLE_USER) {
		exec_settle(p, proc, s->time);
		return false;
	}
	if (proc->exec != EXEC_BEGUN)
		proc->exec = EXEC_OVER;
	return true;
}

int perfids_sample(struct perfids *p, struct abi_sample *s)
{
	struct perf_proc *proc = perfids_get(p, s->key.tgid, s->time);

	if (!proc)
		return -ENOMEM;
	if (perfids_inside_exec(p, proc, s))
		perfsource_sample_strip(s);
	s->key.start_boottime = proc->key.start_boottime;
	s->key.exec_id = proc->key.exec_id;
	comm_of(p, s->tid, proc, s->comm);
	return 0;
}

void perfids_living(struct perfids *p, void (*fn)(void *arg, uint32_t pid),
		    void *arg)
{
	struct hash_node *n, *tmp;
	struct perf_proc *proc;
	size_t i;

	hash_for_each(&p->procs, i, n, tmp) {
		proc = container_of(n, struct perf_proc, node);
		if (!proc->died)
			fn(arg, proc->key.pid);
	}
}
