/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debugimage: the DWARF sections of an ELF file in memory: unpacked, or mapped from
 * the file, so that only pages that are read take memory.
 *
 * The owner of the file can truncate it: a read beyond its end is SIGBUS, and the
 * worker dies, as with any file on which it fails.
 *
 * Sections of a relocatable file are relocated in memory. An address in its image is
 * DEBUGIMAGE_OBJECT more than in the file: a linker that dropped a function leaves small
 * numbers where its address was, which must not be those of other code.
 */
#ifndef SYMBOLIZE_DEBUGIMAGE_H
#define SYMBOLIZE_DEBUGIMAGE_H

#include <stdint.h>

#include "symbolize/elf/elf.h"

#define DEBUGIMAGE_OBJECT (1ULL << 30)

/* Which sections of a file are in its image. */
enum debugimage_kind {
	DEBUGIMAGE_PLAIN,
	/* Of a .dwo or .dwp file: ".debug_X.dwo" is in the image as ".debug_X". */
	DEBUGIMAGE_SPLIT,
};

/* A section in the image; len 0: there is none. */
struct debugimage_part {
	const uint8_t *p;
	size_t len;
};

struct debugimage {
	uint8_t *base; /* NULL: none */
	size_t size;
	size_t held; /* bytes that are no pages of the file */
	uint32_t relocation; /* after -ENOTSUP: its type */
};

/*
 * 0; -ENODATA: there is no .debug_info; -ENOMEM; -EFBIG: too large to map;
 * -ENOTSUP: a relocation that is not known for the machine; -EINVAL: damaged.
 */
int debugimage_init(struct debugimage *im, struct symbolizer_elf *e,
		    enum debugimage_kind kind);
void debugimage_fini(struct debugimage *im);

/* By the section's name in the image. */
struct debugimage_part debugimage_part(const struct debugimage *im,
				       const char *name);
#endif /* SYMBOLIZE_DEBUGIMAGE_H */
