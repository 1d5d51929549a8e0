// SPDX-License-Identifier: Apache-2.0
/*
 * cache: see tracehandler/cache.h. Bounded by a number of frames; when it is
 * full a clock's hand looks for one that was not used since it passed last.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracehandler/cache.h"

int trace_cache_init(struct trace_cache *c, size_t max)
{
	memset(c, 0, sizeof(*c));
	c->slots = calloc(max, sizeof(*c->slots));
	if (!c->slots || hash_init(&c->frames, 0) || hash_init(&c->funcs, 0)) {
		trace_cache_fini(c);
		return -ENOMEM;
	}
	c->max = max;
	return 0;
}

void trace_cache_fini(struct trace_cache *c)
{
	size_t i;

	for (i = 0; i < c->count; i++)
		trace_frame_put(c, c->slots[i]);
	hash_fini(&c->funcs);
	hash_fini(&c->frames);
	free(c->slots);
	memset(c, 0, sizeof(*c));
}

static void trace_func_put(struct trace_cache *c, struct trace_func *fn)
{
	if (--fn->refs)
		return;
	hash_remove(&c->funcs, &fn->node);
	free(fn);
}

/* Appends 's' to the text at '*end'. */
static const char *trace_func_text(char **end, const char *s, size_t len)
{
	char *at = memcpy(*end, s, len + 1);

	*end += len + 1;
	return at;
}

static struct trace_func *trace_func_new(const struct symbolizer_function *f)
{
	size_t name = strlen(f->name), file = strlen(f->file);
	bool same = !strcmp(f->name, f->system_name);
	size_t system = same ? 0 : strlen(f->system_name) + 1;
	struct trace_func *fn = malloc(sizeof(*fn) + name + file + system + 2);
	char *end;

	if (!fn)
		return NULL;
	end = fn->text;
	fn->shown.name = trace_func_text(&end, f->name, name);
	fn->shown.file = trace_func_text(&end, f->file, file);
	fn->shown.system_name = fn->shown.name;
	if (!same)
		fn->shown.system_name =
			trace_func_text(&end, f->system_name, system - 1);
	fn->shown.start_line = f->start_line;
	return fn;
}

static bool trace_func_is(const struct trace_func *fn, const struct pm_exe *exe,
			  uint64_t start, const struct symbolizer_function *f)
{
	return fn->exe == exe && fn->shown.start == start &&
	       fn->shown.start_line == f->start_line &&
	       !strcmp(fn->shown.system_name, f->system_name) &&
	       !strcmp(fn->shown.file, f->file);
}

/* 'start' 0: an inlined function, which many addresses are in. */
static struct trace_func *trace_func_get(struct trace_cache *c,
					 const struct pm_exe *exe,
					 uint64_t start,
					 const struct symbolizer_function *f)
{
	uint64_t key =
		start ? start
		      : hash_bytes(f->system_name, strlen(f->system_name));
	uint64_t hash = hash_mix((uintptr_t)exe, key);
	struct hash_node *n;
	struct trace_func *fn;

	hash_for_each_match(&c->funcs, n, hash) {
		fn = container_of(n, struct trace_func, node);
		if (trace_func_is(fn, exe, start, f)) {
			fn->refs++;
			return fn;
		}
	}
	fn = trace_func_new(f);
	if (!fn)
		return NULL;
	fn->exe = exe;
	fn->shown.start = start;
	fn->refs = 1;
	hash_insert(&c->funcs, &fn->node, hash);
	return fn;
}

static void trace_frame_drop_lines(struct trace_cache *c, struct trace_frame *f)
{
	const struct reporter_function *shown;
	uint32_t i;

	for (i = 0; i < f->nlines; i++) {
		shown = f->lines[i].function;
		trace_func_put(c,
			       container_of(shown, struct trace_func, shown));
	}
	if (f->lines != &f->line)
		free(f->lines);
	f->lines = NULL;
	f->nlines = 0;
}

/* All functions of 'sym', or without memory none. */
static void trace_frame_set_lines(struct trace_cache *c, struct trace_frame *f,
				  const struct symbolizer_symbol *sym)
{
	size_t i, n = sym->nfunctions;
	struct trace_func *fn;

	trace_frame_drop_lines(c, f);
	f->lines = n <= 1 ? &f->line : calloc(n, sizeof(*f->lines));
	for (i = 0; f->lines && i < n; i++) {
		fn = trace_func_get(c, reporter_place_exe(&f->place),
				    i + 1 < n ? 0 : sym->start,
				    &sym->functions[i]);
		if (!fn) {
			trace_frame_drop_lines(c, f);
			return;
		}
		f->lines[i].function = &fn->shown;
		f->lines[i].line = sym->functions[i].line;
		f->nlines++;
	}
}

void trace_frame_put(struct trace_cache *c, struct trace_frame *f)
{
	if (--f->refs)
		return;
	trace_frame_drop_lines(c, f);
	if (reporter_place_exe(&f->place))
		pm_exe_put(f->place.exe);
	free(f->plain);
	free(f);
}

/* Out of the table; the slot is the caller's to fill. */
static void trace_cache_unlist(struct trace_cache *c, struct trace_frame *f)
{
	hash_remove(&c->frames, &f->node);
	f->listed = false;
	trace_frame_put(c, f);
}

/* A slot for one more frame: a free one, or that of one not used lately. */
static size_t trace_cache_slot(struct trace_cache *c)
{
	size_t slot;

	if (c->count < c->max)
		return c->count++;
	while (c->slots[c->hand]->used) {
		c->slots[c->hand]->used = false;
		c->hand = (c->hand + 1) % c->max;
	}
	slot = c->hand;
	c->hand = (c->hand + 1) % c->max;
	trace_cache_unlist(c, c->slots[slot]);
	c->evicted++;
	return slot;
}

struct trace_frame *trace_cache_get(struct trace_cache *c,
				    const struct reporter_place *place,
				    bool *fresh)
{
	uint64_t hash = reporter_place_hash(place);
	struct trace_frame *f;
	struct hash_node *n;

	*fresh = false;
	hash_for_each_match(&c->frames, n, hash) {
		f = container_of(n, struct trace_frame, node);
		if (reporter_place_equal(&f->place, place)) {
			f->used = true;
			f->refs++;
			return f;
		}
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->place = *place;
	if (reporter_place_exe(place))
		pm_exe_get(place->exe);
	f->vaddr = place->id;
	f->refs = 2;
	/* Used is what was asked for twice: one-off frames go first. */
	f->pending = f->listed = true;
	f->slot = trace_cache_slot(c);
	c->slots[f->slot] = f;
	hash_insert(&c->frames, &f->node, hash);
	*fresh = true;
	return f;
}

void trace_frame_known(struct trace_cache *c, struct trace_frame *f,
		       const struct symbolizer_symbol *sym)
{
	f->pending = false;
	f->vaddr = sym->vaddr;
	trace_frame_set_lines(c, f, sym);
	/* Made while it was waited for, from what was known then. */
	free(f->plain);
	f->plain = NULL;
}

void trace_frame_plain(struct trace_frame *f, uint64_t vaddr, char *plain)
{
	f->pending = false;
	f->vaddr = vaddr;
	free(f->plain);
	f->plain = plain;
}

void trace_frame_forget(struct trace_cache *c, struct trace_frame *f)
{
	struct trace_frame *last = c->slots[c->count - 1];

	if (!f->listed)
		return;
	c->forgotten++;
	c->slots[f->slot] = last;
	last->slot = f->slot;
	c->count--;
	if (c->hand >= c->count)
		c->hand = 0;
	trace_cache_unlist(c, f);
}
