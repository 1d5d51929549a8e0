/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names: requests for the names of frames. One request an executable is under way
 * at a time; frames that come meanwhile are collected and go together when it is
 * answered. Calls the cache and the process manager only.
 */
#ifndef TRACEHANDLER_NAMES_H
#define TRACEHANDLER_NAMES_H

#include "tracehandler/cache.h"

struct trace_names {
	struct hash asks; /* struct trace_ask, by exe */
	struct trace_cache *cache;
	void (*settled)(void *arg);
	void *arg;
};

/*
 * 'settled' is called when frames have got their names, or will not get any: they
 * are not pending any more. 0 or -ENOMEM.
 */
int trace_names_init(struct trace_names *ns, struct trace_cache *cache,
		     void (*settled)(void *arg), void *arg);
/* Drops all references to frames; later answers are ignored. */
void trace_names_fini(struct trace_names *ns);

/* Adds a pending frame to the next request for its exe. 0 or -ENOMEM. */
int trace_names_want(struct trace_names *ns, struct trace_frame *f);
/* Sends the requests that were collected. */
void trace_names_send(struct trace_names *ns);
/* The text of a frame without a name; f->plain is set, or NULL. */
void trace_names_plain(struct trace_frame *f);

#endif /* TRACEHANDLER_NAMES_H */
