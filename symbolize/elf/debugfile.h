/* SPDX-License-Identifier: Apache-2.0 */
/*
 * debugfile: the separate debug file of an ELF file, found by build id, or by the
 * name and checksum in .gnu_debuglink (gdb manual, "Separate Debug Files").
 */
#ifndef SYMBOLIZE_DEBUGFILE_H
#define SYMBOLIZE_DEBUGFILE_H

#include "symbolize/elf/ask.h"
#include "symbolize/elf/elf.h"

/* An open file of the same machine, addresses and, if both have one, build id. */
struct symbolizer_debugfile {
	struct symbolizer_src src;
	struct symbolizer_elf elf; /* without its tables */
	int fd;
};

/* 0, -ENOMEM, or -ENOENT: there is none, or another file. 'ask' may be NULL. */
int symbolizer_debugfile_open(struct symbolizer_debugfile **dp,
			      struct symbolizer_elf *e,
			      const struct symbolizer_ask *ask);
/* 'd' may be NULL. */
void symbolizer_debugfile_close(struct symbolizer_debugfile *d);

#endif /* SYMBOLIZE_DEBUGFILE_H */
