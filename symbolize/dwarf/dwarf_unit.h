/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_unit: the functions and inlined calls of one compile unit, by address. The
 * tree of entries (DWARF 5 sections 3.3.1 to 3.3.8) is read once; a dwarf_table is
 * made of it.
 */
#ifndef SYMBOLIZE_DWARF_UNIT_H
#define SYMBOLIZE_DWARF_UNIT_H

#include "symbolize/dwarf/dwarf_line.h"

#define DWARF_NONE UINT32_MAX

/* A range of a function or of an inlined call. */
struct dwarf_block {
	uint32_t start, end; /* from bounds.start */
	uint32_t entry; /* offset from that of the unit */
	uint32_t up; /* a block before it, which it is inlined into, or NONE */
};

/* From here to the next piece the innermost range is 'block', or NONE. */
struct dwarf_piece {
	uint32_t start;
	uint32_t block;
};

struct dwarf_unit {
	struct dwarf_bounds bounds;
	struct dwarf_block *blocks; /* in the order of the tree */
	struct dwarf_piece *pieces; /* ascending */
	uint32_t n_blocks, n_pieces, cap_blocks;
};

/* -ENOMEM. */
int dwarf_unit_new(struct dwarf_unit **up, const struct dwarf_cu *cu,
		   const struct dwarf_bounds *bounds);
void dwarf_unit_free(struct dwarf_unit *u);

#endif /* SYMBOLIZE_DWARF_UNIT_H */
