// SPDX-License-Identifier: Apache-2.0
/*
 * walk_reread: mappings that are re-read: of processes for which the process
 * manager asks, and after a loss in the mapping stream of every process that it
 * leaves in doubt, so that the next sample of each finds them. Which first, and
 * how many, the queue says.
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
/* All in doubt are asked for this long after the last time at the earliest. */
#define REREAD_PAUSE_NS (200 * CLOCK_NSEC_PER_MSEC)
/* Some may have been in an exec, or been forked meanwhile. */
#define REREAD_ROUNDS 5

static void reread_next(struct engine *e, uint64_t now);

static void reread_charge(struct engine *e, const struct walkqueue_item *item,
			  const struct mapsreader_result *r)
{
	uint64_t wait = r->waited ? r->wall_ns - MIN(r->cpu_ns, r->wall_ns) : 0;

	/* All are read at the start, and only waits are anybody's fault. */
	if (e->walking && !wait)
		return;
	walkqueue_charge(e->rereads, item, e->walking ? 0 : r->cpu_ns, wait);
	if (wait > WALKQUEUE_SLOW_LIMIT)
		limits_note(&e->limits, item->uid, LIMIT_REREADS, 1);
	if (e->walking)
		e->walk_waited += wait;
	e->rereads_hung += r->err == -ETIMEDOUT;
	e->rereads_large += r->err == -E2BIG;
}

static void reread_answer(void *arg, size_t i,
			  const struct mapsreader_result *r, struct pm_maps *m)
{
	struct engine *e = arg;
	struct walkqueue_item item = e->batch->items[i];
	struct walk_record *w = r->err ? NULL : calloc(1, sizeof(*w));

	reread_charge(e, &item, r);
	if (w) {
		w->kind = WALK_MAPS;
		w->maps = *m;
	} else {
		pm_maps_fini(m);
	}
	/* Who hung at the start was not read at all: once more. */
	if (e->walking && r->err == -EAGAIN)
		e->walk_at = MIN(e->walk_at, e->batch->pos[i]);
	else if (r->err == -EAGAIN || (e->walking && r->err == -ETIMEDOUT))
		walk_later(e, &item);
	else if (w && e->walking)
		walk_keep(e, &item, w);
	else if (w)
		pump_push(e->pump, PUMP_WALK, w->maps.begin, w, walk_size(w));
	if (!mapsreader_busy(e->maps))
		reread_next(e, clock_boottime_ns());
}

int walk_reader(struct engine *e)
{
	if (!e->rereads)
		e->rereads = walkqueue_new();
	if (!e->batch)
		e->batch = calloc(1, sizeof(*e->batch));
	if (!e->maps && e->batch)
		e->maps = mapsreader_new(e->loop, reread_answer, e);
	return e->rereads && e->maps ? 0 : -ENOMEM;
}

void walk_read(struct engine *e, uint64_t slice_ns)
{
	struct walk_batch *b = e->batch;
	uint32_t tgids[MAPSREADER_BATCH];
	size_t i;

	for (i = 0; i < b->n; i++)
		tgids[i] = b->items[i].tgid;
	if (!mapsreader_ask(e->maps, tgids, b->n, slice_ns,
			    b->items[0].slow ? REREAD_SLOW_PATIENCE_NS
					     : REREAD_PATIENCE_NS))
		return;
	for (i = 0; i < b->n; i++) {
		if (!e->walking) /* what taking it was charged */
			walkqueue_charge(e->rereads, &b->items[i], 0, 0);
		walk_later(e, &b->items[i]);
	}
}

/* Has those read whose turn it is. The manager asks for others again. */
static void reread_next(struct engine *e, uint64_t now)
{
	uint32_t uid;

	if (!e->rereads || e->doubts.over || e->walking || walk_reader(e) ||
	    mapsreader_busy(e->maps))
		return;
	e->batch->n = walkqueue_take(e->rereads, now, e->batch->items,
				     MAPSREADER_BATCH);
	if (e->batch->n)
		walk_read(e, REREAD_SLICE_NS);
	else if (walkqueue_limits(e->rereads, &uid))
		limits_note(&e->limits, uid, LIMIT_REREADS, 1);
}

void walk_later(struct engine *e, const struct walkqueue_item *item)
{
	if (!e->rereads)
		e->rereads = walkqueue_new();
	if (e->rereads)
		walkqueue_add(e->rereads, item);
}

/*
 * Asked from inside the pump, so nothing is read here. It begins at once, or
 * when the one under way is over.
 */
void walk_want_maps(void *arg, const struct pm_want *want)
{
	struct walkqueue_item item = { .tgid = want->key.tgid,
				       .uid = want->uid,
				       .flood = want->flood };
	struct engine *e = arg;

	walk_later(e, &item);
	reread_next(e, clock_boottime_ns());
}

/* --- all that are in doubt --------------------------------------------------- */

void walk_after_loss(struct engine *e)
{
	struct walk_doubts *d = &e->doubts;

	d->rounds = REREAD_ROUNDS;
	if (!d->next)
		d->next = d->began + REREAD_PAUSE_NS;
}

static void reread_doubts(struct engine *e)
{
	struct walkqueue_item item;
	struct pm_image_info info;
	struct pm_image *img;
	struct pm_iter it;

	pm_iter_init(&it, e->pm, false);
	while ((img = pm_iter_next(&it))) {
		if (!pm_image_doubtful(e->pm, img))
			continue;
		pm_image_info(img, &info);
		item = (struct walkqueue_item){
			.tgid = info.key.tgid,
			.uid = info.uid,
			.flood = pm_image_floods(e->pm, img),
		};
		walk_later(e, &item);
	}
}

void walk_doubts(struct engine *e, uint64_t now)
{
	struct walk_doubts *d = &e->doubts;

	if (e->maps)
		mapsreader_check(e->maps, clock_boottime_ns());
	if (d->next && now >= d->next) {
		reread_doubts(e);
		d->began = now;
		d->next = --d->rounds ? now + REREAD_PAUSE_NS : 0;
	}
	reread_next(e, now);
}

uint64_t walk_reread_watermark(const struct engine *e, uint64_t now)
{
	if (!e->maps || !e->batch->n || e->batch->items[0].slow)
		return now;
	return MIN(now, mapsreader_since(e->maps, now));
}

void walk_reread_stats(const struct engine *e, struct walkqueue_stats *out)
{
	memset(out, 0, sizeof(*out));
	if (e->rereads)
		walkqueue_get_stats(e->rereads, out);
}

/* Waits for no reading: the reader is killed. */
void walk_cancel(struct engine *e)
{
	e->doubts.over = true;
	mapsreader_free(e->maps);
	e->maps = NULL;
	free(e->batch);
	e->batch = NULL;
	walkqueue_free(e->rereads);
	e->rereads = NULL;
}
