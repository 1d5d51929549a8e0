// SPDX-License-Identifier: Apache-2.0
/*
 * proc: the table of processes, by pid; several processes may have had the
 * same. A process is removed by pm_forget(), when no record or sample of it can
 * come.
 */
#include <errno.h>
#include <stdlib.h>

#include "processmanager/internal.h"

struct pm_proc *pm_proc_find(const struct pm *pm, uint32_t tgid,
			     uint64_t start_boottime)
{
	struct pm_proc *proc;

	HASH_FIND(proc, &pm->procs, hash_u64(tgid), node,
		  proc->tgid == tgid && proc->start_boottime == start_boottime);
	return proc;
}

struct pm_proc *pm_proc_at(const struct pm *pm, uint32_t tgid, uint64_t time)
{
	struct hash_node *n;
	struct pm_proc *proc, *best = NULL;

	hash_for_each_match(&pm->procs, n, hash_u64(tgid)) {
		proc = container_of(n, struct pm_proc, node);
		if (proc->tgid == tgid && proc->start_boottime <= time &&
		    (!best || best->start_boottime < proc->start_boottime))
			best = proc;
	}
	if (best && best->exited && best->exit_time < time)
		return NULL;
	return best;
}

/* Older processes with this pid have exited, though the event was dropped. */
static void pm_proc_end_older(struct pm *pm, struct pm_proc *born)
{
	struct hash_node *n;
	struct pm_proc *proc;

	hash_for_each_match(&pm->procs, n, born->node.hash) {
		proc = container_of(n, struct pm_proc, node);
		if (proc->tgid != born->tgid)
			continue;
		if (proc->start_boottime < born->start_boottime)
			pm_proc_exited(pm, proc, born->start_boottime);
		else if (proc != born)
			pm_proc_exited(pm, born, proc->start_boottime);
	}
}

struct pm_proc *pm_proc_new(struct pm *pm, uint32_t tgid,
			    uint64_t start_boottime)
{
	struct pm_proc *proc = pool_take(&pm->proc_pool);

	if (!proc) {
		pm_nomem(pm);
		return NULL;
	}
	proc->tgid = tgid;
	proc->start_boottime = start_boottime;
	TAILQ_INSERT_TAIL(&pm->all, proc, all);
	hash_insert(&pm->procs, &proc->node, hash_u64(tgid));
	pm->stats.processes++;
	pm_proc_end_older(pm, proc);
	return proc;
}

uint32_t pm_proc_uid(const struct pm_proc *proc)
{
	return proc->images ? proc->images->a.uid : 0;
}

void pm_proc_set_parent(struct pm_proc *proc, struct pm_proc *parent)
{
	/* A damaged key must not make a cycle. */
	if (parent && parent->start_boottime >= proc->start_boottime)
		return;
	if (proc->parent)
		LIST_REMOVE(proc, sibling);
	proc->parent = parent;
	if (parent)
		LIST_INSERT_HEAD(&parent->children, proc, sibling);
}

/* Puts an exited process at the end of 'to', out of the list it was in. */
static void pm_proc_queue(struct pm_proc *proc, struct pm_procs *to)
{
	if (proc->over_in)
		TAILQ_REMOVE(proc->over_in, proc, over);
	proc->over_in = to;
	if (to)
		TAILQ_INSERT_TAIL(to, proc, over);
}

void pm_proc_drop_pending(struct pm *pm, struct pm_proc *proc)
{
	if (!proc->pending)
		return;
	pm->stats.maps_unbound++;
	pm_mm_put(pm, proc->pending);
	proc->pending = NULL;
}

void pm_proc_free(struct pm *pm, struct pm_proc *proc)
{
	struct pm_image *img;

	while (!LIST_EMPTY(&proc->children))
		pm_proc_set_parent(LIST_FIRST(&proc->children), proc->parent);
	pm_proc_set_parent(proc, NULL);
	pm_proc_queue(proc, NULL);
	pm->nzombies -= proc->zombie;
	TAILQ_REMOVE(&pm->all, proc, all);
	hash_remove(&pm->procs, &proc->node);
	pm_proc_drop_pending(pm, proc);
	pm_past_drop(pm, proc);
	while ((img = proc->images)) {
		proc->images = img->older;
		pm_image_free(pm, img);
	}
	pool_give(&pm->proc_pool, proc);
	pm->stats.processes--;
}

void pm_proc_exited(struct pm *pm, struct pm_proc *proc, uint64_t time)
{
	if (proc->exited)
		return;
	proc->exited = true;
	proc->exit_time = time;
	pm_proc_queue(proc, &pm->exited);
}

void pm_proc_alive(struct pm *pm, struct pm_proc *proc, uint64_t time)
{
	if (!proc->exited || proc->reaped)
		return;
	if (!proc->vanished) {
		proc->last_seen = MAX(proc->last_seen, time);
		pm_proc_queue(proc, &pm->exited);
		return;
	}
	pm_proc_queue(proc, NULL);
	proc->exited = proc->vanished = false;
	proc->exit_time = proc->last_seen = 0;
	/* Its mappings were not recorded meanwhile. */
	if (proc->images->mm->refs == 1)
		pm_mm_void(pm, proc->images->mm);
	pm->stats.found += !proc->late;
	proc->late = false;
}

bool pm_proc_gone(const struct pm *pm, uint32_t tgid, uint64_t start_boottime,
		  uint64_t time)
{
	size_t i;

	if (time < pm->forgotten)
		return true;
	for (i = 0; i < PM_GONE; i++) {
		if (pm->gone[i].tgid == tgid &&
		    pm->gone[i].start_boottime == start_boottime)
			return true;
	}
	return false;
}

void pm_proc_late(struct pm *pm, struct pm_proc *proc, uint64_t time)
{
	proc->late = true;
	proc->vanished = true;
	pm_proc_exited(pm, proc, time);
	/* Its grace time, and its place in the list, begin now. */
	proc->last_seen = pm->now;
	pm_proc_queue(proc, &pm->exited);
}

void pm_proc_reaped(struct pm *pm, struct pm_proc *proc, uint64_t time)
{
	pm_proc_exited(pm, proc, time);
	if (proc->reaped)
		return;
	proc->reaped = true;
	proc->reap_time = time;
	pm_proc_queue(proc, &pm->reaped);
}

/* An image that another one replaced; never the newest. */
static void pm_forget_image(struct pm *pm, struct pm_image *img)
{
	struct pm_image **p = &img->proc->images;

	while (*p != img)
		p = &(*p)->older;
	*p = img->older;
	pm_past_add(pm, img);
	pm_image_free(pm, img);
}

static void pm_proc_end(struct pm *pm, struct pm_proc *proc)
{
	struct pm_exe *memory = pm_image_memory(proc->images);

	if (!proc->late) {
		pm->gone[pm->gone_at].tgid = proc->tgid;
		pm->gone[pm->gone_at].start_boottime = proc->start_boottime;
		pm->gone_at = (pm->gone_at + 1) % PM_GONE;
	}
	if (pm->opts.ended && !proc->late)
		pm->opts.ended(pm->opts.arg, proc->images);
	if (memory)
		pm_exe_get(memory);
	pm_proc_free(pm, proc);
	if (memory)
		pm_code_ended(memory);
	pm_exe_put(memory);
}

/* When the grace time of an exited process began. */
static uint64_t pm_proc_over(const struct pm_proc *proc)
{
	return MAX(proc->exit_time, proc->last_seen);
}

/*
 * Its parent has not waited for it yet: the exact CPU time comes with the reap.
 * Its mappings are not needed any more.
 */
static void pm_proc_zombie(struct pm *pm, struct pm_proc *proc, uint64_t time)
{
	if (!proc->zombie)
		pm->nzombies++;
	proc->zombie = true;
	if (proc->images->mm->refs == 1)
		pm_mm_void(pm, proc->images->mm);
	proc->last_seen = time;
	pm_proc_queue(proc, &pm->exited);
}

static void pm_forget_exited(struct pm *pm, uint64_t time)
{
	struct pm_proc *proc;

	while ((proc = TAILQ_FIRST(&pm->exited))) {
		if (pm_proc_over(proc) + PM_EXIT_GRACE - PM_REAP_GRACE >= time)
			break;
		if ((proc->zombie || pm->nzombies < PM_ZOMBIES) &&
		    pm_process_there(pm, proc))
			pm_proc_zombie(pm, proc, time);
		else
			pm_proc_queue(proc, &pm->leaving);
	}
	while ((proc = TAILQ_FIRST(&pm->leaving))) {
		if (pm_proc_over(proc) + PM_EXIT_GRACE >= time)
			break;
		pm_proc_end(pm, proc);
	}
}

void pm_forget(struct pm *pm, uint64_t time)
{
	struct pm_proc *proc;
	struct pm_image *img;

	pm_tick(pm, time);
	pm_code_tick(pm);
	pm->forgotten = MAX(pm->forgotten, time);
	while ((proc = TAILQ_FIRST(&pm->reaped))) {
		if (proc->reap_time >= time)
			break;
		pm_proc_end(pm, proc);
	}
	pm_forget_exited(pm, time);
	while ((img = TAILQ_FIRST(&pm->ended))) {
		if (img->ended >= time)
			break;
		pm_forget_image(pm, img);
	}
	pm_reqs_refuse(pm);
	pm_open_release(pm);
}

/* The parent is found by ppid where its record was dropped. */
static bool pm_selected_by_ppid(const struct pm *pm, const struct pm_proc *proc)
{
	const struct pm_proc *parent = proc->parent;

	if (!parent)
		parent = pm_proc_at(pm, proc->images->a.ppid, pm->now);
	return pm_selects(pm, proc, parent);
}

int pm_select(struct pm *pm, uint32_t tgid)
{
	struct pm_proc *proc = pm_proc_at(pm, tgid, UINT64_MAX);
	bool again = true;

	if (!proc)
		return -ESRCH;
	proc->selected = true;
	while (again) {
		again = false;
		TAILQ_FOREACH(proc, &pm->all, all) {
			if (proc->selected || !pm_selected_by_ppid(pm, proc))
				continue;
			proc->selected = true;
			again = true;
		}
	}
	return 0;
}
