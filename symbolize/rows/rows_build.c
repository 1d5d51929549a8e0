// SPDX-License-Identifier: Apache-2.0
/* rows_build: makes a table of functions in any order; see symbolize/rows/rows.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/rows_table.h"

/* A browser has five million rows. */
#define ROWS_RAW_MAX (1U << 24)
#define ROWS_FUNCS_MAX (1U << 22)

struct rows_raw {
	uint32_t at; /* from the base */
	uint16_t rule;
};

struct rows_func {
	uint32_t start, end; /* from the base */
	uint32_t first, n; /* of its raw rows */
};

void symbolizer_rows_begin(struct symbolizer_rows_build *b,
			   struct symbolizer_elf *e)
{
	Elf64_Phdr ph;

	memset(b, 0, sizeof(*b));
	/* Not e->loads: the segments of a separate debug file have no contents. */
	for (uint16_t i = 0; i < e->phnum; i++) {
		if (symbolizer_elf_phdr(e, i, &ph) ||
		    b->n_exec == ARRAY_SIZE(b->exec))
			break;
		if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X) ||
		    ph.p_vaddr > UINT64_MAX - ph.p_memsz || ph.p_memsz == 0)
			continue;
		b->exec[b->n_exec++] = (struct symbolizer_elf_range){
			ph.p_vaddr, ph.p_vaddr + ph.p_memsz
		};
		b->text += ph.p_memsz;
	}
	qsort(b->exec, b->n_exec, sizeof(*b->exec), symbolizer_elf_cmp_range);
	b->base = b->exec[0].start & ~0xffffULL;
}

void symbolizer_rows_build_fini(struct symbolizer_rows_build *b)
{
	free(b->raw);
	free(b->funcs);
	symbolizer_pool_fini(&b->rules);
	symbolizer_pool_fini(&b->exprs);
}

bool symbolizer_rows_func(struct symbolizer_rows_build *b, uint64_t start,
			  uint64_t end, int *err)
{
	const struct symbolizer_elf_range *r = NULL;

	*err = 0;
	for (size_t i = 0; i < b->n_exec; i++)
		if (start >= b->exec[i].start && start < b->exec[i].end)
			r = &b->exec[i];
	if (!r)
		return false;
	end = MIN(end, r->end);
	if (end <= start || end - b->base > UINT32_MAX)
		return false;
	*err = b->n_funcs >= ROWS_FUNCS_MAX
		       ? -E2BIG
		       : VECTOR_ROOM(b->funcs, b->n_funcs, b->cap_funcs);
	if (*err)
		return false;
	b->funcs[b->n_funcs++] = (struct rows_func){
		.start = (uint32_t)(start - b->base),
		.end = (uint32_t)(end - b->base),
		.first = (uint32_t)b->n_raw,
	};
	return true;
}

/* Packs a rule; how many words. */
static size_t rule_words(const struct symbolizer_rule *rule,
			 struct rows_word *words)
{
	struct rows_item item = { ROWS_CFA, rule->signal, rule->cfa };
	struct symbolizer_rule def = { 0 };
	size_t n = rows_item_pack(&item, words);

	arch_rule_default(&def);
	for (uint8_t i = 0; i < SYMBOLIZER_REGS; i++) {
		item = (struct rows_item){ i, false, rule->regs[i] };
		if (memcmp(&item.v, &def.regs[i], sizeof(item.v)) != 0)
			n += rows_item_pack(&item, words + n);
	}
	return n;
}

static int rows_build_add(struct symbolizer_rows_build *b, struct rows_func *f,
			  uint64_t at, const struct symbolizer_rule *rule)
{
	struct rows_word words[ROWS_WORDS_MAX + 1];
	struct rows_raw *last = f->n ? &b->raw[b->n_raw - 1] : NULL;
	int id = 0, err;

	if (rule) {
		id = symbolizer_pool_put(&b->rules, words,
					 rule_words(rule, words) *
						 sizeof(*words));
		if (id < 0)
			return id;
		id++;
	}
	if (last && last->rule == id)
		return 0;
	if (last && last->at == at - b->base) {
		last->rule = (uint16_t)id;
		return 0;
	}
	err = b->n_raw >= ROWS_RAW_MAX
		      ? -E2BIG
		      : VECTOR_ROOM(b->raw, b->n_raw, b->cap_raw);
	if (err)
		return err;
	b->raw[b->n_raw].at = (uint32_t)(at - b->base);
	b->raw[b->n_raw++].rule = (uint16_t)id;
	f->n++;
	return 0;
}

int symbolizer_rows_add(struct symbolizer_rows_build *b, uint64_t at,
			const struct symbolizer_rule *rule)
{
	struct rows_func *f = &b->funcs[b->n_funcs - 1];
	int err;

	if (at - b->base >= f->end)
		return 0;
	err = rows_build_add(b, f, at, rule);
	if (err) /* the row before ends here */
		f->end = (uint32_t)(at - b->base);
	return err;
}

/* By address; equal ones in the order in which they were added. */
static int cmp_func(const void *a, const void *b)
{
	const struct rows_func *f = a, *g = b;
	uint64_t x = (uint64_t)f->start << 32 | f->first;
	uint64_t y = (uint64_t)g->start << 32 | g->first;

	return x < y ? -1 : x > y;
}

/* Sorts functions and keeps the first of each address. How many are left. */
static size_t sort_funcs(struct rows_func *f, size_t n)
{
	size_t i, kept = 0;

	for (i = 1; i < n && cmp_func(&f[i - 1], &f[i]) < 0; i++)
		;
	if (i < n)
		qsort(f, n, sizeof(*f), cmp_func);
	for (i = 0; i < n; i++)
		if (i == 0 || f[i].start != f[kept - 1].start)
			f[kept++] = f[i];
	return kept;
}

/* Whether one of the sorted functions overlaps 'x'. */
static bool rows_build_meets(const struct rows_func *f, size_t n,
			     const struct rows_func *x)
{
	size_t i;

	VECTOR_SEARCH(i, n, f[i].start < x->end);
	return i && f[i - 1].end > x->start;
}

void symbolizer_rows_fill(struct symbolizer_rows_build *b)
{
	struct rows_func *f = b->funcs;
	size_t n = b->n_first;

	for (size_t i = b->n_first; i < b->n_funcs; i++)
		if (!rows_build_meets(f, b->n_first, &f[i]))
			f[n++] = f[i];
	b->n_funcs = b->n_first = sort_funcs(f, n);
}

bool symbolizer_rows_covered(const struct symbolizer_rows_build *b, uint64_t at,
			     uint64_t *next)
{
	const struct rows_func *f = b->funcs;
	size_t i;

	VECTOR_SEARCH(i, b->n_first, b->base + f[i].start <= at);
	*next = i < b->n_first ? b->base + f[i].start : UINT64_MAX;
	return i && b->base + f[i - 1].end > at;
}

uint64_t symbolizer_rows_covers(const struct symbolizer_rows_build *b)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < b->n_first; i++)
		bytes += b->funcs[i].end - b->funcs[i].start;
	return bytes;
}

bool symbolizer_rows_gap(const struct symbolizer_rows_build *b, size_t i,
			 struct symbolizer_rows_gap *gap)
{
	const struct rows_func *f = &b->funcs[i];
	const struct rows_word *words = (const void *)b->rules.data;
	uint16_t last = f->n ? b->raw[f->first + f->n - 1].rule : 0;
	struct rows_item item = { 0 };

	if (i + 1 < b->n_first && f[1].start <= f->end)
		return false;
	gap->start = b->base + f->end;
	gap->end = i + 1 < b->n_first ? b->base + f[1].start : UINT64_MAX;
	if (last)
		rows_item_unpack(words + b->rules.starts[last - 1] /
						 sizeof(*words),
				 &item);
	gap->signal = item.signal;
	return true;
}

int symbolizer_rows_put_rule(struct symbolizer_rows_build *b, uint64_t from,
			     uint64_t to, const struct symbolizer_rule *rule)
{
	uint64_t next;
	int err = 0;

	if (symbolizer_rows_covered(b, from, &next) ||
	    !symbolizer_rows_func(b, from, MIN(to, next), &err))
		return err;
	return symbolizer_rows_add(b, from, rule);
}

void symbolizer_rows_note(struct symbolizer_rows_info *info,
			  const char *section, uint64_t at, uint64_t file_at,
			  const char *what)
{
	if (info->damage)
		return;
	info->damage = what;
	info->section = section;
	info->section_offset = at;
	info->file_offset = file_at;
}

int symbolizer_rows_each(struct symbolizer_rows_build *b,
			 symbolizer_rows_func_fn fn, void *arg)
{
	const struct rows_func *f;
	uint32_t end;
	int err = 0;

	symbolizer_rows_fill(b);
	for (size_t i = 0; i < b->n_funcs && !err; i++) {
		f = &b->funcs[i];
		end = i + 1 < b->n_funcs ? MIN(f->end, f[1].start) : f->end;
		err = fn(arg, b->base + f->start, b->base + end);
	}
	return err;
}

struct out {
	struct rows_row *rows; /* NULL: only count them */
	uint32_t *pages;
	uint32_t n, n_pages;
	uint16_t last; /* rule */
};

static void out_row(struct out *o, uint32_t at, uint16_t rule)
{
	if (rule == o->last)
		return;
	o->last = rule;
	for (; o->n_pages <= at >> 16; o->n_pages++)
		if (o->rows)
			o->pages[o->n_pages] = o->n;
	if (o->rows)
		o->rows[o->n] = (struct rows_row){ (uint16_t)at, rule };
	o->n++;
}

static void out_all(struct out *o, const struct symbolizer_rows_build *b)
{
	const struct rows_func *f;
	const struct rows_raw *r;

	for (size_t i = 0; i < b->n_funcs; i++) {
		f = &b->funcs[i];
		for (uint32_t k = 0; k < f->n; k++) {
			r = &b->raw[f->first + k];
			if (r->at >= f->end)
				break;
			out_row(o, r->at, r->rule);
		}
		if (i + 1 == b->n_funcs || f[1].start > f->end)
			out_row(o, f->end, 0);
	}
	if (o->rows)
		o->pages[o->n_pages] = o->n;
}

static void free_block(void *arg, const void *map, size_t len)
{
	free((void *)(uintptr_t)map);
}

static void make_head(const struct symbolizer_rows_build *b,
		      const struct symbolizer_rows_info *info,
		      const struct out *o, struct rows_head *h)
{
	*h = (struct rows_head){
		.magic = ROWS_MAGIC,
		.base = b->base,
		.text = b->text,
		.section_offset = info->section_offset,
		.file_offset = info->file_offset,
		.before = info->before,
		.after = info->after,
		.go = info->go,
		.n_words = (uint32_t)(b->rules.used / sizeof(uint32_t)),
		.n_rules = b->rules.n,
		.n_exprs = b->exprs.n,
		.n_pages = o->n_pages,
		.n_rows = o->n,
		.expr_bytes = (uint32_t)b->exprs.used,
		.by_code = info->by_code,
	};
	if (info->damage)
		snprintf(h->damage, sizeof(h->damage), "%s", info->damage);
	if (info->section)
		snprintf(h->section, sizeof(h->section), "%s", info->section);
	h->size = symbolizer_rows_size(h);
}

/* 'from' is NULL if there is nothing to copy; the block is zero. */
static void rows_build_copy(const void *to, const void *from, size_t len)
{
	if (from)
		memcpy((void *)(uintptr_t)to, from, len);
}

int symbolizer_rows_end(struct symbolizer_rows_build *b,
			const struct symbolizer_rows_info *info,
			struct symbolizer_rows **out)
{
	struct symbolizer_rows *t = calloc(1, sizeof(*t));
	struct rows_head head, *h;
	struct out o = { 0 };

	if (!t)
		return -ENOMEM;
	symbolizer_rows_fill(b);
	for (size_t i = 0; i + 1 < b->n_funcs; i++)
		b->funcs[i].end = MIN(b->funcs[i].end, b->funcs[i + 1].start);
	out_all(&o, b);
	make_head(b, info, &o, &head);
	h = calloc(1, head.size);
	if (!h) {
		free(t);
		return -ENOMEM;
	}
	*h = head;
	symbolizer_rows_lay(t, h);
	t->release = free_block;
	rows_build_copy(t->rules, b->rules.data, b->rules.used);
	rows_build_copy(t->rule_starts, b->rules.starts, (b->rules.n + 1) * 4);
	rows_build_copy(t->expr_starts, b->exprs.starts, (b->exprs.n + 1) * 4);
	rows_build_copy(t->exprs, b->exprs.data, b->exprs.used);
	o = (struct out){ .rows = (void *)(uintptr_t)t->rows,
			  .pages = (void *)(uintptr_t)t->pages };
	out_all(&o, b);
	*out = t;
	return 0;
}
