// SPDX-License-Identifier: Apache-2.0
/*
 * rows_text: rows as lines of text, as `profd debug unwind-table` prints them and
 * as users write them for files that have none, or wrong ones.
 *
 *    ADDRESS CFA RBP [RA] [REGISTER=VALUE]...
 *
 * The short form is lossy: "deref" and "expr" stand for rules that only the full
 * form writes out. It has all registers, and can be parsed.
 *
 *    CFA     rsp+N, any register +N; *REG+N; plt or plt:N; expr:HEX; sig: before
 *            one of these, the frame of a signal handler; end, a gap
 *    VALUE   u, unchanged (of the return address: none, a root); none; c-N, in
 *            memory at CFA-N; cfa-N, that itself; REG, REG+N; *REG+N; expr:HEX;
 *            *expr:HEX; elsewhere (of the return address), on another stack, and a
 *            colon and how Go's runtime got from there (SYMBOLIZER_SWITCHES)
 */
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/rows.h"

const char *const symbolizer_rows_words[] = {
	[SYMBOLIZER_SAME] = "u",	 [SYMBOLIZER_UNDEFINED] = "none",
	[SYMBOLIZER_ELSEWHERE] = "", /* see symbolizer_switch_words */
	[SYMBOLIZER_REG] = "",		 [SYMBOLIZER_AT_REG] = "*",
	[SYMBOLIZER_CFA] = "cfa",	 [SYMBOLIZER_AT_CFA] = "c",
	[SYMBOLIZER_PLT] = "plt:",	 [SYMBOLIZER_EXPR] = "expr:",
	[SYMBOLIZER_AT_EXPR] = "*expr:",
};

const char *const symbolizer_switch_words[] = {
#define X(name, word) [SYMBOLIZER_SWITCH_##name] = (word),
	SYMBOLIZER_SWITCHES(X)
#undef X
};

/* A rule being written. */
struct writer {
	struct strbuf *out;
	const struct symbolizer_rows *rows;
	bool full;
};

static void put_expr(struct writer *w, const struct symbolizer_value *v)
{
	size_t len = 0;
	const uint8_t *code = symbolizer_rows_expr(w->rows, v->n, &len);

	for (size_t i = 0; i < len; i++)
		strbuf_printf(w->out, "%02x", code[i]);
}

/* A value in the full form. */
static void rows_put_full(struct writer *w, const struct symbolizer_value *v)
{
	strbuf_puts(w->out, symbolizer_rows_words[v->from]);
	switch (v->from) {
	case SYMBOLIZER_ELSEWHERE:
		strbuf_puts(w->out, symbolizer_switch_words[v->n]);
		break;
	case SYMBOLIZER_REG:
	case SYMBOLIZER_AT_REG:
		strbuf_puts(w->out, symbolizer_reg_names[v->reg]);
		if (v->n)
			strbuf_printf(w->out, "%+d", v->n);
		break;
	case SYMBOLIZER_CFA:
	case SYMBOLIZER_AT_CFA:
		strbuf_printf(w->out, "%+d", v->n);
		break;
	case SYMBOLIZER_PLT:
		strbuf_printf(w->out, "%d", v->n);
		break;
	case SYMBOLIZER_EXPR:
	case SYMBOLIZER_AT_EXPR:
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

static bool rows_is_default(const struct symbolizer_rule *rule, int reg)
{
	struct symbolizer_rule def = { 0 };

	arch_rule_default(&def);
	return !memcmp(&rule->regs[reg], &def.regs[reg], sizeof(*def.regs));
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
	put_value(&w, &rule.regs[SYMBOLIZER_REG_FP]);
	ra = &rule.regs[SYMBOLIZER_REG_RA];
	if (!rows_is_default(&rule, SYMBOLIZER_REG_RA)) {
		strbuf_puts(out, " ");
		if (ra->from == SYMBOLIZER_UNDEFINED ||
		    (!full && ra->from == SYMBOLIZER_ELSEWHERE))
			strbuf_puts(out, "u");
		else
			put_value(&w, ra);
	}
	for (int i = 0; i < SYMBOLIZER_REG_RA && full; i++) {
		if (i == SYMBOLIZER_REG_FP || rows_is_default(&rule, i))
			continue;
		strbuf_printf(out, " %s=", symbolizer_reg_names[i]);
		rows_put_full(&w, &rule.regs[i]);
	}
}
