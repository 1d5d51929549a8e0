// SPDX-License-Identifier: Apache-2.0
/*
 * rescan: see profiler/rescan/rescan.h. At the start one record for every process of
 * quark's snapshot and one for the mappings of each; later one for each process whose
 * mappings are re-read (rescan_read.c). A record counts from the moment its reading
 * began and never changes what was before.
 *
 * Once a minute, and when quark has compared its processes with the kernel's
 * after a gap in the lifecycle stream, all of them are scanned again.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/rescan/rescan_internal.h"

/* From one drain of the rings to the next. */
#define WALK_DRAIN_MS 10
/* Bytes that were read and wait in the pump; then no others are read. */
#define WALK_PUMP_BYTES (32 << 20)
/* Readings that waited for locks for so long in all; then the rest is read later. */
#define WALK_WAITED_NS (2 * CLOCK_NSEC_PER_SEC)
/* The streams are behind the clock by a few milliseconds. */
#define WALK_TRY_US 1000
#define WALK_TRIES 200
#define WALK_PERIOD_NS (60 * CLOCK_NSEC_PER_SEC)

void rescan_deliver(struct pm *pm, void *rec, uint64_t time)
{
	struct walk_record *w = rec;

	switch (w->kind) {
	case WALK_PROCESS:
		pm_scan_process(pm, w->process, time);
		free(w->process);
		break;
	case WALK_MAPS:
		pm_scan_maps(pm, &w->maps);
		pm_maps_fini(&w->maps);
		break;
	case WALK_BEGIN:
		pm_rescan_begin(pm, time);
		break;
	case WALK_END:
		pm_rescan_end(pm);
		break;
	}
}

void rescan_drop(void *rec)
{
	struct walk_record *w = rec;

	if (w->kind == WALK_PROCESS)
		free(w->process);
	else if (w->kind == WALK_MAPS)
		pm_maps_fini(&w->maps);
	free(w);
}

static int rescan_push(struct rescan *r, enum walk_kind kind, uint64_t time,
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
	return pump_push(r->opts.pump, PUMP_WALK, time, w, sizeof(*w));
}

size_t rescan_size(const struct walk_record *w)
{
	const struct pm_maps *m = &w->maps;
	size_t size = sizeof(*w) + m->n * sizeof(*m->maps);
	const char *last = m->n ? m->maps[m->n - 1].path : m->text;

	return m->n ? size + (size_t)(last - m->text) + strlen(last) : size;
}

void rescan_keep(struct rescan *r, const struct walkqueue_item *item,
		 struct walk_record *w)
{
	size_t size = rescan_size(w);
	struct pump_stats st;

	pump_get_stats(r->opts.pump, &st);
	if (!r->start && st.bytes_of[PUMP_WALK] < WALK_PUMP_BYTES) {
		pump_push(r->opts.pump, PUMP_WALK, w->maps.begin, w, size);
	} else if (!r->start || rescan_start_add(r->start, w, &w->maps, size)) {
		rescan_later(r, item);
		rescan_drop(w);
	}
}

int rescan_add(struct walkqueue_item **itemsp, size_t *np, uint32_t tgid,
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
static int rescan_processes(struct rescan *r, struct quark_queue *quark,
			    uint64_t snapshot, struct walkqueue_item **itemsp,
			    size_t *np)
{
	const struct quark_process *qp;
	struct quark_process_iter it;
	int err = 0;

	quark_process_iter_init(&it, quark);
	while (!err && (qp = quark_process_iter_next(&it))) {
		err = rescan_push(r, WALK_PROCESS, snapshot, qp);
		if (!err && !(qp->x_flags & QUARK_X_KTHREAD))
			err = rescan_add(itemsp, np, qp->pid, qp->proc_uid);
	}
	return err;
}

static void rescan_started(void *arg, void *rec, const struct pm_maps *m)
{
	struct rescan *r = arg;

	pump_push(r->opts.pump, PUMP_WALK, m->begin, rec, rescan_size(rec));
}

static void rescan_streams(struct rescan *r)
{
	r->told = r->opts.drain(r->opts.arg);
}

/* The streams come as far as what was read of /proc; then the pump goes on. */
static void rescan_go_on(struct rescan *r)
{
	uint64_t until;
	int tries;

	if (!r->start)
		return;
	until = rescan_start_until(r->start);
	for (tries = 0; r->told < until; tries++) {
		if (tries == WALK_TRIES) {
			rescan_start_lost(r->start);
			break;
		}
		usleep(WALK_TRY_US);
		rescan_streams(r);
	}
	rescan_start_end(r->start, rescan_started, r);
	r->start = NULL;
	rescan_streams(r);
}

static void rescan_drain(struct rescan *r)
{
	struct pump_stats st;

	rescan_streams(r);
	pump_get_stats(r->opts.pump, &st);
	if (r->start &&
	    rescan_start_full(r->start, st.bytes - st.bytes_of[PUMP_WALK]))
		rescan_go_on(r);
}

/* The next ones. Users that made readings wait before are left to the queue. */
static void rescan_batch(struct rescan *r, const struct walkqueue_item *items,
			 size_t n)
{
	struct walk_batch *b = r->batch;
	size_t at;

	for (b->n = 0; r->walk_at < n && b->n < MAPSREADER_BATCH;) {
		at = r->walk_at++;
		if (r->walk_waited > WALK_WAITED_NS ||
		    rescan_queue_spent(r->rereads, &items[at])) {
			rescan_later(r, &items[at]);
			continue;
		}
		b->pos[b->n] = at;
		b->items[b->n++] = items[at];
	}
	if (b->n)
		rescan_read(r, UINT64_MAX);
}

/* What is read must be handed on, too. */
static bool rescan_may_read(struct rescan *r)
{
	struct pump_stats st;

	pump_get_stats(r->opts.pump, &st);
	return r->start || st.bytes_of[PUMP_WALK] < WALK_PUMP_BYTES;
}

int rescan_maps(struct rescan *r, const struct walkqueue_item *items, size_t n)
{
	uint64_t drained = clock_awake_ns(), now;
	int err = rescan_reader(r);

	r->walking = true;
	while (!err && (r->walk_at < n || mapsreader_busy(r->maps))) {
		if (!mapsreader_busy(r->maps) && rescan_may_read(r))
			rescan_batch(r, items, n);
		mapsreader_wait(r->maps, WALK_DRAIN_MS);
		now = clock_awake_ns();
		if (now - drained < WALK_DRAIN_MS * CLOCK_NSEC_PER_MSEC)
			continue;
		rescan_drain(r);
		drained = clock_awake_ns();
	}
	r->walking = false;
	return err;
}

/*
 * Pids first, mappings after: the drains in between change what quark's
 * iterator stands on.
 */
int rescan_first(struct rescan *r, struct quark_queue *quark, uint64_t snapshot,
		 uint64_t begin)
{
	struct walkqueue_item *items = NULL;
	struct pump_stats st;
	size_t n = 0;
	int err;

	r->begin = begin;
	r->start = rescan_start_new(begin);
	err = r->start ? rescan_processes(r, quark, snapshot, &items, &n)
		       : -ENOMEM;
	if (!err)
		rescan_streams(r);
	if (!err)
		err = rescan_maps(r, items, n);
	free(items);
	rescan_go_on(r);
	/* Not before: what was taken meanwhile lay in the rings. */
	pump_get_stats(r->opts.pump, &st);
	r->start_ns = clock_boottime_ns() - begin;
	r->start_samples = st.pushed[PUMP_SAMPLE];
	return err;
}

/*
 * As of quark's watermark: the cache has all that happened before, and the pump
 * delivers that first. Without memory for one of them there is no end, and no process
 * is presumed dead.
 */
static void rescan_processes_again(struct rescan *r, struct quark_queue *quark)
{
	uint64_t time = quark_queue_watermark(quark);
	const struct quark_process *qp;
	struct quark_process_iter it;
	int err;

	err = rescan_push(r, WALK_BEGIN, time, NULL);
	quark_process_iter_init(&it, quark);
	while (!err && (qp = quark_process_iter_next(&it)))
		err = rescan_push(r, WALK_PROCESS, time, qp);
	if (!err)
		rescan_push(r, WALK_END, time, NULL);
}

void rescan_soon(struct rescan *r)
{
	r->next = 1;
}

void rescan_check(struct rescan *r, struct quark_queue *quark, uint64_t now)
{
	struct quark_queue_stats st;

	quark_queue_get_stats(quark, &st);
	if (st.repairs != r->repairs)
		rescan_soon(r);
	r->repairs = st.repairs;
	if (now < r->next)
		return;
	if (r->next)
		rescan_processes_again(r, quark);
	r->next = now + WALK_PERIOD_NS;
}

uint64_t rescan_watermark(struct rescan *r, uint64_t now)
{
	/* Processes go on, what they map waits. */
	return MIN(r->start ? r->begin : now, rescan_reread_watermark(r, now));
}

void rescan_saw_map(struct rescan *r, const struct pm_map_event *ev)
{
	if (r->start)
		rescan_start_saw_map(r->start, ev);
}

void rescan_saw_event(struct rescan *r, const struct quark_event *ev)
{
	if (r->start)
		rescan_start_saw_event(r->start, ev);
}

void rescan_saw_loss(struct rescan *r)
{
	if (r->start)
		rescan_start_lost(r->start);
}

int rescan_new(struct rescan **rp, const struct rescan_opts *opts)
{
	struct rescan *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->opts = *opts;
	*rp = r;
	return 0;
}

void rescan_free(struct rescan *r)
{
	if (!r)
		return;
	mapsreader_free(r->maps);
	free(r->batch);
	rescan_queue_free(r->rereads);
	free(r);
}
