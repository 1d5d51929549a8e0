// SPDX-License-Identifier: Apache-2.0
/*
 * kinds: profiles of waits, of the run queue and of wall time; see
 * reporter/query/query.h. Those of waits have the columns of their kind; wall time is
 * made of profiles of CPU time and of waits, when all have been added:
 *
 *	waits, run queue	as they are
 *	[cpu]			the exact CPU time of an image: shared by its samples of
 *				the CPU clock, in proportion; without any, it is
 *				[cpu not sampled]
 *	[on a CPU, not ...]	the difference, as it is
 *
 * So the samples of an image say where its CPU time went, and its sum is exact. Images
 * for which there was no exact account have theirs together, in samples without an
 * image, which their samples share; else their samples stay as they are, and the profile
 * has their number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/kinds.h"

#define KINDS_EXACT "[cpu]"
#define KINDS_NOT_SAMPLED "[cpu not sampled]"

/* Columns while wall time is collected. */
enum {
	WALL, /* final */
	WALL_SAMPLED, /* of the CPU clock */
	WALL_EXACT, /* the kernel's account of an image */
	WALL_COLUMNS,
};

/* Where a column of an input goes. */
struct kind_column {
	const char *from, *unit;
	size_t to;
};

/* 'types' are of the merged profile, the last one the default. */
struct kind {
	struct kind_column columns[8];
	size_t ntypes;
	const char *types[2][2];
};

#define KIND_VALUE "nanoseconds"

static const struct kind kinds[] = {
	[REPORTER_QUERY_WAIT] = {
		.columns = { { "waits", "count", 0 },
			     { "wait", KIND_VALUE, 1 } },
		.ntypes = 2,
		.types = { { "waits", "count" }, { "wait", KIND_VALUE } },
	},
	[REPORTER_QUERY_RUNQUEUE] = {
		.columns = { { "runqueues", "count", 0 },
			     { "runqueue", KIND_VALUE, 1 } },
		.ntypes = 2,
		.types = { { "runqueues", "count" },
			   { "runqueue", KIND_VALUE } },
	},
	[REPORTER_QUERY_WALL] = {
		.columns = { { "wall", KIND_VALUE, WALL },
			     { "wait", KIND_VALUE, WALL },
			     { "runqueue", KIND_VALUE, WALL },
			     { "cpu", KIND_VALUE, WALL_SAMPLED },
			     { "running", KIND_VALUE, WALL_EXACT } },
		.ntypes = 1,
		.types = { { "wall", KIND_VALUE } },
	},
};

static const char *const kind_words[] = {
#define X(name, word) [REPORTER_QUERY_##name] = #word,
	REPORTER_QUERY_KINDS(X)
#undef X
};

const char *reporter_query_kind_word(enum reporter_query_kind kind)
{
	return kind_words[kind];
}

int reporter_query_kind_parse(const char *word, enum reporter_query_kind *kind)
{
	for (size_t i = 0; i < ARRAY_SIZE(kind_words); i++)
		if (!strcmp(kind_words[i], word)) {
			*kind = (enum reporter_query_kind)i;
			return 0;
		}
	return -EINVAL;
}

/* --- inputs ------------------------------------------------------------------------ */

static bool kind_is(const struct input *in, uint64_t string, const char *text)
{
	const struct edit_bytes *s = &in->strings[string];
	size_t len = strlen(text);

	return string < in->nstrings && s->len == len &&
	       !memcmp(s->p, text, len);
}

static const struct kind_column *kind_column(const struct input *in,
					     const struct input_type *t)
{
	const struct kind *k = &kinds[in->q->opts.kind];

	for (const struct kind_column *c = k->columns; c->from; c++)
		if (kind_is(in, t->type, c->from) &&
		    kind_is(in, t->unit, c->unit))
			return c;
	return NULL;
}

static int kind_string(struct reporter_query *q, const char *text, uint32_t *id)
{
	int64_t v = strtab_id(&q->strings, text);

	*id = v < 0 ? 0 : (uint32_t)v;
	return v < 0 ? -ENOMEM : 0;
}

/* Each column of wall time has a type meanwhile; only the first one remains. */
static int kind_begin(struct reporter_query *q)
{
	const struct kind *k = &kinds[q->opts.kind];
	const char *const *last = k->types[k->ntypes - 1];
	int err = 0;

	if (q->ntypes)
		return 0;
	q->ntypes =
		q->opts.kind == REPORTER_QUERY_WALL ? WALL_COLUMNS : k->ntypes;
	for (size_t i = 0; i < k->ntypes && !err; i++) {
		err = kind_string(q, k->types[i][0], &q->types[i].type);
		if (!err)
			err = kind_string(q, k->types[i][1], &q->types[i].unit);
	}
	if (!err)
		err = kind_string(q, last[0], &q->default_type);
	q->period_type = q->types[0];
	return err;
}

int kinds_types(struct input *in)
{
	const struct kind_column *c;
	size_t found = 0;

	if (in->q->ended)
		return input_bad(in, "nothing can be added to wall time");
	for (size_t i = 0; i < in->ntypes; i++) {
		c = kind_column(in, &in->types[i]);
		in->columns[i] = c ? c->to : QUERY_TYPES_MAX;
		found += c != NULL;
		if (c && !strcmp(c->from, "cpu"))
			in->q->parts |= QUERY_PART_CPU;
		else if (c && strcmp(c->from, "wall") != 0)
			in->q->parts |= QUERY_PART_WAITS;
	}
	if (!found)
		return input_bad(in, "a profile without waits, of which no "
				     "other type can be made");
	return kind_begin(in->q);
}

/* Of the time on a CPU only the exact CPU time is shared by samples. */
void kinds_sample(struct input *in)
{
	const struct reporter_query *q = in->q;
	const struct query_function *f;
	bool exact = false;

	if (q->opts.kind != REPORTER_QUERY_WALL || !in->values[WALL_EXACT])
		return;
	if (in->depth) {
		f = query_function_of(q, q->locations[in->stack[0]], 0);
		exact = f && !strcmp(query_text(q, f->name), KINDS_EXACT);
	}
	if (exact)
		return;
	in->values[WALL] =
		query_saturate(in->values[WALL], in->values[WALL_EXACT]);
	in->values[WALL_EXACT] = 0;
}

/* --- wall time --------------------------------------------------------------------- */

/* An image, by the first label of these that its samples have. */
struct wall_group {
	struct hash_node node;
	uint64_t key; /* 0: none of them */
	bool base;
	struct wall_group *in; /* which has its exact time */
	int64_t sampled, exact, seen; /* seen: of 'sampled', so far */
	int64_t given;
};

struct wall {
	struct reporter_query *q;
	struct hash groups;
	struct arena arena;
	uint32_t not_sampled; /* a location */
	uint64_t inexact;
};

uint64_t query_who(const struct reporter_query *q,
		   const struct query_labels *labels)
{
	static const char *const keys[] = { "image", "process", "pid" };

	for (size_t k = 0; k < ARRAY_SIZE(keys); k++)
		for (uint32_t i = 0; i < labels->n; i++) {
			const struct query_label *l = &labels->items[i];

			if (!strcmp(query_text(q, l->key), keys[k]))
				return hash_mix(k + 1,
						l->str ? l->str
						       : hash_u64(l->num)) |
				       1;
		}
	return 0;
}

static struct wall_group *wall_group(struct wall *w, uint64_t key, bool base)
{
	uint64_t h = hash_mix(key, base);
	struct wall_group *g;

	HASH_FIND(g, &w->groups, h, node, g->key == key && g->base == base);
	if (g)
		return g;
	g = arena_alloc(&w->arena, sizeof(*g));
	if (!g)
		return NULL;
	*g = (struct wall_group){ .key = key, .base = base };
	g->in = g;
	hash_insert(&w->groups, &g->node, h);
	return g;
}

static int wall_sum(struct wall *w)
{
	const struct query_sample *s;
	struct wall_group *g;

	for (size_t i = 0; i < w->q->nsamples; i++) {
		s = w->q->samples[i];
		g = wall_group(w, query_who(w->q, s->labels),
			       query_is_base(w->q, s));
		if (!g)
			return -ENOMEM;
		g->sampled =
			query_saturate(g->sampled, s->values[WALL_SAMPLED]);
		g->exact = query_saturate(g->exact, s->values[WALL_EXACT]);
	}
	return 0;
}

/* Images without an account share that of no image. */
static int wall_share(struct wall *w)
{
	struct wall_group *g, *nobody;
	struct hash_node *n, *next;
	size_t i;

	hash_for_each(&w->groups, i, n, next) {
		g = container_of(n, struct wall_group, node);
		if (!g->sampled || g->exact || !g->key)
			continue;
		HASH_FIND(nobody, &w->groups, hash_mix(0, g->base), node,
			  !nobody->key && nobody->base == g->base);
		if (nobody && nobody->exact) {
			nobody->sampled =
				query_saturate(nobody->sampled, g->sampled);
			g->in = nobody;
		} else {
			w->inexact++;
		}
	}
	return 0;
}

/* Its part of the exact time; the parts add up to that. */
static int64_t wall_part(struct wall_group *g, int64_t v)
{
	__int128 upto;

	if (!g->exact || !g->sampled)
		return v;
	g->seen = query_saturate(g->seen, v);
	upto = (__int128)g->seen * g->exact / g->sampled;
	/* Values of a foreign profile may have any sign. */
	upto = MAX(MIN(upto, (__int128)INT64_MAX), (__int128)INT64_MIN);
	v = query_saturate((int64_t)upto, query_negate(g->given));
	g->given = (int64_t)upto;
	return v;
}

static bool wall_keeps(const struct reporter_query *q, const char *key)
{
	for (size_t i = 0; i < LABELS_N; i++)
		if (q->opts.without >> i & 1 &&
		    !strcmp(labels_name((enum labels_key)i), key))
			return false;
	return true;
}

/* Labels as the answer has them. */
static int wall_labels(struct wall *w, const struct query_labels *from,
		       const struct query_labels **out)
{
	const char *prefix = w->q->opts.prefix ? w->q->opts.prefix : "";
	struct query_label items[QUERY_LABELS_MAX + 1];
	char key[REPORTER_PREFIX_MAX + 256];
	size_t n = 0;
	int err = 0;

	*out = from;
	if (!w->q->opts.without && !*prefix)
		return 0;
	for (uint32_t i = 0; i < from->n && !err; i++) {
		const struct query_label *l = &from->items[i];
		const char *name = query_text(w->q, l->key);

		if (!wall_keeps(w->q, name))
			continue;
		items[n] = *l;
		snprintf(key, sizeof(key), "%s%s", prefix, name);
		if (*prefix)
			err = kind_string(w->q, key, &items[n].key);
		n++;
	}
	return err ? err : query_labels_of(w->q, items, n, out);
}

static int wall_add(struct wall *w, const struct query_sample *s,
		    const uint32_t *locations, int64_t v)
{
	const struct query_labels *labels;
	int err = v ? wall_labels(w, s->labels, &labels) : 0;

	return err || !v ? err
			 : query_sample_add(w->q, locations, s->stack->n,
					    labels, &v);
}

static int wall_sample(struct wall *w, const struct query_sample *s)
{
	struct wall_group *g = wall_group(w, query_who(w->q, s->labels),
					  query_is_base(w->q, s));
	const uint32_t *locations = s->stack->locations;
	uint32_t *copy;
	int64_t v = s->values[WALL];
	int err;

	v = query_saturate(v, wall_part(g->in, s->values[WALL_SAMPLED]));
	err = wall_add(w, s, locations, v);
	if (err || !s->values[WALL_EXACT] || g->sampled)
		return err;
	copy = arena_memdup(&w->arena, locations, s->stack->n * sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	copy[0] = w->not_sampled;
	return wall_add(w, s, copy, s->values[WALL_EXACT]);
}

static int wall_samples(struct wall *w)
{
	struct reporter_query *q = w->q;
	struct query_sample **samples = q->samples;
	size_t n = q->nsamples;
	int err;

	q->samples = NULL;
	q->nsamples = q->samples_cap = 0;
	q->ntypes = 1;
	hash_fini(&q->by_sample);
	err = hash_init(&q->by_sample, 0);
	for (size_t i = 0; i < n && !err; i++)
		err = wall_sample(w, samples[i]);
	free(samples);
	if (!err && w->inexact)
		err = query_comment_add(q,
					"images whose CPU time is that of "
					"their samples",
					true, w->inexact);
	return err;
}

static int wall_make(struct reporter_query *q)
{
	struct wall w = { .q = q };
	uint32_t name;
	int err;

	arena_init(&w.arena);
	err = hash_init(&w.groups, 0);
	if (!err)
		err = kind_string(q, KINDS_NOT_SAMPLED, &name);
	if (!err)
		err = query_named_index(q, name, &w.not_sampled);
	if (!err)
		err = wall_sum(&w);
	if (!err)
		err = wall_share(&w);
	if (!err)
		err = wall_samples(&w);
	hash_fini(&w.groups);
	arena_fini(&w.arena);
	return err;
}

int reporter_query_end(struct reporter_query *q)
{
	if (q->opts.kind != REPORTER_QUERY_WALL || !q->inputs || q->ended)
		return 0;
	if (q->parts == QUERY_PART_CPU)
		return -ENODATA;
	q->ended = true;
	return wall_make(q);
}
