// SPDX-License-Identifier: Apache-2.0
/* memory: see profiler/memory/memory.h. */
#include <malloc.h>

#include "base/base.h"
#include "profiler/memory/memory.h"

/* A control group is also charged for kernel memory and for files being read. */
#define MEMORY_CGROUP_SHARE 8
#define MEMORY_LIMITS_NS (10 * CLOCK_NSEC_PER_SEC)
/*
 * A level is left when memory has been below its threshold for that long, which doubles
 * while the next rise follows soon: caches that do not fit are not filled all the time.
 */
#define MEMORY_BACK_NS (5 * CLOCK_NSEC_PER_SEC)
#define MEMORY_BACK_MOST_NS (320 * CLOCK_NSEC_PER_SEC)
#define MEMORY_SOON_NS (60 * CLOCK_NSEC_PER_SEC)
/* Below the first level memory is looked at often from there on, in percent. */
#define MEMORY_NEAR_PERCENT 60
/* Of the ceiling: less is not worth the work to have it again. */
#define MEMORY_MATTERS 8

/* Percent of the ceiling from which each level holds. */
static const unsigned int memory_from[MEMORY_LEVELS] = { 70, 80, 90 };

void memory_set_max(struct memory *m, uint64_t cgroup_limit)
{
	uint64_t rest = cgroup_limit / MEMORY_CGROUP_SHARE + m->rings;
	uint64_t share = cgroup_limit - MIN(rest, cgroup_limit - 1);

	m->cgroup =
		cgroup_limit != UINT64_MAX && (!m->option || share < m->option);
	m->max = m->cgroup ? share : m->option;
}

static bool memory_above(const struct memory *m, unsigned int percent)
{
	return m->max && m->used / percent >= m->max / 100;
}

static unsigned int memory_wanted(const struct memory *m)
{
	unsigned int level = 0;

	while (level < MEMORY_LEVELS && memory_above(m, memory_from[level]))
		level++;
	return level;
}

static void memory_rise(struct memory *m, unsigned int level, uint64_t now)
{
	if (!m->lowered || now - m->lowered > MEMORY_SOON_NS)
		m->back = MEMORY_BACK_NS;
	else
		m->back = MIN(2 * m->back, MEMORY_BACK_MOST_NS);
	for (; m->level < level; m->level++)
		m->shed[m->level]++;
}

bool memory_decide(struct memory *m, uint64_t now)
{
	unsigned int from = m->level, wanted = memory_wanted(m);

	if (wanted >= from)
		m->above = now;
	if (wanted > from) {
		memory_rise(m, memory_above(m, 100) ? MEMORY_LEVELS : from + 1,
			    now);
	} else if (wanted < from && now - m->above >= m->back) {
		m->level = from - 1;
		m->above = m->lowered = now;
	}
	return m->level != from;
}

bool memory_matters(const struct memory *m, uint64_t bytes)
{
	return bytes > m->max / MEMORY_MATTERS;
}

bool memory_hurries(const struct memory *m)
{
	return memory_above(m, MEMORY_NEAR_PERCENT);
}

static void memory_look(struct memory *m)
{
	memory_measure(&memory_this_host, &m->usage);
	m->used = m->usage.own + m->usage.others;
}

bool memory_tick(struct memory *m, uint64_t now)
{
	if (now >= m->limits_at) {
		m->limits_at = now + MEMORY_LIMITS_NS;
		memory_set_max(m, memory_cgroup_limit(&memory_this_host));
	}
	memory_look(m);
	/* What is free in the heap is given back first. */
	if (m->level < memory_wanted(m) ||
	    (m->level && now - m->trimmed >= CLOCK_NSEC_PER_SEC)) {
		m->trimmed = now;
		malloc_trim(0);
		memory_look(m);
	}
	m->highest = MAX(m->highest, m->used);
	return memory_decide(m, now);
}
