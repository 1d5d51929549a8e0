// SPDX-License-Identifier: Apache-2.0
/*
 * units: compile units that were read are kept in the cache on disk: between the
 * workers, which ask for them and hand them on, and the cache.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "symbolize/internal.h"

struct worker_look {
	struct symbolizer *s;
	struct symbolizer_file *file;
	struct cache_lookup *lookup;
	worker_look_fn fn;
	void *arg;
};

static bool units_may(void *arg, const struct symbolizer_file *f)
{
	const struct symbolizer *s = arg;

	return s->cache && f->hashed;
}

/* What was not written yet is used if nothing was. */
static void units_found(void *arg, struct cache_found *found)
{
	struct worker_look *l = arg;
	uint64_t at = found->fd < 0 ? 0 : found->at;
	int waiting = -ENOENT;

	if (found->fd < 0)
		waiting = cache_units_waiting(l->s->cache, l->file);
	l->fn(l->arg, found->fd < 0 ? waiting : found->fd, at);
	if (waiting >= 0)
		close(waiting);
	free(l);
}

static struct worker_look *units_look(void *arg, struct symbolizer_file *f,
				      worker_look_fn fn, void *fn_arg)
{
	struct worker_look *l = malloc(sizeof(*l));
	struct symbolizer *s = arg;

	if (!l)
		return NULL;
	*l = (struct worker_look){ s, f, NULL, fn, fn_arg };
	l->lookup =
		cache_look(s->cache, f, ENTRY_UNITS, NULL, 0, units_found, l);
	if (l->lookup)
		return l;
	free(l);
	return NULL;
}

static void units_cancel(struct worker_look *l)
{
	cache_cancel(l->lookup);
	free(l);
}

/* Those of a file whose debug file may still arrive are not whole. */
static int units_keep(void *arg, const struct symbolizer_file *f,
		      const void *store, size_t len)
{
	struct symbolizer *s = arg;

	if (symbolizer_fetching_file(s, f))
		return 0;
	return cache_keep_units(s->cache, f, store, len);
}

static void units_damaged(void *arg, const struct symbolizer_file *f)
{
	struct symbolizer *s = arg;

	cache_units_damaged(s->cache, f);
}

const struct worker_store symbolizer_units = {
	.may = units_may,
	.look = units_look,
	.cancel = units_cancel,
	.keep = units_keep,
	.damaged = units_damaged,
};
