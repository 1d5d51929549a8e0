// SPDX-License-Identifier: Apache-2.0
/*
 * go: the table that every Go program has for its own stack traces as a source of
 * names, also when it is stripped; see symbolize/names/go_table.h.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/names/go_table.h"
#include "symbolize/names/source.h"

/* Longer texts are cut. */
#define GO_NAME_MAX 4096
#define GO_FILE_MAX 1024

/* Functions at an address, inlined into each other; Go's limit is far less. */
#define GO_DEPTH_MAX 64
/* Steps in tables of pcs for the callers of an address, all together. */
#define GO_STEPS_MAX (1U << 20)

/* One go_find(). */
struct go_answer {
	const struct go_table *t;
	struct names_context *c;
	struct go_func f;
	struct symbolizer_function fns[GO_DEPTH_MAX];
	size_t n;
	uint32_t steps;
	uint64_t start, end; /* where the answer is the same */
};

static int go_open(void **state, struct names_context *c)
{
	struct go_table *t;
	int err;

	/* The linker has yet to write the addresses in it. */
	if (c->elf->type == ET_REL)
		return -ENODATA;
	t = malloc(sizeof(*t));
	err = t ? go_table_open(t, c->elf) : -ENOMEM;

	if (err)
		free(t);
	else
		*state = t;
	return err;
}

static void go_close(void *state)
{
	go_table_close(state);
	free(state);
}

static size_t go_bytes(const void *state)
{
	return sizeof(struct go_table) + go_table_bytes(state);
}

/* The value at 'pc'; the first of the three addresses limits the answer. */
static struct go_value go_value_at(struct go_answer *a, uint32_t table,
				   uint64_t pc)
{
	uint32_t all = UINT32_MAX; /* the limit of a table is enough */
	bool first = a->n == 0;
	struct go_value v;

	go_table_value(a->t, a->c->src, &a->f, table, pc,
		       first ? &all : &a->steps, &v);
	if (first) {
		a->start = MAX(a->start, v.start);
		a->end = MIN(a->end, v.end);
	}
	return v;
}

/* Appends a function. 0; -ENOENT: it has no name; -ENOMEM. */
static int go_add(struct go_answer *a, uint32_t name, uint32_t start_line,
		  int32_t file, int32_t line)
{
	struct symbolizer_function *fn = &a->fns[a->n];
	struct symbolizer_src *src = a->c->src;
	struct arena *arena = a->c->arena;
	char text[GO_NAME_MAX];

	*fn = (struct symbolizer_function){ .file = "",
					    .start_line = start_line };
	if (!go_table_name(a->t, src, name, text, sizeof(text)))
		return -ENOENT;
	fn->name = arena_memdup(arena, text, strlen(text) + 1);
	if (line > 0 &&
	    go_table_file(a->t, src, &a->f, file, text, GO_FILE_MAX)) {
		fn->line = (uint32_t)line;
		fn->file = arena_memdup(arena, text, strlen(text) + 1);
	}
	if (!fn->name || !fn->file)
		return -ENOMEM;
	a->n++;
	return 0;
}

/*
 * Appends the functions at 'pc', from the innermost to the one that is not inlined.
 * What is damaged is left out: that one has no line then, for it would be that of
 * another function.
 */
static int go_chain(struct go_answer *a, uint64_t pc)
{
	struct go_value file, line, inl;
	struct go_call call;
	int err = 0;

	for (;;) {
		line = go_value_at(a, a->f.pcln, pc);
		if (a->n == 0 && line.beyond)
			return -ENOENT; /* between functions */
		file = go_value_at(a, a->f.pcfile, pc);
		inl = go_value_at(a, a->f.pcinl, pc);
		if (inl.value < 0)
			break;
		if (a->n == GO_DEPTH_MAX - 1 ||
		    !go_table_call(a->t, a->c->src, &a->f, inl.value, &call))
			err = -ENOENT;
		else
			err = go_add(a, call.name, call.start_line, file.value,
				     line.value);
		if (err)
			break;
		pc = call.parent;
	}
	if (err == -ENOENT)
		line.value = -1;
	if (err == -ENOMEM)
		return err;
	return go_add(a, a->f.name, a->f.start_line, file.value, line.value);
}

static int go_find(void *state, struct names_context *c, uint64_t vaddr,
		   struct names_found *out)
{
	struct go_answer a = { .t = state, .c = c, .steps = GO_STEPS_MAX };
	const struct gopclntab *g = &a.t->g;
	uint64_t text = g->format->pc_size == 8 ? 0 : g->text;
	int err;

	if (vaddr < text || vaddr - text < g->first || vaddr - text >= g->end ||
	    !go_table_func(a.t, c->src, vaddr - text, &a.f))
		return -ENOENT;
	a.start = a.f.start;
	a.end = a.f.end;
	err = go_chain(&a, vaddr - text);
	if (err)
		return err;
	*out = (struct names_found){
		.start = text + a.start,
		.size = a.end - a.start,
		.functions =
			arena_memdup(c->arena, a.fns, a.n * sizeof(*a.fns)),
		.n = a.n,
		.source = SYMBOLIZER_SOURCE_GO,
	};
	return out->functions ? 0 : -ENOMEM;
}

const struct names_source names_go = {
	.open = go_open,
	.close = go_close,
	.bytes = go_bytes,
	.find = go_find,
};
