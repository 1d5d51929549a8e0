/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names: requests for the names of frames, which the process manager collects by
 * executable, and their answers. After an answer the waits are checked: its frames
 * are no longer pending.
 */
#ifndef TRACEHANDLER_NAMES_H
#define TRACEHANDLER_NAMES_H

#include "tracehandler/cache.h"
#include "tracehandler/late.h"
#include "tracehandler/wait.h"

struct trace_names {
	struct pm *pm;
	struct trace_cache *cache;
	struct trace_waits *waits; /* of traces for names */
	struct trace_late *late;
	uint64_t pending; /* frames whose requests are not answered */
};

/* Cancels the requests, which drops their references to frames. */
void trace_names_fini(struct trace_names *ns);

/* Requests the name of a pending frame, for a sample of 'time'. 0 or -ENOMEM. */
int trace_names_want(struct trace_names *ns, struct trace_frame *f,
		     uint64_t time);
/*
 * Sets f->plain, the text of a frame without a name: of its function, if its start is
 * known, and else of its address; one text for all executable memory of a process.
 */
void trace_names_plain(struct trace_frame *f);

#endif /* TRACEHANDLER_NAMES_H */
