/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_pack: rows of two numbers by ascending address, packed; see
 * symbolize/dwarf/dwarf_table.h.
 */
#ifndef SYMBOLIZE_DWARF_PACK_H
#define SYMBOLIZE_DWARF_PACK_H

#include <stdint.h>

#include "base/strbuf.h"

#define DWARF_PACK_ROWS 32

struct dwarf_pack_row {
	uint32_t start;
	uint32_t a, b;
};

/* 'bytes' and 'marks' may be read when all rows were added. */
struct dwarf_pack {
	struct strbuf bytes, marks;
	struct dwarf_pack_row last, pending;
	uint32_t n; /* rows in 'bytes' */
	bool is_pending;
};

void dwarf_pack_fini(struct dwarf_pack *p);
size_t dwarf_pack_bytes(const struct dwarf_pack *p);

/*
 * Adds a row; of several with the same address the last counts, and one below the
 * address of the row before is left out.
 */
void dwarf_pack_add(struct dwarf_pack *p, const struct dwarf_pack_row *row);
/* After the last row. 0 or -ENOMEM. */
int dwarf_pack_end(struct dwarf_pack *p);

/*
 * The last row that does not begin behind 'at', and where the next one begins, or
 * UINT32_MAX. False: there is none.
 */
bool dwarf_pack_find(const struct dwarf_pack *p, uint32_t at,
		     struct dwarf_pack_row *row, uint32_t *next);

/* Gives back what the buffer has reserved and does not use. */
void dwarf_pack_trim(struct strbuf *sb);

/* LEB128, unsigned. */
void dwarf_pack_put(struct strbuf *sb, uint32_t v);
/* 0 at the end. */
uint32_t dwarf_pack_get(const struct strbuf *sb, size_t *at);

#endif /* SYMBOLIZE_DWARF_PACK_H */
