/* SPDX-License-Identifier: Apache-2.0 */
/*
 * repeats: traces that came more than once, whole. Most samples of a busy host are
 * stacks that it had before; such a one is found by one lookup, where its frames
 * would take two each, here and in the window.
 *
 * A stack is a sequence of keys, trace_cache_key() of each frame. It is kept from
 * its second sample on, if all its frames are code with a final name. Bounded by
 * bytes; when it is full a clock's hand looks for one that was not used lately.
 */
#ifndef TRACEHANDLER_REPEATS_H
#define TRACEHANDLER_REPEATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "reporter/reporter.h"
#include "tracehandler/cache.h"

#define TRACE_REPEATS_FRAMES 256 /* deeper ones are rare, and large */
#define TRACE_REPEATS_BYTES (3 << 20)
#define TRACE_REPEATS_SEEN 4096 /* hashes of stacks that came once */

/* What stands for the functions of a frame that has none. */
struct trace_unnamed {
	struct reporter_line line;
	struct reporter_function function;
};

struct trace_repeat {
	struct hash_node node;
	struct reporter_memo memo;
	uint64_t forgotten; /* of the cache, when it was made */
	uint32_t n;
	uint32_t unnamed; /* frames */
	bool used; /* since the hand passed by */
	struct reporter_frame *out;
	struct trace_frame **frames; /* a reference each */
	uint64_t keys[]; /* then out, frames, struct trace_unnamed of 'unnamed' */
};

struct trace_repeats {
	struct hash known;
	struct trace_repeat **slots;
	size_t count, max, hand;
	size_t bytes, max_bytes;
	uint32_t *seen;
	/* The stack at hand. */
	uint64_t keys[TRACE_REPEATS_FRAMES];
	size_t n;
	uint64_t hash;
};

int trace_repeats_init(struct trace_repeats *s, size_t max_bytes);
/* Before the cache's. */
void trace_repeats_fini(struct trace_repeats *s, struct trace_cache *c);

/*
 * That of the first 'n' of s->keys, or NULL. '*again': it is not kept, but it came
 * before. Good until the next call.
 */
struct trace_repeat *trace_repeats_find(struct trace_repeats *s,
					struct trace_cache *c, size_t n,
					bool *again);
/*
 * Keeps the stack that was looked up last; 'out' says what its frames are called, of
 * which 'unnamed' have no function; their lines are those of a struct trace_unnamed. Without memory it does not.
 */
void trace_repeats_add(struct trace_repeats *s, struct trace_cache *c,
		       struct trace_frame **frames,
		       const struct reporter_frame *out, size_t unnamed);

#endif /* TRACEHANDLER_REPEATS_H */
