// SPDX-License-Identifier: Apache-2.0
/* resolve: from offsets to names, see symbolize/file.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/demangle.h"
#include "symbolize/file.h"

/* Longer names are cut. */
#define NAME_MAX_BYTES 4096

/*
 * Limits of demangling: names of a file that may exceed their time, and CPU
 * time per request: 100 ms, ten times what 2048 names of libclang take. Beyond
 * these, names stay mangled.
 */
#define EXCEEDED_MAX 4
#define REQUEST_TICKS (100 / SYMBOLIZER_DEMANGLE_TICK_MS)

/* Modules and BPF programs come and go: kallsyms is re-read this often. */
#define KALLSYMS_INTERVAL_NS (10 * CLOCK_NSEC_PER_SEC)

size_t symbolizer_file_index_bytes(const struct symbolizer_file *f)
{
	return (f->index ? symbolizer_index_bytes(f->index) : 0) +
	       (f->ksyms ? kallsyms_bytes(f->ksyms) : 0);
}

void symbolizer_answer_fini(struct symbolizer_answer *a)
{
	arena_fini(&a->names);
	free(a->syms);
}

/* State of one symbolizer_file_resolve(). */
struct question {
	struct symbolizer_file *f;
	struct symbolizer_answer *a;
	struct symbolizer_src *src;
	struct strbuf text;
	struct symbolizer_demangle_cost cost;
};

static int resolve_keep_text(struct question *q, const char *s, size_t len,
			     const char **kept)
{
	*kept = arena_memdup(&q->a->names, s, len + 1);
	return *kept ? 0 : -ENOMEM;
}

/* Into q->text. */
static bool resolve_demangle(struct question *q, const char *name)
{
	unsigned int before = q->cost.exceeded;
	bool done;

	if (q->f->exceeded >= EXCEEDED_MAX || q->cost.ticks >= REQUEST_TICKS) {
		q->a->tally.undemangled +=
			name[0] == '_' && (name[1] == 'Z' || name[1] == 'R');
		return false;
	}
	strbuf_reset(&q->text);
	done = symbolizer_demangle(name, &q->text, &q->cost);
	q->f->exceeded += q->cost.exceeded - before;
	q->a->tally.undemangled += q->cost.exceeded - before;
	if (q->cost.ticks >= REQUEST_TICKS)
		q->f->exceeded++;
	return done;
}

/*
 * The one function of a symbol. Some names in .symtab end with "@VERSION",
 * which is no part of the name, and which demanglers reject.
 */
static int resolve_set_function(struct question *q,
				struct symbolizer_symbol *sym, char *name,
				size_t len)
{
	struct symbolizer_function *fn;
	char *at;
	int err;

	if (len == 0)
		return 0;
	fn = arena_alloc(&q->a->names, sizeof(*fn));
	if (!fn)
		return -ENOMEM;
	*fn = (struct symbolizer_function){ .file = "" };
	err = resolve_keep_text(q, name, len, &fn->system_name);
	if (err)
		return err;
	fn->name = fn->system_name;
	sym->functions = fn;
	sym->nfunctions = 1;
	at = strchr(name + 1, '@');
	if (at && strcmp(at, "@plt") != 0)
		*at = '\0';
	else
		at = NULL;
	if (resolve_demangle(q, name))
		return resolve_keep_text(q, q->text.data, q->text.len,
					 &fn->name);
	return at ? resolve_keep_text(q, name, (size_t)(at - name), &fn->name)
		  : 0;
}

uint64_t symbolizer_file_vaddr(const struct symbolizer_file *f, uint64_t offset)
{
	const struct symbolizer_segment *s;

	for (size_t i = 0; i < f->n_segments; i++) {
		s = &f->segments[i];
		if (offset >= s->offset && offset - s->offset < s->size)
			return s->vaddr + (offset - s->offset);
	}
	return offset;
}

static int lookup_elf(struct question *q, struct symbolizer_symbol *sym)
{
	char name[NAME_MAX_BYTES];
	struct symbolizer_range range;
	int len;

	sym->vaddr = symbolizer_file_vaddr(q->f, sym->offset);
	if (!q->f->index ||
	    !symbolizer_index_find(q->f->index, sym->vaddr, &range))
		return 0;
	len = symbolizer_index_name(q->f->index, q->src, range.name, name,
				    sizeof(name));
	if (len < 0)
		return 0; /* the file has changed, or is invalid */
	sym->start = range.start;
	sym->size = range.size;
	return resolve_set_function(q, sym, name, (size_t)len);
}

static int lookup_kernel(struct question *q, struct symbolizer_symbol *sym)
{
	struct kallsyms_symbol found;
	int err;

	sym->vaddr = sym->offset;
	if (!q->f->ksyms || !kallsyms_find(q->f->ksyms, sym->vaddr, &found))
		return 0;
	sym->start = found.start;
	sym->size = found.size;
	err = resolve_keep_text(q, found.module, strlen(found.module),
				&sym->module);
	if (err)
		return err;
	return resolve_set_function(q, sym, found.name, strlen(found.name));
}

static int cmp_offset(const void *a, const void *b, void *arg)
{
	const struct symbolizer_symbol *syms = arg;
	uint64_t x = syms[*(const size_t *)a].offset;
	uint64_t y = syms[*(const size_t *)b].offset;

	return x < y ? -1 : x > y;
}

/* The order of addresses, in which those of one function are adjacent. */
static size_t *address_order(struct symbolizer_symbol *syms, size_t n)
{
	size_t *order = malloc(n * sizeof(*order));

	if (!order)
		return NULL;
	for (size_t i = 0; i < n; i++)
		order[i] = i;
	qsort_r(order, n, sizeof(*order), cmp_offset, syms);
	return order;
}

/* Reuses the answer for the previous address, if it is in the same function. */
static bool same_function(const struct symbolizer_file *f,
			  struct symbolizer_symbol *sym,
			  const struct symbolizer_symbol *last)
{
	uint64_t offset = sym->offset, vaddr = symbolizer_file_vaddr(f, offset);

	if (!last || !last->nfunctions || vaddr < last->start ||
	    vaddr - last->start >= last->size)
		return false;
	*sym = *last;
	sym->offset = offset;
	sym->vaddr = vaddr;
	return true;
}

static int lookup_all(struct question *q, size_t n)
{
	struct symbolizer_symbol *last = NULL, *sym;
	size_t *order = address_order(q->a->syms, n);
	int err = order ? 0 : -ENOMEM;

	for (size_t i = 0; i < n && !err; i++) {
		sym = &q->a->syms[order[i]];
		if (!same_function(q->f, sym, last))
			err = q->f->kallsyms ? lookup_kernel(q, sym)
					     : lookup_elf(q, sym);
		last = sym;
	}
	free(order);
	return err;
}

/* Builds the index of an ELF file; an error other than -ENOMEM is final. */
static int ensure_index(struct symbolizer_file *f, struct symbolizer_src *src,
			struct symbolizer_tally *tally)
{
	struct symbolizer_elf e;
	int err;

	if (f->index || f->index_err)
		return 0;
	err = symbolizer_elf_init(&e, src);
	if (err) {
		f->index_err = err == -ENOMEM ? 0 : err;
	} else {
		err = symbolizer_elf_tables(&e);
		if (!err)
			err = symbolizer_index_new(&f->index, &e);
		symbolizer_elf_fini(&e);
		tally->built += !err;
	}
	if ((e.damaged || f->index_err) && !f->damaged) {
		f->damaged = true;
		tally->broken++;
	}
	return err == -ENOMEM ? err : 0;
}

/* Re-reads the kernel's symbols; if that fails, the old ones stay. */
static int read_kernel(struct symbolizer_file *f,
		       struct symbolizer_tally *tally)
{
	struct kallsyms *fresh;
	int err = kallsyms_read(&fresh, f->kallsyms);

	f->ksyms_time = clock_boottime_ns();
	tally->hidden += err == -EPERM;
	if (err)
		return err;
	kallsyms_free(f->ksyms);
	f->ksyms = fresh;
	tally->built++;
	return 0;
}

static bool kernel_due(const struct symbolizer_file *f)
{
	return !f->ksyms_time ||
	       clock_boottime_ns() - f->ksyms_time >= KALLSYMS_INTERVAL_NS;
}

/* Whether an address has no name, but may be in a module that is newer. */
static bool kernel_stale(const struct symbolizer_file *f,
			 const uint64_t *offsets, size_t n)
{
	struct kallsyms_symbol found;

	for (size_t i = 0; i < n; i++)
		if (!kallsyms_is_core(f->ksyms, offsets[i]) &&
		    !kallsyms_find(f->ksyms, offsets[i], &found))
			return true;
	return false;
}

static int ensure_kernel(struct symbolizer_file *f, const uint64_t *offsets,
			 size_t n, struct symbolizer_tally *tally)
{
	if (kernel_due(f) && (!f->ksyms || kernel_stale(f, offsets, n)))
		f->index_err = read_kernel(f, tally);
	return f->ksyms || f->index_err == -EPERM ? 0 : f->index_err;
}

int symbolizer_file_resolve(struct symbolizer_file *f, const uint64_t *offsets,
			    size_t n, struct symbolizer_answer *a)
{
	struct symbolizer_src src;
	struct question q = { .f = f, .a = a, .src = &src };
	int err;

	if (f->image)
		symbolizer_src_mem(&src, f->image, f->ident.size);
	else
		symbolizer_src_fd(&src, f->fd, f->ident.size);
	a->syms = calloc(n + 1, sizeof(*a->syms));
	if (!a->syms)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		a->syms[i].offset = offsets[i];
	err = f->kallsyms ? ensure_kernel(f, offsets, n, &a->tally)
			  : ensure_index(f, &src, &a->tally);
	if (!err)
		err = lookup_all(&q, n);
	strbuf_fini(&q.text);
	if (err)
		return err;
	a->tally.resolved += n;
	for (size_t i = 0; i < n; i++)
		a->tally.unnamed += !a->syms[i].nfunctions;
	return 0;
}
