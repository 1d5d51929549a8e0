/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vault: memory for copies of other processes' stacks. They may hold secrets,
 * so it is left out of core dumps (MADV_DONTDUMP). Made for blocks that live
 * shortly and go about in the order they came: they are cut one after the other
 * from regions, and a region is used anew when all of its blocks are free.
 */
#ifndef BASE_VAULT_H
#define BASE_VAULT_H

#include <stddef.h>

struct vault;

int vault_new(struct vault **vp); /* 0 or -ENOMEM */
/* With all blocks that are still in it. */
void vault_free(struct vault *v);

/* 8-aligned; NULL without memory. */
void *vault_take(struct vault *v, size_t size);
void vault_give(void *block); /* NULL is fine */

/* Bytes of memory it has, in use or not. */
size_t vault_bytes(const struct vault *v);

#endif /* BASE_VAULT_H */
