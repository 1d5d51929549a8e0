/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names: all sources of names of one ELF file, and the answer that they give
 * together. The sources are asked in the order of the table in names.c, and opened
 * when they are first asked:
 *  - Go's own table first, which has all that DWARF has, and is far smaller;
 *  - then DWARF. The last function, which is not inlined, has the name of the
 *    symbol table, if that has one of the same function: it tells apart what a compiler made of a
 *    function (foo.cold, foo.part.0), and names code that was assembled, of which
 *    DWARF knows lines only;
 *  - then symbols;
 *  - at last where a function begins that has no name.
 */
#ifndef SYMBOLIZE_NAMES_H
#define SYMBOLIZE_NAMES_H

#include "symbolize/names/source.h"

struct symbolizer_names;

/* -ENOMEM; or the error of the ELF file, which has no names then. */
int symbolizer_names_open(struct symbolizer_names **np,
			  struct names_context *c);
void symbolizer_names_close(struct symbolizer_names *n); /* may be NULL */
/* Memory held. */
size_t symbolizer_names_bytes(const struct symbolizer_names *n);
/* A source that was opened, or the headers, are damaged. */
bool symbolizer_names_damaged(const struct symbolizer_names *n);
/*
 * The type of a relocation that is not known, for which a source of a relocatable
 * file was not opened; 0: there is none.
 */
uint32_t symbolizer_names_relocation(const struct symbolizer_names *n);

/*
 * What is known about an address. 0; -ENOENT: nothing; -ENOMEM. 'c' is of the same
 * file as in symbolizer_names_open().
 */
int symbolizer_names_find(struct symbolizer_names *n, struct names_context *c,
			  uint64_t vaddr, struct names_found *out);
/* After the last symbolizer_names_find() of a request: gives back some memory. */
void symbolizer_names_idle(struct symbolizer_names *n, struct names_context *c);

#endif /* SYMBOLIZE_NAMES_H */
