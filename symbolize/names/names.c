// SPDX-License-Identifier: Apache-2.0
/* names: see symbolize/names/names.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/names/names.h"
#include "symbolize/names/shown.h"

/* The best first. */
static const struct names_source *const sources[] = {
	&names_go,
	&names_dwarf,
	&names_symbols,
	&names_starts,
};

struct symbolizer_names {
	void *state[ARRAY_SIZE(sources)]; /* NULL: not in this file */
	bool opened[ARRAY_SIZE(sources)]; /* once, when it is first needed */
	bool damaged;
	uint32_t relocation;
};

int symbolizer_names_open(struct symbolizer_names **np, struct names_context *c)
{
	struct symbolizer_elf e;
	int err = symbolizer_elf_init_any(&e, c->src);

	if (err)
		return err;
	symbolizer_elf_fini(&e);
	*np = calloc(1, sizeof(**np));
	return *np ? 0 : -ENOMEM;
}

void symbolizer_names_close(struct symbolizer_names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		if (n->state[i])
			sources[i]->close(n->state[i]);
	free(n);
}

size_t symbolizer_names_bytes(const struct symbolizer_names *n)
{
	size_t bytes = sizeof(*n);

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		if (n->state[i])
			bytes += sources[i]->bytes(n->state[i]);
	return bytes;
}

void symbolizer_names_idle(struct symbolizer_names *n, struct names_context *c)
{
	for (size_t i = 0; i < ARRAY_SIZE(sources); i++)
		if (n->state[i] && sources[i]->idle)
			sources[i]->idle(n->state[i], c);
}

bool symbolizer_names_damaged(const struct symbolizer_names *n)
{
	return n->damaged;
}

uint32_t symbolizer_names_relocation(const struct symbolizer_names *n)
{
	return n->relocation;
}

static int source_open(struct symbolizer_names *n, size_t i,
		       struct names_context *c)
{
	struct symbolizer_elf e;
	int err = symbolizer_elf_init_any(&e, c->src);

	c->relocation = 0;
	if (!err) {
		err = symbolizer_elf_tables(&e);
		c->elf = &e;
		if (!err)
			err = sources[i]->open(&n->state[i], c);
		c->elf = NULL;
		symbolizer_elf_fini(&e);
	}
	if (err == -ENOMEM)
		return err;
	n->opened[i] = true;
	if (err == -ENOTSUP)
		n->relocation = c->relocation;
	else
		n->damaged |= err && err != -ENODATA;
	n->damaged |= e.damaged;
	return 0;
}

/* As symbolizer_names_find(), of one source. */
static int source_find(struct symbolizer_names *n, size_t i,
		       struct names_context *c, uint64_t vaddr,
		       struct names_found *out)
{
	int err = n->opened[i] ? 0 : source_open(n, i, c);

	*out = (struct names_found){ 0 };
	if (!err)
		err = n->state[i] ? sources[i]->find(n->state[i], c, vaddr, out)
				  : -ENOENT;
	return err;
}

static bool names_missing(const struct names_found *f)
{
	return f->n && !f->functions[f->n - 1].name &&
	       !f->functions[f->n - 1].system_name;
}

/* Whether names are of the same constructor or destructor: C1 and C2, for example. */
static bool names_structor(const char *a, size_t len_a, const char *b,
			   size_t len_b)
{
	if (len_a != len_b)
		return false;
	for (size_t i = 0; i < len_a; i++)
		if (a[i] != b[i] &&
		    (i == 0 || !strchr("CD", a[i - 1]) || a[i] < '0' ||
		     a[i] > '9' || b[i] < '0' || b[i] > '9'))
			return false;
	return true;
}

/*
 * Whether a symbol is a name of the function that DWARF calls 'fn'. A linker or
 * compiler that folds equal functions leaves the symbols of all at one address: the
 * name of one must not have the file and line of another. DWARF has no symbol of some
 * local functions of C++. C has aliases such as "poll" of "__poll", "malloc" of
 * "__libc_malloc": one has the other in it.
 */
static bool names_agree(const struct symbolizer_function *fn,
			const char *symbol)
{
	const char *known = fn->system_name ?: fn->name;
	size_t len_s = MIN(shown_bare(symbol), strcspn(symbol, "@"));
	size_t len_k = shown_bare(known);
	bool mangled = !strncmp(known, "_Z", 2);

	if (mangled || !strncmp(symbol, "_Z", 2))
		return !mangled || names_structor(known, len_k, symbol, len_s);
	symbol += strspn(symbol, "_");
	known += strspn(known, "_");
	len_s = MIN(shown_bare(symbol), strcspn(symbol, "@"));
	len_k = shown_bare(known);
	return memmem(symbol, len_s, known, len_k) ||
	       memmem(known, len_k, symbol, len_s);
}

/* Gives the last function its name from another source, if it is of that one. */
static void names_merge(struct names_found *out,
			const struct names_found *other)
{
	struct symbolizer_function *last = &out->functions[out->n - 1];
	uint64_t end = MIN(out->start + out->size, other->start + other->size);
	const struct symbolizer_function *named;

	if (!other->n) { /* only where the function begins */
		*out = *other;
		return;
	}
	out->start = MAX(out->start, other->start);
	out->size = end - out->start;
	named = &other->functions[other->n - 1];
	if (!names_missing(out) && named->system_name &&
	    !names_agree(last, named->system_name))
		return;
	last->name = named->name;
	last->system_name = named->system_name;
	out->source = other->source;
}

/* Debug information has no names of parts of functions, or no name at all. */
static bool names_wants(const struct names_found *out,
			const struct names_source *source)
{
	return names_missing(out) || (source == &names_symbols &&
				      out->source == SYMBOLIZER_SOURCE_DWARF);
}

/*
 * Leaves out inlined functions without a name. Those around them keep their places:
 * each has the line of the call in it.
 */
static void names_leave_out(struct names_found *out)
{
	struct symbolizer_function *fn = out->functions;
	size_t n = 0;

	for (size_t i = 0; i < out->n; i++)
		if (i + 1 == out->n || !fn[i].name ||
		    strcmp(fn[i].name, SOURCE_NO_NAME) != 0)
			fn[n++] = fn[i];
	out->n = n;
}

int symbolizer_names_find(struct symbolizer_names *n, struct names_context *c,
			  uint64_t vaddr, struct names_found *out)
{
	struct names_found other;
	int err = -ENOENT;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(sources) && err == -ENOENT; i++)
		err = source_find(n, i, c, vaddr, out);
	for (; i < ARRAY_SIZE(sources) && !err; i++) {
		if (!names_wants(out, sources[i]))
			continue;
		err = source_find(n, i, c, vaddr, &other);
		if (!err)
			names_merge(out, &other);
		else if (err == -ENOENT)
			err = 0;
	}
	if (!err)
		names_leave_out(out);
	if (err || !names_missing(out))
		return err;
	out->functions[out->n - 1].name = SOURCE_NO_NAME;
	return out->n > 1 ? 0 : -ENOENT;
}
