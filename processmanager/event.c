// SPDX-License-Identifier: Apache-2.0
/*
 * event: applies the lifecycle stream and the records of scans. Everything is
 * found by its key, so a late event is applied to the right image, and an event
 * of an unknown process creates it, with what is not known marked as such.
 */
#include <errno.h>
#include <string.h>

#include "processmanager/internal.h"

/* An image of which only the key is known. */
static struct pm_image *pm_image_unknown(struct pm *pm, struct pm_proc *proc,
					 uint64_t exec_id)
{
	struct pm_mm *mm = pm_mm_unknown(pm);

	return mm ? pm_image_new(pm, proc, exec_id, proc->images, mm) : NULL;
}

/*
 * The process of a key; made, with the key's image, if there is none. NULL
 * without memory.
 */
static struct pm_proc *pm_proc_get(struct pm *pm, const struct quark_key *key,
				   bool *made)
{
	struct pm_proc *proc;

	*made = false;
	proc = pm_proc_find(pm, key->pid, key->start_boottime);
	if (proc)
		return proc;
	proc = pm_proc_new(pm, key->pid, key->start_boottime);
	if (!proc)
		return NULL;
	if (!pm_image_unknown(pm, proc, key->exec_id)) {
		pm_proc_free(pm, proc);
		return NULL;
	}
	*made = true;
	return proc;
}

/*
 * The same, for events whose process should be known. Only of a hidden
 * process's child is such an event the first.
 */
static struct pm_proc *pm_proc_expect(struct pm *pm,
				      const struct quark_process *qp)
{
	struct pm_proc *parent, *proc;
	bool made;

	proc = pm_proc_get(pm, &qp->key, &made);
	if (!proc)
		return NULL;
	if (proc->vanished)
		pm_proc_alive(pm, proc, pm->now);
	if (!made)
		return proc;
	parent = pm_proc_find(pm, qp->parent_key.pid,
			      qp->parent_key.start_boottime);
	pm_proc_set_parent(proc, parent);
	proc->selected = pm_selects(pm, proc, parent);
	if (!(parent && parent->hidden))
		pm->stats.unknown += qp->key.start_boottime >= pm->begin;
	return proc;
}

static bool pm_shares_memory(const struct quark_event *ev)
{
	return (ev->clone_flags & PM_CLONE_VM) ||
	       (ev->process->x_flags & QUARK_X_CLONE_VM);
}

static void pm_inherit_str(struct pm_str **slot, struct pm_str *from)
{
	if (!*slot)
		*slot = pm_str_get(from);
}

/* What a child has of the image that forked it. */
static int pm_inherit(struct pm *pm, struct pm_image *img,
		      const struct pm_image *from, bool shared)
{
	struct pm_mm *mm;

	mm = shared ? pm_mm_get(from->mm) : pm_mm_fork(pm, from->mm);
	if (!mm)
		return pm_nomem(pm);
	pm_image_set_mm(pm, img, mm);
	pm_image_set_main(img, from->main_exe);
	memcpy(img->a.comm, from->a.comm, sizeof(img->a.comm));
	img->kthread = from->kthread;
	pm_inherit_str(&img->a.exe, from->a.exe);
	pm_inherit_str(&img->a.cmdline, from->a.cmdline);
	pm_inherit_str(&img->a.cwd, from->a.cwd);
	pm_inherit_str(&img->a.cgroup, from->a.cgroup);
	return 0;
}

/*
 * NULL, also in *procp, if it is not known. If a generation's exec event was
 * dropped, the generation before it is no substitute: it is another program.
 */
static struct pm_image *pm_image_of(struct pm *pm, const struct quark_key *key,
				    struct pm_proc **procp)
{
	*procp = pm_proc_find(pm, key->pid, key->start_boottime);
	return *procp ? pm_image_find_id(*procp, key->exec_id) : NULL;
}

/* The attributes of the process, not of one of its images. */
static void pm_proc_apply(struct pm_proc *proc, const struct quark_process *qp)
{
	proc->sid = qp->proc_sid;
	proc->pgid = qp->proc_pgid;
	proc->leader_type = qp->proc_entry_leader_type;
	proc->leader = qp->proc_entry_leader;
	proc->hidden = qp->x_flags & QUARK_X_HIDDEN;
	if (qp->parent_key.pid) {
		proc->parent_tgid = qp->parent_key.pid;
		proc->parent_start = qp->parent_key.start_boottime;
	}
}

static int pm_fork(struct pm *pm, const struct quark_event *ev)
{
	const struct quark_process *qp = ev->process;
	struct pm_image *img, *from;
	struct pm_proc *proc, *parent, *forker;
	bool made;
	int err = 0;

	if (ev->clone_flags & PM_CLONE_THREAD)
		return 0;
	pm->stats.forks++;
	proc = pm_proc_get(pm, &qp->key, &made);
	if (!proc)
		return -ENOMEM;
	if (proc->late)
		pm_proc_alive(pm, proc, ev->boottime);
	if (proc->forked)
		return 0;
	proc->forked = true;
	pm_proc_apply(proc, qp);
	pm_image_of(pm, &qp->parent_key, &parent);
	/* CLONE_PARENT: its memory is not its parent's. */
	from = pm_image_of(pm,
			   ev->fork_key.pid ? &ev->fork_key : &qp->parent_key,
			   &forker);
	pm_proc_set_parent(proc, parent);
	if (pm_selects(pm, proc, parent))
		proc->selected = true;
	img = pm_image_find_id(proc, qp->key.exec_id);
	if (!img)
		return 0; /* late, and that image has ended */
	if (from && img->mm->partial && !img->mm->scanned)
		err = pm_inherit(pm, img, from, pm_shares_memory(ev));
	img->provisional = false;
	return pm_image_apply(pm, img, qp) ? -ENOMEM : err;
}

/* Ends the image that 'img' replaced. */
static void pm_exec_cut(struct pm *pm, struct pm_image *img, uint64_t time)
{
	struct pm_image *old = img->older;
	struct pm_mm *mm;

	if (img != img->proc->images)
		pm_image_end(pm, img, time);
	if (!old)
		return;
	pm_image_end(pm, old, time);
	mm = old->mm;
	if (mm == img->mm || !mm->scanned || time < mm->scan_begin ||
	    time > mm->scan_end)
		return;
	/* The scan read some mappings of either image. */
	pm_mm_void(pm, mm);
}

/*
 * The executable: by its path, or else the first file mapped, since the file
 * may have been mapped by another of its paths.
 */
static void pm_find_main(struct pm_image *img)
{
	const struct pm_set *set = img->mm->set;
	uint32_t i, n = set ? MIN(set->n, 16) : 0;
	struct pm_exe *exe;

	for (i = 0; i < n; i++) {
		exe = pm_set_at(set, i)->exe;
		if (exe->path == img->a.exe) {
			pm_image_set_main(img, exe);
			return;
		}
	}
	pm_image_set_main(img, img->mm->first);
}

/*
 * The image that an exec made, which ended at 'time', with the mappings of the
 * pending set, if it is that exec's.
 */
static struct pm_image *pm_exec_image(struct pm *pm, struct pm_proc *proc,
				      uint64_t id, uint64_t time)
{
	struct pm_image *img = pm_image_find_id(proc, id);
	struct pm_mm *mm = proc->pending;

	if (mm && (proc->pending_id != id || time < mm->since)) {
		/* A record is missing: the image of this set is unknown. */
		if (time >= mm->since)
			pm_proc_drop_pending(pm, proc);
		mm = NULL;
	}
	proc->pending = mm ? NULL : proc->pending;
	if (img && mm)
		pm_image_set_mm(pm, img, mm);
	if (img)
		return img;
	if (mm)
		return pm_image_new(pm, proc, id, proc->images, mm);
	return pm_image_unknown(pm, proc, id);
}

static int pm_exec(struct pm *pm, const struct quark_event *ev)
{
	const struct quark_process *qp = ev->process;
	struct pm_image *img;
	struct pm_proc *proc;
	int err;

	pm->stats.execs++;
	proc = pm_proc_expect(pm, qp);
	if (!proc)
		return -ENOMEM;
	img = pm_exec_image(pm, proc, qp->key.exec_id, ev->boottime);
	if (!img)
		return -ENOMEM;
	img->provisional = false;
	img->a.begin = ev->boottime;
	proc->execs++;
	pm_proc_apply(proc, qp);
	err = pm_image_apply(pm, img, qp);
	proc->exec_time = MAX(proc->exec_time, ev->boottime);
	pm_find_main(img);
	pm_exec_cut(pm, img, ev->boottime);
	/* Before its first sample comes. */
	if (pm_mm_uncertain(pm, img->mm))
		pm_image_want(pm, img);
	return err;
}

/*
 * The exit has the last ids, which may have changed without an event, and the
 * last name: an exec that fails too late to return has no other event.
 */
static void pm_last_ids(struct pm_proc *proc, const struct quark_process *qp)
{
	struct pm_image *img = pm_image_find_id(proc, qp->key.exec_id);

	proc->sid = qp->proc_sid;
	proc->pgid = qp->proc_pgid;
	if (qp->comm[0])
		memcpy(proc->images->a.comm, qp->comm, sizeof(qp->comm));
	if (!img)
		return;
	img->a.uid = qp->proc_uid;
	img->a.gid = qp->proc_gid;
}

static int pm_exit(struct pm *pm, const struct quark_event *ev)
{
	struct pm_proc *proc;

	if (!ev->group_dead)
		return 0; /* a thread */
	pm->stats.exits++;
	proc = pm_proc_expect(pm, ev->process);
	if (!proc)
		return -ENOMEM;
	proc->wait_status = ev->process->wait_status;
	proc->exit_known = true;
	pm_last_ids(proc, ev->process);
	/* The process that reaps it, which is not the one that forked an orphan. */
	if (ev->process->proc_ppid)
		proc->images->a.ppid = ev->process->proc_ppid;
	/* A later record has shown its end already. */
	if (proc->exited)
		proc->exit_time = MIN(proc->exit_time, ev->boottime);
	proc->maxrss = ev->maxrss;
	proc->minflt = ev->minflt;
	proc->majflt = ev->majflt;
	if (ev->cpu_time && proc->cpu < PM_CPU_PROVISIONAL) {
		proc->cpu = PM_CPU_PROVISIONAL;
		proc->cpu_ns = ev->cpu_time;
	}
	pm_proc_exited(pm, proc, ev->boottime);
	return 0;
}

/* A reap that libquark had to infer has no figures. */
static void pm_reap_account(struct pm_proc *proc, const struct quark_event *ev)
{
	if (!ev->cpu_exact)
		return;
	proc->cpu = PM_CPU_EXACT;
	proc->cpu_ns = ev->cpu_time;
	proc->user_ns = ev->utime;
	proc->system_ns = ev->stime;
	proc->minflt = ev->minflt;
	proc->majflt = ev->majflt;
	proc->wait_status = ev->process->wait_status;
	proc->exit_known = true;
}

/* An old zombie, forgotten because there were too many. */
static bool pm_reap_forgotten(struct pm *pm, const struct quark_event *ev)
{
	const struct quark_process *qp = ev->process;

	return qp->exit_boottime &&
	       qp->exit_boottime + PM_EXIT_GRACE < ev->boottime &&
	       !pm_proc_find(pm, qp->key.pid, qp->key.start_boottime);
}

static int pm_reap(struct pm *pm, const struct quark_event *ev)
{
	struct pm_proc *proc;

	pm->stats.reaps++;
	if (pm_reap_forgotten(pm, ev))
		return 0;
	proc = pm_proc_expect(pm, ev->process);
	if (!proc)
		return -ENOMEM;
	pm_reap_account(proc, ev);
	pm_proc_reaped(pm, proc, ev->boottime);
	return 0;
}

/* A new name, title or new ids of the image of the key. */
static int pm_change(struct pm *pm, const struct quark_event *ev)
{
	const struct quark_process *qp = ev->process;
	struct pm_proc *proc = pm_proc_expect(pm, qp);
	struct pm_image *img;

	if (!proc)
		return -ENOMEM;
	pm_proc_apply(proc, qp);
	img = pm_image_find_id(proc, qp->key.exec_id);
	if (!img)
		return 0; /* ended and forgotten */
	if (ev->events & QUARK_EV_SETPROCTITLE)
		img->a.comm[0] = '\0'; /* "" is a name like any other */
	return pm_image_apply(pm, img, qp);
}

static int pm_rename(struct pm *pm, const struct quark_event *ev)
{
	pm->stats.renames++;
	if (ev->limited)
		pm_limited(pm, ev->process->proc_uid, PM_LIMIT_NAMES,
			   ev->limited);
	return pm_change(pm, ev);
}

/* In the order in which they can happen to a process. */
static const struct {
	uint64_t bit;
	int (*fn)(struct pm *pm, const struct quark_event *ev);
} pm_events[] = {
	{ QUARK_EV_FORK, pm_fork },	      { QUARK_EV_EXEC, pm_exec },
	{ QUARK_EV_SETPROCTITLE, pm_rename }, { QUARK_EV_ID_CHANGE, pm_change },
	{ QUARK_EV_EXIT, pm_exit },	      { QUARK_EV_REAP, pm_reap },
};

int pm_event(struct pm *pm, const struct quark_event *ev)
{
	size_t i;
	int err = 0, e;

	pm_tick(pm, ev->boottime);
	if (ev->events & QUARK_EV_GAP) {
		pm->stats.gaps++;
		pm->stats.gaps_ms = pm_span_ms(ev->gap_from, ev->gap_to,
					       &pm->gap_until, &pm->gap_ns);
	}
	if (!ev->process)
		return 0;
	for (i = 0; i < ARRAY_SIZE(pm_events); i++) {
		if (!(ev->events & pm_events[i].bit))
			continue;
		e = pm_events[i].fn(pm, ev);
		if (e)
			err = e;
	}
	return err;
}

/* Applies a scan's record to a process without a fork event. */
static void pm_scan_adopt(struct pm *pm, struct pm_proc *proc,
			  const struct quark_process *qp, uint64_t time)
{
	struct pm_proc *parent;

	proc->forked = true;
	pm_proc_apply(proc, qp);
	if (qp->parent_key.pid)
		parent = pm_proc_find(pm, qp->parent_key.pid,
				      qp->parent_key.start_boottime);
	else
		parent = pm_proc_at(pm, qp->proc_ppid, time);
	pm_proc_set_parent(proc, parent);
	if (pm_selects(pm, proc, proc->parent))
		proc->selected = true;
}

/*
 * The image that a process runs, whose exec event was dropped. Its mappings may
 * be known.
 */
static struct pm_image *pm_scan_exec(struct pm *pm, struct pm_proc *proc,
				     const struct quark_process *qp,
				     uint64_t time)
{
	uint64_t id = qp->key.exec_id;
	struct pm_image *img;

	if (proc->pending && proc->pending_id > id) /* of the next one */
		img = pm_image_find_id(proc, id);
	else
		img = pm_exec_image(pm, proc, id, time);
	if (!img)
		img = pm_image_unknown(pm, proc, id);
	if (!img)
		return NULL;
	img->a.begin = img->provisional ? img->made : time;
	proc->exec_time = MAX(proc->exec_time, img->a.begin);
	pm_proc_apply(proc, qp);
	return img;
}

/*
 * Applies a scan's record to a known process. The scan at the start adds
 * nothing; a rescan adds the image that the process runs, if its exec event is
 * missing: the image may be known by samples, or not at all.
 */
static int pm_scan_again(struct pm *pm, struct pm_proc *proc,
			 const struct quark_process *qp, uint64_t time)
{
	struct pm_image *img = proc->images;
	uint64_t id = qp->key.exec_id;
	int err;

	if (!pm->rescan || img->exec_id > id)
		return 0;
	/* A rename or a change of ids may have been dropped. */
	if (img->exec_id == id && !img->provisional) {
		pm_proc_apply(proc, qp);
		return pm_image_apply(pm, img, qp);
	}
	pm->stats.found++;
	if (!proc->forked)
		pm_scan_adopt(pm, proc, qp, time);
	if (img->exec_id < id || img->older) {
		img = pm_scan_exec(pm, proc, qp, time);
		if (!img)
			return -ENOMEM;
	}
	img->provisional = false;
	err = pm_image_apply(pm, img, qp);
	pm_find_main(img);
	if (img->older)
		pm_exec_cut(pm, img, img->a.begin);
	if (pm_mm_uncertain(pm, img->mm))
		pm_image_want(pm, img);
	return err;
}

int pm_scan_process(struct pm *pm, const struct quark_process *qp,
		    uint64_t time)
{
	bool made, exited = qp->flags & QUARK_F_EXIT;
	struct pm_proc *proc;

	pm_tick(pm, time);
	/* Forgotten here, but not by libquark yet. */
	if (pm->rescan && exited &&
	    !pm_proc_find(pm, qp->key.pid, qp->key.start_boottime))
		return 0;
	proc = pm_proc_get(pm, &qp->key, &made);
	if (!proc)
		return -ENOMEM;
	/*
	 * It had ended by the rescan, without an event: libquark then sets the
	 * exit to the time of its watermark, which is the rescan's.
	 */
	if (!exited || qp->exit_boottime > pm->rescan)
		proc->missing = false;
	if (!exited && proc->vanished)
		pm_proc_alive(pm, proc, time);
	if (!made)
		return pm_scan_again(pm, proc, qp, time);
	if (pm->rescan)
		pm->stats.found++;
	else
		pm->stats.scanned++;
	proc->before = !pm->rescan;
	proc->scan_due = !pm->rescan;
	pm_scan_adopt(pm, proc, qp, time);
	if (exited) {
		proc->wait_status = qp->wait_status;
		proc->exit_known = true;
		pm_proc_exited(pm, proc, MAX(time, qp->key.start_boottime));
	}
	if (pm->rescan)
		pm_image_want(pm, proc->images);
	return pm_image_apply(pm, proc->images, qp);
}

void pm_begin(struct pm *pm, uint64_t time)
{
	pm->begin = time;
}

void pm_rescan_begin(struct pm *pm, uint64_t begin)
{
	struct pm_proc *proc;

	pm->rescan = begin;
	TAILQ_FOREACH(proc, &pm->all, all)
		proc->missing = !proc->exited && proc->start_boottime < begin;
}

void pm_rescan_end(struct pm *pm)
{
	struct pm_proc *proc;

	TAILQ_FOREACH(proc, &pm->all, all) {
		if (!proc->missing || proc->exited)
			continue;
		pm->stats.vanished++;
		proc->vanished = true;
		pm_proc_exited(pm, proc, pm->rescan);
	}
	pm->rescan = 0;
}
