// SPDX-License-Identifier: Apache-2.0
/*
 * cfi_run: the programs of CFI; see symbolize/rows/cfi.h. Expressions that compilers
 * and linkers write become plain rules; all others are kept.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/cfi.h"
#include "symbolize/rows/rows_table.h"

/* Compilers nest a few. */
#define RUN_STATES_MAX 32
#define RUN_EXPR_MAX 4096

/* DWARF 5, 7.24, and the GNU extensions. */
enum {
	CFA_NOP = 0x00,
	CFA_SET_LOC = 0x01,
	CFA_ADVANCE_LOC1 = 0x02,
	CFA_ADVANCE_LOC2 = 0x03,
	CFA_ADVANCE_LOC4 = 0x04,
	CFA_OFFSET_EXTENDED = 0x05,
	CFA_RESTORE_EXTENDED = 0x06,
	CFA_UNDEFINED = 0x07,
	CFA_SAME_VALUE = 0x08,
	CFA_REGISTER = 0x09,
	CFA_REMEMBER_STATE = 0x0a,
	CFA_RESTORE_STATE = 0x0b,
	CFA_DEF_CFA = 0x0c,
	CFA_DEF_CFA_REGISTER = 0x0d,
	CFA_DEF_CFA_OFFSET = 0x0e,
	CFA_DEF_CFA_EXPRESSION = 0x0f,
	CFA_EXPRESSION = 0x10,
	CFA_OFFSET_EXTENDED_SF = 0x11,
	CFA_DEF_CFA_SF = 0x12,
	CFA_DEF_CFA_OFFSET_SF = 0x13,
	CFA_VAL_OFFSET = 0x14,
	CFA_VAL_OFFSET_SF = 0x15,
	CFA_VAL_EXPRESSION = 0x16,
	CFA_GNU_ARGS_SIZE = 0x2e,
	CFA_GNU_NEGATIVE_OFFSET_EXTENDED = 0x2f,
	CFA_ADVANCE_LOC = 0x40, /* these three in the two high bits */
	CFA_OFFSET = 0x80,
	CFA_RESTORE = 0xc0,
};

/* DWARF 5, 7.7.1. */
enum {
	OP_DEREF = 0x06,
	OP_BREG0 = 0x70,
};

/* The state of one program that runs. */
struct machine {
	struct cfi_run *r;
	struct symbolizer_pool *exprs;
	const char *damage;
	int err;
	unsigned int depth;
	struct cfi_state *states; /* RUN_STATES_MAX of them */
};

static void cfi_damage(struct machine *m, const char *what)
{
	if (!m->damage)
		m->damage = what;
}

/* 'err' may be 0. */
static void cfi_failed(struct machine *m, int err)
{
	if (err == -E2BIG)
		cfi_damage(m, "more rules or rows than a table holds");
	else
		m->err = err;
}

/* Adds a row from 'loc' on, with the return address in its own column. */
static void cfi_emit(struct machine *m)
{
	struct cfi_run *r = m->r;
	struct symbolizer_rule rule;
	struct symbolizer_value *ra;

	if (r->state.rule.cfa.from == SYMBOLIZER_SAME) {
		cfi_damage(m, "a row without a rule for its frame");
		return;
	}
	rule = r->state.rule;
	ra = &rule.regs[SYMBOLIZER_REG_RA];
	if (r->cie->ra != SYMBOLIZER_REG_RA) {
		*ra = rule.regs[r->cie->ra];
		if (ra->from == SYMBOLIZER_SAME)
			*ra = (struct symbolizer_value){ SYMBOLIZER_REG,
							 r->cie->ra, 0, 0 };
	} else if (ra->from == SYMBOLIZER_SAME) {
		ra->from = SYMBOLIZER_UNDEFINED;
	}
	cfi_failed(m, symbolizer_rows_add(r->b, r->loc, &rule));
}

static void move_to(struct machine *m, uint64_t loc)
{
	struct cfi_run *r = m->r;

	if (!r->b) {
		cfi_damage(m, "an address in a common entry");
		return;
	}
	if (loc < r->loc) {
		cfi_damage(m, "addresses that go backwards");
		return;
	}
	if (loc > r->loc && r->loc < r->end)
		cfi_emit(m);
	if (!m->damage)
		r->loc = loc;
}

static void cfi_advance(struct machine *m, uint64_t delta)
{
	uint64_t by, loc;

	if (__builtin_mul_overflow(delta, m->r->cie->code_align, &by) ||
	    __builtin_add_overflow(m->r->loc, by, &loc))
		cfi_damage(m, "an address beyond all");
	else
		move_to(m, loc);
}

static void set_loc(struct machine *m)
{
	struct cfi_run *r = m->r;
	uint64_t loc = 0;

	if (!symbolizer_cfi_pointer(&r->c, r->cie->encoding,
				    r->at + (uint64_t)(r->c.p - r->mark), &loc))
		cfi_damage(m, "a pointer encoding that code has not");
	else if (!r->c.bad)
		move_to(m, loc);
}

/* NULL for columns that rules do not have, such as vector registers. */
static struct symbolizer_value *cfi_column(struct machine *m, uint64_t reg)
{
	return reg < SYMBOLIZER_REGS ? &m->r->state.rule.regs[reg] : NULL;
}

static void cfi_set(struct machine *m, uint64_t reg, uint8_t from, uint64_t of,
		    int64_t n)
{
	struct symbolizer_value *v = cfi_column(m, reg);

	if (!v)
		return;
	if (n != (int32_t)n)
		cfi_damage(m, "an offset beyond 31 bits");
	else
		*v = (struct symbolizer_value){ from, (uint8_t)of, 0,
						(int32_t)n };
}

/* n * data_align, either of which may have any value. */
static int64_t cfi_scaled(struct machine *m, int64_t n)
{
	int64_t v;

	if (__builtin_mul_overflow(n, m->r->cie->data_align, &v))
		return INT64_MAX; /* which is refused */
	return v;
}

static void set_cfa(struct machine *m, uint64_t reg, int64_t n)
{
	struct cfi_state *s = &m->r->state;

	if (reg >= SYMBOLIZER_REG_RA)
		cfi_damage(m, "a frame by a register that is none");
	else if (n != (int32_t)n)
		cfi_damage(m, "an offset beyond 31 bits");
	else
		s->rule.cfa = s->pair =
			(struct symbolizer_value){ SYMBOLIZER_REG, (uint8_t)reg,
						   0, (int32_t)n };
}

static bool has_pair(struct machine *m)
{
	if (m->r->state.pair.from == SYMBOLIZER_REG)
		return true;
	cfi_damage(m, "half a frame rule without the other half");
	return false;
}

/* A new offset does not replace an expression. */
static void set_cfa_offset(struct machine *m, int64_t n)
{
	struct cfi_state *s = &m->r->state;
	bool aside = memcmp(&s->rule.cfa, &s->pair, sizeof(s->pair)) != 0;

	if (!has_pair(m))
		return;
	if (!aside)
		set_cfa(m, s->pair.reg, n);
	else if (n == (int32_t)n)
		s->pair.n = (int32_t)n;
	else
		cfi_damage(m, "an offset beyond 31 bits");
}

static void cfi_restore(struct machine *m, uint64_t reg)
{
	struct symbolizer_value *v = cfi_column(m, reg);

	if (v)
		*v = m->r->cie->init.rule.regs[reg];
}

/* The value of an expression as a plain rule, or as SYMBOLIZER_EXPR. */
static struct symbolizer_value cfi_plain(const uint8_t *p, size_t len)
{
	struct symbolizer_value v = { .from = SYMBOLIZER_EXPR };
	struct cursor c = { p, p + len, false };
	uint8_t op = (uint8_t)cursor_fixed(&c, 1);
	int64_t n;

	if (arch_plt_expr(p, len, &v.n)) {
		v.from = SYMBOLIZER_PLT;
		return v;
	}
	if (op < OP_BREG0 || op >= OP_BREG0 + SYMBOLIZER_REG_RA)
		return v;
	n = cursor_sleb(&c);
	if (c.bad || n != (int32_t)n)
		return v;
	v.reg = op - OP_BREG0;
	v.n = (int32_t)n;
	if (c.p == c.end)
		v.from = SYMBOLIZER_REG;
	else if (c.end - c.p == 1 && *c.p == OP_DEREF)
		v.from = SYMBOLIZER_AT_REG;
	return v;
}

/* Reads an expression for 'to'; 'at': it gives the address of the value. */
static void cfi_expression(struct machine *m, struct symbolizer_value *to,
			   bool at)
{
	struct cursor *c = &m->r->c;
	uint64_t len = cursor_uleb(c);
	const uint8_t *p = cursor_bytes(c, len);
	struct symbolizer_value v;
	int n;

	if (!p || !to)
		return;
	if (len == 0 || len > RUN_EXPR_MAX) {
		cfi_damage(m, "an expression of no sensible length");
		return;
	}
	v = cfi_plain(p, (size_t)len);
	if (at && v.from == SYMBOLIZER_REG)
		v.from = SYMBOLIZER_AT_REG;
	else if (at || v.from == SYMBOLIZER_EXPR ||
		 (v.from == SYMBOLIZER_PLT && to != &m->r->state.rule.cfa))
		v.from = at ? SYMBOLIZER_AT_EXPR : SYMBOLIZER_EXPR;
	if (v.from == SYMBOLIZER_EXPR || v.from == SYMBOLIZER_AT_EXPR) {
		n = symbolizer_pool_put(m->exprs, p, (size_t)len);
		if (n < 0)
			cfi_failed(m, n);
		v.reg = 0;
		v.n = n;
	}
	*to = v;
}

/* Instructions whose first operand is no register. False: another one. */
static bool run_whole(struct machine *m, uint8_t op)
{
	struct cursor *c = &m->r->c;

	switch (op) {
	case CFA_NOP:
		return true;
	case CFA_SET_LOC:
		set_loc(m);
		return true;
	case CFA_ADVANCE_LOC1:
	case CFA_ADVANCE_LOC2:
	case CFA_ADVANCE_LOC4:
		cfi_advance(m, cursor_fixed(c, 1U << (op - CFA_ADVANCE_LOC1)));
		return true;
	case CFA_REMEMBER_STATE:
		if (m->depth == RUN_STATES_MAX)
			cfi_damage(m, "too many states to remember");
		else
			m->states[m->depth++] = m->r->state;
		return true;
	case CFA_RESTORE_STATE:
		if (m->depth == 0)
			cfi_damage(m, "a state that was not remembered");
		else
			m->r->state = m->states[--m->depth];
		return true;
	case CFA_DEF_CFA_OFFSET:
		set_cfa_offset(m, (int64_t)cursor_uleb(c));
		return true;
	case CFA_DEF_CFA_OFFSET_SF:
		set_cfa_offset(m, cfi_scaled(m, cursor_sleb(c)));
		return true;
	case CFA_DEF_CFA_EXPRESSION:
		cfi_expression(m, &m->r->state.rule.cfa, false);
		return true;
	case CFA_GNU_ARGS_SIZE: /* for exception handlers only */
		cursor_uleb(c);
		return true;
	default:
		return false;
	}
}

/* Instructions whose first operand is a register, and then an offset. */
static bool run_offset(struct machine *m, uint8_t op, uint64_t reg)
{
	struct cursor *c = &m->r->c;
	uint8_t from = SYMBOLIZER_AT_CFA;

	switch (op) {
	case CFA_DEF_CFA:
		set_cfa(m, reg, (int64_t)cursor_uleb(c));
		return true;
	case CFA_DEF_CFA_SF:
		set_cfa(m, reg, cfi_scaled(m, cursor_sleb(c)));
		return true;
	case CFA_VAL_OFFSET:
		from = SYMBOLIZER_CFA;
		/* fall through */
	case CFA_OFFSET_EXTENDED:
		cfi_set(m, reg, from, 0,
			cfi_scaled(m, (int64_t)cursor_uleb(c)));
		return true;
	case CFA_VAL_OFFSET_SF:
		from = SYMBOLIZER_CFA;
		/* fall through */
	case CFA_OFFSET_EXTENDED_SF:
		cfi_set(m, reg, from, 0, cfi_scaled(m, cursor_sleb(c)));
		return true;
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		cfi_set(m, reg, from, 0,
			cfi_scaled(m, (int64_t)-cursor_uleb(c)));
		return true;
	default:
		return false;
	}
}

static void run_register(struct machine *m, uint8_t op, uint64_t reg)
{
	uint64_t of;

	switch (op) {
	case CFA_DEF_CFA_REGISTER:
		/* It replaces an expression. */
		if (has_pair(m))
			set_cfa(m, reg, m->r->state.pair.n);
		return;
	case CFA_RESTORE_EXTENDED:
		cfi_restore(m, reg);
		return;
	case CFA_UNDEFINED:
		cfi_set(m, reg, SYMBOLIZER_UNDEFINED, 0, 0);
		return;
	case CFA_SAME_VALUE:
		/* The stack pointer's default is not SAME: state it in full. */
		if (reg == SYMBOLIZER_REG_SP)
			cfi_set(m, reg, SYMBOLIZER_REG, reg, 0);
		else
			cfi_set(m, reg, SYMBOLIZER_SAME, 0, 0);
		return;
	case CFA_REGISTER:
		of = cursor_uleb(&m->r->c);
		if (of >= SYMBOLIZER_REG_RA)
			cfi_set(m, reg, SYMBOLIZER_UNDEFINED, 0, 0);
		else
			cfi_set(m, reg, SYMBOLIZER_REG, of, 0);
		return;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		cfi_expression(m, cfi_column(m, reg), op == CFA_EXPRESSION);
		return;
	default:
		cfi_damage(m, "an unknown instruction");
	}
}

static void cfi_run_one(struct machine *m)
{
	struct cursor *c = &m->r->c;
	uint8_t op = (uint8_t)cursor_fixed(c, 1);
	uint8_t low = op & 0x3f;
	uint64_t reg;

	switch (op & 0xc0) {
	case CFA_ADVANCE_LOC:
		cfi_advance(m, low);
		return;
	case CFA_OFFSET:
		run_offset(m, CFA_OFFSET_EXTENDED, low);
		return;
	case CFA_RESTORE:
		cfi_restore(m, low);
		return;
	}
	if (run_whole(m, op))
		return;
	reg = cursor_uleb(c);
	if (!run_offset(m, op, reg))
		run_register(m, op, reg);
}

const char *symbolizer_cfi_run(struct cfi_run *r, struct symbolizer_pool *exprs,
			       int *err)
{
	struct cfi_state states[RUN_STATES_MAX];
	struct machine m = { .r = r, .exprs = exprs, .states = states };

	while (r->c.p < r->c.end && !m.damage && !m.err) {
		cfi_run_one(&m);
		if (r->c.bad)
			cfi_damage(&m, "an instruction that is cut off");
	}
	if (r->b && !m.damage && !m.err && r->loc < r->end)
		cfi_emit(&m);
	if (r->b && m.damage && r->loc < r->end && !m.err)
		m.err = symbolizer_rows_add(r->b, r->loc, NULL);
	*err = m.err == -E2BIG ? 0 : m.err;
	return m.damage;
}
