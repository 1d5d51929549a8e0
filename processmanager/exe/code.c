// SPDX-License-Identifier: Apache-2.0
/*
 * code: the names of executable memory without a file, from the perf map of its
 * process. The executable of that memory (one for each address space) has the map as
 * its file, so opening, limits and requests are those of other files; what differs is
 * here:
 *  - it grows, and lines have no times. A line counts from when it was seen in the file
 *    first; of a file that did not grow before, from when it was written. Its state since then has a
 *    version, which is part of the identity of a frame.
 *  - a process may have none yet, so it is looked for again.
 */
#include <errno.h>
#include <stdlib.h>

#include "processmanager/internal.h"

/*
 * Between two checks of a file's size. After it grew, its names are asked anew, which
 * takes a worker about a millisecond for each of these bytes: then so much more.
 */
#define PM_CODE_INTERVAL (100 * CLOCK_NSEC_PER_MSEC)
#define PM_CODE_BYTES (1 << 20)
#define PM_CODE_INTERVALS_MAX 50
/* The pauses between attempts to open one grow by a second, up to this. */
#define PM_CODE_TRIES_MAX 30

struct pm_code {
	uint32_t version;
	uint64_t begin; /* the state of this version: since then ... */
	uint64_t size; /* ... the file has this size */
	uint64_t size_before; /* of the version before */
	uint64_t checked_at, check_at;
};

static struct pm_code *pm_code_of(struct pm_exe *exe)
{
	if (!exe->code) {
		exe->code = calloc(1, sizeof(*exe->code));
		if (!exe->code)
			pm_nomem(exe->pm);
	}
	return exe->code;
}

void pm_code_via(struct pm_exe *exe, const struct pm_proc *proc)
{
	exe->via.tgid = proc->tgid;
	exe->via.start_boottime = proc->start_boottime;
	exe->via.uid = pm_proc_uid(proc);
}

/* An attempt to open it makes sense now. */
static bool pm_code_due(const struct pm_exe *exe)
{
	return exe->via.tgid &&
	       (!exe->open_error || exe->pm->now >= exe->retry_at);
}

/*
 * When it was written to last, but not before it was checked last; mtime is what the
 * user says.
 */
static uint64_t pm_code_written(const struct pm_exe *exe)
{
	int64_t t =
		symbolizer_ident(exe->file)->mtime_ns - clock_wall_offset_ns();

	if (t < (int64_t)exe->code->checked_at)
		return exe->code->checked_at;
	return MIN((uint64_t)t, exe->pm->now);
}

static uint64_t pm_code_pause(uint64_t size)
{
	return MIN(size / PM_CODE_BYTES, (uint64_t)PM_CODE_INTERVALS_MAX) *
	       PM_CODE_INTERVAL;
}

static void pm_code_check(struct pm_exe *exe)
{
	struct pm_code *c = exe->code;
	uint64_t size;

	c->check_at = exe->pm->now + PM_CODE_INTERVAL;
	if (exe->file) {
		size = symbolizer_refresh(exe->file);
		if (size != c->size) {
			c->version++;
			c->begin = pm_code_written(exe);
			c->size_before = MIN(c->size, size);
			c->size = size;
			c->check_at += pm_code_pause(size);
		}
	} else if (!exe->opening && pm_code_due(exe)) {
		c->version++; /* so that frames without a name ask again */
		c->begin = 0;
	}
	c->checked_at = exe->pm->now;
}

bool pm_exe_code(struct pm_exe *exe, uint64_t time, uint32_t *version)
{
	struct pm_code *c = pm_code_of(exe);

	*version = 0;
	if (!c)
		return false;
	if (exe->pm->now >= c->check_at)
		pm_code_check(exe);
	*version = time < c->begin ? c->version - 1 : c->version;
	return exe->file || exe->opening || pm_code_due(exe);
}

/* The user's share of executables, which is also one of files held open. */
static int pm_code_enter(struct pm_exe *exe)
{
	struct pm *pm = exe->pm;
	struct pm_user *u;

	if (exe->user)
		return 0;
	u = pm_user_of(pm, exe->via.uid);
	if (!u)
		return pm_nomem(pm);
	if (!pm_user_may(pm, u, PM_SHARE_EXES, 1)) {
		pm_user_give(pm, u, PM_SHARE_EXES, 0);
		pm->stats.exes_refused++;
		return -EDQUOT;
	}
	pm_user_take(pm, u, PM_SHARE_EXES, 1);
	exe->user = u;
	return 0;
}

int pm_code_request(struct pm_exe *exe, struct symbolizer_open_req *req)
{
	struct pm_proc *proc =
		pm_proc_find(exe->pm, exe->via.tgid, exe->via.start_boottime);
	int err;

	if (!proc || proc->exited)
		return -ESRCH;
	err = pm_code_enter(exe);
	if (err)
		return err;
	*req = (struct symbolizer_open_req){
		.path = exe->path->s,
		.pid = (pid_t)proc->tgid,
		.process_start = proc->start_boottime,
		.uid = exe->via.uid,
		.perf_map = true,
	};
	return 0;
}

void pm_code_opened(struct pm_exe *exe, const struct symbolizer_file *file)
{
	struct pm_code *c = pm_code_of(exe);

	if (!c)
		return;
	c->size = c->size_before = symbolizer_ident(file)->size;
	c->begin = 0;
	c->checked_at = exe->pm->now;
}

uint64_t pm_code_wait(const struct pm_exe *exe)
{
	return MIN(exe->tries, PM_CODE_TRIES_MAX) * CLOCK_NSEC_PER_SEC;
}

int pm_code_resolve(struct pm_exe *exe, const uint64_t *offsets,
		    const uint64_t *times, size_t n, symbolizer_resolve_fn fn,
		    void *arg)
{
	struct symbolizer_code *codes = calloc(n, sizeof(*codes));
	const struct pm_code *c = pm_code_of(exe);
	int err = -ENOMEM;

	if (!codes || !c)
		goto out;
	for (size_t i = 0; i < n; i++) {
		codes[i].addr = offsets[i];
		codes[i].at = times[i] < c->begin ? c->size_before : c->size;
	}
	/* Lines that were added since the check count as later ones. */
	symbolizer_refresh(exe->file);
	err = symbolizer_resolve_code(exe->pm->opts.symbolizer, exe->file,
				      codes, n, fn, arg);
out:
	free(codes);
	return err;
}
