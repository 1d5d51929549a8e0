/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index: the functions of one ELF file, sorted by address, 16 bytes apiece;
 * the names stay in the file and are read when asked for.
 *
 * Which of several symbols names an address is decided in this order, so that
 * it is the same each time and for each copy of the file:
 *  1. of those that start at the same address: a function before an untyped
 *     label, global before weak before local, .symtab before .dynsym, then the
 *     name with the fewest leading underscores, the shorter one, the one that
 *     sorts first;
 *  2. of those that overlap: the one that starts last. What is left of the
 *     outer one is a range of its own with the same name;
 *  3. a symbol of no size reaches to the next symbol or to the end of its
 *     section (without section headers: segment), whatever comes first; an
 *     untyped one of no size inside another function is a label, and no name.
 */
#ifndef SYMBOLIZE_INDEX_H
#define SYMBOLIZE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "symbolize/elf/elf.h"

struct symbolizer_index;

/* 'e' with its tables; -ENOMEM. A file without symbols has an empty index. */
int symbolizer_index_new(struct symbolizer_index **xp,
			 struct symbolizer_elf *e);
void symbolizer_index_free(struct symbolizer_index *x);
/* Memory held. */
size_t symbolizer_index_bytes(const struct symbolizer_index *x);

struct symbolizer_range {
	uint64_t start, size;
	uint32_t name; /* for symbolizer_index_name() */
};

/* The last of rule 1, as strcmp(3): the better name is less. */
int symbolizer_index_prefer(const char *a, const char *b);

/* The range with this address in it. */
bool symbolizer_index_find(const struct symbolizer_index *x, uint64_t vaddr,
			   struct symbolizer_range *out);
/*
 * As the linker has it, cut to 'cap'; "@plt" is added for stubs. 'src' is of
 * the file that the index was made of. Length or -errno.
 */
int symbolizer_index_name(const struct symbolizer_index *x,
			  struct symbolizer_src *src, uint32_t name, char *dst,
			  size_t cap);

#endif /* SYMBOLIZE_INDEX_H */
