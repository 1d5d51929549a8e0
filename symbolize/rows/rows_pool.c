// SPDX-License-Identifier: Apache-2.0
/* rows_pool: a set of byte strings; see symbolize/rows/rows.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/rows/rows.h"

#define POOL_SLOTS_MIN 256
#define POOL_BYTES_MAX (64U << 20)

/* The slot of the string, or the free one for it. */
static uint32_t pool_slot(const struct symbolizer_pool *p, const void *s,
			  size_t len)
{
	uint32_t i = (uint32_t)hash_bytes(s, len) & p->mask, at;

	for (; p->slots[i]; i = (i + 1) & p->mask) {
		at = p->starts[p->slots[i] - 1];
		if (p->starts[p->slots[i]] - at == len &&
		    memcmp(p->data + at, s, len) == 0)
			break;
	}
	return i;
}

/* Slots for twice as many strings, and room for their starts. */
static int pool_grow_slots(struct symbolizer_pool *p)
{
	uint32_t n = p->slots ? 2 * (p->mask + 1) : POOL_SLOTS_MIN;
	uint32_t *starts, *slots = calloc(n, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	starts = realloc(p->starts, (n / 2 + 1) * sizeof(*starts));
	if (!starts) {
		free(slots);
		return -ENOMEM;
	}
	if (!p->slots)
		starts[0] = 0;
	free(p->slots);
	p->starts = starts;
	p->slots = slots;
	p->mask = n - 1;
	for (uint32_t i = 0; i < p->n; i++)
		slots[pool_slot(p, p->data + starts[i],
				starts[i + 1] - starts[i])] = i + 1;
	return 0;
}

int symbolizer_pool_put(struct symbolizer_pool *p, const void *s, size_t len)
{
	size_t cap;
	uint32_t slot;
	uint8_t *data;

	/* At most half of the slots are used. */
	if ((!p->slots || p->n >= (p->mask + 1) / 2) && pool_grow_slots(p))
		return -ENOMEM;
	slot = pool_slot(p, s, len);
	if (p->slots[slot])
		return (int)p->slots[slot] - 1;
	if (p->n == SYMBOLIZER_POOL_MAX || len > POOL_BYTES_MAX - p->used)
		return -E2BIG;
	if (len > p->cap - p->used) {
		cap = MAX(p->cap * 2, p->used + len);
		data = realloc(p->data, cap);
		if (!data)
			return -ENOMEM;
		p->data = data;
		p->cap = cap;
	}
	memcpy(p->data + p->used, s, len);
	p->used += len;
	p->slots[slot] = ++p->n;
	p->starts[p->n] = (uint32_t)p->used;
	return (int)p->n - 1;
}

void symbolizer_pool_fini(struct symbolizer_pool *p)
{
	free(p->data);
	free(p->starts);
	free(p->slots);
}
