// SPDX-License-Identifier: Apache-2.0
/*
 * elftab: where an ELF file keeps its symbols, see symbolize/elf/elf.h. Section
 * headers say it best. They are not needed to run, though: without them the
 * dynamic segment leads to .dynsym, whose length nobody writes down and which
 * is learned from the hash table over it (gABI "Hash Table"; the GNU one as
 * glibc reads it).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/elf/elf.h"

#define TAB_TEXT_MAX 65536
#define TAB_DYNAMIC_MAX 4096 /* entries */
#define TAB_CHAIN_MAX (1 << 24) /* entries of a hash table */

static int elftab_cmp_range(const void *a, const void *b)
{
	const struct symbolizer_elf_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int tab_add_text(struct symbolizer_elf *e, const Elf64_Shdr *sh)
{
	struct symbolizer_elf_range *p = e->text;

	if (sh->sh_size == 0 || sh->sh_addr > UINT64_MAX - sh->sh_size ||
	    e->n_text == TAB_TEXT_MAX)
		return 0;
	if ((e->n_text & (e->n_text - 1)) == 0) {
		p = reallocarray(p, e->n_text ? 2 * e->n_text : 1, sizeof(*p));
		if (!p)
			return -ENOMEM;
		e->text = p;
	}
	p[e->n_text].start = sh->sh_addr;
	p[e->n_text++].end = sh->sh_addr + sh->sh_size;
	return 0;
}

/* PLT sections are known by name only: .plt, .plt.sec, .plt.got, .plt.bnd. */
static void tab_add_plt(struct symbolizer_elf *e, const Elf64_Shdr *sh,
			const Elf64_Shdr *names)
{
	char name[16];

	if (e->n_plt == SYMBOLIZER_ELF_PLTS ||
	    sh->sh_addr > UINT64_MAX - sh->sh_size ||
	    names->sh_offset > UINT64_MAX - names->sh_size ||
	    symbolizer_src_string(e->src, names->sh_offset + sh->sh_name,
				  names->sh_offset + names->sh_size, name,
				  sizeof(name)) < 0 ||
	    (strcmp(name, ".plt") != 0 && strncmp(name, ".plt.", 5) != 0))
		return;
	e->plt[e->n_plt].start = sh->sh_addr;
	e->plt[e->n_plt++].end = sh->sh_addr + sh->sh_size;
}

static void tab_add_rels(struct symbolizer_elf *e, uint64_t off, uint64_t size,
			 bool addend)
{
	size_t each = e->is64 ? sizeof(Elf64_Rel) : sizeof(Elf32_Rel);

	if (addend)
		each = e->is64 ? sizeof(Elf64_Rela) : sizeof(Elf32_Rela);
	if (e->n_rels == SYMBOLIZER_ELF_RELS || off >= e->src->size)
		return;
	e->rels[e->n_rels].off = off;
	e->rels[e->n_rels].count = MIN(size, e->src->size - off) / each;
	e->rels[e->n_rels++].addend = addend;
}

/* What of a table lies in the file; the rest is damage. */
static uint64_t tab_clip(struct symbolizer_elf *e, uint64_t off, uint64_t size)
{
	uint64_t room = off < e->src->size ? e->src->size - off : 0;

	if (size > room)
		e->damaged = true;
	return MIN(size, room);
}

static void tab_add_symbols(struct symbolizer_elf *e,
			    enum symbolizer_elf_tab which, uint64_t off,
			    uint64_t count, uint64_t str, uint64_t str_size)
{
	size_t each = e->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	struct symbolizer_elf_symbols *t = &e->tabs[which];

	if (t->count || count == 0)
		return;
	t->off = off;
	t->count =
		tab_clip(e, off, MIN(count, UINT64_MAX / each) * each) / each;
	t->str = str;
	t->str_size = tab_clip(e, str, str_size);
}

static void tab_section_symbols(struct symbolizer_elf *e, const Elf64_Shdr *sh)
{
	size_t each = e->is64 ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym);
	Elf64_Shdr str;

	if (sh->sh_entsize != each || sh->sh_link >= e->shnum ||
	    symbolizer_elf_shdr(e, sh->sh_link, &str) ||
	    str.sh_type != SHT_STRTAB) {
		e->damaged = true;
		return;
	}
	tab_add_symbols(e,
			sh->sh_type == SHT_SYMTAB ? SYMBOLIZER_SYMTAB
						  : SYMBOLIZER_DYNSYM,
			sh->sh_offset, sh->sh_size / each, str.sh_offset,
			str.sh_size);
}

/* The section with the sections' names; an empty one if there is none. */
static void tab_names(struct symbolizer_elf *e, Elf64_Shdr *names)
{
	uint16_t index;
	size_t at = e->is64 ? offsetof(Elf64_Ehdr, e_shstrndx)
			    : offsetof(Elf32_Ehdr, e_shstrndx);

	memset(names, 0, sizeof(*names));
	if (symbolizer_src_read(e->src, at, &index, sizeof(index)) ||
	    index >= e->shnum || symbolizer_elf_shdr(e, index, names))
		memset(names, 0, sizeof(*names));
}

static int tab_from_sections(struct symbolizer_elf *e)
{
	Elf64_Shdr sh, names;
	int err;

	tab_names(e, &names);
	for (uint32_t i = 1; i < e->shnum; i++) {
		if (symbolizer_elf_shdr(e, i, &sh)) {
			e->damaged = true;
			break;
		}
		if (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM)
			tab_section_symbols(e, &sh);
		/* Those that are not loaded are the static linker's. */
		if ((sh.sh_type == SHT_RELA || sh.sh_type == SHT_REL) &&
		    (sh.sh_flags & SHF_ALLOC))
			tab_add_rels(e, sh.sh_offset, sh.sh_size,
				     sh.sh_type == SHT_RELA);
		if (sh.sh_type != SHT_PROGBITS ||
		    !(sh.sh_flags & SHF_EXECINSTR))
			continue;
		tab_add_plt(e, &sh, &names);
		err = tab_add_text(e, &sh);
		if (err)
			return err;
	}
	if (e->n_text)
		qsort(e->text, e->n_text, sizeof(*e->text), elftab_cmp_range);
	return 0;
}

/* What is wanted of the dynamic segment; all addresses but str_size. */
struct tab_dynamic {
	uint64_t symtab, strtab, str_size, hash, gnu_hash;
};

static bool tab_read_dynamic(struct symbolizer_elf *e, struct tab_dynamic *d)
{
	size_t each = e->is64 ? sizeof(Elf64_Dyn) : sizeof(Elf32_Dyn);
	Elf64_Phdr ph = { 0 };
	Elf64_Dyn dyn;
	Elf32_Dyn small;
	uint64_t n;

	memset(d, 0, sizeof(*d));
	for (uint16_t i = 0; i < e->phnum && ph.p_type != PT_DYNAMIC; i++)
		if (symbolizer_elf_phdr(e, i, &ph))
			return false;
	if (ph.p_type != PT_DYNAMIC || ph.p_offset >= e->src->size)
		return false;
	n = MIN(ph.p_filesz / each, (uint64_t)TAB_DYNAMIC_MAX);
	for (uint64_t i = 0; i < n; i++) {
		void *to = e->is64 ? (void *)&dyn : (void *)&small;

		if (symbolizer_src_read(e->src, ph.p_offset + i * each, to,
					each))
			return false;
		if (!e->is64) {
			dyn.d_tag = small.d_tag;
			dyn.d_un.d_val = small.d_un.d_val;
		}
		if (dyn.d_tag == DT_NULL)
			break;
		if (dyn.d_tag == DT_SYMTAB)
			d->symtab = dyn.d_un.d_val;
		else if (dyn.d_tag == DT_STRTAB)
			d->strtab = dyn.d_un.d_val;
		else if (dyn.d_tag == DT_STRSZ)
			d->str_size = dyn.d_un.d_val;
		else if (dyn.d_tag == DT_HASH)
			d->hash = dyn.d_un.d_val;
		else if (dyn.d_tag == DT_GNU_HASH)
			d->gnu_hash = dyn.d_un.d_val;
	}
	return d->symtab && d->strtab;
}

static uint64_t tab_count_sysv(struct symbolizer_elf *e, uint64_t off)
{
	uint32_t head[2]; /* nbucket, nchain; a chain entry a symbol */

	if (symbolizer_src_read(e->src, off, head, sizeof(head)))
		return 0;
	return head[1];
}

/*
 * nbuckets, symoffset, bloom_size, bloom_shift; bloom words; buckets; chain.
 * The symbol with the highest index ends the chain of the highest bucket.
 */
static uint64_t tab_count_gnu(struct symbolizer_elf *e, uint64_t off)
{
	uint32_t head[4], v, last = 0;
	uint64_t buckets, chain;

	if (symbolizer_src_read(e->src, off, head, sizeof(head)) ||
	    off > UINT64_MAX / 2)
		return 0;
	buckets = off + sizeof(head) + (uint64_t)head[2] * (e->is64 ? 8 : 4);
	chain = buckets + (uint64_t)head[0] * 4;
	for (uint32_t i = 0; i < MIN(head[0], TAB_CHAIN_MAX); i++) {
		if (symbolizer_src_read(e->src, buckets + (uint64_t)i * 4, &v,
					sizeof(v)))
			return 0;
		last = MAX(last, v);
	}
	if (last < head[1])
		return head[1]; /* nothing is exported */
	for (uint32_t i = 0; i < TAB_CHAIN_MAX; i++, last++) {
		if (last == UINT32_MAX ||
		    symbolizer_src_read(e->src,
					chain + (uint64_t)(last - head[1]) * 4,
					&v, sizeof(v)))
			return 0;
		if (v & 1)
			return (uint64_t)last + 1;
	}
	return 0;
}

static void tab_from_dynamic(struct symbolizer_elf *e)
{
	struct tab_dynamic d;
	uint64_t sym, str, hash, count = 0;

	if (!tab_read_dynamic(e, &d))
		return;
	if (!symbolizer_elf_offset(e, d.symtab, &sym) ||
	    !symbolizer_elf_offset(e, d.strtab, &str)) {
		e->damaged = true;
		return;
	}
	if (d.hash && symbolizer_elf_offset(e, d.hash, &hash))
		count = tab_count_sysv(e, hash);
	if (!count && d.gnu_hash && symbolizer_elf_offset(e, d.gnu_hash, &hash))
		count = tab_count_gnu(e, hash);
	tab_add_symbols(e, SYMBOLIZER_DYNSYM, sym, count, str, d.str_size);
}

int symbolizer_elf_tables(struct symbolizer_elf *e)
{
	int err = tab_from_sections(e);

	if (!err && !e->tabs[SYMBOLIZER_DYNSYM].count)
		tab_from_dynamic(e);
	return err;
}
