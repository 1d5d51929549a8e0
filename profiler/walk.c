// SPDX-License-Identifier: Apache-2.0
/*
 * walk: the fourth stream. At the start one record for every process of
 * quark's snapshot and one for the mappings of each; later one whenever the
 * process manager wants the mappings of a process read anew. A record counts
 * from the moment its reading began and never rewrites what was before.
 *
 * Once a minute, and when quark has compared its processes with the kernel's
 * after a gap in the lifecycle stream, all of them are walked again.
 *
 * After a loss in the mapping stream, workers read the mappings of every process
 * they leave in doubt, so that the next sample of each finds them.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/engine_internal.h"

/* So many processes are walked between two drains of the rings. */
#define WALK_BATCH 64
/* The streams are behind the clock by a few milliseconds. */
#define WALK_TRY_US 1000
#define WALK_TRIES 200
/* A reader that hangs in another process's mmap_lock stops the pump no longer. */
#define WALK_PATIENCE_NS CLOCK_NSEC_PER_SEC

#define WALK_PERIOD_NS (60 * CLOCK_NSEC_PER_SEC)

/* All in doubt are read this long after the last time at the earliest, ... */
#define WALK_DOUBTS_PAUSE_NS (200 * CLOCK_NSEC_PER_MSEC)
/* ... and so many times as long as it took: losses without end cost a fifth. */
#define WALK_DOUBTS_SHARE 4
#define WALK_DOUBTS_MORE 4

enum walk_kind {
	WALK_PROCESS,
	WALK_MAPS,
	WALK_BEGIN, /* of a later walk over all processes */
	WALK_END,
};

struct walk_record {
	enum walk_kind kind;
	struct quark_process *process;
	struct pm_maps maps;
};

struct walk_item {
	struct walk_record *rec;
	uint32_t tgid;
	int err;
};

struct walk_request {
	uv_work_t work;
	struct engine *engine;
	struct walk_request *next;
	uint64_t asked;
	bool all; /* part of those in doubt */
	size_t n;
	struct walk_item items[];
};

/* The pump frees the record itself. */
void walk_deliver(struct pm *pm, void *rec, uint64_t time)
{
	struct walk_record *w = rec;

	switch (w->kind) {
	case WALK_PROCESS:
		pm_walk_process(pm, w->process, time);
		free(w->process);
		break;
	case WALK_MAPS:
		pm_walk_maps(pm, &w->maps);
		pm_maps_fini(&w->maps);
		break;
	case WALK_BEGIN:
		pm_walk_begin(pm, time);
		break;
	case WALK_END:
		pm_walk_end(pm);
		break;
	}
}

static int walk_push(struct engine *e, enum walk_kind kind, uint64_t time,
		     const struct quark_process *qp)
{
	struct walk_record *w = calloc(1, sizeof(*w));

	if (w)
		w->kind = kind;
	if (w && qp)
		w->process = quark_process_dup(qp);
	if (!w || (qp && !w->process)) {
		free(w);
		return -ENOMEM;
	}
	return pump_push(e->pump, PUMP_WALK, time, w, sizeof(*w));
}

/* What waits with it in the pump, but for the paths. */
static size_t walk_size(const struct walk_record *w)
{
	return sizeof(*w) + w->maps.n * sizeof(*w->maps.maps);
}

/* A process that is gone by now has nothing to be read: no error. */
int walk_maps(struct engine *e, uint32_t tgid)
{
	struct walk_record *w = calloc(1, sizeof(*w));
	int err = -ENOMEM;

	if (w)
		w->kind = WALK_MAPS;
	if (w)
		err = pm_maps_read("/proc", tgid, &w->maps);
	if (err) {
		free(w);
		return err == -ENOMEM ? err : 0;
	}
	if (e->start && !walk_start_add(e->start, w, &w->maps))
		return 0;
	return pump_push(e->pump, PUMP_WALK, w->maps.begin, w, walk_size(w));
}

/* The caller frees *pidsp, also after an error. */
static int walk_add_pid(uint32_t **pidsp, size_t *np, size_t *cap, uint32_t pid)
{
	uint32_t *p = *pidsp;

	if (*np == *cap) {
		*cap = *cap ? 2 * *cap : 256;
		p = realloc(p, *cap * sizeof(*p));
		if (!p)
			return -ENOMEM;
		*pidsp = p;
	}
	p[(*np)++] = pid;
	return 0;
}

/* Pids of the snapshot that have mappings. */
static int walk_processes(struct engine *e, uint32_t **pidsp, size_t *np)
{
	const struct quark_process *qp;
	struct quark_process_iter it;
	size_t cap = 0;
	int err = 0;

	quark_process_iter_init(&it, &e->quark);
	while (!err && (qp = quark_process_iter_next(&it))) {
		err = walk_push(e, WALK_PROCESS, e->walk_begin, qp);
		if (!err && !(qp->x_flags & QUARK_X_KTHREAD))
			err = walk_add_pid(pidsp, np, &cap, qp->pid);
	}
	return err;
}

static void walk_started(void *arg, void *rec, const struct pm_maps *m)
{
	struct engine *e = arg;

	pump_push(e->pump, PUMP_WALK, m->begin, rec, walk_size(rec));
}

/* The streams come as far as what was read of /proc; then the pump goes on. */
static void walk_go_on(struct engine *e)
{
	uint64_t until;
	int tries;

	if (!e->start)
		return;
	until = walk_start_until(e->start);
	for (tries = 0; e->told < until; tries++) {
		if (tries == WALK_TRIES) {
			walk_start_lost(e->start);
			break;
		}
		usleep(WALK_TRY_US);
		engine_drain(e);
	}
	walk_start_end(e->start, walk_started, e);
	e->start = NULL;
	engine_drain(e);
}

static void walk_drain(struct engine *e)
{
	struct pump_stats st;

	engine_drain(e);
	pump_get_stats(e->pump, &st);
	if (walk_start_full(st.bytes))
		walk_go_on(e);
}

/*
 * Pids first, mappings after: the drains in between change what quark's
 * iterator stands on.
 */
int walk_all(struct engine *e)
{
	struct pump_stats st;
	uint32_t *pids = NULL;
	size_t n = 0, i;
	int err;

	e->start = walk_start_new(e->begin);
	err = e->start ? walk_processes(e, &pids, &n) : -ENOMEM;
	if (!err)
		engine_drain(e);
	for (i = 0; !err && i < n; i++) {
		err = walk_maps(e, pids[i]);
		if (i % WALK_BATCH == WALK_BATCH - 1)
			walk_drain(e);
	}
	free(pids);
	walk_go_on(e);
	/* Not before: what was taken meanwhile lay in the rings. */
	pump_get_stats(e->pump, &st);
	e->start_ns = clock_boottime_ns() - e->begin;
	e->start_samples = st.pushed[PUMP_SAMPLE];
	return err;
}

/*
 * As of quark's watermark: the cache has all that happened before, and the pump
 * hands that on first. Without memory for one of them, no end: nobody is taken
 * for gone.
 */
static void walk_processes_again(struct engine *e)
{
	uint64_t time = quark_queue_watermark(&e->quark);
	const struct quark_process *qp;
	struct quark_process_iter it;
	int err;

	err = walk_push(e, WALK_BEGIN, time, NULL);
	quark_process_iter_init(&it, &e->quark);
	while (!err && (qp = quark_process_iter_next(&it)))
		err = walk_push(e, WALK_PROCESS, time, qp);
	if (!err)
		walk_push(e, WALK_END, time, NULL);
}

void walk_anew(struct engine *e)
{
	e->walk_next = 1;
}

void walk_check(struct engine *e, uint64_t now)
{
	struct quark_queue_stats st;

	quark_queue_get_stats(&e->quark, &st);
	if (st.repairs != e->repairs)
		walk_anew(e);
	e->repairs = st.repairs;
	if (now < e->walk_next)
		return;
	if (e->walk_next)
		walk_processes_again(e);
	e->walk_next = now + WALK_PERIOD_NS;
}

static void walk_work(uv_work_t *work)
{
	struct walk_request *r = work->data;
	struct walk_item *item;

	for (item = r->items; item < r->items + r->n; item++)
		item->err = pm_maps_read("/proc", item->tgid, &item->rec->maps);
}

static void walk_request_free(struct walk_request *r)
{
	for (size_t i = 0; r && i < r->n; i++)
		free(r->items[i].rec);
	free(r);
}

static void walk_doubts_go_on(struct engine *e);

static void walk_done(uv_work_t *work, int status)
{
	struct walk_request *r = work->data, **p;
	struct engine *e = r->engine;
	bool all = r->all;
	size_t i;

	for (p = &e->walks; *p != r; p = &(*p)->next)
		;
	*p = r->next;
	for (i = 0; !status && i < r->n; i++) {
		if (r->items[i].err)
			continue;
		pump_push(e->pump, PUMP_WALK, r->items[i].rec->maps.begin,
			  r->items[i].rec, walk_size(r->items[i].rec));
		r->items[i].rec = NULL;
	}
	walk_request_free(r);
	if (all)
		walk_doubts_go_on(e);
}

/* Has a worker read the mappings of these. */
static int walk_ask(struct engine *e, const uint32_t *tgids, size_t n, bool all)
{
	struct walk_request *r = calloc(1, sizeof(*r) + n * sizeof(*r->items));
	int err = r ? 0 : -ENOMEM;

	for (; !err && r->n < n; r->n++) {
		r->items[r->n].tgid = tgids[r->n];
		r->items[r->n].rec = calloc(1, sizeof(*r->items->rec));
		if (!r->items[r->n].rec)
			err = -ENOMEM;
		else
			r->items[r->n].rec->kind = WALK_MAPS;
	}
	if (!err) {
		r->engine = e;
		r->all = all;
		r->asked = clock_boottime_ns();
		r->work.data = r;
		err = uv_queue_work(e->loop, &r->work, walk_work, walk_done);
	}
	if (err) {
		walk_request_free(r);
		return err;
	}
	r->next = e->walks;
	e->walks = r;
	return 0;
}

/*
 * Asked from inside the pump, so the reading is a worker's. Without memory
 * nothing is read: the manager asks again at the next miss.
 */
void walk_want_maps(void *arg, const struct pm_want *want)
{
	walk_ask(arg, &want->key.tgid, 1, false);
}

/* --- all that are in doubt --------------------------------------------------- */

void walk_after_loss(struct engine *e)
{
	struct walk_doubts *d = &e->doubts;

	d->more = WALK_DOUBTS_MORE;
	if (!d->next)
		d->next = d->began + WALK_DOUBTS_PAUSE_NS;
}

/* Some may have been in an exec, or been forked meanwhile. */
static void walk_doubts_end(struct engine *e)
{
	uint64_t now = clock_boottime_ns();
	struct walk_doubts *d = &e->doubts;

	free(d->pids);
	d->pids = NULL;
	if (!d->more)
		return;
	d->more--;
	d->next = now + MAX(WALK_DOUBTS_PAUSE_NS,
			    (now - d->began) * WALK_DOUBTS_SHARE);
}

/*
 * Some at a time, so that the pump is held back for a moment only and those
 * that are asked for by themselves need not wait for all others.
 */
static void walk_doubts_go_on(struct engine *e)
{
	struct walk_doubts *d = &e->doubts;
	size_t n = MIN(d->n - d->at, WALK_BATCH);

	if (!n || walk_ask(e, d->pids + d->at, n, true)) {
		walk_doubts_end(e);
		return;
	}
	d->at += n;
}

static int walk_doubts_find(struct engine *e)
{
	struct walk_doubts *d = &e->doubts;
	struct pm_image_info info;
	struct pm_image *img;
	struct pm_iter it;
	size_t cap = 0;
	int err = 0;

	d->n = d->at = 0;
	pm_iter_init(&it, e->pm, false);
	while (!err && (img = pm_iter_next(&it))) {
		if (!pm_image_doubtful(e->pm, img))
			continue;
		pm_image_info(img, &info);
		err = walk_add_pid(&d->pids, &d->n, &cap, info.key.tgid);
	}
	return err;
}

void walk_doubts(struct engine *e, uint64_t now)
{
	struct walk_doubts *d = &e->doubts;
	int err;

	if (!d->next || now < d->next || d->pids)
		return;
	d->next = 0;
	d->began = now;
	err = walk_doubts_find(e);
	if (err || d->pids)
		walk_doubts_go_on(e);
}

/* A reading under way holds the pump back, so that its record is in time. */
uint64_t walk_watermark(struct engine *e, uint64_t now)
{
	/* Processes go on, what they map waits. */
	uint64_t least = e->start ? e->begin : now;
	struct walk_request *r;

	for (r = e->walks; r; r = r->next)
		if (now - r->asked < WALK_PATIENCE_NS && r->asked < least)
			least = r->asked;
	return least;
}

/* Waits for the workers, which hold pointers into the engine. */
void walk_cancel(struct engine *e)
{
	struct walk_request *r;

	e->doubts.more = 0;
	e->doubts.at = e->doubts.n;
	for (r = e->walks; r; r = r->next)
		uv_cancel((uv_req_t *)&r->work);
	while (e->walks)
		uv_run(e->loop, UV_RUN_ONCE);
}
