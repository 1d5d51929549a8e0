/* SPDX-License-Identifier: Apache-2.0 */
/*
 * names: all sources of names of one ELF file, and the answer that they give
 * together:
 *  - the sources are asked in the order of the table in names.c;
 *  - the first that has functions gives them;
 *  - a function without a name comes from the last source only;
 *  - but the last one, which is not inlined, has the name of the symbol table, if
 *    that has one: it tells apart what a compiler made of a function
 *    (foo.cold, foo.part.0), and all versions of a file agree on it.
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
/* A source, or the headers, are damaged. */
bool symbolizer_names_damaged(const struct symbolizer_names *n);

/*
 * What is known about an address. 0; -ENOENT: nothing; -ENOMEM. 'c' is of the same
 * file as in symbolizer_names_open().
 */
int symbolizer_names_find(struct symbolizer_names *n, struct names_context *c,
			  uint64_t vaddr, struct names_found *out);

#endif /* SYMBOLIZE_NAMES_H */
