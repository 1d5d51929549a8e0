/* SPDX-License-Identifier: Apache-2.0 */
/*
 * minidebug: MiniDebugInfo (gdb manual, "Debugging information in a special
 * section"), the section .gnu_debugdata: an ELF file, compressed by xz, with the
 * functions of .symtab that are not in .dynsym. Fedora has it in all executables.
 */
#ifndef SYMBOLIZE_MINIDEBUG_H
#define SYMBOLIZE_MINIDEBUG_H

#include "symbolize/elf/elf.h"

struct symbolizer_minidebug {
	uint8_t *bytes;
	struct symbolizer_src src;
	struct symbolizer_elf elf; /* with its tables */
};

/*
 * Decompresses the section of 'e'. 0; -ENODATA: there is none; -ENOMEM; another
 * error: it is invalid, too large or of another machine.
 */
int symbolizer_minidebug_open(struct symbolizer_minidebug **mp,
			      struct symbolizer_elf *e);
void symbolizer_minidebug_close(struct symbolizer_minidebug *m);

#endif /* SYMBOLIZE_MINIDEBUG_H */
