// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: any bytes as the code of a program that has no CFI. The first byte tells
 * of its kind and address, the second where it begins.
 */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/rows/rows.h"
#include "tests/fuzz/symbolize/rows.h"

#define HEAD (sizeof(Elf64_Ehdr) + sizeof(Elf64_Phdr))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	Elf64_Ehdr eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64,
				       ELFDATA2LSB, EV_CURRENT },
			  .e_machine = EM_X86_64,
			  .e_phoff = sizeof(eh),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 1 };
	Elf64_Phdr ph = { .p_type = PT_LOAD, .p_flags = PF_R | PF_X };
	struct symbolizer_rows *rows;
	struct symbolizer_src src;
	uint8_t *file;

	if (size < 2)
		return 0;
	eh.e_type = data[0] & 1 ? ET_EXEC : ET_DYN;
	ph.p_vaddr = data[0] & 2 ? 0x400000 : 0;
	ph.p_filesz = ph.p_memsz = HEAD + size - 2;
	eh.e_entry = ph.p_vaddr + HEAD + data[1];
	file = malloc(HEAD + size);
	if (!file)
		return 0;
	memcpy(file, &eh, sizeof(eh));
	memcpy(file + sizeof(eh), &ph, sizeof(ph));
	memcpy(file + HEAD, data + 2, size - 2);
	symbolizer_src_mem(&src, file, HEAD + size - 2);
	if (!symbolizer_rows_read(&rows, &src, NULL)) {
		check_rows(rows);
		symbolizer_rows_free(rows);
	}
	free(file);
	return 0;
}
