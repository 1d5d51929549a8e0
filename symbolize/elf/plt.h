/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plt: the stubs through which a file calls functions of others. They have no
 * symbols; the jump of each leads to a slot that a relocation with a symbol
 * fills. Known for x86-64; elsewhere stubs have no names.
 */
#ifndef SYMBOLIZE_PLT_H
#define SYMBOLIZE_PLT_H

#include "symbolize/elf/elf.h"

/* A stub at [start, end); 'name' is the place in .dynsym's strings. */
typedef int (*symbolizer_plt_fn)(void *arg, uint64_t start, uint64_t end,
				 uint32_t name);

/* 'e' with its tables. What fn returned if not 0; -ENOMEM. */
int symbolizer_plt_stubs(struct symbolizer_elf *e, symbolizer_plt_fn fn,
			 void *arg);

#endif /* SYMBOLIZE_PLT_H */
