// SPDX-License-Identifier: Apache-2.0
/* clock: see base/clock.h. */
#include <time.h>

#include "base/clock.h"

static uint64_t clock_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return (uint64_t)ts.tv_sec * CLOCK_NSEC_PER_SEC + ts.tv_nsec;
}

uint64_t clock_boottime_ns(void)
{
	return clock_ns(CLOCK_BOOTTIME);
}

/*
 * The two clocks cannot be read at one instant. The narrowest of a few
 * bracketed readings keeps a preemption between them out of the result.
 */
int64_t clock_wall_offset_ns(void)
{
	uint64_t best = UINT64_MAX, before, after, wall;
	int64_t offset = 0;
	int i;

	for (i = 0; i < 3; i++) {
		before = clock_ns(CLOCK_BOOTTIME);
		wall = clock_ns(CLOCK_REALTIME);
		after = clock_ns(CLOCK_BOOTTIME);
		if (after - before >= best)
			continue;
		best = after - before;
		offset = (int64_t)(wall - (before + best / 2));
	}
	return offset;
}
