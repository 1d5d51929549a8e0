/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault: memory for copies of other processes' stacks. They may hold secrets, so it
 * is excluded from core dumps (MADV_DONTDUMP). For blocks that are freed soon and
 * roughly in the order of their allocation: they are cut one after the other from
 * regions, and a region is reused when all of its blocks are free.
 */
#ifndef BASE_VAULT_H
#define BASE_VAULT_H

#include <stddef.h>

struct vault;

int vault_new(struct vault **vp); /* 0 or -ENOMEM */
/* Frees the blocks that are still in it, too. */
void vault_free(struct vault *v);

/* Aligned to 8; NULL without memory. */
void *vault_take(struct vault *v, size_t size);
void vault_give(void *block); /* NULL is allowed */

/* Bytes mapped, in use or not. */
size_t vault_bytes(const struct vault *v);

#endif /* BASE_VAULT_H */
