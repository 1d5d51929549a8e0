/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: blocks of one size that come and go by the hundred. Those that are given
 * back are kept, so many at most, and the last one is the first to be taken again:
 * it is near the CPU still, where malloc sorts and joins its neighbours in cold
 * memory.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>

struct pool_block;

struct pool {
	struct pool_block *kept; /* the last one first */
	size_t size;
	size_t n, max; /* kept, and at most */
};

void pool_init(struct pool *p, size_t size, size_t max);
/* Frees what is kept. What was taken is still given back, or free()d. */
void pool_fini(struct pool *p);
/* All zeroes; NULL without memory. */
void *pool_take(struct pool *p);
/* NULL is fine. */
void pool_give(struct pool *p, void *block);

#endif /* BASE_POOL_H */
