// SPDX-License-Identifier: Apache-2.0
/*
 * handler: see tracehandler/tracehandler.h. A record is taken apart, its stack
 * unwound, each address turned into a frame (executable + offset) by what was
 * mapped at that moment; from then on a trace needs its image no more but to
 * name it. Nothing is elided: why a stack ended, and what could not be
 * placed, are frames too.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracehandler/handler.h"

#define TRACE_CACHE_FRAMES 65536
#define TRACE_WAIT_MS 3000
#define TRACE_WAIT_BYTES (8 << 20)
#define TRACE_TABLE_BYTES SYMBOLIZER_ROWS_MAX /* of all; one may fill it */
#define TRACE_MAX_FRAMES 4096

static void trace_tables_settled(void *arg)
{
	trace_wait_check(arg, 0);
}

int trace_handler_new(struct trace_handler **thp, const struct trace_opts *opts)
{
	struct trace_handler *th = calloc(1, sizeof(*th));
	size_t max;

	if (!th)
		return -ENOMEM;
	th->opts = *opts;
	if (!th->opts.cache_frames)
		th->opts.cache_frames = TRACE_CACHE_FRAMES;
	if (!th->opts.wait_ms)
		th->opts.wait_ms = TRACE_WAIT_MS;
	if (!th->opts.wait_bytes)
		th->opts.wait_bytes = TRACE_WAIT_BYTES;
	if (!th->opts.table_bytes)
		th->opts.table_bytes = TRACE_TABLE_BYTES;
	if (!th->opts.max_frames)
		th->opts.max_frames = TRACE_MAX_FRAMES;
	max = th->opts.max_frames + ABI_KSTACK_MAX + 1;
	th->pcs = calloc(th->opts.max_frames, sizeof(*th->pcs));
	th->frames = calloc(max, sizeof(*th->frames));
	th->out = calloc(max, sizeof(*th->out));
	if (!th->pcs || !th->frames || !th->out || hash_init(&th->asks, 0) ||
	    trace_cache_init(&th->cache, th->opts.cache_frames) ||
	    trace_rules_init(&th->rules) || vault_new(&th->vault) ||
	    trace_tables_init(&th->tables, th->opts.table_bytes, &th->stats,
			      &th->rules, trace_tables_settled, th)) {
		trace_handler_free(th);
		return -ENOMEM;
	}
	*thp = th;
	return 0;
}

void trace_handler_free(struct trace_handler *th)
{
	if (!th)
		return;
	trace_handler_flush(th);
	if (th->asks.buckets)
		trace_names_drop(th);
	trace_cache_fini(&th->cache);
	trace_tables_fini(&th->tables);
	trace_rules_fini(&th->rules);
	vault_free(th->vault);
	hash_fini(&th->asks);
	free(th->out);
	free(th->frames);
	free(th->pcs);
	free(th);
}

void trace_deliver(struct trace_handler *th, const struct abi_sample *head,
		   struct pm_image *image, struct trace_frame **frames,
		   size_t n)
{
	struct reporter_trace t = {
		.time = head->time,
		.image = image,
		.tid = head->tid,
		.cpu = head->cpu,
		.thread = head->comm,
		.frames = th->out,
		.nframes = n,
	};
	struct reporter_frame *out;
	size_t i;

	for (i = 0; i < n; i++) {
		struct trace_frame *f = frames[i];

		out = &th->out[i];
		if (!f->func && !f->plain)
			trace_names_plain(f);
		out->exe = f->exe;
		out->offset = f->offset;
		out->vaddr = f->vaddr;
		out->start = f->func ? f->func->start : 0;
		out->name = f->func ? f->func->name : f->plain;
		if (!out->name)
			out->name = "[no memory for its name]";
		out->system_name = f->func ? f->func->system_name : out->name;
		th->stats.unnamed += !f->func;
	}
	th->opts.resolved(th->opts.arg, &t);
	for (i = 0; i < n; i++)
		trace_frame_put(&th->cache, frames[i]);
}

/* One more frame of the trace being made; '*fresh' when its name is open. */
static struct trace_frame *trace_push(struct trace_handler *th,
				      struct pm_exe *exe, uint64_t offset,
				      bool *fresh)
{
	struct trace_frame *f;

	f = trace_cache_get(&th->cache, exe, offset, fresh);
	if (!f)
		return NULL;
	th->frames[th->nframes++] = f;
	return f;
}

int trace_push_code(struct trace_handler *th, struct pm_exe *exe,
		    enum pm_exe_kind kind, uint64_t offset)
{
	struct trace_frame *f;
	bool fresh;
	int err;

	f = trace_push(th, exe, offset, &fresh);
	if (!f)
		return -ENOMEM;
	if (!fresh)
		return 0;
	if (kind == PM_EXE_ANON) {
		f->pending = false;
		return 0;
	}
	err = trace_names_want(th, f);
	if (err) { /* another sample may ask; this one goes without */
		f->pending = false;
		trace_frame_forget(&th->cache, f);
	}
	return 0;
}

int trace_push_mark(struct trace_handler *th, uint64_t key, uint64_t addr,
		    const char *fmt, ...)
{
	struct trace_frame *f;
	char *plain;
	bool fresh;
	va_list ap;

	f = trace_push(th, pm_exe_mark(th->opts.pm), key, &fresh);
	if (!f)
		return -ENOMEM;
	if (!fresh)
		return 0;
	va_start(ap, fmt);
	if (vasprintf(&plain, fmt, ap) < 0)
		plain = NULL;
	va_end(ap);
	trace_frame_plain(f, addr, plain);
	return 0;
}

static int trace_push_kernel(struct trace_handler *th,
			     const struct trace_record *rec)
{
	struct pm_exe *kernel = pm_exe_kernel(th->opts.pm);
	size_t i, n = MIN(rec->nkstack, ABI_KSTACK_MAX);
	int err = 0;

	/* All but the first are return addresses: less one, into the call. */
	for (i = 0; i < n && !err; i++)
		err = trace_push_code(th, kernel, PM_EXE_KERNEL,
				      trace_record_kpc(rec, i) - !!i);
	return err;
}

static int trace_push_all(struct trace_handler *th, struct trace_user *u)
{
	int err = trace_push_kernel(th, u->take->rec);

	return err ? err : trace_user_push(u);
}

int trace_take(struct trace_handler *th, struct trace_take *take)
{
	const struct abi_sample *head = &take->rec->head;
	size_t i, pending = 0;
	struct trace_user u;
	int err;

	if (th->opts.selected_only && !pm_image_selected(take->image)) {
		th->stats.unselected++;
		return 0;
	}
	err = trace_user_walk(&u, th, take);
	if (err)
		return err;
	th->nframes = 0;
	err = trace_push_all(th, &u);
	for (i = 0; i < th->nframes; i++)
		pending += th->frames[i]->pending;
	th->stats.frames += th->nframes;
	th->stats.cache_misses += pending;
	th->stats.cache_hits += th->nframes - pending;
	if (!err && pending)
		err = trace_wait_names(th, head, take->image);
	else if (!err)
		trace_deliver(th, head, take->image, th->frames, th->nframes);
	if (err) {
		th->stats.nomem++;
		for (i = 0; i < th->nframes; i++)
			trace_frame_put(&th->cache, th->frames[i]);
	}
	return err;
}

int trace_handler_sample(struct trace_handler *th, const void *buf, size_t len)
{
	struct trace_take take = { 0 };
	struct trace_record rec;
	struct pm_image *image;
	int err;

	err = trace_record_parse(buf, len, &rec);
	if (err) {
		th->stats.bad_records++;
		return err;
	}
	th->stats.samples++;
	image = pm_image_get(th->opts.pm, &rec.head.key, rec.head.time);
	if (!image) {
		th->stats.nomem++;
		return -ENOMEM;
	}
	take.rec = &rec;
	take.image = image;
	err = pm_image_provisional(image) ? -EAGAIN : trace_take(th, &take);
	if (err == -EAGAIN) {
		err = trace_wait_raw(th, &rec, buf, image, take.late);
		th->stats.nomem += !!err;
	}
	trace_wait_limit(th, th->opts.wait_bytes);
	return err;
}

uint64_t trace_handler_oldest(const struct trace_handler *th)
{
	return th->head ? th->head->head.time : UINT64_MAX;
}

void trace_handler_tick(struct trace_handler *th, uint64_t now)
{
	th->tables.now = now;
	trace_wait_check(th, now);
	trace_names_send(th);
}

bool trace_handler_awaits(const struct trace_handler *th)
{
	return th->tables.wanted;
}

void trace_handler_drop(struct trace_handler *th)
{
	trace_wait_drop(th);
}

void trace_handler_flush(struct trace_handler *th)
{
	trace_wait_limit(th, 0);
}

void trace_handler_get_stats(const struct trace_handler *th,
			     struct trace_stats *out)
{
	*out = th->stats;
	out->cache_evicted = th->cache.evicted;
	out->cache_entries = th->cache.count;
}
