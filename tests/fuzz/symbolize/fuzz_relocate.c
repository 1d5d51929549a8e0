// SPDX-License-Identifier: Apache-2.0
/*
 * Fuzz target: relocations. Byte 0 is the number of symbols, byte 1 the length of the
 * section; the symbols, the section and the relocations follow. Each is in memory of its
 * exact size. What no relocation names must stay as it is.
 */
#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/arch.h"
#include "symbolize/elf/relocate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void *copy_of(const uint8_t *data, size_t len)
{
	void *copy = malloc(len + !len);

	if (!copy)
		abort();
	return memcpy(copy, data, len);
}

/* Puts the bytes back that each relocation may have changed. */
static void restore(uint8_t *buf, const uint8_t *before, size_t len,
		    const uint8_t *rels, size_t n)
{
	struct arch_relocation how;
	Elf64_Rela rel;

	for (size_t i = 0; i < n; i++) {
		memcpy(&rel, rels + i * sizeof(rel), sizeof(rel));
		if (!arch_relocation((uint32_t)ELF64_R_TYPE(rel.r_info),
				     &how) ||
		    rel.r_offset > len || how.size > len - rel.r_offset)
			continue;
		memcpy(buf + rel.r_offset, before + rel.r_offset, how.size);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct symbolizer_relocate r = { 0 };
	struct arch_relocation how;
	const uint8_t *section;
	uint8_t *rels;
	int err;

	if (size < 2)
		return 0;
	size -= 2;
	r.n_symbols = MIN(data[0], size / sizeof(*r.symbols));
	r.symbols = copy_of(data + 2, r.n_symbols * sizeof(*r.symbols));
	section = data + 2 + r.n_symbols * sizeof(*r.symbols);
	size -= r.n_symbols * sizeof(*r.symbols);
	r.len = MIN(data[1], size);
	r.buf = copy_of(section, r.len);
	size -= r.len;
	rels = copy_of(section + r.len, size);
	err = symbolizer_relocate(&r, rels, size);
	if (err && err != -EINVAL && err != -ENOTSUP)
		abort();
	if (err == -ENOTSUP && arch_relocation(r.unknown, &how))
		abort();
	if (!err && size % sizeof(Elf64_Rela))
		abort();
	restore(r.buf, section, r.len, rels, size / sizeof(Elf64_Rela));
	if (memcmp(r.buf, section, r.len) != 0)
		abort();
	free((void *)r.symbols);
	free(r.buf);
	free(rels);
	return 0;
}
