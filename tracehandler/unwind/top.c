// SPDX-License-Identifier: Apache-2.0
/*
 * top: see tracehandler/unwind/top.h. The code ahead decides in prologues and epilogues.
 * Elsewhere the stack does: as long as a function has not set up its frame, or has none,
 * its return address lies between the stack pointer and its caller's frame, at which the
 * frame pointer still points. If no word there is the address of code, the frame is the
 * function's own.
 */
#include "tracehandler/unwind/top.h"

/* Of a frame; in a larger one a leftover of an earlier call is likely anyway. */
#define TOP_FRAME_MAX 4096

static bool top_is_code(const struct trace_stack *s, uint64_t addr)
{
	return !s->is_code || s->is_code(s->arg, addr);
}

/* No word of [sp, fp) is the address of code. */
static bool top_has_frame(const struct trace_stack *s)
{
	const size_t word = s->compat ? 4 : 8;
	uint64_t sp = s->regs->gpr[ABI_REG_SP], fp = s->regs->gpr[ABI_REG_BP];
	uint64_t v;

	if (sp % word || fp % word || fp < sp || fp - sp > TOP_FRAME_MAX)
		return false;
	for (; sp < fp; sp += word) {
		v = 0; /* little endian */
		if (!trace_piece_read(&s->here, sp, &v, word) ||
		    (v && top_is_code(s, v - 1)))
			return false;
	}
	return true;
}

enum trace_top_known trace_top(const struct trace_stack *s,
			       struct trace_top *out)
{
	if (!top_is_code(s, s->regs->ip))
		return TRACE_TOP_UNSURE;
	if (s->code_len && arch_top_run(s, out) && top_is_code(s, out->ip - 1))
		return TRACE_TOP_FOUND;
	return top_has_frame(s) ? TRACE_TOP_FRAME : TRACE_TOP_UNSURE;
}
