// SPDX-License-Identifier: Apache-2.0
/*
 * event: what the lifecycle stream says. Everything is put in by its key, so
 * an event that comes late finds its place, and one whose process was never
 * heard of makes it: what is not known of it is marked as not known.
 */
#include <errno.h>
#include <string.h>

#include "processmanager/internal.h"

/* A process and its first image, known by name only. */
static struct pm_image *pm_stranger(struct pm *pm, struct pm_proc *proc,
				    uint64_t exec_id)
{
	struct pm_mm *mm = pm_mm_new(pm, 0);

	if (!mm) {
		pm_nomem(pm);
		return NULL;
	}
	mm->doubtful = true;
	return pm_image_new(pm, proc, exec_id, proc->images, mm);
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
	if (!pm_stranger(pm, proc, key->exec_id)) {
		pm_proc_free(pm, proc);
		return NULL;
	}
	*made = true;
	return proc;
}

/*
 * The same, for events that should have found it. Of whom a hidden one forked this
 * is the first that is told.
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
	memcpy(img->comm, from->comm, sizeof(img->comm));
	img->kthread = from->kthread;
	if (!img->exe)
		img->exe = pm_str_get(from->exe);
	if (!img->cmdline)
		img->cmdline = pm_str_get(from->cmdline);
	if (!img->cwd)
		img->cwd = pm_str_get(from->cwd);
	if (!img->cgroup)
		img->cgroup = pm_str_get(from->cgroup);
	return 0;
}

/*
 * NULL, also in *procp, if it is not known. Of a generation whose exec event was
 * lost nothing is: that before it was another program.
 */
static struct pm_image *pm_image_of(struct pm *pm, const struct quark_key *key,
				    struct pm_proc **procp)
{
	*procp = pm_proc_find(pm, key->pid, key->start_boottime);
	return *procp ? pm_image_find_id(*procp, key->exec_id) : NULL;
}

/* What belongs to the process, not to one of its images. */
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
		return 0; /* late, and that image is over */
	if (from && img->mm->doubtful && !img->mm->walked)
		err = pm_inherit(pm, img, from, pm_shares_memory(ev));
	img->provisional = false;
	return pm_image_apply(pm, img, qp) ? -ENOMEM : err;
}

/* What 'img', just bound, means for the one before it. */
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
	if (mm == img->mm || !mm->walked || time < mm->walk_begin ||
	    time > mm->walk_end)
		return;
	/* The walk read some of this image, some of that one. */
	pm_mm_void(pm, mm);
}

/*
 * The executable: by its path, or else what exec mapped first, for a path may
 * be one of several of a file.
 */
static void pm_find_main(struct pm_image *img)
{
	const struct pm_set *set = img->mm->set;
	uint32_t i, n = set ? MIN(set->n, 16) : 0;
	struct pm_exe *exe;

	for (i = 0; i < n; i++) {
		exe = pm_set_at(set, i)->exe;
		if (exe->path == img->exe) {
			pm_image_set_main(img, exe);
			return;
		}
	}
	pm_image_set_main(img, img->mm->first);
}

/*
 * The image that an exec opened, which was over at 'time', with the mappings of
 * the pending set, if it is that exec's.
 */
static struct pm_image *pm_exec_image(struct pm *pm, struct pm_proc *proc,
				      uint64_t id, uint64_t time)
{
	struct pm_image *img = pm_image_find_id(proc, id);
	struct pm_mm *mm = proc->pending;

	if (mm && (proc->pending_id != id || time < mm->since)) {
		/* Something is missing: whose set it is nobody knows. */
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
	return pm_stranger(pm, proc, id);
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
	img->begin = ev->boottime;
	proc->execs++;
	pm_proc_apply(proc, qp);
	err = pm_image_apply(pm, img, qp);
	proc->exec_time = MAX(proc->exec_time, ev->boottime);
	pm_find_main(img);
	pm_exec_cut(pm, img, ev->boottime);
	/* Before its first sample comes. */
	if (pm_mm_doubtful(pm, img->mm))
		pm_image_want(pm, img);
	return err;
}

/*
 * Ids may have changed without an event; what it was last is its exit's word. So
 * is its name: an exec that fails too late to return is told by nothing else.
 */
static void pm_last_ids(struct pm_proc *proc, const struct quark_process *qp)
{
	struct pm_image *img = pm_image_find_id(proc, qp->key.exec_id);

	proc->sid = qp->proc_sid;
	proc->pgid = qp->proc_pgid;
	if (qp->comm[0])
		memcpy(proc->images->comm, qp->comm, sizeof(qp->comm));
	if (!img)
		return;
	img->uid = qp->proc_uid;
	img->gid = qp->proc_gid;
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
	proc->exit_told = true;
	pm_last_ids(proc, ev->process);
	/* Taken for dead already, by what came later. */
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

/* One that libquark had to infer says nothing of its own. */
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
	proc->exit_told = true;
}

/* A zombie of long standing, of too many to be kept: nothing is known of it. */
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
		return 0; /* over and forgotten */
	if (ev->events & QUARK_EV_SETPROCTITLE)
		img->comm[0] = '\0'; /* "" is a name like any other */
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

/* In the order in which one process can have them. */
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

/* What there is to say of a process no event told of. */
static void pm_walk_adopt(struct pm *pm, struct pm_proc *proc,
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
 * The image that a process runs, whose exec event was lost. Its mappings may be
 * known all the same.
 */
static struct pm_image *pm_walk_exec(struct pm *pm, struct pm_proc *proc,
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
		img = pm_stranger(pm, proc, id);
	if (!img)
		return NULL;
	img->begin = img->provisional ? img->made : time;
	proc->exec_time = MAX(proc->exec_time, img->begin);
	pm_proc_apply(proc, qp);
	return img;
}

/*
 * What a walk has to say of a process that is known: at the start nothing, later
 * which image it runs by now if no event told of it, be it known of its samples
 * only or not at all.
 */
static int pm_walk_again(struct pm *pm, struct pm_proc *proc,
			 const struct quark_process *qp, uint64_t time)
{
	struct pm_image *img = proc->images;
	uint64_t id = qp->key.exec_id;
	int err;

	if (!pm->walk || img->exec_id > id)
		return 0;
	/* A rename or a change of ids may have been lost. */
	if (img->exec_id == id && !img->provisional) {
		pm_proc_apply(proc, qp);
		return pm_image_apply(pm, img, qp);
	}
	pm->stats.found++;
	if (!proc->forked)
		pm_walk_adopt(pm, proc, qp, time);
	if (img->exec_id < id || img->older) {
		img = pm_walk_exec(pm, proc, qp, time);
		if (!img)
			return -ENOMEM;
	}
	img->provisional = false;
	err = pm_image_apply(pm, img, qp);
	pm_find_main(img);
	if (img->older)
		pm_exec_cut(pm, img, img->begin);
	if (pm_mm_doubtful(pm, img->mm))
		pm_image_want(pm, img);
	return err;
}

int pm_walk_process(struct pm *pm, const struct quark_process *qp,
		    uint64_t time)
{
	struct pm_proc *proc;
	bool made;

	pm_tick(pm, time);
	/* Forgotten here, and not there yet. */
	if (pm->walk && qp->flags & QUARK_F_EXIT &&
	    !pm_proc_find(pm, qp->key.pid, qp->key.start_boottime))
		return 0;
	proc = pm_proc_get(pm, &qp->key, &made);
	if (!proc)
		return -ENOMEM;
	/*
	 * Over by then, and nobody was told: no sign of life. libquark buries such
	 * with the time of its watermark, and that is the walk's.
	 */
	if (!(qp->flags & QUARK_F_EXIT) || qp->exit_boottime > pm->walk)
		proc->missing = false;
	if (!(qp->flags & QUARK_F_EXIT) && proc->vanished)
		pm_proc_alive(pm, proc, time);
	if (!made)
		return pm_walk_again(pm, proc, qp, time);
	if (pm->walk)
		pm->stats.found++;
	else
		pm->stats.walked++;
	proc->before = !pm->walk;
	proc->walk_due = !pm->walk;
	pm_walk_adopt(pm, proc, qp, time);
	if (qp->flags & QUARK_F_EXIT) {
		proc->wait_status = qp->wait_status;
		proc->exit_told = true;
		pm_proc_exited(pm, proc, MAX(time, qp->key.start_boottime));
	}
	if (pm->walk)
		pm_image_want(pm, proc->images);
	return pm_image_apply(pm, proc->images, qp);
}

void pm_begin(struct pm *pm, uint64_t time)
{
	pm->begin = time;
}

void pm_walk_begin(struct pm *pm, uint64_t begin)
{
	struct pm_proc *proc;
	struct hash_node *n, *tmp;
	size_t i;

	pm->walk = begin;
	hash_for_each(&pm->procs, i, n, tmp) {
		proc = container_of(n, struct pm_proc, node);
		proc->missing = !proc->exited && proc->start_boottime < begin;
	}
}

void pm_walk_end(struct pm *pm)
{
	struct pm_proc *proc;
	struct hash_node *n, *tmp;
	size_t i;

	hash_for_each(&pm->procs, i, n, tmp) {
		proc = container_of(n, struct pm_proc, node);
		if (!proc->missing || proc->exited)
			continue;
		pm->stats.vanished++;
		proc->vanished = true;
		pm_proc_exited(pm, proc, pm->walk);
	}
	pm->walk = 0;
}
