/* SPDX-License-Identifier: Apache-2.0 */
/* internal: what cache.c, lookup.c and keep.c share. */
#ifndef SYMBOLIZE_CACHE_INTERNAL_H
#define SYMBOLIZE_CACHE_INTERNAL_H

#include <sys/queue.h>

#include "symbolize/cache/cache.h"
#include "symbolize/cache/dir.h"

TAILQ_HEAD(cache_items, cache_item);
TAILQ_HEAD(cache_lookups, cache_lookup);
TAILQ_HEAD(lookup_held_list, lookup_held);

struct cache {
	struct cache_opts opts;
	struct dir dir;
	unsigned int refs; /* itself, work in the pool, timers */
	bool freed;

	/* lookup.c; the first is in the pool. */
	struct cache_lookups lookups;
	bool looking;
	bool stuck; /* ... for longer than CACHE_PATIENCE_MS */
	uv_timer_t patience;
	/* Names that were read: of the thread that looks up. */
	struct lookup_held_list held; /* last used first */
	size_t held_bytes;

	/* keep.c */
	struct cache_items items; /* collected */
	size_t items_bytes, names_bytes,
		units_bytes; /* of tables, names, units */
	struct cache_items writing; /* the writer's, while it writes */
	struct strbuf known; /* likewise; empty: not to be written */
	bool busy; /* it writes */
	bool failed;
	int err; /* of the writer */
	uint64_t written;
	uint64_t units_large; /* not written: too large; the writer's */
	uint64_t known_added; /* as of the last writing */
	uint64_t flush_ms; /* the next pause */
	struct entry_id known_id;
	uv_timer_t flush;
};

void cache_unref(struct cache *c);
/* lookup.c */
void cache_lookup_fini(struct cache *c);
/* keep.c: writes what was collected, unless it is being done. */
void cache_write(struct cache *c);
void cache_keep_init(struct cache *c);

#endif /* SYMBOLIZE_CACHE_INTERNAL_H */
