// SPDX-License-Identifier: Apache-2.0
/* lookup: looks up rows and names, see symbolize/cache/cache.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/cache/internal.h"
#include "symbolize/reader/witness.h"

#define LOOKUP_HELD_MAX (2U << 20) /* bytes of names that are held */

struct cache_lookup {
	TAILQ_ENTRY(cache_lookup) link;
	struct cache *c;
	struct symbolizer_file *file; /* the loop's */
	struct entry_id id;
	uint32_t owner;
	uint8_t build_id[SYMBOLIZER_BUILD_ID_MAX];
	size_t build_id_len;
	cache_fn fn; /* NULL: not needed any more */
	void *arg;
	size_t n; /* offsets */
	struct cache_found found;
	/* Set by the thread: */
	struct strbuf witness, depends; /* ... and that of the units found */
	int err;
	uv_work_t work;
};

/*
 * NAMES of one file, in memory. They are used while the file in the cache and what
 * they depend on are the same as when they were read.
 */
struct lookup_held {
	TAILQ_ENTRY(lookup_held) link;
	struct entry_id id;
	struct dir_stamp stamp; /* from before it was read */
	uint8_t *bytes;
	size_t len;
	struct entry e;
};

/* --- in the pool ---------------------------------------------------------- */

static void held_drop(struct cache *c, struct lookup_held *h)
{
	TAILQ_REMOVE(&c->held, h, link);
	c->held_bytes -= h->len;
	free(h->bytes);
	free(h);
}

static void held_cut(struct cache *c, size_t max)
{
	while (c->held_bytes > max)
		held_drop(c, TAILQ_LAST(&c->held, lookup_held_list));
}

void cache_lookup_fini(struct cache *c)
{
	held_cut(c, 0);
}

static bool held_valid(const struct lookup_held *h,
		       const struct dir_stamp *stamp)
{
	return !memcmp(&h->stamp, stamp, sizeof(*stamp)) &&
	       !entry_aged(&h->e) &&
	       !witness_check(h->e.witness, h->e.head->witness_len);
}

static struct lookup_held *held_find(struct cache *c, const struct entry_id *id,
				     const struct dir_stamp *stamp)
{
	struct lookup_held *h;

	TAILQ_FOREACH(h, &c->held, link)
		if (!memcmp(h->id.key, id->key, sizeof(id->key)))
			break;
	if (!h)
		return NULL;
	if (!held_valid(h, stamp)) {
		held_drop(c, h);
		return NULL;
	}
	TAILQ_REMOVE(&c->held, h, link);
	TAILQ_INSERT_HEAD(&c->held, h, link);
	return h;
}

/* A file that is not used is removed: it would only be read in vain again. */
static int lookup_read(struct cache_lookup *l, struct entry *e, uint8_t **bytes,
		       size_t *len)
{
	char name[DIR_NAME_MAX];
	int err;

	dir_name(name, &l->id, l->owner);
	*bytes = NULL;
	err = dir_read(&l->c->dir, name, bytes, len);
	if (!err)
		err = entry_check(e, &l->id, *bytes, *len);
	if (!err)
		err = witness_check(e->witness, e->head->witness_len);
	if (!err && l->id.kind == ENTRY_NAMES)
		err = entry_names_check(e);
	if (err) {
		free(*bytes);
		*bytes = NULL;
	}
	return err;
}

static void lookup_drop(struct cache_lookup *l)
{
	char name[DIR_NAME_MAX];

	dir_name(name, &l->id, l->owner);
	if (l->err == -EBADMSG || l->err == -ESTALE)
		dir_remove(&l->c->dir, name);
}

static void rows_release(void *arg, const void *map, size_t len)
{
	free(arg);
}

static int lookup_rows(struct cache_lookup *l)
{
	struct entry e;
	uint8_t *bytes;
	size_t len;
	int err = lookup_read(l, &e, &bytes, &len);

	if (err)
		return err;
	l->found.err = e.head->err;
	if (e.head->err) {
		err = entry_err_lasts(e.head->err) && !e.len ? 0 : -EBADMSG;
		free(bytes);
		return err;
	}
	err = symbolizer_rows_adopt(e.payload, e.len, rows_release, bytes,
				    &l->found.rows);
	if (err)
		free(bytes);
	return err == -EINVAL ? -EBADMSG : err;
}

static struct lookup_held *lookup_hold(struct cache_lookup *l)
{
	char name[DIR_NAME_MAX];
	struct dir_stamp stamp;
	struct lookup_held *h;

	dir_name(name, &l->id, l->owner);
	stamp = dir_stamp(&l->c->dir, name);
	h = held_find(l->c, &l->id, &stamp);
	if (h)
		return h;
	h = calloc(1, sizeof(*h));
	l->err = h ? lookup_read(l, &h->e, &h->bytes, &h->len) : -ENOMEM;
	if (l->err) {
		free(h);
		return NULL;
	}
	h->id = l->id;
	h->stamp = stamp;
	TAILQ_INSERT_HEAD(&l->c->held, h, link);
	l->c->held_bytes += h->len;
	return h;
}

static void lookup_names(struct cache_lookup *l)
{
	struct symbolizer_answer *a = &l->found.answer;
	struct lookup_held *h = lookup_hold(l);

	if (!h)
		return;
	l->found.missing = calloc(l->n + 1, sizeof(*l->found.missing));
	if (!l->found.missing)
		return;
	for (size_t i = 0; i < l->n; i++) {
		if (!entry_names_find(&h->e, a, &a->syms[i]))
			l->found.missing[l->found.n_missing++] = (uint32_t)i;
		else
			a->tally.unnamed += !a->syms[i].nfunctions;
	}
	a->tally.resolved = l->n - l->found.n_missing;
	l->found.hit = !l->found.n_missing;
	held_cut(l->c, LOOKUP_HELD_MAX);
}

/* Only the front is read here: the worker reads what it needs. */
static int lookup_units_front(struct cache_lookup *l, int fd, uint64_t size)
{
	union {
		struct entry_head head;
		uint8_t bytes[sizeof(struct entry_head) + WITNESS_MAX];
	} front;
	struct entry e;
	size_t len = sizeof(front.head);
	int err = dir_read_part(fd, 0, front.bytes, len);

	if (!err && front.head.witness_len > WITNESS_MAX)
		err = -EBADMSG;
	if (!err)
		err = dir_read_part(fd, len, front.bytes + len,
				    front.head.witness_len);
	if (!err)
		err = entry_check_front(&e, &l->id, front.bytes,
					len + front.head.witness_len, size);
	if (!err)
		err = witness_check(e.witness, e.head->witness_len);
	if (err)
		return err;
	strbuf_add(&l->depends, e.witness, e.head->witness_len);
	l->found.at = len + e.head->witness_len;
	return l->depends.failed ? -ENOMEM : 0;
}

static int lookup_units(struct cache_lookup *l)
{
	char name[DIR_NAME_MAX];
	uint64_t size = 0;
	int fd, err;

	dir_name(name, &l->id, l->owner);
	fd = dir_open_file(&l->c->dir, name, ENTRY_UNITS_MAX, &size);
	if (fd < 0)
		return fd;
	err = lookup_units_front(l, fd, size);
	if (err)
		close(fd);
	else
		l->found.fd = fd;
	return err;
}

static void lookup_work(uv_work_t *work)
{
	struct cache_lookup *l = container_of(work, struct cache_lookup, work);

	/* Before a worker reads the file: what changes later is noticed. */
	witness_dirs(&l->witness, l->c->opts.debug_dirs, l->build_id,
		     l->build_id_len);
	if (l->id.kind == ENTRY_ROWS) {
		l->err = lookup_rows(l);
		l->found.hit = !l->err;
	} else if (l->id.kind == ENTRY_UNITS) {
		l->err = lookup_units(l);
	} else {
		lookup_names(l);
	}
	lookup_drop(l);
}

/* --- on the loop ---------------------------------------------------------- */

static void lookup_free(struct cache_lookup *l)
{
	symbolizer_rows_free(l->found.rows);
	symbolizer_answer_fini(&l->found.answer);
	free(l->found.missing);
	strbuf_fini(&l->witness);
	strbuf_fini(&l->depends);
	if (l->found.fd >= 0)
		close(l->found.fd);
	free(l);
}

static void lookup_count(struct cache_lookup *l)
{
	struct symbolizer_stats *st = l->c->opts.stats;
	size_t hits = l->found.answer.tally.resolved;

	st->cache_corrupt += l->err == -EBADMSG;
	st->cache_stale += l->err == -ESTALE;
	if (l->id.kind == ENTRY_ROWS) {
		st->cache_rows_hits += l->found.hit;
		st->cache_rows_misses += !l->found.hit;
	} else if (l->id.kind == ENTRY_NAMES) {
		st->cache_names_hits += hits;
		st->cache_names_misses += l->n - hits;
	}
}

/* Answers it unless it was answered or cancelled. */
static void lookup_answer(struct cache_lookup *l)
{
	cache_fn fn = l->fn;

	l->fn = NULL;
	if (fn)
		fn(l->arg, &l->found);
}

static void lookup_next(struct cache *c);

static void lookup_done(uv_work_t *work, int status)
{
	struct cache_lookup *l = container_of(work, struct cache_lookup, work);
	struct cache *c = l->c;

	c->looking = c->stuck = false;
	TAILQ_REMOVE(&c->lookups, l, link);
	if (!c->freed)
		uv_timer_stop(&c->patience);
	lookup_count(l);
	if (l->fn && !l->file->witnessed) {
		strbuf_add(&l->file->witness, strbuf_str(&l->witness) ?: "",
			   l->witness.len);
		l->file->witness.failed |= l->witness.failed;
		l->file->witnessed = true;
	}
	/* What is made of them depends on the same. */
	if (l->fn && l->found.fd >= 0)
		witness_join(&l->file->witness,
			     (const uint8_t *)l->depends.data, l->depends.len);
	lookup_answer(l);
	lookup_free(l);
	lookup_next(c);
	cache_unref(c);
}

/* The disk hangs: those that wait for it are answered as if nothing was found. */
static void lookup_on_patience(uv_timer_t *timer)
{
	struct cache *c = container_of(timer, struct cache, patience);
	struct cache_lookup *l = TAILQ_FIRST(&c->lookups), *next;
	struct cache_found none = { .fd = -1 };
	cache_fn fn = l->fn;

	c->stuck = true;
	c->opts.stats->cache_late++;
	l->fn = NULL;
	if (fn) {
		l->file->witness.failed = true;
		fn(l->arg, &none);
	}
	while ((next = TAILQ_NEXT(l, link))) {
		TAILQ_REMOVE(&c->lookups, next, link);
		next->file->witness.failed = true;
		lookup_answer(next);
		lookup_free(next);
	}
}

static void lookup_next(struct cache *c)
{
	struct cache_lookup *l = TAILQ_FIRST(&c->lookups);

	if (!l || c->looking)
		return;
	c->looking = true;
	c->refs++;
	uv_timer_start(&c->patience, lookup_on_patience, CACHE_PATIENCE_MS, 0);
	uv_queue_work(c->opts.loop, &l->work, lookup_work, lookup_done);
}

static int lookup_set_names(struct cache_lookup *l, const uint64_t *offsets,
			    size_t n)
{
	struct symbolizer_symbol *syms = calloc(n + 1, sizeof(*syms));

	l->found.answer.syms = syms;
	if (!syms)
		return -ENOMEM;
	l->n = n;
	for (size_t i = 0; i < n; i++) {
		syms[i].offset = offsets[i];
		syms[i].vaddr = symbolizer_file_vaddr(l->file, offsets[i]);
	}
	return 0;
}

/* NULL: no memory. */
static struct cache_lookup *lookup_new(struct cache *c,
				       struct symbolizer_file *f,
				       enum entry_kind kind,
				       const uint64_t *offsets, size_t n)
{
	struct cache_lookup *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->c = c;
	l->file = f;
	l->found.fd = -1;
	l->owner = f->owner;
	entry_key(&l->id, kind, &f->ident, c->opts.debug_dirs);
	l->build_id_len = f->ident.build_id_len;
	memcpy(l->build_id, f->ident.build_id, sizeof(l->build_id));
	arena_init(&l->found.answer.names);
	if (kind == ENTRY_NAMES && lookup_set_names(l, offsets, n)) {
		lookup_free(l);
		return NULL;
	}
	return l;
}

struct cache_lookup *cache_look(struct cache *c, struct symbolizer_file *f,
				enum entry_kind kind, const uint64_t *offsets,
				size_t n, cache_fn fn, void *arg)
{
	struct cache_lookup *l;

	if (!c || !f->hashed)
		return NULL;
	l = c->stuck ? NULL : lookup_new(c, f, kind, offsets, n);
	if (!l) {
		/* A worker reads it now: too late for a witness. */
		f->witness.failed = true;
		return NULL;
	}
	l->fn = fn;
	l->arg = arg;
	TAILQ_INSERT_TAIL(&c->lookups, l, link);
	lookup_next(c);
	return l;
}

void cache_cancel(struct cache_lookup *l)
{
	struct cache *c = l->c;

	l->fn = NULL;
	if (c->looking && TAILQ_FIRST(&c->lookups) == l)
		return;
	TAILQ_REMOVE(&c->lookups, l, link);
	lookup_free(l);
}
