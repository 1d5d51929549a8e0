// SPDX-License-Identifier: Apache-2.0
/* names: see tracehandler/names.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tracehandler/names.h"

struct trace_list {
	struct trace_frame **frames; /* a reference each */
	size_t n, cap;
};

struct trace_ask {
	struct hash_node node; /* ns->asks */
	struct trace_names *owner; /* NULL: the answer is ignored */
	struct pm_exe *exe;
	struct trace_list next;
	struct trace_list sent; /* n 0: none under way */
};

int trace_names_init(struct trace_names *ns, struct trace_cache *cache,
		     void (*settled)(void *arg), void *arg)
{
	ns->cache = cache;
	ns->settled = settled;
	ns->arg = arg;
	return hash_init(&ns->asks, 0);
}

static uint64_t trace_ask_hash(const struct pm_exe *exe)
{
	return hash_u64((uintptr_t)exe);
}

static struct trace_ask *trace_ask_find(struct trace_names *ns,
					struct pm_exe *exe)
{
	struct trace_ask *ask;
	struct hash_node *n;

	hash_for_each_match(&ns->asks, n, trace_ask_hash(exe)) {
		ask = container_of(n, struct trace_ask, node);
		if (ask->exe == exe)
			return ask;
	}
	ask = calloc(1, sizeof(*ask));
	if (!ask)
		return NULL;
	ask->owner = ns;
	ask->exe = pm_exe_get(exe);
	hash_insert(&ns->asks, &ask->node, trace_ask_hash(exe));
	return ask;
}

static void trace_list_drop(struct trace_names *ns, struct trace_list *l)
{
	size_t i;

	for (i = 0; i < l->n; i++)
		trace_frame_put(ns->cache, l->frames[i]);
	l->n = 0;
}

static void trace_ask_free(struct trace_ask *ask)
{
	pm_exe_put(ask->exe);
	free(ask->next.frames);
	free(ask->sent.frames);
	free(ask);
}

int trace_names_want(struct trace_names *ns, struct trace_frame *f)
{
	struct trace_ask *ask = trace_ask_find(ns, f->exe);
	struct trace_frame **grown;
	size_t cap;

	if (!ask)
		return -ENOMEM;
	if (ask->next.n == ask->next.cap) {
		cap = ask->next.cap ? 2 * ask->next.cap : 16;
		grown = realloc(ask->next.frames, cap * sizeof(*grown));
		if (!grown)
			return -ENOMEM;
		ask->next.frames = grown;
		ask->next.cap = cap;
	}
	f->refs++;
	ask->next.frames[ask->next.n++] = f;
	return 0;
}

/* The address that the file itself uses, as far as its segments are known. */
static uint64_t trace_names_vaddr(const struct trace_frame *f)
{
	const struct symbolizer_segment *seg;
	size_t i, n = 0;

	seg = pm_exe_segments(f->exe, &n);
	for (i = 0; i < n; i++)
		if (f->offset - seg[i].offset < seg[i].size)
			return seg[i].vaddr + (f->offset - seg[i].offset);
	return f->offset;
}

void trace_names_plain(struct trace_frame *f)
{
	struct pm_exe_info info;
	const char *base;

	pm_exe_info(f->exe, &info);
	base = info.base;
	if (info.kind == PM_EXE_KERNEL)
		base = "[kernel]";
	else if (info.kind == PM_EXE_ANON)
		base = "[anon]";
	else if (f->vaddr == f->offset)
		f->vaddr = trace_names_vaddr(f);
	if (asprintf(&f->plain, "%s+0x%" PRIx64, base ? base : "[unknown]",
		     f->vaddr) < 0)
		f->plain = NULL;
}

/*
 * Not the file's fault, or not for ever (-EBADMSG: it is quarantined): it may go
 * better the next time.
 */
static bool trace_names_passing(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE ||
	       err == -ETIMEDOUT || err == -ECANCELED || err == -EAGAIN ||
	       err == -EBADMSG || err == -EIO;
}

static void trace_names_answer(void *arg, int err,
			       const struct symbolizer_symbol *syms, size_t n);

/* Without memory it stays collected, and goes with a later tick. */
static void trace_ask_send(struct trace_names *ns, struct trace_ask *ask)
{
	struct trace_list empty = ask->sent;
	uint64_t *offsets;
	size_t i;

	if (ask->sent.n || !ask->next.n)
		return;
	offsets = malloc(ask->next.n * sizeof(*offsets));
	if (!offsets)
		return;
	for (i = 0; i < ask->next.n; i++)
		offsets[i] = ask->next.frames[i]->offset;
	if (!pm_exe_resolve(ask->exe, offsets, ask->next.n, trace_names_answer,
			    ask)) {
		ask->sent = ask->next;
		ask->next = empty;
	}
	free(offsets);
}

static void trace_names_answer(void *arg, int err,
			       const struct symbolizer_symbol *syms, size_t n)
{
	struct trace_ask *ask = arg;
	struct trace_names *ns = ask->owner;
	struct trace_frame *f;
	size_t i;

	if (!ns) {
		trace_ask_free(ask);
		return;
	}
	for (i = 0; i < ask->sent.n; i++) {
		f = ask->sent.frames[i];
		if (!err && i < n) {
			trace_frame_known(ns->cache, f, &syms[i]);
			continue;
		}
		f->pending = false;
		if (trace_names_passing(err))
			trace_frame_forget(ns->cache, f);
	}
	trace_list_drop(ns, &ask->sent);
	trace_ask_send(ns, ask);
	if (!ask->sent.n && !ask->next.n) {
		hash_remove(&ns->asks, &ask->node);
		trace_ask_free(ask);
	}
	ns->settled(ns->arg);
}

void trace_names_send(struct trace_names *ns)
{
	struct hash_node *n, *tmp;
	size_t i;

	hash_for_each(&ns->asks, i, n, tmp)
		trace_ask_send(ns, container_of(n, struct trace_ask, node));
}

void trace_names_fini(struct trace_names *ns)
{
	struct hash_node *n, *tmp;
	struct trace_ask *ask;
	size_t i;

	if (!ns->asks.buckets)
		return;
	hash_for_each(&ns->asks, i, n, tmp) {
		bool owed;

		ask = container_of(n, struct trace_ask, node);
		owed = ask->sent.n;
		hash_remove(&ns->asks, n);
		trace_list_drop(ns, &ask->next);
		trace_list_drop(ns, &ask->sent);
		ask->owner = NULL;
		if (!owed)
			trace_ask_free(ask);
	}
	hash_fini(&ns->asks);
}
