// SPDX-License-Identifier: Apache-2.0
/* go_table: see symbolize/names/go_table.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/names/go_table.h"

#define GO_TABLE_STRIDE 256U /* a part of the list that one window holds */
#define GO_TABLE_FUNC 48 /* bytes of a function's record, or more than it has */

#define GO_TABLE_PCDATA_INL 2 /* internal/abi: PCDATA_InlTreeIndex */
#define GO_TABLE_FUNCDATA_INL 3 /* FUNCDATA_InlTree */
#define GO_TABLE_PCDATA_MAX 64 /* there are five kinds */

/* Offsets in bytes; 0: not there. */
struct go_layout {
	uint32_t magic;
	uint8_t cus_at, files_at; /* in the header */
	/* In a function; the arrays of its data are behind their number. */
	uint8_t start_line_at, n_data_at;
	/*
	 * Of a reference to a function's data: 8, an address; 4, an offset from
	 * gofunc; 0: the kinds of data have other numbers.
	 */
	uint8_t ref_size;
	/* An inlined call. */
	uint8_t call_size, call_name_at, call_parent_at, call_line_at;
};

static const struct go_layout layouts[] = {
	{ 0xfffffffb, 0, 0, 0, 39, 0, 0, 0, 0, 0 }, /* 1.2 */
	{ 0xfffffffa, 32, 40, 0, 43, 8, 20, 12, 16, 0 }, /* 1.16 */
	{ 0xfffffff0, 40, 48, 0, 39, 4, 20, 12, 16, 0 }, /* 1.18 */
	{ 0xfffffff1, 40, 48, 36, 43, 4, 16, 4, 8, 12 }, /* 1.20 */
};

static uint32_t go_get4(const uint8_t *p)
{
	uint32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* --- opening --------------------------------------------------------------- */

/* Where file names are; before Go 1.16 the list of functions ends with it. */
static bool go_files(struct go_table *t, struct symbolizer_src *src)
{
	const struct go_layout *l = t->layout;
	uint32_t at;

	if (l->cus_at)
		return symbolizer_gopclntab_at(&t->g, src, l->cus_at, &t->cus,
					       sizeof(t->cus)) &&
		       symbolizer_gopclntab_at(&t->g, src, l->files_at,
					       &t->files, sizeof(t->files)) &&
		       t->cus < t->g.size && t->files < t->g.size;
	if (!symbolizer_gopclntab_at(&t->g, src,
				     t->g.funcs + (t->g.n_funcs * 2 + 1) *
							  t->g.format->pc_size,
				     &at, sizeof(at)))
		return false;
	t->files = at;
	return t->files < t->g.size;
}

/* Functions' data are beside the table, or anywhere that moduledata says. */
static void go_data(struct go_table *t, struct symbolizer_elf *e)
{
	const struct symbolizer_elf_load *l = NULL;

	if (t->layout->ref_size == 4 && symbolizer_gopclntab_module(&t->g) &&
	    t->g.gofunc)
		l = symbolizer_elf_load(e, t->g.gofunc);
	else if (t->layout->ref_size == 8)
		l = symbolizer_elf_load(e, t->g.vaddr);
	if (l)
		t->data = *l;
}

static int go_heads(struct go_table *t, struct symbolizer_src *src)
{
	const uint64_t stride = 2 * t->g.format->pc_size;
	size_t n = (size_t)((t->g.n_funcs - 1) / GO_TABLE_STRIDE + 1);

	t->heads = calloc(n, sizeof(*t->heads));
	if (!t->heads)
		return -ENOMEM;
	for (t->n_heads = 0; t->n_heads < n; t->n_heads++)
		if (!symbolizer_gopclntab_at(
			    &t->g, src,
			    t->g.funcs + t->n_heads * GO_TABLE_STRIDE * stride,
			    &t->heads[t->n_heads], t->g.format->pc_size))
			return -EINVAL;
	return 0;
}

int go_table_open(struct go_table *t, struct symbolizer_elf *e)
{
	const char *damage;
	int err = -EINVAL;

	*t = (struct go_table){ 0 };
	if (!symbolizer_gopclntab_find(&t->g, e, &damage))
		return -ENODATA;
	if (damage)
		return -EINVAL;
	for (size_t i = 0; i < ARRAY_SIZE(layouts); i++)
		if (layouts[i].magic == t->g.format->magic)
			t->layout = &layouts[i];
	if (t->layout && go_files(t, e->src)) {
		go_data(t, e);
		err = go_heads(t, e->src);
	}
	t->g.e = NULL;
	if (err)
		go_table_close(t);
	return err;
}

void go_table_close(struct go_table *t)
{
	free(t->heads);
	t->heads = NULL;
}

size_t go_table_bytes(const struct go_table *t)
{
	return t->n_heads * sizeof(*t->heads);
}

/* --- a function ------------------------------------------------------------ */

/* Entry 'i' of the list: address and place. False: beyond the table. */
static bool go_entry(const struct go_table *t, struct symbolizer_src *src,
		     uint64_t i, uint64_t *pc, uint64_t *place)
{
	uint8_t size = t->g.format->pc_size;
	uint8_t buf[16];

	*pc = *place = 0;
	/* The one behind the last has an address only. */
	if (!symbolizer_gopclntab_at(&t->g, src, t->g.funcs + i * 2 * size, buf,
				     i < t->g.n_funcs ? 2 * size : size))
		return false;
	memcpy(pc, buf, size);
	if (i < t->g.n_funcs)
		memcpy(place, buf + size, size);
	return true;
}

/* The last function that begins at or before 'pc', by its place. */
static bool go_search(const struct go_table *t, struct symbolizer_src *src,
		      uint64_t pc, struct go_func *f, uint64_t *place)
{
	uint64_t lo, hi, mid, at, next, unused;
	size_t head;

	VECTOR_SEARCH(head, t->n_heads, t->heads[head] <= pc);
	if (head == 0)
		return false;
	lo = (head - 1) * (uint64_t)GO_TABLE_STRIDE;
	hi = MIN(lo + GO_TABLE_STRIDE, t->g.n_funcs);
	/* This also moves the window to where the search is. */
	if (!go_entry(t, src, lo, &at, place))
		return false;
	while (hi - lo > 1) {
		mid = lo + (hi - lo) / 2;
		if (!go_entry(t, src, mid, &at, &unused))
			return false;
		if (at <= pc)
			lo = mid;
		else
			hi = mid;
	}
	if (!go_entry(t, src, lo, &f->start, place) ||
	    !go_entry(t, src, lo + 1, &next, &unused))
		return false;
	f->end = next;
	return f->start <= pc && pc < f->end;
}

/* Finds the inlined calls of a function by its arrays of data. */
static void go_calls(const struct go_table *t, struct symbolizer_src *src,
		     uint32_t n_pcdata, uint8_t n_data, struct go_func *f)
{
	const struct go_layout *l = t->layout;
	uint64_t at = f->at + l->n_data_at + 1, ref = 0;

	if (!l->ref_size || n_pcdata <= GO_TABLE_PCDATA_INL ||
	    n_pcdata > GO_TABLE_PCDATA_MAX || n_data <= GO_TABLE_FUNCDATA_INL ||
	    !symbolizer_gopclntab_at(&t->g, src, at + GO_TABLE_PCDATA_INL * 4,
				     &f->pcinl, sizeof(f->pcinl)))
		return;
	at += n_pcdata * 4ULL;
	if (l->ref_size == 8)
		at = roundup(t->g.vaddr + at, 8ULL) - t->g.vaddr;
	if (!symbolizer_gopclntab_at(&t->g, src,
				     at + GO_TABLE_FUNCDATA_INL * l->ref_size,
				     &ref, l->ref_size) ||
	    (l->ref_size == 4 && ref == UINT32_MAX))
		return;
	if (l->ref_size == 4)
		ref += t->g.gofunc;
	if (ref >= t->data.vaddr && ref - t->data.vaddr < t->data.size)
		f->calls = t->data.offset + (ref - t->data.vaddr);
}

bool go_table_func(const struct go_table *t, struct symbolizer_src *src,
		   uint64_t pc, struct go_func *f)
{
	const struct go_layout *l = t->layout;
	uint8_t size = t->g.format->pc_size;
	uint8_t b[GO_TABLE_FUNC];
	uint64_t place;

	*f = (struct go_func){ 0 };
	if (!go_search(t, src, pc, f, &place) || place > t->g.size)
		return false; /* also the holes between text sections: ~0 */
	f->at = t->g.func_base + place;
	if (!symbolizer_gopclntab_at(&t->g, src, f->at, b, l->n_data_at + 1U))
		return false;
	f->name = go_get4(b + size);
	f->pcfile = go_get4(b + size + 16);
	f->pcln = go_get4(b + size + 20);
	if (l->cus_at)
		f->cu = go_get4(b + size + 28);
	if (l->start_line_at)
		f->start_line = go_get4(b + l->start_line_at);
	if (f->start_line > INT32_MAX)
		f->start_line = 0;
	go_calls(t, src, go_get4(b + size + 24), b[l->n_data_at], f);
	return true;
}

/* --- tables of pcs --------------------------------------------------------- */

void go_table_value(const struct go_table *t, struct symbolizer_src *src,
		    const struct go_func *f, uint32_t table, uint64_t pc,
		    uint32_t *steps, struct go_value *v)
{
	uint64_t at = t->g.pcs + table, end, loc, next;
	uint32_t step, by;
	int32_t value = -1;
	int more = 1;

	*v = (struct go_value){ -1, f->start, f->end, false };
	if (table == 0 || at >= t->g.size)
		return;
	end = MIN(t->g.size, at + GOPCLNTAB_PCS_MAX);
	for (loc = f->start; loc <= pc && *steps; loc = next) {
		--*steps;
		more = symbolizer_gopclntab_step(&t->g, src, &at, end,
						 loc == f->start, &step, &by);
		if (more <= 0)
			break;
		value = (int32_t)((uint32_t)value +
				  ((step >> 1) ^ -(step & 1)));
		next = loc + (uint64_t)by * ARCH_GO_UNIT;
		if (pc < next) {
			v->value = MAX(value, -1);
			v->start = loc;
			v->end = MIN(next, f->end);
			return;
		}
	}
	v->start = loc;
	v->beyond = more == 0;
}

/* --- inlined calls and texts ----------------------------------------------- */

bool go_table_call(const struct go_table *t, struct symbolizer_src *src,
		   const struct go_func *f, int32_t index, struct go_call *call)
{
	const struct go_layout *l = t->layout;
	uint64_t limit = t->data.offset + t->data.size, at;
	uint8_t b[32], before = 0;
	uint32_t parent;

	if (!f->calls || index < 0)
		return false;
	at = f->calls + (uint64_t)index * l->call_size;
	if (at > limit || l->call_size > limit - at ||
	    symbolizer_src_read(src, at, b, l->call_size))
		return false;
	call->name = go_get4(b + l->call_name_at);
	parent = go_get4(b + l->call_parent_at);
	call->parent = f->start + parent;
	call->start_line = l->call_line_at ? go_get4(b + l->call_line_at) : 0;
	if (call->start_line > INT32_MAX)
		call->start_line = 0;
	/* Of a later version that has its data elsewhere, no name would fit. */
	return parent < f->end - f->start && call->name &&
	       symbolizer_gopclntab_at(&t->g, src, t->g.names + call->name - 1,
				       &before, sizeof(before)) &&
	       !before;
}

static bool go_text(const struct go_table *t, struct symbolizer_src *src,
		    uint64_t at, char *dst, size_t cap)
{
	if (at < t->g.size &&
	    symbolizer_src_string(src, t->g.off + at, t->g.off + t->g.size, dst,
				  cap) > 0)
		return true;
	*dst = '\0';
	return false;
}

bool go_table_name(const struct go_table *t, struct symbolizer_src *src,
		   uint32_t name, char *dst, size_t cap)
{
	return go_text(t, src, t->g.names + name, dst, cap);
}

bool go_table_file(const struct go_table *t, struct symbolizer_src *src,
		   const struct go_func *f, int32_t file, char *dst, size_t cap)
{
	uint64_t at = t->layout->cus_at ? t->cus : t->files;
	uint32_t text;

	*dst = '\0';
	if (file < 0 ||
	    !symbolizer_gopclntab_at(
		    &t->g, src, at + ((uint64_t)f->cu + (uint32_t)file) * 4,
		    &text, sizeof(text)) ||
	    text == UINT32_MAX)
		return false;
	at = t->layout->cus_at ? t->files : 0;
	return go_text(t, src, at + text, dst, cap);
}
