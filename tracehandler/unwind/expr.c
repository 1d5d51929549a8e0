// SPDX-License-Identifier: Apache-2.0
/*
 * expr: see tracehandler/unwind/expr.h. DWARF 5, 2.5.1. Operations that need more
 * than a frame (objects, calls, other address spaces) are not allowed in unwind
 * rules, 6.4.2.
 */
#include "base/base.h"
#include "tracehandler/unwind/expr.h"

#define EXPR_STACK 32
#define EXPR_STEPS 512

enum {
	OP_DEREF = 0x06,
	OP_CONST1U = 0x08, /* to OP_CONST8S: sizes and signs by turns */
	OP_CONST8S = 0x0f,
	OP_CONSTU = 0x10,
	OP_CONSTS = 0x11,
	OP_DUP = 0x12,
	OP_DROP = 0x13,
	OP_OVER = 0x14,
	OP_PICK = 0x15,
	OP_SWAP = 0x16,
	OP_ROT = 0x17,
	OP_ABS = 0x19,
	OP_AND = 0x1a,
	OP_DIV = 0x1b,
	OP_MINUS = 0x1c,
	OP_MOD = 0x1d,
	OP_MUL = 0x1e,
	OP_NEG = 0x1f,
	OP_NOT = 0x20,
	OP_OR = 0x21,
	OP_PLUS = 0x22,
	OP_PLUS_UCONST = 0x23,
	OP_SHL = 0x24,
	OP_SHR = 0x25,
	OP_SHRA = 0x26,
	OP_XOR = 0x27,
	OP_BRA = 0x28,
	OP_EQ = 0x29,
	OP_GE = 0x2a,
	OP_GT = 0x2b,
	OP_LE = 0x2c,
	OP_LT = 0x2d,
	OP_NE = 0x2e,
	OP_SKIP = 0x2f,
	OP_LIT0 = 0x30,
	OP_BREG0 = 0x70,
	OP_BREGX = 0x92,
	OP_DEREF_SIZE = 0x94,
	OP_NOP = 0x96,
};

struct expr {
	struct cursor c;
	const uint8_t *code;
	const struct trace_frame_regs *regs;
	trace_read_fn read;
	void *arg;
	uint64_t stack[EXPR_STACK];
	unsigned int n;
	bool bad;
};

static void expr_push(struct expr *m, uint64_t v)
{
	if (m->n == EXPR_STACK)
		m->bad = true;
	else
		m->stack[m->n++] = v;
}

static uint64_t expr_pop(struct expr *m)
{
	if (m->n)
		return m->stack[--m->n];
	m->bad = true;
	return 0;
}

/* The entry 'depth' below the top. */
static void expr_pick(struct expr *m, uint64_t depth)
{
	if (depth < m->n)
		expr_push(m, m->stack[m->n - 1 - depth]);
	else
		m->bad = true;
}

static void expr_push_register(struct expr *m, uint64_t reg)
{
	uint64_t off = (uint64_t)cursor_sleb(&m->c);

	if (reg >= SYMBOLIZER_REGS || !(m->regs->known & 1U << reg))
		m->bad = true;
	else
		expr_push(m, m->regs->v[reg] + off);
}

static void expr_deref(struct expr *m, uint64_t size)
{
	uint64_t v = 0, at = expr_pop(m);

	if (size == 0 || size > 8 || m->bad || !m->read(m->arg, at, &v)) {
		m->bad = true;
		return;
	}
	expr_push(m, size == 8 ? v : v & ((1ULL << 8 * size) - 1));
}

static void expr_jump(struct expr *m, bool taken)
{
	int64_t by = cursor_signed(&m->c, 2);

	if (!taken)
		return;
	if (by < m->code - m->c.p || by > m->c.end - m->c.p)
		m->bad = true;
	else
		m->c.p += by;
}

static uint64_t expr_binary(struct expr *m, uint8_t op, uint64_t a, uint64_t b)
{
	int64_t sa = (int64_t)a, sb = (int64_t)b;

	switch (op) {
	case OP_AND:
		return a & b;
	case OP_DIV:
		if (sb == 0 || (sa == INT64_MIN && sb == -1))
			break;
		return (uint64_t)(sa / sb);
	case OP_MINUS:
		return a - b;
	case OP_MOD:
		if (b == 0)
			break;
		return a % b;
	case OP_MUL:
		return a * b;
	case OP_OR:
		return a | b;
	case OP_PLUS:
		return a + b;
	case OP_SHL:
		return b < 64 ? a << b : 0;
	case OP_SHR:
		return b < 64 ? a >> b : 0;
	case OP_SHRA:
		return (uint64_t)(sa >> MIN(b, (uint64_t)63));
	case OP_XOR:
		return a ^ b;
	case OP_EQ:
		return sa == sb;
	case OP_GE:
		return sa >= sb;
	case OP_GT:
		return sa > sb;
	case OP_LE:
		return sa <= sb;
	case OP_LT:
		return sa < sb;
	case OP_NE:
		return sa != sb;
	}
	m->bad = true;
	return 0;
}

/* Operations that only change the stack. False: another one. */
static bool expr_run_stack(struct expr *m, uint8_t op)
{
	uint64_t a, b, c;

	switch (op) {
	case OP_DUP:
		expr_pick(m, 0);
		return true;
	case OP_DROP:
		expr_pop(m);
		return true;
	case OP_OVER:
		expr_pick(m, 1);
		return true;
	case OP_PICK:
		expr_pick(m, cursor_fixed(&m->c, 1));
		return true;
	case OP_SWAP:
		a = expr_pop(m);
		b = expr_pop(m);
		expr_push(m, a);
		expr_push(m, b);
		return true;
	case OP_ROT:
		a = expr_pop(m);
		b = expr_pop(m);
		c = expr_pop(m);
		expr_push(m, a);
		expr_push(m, c);
		expr_push(m, b);
		return true;
	case OP_ABS:
		a = expr_pop(m);
		expr_push(m, (int64_t)a < 0 ? -a : a);
		return true;
	case OP_NEG:
		expr_push(m, -expr_pop(m));
		return true;
	case OP_NOT:
		expr_push(m, ~expr_pop(m));
		return true;
	case OP_PLUS_UCONST:
		a = cursor_uleb(&m->c);
		expr_push(m, expr_pop(m) + a);
		return true;
	case OP_NOP:
		return true;
	default:
		return false;
	}
}

static void expr_run_one(struct expr *m)
{
	uint8_t op = (uint8_t)cursor_fixed(&m->c, 1);
	uint64_t a, b;
	size_t size;

	if (op >= OP_LIT0 && op < OP_LIT0 + 32) {
		expr_push(m, op - OP_LIT0);
	} else if (op >= OP_BREG0 && op < OP_BREG0 + 32) {
		expr_push_register(m, op - OP_BREG0);
	} else if (op >= OP_CONST1U && op <= OP_CONST8S) {
		size = 1U << ((op - OP_CONST1U) / 2);
		expr_push(m, op & 1 ? (uint64_t)cursor_signed(&m->c, size)
				    : cursor_fixed(&m->c, size));
	} else if (op == OP_BREGX) {
		expr_push_register(m, cursor_uleb(&m->c));
	} else if (op == OP_CONSTU) {
		expr_push(m, cursor_uleb(&m->c));
	} else if (op == OP_CONSTS) {
		expr_push(m, (uint64_t)cursor_sleb(&m->c));
	} else if (op == OP_DEREF) {
		expr_deref(m, 8);
	} else if (op == OP_DEREF_SIZE) {
		expr_deref(m, cursor_fixed(&m->c, 1));
	} else if (op == OP_SKIP) {
		expr_jump(m, true);
	} else if (op == OP_BRA) {
		expr_jump(m, expr_pop(m) != 0);
	} else if (!expr_run_stack(m, op)) {
		b = expr_pop(m);
		a = expr_pop(m);
		expr_push(m, expr_binary(m, op, a, b));
	}
}

bool trace_expr(const uint8_t *code, size_t len,
		const struct trace_frame_regs *regs, const uint64_t *cfa,
		trace_read_fn read, void *arg, uint64_t *out)
{
	struct expr m = { .c = { code, code + len, false },
			  .code = code,
			  .regs = regs,
			  .read = read,
			  .arg = arg };

	if (cfa)
		expr_push(&m, *cfa);
	for (int steps = 0; m.c.p < m.c.end && !m.bad; steps++) {
		if (steps == EXPR_STEPS)
			return false;
		expr_run_one(&m);
	}
	*out = expr_pop(&m);
	return !m.bad && !m.c.bad;
}
