/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_table: what a compile unit says of its addresses, in a tenth of the memory of
 * its debug information: the innermost function or inlined call, the calls around it,
 * and the line. It needs no section any more, but the texts that it refers to.
 *
 * Two lists of rows, by address: one has the innermost calls, the other files and
 * lines. A row is the differences to the row before, as LEB128 (DWARF 5 section 7.6);
 * each DWARF_PACK_ROWS rows a mark has the address and the place of one, for a binary
 * search. A call is a record that refers to the one around it. Rows that differ in
 * nothing but the address are one.
 *
 * All this is one block of bytes, which is the same in memory and in the cache on disk:
 * a head (dwarf_table.c), the marks of both lists, their rows, the calls; and zeros to
 * a multiple of DWARF_TABLE_ALIGN. What is read from there may have any bytes: the
 * answers are wrong then, but have the address in them, and an end.
 */
#ifndef SYMBOLIZE_DWARF_TABLE_H
#define SYMBOLIZE_DWARF_TABLE_H

#include "symbolize/dwarf/dwarf_text.h"
#include "symbolize/dwarf/dwarf_unit.h"

#define DWARF_TABLE_ALIGN 4

/* What a table is made of. */
struct dwarf_source {
	const struct dwarf_unit *unit;
	const struct dwarf_cu *tree; /* that 'unit' is of */
	/* Whose line program is read: the same, or its skeleton. */
	const struct dwarf_cu *lined;
};

/* A table, its texts, and what its addresses count from. */
struct dwarf_table {
	const uint8_t *p;
	size_t len;
	struct dwarf_texts texts;
	struct dwarf_bounds bounds; /* of the unit that it was made of */
};

/* Appends the block of a table, and its texts. -ENOMEM; -EFBIG: too many texts. */
int dwarf_table_add(struct strbuf *out, struct dwarf_text *texts,
		    const struct dwarf_source *from);

/*
 * As names_source.find(). 'vaddr' is in the bounds. -ENOENT also of bytes that are no
 * table.
 */
int dwarf_table_find(const struct dwarf_table *t, struct arena *arena,
		     uint64_t vaddr, struct names_found *out);

#endif /* SYMBOLIZE_DWARF_TABLE_H */
