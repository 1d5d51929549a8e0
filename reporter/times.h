/* SPDX-License-Identifier: Apache-2.0 */
/*
 * times: the time of each sample of a window, so that the sums of a part of the
 * window can be computed again. A sample has five numbers of variable length, 6
 * to 8 bytes for one of the CPU clock, and one more if it has ids of a trace; a window has TIMES_MAX bytes at most. No
 * locks: used by the thread that owns the window.
 */
#ifndef REPORTER_TIMES_H
#define REPORTER_TIMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/base.h"

#define TIMES_STEP_NS (10 * CLOCK_NSEC_PER_MSEC)
#define TIMES_MAX (16 << 20)

struct times_sample {
	int64_t step; /* of TIMES_STEP_NS since the window's begin; < 0: late */
	uint32_t sample; /* window_sample.id */
	uint32_t cpu;
	uint32_t event;
	uint64_t value; /* as in reporter_trace */
	uint32_t ids; /* times_pair.id; 0: none */
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

/* --- ids of traces ------------------------------------------------------------ */

/*
 * The traces and spans that the samples belong to, each pair once. Any program can have
 * as many as it likes, so their number is limited.
 */
#define IDS_MAX 65536 /* pairs of a window */
#define IDS_TRACE 16
#define IDS_SPAN 8
/* Trace, span, root span (of tracers that have one), flags, and 8 bytes of zero. */
#define IDS_PAIR 41
#define IDS_FLAGS_AT 32

struct times_pair {
	struct hash_node node;
	STAILQ_ENTRY(times_pair) entry;
	uint32_t id; /* from 1, in the order of the list */
	uint8_t bytes[IDS_PAIR];
};

struct times_ids {
	struct hash by_bytes;
	STAILQ_HEAD(, times_pair) list; /* in the window's arena */
};

/* 0 or -ENOMEM. */
int times_ids_init(struct times_ids *ids);
void times_ids_fini(struct times_ids *ids);
/* The id of a pair, which is allocated from 'a' if it is new. 0: there is no room. */
uint32_t times_ids_get(struct times_ids *ids, struct arena *a,
		       const uint8_t trace[IDS_TRACE],
		       const uint8_t span[IDS_SPAN], uint8_t flags);

#define IDS_HEX (2 * IDS_TRACE + 1)
/* An id in hex, with its NUL. */
void times_ids_hex(const uint8_t *id, size_t len, char out[IDS_HEX]);

#endif /* REPORTER_TIMES_H */
