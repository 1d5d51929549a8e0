/* SPDX-License-Identifier: Apache-2.0 */
/*
 * index: the functions of one ELF file, sorted by address. Names that are in the
 * file stay there until they are needed; those of other files are copied and
 * compressed (index_pack.h has the form).
 *
 * The functions are those of .symtab; if it has none, of .symtab of the separate
 * debug file; if that has none, of .symtab in MiniDebugInfo; always also those of
 * .dynsym, and the stubs of the PLT. What is code the file itself decides: the
 * sections of a debug file have no contents.
 *
 * The choice between several symbols of an address is the same each time and for
 * each copy of the file:
 *  1. of symbols that start at the same address: one with a size before one
 *     without, which may be a function without code whose name is that of the next
 *     one's address; a function before an untyped label, an exported one (global or weak) before a local one, the tables in
 *     the order above, then the name with the fewest leading underscores, the shorter one
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

#include "symbolize/elf/ask.h"
#include "symbolize/elf/elf.h"
#include "symbolize/symbolize.h"

struct symbolizer_index;

/*
 * 'e' has its tables; 'ask' may be NULL. -ENOMEM. A file without symbols has an
 * empty index. e->damaged is set if a table of any of the files is.
 */
int symbolizer_index_new(struct symbolizer_index **xp, struct symbolizer_elf *e,
			 const struct symbolizer_ask *ask);
void symbolizer_index_free(struct symbolizer_index *x); /* may be NULL */
/* Ranges of addresses. */
size_t symbolizer_index_count(const struct symbolizer_index *x);
/* Bytes of memory. */
size_t symbolizer_index_bytes(const struct symbolizer_index *x);

struct symbolizer_range {
	uint64_t start, size;
	/* For symbolizer_index_name(). */
	uint32_t name, block;
	uint8_t tab;
};

/* Compares names by the end of rule 1, as strcmp(3): the better one is less. */
int symbolizer_index_prefer(const char *a, const char *b);

/* The range with this address in it. */
bool symbolizer_index_find(const struct symbolizer_index *x, uint64_t vaddr,
			   struct symbolizer_range *out);
/*
 * Reads a name, mangled and cut to 'cap', with "@plt" behind that of a stub. 'src'
 * is the file of the index. Length or -errno.
 */
int symbolizer_index_name(struct symbolizer_index *x,
			  struct symbolizer_src *src,
			  const struct symbolizer_range *range, char *dst,
			  size_t cap);

/* The table that it is in. */
enum symbolizer_source
symbolizer_index_source(const struct symbolizer_range *range);

#endif /* SYMBOLIZE_INDEX_H */
