// SPDX-License-Identifier: Apache-2.0
/*
 * walk: reads the processes that there are, once when the queue is opened, and
 * again after a loss, when the cache may have missed births, images and ends.
 *
 * At the first time, records older than the walk are in what it read. At a later
 * one nothing may be taken for said that is still on its way in the ring: what is
 * there anyhow is made good twice, and who is not in the walk is taken for gone
 * only when all records up to the walk's time have been applied.
 */
#include <string.h>

#include "processmanager/quark/priv.h"

/* So that losses without end cost little, and a second one is no second away. */
#define AGAIN_NS (300 * CLOCK_NSEC_PER_MSEC)

struct walk {
	struct quark_queue_priv *qq;
	struct strbuf sb;
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

static int walk_again(void *arg, void *data, size_t len)
{
	const struct abi_quark_image *im = data;
	struct quark_proc *proc;
	struct walk *w = arg;

	proc = quark_cache_find(&w->qq->cache, &im->head.key);
	if (proc) {
		proc->missing = false;
		if (proc->rec->p.key.exec_id >= im->head.key.exec_id)
			return 0;
	}
	return quark_apply_walk(w->qq, im, len, &w->sb);
}

static int walk(struct quark_queue_priv *qq, ring_fn fn)
{
	struct walk w = { .qq = qq };
	int err;

	err = qq->backend->walk(qq->b, fn, &w);
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

void quark_walk_again(struct quark_queue_priv *qq)
{
	struct quark_proc *p;

	if (qq->walked && qq->watermark > qq->walked) {
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
	if (walk(qq, walk_again))
		return;
	qq->gap_to = 0;
	qq->walked = clock_boottime_ns();
}
