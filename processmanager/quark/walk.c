// SPDX-License-Identifier: Apache-2.0
/*
 * walk: reads the processes that there are, once when the queue is opened, and
 * again after a loss, when the cache may have missed births, images and ends.
 *
 * At the first time, records older than the walk are in what it read. At a later
 * one nothing may be taken for said that is still on its way in the ring: what is
 * there anyhow is made good twice; who is not in the walk is taken for gone, and
 * those who are get the names and ids that it read, only when all records up to
 * the walk's time have been applied.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "processmanager/quark/priv.h"

/* So that losses without end cost little, and a second one is no second away. */
#define AGAIN_NS (300 * CLOCK_NSEC_PER_MSEC)

struct walk {
	struct quark_queue_priv *qq;
	struct strbuf sb;
	uint64_t begin;
	ring_fn fn;
	struct strbuf task; /* the record of a hidden process */
};

static int walk_first(void *arg, void *data, size_t len)
{
	const struct abi_quark_image *im = data;
	struct walk *w = arg;
	int err;

	err = quark_apply_walk(w->qq, im, len, &w->sb);
	if (!err)
		quark_cache_find(&w->qq->cache, &im->head.key)->snap_time =
			im->head.time;
	return err;
}

/* Until all that happened before it has been applied. */
static int keep_shown(struct quark_queue_priv *qq, const void *data, size_t len)
{
	static const char zeros[8];
	uint64_t size = len;

	strbuf_add(&qq->shown, (const char *)&size, sizeof(size));
	strbuf_add(&qq->shown, data, len);
	strbuf_add(&qq->shown, zeros, -len & 7);
	return qq->shown.failed ? -ENOMEM : 0;
}

static int walk_again(void *arg, void *data, size_t len)
{
	const struct abi_quark_image *im = data;
	struct quark_proc *proc;
	struct walk *w = arg;
	int err;

	err = keep_shown(w->qq, data, len);
	if (err)
		return err;
	proc = quark_cache_find(&w->qq->cache, &im->head.key);
	if (proc) {
		proc->missing = false;
		if (proc->rec->p.key.exec_id >= im->head.key.exec_id)
			return 0;
	}
	return quark_apply_walk(w->qq, im, len, &w->sb);
}

/* --- who is there and was not shown ------------------------------------------ */

/*
 * The exact key of one of which a clock tick of the start is known: those of its
 * children that the kernel showed name it as their parent. Without one it stays
 * out: under a start of our own it would be another one to all that tells of it.
 */
static bool exact_key(const struct quark_cache *c, struct abi_key *key)
{
	uint64_t tick = CLOCK_NSEC_PER_SEC / sysconf(_SC_CLK_TCK);
	uint64_t start = key->start_boottime;
	const struct quark_proc *p;
	bool found = false;

	for (p = c->first; p; p = p->next) {
		const struct quark_key *k = &p->rec->p.parent_key;

		if (k->pid != key->tgid ||
		    k->start_boottime / tick != start / tick)
			continue;
		key->start_boottime = k->start_boottime;
		key->exec_id = MAX(key->exec_id, k->exec_id);
		found = true;
	}
	return found;
}

/* Who began with the walk, or behind it: its fork is on its way in the ring. */
static int walk_hidden(void *arg, uint32_t pid)
{
	uint64_t tick = CLOCK_NSEC_PER_SEC / sysconf(_SC_CLK_TCK);
	struct walk *w = arg;
	struct quark_cache *c = &w->qq->cache;
	struct quark_proc *p = quark_cache_newest(c, pid);
	struct abi_quark_image *im;

	if ((p && !p->exited) || !quark_procfs_task(pid, &w->task))
		return 0;
	im = (struct abi_quark_image *)w->task.data;
	if (im->head.key.start_boottime + tick > w->begin ||
	    !exact_key(c, &im->head.key))
		return 0;
	p = quark_cache_newest(c, im->parent.tgid);
	if (p) {
		im->parent.start_boottime = p->rec->p.key.start_boottime;
		im->parent.exec_id = p->rec->p.key.exec_id;
	}
	return w->fn(w, w->task.data, w->task.len);
}

static int walk(struct quark_queue_priv *qq, ring_fn fn)
{
	struct walk w = { .qq = qq, .fn = fn, .begin = clock_boottime_ns() };
	int err;

	err = qq->backend->walk(qq->b, fn, &w);
	/* Without a /proc nobody more is known. */
	if (!err && procfs_numbers("/proc", walk_hidden, &w) == -ENOMEM)
		err = -ENOMEM;
	strbuf_fini(&w.task);
	strbuf_fini(&w.sb);
	if (!err)
		quark_apply_walked(qq);
	return err;
}

int quark_walk_first(struct quark_queue_priv *qq)
{
	int err = walk(qq, walk_first);

	if (err)
		quark_error("reading the processes there are: %s",
			    strerror(-err));
	return err;
}

static void bury_missing(struct quark_queue_priv *qq)
{
	struct quark_proc *p;

	for (p = qq->cache.first; p; p = p->next) {
		const struct quark_key *k = &p->rec->p.key;

		/* The iterator may not show all that /proc does. */
		if (!p->missing || p->exited ||
		    quark_procfs_exists(k->pid, k->start_boottime))
			continue;
		if (quark_apply_vanished(qq, p))
			return;
	}
}

/* What changed in the gap. Without memory some of it stays as it was told. */
static void refresh_shown(struct quark_queue_priv *qq)
{
	struct strbuf sb = STRBUF_INIT;
	const char *at;
	uint64_t len;

	for (at = qq->shown.data; at && at < qq->shown.data + qq->shown.len;
	     at += sizeof(len) + ((len + 7) & ~7ULL)) {
		memcpy(&len, at, sizeof(len));
		if (quark_apply_refresh(qq, (const void *)(at + sizeof(len)),
					len, qq->shown_gap, &sb))
			break;
	}
	strbuf_fini(&sb);
	strbuf_fini(&qq->shown);
}

void quark_walk_again(struct quark_queue_priv *qq)
{
	struct quark_proc *p;

	if (qq->walked && qq->watermark > qq->walked) {
		refresh_shown(qq);
		bury_missing(qq);
		qq->walked = 0;
		qq->stats.repairs++;
	}
	if (!qq->gap_to || qq->gap_to >= qq->watermark ||
	    qq->watermark < qq->last_walk + AGAIN_NS)
		return;
	for (p = qq->cache.first; p; p = p->next)
		p->missing = !p->exited;
	/* Without memory it is tried again, a moment later. */
	qq->last_walk = clock_boottime_ns();
	/* One whose outcome was not looked at yet is done again, too. */
	qq->shown_gap =
		qq->walked ? MIN(qq->shown_gap, qq->gap_from) : qq->gap_from;
	strbuf_fini(&qq->shown);
	if (walk(qq, walk_again))
		return;
	qq->gap_to = 0;
	qq->walked = clock_boottime_ns();
}
