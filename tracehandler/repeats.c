// SPDX-License-Identifier: Apache-2.0
/* repeats: see tracehandler/repeats.h. */
#include <stdlib.h>
#include <string.h>

#include "tracehandler/repeats.h"

#define REPEATS_BYTES (3 << 20)

int trace_repeats_init(struct trace_repeats *s, struct trace_cache *c)
{
	s->cache = c;
	TAILQ_INIT(&s->list);
	s->room = REPEATS_BYTES;
	return hash_init(&s->known, 0);
}

static size_t repeats_size(size_t n)
{
	return sizeof(struct trace_repeat) +
	       n * (sizeof(uint64_t) + sizeof(struct reporter_frame) +
		    sizeof(struct trace_frame *));
}

static void repeats_drop(struct trace_repeats *s, struct trace_repeat *k)
{
	TAILQ_REMOVE(&s->list, k, link);
	hash_remove(&s->known, &k->node);
	s->bytes -= repeats_size(k->n);
	for (uint32_t i = 0; i < k->n; i++)
		trace_frame_put(s->cache, k->frames[i]);
	free(k);
}

void trace_repeats_fini(struct trace_repeats *s)
{
	while (!TAILQ_EMPTY(&s->list))
		repeats_drop(s, TAILQ_FIRST(&s->list));
	hash_fini(&s->known);
}

static uint64_t repeats_hash(const uint64_t *keys, size_t n)
{
	uint64_t h = n;

	for (size_t i = 0; i < n; i++)
		h = (h ^ keys[i]) * 0x9fb21c651e98df25ULL;
	return hash_u64(h);
}

struct trace_repeat *trace_repeats_find(struct trace_repeats *s, size_t n,
					bool *again)
{
	struct trace_repeat *k;
	uint32_t *seen;

	s->n = n;
	s->hash = repeats_hash(s->keys, n);
	/* After a frame was forgotten, its name may be another. */
	HASH_FIND(k, &s->known, s->hash, node,
		  k->n == n && k->forgotten == s->cache->forgotten &&
			  !memcmp(k->keys, s->keys, n * sizeof(*k->keys)));
	if (k) {
		k->used = true;
		return k;
	}
	seen = &s->seen[s->hash % TRACE_REPEATS_SEEN];
	*again = *seen == (uint32_t)(s->hash >> 32);
	*seen = s->hash >> 32;
	return NULL;
}

/* Makes room for so many bytes more. */
static void repeats_evict(struct trace_repeats *s, size_t size)
{
	struct trace_repeat *k;

	while (s->bytes + size > s->room && (k = TAILQ_FIRST(&s->list))) {
		if (!k->used || k->forgotten != s->cache->forgotten) {
			repeats_drop(s, k);
			continue;
		}
		k->used = false;
		TAILQ_REMOVE(&s->list, k, link);
		TAILQ_INSERT_TAIL(&s->list, k, link);
	}
}

void trace_repeats_room(struct trace_repeats *s, unsigned int halvings)
{
	s->room = REPEATS_BYTES >> halvings;
	repeats_evict(s, 0);
}

void trace_repeats_add(struct trace_repeats *s, struct trace_frame **frames,
		       const struct reporter_frame *out, size_t unnamed)
{
	size_t n = s->n, size = repeats_size(n);
	struct trace_repeat *k;

	for (size_t i = 0; i < n; i++)
		if (!frames[i]->listed)
			return;
	repeats_evict(s, size);
	k = calloc(1, size);
	if (!k)
		return;
	k->forgotten = s->cache->forgotten;
	k->n = n;
	k->unnamed = unnamed;
	k->out = (struct reporter_frame *)(k->keys + n);
	k->frames = (struct trace_frame **)(k->out + n);
	memcpy(k->keys, s->keys, n * sizeof(*k->keys));
	memcpy(k->out, out, n * sizeof(*k->out));
	memcpy(k->frames, frames, n * sizeof(*k->frames));
	for (size_t i = 0; i < n; i++)
		frames[i]->refs++;
	hash_insert(&s->known, &k->node, s->hash);
	TAILQ_INSERT_TAIL(&s->list, k, link);
	s->bytes += size;
}
