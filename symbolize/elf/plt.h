/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plt: the stubs through which a file calls functions of other files. They have
 * no symbols, but each jumps through a slot that is filled by a relocation with
 * a symbol; or, for functions of the file itself of which one is chosen at run
 * time, with the address that an STT_GNU_IFUNC symbol has. Only files of this
 * machine have names of stubs.
 */
#ifndef SYMBOLIZE_PLT_H
#define SYMBOLIZE_PLT_H

#include "symbolize/elf/elf.h"

/* A stub at [start, end); 'name' is an offset in the strings of .dynsym. */
typedef int (*symbolizer_plt_fn)(void *arg, uint64_t start, uint64_t end,
				 uint32_t name);

/* 'e' has its tables. 0, -ENOMEM, or what fn returned if not 0, which ends it. */
int symbolizer_plt_stubs(struct symbolizer_elf *e, symbolizer_plt_fn fn,
			 void *arg);

#endif /* SYMBOLIZE_PLT_H */
