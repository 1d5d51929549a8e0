// SPDX-License-Identifier: Apache-2.0
/*
 * rows_adopt: untrusted bytes as a table; see symbolize/symbolize.h. All that
 * symbolizer_rows_end() guarantees is checked, so that no lookup leaves the
 * block. Cost: each byte is read once.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/rows_table.h"

/* NUL-terminated, zero behind, and printable. */
static bool text_ok(const char *s, size_t cap)
{
	size_t len = strnlen(s, cap);

	for (size_t i = 0; i < len; i++)
		if (s[i] < ' ' || s[i] > '~')
			return false;
	for (size_t i = len; i < cap; i++)
		if (s[i])
			return false;
	return len < cap;
}

static bool head_ok(const struct rows_head *h, size_t len)
{
	return h->magic == ROWS_MAGIC && h->size == len &&
	       symbolizer_rows_size(h) == len &&
	       h->n_rules <= SYMBOLIZER_POOL_MAX &&
	       h->n_exprs <= SYMBOLIZER_POOL_MAX &&
	       h->n_pages <= ROWS_PAGES_MAX && (h->base & 0xffff) == 0 &&
	       (h->n_pages == 0 ||
		h->base <= UINT64_MAX - (((uint64_t)h->n_pages << 16) - 1)) &&
	       (symbolizer_go_is_known(&h->go) ||
		(!h->go.tls && !h->go.curg)) &&
	       text_ok(h->damage, sizeof(h->damage)) &&
	       text_ok(h->section, sizeof(h->section));
}

/* Offsets of 'n' runs, not empty, multiples of 'unit'; the last ends at 'end'. */
static bool starts_ok(const uint32_t *starts, uint32_t n, uint64_t end,
		      uint32_t unit)
{
	if (starts[0] != 0 || starts[n] != end)
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (starts[i + 1] <= starts[i] || starts[i + 1] % unit)
			return false;
	return true;
}

static bool item_ok(const struct symbolizer_rows *t,
		    const struct rows_item *item, bool cfa)
{
	const struct symbolizer_value *v = &item->v;
	bool has_reg =
		v->from == SYMBOLIZER_REG || v->from == SYMBOLIZER_AT_REG;
	bool has_n = v->from >= SYMBOLIZER_ELSEWHERE;
	bool of_cfa = has_reg || v->from == SYMBOLIZER_PLT ||
		      v->from == SYMBOLIZER_EXPR;

	if (v->from > SYMBOLIZER_AT_EXPR || item->signal > cfa ||
	    (cfa ? !of_cfa : v->from == SYMBOLIZER_PLT) ||
	    (!has_reg && v->reg != 0) || (!has_n && v->n != 0))
		return false;
	switch (v->from) {
	case SYMBOLIZER_ELSEWHERE:
		return v->n >= 0 && v->n < SYMBOLIZER_SWITCH_MAX;
	case SYMBOLIZER_PLT:
		return v->n >= 0 && v->n <= 15;
	case SYMBOLIZER_EXPR:
	case SYMBOLIZER_AT_EXPR:
		return v->n >= 0 && (uint32_t)v->n < t->head->n_exprs;
	default:
		return true;
	}
}

/* The CFA, then registers, ascending; each item as rows_item_pack() makes it. */
static bool rule_ok(const struct symbolizer_rows *t, uint32_t i)
{
	const struct rows_word *word =
		t->rules + t->rule_starts[i] / sizeof(*word);
	const struct rows_word *end =
		t->rules + t->rule_starts[i + 1] / sizeof(*word);
	struct rows_item item;
	struct rows_word again[2];
	int last = -1;
	size_t n;

	for (bool cfa = true; word < end; cfa = false, word += n) {
		if (word->wide && end - word < 2)
			return false;
		n = rows_item_unpack(word, &item);
		if (rows_item_pack(&item, again) != n ||
		    memcmp(again, word, n * sizeof(*word)) != 0 ||
		    !item_ok(t, &item, cfa))
			return false;
		if (cfa ? item.to != ROWS_CFA
			: item.to >= SYMBOLIZER_REGS || item.to <= last)
			return false;
		last = cfa ? -1 : item.to;
	}
	return true;
}

/* The pages' first rows ascend, and the last page has rows. */
static bool pages_ok(const struct symbolizer_rows *t)
{
	uint32_t n = t->head->n_pages;

	if (t->pages[0] != 0 || t->pages[n] != t->head->n_rows ||
	    (n && t->pages[n - 1] == t->pages[n]))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (t->pages[i + 1] < t->pages[i])
			return false;
	return true;
}

/* Rows ascend within a page; neighbours have different rules. */
static bool rows_ok(const struct symbolizer_rows *t)
{
	uint32_t i = 0;
	uint16_t last = 0;
	int pc;

	for (uint32_t page = 0; page < t->head->n_pages; page++) {
		for (pc = -1; i < t->pages[page + 1]; i++) {
			if (t->rows[i].pc <= pc || t->rows[i].rule == last ||
			    t->rows[i].rule > t->head->n_rules)
				return false;
			pc = t->rows[i].pc;
			last = t->rows[i].rule;
		}
	}
	return last == 0;
}

static bool all_ok(const struct symbolizer_rows *t)
{
	const struct rows_head *h = t->head;

	if (!starts_ok(t->rule_starts, h->n_rules,
		       h->n_words * (uint64_t)sizeof(uint32_t),
		       sizeof(uint32_t)) ||
	    !starts_ok(t->expr_starts, h->n_exprs, h->expr_bytes, 1))
		return false;
	for (uint32_t i = 0; i < h->n_rules; i++)
		if (!rule_ok(t, i))
			return false;
	return pages_ok(t) && rows_ok(t);
}

int symbolizer_rows_adopt(const void *map, size_t len,
			  symbolizer_rows_release_fn release, void *arg,
			  struct symbolizer_rows **out)
{
	struct symbolizer_rows *t;

	if ((uintptr_t)map % 8 || len < sizeof(struct rows_head) ||
	    !head_ok(map, len))
		return -EINVAL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return -ENOMEM;
	symbolizer_rows_lay(t, map);
	if (!all_ok(t)) {
		free(t);
		return -EINVAL;
	}
	t->release = release;
	t->arg = arg;
	*out = t;
	return 0;
}
