/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find: where a function or a section with code is, by its name. Runs in the worker
 * process.
 */
#ifndef SYMBOLIZE_FIND_H
#define SYMBOLIZE_FIND_H

#include "symbolize/elf/ask.h"
#include "symbolize/elf/elf.h"

/* As symbolizer_find(), for an address in the file; 'ask' may be NULL. Also -ENOMEM. */
int symbolizer_find_name(struct symbolizer_src *src,
			 const struct symbolizer_ask *ask, const char *name,
			 uint64_t *vaddr, uint64_t *size);

#endif /* SYMBOLIZE_FIND_H */
