// SPDX-License-Identifier: Apache-2.0
/* clock: see base/clock.h. */
#include <time.h>

#include "base/clock.h"

static uint64_t clock_read(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * CLOCK_NSEC_PER_SEC + ts.tv_nsec;
}

uint64_t clock_boottime_ns(void)
{
	return clock_read(CLOCK_BOOTTIME);
}

uint64_t clock_awake_ns(void)
{
	return clock_read(CLOCK_MONOTONIC);
}

/*
 * How far a clock is ahead of the boot clock. The two cannot be read at one
 * instant: the narrowest of a few bracketed readings keeps a preemption between
 * them out of the result.
 */
static int64_t clock_offset_ns(clockid_t id)
{
	uint64_t best = UINT64_MAX, before, after, other;
	int64_t offset = 0;
	int i;

	for (i = 0; i < 3; i++) {
		before = clock_read(CLOCK_BOOTTIME);
		other = clock_read(id);
		after = clock_read(CLOCK_BOOTTIME);
		if (after - before >= best)
			continue;
		best = after - before;
		offset = (int64_t)(other - (before + best / 2));
	}
	return offset;
}

int64_t clock_wall_offset_ns(void)
{
	return clock_offset_ns(CLOCK_REALTIME);
}

/* One reading within the other's error is no sleep: never below zero. */
uint64_t clock_slept_ns(void)
{
	int64_t ahead = clock_offset_ns(CLOCK_MONOTONIC);

	return ahead < 0 ? -ahead : 0;
}
