// SPDX-License-Identifier: Apache-2.0
/*
 * unwind: see tracehandler/unwind/unwind.h. A frame pointer points at the caller's
 * frame pointer, with the return address above it; the outermost frame has
 * zero there (System V ABI, 3.4.1). Code built without frame pointers uses the
 * register for anything, so each frame must be on the stack, aligned, and above the
 * one before.
 */
#include <string.h>

#include "tracehandler/unwind/top.h"

static bool unwind_word(const struct trace_piece *s, uint64_t at, size_t word,
			uint64_t *out)
{
	*out = 0; /* x86 is little endian */
	return trace_piece_read(s, at, out, word);
}

/* Why a frame was not copied: it may be behind the end of the copy. */
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

/* From the frame whose address is 'pc', with 'n' addresses in 'pcs'. */
static size_t unwind_from(const struct trace_stack *stack, uint64_t pc,
			  uint64_t low, uint64_t fp, uint64_t *pcs, size_t n,
			  size_t max, enum trace_end *why)
{
	const struct trace_piece *s = &stack->here;
	size_t word = stack->compat ? 4 : 8, first = n + 1;
	uint64_t next;

	for (;;) {
		if (n == max) {
			*why = TRACE_END_DEPTH;
			return n;
		}
		pcs[n++] = pc;
		/*
		 * Zero is no sign of the outermost frame before one was found by a
		 * frame pointer: functions without them may use the register.
		 */
		if (!fp && n == first) {
			*why = TRACE_END_NO_FP;
			return n;
		}
		if (!fp)
			break;
		if (fp < low || fp % word ||
		    !unwind_word(s, fp + word, word, &pc) ||
		    !unwind_word(s, fp, word, &next)) {
			*why = unwind_outside(s, low, fp, word);
			return n;
		}
		low = fp + 2 * word;
		fp = next;
		if (!pc)
			break;
	}
	*why = TRACE_END_ROOT;
	return n;
}

size_t trace_unwind_fp(const struct trace_stack *stack, uint64_t *pcs,
		       size_t max, enum trace_end *why)
{
	uint64_t pc = stack->regs->ip, sp = stack->regs->gpr[ABI_REG_SP];
	uint64_t fp = stack->regs->gpr[ABI_REG_BP];
	enum trace_top_known known;
	struct trace_top top;
	size_t n;

	if (stack->bare)
		*stack->bare = true;
	known = trace_top(stack, &top);
	if (known == TRACE_TOP_FOUND && max > 1) {
		pcs[0] = pc;
		if (top.fp_known)
			return unwind_from(stack, top.ip, top.sp, top.fp, pcs,
					   1, max, why);
		pcs[1] = top.ip;
		*why = TRACE_END_NO_FP;
		return 2;
	}
	n = unwind_from(stack, pc, sp, fp, pcs, 0, max, why);
	if (*why == TRACE_END_ROOT && known != TRACE_TOP_FRAME)
		*why = TRACE_END_TOP;
	return n;
}
