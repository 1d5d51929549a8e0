// SPDX-License-Identifier: Apache-2.0
/*
 * arena: a list of chunks. Their size doubles from 4 KiB to 256 KiB, so that a small
 * arena takes little and a large one calls malloc() rarely.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

#define ARENA_CHUNK_MIN 4096
#define ARENA_CHUNK_MAX ((size_t)256 * 1024)

struct arena_chunk {
	struct arena_chunk *next;
	size_t size;
	_Alignas(8) char data[];
};

void arena_init(struct arena *a)
{
	memset(a, 0, sizeof(*a));
}

void arena_fini(struct arena *a)
{
	struct arena_chunk *c, *next;

	for (c = a->head; c; c = next) {
		next = c->next;
		free(c);
	}
	arena_init(a);
}

static int arena_grow(struct arena *a, size_t need)
{
	size_t size = a->head ? a->head->size * 2 : ARENA_CHUNK_MIN;
	struct arena_chunk *c;

	size = MAX(MIN(size, ARENA_CHUNK_MAX), need);
	c = malloc(sizeof(*c) + size);
	if (!c)
		return -1;
	c->next = a->head;
	c->size = size;
	a->head = c;
	a->used = 0;
	a->bytes += sizeof(*c) + size;
	return 0;
}

void *arena_alloc(struct arena *a, size_t size)
{
	void *p;

	if (size > SIZE_MAX / 2)
		return NULL;
	size = (size + 7) & ~(size_t)7;
	if (!a->head || a->head->size - a->used < size)
		if (arena_grow(a, size))
			return NULL;
	p = a->head->data + a->used;
	a->used += size;
	return p;
}

void *arena_memdup(struct arena *a, const void *src, size_t size)
{
	void *p = arena_alloc(a, size);

	if (p && size)
		memcpy(p, src, size);
	return p;
}
