/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache: frames by place, for all processes, each with its functions.
 *
 * Frames are refcounted: the cache holds one reference to each frame it lists,
 * each user of a frame another. A frame that is evicted while a trace waits for
 * its name stays valid for that trace; only lookups no longer find it. Frames of
 * one function share its strings.
 */
#ifndef TRACEHANDLER_CACHE_H
#define TRACEHANDLER_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "base/base.h"
#include "processmanager/processmanager.h"
#include "reporter/reporter.h"

struct trace_func {
	struct hash_node node;
	const struct pm_exe *exe; /* or NULL; part of the key, as is 'shown' */
	unsigned int refs;
	struct reporter_function shown;
	char text[]; /* strings of 'shown' */
};

struct trace_frame {
	struct hash_node node;
	TAILQ_ENTRY(trace_frame) link; /* while 'listed' */
	struct reporter_place place; /* with a reference to its exe, if any */
	uint64_t vaddr;
	uint64_t start; /* of its unnamed function; 0: not known */
	uint64_t since, until; /* times of samples that it is valid for */
	/* As in reporter_frame; each function is that of a trace_func. */
	struct reporter_line *lines; /* &line if there is one */
	struct reporter_line line; /* without a name: that of 'plain' */
	uint32_t nlines; /* 0: no name */
	struct trace_func *plain; /* text in place of a name; NULL: not made */
	struct trace_meet *meet; /* while several names are requested */
	unsigned int refs;
	uint64_t ksyms; /* of the kernel: number of its last known change */
	bool pending; /* its name was requested */
	bool given; /* 'plain' came with its place */
	bool listed; /* lookups find it */
	bool used; /* since it was last considered for eviction */
};

/* What the sources of a frame's name have answered, if there are several. */
struct trace_meet {
	uint32_t asked; /* answers to come */
	uint64_t before, after; /* the least, as in struct symbolizer_symbol */
	uint64_t from; /* what the frame has is from then; 0: not known */
};

struct trace_cache {
	struct hash frames; /* by place, as many as 'list' */
	struct hash funcs;
	TAILQ_HEAD(, trace_frame) list; /* in the order of eviction */
	size_t max; /* frames */
	uint64_t evicted;
	uint64_t forgotten; /* changes by which a frame may get another name */
};

int trace_cache_init(struct trace_cache *c, size_t max); /* 0 or -ENOMEM */
/* All references but the cache's own have been dropped. */
void trace_cache_fini(struct trace_cache *c);

/* Sets the number of frames, at least 1, and evicts what is above it. */
void trace_cache_room(struct trace_cache *c, size_t max);

/* Identifies code of an executable, as long as the executable is held. */
static inline uint64_t trace_cache_key(struct pm_exe *exe, uint64_t offset,
				       uint32_t version)
{
	const struct reporter_place place = { .kind = REPORTER_PLACE_EXE,
					      .version = version,
					      .exe = exe,
					      .id = offset };

	return reporter_place_hash(&place);
}

/*
 * The frame for a sample of 'time', with a reference. A new one is pending; and, if
 * 'timed', for this time only, until its name says for which. NULL: no memory.
 */
struct trace_frame *trace_cache_get(struct trace_cache *c,
				    const struct reporter_place *place,
				    uint64_t time, bool timed, bool *fresh);
void trace_frame_put(struct trace_cache *c, struct trace_frame *f);

/* Sets the name and ends 'pending'. Without memory the frame gets no name. */
void trace_frame_known(struct trace_cache *c, struct trace_frame *f,
		       const struct symbolizer_symbol *sym);
/* One of 'n' sources will answer; trace_frame_meet() takes the answers. 0 or -ENOMEM. */
int trace_frame_expect(struct trace_frame *f, uint32_t n);
/*
 * The answer of one of them, or NULL. The name is that of the code which was there last at
 * the time of the sample; one without a time counts if no other source has a name. The
 * last answer ends 'pending'.
 */
void trace_frame_meet(struct trace_cache *c, struct trace_frame *f,
		      const struct symbolizer_symbol *sym);
/*
 * Sets the text in place of a name, a malloc'ed string (NULL: no memory). With 'given' it
 * stays when there is no name.
 */
void trace_frame_plain(struct trace_frame *f, char *text);
/* Frames may get other names than in stacks that were kept. */
void trace_cache_changed(struct trace_cache *c);
/* Forgets the frames of all executables with this build id. */
void trace_cache_renew(struct trace_cache *c, const uint8_t *build_id,
		       size_t len);
/* Removes the frame from the cache; its name is requested again next time. */
void trace_frame_forget(struct trace_cache *c, struct trace_frame *f);

#endif /* TRACEHANDLER_CACHE_H */
