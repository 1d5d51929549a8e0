/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_table: the table in memory: one block without pointers, so that it can be
 * passed from one process to another, and a small handle.
 */
#ifndef SYMBOLIZE_ROWS_TABLE_H
#define SYMBOLIZE_ROWS_TABLE_H

#include <string.h>

#include "symbolize/rows/rows.h"

struct rows_row {
	uint16_t pc; /* within its page */
	uint16_t rule; /* 0: a gap */
};

/*
 * One item of a rule: the value of the register 'to'. The CFA comes first;
 * registers as in arch_rule_default() are left out. An item that does not fit
 * into one word has its 'n' in the next.
 */
struct rows_word {
	uint32_t to : 5; /* DWARF number, or ROWS_CFA */
	uint32_t from : 4, reg : 4; /* as in struct symbolizer_value */
	uint32_t signal : 1; /* of the whole rule; in the CFA's item */
	uint32_t wide : 1; /* n is the next word */
	uint32_t pad : 1;
	int32_t n : 16;
};

_Static_assert(sizeof(struct rows_word) == 4, "one word");

struct rows_item {
	uint8_t to;
	bool signal;
	struct symbolizer_value v;
};

#define ROWS_CFA SYMBOLIZER_REGS
#define ROWS_WORDS_MAX (2 * (SYMBOLIZER_REGS + 1)) /* of a rule */
#define ROWS_PAGES_MAX 65536U /* of 64 KiB: 32 bits in all */
#define ROWS_MAGIC 0x3673776f72667070ULL /* changes with what follows */

/*
 * The head of the block. Behind it, without padding: n_words words of items; the
 * offsets, in bytes, of n_rules rules and of their end, of n_exprs expressions
 * and of their end; the first row of each of n_pages pages and the number of
 * rows; n_rows rows; the bytes of the expressions.
 */
struct rows_head {
	uint64_t magic;
	uint64_t size; /* of the whole block */
	uint64_t base; /* address of the first page */
	uint64_t text;
	uint64_t section_offset, file_offset;
	uint64_t before, after; /* as in struct symbolizer_rows_info */
	uint32_t n_words, n_rules, n_exprs, n_pages, n_rows, expr_bytes;
	uint32_t by_code, pad; /* as in struct symbolizer_rows_info */
	struct symbolizer_go go;
	char damage[96], section[24]; /* NUL-terminated; empty: no damage */
};

_Static_assert(sizeof(struct rows_head) == 224, "no hole in the head");

struct symbolizer_rows {
	const struct rows_head *head;
	const struct rows_word *rules; /* runs of items */
	const uint32_t *rule_starts; /* of rule 1, 2, ... and the end */
	const uint32_t *expr_starts;
	const uint32_t *pages;
	const struct rows_row *rows;
	const uint8_t *exprs;
	symbolizer_rows_release_fn release;
	void *arg;
};

static inline size_t rows_item_pack(const struct rows_item *item,
				    struct rows_word words[2])
{
	bool wide = item->v.n != (int16_t)item->v.n;

	words[0] = (struct rows_word){
		.to = item->to,
		.from = item->v.from,
		.reg = item->v.reg,
		.signal = item->signal,
		.wide = wide,
		.n = wide ? 0 : (int16_t)item->v.n,
	};
	memcpy(&words[1], &item->v.n, sizeof(words[1]));
	return wide ? 2 : 1;
}

/* Reads the item at 'w'; how many words it has. */
static inline size_t rows_item_unpack(const struct rows_word *w,
				      struct rows_item *item)
{
	*item = (struct rows_item){ w->to,
				    w->signal,
				    { w->from, w->reg, 0, w->n } };
	if (w->wide)
		memcpy(&item->v.n, w + 1, sizeof(*w));
	return w->wide ? 2 : 1;
}

/* Bytes of a block with this head. */
uint64_t symbolizer_rows_size(const struct rows_head *h);
/* Sets the pointers into the block at 'h', whose size is correct. */
void symbolizer_rows_lay(struct symbolizer_rows *t, const struct rows_head *h);

#endif /* SYMBOLIZE_ROWS_TABLE_H */
