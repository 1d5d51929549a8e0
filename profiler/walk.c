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
#include <unistd.h>

#include "base/base.h"
#include "profiler/walk_internal.h"

/* So many processes are walked between two drains of the rings. */
#define WALK_BATCH 64
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

uint64_t walk_watermark(struct engine *e, uint64_t now)
{
	/* Processes go on, what they map waits. */
	return MIN(e->start ? e->begin : now, walk_reread_watermark(e, now));
}
