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
 * How far a clock is ahead of the boot clock. The two cannot be read at one instant:
 * of a few bracketed readings the narrowest counts, which no preemption widened.
 */
static int64_t clock_offset_ns(clockid_t id)
{
	uint64_t best = UINT64_MAX, before, after, other;
	int64_t offset = 0;

	for (int i = 0; i < 3; i++) {
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

/* Never below zero: within the error of the readings there was no suspend. */
uint64_t clock_slept_ns(void)
{
	int64_t ahead = clock_offset_ns(CLOCK_MONOTONIC);

	return ahead < 0 ? -ahead : 0;
}
