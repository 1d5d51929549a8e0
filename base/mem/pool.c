// SPDX-License-Identifier: Apache-2.0
/* pool: see base/mem/pool.h. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

struct pool_block {
	struct pool_block *next;
};

void pool_init(struct pool *p, size_t size, size_t max)
{
	p->kept = NULL;
	p->size = MAX(size, sizeof(struct pool_block));
	p->n = 0;
#ifdef __SANITIZE_ADDRESS__ /* so that it detects uses after a free */
	p->max = 0;
#else
	p->max = max;
#endif
}

void pool_fini(struct pool *p)
{
	struct pool_block *b;

	while ((b = p->kept)) {
		p->kept = b->next;
		free(b);
	}
	p->n = p->max = 0;
}

void *pool_take(struct pool *p)
{
	struct pool_block *b = p->kept;

	if (!b)
		return calloc(1, p->size);
	p->kept = b->next;
	p->n--;
	return memset(b, 0, p->size);
}

void pool_give(struct pool *p, void *block)
{
	struct pool_block *b = block;

	if (!b || p->n >= p->max) {
		free(b);
		return;
	}
	b->next = p->kept;
	p->kept = b;
	p->n++;
}
