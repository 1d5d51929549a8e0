/* SPDX-License-Identifier: Apache-2.0 */
/*
 * relocate: applies relocations to the contents of a section of a relocatable file, as
 * a linker does (gABI, "Relocation"): without it, debug information of such a file has
 * neither addresses nor offsets in other sections.
 */
#ifndef SYMBOLIZE_RELOCATE_H
#define SYMBOLIZE_RELOCATE_H

#include <stddef.h>
#include <stdint.h>

struct symbolizer_relocate {
	uint8_t *buf; /* the section, which is changed; at address 0 */
	size_t len;
	const uint64_t *symbols; /* their addresses, by index */
	size_t n_symbols;
	uint32_t unknown; /* after -ENOTSUP: the type of that relocation */
};

/*
 * 'rels': Elf64_Rela, at any alignment; of them and of the section any byte may be
 * wrong. -ENOTSUP: a type that is not known for the machine; -EINVAL: one is outside of
 * the section, has no such symbol, or a value that does not fit. Those before it have
 * been applied then.
 */
int symbolizer_relocate(struct symbolizer_relocate *r, const uint8_t *rels,
			size_t len);

#endif /* SYMBOLIZE_RELOCATE_H */
