// SPDX-License-Identifier: Apache-2.0
/*
 * unwind: see tracehandler/unwind.h. A frame pointer points at the caller's
 * frame pointer, with the return address above it; the outermost frame has
 * zero there (System V ABI, 3.4.1). Code built without frame pointers uses the
 * register for anything, so every step is checked: on the stack, aligned, and
 * always towards its end.
 */
#include <string.h>

#include "tracehandler/unwind.h"

static uint64_t unwind_word(const uint8_t *p, size_t word)
{
	uint64_t v = 0;

	memcpy(&v, p, word); /* x86 is little endian */
	return v;
}

/* A frame that is not in the copy: does it lie behind where the copy ends? */
static enum trace_end unwind_outside(const struct trace_piece *s, uint64_t sp,
				     uint64_t fp, size_t word)
{
	uint64_t good = s->start + s->size;

	if (fp < sp || fp % word || fp + 2 * word <= good ||
	    fp - s->start > TRACE_STACK_MAX)
		return TRACE_END_NO_FP;
	switch (s->end) {
	case ABI_STACK_CAP:
		return TRACE_END_CAP;
	case ABI_STACK_FAULT:
		return TRACE_END_FAULT;
	case ABI_STACK_RING:
		return TRACE_END_RING;
	default:
		return TRACE_END_NO_FP;
	}
}

size_t trace_unwind_fp(const struct trace_stack *stack, uint64_t *pcs,
		       size_t max, enum trace_end *why)
{
	size_t word = stack->compat ? 4 : 8, n = 0;
	const struct trace_piece *s = &stack->here;
	uint64_t low = stack->regs->gpr[ABI_REG_SP];
	uint64_t fp = stack->regs->gpr[ABI_REG_BP];
	uint64_t pc = stack->regs->ip, at;

	for (;;) {
		if (n == max) {
			*why = TRACE_END_DEPTH;
			return n;
		}
		pcs[n++] = pc;
		if (!fp)
			break;
		at = fp - s->start;
		if (fp < low || fp < s->start || fp % word ||
		    s->size < 2 * word || at > s->size - 2 * word) {
			*why = unwind_outside(s, low, fp, word);
			return n;
		}
		pc = unwind_word(s->bytes + at + word, word);
		low = fp + 2 * word;
		fp = unwind_word(s->bytes + at, word);
		if (!pc)
			break;
	}
	*why = TRACE_END_ROOT;
	return n;
}
