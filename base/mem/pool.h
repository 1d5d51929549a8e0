/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pool: blocks of one size that are allocated and freed often. A limited number of
 * freed blocks is kept; the last one is reused first, since it is still in the CPU's
 * cache. malloc() would touch cold memory to merge its neighbours.
 */
#ifndef BASE_POOL_H
#define BASE_POOL_H

#include <stddef.h>

struct pool_block;

struct pool {
	struct pool_block *kept; /* the last freed first */
	size_t size;
	size_t n, max; /* blocks kept, and their limit */
};

void pool_init(struct pool *p, size_t size, size_t max);
/* Frees the kept blocks. Others may still be given back, or passed to free(). */
void pool_fini(struct pool *p);
/* Zeroed; NULL without memory. */
void *pool_take(struct pool *p);
/* NULL is allowed. */
void pool_give(struct pool *p, void *block);

#endif /* BASE_POOL_H */
