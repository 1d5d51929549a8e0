// SPDX-License-Identifier: Apache-2.0
/*
 * queue: the requests for names and unwind rows of executables. Each is in the
 * list of its executable from the call until its answer:
 *
 *   COLLECTING  names, to which offsets may be added: until pm_names_send(), or
 *               the end of the executable's request for names before it
 *   WAITING     its file is being opened (open.c; by users: turns.c)
 *   UNDER_WAY   the symbolizer has it, and orders requests by user and urgency
 *               (symbolize/reader/workers.h)
 *   REFUSED     failed before it began; answered by the next pm_forget(), since
 *               a call never completes its own request
 *   BACK        from one of these: to be started again, or answered, at once
 *
 * So one request for names of an executable is WAITING or UNDER_WAY at a time.
 *
 * pm_req_answer() answers a request once, in any state; with -ECANCELED if the
 * answer is not needed any more. It frees the request too, unless the
 * symbolizer has it: then the symbolizer's completion, which finds no
 * executable, frees it.
 */
#include <errno.h>
#include <stdlib.h>

#include "processmanager/internal.h"

enum pm_req_state { /* bits: several are a mask */
	PM_REQ_COLLECTING = 1,
	PM_REQ_WAITING = 2,
	PM_REQ_UNDER_WAY = 4,
	PM_REQ_REFUSED = 8,
	PM_REQ_BACK = 16,
	PM_REQ_ANY = 31,
};

struct pm_req {
	TAILQ_ENTRY(pm_req) node; /* exe->reqs */
	struct pm_exe *exe; /* a reference; NULL: it was answered */
	enum pm_req_state state;
	int err; /* REFUSED, BACK: its answer, or 0 */
	symbolizer_rows_fn rows; /* one of the two */
	pm_names_fn names;
	void *arg;
	uint64_t time; /* rows: of the sample, for ANON */
	uint64_t *offsets; /* names: */
	uint64_t *times; /* of samples */
	void **tags;
	size_t n, offsets_cap, times_cap, tags_cap;
};

/* --- one request ---------------------------------------------------------- */

static void pm_req_enter(struct pm_req *r, struct pm_exe *exe)
{
	r->exe = pm_exe_get(exe);
	if (TAILQ_EMPTY(&exe->reqs))
		TAILQ_INSERT_TAIL(&exe->pm->busy, exe, busy);
	TAILQ_INSERT_TAIL(&exe->reqs, r, node);
}

/* The caller gets the reference to its executable. */
static struct pm_exe *pm_req_leave(struct pm_req *r)
{
	struct pm_exe *exe = r->exe;

	TAILQ_REMOVE(&exe->reqs, r, node);
	if (TAILQ_EMPTY(&exe->reqs))
		TAILQ_REMOVE(&exe->pm->busy, exe, busy);
	r->exe = NULL;
	return exe;
}

static void pm_req_free(struct pm_req *r)
{
	free(r->offsets);
	free(r->times);
	free(r->tags);
	free(r);
}

static struct pm_req *pm_req_new(struct pm_exe *exe, pm_names_fn fn, void *arg)
{
	struct pm_req *r = calloc(1, sizeof(*r));

	if (!r) {
		pm_nomem(exe->pm);
		return NULL;
	}
	r->state = PM_REQ_COLLECTING;
	r->names = fn;
	r->arg = arg;
	pm_req_enter(r, pm_exe_root(exe));
	return r;
}

/* Removes a request that could not be made. */
static void pm_req_undo(struct pm_req *r)
{
	pm_exe_put(pm_req_leave(r));
	pm_req_free(r);
}

/* The first in these states of the requester (fn, arg); fn NULL: of any. */
static struct pm_req *pm_req_find(const struct pm_exe *exe, unsigned int states,
				  pm_names_fn fn, const void *arg)
{
	struct pm_req *r;

	TAILQ_FOREACH(r, &exe->reqs, node) {
		if (r->state & states &&
		    (!fn || (r->names == fn && r->arg == arg)))
			return r;
	}
	return NULL;
}

/* Likewise, of all executables. */
static struct pm_req *pm_req_any(struct pm *pm, unsigned int states,
				 pm_names_fn fn, const void *arg)
{
	struct pm_req *r = NULL;
	struct pm_exe *exe;

	TAILQ_FOREACH(exe, &pm->busy, busy) {
		r = pm_req_find(exe, states, fn, arg);
		if (r)
			break;
	}
	return r;
}

static void pm_names_next(struct pm_exe *exe);

static void pm_req_answer(struct pm_req *r, int err,
			  const struct symbolizer_symbol *syms,
			  struct symbolizer_rows *rows)
{
	bool owed = r->state == PM_REQ_UNDER_WAY;
	struct pm_exe *exe = pm_req_leave(r);

	exe->resolving -= owed;
	if (r->rows)
		r->rows(r->arg, err, rows);
	else
		r->names(r->arg, err, r->tags, syms, r->n);
	if (!owed)
		pm_req_free(r);
	if (err != -ECANCELED)
		pm_names_next(exe);
	pm_exe_put(exe);
}

static void pm_req_refuse(struct pm_req *r, int err)
{
	pm_req_answer(r, err, NULL, NULL);
}

/* --- with the symbolizer -------------------------------------------------- */

/* The symbolizer's completion. */
static void pm_req_done(struct pm_req *r, int err,
			const struct symbolizer_symbol *syms,
			struct symbolizer_rows *rows)
{
	struct pm_exe *exe = r->exe;
	struct pm *pm;

	if (!exe) {
		symbolizer_rows_free(rows);
		pm_req_free(r);
		return;
	}
	pm = exe->pm;
	exe->resolving--;
	r->state = PM_REQ_BACK;
	if (r->rows)
		exe->hurry = false;
	if (err != -ECANCELED)
		*(r->rows ? &exe->rows : &exe->names) = err;
	pm_req_answer(r, err, syms, rows);
	pm_open_queued(pm);
}

static void pm_req_named(void *arg, int err,
			 const struct symbolizer_symbol *syms, size_t n)
{
	struct pm_req *r = arg;

	for (size_t i = 0; r->exe && !err && i < n; i++)
		r->exe->sources[syms[i].nfunctions ? syms[i].source
						   : SYMBOLIZER_SOURCE_NONE]++;
	pm_req_done(r, err, syms, NULL);
}

static void pm_req_read(void *arg, int err, struct symbolizer_rows *rows)
{
	struct symbolizer_rows_info info = { 0 };
	struct pm_req *r = arg;

	if (rows)
		symbolizer_rows_info(rows, &info);
	if (r->exe)
		r->exe->rows_bytes = info.bytes;
	if (r->exe && rows)
		pm_exe_set_go(r->exe, &info.go);
	pm_req_done(arg, err, NULL, rows);
}

/* 0 or -ENOMEM. */
static int pm_req_submit(struct pm_req *r)
{
	struct pm_exe *exe = r->exe;
	struct symbolizer *s = exe->pm->opts.symbolizer;
	int err;

	pm_exe_touch(exe);
	if (exe->hurry)
		symbolizer_hurry(s, exe->file);
	if (r->rows && exe->kind == PM_EXE_ANON)
		err = pm_code_rows(exe, r->time, pm_req_read, r);
	else if (r->rows)
		err = symbolizer_rows(s, exe->file, pm_req_read, r);
	else if (exe->kind == PM_EXE_ANON || exe->kind == PM_EXE_KERNEL)
		err = pm_code_resolve(exe, r->offsets, r->times, r->n,
				      pm_req_named, r);
	else
		err = symbolizer_resolve(s, exe->file, r->offsets, r->n,
					 pm_req_named, r);
	if (err)
		return err;
	exe->resolving++;
	r->state = PM_REQ_UNDER_WAY;
	return 0;
}

/* --- from state to state -------------------------------------------------- */

/* Its executable turned out to have the content of another. */
static void pm_req_move(struct pm_req *r)
{
	struct pm_exe *root = pm_exe_root(r->exe), *was;

	if (root == r->exe)
		return;
	was = pm_req_leave(r);
	root->hurry |= was->hurry && r->rows;
	pm_req_enter(r, root);
	pm_exe_put(was);
}

/* 0: it will be answered; otherwise the error to answer it with. */
static int pm_req_start(struct pm_req *r)
{
	int err;

	pm_req_move(r);
	if (r->exe->pm->closing)
		return -ECANCELED;
	if (r->exe->file)
		return pm_req_submit(r);
	if (!pm_exe_opens(r->exe) || r->exe->jitdump)
		return -ENOENT;
	err = pm_exe_open(r->exe);
	if (!err)
		r->state = PM_REQ_WAITING;
	return err;
}

/* The same for a call that must not complete it. -ENOMEM: it did not begin. */
static int pm_req_begin(struct pm_req *r)
{
	int err = pm_req_start(r);

	if (!err || err == -ENOMEM)
		return err;
	r->state = PM_REQ_REFUSED;
	r->err = err;
	r->exe->pm->refused = true;
	return 0;
}

/* Marks requests to be resumed: those made meanwhile are left alone. */
static void pm_reqs_back(struct pm_exe *exe, enum pm_req_state state, int err)
{
	struct pm_req *r;

	TAILQ_FOREACH(r, &exe->reqs, node) {
		if (r->state != state)
			continue;
		r->state = PM_REQ_BACK;
		r->err = err ? err : r->err;
	}
}

static void pm_req_resume(struct pm_req *r)
{
	int err = r->err ? r->err : pm_req_start(r);

	if (err)
		pm_req_refuse(r, err);
}

void pm_reqs_opened(struct pm_exe *exe, int err)
{
	struct pm_req *r;

	if (!err && !exe->same && !exe->file)
		err = -EMFILE;
	pm_reqs_back(exe, PM_REQ_WAITING, err);
	while ((r = pm_req_find(exe, PM_REQ_BACK, NULL, NULL)))
		pm_req_resume(r);
}

void pm_reqs_refuse(struct pm *pm)
{
	struct pm_exe *exe;
	struct pm_req *r;

	if (!pm->refused)
		return;
	pm->refused = false;
	TAILQ_FOREACH(exe, &pm->busy, busy)
		pm_reqs_back(exe, PM_REQ_REFUSED, 0);
	while ((r = pm_req_any(pm, PM_REQ_BACK, NULL, NULL)))
		pm_req_resume(r);
}

/* --- names ---------------------------------------------------------------- */

/* Starts the collected request, unless another one for names is under way. */
static void pm_names_next(struct pm_exe *exe)
{
	struct pm_req *next = NULL, *r;

	TAILQ_FOREACH(r, &exe->reqs, node) {
		if (!r->names || r->state == PM_REQ_REFUSED)
			continue;
		if (r->state != PM_REQ_COLLECTING)
			return;
		next = next ? next : r;
	}
	/*
	 * Without memory it stays, and is started by a later pm_names_send().
	 */
	if (next)
		pm_req_begin(next);
}

void pm_names_send(struct pm *pm)
{
	struct pm_exe *exe, *after;

	for (exe = TAILQ_FIRST(&pm->busy); exe; exe = after) {
		after = TAILQ_NEXT(exe, busy);
		pm_names_next(exe);
	}
}

size_t pm_names_awaited(const struct pm *pm, const struct pm_exe **first)
{
	const struct pm_exe *exe;
	const struct pm_req *r;
	size_t n = 0;

	*first = NULL;
	TAILQ_FOREACH(exe, &pm->busy, busy) {
		TAILQ_FOREACH(r, &exe->reqs, node)
			if (r->names)
				break;
		if (!r)
			continue;
		n++;
		*first = *first ? *first : exe;
	}
	return n;
}

int pm_exe_name_at(struct pm_exe *exe, uint64_t offset, uint64_t time,
		   void *tag, pm_names_fn fn, void *arg)
{
	struct pm_req *r;

	exe = pm_code_exe_at(pm_exe_root(exe), time);
	r = pm_req_find(exe, PM_REQ_COLLECTING, fn, arg);
	if (!r)
		r = pm_req_new(exe, fn, arg);
	if (!r)
		return -ENOMEM;
	if (VECTOR_ROOM(r->offsets, r->n, r->offsets_cap) ||
	    VECTOR_ROOM(r->times, r->n, r->times_cap) ||
	    VECTOR_ROOM(r->tags, r->n, r->tags_cap)) {
		if (!r->n)
			pm_req_undo(r);
		return pm_nomem(exe->pm);
	}
	r->offsets[r->n] = offset;
	r->times[r->n] = time;
	r->tags[r->n++] = tag;
	return 0;
}

int pm_exe_name(struct pm_exe *exe, uint64_t offset, void *tag, pm_names_fn fn,
		void *arg)
{
	return pm_exe_name_at(exe, offset, 0, tag, fn, arg);
}

/* --- unwind rows ---------------------------------------------------------- */

int pm_exe_code_rows(struct pm_exe *exe, uint64_t time, symbolizer_rows_fn fn,
		     void *arg)
{
	struct pm_req *r = pm_req_new(exe, NULL, arg);
	int err;

	if (!r)
		return -ENOMEM;
	r->rows = fn;
	r->time = time;
	err = pm_req_begin(r);
	if (err)
		pm_req_undo(r);
	return err;
}

int pm_exe_rows(struct pm_exe *exe, symbolizer_rows_fn fn, void *arg)
{
	return pm_exe_code_rows(exe, 0, fn, arg);
}

void pm_exe_hurry(struct pm_exe *exe)
{
	struct symbolizer *s = exe->pm->opts.symbolizer;

	exe = pm_exe_root(exe);
	if (exe->kind != PM_EXE_FILE)
		return;
	exe->hurry = true;
	if (exe->queued)
		pm_turn_hurry(exe->queued);
	if (exe->file)
		symbolizer_hurry(s, exe->file);
	else
		symbolizer_hurry_open(s, exe->dev, exe->ino);
}

int pm_rows_by_hand(struct pm *pm, const uint8_t *id, size_t len,
		    struct symbolizer_rows *rows)
{
	return symbolizer_rows_by_hand(pm->opts.symbolizer, id, len, rows);
}

/* --- the end -------------------------------------------------------------- */

void pm_names_cancel(struct pm *pm, pm_names_fn fn, void *arg)
{
	struct pm_req *r;

	while ((r = pm_req_any(pm, PM_REQ_ANY, fn, arg)))
		pm_req_refuse(r, -ECANCELED);
}
