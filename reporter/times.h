/* SPDX-License-Identifier: Apache-2.0 */
/*
 * times: the time of each sample of a window, so that the sums of a part of the
 * window can be computed again. A sample has five numbers of variable length, 6
 * to 8 bytes for one of the CPU clock; a window has TIMES_MAX bytes at most. No
 * locks: used by the thread that owns the window.
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
	int64_t step; /* of TIMES_STEP_NS since the window's begin; < 0: late */
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
	uint64_t dropped; /* samples without room, whose times are unknown */
	int64_t step; /* of the sample added last */
	int64_t min, max; /* steps; undefined while 'count' is 0 */
};

/* The steps from 'begin' to 'time', rounded down. */
int64_t times_step(uint64_t begin, uint64_t time);
/* Appends 's', or counts it in 'dropped'. Allocates from 'a'. */
void times_add(struct times *t, struct arena *a, const struct times_sample *s);

struct times_cursor {
	const struct times_block *next;
	struct cursor in; /* the current block */
	int64_t step;
};

/* The first times_next() returns the first sample. */
void times_begin(const struct times *t, struct times_cursor *c);
/* The next sample in the order of addition; false: end. */
bool times_next(struct times_cursor *c, struct times_sample *out);

#endif /* REPORTER_TIMES_H */
