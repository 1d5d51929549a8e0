/* SPDX-License-Identifier: Apache-2.0 */
/*
 * go_table: what Go's .gopclntab has about an address: its function, the functions
 * inlined there, their files and lines (runtime/symtab.go, symtabinl.go). Rows of
 * it are made by symbolize/rows/gopclntab.h, which has the versions.
 *
 * The file is untrusted: any number may lead anywhere. Everything is read where it
 * is, through a window of the file; nothing is followed that the file could make
 * longer than the limits of go_table.c.
 */
#ifndef SYMBOLIZE_GO_TABLE_H
#define SYMBOLIZE_GO_TABLE_H

#include "symbolize/rows/gopclntab.h"

struct go_layout; /* of a version of Go, what names need */

struct go_table {
	struct gopclntab g; /* without 'e' */
	const struct go_layout *layout;
	/* From the table's start: files of packages; names of files. */
	uint64_t cus, files;
	/* The segment with the data of functions; size 0: not known. */
	struct symbolizer_elf_load data;
	/* The address of every GO_TABLE_STRIDE-th function. */
	size_t n_heads;
	uint64_t *heads;
};

/*
 * -ENODATA: 'e' has no such table; -EINVAL: it cannot be used; -ENOMEM. 'e' must not
 * be valid longer.
 */
int go_table_open(struct go_table *t, struct symbolizer_elf *e);
void go_table_close(struct go_table *t);
size_t go_table_bytes(const struct go_table *t); /* of memory, *t not counted */

/* A function that is not inlined. Addresses as in the list of functions. */
struct go_func {
	uint64_t start, end;
	uint64_t at; /* its record, from the table's start */
	uint32_t name;
	uint32_t pcfile, pcln; /* tables of pcs */
	uint32_t pcinl; /* of numbers of inlined calls; 0: there are none */
	uint32_t cu;
	uint32_t start_line; /* 0: not known */
	uint64_t calls; /* file offset of the inlined calls; 0: not known */
};

/* False: no function. */
bool go_table_func(const struct go_table *t, struct symbolizer_src *src,
		   uint64_t pc, struct go_func *f);

/* A value in a table of pcs, the same in [start, end). */
struct go_value {
	int32_t value; /* negative: none */
	uint64_t start, end;
	bool beyond; /* the table ends before the address */
};

/*
 * The value at 'pc', which is in 'f'. *steps: how many steps may be done, less those
 * that were.
 */
void go_table_value(const struct go_table *t, struct symbolizer_src *src,
		    const struct go_func *f, uint32_t table, uint64_t pc,
		    uint32_t *steps, struct go_value *v);

/* An inlined call. */
struct go_call {
	uint32_t name, start_line;
	uint64_t parent; /* address of an instruction with the call's place */
};

/* False: there is none, or it is damaged. */
bool go_table_call(const struct go_table *t, struct symbolizer_src *src,
		   const struct go_func *f, int32_t index,
		   struct go_call *call);

/* The text, cut to 'cap'; false: there is none, *dst is "". */
bool go_table_name(const struct go_table *t, struct symbolizer_src *src,
		   uint32_t name, char *dst, size_t cap);
bool go_table_file(const struct go_table *t, struct symbolizer_src *src,
		   const struct go_func *f, int32_t file, char *dst,
		   size_t cap);

#endif /* SYMBOLIZE_GO_TABLE_H */
