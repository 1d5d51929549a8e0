// SPDX-License-Identifier: Apache-2.0
/* keep: collects and writes what workers answered, see symbolize/cache/cache.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "symbolize/cache/internal.h"
#include "symbolize/reader/witness.h"

/* Bytes of tables that are collected at most; others may have freed them. */
#define KEEP_MAX (32U << 20)
/* Bytes of names that are written at once; twice as many are the limit. */
#define KEEP_NAMES_MAX (2U << 20)

struct cache_block {
	unsigned int refs;
	void *map;
	size_t len;
	symbolizer_rows_release_fn release;
};

struct cache_item {
	TAILQ_ENTRY(cache_item) link;
	struct entry_id id;
	uint32_t owner;
	struct strbuf witness;
	int err;
	struct cache_block *block; /* ROWS, unless 'err' */
	struct entry_news news; /* NAMES */
};

/* --- blocks --------------------------------------------------------------- */

void cache_block_put(struct cache_block *b)
{
	if (!b || __atomic_sub_fetch(&b->refs, 1, __ATOMIC_ACQ_REL))
		return;
	b->release(NULL, b->map, b->len);
	free(b);
}

static void block_release(void *arg, const void *map, size_t len)
{
	cache_block_put(arg);
}

int cache_block_adopt(struct cache_block **bp, void *map, size_t len,
		      symbolizer_rows_release_fn release,
		      struct symbolizer_rows **rows)
{
	struct cache_block *b = malloc(sizeof(*b));
	int err = b ? symbolizer_rows_adopt(map, len, block_release, b, rows)
		    : -ENOMEM;

	if (err) {
		free(b);
		return err;
	}
	*b = (struct cache_block){ 2, map, len, release };
	*bp = b;
	return 0;
}

/* --- writing, in the pool ------------------------------------------------- */

static void item_free(struct cache_item *it)
{
	cache_block_put(it->block);
	strbuf_fini(&it->witness);
	strbuf_fini(&it->news.bytes);
	free(it);
}

/* The names that are there, if they depend on the same. */
static bool keep_read_old(struct cache *c, const struct cache_item *it,
			  const char *name, struct entry *old, uint8_t **bytes)
{
	size_t len;

	*bytes = NULL;
	if (dir_read(&c->dir, name, bytes, &len))
		return false;
	return !entry_check(old, &it->id, *bytes, len) &&
	       !entry_names_check(old) &&
	       old->head->witness_len == it->witness.len &&
	       !memcmp(old->witness, it->witness.data, it->witness.len);
}

static int keep_write_names(struct cache *c, struct cache_item *it,
			    const char *name)
{
	struct entry_head head = { 0 };
	struct strbuf out = STRBUF_INIT;
	struct entry old;
	uint8_t *bytes;
	int err = -ENOMEM;
	bool is_old = keep_read_old(c, it, name, &old, &bytes);

	if (entry_names_merge(&out, &head.n, is_old ? &old : NULL, &it->news)) {
		/* What is old stays as old as it is. */
		head.made_s = is_old ? old.head->made_s : 0;
		entry_seal(&head, &it->id, it->witness.data, it->witness.len,
			   out.data, out.len);
		err = dir_write(&c->dir, name, it->owner, &head,
				it->witness.data, out.data);
	}
	strbuf_fini(&out);
	free(bytes);
	return err;
}

static int keep_write_rows(struct cache *c, struct cache_item *it,
			   const char *name)
{
	struct entry_head head = { .err = it->err };
	const void *map = it->block ? it->block->map : NULL;

	entry_seal(&head, &it->id, it->witness.data, it->witness.len, map,
		   it->block ? it->block->len : 0);
	return dir_write(&c->dir, name, it->owner, &head, it->witness.data,
			 map);
}

static int keep_write_known(struct cache *c)
{
	struct entry_head head = { 0 };

	if (!c->known.len || c->known.failed)
		return 0;
	entry_seal(&head, &c->known_id, NULL, 0, c->known.data, c->known.len);
	return dir_write(&c->dir, DIR_KNOWN, 0, &head, NULL, c->known.data);
}

static void keep_work(uv_work_t *work)
{
	struct cache *c = work->data;
	char name[DIR_NAME_MAX];
	struct cache_item *it;

	c->err = keep_write_known(c);
	TAILQ_FOREACH(it, &c->writing, link) {
		if (c->err && c->err != -ENOMEM)
			return;
		dir_name(name, &it->id, it->owner);
		c->err = it->id.kind == ENTRY_ROWS
				 ? keep_write_rows(c, it, name)
				 : keep_write_names(c, it, name);
		c->written += !c->err;
	}
}

/* --- on the loop ---------------------------------------------------------- */

static void keep_drop(struct cache_items *items)
{
	struct cache_item *it;

	while ((it = TAILQ_FIRST(items))) {
		TAILQ_REMOVE(items, it, link);
		item_free(it);
	}
}

/* What was collected is dropped. */
static void keep_forget(struct cache *c)
{
	keep_drop(&c->items);
	c->items_bytes = c->names_bytes = 0;
}

static void keep_plan(struct cache *c);

static void keep_done(uv_work_t *work, int status)
{
	struct cache *c = work->data;
	struct symbolizer_stats *st = c->opts.stats;

	free(work);
	c->busy = false;
	keep_drop(&c->writing);
	strbuf_reset(&c->known);
	st->cache_written = c->written;
	st->cache_evicted = c->dir.evicted;
	st->cache_bytes = c->dir.bytes;
	if (c->err && c->err != -ENOMEM && !c->failed) {
		c->failed = true;
		st->cache_failed++;
		if (c->opts.failed)
			c->opts.failed(c->opts.failed_arg, c->err);
	}
	if (c->freed)
		cache_write(c);
	else
		keep_plan(c);
	cache_unref(c);
}

void cache_write(struct cache *c)
{
	uv_work_t *work;

	if (c->failed)
		keep_forget(c);
	if (c->busy ||
	    (TAILQ_EMPTY(&c->items) && c->known_added == c->opts.known->added))
		return;
	work = malloc(sizeof(*work));
	if (!work || c->failed) {
		free(work);
		keep_forget(c);
		return;
	}
	if (c->known_added != c->opts.known->added)
		symbolizer_known_pack(c->opts.known, &c->known);
	c->known_added = c->opts.known->added;
	TAILQ_CONCAT(&c->writing, &c->items, link);
	c->items_bytes = c->names_bytes = 0;
	c->busy = true;
	c->refs++;
	work->data = c;
	uv_queue_work(c->opts.loop, work, keep_work, keep_done);
}

static void keep_on_flush(uv_timer_t *timer)
{
	struct cache *c = container_of(timer, struct cache, flush);

	c->flush_ms = MIN(2 * c->flush_ms, (uint64_t)CACHE_FLUSH_MAX_MS);
	cache_write(c);
}

static void keep_plan(struct cache *c)
{
	if (c->freed || c->failed || c->busy || TAILQ_EMPTY(&c->items))
		return;
	if (c->names_bytes > KEEP_NAMES_MAX)
		cache_write(c);
	else if (!uv_is_active((uv_handle_t *)&c->flush))
		uv_timer_start(&c->flush, keep_on_flush, c->flush_ms, 0);
}

void cache_keep_init(struct cache *c)
{
	TAILQ_INIT(&c->items);
	TAILQ_INIT(&c->writing);
	c->flush_ms = CACHE_FLUSH_MS;
}

/*
 * Whether all that was read of the file is what its content hash says: it is not
 * damaged, has not changed since it was opened, and a change would be seen.
 */
static bool keep_may(const struct cache *c, const struct symbolizer_file *f)
{
	return c && !c->failed && f->hashed && f->witnessed && !f->damaged &&
	       !f->witness.failed && f->witness.len <= WITNESS_MAX &&
	       c->items_bytes <= KEEP_MAX &&
	       c->names_bytes <= 2 * KEEP_NAMES_MAX &&
	       symbolizer_known_settled(&f->ident) && !symbolizer_changed(f);
}

static struct cache_item *keep_item(struct cache *c,
				    const struct symbolizer_file *f,
				    enum entry_kind kind)
{
	struct cache_item *it;
	struct entry_id id;

	entry_key(&id, kind, &f->ident, c->opts.debug_dirs);
	TAILQ_FOREACH(it, &c->items, link)
		if (it->id.kind == kind &&
		    !memcmp(it->id.key, id.key, sizeof(id.key)) &&
		    it->witness.len == f->witness.len &&
		    !memcmp(it->witness.data, f->witness.data, f->witness.len))
			return it;
	it = calloc(1, sizeof(*it));
	if (!it)
		return NULL;
	it->id = id;
	it->owner = f->owner;
	strbuf_add(&it->witness, f->witness.data, f->witness.len);
	if (it->witness.failed) {
		item_free(it);
		return NULL;
	}
	TAILQ_INSERT_TAIL(&c->items, it, link);
	return it;
}

void cache_keep_rows(struct cache *c, const struct symbolizer_file *f, int err,
		     struct cache_block *b)
{
	struct cache_item *it;

	if ((err ? !entry_err_lasts(err) : !b) || !keep_may(c, f))
		return;
	it = keep_item(c, f, ENTRY_ROWS);
	if (!it || it->block || it->err)
		return;
	it->err = err;
	if (!err) {
		__atomic_add_fetch(&b->refs, 1, __ATOMIC_RELAXED);
		it->block = b;
		c->items_bytes += b->len;
	}
	keep_plan(c);
}

struct cache_item *cache_keep_names(struct cache *c,
				    const struct symbolizer_file *f)
{
	return keep_may(c, f) ? keep_item(c, f, ENTRY_NAMES) : NULL;
}

void cache_keep_name(struct cache *c, struct cache_item *it,
		     const struct symbolizer_symbol *sym)
{
	size_t before = it->news.bytes.len;

	entry_news_add(&it->news, sym);
	c->names_bytes += it->news.bytes.len - before;
}

void cache_keep_end(struct cache *c)
{
	keep_plan(c);
}
