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

struct walk {
	const struct trace_stack *stack;
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

/* A frame without rows, by its frame pointer: System V ABI, 3.2.2. */
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
	    fp < w->regs.v[ABI_REG_SP])
		return false;
	return step(w, &frame);
}

/* Why a step failed: what was to be read lies behind the copy, or nowhere. */
static enum trace_end why_not(const struct walk *w)
{
	const struct trace_stack *s = w->stack;

	if (!w->missing || w->missing < s->start ||
	    w->missing + 8 <= s->start + s->size)
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

/* The rule for 'pc'; one without a CFA where there is none. */
static void find_rule(struct walk *w, trace_rows_fn rows, void *arg,
		      uint64_t pc, struct symbolizer_rule *rule)
{
	uint64_t vaddr;

	w->rows = rows(arg, pc, &vaddr);
	if (w->rows)
		symbolizer_rows_rule(
			w->rows, symbolizer_rows_find(w->rows, vaddr), rule);
	else
		memset(rule, 0, sizeof(*rule));
}

size_t trace_walk(const struct trace_stack *s, trace_rows_fn rows, void *arg,
		  uint64_t *pcs, size_t max, enum trace_end *why)
{
	struct walk w = { .stack = s };
	struct symbolizer_rule rule;
	bool exact = true;
	uint64_t pc;
	size_t n;

	memcpy(w.regs.v, s->regs->gpr, sizeof(s->regs->gpr));
	w.regs.v[RA] = s->regs->ip;
	w.regs.known = (1U << SYMBOLIZER_REGS) - 1;
	for (n = 0; n < max;) {
		pc = w.regs.v[RA];
		find_rule(&w, rows, arg, pc - !exact, &rule);
		/* The trampoline behind a handler was not called either. */
		pcs[n] = pc + (n && (exact || rule.signal));
		n++;
		if (rule.regs[RA].from == SYMBOLIZER_UNDEFINED)
			break;
		w.missing = 0;
		if (!(rule.cfa.from == SYMBOLIZER_SAME ? step_fp(&w)
						       : step(&w, &rule))) {
			*why = why_not(&w);
			return n;
		}
		exact = rule.signal;
		if (!w.regs.v[RA])
			break;
		if (n == max) {
			*why = TRACE_END_DEPTH;
			return n;
		}
	}
	*why = TRACE_END_ROOT;
	return n;
}
