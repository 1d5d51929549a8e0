// SPDX-License-Identifier: Apache-2.0
/*
 * object: the addresses of a relocatable file; see symbolize/elf/elf.h. Its sections
 * have none. Those with code get the ones that they have in a module, from the start
 * of the module's code on: layout_sections() and setup_load_info() of
 * kernel/module/main.c, Linux 6.1. A separate debug file has the same sections
 * without contents, so its addresses are the same.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/elf/elf.h"

#define OBJECT_INIT ".init" /* what the names of such sections begin with */

static bool object_is_code(const Elf64_Shdr *sh)
{
	const uint64_t flags = SHF_ALLOC | SHF_EXECINSTR;

	return (sh->sh_flags & flags) == flags &&
	       (sh->sh_type == SHT_PROGBITS || sh->sh_type == SHT_NOBITS);
}

/* The kernel frees them once the module is initialized. */
static bool object_is_init(struct symbolizer_elf *e, const Elf64_Shdr *names,
			   const Elf64_Shdr *sh)
{
	char name[sizeof(OBJECT_INIT)];

	return names->sh_size &&
	       symbolizer_elf_name(e, names, sh, name, sizeof(name)) >= 0 &&
	       strcmp(name, OBJECT_INIT) == 0;
}

/* Collects the sections; 'start' is the alignment until they are placed. */
static int object_sections(struct symbolizer_elf *e)
{
	Elf64_Shdr sh, names;
	uint64_t align;

	if (!symbolizer_elf_names(e, &names))
		names.sh_size = 0;
	for (uint32_t i = 1; i < e->shnum; i++) {
		if (symbolizer_elf_shdr(e, i, &sh)) {
			e->damaged = true;
			break;
		}
		if (!object_is_code(&sh))
			continue;
		align = MAX(sh.sh_addralign, 1ULL);
		if (align & (align - 1) || align > SYMBOLIZER_OBJECT_MAX ||
		    sh.sh_size > SYMBOLIZER_OBJECT_MAX) {
			e->damaged = true;
			continue;
		}
		if (VECTOR_ROOM(e->placed, e->n_placed, e->cap_placed))
			return -ENOMEM;
		e->placed[e->n_placed++] = (struct symbolizer_elf_placed){
			.start = align,
			.size = sh.sh_size,
			.section = i,
			.init = object_is_init(e, &names, &sh),
		};
	}
	return 0;
}

/* Places those that are 'init' or not from 'at' on; the end. */
static uint64_t object_place(struct symbolizer_elf *e, bool init, uint64_t at)
{
	struct symbolizer_elf_placed *p;

	for (p = e->placed; p < e->placed + e->n_placed; p++) {
		if (p->init != init)
			continue;
		at = (at + p->start - 1) & ~(p->start - 1);
		if (at > SYMBOLIZER_OBJECT_MAX - p->size) {
			e->damaged = true;
			p->size = 0;
		}
		p->start = at;
		at += p->size;
	}
	return at;
}

int symbolizer_elf_place(struct symbolizer_elf *e)
{
	uint64_t end;
	int err;

	/* Symbols of further sections would have their numbers elsewhere. */
	if (e->shnum >= SHN_LORESERVE) {
		e->damaged = true;
		return -ENOEXEC;
	}
	err = object_sections(e);
	if (err || !e->n_placed)
		return err;
	end = object_place(e, true, object_place(e, false, 0));
	e->absent = (struct symbolizer_elf_load){ .size = end, .exec = true };
	return 0;
}

const struct symbolizer_elf_placed *
symbolizer_elf_placed(const struct symbolizer_elf *e, uint32_t section)
{
	size_t i;

	VECTOR_SEARCH(i, e->n_placed, e->placed[i].section < section);
	return i < e->n_placed && e->placed[i].section == section
		       ? &e->placed[i]
		       : NULL;
}

bool symbolizer_elf_sym_place(const struct symbolizer_elf *e, Elf64_Sym *sym)
{
	const struct symbolizer_elf_placed *p;

	if (e->type != ET_REL)
		return true;
	p = symbolizer_elf_placed(e, sym->st_shndx);
	if (!p || sym->st_value >= p->size)
		return false;
	sym->st_size = MIN(sym->st_size, p->size - sym->st_value);
	sym->st_value += p->start;
	return true;
}

bool symbolizer_elf_same_places(const struct symbolizer_elf *a,
				const struct symbolizer_elf *b)
{
	if (a->n_placed != b->n_placed)
		return false;
	for (size_t i = 0; i < a->n_placed; i++)
		if (a->placed[i].start != b->placed[i].start ||
		    a->placed[i].size != b->placed[i].size)
			return false;
	return true;
}
