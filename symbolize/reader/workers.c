// SPDX-License-Identifier: Apache-2.0
/* workers: see symbolize/reader/workers.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/reader/worker_pace.h"
#include "symbolize/reader/workers.h"

#define WORKERS_MAX 3
/* A job at work is slow after this; jobs queued for this start a process. */
#define WORKERS_SLOW_MS 50
#define WORKERS_SLOW_HURRY_MS 10 /* while samples wait for tables */
#define WORKERS_SLOW_NAMES_MS 250 /* while all wait for names, up to 3 s */
#define WORKERS_LOOK_MS 10 /* how often this is checked */
/* A further process without a job is ended soon, to save memory. */
#define WORKERS_IDLE_MS 3000
/* One in so many of a party's jobs is for names, if any are queued. */
#define WORKERS_NAMES_TURN 4
#define WORKERS_NAMES_TURN_HURRY 16
/* The part of the memory for indexes that each worker has in any case. */
#define WORKERS_INDEX_SHARE 8
/* After so many failures on its files a party's jobs are refused. */
#define WORKERS_PARTY_BROKEN 8
/* CPU time of the end of a process and the start of the next one. */
#define WORKERS_FAILURE_NS (20 * CLOCK_NSEC_PER_MSEC)
/* Parties without a job whose time is remembered. */
#define WORKERS_PARTIES_MAX 256

struct workers_party {
	LIST_ENTRY(workers_party) link;
	struct worker_pace_party pace; /* with the user ids of the party */
	bool contexts; /* its jobs are contexts, not files */
	uint64_t used; /* virtual time, in ns */
	unsigned int fails; /* without an answer in between */
	uint64_t pause_until; /* uv_now() */
	unsigned int turns;
	bool names_wait; /* for CPU time; set by workers_pick() */
	unsigned int jobs; /* queued and at work */
	TAILQ_HEAD(, worker_job) waiting; /* the queue */
};

struct workers {
	struct workers_opts opts;
	struct worker *each[WORKERS_MAX];
	LIST_HEAD(, workers_party) parties;
	unsigned int n_parties;
	uint64_t now; /* virtual time of the job started last */
	uint64_t turns; /* of files */
	uint64_t stuck_at; /* uv_now() when no process was free; 0: one is */
	unsigned int waiting; /* queued jobs */
	struct worker_pace pace;
	uv_timer_t timer;
	struct quarantine quarantine;
	unsigned int handles; /* the timer and the workers, not closed yet */
	unsigned int halvings; /* of opts.index_ceiling */
	bool running, freed;
};

static void workers_on_timer(uv_timer_t *timer);

static void workers_schedule(struct workers *ws, uint64_t ms)
{
	if (ws->freed)
		return;
	uv_update_time(ws->opts.worker.loop);
	uv_timer_start(&ws->timer, workers_on_timer, MAX(ms, 1), 0);
}

/* --- parties -------------------------------------------------------------- */

static uint64_t ms_now(const struct workers *ws)
{
	return uv_now(ws->opts.worker.loop);
}

/* Whether its state differs from that of a new party. */
static bool party_matters(const struct workers *ws,
			  const struct workers_party *p)
{
	return p->used > ws->now || p->pause_until > ms_now(ws) ||
	       !worker_pace_fresh(&p->pace, uv_hrtime());
}

/* Frees parties that have no state; with too many, all without jobs. */
static void parties_forget(struct workers *ws)
{
	struct workers_party *p, *next;

	for (p = LIST_FIRST(&ws->parties); p; p = next) {
		next = LIST_NEXT(p, link);
		if (p->jobs || (party_matters(ws, p) &&
				ws->n_parties <= WORKERS_PARTIES_MAX))
			continue;
		LIST_REMOVE(p, link);
		free(p);
		ws->n_parties--;
	}
}

static struct workers_party *party_of(struct workers *ws,
				      const struct worker_job *j)
{
	bool contexts = j->kind->type == WORKER_CONTEXT;
	const struct symbolizer_file *f = j->file;
	struct workers_party *p;

	LIST_FOREACH(p, &ws->parties, link)
		if (p->pace.owner == f->owner && p->pace.uid == f->uid &&
		    p->contexts == contexts)
			return p;
	parties_forget(ws);
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	TAILQ_INIT(&p->waiting);
	p->contexts = contexts;
	p->pace.owner = f->owner;
	p->pace.uid = f->uid;
	LIST_INSERT_HEAD(&ws->parties, p, link);
	ws->n_parties++;
	return p;
}

static void workers_queue_add(struct workers *ws, struct workers_party *p,
			      struct worker_job *j)
{
	if (!p->jobs++)
		p->used = MAX(p->used, ws->now);
	j->party = p;
	TAILQ_INSERT_TAIL(&p->waiting, j, link);
	ws->waiting++;
}

static void workers_queue_remove(struct workers *ws, struct worker_job *j)
{
	TAILQ_REMOVE(&j->party->waiting, j, link);
	ws->waiting--;
}

/* Whether they share a user; as an owner of files root does not count. */
static bool workers_related(const struct workers_party *a,
			    const struct workers_party *b)
{
	return a->contexts == b->contexts &&
	       (a->pace.uid == b->pace.uid ||
		(a->pace.owner && a->pace.owner == b->pace.owner));
}

enum rank {
	RANK_HURRY, /* samples wait for it */
	RANK_TABLES, /* and identities */
	RANK_NAMES,
};

static enum rank workers_rank(const struct worker_job *j)
{
	if (j->kind->type == WORKER_NAMES)
		return RANK_NAMES;
	return j->file->hurry ? RANK_HURRY : RANK_TABLES;
}

/* The most urgent of its queued jobs; RANK_NAMES if there is none. */
static enum rank party_rank(const struct workers_party *p)
{
	enum rank best = RANK_NAMES;
	const struct worker_job *j;

	TAILQ_FOREACH(j, &p->waiting, link)
		best = MIN(best, workers_rank(j));
	return best;
}

static bool party_hurries(const struct workers_party *p)
{
	return party_rank(p) == RANK_HURRY;
}

/* The time after which jobs at work are slow for this party. */
static uint64_t slow_ms(const struct workers_party *p)
{
	static const uint64_t slow[] = {
		[RANK_HURRY] = WORKERS_SLOW_HURRY_MS,
		[RANK_TABLES] = WORKERS_SLOW_MS,
		[RANK_NAMES] = WORKERS_SLOW_NAMES_MS,
	};

	return slow[party_rank(p)];
}

/* Whether it may get one of the 'n_free' free processes. */
static bool party_may(const struct workers *ws, const struct workers_party *p,
		      unsigned int n_free)
{
	uint64_t slow = uv_hrtime() - slow_ms(p) * CLOCK_NSEC_PER_MSEC;
	bool one = n_free < 2 || worker_pace_over(&p->pace, uv_hrtime());
	const struct worker_job *j;

	if (p->pause_until > ms_now(ws))
		return false;
	for (int i = 0; i < WORKERS_MAX; i++) {
		j = worker_job(ws->each[i]);
		if (j && workers_related(j->party, p) &&
		    (one || j->given_at > slow))
			return false;
	}
	return true;
}

/* Whether its user, in all parties, has used up the CPU time for names. */
static bool names_over(const struct workers *ws, const struct workers_party *p)
{
	uint64_t now = uv_hrtime(), sum = 0;
	const struct workers_party *o;

	LIST_FOREACH(o, &ws->parties, link)
		if (o->pace.uid == p->pace.uid &&
		    (p->pace.uid || o->pace.owner == p->pace.owner))
			sum += worker_pace_names(&o->pace, now);
	return sum > WORKER_PACE_NAMES_BURST;
}

/* A job is counted once. */
static void names_waited(const struct workers *ws, struct worker_job *j)
{
	const struct worker_opts *o = &ws->opts.worker;

	if (j->waited)
		return;
	j->waited = true;
	o->stats->names_waited++;
	if (o->names_wait)
		o->names_wait(o->report_arg, j->file->uid);
}

/* Whether names are next; less often while samples wait for tables. */
static bool names_turn(const struct workers_party *p)
{
	unsigned int every = party_hurries(p) ? WORKERS_NAMES_TURN_HURRY
					      : WORKERS_NAMES_TURN;

	return p->turns % every == every - 1;
}

/* Of two jobs of a rank. */
static bool job_before(const struct worker_job *a, const struct worker_job *b)
{
	if (workers_rank(a) == RANK_HURRY)
		return a->file->hurry < b->file->hurry;
	return a->file->turn < b->file->turn;
}

/* The next of its jobs, or NULL. */
static struct worker_job *party_next(const struct workers *ws,
				     const struct workers_party *p)
{
	struct worker_job *best[RANK_NAMES + 1] = { NULL };
	struct worker_job *j, **b;
	int i;

	TAILQ_FOREACH(j, &p->waiting, link) {
		b = &best[workers_rank(j)];
		if (b == &best[RANK_NAMES] && p->names_wait)
			names_waited(ws, j);
		else if (!j->file->at_work && (!*b || job_before(j, *b)))
			*b = j;
	}
	i = best[RANK_NAMES] && names_turn(p) ? RANK_NAMES : RANK_HURRY;
	while (i < RANK_NAMES && !best[i])
		i++;
	return best[i];
}

static struct worker_job *workers_pick(const struct workers *ws,
				       unsigned int n_free)
{
	struct worker_job *j, *best = NULL;
	struct workers_party *p;

	LIST_FOREACH(p, &ws->parties, link) {
		if (TAILQ_EMPTY(&p->waiting) ||
		    (best && p->used >= best->party->used) ||
		    !party_may(ws, p, n_free))
			continue;
		p->names_wait = names_over(ws, p);
		j = party_next(ws, p);
		if (j)
			best = j;
	}
	return best;
}

/* --- processes ------------------------------------------------------------ */

/* Further ones are not started while the first one fails to start. */
static bool workers_usable(const struct workers *ws, int i)
{
	return !worker_job(ws->each[i]) && !worker_refuses(ws->each[i]) &&
	       (i == 0 || worker_state(ws->each[i]) != WORKER_DOWN ||
		!worker_failing(ws->each[0]));
}

/* A worker to give a job now, preferably an idle one; NULL: wait. */
static struct worker *ready_one(struct workers *ws,
				const struct workers_party *p)
{
	uint64_t now = ms_now(ws);
	struct worker *w = NULL;
	enum worker_state state;

	if (!ws->stuck_at)
		ws->stuck_at = MAX(now, 1ULL);
	for (int i = 0; i < WORKERS_MAX; i++) {
		state = worker_state(ws->each[i]);
		if (!workers_usable(ws, i))
			continue;
		if (state == WORKER_IDLE)
			return ws->each[i];
		if (!w && (i == 0 || state != WORKER_DOWN ||
			   now - ws->stuck_at >= slow_ms(p)))
			w = ws->each[i];
	}
	return w;
}

static unsigned int count_free(const struct workers *ws)
{
	unsigned int n = 0;

	for (int i = 0; i < WORKERS_MAX; i++)
		n += workers_usable(ws, i);
	return n;
}

static bool workers_unavailable(const struct workers *ws)
{
	for (int i = 0; i < WORKERS_MAX; i++)
		if (worker_job(ws->each[i]) || workers_usable(ws, i))
			return false;
	return true;
}

static void workers_refuse(struct workers *ws, struct worker_job *j, int err)
{
	workers_queue_remove(ws, j);
	j->party->jobs--;
	j->kind->done(j, err);
}

/* All that are queued now. done() may submit new jobs, hence the count. */
static void refuse_all(struct workers *ws, int err)
{
	struct workers_party *p;

	for (unsigned int n = ws->waiting; n && ws->waiting; n--) {
		p = LIST_FIRST(&ws->parties);
		while (TAILQ_EMPTY(&p->waiting))
			p = LIST_NEXT(p, link);
		workers_refuse(ws, TAILQ_FIRST(&p->waiting), err);
	}
}

/* The jobs of parties that pause after too many failures. */
static void refuse_broken(struct workers *ws)
{
	struct workers_party *p = LIST_FIRST(&ws->parties);
	unsigned int n = ws->waiting;

	while (p && n && !ws->freed) {
		if (TAILQ_EMPTY(&p->waiting) ||
		    p->fails < WORKERS_PARTY_BROKEN ||
		    p->pause_until <= ms_now(ws)) {
			p = LIST_NEXT(p, link);
			continue;
		}
		ws->opts.worker.stats->worker_refused++;
		workers_refuse(ws, TAILQ_FIRST(&p->waiting), -EIO);
		n--;
		/* The callee may have changed the list. */
		p = LIST_FIRST(&ws->parties);
	}
}

static void workers_give(struct workers *ws, struct worker *w,
			 struct worker_job *j)
{
	workers_queue_remove(ws, j);
	ws->stuck_at = 0;
	ws->now = MAX(ws->now, j->party->used);
	j->party->turns++;
	j->file->turn = ++ws->turns;
	j->file->at_work = true;
	worker_give(w, j);
}

/* Gives jobs to free workers; calls done(), so never called from a request. */
static void workers_run(void *arg)
{
	struct workers *ws = arg;
	struct worker_job *j;
	unsigned int n_free;
	struct worker *w;

	if (ws->running || ws->freed)
		return;
	ws->running = true;
	if (workers_unavailable(ws))
		refuse_all(ws, -EIO);
	refuse_broken(ws);
	while (!ws->freed && ws->waiting && (n_free = count_free(ws))) {
		j = workers_pick(ws, n_free);
		if (j && workers_quarantined(ws, j->file)) {
			workers_refuse(ws, j, -EBADMSG);
			continue;
		}
		w = j ? ready_one(ws, j->party) : NULL;
		if (!w) {
			workers_schedule(ws, WORKERS_LOOK_MS);
			break;
		}
		workers_give(ws, w, j);
	}
	if (!ws->waiting)
		ws->stuck_at = 0;
	ws->running = false;
}

static void workers_on_timer(uv_timer_t *timer)
{
	workers_run(container_of(timer, struct workers, timer));
}

static uint64_t workers_pace(void *arg, const struct worker_job *j,
			     bool *behind)
{
	const struct worker_pace_party *p = &j->party->pace;
	const struct workers *ws = arg;
	uint64_t now = uv_hrtime();

	*behind = worker_pace_over(p, now);
	/* Names take longer, and are less urgent. */
	if (*behind || j->kind->type == WORKER_NAMES)
		return 0;
	return worker_pace_hurry(&ws->pace, p, now);
}

static void workers_charge(void *arg, struct worker_job *j, uint64_t cpu_ns,
			   bool hurried)
{
	struct workers *ws = arg;

	worker_pace_charge(&ws->pace, &j->party->pace, cpu_ns, hurried,
			   uv_hrtime());
	if (j->kind->type == WORKER_NAMES)
		worker_pace_charge_names(&j->party->pace, cpu_ns, uv_hrtime());
}

static void on_failed(void *arg, struct worker_job *j)
{
	struct workers_party *p = j->party;
	struct workers *ws = arg;

	p->fails++;
	p->used += WORKERS_FAILURE_NS;
	p->pause_until = ms_now(ws) + worker_backoff_ms(p->fails);
	workers_charge(ws, j, WORKERS_FAILURE_NS, false);
	j->failed = true;
}

static void workers_on_ended(void *arg, struct worker_job *j, int err,
			     bool again)
{
	struct workers *ws = arg;

	j->file->at_work = false;
	j->party->jobs--;
	j->party->used += uv_hrtime() - j->given_at;
	if (!j->failed)
		j->party->fails = 0;
	j->failed = false;
	if (again && !ws->freed && !j->cancelled)
		workers_queue_add(ws, j->party, j);
	else
		j->kind->done(j, again ? -ECANCELED : err);
}

static uint64_t index_room(void *arg, uint64_t held)
{
	struct workers *ws = arg;
	uint64_t all = ws->opts.index_ceiling >> ws->halvings;
	uint64_t used = *ws->opts.index_used +
			ws->opts.worker.stats->index_bytes - held;

	return MAX(all - MIN(all, used), all / WORKERS_INDEX_SHARE);
}

/* --- requests ------------------------------------------------------------- */

int workers_submit(struct workers *ws, struct worker_job *j)
{
	struct workers_party *p = party_of(ws, j);

	if (!p)
		return -ENOMEM;
	j->spent_ms = 0;
	j->cancelled = j->waited = false;
	workers_queue_add(ws, p, j);
	workers_schedule(ws, 0);
	return 0;
}

bool workers_cancel(struct workers *ws, struct worker_job *j)
{
	struct worker *w = NULL;

	j->cancelled = true;
	for (int i = 0; i < WORKERS_MAX; i++)
		if (worker_job(ws->each[i]) == j)
			w = ws->each[i];
	if (w && !worker_take_back(w))
		return false;
	if (w)
		j->file->at_work = false;
	else
		workers_queue_remove(ws, j);
	j->party->jobs--;
	workers_schedule(ws, 0);
	return true;
}

static bool is_pending(const struct worker_job *j,
		       const struct symbolizer_file *f)
{
	return !j->cancelled &&
	       (f ? j->file == f : j->kind->type != WORKER_IDENT);
}

struct worker_job *workers_pending(const struct workers *ws,
				   const struct symbolizer_file *f)
{
	const struct workers_party *p;
	struct worker_job *j;

	if (!ws)
		return NULL;
	for (int i = 0; i < WORKERS_MAX; i++) {
		j = worker_job(ws->each[i]);
		if (j && is_pending(j, f))
			return j;
	}
	LIST_FOREACH(p, &ws->parties, link)
		TAILQ_FOREACH(j, &p->waiting, link)
			if (is_pending(j, f))
				return j;
	return NULL;
}

/* --- interface ------------------------------------------------------------ */

/* A handle, or a worker, was closed. */
static void close_one(void *arg)
{
	struct workers *ws = arg;
	struct workers_opts opts = ws->opts;
	struct workers_party *p;

	if (--ws->handles)
		return;
	while ((p = LIST_FIRST(&ws->parties))) {
		LIST_REMOVE(p, link);
		free(p);
	}
	quarantine_fini(&ws->quarantine);
	free(ws);
	if (opts.closed)
		opts.closed(opts.arg);
}

static void workers_on_timer_closed(uv_handle_t *handle)
{
	close_one(container_of((uv_timer_t *)handle, struct workers, timer));
}

static void workers_close_all(struct workers *ws)
{
	for (int i = 0; i < WORKERS_MAX; i++)
		worker_free(ws->each[i]);
	uv_close((uv_handle_t *)&ws->timer, workers_on_timer_closed);
}

int workers_new(struct workers **wsp, const struct workers_opts *opts)
{
	struct workers *ws = calloc(1, sizeof(*ws));
	struct worker_opts o = opts->worker;
	int err = ws ? uv_timer_init(o.loop, &ws->timer) : -ENOMEM;

	if (err) {
		free(ws);
		return err;
	}
	ws->opts = *opts;
	ws->handles = 1;
	ws->quarantine.retry_ms = opts->retry_ms;
	o.quarantine = &ws->quarantine;
	o.index_room = index_room;
	o.pace = workers_pace;
	o.charge = workers_charge;
	o.failed = on_failed;
	o.ended = workers_on_ended;
	o.ready = workers_run;
	o.closed = close_one;
	o.arg = ws;
	for (int i = 0; i < WORKERS_MAX && !err; i++) {
		if (i)
			o.idle_ms = MIN(o.idle_ms, WORKERS_IDLE_MS);
		err = worker_new(&ws->each[i], &o);
		ws->handles += !err;
	}
	if (err) {
		/* The handles close later on the loop, without a callback. */
		ws->freed = true;
		ws->opts.closed = NULL;
		workers_close_all(ws);
		return err;
	}
	worker_wake(ws->each[0]);
	*wsp = ws;
	return 0;
}

void workers_free(struct workers *ws)
{
	if (!ws)
		return;
	ws->freed = true;
	refuse_all(ws, -ECANCELED);
	workers_close_all(ws);
}

bool workers_quarantined(struct workers *ws, const struct symbolizer_file *f)
{
	return quarantine_has(&ws->quarantine, f, ms_now(ws));
}

const struct quarantine *workers_quarantine(const struct workers *ws)
{
	return &ws->quarantine;
}

void workers_shed(struct workers *ws, unsigned int halvings)
{
	ws->halvings = halvings;
	for (int i = 0; halvings && i < WORKERS_MAX; i++)
		worker_rest(ws->each[i]);
}

void workers_status(const struct workers *ws, char *buf, size_t len)
{
	size_t n;

	worker_status(ws->each[0], buf, len);
	for (int i = 1; i < WORKERS_MAX; i++) {
		if (worker_state(ws->each[i]) != WORKER_IDLE &&
		    worker_state(ws->each[i]) != WORKER_BUSY)
			continue;
		n = strlen(buf);
		if (n + 3 > len)
			return;
		memcpy(buf + n, "; ", 3);
		worker_status(ws->each[i], buf + n + 2, len - n - 2);
	}
}
