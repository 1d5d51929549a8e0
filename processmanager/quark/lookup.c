// SPDX-License-Identifier: Apache-2.0
/* lookup: the public interface to the cached processes. */
#include <string.h>

#include "processmanager/quark/priv.h"

const struct quark_process *quark_process_lookup(struct quark_queue *q, int pid)
{
	struct quark_cache *c;
	struct quark_proc *p;

	if (!q->priv)
		return quark_null(EBADF);
	c = &q->priv->cache;
	p = quark_cache_newest(c, pid);
	if (!p || !quark_proc_visible(c, p, clock_boottime_ns()))
		return quark_null(ESRCH);
	return &p->rec->p;
}

int quark_event_lookup(struct quark_queue *q, struct quark_event *ev, int pid)
{
	const struct quark_process *p = quark_process_lookup(q, pid);

	if (!p)
		return -1;
	memset(ev, 0, sizeof(*ev));
	ev->process = p;
	return 0;
}

void quark_process_iter_init(struct quark_process_iter *it,
			     struct quark_queue *q)
{
	it->qq = q;
	it->next = q->priv ? TAILQ_FIRST(&q->priv->cache.all) : NULL;
}

const struct quark_process *
quark_process_iter_next(struct quark_process_iter *it)
{
	struct quark_queue_priv *qq = it->qq->priv;
	uint64_t now = clock_boottime_ns();
	struct quark_proc *p;

	while (qq && (p = it->next)) {
		it->next = TAILQ_NEXT(p, link);
		if (quark_proc_visible(&qq->cache, p, now))
			return &p->rec->p;
	}
	return NULL;
}
