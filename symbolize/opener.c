// SPDX-License-Identifier: Apache-2.0
/*
 * opener: see symbolize/opener.h. A structure of a process is used again and
 * freed only with the whole: libuv and worker_child hold pointers to it until
 * the kernel has let the process go.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "symbolize/opener.h"
#include "symbolize/reader/worker_child.h"

/* Processes that ended by themselves, in a row: then there is a pause. */
#define OPENER_PATIENCE 3
#define OPENER_PAUSE_MS 1000
/* Killed processes that the kernel has not let go at the end are left to it. */
#define OPENER_LAST_MS 300
/* One that was needed besides the first is ended after so long without work. */
#define OPENER_IDLE_MS 5000
#define OPENER_MOUNT_MAX 256
/*
 * A deadline is counted in so many ticks: a loop that was blocked, and runs its
 * timers before it sees what was done meanwhile, is one of them at most.
 */
#define OPENER_TICKS 4U

struct opener_proc {
	struct opener *o;
	struct worker_children children;
	struct worker_child *child; /* NULL: none runs */
	struct opener_place *place; /* mapped, or NULL: not greeted yet */
	struct opener_job *job; /* NULL: idle, or abandoned */
	bool busy, slow, hung;
	uint64_t since; /* uv_now() when it became busy, or idle; of a tick */
	unsigned int ticks; /* of the deadline, gone by */
	uint64_t number; /* of its question */
	bool by_process; /* the way leads through the process, no mount yet */
	/* Of the job, as in struct opener_job; it may be gone. */
	uint64_t dev;
	uint32_t uid;
	int32_t pid;
	char mount[OPENER_MOUNT_MAX]; /* where it hangs; "": not known */
};

struct opener {
	struct opener_opts opts;
	char *program;
	uv_timer_t timer;
	struct opener_proc *procs[OPENER_PROCS];
	size_t n_procs;
	TAILQ_HEAD(opener_jobs, opener_job) jobs; /* waiting */
	uint64_t number;
	unsigned int fails;
	uint64_t restart_at; /* uv_now() */
	bool freed, leaving;
	struct worker_in in;
};

static void opener_on_timer(uv_timer_t *timer);
static void opener_run(struct opener *o, bool refuse);

/* --- the queue -------------------------------------------------------------------- */

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

static void opener_job_done(struct opener_job *j, int err,
			    const struct opener_answer *a, int fd)
{
	free(j->q);
	j->q = NULL;
	j->done(j, err, a, fd);
}

/* --- time -------------------------------------------------------------------------- */

/* When something is to be done about it; UINT64_MAX: never. */
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

	/* libuv 1.44 runs a timer of 0 ms again before it does anything else. */
	if (due == UINT64_MAX)
		uv_timer_stop(&o->timer);
	else
		uv_timer_start(&o->timer, opener_on_timer,
			       due > now ? due - now : 1, 0);
}

/* The loop goes on as long as somebody waits for an answer. */
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

/* --- one process -------------------------------------------------------------------- */

static void proc_end(struct opener_proc *p)
{
	if (p->child)
		worker_child_end(p->child);
	p->child = NULL;
	if (p->place)
		munmap(p->place, sizeof(*p->place));
	p->place = NULL;
	p->o->opts.stats->opener_hung_now -= p->hung;
	p->busy = p->slow = p->hung = false;
}

/* It is of no use any more; nor is its answer. */
static void proc_lost(struct opener_proc *p, int err)
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

	proc_lost(p, -EIO);
	opener_run(p->o, true);
}

static void opener_on_readable(void *arg);

static void opener_on_gone(void *arg);

static int proc_start(struct opener_proc *p)
{
	char *argv[] = { "profd", SYMBOLIZER_OPENER, NULL };
	int err;

	p->o->opts.stats->opener_starts++;
	err = worker_child_start(&p->child, &p->children, p->o->program, argv);
	if (err) {
		p->child = NULL;
		proc_lost(p, err);
	} else {
		worker_child_nice(p->child, WORKER_BEFORE);
	}
	p->since = uv_now(p->o->opts.loop);
	return err;
}

/* A structure without a process, or NULL. */
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

static void proc_ask(struct opener_proc *p, struct opener_job *j)
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
		__atomic_store_n(&p->place->dev, 0, __ATOMIC_RELAXED);
	p->number = ++o->number;
	/* If it is dead, opener_on_ended() comes. */
	worker_send(worker_child_socket(p->child), &q->head,
		    (enum worker_type)q->head.type, q->head.len, p->number, -1);
}

/*
 * The mount it is at, 0: none that is known. A process can hold the lock of its
 * own mappings for ever, which is no fault of the mount that its file lies on.
 */
static uint64_t proc_dev(const struct opener_proc *p)
{
	uint64_t dev =
		p->place ? __atomic_load_n(&p->place->dev, __ATOMIC_RELAXED)
			 : 0;

	return dev || p->by_process ? dev : p->dev;
}

/* --- who may be worked at ------------------------------------------------------------ */

struct crowd {
	unsigned int mount, uid, pid, all;
};

/* How many of those that are slow, or hung, are of the job's kind. */
static struct crowd crowd_of(const struct opener *o, const struct opener_job *j,
			     bool hung)
{
	struct crowd c = { 0 };

	for (size_t i = 0; i < o->n_procs; i++) {
		const struct opener_proc *p = o->procs[i];

		if (!(hung ? p->hung : p->slow))
			continue;
		c.all++;
		c.mount += j->dev && j->dev == proc_dev(p);
		c.uid += j->uid == p->uid;
		c.pid += j->pid && j->pid == p->pid && p->by_process &&
			 !proc_dev(p);
	}
	return c;
}

static bool too_many(const struct crowd *c)
{
	return c->mount >= OPENER_HUNG_MOUNT || c->uid >= OPENER_HUNG_UID ||
	       c->pid >= OPENER_HUNG_PID ||
	       (c->all >= OPENER_HUNG_ALL && (c->mount || c->uid)) ||
	       c->all >= OPENER_PROCS;
}

/* 0: now; -EAGAIN: it has to wait for others; -EBUSY: not at all. */
static int may_go(const struct opener *o, const struct opener_job *j)
{
	struct crowd slow = crowd_of(o, j, false), hung;

	if (!too_many(&slow))
		return 0;
	hung = crowd_of(o, j, true);
	return too_many(&hung) ? -EBUSY : -EAGAIN;
}

/* One without work; a further one if all are slow. NULL: there is none. */
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

/* Neither is there a process, nor will there be one soon. */
static bool opener_hopeless(const struct opener *o)
{
	for (size_t i = 0; i < o->n_procs; i++)
		if (o->procs[i]->child)
			return false;
	return o->fails >= OPENER_PATIENCE;
}

/* Does what can be done; 'refuse_some': jobs may be told no. */
static void opener_run(struct opener *o, bool refuse_some)
{
	struct opener_job *j, *next;
	struct opener_proc *p;
	bool again = false;
	int err;

	for (j = TAILQ_FIRST(&o->jobs); j && !o->freed; j = next) {
		next = TAILQ_NEXT(j, link);
		err = may_go(o, j);
		p = err ? NULL : opener_proc_idle(o);
		if (!err && !p && opener_hopeless(o))
			err = -EIO;
		if (p) {
			proc_ask(p, j);
		} else if (err && err != -EAGAIN && refuse_some) {
			opener_refuse(o, j, err);
			next = TAILQ_FIRST(
				&o->jobs); /* the callee may have changed it */
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

/* --- answers -------------------------------------------------------------------------- */

static bool opener_greeted(struct opener_proc *p, const struct worker_in *in)
{
	void *map;

	if (in->head.type != OPENER_HELLO || p->place || in->fd < 0 ||
	    in->len != sizeof(struct opener_hello))
		return false;
	map = mmap(NULL, sizeof(*p->place), PROT_READ | PROT_WRITE, MAP_SHARED,
		   in->fd, 0);
	p->place = map == MAP_FAILED ? NULL : map;
	return true;
}

static bool opener_answered(struct opener_proc *p, struct worker_in *in)
{
	const struct opener_answer *a = (const void *)in->bytes;
	struct opener_job *j = p->job;

	if (!p->busy || in->len != sizeof(*a) || in->head.job != p->number ||
	    a->err > 0 || (a->err == 0) != (in->fd >= 0))
		return false;
	p->o->opts.stats->opener_hung_now -= p->hung;
	p->busy = p->slow = p->hung = false;
	p->since = uv_now(p->o->opts.loop);
	p->job = NULL;
	p->o->fails = 0;
	p->o->restart_at = 0;
	if (j)
		opener_job_done(j, a->err, a, a->err ? -1 : worker_in_take(in));
	return true;
}

/* All messages there are; false: it had to be ended. */
static bool proc_read(struct opener_proc *p)
{
	struct worker_in *in = &p->o->in;
	struct worker_child *c = p->child;
	bool ok = true;
	int err;

	while (ok && p->child == c && c) {
		err = worker_recv(worker_child_socket(c), in);
		if (err == -EAGAIN)
			break;
		if (err == -EPIPE) { /* opener_on_ended() comes */
			worker_child_deafen(c);
			break;
		}
		ok = !err && (opener_greeted(p, in) || opener_answered(p, in));
		worker_in_close(in);
	}
	if (!ok)
		proc_lost(p, -EPROTO);
	return ok;
}

static void opener_on_readable(void *arg)
{
	struct opener_proc *p = arg;

	proc_read(p);
	opener_run(p->o, true);
}

/* --- time is up ------------------------------------------------------------------------- */

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

	if (!p->busy) { /* not needed any more */
		proc_end(p);
		return;
	}
	/* It may have been us who were late. */
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
		if (o->procs[i]->children.head)
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

/*
 * In two steps, and never at once: a handle of a process that could not be
 * started may be closing.
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

/* --- the whole ----------------------------------------------------------------------------- */

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
	if (!j->q) /* done, or about to be */
		return;
	free(j->q);
	j->q = NULL;
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

/* The same mount was told already. */
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
