// SPDX-License-Identifier: Apache-2.0
/*
 * walk: see tracehandler/unwind/walk.h. A return address points behind its call, which
 * may be the last instruction of its function, so it is looked up less one. An
 * address that a signal interrupted is looked up as it is.
 */
#include <string.h>

#include "base/base.h"
#include "tracehandler/unwind/expr.h"
#include "tracehandler/unwind/goswitch.h"
#include "tracehandler/unwind/top.h"
#include "tracehandler/unwind/walk.h"

#define RA ARCH_REG_RA

struct walk {
	const struct trace_stack *stack;
	trace_code_fn code;
	void *arg;
	struct trace_code codes[4]; /* looked up last */
	unsigned int next; /* to be replaced */
	const struct symbolizer_rows *rows; /* of the current frame */
	struct trace_frame_regs regs;
	uint64_t missing; /* the last address a step could not read */
	uint64_t unread; /* the address of a saved register that was not read */
	bool exact; /* the frame was interrupted, not in a call */
	bool found; /* that caller, by the code */
	bool unsure; /* the interrupted function's caller may be missing */
	uint32_t by_code; /* frames that were left by such rows */
	bool switched; /* to the stack of a goroutine */
};

static bool walk_read_word(void *arg, uint64_t at, uint64_t *out)
{
	struct walk *w = arg;

	if (trace_piece_read(&w->stack->here, at, out, 8) ||
	    trace_piece_read(&w->stack->left, at, out, 8))
		return true;
	w->missing = at;
	return false;
}

/* Evaluates one value of a rule. False: something it needs is not known. */
static bool walk_value(struct walk *w, const struct symbolizer_value *v,
		       const uint64_t *cfa, uint64_t *out)
{
	const struct trace_frame_regs *r = &w->regs;
	const uint8_t *code;
	size_t len;

	switch (v->from) {
	case SYMBOLIZER_REG:
	case SYMBOLIZER_AT_REG:
		if (v->reg >= SYMBOLIZER_REGS)
			return false;
		*out = r->v[v->reg] + (uint64_t)(int64_t)v->n;
		return (r->known & 1U << v->reg) &&
		       (v->from == SYMBOLIZER_REG ||
			walk_read_word(w, *out, out));
	case SYMBOLIZER_CFA:
		*out = *cfa + (uint64_t)(int64_t)v->n;
		return true;
	case SYMBOLIZER_AT_CFA:
		return walk_read_word(w, *cfa + (uint64_t)(int64_t)v->n, out);
	case SYMBOLIZER_PLT:
		*out = r->v[ARCH_REG_SP] + 8;
		*out += (int64_t)(r->v[RA] & 15) >= v->n ? 8 : 0;
		return true;
	case SYMBOLIZER_EXPR:
	case SYMBOLIZER_AT_EXPR:
		code = symbolizer_rows_expr(w->rows, v->n, &len);
		return code &&
		       trace_expr(code, len, r, cfa, walk_read_word, w, out) &&
		       (v->from == SYMBOLIZER_EXPR ||
			walk_read_word(w, *out, out));
	default:
		return false;
	}
}

/*
 * Whether the caller's sp is farther up. It may be equal in an interrupted function
 * that has its return address in a register.
 */
static bool walk_leads_up(const struct walk *w,
			  const struct symbolizer_rule *rule, uint64_t sp)
{
	if (sp == w->regs.v[ARCH_REG_SP])
		return w->exact && rule->regs[RA].from == SYMBOLIZER_REG;
	return sp > w->regs.v[ARCH_REG_SP];
}

/*
 * Whether a register saved at 'at' was popped already: behind the pops at the end of
 * a function, GCC's rules still name the place on the stack, which is then in the
 * red zone below sp. Perf events do not copy the red zone, and its page may be
 * absent.
 */
static bool walk_was_popped(const struct walk *w, uint64_t at)
{
	uint64_t below = w->stack->regs->gpr[ABI_REG_SP] - at, word;

	return below - 1 < ABI_STACK_RED_ZONE &&
	       !trace_piece_read(&w->stack->here, at, &word, ARCH_WORD);
}

/*
 * From a frame to its caller; false: not found. Of the caller's registers only those
 * that the rule saves may be unknown afterwards.
 */
static bool walk_step(struct walk *w, const struct symbolizer_rule *rule)
{
	struct trace_frame_regs next = { .known = 0 };
	uint64_t cfa, v;

	if (!walk_value(w, &rule->cfa, NULL, &cfa))
		return false;
	for (int i = 0; i < SYMBOLIZER_REGS; i++) {
		const struct symbolizer_value *from = &rule->regs[i];
		bool same =
			from->from == SYMBOLIZER_SAME ||
			(from->from == SYMBOLIZER_AT_CFA &&
			 walk_was_popped(w, cfa + (uint64_t)(int64_t)from->n));

		if (same)
			v = w->regs.v[i];
		if (same ? w->regs.known & 1U << i
			 : walk_value(w, from, &cfa, &v)) {
			next.v[i] = v;
			next.known |= 1U << i;
		} else if (w->missing) {
			w->unread = w->missing;
		}
	}
	if (!(next.known & 1U << RA) || !(next.known & 1U << ARCH_REG_SP))
		return false;
	if (!rule->signal && !walk_leads_up(w, rule, next.v[ARCH_REG_SP]))
		return false;
	w->regs = next;
	return true;
}

/* A stack alternates between few files. */
static const struct trace_code *walk_code_at(struct walk *w, uint64_t pc)
{
	struct trace_code *c;

	for (size_t i = 0; i < ARRAY_SIZE(w->codes); i++) {
		c = &w->codes[i];
		if (pc >= c->start && pc < c->end)
			return c;
	}
	c = &w->codes[w->next++ % ARRAY_SIZE(w->codes)];
	*c = (struct trace_code){ .state = TRACE_CODE_NONE };
	w->code(w->arg, pc, c);
	return c;
}

/*
 * A frame without rows, by its frame pointer: System V ABI, 3.2.2. Code built
 * without frame pointers uses the register for anything, so it must lead up, and
 * the return address there into code.
 */
static bool walk_step_fp(struct walk *w)
{
	static const struct symbolizer_rule frame = ARCH_FP_RULE;
	uint64_t fp = w->regs.v[ARCH_REG_FP];

	if (!(w->regs.known & 1U << ARCH_REG_FP) || fp % 8 ||
	    fp < w->regs.v[ARCH_REG_SP] || !walk_step(w, &frame))
		return false;
	return !w->regs.v[RA] ||
	       walk_code_at(w, w->regs.v[RA] - 1)->state != TRACE_CODE_NONE;
}

/* Why a step failed; 'otherwise' if not for memory that was not copied. */
static enum trace_end walk_why_not(const struct walk *w,
				   enum trace_end otherwise)
{
	const struct trace_piece *p = &w->stack->here;
	uint64_t sp = w->regs.v[ARCH_REG_SP];
	uint64_t missing = w->missing ? w->missing : w->unread;
	bool inside;

	if (!missing)
		return otherwise;
	if (sp - w->stack->left.start <= w->stack->left.size)
		p = &w->stack->left;
	inside = missing - sp < TRACE_STACK_MAX;
	if (p->end == ABI_STACK_RING)
		return TRACE_END_RING;
	if (inside && missing >= p->start &&
	    missing + ARCH_WORD <= p->start + p->size)
		return TRACE_END_FAULT; /* in a hole */
	if (inside && p->end == ABI_STACK_CAP)
		return TRACE_END_CAP;
	if (inside && p->end == ABI_STACK_FAULT)
		return TRACE_END_FAULT;
	return otherwise == TRACE_END_BROKEN ? TRACE_END_OTHER : otherwise;
}

/*
 * A zero frame pointer marks the outermost frame (System V ABI, 3.4.1); but not before a
 * frame was found by it: functions without frame pointers may use the register.
 */
static bool walk_is_outermost(const struct walk *w, size_t n)
{
	return n > (w->found ? 2 : 1) && (w->regs.known & 1U << ARCH_REG_FP) &&
	       !w->regs.v[ARCH_REG_FP];
}

/* A step by a rule of the usual form, in place. */
static bool walk_step_usual(struct walk *w, const struct trace_rule *rule)
{
	struct trace_frame_regs *r = &w->regs;
	uint64_t cfa = r->v[rule->cfa_reg] + (uint64_t)(int64_t)rule->cfa;

	if (!(r->known & 1U << rule->cfa_reg) ||
	    !walk_read_word(w, cfa - ARCH_WORD, &r->v[RA]))
		return false;
	for (int i = 0; i < ARCH_SAVED; i++) {
		int64_t at = (int64_t)rule->saved[i] * ARCH_WORD;

		if (!at)
			continue;
		if (walk_read_word(w, cfa + (uint64_t)at,
				   &r->v[arch_saved[i]])) {
			r->known |= 1U << arch_saved[i];
		} else if (!walk_was_popped(w, cfa + (uint64_t)at)) {
			r->known &= ~(1U << arch_saved[i]);
			w->unread = w->missing;
		}
	}
	if (cfa <= r->v[ARCH_REG_SP])
		return false;
	r->v[ARCH_REG_SP] = cfa;
	return true;
}

/* From the sample's own frame, which has no rows; false: by the frame pointer. */
static bool walk_step_top(struct walk *w, const struct trace_code *code)
{
	enum trace_top_known known = TRACE_TOP_UNSURE;
	struct trace_top top;

	if (w->stack->bare)
		*w->stack->bare = true;
	if (code->state == TRACE_CODE_HERE)
		known = trace_top(w->stack, &top);
	w->unsure = known == TRACE_TOP_UNSURE;
	if (known != TRACE_TOP_FOUND)
		return false;
	w->found = true;
	w->regs.v[RA] = top.ip;
	w->regs.v[ARCH_REG_SP] = top.sp;
	w->regs.v[ARCH_REG_FP] = top.fp;
	w->regs.known = 1U << RA | 1U << ARCH_REG_SP;
	if (top.fp_known)
		w->regs.known |= 1U << ARCH_REG_FP;
	return true;
}

/* A step by the frame pointer: the code has no rows. */
static enum trace_end walk_go_by_fp(struct walk *w,
				    const struct trace_code *code, size_t n)
{
	bool here = code->state == TRACE_CODE_HERE;

	if (walk_is_outermost(w, n))
		return TRACE_END_ROOT;
	if (n == 1 && walk_step_top(w, code))
		return TRACE_END_MAX;
	if (walk_step_fp(w))
		return TRACE_END_MAX;
	return walk_why_not(w, here ? TRACE_END_NO_CFI : TRACE_END_NO_FP);
}

/* The rule of the frame at 'pc'; of one that was called, that of the call. */
static void walk_rule(const struct walk *w, struct trace_rules *rules,
		      const struct trace_code *at, uint64_t pc,
		      struct trace_rule *rule)
{
	static const struct trace_rule bare = { .kind = TRACE_RULE_USUAL,
						.cfa_reg = ARCH_REG_SP,
						.cfa = ARCH_WORD };

	rule->kind = TRACE_RULE_GAP;
	rule->begins = false;
	if (at->bare)
		*rule = bare;
	else if (at->rows)
		trace_rules_find(rules, at->rows, pc - !w->exact + at->bias,
				 !w->exact, rule);
}

/*
 * To the caller of a function that changed the stack; 'full' is its rule. Where the
 * registers are those of another function with the same caller, that is left out.
 */
static enum trace_end walk_switch(struct walk *w, struct trace_rules *rules,
				  struct symbolizer_rule *full)
{
	const struct trace_go_frame frame = {
		.go = w->stack->go,
		.how = (enum symbolizer_switch)full->regs[RA].n,
		.exact = w->exact,
		.cfa = full->cfa.reg == ARCH_REG_SP ? full->cfa.n : 0,
		.read = walk_read_word,
		.arg = w,
	};
	enum trace_go_step step = TRACE_GO_UNKNOWN;
	struct trace_rule rule;
	bool done = true;

	if (!w->switched)
		step = trace_go_switch(&frame, &w->regs);
	w->missing = 0;
	switch (step) {
	case TRACE_GO_UNKNOWN:
		return TRACE_END_OTHER;
	case TRACE_GO_ROOT:
		return TRACE_END_ROOT;
	case TRACE_GO_CALLER:
		w->switched = true;
		break;
	case TRACE_GO_RULE:
		full->regs[RA] =
			(struct symbolizer_value){ .from = SYMBOLIZER_AT_CFA,
						   .n = -ARCH_WORD };
		done = walk_step(w, full);
		break;
	case TRACE_GO_WITHIN:
		w->switched = true;
		w->exact = true;
		walk_rule(w, rules, walk_code_at(w, w->regs.v[RA]),
			  w->regs.v[RA], &rule);
		w->exact = frame.exact;
		done = rule.kind == TRACE_RULE_USUAL &&
		       walk_step_usual(w, &rule);
		break;
	}
	if (!done)
		return walk_why_not(w, TRACE_END_OTHER);
	/* Zero would be the root. */
	return w->regs.v[RA] ? TRACE_END_MAX : TRACE_END_OTHER;
}

/* To the caller of frame n - 1. TRACE_END_MAX, or why there is none. */
static enum trace_end walk_go(struct walk *w, struct trace_rules *rules,
			      const struct trace_code *code,
			      const struct trace_rule *rule, size_t n,
			      bool *signal)
{
	struct symbolizer_rule full;
	bool done;

	*signal = false;
	w->missing = 0;
	switch (rule->kind) {
	case TRACE_RULE_GAP:
		return walk_go_by_fp(w, code, n);
	case TRACE_RULE_USUAL:
		done = walk_step_usual(w, rule);
		break;
	default:
		symbolizer_rows_rule(code->rows, rule->id, &full);
		if (full.regs[RA].from == SYMBOLIZER_UNDEFINED)
			return TRACE_END_ROOT;
		if (full.regs[RA].from == SYMBOLIZER_ELSEWHERE)
			return walk_switch(w, rules, &full);
		*signal = full.signal;
		w->rows = code->rows;
		done = walk_step(w, &full);
		break;
	}
	if (done)
		return TRACE_END_MAX;
	return rule->begins ? TRACE_END_ROOT
			    : walk_why_not(w, TRACE_END_BROKEN);
}

/* Nothing that is called is there. */
static bool walk_leads_nowhere(const struct walk *w,
			       const struct trace_code *at)
{
	return at->state == TRACE_CODE_NONE || (at->bare && !w->exact);
}

static size_t walk_frames(struct walk *w, struct trace_rules *rules,
			  uint64_t *pcs, size_t max, enum trace_end *why)
{
	struct trace_rule rule = { .begins = false };
	struct trace_code at;
	bool signal;
	uint64_t pc;
	size_t n = 0;

	while (n < max) {
		pc = w->regs.v[RA];
		at = *walk_code_at(w, pc - !w->exact);
		if (at.state == TRACE_CODE_LATE ||
		    (n && walk_leads_nowhere(w, &at))) {
			/* A function that was not called has no caller. */
			*why = at.state == TRACE_CODE_LATE ? TRACE_END_LATE
			       : rule.begins		   ? TRACE_END_ROOT
							   : TRACE_END_BROKEN;
			return n;
		}
		walk_rule(w, rules, &at, pc, &rule);
		*why = walk_go(w, rules, &at, &rule, n + 1, &signal);
		w->by_code += at.by_code && rule.kind != TRACE_RULE_GAP;
		/* A signal's trampoline was not called either. */
		pcs[n] = pc + (n && (w->exact || signal || rule.begins));
		n++;
		if (*why != TRACE_END_MAX)
			return n;
		*why = TRACE_END_ROOT;
		if (!w->regs.v[RA])
			return n;
		w->exact = signal;
	}
	*why = TRACE_END_DEPTH;
	return n;
}

size_t trace_walk(const struct trace_stack *s, struct trace_rules *rules,
		  trace_code_fn code, void *arg, uint64_t *pcs, size_t max,
		  enum trace_end *why)
{
	struct walk w = { .stack = s, .code = code, .arg = arg, .exact = true };
	size_t n;

	arch_regs(s->regs, w.regs.v);
	w.regs.known = (1U << SYMBOLIZER_REGS) - 1;
	n = walk_frames(&w, rules, pcs, max, why);
	if (*why == TRACE_END_ROOT && w.unsure)
		*why = TRACE_END_TOP;
	if (s->by_code)
		*s->by_code = w.by_code;
	return n;
}
