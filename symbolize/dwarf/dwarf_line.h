/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_line: the line program of a unit, run (DWARF 5 section 6.2; versions 2 to 5).
 *
 * Each sequence of rows is of one section of code. A linker that dropped the section
 * leaves the sequence, at an address where other code may be: such a one begins
 * outside of the unit's ranges. Of sequences that overlap the one that begins first
 * counts, up to its end.
 */
#ifndef SYMBOLIZE_DWARF_LINE_H
#define SYMBOLIZE_DWARF_LINE_H

#include "symbolize/dwarf/dwarf_ranges.h"

/* Addresses that may be code; others are what a linker left of removed code. */
struct dwarf_bounds {
	uint64_t start, end; /* less than 4 GiB apart */
};

struct dwarf_line_row {
	uint32_t start; /* from bounds.start */
	uint32_t file; /* an index of files[] */
	uint32_t line; /* 0: none */
	bool end; /* no line from here on */
};

struct dwarf_line_file {
	const char *name; /* as dwarf_value_text(), or NULL */
	uint32_t dir; /* an index of dirs[] */
};

struct dwarf_lines {
	const char **dirs; /* [0] is that of the unit; or NULL */
	struct dwarf_line_file *files; /* [0] is used by DWARF 5 only */
	struct dwarf_line_row *rows; /* ascending */
	uint32_t n_dirs, n_files, n_rows;
	uint32_t cap_dirs, cap_files, cap_rows;
};

/*
 * Reads the program at 'off' of the file's .debug_line: its files, and if 'bounds' is
 * not NULL its rows in them. 'cu': the unit. 'spans': its ranges, which are sorted;
 * n_spans 0: they are not known. -EINVAL: damaged, or too large; -ENOMEM. Call fini always.
 */
int dwarf_lines_read(struct dwarf_lines *l, const struct dwarf_cu *cu,
		     uint64_t off, const struct dwarf_bounds *bounds,
		     struct dwarf_span *spans, size_t n_spans);
void dwarf_lines_fini(struct dwarf_lines *l);

#endif /* SYMBOLIZE_DWARF_LINE_H */
