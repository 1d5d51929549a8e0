// SPDX-License-Identifier: Apache-2.0
/* code: names from a perf map or jitdump, see symbolize/file.h. In a worker. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/file.h"
#include "symbolize/jit/jit.h"

/* An address of the request, in the order of addresses. */
struct code_order {
	uint64_t addr;
	size_t i; /* in the request */
};

static int code_compare(const void *a, const void *b)
{
	const struct code_order *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The line of the address, if the file has one; its neighbours differ then. */
static int code_line(struct symbolizer_src *src, const struct jit_entry *e,
		     struct symbolizer_answer *a, struct symbolizer_symbol *sym,
		     struct symbolizer_function *fn)
{
	uint64_t end = sym->start + sym->size, start;
	struct jit_line line;

	if (!e->lines || jitdump_line(src, e, sym->vaddr, &line))
		return 0;
	fn->file = arena_memdup(&a->names, line.file, strlen(line.file) + 1);
	if (!fn->file)
		return -ENOMEM;
	fn->line = line.line;
	start = MAX(sym->start, line.start);
	sym->size = MIN(end, line.end) - start;
	sym->start = start;
	return 0;
}

static int code_name(struct symbolizer_src *src, const struct jit_entry *e,
		     struct symbolizer_answer *a, struct symbolizer_symbol *sym)
{
	struct symbolizer_function *fn;
	char name[JIT_NAME_MAX];
	int len = perfmap_name(src, e, name), err;

	if (len <= 0)
		return 0; /* the process has changed the file */
	fn = arena_alloc(&a->names, sizeof(*fn));
	if (!fn)
		return -ENOMEM;
	*fn = (struct symbolizer_function){ .file = "" };
	fn->name = arena_memdup(&a->names, name, (size_t)len + 1);
	fn->system_name = fn->name;
	if (!fn->name)
		return -ENOMEM;
	sym->start = e->start;
	sym->size = e->size;
	err = code_line(src, e, a, sym, fn);
	return err ? err : symbolizer_answer_set(a, sym, fn, 1);
}

/* What a query found. In a jitdump points are times, which limit the answer. */
static int code_answer(const struct symbolizer_file *f,
		       struct symbolizer_src *src, const struct jit_query *q,
		       struct symbolizer_answer *a,
		       struct symbolizer_symbol *sym)
{
	const struct jit_entry *e = q->found;

	sym->source = f->jit->dump ? SYMBOLIZER_SOURCE_JITDUMP
				   : SYMBOLIZER_SOURCE_PERF_MAP;
	if (f->jit->dump) {
		sym->before = e && e->from <= q->at ? q->at - e->from : q->at;
		sym->after = q->until - q->at;
	}
	if (!e || e->name == JIT_GONE)
		return 0;
	return code_name(src, e, a, sym);
}

/* 'room' is for as many. */
static int code_find(struct symbolizer_file *f, struct symbolizer_src *src,
		     const struct symbolizer_code *codes, size_t n,
		     struct code_order *order, struct jit_query *q,
		     struct symbolizer_answer *a)
{
	int err;

	for (size_t i = 0; i < n; i++)
		order[i] = (struct code_order){ codes[i].addr, i };
	qsort(order, n, sizeof(*order), code_compare);
	for (size_t i = 0; i < n; i++)
		q[i] = (struct jit_query){ order[i].addr, codes[order[i].i].at,
					   NULL, 0 };
	err = jit_table_find(f->jit, q, n);
	for (size_t i = 0; i < n && !err; i++)
		err = code_answer(f, src, &q[i], a, &a->syms[order[i].i]);
	return err;
}

/* The entries that the file has by now. */
static int code_read(struct symbolizer_file *f, struct symbolizer_src *src,
		     struct symbolizer_tally *tally)
{
	uint64_t end;
	int err;

	if (!f->jit)
		f->jit = calloc(1, sizeof(*f->jit));
	if (!f->jit)
		return -ENOMEM;
	if (src->size < f->jit->end || f->jit->written != f->written)
		jit_table_fini(f->jit);
	f->jit->written = f->written;
	end = f->jit->end;
	if (!end)
		f->jit->dump = jitdump_is(src);
	err = f->jit->dump ? jitdump_read(f->jit, src)
			   : perfmap_read(f->jit, src);
	tally->built += !err && f->jit->end != end;
	if (f->jit->cut && !f->damaged) {
		f->damaged = true;
		tally->broken++;
	}
	return err;
}

int symbolizer_file_code(struct symbolizer_file *f,
			 const struct symbolizer_code *codes, size_t n,
			 struct symbolizer_answer *a)
{
	struct code_order *order = calloc(n + 1, sizeof(*order));
	struct jit_query *q = calloc(n + 1, sizeof(*q));
	struct symbolizer_src src;
	int err = -ENOMEM;

	symbolizer_src_fd(&src, f->fd, f->ident.size);
	a->syms = calloc(n + 1, sizeof(*a->syms));
	if (!a->syms || !order || !q)
		goto out;
	for (size_t i = 0; i < n; i++)
		a->syms[i].offset = a->syms[i].vaddr = codes[i].addr;
	err = code_read(f, &src, &a->tally);
	if (!err)
		err = code_find(f, &src, codes, n, order, q, a);
out:
	free(order);
	free(q);
	return err;
}

int symbolizer_file_code_rows(struct symbolizer_file *f, uint64_t at,
			      struct symbolizer_tally *tally,
			      struct symbolizer_rows **out)
{
	struct symbolizer_src src;
	int err;

	symbolizer_src_fd(&src, f->fd, f->ident.size);
	err = code_read(f, &src, tally);
	return err ? err : jit_table_rows(f->jit, &src, at, out);
}

size_t symbolizer_file_code_bytes(const struct symbolizer_file *f)
{
	return f->jit ? sizeof(*f->jit) + f->jit->cap * sizeof(*f->jit->v) : 0;
}

void symbolizer_file_code_free(struct symbolizer_file *f)
{
	if (f->jit)
		jit_table_fini(f->jit);
	free(f->jit);
}
