/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names: requests for the names of frames, which the process manager collects by
 * executable, and their answers. Calls the cache and the process manager only.
 */
#ifndef TRACEHANDLER_NAMES_H
#define TRACEHANDLER_NAMES_H

#include "tracehandler/cache.h"

struct trace_names {
	struct pm *pm;
	struct trace_cache *cache;
	void (*settled)(void *arg);
	void *arg;
};

/*
 * 'settled' is called when frames have got their names, or will not get any: they
 * are not pending any more.
 */
void trace_names_init(struct trace_names *ns, struct pm *pm,
		      struct trace_cache *cache, void (*settled)(void *arg),
		      void *arg);
/* Cancels the requests, which drops their references to frames. */
void trace_names_fini(struct trace_names *ns);

/* Requests the name of a pending frame. 0 or -ENOMEM. */
int trace_names_want(struct trace_names *ns, struct trace_frame *f);
/* The text of a frame without a name; f->plain is set, or NULL. */
void trace_names_plain(struct trace_frame *f);

#endif /* TRACEHANDLER_NAMES_H */
