// SPDX-License-Identifier: Apache-2.0
/* frames: see tracehandler/frames.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracehandler/frames.h"

/* A trace that waits for names. */
struct trace_named {
	struct trace_wait wait;
	struct trace_frames *owner;
	struct abi_sample head;
	struct pm_image *image;
	size_t n;
	size_t nknown; /* frames up to here need nothing more */
	struct trace_frame *frames[]; /* a reference each */
};

int trace_frames_init(struct trace_frames *fs, const struct trace_opts *opts,
		      struct trace_waits *waits, struct trace_stats *stats,
		      void (*settled)(void *arg), void *arg)
{
	size_t max = opts->max_frames + ABI_KSTACK_MAX + 1;

	fs->opts = opts;
	fs->waits = waits;
	fs->stats = stats;
	fs->made = calloc(max, sizeof(*fs->made));
	fs->out = calloc(max, sizeof(*fs->out));
	fs->unnamed = calloc(max, sizeof(*fs->unnamed));
	if (!fs->made || !fs->out || !fs->unnamed ||
	    trace_cache_init(&fs->cache, opts->cache_frames) ||
	    trace_repeats_init(&fs->repeats, TRACE_REPEATS_BYTES))
		return -ENOMEM;
	trace_names_init(&fs->names, opts->pm, &fs->cache, settled, arg);
	return 0;
}

void trace_frames_fini(struct trace_frames *fs)
{
	trace_names_fini(&fs->names);
	trace_repeats_fini(&fs->repeats, &fs->cache);
	trace_cache_fini(&fs->cache);
	free(fs->unnamed);
	free(fs->out);
	free(fs->made);
}

/* --- out -------------------------------------------------------------------- */

static void trace_unnamed_set(struct trace_unnamed *u, const char *text)
{
	if (!text)
		text = "[no memory for its name]";
	u->function = (struct reporter_function){ .name = text,
						  .system_name = text,
						  .file = "" };
	u->line = (struct reporter_line){ .function = &u->function };
}

/* Frame i of a trace. False: it has no function. */
static bool trace_frames_show(struct trace_frames *fs, size_t i,
			      struct trace_frame *f)
{
	struct reporter_frame *out = &fs->out[i];

	out->place = f->place;
	out->vaddr = f->vaddr;
	out->lines = f->lines;
	out->nlines = f->nlines;
	if (f->nlines)
		return true;
	if (!f->plain)
		trace_names_plain(f);
	trace_unnamed_set(&fs->unnamed[i], f->plain);
	out->lines = &fs->unnamed[i].line;
	out->nlines = 1;
	return false;
}

/* Into fs->out. How many have no function. */
static size_t trace_frames_fill(struct trace_frames *fs,
				struct trace_frame **frames, size_t n)
{
	size_t unnamed = 0;

	for (size_t i = 0; i < n; i++)
		unnamed += !trace_frames_show(fs, i, frames[i]);
	return unnamed;
}

static void trace_frames_report(struct trace_frames *fs,
				const struct abi_sample *head,
				struct pm_image *image,
				const struct reporter_frame *out, size_t n,
				struct reporter_memo *memo)
{
	struct reporter_trace t = {
		.time = head->time,
		.image = image,
		.tid = head->tid,
		.cpu = head->cpu,
		.event = head->event,
		.value = head->value,
		.thread = head->comm,
		.frames = out,
		.nframes = n,
		.memo = memo,
	};

	fs->opts->resolved(fs->opts->arg, &t);
}

/* Hands a trace on, and drops the frames' references. */
static void trace_frames_deliver(struct trace_frames *fs,
				 const struct abi_sample *head,
				 struct pm_image *image,
				 struct trace_frame **frames, size_t n)
{
	fs->stats->unnamed += trace_frames_fill(fs, frames, n);
	trace_frames_report(fs, head, image, fs->out, n, NULL);
	for (size_t i = 0; i < n; i++)
		trace_frame_put(&fs->cache, frames[i]);
}

/* --- stacks that come again --------------------------------------------------- */

bool trace_frames_again(struct trace_frames *fs, const struct abi_sample *head,
			struct pm_image *image, size_t n)
{
	struct trace_repeat *k = NULL;

	fs->again = false;
	if (n)
		k = trace_repeats_find(&fs->repeats, &fs->cache, n, &fs->again);
	if (!k)
		return false;
	fs->stats->frames += n;
	fs->stats->cache_hits += n;
	fs->stats->stacks_known++;
	fs->stats->unnamed += k->unnamed;
	trace_frames_report(fs, head, image, k->out, n, &k->memo);
	return true;
}

/* The stack at hand, if its names are final. */
static void trace_frames_keep(struct trace_frames *fs)
{
	size_t unnamed;

	for (size_t i = 0; i < fs->nmade; i++)
		if (!fs->made[i]->listed)
			return;
	unnamed = trace_frames_fill(fs, fs->made, fs->nmade);
	trace_repeats_add(&fs->repeats, &fs->cache, fs->made, fs->out, unnamed);
}

/* --- the wait for names ----------------------------------------------------- */

static bool trace_named_over(struct trace_wait *w)
{
	struct trace_named *t = container_of(w, struct trace_named, wait);

	while (t->nknown < t->n && !t->frames[t->nknown]->pending)
		t->nknown++;
	return t->nknown == t->n;
}

static void trace_named_end(struct trace_wait *w, bool over)
{
	struct trace_named *t = container_of(w, struct trace_named, wait);

	t->owner->stats->names_late += !over;
	trace_frames_deliver(t->owner, &t->head, t->image, t->frames, t->n);
	free(t);
}

static void trace_named_drop(struct trace_wait *w)
{
	struct trace_named *t = container_of(w, struct trace_named, wait);

	for (size_t i = 0; i < t->n; i++)
		trace_frame_put(&t->owner->cache, t->frames[i]);
	free(t);
}

static const struct trace_wait_kind trace_named_kind = {
	trace_named_over,
	trace_named_end,
	trace_named_drop,
};

/* Takes over the references of the frames made. 0 or -ENOMEM. */
static int trace_frames_wait(struct trace_frames *fs,
			     const struct abi_sample *head,
			     struct pm_image *image, uint64_t deadline)
{
	size_t len = fs->nmade * sizeof(*fs->made);
	struct trace_named *t = malloc(sizeof(*t) + len);

	if (!t)
		return -ENOMEM;
	t->wait = (struct trace_wait){
		.kind = &trace_named_kind,
		.time = head->time,
		.deadline = deadline,
		.bytes = sizeof(*t) + len,
	};
	t->owner = fs;
	t->head = *head;
	t->image = image;
	t->n = fs->nmade;
	t->nknown = 0;
	memcpy(t->frames, fs->made, len);
	trace_waits_add(fs->waits, &t->wait);
	return 0;
}

/* --- a trace being made ----------------------------------------------------- */

void trace_frames_begin(struct trace_frames *fs)
{
	fs->nmade = 0;
}

/* One more frame; '*fresh' when it is new in the cache. */
static struct trace_frame *trace_frames_add(struct trace_frames *fs,
					    const struct reporter_place *place,
					    bool *fresh)
{
	struct trace_frame *f;

	f = trace_cache_get(&fs->cache, place, fresh);
	if (f)
		fs->made[fs->nmade++] = f;
	return f;
}

int trace_frames_code(struct trace_frames *fs, struct pm_exe *exe,
		      enum pm_exe_kind kind, uint64_t offset)
{
	const struct reporter_place place = { .kind = REPORTER_PLACE_EXE,
					      .exe = exe,
					      .id = offset };
	struct trace_frame *f;
	bool fresh;

	f = trace_frames_add(fs, &place, &fresh);
	if (!f)
		return -ENOMEM;
	if (!fresh)
		return 0;
	if (kind == PM_EXE_ANON) {
		f->pending = false;
	} else if (trace_names_want(&fs->names, f)) {
		/* Another sample may ask again; this one goes without. */
		f->pending = false;
		trace_frame_forget(&fs->cache, f);
	}
	return 0;
}

int trace_frames_mark(struct trace_frames *fs, uint64_t key, uint64_t addr,
		      const char *fmt, ...)
{
	const struct reporter_place place = { .kind = REPORTER_PLACE_MARK,
					      .id = key };
	struct trace_frame *f;
	char *plain;
	bool fresh;
	va_list ap;

	f = trace_frames_add(fs, &place, &fresh);
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

int trace_frames_end(struct trace_frames *fs, const struct abi_sample *head,
		     struct pm_image *image, uint64_t deadline, int err)
{
	size_t i, pending = 0;

	for (i = 0; i < fs->nmade; i++)
		pending += fs->made[i]->pending;
	fs->stats->frames += fs->nmade;
	fs->stats->cache_misses += pending;
	fs->stats->cache_hits += fs->nmade - pending;
	if (!err && !pending && fs->again)
		trace_frames_keep(fs);
	if (!err && pending)
		err = trace_frames_wait(fs, head, image, deadline);
	else if (!err)
		trace_frames_deliver(fs, head, image, fs->made, fs->nmade);
	if (!err)
		return 0;
	fs->stats->nomem++;
	for (i = 0; i < fs->nmade; i++)
		trace_frame_put(&fs->cache, fs->made[i]);
	return err;
}
