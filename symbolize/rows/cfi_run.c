// SPDX-License-Identifier: Apache-2.0
/*
 * cfi_run: the programs of CFI, see symbolize/rows/cfi.h. Expressions that real code
 * uses are recognized and become plain rules; all others are kept as they are.
 */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/cfi.h"
#include "symbolize/rows/rows_table.h"

/* Compilers nest a few; the file shall not decide. */
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
	OP_AND = 0x1a,
	OP_PLUS = 0x22,
	OP_SHL = 0x24,
	OP_GE = 0x2a,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
};

/* What is remembered, and what goes wrong, while one program runs. */
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

static void cfi_failed(struct machine *m, int err)
{
	if (err == -E2BIG)
		cfi_damage(m, "more rules or rows than a table holds");
	else
		m->err = err;
}

/* The rule of the rows from 'loc' on; what is not said is made plain. */
static void cfi_emit(struct machine *m)
{
	struct cfi_run *r = m->r;
	struct symbolizer_rule rule;
	struct symbolizer_value *ra;
	int err;

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
	err = symbolizer_rows_add(r->b, r->loc, &rule);
	if (err)
		cfi_failed(m, err);
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

/* Columns without a register of ours (vector registers) go to none. */
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

/* n * data_align, either of which may be absurd. */
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

/* A register ends an expression. */
static void set_cfa_register(struct machine *m, uint64_t reg)
{
	if (has_pair(m))
		set_cfa(m, reg, m->r->state.pair.n);
}

/* An offset does not. */
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

static void cfi_remember(struct machine *m)
{
	if (m->depth == RUN_STATES_MAX)
		cfi_damage(m, "too many states to remember");
	else
		m->states[m->depth++] = m->r->state;
}

static void restore_state(struct machine *m)
{
	if (m->depth == 0)
		cfi_damage(m, "a state that was not remembered");
	else
		m->r->state = m->states[--m->depth];
}

/*
 * What the lazy stubs of a PLT have (binutils, elf64-x86-64.c; lld alike): the
 * stub pushes its number on the way, after 'n' bytes:
 * rsp + 8 + (((rip & 15) >= n) << 3).
 */
static bool is_plt(const uint8_t *p, size_t len, int32_t *n)
{
	static const uint8_t want[] = {
		OP_BREG0 + 7, 8,      OP_BREG0 + 16,   0,
		OP_LIT0 + 15, OP_AND, OP_LIT0 /* n */, OP_GE,
		OP_LIT0 + 3,  OP_SHL, OP_PLUS,
	};

	if (len != sizeof(want) || memcmp(p, want, 6) != 0 ||
	    memcmp(p + 7, want + 7, len - 7) != 0 || p[6] < OP_LIT0 ||
	    p[6] > OP_LIT0 + 15)
		return false;
	*n = p[6] - OP_LIT0;
	return true;
}

/* The value of an expression as a plain rule, or as SYMBOLIZER_EXPR. */
static struct symbolizer_value cfi_plain(const uint8_t *p, size_t len)
{
	struct symbolizer_value v = { .from = SYMBOLIZER_EXPR };
	struct cursor c = { p, p + len, false };
	uint8_t op = (uint8_t)cursor_fixed(&c, 1);
	int64_t n;

	if (is_plt(p, len, &v.n)) {
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

/* An expression that comes next; 'at': it gives the place of the value. */
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

/* Instructions for the location and for whole states. False: another one. */
static bool run_other(struct machine *m, uint8_t op)
{
	struct cursor *c = &m->r->c;

	switch (op) {
	case CFA_NOP:
		return true;
	case CFA_SET_LOC:
		set_loc(m);
		return true;
	case CFA_ADVANCE_LOC1:
		cfi_advance(m, cursor_fixed(c, 1));
		return true;
	case CFA_ADVANCE_LOC2:
		cfi_advance(m, cursor_fixed(c, 2));
		return true;
	case CFA_ADVANCE_LOC4:
		cfi_advance(m, cursor_fixed(c, 4));
		return true;
	case CFA_REMEMBER_STATE:
		cfi_remember(m);
		return true;
	case CFA_RESTORE_STATE:
		restore_state(m);
		return true;
	case CFA_GNU_ARGS_SIZE: /* for who jumps into the frame */
		cursor_uleb(c);
		return true;
	default:
		return false;
	}
}

static bool run_cfa(struct machine *m, uint8_t op)
{
	struct cursor *c = &m->r->c;
	uint64_t reg;

	switch (op) {
	case CFA_DEF_CFA:
		reg = cursor_uleb(c);
		set_cfa(m, reg, (int64_t)cursor_uleb(c));
		return true;
	case CFA_DEF_CFA_SF:
		reg = cursor_uleb(c);
		set_cfa(m, reg, cfi_scaled(m, cursor_sleb(c)));
		return true;
	case CFA_DEF_CFA_REGISTER:
		set_cfa_register(m, cursor_uleb(c));
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
	default:
		return false;
	}
}

/* Saved at, or being, the CFA and an offset of one of several forms. */
static bool run_offset(struct machine *m, uint8_t op)
{
	struct cursor *c = &m->r->c;
	uint8_t from = SYMBOLIZER_AT_CFA;
	uint64_t reg;
	int64_t n;

	switch (op) {
	case CFA_VAL_OFFSET:
	case CFA_VAL_OFFSET_SF:
		from = SYMBOLIZER_CFA;
		break;
	case CFA_OFFSET_EXTENDED:
	case CFA_OFFSET_EXTENDED_SF:
	case CFA_GNU_NEGATIVE_OFFSET_EXTENDED:
		break;
	default:
		return false;
	}
	reg = cursor_uleb(c);
	if (op == CFA_OFFSET_EXTENDED_SF || op == CFA_VAL_OFFSET_SF)
		n = cursor_sleb(c);
	else
		n = (int64_t)cursor_uleb(c);
	if (op == CFA_GNU_NEGATIVE_OFFSET_EXTENDED)
		n = (int64_t) - (uint64_t)n;
	cfi_set(m, reg, from, 0, cfi_scaled(m, n));
	return true;
}

static bool run_register(struct machine *m, uint8_t op)
{
	struct cursor *c = &m->r->c;
	uint64_t reg, of;

	switch (op) {
	case CFA_RESTORE_EXTENDED:
		cfi_restore(m, cursor_uleb(c));
		return true;
	case CFA_UNDEFINED:
		cfi_set(m, cursor_uleb(c), SYMBOLIZER_UNDEFINED, 0, 0);
		return true;
	case CFA_SAME_VALUE:
		reg = cursor_uleb(c);
		/* Of rsp, SAME would be what nobody said. */
		cfi_set(m, reg, reg == 7 ? SYMBOLIZER_REG : SYMBOLIZER_SAME,
			reg == 7 ? 7 : 0, 0);
		return true;
	case CFA_REGISTER:
		reg = cursor_uleb(c);
		of = cursor_uleb(c);
		if (of >= SYMBOLIZER_REG_RA)
			cfi_set(m, reg, SYMBOLIZER_UNDEFINED, 0, 0);
		else
			cfi_set(m, reg, SYMBOLIZER_REG, of, 0);
		return true;
	case CFA_EXPRESSION:
	case CFA_VAL_EXPRESSION:
		reg = cursor_uleb(c);
		cfi_expression(m, cfi_column(m, reg), op == CFA_EXPRESSION);
		return true;
	default:
		return false;
	}
}

static void cfi_run_one(struct machine *m)
{
	struct cursor *c = &m->r->c;
	uint8_t op = (uint8_t)cursor_fixed(c, 1);
	uint8_t low = op & 0x3f;

	switch (op & 0xc0) {
	case CFA_ADVANCE_LOC:
		cfi_advance(m, low);
		return;
	case CFA_OFFSET:
		cfi_set(m, low, SYMBOLIZER_AT_CFA, 0,
			cfi_scaled(m, (int64_t)cursor_uleb(c)));
		return;
	case CFA_RESTORE:
		cfi_restore(m, low);
		return;
	}
	if (!run_other(m, op) && !run_cfa(m, op) && !run_offset(m, op) &&
	    !run_register(m, op))
		cfi_damage(m, "an unknown instruction");
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
