/* SPDX-License-Identifier: Apache-2.0 */
/*
 * late: frames of executable memory that got no name. A runtime may write its perf map as
 * its process ends (java -XX:+DumpPerfMapAtExit): when all samples of the process have
 * come, and at the end of a recording, these are requested once more, by what the map has
 * then. Only for recordings, whose profile is written after that.
 */
#ifndef TRACEHANDLER_LATE_H
#define TRACEHANDLER_LATE_H

#include "tracehandler/cache.h"

#define TRACE_LATE_FRAMES \
	65536 /* as many as the cache has; others stay without a name */

struct trace_late {
	struct pm *pm; /* NULL: no recording; frames are not kept */
	struct trace_cache *cache;
	/* As trace_opts.named. */
	void (*named)(void *arg, const struct reporter_frame *frame);
	void *arg;
	struct hash memories; /* struct late_memory */
	size_t n; /* frames */
	uint64_t pending; /* of them, requested and not answered */
};

int trace_late_init(struct trace_late *l); /* 0 or -ENOMEM */
/* Cancels the requests. The cache is still there. */
void trace_late_fini(struct trace_late *l);

/* This frame has no name. */
void trace_late_add(struct trace_late *l, struct trace_frame *f);
/* Requests the names of the frames of 'memory' (PM_EXE_ANON); NULL: of all. */
void trace_late_ask(struct trace_late *l, struct pm_exe *memory);

#endif /* TRACEHANDLER_LATE_H */
