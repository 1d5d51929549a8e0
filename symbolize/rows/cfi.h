/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cfi: call frame information, DWARF 5 section 6.4, as in .debug_frame and, in
 * the dialect of the Linux Standard Base (Core, 10.6), .eh_frame.
 *
 * Why not libdw: its dwarf_cfi_addrframe() handles one address at a time, runs
 * the program of its function from the start and allocates the result, and it
 * trusts the file too much. Here a section is read once from front to back, in a
 * window of bounded size, and gives all rows.
 */
#ifndef SYMBOLIZE_CFI_H
#define SYMBOLIZE_CFI_H

#include "base/cursor.h"
#include "symbolize/rows/rows.h"

/*
 * Reads a pointer of DW_EH_PE 'encoding' at address 'at'. False: code addresses do
 * not have this encoding; nothing was read.
 */
bool symbolizer_cfi_pointer(struct cursor *c, uint8_t encoding, uint64_t at,
			    uint64_t *out);

/* The state of a program, which it can also save and restore. */
struct cfi_state {
	struct symbolizer_rule rule;
	/*
	 * The last register and offset of the CFA. An expression does not clear
	 * them: as in libgcc, an instruction behind it that sets only one of
	 * the two is combined with the other.
	 */
	struct symbolizer_value pair;
};

/* A common entry, which several functions share. */
struct cfi_cie {
	uint64_t offset; /* of the entry in its section */
	const char *damage; /* why it cannot be used, or NULL */
	bool sized; /* functions have augmentation data */
	uint8_t encoding; /* of pointers to code */
	uint8_t ra; /* the column of the return address */
	uint64_t code_align;
	int64_t data_align;
	struct cfi_state init;
};

/* A running program, of a common entry or of a function. */
struct cfi_run {
	const struct cfi_cie *cie;
	struct cursor c;
	struct cfi_state state; /* at 'loc' */
	uint64_t loc, end;
	uint64_t at; /* address of c.p */
	const uint8_t *mark; /* c.p was here at 'at' */
	struct symbolizer_rows_build *b; /* NULL: it may not add rows */
};

/*
 * Runs a program and adds its rows. NULL, or what is wrong: then the rest of the
 * function is a gap. *err: 0 or -ENOMEM.
 */
const char *symbolizer_cfi_run(struct cfi_run *r, struct symbolizer_pool *exprs,
			       int *err);

/* A section of either dialect. */
struct cfi_section {
	struct symbolizer_src *src;
	const char *name;
	uint64_t offset, size; /* in 'src' */
	uint64_t vaddr;
	bool eh;
	bool packed; /* 'src' is not the file */
	/* The number of functions, if 'size' is only a limit; else 0. */
	uint64_t functions;
};

/* Adds the rows of a section; notes the first damage in 'info'. 0 or -ENOMEM. */
int symbolizer_cfi_read(const struct cfi_section *s,
			struct symbolizer_rows_build *b,
			struct symbolizer_rows_info *info);

#endif /* SYMBOLIZE_CFI_H */
