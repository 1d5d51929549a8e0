/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wait: samples and traces that wait for an image, tables or names, in one list in
 * the order of sample times. The time of the first is still needed; above the byte
 * limit the oldest ends first. What a wait is for, and what follows it, is up to its
 * kind: this file calls no stage.
 *
 * A list without deadlines may become long. It is checked once a tick, and only
 * after an answer.
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
	/* Whether all it waits for is there. */
	bool (*over)(struct trace_wait *w);
	/*
	 * The wait is over, past its deadline or above the byte limit. It was
	 * removed and is the callee's, which may add it again.
	 */
	void (*end)(struct trace_wait *w, bool over);
	/* Frees it; its sample is discarded. */
	void (*drop)(struct trace_wait *w);
};

struct trace_wait {
	TAILQ_ENTRY(trace_wait) node;
	const struct trace_wait_kind *kind;
	uint32_t event; /* of the sample */
	uint64_t time; /* of the sample */
	uint64_t deadline; /* 0: set at the next tick, or none */
	size_t bytes; /* of memory, in all */
};

struct trace_waits {
	TAILQ_HEAD(trace_wait_list, trace_wait) list;
	uint64_t wait_ns; /* UINT64_MAX: no deadlines */
	size_t bytes; /* of memory, of this list */
	bool answered; /* since the last check; without deadlines */
	uint64_t due; /* the first deadline, or earlier; UINT64_MAX: none */
	struct trace_stats *stats; /* waiting, waiting_bytes */
};

/* wait_ms 0: no deadlines. */
void trace_waits_init(struct trace_waits *ws, unsigned int wait_ms,
		      struct trace_stats *stats);
/* The caller has set kind, event, time, deadline and bytes. */
void trace_waits_add(struct trace_waits *ws, struct trace_wait *w);
/* Time of the oldest, or UINT64_MAX. */
uint64_t trace_waits_oldest(const struct trace_waits *ws);
/* Ends what is over or past its deadline; sets 'due'. */
void trace_waits_tick(struct trace_waits *ws, uint64_t now);
/* Something they may wait for is there: ends what is over, now or at the tick. */
void trace_waits_answered(struct trace_waits *ws);
/* Ends the oldest until at most 'bytes' wait. */
void trace_waits_limit(struct trace_waits *ws, size_t bytes);
/* All of an event. */
void trace_waits_drop(struct trace_waits *ws, uint32_t event);

#endif /* TRACEHANDLER_WAIT_H */
