/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_table: what a compile unit says of its addresses, in a tenth of the memory of
 * its debug information: the innermost function or inlined call, the calls around it,
 * and the line. It needs no section any more.
 *
 * Two lists of rows, by address: one has the innermost calls, the other files and
 * lines. A row is the differences to the row before, as LEB128 (DWARF 5 section 7.6);
 * each DWARF_PACK_ROWS rows a mark has the address and the place of one, for a binary
 * search. A call is a record that refers to the one around it. Rows that differ in
 * nothing but the address are one.
 */
#ifndef SYMBOLIZE_DWARF_TABLE_H
#define SYMBOLIZE_DWARF_TABLE_H

#include "symbolize/dwarf/dwarf_text.h"
#include "symbolize/dwarf/dwarf_unit.h"

struct dwarf_table;

/* What a table is made of. */
struct dwarf_source {
	const struct dwarf_unit *unit;
	const struct dwarf_cu *tree; /* that 'unit' is of */
	/* Whose line program is read: the same, or its skeleton. */
	const struct dwarf_cu *lined;
};

/* -ENOMEM; -EFBIG: too many texts. */
int dwarf_table_new(struct dwarf_table **tp, struct dwarf_text *texts,
		    const struct dwarf_source *from);
void dwarf_table_free(struct dwarf_table *t);
size_t dwarf_table_bytes(const struct dwarf_table *t);

/* As names_source.find(). 'vaddr' is in the unit's bounds. */
int dwarf_table_find(const struct dwarf_table *t,
		     const struct dwarf_text *texts, struct arena *arena,
		     uint64_t vaddr, struct names_found *out);

#endif /* SYMBOLIZE_DWARF_TABLE_H */
