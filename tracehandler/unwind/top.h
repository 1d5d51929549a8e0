/* SPDX-License-Identifier: Apache-2.0 */
/*
 * top: the caller of an interrupted function without unwind rows, as code of JIT
 * compilers is. A frame pointer leads there only while the function's frame is set up:
 * not in its first and last instructions, and not in a function without one. Pure.
 */
#ifndef TRACEHANDLER_TOP_H
#define TRACEHANDLER_TOP_H

#include "tracehandler/unwind/unwind.h"

/* What is known. */
enum trace_top_known {
	TRACE_TOP_FOUND, /* the caller, by the code ahead */
	TRACE_TOP_FRAME, /* the frame is set up: the frame pointer is right */
	TRACE_TOP_UNSURE, /* neither */
};

/* The caller's registers. */
struct trace_top {
	uint64_t ip, sp, fp;
	bool fp_known;
};

enum trace_top_known trace_top(const struct trace_stack *s,
			       struct trace_top *out);

/*
 * Executes the instructions at s->code, as far as they concern stack and frame pointer,
 * until a return, or until the frame is set up. False: neither is within the code, or
 * an instruction changes them in another way. In arch_x86_64_top.c.
 */
bool arch_top_run(const struct trace_stack *s, struct trace_top *out);

#endif /* TRACEHANDLER_TOP_H */
