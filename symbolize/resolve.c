// SPDX-License-Identifier: Apache-2.0
/* resolve: from offsets to names, see symbolize/file.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/demangle.h"
#include "symbolize/file.h"
#include "symbolize/names/shown.h"

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
	return (f->names ? symbolizer_names_bytes(f->names) : 0) +
	       f->plain_len + symbolizer_file_code_bytes(f) +
	       (f->ksyms ? kallsyms_bytes(f->ksyms) : 0);
}

void symbolizer_answer_fini(struct symbolizer_answer *a)
{
	arena_fini(&a->names);
	free(a->syms);
}

static const char *answer_text(struct symbolizer_answer *a, const char *text)
{
	if (!*text)
		return "";
	return arena_memdup(&a->names, text, strlen(text) + 1);
}

static bool answer_function(struct symbolizer_answer *a,
			    struct symbolizer_function *to,
			    const struct symbolizer_function *from)
{
	*to = *from;
	to->name = answer_text(a, from->name);
	to->file = answer_text(a, from->file);
	to->system_name = to->name;
	if (from->system_name != from->name)
		to->system_name = answer_text(a, from->system_name);
	return to->name && to->system_name && to->file;
}

bool symbolizer_answer_keep(struct symbolizer_answer *a,
			    struct symbolizer_symbol *sym)
{
	const struct symbolizer_function *from = sym->functions;
	struct symbolizer_function *to;
	size_t i, n = sym->nfunctions;

	sym->functions = NULL;
	sym->nfunctions = 0;
	if (!n)
		return true;
	to = arena_alloc(&a->names, n * sizeof(*to));
	if (!to)
		return false;
	for (i = 0; i < n; i++)
		if (!answer_function(a, &to[i], &from[i]))
			return false;
	sym->functions = to;
	sym->nfunctions = n;
	return true;
}

/* State of one symbolizer_file_resolve(). */
#define QUESTION_NAMES 2048

struct question {
	struct symbolizer_file *f;
	struct symbolizer_answer *a;
	const uint64_t *times; /* of the addresses, or NULL */
	struct names_context c;
	struct strbuf text;
	struct symbolizer_demangle_cost cost;
	/* Names that were demangled, by hash: the same ones are inlined everywhere. */
	struct {
		const char *linker, *shown; /* in the answer's arena */
	} names[QUESTION_NAMES];
};

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
 * Sets the name of a function that has a linker's name. Some in .symtab end with
 * "@VERSION", which is no part of the name, and which demanglers reject; nor is what
 * a compiler appends, see shown_bare().
 */
static int resolve_new_name(struct question *q, struct symbolizer_function *fn)
{
	const char *name = fn->system_name;
	const char *at = *name ? strchr(name + 1, '@') : NULL;
	size_t len = strlen(name), bare;
	char *copy;

	if (at && strcmp(at, "@plt") != 0)
		len = (size_t)(at - name);
	copy = arena_memdup(&q->a->names, name, len + 1);
	if (!copy)
		return -ENOMEM;
	copy[len] = '\0';
	bare = shown_bare(copy);
	copy[bare] = '\0';
	fn->name = strcmp(copy, name) ? copy : name;
	if (!resolve_demangle(q, fn->name))
		return 0;
	fn->name = arena_memdup(&q->a->names, q->text.data, q->text.len + 1);
	return fn->name ? 0 : -ENOMEM;
}

/* The same, by what was demangled for this question before. */
static int resolve_name(struct question *q, struct symbolizer_function *fn)
{
	const char *name = fn->system_name;
	size_t i = hash_bytes(name, strlen(name)) % QUESTION_NAMES;
	int err;

	if (q->names[i].linker && !strcmp(q->names[i].linker, name)) {
		fn->system_name = q->names[i].linker;
		fn->name = q->names[i].shown;
		return 0;
	}
	err = resolve_new_name(q, fn);
	/* One that was not demangled may be the next time. */
	if (!err && fn->name != name) {
		q->names[i].linker = name;
		q->names[i].shown = fn->name;
	}
	return err;
}

int symbolizer_answer_set(struct symbolizer_answer *a,
			  struct symbolizer_symbol *sym,
			  struct symbolizer_function *fns, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++)
		err = shown_escape(&fns[i], &a->names);
	sym->functions = fns;
	sym->nfunctions = n;
	return err;
}

/* Takes over the functions that a source found, and names them. */
static int resolve_functions(struct question *q, struct symbolizer_symbol *sym,
			     struct symbolizer_function *fns, size_t n)
{
	int err = 0;

	for (size_t i = 0; i < n && !err; i++) {
		if (!fns[i].system_name)
			fns[i].system_name = fns[i].name;
		if (!fns[i].name)
			err = resolve_name(q, &fns[i]);
	}
	return err ? err : symbolizer_answer_set(q->a, sym, fns, n);
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
	struct names_found found = { 0 };
	int err;

	sym->vaddr = symbolizer_file_vaddr(q->f, sym->offset);
	if (!q->f->names)
		return 0;
	err = symbolizer_names_find(q->f->names, &q->c, sym->vaddr, &found);
	if (err)
		return err == -ENOENT ? 0 : err;
	sym->start = found.start;
	sym->size = found.size;
	sym->source = found.source;
	return resolve_functions(q, sym, found.functions, found.n);
}

static bool find_kernel(const struct question *q, uint64_t addr, size_t i,
			struct kallsyms_symbol *out)
{
	const struct symbolizer_file *f = q->f;

	if (q->times && kallsyms_past_find(&f->past, addr, q->times[i], out))
		return true;
	return f->ksyms && kallsyms_find(f->ksyms, addr, out);
}

static int lookup_kernel(struct question *q, struct symbolizer_symbol *sym)
{
	struct arena *arena = &q->a->names;
	struct symbolizer_function *fn;
	struct kallsyms_symbol found;

	sym->vaddr = sym->offset;
	if (!find_kernel(q, sym->vaddr, (size_t)(sym - q->a->syms), &found) ||
	    !*found.name)
		return 0;
	fn = arena_alloc(arena, sizeof(*fn));
	if (!fn)
		return -ENOMEM;
	*fn = (struct symbolizer_function){
		.system_name =
			arena_memdup(arena, found.name, strlen(found.name) + 1),
		.file = "",
	};
	sym->module =
		arena_memdup(arena, found.module, strlen(found.module) + 1);
	if (!fn->system_name || !sym->module)
		return -ENOMEM;
	sym->start = found.start;
	sym->size = found.size;
	sym->source = SYMBOLIZER_SOURCE_KALLSYMS;
	return resolve_functions(q, sym, fn, 1);
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

	if (!last || vaddr < last->start || vaddr - last->start >= last->size)
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
		/* There may have been another one at an address. */
		if (q->f->past.n || !same_function(q->f, sym, last))
			err = q->f->kallsyms ? lookup_kernel(q, sym)
					     : lookup_elf(q, sym);
		last = sym;
	}
	if (q->f->names) {
		symbolizer_names_idle(q->f->names, &q->c);
		q->f->relocation = symbolizer_names_relocation(q->f->names);
	}
	free(order);
	return err;
}

/* Opens the sources of an ELF file; an error other than -ENOMEM is final. */
static int ensure_names(struct question *q)
{
	struct symbolizer_file *f = q->f;
	int err;

	if (f->names || f->names_err)
		return 0;
	err = symbolizer_names_open(&f->names, &q->c);
	if (err == -ENOMEM)
		return err;
	f->names_err = err;
	q->a->tally.built += !err;
	return 0;
}

/* Each file is counted once. */
static void count_damaged(struct question *q)
{
	struct symbolizer_file *f = q->f;

	if (f->damaged || (!f->names_err &&
			   !(f->names && symbolizer_names_damaged(f->names))))
		return;
	f->damaged = true;
	q->a->tally.broken++;
}

/* Re-reads the kernel's symbols; if that fails, the old ones stay. */
static int read_kernel(struct symbolizer_file *f,
		       struct symbolizer_tally *tally)
{
	struct kallsyms *fresh;
	int err;

	f->ksyms_time = clock_boottime_ns();
	err = kallsyms_read(&fresh, f->kallsyms);
	tally->hidden += err == -EPERM;
	if (err)
		return err;
	if (f->ksyms)
		err = kallsyms_past_add(&f->past, f->ksyms, fresh,
					f->ksyms_time);
	kallsyms_free(f->ksyms);
	f->ksyms = fresh;
	tally->built++;
	return err;
}

/*
 * A module was loaded or unloaded, which needs a privilege: then it is read at once.
 * Users can make the kernel load those that it has, once.
 */
static bool kernel_modules(const struct symbolizer_file *f)
{
	return __atomic_load_n(&f->ksyms_modules, __ATOMIC_RELAXED) >
	       f->ksyms_time;
}

static bool kernel_due(const struct symbolizer_file *f)
{
	return !f->ksyms_time ||
	       clock_boottime_ns() - f->ksyms_time >= KALLSYMS_INTERVAL_NS;
}

/*
 * Whether an address has no name, but may be in a module that is newer; or may have
 * the name of one that is gone.
 */
static bool kernel_stale(const struct symbolizer_file *f,
			 const uint64_t *offsets, size_t n)
{
	bool changed = __atomic_load_n(&f->ksyms_changed, __ATOMIC_RELAXED) >
		       f->ksyms_time;
	struct kallsyms_symbol found;

	for (size_t i = 0; i < n; i++)
		if (!kallsyms_is_core(f->ksyms, offsets[i]) &&
		    (changed || !kallsyms_find(f->ksyms, offsets[i], &found)))
			return true;
	return false;
}

static int ensure_kernel(struct symbolizer_file *f, const uint64_t *offsets,
			 size_t n, struct symbolizer_tally *tally)
{
	if (kernel_modules(f) ||
	    (kernel_due(f) && (!f->ksyms || kernel_stale(f, offsets, n))))
		f->names_err = read_kernel(f, tally);
	return f->ksyms || f->names_err == -EPERM ? 0 : f->names_err;
}

int symbolizer_file_resolve(struct symbolizer_file *f,
			    const struct symbolizer_ask *ask,
			    const uint64_t *offsets, const uint64_t *times,
			    size_t n, struct symbolizer_answer *a)
{
	struct symbolizer_src src;
	struct question q = {
		.f = f,
		.a = a,
		.times = times,
		.c = { .src = &src, .ask = ask, .arena = &a->names },
	};
	int err;

	err = symbolizer_file_src(f, &src);
	if (err)
		return err;
	a->syms = calloc(n + 1, sizeof(*a->syms));
	if (!a->syms)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		a->syms[i].offset = offsets[i];
	err = f->kallsyms ? ensure_kernel(f, offsets, n, &a->tally)
			  : ensure_names(&q);
	if (!err)
		err = lookup_all(&q, n);
	if (!f->kallsyms)
		count_damaged(&q);
	strbuf_fini(&q.text);
	a->tally.units = q.c.tally;
	if (err)
		return err;
	a->tally.resolved += n;
	for (size_t i = 0; i < n; i++)
		a->tally.unnamed += !a->syms[i].nfunctions;
	return 0;
}
