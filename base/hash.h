/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hash: an intrusive chained hash table. The caller embeds a hash_node in its own
 * structure, computes the hash, and compares the keys of nodes of equal hash. No
 * callbacks, no allocation per entry; nodes are the caller's.
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

struct hash_node {
	struct hash_node *next;
	uint64_t hash;
};

struct hash {
	struct hash_node **buckets;
	size_t mask; /* buckets - 1; a power of two minus one */
	size_t count; /* nodes in the table */
};

/* 0 or -ENOMEM. 'hint': entries expected, 0 for the smallest table. */
int hash_init(struct hash *h, size_t hint);
/* Frees the table, not the nodes. */
void hash_fini(struct hash *h);

/*
 * Cannot fail: a table that cannot grow for lack of memory gets slower. Does not
 * check for duplicates.
 */
void hash_insert(struct hash *h, struct hash_node *n, uint64_t hash);
void hash_remove(struct hash *h, struct hash_node *n);

/* First and next node whose hash is exactly 'hash', or NULL. */
struct hash_node *hash_first(const struct hash *h, uint64_t hash);
struct hash_node *hash_next(const struct hash_node *n);

#define hash_for_each_match(h, n, value) \
	for ((n) = hash_first((h), (value)); (n); (n) = hash_next(n))

/*
 * Sets 'e', a pointer to the structure that has the node as its 'member', to the
 * first of hash 'value' for which 'is', an expression in e, is true; or to NULL.
 */
#define HASH_FIND(e, h, value, member, is)                                \
	do {                                                              \
		struct hash_node *n_;                                     \
                                                                          \
		(e) = NULL;                                               \
		hash_for_each_match(h, n_, value) {                       \
			(e) = container_of(n_, __typeof__(*(e)), member); \
			if (is)                                           \
				break;                                    \
			(e) = NULL;                                       \
		}                                                         \
	} while (0)

/*
 * All nodes, in no order. The body may remove or free node 'n' and must not insert.
 * 'tmp' is a second struct hash_node *, 'i' a size_t.
 */
#define hash_for_each(h, i, n, tmp)                                        \
	for ((i) = 0; (i) <= (h)->mask; (i)++)                             \
		for ((n) = (h)->buckets[i]; (n) && ((tmp) = (n)->next, 1); \
		     (n) = (tmp))

/* Not collision resistant: hostile keys can make a table slow, not wrong. */
uint64_t hash_bytes(const void *p, size_t len);
uint64_t hash_u64(uint64_t v);
/* Mixes one more value into a hash. */
static inline uint64_t hash_mix(uint64_t h, uint64_t v)
{
	return hash_u64(h ^ (v + 0x9e3779b97f4a7c15ULL + (h << 6)));
}

#endif /* BASE_HASH_H */
