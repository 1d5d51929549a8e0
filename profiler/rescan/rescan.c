// SPDX-License-Identifier: Apache-2.0
/*
 * walk: the fourth stream. At the start one record for every process of
 * quark's snapshot and one for the mappings of each; later one whenever the
 * process manager wants the mappings of a process re-read (walk_reread.c). A
 * record counts from the moment its reading began and never rewrites what was
 * before.
 *
 * Once a minute, and when quark has compared its processes with the kernel's
 * after a gap in the lifecycle stream, all of them are walked again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/rescan/rescan_internal.h"

/* So long it takes from one drain of the rings to the next. */
#define WALK_DRAIN_MS 10
/* Bytes that were read and wait in the pump; then no others are read. */
#define WALK_PUMP_BYTES (32 << 20)
/* Readings that waited for locks for so long in all; then the rest is read later. */
#define WALK_WAITED_NS (2 * CLOCK_NSEC_PER_SEC)
/* The streams are behind the clock by a few milliseconds. */
#define WALK_TRY_US 1000
#define WALK_TRIES 200
#define WALK_PERIOD_NS (60 * CLOCK_NSEC_PER_SEC)

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

void walk_drop(void *rec)
{
	struct walk_record *w = rec;

	if (w->kind == WALK_PROCESS)
		free(w->process);
	else if (w->kind == WALK_MAPS)
		pm_maps_fini(&w->maps);
	free(w);
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

size_t walk_size(const struct walk_record *w)
{
	const struct pm_maps *m = &w->maps;
	size_t size = sizeof(*w) + m->n * sizeof(*m->maps);
	const char *last = m->n ? m->maps[m->n - 1].path : m->text;

	return m->n ? size + (size_t)(last - m->text) + strlen(last) : size;
}

void walk_keep(struct engine *e, const struct walkqueue_item *item,
	       struct walk_record *w)
{
	size_t size = walk_size(w);

	struct pump_stats st;

	pump_get_stats(e->pump, &st);
	if (!e->start && st.bytes_of[PUMP_WALK] < WALK_PUMP_BYTES) {
		pump_push(e->pump, PUMP_WALK, w->maps.begin, w, size);
	} else if (!e->start || walk_start_add(e->start, w, &w->maps, size)) {
		walk_later(e, item);
		walk_drop(w);
	}
}

int walk_add(struct walkqueue_item **itemsp, size_t *np, uint32_t tgid,
	     uint32_t uid)
{
	struct walkqueue_item *p = *itemsp;

	if (*np >= 256 ? !(*np & (*np - 1)) : !*np) {
		p = reallocarray(p, MAX(2 * *np, 256), sizeof(*p));
		if (!p)
			return -ENOMEM;
		*itemsp = p;
	}
	p[(*np)++] = (struct walkqueue_item){ .tgid = tgid, .uid = uid };
	return 0;
}

/* Those of the snapshot that have mappings. */
static int walk_processes(struct engine *e, struct walkqueue_item **itemsp,
			  size_t *np)
{
	const struct quark_process *qp;
	struct quark_process_iter it;
	int err = 0;

	quark_process_iter_init(&it, &e->quark);
	while (!err && (qp = quark_process_iter_next(&it))) {
		err = walk_push(e, WALK_PROCESS, e->walk_begin, qp);
		if (!err && !(qp->x_flags & QUARK_X_KTHREAD))
			err = walk_add(itemsp, np, qp->pid, qp->proc_uid);
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
	if (e->start &&
	    walk_start_full(e->start, st.bytes - st.bytes_of[PUMP_WALK]))
		walk_go_on(e);
}

/* The next ones. Who made readings wait before is left to the queue. */
static void walk_batch(struct engine *e, const struct walkqueue_item *items,
		       size_t n)
{
	struct walk_batch *b = e->batch;
	size_t at;

	for (b->n = 0; e->walk_at < n && b->n < MAPSREADER_BATCH;) {
		at = e->walk_at++;
		if (e->walk_waited > WALK_WAITED_NS ||
		    walkqueue_spent(e->rereads, &items[at])) {
			walk_later(e, &items[at]);
			continue;
		}
		b->pos[b->n] = at;
		b->items[b->n++] = items[at];
	}
	if (b->n)
		walk_read(e, UINT64_MAX);
}

/* What is read must be handed on, too. */
static bool walk_may_read(struct engine *e)
{
	struct pump_stats st;

	pump_get_stats(e->pump, &st);
	return e->start || st.bytes_of[PUMP_WALK] < WALK_PUMP_BYTES;
}

int walk_maps(struct engine *e, const struct walkqueue_item *items, size_t n)
{
	uint64_t drained = clock_awake_ns(), now;
	int err = walk_reader(e);

	e->walking = true;
	while (!err && (e->walk_at < n || mapsreader_busy(e->maps))) {
		if (!mapsreader_busy(e->maps) && walk_may_read(e))
			walk_batch(e, items, n);
		mapsreader_wait(e->maps, WALK_DRAIN_MS);
		now = clock_awake_ns();
		if (now - drained < WALK_DRAIN_MS * CLOCK_NSEC_PER_MSEC)
			continue;
		walk_drain(e);
		drained = clock_awake_ns();
	}
	e->walking = false;
	return err;
}

/*
 * Pids first, mappings after: the drains in between change what quark's
 * iterator stands on.
 */
int walk_all(struct engine *e)
{
	struct walkqueue_item *items = NULL;
	struct pump_stats st;
	size_t n = 0;
	int err;

	e->start = walk_start_new(e->begin);
	err = e->start ? walk_processes(e, &items, &n) : -ENOMEM;
	if (!err)
		engine_drain(e);
	if (!err)
		err = walk_maps(e, items, n);
	free(items);
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

uint64_t walk_watermark(struct engine *e, uint64_t now)
{
	/* Processes go on, what they map waits. */
	return MIN(e->start ? e->begin : now, walk_reread_watermark(e, now));
}
