// SPDX-License-Identifier: Apache-2.0
/* edges: see profiler/waiting/edges.h. */
#include <string.h>

#include "base/base.h"
#include "profiler/waiting/edges.h"

void waiting_edges_init(struct waiting_edges *e, __u64 *begins)
{
	*e = (struct waiting_edges){ .begins = begins };
}

/* Slots follow each other as the edges do. */
static void edges_store(struct waiting_edges *e, size_t i, uint64_t begin)
{
	uint32_t slot = (e->slot + 1 + i) % ABI_WAIT_SLOTS;

	__atomic_store_n(&e->begins[slot], begin, __ATOMIC_RELEASE);
}

void waiting_edges_set(struct waiting_edges *e, const uint64_t *times, size_t n,
		       uint64_t now)
{
	size_t begun = 0, before = e->n, i;

	while (begun < e->n && e->times[begun] <= now)
		begun++;
	e->n = begun;
	for (i = 0; i < n && e->n < WAITING_EDGES; i++) {
		if (e->n && times[i] <= e->times[e->n - 1])
			continue;
		e->times[e->n] = times[i];
		e->late[e->n++] = times[i] <= now;
	}
	/* The last first: no time is without a slot meanwhile. */
	for (i = MAX(before, e->n); i-- > begun;)
		edges_store(e, i, i < e->n ? e->times[i] : UINT64_MAX);
}

uint64_t waiting_edges_first(const struct waiting_edges *e)
{
	return e->n ? e->times[0] : UINT64_MAX;
}

bool waiting_edges_pass(struct waiting_edges *e, uint64_t time)
{
	bool exact = waiting_edges_first(e) == time && !e->late[0];

	if (waiting_edges_first(e) != time)
		return false;
	e->n--;
	memmove(e->times, e->times + 1, e->n * sizeof(*e->times));
	memmove(e->late, e->late + 1, e->n * sizeof(*e->late));
	e->slot = (e->slot + 1) % ABI_WAIT_SLOTS;
	return exact;
}

bool waiting_edges_before(const struct waiting_edges *e, uint32_t slot)
{
	return (slot - e->slot - 1) % ABI_WAIT_SLOTS >= e->n;
}
