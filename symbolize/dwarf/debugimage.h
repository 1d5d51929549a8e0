/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debugimage: the DWARF sections of an ELF file as an ELF file in memory, for
 * libdw. Three things are needed that elf_begin(3) cannot do in the sandbox:
 *  - it must not call fstat(2) or open(2), which the worker may not;
 *  - libelf 0.188 does not decompress zstd;
 *  - only the pages that are read may take memory: sections that are not
 *    compressed are mapped from the file.
 *
 * The owner of the file can truncate it: a read beyond its end is SIGBUS, and the
 * worker dies, as with any file on which it fails.
 */
#ifndef SYMBOLIZE_DEBUGIMAGE_H
#define SYMBOLIZE_DEBUGIMAGE_H

#include <stdint.h>

#include "symbolize/elf/elf.h"

/* Which sections of a file are in its image. */
enum debugimage_kind {
	DEBUGIMAGE_PLAIN,
	/* With .gnu_debugaltlink, for which libdw opens a file unless given one. */
	DEBUGIMAGE_ALT,
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
	bool altlink; /* it has .gnu_debugaltlink */
};

/*
 * 0; -ENODATA: there is no .debug_info; -ENOMEM; -EFBIG: too large to map;
 * -EINVAL: damaged.
 */
int debugimage_init(struct debugimage *im, struct symbolizer_elf *e,
		    enum debugimage_kind kind);
void debugimage_fini(struct debugimage *im);

/* By the section's name in the image. */
struct debugimage_part debugimage_part(const struct debugimage *im,
				       const char *name);
/*
 * Makes the section that part of 'whole' for handles opened from now on. False: it
 * has no such part.
 */
bool debugimage_slice(struct debugimage *im, const char *name,
		      struct debugimage_part whole, uint64_t off, uint64_t len);

#endif /* SYMBOLIZE_DEBUGIMAGE_H */
