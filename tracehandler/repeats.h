/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeats: whole traces that came more than once. Most samples of a busy host have
 * a stack that came before; it is found by one lookup, where its frames would take
 * two each, here and in the window.
 *
 * A stack is identified by the trace_cache_key() of each frame. It is kept from its
 * second sample on if all its frames are code with a final name. Bounded by bytes;
 * when full, the oldest stack is evicted that was not used since it was considered
 * last.
 */
#ifndef TRACEHANDLER_REPEATS_H
#define TRACEHANDLER_REPEATS_H

#include "tracehandler/cache.h"

#define TRACE_REPEATS_FRAMES 256 /* deeper stacks are rare, and large */
#define TRACE_REPEATS_SEEN 4096 /* hashes of stacks that came once */

struct trace_repeat {
	struct hash_node node;
	TAILQ_ENTRY(trace_repeat) link;
	struct reporter_memo memo;
	uint64_t forgotten; /* of the cache, when it was made */
	uint32_t n;
	uint32_t unnamed; /* frames without a function */
	bool used; /* since it was last considered for eviction */
	struct reporter_frame *out;
	struct trace_frame **frames; /* a reference each */
	uint64_t keys[]; /* n; followed by n of 'out' and n of 'frames' */
};

struct trace_repeats {
	struct trace_cache *cache;
	struct hash known;
	TAILQ_HEAD(, trace_repeat) list; /* in the order of eviction */
	size_t bytes, room;
	uint32_t seen[TRACE_REPEATS_SEEN];
	/* The current stack. */
	uint64_t keys[TRACE_REPEATS_FRAMES];
	size_t n;
	uint64_t hash;
};

/* The cache is borrowed; it has to outlive them. 0 or -ENOMEM. */
int trace_repeats_init(struct trace_repeats *s, struct trace_cache *c);
void trace_repeats_fini(struct trace_repeats *s);

/*
 * The stack of the first 'n' of s->keys, or NULL, then with '*again' set if it came
 * before. Valid until the next call.
 */
struct trace_repeat *trace_repeats_find(struct trace_repeats *s, size_t n,
					bool *again);
/*
 * Keeps the stack that was looked up last, if the cache still lists its frames and
 * there is memory. 'out' is what is reported of them; 'unnamed' of them have no
 * function.
 */
void trace_repeats_add(struct trace_repeats *s, struct trace_frame **frames,
		       const struct reporter_frame *out, size_t unnamed);
/* Sets the limit of bytes to 1 / 2^halvings of the usual one, and evicts. */
void trace_repeats_room(struct trace_repeats *s, unsigned int halvings);

#endif /* TRACEHANDLER_REPEATS_H */
