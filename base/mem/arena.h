/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena: memory that is given back all at once. For things that live and die
 * together (a window's stacks, a string table), where a free() apiece would
 * cost more than the thing.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *head;
	size_t used; /* bytes handed out of the head chunk */
	size_t bytes; /* bytes taken from malloc, over all chunks */
};

void arena_init(struct arena *a);
void arena_fini(struct arena *a);

/*
 * Memory of 'size' bytes, aligned to 8, not zeroed; NULL without memory.
 * Valid until arena_fini().
 */
void *arena_alloc(struct arena *a, size_t size);
void *arena_memdup(struct arena *a, const void *src, size_t size);

#endif /* BASE_ARENA_H */
