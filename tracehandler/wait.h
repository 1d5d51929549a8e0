/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait: samples and traces that miss something, in one list in the order of
 * sample times. The head says which time is still needed; under the byte limit
 * the oldest ends first. What is missing, and what follows, is the business of
 * the kind: this file calls nothing else of the part.
 */
#ifndef TRACEHANDLER_WAIT_H
#define TRACEHANDLER_WAIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

#include "tracehandler/tracehandler.h"

struct trace_wait;

struct trace_wait_kind {
	/* Nothing is missing any more. */
	bool (*over)(struct trace_wait *w);
	/*
	 * It is out of the list and the callee's, with what it has by now: over,
	 * or past its deadline, or for the byte limit. It may be added again.
	 */
	void (*end)(struct trace_wait *w, bool over);
	/* The same, and its sample is not wanted. */
	void (*drop)(struct trace_wait *w);
};

struct trace_wait {
	TAILQ_ENTRY(trace_wait) node;
	const struct trace_wait_kind *kind;
	uint64_t time; /* of the sample */
	uint64_t deadline; /* 0: counts from the next tick */
	size_t bytes; /* of memory, all in */
};

struct trace_waits {
	TAILQ_HEAD(trace_wait_list, trace_wait) list;
	uint64_t wait_ns;
	struct trace_stats *stats; /* waiting, waiting_bytes of it */
};

void trace_waits_init(struct trace_waits *ws, unsigned int wait_ms,
		      struct trace_stats *stats);
/* kind, time, deadline and bytes are set. */
void trace_waits_add(struct trace_waits *ws, struct trace_wait *w);
/* Time of the oldest, or UINT64_MAX. */
uint64_t trace_waits_oldest(const struct trace_waits *ws);
/* Ends what is over or past its deadline. 'now' 0: no time has passed. */
void trace_waits_check(struct trace_waits *ws, uint64_t now);
/* Ends the oldest until no more than 'bytes' wait. */
void trace_waits_limit(struct trace_waits *ws, size_t bytes);
void trace_waits_drop(struct trace_waits *ws);

#endif /* TRACEHANDLER_WAIT_H */
