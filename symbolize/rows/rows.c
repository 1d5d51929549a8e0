// SPDX-License-Identifier: Apache-2.0
/* rows: the finished table and its lookups; see symbolize/rows/rows.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/rows_table.h"

uint64_t symbolizer_rows_size(const struct rows_head *h)
{
	return sizeof(*h) +
	       ((uint64_t)h->n_words + h->n_rules + 1 + h->n_exprs + 1 +
		h->n_pages + 1) *
		       sizeof(uint32_t) +
	       h->n_rows * (uint64_t)sizeof(struct rows_row) + h->expr_bytes;
}

void symbolizer_rows_lay(struct symbolizer_rows *t, const struct rows_head *h)
{
	t->head = h;
	t->rules = (const struct rows_word *)(h + 1);
	t->rule_starts = (const uint32_t *)(t->rules + h->n_words);
	t->expr_starts = t->rule_starts + h->n_rules + 1;
	t->pages = t->expr_starts + h->n_exprs + 1;
	t->rows = (const void *)(t->pages + h->n_pages + 1);
	t->exprs = (const uint8_t *)(t->rows + h->n_rows);
}

void symbolizer_rows_free(struct symbolizer_rows *rows)
{
	if (!rows)
		return;
	if (rows->release)
		rows->release(rows->arg, rows->head, rows->head->size);
	free(rows);
}

void symbolizer_rows_info(const struct symbolizer_rows *rows,
			  struct symbolizer_rows_info *out)
{
	const struct rows_head *h = rows->head;

	*out = (struct symbolizer_rows_info){
		.rows = h->n_rows,
		.rules = h->n_rules,
		.bytes = sizeof(*rows) + h->size,
		.text = h->text,
		.damage = *h->damage ? h->damage : NULL,
		.section = *h->damage ? h->section : NULL,
		.section_offset = h->section_offset,
		.file_offset = h->file_offset,
		.before = h->before,
		.after = h->after,
		.by_code = h->by_code != 0,
		.go = h->go,
	};
}

struct symbolizer_go symbolizer_rows_go(const struct symbolizer_rows *rows)
{
	return rows->head->go;
}

const void *symbolizer_rows_bytes(const struct symbolizer_rows *rows,
				  size_t *len)
{
	*len = rows->head->size;
	return rows->head;
}

uint16_t symbolizer_rows_find(const struct symbolizer_rows *rows,
			      uint64_t vaddr)
{
	uint64_t page = (vaddr - rows->head->base) >> 16;
	uint32_t first, i;

	if (vaddr < rows->head->base || page >= rows->head->n_pages)
		return 0;
	first = rows->pages[page];
	VECTOR_SEARCH(i, rows->pages[page + 1] - first,
		      rows->rows[first + i].pc <= (vaddr & 0xffff));
	/* The last row of an earlier page is valid into this one. */
	return first + i ? rows->rows[first + i - 1].rule : 0;
}

uint16_t symbolizer_rows_at(const struct symbolizer_rows *rows, size_t i,
			    uint64_t *vaddr)
{
	uint32_t page;

	/* Find the last page that begins with this row or an earlier one. */
	VECTOR_SEARCH(page, rows->head->n_pages - 1,
		      rows->pages[page + 1] <= i);
	*vaddr = rows->head->base + ((uint64_t)page << 16) + rows->rows[i].pc;
	return rows->rows[i].rule;
}

void symbolizer_rows_rule(const struct symbolizer_rows *rows, uint16_t id,
			  struct symbolizer_rule *out)
{
	const struct rows_word *word, *end;
	struct rows_item item;

	memset(out, 0, sizeof(*out));
	if (id == 0 || id > rows->head->n_rules)
		return;
	arch_rule_default(out);
	word = rows->rules + rows->rule_starts[id - 1] / sizeof(*word);
	end = rows->rules + rows->rule_starts[id] / sizeof(*word);
	while (word < end) {
		word += rows_item_unpack(word, &item);
		if (item.to == ROWS_CFA)
			out->cfa = item.v;
		else
			out->regs[item.to] = item.v;
		out->signal |= item.signal;
	}
}

const uint8_t *symbolizer_rows_expr(const struct symbolizer_rows *rows,
				    int32_t n, size_t *len)
{
	if (n < 0 || (uint32_t)n >= rows->head->n_exprs)
		return NULL;
	*len = rows->expr_starts[n + 1] - rows->expr_starts[n];
	return rows->exprs + rows->expr_starts[n];
}
