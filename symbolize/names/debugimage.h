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

struct debugimage {
	uint8_t *base; /* NULL: none */
	size_t size;
	size_t held; /* bytes that are no pages of the file */
	bool altlink; /* it has .gnu_debugaltlink */
	const uint8_t *line; /* .debug_line, in the image */
	size_t line_len;
};

/*
 * 'alt': with .gnu_debugaltlink, for which libdw opens a file unless it is given
 * one. 0; -ENODATA: there is no .debug_info; -ENOMEM; -EFBIG: too large to map;
 * -EINVAL: damaged.
 */
int debugimage_init(struct debugimage *im, struct symbolizer_elf *e, bool alt);
void debugimage_fini(struct debugimage *im);

#endif /* SYMBOLIZE_DEBUGIMAGE_H */
