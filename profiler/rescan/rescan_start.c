// SPDX-License-Identifier: Apache-2.0
/* rescan_start: see profiler/rescan/rescan_start.h. */
#include <errno.h>
#include <stdlib.h>

#include "base/base.h"
#include "profiler/rescan/rescan_start.h"

/*
 * Five seconds of a busy host of 8 CPUs; a full ring at the next drain is still
 * below what the pump refuses.
 */
#define RESCAN_START_BYTES (12 << 20) /* profiler/pump.c has room for 16 */
/*
 * The records held. Large ones have half of it, so that a few processes do not
 * end the scan for all others.
 */
#define RESCAN_START_HELD ((size_t)64 << 20)
#define RESCAN_START_LARGE ((size_t)256 << 10)

struct seen {
	uint64_t time;
	uint32_t tgid;
	uint32_t pad;
};

struct held {
	void *rec;
	struct pm_maps *maps;
};

struct rescan_start {
	uint64_t since, until;
	struct held *held;
	size_t n, cap;
	size_t bytes, large_bytes; /* held, and of large ones */
	struct seen *seen; /* sorted at the end, by process and time */
	size_t nseen, seen_cap;
	bool lost;
};

struct rescan_start *rescan_start_new(uint64_t since)
{
	struct rescan_start *s = calloc(1, sizeof(*s));

	if (s)
		s->since = s->until = since;
	return s;
}

static void rescan_start_saw(struct rescan_start *s, uint32_t tgid,
			     uint64_t time)
{
	if (VECTOR_ROOM(s->seen, s->nseen, s->seen_cap)) {
		s->lost = true;
		return;
	}
	s->seen[s->nseen++] = (struct seen){ .tgid = tgid, .time = time };
}

void rescan_start_lost(struct rescan_start *s)
{
	s->lost = true;
}

void rescan_start_saw_map(struct rescan_start *s, const struct pm_map_event *ev)
{
	if (!ev || (ev->kind == PM_MAP_LOST && !ev->tgid))
		rescan_start_lost(s);
	else
		rescan_start_saw(s, ev->tgid, ev->time);
}

void rescan_start_saw_event(struct rescan_start *s,
			    const struct quark_event *ev)
{
	if (!ev || ev->events & QUARK_EV_GAP || !ev->process)
		rescan_start_lost(s);
	else if (ev->events & (QUARK_EV_FORK | QUARK_EV_EXEC | QUARK_EV_EXIT |
			       QUARK_EV_REAP))
		rescan_start_saw(s, ev->process->pid, ev->boottime);
}

int rescan_start_add(struct rescan_start *s, void *rec, struct pm_maps *m,
		     size_t size)
{
	bool large = size > RESCAN_START_LARGE;
	int err;

	if (large && s->large_bytes + size > RESCAN_START_HELD / 2)
		return -ENOBUFS;
	err = VECTOR_ROOM(s->held, s->n, s->cap);
	if (err)
		return err;
	s->bytes += size;
	s->large_bytes += large ? size : 0;
	s->held[s->n++] = (struct held){ rec, m };
	s->until = MAX(s->until, m->end);
	return 0;
}

uint64_t rescan_start_until(const struct rescan_start *s)
{
	return s->until;
}

bool rescan_start_full(const struct rescan_start *s, uint64_t waiting_bytes)
{
	return waiting_bytes > RESCAN_START_BYTES ||
	       s->bytes > RESCAN_START_HELD;
}

static int rescan_seen_cmp(const void *a, const void *b)
{
	const struct seen *x = a, *y = b;

	if (x->tgid != y->tgid)
		return x->tgid < y->tgid ? -1 : 1;
	return x->time < y->time ? -1 : x->time > y->time;
}

/* The streams reported something between 'since' and the end of the reading. */
static bool rescan_start_changed(const struct rescan_start *s,
				 const struct pm_maps *m)
{
	struct seen from = { .tgid = m->tgid, .time = s->since };
	size_t i;

	VECTOR_SEARCH(i, s->nseen, rescan_seen_cmp(&s->seen[i], &from) < 0);
	return i < s->nseen && s->seen[i].tgid == m->tgid &&
	       s->seen[i].time <= m->end;
}

void rescan_start_end(struct rescan_start *s,
		      void (*fn)(void *arg, void *rec, const struct pm_maps *m),
		      void *arg)
{
	size_t i;

	if (s->nseen)
		qsort(s->seen, s->nseen, sizeof(*s->seen), rescan_seen_cmp);
	for (i = 0; i < s->n; i++) {
		if (!s->lost && !rescan_start_changed(s, s->held[i].maps))
			s->held[i].maps->begin = s->since;
		fn(arg, s->held[i].rec, s->held[i].maps);
	}
	free(s->held);
	free(s->seen);
	free(s);
}
