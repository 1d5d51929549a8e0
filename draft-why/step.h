/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step: where the time of a span of a thread went, as the path back through what woke it
 * (profiler/waiting/why.h), as JSON lines for /api/process/ID/why.
 */
#ifndef REPORTER_LEDGER_STEP_H
#define REPORTER_LEDGER_STEP_H

#include "reporter/ledger/segment.h"

/* How a step of a path is explained. X(NAME, name) */
#define REPORTER_STEP_ENDS(X)                                              \
	X(ITSELF, itself) /* the thread ran, or was in the run queue */    \
	X(FOLLOWED, followed) /* by the steps of the waker, which follow */ \
	X(INTERRUPT, interrupt) /* it ended the wait */                    \
	X(PERHAPS, perhaps) /* the waker is not certain */                 \
	X(UNSEEN, unseen) /* there was no wake-up */                       \
	X(OPEN, open) /* the wait has not ended */                         \
	X(UNRECORDED, unrecorded) /* what the thread did, or the waker */  \
	X(CIRCLE, circle) /* the waker waited for this wait's end */       \
	X(DEEP, deep) /* there are too many steps, or wakers in a row */

enum reporter_step_end {
#define X(NAME, name) REPORTER_STEP_##NAME,
	REPORTER_STEP_ENDS(X)
#undef X
};

/* A part of a span, and the thread that it was spent by. */
struct reporter_step {
	struct reporter_segment segment; /* of that thread, clipped to the span */
	uint32_t depth; /* of wakers, from the thread of the span on */
	enum reporter_step_end end;
};

/* The path of a thread. Times are CLOCK_BOOTTIME, ns. */
struct reporter_path {
	struct reporter_timeline of; /* without segments; 'from' and 'to' are the span */
	uint32_t tid;
	struct reporter_step *steps; /* by time; malloc'd */
	size_t n;
};

/* Appends the first line, likewise. */
void ledger_path(const struct reporter_path *p, struct strbuf *sb);
/* Appends the line of a step. 'wall' is line_wall()'s. */
void ledger_step(const struct reporter_step *s, struct pm *pm, int64_t wall,
		 struct strbuf *sb);

#endif /* REPORTER_LEDGER_STEP_H */
