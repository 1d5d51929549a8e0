// SPDX-License-Identifier: Apache-2.0
/*
 * open: the files behind executables: opened when first seen, closed for the
 * limit, opened again when a request (queue.c) needs them.
 *
 * The process that mapped a file may have exited before the file is opened. So
 * an opening tries several lookup strategies in order, until a file passes the
 * identity check: the process that mapped it last, another one that maps it,
 * the nearest living ancestor (which is in the same container, as a rule), and
 * our own root.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/internal.h"

/* So many tries follow each other at once, later ones at growing intervals. */
#define PM_OPEN_EAGER 4
#define PM_OPEN_BACKOFF (100 * CLOCK_NSEC_PER_MSEC)
#define PM_OPEN_BACKOFF_MAX (10 * CLOCK_NSEC_PER_SEC)
/* Before the next try where a file system does not answer. */
#define PM_OPEN_HUNG CLOCK_NSEC_PER_SEC

/* --- files held open ------------------------------------------------------ */

void pm_exe_close(struct pm_exe *exe)
{
	struct pm *pm = exe->pm;

	if (!pm_exe_opens(exe) || !exe->file)
		return;
	symbolizer_close(pm->opts.symbolizer, exe->file);
	exe->file = NULL;
	pm_exe_unpinned(exe);
	TAILQ_REMOVE(&pm->open, exe, lru);
	pm->stats.open_files--;
	pm_user_give(pm, exe->user, PM_SHARE_FILES, 1);
}

static uint64_t pm_release_due(const struct pm_exe *exe)
{
	uint64_t root = exe->pm->opts.root_dev;
	bool soon =
		root && exe->file && symbolizer_ident(exe->file)->dev != root;

	return exe->unmapped_at + (soon ? PM_UNMAPPED_SOON : PM_UNMAPPED_GRACE);
}

void pm_release_later(struct pm_exe *exe)
{
	struct pm *pm = exe->pm;

	pm->release_at = MIN(pm->release_at, pm_release_due(exe));
}

/*
 * An open file keeps its file system from being unmounted, so one without
 * mappings is closed, once its last samples have their names: all samples before
 * pm->forgotten have. One with requests is checked again the next time.
 */
static void pm_release(struct pm *pm)
{
	struct pm_exe *exe, *next;

	pm->release_at = UINT64_MAX;
	for (exe = TAILQ_FIRST(&pm->open); exe; exe = next) {
		next = TAILQ_NEXT(exe, lru);
		if (exe->mapped)
			continue;
		if (pm->now < pm_release_due(exe) ||
		    pm->forgotten <= exe->unmapped_at || exe->opening ||
		    !TAILQ_EMPTY(&exe->reqs)) {
			pm_release_later(exe);
			continue;
		}
		pm_exe_close(exe);
		pm->stats.open_released++;
	}
}

void pm_open_release(struct pm *pm)
{
	pm_early_expire(pm);
	if (pm->now >= pm->release_at)
		pm_release(pm);
	pm_open_queued(pm);
}

void pm_set_open_files(struct pm *pm, unsigned int n)
{
	pm->opts.open_files = n;
	pm_open_room(pm, NULL, 0);
}

void pm_exe_touch(struct pm_exe *exe)
{
	if (!pm_exe_opens(exe))
		return;
	TAILQ_REMOVE(&exe->pm->open, exe, lru);
	TAILQ_INSERT_TAIL(&exe->pm->open, exe, lru);
}

void pm_exe_give_file(struct pm_exe *exe, struct pm_exe *to)
{
	struct pm *pm = exe->pm;

	to->file = exe->file;
	exe->file = NULL;
	TAILQ_REMOVE(&pm->open, exe, lru);
	TAILQ_INSERT_TAIL(&pm->open, to, lru);
	if (!to->mapped)
		pm_release_later(to);
}

static bool pm_ident_same(const struct symbolizer_ident *a,
			  const struct symbolizer_ident *b)
{
	return a->build_id_len == b->build_id_len &&
	       !memcmp(a->build_id, b->build_id, a->build_id_len) &&
	       !memcmp(a->file_id, b->file_id, sizeof(a->file_id)) &&
	       !memcmp(a->content, b->content, sizeof(a->content));
}

static int pm_exe_learn(struct pm_exe *exe, const struct symbolizer_file *file)
{
	const struct symbolizer_segment *segments;
	size_t n = 0;

	if (exe->opened || exe->kind == PM_EXE_ANON)
		return 0;
	segments = symbolizer_segments(file, &n);
	exe->segments = calloc(n ? n : 1, sizeof(*segments));
	if (!exe->segments)
		return pm_nomem(exe->pm);
	if (n)
		memcpy(exe->segments, segments, n * sizeof(*segments));
	exe->nsegments = n;
	exe->slot = *symbolizer_slot(file);
	exe->pm->stats.tracers += exe->slot.model != SYMBOLIZER_SLOT_NONE;
	exe->ident = *symbolizer_ident(file);
	exe->opened = true;
	return 0;
}

/* Takes over 'file', also on error. */
static int pm_exe_install(struct pm_exe *exe, struct symbolizer_file *file)
{
	struct pm *pm = exe->pm;
	int err = exe->file || exe->same ? 0 : pm_exe_learn(exe, file);

	if (err || exe->file) {
		symbolizer_close(pm->opts.symbolizer, file);
		return err;
	}
	exe->file = file;
	exe->tries = 0;
	exe->open_error = 0;
	TAILQ_INSERT_TAIL(&pm->open, exe, lru);
	pm->stats.open_files++;
	pm_user_take(pm, exe->user, PM_SHARE_FILES, 1);
	if (!exe->mapped)
		pm_release_later(exe);
	return 0;
}

/* Gives an opened file, which it takes over, to its executable. */
static int pm_exe_adopt(struct pm_exe *exe, struct symbolizer_file *file)
{
	const struct symbolizer_ident *id = symbolizer_ident(file);
	struct pm_exe *first;

	if (exe->kind == PM_EXE_ANON) {
		pm_code_opened(exe, file);
		return pm_exe_install(exe, file);
	}
	if (exe->opened) {
		if (pm_ident_same(&exe->ident, id))
			return pm_exe_install(exe, file);
		symbolizer_close(exe->pm->opts.symbolizer, file);
		return -ESTALE;
	}
	exe->file_dev = id->dev;
	exe->file_ino = id->ino;
	first = pm_exe_identify(exe, id);
	if (!first)
		return pm_exe_install(exe, file);
	exe->same = pm_exe_get(first);
	pm_exe_mapped(first, exe->mapped);
	/* Its own file shows whether it was written to. */
	return pm_exe_install(first->file ? exe : first, file);
}

/* --- lookup strategies ---------------------------------------------------- */

static struct pm_proc *pm_via_proc(const struct pm_exe *exe)
{
	return pm_proc_find(exe->pm, exe->via.tgid, exe->via.start_boottime);
}

/* By this process, which maps it there; 0, 0: not known. */
static bool pm_lookup_by(struct symbolizer_open_req *req,
			 const struct pm_proc *proc, uint64_t start,
			 uint64_t end)
{
	req->uid = proc->images->a.uid;
	req->pid = (pid_t)proc->tgid;
	req->map_start = start;
	req->map_end = end;
	return true;
}

static bool pm_lookup_mapper(struct pm_open *o, struct symbolizer_open_req *req)
{
	const struct pm_exe *exe = o->exe;
	struct pm_proc *proc = pm_via_proc(exe);

	if (!proc || proc->exited)
		return false;
	o->tried = proc->tgid;
	return pm_lookup_by(req, proc, exe->via.start, exe->via.end);
}

static const struct pm_map *pm_proc_maps_exe(const struct pm_proc *proc,
					     const struct pm_exe *exe)
{
	const struct pm_set *set = proc->images->mm->set;
	uint32_t i;

	for (i = 0; set && i < set->n; i++) {
		if (pm_set_at(set, i)->text == PM_TEXT_FILE &&
		    pm_exe_root(pm_set_at(set, i)->exe) == exe)
			return pm_set_at(set, i);
	}
	return NULL;
}

/* Looks at all processes, so it is not the first strategy. */
static bool pm_lookup_other(struct pm_open *o, struct symbolizer_open_req *req)
{
	const struct pm_exe *exe = o->exe;
	const struct pm_map *map = NULL;
	struct pm_proc *proc;

	if (!exe->mapped)
		return false;
	TAILQ_FOREACH(proc, &exe->pm->all, all) {
		if (proc->exited || proc->tgid == o->tried)
			continue;
		map = pm_proc_maps_exe(proc, exe);
		if (map)
			break;
	}
	if (!map)
		return false;
	/* It may be another inode with the same content. */
	if (map->exe->ino) {
		req->path = map->exe->path->s;
		req->dev = map->exe->dev;
		req->ino = map->exe->ino;
		req->generation = map->exe->generation;
	}
	return pm_lookup_by(req, proc, map->start, map->end);
}

static bool pm_lookup_ancestor(struct pm_open *o,
			       struct symbolizer_open_req *req)
{
	struct pm_proc *proc = pm_via_proc(o->exe);

	while (proc && (proc = proc->parent))
		if (!proc->exited)
			return pm_lookup_by(req, proc, 0, 0);
	return false;
}

/* Never by the path only: the watched process chose it. */
static bool pm_lookup_own(struct pm_open *o, struct symbolizer_open_req *req)
{
	return req->ino;
}

static bool (*const pm_lookups[])(struct pm_open *,
				  struct symbolizer_open_req *) = {
	pm_lookup_mapper,
	pm_lookup_other,
	pm_lookup_ancestor,
	pm_lookup_own,
};

static void pm_opened(void *arg, int err, struct symbolizer_file *file);

static int pm_open_submit(struct pm_open *o,
			  const struct symbolizer_open_req *req)
{
	int err = symbolizer_open(o->symbolizer, req, pm_opened, o);

	return err == -ENOMEM ? pm_nomem(o->pm) : err;
}

/* There is one way to a perf map. */
static int pm_open_code(struct pm_open *o)
{
	struct symbolizer_open_req req;
	int err = o->lookup++ ? o->err : pm_code_request(o->exe, &req);

	return err ? err : pm_open_submit(o, &req);
}

/* 0: the symbolizer has a request. */
static int pm_open_next_lookup(struct pm_open *o)
{
	struct pm_exe *exe = o->exe;
	const struct symbolizer_ident *id = &exe->ident;
	struct symbolizer_open_req req;

	if (exe->kind == PM_EXE_ANON)
		return pm_open_code(o);
	while (o->lookup < ARRAY_SIZE(pm_lookups)) {
		memset(&req, 0, sizeof(req));
		req.path = exe->path->s;
		req.build_id = id->build_id_len ? id->build_id : NULL;
		req.build_id_len = id->build_id_len;
		req.dev = exe->ino ? exe->dev : id->dev;
		req.ino = exe->ino ? exe->ino : id->ino;
		req.generation = exe->generation;
		req.uid = exe->via.uid;
		req.hurry = exe->hurry;
		if (!pm_lookups[o->lookup++](o, &req))
			continue;
		return pm_open_submit(o, &req);
	}
	return o->err ? o->err : -ENOENT;
}

/* Errors that another strategy would give as well. */
static bool pm_open_final(int err)
{
	return err == -ENOMEM || err == -EMFILE || err == -ENFILE ||
	       err == -ENOEXEC || err == -ETIMEDOUT || err == -EBUSY ||
	       err == -ECANCELED;
}

static void pm_exe_failed(struct pm_exe *exe, int err)
{
	uint64_t wait = 0;

	exe->open_error = err;
	exe->tries++;
	if (err == -EBUSY)
		pm_limited(exe->pm, exe->via.uid, PM_LIMIT_OPENS, 1);
	if (exe->kind == PM_EXE_ANON)
		wait = pm_code_wait(exe);
	else if (err == -ENOEXEC)
		wait = PM_OPEN_BACKOFF_MAX;
	else if (err == -EBUSY || err == -ETIMEDOUT)
		wait = PM_OPEN_HUNG;
	else if (exe->tries >= PM_OPEN_EAGER)
		wait = MIN(exe->tries * PM_OPEN_BACKOFF, PM_OPEN_BACKOFF_MAX);
	exe->retry_at = exe->pm->now + wait;
}

/* --- openings ------------------------------------------------------------- */

/* One that is under way; does not free it. */
static void pm_open_leave(struct pm_open *o)
{
	TAILQ_REMOVE(&o->pm->opens, o, node);
	pm_user_give(o->pm, o->user, PM_SHARE_OPENS, 1);
}

/* An opening has ended. Takes over 'o' and 'file'. */
static void pm_open_end(struct pm_open *o, int err,
			struct symbolizer_file *file)
{
	struct pm_exe *exe = o->exe;

	pm_open_leave(o);
	free(o);
	exe->opening = false;
	if (!err)
		err = pm_exe_adopt(exe, file);
	if (err)
		pm_code_look_failed(exe);
	if (exe->file)
		err = 0;
	if (err)
		pm_exe_failed(exe, err);
	pm_code_ended(exe);
	pm_reqs_opened(exe, err);
	pm_exe_put(exe);
}

static void pm_opened(void *arg, int err, struct symbolizer_file *file)
{
	struct pm_open *o = arg;
	struct pm *pm = o->pm;

	if (!pm) {
		if (file)
			symbolizer_close(o->symbolizer, file);
		free(o);
		return;
	}
	if (err && !o->err)
		o->err = err;
	if (err && !pm_open_final(err) && !o->exe->file) {
		err = pm_open_next_lookup(o);
		if (!err)
			return;
	}
	pm_open_end(o, err, file);
	pm_open_queued(pm);
}

/* It counts in its user's share already. */
static int pm_open_begin(struct pm_open *o)
{
	TAILQ_INSERT_TAIL(&o->pm->opens, o, node);
	return pm_open_next_lookup(o);
}

void pm_open_queued(struct pm *pm)
{
	struct pm_open *o;
	int err;

	while ((o = pm_turn_next(pm))) {
		err = pm_open_begin(o);
		if (err)
			pm_open_end(o, err, NULL);
	}
}

static struct pm_open *pm_open_new(struct pm_exe *exe)
{
	struct pm_open *o = calloc(1, sizeof(*o));
	struct pm *pm = exe->pm;

	if (!o)
		return NULL;
	o->pm = pm;
	o->symbolizer = pm->opts.symbolizer;
	o->exe = exe;
	o->user = pm_user_of(pm, exe->via.uid);
	if (o->user)
		return o;
	free(o);
	return NULL;
}

int pm_exe_open(struct pm_exe *exe)
{
	struct pm *pm = exe->pm;
	struct pm_open *o;
	int err = 0;

	if (exe->queued)
		pm_turn_move(exe->queued, exe->via.uid);
	if (exe->opening)
		return 0;
	if (exe->open_error && pm->now < exe->retry_at)
		return exe->open_error;
	o = pm_open_new(exe);
	if (!o)
		return pm_nomem(pm);
	if (pm_turn_free(o)) {
		pm_user_take(pm, o->user, PM_SHARE_OPENS, 1);
		err = pm_open_begin(o);
	} else {
		pm_turn_wait(o);
	}
	if (err) {
		pm_open_leave(o);
		free(o);
		pm_exe_failed(exe, err);
		return err;
	}
	pm_exe_get(exe);
	exe->opening = true;
	return 0;
}

void pm_exe_given(struct pm_exe *exe, int err, struct symbolizer_file *file)
{
	exe->opening = false;
	if (!err)
		err = pm_exe_adopt(exe, file);
	if (err && !exe->pm->closing) {
		err = pm_exe_open(exe);
		if (!err)
			return; /* requests go on waiting */
	}
	pm_reqs_opened(exe, err);
}

void pm_open_cancel(struct pm *pm)
{
	struct pm_open *o;

	while ((o = pm_turn_any(pm))) {
		pm_turn_leave(o);
		pm_exe_put(o->exe);
		free(o); /* the symbolizer never had it */
	}
	while ((o = TAILQ_FIRST(&pm->opens))) {
		pm_open_leave(o);
		o->pm = NULL; /* its completion frees it */
		pm_exe_put(o->exe);
	}
}
