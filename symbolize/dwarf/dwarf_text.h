/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_text: the texts of a file's compile units, each once: the names of its
 * functions and the paths of its sources. They are in one block, 32-bit offsets refer
 * to them.
 */
#ifndef SYMBOLIZE_DWARF_TEXT_H
#define SYMBOLIZE_DWARF_TEXT_H

#include "symbolize/names/source.h"

struct dwarf_text {
	char *bytes; /* begins with an empty text */
	uint32_t *slots; /* a hash table of offsets; 0: free */
	uint32_t len, cap, n, mask;
};

/* As symbolizer_function has them. */
struct dwarf_function {
	const char *text; /* "": none */
	bool linkage; /* it is the name that the linker uses */
	uint32_t line; /* where the function is declared */
};

void dwarf_text_fini(struct dwarf_text *t);
size_t dwarf_text_bytes(const struct dwarf_text *t);

/* The offset of the text, cut at SOURCE_TEXT_MAX; 0 of "". -ENOMEM; -EFBIG. */
int dwarf_text_add(struct dwarf_text *t, const char *s, uint32_t *offset);
/* Valid until the next one is added. */
const char *dwarf_text_at(const struct dwarf_text *t, uint32_t offset);

/* Functions are texts too: a name with a few bytes in front. */
int dwarf_text_add_function(struct dwarf_text *t,
			    const struct dwarf_function *fn, uint32_t *offset);
/* Without a name, if the offset is 0. */
struct dwarf_function dwarf_text_function(const struct dwarf_text *t,
					  uint32_t offset);

#endif /* SYMBOLIZE_DWARF_TEXT_H */
