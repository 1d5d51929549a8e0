/* SPDX-License-Identifier: Apache-2.0 */
/*
 * times: when each sample of a window was taken, kept beside the window's sums
 * so that the sums of a part of its time can be computed again. A sample takes
 * five numbers of variable length, 6 to 8 bytes for one of the CPU clock; the
 * list of a window is limited to TIMES_MAX bytes. Used by whichever thread owns
 * the window.
 */
#ifndef REPORTER_TIMES_H
#define REPORTER_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"

#define TIMES_STEP_NS (10 * CLOCK_NSEC_PER_MSEC)
#define TIMES_MAX (16 << 20)

struct times_sample {
	int64_t step; /* TIMES_STEP_NS since the window's begin; < 0: late */
	uint32_t sample; /* window_sample.id */
	uint32_t cpu;
	uint32_t event;
	uint64_t value; /* as in reporter_trace */
};

struct times_block;

struct times {
	struct times_block *head, *tail; /* in the window's arena */
	size_t bytes; /* of all blocks */
	uint64_t count;
	uint64_t dropped; /* samples without room: their times are unknown */
	int64_t step; /* of the sample added last */
	int64_t min, max; /* steps; of no meaning while 'count' is 0 */
};

/* The steps from 'begin' to 'time', rounded down. */
int64_t times_step(uint64_t begin, uint64_t time);
/* Appends 's', or counts it in 'dropped'. Blocks are taken from 'a'. */
void times_add(struct times *t, struct arena *a, const struct times_sample *s);

struct times_cursor {
	const struct times_block *block;
	size_t at;
	int64_t step;
};

/* The first sample comes with the first times_next(). */
void times_begin(const struct times *t, struct times_cursor *c);
/* Next in the order they were added in; false at the end. */
bool times_next(struct times_cursor *c, struct times_sample *out);

#endif /* REPORTER_TIMES_H */
