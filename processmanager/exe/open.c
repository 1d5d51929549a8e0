// SPDX-License-Identifier: Apache-2.0
/*
 * open: the files behind executables: opened when first seen, closed for the
 * limit, opened again when asked for names, and the asking itself.
 *
 * A process that mapped a file may be gone before its turn comes. So one try
 * goes through several doors, one after the other, until a file passes the
 * identity check: the process that mapped it last, another one that maps it,
 * the nearest living ancestor (which is in the same container, as a rule), and
 * our own root.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/internal.h"

/* Tries that follow each other at once; more wait, longer each time. */
#define PM_OPEN_EAGER 4
#define PM_OPEN_BACKOFF (100 * CLOCK_NSEC_PER_MSEC)
#define PM_OPEN_BACKOFF_MAX (10 * CLOCK_NSEC_PER_SEC)
/* ... where a file system does not answer. */
#define PM_OPEN_HUNG CLOCK_NSEC_PER_SEC

/* A request for names or rows: waiting for a file, or with the symbolizer. */
struct pm_job {
	struct pm_list node; /* exe->waiters, or pm->jobs */
	struct pm_exe *exe; /* a reference; NULL: the manager is gone */
	symbolizer_resolve_fn names; /* one of the two */
	symbolizer_rows_fn rows;
	void *arg;
	int err; /* in pm->failed: what it will be told */
	size_t n;
	uint64_t offsets[];
};

static void pm_open_queued(struct pm *pm);

/* --- files held open -------------------------------------------------------- */

void pm_exe_close(struct pm_exe *exe)
{
	struct pm *pm = exe->pm;

	if (exe->kind != PM_EXE_FILE || !exe->file)
		return;
	symbolizer_close(pm->opts.symbolizer, exe->file);
	exe->file = NULL;
	pm_exe_unpinned(exe);
	pm_list_del(&exe->lru);
	pm->stats.open_files--;
	pm_user_give(pm, exe->user, PM_SHARE_FILES, 1);
}

void pm_release_later(struct pm_exe *exe)
{
	struct pm *pm = exe->pm;

	pm->release_at =
		MIN(pm->release_at, exe->unmapped_at + PM_UNMAPPED_GRACE);
}

static bool pm_exe_idle(const struct pm_exe *exe)
{
	return !exe->resolving && !exe->opening && pm_list_empty(&exe->waiters);
}

/*
 * A file that nobody maps any more would keep its file system from being
 * unmounted. By now its last samples have their names. One that is at work is
 * looked at again the next time.
 */
static void pm_release(struct pm *pm)
{
	struct pm_list *l, *next;
	struct pm_exe *exe;

	pm->release_at = UINT64_MAX;
	for (l = pm->open.next; l != &pm->open; l = next) {
		next = l->next;
		exe = container_of(l, struct pm_exe, lru);
		if (exe->mapped)
			continue;
		if (pm->now < exe->unmapped_at + PM_UNMAPPED_GRACE ||
		    !pm_exe_idle(exe)) {
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
	if (exe->kind != PM_EXE_FILE)
		return;
	pm_list_del(&exe->lru);
	pm_list_add_tail(&exe->pm->open, &exe->lru);
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

	if (exe->opened)
		return 0;
	segments = symbolizer_segments(file, &n);
	exe->segments = calloc(n ? n : 1, sizeof(*segments));
	if (!exe->segments)
		return pm_nomem(exe->pm);
	if (n)
		memcpy(exe->segments, segments, n * sizeof(*segments));
	exe->nsegments = n;
	exe->ident = *symbolizer_ident(file);
	exe->opened = true;
	return 0;
}

/* Takes over 'file', also on error. */
static int pm_exe_install(struct pm_exe *exe, struct symbolizer_file *file)
{
	struct pm *pm = exe->pm;
	int err = 0;

	if (exe->file)
		err = -EEXIST;
	else if (!exe->same)
		err = pm_exe_learn(exe, file);
	if (err) {
		symbolizer_close(pm->opts.symbolizer, file);
		return err == -EEXIST ? 0 : err;
	}
	exe->file = file;
	exe->tries = 0;
	exe->open_error = 0;
	pm_list_add_tail(&pm->open, &exe->lru);
	pm->stats.open_files++;
	pm_user_take(pm, exe->user, PM_SHARE_FILES, 1);
	if (!exe->mapped)
		pm_release_later(exe);
	return 0;
}

/* The file of a finished open finds its executable. Takes over 'file'. */
static int pm_exe_adopt(struct pm_exe *exe, struct symbolizer_file *file)
{
	const struct symbolizer_ident *id = symbolizer_ident(file);
	struct pm_exe *first;

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
	/* By its own file it is seen whether it was written to. */
	return pm_exe_install(first->file ? exe : first, file);
}

/* --- the doors --------------------------------------------------------------- */

static struct pm_proc *pm_via_proc(const struct pm_exe *exe)
{
	return pm_proc_find(exe->pm, exe->via.tgid, exe->via.start_boottime);
}

static bool pm_door_mapper(struct pm_open *o, struct symbolizer_open_req *req)
{
	struct pm_exe *exe = o->exe;
	struct pm_proc *proc = pm_via_proc(exe);

	if (!proc || proc->exited)
		return false;
	o->tried = exe->via.tgid;
	req->uid = proc->images->uid;
	req->pid = (pid_t)exe->via.tgid;
	req->map_start = exe->via.start;
	req->map_end = exe->via.end;
	return true;
}

static const struct pm_map *pm_proc_maps_exe(const struct pm_proc *proc,
					     const struct pm_exe *exe)
{
	const struct pm_set *set = proc->images->mm->set;
	uint32_t i;

	for (i = 0; set && i < set->n; i++) {
		if (pm_exe_root(pm_set_at(set, i)->exe) == exe)
			return pm_set_at(set, i);
	}
	return NULL;
}

/* A walk over everything, which is why it is not the first door. */
static bool pm_door_other(struct pm_open *o, struct symbolizer_open_req *req)
{
	const struct pm_exe *exe = o->exe;
	struct hash_node *n, *tmp;
	const struct pm_map *map;
	struct pm_proc *proc;
	size_t i;

	if (!exe->mapped)
		return false;
	hash_for_each(&exe->pm->procs, i, n, tmp) {
		proc = container_of(n, struct pm_proc, node);
		if (proc->exited || proc->tgid == o->tried)
			continue;
		map = pm_proc_maps_exe(proc, exe);
		if (map) {
			req->pid = (pid_t)proc->tgid;
			req->map_start = map->start;
			req->map_end = map->end;
			/* It may be another inode with the same content. */
			if (map->exe->ino) {
				req->path = map->exe->path->s;
				req->dev = map->exe->dev;
				req->ino = map->exe->ino;
				req->generation = map->exe->generation;
			}
			req->uid = proc->images->uid;
			return true;
		}
	}
	return false;
}

static bool pm_door_ancestor(struct pm_open *o, struct symbolizer_open_req *req)
{
	struct pm_proc *proc = pm_via_proc(o->exe);

	for (proc = proc ? proc->parent : NULL; proc; proc = proc->parent) {
		if (!proc->exited) {
			req->uid = proc->images->uid;
			req->pid = (pid_t)proc->tgid;
			return true;
		}
	}
	return false;
}

/* Never by the path alone: it is the watched process's word. */
static bool pm_door_own(struct pm_open *o, struct symbolizer_open_req *req)
{
	return req->ino;
}

static bool (*const pm_doors[])(struct pm_open *,
				struct symbolizer_open_req *) = {
	pm_door_mapper,
	pm_door_other,
	pm_door_ancestor,
	pm_door_own,
};

static void pm_opened(void *arg, int err, struct symbolizer_file *file);

/* 0: a request is under way. */
static int pm_open_next_door(struct pm_open *o)
{
	struct pm_exe *exe = o->exe;
	const struct symbolizer_ident *id = &exe->ident;
	struct symbolizer_open_req req;
	int err;

	while (o->door < ARRAY_SIZE(pm_doors)) {
		memset(&req, 0, sizeof(req));
		req.path = exe->path->s;
		req.build_id = id->build_id_len ? id->build_id : NULL;
		req.build_id_len = id->build_id_len;
		req.dev = exe->ino ? exe->dev : id->dev;
		req.ino = exe->ino ? exe->ino : id->ino;
		req.generation = exe->generation;
		req.uid = exe->via.uid;
		req.hurry = exe->hurry;
		if (!pm_doors[o->door++](o, &req))
			continue;
		err = symbolizer_open(o->symbolizer, &req, pm_opened, o);
		return err == -ENOMEM ? pm_nomem(exe->pm) : err;
	}
	return o->err ? o->err : -ENOENT;
}

/* Errors that another door would give as well. */
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
	if (err == -ENOEXEC)
		wait = PM_OPEN_BACKOFF_MAX;
	else if (err == -EBUSY || err == -ETIMEDOUT)
		wait = PM_OPEN_HUNG;
	else if (exe->tries >= PM_OPEN_EAGER)
		wait = MIN(exe->tries * PM_OPEN_BACKOFF, PM_OPEN_BACKOFF_MAX);
	exe->retry_at = exe->pm->now + wait;
}

/* --- requests for names and rows --------------------------------------------- */

struct pm_answer {
	int err;
	const struct symbolizer_symbol *syms;
	size_t n;
	struct symbolizer_rows *rows;
};

/* Answers it, once, and lets go of the exe. */
static void pm_job_answer(struct pm_job *job, const struct pm_answer *a)
{
	struct pm_exe *exe = job->exe;

	pm_list_del(&job->node);
	job->exe = NULL;
	if (job->rows)
		job->rows(job->arg, a->err, a->rows);
	else
		job->names(job->arg, a->err, a->syms, a->n);
	pm_exe_put(exe);
}

static void pm_job_refuse(struct pm_job *job, int err)
{
	const struct pm_answer a = { .err = err };

	pm_job_answer(job, &a);
	free(job);
}

/* What the symbolizer had of it is done. */
static void pm_job_done(struct pm_job *job, const struct pm_answer *a)
{
	struct pm *pm = job->exe->pm;

	job->exe->resolving--;
	if (job->rows)
		job->exe->hurry = false;
	if (a->err != -ECANCELED)
		*(job->rows ? &job->exe->rows : &job->exe->names) = a->err;
	pm_job_answer(job, a);
	free(job);
	pm_open_queued(pm);
}

static void pm_resolved(void *arg, int err,
			const struct symbolizer_symbol *syms, size_t n)
{
	const struct pm_answer a = { .err = err, .syms = syms, .n = n };
	struct pm_job *job = arg;

	if (job->exe)
		pm_job_done(job, &a);
	else /* pm_free() has answered it */
		free(job);
}

static void pm_rows_read(void *arg, int err, struct symbolizer_rows *rows)
{
	const struct pm_answer a = { .err = err, .rows = rows };
	struct pm_job *job = arg;

	if (job->exe) {
		pm_job_done(job, &a);
		return;
	}
	symbolizer_rows_free(rows);
	free(job);
}

static int pm_job_submit(struct pm_job *job)
{
	struct pm_exe *exe = job->exe;
	struct pm *pm = exe->pm;
	int err;

	pm_exe_touch(exe);
	if (exe->hurry)
		symbolizer_hurry(pm->opts.symbolizer, exe->file);
	if (job->rows)
		err = symbolizer_rows(pm->opts.symbolizer, exe->file,
				      pm_rows_read, job);
	else
		err = symbolizer_resolve(pm->opts.symbolizer, exe->file,
					 job->offsets, job->n, pm_resolved,
					 job);
	if (err)
		return err;
	exe->resolving++;
	pm_list_add_tail(&pm->jobs, &job->node);
	return 0;
}

static int pm_exe_open(struct pm_exe *exe);

/* 0: it will be answered; or the error it is to be answered with. */
static int pm_job_wait(struct pm_job *job)
{
	int err = pm_exe_open(job->exe);

	if (!err)
		pm_list_add_tail(&job->exe->waiters, &job->node);
	return err;
}

/* The open that these waited for has ended. */
static void pm_jobs_go(struct pm_exe *exe, int err)
{
	struct pm_exe *root = pm_exe_root(exe);
	struct pm_job *job;
	struct pm_list todo;
	int e;

	pm_list_init(&todo);
	while (!pm_list_empty(&exe->waiters)) {
		job = container_of(exe->waiters.next, struct pm_job, node);
		pm_list_del(&job->node);
		pm_list_add_tail(&todo, &job->node);
	}
	while (!pm_list_empty(&todo)) {
		job = container_of(todo.next, struct pm_job, node);
		pm_list_del(&job->node);
		if (root != exe) {
			job->exe = pm_exe_get(root);
			root->hurry |= exe->hurry && job->rows;
			pm_exe_put(exe);
		}
		if (err)
			e = err;
		else if (root->file)
			e = pm_job_submit(job);
		else
			e = root == exe ? -EMFILE : pm_job_wait(job);
		if (e)
			pm_job_refuse(job, e);
	}
}

/* Of what was under way, or should have been. */
static void pm_open_free(struct pm_open *o)
{
	pm_user_give(o->pm, o->user, PM_SHARE_OPENS, 1);
	pm_list_del(&o->node);
	free(o);
}

/* It has come to an end. Takes over 'o' and 'file'. */
static void pm_open_end(struct pm_open *o, int err,
			struct symbolizer_file *file)
{
	struct pm_exe *exe = o->exe;

	pm_open_free(o);
	exe->opening = false;
	if (!err)
		err = pm_exe_adopt(exe, file);
	else if (exe->file)
		err = 0;
	if (err)
		pm_exe_failed(exe, err);
	pm_jobs_go(exe, err);
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
		err = pm_open_next_door(o);
		if (!err)
			return;
	}
	pm_open_end(o, err, file);
	pm_open_queued(pm);
}

/* It has its user's share. 0: under way. */
static int pm_open_begin(struct pm_open *o)
{
	int err = pm_open_next_door(o);

	if (!err)
		pm_list_add_tail(&o->pm->opens, &o->node);
	return err;
}

/* Those for which there is room now; never from inside of a question. */
static void pm_open_queued(struct pm *pm)
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
	pm_list_init(&o->node);
	o->pm = pm;
	o->symbolizer = pm->opts.symbolizer;
	o->exe = exe;
	o->user = pm_user_of(pm, exe->via.uid);
	if (o->user)
		return o;
	free(o);
	return NULL;
}

/*
 * 0: under way, or already, or once it is its turn; the error of a try that is
 * not worth repeating.
 */
static int pm_exe_open(struct pm_exe *exe)
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
		pm_open_free(o);
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
			return; /* who waits for it goes on waiting */
	}
	pm_jobs_go(exe, err);
}

void pm_exe_open_soon(struct pm_exe *exe)
{
	if (exe->kind == PM_EXE_FILE && !exe->opened && !exe->same)
		pm_exe_open(exe);
}

/* 0: it will be answered; the error it is to be answered with; -ENOMEM. */
static int pm_job_start(struct pm_job *job)
{
	struct pm_exe *exe = job->exe;
	if (exe->pm->closing)
		return -ECANCELED;
	if (exe->file)
		return pm_job_submit(job);
	if (exe->kind != PM_EXE_FILE)
		return -ENOENT;
	return pm_job_wait(job);
}

/* Takes over 'job'. 0 or -ENOMEM. */
static int pm_job_begin(struct pm_job *job, struct pm_exe *exe, void *arg)
{
	int err;

	job->exe = pm_exe_get(pm_exe_root(exe));
	job->arg = arg;
	pm_list_init(&job->node);
	err = pm_job_start(job);
	if (err == -ENOMEM) {
		pm_exe_put(job->exe);
		free(job);
		return err;
	}
	if (err) {
		job->err = err;
		pm_list_add_tail(&exe->pm->failed, &job->node);
	}
	return 0;
}

int pm_exe_resolve(struct pm_exe *exe, const uint64_t *offsets, size_t n,
		   symbolizer_resolve_fn fn, void *arg)
{
	struct pm_job *job;

	if (n > (SIZE_MAX - sizeof(*job)) / sizeof(*offsets))
		return -ENOMEM;
	job = calloc(1, sizeof(*job) + n * sizeof(*offsets));
	if (!job)
		return pm_nomem(exe->pm);
	job->names = fn;
	job->n = n;
	if (n)
		memcpy(job->offsets, offsets, n * sizeof(*offsets));
	return pm_job_begin(job, exe, arg);
}

int pm_exe_rows(struct pm_exe *exe, symbolizer_rows_fn fn, void *arg)
{
	struct pm_job *job = calloc(1, sizeof(*job));

	if (!job)
		return pm_nomem(exe->pm);
	job->rows = fn;
	return pm_job_begin(job, exe, arg);
}

void pm_exe_hurry(struct pm_exe *exe)
{
	exe = pm_exe_root(exe);
	if (exe->kind != PM_EXE_FILE)
		return;
	exe->hurry = true;
	if (exe->queued)
		pm_turn_hurry(exe->queued);
	if (exe->file)
		symbolizer_hurry(exe->pm->opts.symbolizer, exe->file);
	else
		symbolizer_hurry_open(exe->pm->opts.symbolizer, exe->dev,
				      exe->ino);
}

/* Those that had no chance get their answer, from outside of the question. */
void pm_jobs_fail(struct pm *pm)
{
	struct pm_list *last = pm->failed.prev, *l;
	struct pm_job *job;

	if (pm_list_empty(&pm->failed))
		return;
	do { /* what comes meanwhile stays for the next time */
		l = pm->failed.next;
		job = container_of(l, struct pm_job, node);
		pm_job_refuse(job, job->err);
	} while (l != last);
}

static void pm_open_drop(struct pm_open *o)
{
	struct pm_exe *exe = o->exe;

	o->pm = NULL;
	o->exe = NULL;
	pm_jobs_go(exe, -ECANCELED);
	pm_exe_put(exe);
}

/* Ends what waits and lets go of what the symbolizer still has. */
void pm_open_cancel(struct pm *pm)
{
	static const struct pm_answer cancelled = { .err = -ECANCELED };
	struct pm_job *job;
	struct pm_open *o;

	while ((o = pm_turn_any(pm))) {
		pm_turn_leave(o);
		pm_open_drop(o);
		free(o); /* the symbolizer never had it */
	}
	while (!pm_list_empty(&pm->opens)) {
		o = container_of(pm->opens.next, struct pm_open, node);
		pm_list_del(&o->node);
		pm_user_give(pm, o->user, PM_SHARE_OPENS, 1);
		pm_open_drop(o);
	}
	while (!pm_list_empty(&pm->failed))
		pm_jobs_fail(pm);
	while (!pm_list_empty(&pm->jobs)) {
		job = container_of(pm->jobs.next, struct pm_job, node);
		job->exe->resolving--;
		/* Its user may hold an exe, and must not beyond us. */
		pm_job_answer(job, &cancelled);
	}
}
