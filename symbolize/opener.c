// SPDX-License-Identifier: Apache-2.0
/*
 * opener: see symbolize/opener.h. A struct opener_proc is reused for the next
 * process and freed only with the struct opener: libuv and worker_child hold
 * pointers to it until the process is reaped.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "symbolize/opener.h"
#include "symbolize/reader/worker_child.h"

/* After this many unexpected exits in a row, the next start waits. */
#define OPENER_PATIENCE 3
#define OPENER_PAUSE_MS 1000
/* opener_free() waits this long for killed processes to be reaped. */
#define OPENER_LAST_MS 300
/* An idle process, except the first, is ended after this time. */
#define OPENER_IDLE_MS 5000
#define OPENER_MOUNT_MAX 256
/*
 * A deadline is counted in this many ticks. If the loop was blocked and runs
 * its timers before it reads the answers, that costs one tick at most.
 */
#define OPENER_TICKS 4U

struct opener_proc {
	struct opener *o;
	struct worker_children children;
	struct worker_child *child; /* NULL: no process */
	uint64_t *place; /* mapped, see OPENER_HELLO; NULL: no HELLO yet */
	struct opener_job *job; /* NULL: idle, or abandoned */
	bool busy, slow, hung;
	uint64_t since; /* uv_now() at start of work, idling, or this tick */
	unsigned int ticks; /* of the deadline, elapsed */
	uint64_t number; /* of its question */
	bool by_process; /* by map_files or exe: no mount is known at first */
	/* Copies of the job's, which may be freed. */
	uint64_t dev;
	uint32_t uid;
	int32_t pid;
	char mount[OPENER_MOUNT_MAX]; /* where it hangs; "": unknown */
};

struct opener {
	struct opener_opts opts;
	char *program;
	uv_timer_t timer;
	struct opener_proc *procs[OPENER_PROCS];
	size_t n_procs;
	TAILQ_HEAD(opener_jobs, opener_job) jobs; /* queued */
	uint64_t number;
	unsigned int fails;
	uint64_t restart_at; /* uv_now() */
	bool freed, leaving;
	struct worker_in in;
};

static void opener_on_timer(uv_timer_t *timer);
static void opener_run(struct opener *o, bool refuse_some);

/* --- the queue ------------------------------------------------------------ */

static void opener_queue_add(struct opener *o, struct opener_job *j)
{
	struct opener_job *prev = TAILQ_LAST(&o->jobs, opener_jobs);

	while (j->first && prev && !prev->first)
		prev = TAILQ_PREV(prev, opener_jobs, link);
	if (prev)
		TAILQ_INSERT_AFTER(&o->jobs, prev, j, link);
	else
		TAILQ_INSERT_HEAD(&o->jobs, j, link);
}

static void opener_job_asked(struct opener_job *j)
{
	if (j->fd >= 0)
		close(j->fd);
	j->fd = -1;
	free(j->q);
	j->q = NULL;
}

static void opener_job_done(struct opener_job *j, int err,
			    const struct opener_answer *a, int fd)
{
	opener_job_asked(j);
	j->done(j, err, a, fd);
}

/* --- time ----------------------------------------------------------------- */

/* When the timer has to handle it; UINT64_MAX: never. */
static uint64_t proc_due(const struct opener_proc *p)
{
	if (!p->child || p->hung)
		return UINT64_MAX;
	if (p->busy && !p->slow)
		return p->since + OPENER_SLOW_MS;
	if (p->busy)
		return p->since + p->o->opts.deadline_ms / OPENER_TICKS;
	return p != p->o->procs[0] ? p->since + OPENER_IDLE_MS : UINT64_MAX;
}

static void opener_set_timer(struct opener *o, uint64_t due)
{
	uint64_t now = uv_now(o->opts.loop);

	/* libuv 1.44 would rerun a timer of 0 ms before anything else. */
	if (due == UINT64_MAX)
		uv_timer_stop(&o->timer);
	else
		uv_timer_start(&o->timer, opener_on_timer,
			       due > now ? due - now : 1, 0);
}

/* Keeps the loop alive while there are jobs. */
static void opener_update_refs(struct opener *o)
{
	uint64_t due = UINT64_MAX;
	bool wanted = !TAILQ_EMPTY(&o->jobs);

	if (o->freed)
		return;
	for (size_t i = 0; i < o->n_procs; i++) {
		struct opener_proc *p = o->procs[i];

		due = MIN(due, proc_due(p));
		wanted |= p->job != NULL;
		if (p->child)
			worker_child_ref(p->child, p->job != NULL);
	}
	if (!TAILQ_EMPTY(&o->jobs) && o->restart_at > uv_now(o->opts.loop))
		due = MIN(due, o->restart_at);
	opener_set_timer(o, due);
	if (wanted)
		uv_ref((uv_handle_t *)&o->timer);
	else
		uv_unref((uv_handle_t *)&o->timer);
}

/* --- one process ---------------------------------------------------------- */

static void proc_set_idle(struct opener_proc *p)
{
	p->o->opts.stats->opener_hung_now -= p->hung;
	p->busy = p->slow = p->hung = false;
}

static void proc_end(struct opener_proc *p)
{
	if (p->child)
		worker_child_end(p->child);
	p->child = NULL;
	if (p->place)
		munmap(p->place, sizeof(*p->place));
	p->place = NULL;
	proc_set_idle(p);
}

/* Its process failed: the answer will not come. */
static void proc_fail(struct opener_proc *p, int err)
{
	struct opener *o = p->o;
	struct opener_job *j = p->job;

	proc_end(p);
	p->job = NULL;
	o->opts.stats->opener_failed++;
	if (++o->fails >= OPENER_PATIENCE)
		o->restart_at = uv_now(o->opts.loop) + OPENER_PAUSE_MS;
	if (j)
		opener_job_done(j, err, NULL, -1);
}

static void opener_on_ended(void *arg, int status)
{
	struct opener_proc *p = arg;

	proc_fail(p, -EIO);
	opener_run(p->o, true);
}

/* --- messages ------------------------------------------------------------- */

static bool opener_on_hello(struct opener_proc *p, const struct worker_in *in)
{
	void *map;

	if (in->head.type != OPENER_HELLO || p->place || in->fd < 0 ||
	    in->len != sizeof(in->head))
		return false;
	map = mmap(NULL, sizeof(*p->place), PROT_READ | PROT_WRITE, MAP_SHARED,
		   in->fd, 0);
	p->place = map == MAP_FAILED ? NULL : map;
	return true;
}

static bool opener_on_answer(struct opener_proc *p, struct worker_in *in)
{
	const struct opener_answer *a = (const void *)in->bytes;
	struct opener_job *j = p->job;

	if (!p->busy || in->len != sizeof(*a) || in->head.job != p->number ||
	    a->err > 0 || (a->err == 0) != (in->fd >= 0))
		return false;
	proc_set_idle(p);
	p->since = uv_now(p->o->opts.loop);
	p->job = NULL;
	p->o->fails = 0;
	p->o->restart_at = 0;
	if (j)
		opener_job_done(j, a->err, a, a->err ? -1 : worker_in_take(in));
	return true;
}

/* Handles all messages there are; ends the process for an invalid one. */
static void proc_read(struct opener_proc *p)
{
	struct worker_in *in = &p->o->in;
	struct worker_child *c = p->child;
	bool ok = true;
	int err;

	while (ok && p->child == c && c) {
		err = worker_recv(worker_child_socket(c), in);
		if (err == -EAGAIN)
			break;
		if (err == -EPIPE) { /* opener_on_ended() will be called */
			worker_child_kill(c);
			break;
		}
		ok = !err &&
		     (opener_on_hello(p, in) || opener_on_answer(p, in));
		worker_in_close(in);
	}
	if (!ok)
		proc_fail(p, -EPROTO);
}

static void opener_on_readable(void *arg)
{
	struct opener_proc *p = arg;

	proc_read(p);
	opener_run(p->o, true);
}

/* --- start and end of a process ------------------------------------------- */

static void opener_on_timer_closed(uv_handle_t *handle)
{
	struct opener *o =
		container_of((uv_timer_t *)handle, struct opener, timer);
	void (*closed)(void *arg) = o->opts.closed;
	void *arg = o->opts.arg;

	for (size_t i = 0; i < o->n_procs; i++)
		free(o->procs[i]);
	free(o->program);
	free(o);
	closed(arg);
}

static bool all_gone(const struct opener *o)
{
	for (size_t i = 0; i < o->n_procs; i++)
		if (!LIST_EMPTY(&o->procs[i]->children.list))
			return false;
	return true;
}

static void opener_on_gone(void *arg)
{
	struct opener *o = ((struct opener_proc *)arg)->o;

	if (o->leaving && all_gone(o) &&
	    !uv_is_closing((uv_handle_t *)&o->timer))
		uv_close((uv_handle_t *)&o->timer, opener_on_timer_closed);
}

static int proc_start(struct opener_proc *p)
{
	char *argv[] = { "profd", SYMBOLIZER_OPENER, NULL };
	int err;

	p->o->opts.stats->opener_starts++;
	err = worker_child_start(&p->child, &p->children, p->o->program, argv);
	if (err) {
		p->child = NULL;
		proc_fail(p, err);
	} else {
		worker_child_nice(p->child, WORKER_BEFORE);
	}
	p->since = uv_now(p->o->opts.loop);
	return err;
}

/* A struct opener_proc without a process, or NULL. */
static struct opener_proc *proc_spare(struct opener *o)
{
	struct opener_proc *p;

	for (size_t i = 0; i < o->n_procs; i++)
		if (!o->procs[i]->child)
			return o->procs[i];
	if (o->n_procs == OPENER_PROCS)
		return NULL;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->o = o;
	p->children = (struct worker_children){
		.loop = o->opts.loop,
		.readable = opener_on_readable,
		.ended = opener_on_ended,
		.gone = opener_on_gone,
		.arg = p,
	};
	return o->procs[o->n_procs++] = p;
}

static void proc_send(struct opener_proc *p, struct opener_job *j)
{
	struct opener *o = p->o;
	struct opener_question *q = j->q;

	TAILQ_REMOVE(&o->jobs, j, link);
	uv_update_time(o->opts.loop);
	p->since = uv_now(o->opts.loop);
	p->ticks = 0;
	p->busy = true;
	p->job = j;
	j->proc = p;
	p->dev = j->dev;
	p->uid = j->uid;
	p->pid = j->pid;
	p->by_process = q->head.type == OPENER_FILE &&
			(q->way == SYMBOLIZER_BY_MAPPING ||
			 q->way == SYMBOLIZER_BY_EXE);
	p->mount[0] = '\0';
	if (p->place)
		__atomic_store_n(p->place, 0, __ATOMIC_RELAXED);
	p->number = ++o->number;
	/* If the process is dead, opener_on_ended() will be called. */
	worker_send(worker_child_socket(p->child), &q->head, q->head.type,
		    q->head.len, p->number, j->fd);
}

/*
 * The device of the mount it is at, 0: unknown. A watched process can hold the
 * lock of its own mappings for ever; that must not count against the mount that
 * its file is on.
 */
static uint64_t proc_dev(const struct opener_proc *p)
{
	uint64_t dev =
		p->place ? __atomic_load_n(p->place, __ATOMIC_RELAXED) : 0;

	return dev || p->by_process ? dev : p->dev;
}

/* --- limits: which jobs may start ----------------------------------------- */

/* Whether the slow, or hung, openers reach a limit that applies to the job. */
static bool opener_at_limit(const struct opener *o, const struct opener_job *j,
			    bool hung)
{
	unsigned int mount = 0, uid = 0, pid = 0, all = 0;

	for (size_t i = 0; i < o->n_procs; i++) {
		const struct opener_proc *p = o->procs[i];

		if (!(hung ? p->hung : p->slow))
			continue;
		all++;
		mount += j->dev && j->dev == proc_dev(p);
		uid += j->uid == p->uid;
		pid += j->pid && j->pid == p->pid && p->by_process &&
		       !proc_dev(p);
	}
	return mount >= OPENER_HUNG_MOUNT || uid >= OPENER_HUNG_UID ||
	       pid >= OPENER_HUNG_PID || all >= OPENER_PROCS ||
	       (all >= OPENER_HUNG_ALL && (mount || uid));
}

/* 0: now; -EAGAIN: not while others are slow; -EBUSY: refused. */
static int opener_may_start(const struct opener *o, const struct opener_job *j)
{
	if (!opener_at_limit(o, j, false))
		return 0;
	return opener_at_limit(o, j, true) ? -EBUSY : -EAGAIN;
}

/* An idle process; a new one if all are slow. NULL: none. */
static struct opener_proc *opener_proc_idle(struct opener *o)
{
	struct opener_proc *p;

	for (size_t i = 0; i < o->n_procs; i++) {
		p = o->procs[i];
		if (p->child && !p->busy)
			return p;
	}
	for (size_t i = 0; i < o->n_procs; i++)
		if (o->procs[i]->child && !o->procs[i]->slow)
			return NULL;
	if (o->restart_at > uv_now(o->opts.loop))
		return NULL;
	p = proc_spare(o);
	return p && !proc_start(p) ? p : NULL;
}

static void opener_refuse(struct opener *o, struct opener_job *j, int err)
{
	o->opts.stats->open_skipped += err == -EBUSY;
	TAILQ_REMOVE(&o->jobs, j, link);
	opener_job_done(j, err, NULL, -1);
}

/* No process runs, and none will be started soon. */
static bool opener_unavailable(const struct opener *o)
{
	for (size_t i = 0; i < o->n_procs; i++)
		if (o->procs[i]->child)
			return false;
	return o->fails >= OPENER_PATIENCE;
}

/* Starts the jobs that may start; 'refuse_some': may call done() of others. */
static void opener_run(struct opener *o, bool refuse_some)
{
	struct opener_job *j, *next;
	struct opener_proc *p;
	bool again = false;
	int err;

	for (j = TAILQ_FIRST(&o->jobs); j && !o->freed; j = next) {
		next = TAILQ_NEXT(j, link);
		err = opener_may_start(o, j);
		p = err ? NULL : opener_proc_idle(o);
		if (!err && !p && opener_unavailable(o))
			err = -EIO;
		if (p) {
			proc_send(p, j);
		} else if (err && err != -EAGAIN && refuse_some) {
			opener_refuse(o, j, err);
			/* The callee may have changed the queue. */
			next = TAILQ_FIRST(&o->jobs);
		} else if (err && err != -EAGAIN) {
			again = true;
		} else if (!err) {
			break;
		}
	}
	opener_update_refs(o);
	if (again && !o->freed)
		opener_set_timer(o, 0);
}

/* --- time is up ----------------------------------------------------------- */

static void proc_hang(struct opener_proc *p)
{
	struct opener_job *j = p->job;

	p->hung = true;
	p->job = NULL;
	p->o->opts.stats->opener_hung++;
	p->o->opts.stats->opener_hung_now++;
	if (!proc_dev(p) ||
	    !opener_mount_of(proc_dev(p), p->pid, p->mount, sizeof(p->mount)))
		p->mount[0] = '\0';
	if (j)
		opener_job_done(j, -ETIMEDOUT, NULL, -1);
}

static void proc_overdue(struct opener_proc *p)
{
	struct worker_child *c = p->child;
	uint64_t number = p->number;

	if (!p->busy) { /* idle for too long */
		proc_end(p);
		return;
	}
	/* The answer may be there already, if the loop was blocked. */
	proc_read(p);
	if (p->child != c || p->number != number || !p->busy)
		return;
	if (!p->slow)
		p->slow = true;
	else if (++p->ticks < OPENER_TICKS)
		p->since = uv_now(p->o->opts.loop);
	else
		proc_hang(p);
}

/*
 * The last steps of opener_free(), from the timer because the handle of a
 * process that could not be started may still be closing.
 */
static void opener_leave(struct opener *o)
{
	if (all_gone(o)) {
		uv_close((uv_handle_t *)&o->timer, opener_on_timer_closed);
	} else if (o->leaving) {
		for (size_t i = 0; i < o->n_procs; i++)
			worker_children_forget(&o->procs[i]->children);
	} else {
		o->leaving = true;
		uv_timer_start(&o->timer, opener_on_timer, OPENER_LAST_MS, 0);
	}
}

static void opener_on_timer(uv_timer_t *timer)
{
	struct opener *o = container_of(timer, struct opener, timer);

	if (o->freed) {
		opener_leave(o);
		return;
	}
	for (size_t i = 0; i < o->n_procs && !o->freed; i++)
		if (proc_due(o->procs[i]) <= uv_now(o->opts.loop))
			proc_overdue(o->procs[i]);
	opener_run(o, true);
}

/* --- interface ------------------------------------------------------------ */

int opener_new(struct opener **op, const struct opener_opts *opts)
{
	struct opener *o = calloc(1, sizeof(*o));
	struct opener_proc *p;
	int err;

	if (!o)
		return -ENOMEM;
	TAILQ_INIT(&o->jobs);
	o->opts = *opts;
	o->program = strdup(opts->program);
	p = o->program ? proc_spare(o) : NULL;
	err = p ? uv_timer_init(opts->loop, &o->timer) : -ENOMEM;
	if (err) {
		free(p);
		free(o->program);
		free(o);
		return err;
	}
	proc_start(p);
	opener_update_refs(o);
	*op = o;
	return 0;
}

void opener_free(struct opener *o)
{
	struct opener_job *j;

	if (!o)
		return;
	o->freed = true;
	while ((j = TAILQ_FIRST(&o->jobs))) {
		TAILQ_REMOVE(&o->jobs, j, link);
		opener_job_done(j, -ECANCELED, NULL, -1);
	}
	for (size_t i = 0; i < o->n_procs; i++) {
		j = o->procs[i]->job;
		o->procs[i]->job = NULL;
		if (j)
			opener_job_done(j, -ECANCELED, NULL, -1);
		proc_end(o->procs[i]);
	}
	uv_ref((uv_handle_t *)&o->timer);
	uv_timer_start(&o->timer, opener_on_timer, 0, 0);
}

void opener_submit(struct opener *o, struct opener_job *j)
{
	j->proc = NULL;
	opener_queue_add(o, j);
	opener_run(o, false);
}

void opener_hurry(struct opener *o, struct opener_job *j)
{
	if (!j->q || j->proc || j->first)
		return;
	TAILQ_REMOVE(&o->jobs, j, link);
	j->first = true;
	opener_queue_add(o, j);
}

void opener_cancel(struct opener *o, struct opener_job *j)
{
	if (!j->q) /* done() was called, or is about to be */
		return;
	opener_job_asked(j);
	if (j->proc)
		j->proc->job = NULL;
	else
		TAILQ_REMOVE(&o->jobs, j, link);
	opener_update_refs(o);
}

struct opener_question *opener_question(enum opener_type type,
					const char *const *text, size_t n)
{
	struct opener_question *q;
	size_t len = 0, one;
	char *to;

	for (size_t i = 0; i < n; i++)
		len += (text[i] ? strlen(text[i]) : 0) + 1;
	if (len > OPENER_TEXT_MAX)
		return NULL;
	q = calloc(1, sizeof(*q) + len);
	if (!q)
		return NULL;
	to = (char *)(q + 1);
	for (size_t i = 0; i < n; i++, to += one) {
		one = (text[i] ? strlen(text[i]) : 0) + 1;
		memcpy(to, text[i] ? text[i] : "", one);
	}
	q->head.type = type;
	q->head.len = (uint32_t)(sizeof(*q) + len);
	return q;
}

/* Whether an earlier opener hangs on the same mount. */
static bool hung_before(const struct opener *o, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (o->procs[k]->hung &&
		    !strcmp(o->procs[k]->mount, o->procs[i]->mount))
			return true;
	return false;
}

const char *opener_hung(const struct opener *o, size_t i, unsigned int *n)
{
	const struct opener_proc *p;

	for (size_t k = 0; k < o->n_procs; k++) {
		p = o->procs[k];
		if (!p->hung || hung_before(o, k) || i--)
			continue;
		*n = 0;
		for (size_t m = k; m < o->n_procs; m++)
			*n += o->procs[m]->hung &&
			      !strcmp(o->procs[m]->mount, p->mount);
		return p->mount;
	}
	return NULL;
}
