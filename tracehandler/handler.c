// SPDX-License-Identifier: Apache-2.0
/*
 * handler: see tracehandler/tracehandler.h; the stages are in handler.h. This is
 * the first: it parses records and passes them on to the stage of stacks. It keeps
 * a record that has to wait for the exec event of its image or for a table.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tracehandler/handler.h"

#define TRACE_CACHE_FRAMES 65536
#define TRACE_WAIT_MS 3000
#define TRACE_WAIT_BYTES (8 << 20)
#define TRACE_NAMES_BYTES (64 << 20) /* some 130,000 traces of 40 frames */
#define TRACE_TABLE_BYTES SYMBOLIZER_ROWS_MAX /* one table may take all */
#define TRACE_MAX_FRAMES 4096
/* Less than the interval of ticks while profd is idle. */
#define TRACE_COLLECT_NS (900 * CLOCK_NSEC_PER_MSEC)

/* A record that waits for its image or a table. */
struct trace_raw {
	struct trace_wait wait;
	struct trace_handler *owner;
	struct pm_image *image;
	struct pm_view *view; /* of the sample's time; NULL: current */
	struct trace_table *table; /* a reference; NULL: waits for the image */
	uint8_t *bytes; /* in the vault */
	size_t len;
};

int trace_handler_new(struct trace_handler **thp, const struct trace_opts *opts)
{
	struct trace_handler *th = calloc(1, sizeof(*th));
	struct trace_opts *o;
	int err;

	if (!th)
		return -ENOMEM;
	o = &th->opts;
	*o = *opts;
	o->cache_frames = o->cache_frames ?: TRACE_CACHE_FRAMES;
	o->wait_ms = o->wait_ms ?: TRACE_WAIT_MS;
	o->wait_bytes = o->wait_bytes ?: TRACE_WAIT_BYTES;
	o->names_bytes = o->names_bytes ?: TRACE_NAMES_BYTES;
	o->table_bytes = o->table_bytes ?: TRACE_TABLE_BYTES;
	o->max_frames = o->max_frames ?: TRACE_MAX_FRAMES;
	trace_waits_init(&th->waits, o->wait_ms, &th->stats);
	trace_waits_init(&th->named, 0, &th->stats);
	err = trace_frames_init(&th->frames, o,
				o->all_names ? &th->named : &th->waits,
				&th->stats);
	if (!err)
		err = trace_stacks_init(&th->stacks, &th->frames, &th->waits);
	if (!err)
		err = vault_new(&th->vault);
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
	int err;

	if (!th->opts.selected_only || pm_image_selected(take->image)) {
		th->frames.trace =
			take->rec->has_trace ? &take->rec->trace : NULL;
		err = trace_stacks_take(&th->stacks, take);
		th->frames.trace = NULL;
		return err;
	}
	th->stats.unselected++;
	return 0;
}

/* --- pending records -------------------------------------------------------- */

static void trace_raw_free(struct trace_raw *r)
{
	pm_view_free(r->view);
	trace_table_put(r->table);
	vault_give(r->bytes);
	free(r);
}

/*
 * Waits for 'table', with the current mappings. The first time, all other tables of
 * the image are requested, too. 0 or -ENOMEM.
 */
static int trace_raw_want(struct trace_raw *r, struct trace_table *table)
{
	struct trace_handler *th = r->owner;
	struct trace_table *old = r->table;

	r->table = trace_tables_want(&th->stacks.tables, table);
	trace_table_put(old);
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

/* The deadline is that of the sample: another table, or names, do not extend it. */
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

/* Waits for table take->late, or for the image. 0 or -ENOMEM, counted. */
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
	r->wait.event = take->rec->head.event;
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

/* Not inlined: what is in its frame is wiped after it. */
static __attribute__((noinline)) int
trace_handler_put(struct trace_handler *th, const void *buf, size_t len)
{
	struct trace_take take = { 0 };
	struct trace_record rec;
	int err;

	err = trace_record_parse(buf, len, &rec);
	if (err) {
		th->stats.bad_records++;
		return err;
	}
	if (rec.head.event == ABI_EVENT_CPU)
		th->stats.samples++;
	else
		th->stats.sites++;
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
	trace_waits_limit(&th->named, th->opts.names_bytes);
	return err;
}

bool trace_handler_ksymbol(struct trace_handler *th,
			   const struct pm_map_event *ev)
{
	struct trace_ksyms *ks = &th->frames.ksyms;

	trace_cache_changed(&th->frames.cache);
	if (ev->kind == PM_MAP_LOST)
		return trace_ksyms_lost(ks, ev->end);
	return (ev->unloaded ? trace_ksyms_unload : trace_ksyms_load)(
		ks, ev->time, ev->start, ev->end, ev->path);
}

void trace_handler_renew(struct trace_handler *th, const uint8_t *build_id,
			 size_t len)
{
	trace_cache_renew(&th->frames.cache, build_id, len);
}

void trace_handler_shed(struct trace_handler *th, unsigned int halvings)
{
	trace_tables_room(&th->stacks.tables, th->opts.table_bytes >> halvings);
	trace_repeats_room(&th->frames.repeats, halvings);
	trace_cache_room(&th->frames.cache, th->opts.cache_frames >> halvings);
}

/* --- kept traces ------------------------------------------------------------- */

struct trace_kept *trace_handler_keep(struct trace_handler *th)
{
	return trace_frames_keep(&th->frames);
}

void trace_handler_unkeep(struct trace_handler *th, struct trace_kept *k)
{
	trace_frames_unkeep(&th->frames, k);
}

size_t trace_handler_kept(struct trace_kept *k, struct reporter_frame *out,
			  size_t n)
{
	return trace_frames_kept(k, out, n);
}

/* --- waits ------------------------------------------------------------------ */

uint64_t trace_handler_oldest(const struct trace_handler *th)
{
	return MIN(trace_waits_oldest(&th->waits),
		   trace_waits_oldest(&th->named));
}

uint64_t trace_handler_due(const struct trace_handler *th)
{
	return th->waits.due;
}

void trace_handler_tick(struct trace_handler *th, uint64_t now, bool idle)
{
	struct trace_waits *ws = &th->waits;

	th->stacks.tables.now = now;
	trace_waits_tick(ws, now);
	trace_waits_tick(&th->named, now);
	if (!idle || th->opts.all_names ||
	    (ws->due != UINT64_MAX &&
	     now + ws->wait_ns > ws->due + TRACE_COLLECT_NS))
		pm_names_send(th->opts.pm);
}

uint64_t trace_handler_unnamed(const struct trace_handler *th)
{
	return th->frames.names.pending + th->frames.late.pending;
}

void trace_handler_late_names(struct trace_handler *th,
			      const struct pm_image *last)
{
	struct pm_exe *memory = last ? pm_image_memory(last) : NULL;

	if (memory || !last)
		trace_late_ask(&th->frames.late, memory);
}

uint64_t trace_handler_late(const struct trace_handler *th)
{
	return th->frames.late.pending;
}

bool trace_handler_awaits(const struct trace_handler *th)
{
	return th->stacks.tables.wanted;
}

void trace_handler_drop(struct trace_handler *th)
{
	trace_waits_drop(&th->waits, ABI_EVENT_CPU);
	trace_waits_drop(&th->named, ABI_EVENT_CPU);
}

void trace_handler_flush(struct trace_handler *th)
{
	/* What ends there may wait for names then. */
	trace_waits_limit(&th->waits, 0);
	trace_waits_limit(&th->named, 0);
}

void trace_handler_get_stats(const struct trace_handler *th,
			     struct trace_stats *out)
{
	*out = th->stats;
	out->cache_evicted = th->frames.cache.evicted;
	out->cache_entries = th->frames.cache.frames.count;
}
