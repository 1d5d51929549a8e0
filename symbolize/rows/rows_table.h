/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_table: the table in memory: one block without pointers, so that it can be
 * passed from one process to another, and a small handle.
 */
#ifndef SYMBOLIZE_ROWS_TABLE_H
#define SYMBOLIZE_ROWS_TABLE_H

#include "symbolize/rows/rows.h"

struct rows_row {
	uint16_t pc; /* within its page */
	uint16_t rule; /* 0: a gap */
};

/*
 * One item of a rule: the value of the register 'to'. The CFA comes first;
 * registers as in arch_rule_default() are left out. An item is a word, or two if
 * 'n' does not fit into its 16 high bits. Positions of bits in the first:
 */
#define ROWS_ITEM_TO 0 /* 5 bits: DWARF number, or ROWS_CFA */
#define ROWS_ITEM_FROM 5 /* 4 bits, as in struct symbolizer_value */
#define ROWS_ITEM_REG 9 /* 4 bits, likewise */
#define ROWS_ITEM_SIGNAL 13 /* of the whole rule; in the CFA's item */
#define ROWS_ITEM_WIDE 14 /* n is the next word */

struct rows_item {
	uint8_t to;
	bool signal;
	struct symbolizer_value v;
};

#define ROWS_CFA SYMBOLIZER_REGS
#define ROWS_WORDS_MAX (2 * (SYMBOLIZER_REGS + 1)) /* of a rule */
#define ROWS_PAGES_MAX 65536U /* of 64 KiB: 32 bits in all */
#define ROWS_MAGIC 0x3273776f72667070ULL /* changes with what follows */

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
	uint32_t n_words, n_rules, n_exprs, n_pages, n_rows, expr_bytes;
	char damage[96], section[24]; /* NUL-terminated; empty: no damage */
};

_Static_assert(sizeof(struct rows_head) == 192, "no hole in the head");

struct symbolizer_rows {
	const struct rows_head *head;
	const uint32_t *rules; /* runs of items */
	const uint32_t *rule_starts; /* of rule 1, 2, ... and the end */
	const uint32_t *expr_starts;
	const uint32_t *pages;
	const struct rows_row *rows;
	const uint8_t *exprs;
	symbolizer_rows_release_fn release;
	void *arg;
};

static inline size_t rows_item_pack(const struct rows_item *item,
				    uint32_t words[2])
{
	bool wide = item->v.n != (int16_t)item->v.n;

	words[0] = (uint32_t)item->to << ROWS_ITEM_TO |
		   (uint32_t)item->v.from << ROWS_ITEM_FROM |
		   (uint32_t)item->v.reg << ROWS_ITEM_REG |
		   (uint32_t)item->signal << ROWS_ITEM_SIGNAL |
		   (uint32_t)wide << ROWS_ITEM_WIDE;
	if (!wide)
		words[0] |= (uint32_t)(uint16_t)item->v.n << 16;
	words[1] = (uint32_t)item->v.n;
	return wide ? 2 : 1;
}

/* Reads the item at 'words'; how many words it has. */
static inline size_t rows_item_unpack(const uint32_t *words,
				      struct rows_item *item)
{
	uint32_t w = *words;
	bool wide = w >> ROWS_ITEM_WIDE & 1;

	item->to = w >> ROWS_ITEM_TO & 0x1f;
	item->signal = w >> ROWS_ITEM_SIGNAL & 1;
	item->v.from = w >> ROWS_ITEM_FROM & 0xf;
	item->v.reg = w >> ROWS_ITEM_REG & 0xf;
	item->v.pad = 0;
	item->v.n = wide ? (int32_t)words[1] : (int16_t)(w >> 16);
	return wide ? 2 : 1;
}

/* Bytes of a block with this head. */
uint64_t symbolizer_rows_size(const struct rows_head *h);
/* Sets the pointers into the block at 'h', whose size is correct. */
void symbolizer_rows_lay(struct symbolizer_rows *t, const struct rows_head *h);

#endif /* SYMBOLIZE_ROWS_TABLE_H */
