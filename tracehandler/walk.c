// SPDX-License-Identifier: Apache-2.0
/*
 * walk: see tracehandler/walk.h. A return address points behind its call, which
 * may be the last of its function, so it is looked up less one; an address that
 * a signal interrupted is looked up as it is.
 */
#include <string.h>

#include "base/base.h"
#include "tracehandler/expr.h"
#include "tracehandler/walk.h"

#define RA SYMBOLIZER_REG_RA

#define CODES 4

struct walk {
	const struct trace_stack *stack;
	trace_code_fn code;
	void *arg;
	struct trace_code codes[CODES]; /* met last */
	unsigned int next; /* of them to be replaced */
	const struct symbolizer_rows *rows; /* of the frame at hand */
	struct trace_frame_regs regs;
	uint64_t missing; /* the last address that could not be read */
};

static bool walk_read(void *arg, uint64_t at, uint64_t *out)
{
	struct walk *w = arg;
	const struct trace_stack *s = w->stack;

	if (at < s->start || s->size < 8 || at - s->start > s->size - 8) {
		w->missing = at;
		return false;
	}
	memcpy(out, s->bytes + (at - s->start), 8);
	return true;
}

/* What a rule gives; false: it cannot be had. */
static bool value(struct walk *w, const struct symbolizer_value *v,
		  const uint64_t *cfa, uint64_t *out)
{
	const struct trace_frame_regs *r = &w->regs;
	const uint8_t *code;
	size_t len;

	switch (v->from) {
	case SYMBOLIZER_REG:
	case SYMBOLIZER_AT_REG:
		*out = r->v[v->reg] + (uint64_t)(int64_t)v->n;
		return (r->known & 1U << v->reg) &&
		       (v->from == SYMBOLIZER_REG || walk_read(w, *out, out));
	case SYMBOLIZER_CFA:
		*out = *cfa + (uint64_t)(int64_t)v->n;
		return true;
	case SYMBOLIZER_AT_CFA:
		return walk_read(w, *cfa + (uint64_t)(int64_t)v->n, out);
	case SYMBOLIZER_PLT:
		*out = r->v[ABI_REG_SP] + 8;
		*out += (int64_t)(r->v[RA] & 15) >= v->n ? 8 : 0;
		return true;
	case SYMBOLIZER_EXPR:
	case SYMBOLIZER_AT_EXPR:
		code = symbolizer_rows_expr(w->rows, v->n, &len);
		return code &&
		       trace_expr(code, len, r, cfa, walk_read, w, out) &&
		       (v->from == SYMBOLIZER_EXPR || walk_read(w, *out, out));
	default:
		return false;
	}
}

/*
 * From a frame to its caller; false: there is none that can be had. Only what
 * a rule saves may be missing of the caller's registers.
 */
static bool step(struct walk *w, const struct symbolizer_rule *rule)
{
	struct trace_frame_regs next = { .known = 0 };
	uint64_t cfa, v;

	if (!value(w, &rule->cfa, NULL, &cfa))
		return false;
	for (int i = 0; i < SYMBOLIZER_REGS; i++) {
		const struct symbolizer_value *from = &rule->regs[i];

		if (from->from == SYMBOLIZER_SAME)
			v = w->regs.v[i];
		if (from->from == SYMBOLIZER_SAME ? w->regs.known & 1U << i
						  : value(w, from, &cfa, &v)) {
			next.v[i] = v;
			next.known |= 1U << i;
		}
	}
	if (!(next.known & 1U << RA) || !(next.known & 1U << ABI_REG_SP))
		return false;
	/* Up, always; a signal handler may have come from any stack. */
	if (!rule->signal && next.v[ABI_REG_SP] <= w->regs.v[ABI_REG_SP])
		return false;
	w->regs = next;
	return true;
}

/* What is at an address: a stack goes to and fro between few files. */
static const struct trace_code *code_at(struct walk *w, uint64_t pc)
{
	struct trace_code *c;

	for (unsigned int i = 0; i < CODES; i++) {
		c = &w->codes[i];
		if (pc >= c->start && pc < c->end)
			return c;
	}
	c = &w->codes[w->next++ % CODES];
	*c = (struct trace_code){ .state = TRACE_CODE_NONE };
	w->code(w->arg, pc, c);
	return c;
}

/*
 * A frame without rows, by its frame pointer: System V ABI, 3.2.2. Code built
 * without uses the register for anything; so it has to lead up, and what lies
 * there as return address into code.
 */
static bool step_fp(struct walk *w)
{
	static const struct symbolizer_rule frame = {
		.cfa = { SYMBOLIZER_REG, ABI_REG_BP, 0, 16 },
		.regs = { [ABI_REG_BP] = { SYMBOLIZER_AT_CFA, 0, 0, -16 },
			  [ABI_REG_SP] = { SYMBOLIZER_CFA, 0, 0, 0 },
			  [RA] = { SYMBOLIZER_AT_CFA, 0, 0, -8 } },
	};
	uint64_t fp = w->regs.v[ABI_REG_BP];

	if (!(w->regs.known & 1U << ABI_REG_BP) || fp % 8 ||
	    fp < w->regs.v[ABI_REG_SP] || !step(w, &frame))
		return false;
	return !w->regs.v[RA] ||
	       code_at(w, w->regs.v[RA] - 1)->state != TRACE_CODE_NONE;
}

/* Why a step failed. */
static enum trace_end why_not(const struct walk *w, enum trace_end otherwise)
{
	const struct trace_stack *s = w->stack;
	uint64_t good = s->start + s->size;

	if (!w->missing)
		return otherwise;
	if (s->end == ABI_STACK_RING)
		return TRACE_END_RING;
	if (w->missing + 8 > good && w->missing - s->start < TRACE_STACK_MAX) {
		if (s->end == ABI_STACK_CAP)
			return TRACE_END_CAP;
		if (s->end == ABI_STACK_FAULT)
			return TRACE_END_FAULT;
	}
	return otherwise == TRACE_END_BROKEN ? TRACE_END_OTHER : otherwise;
}

/* The rule of a place; one without a CFA where there is none. */
static void find_rule(struct walk *w, const struct trace_code *code,
		      uint64_t pc, struct symbolizer_rule *rule)
{
	w->rows = code->rows;
	if (w->rows)
		symbolizer_rows_rule(
			w->rows, symbolizer_rows_find(w->rows, pc + code->bias),
			rule);
	else
		memset(rule, 0, sizeof(*rule));
}

/*
 * Code without rows whose frame pointer is zero is where somebody began: that
 * is how the outermost frame is marked (System V ABI, 3.4.1).
 */
static bool begins_here(const struct walk *w, size_t n)
{
	return n > 1 && (w->regs.known & 1U << ABI_REG_BP) &&
	       !w->regs.v[ABI_REG_BP];
}

/* To the caller of frame n - 1. False: '*why' says why there is none. */
static bool go_on(struct walk *w, const struct trace_code *code,
		  const struct symbolizer_rule *rule, size_t n,
		  enum trace_end *why)
{
	bool here = code->state == TRACE_CODE_HERE;

	*why = TRACE_END_ROOT;
	w->missing = 0;
	if (rule->regs[RA].from == SYMBOLIZER_UNDEFINED)
		return false;
	if (rule->cfa.from != SYMBOLIZER_SAME) {
		if (step(w, rule))
			return w->regs.v[RA] != 0;
		*why = why_not(w, TRACE_END_BROKEN);
		return false;
	}
	if (begins_here(w, n))
		return false;
	if (step_fp(w))
		return w->regs.v[RA] != 0;
	*why = why_not(w, here ? TRACE_END_NO_CFI : TRACE_END_NO_FP);
	return false;
}

size_t trace_walk(const struct trace_stack *s, trace_code_fn code, void *arg,
		  uint64_t *pcs, size_t max, enum trace_end *why)
{
	struct walk w = { .stack = s, .code = code, .arg = arg };
	const struct trace_code *at;
	struct symbolizer_rule rule;
	bool exact = true;
	uint64_t pc;
	size_t n = 0;

	memcpy(w.regs.v, s->regs->gpr, sizeof(s->regs->gpr));
	w.regs.v[RA] = s->regs->ip;
	w.regs.known = (1U << SYMBOLIZER_REGS) - 1;
	*why = TRACE_END_DEPTH;
	while (n < max) {
		pc = w.regs.v[RA];
		at = code_at(&w, pc - !exact);
		if (at->state == TRACE_CODE_LATE) {
			*why = TRACE_END_LATE;
			break;
		}
		find_rule(&w, at, pc - !exact, &rule);
		/* The trampoline behind a handler was not called either. */
		pcs[n] = pc + (n && (exact || rule.signal));
		n++;
		if (!go_on(&w, at, &rule, n, why))
			break;
		exact = rule.signal;
		*why = TRACE_END_DEPTH;
	}
	return n;
}
