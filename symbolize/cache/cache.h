/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache: what was read from executable files, on disk, so that a profd that is
 * started again need not read them again: identities (known.h), unwind rows, names
 * and compile units. All but the first are found by build id, file id and content
 * hash, which includes the owner of the file: nobody can change what is used for a
 * file of another user.
 *
 * A lookup is made by a thread of the pool, one at a time, before a worker is
 * asked. If one takes longer than CACHE_PATIENCE_MS, as on a disk that hangs, all
 * lookups are answered as if nothing was found, until that one returns. New results
 * are collected and written by another thread, after CACHE_FLUSH_MS, then less and
 * less often, and at the end; after an error nothing is written any more.
 */
#ifndef SYMBOLIZE_CACHE_H
#define SYMBOLIZE_CACHE_H

#include "symbolize/cache/entry.h"
#include "symbolize/known.h"

#define CACHE_PATIENCE_MS 500
#define CACHE_FLUSH_MS 10000
#define CACHE_FLUSH_MAX_MS 600000

struct cache;
struct cache_lookup;
struct cache_item; /* collected, not written yet */

/* A table that is used here and there: freed with the last of them. */
struct cache_block;

struct cache_opts {
	uv_loop_t *loop;
	const char *dir;
	uint64_t bytes; /* budget of the directory */
	const char *const *debug_dirs; /* outlive the cache */
	struct symbolizer_known *known; /* outlives the cache */
	struct symbolizer_stats *stats;
	/* It is not written any more. */
	void (*failed)(void *arg, int err);
	void *failed_arg;
	void (*closed)(void *arg); /* cache_free() is done, on the loop */
	void *arg;
};

/* Reads the known identities. 0 or -errno. */
int cache_new(struct cache **cp, const struct cache_opts *opts);
/* Without lookups that were not cancelled. Writes what is new. */
void cache_free(struct cache *c);

/* What is found by a lookup. */
struct cache_found {
	bool hit; /* for ROWS; NAMES: all were found */
	int err; /* of the file: there are no rows */
	struct symbolizer_rows *rows; /* the callee owns them */
	/* With 'missing', of which it is the index; the callee owns it. */
	struct symbolizer_answer answer;
	uint32_t *missing; /* offsets that were not found; or NULL: all */
	size_t n_missing;
	/* UNITS: a descriptor, closed after the call, and where they begin; or -1. */
	int fd;
	uint64_t at;
};

typedef void (*cache_fn)(void *arg, struct cache_found *found);

/*
 * Looks up the rows or units of a file, or the names for offsets. NULL: it cannot be in
 * the cache, or there is no memory. fn() is not called from inside. The file may
 * be closed after cache_cancel().
 */
struct cache_lookup *cache_look(struct cache *c, struct symbolizer_file *f,
				enum entry_kind kind, const uint64_t *offsets,
				size_t n, cache_fn fn, void *arg);
/* fn() will not be called. */
void cache_cancel(struct cache_lookup *l);

/*
 * The table in 'map', which 'release' frees; or NULL, and the caller still owns
 * it. -EINVAL, -ENOMEM as symbolizer_rows_adopt().
 */
int cache_block_adopt(struct cache_block **bp, void *map, size_t len,
		      symbolizer_rows_release_fn release,
		      struct symbolizer_rows **rows);
void cache_block_put(struct cache_block *b); /* may be NULL */

/* A worker's answer: rows, or that there are none. */
void cache_keep_rows(struct cache *c, const struct symbolizer_file *f, int err,
		     struct cache_block *b);
/*
 * ... and names: cache_keep_names(), or NULL if those of this file cannot be kept;
 * cache_keep_name() for each; cache_keep_end(), before control returns to the loop.
 */
struct cache_item *cache_keep_names(struct cache *c,
				    const struct symbolizer_file *f);
void cache_keep_name(struct cache *c, struct cache_item *it,
		     const struct symbolizer_symbol *sym);
void cache_keep_end(struct cache *c);
/* A store of units, which is copied. 0; -EBADMSG: it is none. */
int cache_keep_units(struct cache *c, const struct symbolizer_file *f,
		     const void *store, size_t len);
/* Those that were not written yet, in a memfd, from its begin on; -ENOENT: none. */
int cache_units_waiting(struct cache *c, const struct symbolizer_file *f);
/* The units that were found are damaged. */
void cache_units_damaged(struct cache *c, const struct symbolizer_file *f);

#endif /* SYMBOLIZE_CACHE_H */
