// SPDX-License-Identifier: Apache-2.0
/* plt: see symbolize/elf/plt.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/elf/plt.h"

#define PLT_STUBS_MAX 65536
#define PLT_RELS_MAX (1U << 20)

struct stub {
	uint64_t slot; /* where its jump reads the target */
	uint64_t start, end;
};

struct stubs {
	struct stub *v;
	size_t n, cap;
};

static int stubs_add(struct stubs *s, const struct stub *stub)
{
	if (VECTOR_ROOM(s->v, s->n, s->cap))
		return -ENOMEM;
	s->v[s->n++] = *stub;
	return 0;
}

/*
 * The stub that begins with these 16 bytes, if it is one: jmp *disp(%rip),
 * behind an endbr64 and a bnd prefix where there are any. 8 bytes long when it
 * is filled up with a two-byte nop, as in .plt.got.
 */
static bool stub_decode(const uint8_t *b, uint64_t at, struct stub *out)
{
	static const uint8_t endbr[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t i = 0;
	int32_t disp;

	if (memcmp(b, endbr, sizeof(endbr)) == 0)
		i = sizeof(endbr);
	if (b[i] == 0xf2)
		i++;
	if (b[i] != 0xff || b[i + 1] != 0x25)
		return false;
	memcpy(&disp, b + i + 2, sizeof(disp));
	out->slot = at + i + 6 + (uint64_t)(int64_t)disp;
	out->start = at;
	out->end = at + (i == 0 && b[6] == 0x66 && b[7] == 0x90 ? 8 : 16);
	return true;
}

static int stubs_scan(struct symbolizer_elf *e, struct stubs *s,
		      const struct symbolizer_elf_range *plt)
{
	uint64_t off, at = plt->start;
	struct stub stub;
	uint8_t b[16];
	int err;

	if (!symbolizer_elf_offset(e, at, &off))
		return 0;
	while (at < plt->end && s->n < PLT_STUBS_MAX) {
		memset(b, 0, sizeof(b)); /* the last may have 8 bytes only */
		if (symbolizer_src_read(e->src, off + (at - plt->start), b,
					MIN(sizeof(b), plt->end - at)))
			return 0;
		if (!stub_decode(b, at, &stub)) {
			at += 8;
			continue;
		}
		stub.end = MIN(stub.end, plt->end);
		err = stubs_add(s, &stub);
		if (err)
			return err;
		at = stub.end;
	}
	return 0;
}

static int cmp_stub(const void *a, const void *b)
{
	const struct stub *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static size_t stubs_first(const struct stubs *s, uint64_t slot)
{
	size_t i;

	VECTOR_SEARCH(i, s->n, s->v[i].slot < slot);
	return i;
}

static int stubs_match(struct symbolizer_elf *e, const struct stubs *s,
		       const struct symbolizer_elf_rels *rels,
		       symbolizer_plt_fn fn, void *arg)
{
	const struct symbolizer_elf_symbols *tab = &e->tabs[SYMBOLIZER_DYNSYM];
	uint64_t slot;
	uint32_t symbol;
	Elf64_Sym sym;
	int err;

	for (uint64_t i = 0; i < MIN(rels->count, PLT_RELS_MAX); i++) {
		if (symbolizer_elf_rel(e, rels, i, &slot, &symbol))
			return 0;
		if (symbol == 0 || symbol >= tab->count)
			continue;
		for (size_t k = stubs_first(s, slot);
		     k < s->n && s->v[k].slot == slot; k++) {
			if (symbolizer_elf_sym(e, tab, symbol, &sym) ||
			    sym.st_name == 0 || sym.st_name >= tab->str_size)
				break;
			err = fn(arg, s->v[k].start, s->v[k].end, sym.st_name);
			if (err)
				return err;
		}
	}
	return 0;
}

int symbolizer_plt_stubs(struct symbolizer_elf *e, symbolizer_plt_fn fn,
			 void *arg)
{
	struct stubs s = { 0 };
	int err = 0;

	if (e->machine != EM_X86_64)
		return 0;
	for (size_t i = 0; i < e->n_plt && !err; i++)
		err = stubs_scan(e, &s, &e->plt[i]);
	if (s.n)
		qsort(s.v, s.n, sizeof(*s.v), cmp_stub);
	for (size_t i = 0; i < e->n_rels && s.n && !err; i++)
		err = stubs_match(e, &s, &e->rels[i], fn, arg);
	free(s.v);
	return err;
}
