/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debugfile: the separate debug file of an ELF file, as distributions ship it:
 * by build id, or by the name and checksum in .gnu_debuglink (gdb manual,
 * "Separate Debug Files"). Where it lies is not known here: it is asked for.
 */
#ifndef SYMBOLIZE_DEBUGFILE_H
#define SYMBOLIZE_DEBUGFILE_H

#include "symbolize/elf/ask.h"
#include "symbolize/elf/elf.h"

/*
 * Open for reading; of the same machine, and, where it came by it or both say,
 * build id.
 */
struct symbolizer_debugfile {
	struct symbolizer_src src;
	struct symbolizer_elf elf; /* without its tables */
	int fd;
};

/*
 * 0; -ENOENT: 'e' names none, or there is none to be had, or another file; or
 * -ENOMEM. 'ask' may be NULL.
 */
int symbolizer_debugfile_open(struct symbolizer_debugfile **dp,
			      struct symbolizer_elf *e,
			      const struct symbolizer_ask *ask);
/* NULL will do. */
void symbolizer_debugfile_close(struct symbolizer_debugfile *d);

#endif /* SYMBOLIZE_DEBUGFILE_H */
