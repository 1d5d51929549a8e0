// SPDX-License-Identifier: Apache-2.0
/* table: the entries of a perf map or a jitdump; see symbolize/jit/jit.h. */
#include <string.h>

#include "symbolize/jit/jit.h"

void jit_table_fini(struct jit_table *t)
{
	free(t->v);
	memset(t, 0, sizeof(*t));
}

int jit_table_add(struct jit_table *t, const struct jit_entry *e)
{
	if (t->n >= JIT_ENTRIES_MAX) {
		t->cut = true;
		return 0;
	}
	if (VECTOR_ROOM(t->v, t->n, t->cap))
		return -ENOMEM;
	t->v[t->n++] = *e;
	return 0;
}

/* An entry that covers the address of the query. */
static void jit_query_meet(struct jit_query *q, const struct jit_entry *e)
{
	if (e->from > q->at)
		q->until = MIN(q->until, e->from);
	if (e->from <= q->at || (!q->found && e->name != JIT_GONE))
		q->found = e;
}

/*
 * One pass in the order of the file. There is no tree of intervals: where code
 * overlaps, the order decides, and a pass over a million entries takes 20 ms.
 */
int jit_table_find(const struct jit_table *t, struct jit_query *q, size_t n)
{
	const struct jit_entry *e;
	size_t i, steps = 0;

	for (i = 0; i < n; i++)
		q[i].until = UINT64_MAX;
	for (e = t->v; e < t->v + t->n; e++) {
		VECTOR_SEARCH(i, n, q[i].addr < e->start);
		for (; i < n && q[i].addr - e->start < e->size; i++) {
			if (++steps > JIT_STEPS_MAX)
				return -E2BIG;
			jit_query_meet(&q[i], e);
		}
	}
	return 0;
}
