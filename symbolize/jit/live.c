// SPDX-License-Identifier: Apache-2.0
/*
 * live: which code of a jitdump is in memory at a point; see symbolize/jit/jit.h. What
 * was loaded last is there, and of code that it overlaps nothing is left. So one pass
 * by address is enough: at each start, the newest of the entries that have not ended
 * is there, and it or the new one is hidden by the other.
 */
#include <stdlib.h>

#include "symbolize/jit/jit.h"

struct live {
	const struct jit_table *t;
	struct jit_live *v;
	uint64_t at;
	uint32_t *heap; /* indexes in v, of entries not known to have ended */
	size_t n;
	size_t far; /* of those, the one that ends last */
	uint64_t from, until;
};

static const struct jit_entry *live_entry(const struct live *l, size_t i)
{
	return &l->t->v[l->v[i].entry];
}

/* The last address. */
static uint64_t live_last(const struct live *l, size_t i)
{
	return live_entry(l, i)->start + (live_entry(l, i)->size - 1);
}

/* Those that count at the point, the newest first; then others, the oldest first. */
static uint64_t live_rank(const struct live *l, size_t i)
{
	uint32_t entry = l->v[i].entry;

	return live_entry(l, i)->from <= l->at ? l->t->n + entry
					       : l->t->n - 1 - entry;
}

static bool live_above(const struct live *l, size_t i, size_t k)
{
	return live_rank(l, l->heap[i]) > live_rank(l, l->heap[k]);
}

static void live_swap(struct live *l, size_t i, size_t k)
{
	uint32_t was = l->heap[i];

	l->heap[i] = l->heap[k];
	l->heap[k] = was;
}

static void live_push(struct live *l, size_t i)
{
	size_t k = l->n++;

	l->heap[k] = (uint32_t)i;
	for (; k && live_above(l, k, (k - 1) / 2); k = (k - 1) / 2)
		live_swap(l, k, (k - 1) / 2);
}

static void live_pop(struct live *l)
{
	size_t k = 0, next;

	l->heap[0] = l->heap[--l->n];
	for (; (next = 2 * k + 1) < l->n; k = next) {
		if (next + 1 < l->n && live_above(l, next + 1, next))
			next++;
		if (!live_above(l, next, k))
			break;
		live_swap(l, k, next);
	}
}

/* It overlaps another one: the result may change where it begins to count. */
static void live_limit(struct live *l, size_t i)
{
	uint64_t from = live_entry(l, i)->from;

	if (from <= l->at)
		l->from = MAX(l->from, from);
	else
		l->until = MIN(l->until, from);
}

static void live_meet(struct live *l, size_t i)
{
	uint64_t start = l->v[i].start;

	while (l->n && live_last(l, l->heap[0]) < start)
		live_pop(l);
	if (i && live_last(l, l->far) >= start) {
		live_limit(l, i);
		live_limit(l, l->far);
	}
	if (!i || live_last(l, i) > live_last(l, l->far))
		l->far = i;
	if (l->n)
		l->v[live_rank(l, i) > live_rank(l, l->heap[0]) ? l->heap[0] : i]
			.hidden = true;
	live_push(l, i);
}

/* By start; entries with the same one in the order of the file. */
static int live_compare(const void *a, const void *b)
{
	const struct jit_live *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->entry < y->entry ? -1 : x->entry > y->entry;
}

int jit_table_live(const struct jit_table *t, uint64_t at, struct jit_live *v,
		   uint64_t *from, uint64_t *until)
{
	struct live l = { .t = t, .v = v, .at = at, .until = UINT64_MAX };

	l.heap = calloc(t->n + 1, sizeof(*l.heap));
	if (!l.heap)
		return -ENOMEM;
	for (size_t i = 0; i < t->n; i++)
		v[i] = (struct jit_live){ t->v[i].start, (uint32_t)i, false };
	qsort(v, t->n, sizeof(*v), live_compare);
	for (size_t i = 0; i < t->n; i++)
		live_meet(&l, i);
	free(l.heap);
	*from = l.from;
	*until = l.until;
	return 0;
}
