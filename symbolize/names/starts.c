// SPDX-License-Identifier: Apache-2.0
/*
 * starts: functions without a name, as the last source of names: where the function
 * of an address begins, by the CFI of the file (.eh_frame, .debug_frame). Two of them
 * have a name: where the file is entered, _start, and what that passes on, main.
 *
 * The CFI is read when no other source has named an address. The functions are 8
 * bytes each. Code that no entry covers is in no function. Neither are stubs of PLT
 * sections: one entry covers all stubs of a section.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/names/source.h"
#include "symbolize/rows/rows.h"

#define STARTS_ENTRY_LEN 80 /* bytes of _start, at most */
#define STARTS_ENTRY_MIN 16

struct starts_function {
	uint32_t start, size; /* 'start' from the base */
};

struct starts {
	struct symbolizer_elf_range plt[SYMBOLIZER_ELF_PLTS];
	size_t n_plt;
	uint64_t entry, main; /* addresses; 0: not known */
	bool read;
	uint64_t base; /* start of the first function */
	struct starts_function *v; /* ascending, without overlap */
	size_t n, cap;
};

static bool starts_is_plt(const struct starts *s, uint64_t start)
{
	for (size_t i = 0; i < s->n_plt; i++)
		if (start >= s->plt[i].start && start < s->plt[i].end)
			return true;
	return false;
}

/* All functions are within 4 GiB, see symbolizer_rows_func(). */
static int starts_add(void *arg, uint64_t start, uint64_t end)
{
	struct starts *s = arg;

	if (starts_is_plt(s, start))
		return 0;
	if (VECTOR_ROOM(s->v, s->n, s->cap))
		return -ENOMEM;
	if (s->n == 0)
		s->base = start;
	s->v[s->n++] = (struct starts_function){ (uint32_t)(start - s->base),
						 (uint32_t)(end - start) };
	return 0;
}

static void starts_clear(struct starts *s)
{
	free(s->v);
	s->v = NULL;
	s->n = s->cap = 0;
}

/* 0 or -ENOMEM; a file that cannot be read has no functions. */
static int starts_read(struct starts *s, struct symbolizer_src *src)
{
	struct starts_function *exact;
	int err = symbolizer_rows_functions(src, starts_add, s);

	if (err)
		starts_clear(s);
	if (err == -ENOMEM)
		return err;
	s->read = true;
	exact = s->n ? realloc(s->v, s->n * sizeof(*s->v)) : NULL;
	if (exact) {
		s->v = exact;
		s->cap = s->n;
	}
	return 0;
}

/* A library has no entry point, or one that is an ordinary function. */
static void starts_entry(struct starts *s, struct symbolizer_elf *e)
{
	uint8_t code[STARTS_ENTRY_LEN] = { 0 };
	size_t len = symbolizer_elf_code(e, e->entry, code, sizeof(code));

	if (!e->entry || len < STARTS_ENTRY_MIN || !arch_is_start(code))
		return;
	s->entry = e->entry;
	if (!arch_start_main(code, len, e->entry, &s->main))
		s->main = 0;
}

static int starts_open(void **state, struct names_context *c)
{
	struct starts *s;

	/* CFI of a relocatable file has no addresses yet. */
	if (c->elf->machine != ARCH_MACHINE || !c->elf->is64 ||
	    c->elf->type == ET_REL)
		return -ENODATA;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->n_plt = c->elf->n_plt;
	memcpy(s->plt, c->elf->plt, sizeof(s->plt));
	starts_entry(s, c->elf);
	*state = s;
	return 0;
}

static void starts_close(void *state)
{
	starts_clear(state);
	free(state);
}

static size_t starts_bytes(const void *state)
{
	const struct starts *s = state;

	return sizeof(*s) + s->cap * sizeof(*s->v);
}

/* Sets the name of a function that has one. */
static int starts_name(const struct starts *s, struct arena *arena,
		       struct names_found *out)
{
	const char *name = out->start == s->entry  ? "_start"
			   : out->start == s->main ? "main"
						   : NULL;
	struct symbolizer_function *fn;

	if (!name)
		return 0;
	fn = arena_alloc(arena, sizeof(*fn));
	if (!fn)
		return -ENOMEM;
	*fn = (struct symbolizer_function){ .system_name = name, .file = "" };
	out->functions = fn;
	out->n = 1;
	return 0;
}

static int starts_find(void *state, struct names_context *c, uint64_t vaddr,
		       struct names_found *out)
{
	const struct starts_function *f;
	struct starts *s = state;
	uint64_t at;
	size_t i;
	int err = s->read ? 0 : starts_read(s, c->src);

	if (err)
		return err;
	at = vaddr - s->base;
	VECTOR_SEARCH(i, s->n, s->v[i].start <= at);
	if (vaddr < s->base || i == 0)
		return -ENOENT;
	f = &s->v[i - 1];
	if (at - f->start >= f->size)
		return -ENOENT;
	*out = (struct names_found){
		.start = s->base + f->start,
		.size = f->size,
		.source = SYMBOLIZER_SOURCE_CFI,
	};
	return starts_name(s, c->arena, out);
}

const struct names_source names_starts = {
	.open = starts_open,
	.close = starts_close,
	.bytes = starts_bytes,
	.find = starts_find,
};
