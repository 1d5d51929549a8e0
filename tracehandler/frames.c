// SPDX-License-Identifier: Apache-2.0
/* frames: see tracehandler/frames.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracehandler/frames.h"
#include "tracehandler/stackid.h"

/* A trace that waits for names. */
struct trace_named {
	struct trace_wait wait;
	struct trace_frames *owner;
	struct abi_sample head;
	struct abi_trace trace;
	bool traced;
	struct pm_image *image;
	size_t n;
	size_t nknown; /* frames up to here need nothing more */
	struct trace_frame *frames[]; /* a reference each */
};

int trace_frames_init(struct trace_frames *fs, const struct trace_opts *opts,
		      struct trace_waits *waits, struct trace_stats *stats)
{
	size_t max = opts->max_frames + ABI_KSTACK_MAX + 1;

	fs->opts = opts;
	fs->waits = waits;
	fs->stats = stats;
	fs->made = calloc(max, sizeof(*fs->made));
	fs->out = calloc(max, sizeof(*fs->out));
	if (!fs->made || !fs->out || hash_init(&fs->kept, 0) ||
	    trace_cache_init(&fs->cache, opts->cache_frames) ||
	    trace_repeats_init(&fs->repeats, &fs->cache))
		return -ENOMEM;
	fs->names = (struct trace_names){ opts->pm, &fs->cache, waits,
					  &fs->late, 0 };
	fs->late.cache = &fs->cache;
	fs->late.named = opts->named;
	fs->late.arg = opts->arg;
	fs->late.pm = opts->named ? opts->pm : NULL;
	return trace_late_init(&fs->late);
}

void trace_frames_fini(struct trace_frames *fs)
{
	trace_names_fini(&fs->names);
	trace_late_fini(&fs->late);
	trace_repeats_fini(&fs->repeats);
	trace_cache_fini(&fs->cache);
	trace_ksyms_fini(&fs->ksyms);
	hash_fini(&fs->kept);
	free(fs->out);
	free(fs->made);
}

/* --- delivery --------------------------------------------------------------- */

/* Tells the agent of a trace, if it listens, that it has this stack. */
static void trace_frames_notify(struct trace_frames *fs, struct pm_image *image,
				const struct reporter_frame *out, size_t n)
{
	static const uint8_t none[sizeof(fs->trace->transaction_id)];
	const struct abi_trace *trace = fs->trace;
	uint8_t id[TRACE_STACK_ID];
	struct pm_trace_ids ids;

	if (!pm_apm_listens(image) ||
	    !memcmp(trace->transaction_id, none, sizeof(none)))
		return;
	memcpy(ids.trace_id, trace->trace_id, sizeof(ids.trace_id));
	memcpy(ids.transaction_id, trace->transaction_id,
	       sizeof(ids.transaction_id));
	trace_stack_id(out, n, id);
	pm_notify_apm(fs->opts->pm, image, &ids, id, 1);
}

static void trace_frames_report(struct trace_frames *fs,
				const struct abi_sample *head,
				struct pm_image *image,
				struct trace_frame **frames,
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
		.trace_id = fs->trace ? fs->trace->trace_id : NULL,
		.span_id = fs->trace ? fs->trace->span_id : NULL,
		.trace_flags = fs->trace ? fs->trace->flags : 0,
	};

	fs->given = frames;
	fs->ngiven = n;
	fs->opts->resolved(fs->opts->arg, &t);
	fs->given = NULL;
	if (fs->trace && head->event == ABI_EVENT_CPU)
		trace_frames_notify(fs, image, out, n);
}

/* Without a name: one line, of the text in place of one. */
static void trace_frames_show(struct trace_frame *f, struct reporter_frame *out)
{
	if (!f->nlines && !f->plain)
		trace_names_plain(f);
	out->place = f->place;
	out->place.version = 0; /* its functions tell it apart */
	out->vaddr = f->vaddr;
	out->lines = f->nlines ? f->lines : &f->line;
	out->nlines = MAX(f->nlines, 1U);
}

/* Drops the references to the frames. 'keep': see trace_repeats_add(). */
static void trace_frames_deliver(struct trace_frames *fs,
				 const struct abi_sample *head,
				 struct pm_image *image,
				 struct trace_frame **frames, size_t n,
				 bool keep)
{
	size_t i, unnamed = 0;

	for (i = 0; i < n; i++) {
		trace_frames_show(frames[i], &fs->out[i]);
		unnamed += !frames[i]->nlines;
	}
	fs->stats->unnamed += unnamed;
	trace_frames_report(fs, head, image, frames, fs->out, n, NULL);
	if (keep)
		trace_repeats_add(&fs->repeats, frames, fs->out, unnamed);
	for (i = 0; i < n; i++)
		trace_frame_put(&fs->cache, frames[i]);
}

/* --- kept traces ------------------------------------------------------------ */

struct trace_kept *trace_frames_keep(struct trace_frames *fs)
{
	size_t n = fs->ngiven, len = n * sizeof(*fs->given);
	struct trace_kept *k;
	uint64_t hash;

	if (!fs->given)
		return NULL;
	hash = hash_bytes(fs->given, len);
	HASH_FIND(k, &fs->kept, hash, node,
		  k->n == n && !memcmp(k->frames, fs->given, len));
	if (k) {
		k->refs++;
		return k;
	}
	k = malloc(sizeof(*k) + len);
	if (!k)
		return NULL;
	k->refs = 1;
	k->n = n;
	memcpy(k->frames, fs->given, len);
	for (size_t i = 0; i < n; i++)
		k->frames[i]->refs++;
	hash_insert(&fs->kept, &k->node, hash);
	return k;
}

void trace_frames_unkeep(struct trace_frames *fs, struct trace_kept *k)
{
	if (--k->refs)
		return;
	hash_remove(&fs->kept, &k->node);
	for (size_t i = 0; i < k->n; i++)
		trace_frame_put(&fs->cache, k->frames[i]);
	free(k);
}

size_t trace_frames_kept(struct trace_kept *k, struct reporter_frame *out,
			 size_t n)
{
	for (size_t i = 0; i < k->n && i < n; i++)
		trace_frames_show(k->frames[i], &out[i]);
	return k->n;
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
	t->owner->trace = t->traced ? &t->trace : NULL;
	trace_frames_deliver(t->owner, &t->head, t->image, t->frames, t->n,
			     false);
	t->owner->trace = NULL;
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

/* Takes over the references of fs->made. 0 or -ENOMEM. */
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
		.event = head->event,
		.time = head->time,
		.deadline = deadline,
		.bytes = sizeof(*t) + len,
	};
	t->owner = fs;
	t->head = *head;
	t->traced = fs->trace;
	if (t->traced)
		t->trace = *fs->trace;
	t->image = image;
	t->n = fs->nmade;
	t->nknown = 0;
	memcpy(t->frames, fs->made, len);
	trace_waits_add(fs->waits, &t->wait);
	return 0;
}

/* --- the current trace ------------------------------------------------------ */

bool trace_frames_again(struct trace_frames *fs, const struct abi_sample *head,
			struct pm_image *image, size_t n)
{
	struct trace_repeat *k = NULL;

	fs->nmade = 0;
	fs->time = head->time;
	fs->again = false;
	/* A kept stack has the kernel's names as of now. */
	if (n && head->time >= fs->ksyms.changed)
		k = trace_repeats_find(&fs->repeats, n, &fs->again);
	if (!k)
		return false;
	fs->stats->frames += n;
	fs->stats->cache_hits += n;
	fs->stats->stacks_known++;
	fs->stats->unnamed += k->unnamed;
	trace_frames_report(fs, head, image, k->frames, k->out, n, &k->memo);
	return true;
}

/* Adds a frame; '*fresh' if it is new in the cache. */
static struct trace_frame *trace_frames_add(struct trace_frames *fs,
					    const struct reporter_place *place,
					    bool timed, bool *fresh)
{
	struct trace_frame *f =
		trace_cache_get(&fs->cache, place, fs->time, timed, fresh);

	if (f)
		fs->made[fs->nmade++] = f;
	return f;
}

/* Requests the name of a new frame. */
static void trace_frames_want(struct trace_frames *fs, struct trace_frame *f)
{
	if (!trace_names_want(&fs->names, f, fs->time))
		return;
	/* This sample goes without; the next one requests it again. */
	f->pending = false;
	trace_frame_forget(&fs->cache, f);
}

static void trace_frames_give(struct trace_frame *f, struct pm_exe *file,
			      uint64_t offset)
{
	struct pm_exe_info info;
	char *text;

	pm_exe_info(file, &info);
	if (asprintf(&text, "%s+0x%" PRIx64, info.base, offset) < 0)
		return;
	trace_frame_plain(f, text);
	f->given = true;
}

/* 'file' and 'offset': as of trace_frames_memory(). */
static int trace_frames_place(struct trace_frames *fs,
			      const struct reporter_place *place,
			      struct pm_code_state st, struct pm_exe *file,
			      uint64_t offset)
{
	bool fresh;
	struct trace_frame *f = trace_frames_add(fs, place, st.timed, &fresh);

	if (!f)
		return -ENOMEM;
	if (!fresh)
		return 0;
	if (file)
		trace_frames_give(f, file, offset);
	if (st.named) {
		trace_frames_want(fs, f);
		return 0;
	}
	f->pending = false;
	trace_late_add(&fs->late, f);
	return 0;
}

/* Other text was loaded there since the frame got its name, or since 'time'. */
static bool trace_frames_outdated(struct trace_frames *fs,
				  struct trace_frame *f, uint64_t time)
{
	uint64_t addr = f->place.id;

	if (trace_ksyms_later(&fs->ksyms, time, addr) ||
	    trace_ksyms_changed(&fs->ksyms, f->ksyms, addr))
		return true;
	f->ksyms = fs->ksyms.seq;
	return false;
}

static void trace_frames_ksym(struct trace_frames *fs, struct trace_frame *f,
			      const struct trace_ksym *k)
{
	const struct symbolizer_function fn = { k->name, k->name, "", 0, 0 };
	const struct symbolizer_symbol sym = {
		.offset = f->place.id,
		.vaddr = f->place.id,
		.start = k->start,
		.size = k->end - k->start,
		.functions = &fn,
		.nfunctions = 1,
		.source = SYMBOLIZER_SOURCE_KALLSYMS,
	};

	trace_frame_known(&fs->cache, f, &sym);
}

/* Names a new frame. */
static void trace_frames_kernel_name(struct trace_frames *fs,
				     struct trace_frame *f, uint64_t time)
{
	const struct trace_ksym *k;
	bool current = !trace_ksyms_later(&fs->ksyms, time, f->place.id);

	f->ksyms = fs->ksyms.seq;
	switch (trace_ksyms_find(&fs->ksyms, f->place.id, time, &k)) {
	case TRACE_KSYMS_UNKNOWN:
		trace_frames_want(fs, f);
		return;
	case TRACE_KSYMS_KNOWN:
		trace_frames_ksym(fs, f, k);
		break;
	case TRACE_KSYMS_GONE:
		f->pending = false;
		current = false;
		break;
	}
	/* Later samples there have another name, or may have one. */
	if (!current)
		trace_frame_forget(&fs->cache, f);
}

int trace_frames_kernel(struct trace_frames *fs, struct pm_exe *kernel,
			uint64_t addr, uint64_t time)
{
	const struct reporter_place place = { .kind = REPORTER_PLACE_EXE,
					      .exe = kernel,
					      .id = addr };
	bool fresh;
	struct trace_frame *f = trace_frames_add(fs, &place, false, &fresh);

	if (f && !fresh && trace_frames_outdated(fs, f, time)) {
		fs->nmade--;
		trace_frame_forget(&fs->cache, f);
		trace_frame_put(&fs->cache, f);
		f = trace_frames_add(fs, &place, false, &fresh);
	}
	if (!f)
		return -ENOMEM;
	if (fresh)
		trace_frames_kernel_name(fs, f, time);
	return 0;
}

int trace_frames_code(struct trace_frames *fs, struct pm_exe *exe,
		      uint64_t offset)
{
	const struct reporter_place place = { .kind = REPORTER_PLACE_EXE,
					      .exe = exe,
					      .id = offset };

	return trace_frames_place(
		fs, &place, (struct pm_code_state){ .named = true }, NULL, 0);
}

int trace_frames_named(struct trace_frames *fs, struct pm_exe *exe,
		       const struct symbolizer_symbol *sym)
{
	const struct reporter_place place = { .kind = REPORTER_PLACE_EXE,
					      .exe = exe,
					      .id = sym->offset };
	bool fresh;
	struct trace_frame *f = trace_frames_add(fs, &place, false, &fresh);

	if (f && fresh)
		trace_frame_known(&fs->cache, f, sym);
	return f ? 0 : -ENOMEM;
}

int trace_frames_memory(struct trace_frames *fs, struct pm_exe *exe,
			uint64_t addr, struct pm_code_state st,
			struct pm_exe *file, uint64_t offset)
{
	const struct reporter_place place = { .kind = REPORTER_PLACE_EXE,
					      .version = st.version,
					      .exe = exe,
					      .id = addr };

	return trace_frames_place(fs, &place, st, file, offset);
}

int trace_frames_mark(struct trace_frames *fs, uint64_t key, uint64_t addr,
		      const char *fmt, ...)
{
	const struct reporter_place place = { .kind = REPORTER_PLACE_MARK,
					      .id = key };
	bool fresh;
	struct trace_frame *f = trace_frames_add(fs, &place, false, &fresh);
	char *text;
	va_list ap;

	if (!f)
		return -ENOMEM;
	if (!fresh)
		return 0;
	va_start(ap, fmt);
	if (vasprintf(&text, fmt, ap) < 0)
		text = NULL;
	va_end(ap);
	f->pending = false;
	f->vaddr = addr;
	trace_frame_plain(f, text);
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
	if (!err && pending)
		err = trace_frames_wait(fs, head, image, deadline);
	else if (!err)
		trace_frames_deliver(fs, head, image, fs->made, fs->nmade,
				     fs->again);
	if (!err)
		return 0;
	fs->stats->nomem++;
	for (i = 0; i < fs->nmade; i++)
		trace_frame_put(&fs->cache, fs->made[i]);
	return err;
}
