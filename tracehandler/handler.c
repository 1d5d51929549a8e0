// SPDX-License-Identifier: Apache-2.0
/*
 * handler: see tracehandler/tracehandler.h; the stages are in handler.h. This is
 * the first: a record is parsed and goes to the stage of stacks. It waits here, as
 * it came, for the exec event of its image and for tables that are being read.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracehandler/handler.h"

#define TRACE_CACHE_FRAMES 65536
#define TRACE_WAIT_MS 3000
#define TRACE_WAIT_BYTES (8 << 20)
#define TRACE_TABLE_BYTES SYMBOLIZER_ROWS_MAX /* of all; one may fill it */
#define TRACE_MAX_FRAMES 4096

/* A record that waits, for its image or for a table. */
struct trace_raw {
	struct trace_wait wait;
	struct trace_handler *owner;
	struct pm_image *image;
	struct pm_view *view; /* what was mapped then; NULL: as of now */
	struct trace_table *table; /* a reference; NULL: it waits for the image */
	uint8_t *bytes; /* in the vault */
	size_t len;
};

/*
 * What the stages left on profd's own stack: registers of others, which may hold
 * secrets, are not to be in its core dumps either. Their frames take less than this.
 */
#define TRACE_WIPE_BYTES 8192

static __attribute__((noinline)) void trace_handler_wipe(void)
{
	uint8_t below[TRACE_WIPE_BYTES];

	explicit_bzero(below, sizeof(below));
}

/* A table, or the names of frames. */
static void trace_handler_settled(void *arg)
{
	struct trace_handler *th = arg;

	trace_waits_check(&th->waits, 0);
	trace_handler_wipe();
}

static void trace_handler_defaults(struct trace_opts *o)
{
	if (!o->cache_frames)
		o->cache_frames = TRACE_CACHE_FRAMES;
	if (!o->wait_ms)
		o->wait_ms = TRACE_WAIT_MS;
	if (!o->wait_bytes)
		o->wait_bytes = TRACE_WAIT_BYTES;
	if (!o->table_bytes)
		o->table_bytes = TRACE_TABLE_BYTES;
	if (!o->max_frames)
		o->max_frames = TRACE_MAX_FRAMES;
}

int trace_handler_new(struct trace_handler **thp, const struct trace_opts *opts)
{
	struct trace_handler *th = calloc(1, sizeof(*th));
	struct trace_opts *o;
	int err;

	if (!th)
		return -ENOMEM;
	o = &th->opts;
	*o = *opts;
	trace_handler_defaults(o);
	trace_waits_init(&th->waits, o->wait_ms, &th->stats);
	err = trace_frames_init(&th->frames, o, &th->waits, &th->stats,
				trace_handler_settled, th);
	if (!err)
		err = trace_stacks_init(&th->stacks, o, &th->frames, &th->stats,
					trace_handler_settled, th);
	if (!err && vault_new(&th->vault))
		err = -ENOMEM;
	if (err) {
		trace_handler_free(th);
		return err;
	}
	*thp = th;
	return 0;
}

void trace_handler_free(struct trace_handler *th)
{
	if (!th)
		return;
	trace_handler_flush(th);
	trace_frames_fini(&th->frames);
	trace_stacks_fini(&th->stacks);
	vault_free(th->vault);
	free(th);
}

static int trace_handler_take(struct trace_handler *th, struct trace_take *take)
{
	if (!th->opts.selected_only || pm_image_selected(take->image))
		return trace_stacks_take(&th->stacks, take);
	th->stats.unselected++;
	return 0;
}

/* --- records that wait ------------------------------------------------------ */

static void trace_raw_free(struct trace_raw *r)
{
	pm_view_free(r->view);
	trace_table_put(r->table);
	vault_give(r->bytes);
	free(r);
}

/*
 * For 'table', whatever is mapped later. At the first time all other tables of
 * the image are requested, too. 0 or -ENOMEM.
 */
static int trace_raw_want(struct trace_raw *r, struct trace_table *table)
{
	struct trace_handler *th = r->owner;

	trace_tables_want(&th->stacks.tables, table);
	trace_table_ref(table);
	trace_table_put(r->table);
	r->table = table;
	if (r->view)
		return 0;
	r->view = pm_view_new(th->opts.pm, r->image, r->wait.time);
	if (!r->view)
		return -ENOMEM;
	trace_stacks_ask(&th->stacks, r->view);
	return 0;
}

static bool trace_raw_over(struct trace_wait *w)
{
	struct trace_raw *r = container_of(w, struct trace_raw, wait);

	if (r->table)
		return r->table->state != TRACE_TABLE_ASKED;
	return !pm_image_provisional(r->image);
}

/*
 * The deadline is that of the whole sample: it holds for another table, and for
 * names.
 */
static void trace_raw_end(struct trace_wait *w, bool over)
{
	struct trace_raw *r = container_of(w, struct trace_raw, wait);
	struct trace_take take = {
		.image = r->image,
		.view = r->view,
		.deadline = w->deadline,
		.hurry = !over && r->table,
	};
	struct trace_record rec;

	take.rec = &rec;
	if (trace_record_parse(r->bytes, r->len, &rec) ||
	    trace_handler_take(r->owner, &take) != -EAGAIN) {
		trace_raw_free(r);
	} else if (trace_raw_want(r, take.late)) {
		r->owner->stats.nomem++;
		trace_raw_free(r);
	} else {
		trace_waits_add(&r->owner->waits, w);
	}
}

static void trace_raw_drop(struct trace_wait *w)
{
	trace_raw_free(container_of(w, struct trace_raw, wait));
}

static const struct trace_wait_kind trace_raw_kind = {
	trace_raw_over,
	trace_raw_end,
	trace_raw_drop,
};

/* For the table it was 'late' for, or its image. 0 or -ENOMEM, counted. */
static int trace_handler_wait(struct trace_handler *th,
			      const struct trace_take *take, const void *buf)
{
	struct trace_raw *r = calloc(1, sizeof(*r));

	if (!r)
		goto nomem;
	r->owner = th;
	r->image = take->image;
	r->len = take->rec->head.size;
	r->wait.kind = &trace_raw_kind;
	r->wait.time = take->rec->head.time;
	r->wait.bytes = sizeof(*r) + r->len;
	r->bytes = vault_take(th->vault, r->len);
	if (!r->bytes || (take->late && trace_raw_want(r, take->late)))
		goto free;
	memcpy(r->bytes, buf, r->len);
	trace_waits_add(&th->waits, &r->wait);
	return 0;
free:
	trace_raw_free(r);
nomem:
	th->stats.nomem++;
	return -ENOMEM;
}

static int trace_handler_put(struct trace_handler *th, const void *buf,
			     size_t len)
{
	struct trace_take take = { 0 };
	struct trace_record rec;
	int err;

	err = trace_record_parse(buf, len, &rec);
	if (err) {
		th->stats.bad_records++;
		return err;
	}
	th->stats.samples++;
	take.rec = &rec;
	take.image = pm_image_get(th->opts.pm, &rec.head.key, rec.head.time);
	if (!take.image) {
		th->stats.nomem++;
		return -ENOMEM;
	}
	err = -EAGAIN;
	if (!pm_image_provisional(take.image))
		err = trace_handler_take(th, &take);
	return err == -EAGAIN ? trace_handler_wait(th, &take, buf) : err;
}

int trace_handler_sample(struct trace_handler *th, const void *buf, size_t len)
{
	int err = trace_handler_put(th, buf, len);

	trace_waits_limit(&th->waits, th->opts.wait_bytes);
	trace_handler_wipe();
	return err;
}

/* --- what waits ------------------------------------------------------------- */

uint64_t trace_handler_oldest(const struct trace_handler *th)
{
	return trace_waits_oldest(&th->waits);
}

void trace_handler_tick(struct trace_handler *th, uint64_t now)
{
	th->stacks.tables.now = now;
	trace_waits_check(&th->waits, now);
	trace_handler_wipe();
	pm_names_send(th->opts.pm);
}

bool trace_handler_awaits(const struct trace_handler *th)
{
	return th->stacks.tables.wanted;
}

void trace_handler_drop(struct trace_handler *th)
{
	trace_waits_drop(&th->waits);
}

void trace_handler_flush(struct trace_handler *th)
{
	trace_waits_limit(&th->waits, 0);
	trace_handler_wipe();
}

void trace_handler_get_stats(const struct trace_handler *th,
			     struct trace_stats *out)
{
	*out = th->stats;
	out->cache_evicted = th->frames.cache.evicted;
	out->cache_entries = th->frames.cache.count;
}
