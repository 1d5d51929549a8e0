// SPDX-License-Identifier: Apache-2.0
/* cache: its beginning and end, see symbolize/cache/cache.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/cache/internal.h"
#include "symbolize/reader/witness.h"

#define CACHE_BOOT_ID "/proc/sys/kernel/random/boot_id"

void cache_unref(struct cache *c)
{
	struct cache_opts opts = c->opts;

	if (--c->refs)
		return;
	cache_lookup_fini(c);
	strbuf_fini(&c->known);
	dir_close(&c->dir);
	free(c);
	if (opts.closed)
		opts.closed(opts.arg);
}

/* The known identities hold while this kernel runs. */
static void cache_known_id(struct entry_id *id)
{
	char text[64] = "";
	uint8_t digest[SYMBOLIZER_FILE_ID_LEN];
	ssize_t n = procfs_read(AT_FDCWD, CACHE_BOOT_ID, text, sizeof(text));
	struct symbolizer_src src;

	memset(id, 0, sizeof(*id));
	id->kind = ENTRY_KNOWN;
	symbolizer_src_mem(&src, text, n > 0 ? (size_t)n : 0);
	if (!symbolizer_content(&src, digest))
		memcpy(id->key, digest, sizeof(id->key));
}

static void cache_read_known(struct cache *c)
{
	uint8_t *bytes;
	struct entry e;
	size_t len;
	int err = dir_read(&c->dir, DIR_KNOWN, &bytes, &len);

	if (!err) {
		err = entry_check(&e, &c->known_id, bytes, len);
		if (!err &&
		    (e.head->witness_len ||
		     !symbolizer_known_unpack(c->opts.known, e.payload, e.len)))
			err = -EBADMSG;
		free(bytes);
	}
	/* After a new start of the host it has another key. */
	c->opts.stats->cache_corrupt += err == -EBADMSG;
	if (err == -EBADMSG || err == -ESTALE)
		dir_remove(&c->dir, DIR_KNOWN);
	c->known_added = c->opts.known->added;
}

int cache_new(struct cache **cp, const struct cache_opts *opts)
{
	struct cache *c = calloc(1, sizeof(*c));
	int err = c ? dir_open(&c->dir, opts->dir, opts->bytes) : -ENOMEM;

	if (err) {
		free(c);
		return err;
	}
	c->opts = *opts;
	c->refs = 1;
	TAILQ_INIT(&c->lookups);
	TAILQ_INIT(&c->held);
	cache_keep_init(c);
	uv_timer_init(opts->loop, &c->patience);
	uv_timer_init(opts->loop, &c->flush);
	/* A loop that has nothing else to do ends. */
	uv_unref((uv_handle_t *)&c->patience);
	uv_unref((uv_handle_t *)&c->flush);
	c->refs += 2;
	cache_known_id(&c->known_id);
	cache_read_known(c);
	*cp = c;
	return 0;
}

static void cache_on_closed(uv_handle_t *h)
{
	cache_unref(h->data);
}

void cache_free(struct cache *c)
{
	if (!c)
		return;
	c->freed = true;
	cache_write(c);
	c->patience.data = c->flush.data = c;
	uv_close((uv_handle_t *)&c->patience, cache_on_closed);
	uv_close((uv_handle_t *)&c->flush, cache_on_closed);
	cache_unref(c);
}
