// SPDX-License-Identifier: Apache-2.0
/* repeats: see tracehandler/repeats.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracehandler/repeats.h"

#define REPEATS_FRAME_BYTES                                 \
	(sizeof(uint64_t) + sizeof(struct reporter_frame) + \
	 sizeof(struct trace_frame *))
/* A stack of fewer frames is counted as one of so many. */
#define REPEATS_LEAST 8

int trace_repeats_init(struct trace_repeats *s, size_t max_bytes)
{
	memset(s, 0, sizeof(*s));
	s->max_bytes = max_bytes;
	s->max = max_bytes / (REPEATS_LEAST * REPEATS_FRAME_BYTES);
	s->slots = calloc(s->max, sizeof(*s->slots));
	s->seen = calloc(TRACE_REPEATS_SEEN, sizeof(*s->seen));
	if (s->slots && s->seen && !hash_init(&s->known, 0))
		return 0;
	free(s->slots);
	free(s->seen);
	memset(s, 0, sizeof(*s));
	return -ENOMEM;
}

static size_t repeats_size(size_t n, size_t unnamed)
{
	return sizeof(struct trace_repeat) + n * REPEATS_FRAME_BYTES +
	       unnamed * sizeof(struct trace_unnamed);
}

/* Out of slot 'i', which the last one takes. */
static void repeats_drop(struct trace_repeats *s, struct trace_cache *c,
			 size_t i)
{
	struct trace_repeat *k = s->slots[i];

	s->slots[i] = s->slots[--s->count];
	s->bytes -= repeats_size(k->n, k->unnamed);
	hash_remove(&s->known, &k->node);
	for (uint32_t f = 0; f < k->n; f++)
		trace_frame_put(c, k->frames[f]);
	free(k);
}

void trace_repeats_fini(struct trace_repeats *s, struct trace_cache *c)
{
	while (s->count)
		repeats_drop(s, c, s->count - 1);
	hash_fini(&s->known);
	free(s->slots);
	free(s->seen);
	memset(s, 0, sizeof(*s));
}

static uint64_t repeats_hash(const uint64_t *keys, size_t n)
{
	uint64_t h = n;

	for (size_t i = 0; i < n; i++)
		h = (h ^ keys[i]) * 0x9fb21c651e98df25ULL;
	return hash_u64(h);
}

struct trace_repeat *trace_repeats_find(struct trace_repeats *s,
					struct trace_cache *c, size_t n,
					bool *again)
{
	struct trace_repeat *k;
	struct hash_node *node;
	uint32_t *seen;

	s->n = n;
	s->hash = repeats_hash(s->keys, n);
	hash_for_each_match(&s->known, node, s->hash) {
		k = container_of(node, struct trace_repeat, node);
		if (k->n != n || memcmp(k->keys, s->keys, n * sizeof(*k->keys)))
			continue;
		/* One of its frames may have another name by now. */
		if (k->forgotten != c->forgotten)
			continue;
		k->used = true;
		return k;
	}
	seen = &s->seen[s->hash % TRACE_REPEATS_SEEN];
	*again = *seen == (uint32_t)(s->hash >> 32);
	*seen = s->hash >> 32;
	return NULL;
}

/* Room for one more of so many bytes. */
static void repeats_make_room(struct trace_repeats *s, struct trace_cache *c,
			      size_t size)
{
	struct trace_repeat *k;

	while (s->count &&
	       (s->count == s->max || s->bytes + size > s->max_bytes)) {
		if (s->hand >= s->count)
			s->hand = 0;
		k = s->slots[s->hand];
		if (k->used && k->forgotten == c->forgotten) {
			k->used = false;
			s->hand++;
		} else {
			repeats_drop(s, c, s->hand);
		}
	}
}

static void repeats_copy_unnamed(struct reporter_frame *out,
				 struct trace_unnamed *u)
{
	*u = *container_of(out->lines, const struct trace_unnamed, line);
	u->line.function = &u->function;
	out->lines = &u->line;
}

void trace_repeats_add(struct trace_repeats *s, struct trace_cache *c,
		       struct trace_frame **frames,
		       const struct reporter_frame *out, size_t unnamed)
{
	size_t n = s->n, size = repeats_size(n, unnamed);
	struct trace_unnamed *u;
	struct trace_repeat *k;

	repeats_make_room(s, c, size);
	k = malloc(size);
	if (!k)
		return;
	*k = (struct trace_repeat){
		.forgotten = c->forgotten,
		.n = n,
		.unnamed = unnamed,
	};
	k->out = (struct reporter_frame *)(k->keys + n);
	k->frames = (struct trace_frame **)(k->out + n);
	memcpy(k->keys, s->keys, n * sizeof(*k->keys));
	memcpy(k->out, out, n * sizeof(*k->out));
	u = (struct trace_unnamed *)(k->frames + n);
	for (size_t i = 0; i < n; i++) {
		k->frames[i] = frames[i];
		frames[i]->refs++;
		if (!frames[i]->nlines)
			repeats_copy_unnamed(&k->out[i], u++);
	}
	hash_insert(&s->known, &k->node, s->hash);
	s->slots[s->count++] = k;
	s->bytes += size;
}
