// SPDX-License-Identifier: Apache-2.0
/*
 * early: files that were executed for the first time. Such a file may be
 * deleted, and its process gone, long before the record of its mapping has
 * passed the pump. So it is opened by /proc/PID/exe as soon as its exec is
 * read, and is kept here until its mapping comes, for a few seconds at most.
 *
 * From then on its device, inode, ctime and size are a key of the executable,
 * and the kernel side has it in its list of known files until it is closed:
 * four seconds after its last mapping, or for the limit of open files.
 *
 * Any user can execute new files: they are bounded, in all and by user.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/internal.h"

/* At 100 new files a second and a tick of 100 ms there are some twenty. */
#define PM_EARLY_MAX 256
#define PM_EARLY_UID_MAX 128
/* Longer than the pump holds a mapping's record. */
#define PM_EARLY_NS (4 * CLOCK_NSEC_PER_SEC)

struct pm_early {
	TAILQ_ENTRY(pm_early) node; /* pm->early, oldest first */
	struct pm *pm; /* NULL: freed; the file is closed when it comes */
	struct symbolizer *symbolizer;
	struct pm_exe *exe; /* a reference: it waits for the file; or NULL */
	struct symbolizer_file *file; /* or NULL */
	struct quark_file_ident ident;
	uint64_t begin;
	uint32_t uid;
	bool opening;
	char path[];
};

static void pm_early_free(struct pm_early *e)
{
	struct pm *pm = e->pm;

	if (e->file)
		symbolizer_close(e->symbolizer, e->file);
	TAILQ_REMOVE(&pm->early, e, node);
	pm->nearly--;
	free(e);
}

/*
 * Errors that every exec of this file would give; that it is this file was
 * compared before. Not -EACCES, which may be of a file that the process has
 * executed since, nor -EBADMSG, which lasts for ten minutes.
 */
static bool pm_early_never(int err)
{
	return err == -ENOEXEC || err == -SYMBOLIZER_EPLACE;
}

/* Hands it to the executable that waits for it. */
static void pm_early_give(struct pm_early *e, int err)
{
	const struct quark_file_ident ident = e->ident;
	struct symbolizer_file *file = e->file;
	struct pm_exe *exe = e->exe;

	e->exe = NULL;
	e->file = NULL;
	pm_early_free(e);
	pm_exe_given(pm_exe_root(exe), err, file);
	if (!err)
		pm_exe_know(exe, &ident);
	pm_exe_put(exe);
}

static void pm_early_opened(void *arg, int err, struct symbolizer_file *file)
{
	struct pm_early *e = arg;
	struct pm *pm = e->pm;

	if (!pm) {
		if (file)
			symbolizer_close(e->symbolizer, file);
		free(e);
		return;
	}
	e->opening = false;
	/*
	 * The inode was compared; it may have been written to since its exec.
	 */
	if (!err && symbolizer_ident(file)->size != e->ident.size) {
		symbolizer_close(e->symbolizer, file);
		err = -ESTALE;
	}
	if (err) {
		pm->stats.early_failed++;
		if (err == -EBUSY)
			pm_limited(pm, e->uid, PM_LIMIT_OPENS, 1);
		if (pm_early_never(err))
			pm_known_file(pm, &e->ident, true);
	} else {
		pm->stats.early_opened++;
		e->file = file;
	}
	if (e->exe)
		pm_early_give(e, err);
	else if (err)
		pm_early_free(e);
}

/* Room for one more of this user, which may have nothing else so far. */
static bool pm_early_room(struct pm *pm, uint32_t uid)
{
	struct pm_user *u;
	bool room;

	if (pm->nearly >= PM_EARLY_MAX)
		return false;
	u = pm_user_of(pm, uid);
	room = pm_open_room(pm, u, 1);
	if (u)
		pm_user_give(pm, u, PM_SHARE_FILES, 0);
	return room;
}

/* The same file is here already, or there is no room for one of that user. */
static bool pm_early_full(struct pm *pm, const struct quark_new_file *f)
{
	struct pm_early *e;
	uint32_t n = 0;

	TAILQ_FOREACH(e, &pm->early, node) {
		if (!memcmp(&e->ident, &f->ident, sizeof(f->ident)))
			return true;
		n += e->uid == f->uid;
	}
	if (n < PM_EARLY_UID_MAX && pm_early_room(pm, f->uid))
		return false;
	pm->stats.early_refused++;
	pm_limited(pm, f->uid,
		   n < PM_EARLY_UID_MAX ? PM_LIMIT_FILES_ALL : PM_LIMIT_FILES,
		   1);
	return true;
}

int pm_new_file(struct pm *pm, const struct quark_new_file *f)
{
	size_t len = strlen(f->path) + 1;
	struct symbolizer_open_req req = {
		.pid = (pid_t)f->pid,
		.by_exe = true,
		.uid = f->uid,
		.dev = f->ident.dev,
		.ino = f->ident.ino,
	};
	struct pm_early *e;

	if (pm_exe_knows(pm, &f->ident)) {
		/* The kernel side's list has lost it. */
		pm_known_file(pm, &f->ident, true);
		return 0;
	}
	if (pm->closing || pm_early_full(pm, f))
		return 0;
	e = calloc(1, sizeof(*e) + len);
	if (!e)
		return pm_nomem(pm);
	e->pm = pm;
	e->symbolizer = pm->opts.symbolizer;
	e->ident = f->ident;
	e->uid = f->uid;
	e->begin = f->boottime;
	e->opening = true;
	req.path = memcpy(e->path, f->path, len);
	if (symbolizer_open(e->symbolizer, &req, pm_early_opened, e)) {
		free(e);
		return pm_nomem(pm);
	}
	TAILQ_INSERT_TAIL(&pm->early, e, node);
	pm->nearly++;
	pm->stats.early++;
	return 0;
}

/*
 * The file of a mapping, by device and inode only: processes choose paths, and
 * one could pass its file off as that of another's mapping. On overlayfs, older
 * kernels report different numbers for the two; there a new file is opened by
 * its path.
 */
static struct pm_early *pm_early_find(struct pm *pm,
				      const struct pm_map_event *ev)
{
	struct pm_early *e;

	TAILQ_FOREACH(e, &pm->early, node)
		if (e->ident.dev == ev->dev && e->ident.ino == ev->ino)
			break;
	return e;
}

bool pm_early_changed(struct pm *pm, const struct pm_map_event *ev,
		      const struct pm_exe *exe)
{
	const struct pm_early *e = pm_early_find(pm, ev);

	return e && pm_exe_knows_other(exe, &e->ident);
}

bool pm_early_adopt(struct pm_exe *exe, const struct pm_map_event *ev)
{
	struct pm_exe *root = pm_exe_root(exe);
	struct pm_early *e = pm_early_find(exe->pm, ev);

	if (!e)
		return false;
	if (e->exe || root->opening)
		return root->opening;
	if (root->file) {
		pm_exe_know(exe, &e->ident);
		if (!e->opening)
			pm_early_free(e);
		return true;
	}
	e->exe = pm_exe_get(exe);
	root->opening = true;
	if (!e->opening)
		pm_early_give(e, 0);
	return true;
}

void pm_early_expire(struct pm *pm)
{
	struct pm_early *e, *next;

	for (e = TAILQ_FIRST(&pm->early); e; e = next) {
		next = TAILQ_NEXT(e, node);
		if (e->begin + PM_EARLY_NS > pm->now)
			break;
		if (e->opening)
			continue;
		pm_early_free(e);
		pm->stats.early_unused++;
	}
}

void pm_early_cancel(struct pm *pm)
{
	struct pm_early *e;
	struct pm_exe *exe;

	while ((e = TAILQ_FIRST(&pm->early))) {
		exe = e->exe;
		e->exe = NULL;
		if (e->opening) {
			/* The symbolizer has it. */
			TAILQ_REMOVE(&pm->early, e, node);
			pm->nearly--;
			e->pm = NULL;
		} else {
			pm_early_free(e);
		}
		if (exe)
			pm_exe_given(pm_exe_root(exe), -ECANCELED, NULL);
		pm_exe_put(exe);
	}
}
