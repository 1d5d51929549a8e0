// SPDX-License-Identifier: Apache-2.0
/* plt: see symbolize/elf/plt.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/arch.h"
#include "symbolize/elf/plt.h"

#define PLT_STUBS_MAX 65536
#define PLT_RELS_MAX (1U << 20)

struct stub {
	uint64_t slot; /* that it jumps through */
	uint64_t start, end;
};

struct stubs {
	struct stub *v; /* sorted by slot */
	size_t n, cap;
	struct stub *chosen; /* those of IRELATIVE; 'slot' is the addend */
	size_t nchosen, capchosen;
};

static int stubs_scan(struct symbolizer_elf *e, struct stubs *s,
		      const struct symbolizer_elf_range *plt)
{
	uint8_t b[ARCH_PLT_STUB];
	uint64_t off, end, at = plt->start;
	struct stub stub;
	size_t len;

	if (!symbolizer_elf_offset(e, at, &off))
		return 0;
	for (; at < plt->end && s->n < PLT_STUBS_MAX; at = end) {
		memset(b, 0, sizeof(b)); /* the last may be shorter */
		if (symbolizer_src_read(e->src, off + (at - plt->start), b,
					MIN(sizeof(b), plt->end - at)))
			return 0;
		len = arch_plt_stub(b, at, &stub.slot);
		end = at + (len ? len : ARCH_PLT_ALIGN);
		stub.start = at;
		stub.end = MIN(end, plt->end);
		if (!len)
			continue;
		if (VECTOR_ROOM(s->v, s->n, s->cap))
			return -ENOMEM;
		s->v[s->n++] = stub;
	}
	return 0;
}

static int cmp_stub(const void *a, const void *b)
{
	const struct stub *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static int stub_choose(struct stubs *s, const struct stub *stub,
		       uint64_t addend)
{
	if (VECTOR_ROOM(s->chosen, s->nchosen, s->capchosen))
		return -ENOMEM;
	s->chosen[s->nchosen] = *stub;
	s->chosen[s->nchosen++].slot = addend;
	return 0;
}

static int stubs_match(struct symbolizer_elf *e, struct stubs *s,
		       const struct symbolizer_elf_rels *rels,
		       symbolizer_plt_fn fn, void *arg)
{
	const struct symbolizer_elf_symbols *tab = &e->tabs[SYMBOLIZER_DYNSYM];
	struct symbolizer_elf_rel rel;
	Elf64_Sym sym;
	size_t k;
	int err;

	for (uint64_t i = 0; i < MIN(rels->count, PLT_RELS_MAX); i++) {
		if (symbolizer_elf_rel(e, rels, i, &rel))
			return 0;
		if (rel.sym ? rel.sym >= tab->count
			    : rel.type != ARCH_R_IRELATIVE)
			continue;
		VECTOR_SEARCH(k, s->n, s->v[k].slot < rel.where);
		for (; k < s->n && s->v[k].slot == rel.where; k++) {
			if (!rel.sym)
				err = stub_choose(s, &s->v[k], rel.addend);
			else if (symbolizer_elf_sym(e, tab, rel.sym, &sym) ||
				 sym.st_name == 0 ||
				 sym.st_name >= tab->str_size)
				break;
			else
				err = fn(arg, s->v[k].start, s->v[k].end,
					 sym.st_name);
			if (err)
				return err;
		}
	}
	return 0;
}

/* Names those whose function is chosen at run time, by the symbol of the choice. */
static int stubs_match_chosen(struct symbolizer_elf *e, struct stubs *s,
			      symbolizer_plt_fn fn, void *arg)
{
	const struct symbolizer_elf_symbols *tab = &e->tabs[SYMBOLIZER_DYNSYM];
	Elf64_Sym sym;
	size_t k;
	int err = 0;

	qsort(s->chosen, s->nchosen, sizeof(*s->chosen), cmp_stub);
	for (uint64_t i = 0; i < tab->count && !err; i++) {
		if (symbolizer_elf_sym(e, tab, i, &sym))
			break;
		if (ELF64_ST_TYPE(sym.st_info) != STT_GNU_IFUNC ||
		    sym.st_name == 0 || sym.st_name >= tab->str_size)
			continue;
		VECTOR_SEARCH(k, s->nchosen, s->chosen[k].slot < sym.st_value);
		for (; k < s->nchosen && s->chosen[k].slot == sym.st_value &&
		       !err;
		     k++)
			err = fn(arg, s->chosen[k].start, s->chosen[k].end,
				 sym.st_name);
	}
	return err;
}

int symbolizer_plt_stubs(struct symbolizer_elf *e, symbolizer_plt_fn fn,
			 void *arg)
{
	struct stubs s = { 0 };
	int err = 0;

	if (e->machine != ARCH_MACHINE)
		return 0;
	for (size_t i = 0; i < e->n_plt && !err; i++)
		err = stubs_scan(e, &s, &e->plt[i]);
	if (s.n)
		qsort(s.v, s.n, sizeof(*s.v), cmp_stub);
	for (size_t i = 0; i < e->n_rels && s.n && !err; i++)
		err = stubs_match(e, &s, &e->rels[i], fn, arg);
	if (!err && s.nchosen)
		err = stubs_match_chosen(e, &s, fn, arg);
	free(s.v);
	free(s.chosen);
	return err;
}
