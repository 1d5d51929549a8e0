// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: call frame information into unwind rows, and every question a
 * table can be asked. The first byte says what the rest is: an ELF file, or the
 * bare contents of .eh_frame or .debug_frame.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/cfi.h"

#define TEXT 0x10000
#define TEXT_SIZE 0x40000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void check_value(const struct symbolizer_rows *rows,
			const struct symbolizer_value *v)
{
	const uint8_t *p;
	size_t len, sum = 0;

	must(v->from <= SYMBOLIZER_AT_EXPR && v->reg < SYMBOLIZER_REG_RA);
	if (v->from != SYMBOLIZER_EXPR && v->from != SYMBOLIZER_AT_EXPR)
		return;
	p = symbolizer_rows_expr(rows, v->n, &len);
	must(p && len);
	for (size_t i = 0; i < len; i++)
		sum += p[i];
	must(sum <= 255 * len);
}

/* Rows ascend, differ from their neighbours, are found, and end in a gap. */
static void check_rows(const struct symbolizer_rows *rows)
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

static int read_section(const uint8_t *data, size_t size, bool eh,
			struct symbolizer_rows **rows)
{
	struct symbolizer_rows_build b = { .base = TEXT, .n_exec = 1 };
	struct symbolizer_rows_info info = { 0 };
	struct symbolizer_src src;
	struct cfi_section s = { .src = &src,
				 .name = "fuzz",
				 .size = size,
				 .vaddr = TEXT + TEXT_SIZE,
				 .eh = eh };
	int err = -ENOMEM;

	symbolizer_src_mem(&src, data, size);
	b.exec = calloc(1, sizeof(*b.exec));
	if (b.exec) {
		b.exec->start = TEXT;
		b.exec->end = TEXT + TEXT_SIZE;
		err = symbolizer_cfi_read(&s, &b, &info);
	}
	if (!err)
		err = symbolizer_rows_end(&b, &info, rows);
	symbolizer_rows_build_fini(&b);
	return err;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbolizer_rows *rows;
	struct symbolizer_src src;
	int err;

	if (size == 0)
		return 0;
	if (data[0] & 2) {
		symbolizer_src_mem(&src, data + 1, size - 1);
		err = symbolizer_rows_read(&rows, &src);
	} else {
		err = read_section(data + 1, size - 1, data[0] & 1, &rows);
	}
	if (err)
		return 0;
	check_rows(rows);
	symbolizer_rows_free(rows);
	return 0;
}
