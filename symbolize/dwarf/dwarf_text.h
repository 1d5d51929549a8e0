/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_text: the texts of compile units, each once: the names of functions and the
 * paths of sources. They are in one block, 32-bit offsets refer to them. They are
 * collected in a dwarf_text, and read wherever the block is, which may have any bytes.
 */
#ifndef SYMBOLIZE_DWARF_TEXT_H
#define SYMBOLIZE_DWARF_TEXT_H

#include "symbolize/names/source.h"

struct dwarf_text {
	char *bytes; /* begins with an empty text */
	uint32_t *slots; /* a hash table of offsets; 0: free */
	uint32_t len, cap, n, mask;
};

/* The block of a dwarf_text: dwarf_texts_ok(). */
struct dwarf_texts {
	const char *bytes;
	uint32_t len;
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
/*
 * Functions are texts too: a name with a few bytes in front. 'fn->text' is cut
 * likewise.
 */
int dwarf_text_add_function(struct dwarf_text *t,
			    const struct dwarf_function *fn, uint32_t *offset);

/* Valid until the next one is added. */
struct dwarf_texts dwarf_text_block(const struct dwarf_text *t);
/* Whether it is empty, or begins and ends with an empty text. */
bool dwarf_texts_ok(const struct dwarf_texts *t);
/*
 * Texts that were added; "", and a function without a name, of an offset where none
 * can be. They may be longer than SOURCE_TEXT_MAX in a block of other bytes.
 */
const char *dwarf_texts_at(const struct dwarf_texts *t, uint32_t offset);
struct dwarf_function dwarf_texts_function(const struct dwarf_texts *t,
					   uint32_t offset);

#endif /* SYMBOLIZE_DWARF_TEXT_H */
