// SPDX-License-Identifier: Apache-2.0
/* index_build: from symbol tables to an index; see symbolize/names/index.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/arch.h"
#include "symbolize/elf/debugfile.h"
#include "symbolize/elf/plt.h"
#include "symbolize/names/index_pack.h"
#include "symbolize/names/minidebug.h"

/* Limits for untrusted files; a browser has a million symbols. */
#define INDEX_SCAN_MAX (1U << 23) /* symbols read of a table */
#define INDEX_SYMS_MAX (1U << 21) /* functions kept */
#define INDEX_ALIASES_MAX 64 /* names compared for one address */

/* A symbol while the index is being made. */
struct sym {
	uint64_t start, end; /* equal: no size is known */
	uint32_t name; /* offset in the strings of its table */
	uint8_t tab; /* enum index_tab */
	uint8_t rank; /* less is better */
	bool label; /* untyped */
};

/* A table, of the file or of another one with its symbols. */
struct build_table {
	struct symbolizer_elf *e;
	const struct symbolizer_elf_symbols *symbols;
};

struct build {
	struct symbolizer_elf *e; /* the file */
	struct build_table tables[INDEX_N_TABS];
	struct sym *syms;
	size_t n, cap;
	struct index_packer pack;
	uint16_t section; /* of the last label that was looked at */
	bool section_loaded;
};

static int build_add(struct build *b, const struct sym *sym)
{
	if (b->n == INDEX_SYMS_MAX) {
		b->e->damaged = true;
		return 0;
	}
	if (VECTOR_ROOM(b->syms, b->n, b->cap))
		return -ENOMEM;
	b->syms[b->n++] = *sym;
	return 0;
}

/*
 * Whether the section of a symbol is loaded. Link-time optimization of gcc leaves
 * labels in .debug_info, whose values are offsets and can look like addresses.
 */
static bool sym_is_loaded(struct build *b, struct symbolizer_elf *e,
			  uint16_t section)
{
	Elf64_Shdr sh;

	if (section >= SHN_LORESERVE)
		return true; /* SHN_XINDEX */
	if (section != b->section) {
		b->section = section;
		b->section_loaded = section < e->shnum &&
				    !symbolizer_elf_shdr(e, section, &sh) &&
				    (sh.sh_flags & SHF_ALLOC);
	}
	return b->section_loaded;
}

/* 'from' is the file of the table. */
static bool sym_is_code(struct build *b, struct symbolizer_elf *from,
			const Elf64_Sym *s)
{
	const struct symbolizer_elf *e = b->e;
	unsigned int type = ELF64_ST_TYPE(s->st_info);

	if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS ||
	    s->st_shndx == SHN_COMMON || s->st_name == 0)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/* An executable segment may hold data, a section with code does not. */
	return type == STT_NOTYPE && symbolizer_elf_text(e, s->st_value) &&
	       !(ARCH_MARKS_CODE(e->machine) &&
		 ELF64_ST_BIND(s->st_info) == STB_LOCAL) &&
	       sym_is_loaded(b, from, s->st_shndx);
}

/* False: it is no function of the file. */
static bool sym_read(struct build *b, enum index_tab which, const Elf64_Sym *s,
		     struct sym *sym)
{
	bool local = ELF64_ST_BIND(s->st_info) == STB_LOCAL;
	const struct symbolizer_elf_load *load;
	bool empty;

	sym->start = s->st_value;
	if (b->e->machine == EM_ARM && ELF64_ST_TYPE(s->st_info) == STT_FUNC)
		sym->start &= ~1ULL; /* Thumb */
	load = symbolizer_elf_exec(b->e, sym->start);
	if (!load || !sym_is_code(b, b->tables[which].e, s))
		return false;
	if (s->st_name >= b->tables[which].symbols->str_size) {
		b->e->damaged = true;
		return false;
	}
	sym->end = sym->start +
		   MIN(s->st_size, load->vaddr + load->size - sym->start);
	sym->name = s->st_name;
	sym->tab = (uint8_t)which;
	sym->label = ELF64_ST_TYPE(s->st_info) == STT_NOTYPE;
	empty = sym->start == sym->end;
	sym->rank =
		(uint8_t)((empty * 4 + sym->label * 2 + local) * INDEX_N_TABS +
			  which);
	return true;
}

/* 'e' has the table; it may be another file than that of the index. */
static int build_add_table(struct build *b, enum index_tab which,
			   struct symbolizer_elf *e,
			   const struct symbolizer_elf_symbols *symbols)
{
	struct sym sym;
	Elf64_Sym s;
	int err = 0;

	b->tables[which] = (struct build_table){ e, symbols };
	b->section = SHN_UNDEF;
	if (symbols->count > INDEX_SCAN_MAX)
		b->e->damaged = true;
	for (uint64_t i = 1; i < MIN(symbols->count, INDEX_SCAN_MAX) && !err;
	     i++) {
		if (symbolizer_elf_sym(e, symbols, i, &s)) {
			b->e->damaged = true;
			break;
		}
		if (symbolizer_elf_sym_place(e, &s) &&
		    sym_read(b, which, &s, &sym))
			err = build_add(b, &sym);
	}
	return err;
}

static int build_add_stub(void *arg, uint64_t start, uint64_t end,
			  uint32_t name)
{
	struct sym sym = {
		.start = start,
		.end = end,
		.name = name,
		.tab = INDEX_PLT,
		.rank = UINT8_MAX,
	};

	return build_add(arg, &sym);
}

static int cmp_sym(const void *a, const void *b)
{
	const struct sym *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank - y->rank;
	return x->name < y->name ? -1 : x->name > y->name;
}

/* The name of a symbol; its length, or -errno. */
static int sym_name(const struct build *b, const struct sym *s, char *dst,
		    size_t cap)
{
	const struct build_table *t = &b->tables[s->tab];
	uint64_t str = t->symbols->str, size = t->symbols->str_size;

	if (str > UINT64_MAX - size)
		return -ENODATA;
	return symbolizer_src_string(t->e->src, str + s->name, str + size, dst,
				     cap);
}

/* The best name of syms[i..j), which have equal start and rank. */
static size_t pick_name(struct build *b, size_t i, size_t j)
{
	char best[256], other[256];
	size_t at = i;

	if (j - i == 1 || sym_name(b, &b->syms[i], best, sizeof(best)) < 0)
		return i;
	j = MIN(j, i + INDEX_ALIASES_MAX);
	for (size_t k = i + 1; k < j; k++) {
		if (b->syms[k].name == b->syms[at].name ||
		    sym_name(b, &b->syms[k], other, sizeof(other)) < 0 ||
		    symbolizer_index_prefer(other, best) >= 0)
			continue;
		memcpy(best, other, sizeof(best));
		at = k;
	}
	return at;
}

/* Keeps one symbol of each address, with the size of its largest alias. */
static void build_aliases(struct build *b)
{
	size_t n = 0, i, j, same;
	struct sym best;

	for (i = 0; i < b->n; i = j) {
		same = 0;
		best = b->syms[i];
		for (j = i; j < b->n && b->syms[j].start == best.start; j++) {
			if (b->syms[j].rank == best.rank)
				same++;
			best.end = MAX(best.end, b->syms[j].end);
		}
		best.name = b->syms[pick_name(b, i, i + same)].name;
		b->syms[n++] = best;
	}
	b->n = n;
}

/* Drops labels inside functions, and gives a size to symbols without one. */
static void build_sizes(struct build *b)
{
	const struct symbolizer_elf_range *text;
	const struct symbolizer_elf_load *load;
	uint64_t covered = 0;
	struct sym *s;
	size_t n = 0;

	if (!b->n)
		return; /* syms is NULL */
	for (s = b->syms; s < b->syms + b->n; s++) {
		if (s->start == s->end && s->label && s->start < covered)
			continue;
		covered = MAX(covered, s->end);
		b->syms[n++] = *s;
	}
	b->n = n;
	for (s = b->syms; s < b->syms + n; s++) {
		if (s->start != s->end)
			continue;
		text = symbolizer_elf_text(b->e, s->start);
		load = symbolizer_elf_exec(b->e, s->start);
		s->end = load ? load->vaddr + load->size : s->start;
		if (text)
			s->end = MIN(s->end, text->end);
		if (s + 1 < b->syms + n)
			s->end = MIN(s->end, s[1].start);
	}
}

static int build_emit(struct build *b, uint64_t from, uint64_t to,
		      const struct sym *s)
{
	const struct index_range range = {
		.start = from,
		.size = to - from,
		.name = s->name,
		.tab = s->tab,
	};
	char name[INDEX_NAME_MAX];
	int err;

	if (from >= to)
		return 0;
	if (index_in_file(s->tab))
		return index_pack_add(&b->pack, &range, NULL);
	if (sym_name(b, s, name, sizeof(name)) <= 0)
		return 0;
	err = index_pack_add(&b->pack, &range, name);
	if (err != -EFBIG)
		return err;
	b->e->damaged = true;
	return 0;
}

/*
 * Makes ranges that do not overlap of symbols that may nest: the innermost wins.
 * 'open' is a stack of the symbols around the current address. Each symbol starts
 * one range and, where it ends, another of the symbol around it: two at most.
 */
static int build_flat(struct build *b, uint32_t *open)
{
	uint64_t pos = 0;
	size_t depth = 0;
	int err = 0;

	for (size_t i = 0; i <= b->n && !err; i++) {
		uint64_t next = i < b->n ? b->syms[i].start : UINT64_MAX;

		while (depth && !err && b->syms[open[depth - 1]].end <= next) {
			const struct sym *s = &b->syms[open[--depth]];

			err = build_emit(b, pos, s->end, s);
			pos = MAX(pos, s->end);
		}
		if (depth && !err)
			err = build_emit(b, pos, next,
					 &b->syms[open[depth - 1]]);
		pos = next;
		if (i < b->n)
			open[depth++] = (uint32_t)i;
	}
	return err;
}

static int build_finish(struct build *b, struct symbolizer_index **xp)
{
	uint32_t *open;
	int err;

	if (b->n)
		qsort(b->syms, b->n, sizeof(*b->syms), cmp_sym);
	build_aliases(b);
	build_sizes(b);
	open = malloc((b->n + 1) * sizeof(*open));
	err = open ? build_flat(b, open) : -ENOMEM;
	free(open);
	for (int i = 0; i < SYMBOLIZER_N_TABS; i++)
		b->pack.strings[i] =
			(struct index_strings){ b->e->tabs[i].str,
						b->e->tabs[i].str_size };
	if (!err)
		err = index_pack_finish(&b->pack, xp);
	return err;
}

/* What is open while an index is built. */
struct build_others {
	struct symbolizer_debugfile *debug;
	struct symbolizer_minidebug *mini;
};

/* Adds .symtab of the separate debug file; if there is none, of MiniDebugInfo. */
static int build_add_others(struct build *b, struct build_others *o,
			    const struct symbolizer_ask *ask)
{
	int err = symbolizer_debugfile_open(&o->debug, b->e, ask);

	if (!err)
		err = symbolizer_elf_tables(&o->debug->elf);
	if (!err)
		err = build_add_table(b, INDEX_DEBUG, &o->debug->elf,
				      &o->debug->elf.tabs[SYMBOLIZER_SYMTAB]);
	if (err == -ENOMEM || b->n)
		return err == -ENOMEM ? err : 0;
	err = symbolizer_minidebug_open(&o->mini, b->e);
	if (!err)
		return build_add_table(b, INDEX_MINI, &o->mini->elf,
				       &o->mini->elf.tabs[SYMBOLIZER_SYMTAB]);
	b->e->damaged |= err != -ENODATA && err != -ENOMEM;
	return err == -ENOMEM ? err : 0;
}

int symbolizer_index_new(struct symbolizer_index **xp, struct symbolizer_elf *e,
			 const struct symbolizer_ask *ask)
{
	const struct symbolizer_elf_symbols *dyn = &e->tabs[SYMBOLIZER_DYNSYM];
	struct build_others others = { 0 };
	struct build b = { .e = e };
	int err;

	err = build_add_table(&b, INDEX_SYMTAB, e, &e->tabs[SYMBOLIZER_SYMTAB]);
	if (!err && !b.n)
		err = build_add_others(&b, &others, ask);
	if (!err)
		err = build_add_table(&b, INDEX_DYNSYM, e, dyn);
	b.tables[INDEX_PLT] = b.tables[INDEX_DYNSYM];
	if (!err)
		err = symbolizer_plt_stubs(e, build_add_stub, &b);
	if (!err)
		err = build_finish(&b, xp);
	index_pack_fini(&b.pack);
	symbolizer_debugfile_close(others.debug);
	symbolizer_minidebug_close(others.mini);
	free(b.syms);
	return err;
}
