// SPDX-License-Identifier: Apache-2.0
/*
 * cache: see tracehandler/cache.h. Bounded by a number of frames. When it is full,
 * the oldest frame is evicted that was not used since it was considered last.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracehandler/cache.h"

int trace_cache_init(struct trace_cache *c, size_t max)
{
	memset(c, 0, sizeof(*c));
	TAILQ_INIT(&c->list);
	c->max = max;
	if (!hash_init(&c->frames, 0) && !hash_init(&c->funcs, 0))
		return 0;
	trace_cache_fini(c);
	return -ENOMEM;
}

static void trace_func_put(struct trace_cache *c, struct trace_func *fn)
{
	if (--fn->refs)
		return;
	hash_remove(&c->funcs, &fn->node);
	free(fn);
}

/* Copies 's' to '*end', which moves past it. */
static const char *trace_func_text(char **end, const char *s)
{
	char *at = *end;

	*end = stpcpy(at, s) + 1;
	return at;
}

static struct trace_func *trace_func_new(const struct symbolizer_function *f)
{
	bool same = !strcmp(f->name, f->system_name);
	size_t len = strlen(f->name) + strlen(f->file) + 2;
	struct trace_func *fn;
	char *end;

	if (!same)
		len += strlen(f->system_name) + 1;
	fn = calloc(1, sizeof(*fn) + len);
	if (!fn)
		return NULL;
	end = fn->text;
	fn->shown.name = trace_func_text(&end, f->name);
	fn->shown.file = trace_func_text(&end, f->file);
	fn->shown.system_name =
		same ? fn->shown.name : trace_func_text(&end, f->system_name);
	fn->shown.start_line = f->start_line;
	fn->refs = 1;
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

/*
 * 'start' 0: an inlined function, which contains many addresses, or one in memory,
 * where others may follow at its address.
 */
static struct trace_func *trace_func_get(struct trace_cache *c,
					 const struct pm_exe *exe,
					 uint64_t start,
					 const struct symbolizer_function *f)
{
	uint64_t key =
		start ? start
		      : hash_bytes(f->system_name, strlen(f->system_name));
	uint64_t hash = hash_mix((uintptr_t)exe, key);
	struct trace_func *fn;

	HASH_FIND(fn, &c->funcs, hash, node, trace_func_is(fn, exe, start, f));
	if (fn) {
		fn->refs++;
		return fn;
	}
	fn = trace_func_new(f);
	if (!fn)
		return NULL;
	fn->exe = exe;
	fn->shown.start = start;
	hash_insert(&c->funcs, &fn->node, hash);
	return fn;
}

static void trace_frame_drop_lines(struct trace_cache *c, struct trace_frame *f)
{
	const struct reporter_function *shown;

	for (uint32_t i = 0; i < f->nlines; i++) {
		shown = f->lines[i].function;
		trace_func_put(c,
			       container_of(shown, struct trace_func, shown));
	}
	if (f->lines != &f->line)
		free(f->lines);
	f->lines = NULL;
	f->nlines = 0;
	free(f->plain);
	f->plain = NULL;
}

/* The name is for samples of times around that of the frame. */
static void trace_frame_limit(struct trace_frame *f, uint64_t before,
			      uint64_t after)
{
	f->until =
		after < UINT64_MAX - f->since ? f->since + after : UINT64_MAX;
	f->since -= MIN(f->since, before);
}

static void trace_frame_name(struct trace_cache *c, struct trace_frame *f,
			     const struct symbolizer_symbol *sym)
{
	size_t i, n = sym->nfunctions;
	struct trace_func *fn;

	f->vaddr = sym->vaddr;
	f->start = sym->size && !n ? sym->start : 0;
	if (!n && f->given)
		return;
	trace_frame_drop_lines(c, f);
	f->lines = n <= 1 ? &f->line : calloc(n, sizeof(*f->lines));
	for (i = 0; f->lines && i < n; i++) {
		fn = trace_func_get(c, reporter_place_exe(&f->place),
				    i + 1 < n || f->place.version ? 0
								  : sym->start,
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

void trace_frame_known(struct trace_cache *c, struct trace_frame *f,
		       const struct symbolizer_symbol *sym)
{
	f->pending = false;
	if (sym->after)
		trace_frame_limit(f, sym->before, sym->after);
	trace_frame_name(c, f, sym);
}

int trace_frame_expect(struct trace_frame *f, uint32_t n)
{
	f->meet = malloc(sizeof(*f->meet));
	if (!f->meet)
		return -ENOMEM;
	*f->meet = (struct trace_meet){ n, UINT64_MAX, UINT64_MAX, 0 };
	return 0;
}

void trace_frame_meet(struct trace_cache *c, struct trace_frame *f,
		      const struct symbolizer_symbol *sym)
{
	struct trace_meet *m = f->meet;
	uint64_t from = 0;

	if (sym && sym->after) {
		m->before = MIN(m->before, sym->before);
		m->after = MIN(m->after, sym->after);
		from = f->since - MIN(f->since, sym->before);
	}
	if (sym && sym->nfunctions && (!f->nlines || from > m->from)) {
		m->from = from;
		trace_frame_name(c, f, sym);
	}
	if (--m->asked)
		return;
	if (m->after < UINT64_MAX || m->before < UINT64_MAX)
		trace_frame_limit(f, m->before, m->after);
	f->pending = false;
	f->meet = NULL;
	free(m);
}

void trace_frame_plain(struct trace_frame *f, char *text)
{
	static const struct reporter_function none = {
		.name = "[no memory for its name]",
		.system_name = "[no memory for its name]",
		.file = "",
		.unnamed = true,
	};
	const struct symbolizer_function fn = { text, text, "", 0, 0 };

	free(f->plain);
	f->plain = text ? trace_func_new(&fn) : NULL;
	f->line = (struct reporter_line){ .function = &none };
	if (f->plain) {
		f->plain->shown.unnamed = true;
		f->line.function = &f->plain->shown;
	}
	free(text);
}

void trace_frame_put(struct trace_cache *c, struct trace_frame *f)
{
	if (--f->refs)
		return;
	trace_frame_drop_lines(c, f);
	free(f->meet);
	if (reporter_place_exe(&f->place))
		pm_exe_put(f->place.exe);
	free(f);
}

static void trace_cache_unlist(struct trace_cache *c, struct trace_frame *f)
{
	TAILQ_REMOVE(&c->list, f, link);
	hash_remove(&c->frames, &f->node);
	f->listed = false;
	trace_frame_put(c, f);
}

void trace_cache_fini(struct trace_cache *c)
{
	while (!TAILQ_EMPTY(&c->list))
		trace_cache_unlist(c, TAILQ_FIRST(&c->list));
	hash_fini(&c->funcs);
	hash_fini(&c->frames);
}

/* Makes room for one more frame. */
static void trace_cache_evict(struct trace_cache *c)
{
	struct trace_frame *f;

	while (c->frames.count >= c->max) {
		f = TAILQ_FIRST(&c->list);
		if (!f->used) {
			trace_cache_unlist(c, f);
			c->evicted++;
			continue;
		}
		f->used = false;
		TAILQ_REMOVE(&c->list, f, link);
		TAILQ_INSERT_TAIL(&c->list, f, link);
	}
}

void trace_cache_room(struct trace_cache *c, size_t max)
{
	c->max = MAX(max, (size_t)1);
	trace_cache_evict(c);
}

struct trace_frame *trace_cache_get(struct trace_cache *c,
				    const struct reporter_place *place,
				    uint64_t time, bool timed, bool *fresh)
{
	uint64_t hash = reporter_place_hash(place);
	struct trace_frame *f;

	HASH_FIND(f, &c->frames, hash, node,
		  time >= f->since && time < f->until &&
			  reporter_place_equal(&f->place, place));
	*fresh = !f;
	if (f) {
		/* A new frame is not used: one-off frames are evicted first. */
		f->used = true;
		f->refs++;
		return f;
	}
	f = calloc(1, sizeof(*f));
	if (!f)
		return NULL;
	f->place = *place;
	if (reporter_place_exe(place))
		pm_exe_get(place->exe);
	f->vaddr = place->id;
	f->since = timed ? time : 0;
	f->until = timed ? time + 1 : UINT64_MAX;
	f->refs = 2;
	f->pending = f->listed = true;
	trace_cache_evict(c);
	TAILQ_INSERT_TAIL(&c->list, f, link);
	hash_insert(&c->frames, &f->node, hash);
	return f;
}

void trace_cache_changed(struct trace_cache *c)
{
	c->forgotten++;
}

void trace_frame_forget(struct trace_cache *c, struct trace_frame *f)
{
	if (!f->listed)
		return;
	trace_cache_changed(c);
	trace_cache_unlist(c, f);
}

static bool trace_exe_is(const struct pm_exe *exe, const uint8_t *build_id,
			 size_t len)
{
	struct pm_exe_info info;

	pm_exe_info(exe, &info);
	return info.ident.build_id_len == len &&
	       !memcmp(info.ident.build_id, build_id, len);
}

void trace_cache_renew(struct trace_cache *c, const uint8_t *build_id,
		       size_t len)
{
	const struct pm_exe *exe, *last = NULL;
	struct trace_frame *f, *next;
	bool is = false;

	for (f = TAILQ_FIRST(&c->list); f; f = next) {
		next = TAILQ_NEXT(f, link);
		exe = reporter_place_exe(&f->place) ? f->place.exe : NULL;
		if (exe != last)
			is = exe && trace_exe_is(exe, build_id, len);
		last = exe;
		if (is)
			trace_frame_forget(c, f);
	}
}
