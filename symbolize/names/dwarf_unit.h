/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_unit: the functions and inlined calls of one compile unit, by address. The
 * tree of entries (DWARF 5 sections 3.3.1 to 3.3.8) is read once, when the first
 * address of the unit is asked for; names and lines only for the addresses.
 */
#ifndef SYMBOLIZE_DWARF_UNIT_H
#define SYMBOLIZE_DWARF_UNIT_H

#include <elfutils/libdw.h>

#include "symbolize/names/dwarf_split.h"
#include "symbolize/names/source.h"

struct dwarf_unit;

/* Addresses that may be code; others are what a linker left of removed code. */
struct dwarf_bounds {
	uint64_t start, end; /* less than 4 GiB apart */
};

/* 'die': the unit's. 'skeleton': of a split unit, or NULL. -ENOMEM. */
int dwarf_unit_new(struct dwarf_unit **up, Dwarf_Die *die,
		   const struct dwarf_skeleton *skeleton,
		   const struct dwarf_bounds *bounds);
void dwarf_unit_free(struct dwarf_unit *u);
size_t dwarf_unit_bytes(const struct dwarf_unit *u);

/*
 * As names_source.find(). 'die' is the unit's, perhaps in another handle of the same
 * file than in dwarf_unit_new(). 'lines': the unit whose line table may be read: the
 * same, or its skeleton; NULL: none.
 */
int dwarf_unit_find(const struct dwarf_unit *u, Dwarf_Die *die,
		    Dwarf_Die *lines, struct arena *arena, uint64_t vaddr,
		    struct names_found *out);

#endif /* SYMBOLIZE_DWARF_UNIT_H */
