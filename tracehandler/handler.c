// SPDX-License-Identifier: Apache-2.0
/*
 * handler: see tracehandler/tracehandler.h. A record is taken apart, its stack
 * unwound, each address turned into a frame (executable + offset) by what was
 * mapped at that moment; from then on a trace needs its image no more but to
 * name it. Nothing is elided: why a stack ended, and what could not be
 * placed, are frames too.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracehandler/handler.h"
#include "tracehandler/unwind.h"

#define TRACE_CACHE_FRAMES 65536
#define TRACE_WAIT_MS 3000
#define TRACE_WAIT_BYTES (4 << 20)
#define TRACE_MAX_FRAMES 4096

/*
 * Frames of the mark exe: small offsets are enum trace_end; addresses that
 * could not be placed are told apart from them, and from each other, by bits
 * that no user address has set alone.
 */
#define TRACE_UNMAPPED (1ULL << 62)
#define TRACE_LOST (1ULL << 61)

static const struct {
	const char *text;
	size_t counter; /* offset in struct trace_stats */
} trace_ends[] = {
#define X(name, counter, text) { text, offsetof(struct trace_stats, counter) },
	TRACE_ENDS(X)
#undef X
};

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
	if (!th->opts.max_frames)
		th->opts.max_frames = TRACE_MAX_FRAMES;
	max = th->opts.max_frames + ABI_KSTACK_MAX + 1;
	th->pcs = calloc(th->opts.max_frames, sizeof(*th->pcs));
	th->frames = calloc(max, sizeof(*th->frames));
	th->out = calloc(max, sizeof(*th->out));
	if (!th->pcs || !th->frames || !th->out || hash_init(&th->asks, 0) ||
	    trace_cache_init(&th->cache, th->opts.cache_frames)) {
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

/* Code: a name is asked for, unless there can be none. */
static int trace_push_code(struct trace_handler *th, struct pm_exe *exe,
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

/* Something said in place of code; of no address if that is the offset. */
static int trace_push_mark(struct trace_handler *th, uint64_t offset,
			   const char *text, uint64_t addr)
{
	struct trace_frame *f;
	char *plain;
	bool fresh;
	int n;

	f = trace_push(th, pm_exe_mark(th->opts.pm), offset, &fresh);
	if (!f)
		return -ENOMEM;
	if (!fresh)
		return 0;
	if (addr == offset)
		n = asprintf(&plain, "%s", text);
	else
		n = asprintf(&plain, "%s+0x%" PRIx64, text, addr);
	trace_frame_plain(f, addr, n < 0 ? NULL : plain);
	return 0;
}

static int trace_push_end(struct trace_handler *th, enum trace_end why)
{
	uint64_t *counter =
		(uint64_t *)((char *)&th->stats + trace_ends[why].counter);

	(*counter)++;
	if (!trace_ends[why].text)
		return 0;
	return trace_push_mark(th, why, trace_ends[why].text, why);
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

/* Addresses of one image, with the mapping of the last one at hand. */
struct trace_place {
	struct pm_image *image;
	struct pm_mapping map;
	enum pm_exe_kind kind;
};

static int trace_push_user(struct trace_handler *th, struct trace_place *at,
			   uint64_t pc)
{
	struct pm_mapping map;
	struct pm_exe_info info;

	if (pc < at->map.start || pc >= at->map.end) {
		switch (pm_image_find(th->opts.pm, at->image, pc, &map)) {
		case PM_FOUND:
			at->map = map;
			pm_exe_info(map.exe, &info);
			at->kind = info.kind;
			break;
		case PM_LOST:
			th->stats.not_mapped++;
			return trace_push_mark(th, pc ^ TRACE_LOST,
					       "[mapping lost]", pc);
		default:
			th->stats.not_mapped++;
			return trace_push_mark(th, pc ^ TRACE_UNMAPPED,
					       "[unmapped]", pc);
		}
	}
	if (at->kind != PM_EXE_ANON && at->kind != PM_EXE_KERNEL)
		pc = pc - at->map.start + at->map.pgoff;
	return trace_push_code(th, at->map.exe, at->kind, pc);
}

static int trace_push_stack(struct trace_handler *th,
			    const struct trace_record *rec,
			    struct pm_image *image)
{
	struct trace_stack stack = {
		.regs = &rec->regs,
		.bytes = rec->stack_bytes,
		.start = rec->stack.start,
		.size = rec->stack.size,
		.end = rec->stack.end,
		.compat = rec->head.flags & ABI_SAMPLE_COMPAT,
	};
	struct trace_place at = { .image = image };
	enum trace_end why;
	size_t i, n;
	int err = 0;

	n = trace_unwind_fp(&stack, th->pcs, th->opts.max_frames, &why);
	if (!rec->has_stack)
		why = TRACE_END_NONE;
	for (i = 0; i < n && !err; i++)
		err = trace_push_user(th, &at, th->pcs[i] - !!i);
	return err ? err : trace_push_end(th, why);
}

static int trace_push_all(struct trace_handler *th,
			  const struct trace_record *rec,
			  struct pm_image *image)
{
	int err = trace_push_kernel(th, rec);

	if (err)
		return err;
	if (rec->has_regs)
		return trace_push_stack(th, rec, image);
	if (rec->head.flags & ABI_SAMPLE_KTHREAD)
		return 0;
	return trace_push_end(th, rec->head.flags & ABI_SAMPLE_EXEC
					  ? TRACE_END_EXEC
					  : TRACE_END_NONE);
}

int trace_take(struct trace_handler *th, const struct trace_record *rec,
	       struct pm_image *image)
{
	size_t i, pending = 0;
	int err;

	th->nframes = 0;
	err = trace_push_all(th, rec, image);
	for (i = 0; i < th->nframes; i++)
		pending += th->frames[i]->pending;
	th->stats.frames += th->nframes;
	th->stats.cache_misses += pending;
	th->stats.cache_hits += th->nframes - pending;
	if (!err && pending)
		err = trace_wait_names(th, &rec->head, image);
	else if (!err)
		trace_deliver(th, &rec->head, image, th->frames, th->nframes);
	if (err) {
		th->stats.nomem++;
		for (i = 0; i < th->nframes; i++)
			trace_frame_put(&th->cache, th->frames[i]);
	}
	return err;
}

int trace_handler_sample(struct trace_handler *th, const void *buf, size_t len)
{
	struct pm_image_info info;
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
	pm_image_info(image, &info);
	if (info.provisional) {
		err = trace_wait_image(th, &rec, buf, image);
		th->stats.nomem += !!err;
	} else {
		err = trace_take(th, &rec, image);
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
	trace_wait_check(th, now);
	trace_names_send(th);
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
