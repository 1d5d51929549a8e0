// SPDX-License-Identifier: Apache-2.0
/*
 * encode: writes a sealed window as a pprof profile, see reporter/window.h. Runs
 * on a worker thread; touches nothing but the window and the sink. Scratch
 * memory comes from the window's arena and is freed with it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/labels.h"
#include "reporter/pprof.h"
#include "reporter/window.h"

#define ENCODE_PAGE 4096

struct encode {
	struct window *w;
	const struct reporter_form *form;
	struct pprof pprof;
	/* Strings that are used, in the order of the profile; and their ids. */
	uint32_t *strings, *string_ids;
	size_t nstrings, strings_cap, ids_cap;
	bool nomem;
	Perftools__Profiles__ValueType *type, **types; /* by column */
	uint64_t *ids; /* room for the locations of any stack */
	Perftools__Profiles__Line *line, **lines; /* likewise, for lines */
	int64_t keys[LABELS_N]; /* strings of the profile */
	int64_t *comments; /* likewise */
	size_t ncomments, comments_cap;
};

/* Room for the ids of all strings of the window, at first 0. */
static int encode_string_room(struct encode *e)
{
	size_t from;

	while (e->ids_cap < e->w->strings.count) {
		from = e->ids_cap;
		if (VECTOR_ROOM(e->string_ids, from, e->ids_cap))
			return -ENOMEM;
		memset(e->string_ids + from, 0,
		       (e->ids_cap - from) * sizeof(*e->string_ids));
	}
	return 0;
}

/* The id in the profile of a string of the window. */
static int64_t encode_text(struct encode *e, uint32_t string)
{
	if (!string || e->string_ids[string])
		return string ? e->string_ids[string] : 0;
	if (VECTOR_ROOM(e->strings, e->nstrings, e->strings_cap)) {
		e->nomem = true;
		return 0;
	}
	e->strings[e->nstrings++] = string;
	e->string_ids[string] = (uint32_t)e->nstrings;
	return e->string_ids[string];
}

static int encode_string(struct encode *e, const char *s, int64_t *idp)
{
	int64_t string = strtab_id(&e->w->strings, s);

	if (string < 0 || encode_string_room(e))
		return -ENOMEM;
	*idp = encode_text(e, (uint32_t)string);
	return e->nomem ? -ENOMEM : 0;
}

static int encode_init_types(struct encode *e)
{
	struct window *w = e->w;
	uint32_t i;

	e->type = arena_alloc(&w->arena, w->ncolumns * sizeof(*e->type));
	e->types = arena_alloc(&w->arena, w->ncolumns * sizeof(e->type));
	if (!e->type || !e->types)
		return -ENOMEM;
	for (i = 0; i < w->ncolumns; i++) {
		e->types[i] = &e->type[i];
		perftools__profiles__value_type__init(&e->type[i]);
		if (encode_string(e, w->columns[i].type.type,
				  &e->type[i].type) ||
		    encode_string(e, w->columns[i].type.unit, &e->type[i].unit))
			return -ENOMEM;
	}
	return 0;
}

static int encode_init_keys(struct encode *e)
{
	char key[REPORTER_PREFIX_MAX + 32];
	size_t i;
	int err = 0;

	for (i = 0; i < LABELS_N && !err; i++) {
		if (e->form->without >> i & 1)
			continue;
		snprintf(key, sizeof(key), "%s%s", e->form->prefix,
			 labels_name((enum labels_key)i));
		err = encode_string(e, key, &e->keys[i]);
	}
	return err;
}

/* Room for the deepest stack, and for the location with the most lines. */
static int encode_init_room(struct encode *e)
{
	struct arena *a = &e->w->arena;
	const struct window_location *l;
	const struct window_sample *s;
	uint32_t i, ids = 0, lines = 0;

	STAILQ_FOREACH(s, &e->w->sample_list, entry)
		ids = MAX(ids, s->stack->n);
	STAILQ_FOREACH(l, &e->w->location_list, entry)
		lines = MAX(lines, l->nlines);
	e->ids = arena_alloc(a, ids * sizeof(*e->ids));
	e->line = arena_alloc(a, lines * sizeof(*e->line));
	e->lines = arena_alloc(a, lines * sizeof(e->line));
	if (!e->ids || !e->line || !e->lines)
		return -ENOMEM;
	for (i = 0; i < lines; i++) {
		perftools__profiles__line__init(&e->line[i]);
		e->lines[i] = &e->line[i];
	}
	return 0;
}

/* --- mappings ------------------------------------------------------------ */

static void encode_widen(struct window_segment *s, uint64_t vaddr)
{
	uint64_t start = vaddr & ~(uint64_t)(ENCODE_PAGE - 1);
	uint64_t last = vaddr | (ENCODE_PAGE - 1);
	uint64_t limit = last < UINT64_MAX ? last + 1 : last;

	s->start = s->used ? MIN(s->start, start) : start;
	s->limit = MAX(s->limit, limit);
	s->used = true;
}

/*
 * The mapping of an address of an executable; NULL without executable. The
 * kernel and anonymous memory have one mapping, as wide as the addresses seen.
 */
static struct window_segment *encode_segment(struct window_exe *exe,
					     uint64_t vaddr)
{
	uint32_t i;

	if (!exe)
		return NULL;
	if (exe->kind == PM_EXE_FILE || exe->kind == PM_EXE_VDSO)
		for (i = 0; i < exe->nsegments; i++)
			if (vaddr >= exe->segments[i].start &&
			    vaddr < exe->segments[i].limit)
				return &exe->segments[i];
	return &exe->rest;
}

static bool encode_is_used(const struct window_exe *e)
{
	uint32_t i;

	for (i = 0; i < e->nsegments; i++)
		if (e->segments[i].used)
			return true;
	return e->rest.used;
}

/*
 * A main executable with half of the samples or more gets a mapping even if no
 * frame is in it: readers take the name of the profile from there.
 */
static void encode_use_main(struct window *w)
{
	struct window_exe *e;

	STAILQ_FOREACH(e, &w->exe_list, entry)
		if (e->kind == PM_EXE_FILE && e->nsegments && e->nsamples &&
		    e->nsamples * 2 >= w->nsamples && !encode_is_used(e))
			e->segments[0].used = true;
}

/* What the mapping's flags report of its frames; readers rely on them. */
static void encode_mark_lines(struct window_segment *s,
			      const struct window_location *l)
{
	uint32_t i;

	s->inline_frames |= l->nlines > 1;
	for (i = 0; i < l->nlines; i++) {
		s->line_numbers |= l->lines[i].line != 0;
		s->unnamed |= l->lines[i].function->unnamed;
		s->filenames |= l->lines[i].function->file != 0;
	}
}

static void encode_use(struct window *w)
{
	struct window_segment *s;
	struct window_location *l;

	STAILQ_FOREACH(l, &w->location_list, entry) {
		s = encode_segment(window_location_exe(l), l->vaddr);
		if (s && s == &window_location_exe(l)->rest)
			encode_widen(s, l->vaddr);
		else if (s)
			s->used = true;
		if (s)
			encode_mark_lines(s, l);
	}
	encode_use_main(w);
}

static void encode_mapping(struct encode *e, const struct window_exe *exe,
			   struct window_segment *s, uint32_t *idp)
{
	Perftools__Profiles__Mapping m = PERFTOOLS__PROFILES__MAPPING__INIT;

	if (!s->used)
		return;
	m.id = s->mapping = ++*idp;
	m.memory_start = s->start;
	m.memory_limit = s->limit;
	m.file_offset = s->offset;
	/* Without segments an address in the file is an offset into it. */
	if (s == &exe->rest && exe->kind == PM_EXE_FILE)
		m.file_offset = s->start;
	m.filename = encode_text(e, exe->path);
	m.build_id = encode_text(e, exe->build_id);
	/*
	 * Keeps readers from looking for symbols on the machine they are on, or
	 * at a server. One location without a name makes them look.
	 */
	m.has_functions = !s->unnamed;
	m.has_filenames = s->filenames;
	m.has_line_numbers = s->line_numbers;
	m.has_inline_frames = s->inline_frames;
	pprof_put(&e->pprof, PPROF_MAPPING, &m.base);
}

struct encode_order {
	struct window_exe *exe;
	size_t seen; /* order of insertion, among equals */
};

/* Files first: readers name the profile after the first mapping. */
static const int encode_rank[] = {
	[PM_EXE_FILE] = 0, [PM_EXE_ANON] = 1,	  [PM_EXE_KERNEL] = 2,
	[PM_EXE_VDSO] = 3, [PM_EXE_VSYSCALL] = 4, /* the last */
};

static int encode_compare(const void *a, const void *b)
{
	const struct encode_order *x = a, *y = b;

	if (x->exe->kind != y->exe->kind)
		return encode_rank[x->exe->kind] - encode_rank[y->exe->kind];
	if (x->exe->nsamples != y->exe->nsamples)
		return x->exe->nsamples < y->exe->nsamples ? 1 : -1;
	return x->seen < y->seen ? -1 : 1;
}

static int encode_mappings(struct encode *e)
{
	size_t i, k, n = e->w->exes.count;
	struct encode_order *order = calloc(n + 1, sizeof(*order));
	struct window_exe *exe;
	uint32_t id = 0;

	if (!order)
		return -ENOMEM;
	encode_use(e->w);
	i = 0;
	STAILQ_FOREACH(exe, &e->w->exe_list, entry) {
		order[i] = (struct encode_order){ exe, i };
		i++;
	}
	qsort(order, n, sizeof(*order), encode_compare);
	for (i = 0; i < n; i++) {
		exe = order[i].exe;
		for (k = 0; k < exe->nsegments; k++)
			encode_mapping(e, exe, &exe->segments[k], &id);
		encode_mapping(e, exe, &exe->rest, &id);
	}
	free(order);
	return 0;
}

/* --- the other tables ---------------------------------------------------- */

/* A mark is a text, and no code that another could name. */
static bool encode_is_bare(const struct encode *e,
			   const struct window_location *l)
{
	return e->form->bare && l->kind == REPORTER_PLACE_EXE &&
	       l->lines[0].function->unnamed;
}

/* Numbers the functions that the profile has. */
static void encode_number(struct encode *e)
{
	struct window_function *f;
	uint32_t id = 0;

	STAILQ_FOREACH(f, &e->w->function_list, entry)
		f->id = e->form->bare && f->exe && f->unnamed ? 0 : ++id;
}

static void encode_location(struct encode *e, const struct window_location *l)
{
	Perftools__Profiles__Location m = PERFTOOLS__PROFILES__LOCATION__INIT;
	const struct window_segment *s =
		encode_segment(window_location_exe(l), l->vaddr);

	m.id = l->id;
	if (s) {
		m.mapping_id = s->mapping;
		m.address = l->vaddr;
	}
	for (; m.n_line < l->nlines && !encode_is_bare(e, l); m.n_line++) {
		e->line[m.n_line].function_id = l->lines[m.n_line].function->id;
		e->line[m.n_line].line = l->lines[m.n_line].line;
	}
	m.line = e->lines;
	pprof_put(&e->pprof, PPROF_LOCATION, &m.base);
}

static void encode_function(struct encode *e, const struct window_function *f)
{
	Perftools__Profiles__Function m = PERFTOOLS__PROFILES__FUNCTION__INIT;

	if (!f->id)
		return;
	m.id = f->id;
	m.name = encode_text(e, f->name);
	m.system_name = encode_text(e, f->system_name);
	m.filename = encode_text(e, f->file);
	m.start_line = f->start_line;
	pprof_put(&e->pprof, PPROF_FUNCTION, &m.base);
}

/* A cut may have left the sample nothing. */
static bool encode_is_counted(const struct encode *e,
			      const struct window_sample *s)
{
	uint32_t i = 0;

	while (i < e->w->ncolumns && !s->values[i])
		i++;
	return i < e->w->ncolumns;
}

static void encode_sample(struct encode *e, const struct window_sample *s)
{
	struct labels_value values[LABELS_N];
	Perftools__Profiles__Sample m = PERFTOOLS__PROFILES__SAMPLE__INIT;
	Perftools__Profiles__Label label[ARRAY_SIZE(values)], *l = label;
	Perftools__Profiles__Label *labels[ARRAY_SIZE(values)];
	size_t i;

	labels_of(s, e->form->without, values);
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		if (!values[i].str && !values[i].num)
			continue;
		perftools__profiles__label__init(l);
		l->key = e->keys[i];
		l->str = encode_text(e, values[i].str);
		l->num = values[i].num;
		labels[m.n_label++] = l++;
	}
	m.label = labels;
	for (i = 0; i < s->stack->n; i++)
		e->ids[i] = s->stack->locations[i];
	m.location_id = e->ids;
	m.n_location_id = s->stack->n;
	m.value = (int64_t *)s->values;
	m.n_value = e->w->ncolumns;
	pprof_put(&e->pprof, PPROF_SAMPLE, &m.base);
}

static void encode_tables(struct encode *e)
{
	const struct window *w = e->w;
	const struct window_location *l;
	const struct window_function *f;
	const struct window_sample *s;
	uint32_t i;

	STAILQ_FOREACH(l, &w->location_list, entry)
		encode_location(e, l);
	STAILQ_FOREACH(f, &w->function_list, entry)
		encode_function(e, f);
	STAILQ_FOREACH(s, &w->sample_list, entry)
		if (encode_is_counted(e, s))
			encode_sample(e, s);
	pprof_string(&e->pprof, "");
	for (i = 0; i < e->nstrings; i++)
		pprof_string(&e->pprof, strtab_str(&w->strings, e->strings[i]));
}

/* --- members of Profile itself ------------------------------------------- */

static int encode_comment(struct encode *e, const char *text)
{
	if (VECTOR_ROOM(e->comments, e->ncomments, e->comments_cap))
		return -ENOMEM;
	return encode_string(e, text, &e->comments[e->ncomments++]);
}

/* The number of samples by event, if the profile has several. */
static int encode_event_comments(struct encode *e)
{
	const struct window *w = e->w;
	const struct window_sample *s;
	char text[128];
	int err = 0;
	int64_t n;
	size_t i;

	if (!(w->opts.events & (w->opts.events - 1)))
		return 0;
	for (i = 0; i < w->opts.ntypes && !err; i++) {
		if (!window_takes(w, i))
			continue;
		n = 0;
		STAILQ_FOREACH(s, &w->sample_list, entry)
			n += s->values[w->first_column[i]];
		snprintf(text, sizeof(text), "samples of %s: %lld",
			 w->opts.types[i].label, (long long)n);
		err = encode_comment(e, text);
	}
	return err;
}

static int encode_trace_comment(struct encode *e)
{
	char text[96];
	int err = 0;

	if (e->w->traced) {
		snprintf(text, sizeof(text), "samples with a trace: %llu",
			 (unsigned long long)e->w->traced);
		err = encode_comment(e, text);
	}
	if (err || !e->w->untraced)
		return err;
	snprintf(text, sizeof(text),
		 "samples without their trace, as there were too many: %llu",
		 (unsigned long long)e->w->untraced);
	return encode_comment(e, text);
}

static int encode_comments(struct encode *e, const struct window_meta *meta)
{
	const char *p = meta->comments, *end = p + meta->comments_len;
	char text[64];
	int err = 0;

	for (; p < end && !err; p += strlen(p) + 1)
		err = encode_comment(e, p);
	if (!err)
		err = encode_event_comments(e);
	if (!err)
		err = encode_trace_comment(e);
	if (err || !e->w->times.dropped)
		return err;
	snprintf(text, sizeof(text),
		 "samples without a time of their own: %llu",
		 (unsigned long long)e->w->times.dropped);
	return encode_comment(e, text);
}

/* The period is that of the first periodic event; if there is none, 1 sample. */
static void encode_period(const struct encode *e,
			  Perftools__Profiles__Profile *m)
{
	const struct window *w = e->w;
	uint32_t i;

	m->period_type = e->types[0];
	m->period = 1;
	for (i = 1; i < w->ncolumns; i++) {
		if (!w->opts.types[w->columns[i].event].periodic ||
		    w->columns[i - 1].event != w->columns[i].event)
			continue;
		m->period_type = e->types[i];
		m->period = w->opts.period;
		return;
	}
}

static int encode_profile(struct encode *e, const struct window_meta *meta)
{
	Perftools__Profiles__Profile m = PERFTOOLS__PROFILES__PROFILE__INIT;
	const struct window *w = e->w;
	bool valued =
		w->ncolumns > 1 && w->columns[1].event == w->columns[0].event;
	int err = encode_comments(e, meta);

	if (err)
		return err;
	encode_period(e, &m);
	m.sample_type = e->types;
	m.n_sample_type = w->ncolumns;
	m.default_sample_type = e->type[valued].type;
	m.time_nanos = meta->time_ns;
	m.duration_nanos = meta->duration_ns;
	m.comment = e->comments;
	m.n_comment = e->ncomments;
	pprof_put(&e->pprof, PPROF_PROFILE, &m.base);
	return 0;
}

int reporter_window_encode(struct window *w, const struct window_meta *meta,
			   struct sink *sink)
{
	struct encode e = {
		.w = w,
		.form = &meta->form,
		.pprof = { .sink = sink },
	};
	int err;

	err = window_cut(w, meta->from, meta->to);
	/* Samples without a time cannot be cut: then the profile has all. */
	if (err && err != -ENODATA)
		return err;
	err = encode_string_room(&e);
	if (!err)
		err = encode_init_types(&e);
	if (!err)
		err = encode_init_keys(&e);
	if (!err)
		err = encode_init_room(&e);
	/* After the comments, which have numbers of samples. */
	if (!err)
		err = encode_profile(&e, meta);
	if (!err && meta->terms)
		labels_filter(w, meta->terms);
	if (!err && e.form->without)
		err = labels_merge(w, e.form->without);
	if (!err)
		err = encode_mappings(&e);
	if (!err) {
		encode_number(&e);
		encode_tables(&e);
		err = e.nomem ? -ENOMEM : e.pprof.err;
	}
	free(e.strings);
	free(e.string_ids);
	free(e.comments);
	pprof_fini(&e.pprof);
	return err;
}
