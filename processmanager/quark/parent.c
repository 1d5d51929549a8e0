// SPDX-License-Identifier: Apache-2.0
/*
 * parent: the current parent of a process. The children of a process that ended all
 * get the same new parent. It depends on which process is a subreaper, which no
 * record contains, so the parent of one child is looked up.
 */
#include "processmanager/quark/priv.h"

void quark_set_parent(struct quark_queue_priv *qq, struct quark_proc *proc,
		      const struct abi_key *parent)
{
	struct quark_proc *known = quark_cache_find(&qq->cache, parent);

	if (known != proc->parent && known != proc && !proc->exited)
		quark_cache_adopt(proc, known);
}

/* Children to look up: the first ones may be gone. The reap tries again. */
#define HEIR_TRIES 4

void quark_reparent(struct quark_queue_priv *qq, struct quark_proc *old)
{
	struct quark_proc *kid, *heir;
	struct quark_record *rec;
	uint32_t ppid = 0;
	int tries = 0;

	for (kid = LIST_FIRST(&old->kids); kid && !ppid && tries < HEIR_TRIES;
	     kid = LIST_NEXT(kid, kid_link), tries++)
		ppid = quark_parent_of(qq, &kid->rec->p);
	if (!ppid || ppid == old->rec->p.pid)
		return;
	heir = quark_cache_newest(&qq->cache, ppid);
	while ((kid = LIST_FIRST(&old->kids))) {
		quark_cache_adopt(kid, heir);
		rec = quark_proc_edit(kid);
		if (rec)
			rec->p.proc_ppid = ppid;
	}
}
