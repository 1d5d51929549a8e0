/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step: where the time of a span of a thread went, as the path back through what woke it
 * (reporter/ledger/why.h), as JSON lines for /api/process/ID/why.
 */
#ifndef REPORTER_LEDGER_STEP_H
#define REPORTER_LEDGER_STEP_H

#include "base/mem/arena.h"
#include "reporter/ledger/segment.h"

#define REPORTER_STACKS_MAX 64 /* of a path */
#define REPORTER_STACK_FRAMES 128 /* the innermost; and 12 KiB of text */

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
	X(SHORT, short) /* of the archive: it ran, or had only short waits */  \
	X(GAP, gap) /* what the thread did is not recorded */                  \
	X(CIRCLE, circle) /* the waker waited for this wait's end */           \
	X(DEEP, deep) /* there are too many wakers in a row */                 \
	X(MANY, many) /* there are too many steps: the rest of the thread's */

enum reporter_step_end {
#define X(NAME, name) REPORTER_STEP_##NAME,
	REPORTER_STEP_ENDS(X)
#undef X
};

/* Why there is no stack of a wait: enum abi_wait_site, or: */
enum reporter_no_stack {
	REPORTER_NO_STACK_LOST =
		ABI_WAIT_SITE_LEAST, /* or is not resolved yet */
	REPORTER_NO_STACK_MANY, /* the path has others, of more time */
	REPORTER_NO_STACK_MAX,
};

/* A part of a span, and the thread that it was spent by. */
struct reporter_step {
	/* Of that thread, clipped to the span. GAP, MANY: times and ids only. */
	struct reporter_segment segment;
	uint32_t depth; /* of wakers, from the thread of the span on */
	enum reporter_step_end end;
	/*
	 * By reporter_path_stacks(), of a wait: which of path->stacks it waits with, from 1
	 * on; 0: none, and 'no_stack' says why.
	 */
	uint32_t stack;
	uint32_t no_stack;
};

/* A function of a stack. Texts that are not known are "" or NULL; line 0: likewise. */
struct reporter_step_frame {
	const char *function, *file; /* of the source */
	const char *mapping; /* the file of the code */
	uint32_t line; /* in 'file' */
	bool inlined; /* into the frame that follows */
};

/* A user stack, the innermost function first. */
struct reporter_stack {
	struct reporter_step_frame *frames;
	size_t n;
	size_t first; /* the step that has it first: its line has the frames */
	bool cut; /* frames farther out are missing */
};

/* The path of a thread. Times are CLOCK_BOOTTIME, ns. */
struct reporter_path {
	/*
	 * Without segments. 'from' and 'to' are the span; the losses are those of all
	 * processes on the path.
	 */
	struct reporter_timeline of;
	uint32_t tid;
	uint64_t wait_min; /* of the archive: shorter waits are not known; else 0 */
	struct reporter_step *steps; /* by time; malloc'd */
	size_t n;
	/* By their first step; all differ. */
	struct reporter_stack stacks[REPORTER_STACKS_MAX];
	size_t nstacks;
	struct arena names; /* of them */
};

/* Frees all but the path itself. */
void reporter_path_fini(struct reporter_path *p);

/*
 * Gives the path the stacks of its waits: those with most time. 'frames' has those of a
 * site: it puts the innermost 'max' into 'out', with texts that are valid until the return
 * of reporter_path_stacks(), which copies them; and returns how many there are, 0: the
 * stack is not there. At most 256 sites are asked for. 0 or -ENOMEM.
 */
int reporter_path_stacks(struct reporter_path *p,
			 size_t (*frames)(void *arg, uint64_t site,
					  struct reporter_step_frame *out,
					  size_t max),
			 void *arg);

/* Appends the first line, likewise. 'wall' is line_wall()'s, or that of then. */
void ledger_path(const struct reporter_path *p, int64_t wall,
		 struct strbuf *sb);
/* Appends the line of step 'i'; 'pm' NULL: of the archive. */
void ledger_step(const struct reporter_path *p, size_t i, struct pm *pm,
		 int64_t wall, struct strbuf *sb);

#endif /* REPORTER_LEDGER_STEP_H */
