/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_ranges: addresses of an entry (DWARF 5 sections 2.17 and 7.25; DWARF 4 section
 * 2.17.3).
 */
#ifndef SYMBOLIZE_DWARF_RANGES_H
#define SYMBOLIZE_DWARF_RANGES_H

#include "symbolize/dwarf/dwarf_entry.h"

struct dwarf_span {
	uint64_t start, end;
};

/* The ranges of an entry of the unit: the first 'max' in out[]. Their number. */
size_t dwarf_ranges_read(const struct dwarf_cu *cu, const struct dwarf_entry *e,
			 struct dwarf_span *out, size_t max);

#endif /* SYMBOLIZE_DWARF_RANGES_H */
