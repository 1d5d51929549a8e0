// SPDX-License-Identifier: Apache-2.0
/*
 * elftab: the symbol tables of an ELF file; see symbolize/elf/elf.h. They are
 * found by section headers, which a program can lack. Then the dynamic segment
 * has the address of .dynsym but not its length, which is computed from the hash
 * table over it (gABI "Hash Table"; the GNU one as glibc reads it).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/elf/elf.h"

#define TAB_TEXT_MAX 65536
#define TAB_CHAIN_MAX (1 << 24) /* entries of a hash table */

int symbolizer_elf_cmp_range(const void *a, const void *b)
{
	const struct symbolizer_elf_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

static int tab_add_text(struct symbolizer_elf *e, const Elf64_Shdr *sh)
{
	if (sh->sh_size == 0 || sh->sh_addr > UINT64_MAX - sh->sh_size ||
	    e->n_text == TAB_TEXT_MAX)
		return 0;
	if (VECTOR_ROOM(e->text, e->n_text, e->cap_text))
		return -ENOMEM;
	e->text[e->n_text++] =
		(struct symbolizer_elf_range){ sh->sh_addr,
					       sh->sh_addr + sh->sh_size };
	return 0;
}

/* PLT sections are known by name only: .plt, .plt.sec, .plt.got, .plt.bnd. */
static void tab_add_plt(struct symbolizer_elf *e, const Elf64_Shdr *sh,
			const Elf64_Shdr *names)
{
	char name[16];

	if (e->n_plt == SYMBOLIZER_ELF_PLTS ||
	    sh->sh_addr > UINT64_MAX - sh->sh_size ||
	    symbolizer_elf_name(e, names, sh, name, sizeof(name)) < 0 ||
	    (strcmp(name, ".plt") != 0 && strncmp(name, ".plt.", 5) != 0))
		return;
	e->plt[e->n_plt++] =
		(struct symbolizer_elf_range){ sh->sh_addr,
					       sh->sh_addr + sh->sh_size };
}

static void tab_add_rels(struct symbolizer_elf *e, uint64_t off, uint64_t size,
			 bool addend)
{
	size_t each = addend ? ELF_SIZE(e, Rela) : ELF_SIZE(e, Rel);

	if (e->n_rels == SYMBOLIZER_ELF_RELS || off >= e->src->size)
		return;
	e->rels[e->n_rels++] = (struct symbolizer_elf_rels){
		off, MIN(size, e->src->size - off) / each, addend
	};
}

/* The bytes of a table that are in the file; if not all are, it is damaged. */
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
	size_t each = ELF_SIZE(e, Sym);
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
	size_t each = ELF_SIZE(e, Sym);
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

static int tab_from_sections(struct symbolizer_elf *e)
{
	Elf64_Shdr sh, names;
	bool named = symbolizer_elf_names(e, &names);
	int err;

	for (uint32_t i = 1; i < e->shnum; i++) {
		if (symbolizer_elf_shdr(e, i, &sh)) {
			e->damaged = true;
			break;
		}
		if (sh.sh_type == SHT_SYMTAB || sh.sh_type == SHT_DYNSYM)
			tab_section_symbols(e, &sh);
		/* Those that are not loaded are for the static linker. */
		if ((sh.sh_type == SHT_RELA || sh.sh_type == SHT_REL) &&
		    (sh.sh_flags & SHF_ALLOC))
			tab_add_rels(e, sh.sh_offset, sh.sh_size,
				     sh.sh_type == SHT_RELA);
		if ((sh.sh_type != SHT_PROGBITS &&
		     !(sh.sh_type == SHT_NOBITS && e->absent.size)) ||
		    !(sh.sh_flags & SHF_EXECINSTR))
			continue;
		if (named)
			tab_add_plt(e, &sh, &names);
		err = tab_add_text(e, &sh);
		if (err)
			return err;
	}
	if (e->n_text)
		qsort(e->text, e->n_text, sizeof(*e->text),
		      symbolizer_elf_cmp_range);
	return 0;
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
	uint64_t sym, str, hash, count = 0, str_size;

	if (!symbolizer_elf_dynamic(e, DT_SYMTAB, &sym) || !sym ||
	    !symbolizer_elf_dynamic(e, DT_STRTAB, &str) || !str)
		return;
	if (!symbolizer_elf_offset(e, sym, &sym) ||
	    !symbolizer_elf_offset(e, str, &str)) {
		e->damaged = true;
		return;
	}
	if (symbolizer_elf_dynamic(e, DT_HASH, &hash) && hash &&
	    symbolizer_elf_offset(e, hash, &hash))
		count = tab_count_sysv(e, hash);
	if (!count && symbolizer_elf_dynamic(e, DT_GNU_HASH, &hash) && hash &&
	    symbolizer_elf_offset(e, hash, &hash))
		count = tab_count_gnu(e, hash);
	if (!symbolizer_elf_dynamic(e, DT_STRSZ, &str_size))
		str_size = 0;
	tab_add_symbols(e, SYMBOLIZER_DYNSYM, sym, count, str, str_size);
}

int symbolizer_elf_tables(struct symbolizer_elf *e)
{
	int err = tab_from_sections(e);

	if (!err && !e->tabs[SYMBOLIZER_DYNSYM].count)
		tab_from_dynamic(e);
	return err;
}
