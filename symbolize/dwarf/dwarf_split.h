/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_split: compile units whose entries are in another file (DWARF 5 section
 * 7.3.2, and GNU's extension of DWARF 4): in a .dwo file of the unit, or in the
 * executable's .dwp file. The executable has a skeleton of the unit, with its
 * addresses and lines.
 */
#ifndef SYMBOLIZE_DWARF_SPLIT_H
#define SYMBOLIZE_DWARF_SPLIT_H

#include "symbolize/dwarf/dwarf_entry.h"
#include "symbolize/elf/ask.h"

#define DWARF_SPLITS_MAX 16 /* files open at a time */

struct dwarf_split; /* an open file */

struct dwarf_splits {
	struct dwarf_split *packed; /* the .dwp file, or NULL */
	struct dwarf_split *files[DWARF_SPLITS_MAX]; /* .dwo, by id */
	uint32_t next; /* of them, to be replaced */
	uint32_t asked; /* in this request */
	bool looked; /* for the .dwp file */
};

/*
 * The split unit of a skeleton, until the next call. -ENOENT: it is not found; -ENOMEM.
 * 'ask' may be NULL.
 */
int dwarf_splits_unit(struct dwarf_splits *s, const struct dwarf_cu *skeleton,
		      const struct symbolizer_ask *ask,
		      const struct dwarf_cu **unit);
size_t dwarf_splits_bytes(const struct dwarf_splits *s);
/* After a request: frees what was made of images, keeps these. */
void dwarf_splits_idle(struct dwarf_splits *s);
void dwarf_splits_fini(struct dwarf_splits *s);

#endif /* SYMBOLIZE_DWARF_SPLIT_H */
