// SPDX-License-Identifier: Apache-2.0
/* find: see symbolize/names/find.h. */
#include <errno.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/elf/debugfile.h"
#include "symbolize/names/find.h"

/* Limit for untrusted files: symbols of a table. */
#define FIND_SYMBOLS_MAX (1U << 23)
#define FIND_NAME_MAX 4096

struct find {
	const char *name;
	size_t len;
	uint64_t vaddr, size;
	bool found;
};

static int find_in_sections(struct find *f, struct symbolizer_elf *e)
{
	const uint64_t flags = SHF_ALLOC | SHF_EXECINSTR;
	Elf64_Shdr sh, names;
	char text[FIND_NAME_MAX];

	if (!symbolizer_elf_names(e, &names))
		return -ENOENT;
	for (uint32_t i = 1; i < e->shnum; i++) {
		if (symbolizer_elf_shdr(e, i, &sh))
			break;
		if ((sh.sh_flags & flags) != flags || !sh.sh_size ||
		    symbolizer_elf_name(e, &names, &sh, text, sizeof(text)) !=
			    (int)f->len ||
		    strcmp(text, f->name) != 0)
			continue;
		f->vaddr = sh.sh_addr;
		f->size = sh.sh_size;
		return 0;
	}
	return -ENOENT;
}

/* A function of that name; one at another address makes it ambiguous. */
static int find_take(struct find *f, const struct symbolizer_elf *e,
		     Elf64_Sym *s)
{
	unsigned int type = ELF64_ST_TYPE(s->st_info);

	if (s->st_shndx == SHN_UNDEF || !symbolizer_elf_sym_place(e, s) ||
	    !symbolizer_elf_exec(e, s->st_value) ||
	    (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE))
		return 0;
	if (f->found && f->vaddr != s->st_value)
		return -ENOTUNIQ;
	f->found = true;
	f->vaddr = s->st_value;
	f->size = MAX(f->size, s->st_size);
	return 0;
}

static int find_in_table(struct find *f, struct symbolizer_elf *e,
			 enum symbolizer_elf_tab which)
{
	const struct symbolizer_elf_symbols *t = &e->tabs[which];
	/* With a window of its own: names are elsewhere in the file. */
	struct symbolizer_src strings = *e->src;
	uint64_t n = MIN(t->count, (uint64_t)FIND_SYMBOLS_MAX);
	char text[FIND_NAME_MAX];
	Elf64_Sym s;
	int err = 0;

	if (t->str > UINT64_MAX - t->str_size)
		return -ENOENT;
	for (uint64_t i = 1; i < n && !err; i++) {
		if (symbolizer_elf_sym(e, t, i, &s))
			break;
		if (!s.st_name || s.st_name >= t->str_size ||
		    symbolizer_src_string(&strings, t->str + s.st_name,
					  t->str + t->str_size, text,
					  MIN(f->len + 2, sizeof(text))) !=
			    (int)f->len ||
		    strcmp(text, f->name) != 0)
			continue;
		err = find_take(f, e, &s);
	}
	return err ? err : f->found ? 0 : -ENOENT;
}

static int find_in_debug(struct find *f, struct symbolizer_elf *e,
			 const struct symbolizer_ask *ask)
{
	struct symbolizer_debugfile *d;
	int err = symbolizer_debugfile_open(&d, e, ask);

	if (err)
		return err;
	err = symbolizer_elf_tables(&d->elf);
	if (!err)
		err = find_in_table(f, &d->elf, SYMBOLIZER_SYMTAB);
	symbolizer_debugfile_close(d);
	return err;
}

int symbolizer_find_name(struct symbolizer_src *src,
			 const struct symbolizer_ask *ask, const char *name,
			 uint64_t *vaddr, uint64_t *size)
{
	struct find f = { .name = name, .len = strlen(name) };
	struct symbolizer_elf e;
	int err = symbolizer_elf_init_any(&e, src);

	if (err)
		return err;
	if (f.len >= FIND_NAME_MAX - 1) {
		symbolizer_elf_fini(&e);
		return -ENOENT;
	}
	err = symbolizer_elf_tables(&e);
	if (!err)
		err = find_in_sections(&f, &e);
	if (err == -ENOENT)
		err = find_in_table(&f, &e, SYMBOLIZER_SYMTAB);
	if (err == -ENOENT)
		err = find_in_debug(&f, &e, ask);
	if (err == -ENOENT)
		err = find_in_table(&f, &e, SYMBOLIZER_DYNSYM);
	symbolizer_elf_fini(&e);
	*vaddr = f.vaddr;
	*size = f.size;
	return err;
}
