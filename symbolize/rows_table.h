/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_table: how the table lies in memory: one piece of bytes without any
 * address, so that it can go from one process to another, and a small handle.
 */
#ifndef SYMBOLIZE_ROWS_TABLE_H
#define SYMBOLIZE_ROWS_TABLE_H

#include "symbolize/rows.h"

struct rows_row {
	uint16_t pc; /* within its page */
	uint16_t rule; /* 0: a gap */
};

/*
 * One line of a rule: the register 'to' has this value. The CFA is the first;
 * registers that are as rows_rule_default() has them are left out.
 */
struct rows_item {
	uint8_t to; /* DWARF number, or ROWS_CFA */
	uint8_t from, reg; /* as in struct symbolizer_value */
	uint8_t signal; /* of the whole rule; in the CFA's line */
	int32_t n;
};

#define ROWS_CFA 17
#define ROWS_ITEMS_MAX 18
#define ROWS_PAGES_MAX 65536U /* of 64 KiB: 32 bits in all */
#define ROWS_MAGIC 0x3173776f72667070ULL /* changes with what follows */

/*
 * What the piece begins with. Behind it, without room in between: n_items
 * items; n_rules + 1 starts of rules and n_exprs + 1 of expressions, in bytes;
 * for n_pages pages the first row of each, and the number of rows; n_rows rows;
 * the bytes of the expressions.
 */
struct rows_head {
	uint64_t magic;
	uint64_t size; /* of the whole piece */
	uint64_t base; /* address of the first page */
	uint64_t text;
	uint64_t section_offset, file_offset;
	uint32_t n_items, n_rules, n_exprs, n_pages, n_rows, expr_bytes;
	char damage[96], section[24]; /* ended by 0; empty: no damage */
};

_Static_assert(sizeof(struct rows_head) == 192, "no hole in the head");
_Static_assert(sizeof(struct rows_item) == 8, "no hole in an item");

struct symbolizer_rows {
	const struct rows_head *head;
	const uint8_t *rules; /* runs of struct rows_item */
	const uint32_t *rule_starts; /* of rule 1, 2, ... and the end */
	const uint32_t *expr_starts;
	const uint32_t *pages;
	const struct rows_row *rows;
	const uint8_t *exprs;
	symbolizer_rows_release_fn release;
	void *arg;
};

/* Bytes of a piece with this head. */
uint64_t symbolizer_rows_size(const struct rows_head *h);
/* Sets the pointers into the piece at 'h', whose size is right. */
void symbolizer_rows_lay(struct symbolizer_rows *t, const struct rows_head *h);

/* What holds where CFI says nothing: System V ABI, 6.2.5, as compilers do. */
static inline void rows_rule_default(struct symbolizer_rule *r)
{
	r->regs[7].from = SYMBOLIZER_CFA;
	r->regs[SYMBOLIZER_REG_RA].from = SYMBOLIZER_AT_CFA;
	r->regs[SYMBOLIZER_REG_RA].n = -8;
}

#endif /* SYMBOLIZE_ROWS_TABLE_H */
