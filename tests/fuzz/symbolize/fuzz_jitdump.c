// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: a jitdump that grows, in two parts, and then changes; its entries, their
 * names, lines and unwind rows. The first byte is the part in 256ths that is there at first.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/jit/jit.h"
#include "tests/fuzz/symbolize/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void find_all(const struct jit_table *t, struct symbolizer_src *src)
{
	char name[JIT_NAME_MAX];
	struct jit_line line;
	struct jit_query q;
	int len;

	for (size_t i = 0; i < t->n && i < 64; i++) {
		q = (struct jit_query){ .addr = t->v[i].start + i % 8,
					.at = t->v[i].from + i % 3 };
		if (jit_table_find(t, &q, 1))
			abort();
		if (q.until <= q.at && q.at != UINT64_MAX)
			abort();
		if (!q.found || q.found->name == JIT_GONE)
			continue;
		if (q.addr - q.found->start >= q.found->size)
			abort();
		len = perfmap_name(src, q.found, name);
		if (len == 0 || (len > 0 && strlen(name) != (size_t)len))
			abort();
		if (q.found->lines &&
		    !jitdump_line(src, q.found, q.addr, &line) && !line.line)
			abort();
	}
}

/* No row is outside of the code that has unwind information. */
static void check_code_rows(const struct jit_table *t,
			    const struct symbolizer_rows *rows)
{
	struct symbolizer_rows_info info;
	uint64_t addr;
	size_t k;

	symbolizer_rows_info(rows, &info);
	for (size_t i = 0; i < info.rows && t->n < 1000; i++) {
		if (!symbolizer_rows_at(rows, i, &addr))
			continue;
		for (k = 0; k < t->n; k++)
			if (t->v[k].unwind &&
			    addr - t->v[k].start < t->v[k].size)
				break;
		if (k == t->n)
			abort();
	}
}

static void rows_all(const struct jit_table *t, struct symbolizer_src *src)
{
	struct symbolizer_rows_info info;
	struct symbolizer_rows *rows;
	uint64_t at;

	for (size_t i = 0; i < t->n && i < 4; i++) {
		at = t->v[i].from + i % 2;
		if (jit_table_rows(t, src, at, &rows))
			continue;
		symbolizer_rows_info(rows, &info);
		if (info.before > at || !(info.after || at == UINT64_MAX))
			abort();
		check_code_rows(t, rows);
		check_rows(rows);
		check_adopted(rows);
		symbolizer_rows_free(rows);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jit_table t = { 0 }, whole = { 0 };
	struct symbolizer_src src;
	size_t first;

	if (!size)
		return 0;
	first = data[0] * (size - 1) / 256;
	symbolizer_src_mem(&src, data + 1, first);
	if (jitdump_read(&t, &src))
		abort();
	find_all(&t, &src);
	symbolizer_src_mem(&src, data + 1, size - 1);
	if (jitdump_read(&t, &src) || jitdump_read(&whole, &src))
		abort();
	/* In parts or at once, the entries are the same. */
	if (t.n != whole.n || t.end != whole.end ||
	    (t.n && memcmp(t.v, whole.v, t.n * sizeof(*t.v)) != 0))
		abort();
	find_all(&t, &src);
	rows_all(&t, &src);
	symbolizer_src_mem(&src, data + size / 2, size - size / 2);
	find_all(&whole, &src);
	rows_all(&whole, &src);
	jit_table_fini(&t);
	jit_table_fini(&whole);
	return 0;
}
