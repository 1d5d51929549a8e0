// SPDX-License-Identifier: Apache-2.0
/* rows: the finished table, and how it is asked; see symbolize/rows.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows_table.h"

void symbolizer_rows_free(struct symbolizer_rows *rows)
{
	free(rows);
}

void symbolizer_rows_info(const struct symbolizer_rows *rows,
			  struct symbolizer_rows_info *out)
{
	*out = rows->info;
}

uint16_t symbolizer_rows_find(const struct symbolizer_rows *rows,
			      uint64_t vaddr)
{
	uint64_t page = (vaddr - rows->base) >> 16;
	uint32_t lo, hi, mid;

	if (vaddr < rows->base || page >= rows->n_pages)
		return 0;
	lo = rows->pages[page];
	hi = rows->pages[page + 1];
	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (rows->rows[mid].pc <= (vaddr & 0xffff))
			lo = mid + 1;
		else
			hi = mid;
	}
	/* The last row of an earlier page holds on into this one. */
	return lo ? rows->rows[lo - 1].rule : 0;
}

uint16_t symbolizer_rows_at(const struct symbolizer_rows *rows, size_t i,
			    uint64_t *vaddr)
{
	uint32_t lo = 0, hi = rows->n_pages, mid;

	/* The last page that begins with this row or an earlier one. */
	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (rows->pages[mid] <= i)
			lo = mid;
		else
			hi = mid;
	}
	*vaddr = rows->base + ((uint64_t)lo << 16) + rows->rows[i].pc;
	return rows->rows[i].rule;
}

void symbolizer_rows_rule(const struct symbolizer_rows *rows, uint16_t id,
			  struct symbolizer_rule *out)
{
	const struct rows_item *item, *end;

	memset(out, 0, sizeof(*out));
	if (id == 0 || id > rows->info.rules)
		return;
	rows_rule_default(out);
	item = (const void *)(rows->rules + rows->rule_starts[id - 1]);
	end = (const void *)(rows->rules + rows->rule_starts[id]);
	for (; item < end; item++) {
		struct symbolizer_value v = { item->from, item->reg, 0,
					      item->n };

		if (item->to == ROWS_CFA)
			out->cfa = v;
		else
			out->regs[item->to] = v;
		out->signal |= item->signal;
	}
}

const uint8_t *symbolizer_rows_expr(const struct symbolizer_rows *rows,
				    int32_t n, size_t *len)
{
	if (n < 0 || (uint32_t)n >= rows->n_exprs)
		return NULL;
	*len = rows->expr_starts[n + 1] - rows->expr_starts[n];
	return rows->exprs + rows->expr_starts[n];
}
