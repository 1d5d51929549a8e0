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
	if (!fn || --fn->refs)
		return;
	hash_remove(&c->funcs, &fn->node);
	if (fn->system_name != fn->name)
		free(fn->system_name);
	free(fn->name);
	free(fn);
}

static struct trace_func *trace_func_new(const struct symbolizer_symbol *sym,
					 const char *system_name)
{
	struct trace_func *fn = calloc(1, sizeof(*fn));

	if (!fn)
		return NULL;
	fn->name = strdup(sym->name);
	fn->system_name =
		strcmp(sym->name, system_name) ? strdup(system_name) : fn->name;
	if (fn->name && fn->system_name)
		return fn;
	free(fn->name);
	if (fn->system_name != fn->name)
		free(fn->system_name);
	free(fn);
	return NULL;
}

static struct trace_func *trace_func_get(struct trace_cache *c,
					 const struct pm_exe *exe,
					 const struct symbolizer_symbol *sym)
{
	const char *system_name =
		sym->system_name ? sym->system_name : sym->name;
	uint64_t hash = hash_mix((uintptr_t)exe, sym->start);
	struct hash_node *n;
	struct trace_func *fn;

	hash_for_each_match(&c->funcs, n, hash) {
		fn = container_of(n, struct trace_func, node);
		if (fn->exe == exe && fn->start == sym->start &&
		    !strcmp(fn->system_name, system_name)) {
			fn->refs++;
			return fn;
		}
	}
	fn = trace_func_new(sym, system_name);
	if (!fn)
		return NULL;
	fn->exe = exe;
	fn->start = sym->start;
	fn->refs = 1;
	hash_insert(&c->funcs, &fn->node, hash);
	return fn;
}

void trace_frame_put(struct trace_cache *c, struct trace_frame *f)
{
	if (--f->refs)
		return;
	trace_func_put(c, f->func);
	pm_exe_put(f->exe);
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

struct trace_frame *trace_cache_get(struct trace_cache *c, struct pm_exe *exe,
				    uint64_t offset, bool *fresh)
{
	uint64_t hash = trace_cache_key(exe, offset);
	struct trace_frame *f;
	struct hash_node *n;

	*fresh = false;
	hash_for_each_match(&c->frames, n, hash) {
		f = container_of(n, struct trace_frame, node);
		if (f->exe == exe && f->offset == offset) {
			f->used = true;
			f->refs++;
			return f;
		}
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->exe = pm_exe_get(exe);
	f->offset = f->vaddr = offset;
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
	if (sym->name)
		f->func = trace_func_get(c, f->exe, sym);
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
