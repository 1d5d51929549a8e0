// SPDX-License-Identifier: Apache-2.0
/* keep: collects and writes what workers answered, see symbolize/cache/cache.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/cache/internal.h"
#include "symbolize/units/dwarf_store.h"
#include "symbolize/reader/witness.h"
#include "symbolize/reader/worker_msg.h"

/* Bytes of tables that are collected at most; others may have freed them. */
#define KEEP_MAX (32U << 20)
/* Bytes of names that are written at once; twice as many are the limit. */
#define KEEP_NAMES_MAX (2U << 20)
/* Bytes of units: that are written at once; that wait, of one owner what is free. */
#define KEEP_UNITS_NOW (4U << 20)
#define KEEP_UNITS_MAX (48U << 20)
/* The part of the directory that the units of one file may take. */
#define KEEP_UNITS_SHARE 4

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
	struct strbuf units; /* UNITS: a store */
	bool anew; /* ... what was written is not used */
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
	strbuf_fini(&it->units);
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
				it->witness.data,
				&(struct dir_part){ out.data, out.len, -1, 0 },
				1);
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
			 &(struct dir_part){
				 map, it->block ? it->block->len : 0, -1, 0 },
			 1);
}

/* The units that are there, if they depend on the same. A descriptor, or -errno. */
static int keep_open_units(struct cache *c, const struct cache_item *it,
			   const char *name, struct entry_head *head,
			   uint64_t *size)
{
	size_t len = sizeof(*head) + it->witness.len;
	int fd = dir_open_file(&c->dir, name, ENTRY_UNITS_MAX, size);
	uint8_t *bytes;
	struct entry e;
	int err;

	if (fd < 0)
		return fd;
	bytes = malloc(len);
	err = bytes ? dir_read_part(fd, 0, bytes, len) : -ENOMEM;
	if (!err)
		err = entry_check_front(&e, &it->id, bytes, len, *size);
	if (!err && (e.head->witness_len != it->witness.len ||
		     (it->witness.len && memcmp(e.witness, it->witness.data,
						it->witness.len) != 0)))
		err = -ESTALE;
	if (!err)
		*head = *e.head;
	free(bytes);
	if (!err)
		return fd;
	close(fd);
	return err;
}

/* The front of a store for old records, which begin at *at, and new ones. */
static bool keep_join(int fd, uint64_t *at, uint64_t size, struct strbuf *front,
		      struct strbuf *more, const struct dwarf_store_front *new)
{
	struct dwarf_store_head head;
	struct dwarf_store_front old;
	uint8_t *bytes = NULL;
	bool ok = false;
	size_t len = 0;

	if (!dir_read_part(fd, *at, &head, sizeof(head)))
		len = dwarf_store_front_len(&head);
	if (len && len <= size - *at)
		bytes = malloc(len);
	if (bytes && !dir_read_part(fd, *at, bytes, len)) {
		*at += len;
		ok = dwarf_store_front(&old, bytes, len, size - *at) &&
		     dwarf_store_join(front, more, &old, size - *at, new) &&
		     !front->failed && !more->failed;
	}
	free(bytes);
	return ok;
}

static int keep_write_parts(struct cache *c, struct cache_item *it,
			    const char *name, struct entry_head *head,
			    const struct dir_part *parts, size_t n)
{
	uint64_t len = 0;

	for (size_t i = 0; i < n; i++)
		len += parts[i].len;
	if (len + sizeof(*head) + it->witness.len >
	    MIN((uint64_t)ENTRY_UNITS_MAX, c->dir.max / KEEP_UNITS_SHARE))
		return -EFBIG;
	entry_seal(head, &it->id, it->witness.data, it->witness.len, NULL, len);
	return dir_write(&c->dir, name, it->owner, head, it->witness.data,
			 parts, n);
}

/* Units that were read before are kept, while all are not too large. */
static int keep_write_units(struct cache *c, struct cache_item *it,
			    const char *name)
{
	struct entry_head head = { 0 };
	struct strbuf front = STRBUF_INIT, more = STRBUF_INIT;
	struct dwarf_store_front new;
	struct dir_part parts[3];
	uint64_t size, at;
	int fd, err = -EFBIG;

	if (it->anew)
		dir_remove(&c->dir, name);
	if (!it->units.len ||
	    !dwarf_store_whole(&new, it->units.data, it->units.len))
		return 0;
	fd = keep_open_units(c, it, name, &head, &size);
	at = sizeof(head) + it->witness.len;
	if (fd >= 0 && keep_join(fd, &at, size, &front, &more, &new)) {
		parts[0] = (struct dir_part){ front.data, front.len, -1, 0 };
		parts[1] = (struct dir_part){ NULL, size - at, fd, at };
		parts[2] = (struct dir_part){ more.data, more.len, -1, 0 };
		err = keep_write_parts(c, it, name, &head, parts, 3);
	}
	if (err == -EFBIG || err == -EBADMSG) {
		head = (struct entry_head){ 0 };
		parts[0] = (struct dir_part){ it->units.data, it->units.len, -1,
					      0 };
		err = keep_write_parts(c, it, name, &head, parts, 1);
	}
	strbuf_fini(&front);
	strbuf_fini(&more);
	if (fd >= 0)
		close(fd);
	c->units_large += err == -EFBIG;
	return err == -EFBIG ? 0 : err;
}

static int keep_write_known(struct cache *c)
{
	struct entry_head head = { 0 };

	if (!c->known.len || c->known.failed)
		return 0;
	entry_seal(&head, &c->known_id, NULL, 0, c->known.data, c->known.len);
	return dir_write(
		&c->dir, DIR_KNOWN, 0, &head, NULL,
		&(struct dir_part){ c->known.data, c->known.len, -1, 0 }, 1);
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
			 : it->id.kind == ENTRY_UNITS
				 ? keep_write_units(c, it, name)
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
	c->items_bytes = c->names_bytes = c->units_bytes = 0;
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
	st->cache_units_refused += c->units_large;
	c->units_large = 0;
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
	c->items_bytes = c->names_bytes = c->units_bytes = 0;
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
	if (c->names_bytes > KEEP_NAMES_MAX || c->units_bytes > KEEP_UNITS_NOW)
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

/* Whether an owner may have more units wait: as much as is free. */
static bool keep_units_room(const struct cache *c, uint32_t owner, size_t len)
{
	const struct cache_items *const lists[] = { &c->items, &c->writing };
	const struct cache_item *it;
	size_t all = 0, own = 0;

	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		TAILQ_FOREACH(it, lists[i], link) {
			all += it->units.len;
			own += it->owner == owner ? it->units.len : 0;
		}
	}
	return own + len <= KEEP_UNITS_MAX - MIN(all, (size_t)KEEP_UNITS_MAX);
}

int cache_keep_units(struct cache *c, const struct symbolizer_file *f,
		     const void *store, size_t len)
{
	struct dwarf_store_front front;
	struct cache_item *it;
	int err;

	if (!dwarf_store_whole(&front, store, len))
		return -EBADMSG;
	if (!keep_may(c, f))
		return 0;
	if (!keep_units_room(c, f->owner, len)) {
		c->opts.stats->cache_units_refused++;
		return 0;
	}
	it = keep_item(c, f, ENTRY_UNITS);
	if (!it)
		return 0;
	c->units_bytes -= it->units.len;
	err = dwarf_store_add(&it->units, store, len);
	c->units_bytes += it->units.len;
	keep_plan(c);
	return err == -ENOMEM ? 0 : err;
}

static struct cache_item *keep_waiting(struct cache_items *items,
				       const struct entry_id *id,
				       const struct symbolizer_file *f)
{
	struct cache_item *it;

	TAILQ_FOREACH(it, items, link)
		if (it->id.kind == id->kind && it->units.len &&
		    !memcmp(it->id.key, id->key, sizeof(id->key)) &&
		    it->witness.len == f->witness.len &&
		    (!it->witness.len ||
		     !memcmp(it->witness.data, f->witness.data,
			     it->witness.len)))
			return it;
	return NULL;
}

/* The writer only reads its items. */
int cache_units_waiting(struct cache *c, const struct symbolizer_file *f)
{
	struct cache_item *it;
	struct entry_id id;

	if (f->witness.failed)
		return -ENOENT;
	entry_key(&id, ENTRY_UNITS, &f->ident, c->opts.debug_dirs);
	it = keep_waiting(&c->items, &id, f)
		     ?: keep_waiting(&c->writing, &id, f);
	return it ? worker_table_make(it->units.data, it->units.len) : -ENOENT;
}

void cache_units_damaged(struct cache *c, const struct symbolizer_file *f)
{
	struct cache_item *it;

	c->opts.stats->cache_corrupt++;
	if (c->failed || f->witness.failed)
		return;
	it = keep_item(c, f, ENTRY_UNITS);
	if (it)
		it->anew = true;
	keep_plan(c);
}
