// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: rows by hand. What is read, printed in full and read again is
 * the same table; laid over itself it is too, and over another it stands.
 */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "tests/fuzz/symbolize/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void print_all(const struct symbolizer_rows *rows, struct strbuf *out)
{
	struct symbolizer_rows_info info;
	uint64_t at;
	uint16_t id;

	symbolizer_rows_info(rows, &info);
	for (size_t i = 0; i < info.rows; i++) {
		id = symbolizer_rows_at(rows, i, &at);
		strbuf_printf(out, "%" PRIx64 " ", at);
		symbolizer_rows_put(rows, id, true, out);
		strbuf_puts(out, "\n");
	}
}

static void must_be_same(const struct symbolizer_rows *a,
			 const struct symbolizer_rows *b)
{
	struct strbuf x = STRBUF_INIT, y = STRBUF_INIT;

	print_all(a, &x);
	print_all(b, &y);
	must(!strcmp(strbuf_str(&x), strbuf_str(&y)));
	strbuf_fini(&x);
	strbuf_fini(&y);
}

static void round_trip(const struct symbolizer_rows *rows)
{
	struct symbolizer_rows_error where;
	struct symbolizer_rows_info info;
	struct symbolizer_rows *again;
	struct strbuf text = STRBUF_INIT;

	symbolizer_rows_info(rows, &info);
	print_all(rows, &text);
	must(!text.failed);
	if (info.rows) {
		must(symbolizer_rows_parse(text.data, text.len, &again,
					   &where) == 0);
		must_be_same(rows, again);
		symbolizer_rows_free(again);
	}
	strbuf_fini(&text);
}

/* Over a table that covers some of the same addresses. */
static void lay_over(const struct symbolizer_rows *rows)
{
	static const char below[] = "1000 rbp+16 c-16 rbx=c-24\n"
				    "1800 expr:7708 *expr:7606 u\n"
				    "2000 end\n";
	struct symbolizer_rows *own, *both;
	struct symbolizer_rows_error where;
	struct symbolizer_rows_info info;
	struct symbolizer_rule a, b;
	const struct symbolizer_rows *from;
	uint64_t at;

	must(symbolizer_rows_parse(below, sizeof(below) - 1, &own, &where) ==
	     0);
	if (symbolizer_rows_overlay(own, rows, &both) == 0) {
		check_rows(both);
		symbolizer_rows_info(rows, &info);
		for (size_t i = 0; i < info.rows; i++) {
			from = symbolizer_rows_at(rows, i, &at) ? rows : own;
			symbolizer_rows_rule(
				from, symbolizer_rows_find(from, at), &a);
			symbolizer_rows_rule(
				both, symbolizer_rows_find(both, at), &b);
			must(a.cfa.from == b.cfa.from);
		}
		symbolizer_rows_free(both);
	}
	symbolizer_rows_free(own);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbolizer_rows_error where;
	struct symbolizer_rows *rows, *both;
	int err;

	err = symbolizer_rows_parse((const char *)data, size, &rows, &where);
	if (err) {
		must(err != -EINVAL || where.what);
		must(where.column <= size + 1);
		return 0;
	}
	check_rows(rows);
	check_adopted(rows);
	round_trip(rows);
	must(symbolizer_rows_overlay(rows, rows, &both) == 0);
	must_be_same(rows, both);
	symbolizer_rows_free(both);
	lay_over(rows);
	symbolizer_rows_free(rows);
	return 0;
}
