/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gopclntab: unwind rows of Go's functions. Every Go program carries, stripped
 * or not, a table for its own unwinder (runtime/symtab.go): of each function
 * how far rsp has moved, place by place. What that gives beyond the program's
 * .debug_frame, if it has one at all:
 *  - where a stack ends: functions that the runtime marks as the top of a
 *    stack, or that change to another stack, where nothing leads back;
 *  - where rbp is kept, read from the first instructions.
 * The layouts are those of Go 1.2, 1.16, 1.18 and 1.20 (cmd/link, pcln.go);
 * the last is 1.26's as well.
 */
#ifndef SYMBOLIZE_GOPCLNTAB_H
#define SYMBOLIZE_GOPCLNTAB_H

#include "symbolize/rows/rows.h"

/* How a version writes the table. Offsets in bytes. */
struct gopclntab_format {
	uint32_t magic;
	/* Of an address in the list of functions, and at their front. */
	uint8_t pc_size; /* 8: an address; 4: from the start of the text */
	uint8_t flag_at; /* in a function; 0: it has none */
	/* In the header; 0: counts from its start, or not there. */
	uint8_t text_at, names_at, pcs_at, funcs_at;
};

struct gopclntab {
	struct symbolizer_elf *e;
	const struct gopclntab_format *format;
	uint64_t off, size; /* in the file; at least a header */
	uint64_t vaddr;
	uint64_t n_funcs;
	/*
	 * From its start: the list of functions, what their places count from,
	 * pc tables, names.
	 */
	uint64_t funcs, func_base, pcs, names;
	uint64_t text; /* added to addresses of 4 bytes */
};

/*
 * The table of 'e': by its section, or, where section headers are gone or a
 * linker has merged it with others, by its first bytes. False: none. *damage:
 * there is one, but it cannot be used for this reason.
 */
bool symbolizer_gopclntab_find(struct gopclntab *g, struct symbolizer_elf *e,
			       const char **damage);
/* Reads 'len' bytes at 'at' of the table, through a window of its file. */
bool symbolizer_gopclntab_at(const struct gopclntab *g,
			     struct symbolizer_src *src, uint64_t at, void *dst,
			     size_t len);
/*
 * Adds the rows of Go's functions, notes the first damage. *any: there is such
 * a table. 0 or -ENOMEM.
 */
int symbolizer_gopclntab_read(struct symbolizer_elf *e,
			      struct symbolizer_rows_build *b,
			      struct symbolizer_rows_info *info, bool *any);

#endif /* SYMBOLIZE_GOPCLNTAB_H */
