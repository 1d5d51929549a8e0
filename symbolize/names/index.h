/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index: the functions of one ELF file, sorted by address, 16 bytes each; names
 * stay in the file until they are needed.
 *
 * The choice between several symbols of an address is the same each time and for
 * each copy of the file:
 *  1. of symbols that start at the same address: a function before an untyped
 *     label, an exported one (global or weak) before a local one, .symtab before
 *     .dynsym, then the name with the fewest leading underscores, the shorter one
 *     (both without "@VERSION"), the one that sorts first: "poll", which is weak
 *     in libc, and not "__poll", which is global;
 *  2. of symbols that overlap: the one that starts last. The rest of the outer
 *     one is a range of its own with the same name;
 *  3. a symbol without a size extends to the next symbol or to the end of its
 *     section (without section headers: segment), whichever comes first; an
 *     untyped one without a size inside another function is a label, not a name.
 */
#ifndef SYMBOLIZE_INDEX_H
#define SYMBOLIZE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/elf/elf.h"
#include "symbolize/symbolize.h"

struct symbolizer_index;

/* 'e' with its tables; -ENOMEM. A file without symbols has an empty index. */
int symbolizer_index_new(struct symbolizer_index **xp,
			 struct symbolizer_elf *e);
void symbolizer_index_free(struct symbolizer_index *x);
/* Bytes of memory. */
size_t symbolizer_index_bytes(const struct symbolizer_index *x);

struct symbolizer_range {
	uint64_t start, size;
	uint32_t name; /* for symbolizer_index_name() */
};

/* Compares names by the end of rule 1, as strcmp(3): the better one is less. */
int symbolizer_index_prefer(const char *a, const char *b);

/* The range with this address in it. */
bool symbolizer_index_find(const struct symbolizer_index *x, uint64_t vaddr,
			   struct symbolizer_range *out);
/*
 * Reads a name, mangled and cut to 'cap', with "@plt" behind that of a stub, from
 * the file of the index. Length or -errno.
 */
int symbolizer_index_name(const struct symbolizer_index *x,
			  struct symbolizer_src *src, uint32_t name, char *dst,
			  size_t cap);

/* The table that it is in. */
enum symbolizer_source symbolizer_index_source(uint32_t name);

#endif /* SYMBOLIZE_INDEX_H */
