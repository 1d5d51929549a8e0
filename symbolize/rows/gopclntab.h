/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gopclntab: unwind rows of Go's functions. Every Go program, even stripped, has a
 * table for its own unwinder (runtime/symtab.go): by address, how far the stack
 * pointer has moved in its function. Beyond .debug_frame, if there is one, it
 * gives:
 *  - roots: functions that the runtime marks as the top of a stack, or that
 *    switch to another stack, without a return address on it;
 *  - where the frame pointer is saved, decoded from the first instructions.
 * Layouts: Go 1.2, 1.16, 1.18, and 1.20 to at least 1.26 (cmd/link, pcln.go).
 */
#ifndef SYMBOLIZE_GOPCLNTAB_H
#define SYMBOLIZE_GOPCLNTAB_H

#include "symbolize/rows/rows.h"

/* The layout of a version. Offsets in bytes. */
struct gopclntab_format {
	uint32_t magic;
	/* Of addresses in the list of functions and at the start of functions. */
	uint8_t pc_size; /* 8: absolute; 4: from the start of the text */
	uint8_t flag_at; /* in a function; 0: it has none */
	/* In the header; 0: not there, offsets are from the start of the table. */
	uint8_t text_at, names_at, pcs_at, funcs_at;
	/* In runtime.moduledata, the address 'gofunc' below; 0: not there. */
	uint16_t gofunc_at;
};

struct gopclntab {
	struct symbolizer_elf *e;
	const struct gopclntab_format *format;
	uint64_t off, size; /* in the file; at least a header */
	uint64_t vaddr;
	uint64_t n_funcs;
	uint64_t first, end; /* of the functions' addresses, without 'text' */
	/* From the start: list of functions, base of their places, pcs, names. */
	uint64_t funcs, func_base, pcs, names;
	uint64_t text; /* added to addresses of 4 bytes */
	/*
	 * The address of go:func.*, from which functions count offsets of their
	 * data; 0: not known. symbolizer_gopclntab_module() sets it.
	 */
	uint64_t gofunc;
};

/*
 * Finds the table of 'e' by its section; or by its first bytes, if there are no
 * section headers or a linker merged the section with others. False: there is
 * none. *damage: NULL, or why it cannot be used.
 */
bool symbolizer_gopclntab_find(struct gopclntab *g, struct symbolizer_elf *e,
			       const char **damage);
/* Reads 'len' bytes at 'at' of the table, through a window of its file. */
bool symbolizer_gopclntab_at(const struct gopclntab *g,
			     struct symbolizer_src *src, uint64_t at, void *dst,
			     size_t len);
/* Finds the runtime's moduledata, if addresses are of 4 bytes. */
bool symbolizer_gopclntab_module(struct gopclntab *g);
/*
 * Reads a step of a table of pcs, two numbers of 32 bits, at *at and before 'end':
 * the difference of values, zigzag, and how many units of code have this value.
 * 1; 0: the table ends here; -1: it is damaged. 'first': of its function.
 */
int symbolizer_gopclntab_step(const struct gopclntab *g,
			      struct symbolizer_src *src, uint64_t *at,
			      uint64_t end, bool first, uint32_t *step,
			      uint32_t *by);
/* Bytes of a function's table of pcs. */
#define GOPCLNTAB_PCS_MAX (1U << 20)

/* Adds the rows; notes the first damage. *any: set if there is a table. 0, -ENOMEM. */
int symbolizer_gopclntab_read(struct symbolizer_elf *e,
			      struct symbolizer_rows_build *b,
			      struct symbolizer_rows_info *info, bool *any);

#endif /* SYMBOLIZE_GOPCLNTAB_H */
