// SPDX-License-Identifier: Apache-2.0
/* hash: see base/hash.h. Grows by doubling when there are more nodes than buckets. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define HASH_MIN_BUCKETS 16

int hash_init(struct hash *h, size_t hint)
{
	size_t n = HASH_MIN_BUCKETS;

	while (n < hint)
		n *= 2;
	h->buckets = calloc(n, sizeof(*h->buckets));
	if (!h->buckets)
		return -ENOMEM;
	h->mask = n - 1;
	h->count = 0;
	return 0;
}

void hash_fini(struct hash *h)
{
	free(h->buckets);
	memset(h, 0, sizeof(*h));
}

static void hash_grow(struct hash *h)
{
	size_t i, n = (h->mask + 1) * 2;
	struct hash_node **b, *node, *next;

	b = calloc(n, sizeof(*b));
	if (!b)
		return;
	for (i = 0; i <= h->mask; i++) {
		for (node = h->buckets[i]; node; node = next) {
			next = node->next;
			node->next = b[node->hash & (n - 1)];
			b[node->hash & (n - 1)] = node;
		}
	}
	free(h->buckets);
	h->buckets = b;
	h->mask = n - 1;
}

void hash_insert(struct hash *h, struct hash_node *n, uint64_t hash)
{
	if (h->count > h->mask)
		hash_grow(h);
	n->hash = hash;
	n->next = h->buckets[hash & h->mask];
	h->buckets[hash & h->mask] = n;
	h->count++;
}

void hash_remove(struct hash *h, struct hash_node *n)
{
	struct hash_node **p = &h->buckets[n->hash & h->mask];

	for (; *p; p = &(*p)->next) {
		if (*p == n) {
			*p = n->next;
			n->next = NULL;
			h->count--;
			return;
		}
	}
}

struct hash_node *hash_first(const struct hash *h, uint64_t hash)
{
	struct hash_node *n = h->buckets[hash & h->mask];

	while (n && n->hash != hash)
		n = n->next;
	return n;
}

struct hash_node *hash_next(const struct hash_node *n)
{
	uint64_t hash = n->hash;
	struct hash_node *m = n->next;

	while (m && m->hash != hash)
		m = m->next;
	return m;
}

/* The finalizer of MurmurHash3 (Austin Appleby, public domain). */
uint64_t hash_u64(uint64_t v)
{
	v ^= v >> 33;
	v *= 0xff51afd7ed558ccdULL;
	v ^= v >> 33;
	v *= 0xc4ceb9fe1a85ec53ULL;
	v ^= v >> 33;
	return v;
}

uint64_t hash_bytes(const void *p, size_t len)
{
	const unsigned char *s = p;
	uint64_t h = 0x9e3779b97f4a7c15ULL ^ len, w;

	for (; len >= 8; s += 8, len -= 8) {
		memcpy(&w, s, 8);
		h = (h ^ hash_u64(w)) * 0x9fb21c651e98df25ULL;
	}
	w = 0;
	if (len) /* 'p' may be NULL */
		memcpy(&w, s, len);
	return hash_u64(h ^ w);
}
