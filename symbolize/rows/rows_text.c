// SPDX-License-Identifier: Apache-2.0
/* rows_text: rows written as text, see symbolize/rows/rows_text.h. */
#include <inttypes.h>

#include "base/base.h"
#include "symbolize/rows/rows_text.h"

const char *const symbolizer_reg_names[SYMBOLIZER_REGS] = {
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp", "r8",
	"r9",  "r10", "r11", "r12", "r13", "r14", "r15", "ra",
};

/* A rule on its way to text. */
struct writer {
	struct strbuf *out;
	const struct symbolizer_rows *rows;
	bool full;
};

static void put_expr(struct writer *w, const struct symbolizer_value *v)
{
	const uint8_t *code;
	size_t len = 0;

	strbuf_puts(w->out, v->from == SYMBOLIZER_AT_EXPR ? "*expr:" : "expr:");
	code = symbolizer_rows_expr(w->rows, v->n, &len);
	for (size_t i = 0; i < len; i++)
		strbuf_printf(w->out, "%02x", code[i]);
}

static void put_reg(struct writer *w, const struct symbolizer_value *v)
{
	strbuf_puts(w->out, v->from == SYMBOLIZER_AT_REG ? "*" : "");
	strbuf_puts(w->out, symbolizer_reg_names[v->reg]);
	if (v->n)
		strbuf_printf(w->out, "%+d", v->n);
}

/* A value, whatever it is of. */
static void rows_put_full(struct writer *w, const struct symbolizer_value *v)
{
	switch (v->from) {
	case SYMBOLIZER_SAME:
		strbuf_puts(w->out, "u");
		break;
	case SYMBOLIZER_UNDEFINED:
		strbuf_puts(w->out, "none");
		break;
	case SYMBOLIZER_ELSEWHERE:
		strbuf_puts(w->out, "elsewhere");
		break;
	case SYMBOLIZER_REG:
	case SYMBOLIZER_AT_REG:
		put_reg(w, v);
		break;
	case SYMBOLIZER_CFA:
		strbuf_printf(w->out, "cfa%+d", v->n);
		break;
	case SYMBOLIZER_AT_CFA:
		strbuf_printf(w->out, "c%+d", v->n);
		break;
	case SYMBOLIZER_PLT:
		strbuf_printf(w->out, "plt:%d", v->n);
		break;
	default:
		put_expr(w, v);
	}
}

static void put_cfa(struct writer *w, const struct symbolizer_rule *rule)
{
	const struct symbolizer_value *cfa = &rule->cfa;

	if (rule->signal)
		strbuf_puts(w->out, w->full ? "sig:" : "sig");
	if (rule->signal && !w->full)
		return;
	if (cfa->from == SYMBOLIZER_REG)
		strbuf_printf(w->out, "%s%+d", symbolizer_reg_names[cfa->reg],
			      cfa->n);
	else if (w->full)
		rows_put_full(w, cfa);
	else if (cfa->from == SYMBOLIZER_PLT)
		strbuf_puts(w->out, "plt");
	else
		strbuf_puts(w->out,
			    cfa->from == SYMBOLIZER_AT_REG ? "deref" : "expr");
}

static void put_value(struct writer *w, const struct symbolizer_value *v)
{
	if (w->full || v->from == SYMBOLIZER_SAME ||
	    v->from == SYMBOLIZER_AT_CFA ||
	    (v->from == SYMBOLIZER_REG && v->n == 0))
		rows_put_full(w, v);
	else
		strbuf_puts(w->out,
			    v->from == SYMBOLIZER_UNDEFINED ? "u" : "expr");
}

static bool rows_is_usual(const struct symbolizer_value *v, int reg)
{
	switch (reg) {
	case ROWS_DWARF_RBP: /* has its own column */
		return true;
	case ROWS_DWARF_RSP:
		return v->from == SYMBOLIZER_CFA && v->n == 0;
	case SYMBOLIZER_REG_RA:
		return v->from == SYMBOLIZER_AT_CFA && v->n == -8;
	default:
		return v->from == SYMBOLIZER_SAME;
	}
}

static void put_rest(struct writer *w, const struct symbolizer_rule *rule)
{
	for (int i = 0; i < SYMBOLIZER_REG_RA; i++) {
		if (rows_is_usual(&rule->regs[i], i))
			continue;
		strbuf_printf(w->out, " %s=", symbolizer_reg_names[i]);
		rows_put_full(w, &rule->regs[i]);
	}
}

void symbolizer_rows_put(const struct symbolizer_rows *rows, uint16_t id,
			 bool full, struct strbuf *out)
{
	const struct symbolizer_value *ra;
	struct symbolizer_rule rule;
	struct writer w = { out, rows, full };

	symbolizer_rows_rule(rows, id, &rule);
	if (rule.cfa.from == SYMBOLIZER_SAME) {
		strbuf_puts(out, "end u");
		return;
	}
	put_cfa(&w, &rule);
	strbuf_puts(out, " ");
	put_value(&w, &rule.regs[ROWS_DWARF_RBP]);
	ra = &rule.regs[SYMBOLIZER_REG_RA];
	if (!rows_is_usual(ra, SYMBOLIZER_REG_RA)) {
		strbuf_puts(out, " ");
		if (ra->from == SYMBOLIZER_UNDEFINED ||
		    (!full && ra->from == SYMBOLIZER_ELSEWHERE))
			strbuf_puts(out, "u");
		else
			put_value(&w, ra);
	}
	if (full)
		put_rest(&w, &rule);
}
