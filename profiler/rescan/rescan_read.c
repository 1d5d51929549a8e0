// SPDX-License-Identifier: Apache-2.0
/*
 * rescan_read: mappings that are re-read: of processes for which the process
 * manager asks, and after a loss in the mapping stream of every process that it
 * leaves stale, so that the next sample of each finds them. The queue decides
 * which are first, and how many.
 *
 * The reader reads some at a time, for a few milliseconds: the pump waits for it,
 * but no longer for one that hangs in some process's lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "profiler/rescan/rescan_internal.h"

/* The reader begins no other one after this. */
#define REREAD_SLICE_NS (5 * CLOCK_NSEC_PER_MSEC)
/* A reading that waits for longer is abandoned; for one that was slow before. */
#define REREAD_PATIENCE_NS (100 * CLOCK_NSEC_PER_MSEC)
#define REREAD_SLOW_PATIENCE_NS (300 * CLOCK_NSEC_PER_MSEC)
/* All stale processes are asked for this long after the last time at the earliest. */
#define REREAD_PAUSE_NS (200 * CLOCK_NSEC_PER_MSEC)
/* Some may have been in an exec, or been forked meanwhile. */
#define REREAD_ROUNDS 5

static void reread_next(struct rescan *r, uint64_t now);

static void reread_charge(struct rescan *r, const struct walkqueue_item *item,
			  const struct mapsreader_result *res)
{
	uint64_t wait = 0;

	if (res->waited)
		wait = res->wall_ns - MIN(res->cpu_ns, res->wall_ns);
	/* All are read at the start; a user is charged for waits only. */
	if (r->walking && !wait)
		return;
	rescan_queue_charge(r->rereads, item, r->walking ? 0 : res->cpu_ns,
			    wait);
	if (wait > WALKQUEUE_SLOW_LIMIT)
		limits_note(r->opts.limits, item->uid, LIMIT_REREADS, 1);
	if (r->walking)
		r->walk_waited += wait;
	r->hung += res->err == -ETIMEDOUT;
	r->large += res->err == -E2BIG;
}

static void reread_answer(void *arg, size_t i,
			  const struct mapsreader_result *res,
			  struct pm_maps *m)
{
	struct rescan *r = arg;
	struct walkqueue_item item = r->batch->items[i];
	struct walk_record *w = res->err ? NULL : calloc(1, sizeof(*w));

	reread_charge(r, &item, res);
	if (w) {
		w->kind = WALK_MAPS;
		w->maps = *m;
	} else {
		pm_maps_fini(m);
	}
	/* One that hung at the start was not read at all: once more. */
	if (r->walking && res->err == -EAGAIN)
		r->walk_at = MIN(r->walk_at, r->batch->pos[i]);
	else if (res->err == -EAGAIN || (r->walking && res->err == -ETIMEDOUT))
		rescan_later(r, &item);
	else if (w && r->walking)
		rescan_keep(r, &item, w);
	else if (w)
		pump_push(r->opts.pump, PUMP_WALK, w->maps.begin, w,
			  rescan_size(w));
	if (!mapsreader_busy(r->maps))
		reread_next(r, clock_boottime_ns());
}

int rescan_reader(struct rescan *r)
{
	if (!r->rereads)
		r->rereads = rescan_queue_new();
	if (!r->batch)
		r->batch = calloc(1, sizeof(*r->batch));
	if (!r->maps && r->batch)
		r->maps = mapsreader_new(r->opts.loop, reread_answer, r);
	return r->rereads && r->maps ? 0 : -ENOMEM;
}

void rescan_read(struct rescan *r, uint64_t slice_ns)
{
	struct walk_batch *b = r->batch;
	uint32_t tgids[MAPSREADER_BATCH];
	size_t i;

	for (i = 0; i < b->n; i++)
		tgids[i] = b->items[i].tgid;
	if (!mapsreader_ask(r->maps, tgids, b->n, slice_ns,
			    b->items[0].slow ? REREAD_SLOW_PATIENCE_NS
					     : REREAD_PATIENCE_NS))
		return;
	for (i = 0; i < b->n; i++) {
		if (!r->walking) /* what taking it was charged */
			rescan_queue_charge(r->rereads, &b->items[i], 0, 0);
		rescan_later(r, &b->items[i]);
	}
}

/* Reads those that are next in turn. The manager asks for others again. */
static void reread_next(struct rescan *r, uint64_t now)
{
	uint32_t uid;

	if (!r->rereads || r->walking || rescan_reader(r) ||
	    mapsreader_busy(r->maps))
		return;
	r->batch->n = rescan_queue_take(r->rereads, now, r->batch->items,
					MAPSREADER_BATCH);
	if (r->batch->n)
		rescan_read(r, REREAD_SLICE_NS);
	else if (rescan_queue_limits(r->rereads, &uid))
		limits_note(r->opts.limits, uid, LIMIT_REREADS, 1);
}

void rescan_later(struct rescan *r, const struct walkqueue_item *item)
{
	if (!r->rereads)
		r->rereads = rescan_queue_new();
	if (r->rereads)
		rescan_queue_add(r->rereads, item);
}

/*
 * Asked from inside the pump, so nothing is read here. It begins at once, or
 * when the one under way is over.
 */
void rescan_want(struct rescan *r, const struct pm_want *want)
{
	struct walkqueue_item item = { .tgid = want->key.tgid,
				       .uid = want->uid,
				       .flood = want->flood };

	rescan_later(r, &item);
	reread_next(r, clock_boottime_ns());
}

/* --- all that are stale ------------------------------------------------------ */

void rescan_after_loss(struct rescan *r)
{
	struct rescan_stale *d = &r->stale;

	d->rounds = REREAD_ROUNDS;
	if (!d->next)
		d->next = d->began + REREAD_PAUSE_NS;
}

static void reread_stale(struct rescan *r)
{
	struct walkqueue_item item;
	struct pm_image_info info;
	struct pm_image *img;
	struct pm_iter it;

	pm_iter_init(&it, r->opts.pm, false);
	while ((img = pm_iter_next(&it))) {
		if (!pm_image_stale(r->opts.pm, img))
			continue;
		pm_image_info(img, &info);
		item = (struct walkqueue_item){
			.tgid = info.key.tgid,
			.uid = info.uid,
			.flood = pm_image_floods(r->opts.pm, img),
		};
		rescan_later(r, &item);
	}
}

void rescan_work(struct rescan *r, uint64_t now)
{
	struct rescan_stale *d = &r->stale;

	if (r->maps)
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
	if (!r->maps || !r->batch->n || r->batch->items[0].slow)
		return now;
	return MIN(now, mapsreader_since(r->maps, now));
}

bool rescan_pending(const struct rescan *r)
{
	struct rescan_stats st;

	rescan_get_stats(r, &st);
	return st.queue.waiting || r->stale.next ||
	       (r->maps && mapsreader_busy(r->maps));
}

void rescan_get_stats(const struct rescan *r, struct rescan_stats *out)
{
	memset(out, 0, sizeof(*out));
	out->hung = r->hung;
	out->large = r->large;
	out->start_ns = r->start_ns;
	out->start_samples = r->start_samples;
	if (r->rereads)
		rescan_queue_get_stats(r->rereads, &out->queue);
}
