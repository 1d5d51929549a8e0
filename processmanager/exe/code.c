// SPDX-License-Identifier: Apache-2.0
/*
 * code: the names of executable memory without a file, from the jitdumps and the perf map
 * of its process; and its unwind rows, from the jitdumps. The executable of that memory
 * (one for each address space) has the perf map as its file, and for each jitdump a source,
 * an executable of its own. So opening, limits and requests are those of other files; what
 * differs is here:
 *  - it grows. Each size that is seen has a version, which is part of the identity of a
 *    frame, so that names are asked for again.
 *  - lines of a perf map have no times. A line counts from when it was seen in the file
 *    first; of a file that did not grow before, from when it was written.
 *  - the times of a jitdump are of CLOCK_MONOTONIC, which stands still while the host is
 *    suspended.
 *  - a perf map may be written anew. What has become of its file shows: a size that did not
 *    grow, no link any more, or a change of the inode only; then its path is opened
 *    again. The file before stays, for samples from before the change, and in place of one
 *    that is not there.
 *  - a runtime may write a perf map as its process ends. For that the root of the process
 *    is held open, if pm_opts.late_maps is set.
 *  - a process may have none yet, so it is looked for again. A jitdump is a file that
 *    the process maps executable, with a name like jit-PID.dump.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "processmanager/internal.h"

/*
 * A file is checked for samples that are later than its last check, so once for all
 * that are processed together. After it grew, its names are asked for anew, which takes
 * a worker about a millisecond for each of these bytes: then there is a pause.
 */
#define PM_CODE_PAUSE (100 * CLOCK_NSEC_PER_MSEC)
#define PM_CODE_BYTES (1 << 20) /* of a perf map */
#define PM_CODE_DUMP_BYTES (32 << 20) /* of a jitdump: most is code */
#define PM_CODE_PAUSES_MAX 50
/* A process may map several jitdumps. */
#define PM_CODE_CHANGE (100 * CLOCK_NSEC_PER_MSEC)
/*
 * The pauses between attempts to open one, also where one was that has no name any more,
 * grow by a second, up to this.
 */
#define PM_CODE_TRIES_MAX 30

struct pm_code {
	uint32_t version;
	uint64_t begin; /* the state of this version: since then ... */
	uint64_t size; /* ... the file has this size */
	uint64_t size_before; /* of the version before */
	uint32_t written, moved; /* as in struct symbolizer_fresh */
	struct pm_exe *was; /* has the file of a perf map before it; or NULL */
	uint64_t was_until; /* for samples before */
	uint64_t look_at; /* its path is not opened again before */
	uint64_t looks; /* that found nothing, one after the other */
	uint64_t checked_at; /* the present then, unlike pm->now */
	uint64_t check_at;
	struct pm_exe
		*dump; /* of a source: the jitdump; NULL: it is a perf map */
	struct pm_exe *sources[PM_CODE_DUMPS]; /* as mm->dumps */
	struct symbolizer_map_root root; /* fd -1: not held; 'rooted' */
	struct pm_user *rooted; /* whose share it counts in */
	uint64_t change_at; /* not another one before */
};

static struct pm_code *pm_code_of(struct pm_exe *exe)
{
	if (!exe->code) {
		exe->code = calloc(1, sizeof(*exe->code));
		if (exe->code)
			exe->code->root.fd = -1;
		else
			pm_nomem(exe->pm);
	}
	return exe->code;
}

bool pm_code_is_dump(const char *path)
{
	const char *base = strrchr(path, '/');
	size_t len = base ? pm_exe_path_len(++base) : 0;

	return len > 9 && !memcmp(base, "jit-", 4) &&
	       !memcmp(base + len - 5, ".dump", 5);
}

/* The source for a jitdump; without memory NULL. */
static struct pm_exe *pm_code_source(struct pm_exe *exe, struct pm_exe *dump)
{
	struct pm_code *c = exe->code;
	struct pm_exe *source;

	for (size_t i = 0; i < PM_CODE_DUMPS; i++)
		if (c->sources[i] && c->sources[i]->code->dump == dump)
			return pm_exe_get(c->sources[i]);
	source = pm_exe_new(exe->pm, PM_EXE_ANON, pm_str_get(exe->path));
	if (!source || !pm_code_of(source)) {
		pm_exe_put(source);
		return NULL;
	}
	source->code->dump = pm_exe_get(dump);
	pm_exe_mapped(source, exe->mapped);
	return source;
}

static void pm_code_drop_source(struct pm_exe *source, uint32_t mapped)
{
	if (source)
		pm_exe_mapped(source, -(int64_t)mapped);
	pm_exe_put(source);
}

/* It is among them. */
static bool pm_code_kept(struct pm_exe *const *sources,
			 const struct pm_exe *source)
{
	for (size_t i = 0; i < PM_CODE_DUMPS; i++)
		if (source && sources[i] == source)
			return true;
	return false;
}

static bool pm_code_has(const struct pm_exe *exe, const struct pm_mm *mm)
{
	const struct pm_exe *source, *dump;

	for (size_t i = 0; i < PM_CODE_DUMPS; i++) {
		source = exe->code ? exe->code->sources[i] : NULL;
		dump = source ? source->code->dump : NULL;
		if (dump != mm->dumps[i])
			return false;
	}
	return true;
}

/* From now on the process's jitdumps are others. */
static void pm_code_change(struct pm_exe *exe, const struct pm_mm *mm)
{
	struct pm_exe *sources[PM_CODE_DUMPS] = { NULL };
	struct pm_code *c = pm_code_of(exe);

	if (!c || exe->pm->now < c->change_at)
		return;
	c->change_at = exe->pm->now + PM_CODE_CHANGE;
	for (size_t i = 0; i < PM_CODE_DUMPS; i++)
		if (mm->dumps[i])
			sources[i] = pm_code_source(exe, mm->dumps[i]);
	for (size_t i = 0; i < PM_CODE_DUMPS; i++) {
		if (pm_code_kept(sources, c->sources[i]))
			pm_exe_put(c->sources[i]);
		else
			pm_code_drop_source(c->sources[i], exe->mapped);
		c->sources[i] = sources[i];
	}
	c->version++;
}

void pm_code_via(struct pm_exe *exe, const struct pm_proc *proc,
		 const struct pm_mm *mm)
{
	struct pm_exe *all[PM_CODE_SOURCES];
	size_t n;

	if (mm->dumps[0] && !pm_code_has(exe, mm))
		pm_code_change(exe, mm);
	n = pm_exe_code_dumps(exe, all);
	all[n++] = exe;
	for (size_t i = 0; i < n; i++) {
		all[i]->via.tgid = proc->tgid;
		all[i]->via.start_boottime = proc->start_boottime;
		all[i]->via.uid = pm_proc_uid(proc);
	}
}

void pm_code_mapped(struct pm_exe *exe, int64_t n)
{
	for (size_t i = 0; exe->code && i < PM_CODE_DUMPS; i++)
		if (exe->code->sources[i])
			pm_exe_mapped(exe->code->sources[i], n);
}

size_t pm_exe_code_dumps(struct pm_exe *exe, struct pm_exe **out)
{
	size_t n = 0;

	if (exe->code && exe->code->dump)
		out[n++] = exe;
	for (size_t i = 0; exe->code && i < PM_CODE_DUMPS; i++)
		if (exe->code->sources[i])
			out[n++] = exe->code->sources[i];
	return n;
}

static void pm_code_unroot(struct pm *pm, struct pm_code *c)
{
	if (c->root.fd < 0)
		return;
	close(c->root.fd);
	c->root.fd = -1;
	pm_user_give(pm, c->rooted, PM_SHARE_ROOTS, 1);
}

void pm_code_free(struct pm_exe *exe)
{
	struct pm_code *c = exe->code;

	if (!c)
		return;
	for (size_t i = 0; i < PM_CODE_DUMPS; i++)
		pm_code_drop_source(c->sources[i], exe->mapped);
	pm_code_unroot(exe->pm, c);
	pm_exe_put(c->was);
	pm_exe_put(c->dump);
	free(c);
}

/* --- time ----------------------------------------------------------------- */

void pm_code_tick(struct pm *pm)
{
	uint64_t ns = clock_slept_ns();

	/* The two clocks are read one after the other. */
	if (ns > pm->slept.ns + CLOCK_NSEC_PER_MSEC) {
		pm->slept.before = pm->slept.ns;
		pm->slept.ns = ns;
		pm->slept.from = pm->slept.seen;
	}
	pm->slept.seen = clock_boottime_ns();
}

/* CLOCK_MONOTONIC at a boot time. No suspend but the last has samples that wait. */
static uint64_t pm_code_awake(const struct pm *pm, uint64_t time)
{
	uint64_t slept = pm->slept.ns;

	/* After a suspend it is later by the length of that. */
	if (time < pm->slept.from + (pm->slept.ns - pm->slept.before))
		slept = pm->slept.before;
	return time - MIN(time, slept);
}

/* --- versions ------------------------------------------------------------- */

static uint64_t pm_code_wait_of(uint64_t tries)
{
	return MIN(tries, (uint64_t)PM_CODE_TRIES_MAX) * CLOCK_NSEC_PER_SEC;
}

/* An attempt to open it makes sense now. */
static bool pm_code_due(const struct pm_exe *exe)
{
	return exe->via.tgid &&
	       (!exe->open_error || exe->pm->now >= exe->retry_at);
}

/*
 * The boot time of a file's time, but not before it was checked last: mtime is what the
 * user says.
 */
static uint64_t pm_code_since(const struct pm_code *c, int64_t file_ns)
{
	int64_t t = file_ns - clock_wall_offset_ns();

	if (t < (int64_t)c->checked_at)
		return c->checked_at;
	return MIN((uint64_t)t, clock_boottime_ns());
}

static uint64_t pm_code_pause(const struct pm_code *c)
{
	uint64_t unit = c->dump ? PM_CODE_DUMP_BYTES : PM_CODE_BYTES;

	return MIN(c->size / unit, (uint64_t)PM_CODE_PAUSES_MAX) *
	       PM_CODE_PAUSE;
}

/* A new version of the open file, if it is one. */
static void pm_code_refresh(struct pm_exe *exe,
			    const struct symbolizer_fresh *now)
{
	struct pm_code *c = exe->code;

	if (now->size == c->size && now->written == c->written)
		return;
	c->version++;
	c->begin = pm_code_since(c, symbolizer_ident(exe->file)->mtime_ns);
	c->size_before = MIN(c->size, now->size);
	c->size = now->size;
	c->written = now->written;
	c->check_at = exe->pm->now + pm_code_pause(c);
}

/* --- a path that leads to another file -------------------------------------- */

/* An executable for the file that it has now. NULL: no memory, or no room. */
static struct pm_exe *pm_code_keep(struct pm_exe *exe)
{
	struct pm *pm = exe->pm;
	struct pm_exe *was;

	if (!pm_user_may(pm, exe->user, PM_SHARE_EXES, 1))
		return NULL;
	was = pm_exe_new(pm, PM_EXE_ANON, pm_str_get(exe->path));
	if (!was || !pm_code_of(was)) {
		pm_exe_put(was);
		return NULL;
	}
	*was->code = *exe->code;
	was->code->was = NULL;
	was->code->root.fd = -1;
	pm_user_take(pm, exe->user, PM_SHARE_EXES, 1);
	was->user = exe->user;
	was->via.uid = exe->via.uid;
	was->unmapped_at = pm->now;
	pm_exe_give_file(exe, was);
	return was;
}

/* There is no other file: the one before goes on. */
void pm_code_look_failed(struct pm_exe *exe)
{
	struct pm_code *c = exe->code;

	if (!c || !c->was || !c->was->file || exe->file)
		return;
	c->looks++;
	c->look_at = exe->pm->now + pm_code_wait_of(c->looks);
	exe->open_error = 0;
	exe->tries = 0;
	pm_exe_give_file(c->was, exe);
}

/*
 * The path may lead to another file by now. Samples from then on wait for the answer, and
 * those before have the file before.
 */
static void pm_code_look(struct pm_exe *exe, const struct symbolizer_fresh *now)
{
	struct pm_code *c = exe->code;
	int64_t ctime = symbolizer_ident(exe->file)->ctime_ns;
	struct pm_exe *was;

	if (!(now->unlinked || now->moved != c->moved) ||
	    exe->pm->now < c->look_at || exe->opening)
		return;
	c->moved = now->moved;
	c->look_at = exe->pm->now + PM_CODE_CHANGE;
	was = pm_code_keep(exe);
	if (!was)
		return;
	pm_exe_put(c->was);
	c->was = was;
	c->version++;
	c->begin = c->was_until = pm_code_since(c, ctime);
	c->size_before = c->size;
	if (pm_exe_open(exe))
		pm_code_look_failed(exe);
}

struct pm_exe *pm_code_exe_at(struct pm_exe *exe, uint64_t time)
{
	const struct pm_code *c = exe->code;

	if (c && c->was && c->was->file && time < c->was_until)
		return c->was;
	return exe;
}

/* --- a map that is written as the process ends ------------------------------ */

static void pm_code_root(struct pm_exe *exe)
{
	struct pm_code *c = exe->code;
	struct pm *pm = exe->pm;
	struct pm_user *u;

	if (!pm->opts.late_maps || c->dump || c->root.fd >= 0 || !exe->via.tgid)
		return;
	u = pm_user_of(pm, exe->via.uid);
	if (!u)
		return;
	pm_user_take(pm, u, PM_SHARE_ROOTS, 1);
	if (pm_user_may(pm, u, PM_SHARE_ROOTS, 0) &&
	    !symbolizer_map_root_open((pid_t)exe->via.tgid,
				      exe->via.start_boottime, &c->root)) {
		c->rooted = u;
		return;
	}
	c->root.fd = -1;
	pm_user_give(pm, u, PM_SHARE_ROOTS, 1);
}

void pm_code_ended(struct pm_exe *exe)
{
	if (!exe->code || exe->code->root.fd < 0 ||
	    pm_proc_find(exe->pm, exe->via.tgid, exe->via.start_boottime))
		return;
	if (exe->file || exe->open_error || TAILQ_EMPTY(&exe->reqs))
		pm_code_unroot(exe->pm, exe->code);
}

static void pm_code_file_check(struct pm_exe *exe)
{
	struct symbolizer_fresh now;

	symbolizer_refresh(exe->file, &now);
	pm_code_refresh(exe, &now);
	if (!exe->code->dump)
		pm_code_look(exe, &now);
}

void pm_exe_code_again(struct pm_exe *exe)
{
	if (!pm_code_of(exe))
		return;
	if (exe->file)
		pm_code_file_check(exe);
	else
		exe->open_error = 0;
}

static void pm_code_check(struct pm_exe *exe)
{
	struct pm_code *c = exe->code;

	pm_code_root(exe);
	if (exe->file) {
		pm_code_file_check(exe);
	} else if (!exe->opening && pm_code_due(exe)) {
		if (c->sources[0]) {
			pm_exe_open(
				exe); /* most frames have a name without it */
		} else {
			c->version++; /* so that frames without a name ask again */
			c->begin = 0;
		}
	}
	c->checked_at = clock_boottime_ns();
}

/* It has a file, or may have one: a request makes sense. */
static bool pm_code_answers(const struct pm_exe *exe)
{
	return exe->file || exe->opening || pm_code_due(exe);
}

size_t pm_exe_code_sources(struct pm_exe *exe, struct pm_exe **out)
{
	struct pm_exe *dumps[PM_CODE_DUMPS];
	size_t i, n = 0, ndumps = pm_exe_code_dumps(exe, dumps);

	for (i = 0; i < ndumps; i++)
		if (pm_code_answers(dumps[i]))
			out[n++] = dumps[i];
	if (!n || exe->file || exe->opening)
		out[n++] = exe;
	return n;
}

/* Of its own file. */
static struct pm_code_state pm_code_own(struct pm_exe *exe, uint64_t time)
{
	struct pm_code_state st = { 0 };
	struct pm_code *c = pm_code_of(exe);

	if (!c)
		return st;
	if (time > c->checked_at && exe->pm->now >= c->check_at)
		pm_code_check(exe);
	st.version = time < c->begin ? c->version - 1 : c->version;
	st.timed = c->dump;
	st.named = pm_code_answers(exe);
	return st;
}

struct pm_code_state pm_exe_code(struct pm_exe *exe, uint64_t time)
{
	struct pm_code_state all = pm_code_own(exe, time), st;
	struct pm_exe *source;

	for (size_t i = 0; exe->code && i < PM_CODE_DUMPS; i++) {
		source = exe->code->sources[i];
		if (!source)
			continue;
		st = pm_code_own(source, time);
		all.version += st.version;
		all.timed |= st.named;
		all.named |= st.named;
	}
	return all;
}

/* --- the file ------------------------------------------------------------- */

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

/* Found like an executable that is mapped: it has device, inode and generation. */
static void pm_code_request_dump(const struct pm_exe *dump,
				 struct symbolizer_open_req *req)
{
	req->jitdump = true;
	req->path = dump->path->s;
	req->dev = dump->dev;
	req->ino = dump->ino;
	req->generation = dump->generation;
	if (dump->via.tgid == (uint32_t)req->pid) {
		req->map_start = dump->via.start;
		req->map_end = dump->via.end;
	}
}

int pm_code_request(struct pm_exe *exe, struct symbolizer_open_req *req)
{
	struct pm_proc *proc =
		pm_proc_find(exe->pm, exe->via.tgid, exe->via.start_boottime);
	const struct pm_code *c = pm_code_of(exe);
	bool ended = !proc || proc->exited;
	int err;

	if (!c || (ended && c->root.fd < 0))
		return c ? -ESRCH : -ENOMEM;
	err = pm_code_enter(exe);
	if (err)
		return err;
	while (proc && proc->exited)
		proc = proc->parent;
	*req = (struct symbolizer_open_req){
		.path = exe->path->s,
		.pid = proc ? (pid_t)proc->tgid : 0,
		.process_start = exe->via.start_boottime,
		.uid = exe->via.uid,
		.perf_map = !c->dump,
		.root = ended ? &c->root : NULL,
	};
	if (c->dump)
		pm_code_request_dump(c->dump, req);
	return 0;
}

void pm_code_opened(struct pm_exe *exe, const struct symbolizer_file *file)
{
	struct pm_code *c = pm_code_of(exe);

	if (!c)
		return;
	c->size = c->size_before = symbolizer_ident(file)->size;
	c->written = c->moved = 0;
	c->looks = 0;
	c->version += c->sources[0] != NULL;
	if (!c->was)
		c->begin = 0;
	c->checked_at = clock_boottime_ns();
}

uint64_t pm_code_wait(const struct pm_exe *exe)
{
	return pm_code_wait_of(exe->tries);
}

/* The point that counts for a sample. */
static uint64_t pm_code_at(const struct pm_exe *exe, uint64_t time)
{
	const struct pm_code *c = exe->code;

	if (!c)
		return time; /* the kernel */
	if (c->dump)
		return pm_code_awake(exe->pm, time);
	return time < c->begin ? c->size_before : c->size;
}

int pm_code_resolve(struct pm_exe *exe, const uint64_t *offsets,
		    const uint64_t *times, size_t n, symbolizer_resolve_fn fn,
		    void *arg)
{
	struct symbolizer_code *codes = calloc(n, sizeof(*codes));
	struct symbolizer_fresh now;
	bool kernel = exe->kind == PM_EXE_KERNEL;
	int err = -ENOMEM;

	if (!codes || (!kernel && !pm_code_of(exe)))
		goto out;
	for (size_t i = 0; i < n; i++)
		codes[i] =
			(struct symbolizer_code){ offsets[i],
						  pm_code_at(exe, times[i]) };
	/* Lines that were added since the check count as later ones. */
	if (!kernel)
		symbolizer_refresh(exe->file, &now);
	err = symbolizer_resolve_code(exe->pm->opts.symbolizer, exe->file,
				      codes, n, fn, arg);
out:
	free(codes);
	return err;
}

int pm_code_rows(struct pm_exe *exe, uint64_t time, symbolizer_rows_fn fn,
		 void *arg)
{
	struct symbolizer_fresh now;

	symbolizer_refresh(exe->file, &now);
	return symbolizer_code_rows(exe->pm->opts.symbolizer, exe->file,
				    pm_code_awake(exe->pm, time), fn, arg);
}
