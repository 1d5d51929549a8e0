/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_table: how the table lies in memory: one piece, which holds nothing but
 * what is listed here, in this order.
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

struct symbolizer_rows {
	uint64_t base;
	struct symbolizer_rows_info info;
	uint32_t n_pages, n_exprs;
	const uint8_t *rules; /* runs of struct rows_item */
	const uint32_t *rule_starts; /* of rule 1, 2, ... and the end */
	const uint32_t *expr_starts;
	const uint32_t *pages; /* the first row of each, and the number of rows */
	const struct rows_row *rows;
	const uint8_t *exprs;
};

/* What holds where CFI says nothing: System V ABI, 6.2.5, as compilers do. */
static inline void rows_rule_default(struct symbolizer_rule *r)
{
	r->regs[7].from = SYMBOLIZER_CFA;
	r->regs[SYMBOLIZER_REG_RA].from = SYMBOLIZER_AT_CFA;
	r->regs[SYMBOLIZER_REG_RA].n = -8;
}

#endif /* SYMBOLIZE_ROWS_TABLE_H */
