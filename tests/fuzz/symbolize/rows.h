/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What fuzz targets ask of a table, wherever it comes from: everything a table
 * can be asked, and that the answers agree.
 */
#ifndef TESTS_FUZZ_SYMBOLIZE_ROWS_H
#define TESTS_FUZZ_SYMBOLIZE_ROWS_H

#include <stdlib.h>
#include <string.h>

#include "symbolize/symbolize.h"

static inline void must(bool holds)
{
	if (!holds)
		abort();
}

static inline void check_value(const struct symbolizer_rows *rows,
			       const struct symbolizer_value *v)
{
	const uint8_t *p;
	size_t len, sum = 0;

	must(v->from <= SYMBOLIZER_AT_EXPR && v->reg < SYMBOLIZER_REG_RA);
	must(v->from != SYMBOLIZER_ELSEWHERE ||
	     (v->n >= 0 && v->n < SYMBOLIZER_SWITCH_MAX));
	if (v->from != SYMBOLIZER_EXPR && v->from != SYMBOLIZER_AT_EXPR)
		return;
	p = symbolizer_rows_expr(rows, v->n, &len);
	must(p && len);
	for (size_t i = 0; i < len; i++)
		sum += p[i];
	must(sum <= 255 * len);
}

/* Rows ascend, differ from their neighbours, are found, and end in a gap. */
static inline void check_rows(const struct symbolizer_rows *rows)
{
	struct symbolizer_rows_info info;
	struct symbolizer_rule rule;
	uint64_t at, last_at = 0;
	uint16_t id, last = 0;

	symbolizer_rows_info(rows, &info);
	for (size_t i = 0; i < info.rows; i++) {
		id = symbolizer_rows_at(rows, i, &at);
		must(id != last && (i == 0 || at > last_at));
		must(symbolizer_rows_find(rows, at) == id);
		if (i)
			must(symbolizer_rows_find(rows, at - 1) == last);
		last = id;
		last_at = at;
		symbolizer_rows_rule(rows, id, &rule);
		must((rule.cfa.from == SYMBOLIZER_SAME) == (id == 0));
		check_value(rows, &rule.cfa);
		for (int k = 0; k < SYMBOLIZER_REGS; k++)
			check_value(rows, &rule.regs[k]);
	}
	must(last == 0);
}

/* Its bytes are a table for a stranger too, of the same rows. */
static inline void check_adopted(const struct symbolizer_rows *rows)
{
	struct symbolizer_rows *again;
	const void *bytes, *same;
	size_t len, same_len;

	bytes = symbolizer_rows_bytes(rows, &len);
	must(symbolizer_rows_adopt(bytes, len, NULL, NULL, &again) == 0);
	same = symbolizer_rows_bytes(again, &same_len);
	must(same == bytes && same_len == len);
	check_rows(again);
	symbolizer_rows_free(again);
}

#endif /* TESTS_FUZZ_SYMBOLIZE_ROWS_H */
