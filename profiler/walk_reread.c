// SPDX-License-Identifier: Apache-2.0
/*
 * walk_reread: mappings that workers re-read: of processes for which the process
 * manager asks, and after a loss in the mapping stream of every process that it
 * leaves in doubt, so that the next sample of each finds them. Which first, and
 * how many, the queue says.
 *
 * One worker reads some at a time, for a few milliseconds: the pump waits for it.
 * Another takes over when it hangs in some process's mmap_lock.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/base.h"
#include "profiler/walk_internal.h"
#include "profiler/walkqueue.h"

/* A worker begins no other one when it has used so much CPU time. */
#define REREAD_SLICE_NS (5 * CLOCK_NSEC_PER_MSEC)
#define REREAD_BATCH 64
/* A reader that hangs stops the pump no longer, and is not waited for. */
#define REREAD_PATIENCE_NS CLOCK_NSEC_PER_SEC
/* Workers, of those that hang too. */
#define REREAD_WORKERS 3
/* All in doubt are asked for this long after the last time at the earliest. */
#define REREAD_PAUSE_NS (200 * CLOCK_NSEC_PER_MSEC)
/* Some may have been in an exec, or been forked meanwhile. */
#define REREAD_ROUNDS 5

struct reread_item {
	struct walkqueue_item item;
	struct walk_record *rec;
	uint64_t cpu_ns;
	int err; /* -EAGAIN: it was not its turn */
};

struct walk_request {
	uv_work_t work;
	struct engine *engine;
	struct walk_request *next;
	uint64_t asked;
	size_t n;
	struct reread_item items[REREAD_BATCH];
};

static uint64_t thread_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * CLOCK_NSEC_PER_SEC + ts.tv_nsec;
}

static void reread_work(uv_work_t *work)
{
	struct walk_request *r = work->data;
	uint64_t begin = thread_ns(), before = begin, now;
	struct reread_item *it;

	for (it = r->items; it < r->items + r->n; it++) {
		if (before - begin > REREAD_SLICE_NS)
			break;
		it->err = pm_maps_read("/proc", it->item.tgid, &it->rec->maps);
		now = thread_ns();
		it->cpu_ns = now - before;
		before = now;
	}
}

static void reread_free(struct walk_request *r)
{
	for (size_t i = 0; r && i < r->n; i++)
		free(r->items[i].rec);
	free(r);
}

static void reread_next(struct engine *e, uint64_t now);

static void reread_done(uv_work_t *work, int status)
{
	struct walk_request *r = work->data, **p;
	struct engine *e = r->engine;
	struct reread_item *it;

	for (p = &e->walks; *p != r; p = &(*p)->next)
		;
	*p = r->next;
	for (it = r->items; it < r->items + r->n; it++) {
		walkqueue_charge(e->rereads, &it->item, it->cpu_ns);
		if (it->err == -EAGAIN && !status)
			walkqueue_add(e->rereads, &it->item);
		if (it->err || status)
			continue;
		pump_push(e->pump, PUMP_WALK, it->rec->maps.begin, it->rec,
			  walk_size(it->rec));
		it->rec = NULL;
	}
	reread_free(r);
	reread_next(e, clock_boottime_ns());
}

static bool reread_busy(const struct engine *e, uint64_t now)
{
	const struct walk_request *r;
	size_t n = 0;

	for (r = e->walks; r; r = r->next, n++)
		if (now - r->asked < REREAD_PATIENCE_NS)
			return true;
	return n >= REREAD_WORKERS;
}

/* Has a worker read those whose turn it is. The manager asks for others again. */
static void reread_next(struct engine *e, uint64_t now)
{
	struct walkqueue_item items[REREAD_BATCH];
	struct walk_request *r;
	uint32_t uid;
	size_t n, i;

	if (!e->rereads || e->doubts.over || reread_busy(e, now))
		return;
	n = walkqueue_take(e->rereads, now, items, REREAD_BATCH);
	if (!n && walkqueue_limits(e->rereads, &uid))
		limits_note(&e->limits, uid, LIMIT_REREADS, 1);
	r = n ? calloc(1, sizeof(*r)) : NULL;
	if (!r)
		return;
	for (i = 0; i < n; i++) {
		r->items[r->n].item = items[i];
		r->items[r->n].err = -EAGAIN;
		r->items[r->n].rec = calloc(1, sizeof(*r->items->rec));
		if (r->items[r->n].rec)
			r->items[r->n++].rec->kind = WALK_MAPS;
	}
	r->engine = e;
	r->asked = now;
	r->work.data = r;
	if (uv_queue_work(e->loop, &r->work, reread_work, reread_done)) {
		reread_free(r);
		return;
	}
	r->next = e->walks;
	e->walks = r;
}

static void reread_add(struct engine *e, const struct walkqueue_item *item)
{
	if (!e->rereads)
		e->rereads = walkqueue_new();
	if (e->rereads)
		walkqueue_add(e->rereads, item);
}

/*
 * Asked from inside the pump, so the reading is a worker's. It begins at once, or
 * when the one under way is over.
 */
void walk_want_maps(void *arg, const struct pm_want *want)
{
	struct walkqueue_item item = { want->key.tgid, want->uid, want->flood };
	struct engine *e = arg;

	reread_add(e, &item);
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
		item = (struct walkqueue_item){ info.key.tgid, info.uid,
						pm_image_floods(e->pm, img) };
		reread_add(e, &item);
	}
}

void walk_doubts(struct engine *e, uint64_t now)
{
	struct walk_doubts *d = &e->doubts;

	if (d->next && now >= d->next) {
		reread_doubts(e);
		d->began = now;
		d->next = --d->rounds ? now + REREAD_PAUSE_NS : 0;
	}
	reread_next(e, now);
}

uint64_t walk_reread_watermark(const struct engine *e, uint64_t now)
{
	const struct walk_request *r;
	uint64_t least = now;

	for (r = e->walks; r; r = r->next)
		if (now - r->asked < REREAD_PATIENCE_NS)
			least = MIN(least, r->asked);
	return least;
}

void walk_reread_stats(const struct engine *e, struct walkqueue_stats *out)
{
	memset(out, 0, sizeof(*out));
	if (e->rereads)
		walkqueue_get_stats(e->rereads, out);
}

/* Waits for the workers, which hold pointers into the engine. */
void walk_cancel(struct engine *e)
{
	struct walk_request *r;

	e->doubts.over = true;
	for (r = e->walks; r; r = r->next)
		uv_cancel((uv_req_t *)&r->work);
	while (e->walks)
		uv_run(e->loop, UV_RUN_ONCE);
	walkqueue_free(e->rereads);
	e->rereads = NULL;
}
