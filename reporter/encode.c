// SPDX-License-Identifier: Apache-2.0
/*
 * encode: a sealed window to pprof, see reporter/window.h. Runs on a worker
 * thread; touches nothing but the window and the sink.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/pprof.h"
#include "reporter/window.h"

#define ENCODE_PAGE 4096

/* Keys of labels. X(NAME, "word") */
#define ENCODE_WORDS(X)           \
	X(PID, "pid")             \
	X(TID, "tid")             \
	X(COMM, "comm")           \
	X(THREAD, "thread")       \
	X(EXE, "exe")             \
	X(CGROUP, "cgroup")       \
	X(CONTAINER, "container") \
	X(POD, "pod")             \
	X(UNIT, "unit")           \
	X(ENTRY, "entry")         \
	X(ENTRY_PID, "entry_pid") \
	X(PROCESS, "process")     \
	X(IMAGE, "image")

enum encode_word {
#define X(name, word) ENCODE_##name,
	ENCODE_WORDS(X)
#undef X
	ENCODE_WORD_MAX,
};

static const char *const encode_words[] = {
#define X(name, word) word,
	ENCODE_WORDS(X)
#undef X
};

struct encode {
	struct window *w;
	struct pprof *pprof;
	struct pprof_type *types; /* one a column */
	struct pprof_line *lines; /* of the location at hand */
	uint32_t nlines; /* room */
	uint32_t words[ENCODE_WORD_MAX];
};

static int encode_init_type(struct encode *e,
			    const struct reporter_sample_type *from,
			    struct pprof_type *to)
{
	int64_t type = strtab_id(&e->w->strings, from->type);
	int64_t unit = strtab_id(&e->w->strings, from->unit);

	if (type < 0 || unit < 0)
		return -ENOMEM;
	to->type = type;
	to->unit = unit;
	return 0;
}

static int encode_init_types(struct encode *e)
{
	struct window *w = e->w;
	int err = 0;
	uint32_t i;

	e->types = calloc(w->ncolumns, sizeof(*e->types));
	if (!e->types)
		return -ENOMEM;
	for (i = 0; i < w->ncolumns && !err; i++)
		err = encode_init_type(e, &w->columns[i].type, &e->types[i]);
	return err;
}

static int encode_init_words(struct encode *e)
{
	int64_t id;
	size_t i;

	for (i = 0; i < ENCODE_WORD_MAX; i++) {
		id = strtab_id(&e->w->strings, encode_words[i]);
		if (id < 0)
			return id;
		e->words[i] = id;
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
 * The mapping that an address of an executable lies in; NULL: it is of none. Of
 * the kernel and of anonymous memory there is only what was seen.
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
 * Where one binary has most of the samples, it is what the profile is of, even
 * if none of its own code was seen running.
 */
static void encode_use_main(struct window *w)
{
	struct window_exe *e;

	for (e = w->first_exe; e; e = e->next)
		if (e->kind == PM_EXE_FILE && e->nsegments && e->nsamples &&
		    e->nsamples * 2 >= w->nsamples && !encode_is_used(e))
			e->segments[0].used = true;
}

/* What a mapping has of its frames: readers rely on it. */
static void encode_mark_lines(struct window_segment *s,
			      const struct window_location *l)
{
	uint32_t i;

	s->inline_frames |= l->nlines > 1;
	for (i = 0; i < l->nlines; i++) {
		s->line_numbers |= l->lines[i].line != 0;
		s->filenames |= l->lines[i].function->file != 0;
	}
}

static void encode_use(struct window *w)
{
	struct window_segment *s;
	struct window_location *l;

	for (l = w->first_location; l; l = l->next) {
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
	struct pprof_mapping m = {
		.id = *idp + 1,
		.start = s->start,
		.limit = s->limit,
		.offset = s->offset,
		.filename = exe->path,
		.build_id = exe->build_id,
		.filenames = s->filenames,
		.line_numbers = s->line_numbers,
		.inline_frames = s->inline_frames,
	};

	if (!s->used)
		return;
	/* Without segments an address in the file is an offset into it. */
	if (s == &exe->rest && exe->kind == PM_EXE_FILE)
		m.offset = s->start;
	s->mapping = ++*idp;
	pprof_mapping(e->pprof, &m);
}

struct encode_order {
	struct window_exe *exe;
	size_t seen; /* keeps the order of equals */
};

/* The first mapping names the profile: files, then what is none. */
static const int encode_rank[] = {
	[PM_EXE_FILE] = 0,
	[PM_EXE_ANON] = 1,
	[PM_EXE_KERNEL] = 2,
	[PM_EXE_VDSO] = 3,
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
	for (i = 0, exe = e->w->first_exe; exe; exe = exe->next, i++)
		order[i] = (struct encode_order){ exe, i };
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

static int encode_location(struct encode *e, const struct window_location *l)
{
	const struct window_segment *s =
		encode_segment(window_location_exe(l), l->vaddr);
	struct pprof_location out = { .id = l->id, .nlines = l->nlines };
	uint32_t i;

	if (l->nlines > e->nlines) {
		free(e->lines);
		e->nlines = 0;
		e->lines = calloc(l->nlines, sizeof(*e->lines));
		if (!e->lines)
			return -ENOMEM;
		e->nlines = l->nlines;
	}
	for (i = 0; i < l->nlines; i++)
		e->lines[i] = (struct pprof_line){ l->lines[i].function->id,
						   l->lines[i].line };
	out.lines = e->lines;
	if (s) {
		out.mapping_id = s->mapping;
		out.address = l->vaddr;
	}
	pprof_location(e->pprof, &out);
	return 0;
}

static int encode_locations(struct encode *e)
{
	const struct window_function *f;
	const struct window_location *l;
	struct pprof_function out;
	int err = 0;

	for (l = e->w->first_location; l && !err; l = l->next)
		err = encode_location(e, l);
	for (f = e->w->first_function; f && !err; f = f->next) {
		out = (struct pprof_function){ .id = f->id,
					       .name = f->name,
					       .system_name = f->system_name,
					       .filename = f->file,
					       .start_line = f->start_line };
		pprof_function(e->pprof, &out);
	}
	return err;
}

/* Whether the sample counts at all: a cut may have left it nothing. */
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
	const struct window_image *img = s->image;
	const struct pprof_label all[] = {
		{ e->words[ENCODE_PID], 0, img->tgid },
		{ e->words[ENCODE_TID], 0, s->tid },
		{ e->words[ENCODE_COMM], img->comm, 0 },
		{ e->words[ENCODE_THREAD], s->thread, 0 },
		{ e->words[ENCODE_EXE], img->exe, 0 },
		{ e->words[ENCODE_CGROUP], img->cgroup, 0 },
		{ e->words[ENCODE_CONTAINER], img->container, 0 },
		{ e->words[ENCODE_POD], img->pod, 0 },
		{ e->words[ENCODE_UNIT], img->unit, 0 },
		{ e->words[ENCODE_ENTRY], img->entry, 0 },
		{ e->words[ENCODE_ENTRY_PID], 0,
		  img->entry ? img->entry_pid : 0 },
		{ e->words[ENCODE_PROCESS], img->process, 0 },
		{ e->words[ENCODE_IMAGE], img->image, 0 },
	};
	struct pprof_label labels[ARRAY_SIZE(all)];
	struct pprof_sample out = {
		.locations = s->stack->locations,
		.nlocations = s->stack->n,
		.values = s->values,
		.nvalues = e->w->ncolumns,
		.labels = labels,
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(all); i++)
		if (all[i].str || all[i].num)
			labels[out.nlabels++] = all[i];
	pprof_sample(e->pprof, &out);
}

static void encode_samples(struct encode *e)
{
	const struct window_sample *s;

	for (s = e->w->first_sample; s; s = s->next)
		if (encode_is_counted(e, s))
			encode_sample(e, s);
}

/* --- header and strings -------------------------------------------------- */

/* A string of the profile, appended to 'ids'. */
static int encode_comment(struct encode *e, const char *text, int64_t *ids,
			  size_t *np)
{
	int64_t id = strtab_id(&e->w->strings, text);

	if (id < 0)
		return id;
	ids[(*np)++] = id;
	return 0;
}

/* How much is of each event, where there are several. */
static int encode_event_comments(struct encode *e, int64_t *ids, size_t *np)
{
	const struct window *w = e->w;
	const struct window_sample *s;
	char text[128];
	int64_t n;
	size_t i;

	for (i = 0; i < w->opts.ntypes; i++) {
		if (!window_takes(w, i))
			continue;
		for (n = 0, s = w->first_sample; s; s = s->next)
			n += s->values[w->first_column[i]];
		snprintf(text, sizeof(text), "samples of %s: %lld",
			 w->opts.types[i].label, (long long)n);
		if (encode_comment(e, text, ids, np))
			return -ENOMEM;
	}
	return 0;
}

static int encode_times_comment(struct encode *e, int64_t *ids, size_t *np)
{
	char text[64];

	snprintf(text, sizeof(text),
		 "samples without a time of their own: %llu",
		 (unsigned long long)e->w->times.dropped);
	return encode_comment(e, text, ids, np);
}

static int encode_comments(struct encode *e, const struct window_meta *meta,
			   int64_t **idsp, size_t *np)
{
	const char *p = meta->comments, *end = p + meta->comments_len;
	bool several = e->w->opts.events & (e->w->opts.events - 1);
	int err = 0;

	/* No line is shorter than its NUL. */
	*idsp = calloc(meta->comments_len + REPORTER_EVENTS_MAX + 1,
		       sizeof(**idsp));
	if (!*idsp)
		return -ENOMEM;
	for (; p < end && !err; p += strlen(p) + 1)
		err = encode_comment(e, p, *idsp, np);
	if (!err && several)
		err = encode_event_comments(e, *idsp, np);
	if (!err && e->w->times.dropped)
		err = encode_times_comment(e, *idsp, np);
	return err;
}

/* The period is that of the first periodic event; without one, a sample. */
static void encode_period(const struct encode *e, struct pprof_header *h)
{
	const struct window *w = e->w;
	uint32_t i;

	h->period_type = e->types[0];
	h->period = 1;
	for (i = 1; i < w->ncolumns; i++) {
		if (!w->opts.types[w->columns[i].event].periodic ||
		    w->columns[i - 1].event != w->columns[i].event)
			continue;
		h->period_type = e->types[i];
		h->period = w->opts.period;
		return;
	}
}

static int encode_header(struct encode *e, const struct window_meta *meta)
{
	bool valued = e->w->ncolumns > 1 &&
		      e->w->columns[1].event == e->w->columns[0].event;
	struct pprof_header h = {
		.time_ns = meta->time_ns,
		.duration_ns = meta->duration_ns,
		.types = e->types,
		.ntypes = e->w->ncolumns,
		.default_type = e->types[valued].type,
	};
	int64_t *comments = NULL;
	int err;

	encode_period(e, &h);
	err = encode_comments(e, meta, &comments, &h.ncomments);
	if (!err) {
		h.comments = comments;
		pprof_header(e->pprof, &h);
	}
	free(comments);
	return err;
}

int reporter_window_encode(struct window *w, const struct window_meta *meta,
			   struct sink *sink)
{
	struct encode e = { .w = w };
	uint32_t i;
	int err;

	err = window_cut(w, meta->from, meta->to);
	if (err && err != -ENODATA) /* more than was asked for is not lost */
		return err;
	err = pprof_new(&e.pprof, sink);
	if (!err)
		err = encode_init_types(&e);
	if (!err)
		err = encode_init_words(&e);
	if (!err)
		err = encode_header(&e, meta);
	if (!err)
		err = encode_mappings(&e);
	if (!err)
		err = encode_locations(&e);
	if (!err) {
		encode_samples(&e);
		for (i = 0; i < w->strings.count; i++)
			pprof_string(e.pprof, strtab_str(&w->strings, i));
		err = pprof_error(e.pprof);
	}
	free(e.lines);
	free(e.types);
	pprof_free(e.pprof);
	return err;
}
