/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dwarf_split: compile units whose entries are in another file (DWARF 5 section
 * 7.3.2, and GNU's extension of DWARF 4): in a .dwo file of the unit, or in the
 * executable's .dwp file. The executable has a skeleton of the unit, with its
 * addresses and lines. libdw opens such files by itself, which the worker may not, so
 * they are handles of their own, and addresses are resolved here.
 */
#ifndef SYMBOLIZE_DWARF_SPLIT_H
#define SYMBOLIZE_DWARF_SPLIT_H

#include <elfutils/libdw.h>

#include "base/base.h"
#include "symbolize/elf/ask.h"
#include "symbolize/dwarf/debugimage.h"

#define DWARF_SPLITS_MAX 16 /* files open at a time */

/* Of the executable, for one split unit. */
struct dwarf_skeleton {
	uint64_t id;
	Dwarf_Half version;
	uint64_t low; /* base address of ranges */
	struct debugimage_part addr; /* .debug_addr, from its base on */
	struct debugimage_part ranges; /* DWARF 4 .debug_ranges, likewise */
	const char *dir, *name; /* of the .dwo file; or NULL */
	/* Set with the unit: DWARF 5 .debug_rnglists; and all of its file. */
	struct debugimage_part lists;
	struct debugimage_part file;
};

struct dwarf_span {
	Dwarf_Addr start, end;
};

struct dwarf_split; /* an open file */

struct dwarf_splits {
	struct dwarf_split *packed; /* the .dwp file, or NULL */
	struct dwarf_split *files[DWARF_SPLITS_MAX]; /* .dwo, by id */
	uint32_t next; /* of them, to be replaced */
	uint32_t asked; /* in this request */
	bool looked; /* for the .dwp file */
};

/* 'unit': the skeleton. -ENOENT: it has no id or no name. */
int dwarf_skeleton_read(struct dwarf_skeleton *sk, const struct debugimage *im,
			Dwarf_Die *unit);

/*
 * The split unit. 'unit' and what 'sk' has of it are valid until the next call.
 * -ENOENT: it is not found; -ENOMEM. 'ask' may be NULL.
 */
int dwarf_splits_unit(struct dwarf_splits *s, struct dwarf_skeleton *sk,
		      const struct symbolizer_ask *ask, Dwarf_Die *unit);
size_t dwarf_splits_bytes(const struct dwarf_splits *s);
/* After a request: closes handles, keeps images. */
void dwarf_splits_idle(struct dwarf_splits *s);
void dwarf_splits_fini(struct dwarf_splits *s);

/* The ranges of an entry of a split unit: the first 'max'. Their number. */
size_t dwarf_split_ranges(const struct dwarf_skeleton *sk, Dwarf_Die *die,
			  struct dwarf_span *out, size_t max);

#endif /* SYMBOLIZE_DWARF_SPLIT_H */
