/* SPDX-License-Identifier: Apache-2.0 */
/*
 * shown: what all names and file names of functions have in common, whatever their
 * source: they are text for a terminal (base/text.h), and a copy or a part that a
 * compiler made of a function has the function's name.
 */
#ifndef SYMBOLIZE_SHOWN_H
#define SYMBOLIZE_SHOWN_H

#include <stddef.h>

struct arena;
struct symbolizer_function;

/*
 * The length of a linker's name without what compilers append to the names of
 * copies and parts of a function: .constprop.0, .isra.0, .part.0, .cold, .lto_priv.0,
 * .localalias and .llvm.N, also several of them.
 */
size_t shown_bare(const char *name);

/*
 * Escapes in all texts of a function what a terminal must not have, by text_add();
 * changed ones are in the arena. 0 or -ENOMEM.
 */
int shown_escape(struct symbolizer_function *fn, struct arena *arena);

#endif /* SYMBOLIZE_SHOWN_H */
