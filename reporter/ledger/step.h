/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step: where the time of a span of a thread went, as the path back through what woke it
 * (profiler/waiting/why.h), as JSON lines for /api/process/ID/why.
 */
#ifndef REPORTER_LEDGER_STEP_H
#define REPORTER_LEDGER_STEP_H

#include "reporter/ledger/segment.h"

/* How a step of a path is explained. X(NAME, name) */
#define REPORTER_STEP_ENDS(X)                                                  \
	X(ITSELF, itself) /* the thread ran, or was in the run queue */        \
	X(FOLLOWED, followed) /* by the steps of the waker, which come next */ \
	X(INTERRUPT, interrupt) /* it ended the wait */                        \
	X(PERHAPS, perhaps) /* the waker is not certain */                     \
	X(UNSEEN, unseen) /* there was no wake-up */                           \
	X(OPEN, open) /* the wait has not ended */                             \
	X(DELIVERY, delivery) /* the waker waits again: it came late */        \
	X(UNRECORDED, unrecorded) /* what the waker did */                     \
	X(GAP, gap) /* what the thread did is not recorded */                  \
	X(CIRCLE, circle) /* the waker waited for this wait's end */           \
	X(DEEP, deep) /* there are too many wakers in a row */                 \
	X(MANY, many) /* there are too many steps: the rest of the thread's */

enum reporter_step_end {
#define X(NAME, name) REPORTER_STEP_##NAME,
	REPORTER_STEP_ENDS(X)
#undef X
};

/* A part of a span, and the thread that it was spent by. */
struct reporter_step {
	/* Of that thread, clipped to the span. GAP, MANY: times and ids only. */
	struct reporter_segment segment;
	uint32_t depth; /* of wakers, from the thread of the span on */
	enum reporter_step_end end;
};

/* The path of a thread. Times are CLOCK_BOOTTIME, ns. */
struct reporter_path {
	/*
	 * Without segments. 'from' and 'to' are the span; the losses are those of all
	 * processes on the path.
	 */
	struct reporter_timeline of;
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
