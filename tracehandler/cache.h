/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache: what is known of a frame, kept by its place, for all processes.
 *
 * A frame is refcounted: the cache holds one reference to each it lists, who
 * works with a frame holds another. So one that is put out while a trace waits
 * for its name stays whole for that trace, and is merely not found any more.
 * Frames of one function share its texts.
 */
#ifndef TRACEHANDLER_CACHE_H
#define TRACEHANDLER_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/base.h"
#include "processmanager/processmanager.h"
#include "reporter/reporter.h"

struct trace_func {
	struct hash_node node;
	const struct pm_exe *exe; /* or NULL; the key, with what 'shown' has */
	unsigned int refs;
	struct reporter_function shown;
	char text[]; /* of shown */
};

struct trace_frame {
	struct hash_node node;
	struct reporter_place
		place; /* a reference to its exe: a key by address */
	uint64_t vaddr;
	/* As in reporter_frame, each function a trace_func's; 0: no name. */
	struct reporter_line *lines; /* or 'line', if it is one */
	struct reporter_line line;
	uint32_t nlines;
	char *plain; /* what it is called without one; NULL until asked for */
	unsigned int refs;
	uint32_t slot; /* in the cache, while it is listed */
	bool pending; /* whether there is a name is not known yet */
	bool listed;
	bool used; /* since the hand passed by */
};

struct trace_cache {
	struct hash frames;
	struct hash funcs;
	struct trace_frame **slots;
	size_t max, count, hand;
	uint64_t evicted;
	uint64_t forgotten; /* by trace_frame_forget() */
};

int trace_cache_init(struct trace_cache *c, size_t max); /* 0 or -ENOMEM */
/* Every reference but the cache's own must have been given back. */
void trace_cache_fini(struct trace_cache *c);

/* Identifies code of an executable, as long as the executable is held. */
static inline uint64_t trace_cache_key(struct pm_exe *exe, uint64_t offset)
{
	const struct reporter_place place = { .kind = REPORTER_PLACE_EXE,
					      .exe = exe,
					      .id = offset };

	return reporter_place_hash(&place);
}

/* The frame, with a reference, made pending if it is new. NULL: no memory. */
struct trace_frame *trace_cache_get(struct trace_cache *c,
				    const struct reporter_place *place,
				    bool *fresh);
void trace_frame_put(struct trace_cache *c, struct trace_frame *f);

/* What was found out. No memory for the name: it goes without one. */
void trace_frame_known(struct trace_cache *c, struct trace_frame *f,
		       const struct symbolizer_symbol *sym);
/* It has no name, and that is all there is to know; takes over 'plain'. */
void trace_frame_plain(struct trace_frame *f, uint64_t vaddr, char *plain);
/* No longer to be found, so that it is asked for anew next time. */
void trace_frame_forget(struct trace_cache *c, struct trace_frame *f);

#endif /* TRACEHANDLER_CACHE_H */
