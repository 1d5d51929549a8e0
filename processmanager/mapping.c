// SPDX-License-Identifier: Apache-2.0
/*
 * mapping: applies the mapping stream and the mappings that scans read. The
 * stream identifies a process by pid and time, without an exec generation:
 *
 *   exec mark                begins the pending set of the process
 *   mappings after it        are put there
 *   exec event               makes it the set of its generation
 *
 * Without BPF there are no marks; the COMM record of the exec has that role.
 *
 * Between the last two a sample may have the new generation already; it finds
 * the pending set (pm_image_get). An address space has the time of its mark or
 * COMM record ("since"), which decides where a late mapping belongs.
 *
 * Dropped records may be of any process and any kind. A set from before may
 * then hold mappings that were replaced and lack new ones; even an exec may be
 * missing. So it is stale, and answers nothing, until a scan that began after
 * the gap. Sets that an exec begins after the gap are not affected.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/internal.h"

/*
 * After an exec between the opening of the streams and the first scan, the scan
 * may have read the new image, and libquark reports no exec event. So the
 * scan's image has the pending set too, until an event replaces it.
 */
static bool pm_pending_scanned(const struct pm_proc *proc)
{
	return proc->pending && proc->pending == proc->images->mm &&
	       proc->images->exec_id < proc->pending_id;
}

/*
 * The generation that an exec at 'time' makes: one above the last at that time;
 * provisional images of later samples are the exec's own.
 */
static uint64_t pm_exec_makes(const struct pm_proc *proc, uint64_t time)
{
	const struct pm_image *img = proc->images;
	uint64_t id = img->exec_id + 1;

	if (pm_pending_scanned(proc))
		return proc->pending_id;
	if (proc->pending)
		return proc->pending_id + 1;
	for (; img; img = img->older) {
		if (!img->provisional || img->made < time)
			return img->exec_id + 1;
		id = img->exec_id;
	}
	return id;
}

/* The exec event came before the exec mark, or COMM record without BPF. */
static void pm_map_exec_late(struct pm_proc *proc, uint64_t time)
{
	struct pm_mm *mm = proc->images->mm;

	if (mm->since || !mm->partial || mm->scanned)
		return;
	mm->since = time;
	mm->whole = time;
	mm->partial = false;
}

static int pm_map_exec(struct pm *pm, struct pm_proc *proc, uint64_t time)
{
	uint64_t id = pm_exec_makes(proc, time);
	struct pm_image *img;
	struct pm_mm *mm;

	if (time <= proc->exec_time) {
		pm_map_exec_late(proc, time);
		return 0;
	}
	mm = pm_mm_new(pm, time);
	pm_proc_drop_pending(pm, proc);
	if (!mm)
		return pm_nomem(pm);
	proc->pending = mm;
	proc->pending_id = id;
	if (proc->before && time < pm->begin)
		pm_image_set_mm(pm, proc->images, pm_mm_get(mm));
	img = pm_image_find_id(proc, id);
	if (img && img->provisional && img->mm->partial && !img->mm->scanned)
		pm_image_set_mm(pm, img, pm_mm_get(mm));
	return 0;
}

/* The address space of a mapping that appeared at 'time', or NULL. */
static struct pm_mm *pm_map_route(const struct pm_proc *proc, uint64_t time)
{
	const struct pm_image *img;

	if (proc->pending && proc->pending->since <= time)
		return proc->pending;
	for (img = proc->images; img; img = img->older) {
		if (img->mm->since <= time)
			return img->mm;
	}
	return NULL;
}

/*
 * In a lent address space, what the borrower maps is the lender's, unless an
 * exec is under way whose mark (COMM record without BPF) may have been dropped.
 */
static bool pm_map_unclear(const struct pm *pm, struct pm_proc *proc,
			   const struct pm_mm *mm, uint64_t time)
{
	return mm == proc->images->mm &&
	       proc->start_boottime < pm->lost_until &&
	       time < pm->lost_until + PM_EXEC_MAX && pm_lender(proc) != proc;
}

static int pm_map_mmap(struct pm *pm, struct pm_proc *proc,
		       const struct pm_map_event *ev)
{
	struct pm_mm *mm = pm_map_route(proc, ev->time);
	struct pm_map map = { .start = ev->start,
			      .end = ev->end,
			      .pgoff = ev->pgoff };
	int err;

	if (!mm) {
		pm->stats.unknown++;
		return 0;
	}
	if (mm->scanned && ev->time < mm->scan_begin) {
		pm->stats.maps_before_scan++;
		return 0;
	}
	mm->last = MAX(mm->last, ev->time);
	if (pm_map_unclear(pm, proc, mm, ev->time)) {
		pm_mm_void(pm, mm);
		return 0;
	}
	err = pm_exe_of(pm, ev, proc, &map.exe);
	if (err) {
		/* The set may hold what this mapping has replaced. */
		pm_mm_void(pm, mm);
		return err == -EDQUOT ? 0 : err;
	}
	pm->stats.maps++;
	err = pm_mm_add(pm, mm, pm_proc_uid(proc), &map);
	pm_exe_put(map.exe);
	if (mm == proc->images->mm && mm->set && mm->set->n >= mm->reread_at)
		pm_image_want(pm, proc->images);
	return err;
}

static void pm_map_lost(struct pm *pm, const struct pm_map_event *ev)
{
	pm->stats.maps_lost++;
	pm->stats.maps_lost_ms = pm_span_ms(ev->time, MAX(ev->end, ev->time),
					    &pm->lost_until, &pm->lost_ns);
}

/* Makes one process's set stale. Exec records are never dropped this way. */
static int pm_map_limited(struct pm *pm, const struct pm_proc *proc,
			  const struct pm_map_event *ev)
{
	struct pm_mm *mm = pm_map_route(proc, ev->time);
	uint64_t until = MAX(ev->end, ev->time);

	pm->stats.maps_limited++;
	pm_limited(pm, proc->images->a.uid,
		   ev->flood ? PM_LIMIT_MAPS : PM_LIMIT_MAPS_ALL, 1);
	if (!mm)
		return 0;
	mm->lost_until = MAX(mm->lost_until, until);
	if (ev->flood)
		mm->flood_until = MAX(mm->flood_until, until);
	return 0;
}

int pm_map_event(struct pm *pm, const struct pm_map_event *ev)
{
	struct pm_proc *proc;

	pm_tick(pm, ev->time);
	if (ev->kind == PM_MAP_LOST && !ev->tgid) {
		pm_map_lost(pm, ev);
		return 0;
	}
	if (ev->kind == PM_MAP_MMAP &&
	    (ev->start >= ev->end || !ev->path ||
	     ev->build_id_len > SYMBOLIZER_BUILD_ID_MAX))
		return -EINVAL;
	proc = pm_proc_at(pm, ev->tgid, ev->time);
	if (!proc) {
		pm->stats.unknown += ev->time >= pm->begin;
		return 0;
	}
	if (ev->kind == PM_MAP_EXEC)
		return pm_map_exec(pm, proc, ev->time);
	if (ev->kind == PM_MAP_LOST)
		return pm_map_limited(pm, proc, ev);
	return pm_map_mmap(pm, proc, ev);
}

static bool pm_path_is(const struct pm_str *str, const char *path)
{
	size_t len = pm_exe_path_len(path);

	return str && str->len == len && !memcmp(str->s, path, len);
}

/*
 * An executable that a scan found. /proc has no build ids: where the same file
 * was mapped at the same place before, it is that executable. Returns as
 * pm_exe_of().
 */
static int pm_scan_exe(struct pm *pm, const struct pm_proc *proc,
		       const struct pm_map_event *ev, struct pm_exe **exep)
{
	const struct pm_map *was = pm_mm_find(proc->images->mm, ev->start);
	struct pm_exe *exe = was ? was->exe : NULL;

	if (exe && exe->kind == PM_EXE_FILE && was->text == PM_TEXT_FILE &&
	    ev->start - was->start == ev->pgoff - was->pgoff &&
	    pm_path_is(exe->path, ev->path) &&
	    (!exe->ino || (exe->ino == ev->ino && exe->dev == ev->dev))) {
		*exep = pm_exe_get(exe);
		return 0;
	}
	return pm_exe_of(pm, ev, proc, exep);
}

/*
 * Memory that a scan found, where its process had a file's code, or directly above a
 * mapping of one, may hold a copy of that code. 'below': that mapping, or NULL. *path is
 * set to that of the file.
 */
static int pm_scan_copy(struct pm *pm, const struct pm_proc *proc,
			const struct pm_map_event *below, struct pm_map *map,
			const char **path)
{
	const struct pm_map *was = pm_mm_find(proc->images->mm, map->start);
	struct pm_exe *exe = NULL;
	int err;

	if (was && was->exe->kind == PM_EXE_FILE) {
		exe = pm_exe_get(was->exe);
		map->pgoff = was->pgoff + (map->start - was->start);
		*path = exe->path->s;
	} else if (below) {
		err = pm_exe_of(pm, below, proc, &exe);
		if (err)
			return err;
		map->pgoff = below->pgoff + (map->start - below->start);
		*path = below->path;
	}
	if (!exe || exe->kind != PM_EXE_FILE || exe->jitdump) {
		pm_exe_put(exe);
		return 0;
	}
	pm_exe_put(map->exe);
	map->exe = exe;
	map->text = PM_TEXT_MAYBE;
	return 0;
}

/* The executable of the i-th mapping of a scan; returns as pm_exe_of(). */
static int pm_scan_map(struct pm *pm, const struct pm_proc *proc,
		       const struct pm_maps *m, size_t i, struct pm_map *map,
		       const char **path)
{
	const struct pm_map_event *ev = &m->maps[i];
	const struct pm_map_event *below = i ? ev - 1 : NULL;
	int err;

	*map = (struct pm_map){ .start = ev->start,
				.end = ev->end,
				.pgoff = ev->pgoff };
	*path = ev->path;
	err = pm_scan_exe(pm, proc, ev, &map->exe);
	if (err || map->exe->kind != PM_EXE_ANON)
		return err;
	if (below && (below->path[0] != '/' || below->start >= ev->start))
		below = NULL;
	err = pm_scan_copy(pm, proc, below, map, path);
	if (err)
		pm_exe_put(map->exe);
	return err;
}

/*
 * Puts 'm' into mm. *main_exe: the executable, if it is there; a reference, also on
 * error, since a later mapping may make mm drop all it has.
 */
static int pm_scan_fill(struct pm *pm, const struct pm_proc *proc,
			const struct pm_maps *m, struct pm_mm *mm,
			struct pm_exe **main_exe)
{
	const struct pm_map_event *ev;
	const char *path;
	struct pm_map map;
	size_t i;
	int err;

	for (i = 0; i < m->n; i++) {
		ev = &m->maps[i];
		if (ev->start >= ev->end || ev->below)
			continue;
		err = pm_scan_map(pm, proc, m, i, &map, &path);
		if (err == -EDQUOT) {
			mm->partial = true;
			continue;
		}
		if (err)
			return err;
		err = pm_mm_add(pm, mm, pm_proc_uid(proc), &map);
		if (pm_path_is(proc->images->a.exe, path)) {
			pm_exe_put(*main_exe);
			*main_exe = pm_exe_get(map.exe);
		}
		pm_exe_put(map.exe); /* mm has it */
		if (err)
			return err;
	}
	return 0;
}

/*
 * An exec came since the scan began, or is under way; records were dropped
 * meanwhile; or later mappings have been applied already.
 */
static bool pm_scan_late(const struct pm *pm, struct pm_proc *proc,
			 const struct pm_maps *m)
{
	const struct pm_mm *mm = proc->images->mm;

	if (proc->pending && proc->pending != mm &&
	    proc->pending->since + PM_EXEC_MAX >= m->begin)
		return true;
	return proc->exec_time >= m->begin || mm->since >= m->begin ||
	       m->begin < pm_mm_lost_until(pm, mm) || mm->last > m->begin ||
	       pm_lender(proc) != proc;
}

/* Memory without a file may have grown. */
static bool pm_map_agrees(const struct pm_map *a, const struct pm_map *b)
{
	return a->exe == b->exe && (a->exe->kind == PM_EXE_ANON ||
				    a->pgoff - a->start == b->pgoff - b->start);
}

/* Whether 'mm' has nothing else where one of 'of' begins. */
static bool pm_mm_has_no_other(const struct pm_mm *mm, const struct pm_mm *of)
{
	const struct pm_map *map, *other;

	for (uint32_t i = 0; of->set && i < of->set->n; i++) {
		map = pm_set_at(of->set, i);
		other = pm_mm_find(mm, map->start);
		if (other && !pm_map_agrees(map, other))
			return false;
	}
	return true;
}

/*
 * The scan may have read what was mapped while it read, so a sample from before that
 * would get a name of what came after it. That cannot be if nothing was lost before the
 * scan, and it found nothing else in any place. A scan at the start of profd begins with
 * the stream, so it is of its begin: what comes later is recorded.
 */
static uint64_t pm_scan_known_from(const struct pm *pm, const struct pm_mm *mm,
				   const struct pm_mm *fresh,
				   const struct pm_maps *m)
{
	return !pm_mm_stale(pm, mm) && pm_mm_has_no_other(mm, fresh) &&
			       pm_mm_has_no_other(fresh, mm)
		       ? m->begin
		       : m->end;
}

static int pm_scan_put(struct pm *pm, struct pm_proc *proc,
		       const struct pm_maps *m)
{
	struct pm_image *img = proc->images;
	struct pm_mm *mm = img->mm, *fresh;
	struct pm_exe *main_exe = NULL;
	int err;

	fresh = pm_mm_new(pm, 0);
	if (!fresh)
		return pm_nomem(pm);
	err = pm_scan_fill(pm, proc, m, fresh, &main_exe);
	if (err)
		goto out;
	mm->known_from = pm_scan_known_from(pm, mm, fresh, m);
	pm_mm_replace(pm, mm, fresh);
	/* Its exec event was dropped, and will not come. */
	if (proc->pending != mm)
		pm_proc_drop_pending(pm, proc);
	mm->reread_at = 2 * (mm->set ? mm->set->n : 0) + PM_SET_SPARE;
	pm->stats.rereads += !proc->scan_due;
	proc->scan_due = false;
	mm->partial = fresh->partial;
	mm->whole = m->begin;
	mm->last = m->begin;
	mm->scanned = true;
	mm->scan_begin = m->begin;
	mm->scan_end = m->end;
	if (main_exe)
		pm_image_set_main(img, main_exe);
out:
	pm_exe_put(main_exe);
	pm_mm_put(pm, fresh);
	return err;
}

int pm_scan_maps(struct pm *pm, const struct pm_maps *m)
{
	struct pm_proc *proc;

	pm_tick(pm, m->begin);
	proc = m->start_boottime ? pm_proc_find(pm, m->tgid, m->start_boottime)
				 : pm_proc_at(pm, m->tgid, m->begin);
	if (!proc)
		return -ESRCH;
	if (pm_scan_late(pm, proc, m)) {
		if (pm_mm_uncertain(pm, proc->images->mm))
			pm_image_want(pm, proc->images);
		return 0;
	}
	/* /proc shows no mappings of an ending process: the known ones stay. */
	if (!m->n && proc->images->mm->set)
		return 0;
	return pm_scan_put(pm, proc, m);
}
