// SPDX-License-Identifier: Apache-2.0
/*
 * goswitch: see tracehandler/unwind/goswitch.h. What the functions do is in the runtime's
 * asm_amd64.s, sys_linux_amd64.s and time_linux_amd64.s, Go 1.17 to 1.26.
 *
 * The goroutine that the sample names is the one the thread has now, which need not be the
 * one that called: the scheduler may have put that aside. So each function's frame has to
 * fit as well: it is the first on the stack of g0, and what the function has saved there
 * is of this goroutine. Where something does not fit the caller is not known.
 */
#include "base/base.h"
#include "tracehandler/unwind/arch.h"
#include "tracehandler/unwind/goswitch.h"

#define SP ARCH_REG_SP
#define FP ARCH_REG_FP
#define GO_SP_SLACK \
	48 /* a stack pointer is moved by so many bytes at most, to align it */

static bool goswitch_read(const struct trace_go_frame *f, uint64_t at,
			  uint64_t *out)
{
	return f->read(f->arg, at, out);
}

static bool goswitch_is(const struct trace_go_frame *f, enum abi_go_state state)
{
	return f->go && f->go->state == state;
}

/* What the goroutine saved when it left its stack. */
static void goswitch_saved(const struct abi_go *go, struct trace_frame_regs *r)
{
	r->v[ARCH_REG_RA] = go->pc;
	r->v[SP] = go->sp;
	r->v[FP] = go->bp;
	r->known = 1U << ARCH_REG_RA | 1U << SP;
	/* A call back from C does not restore it. */
	if (go->bp >= go->sp && go->bp < go->end)
		r->known |= 1U << FP;
}

/* runtime.systemstack: it calls at the begin of the stack. */
static enum trace_go_step goswitch_call(const struct trace_go_frame *f,
					struct trace_frame_regs *r)
{
	if (!goswitch_is(f, ABI_GO_SAVED) || r->v[SP] != f->go->base)
		return TRACE_GO_UNKNOWN;
	goswitch_saved(f->go, r);
	return TRACE_GO_WITHIN;
}

/*
 * runtime.asmcgocall: its frame has the goroutine, and below it how far the stack pointer
 * was from the end of that stack; or 0, and the stack pointer, where it was on this stack
 * already. Up to Go 1.21 they are behind room for a caller's frame; up to 1.20 the function
 * has no frame pointer.
 */
static enum trace_go_step goswitch_c(const struct trace_go_frame *f,
				     struct trace_frame_regs *r)
{
	static const uint8_t slots[] = { 8, 48 }; /* of the goroutine */
	uint8_t plain = slots[f->cfa == ARCH_WORD];
	uint64_t g, was;

	for (size_t i = 0; i < ARRAY_SIZE(slots); i++) {
		if (!goswitch_read(f, r->v[SP] + slots[i], &g) ||
		    !goswitch_read(f, r->v[SP] + slots[i] - ARCH_WORD, &was))
			continue;
		if (!g && !f->exact && slots[i] == plain &&
		    was - r->v[SP] - plain <= GO_SP_SLACK) {
			r->v[SP] = was;
			return TRACE_GO_RULE;
		}
		if (!goswitch_is(f, ABI_GO_SAVED) || g != f->go->g ||
		    f->go->end - was != f->go->sp)
			continue;
		goswitch_saved(f->go, r);
		return TRACE_GO_WITHIN;
	}
	return TRACE_GO_UNKNOWN;
}

/*
 * runtime.mcall: it pushes the goroutine. Where there is none any more its caller may run
 * on another thread. Where there is another one, that has just been chosen to run next.
 */
static enum trace_go_step goswitch_park(const struct trace_go_frame *f,
					struct trace_frame_regs *r)
{
	uint64_t sp = r->v[SP], g;
	bool first = f->go && sp == f->go->base - ARCH_WORD;

	if (first && goswitch_is(f, ABI_GO_NONE))
		return TRACE_GO_ROOT;
	if (!first || !goswitch_is(f, ABI_GO_SAVED) ||
	    !goswitch_read(f, sp, &g) || g != f->go->g)
		return TRACE_GO_UNKNOWN;
	goswitch_saved(f->go, r);
	return TRACE_GO_CALLER;
}

/* runtime.morestack: the caller is the function that needs a larger stack. */
static enum trace_go_step goswitch_grow(const struct trace_go_frame *f,
					struct trace_frame_regs *r)
{
	if (!f->go || r->v[SP] != f->go->base)
		return TRACE_GO_UNKNOWN;
	if (goswitch_is(f, ABI_GO_NONE))
		return TRACE_GO_ROOT;
	if (!goswitch_is(f, ABI_GO_SAVED))
		return TRACE_GO_UNKNOWN;
	goswitch_saved(f->go, r);
	return TRACE_GO_CALLER;
}

/* Whether the frame pointer is this frame's, on either stack. */
static bool goswitch_has_fp(const struct trace_go_frame *f,
			    const struct trace_frame_regs *r)
{
	uint64_t fp = r->v[FP], frame = (uint64_t)f->cfa - 2 * ARCH_WORD;

	if (!(r->known & 1U << FP) || f->cfa < 2 * ARCH_WORD)
		return false;
	if (f->exact)
		return fp - r->v[SP] == frame ||
		       fp - r->v[ARCH_REG_GO_SP] == frame;
	if (goswitch_is(f, ABI_GO_VDSO))
		return f->go->end - fp < TRACE_STACK_MAX;
	return fp - r->v[SP] <= frame + GO_SP_SLACK;
}

/*
 * Those that call the vDSO: they have a frame pointer, which C code preserves. Before they
 * have a frame, and after it, the stack pointer was not moved.
 */
static enum trace_go_step goswitch_vdso(const struct trace_go_frame *f,
					struct trace_frame_regs *r)
{
	uint64_t fp = r->v[FP], pc, next;

	if (f->exact && f->cfa == ARCH_WORD)
		return TRACE_GO_RULE;
	if (!goswitch_has_fp(f, r) || !goswitch_read(f, fp, &next) ||
	    !goswitch_read(f, fp + ARCH_WORD, &pc))
		return TRACE_GO_UNKNOWN;
	r->v[ARCH_REG_RA] = pc;
	r->v[SP] = fp + 2 * ARCH_WORD;
	r->v[FP] = next;
	r->known = 1U << ARCH_REG_RA | 1U << SP | 1U << FP;
	return TRACE_GO_CALLER;
}

enum trace_go_step trace_go_switch(const struct trace_go_frame *f,
				   struct trace_frame_regs *r)
{
	switch (f->how) {
	case SYMBOLIZER_SWITCH_CALL:
		return goswitch_call(f, r);
	case SYMBOLIZER_SWITCH_C:
		return goswitch_c(f, r);
	case SYMBOLIZER_SWITCH_PARK:
		return goswitch_park(f, r);
	case SYMBOLIZER_SWITCH_GROW:
		return goswitch_grow(f, r);
	case SYMBOLIZER_SWITCH_VDSO:
		return goswitch_vdso(f, r);
	default:
		return TRACE_GO_UNKNOWN;
	}
}
