// SPDX-License-Identifier: Apache-2.0
/* index: see symbolize/names/index.h, which has the rules. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/arch.h"
#include "symbolize/elf/plt.h"
#include "symbolize/names/index.h"

/* Limits for untrusted files; a browser has a million symbols. */
#define INDEX_SCAN_MAX (1U << 23) /* symbols read of a table */
#define INDEX_SYMS_MAX (1U << 21) /* functions kept */
#define INDEX_ALIASES_MAX 64 /* names compared for one address */

/* A name: the table in the two high bits, the offset in its strings. */
#define NAME_BITS 30
#define NAME_MASK ((1U << NAME_BITS) - 1)
#define NAME_PLT \
	SYMBOLIZER_N_TABS /* of a stub: its function's name in .dynsym */

struct index_entry {
	uint64_t start;
	uint32_t size;
	uint32_t name;
};

struct symbolizer_index {
	struct symbolizer_elf_symbols tabs[SYMBOLIZER_N_TABS];
	size_t n;
	struct index_entry entries[];
};

/* A symbol while the index is being made. */
struct sym {
	uint64_t start, end; /* equal: no size is known */
	uint32_t name;
	uint8_t rank; /* less is better */
	bool label; /* untyped */
};

struct build {
	struct symbolizer_elf *e;
	struct sym *syms;
	size_t n, cap;
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

static bool sym_is_code(const struct symbolizer_elf *e, const Elf64_Sym *s)
{
	unsigned int type = ELF64_ST_TYPE(s->st_info);

	if (s->st_shndx == SHN_UNDEF || s->st_shndx == SHN_ABS ||
	    s->st_shndx == SHN_COMMON || s->st_name == 0)
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/* An executable segment may hold data, a section with code does not. */
	return type == STT_NOTYPE && symbolizer_elf_text(e, s->st_value) &&
	       !(ARCH_MARKS_CODE(e->machine) &&
		 ELF64_ST_BIND(s->st_info) == STB_LOCAL);
}

static int build_add_table(struct build *b, enum symbolizer_elf_tab which)
{
	const struct symbolizer_elf_symbols *tab = &b->e->tabs[which];
	const struct symbolizer_elf_load *load;
	struct sym sym;
	Elf64_Sym s;
	bool local;
	int err;

	if (tab->count > INDEX_SCAN_MAX)
		b->e->damaged = true;
	for (uint64_t i = 1; i < MIN(tab->count, INDEX_SCAN_MAX); i++) {
		if (symbolizer_elf_sym(b->e, tab, i, &s)) {
			b->e->damaged = true;
			return 0;
		}
		if (b->e->machine == EM_ARM &&
		    ELF64_ST_TYPE(s.st_info) == STT_FUNC)
			s.st_value &= ~1ULL; /* Thumb */
		load = symbolizer_elf_exec(b->e, s.st_value);
		if (!load || !sym_is_code(b->e, &s))
			continue;
		if (s.st_name >= tab->str_size || s.st_name > NAME_MASK) {
			b->e->damaged = true;
			continue;
		}
		sym.label = ELF64_ST_TYPE(s.st_info) == STT_NOTYPE;
		sym.start = s.st_value;
		sym.end = sym.start +
			  MIN(s.st_size, load->vaddr + load->size - sym.start);
		sym.name = (uint32_t)which << NAME_BITS | s.st_name;
		local = ELF64_ST_BIND(s.st_info) == STB_LOCAL;
		sym.rank = (uint8_t)(sym.label * 4 + local * 2 + which);
		err = build_add(b, &sym);
		if (err)
			return err;
	}
	return 0;
}

static int build_add_stub(void *arg, uint64_t start, uint64_t end,
			  uint32_t name)
{
	struct sym sym = { .start = start, .end = end, .rank = UINT8_MAX };

	if (name > NAME_MASK)
		return 0;
	sym.name = (uint32_t)NAME_PLT << NAME_BITS | name;
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

static int name_read(const struct symbolizer_elf_symbols *tabs,
		     struct symbolizer_src *src, uint32_t name, char *dst,
		     size_t cap)
{
	uint32_t which = name >> NAME_BITS;
	const struct symbolizer_elf_symbols *tab;
	uint64_t limit;

	tab = &tabs[which == NAME_PLT ? SYMBOLIZER_DYNSYM : which];
	if (__builtin_add_overflow(tab->str, tab->str_size, &limit))
		return -ENODATA;
	return symbolizer_src_string(src, tab->str + (name & NAME_MASK), limit,
				     dst, cap);
}

int symbolizer_index_prefer(const char *a, const char *b)
{
	size_t under_a = strspn(a, "_"), under_b = strspn(b, "_");
	size_t len_a = strcspn(a, "@"), len_b = strcspn(b, "@");

	if (under_a != under_b)
		return under_a < under_b ? -1 : 1;
	if (len_a != len_b)
		return len_a < len_b ? -1 : 1;
	return strcmp(a, b);
}

/* The best name of syms[i..j), which have equal start and rank. */
static size_t pick_name(struct build *b, size_t i, size_t j)
{
	char best[256], other[256];
	size_t at = i;

	if (j - i == 1 || name_read(b->e->tabs, b->e->src, b->syms[i].name,
				    best, sizeof(best)) < 0)
		return i;
	j = MIN(j, i + INDEX_ALIASES_MAX);
	for (size_t k = i + 1; k < j; k++) {
		if (b->syms[k].name == b->syms[at].name ||
		    name_read(b->e->tabs, b->e->src, b->syms[k].name, other,
			      sizeof(other)) < 0 ||
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

static void index_emit(struct symbolizer_index *x, uint64_t from, uint64_t to,
		       uint32_t name)
{
	if (from >= to)
		return;
	x->entries[x->n++] = (struct index_entry){
		from, (uint32_t)MIN(to - from, (uint64_t)UINT32_MAX), name
	};
}

/*
 * Makes ranges that do not overlap of symbols that may nest: the innermost wins.
 * 'open' is a stack of the symbols around the current address. Each symbol starts
 * one range and, where it ends, another of the symbol around it: two at most.
 */
static void build_flat(struct build *b, struct symbolizer_index *x,
		       uint32_t *open)
{
	uint64_t pos = 0;
	size_t depth = 0;

	for (size_t i = 0; i <= b->n; i++) {
		uint64_t next = i < b->n ? b->syms[i].start : UINT64_MAX;

		while (depth && b->syms[open[depth - 1]].end <= next) {
			const struct sym *s = &b->syms[open[--depth]];

			index_emit(x, pos, s->end, s->name);
			pos = MAX(pos, s->end);
		}
		if (depth)
			index_emit(x, pos, next, b->syms[open[depth - 1]].name);
		pos = next;
		if (i < b->n)
			open[depth++] = (uint32_t)i;
	}
}

static int build_finish(struct build *b, struct symbolizer_index **xp)
{
	struct symbolizer_index *x, *smaller;
	uint32_t *open;
	int err = 0;

	if (b->n)
		qsort(b->syms, b->n, sizeof(*b->syms), cmp_sym);
	build_aliases(b);
	build_sizes(b);
	open = malloc((b->n + 1) * sizeof(*open));
	x = malloc(sizeof(*x) + 2 * b->n * sizeof(*x->entries));
	if (open && x) {
		x->n = 0;
		memcpy(x->tabs, b->e->tabs, sizeof(x->tabs));
		build_flat(b, x, open);
		smaller = realloc(x, symbolizer_index_bytes(x));
		*xp = smaller ? smaller : x;
	} else {
		free(x);
		err = -ENOMEM;
	}
	free(open);
	return err;
}

int symbolizer_index_new(struct symbolizer_index **xp, struct symbolizer_elf *e)
{
	struct build b = { .e = e };
	int err = 0;

	for (int i = 0; i < SYMBOLIZER_N_TABS && !err; i++)
		err = build_add_table(&b, i);
	if (!err)
		err = symbolizer_plt_stubs(e, build_add_stub, &b);
	if (!err)
		err = build_finish(&b, xp);
	free(b.syms);
	return err;
}

void symbolizer_index_free(struct symbolizer_index *x)
{
	free(x);
}

size_t symbolizer_index_bytes(const struct symbolizer_index *x)
{
	return sizeof(*x) + x->n * sizeof(*x->entries);
}

bool symbolizer_index_find(const struct symbolizer_index *x, uint64_t vaddr,
			   struct symbolizer_range *out)
{
	const struct index_entry *en;
	size_t i;

	VECTOR_SEARCH(i, x->n, x->entries[i].start <= vaddr);
	if (i == 0)
		return false;
	en = &x->entries[i - 1];
	if (vaddr - en->start >= en->size)
		return false;
	*out = (struct symbolizer_range){ en->start, en->size, en->name };
	return true;
}

int symbolizer_index_name(const struct symbolizer_index *x,
			  struct symbolizer_src *src, uint32_t name, char *dst,
			  size_t cap)
{
	int len = name_read(x->tabs, src, name, dst, cap);

	if (len < 0 || name >> NAME_BITS != NAME_PLT)
		return len;
	if ((size_t)len + sizeof("@plt") > cap)
		return -ENAMETOOLONG;
	memcpy(dst + len, "@plt", sizeof("@plt"));
	return len + 4;
}

enum symbolizer_source symbolizer_index_source(uint32_t name)
{
	return name >> NAME_BITS == SYMBOLIZER_SYMTAB
		       ? SYMBOLIZER_SOURCE_SYMTAB
		       : SYMBOLIZER_SOURCE_DYNSYM;
}
