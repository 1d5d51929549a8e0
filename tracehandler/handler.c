// SPDX-License-Identifier: Apache-2.0
/* handler: see tracehandler/tracehandler.h; the stages are in handler.h. */
#include <errno.h>
#include <stdlib.h>

#include "tracehandler/handler.h"

#define TRACE_CACHE_FRAMES 65536
#define TRACE_WAIT_MS 3000
#define TRACE_WAIT_BYTES (8 << 20)
#define TRACE_TABLE_BYTES SYMBOLIZER_ROWS_MAX /* of all; one may fill it */
#define TRACE_MAX_FRAMES 4096

/* A table, or the names of frames. */
static void trace_handler_settled(void *arg)
{
	struct trace_handler *th = arg;

	trace_waits_check(&th->waits, 0);
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
	if (!err)
		err = trace_samples_init(&th->samples, o, &th->stacks,
					 &th->waits, &th->stats);
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
	trace_samples_fini(&th->samples);
	free(th);
}

int trace_handler_sample(struct trace_handler *th, const void *buf, size_t len)
{
	int err = trace_samples_put(&th->samples, buf, len);

	trace_waits_limit(&th->waits, th->opts.wait_bytes);
	return err;
}

uint64_t trace_handler_oldest(const struct trace_handler *th)
{
	return trace_waits_oldest(&th->waits);
}

void trace_handler_tick(struct trace_handler *th, uint64_t now)
{
	th->stacks.tables.now = now;
	trace_waits_check(&th->waits, now);
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
}

void trace_handler_get_stats(const struct trace_handler *th,
			     struct trace_stats *out)
{
	*out = th->stats;
	out->cache_evicted = th->frames.cache.evicted;
	out->cache_entries = th->frames.cache.count;
}
