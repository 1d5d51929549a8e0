// SPDX-License-Identifier: Apache-2.0
/*
 * rescan: see profiler/rescan/rescan.h. At the start one record for every
 * process of quark's snapshot and one for the mappings of each; later one for
 * each process whose mappings are re-read (rescan_read.c). A record counts from
 * the time its reading began and never changes what was before.
 *
 * All processes are scanned again once a minute, and when quark has compared
 * its processes with the kernel's after a gap in the lifecycle stream.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/rescan/rescan_internal.h"

/* From one drain of the rings to the next. */
#define RESCAN_DRAIN_MS 10
/* With so many bytes of mappings in the pump no others are read. */
#define RESCAN_PUMP_BYTES (32 << 20)
/* When readings have waited for locks for so long, the rest is read later. */
#define RESCAN_WAITED_NS (2 * CLOCK_NSEC_PER_SEC)
/* The streams are a few milliseconds behind the clock. */
#define RESCAN_TRY_US 1000
#define RESCAN_TRIES 200
#define RESCAN_PERIOD_NS (60 * CLOCK_NSEC_PER_SEC)

void rescan_drop(void *rec)
{
	struct rescan_record *w = rec;

	free(w->process);
	pm_maps_fini(&w->maps);
	free(w);
}

void rescan_deliver(struct pm *pm, void *rec, uint64_t time)
{
	struct rescan_record *w = rec;

	switch (w->kind) {
	case RESCAN_PROCESS:
		pm_scan_process(pm, w->process, time);
		break;
	case RESCAN_MAPS:
		pm_scan_maps(pm, &w->maps);
		break;
	case RESCAN_BEGIN:
		pm_rescan_begin(pm, time);
		break;
	case RESCAN_END:
		pm_rescan_end(pm);
		break;
	}
	rescan_drop(w);
}

static int rescan_push(struct rescan *r, enum rescan_kind kind, uint64_t time,
		       const struct quark_process *qp)
{
	struct rescan_record *w = calloc(1, sizeof(*w));

	if (w && qp)
		w->process = quark_process_dup(qp);
	if (!w || (qp && !w->process)) {
		free(w);
		return -ENOMEM;
	}
	w->kind = kind;
	return pump_push(r->opts.pump, PUMP_SCAN, time, w, sizeof(*w));
}

size_t rescan_size(const struct rescan_record *w)
{
	const struct pm_maps *m = &w->maps;
	size_t size = sizeof(*w) + m->n * sizeof(*m->maps);
	const char *last = m->n ? m->maps[m->n - 1].path : m->text;

	return m->n ? size + (size_t)(last - m->text) + strlen(last) : size;
}

/* The pump has room for more mappings. */
static bool rescan_room(const struct rescan *r)
{
	struct pump_stats st;

	pump_get_stats(r->opts.pump, &st);
	return st.bytes_of[PUMP_SCAN] < RESCAN_PUMP_BYTES;
}

void rescan_keep(struct rescan *r, const struct rescan_item *item,
		 struct rescan_record *w)
{
	size_t size = rescan_size(w);

	if (!r->start && rescan_room(r)) {
		pump_push(r->opts.pump, PUMP_SCAN, w->maps.begin, w, size);
	} else if (!r->start || rescan_start_add(r->start, w, &w->maps, size)) {
		rescan_queue_add(r->rereads, item);
		rescan_drop(w);
	}
}

int rescan_add(struct rescan_list *list, uint32_t tgid, uint32_t uid)
{
	int err = VECTOR_ROOM(list->items, list->n, list->cap);

	if (!err)
		list->items[list->n++] =
			(struct rescan_item){ .tgid = tgid, .uid = uid };
	return err;
}

/* Lists those of the snapshot that have mappings. */
static int rescan_processes(struct rescan *r, struct quark_queue *quark,
			    uint64_t snapshot, struct rescan_list *list)
{
	const struct quark_process *qp;
	struct quark_process_iter it;
	int err = 0;

	quark_process_iter_init(&it, quark);
	while (!err && (qp = quark_process_iter_next(&it))) {
		err = rescan_push(r, RESCAN_PROCESS, snapshot, qp);
		if (!err && !(qp->x_flags & QUARK_X_KTHREAD))
			err = rescan_add(list, qp->pid, qp->proc_uid);
	}
	return err;
}

static void rescan_started(void *arg, void *rec, const struct pm_maps *m)
{
	struct rescan *r = arg;

	pump_push(r->opts.pump, PUMP_SCAN, m->begin, rec, rescan_size(rec));
}

static void rescan_streams(struct rescan *r)
{
	r->drained = r->opts.drain(r->opts.arg);
}

/* Once the streams are as recent as the readings of /proc, the pump goes on. */
static void rescan_go_on(struct rescan *r)
{
	uint64_t until;
	int tries;

	if (!r->start)
		return;
	until = rescan_start_until(r->start);
	for (tries = 0; r->drained < until; tries++) {
		if (tries == RESCAN_TRIES) {
			rescan_start_lost(r->start);
			break;
		}
		usleep(RESCAN_TRY_US);
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
	    rescan_start_full(r->start, st.bytes - st.bytes_of[PUMP_SCAN]))
		rescan_go_on(r);
}

/* The next ones. Users whose readings waited before are left to the queue. */
static void rescan_batch(struct rescan *r, const struct rescan_list *list)
{
	struct rescan_batch *b = &r->batch;
	const struct rescan_item *item;
	size_t at;

	for (b->n = 0; r->next_item < list->n && b->n < MAPSREADER_BATCH;) {
		at = r->next_item++;
		item = &list->items[at];
		if (r->waited > RESCAN_WAITED_NS ||
		    rescan_queue_spent(r->rereads, item)) {
			rescan_queue_add(r->rereads, item);
			continue;
		}
		b->pos[b->n] = at;
		b->items[b->n++] = *item;
	}
	if (b->n)
		rescan_read(r, UINT64_MAX);
}

void rescan_maps(struct rescan *r, const struct rescan_list *list)
{
	uint64_t drained = clock_awake_ns(), now;

	r->scanning = true;
	while (r->next_item < list->n || mapsreader_busy(r->maps)) {
		if (!mapsreader_busy(r->maps) && (r->start || rescan_room(r)))
			rescan_batch(r, list);
		mapsreader_wait(r->maps, RESCAN_DRAIN_MS);
		now = clock_awake_ns();
		if (now - drained < RESCAN_DRAIN_MS * CLOCK_NSEC_PER_MSEC)
			continue;
		rescan_drain(r);
		drained = clock_awake_ns();
	}
	r->scanning = false;
}

/* Processes before mappings: drains in between change quark's iterator. */
int rescan_first(struct rescan *r, struct quark_queue *quark, uint64_t snapshot,
		 uint64_t begin)
{
	struct rescan_list list = { 0 };
	struct pump_stats st;
	int err;

	r->begin = begin;
	r->start = rescan_start_new(begin);
	err = r->start ? rescan_processes(r, quark, snapshot, &list) : -ENOMEM;
	if (!err) {
		rescan_streams(r);
		rescan_maps(r, &list);
	}
	free(list.items);
	rescan_go_on(r);
	/* Only now, when the samples of that time are out of the rings. */
	pump_get_stats(r->opts.pump, &st);
	r->start_ns = clock_boottime_ns() - begin;
	r->start_samples = st.pushed[PUMP_SAMPLE];
	return err;
}

/*
 * As of quark's watermark: quark's cache has all earlier events, and the pump
 * delivers those first. Without memory for a process there is no RESCAN_END, so
 * that none is presumed dead.
 */
static void rescan_processes_again(struct rescan *r, struct quark_queue *quark)
{
	uint64_t time = quark_queue_watermark(quark);
	const struct quark_process *qp;
	struct quark_process_iter it;
	int err;

	err = rescan_push(r, RESCAN_BEGIN, time, NULL);
	quark_process_iter_init(&it, quark);
	while (!err && (qp = quark_process_iter_next(&it)))
		err = rescan_push(r, RESCAN_PROCESS, time, qp);
	if (!err)
		rescan_push(r, RESCAN_END, time, NULL);
}

void rescan_check(struct rescan *r, struct quark_queue *quark, uint64_t now)
{
	struct quark_queue_stats st;

	quark_queue_get_stats(quark, &st);
	if (st.repairs != r->repairs)
		r->next = 1;
	r->repairs = st.repairs;
	if (now < r->next)
		return;
	if (r->next)
		rescan_processes_again(r, quark);
	r->next = now + RESCAN_PERIOD_NS;
}

uint64_t rescan_watermark(struct rescan *r, uint64_t now)
{
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

void rescan_events_lost(struct rescan *r)
{
	if (r->start)
		rescan_start_lost(r->start);
	r->next = 1;
}

int rescan_new(struct rescan **rp, const struct rescan_opts *opts)
{
	struct rescan *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->opts = *opts;
	r->rereads = rescan_queue_new();
	r->maps = mapsreader_new(opts->loop, rescan_on_maps, r);
	if (!r->rereads || !r->maps) {
		rescan_free(r);
		return -ENOMEM;
	}
	*rp = r;
	return 0;
}

void rescan_free(struct rescan *r)
{
	if (!r)
		return;
	mapsreader_free(r->maps);
	rescan_queue_free(r->rereads);
	free(r);
}
