// SPDX-License-Identifier: Apache-2.0
/* rows_parse: rows parsed from text; see symbolize/rows/rows_text.c. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/rows.h"

#define PARSE_EXPR_MAX 4096
#define PARSE_SPAN_MAX UINT32_MAX

#define PARSE_LOSSY "a short form; --full prints what it stands for"

struct word {
	const char *p;
	size_t len;
};

struct parser {
	const char *p, *end; /* the rest of the text */
	const char *begin, *line_end; /* the current line */
	struct symbolizer_rows_build b;
	struct symbolizer_rows_error *err;
	uint64_t first, last; /* addresses of rows, if there are any */
	bool any, open; /* open: the last row is no "end" */
};

/* Reports the first error, at 'at'. */
static int rows_parse_bad(struct parser *x, const char *at, const char *what)
{
	if (!x->err->what) {
		x->err->what = what;
		x->err->column = (size_t)(at - x->begin) + 1;
	}
	return -EINVAL;
}

/* --- words and numbers ------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

/* The next word of the line; a comment ends it. */
static bool rows_next_word(struct parser *x, struct word *w)
{
	while (x->p < x->line_end && is_blank(*x->p))
		x->p++;
	if (x->p < x->line_end && *x->p == '#')
		x->line_end = x->p;
	w->p = x->p;
	while (x->p < x->line_end && !is_blank(*x->p) && *x->p != '#')
		x->p++;
	w->len = (size_t)(x->p - w->p);
	return w->len > 0;
}

static bool rows_word_is(const struct word *w, const char *s)
{
	return w->len == strlen(s) && !memcmp(w->p, s, w->len);
}

/* Removes 's' from the front. */
static bool rows_parse_take(struct word *w, const char *s)
{
	size_t len = strlen(s);

	if (w->len < len || memcmp(w->p, s, len) != 0)
		return false;
	w->p += len;
	w->len -= len;
	return true;
}

static int hex_digit(char c)
{
	static const char digits[] = "0123456789abcdefABCDEF";
	const char *p = memchr(digits, c, sizeof(digits) - 1);
	int n = p ? (int)(p - digits) : -1;

	return n < 16 ? n : n - 6;
}

static bool word_hex(struct word w, uint64_t *out)
{
	rows_parse_take(&w, "0x");
	*out = 0;
	if (w.len == 0 || w.len > 16)
		return false;
	for (size_t i = 0; i < w.len; i++) {
		if (hex_digit(w.p[i]) < 0)
			return false;
		*out = *out << 4 | (uint64_t)hex_digit(w.p[i]);
	}
	return true;
}

/* A sign and digits to the end of the word; no characters are 0 if 'optional'. */
static bool word_number(const struct word *w, bool optional, int32_t *out)
{
	int64_t v = 0;

	*out = 0;
	if (w->len == 0)
		return optional;
	if ((*w->p != '+' && *w->p != '-') || w->len < 2 || w->len > 11)
		return false;
	for (size_t i = 1; i < w->len; i++) {
		if (w->p[i] < '0' || w->p[i] > '9')
			return false;
		v = v * 10 + (w->p[i] - '0');
	}
	if (*w->p == '-')
		v = -v;
	*out = (int32_t)v;
	return v == *out;
}

/* --- values ------------------------------------------------------------------ */

/* Removes the longest name of a register from the front; -1: there is none. */
static int take_reg(struct word *w)
{
	int best = -1;
	size_t len, longest = 0;

	for (int i = 0; i < SYMBOLIZER_REG_RA; i++) {
		len = strlen(symbolizer_reg_names[i]);
		if (len > longest && w->len >= len &&
		    !memcmp(w->p, symbolizer_reg_names[i], len)) {
			best = i;
			longest = len;
		}
	}
	w->p += longest;
	w->len -= longest;
	return best;
}

/* The bytes of an expression, two digits each. */
static int parse_expr(struct parser *x, const struct word *w,
		      struct symbolizer_value *v)
{
	uint8_t code[PARSE_EXPR_MAX];
	size_t len = w->len / 2;
	int n;

	if (w->len == 0 || w->len % 2 || len > sizeof(code))
		return rows_parse_bad(x, w->p,
				      "an expression of no sensible length");
	for (size_t i = 0; i < w->len; i++) {
		n = hex_digit(w->p[i]);
		if (n < 0)
			return rows_parse_bad(x, w->p + i,
					      "no hexadecimal digit");
		code[i / 2] = (uint8_t)((i % 2 ? code[i / 2] << 4 : 0) | n);
	}
	n = symbolizer_pool_put(&x->b.exprs, code, len);
	v->n = n;
	return MIN(n, 0);
}

static int parse_reg(struct parser *x, struct word w,
		     struct symbolizer_value *v)
{
	const char *at = w.p;
	int reg;

	v->from = rows_parse_take(&w, "*") ? SYMBOLIZER_AT_REG : SYMBOLIZER_REG;
	reg = take_reg(&w);
	if (reg < 0 || !word_number(&w, true, &v->n))
		return rows_parse_bad(x, at, "no value");
	v->reg = (uint8_t)reg;
	return 0;
}

static int parse_value(struct parser *x, struct word w,
		       struct symbolizer_value *v)
{
	/* "cfa" before "c" */
	static const uint8_t prefixed[] = { SYMBOLIZER_AT_EXPR, SYMBOLIZER_EXPR,
					    SYMBOLIZER_CFA, SYMBOLIZER_AT_CFA };
	const char *at = w.p;

	*v = (struct symbolizer_value){ 0 };
	for (uint8_t i = SYMBOLIZER_SAME; i <= SYMBOLIZER_UNDEFINED; i++) {
		v->from = i;
		if (rows_word_is(&w, symbolizer_rows_words[i]))
			return 0;
	}
	v->from = SYMBOLIZER_ELSEWHERE;
	for (v->n = 0; v->n < SYMBOLIZER_SWITCH_MAX; v->n++)
		if (rows_word_is(&w, symbolizer_switch_words[v->n]))
			return 0;
	v->n = 0;
	if (rows_word_is(&w, "expr"))
		return rows_parse_bad(x, at, PARSE_LOSSY);
	for (size_t i = 0; i < ARRAY_SIZE(prefixed); i++) {
		v->from = prefixed[i];
		if (!rows_parse_take(&w, symbolizer_rows_words[v->from]))
			continue;
		if (v->from == SYMBOLIZER_EXPR || v->from == SYMBOLIZER_AT_EXPR)
			return parse_expr(x, &w, v);
		return word_number(&w, false, &v->n)
			       ? 0
			       : rows_parse_bad(x, at, "no value");
	}
	return parse_reg(x, w, v);
}

/* Behind "plt": nothing, or a colon and a number below 16. */
static int parse_plt(struct parser *x, struct word w,
		     struct symbolizer_value *v)
{
	const char *at = w.p - strlen("plt");
	int32_t n = w.len ? 0 : ARCH_PLT_PUSH;
	bool ok =
		w.len == 0 || (rows_parse_take(&w, ":") && w.len && w.len <= 2);

	for (size_t i = 0; i < w.len && ok; i++) {
		ok = w.p[i] >= '0' && w.p[i] <= '9';
		n = n * 10 + (w.p[i] - '0');
	}
	*v = (struct symbolizer_value){ SYMBOLIZER_PLT, 0, 0, n };
	return ok && n <= 15 ? 0
			     : rows_parse_bad(x, at, "no byte of a PLT stub");
}

static int parse_cfa(struct parser *x, struct word w,
		     struct symbolizer_rule *rule)
{
	struct symbolizer_value *v = &rule->cfa;

	if (rows_word_is(&w, "sig") || rows_word_is(&w, "deref") ||
	    rows_word_is(&w, "expr"))
		return rows_parse_bad(x, w.p, PARSE_LOSSY);
	rule->signal = rows_parse_take(&w, "sig:");
	if (rows_parse_take(&w, "plt"))
		return parse_plt(x, w, v);
	v->from = SYMBOLIZER_EXPR;
	if (rows_parse_take(&w, "expr:"))
		return parse_expr(x, &w, v);
	return parse_reg(x, w, v);
}

/* --- lines ------------------------------------------------------------------- */

static int parse_rest(struct parser *x, struct symbolizer_rule *rule,
		      struct word w)
{
	struct symbolizer_value *ra = &rule->regs[SYMBOLIZER_REG_RA];
	uint32_t seen = 1U << SYMBOLIZER_REG_FP | 1U << SYMBOLIZER_REG_RA;
	struct word value;
	int reg, err;

	if (w.len && !memchr(w.p, '=', w.len)) {
		err = parse_value(x, w, ra);
		if (err)
			return err;
		if (ra->from == SYMBOLIZER_SAME)
			ra->from = SYMBOLIZER_UNDEFINED;
		rows_next_word(x, &w);
	}
	for (; w.len; rows_next_word(x, &w)) {
		value = w;
		reg = take_reg(&value);
		if (reg < 0 || !rows_parse_take(&value, "="))
			return rows_parse_bad(x, w.p, "no REGISTER=VALUE");
		if (seen & 1U << reg)
			return rows_parse_bad(
				x, w.p, "a register that has a rule already");
		seen |= 1U << reg;
		err = parse_value(x, value, &rule->regs[reg]);
		if (err)
			return err;
	}
	return 0;
}

/* The rest of a line after the address; *gap: there is no rule from here on. */
static int parse_rule(struct parser *x, struct symbolizer_rule *rule, bool *gap)
{
	struct word w;
	int err;

	memset(rule, 0, sizeof(*rule));
	arch_rule_default(rule);
	if (!rows_next_word(x, &w))
		return rows_parse_bad(x, w.p, "no CFA");
	*gap = rows_word_is(&w, "end");
	if (*gap) {
		if (rows_next_word(x, &w) &&
		    (!rows_word_is(&w, "u") || rows_next_word(x, &w)))
			return rows_parse_bad(x, w.p,
					      "something behind the end");
		return 0;
	}
	err = parse_cfa(x, w, rule);
	if (err)
		return err;
	if (!rows_next_word(x, &w))
		return rows_parse_bad(x, w.p, "no rule for " ARCH_FP_NAME);
	err = parse_value(x, w, &rule->regs[SYMBOLIZER_REG_FP]);
	if (err)
		return err;
	rows_next_word(x, &w);
	return parse_rest(x, rule, w);
}

static int parse_line(struct parser *x)
{
	struct symbolizer_rule rule;
	struct word w;
	uint64_t at;
	bool gap = false;
	int err = 0;

	if (!rows_next_word(x, &w))
		return 0;
	if (!word_hex(w, &at))
		return rows_parse_bad(x, w.p, "no hexadecimal address");
	if (x->any && at <= x->last)
		return rows_parse_bad(x, w.p,
				      "an address not above the one before");
	if (!x->any) {
		x->first = at;
		x->b.base = at & ~0xffffULL;
		/* The last row is a gap, so it ends in time. */
		symbolizer_rows_func(&x->b, at,
				     x->b.base + MIN(PARSE_SPAN_MAX,
						     UINT64_MAX - x->b.base),
				     &err);
	} else if (at - x->b.base > PARSE_SPAN_MAX) {
		return rows_parse_bad(x, w.p,
				      "an address too far from the first");
	}
	x->any = true;
	x->last = at;
	if (!err)
		err = parse_rule(x, &rule, &gap);
	if (!err && x->b.n_funcs) /* none at the last address of all */
		err = symbolizer_rows_add(&x->b, at, gap ? NULL : &rule);
	if (err == -E2BIG)
		x->err->what = "more rules than a table holds";
	x->open = !gap;
	return err;
}

static int parse_all(struct parser *x, const char *text, size_t len)
{
	const char *nl;
	int err = 0;

	x->p = x->begin = text;
	x->end = text + len;
	while (x->p < x->end && !err) {
		nl = memchr(x->p, '\n', (size_t)(x->end - x->p));
		x->begin = x->p;
		x->line_end = nl ? nl : x->end;
		x->err->line++;
		err = parse_line(x);
		x->p = nl ? nl + 1 : x->end;
	}
	if (!err && !x->any)
		err = rows_parse_bad(x, x->begin, "no rows");
	if (!err && x->open)
		err = rows_parse_bad(x, x->begin, "the last row is no end");
	return err;
}

int symbolizer_rows_parse(const char *text, size_t len,
			  struct symbolizer_rows **out,
			  struct symbolizer_rows_error *where)
{
	struct parser x = {
		.err = where,
		.b = { .exec[0] = { 0, UINT64_MAX }, .n_exec = 1 },
	};
	struct symbolizer_rows_info info = { 0 };
	int err;

	memset(where, 0, sizeof(*where));
	err = parse_all(&x, text, len);
	x.b.text = x.last - x.first;
	if (!err)
		err = symbolizer_rows_end(&x.b, &info, out);
	symbolizer_rows_build_fini(&x.b);
	return err;
}
