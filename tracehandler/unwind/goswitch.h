/* SPDX-License-Identifier: Apache-2.0 */
/*
 * goswitch: from a function of Go's runtime that runs on the stack of g0 to its caller on
 * the goroutine's. Pure.
 */
#ifndef TRACEHANDLER_GOSWITCH_H
#define TRACEHANDLER_GOSWITCH_H

#include "tracehandler/unwind/expr.h"
#include "tracehandler/unwind/unwind.h"

enum trace_go_step {
	TRACE_GO_UNKNOWN,
	TRACE_GO_ROOT, /* the goroutine that called does not run any more */
	TRACE_GO_CALLER, /* *r has the caller's registers */
	/* *r has those of a function that was interrupted, and that has the same caller */
	TRACE_GO_WITHIN,
	TRACE_GO_RULE, /* *r has the frame's stack pointer, from before it was moved */
};

/* The frame of such a function. */
struct trace_go_frame {
	const struct abi_go *go; /* NULL: the sample has none */
	enum symbolizer_switch how;
	bool exact; /* it was interrupted, not in a call */
	int32_t cfa; /* of its rule: from the stack pointer it should have */
	trace_read_fn read; /* of the copied stacks */
	void *arg;
};

enum trace_go_step trace_go_switch(const struct trace_go_frame *f,
				   struct trace_frame_regs *r);

#endif /* TRACEHANDLER_GOSWITCH_H */
