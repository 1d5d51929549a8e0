/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_index: which compile unit of a file has an address. It is made of the ranges of
 * all units: .debug_aranges is optional, and clang does not write it.
 */
#ifndef SYMBOLIZE_DWARF_INDEX_H
#define SYMBOLIZE_DWARF_INDEX_H

#include "symbolize/dwarf/dwarf_line.h"

#define DWARF_INDEX_BARE 1U /* without ranges of its own */
#define DWARF_INDEX_SPLIT 2U /* a skeleton: its entries are in another file */

/* A compile unit. */
struct dwarf_index_unit {
	uint64_t off; /* of its header, in .debug_info */
	uint32_t flags;
	uint32_t pad;
};

struct dwarf_index_range {
	uint32_t start, end; /* from bounds.start */
	uint32_t unit; /* its index */
};

struct dwarf_index {
	struct dwarf_bounds bounds;
	struct dwarf_index_unit *units; /* ascending */
	struct dwarf_index_range *ranges; /* ascending */
	uint32_t n_units, cap_units, n_ranges, cap_ranges;
	uint32_t crc; /* of units and ranges */
};

/* The code of the file. -ENODATA: none, or too far apart. */
int dwarf_index_bounds(struct dwarf_bounds *b, const struct symbolizer_elf *e);
/* x->bounds are set. -ENODATA: no unit has ranges; -ENOMEM. Call fini always. */
int dwarf_index_read(struct dwarf_index *x, struct dwarf_file *f);
/* Of units and ranges that were set otherwise. */
uint32_t dwarf_index_crc(const struct dwarf_index_unit *units, uint32_t n_units,
			 const struct dwarf_index_range *ranges,
			 uint32_t n_ranges);
/* Whether dwarf_index_read() could have made it. */
bool dwarf_index_ok(const struct dwarf_index *x);
void dwarf_index_fini(struct dwarf_index *x);
size_t dwarf_index_bytes(const struct dwarf_index *x);

/* False: no unit has the address. */
bool dwarf_index_find(const struct dwarf_index *x, uint64_t vaddr,
		      uint32_t *unit);

#endif /* SYMBOLIZE_DWARF_INDEX_H */
