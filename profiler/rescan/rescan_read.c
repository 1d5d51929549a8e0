// SPDX-License-Identifier: Apache-2.0
/*
 * rescan_read: re-reads of mappings: of processes that the process manager
 * requests, and after a loss in the mapping stream of every process whose
 * mappings it leaves stale, so that the next sample of each finds them. The
 * queue decides on the order and the number.
 *
 * The reader reads some at a time, for a few milliseconds. The pump waits for
 * it, but no longer for a reading that hangs on a lock of its process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "profiler/rescan/rescan_internal.h"

/* The reader begins no other reading after this. */
#define REREAD_SLICE_NS (5 * CLOCK_NSEC_PER_MSEC)
/* A reading that waits for longer is abandoned; the same for slow processes. */
#define REREAD_PATIENCE_NS (100 * CLOCK_NSEC_PER_MSEC)
#define REREAD_SLOW_PATIENCE_NS (300 * CLOCK_NSEC_PER_MSEC)
/* Least time between two re-reads of all stale processes. */
#define REREAD_PAUSE_NS (200 * CLOCK_NSEC_PER_MSEC)
/* Some may have been in an exec, or were forked meanwhile. */
#define REREAD_ROUNDS 5

static void reread_next(struct rescan *r, uint64_t now);

static void reread_charge(struct rescan *r, const struct rescan_item *item,
			  const struct mapsreader_result *res)
{
	uint64_t wait = 0;

	if (res->waited)
		wait = res->wall_ns - MIN(res->cpu_ns, res->wall_ns);
	/* The first scan reads all: its users are charged for waits only. */
	if (r->scanning && !wait)
		return;
	rescan_queue_charge(r->rereads, item, r->scanning ? 0 : res->cpu_ns,
			    wait);
	if (wait > RESCAN_SLOW_LIMIT)
		limits_note(r->opts.limits, item->uid, LIMIT_REREADS, 1);
	if (r->scanning)
		r->waited += wait;
	r->hung += res->err == -ETIMEDOUT;
	r->large += res->err == -E2BIG;
}

void rescan_on_maps(void *arg, size_t i, const struct mapsreader_result *res,
		    struct pm_maps *m)
{
	struct rescan *r = arg;
	struct rescan_item item = r->batch.items[i];
	struct rescan_record *w = res->err ? NULL : calloc(1, sizeof(*w));

	reread_charge(r, &item, res);
	if (w) {
		w->kind = RESCAN_MAPS;
		w->maps = *m;
	} else {
		pm_maps_fini(m);
	}
	/* In the first scan the rest of a batch that hung is read once more. */
	if (r->scanning && res->err == -EAGAIN)
		r->next_item = MIN(r->next_item, r->batch.pos[i]);
	else if (res->err == -EAGAIN || (r->scanning && res->err == -ETIMEDOUT))
		rescan_queue_add(r->rereads, &item);
	else if (w && r->scanning)
		rescan_keep(r, &item, w);
	else if (w)
		pump_push(r->opts.pump, PUMP_SCAN, w->maps.begin, w,
			  rescan_size(w));
	if (!mapsreader_busy(r->maps))
		reread_next(r, clock_boottime_ns());
}

void rescan_read(struct rescan *r, uint64_t slice_ns)
{
	const struct rescan_batch *b = &r->batch;
	uint32_t tgids[MAPSREADER_BATCH];
	size_t i;

	for (i = 0; i < b->n; i++)
		tgids[i] = b->items[i].tgid;
	if (!mapsreader_ask(r->maps, tgids, b->n, slice_ns,
			    b->items[0].slow ? REREAD_SLOW_PATIENCE_NS
					     : REREAD_PATIENCE_NS))
		return;
	for (i = 0; i < b->n; i++) {
		if (!r->scanning) /* gives back what taking it was charged */
			rescan_queue_charge(r->rereads, &b->items[i], 0, 0);
		rescan_queue_add(r->rereads, &b->items[i]);
	}
}

/* Reads the next of the queue. */
static void reread_next(struct rescan *r, uint64_t now)
{
	uint32_t uid;

	if (r->scanning || mapsreader_busy(r->maps))
		return;
	r->batch.n = rescan_queue_take(r->rereads, now, r->batch.items,
				       MAPSREADER_BATCH);
	if (r->batch.n)
		rescan_read(r, REREAD_SLICE_NS);
	else if (rescan_queue_limits(r->rereads, &uid))
		limits_note(r->opts.limits, uid, LIMIT_REREADS, 1);
}

/*
 * Called from inside the pump, so nothing is read here: it begins at once in
 * the reader, or when the batch under way is over.
 */
void rescan_want(struct rescan *r, const struct pm_want *want)
{
	struct rescan_item item = { .tgid = want->key.tgid,
				    .uid = want->uid,
				    .flood = want->flood };

	rescan_queue_add(r->rereads, &item);
	reread_next(r, clock_boottime_ns());
}

/* --- all stale processes -------------------------------------------------- */

void rescan_after_loss(struct rescan *r)
{
	struct rescan_stale *d = &r->stale;

	d->rounds = REREAD_ROUNDS;
	if (!d->next)
		d->next = d->began + REREAD_PAUSE_NS;
}

static void reread_stale(struct rescan *r)
{
	struct rescan_item item;
	struct pm_image_info info;
	struct pm_image *img;
	struct pm_iter it;

	pm_iter_init(&it, r->opts.pm, false);
	while ((img = pm_iter_next(&it))) {
		if (!pm_image_stale(r->opts.pm, img))
			continue;
		pm_image_info(img, &info);
		item = (struct rescan_item){
			.tgid = info.key.tgid,
			.uid = info.uid,
			.flood = pm_image_floods(r->opts.pm, img),
		};
		rescan_queue_add(r->rereads, &item);
	}
}

void rescan_work(struct rescan *r, uint64_t now)
{
	struct rescan_stale *d = &r->stale;

	mapsreader_check(r->maps, clock_boottime_ns());
	if (d->next && now >= d->next) {
		reread_stale(r);
		d->began = now;
		d->next = --d->rounds ? now + REREAD_PAUSE_NS : 0;
	}
	reread_next(r, now);
}

uint64_t rescan_reread_watermark(const struct rescan *r, uint64_t now)
{
	if (!r->batch.n || r->batch.items[0].slow)
		return now;
	return MIN(now, mapsreader_since(r->maps, now));
}

void rescan_get_stats(const struct rescan *r, struct rescan_stats *out)
{
	*out = (struct rescan_stats){ .hung = r->hung,
				      .large = r->large,
				      .start_ns = r->start_ns,
				      .start_samples = r->start_samples };
	rescan_queue_get_stats(r->rereads, &out->queue);
}

bool rescan_pending(const struct rescan *r)
{
	struct rescan_stats st;

	rescan_get_stats(r, &st);
	return st.queue.waiting || r->stale.next || mapsreader_busy(r->maps);
}
