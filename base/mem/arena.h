/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena: memory that is freed all at once. For many small objects of equal lifetime
 * (a window's stacks, a string table).
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stddef.h>

struct arena_chunk;

struct arena {
	struct arena_chunk *head;
	size_t used; /* bytes of the head chunk */
	size_t bytes; /* of all chunks, as malloc'ed */
};

void arena_init(struct arena *a);
void arena_fini(struct arena *a);

/* 'size' bytes, aligned to 8, not zeroed, valid until arena_fini(); or NULL. */
void *arena_alloc(struct arena *a, size_t size);
void *arena_memdup(struct arena *a, const void *src, size_t size);

#endif /* BASE_ARENA_H */
