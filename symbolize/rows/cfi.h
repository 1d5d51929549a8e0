/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cfi: call frame information, DWARF 5 section 6.4, as in .debug_frame and, in
 * the dialect of the Linux Standard Base (Core, 10.6), .eh_frame; of x86-64.
 *
 * Why not libdw: its dwarf_cfi_addrframe() answers for one address at a time,
 * by running the whole program of its function and allocating the result, and
 * it trusts what it reads more than a file of a stranger deserves. Here a
 * section is read once from front to back, in a window of bounded size, and
 * every row of it falls out in passing.
 */
#ifndef SYMBOLIZE_CFI_H
#define SYMBOLIZE_CFI_H

#include "base/cursor.h"
#include "symbolize/rows/rows.h"

/*
 * A pointer as DW_EH_PE 'encoding' has it, at address 'at'. False: an encoding
 * that code addresses have not; nothing was read.
 */
bool symbolizer_cfi_pointer(struct cursor *c, uint8_t encoding, uint64_t at,
			    uint64_t *out);

/* What a program changes, and remembers. */
struct cfi_state {
	struct symbolizer_rule rule;
	/*
	 * The register and offset last said of the frame. An expression sets
	 * them aside only: programs that go on from there with one of the two
	 * mean this pair, and unwinders of compilers (libgcc) take it so.
	 */
	struct symbolizer_value pair;
};

/* What the functions of one common entry share. */
struct cfi_cie {
	uint64_t offset; /* of the entry in its section */
	const char *damage; /* why it cannot be used, or NULL */
	bool sized; /* there are augmentation data, and their size */
	uint8_t encoding; /* of pointers to code */
	uint8_t ra; /* the column of the return address */
	uint64_t code_align;
	int64_t data_align;
	struct cfi_state init;
};

/* A program that runs: of a common entry, or of a function. */
struct cfi_run {
	const struct cfi_cie *cie;
	struct cursor c;
	struct cfi_state state; /* at 'loc' */
	uint64_t loc, end;
	uint64_t at; /* address of c.p */
	const uint8_t *mark; /* c.p was here at 'at' */
	struct symbolizer_rows_build *b; /* or NULL: rows are not to be */
};

/*
 * Runs to the end of its bytes and adds its rows. NULL; or what is wrong with
 * it: then the rows before that stand, and the rest of the function is a gap.
 * *err: -ENOMEM.
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
	/* Functions in it, where only they say how long it is; 0: not known. */
	uint64_t functions;
};

/*
 * Adds the rows of a section; notes the first damage in 'info'. 0, -ENOMEM, or
 * the reason why the file cannot be read.
 */
int symbolizer_cfi_read(const struct cfi_section *s,
			struct symbolizer_rows_build *b,
			struct symbolizer_rows_info *info);

#endif /* SYMBOLIZE_CFI_H */
