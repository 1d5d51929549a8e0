// SPDX-License-Identifier: Apache-2.0
/*
 * merge: the tables of the merged profile, in which equal elements are one; see
 * reporter/query/model.h. Mappings are equal as `go tool pprof` has it: by build id
 * or path, offset, and size in pages. Addresses move with the start of the mapping.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/model.h"

#define QUERY_PAGE 4096

int64_t query_saturate(int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return a < 0 ? INT64_MIN : INT64_MAX;
}

int64_t query_negate(int64_t v)
{
	return v == INT64_MIN ? INT64_MAX : -v;
}

int query_room(const struct reporter_query *q)
{
	size_t bytes = q->arena.bytes + strtab_bytes(&q->strings);

	return bytes < QUERY_BYTES_MAX && q->strings.count < QUERY_STRINGS_MAX
		       ? 0
		       : -EFBIG;
}

const char *query_text(const struct reporter_query *q, uint32_t string)
{
	return strtab_str(&q->strings, string);
}

/* Halves away from zero, as Go's math.Round() has it. */
static int64_t query_round(double v)
{
	v = round(v);
	if (v >= 0x1p63)
		return INT64_MAX;
	return v < -0x1p63 ? INT64_MIN : (int64_t)v;
}

/* --- mappings ------------------------------------------------------------------- */

static uint64_t mapping_pages(const struct query_mapping *m)
{
	uint64_t size = m->limit - m->start;

	return size / QUERY_PAGE + (size % QUERY_PAGE != 0);
}

static uint32_t mapping_name(const struct query_mapping *m)
{
	return m->build_id ? m->build_id : m->file;
}

static bool mapping_equal(const struct query_mapping *a,
			  const struct query_mapping *b)
{
	if (mapping_name(a) != mapping_name(b) || a->widened != b->widened)
		return false;
	return a->widened ||
	       (a->offset == b->offset && mapping_pages(a) == mapping_pages(b));
}

static void mapping_join(struct query_mapping *m, const struct query_mapping *n)
{
	if (m->widened) {
		m->start = MIN(m->start, n->start);
		m->limit = MAX(m->limit, n->limit);
	}
	/* has_functions must hold for both, the others for one. */
	m->flags[0] &= n->flags[0];
	for (size_t i = 1; i < ARRAY_SIZE(m->flags); i++)
		m->flags[i] |= n->flags[i];
}

int query_mapping_index(struct reporter_query *q, struct query_mapping *m,
			uint32_t *index)
{
	uint64_t h = hash_mix(mapping_name(m), m->widened);
	struct query_mapping *old;
	int err;

	if (!m->widened)
		h = hash_mix(hash_mix(h, m->offset), mapping_pages(m));
	HASH_FIND(old, &q->by_mapping, h, node, mapping_equal(old, m));
	if (old) {
		mapping_join(old, m);
		*index = old->id;
		return 0;
	}
	if (q->nmappings >= QUERY_MAPPINGS_MAX)
		return -EFBIG;
	err = VECTOR_ROOM(q->mappings, q->nmappings, q->mappings_cap);
	old = err ? NULL : arena_memdup(&q->arena, m, sizeof(*m));
	if (!old)
		return -ENOMEM;
	hash_insert(&q->by_mapping, &old->node, h);
	*index = old->id = (uint32_t)q->nmappings;
	q->mappings[q->nmappings++] = old;
	return query_room(q);
}

/* --- functions and locations ------------------------------------------------------ */

int query_function_index(struct reporter_query *q,
			 const struct query_function *f, uint32_t *index)
{
	uint64_t h = hash_mix(hash_mix(f->name, f->system_name),
			      hash_mix(f->file, (uint64_t)f->start_line));
	struct query_function *old;

	HASH_FIND(old, &q->by_function, h, node,
		  old->name == f->name && old->system_name == f->system_name &&
			  old->file == f->file &&
			  old->start_line == f->start_line);
	if (old) {
		*index = old->id;
		return 0;
	}
	if (q->nfunctions >= QUERY_FUNCTIONS_MAX)
		return -EFBIG;
	if (VECTOR_ROOM(q->functions, q->nfunctions, q->functions_cap))
		return -ENOMEM;
	old = arena_memdup(&q->arena, f, sizeof(*f));
	if (!old)
		return -ENOMEM;
	hash_insert(&q->by_function, &old->node, h);
	*index = old->id = (uint32_t)q->nfunctions;
	q->functions[q->nfunctions++] = old;
	return query_room(q);
}

static uint64_t location_hash(const struct query_location *l,
			      const struct query_line *lines, size_t n)
{
	uint64_t h = hash_mix(hash_mix(l->address, l->mapping), l->folded);

	for (size_t i = 0; i < n; i++)
		h = hash_mix(hash_mix(h, lines[i].function),
			     hash_mix((uint64_t)lines[i].line,
				      (uint64_t)lines[i].column));
	return h;
}

static bool location_equal(const struct query_location *a,
			   const struct query_location *b,
			   const struct query_line *lines, size_t n)
{
	if (a->address != b->address || a->mapping != b->mapping ||
	    a->folded != b->folded || a->nlines != n)
		return false;
	for (size_t i = 0; i < n; i++)
		if (a->lines[i].function != lines[i].function ||
		    a->lines[i].line != lines[i].line ||
		    a->lines[i].column != lines[i].column)
			return false;
	return true;
}

int query_location_index(struct reporter_query *q,
			 const struct query_location *l,
			 const struct query_line *lines, size_t n,
			 uint32_t *index)
{
	uint64_t h = location_hash(l, lines, n);
	struct query_location *old;

	HASH_FIND(old, &q->by_location, h, node,
		  location_equal(old, l, lines, n));
	if (old) {
		*index = old->id;
		return 0;
	}
	if (q->nlocations >= QUERY_LOCATIONS_MAX)
		return -EFBIG;
	if (VECTOR_ROOM(q->locations, q->nlocations, q->locations_cap))
		return -ENOMEM;
	old = arena_alloc(&q->arena, sizeof(*old) + n * sizeof(*lines));
	if (!old)
		return -ENOMEM;
	*old = *l;
	old->nlines = (uint32_t)n;
	if (n)
		memcpy(old->lines, lines, n * sizeof(*lines));
	hash_insert(&q->by_location, &old->node, h);
	*index = old->id = (uint32_t)q->nlocations;
	q->locations[q->nlocations++] = old;
	return query_room(q);
}

int query_named_index(struct reporter_query *q, uint32_t name, uint32_t *index)
{
	struct query_location l = { .mapping = QUERY_NONE };
	struct query_function f = { .name = name, .system_name = name };
	struct query_line line = { .function = 0 };
	int err = query_function_index(q, &f, &line.function);

	return err ? err : query_location_index(q, &l, &line, 1, index);
}

/* --- samples ---------------------------------------------------------------------- */

static int stack_of(struct reporter_query *q, const uint32_t *locations,
		    size_t n, const struct query_stack **out)
{
	static const uint32_t none[1];
	struct query_stack *s;
	uint64_t h;

	locations = n ? locations : none; /* NULL is no argument of memcmp(3) */
	h = hash_bytes(locations, n * sizeof(*locations));

	HASH_FIND(s, &q->by_stack, h, node,
		  s->n == n && !memcmp(s->locations, locations,
				       n * sizeof(*locations)));
	*out = s;
	if (s)
		return 0;
	s = arena_alloc(&q->arena, sizeof(*s) + n * sizeof(*locations));
	if (!s)
		return -ENOMEM;
	s->n = (uint32_t)n;
	memcpy(s->locations, locations, n * sizeof(*locations));
	hash_insert(&q->by_stack, &s->node, h);
	*out = s;
	return query_room(q);
}

static int label_compare(const void *a, const void *b)
{
	const struct query_label *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->str != y->str)
		return x->str < y->str ? -1 : 1;
	if (x->num != y->num)
		return x->num < y->num ? -1 : 1;
	return x->unit < y->unit ? -1 : x->unit > y->unit;
}

int query_labels_of(struct reporter_query *q, struct query_label *items,
		    size_t n, const struct query_labels **out)
{
	struct query_labels *l;
	uint64_t h = n;
	size_t i;

	if (n > 1)
		qsort(items, n, sizeof(*items), label_compare);
	for (i = 0; i < n; i++)
		h = hash_mix(hash_mix(h, items[i].key),
			     hash_mix(items[i].str, (uint64_t)items[i].num));
	HASH_FIND(l, &q->by_labels, h, node,
		  l->n == n &&
			  (!n || !memcmp(l->items, items, n * sizeof(*items))));
	*out = l;
	if (l)
		return 0;
	l = arena_alloc(&q->arena, sizeof(*l) + n * sizeof(*items));
	if (!l)
		return -ENOMEM;
	l->n = (uint32_t)n;
	if (n)
		memcpy(l->items, items, n * sizeof(*items));
	hash_insert(&q->by_labels, &l->node, h);
	*out = l;
	return query_room(q);
}

int query_sample_add(struct reporter_query *q, const uint32_t *locations,
		     size_t n, const struct query_labels *labels,
		     const int64_t *values)
{
	size_t i, bytes = q->ntypes * sizeof(*values);
	const struct query_stack *stack;
	struct query_sample *s;
	int err = stack_of(q, locations, n, &stack);
	uint64_t h;

	if (err)
		return err;
	h = hash_mix((uintptr_t)stack, (uintptr_t)labels);
	HASH_FIND(s, &q->by_sample, h, node,
		  s->stack == stack && s->labels == labels);
	if (s) {
		for (i = 0; i < q->ntypes; i++)
			s->values[i] = query_saturate(s->values[i], values[i]);
		return 0;
	}
	if (q->nsamples >= QUERY_SAMPLES_MAX)
		return -EFBIG;
	if (VECTOR_ROOM(q->samples, q->nsamples, q->samples_cap))
		return -ENOMEM;
	s = arena_alloc(&q->arena, sizeof(*s) + bytes);
	if (!s)
		return -ENOMEM;
	s->stack = stack;
	s->labels = labels;
	memcpy(s->values, values, bytes);
	hash_insert(&q->by_sample, &s->node, h);
	q->samples[q->nsamples++] = s;
	return 0;
}

/* --- differences ------------------------------------------------------------------ */

void reporter_query_normalize(struct reporter_query *q)
{
	double all[QUERY_TYPES_MAX] = { 0 }, base[QUERY_TYPES_MAX] = { 0 };
	struct query_sample *s;
	size_t i, k;

	for (i = 0; i < q->nsamples; i++) {
		s = q->samples[i];
		for (k = 0; k < q->ntypes; k++)
			*(query_is_base(q, s) ? &base[k] : &all[k]) +=
				(double)s->values[k];
	}
	for (i = 0; i < q->nsamples; i++) {
		s = q->samples[i];
		for (k = 0; k < q->ntypes && !query_is_base(q, s); k++)
			s->values[k] = query_round(
				all[k] == 0 ? 0
					    : (double)s->values[k] *
						      (-base[k] / all[k]));
	}
}

/* --- comments --------------------------------------------------------------------- */

int query_comment_add(struct reporter_query *q, const char *text, bool counted,
		      uint64_t count)
{
	int64_t id = strtab_id(&q->strings, text);
	struct query_comment *c;
	size_t i;

	if (id < 0)
		return -ENOMEM;
	for (i = 0; i < q->ncomments; i++) {
		c = &q->comments[i];
		if (c->text != id || c->counted != counted)
			continue;
		if (__builtin_add_overflow(c->count, count, &c->count))
			c->count = UINT64_MAX;
		return 0;
	}
	if (q->ncomments == QUERY_COMMENTS_MAX)
		return 0;
	if (VECTOR_ROOM(q->comments, q->ncomments, q->comments_cap))
		return -ENOMEM;
	q->comments[q->ncomments++] =
		(struct query_comment){ (uint32_t)id, counted, count };
	return 0;
}

/* --- the whole -------------------------------------------------------------------- */

/* The label of `go tool pprof -diff_base`, which an input may have already. */
static int query_init_base(struct reporter_query *q)
{
	int64_t key = strtab_id(&q->strings, "pprof::base");
	int64_t value = strtab_id(&q->strings, "true");

	if (key < 0 || value < 0)
		return -ENOMEM;
	q->base_key = (uint32_t)key;
	q->base_value = (uint32_t)value;
	return 0;
}

static int query_init(struct reporter_query *q)
{
	struct hash *const tables[] = { &q->by_mapping,	 &q->by_function,
					&q->by_location, &q->by_stack,
					&q->by_labels,	 &q->by_sample,
					&q->by_image };
	int err = strtab_init(&q->strings);
	size_t i;

	for (i = 0; i < ARRAY_SIZE(tables) && !err; i++)
		err = hash_init(tables[i], 0);
	return err ? err : query_init_base(q);
}

int reporter_query_new(struct reporter_query **qp,
		       const struct reporter_query_opts *opts)
{
	struct reporter_query *q = calloc(1, sizeof(*q));
	int err = q ? 0 : -ENOMEM;

	*qp = NULL;
	if (err)
		return err;
	q->opts = *opts;
	arena_init(&q->arena);
	err = query_init(q);
	if (err)
		reporter_query_free(q);
	else
		*qp = q;
	return err;
}

void reporter_query_free(struct reporter_query *q)
{
	if (!q)
		return;
	hash_fini(&q->by_image);
	hash_fini(&q->by_sample);
	hash_fini(&q->by_labels);
	hash_fini(&q->by_stack);
	hash_fini(&q->by_location);
	hash_fini(&q->by_function);
	hash_fini(&q->by_mapping);
	free(q->samples);
	free(q->locations);
	free(q->functions);
	free(q->mappings);
	free(q->comments);
	strtab_fini(&q->strings);
	arena_fini(&q->arena);
	free(q);
}
