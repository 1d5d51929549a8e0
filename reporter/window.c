// SPDX-License-Identifier: Apache-2.0
/*
 * window: see reporter/window.h. Everything but the hash buckets and the
 * strings is allocated from one arena.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/ledger/ledger.h"
#include "reporter/window.h"

static int window_init_tables(struct window *w)
{
	struct hash *tables[] = { &w->exes,   &w->functions, &w->locations,
				  &w->stacks, &w->images,    &w->samples };
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		if (hash_init(tables[i], 0))
			return -ENOMEM;
	if (times_ids_init(&w->ids))
		return -ENOMEM;
	return strtab_init(&w->strings);
}

static void window_add_column(struct window *w, uint32_t event,
			      const struct reporter_sample_type *type)
{
	if (type->type)
		w->columns[w->ncolumns++] =
			(struct window_column){ *type, event };
}

static int window_init_columns(struct window *w)
{
	size_t i, max = 2 * w->opts.ntypes;

	w->columns = arena_alloc(&w->arena, max * sizeof(*w->columns));
	if (!w->columns)
		return -ENOMEM;
	for (i = 0; i < w->opts.ntypes; i++) {
		if (!window_takes(w, i))
			continue;
		w->first_column[i] = w->ncolumns;
		window_add_column(w, i, &w->opts.types[i].count);
		window_add_column(w, i, &w->opts.types[i].value);
	}
	return 0;
}

bool window_takes(const struct window *w, uint32_t event)
{
	return w->opts.events >> event & 1;
}

int window_init(struct window *w, const struct window_opts *opts)
{
	int err;

	memset(w, 0, sizeof(*w));
	w->opts = *opts;
	arena_init(&w->arena);
	STAILQ_INIT(&w->sample_list);
	STAILQ_INIT(&w->exe_list);
	STAILQ_INIT(&w->function_list);
	STAILQ_INIT(&w->location_list);
	err = window_init_tables(w);
	if (!err)
		err = window_init_columns(w);
	if (err)
		window_fini(w);
	return err;
}

static void window_put_exes(struct window *w)
{
	struct window_exe *e;

	STAILQ_FOREACH(e, &w->exe_list, entry) {
		if (e->exe)
			pm_exe_put(e->exe);
		e->exe = NULL;
	}
}

void window_fini(struct window *w)
{
	struct hash *tables[] = { &w->exes,   &w->functions, &w->locations,
				  &w->stacks, &w->images,    &w->samples };
	size_t i;

	window_put_exes(w);
	for (i = 0; i < ARRAY_SIZE(tables); i++)
		hash_fini(tables[i]);
	times_ids_fini(&w->ids);
	strtab_fini(&w->strings);
	arena_fini(&w->arena);
	free(w->scratch);
	memset(w, 0, sizeof(*w));
}

/* Sets '*idp' to the id of a text, or of "" if 'p' is empty. False: -ENOMEM. */
static bool window_part(struct window *w, const struct pm_part *p,
			uint32_t *idp)
{
	int64_t id = p->len ? strtab_id_len(&w->strings, p->s, p->len) : 0;

	if (id >= 0)
		*idp = id;
	return id >= 0;
}

/* The same; NULL counts as "". */
static bool window_string(struct window *w, const char *s, uint32_t *idp)
{
	const struct pm_part p = { .s = s, .len = s ? strlen(s) : 0 };

	return window_part(w, &p, idp);
}

static struct window_exe *window_get_exe(struct window *w, struct pm_exe *exe)
{
	uint64_t h = hash_u64((uintptr_t)exe);
	struct window_exe *e;

	HASH_FIND(e, &w->exes, h, node, e->exe == exe);
	if (e)
		return e;
	e = arena_alloc(&w->arena, sizeof(*e));
	if (!e)
		return NULL;
	memset(e, 0, sizeof(*e));
	e->exe = pm_exe_get(exe);
	hash_insert(&w->exes, &e->node, h);
	STAILQ_INSERT_TAIL(&w->exe_list, e, entry);
	return e;
}

static bool window_is_function(const struct window_function *a,
			       const struct window_function *b)
{
	if (a->exe != b->exe || a->start != b->start || a->name != b->name)
		return false;
	return a->start ||
	       (a->file == b->file && a->start_line == b->start_line &&
		a->unnamed == b->unnamed);
}

static struct window_function *
window_get_function(struct window *w, struct window_exe *exe,
		    const struct reporter_function *f)
{
	struct window_function key = { .exe = exe,
				       .start = f->start,
				       .start_line = f->start_line,
				       .unnamed = f->unnamed };
	struct window_function *fn;
	uint64_t h;

	if (!window_string(w, f->name, &key.name) ||
	    !window_string(w, f->system_name, &key.system_name) ||
	    !window_string(w, f->file, &key.file))
		return NULL;
	h = hash_mix((uintptr_t)exe, f->start ? f->start : key.name);
	HASH_FIND(fn, &w->functions, h, node, window_is_function(fn, &key));
	if (fn)
		return fn;
	fn = arena_memdup(&w->arena, &key, sizeof(key));
	if (!fn)
		return NULL;
	fn->id = w->functions.count + 1;
	hash_insert(&w->functions, &fn->node, h);
	STAILQ_INSERT_TAIL(&w->function_list, fn, entry);
	return fn;
}

/*
 * Equal places have equal functions, unless symbolization completed between two
 * samples, or other code was loaded there (of the kernel): then the lines or the
 * name of the outermost function differ, and the frame becomes a second location.
 */
static bool window_is_location(const struct window *w,
			       const struct window_location *l,
			       const struct reporter_frame *f)
{
	const struct window_line *last = &l->lines[l->nlines - 1];
	const struct reporter_function *fn = f->lines[f->nlines - 1].function;

	return l->place == f->place.id && l->space == f->place.space &&
	       l->kind == (uint32_t)f->place.kind && l->nlines == f->nlines &&
	       l->lines[0].line == f->lines[0].line &&
	       last->function->start == fn->start &&
	       !strcmp(strtab_str(&w->strings, last->function->name), fn->name);
}

static struct window_location *
window_new_location(struct window *w, const struct reporter_frame *f)
{
	size_t i, size = f->nlines * sizeof(struct window_line);
	struct pm_exe *of = reporter_place_exe(&f->place);
	struct window_exe *exe = of ? window_get_exe(w, of) : NULL;
	struct window_location *l;
	struct window_line *line;

	if (of && !exe)
		return NULL;
	l = arena_alloc(&w->arena, sizeof(*l) + size);
	if (!l)
		return NULL;
	*l = (struct window_location){ .space = f->place.space,
				       .place = f->place.id,
				       .kind = f->place.kind,
				       .vaddr = f->vaddr,
				       .nlines = f->nlines };
	for (i = 0; i < f->nlines; i++) {
		line = &l->lines[i];
		line->line = f->lines[i].line;
		line->function =
			window_get_function(w, exe, f->lines[i].function);
		if (!line->function)
			return NULL;
	}
	return l;
}

/* The id of a frame's location; 0: there is none. */
static uint32_t window_known_location(const struct window *w,
				      const struct reporter_frame *f)
{
	uint64_t h = reporter_place_hash(&f->place);
	const struct window_location *l;

	HASH_FIND(l, &w->locations, h, node, window_is_location(w, l, f));
	return l ? l->id : 0;
}

/* Likewise, made if need be; 0: out of memory. */
static uint32_t window_get_location(struct window *w,
				    const struct reporter_frame *f)
{
	uint64_t h = reporter_place_hash(&f->place);
	uint32_t id = window_known_location(w, f);
	struct window_location *l;

	if (id)
		return id;
	l = window_new_location(w, f);
	if (!l)
		return 0;
	l->id = w->locations.count + 1;
	hash_insert(&w->locations, &l->node, h);
	STAILQ_INSERT_TAIL(&w->location_list, l, entry);
	return l->id;
}

int window_rename(struct window *w, const struct reporter_frame *f)
{
	uint64_t h = reporter_place_hash(&f->place);
	struct window_function *fn;
	struct window_location *l;

	HASH_FIND(l, &w->locations, h, node,
		  l->place == f->place.id && l->space == f->place.space &&
			  l->kind == (uint32_t)f->place.kind &&
			  l->nlines == 1 && l->lines[0].function->unnamed);
	if (!l)
		return 0;
	fn = window_get_function(w, window_location_exe(l),
				 f->lines[0].function);
	if (!fn)
		return -ENOMEM;
	l->lines[0] = (struct window_line){ fn, f->lines[0].line };
	return 0;
}

/* The ids of the locations of a trace, in w->scratch. False: one is missing. */
static bool window_locations(struct window *w, const struct reporter_trace *t,
			     bool make, size_t *n)
{
	*n = 0;
	for (size_t i = 0; i < t->nframes; i++) {
		if (w->opts.drop_marks &&
		    t->frames[i].place.kind == REPORTER_PLACE_MARK)
			continue;
		if (VECTOR_ROOM(w->scratch, *n, w->scratch_cap))
			return false;
		w->scratch[*n] = make ? window_get_location(w, &t->frames[i])
				      : window_known_location(w, &t->frames[i]);
		if (!w->scratch[(*n)++])
			return false;
	}
	return true;
}

/* The stack of the first n of w->scratch; NULL: there is none. */
static struct window_stack *window_stack_of(const struct window *w, size_t n)
{
	size_t size = n * sizeof(*w->scratch);
	uint64_t h = hash_bytes(w->scratch, size);
	struct window_stack *s;

	HASH_FIND(s, &w->stacks, h, node,
		  s->n == n &&
			  (!size || !memcmp(s->locations, w->scratch, size)));
	return s;
}

static struct window_stack *window_known_stack(struct window *w,
					       const struct reporter_trace *t)
{
	size_t n;

	return window_locations(w, t, false, &n) ? window_stack_of(w, n) : NULL;
}

static struct window_stack *window_find_stack(struct window *w,
					      const struct reporter_trace *t)
{
	struct window_stack *s;
	size_t n, size;

	if (!window_locations(w, t, true, &n))
		return NULL;
	s = window_stack_of(w, n);
	if (s)
		return s;
	size = n * sizeof(*w->scratch);
	s = arena_alloc(&w->arena, sizeof(*s) + size);
	if (!s)
		return NULL;
	s->n = n;
	if (size)
		memcpy(s->locations, w->scratch, size);
	hash_insert(&w->stacks, &s->node, hash_bytes(w->scratch, size));
	return s;
}

static struct window_stack *window_get_stack(struct window *w,
					     const struct reporter_trace *t)
{
	struct reporter_memo *memo = w->serial ? t->memo : NULL;
	struct window_stack *s;

	if (memo && memo->window == w->serial)
		return memo->stack;
	s = window_find_stack(w, t);
	if (s && memo)
		*memo = (struct reporter_memo){ w->serial, s };
	return s;
}

/*
 * The labels of a provisional image are those of its predecessor at best, so
 * they are set again; its main executable may be mapped after its first sample.
 */
static int window_label_image(struct window *w, struct window_image *img,
			      const struct pm_image_info *info)
{
	struct pm_cgroup in = { .engine = NULL };

	if (info->main_exe && !img->main) {
		img->main = window_get_exe(w, info->main_exe);
		if (!img->main)
			return -ENOMEM;
	}
	if (!window_string(w, info->service, &img->service))
		return -ENOMEM;
	if (!img->provisional)
		return 0;
	if (info->cgroup)
		pm_cgroup_parse(info->cgroup, strlen(info->cgroup), &in);
	if (!window_string(w, info->comm, &img->comm) ||
	    !window_string(w, info->exe, &img->exe) ||
	    !window_string(w, info->process_id, &img->process) ||
	    !window_string(w, info->image_id, &img->image) ||
	    !window_string(w, info->cgroup, &img->cgroup) ||
	    !window_part(w, &in.container, &img->container) ||
	    !window_part(w, &in.pod, &img->pod) ||
	    !window_part(w, &in.unit, &img->unit) ||
	    !window_string(w, ledger_entry(info->leader_type), &img->entry))
		return -ENOMEM;
	img->entry_pid = info->leader;
	img->provisional = info->provisional;
	return 0;
}

/* A process that moves to another control group gets new labels. */
static bool window_is_image(const struct window *w,
			    const struct window_image *img,
			    const struct pm_image_info *info)
{
	return img->serial == info->serial &&
	       (img->provisional ||
		!strcmp(strtab_str(&w->strings, img->cgroup),
			info->cgroup ? info->cgroup : ""));
}

static struct window_image *window_find_image(struct window *w,
					      const struct pm_image_info *info)
{
	uint64_t h = hash_u64(info->serial);
	struct window_image *img;

	HASH_FIND(img, &w->images, h, node, window_is_image(w, img, info));
	return img;
}

static struct window_image *window_get_image(struct window *w,
					     const struct pm_image_info *info)
{
	struct window_image *img = window_find_image(w, info);
	uint64_t h = hash_u64(info->serial);

	if (!img) {
		img = arena_alloc(&w->arena, sizeof(*img));
		if (!img)
			return NULL;
		*img = (struct window_image){
			.serial = info->serial,
			.tgid = info->key.tgid,
			.provisional = true,
		};
		hash_insert(&w->images, &img->node, h);
	}
	return window_label_image(w, img, info) ? NULL : img;
}

/* One for each control group that it was in. */
int window_describe(struct window *w, const struct pm_image_info *info)
{
	struct window_image *img;
	struct hash_node *n;

	hash_for_each_match(&w->images, n, hash_u64(info->serial)) {
		img = container_of(n, struct window_image, node);
		if (img->serial == info->serial &&
		    !window_string(w, info->service, &img->service))
			return -ENOMEM;
	}
	return 0;
}

static bool window_hex(struct window *w, const uint8_t *id, size_t len,
		       uint32_t *idp)
{
	char text[IDS_HEX];

	times_ids_hex(id, len, text);
	return window_string(w, text, idp);
}

/* Any program can have as many as it likes. */
static bool window_get_trace(struct window *w, const struct reporter_trace *t,
			     struct window_sample *key)
{
	if (!w->opts.traces || !t->trace_id)
		return true;
	if (w->ntraces >= WINDOW_TRACES) {
		w->untraced++;
		return true;
	}
	return window_hex(w, t->trace_id, IDS_TRACE, &key->trace) &&
	       window_hex(w, t->span_id, IDS_SPAN, &key->span);
}

/* What identifies a sample, beside its image and stack. */
static bool window_get_key(struct window *w, const struct reporter_trace *t,
			   struct window_sample *key)
{
	key->tid = t->tid;
	return window_string(w, t->thread, &key->thread) &&
	       window_string(w, t->reason, &key->reason) &&
	       (t->reason ? window_string(w, t->syscall, &key->syscall) &&
				    window_string(w, t->fd, &key->fd)
			  : window_get_trace(w, t, key));
}

static bool window_is_sample(const struct window_sample *a,
			     const struct window_sample *b)
{
	return a->image == b->image && a->stack == b->stack &&
	       a->tid == b->tid && a->thread == b->thread &&
	       a->reason == b->reason && a->syscall == b->syscall &&
	       a->fd == b->fd;
}

/* NULL: out of memory, or there is none and no room for it. */
static struct window_sample *
window_get_sample(struct window *w, struct window_sample *key, bool room)
{
	uint64_t h = hash_mix((uintptr_t)key->image, (uintptr_t)key->stack);
	struct window_sample *s;

	h = hash_mix(h, (uint64_t)key->tid << 32 | key->thread);
	/* Or the trace. */
	if (key->reason || key->trace)
		h = hash_mix(h, (uint64_t)key->syscall << 32 | key->fd);
	HASH_FIND(s, &w->samples, h, node, window_is_sample(s, key));
	if (s || !room)
		return s;
	s = arena_alloc(&w->arena,
			sizeof(*s) + w->ncolumns * sizeof(*s->values));
	if (!s)
		return NULL;
	*s = *key;
	s->id = w->samples.count;
	w->ntraces += !s->reason && s->trace;
	memset(s->values, 0, w->ncolumns * sizeof(*s->values));
	hash_insert(&w->samples, &s->node, h);
	STAILQ_INSERT_TAIL(&w->sample_list, s, entry);
	return s;
}

/* Values of pprof are signed: the sum saturates. */
static void window_sum(int64_t *sum, uint64_t v)
{
	if (v > (uint64_t)(INT64_MAX - *sum))
		*sum = INT64_MAX;
	else
		*sum += v;
}

static void window_count(struct window *w, struct window_sample *s,
			 uint32_t event, uint64_t value)
{
	const struct reporter_event_type *type = &w->opts.types[event];
	int64_t *sums = &s->values[w->first_column[event]];

	if (type->periodic && !value)
		value = w->opts.period;
	window_sum(&sums[0], 1);
	if (type->value.type)
		window_sum(&sums[1], value);
	w->nsamples++;
	if (s->image->main)
		s->image->main->nsamples++;
}

/* Main executables count by it, too, though it is no sample. */
static void window_count_sum(struct window *w, struct window_sample *s,
			     const struct reporter_trace *t)
{
	int64_t *sums = &s->values[w->first_column[t->event]];

	window_sum(&sums[0], t->count);
	window_sum(&sums[1], t->value);
	w->nsamples++;
	if (s->image->main)
		s->image->main->nsamples++;
}

/* The same for a window whose times have them. */
static uint32_t window_ids(struct window *w, const struct reporter_trace *t)
{
	uint32_t id;

	if (!w->opts.ids || !t->trace_id)
		return 0;
	id = times_ids_get(&w->ids, &w->arena, t->trace_id, t->span_id,
			   t->trace_flags);
	w->untraced += !id;
	return id;
}

static void window_time(struct window *w, const struct window_sample *s,
			const struct reporter_trace *t)
{
	const struct times_sample at = {
		.step = times_step(w->opts.begin, t->time),
		.sample = s->id,
		.cpu = t->cpu,
		.event = t->event,
		.value = t->value,
		.ids = window_ids(w, t),
	};

	times_add(&w->times, &w->arena, &at);
}

const struct window_sample *window_find(struct window *w,
					const struct reporter_trace *t,
					const struct pm_image_info *info)
{
	struct window_sample key = { .image = window_find_image(w, info) };

	if (!key.image || !window_get_key(w, t, &key))
		return NULL;
	key.stack = window_known_stack(w, t);
	return key.stack ? window_get_sample(w, &key, false) : NULL;
}

int window_add(struct window *w, const struct reporter_trace *t,
	       const struct pm_image_info *info)
{
	bool room = !w->opts.room || w->opts.room(w->opts.arg, info);
	struct window_sample key = { .image = NULL };
	struct window_sample *s;

	if (!room && !window_find_image(w, info))
		return -ENOBUFS;
	key.image = window_get_image(w, info);
	if (!key.image || !window_get_key(w, t, &key))
		return -ENOMEM;
	key.stack = window_get_stack(w, t);
	if (!key.stack)
		return -ENOMEM;
	s = window_get_sample(w, &key, room);
	if (!s)
		return room ? -ENOMEM : -ENOBUFS;
	/* A sum has no time of its own, and its window has nothing else. */
	if (w->opts.types[t->event].apart) {
		window_count_sum(w, s, t);
		return 0;
	}
	w->traced += t->trace_id != NULL;
	window_count(w, s, t->event, t->value);
	window_time(w, s, t);
	return 0;
}

static int window_seal_exe(struct window *w, struct window_exe *e)
{
	char hex[2 * SYMBOLIZER_BUILD_ID_MAX + 1] = "";
	const struct symbolizer_segment *segs;
	struct pm_exe_info info;
	size_t i, n;

	pm_exe_info(e->exe, &info);
	segs = pm_exe_segments(e->exe, &n);
	e->kind = info.kind;
	for (i = 0; i < info.ident.build_id_len; i++)
		snprintf(hex + 2 * i, 3, "%02x", info.ident.build_id[i]);
	if (!window_string(w, info.path, &e->path) ||
	    !window_string(w, hex, &e->build_id))
		return -ENOMEM;
	e->segments = arena_alloc(&w->arena, n * sizeof(*e->segments));
	if (!e->segments)
		return -ENOMEM;
	for (i = 0; i < n; i++) {
		if (segs[i].size > UINT64_MAX - segs[i].vaddr)
			continue; /* a broken ELF header */
		e->segments[e->nsegments++] = (struct window_segment){
			.start = segs[i].vaddr,
			.limit = segs[i].vaddr + segs[i].size,
			.offset = segs[i].offset,
		};
	}
	return 0;
}

int window_seal(struct window *w)
{
	struct window_exe *e;
	int err = 0;

	STAILQ_FOREACH(e, &w->exe_list, entry) {
		err = window_seal_exe(w, e);
		if (err)
			break;
	}
	window_put_exes(w);
	free(w->scratch);
	w->scratch = NULL;
	w->scratch_cap = 0;
	return err;
}

/* Clears all sums. The samples by id, to be freed; NULL: out of memory. */
static struct window_sample **window_cleared(struct window *w)
{
	struct window_sample **by_id, *s;
	struct window_exe *e;

	by_id = calloc(w->samples.count + 1, sizeof(struct window_sample *));
	if (!by_id)
		return NULL;
	STAILQ_FOREACH(s, &w->sample_list, entry) {
		by_id[s->id] = s;
		memset(s->values, 0, w->ncolumns * sizeof(*s->values));
	}
	STAILQ_FOREACH(e, &w->exe_list, entry)
		e->nsamples = 0;
	w->nsamples = 0;
	return by_id;
}

int window_cut(struct window *w, int64_t from, int64_t to)
{
	struct window_sample **by_id;
	struct times_cursor c;
	struct times_sample s;

	if (w->times.dropped)
		return -ENODATA;
	if (!w->times.count)
		return 0;
	if (w->nsamples == w->times.count && w->times.min >= from &&
	    w->times.max < to)
		return 0; /* the sums are already those of all samples */
	by_id = window_cleared(w);
	if (!by_id)
		return -ENOMEM;
	times_begin(&w->times, &c);
	while (times_next(&c, &s))
		if (s.step >= from && s.step < to)
			window_count(w, by_id[s.sample], s.event, s.value);
	free(by_id);
	return 0;
}

size_t window_bytes(const struct window *w)
{
	const struct hash *tables[] = { &w->exes,	 &w->functions,
					&w->locations,	 &w->stacks,
					&w->images,	 &w->samples,
					&w->ids.by_bytes };
	size_t i, n = sizeof(*w) + w->arena.bytes + strtab_bytes(&w->strings) +
		      w->scratch_cap * sizeof(*w->scratch);

	for (i = 0; i < ARRAY_SIZE(tables); i++)
		n += (tables[i]->mask + 1) * sizeof(struct hash_node *);
	return n;
}
