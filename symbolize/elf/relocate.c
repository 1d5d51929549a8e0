// SPDX-License-Identifier: Apache-2.0
/* relocate: see symbolize/elf/relocate.h. */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/arch.h"
#include "symbolize/elf/relocate.h"

static bool relocate_fits(const struct arch_relocation *how, uint64_t value)
{
	if (how->size == sizeof(value))
		return true;
	return how->is_signed ? (int64_t)value == (int32_t)value
			      : value <= UINT32_MAX;
}

static int relocate_one(struct symbolizer_relocate *r, const Elf64_Rela *rel)
{
	uint64_t symbol = ELF64_R_SYM(rel->r_info), value, at = rel->r_offset;
	uint32_t type = (uint32_t)ELF64_R_TYPE(rel->r_info);
	struct arch_relocation how;

	if (!arch_relocation(type, &how)) {
		r->unknown = type;
		return -ENOTSUP;
	}
	if (!how.size)
		return 0;
	if (symbol >= r->n_symbols || at > r->len || how.size > r->len - at)
		return -EINVAL;
	value = r->symbols[symbol] + (uint64_t)rel->r_addend -
		(how.relative ? at : 0);
	if (!relocate_fits(&how, value))
		return -EINVAL;
	memcpy(r->buf + at, &value, how.size);
	return 0;
}

int symbolizer_relocate(struct symbolizer_relocate *r, const uint8_t *rels,
			size_t len)
{
	Elf64_Rela rel;
	int err = len % sizeof(rel) ? -EINVAL : 0;

	for (size_t i = 0; i < len / sizeof(rel) && !err; i++) {
		memcpy(&rel, rels + i * sizeof(rel), sizeof(rel));
		err = relocate_one(r, &rel);
	}
	return err;
}
