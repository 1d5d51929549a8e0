// SPDX-License-Identifier: Apache-2.0
/*
 * queue: the requests for names and unwind rows of executables. Each is in one
 * list from the question to its answer: that of its executable, or, if it was
 * refused, pm->failed.
 *
 *   COLLECTING  names, to which more may be added: sent by pm_names_send(), or
 *               when the request for names before it has ended
 *   WAITING     its file is being opened (open.c, and turns.c by users)
 *   UNDER_WAY   the symbolizer has it, which chooses by user and urgency
 *               (symbolize/reader/workers.h)
 *   BACK        from one of these two, while it is dealt with
 *   FAILED      refused before it began: answered by the next pm_forget(), as no
 *               answer may come from inside of the question
 *
 * So of one executable one request for names is WAITING or UNDER_WAY at a time.
 *
 * A request is answered once, by pm_req_answer(), in whatever state it is; with
 * -ECANCELED if nobody needs it any more. It is freed there, unless the symbolizer
 * has it: then its completion, which finds no executable, does that.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/internal.h"

enum pm_req_state { /* bits: several are a mask */
	PM_REQ_COLLECTING = 1,
	PM_REQ_WAITING = 2,
	PM_REQ_UNDER_WAY = 4,
	PM_REQ_BACK = 8, /* to be started, or answered */
	PM_REQ_FAILED = 16, /* in pm->failed */
	PM_REQ_ANY = 31,
};

struct pm_req {
	struct pm_list node; /* exe->reqs, or pm->failed */
	struct pm_exe *exe; /* a reference; NULL: it was answered */
	enum pm_req_state state;
	int err; /* FAILED: its answer */
	symbolizer_rows_fn rows; /* one of the two */
	pm_names_fn names;
	void *arg;
	size_t n, cap; /* names: */
	uint64_t *offsets;
	void **tags;
};

/* --- one request ------------------------------------------------------------- */

static void pm_req_enter(struct pm_req *r, struct pm_exe *exe)
{
	r->exe = pm_exe_get(exe);
	if (pm_list_empty(&exe->reqs))
		pm_list_add_tail(&exe->pm->asking, &exe->asking);
	pm_list_add_tail(&exe->reqs, &r->node);
}

/* The reference to its executable is the caller's then. */
static struct pm_exe *pm_req_leave(struct pm_req *r)
{
	struct pm_exe *exe = r->exe;

	pm_list_del(&r->node);
	if (pm_list_empty(&exe->reqs))
		pm_list_del(&exe->asking);
	r->exe = NULL;
	return exe;
}

static void pm_req_free(struct pm_req *r)
{
	free(r->offsets);
	free(r->tags);
	free(r);
}

static struct pm_req *pm_req_new(struct pm_exe *exe, void *arg)
{
	struct pm_req *r = calloc(1, sizeof(*r));

	if (!r) {
		pm_nomem(exe->pm);
		return NULL;
	}
	r->state = PM_REQ_BACK;
	r->arg = arg;
	pm_list_init(&r->node);
	pm_req_enter(r, pm_exe_root(exe));
	return r;
}

/* It never was one. */
static void pm_req_undo(struct pm_req *r)
{
	pm_exe_put(pm_req_leave(r));
	pm_req_free(r);
}

/* The first in one of these states, of an asker; fn NULL: of any. */
static struct pm_req *pm_req_find(const struct pm_list *list,
				  unsigned int states, pm_names_fn fn,
				  const void *arg)
{
	struct pm_list *l;
	struct pm_req *r;

	for (l = list->next; l != list; l = l->next) {
		r = container_of(l, struct pm_req, node);
		if (r->state & states &&
		    (!fn || (r->names == fn && r->arg == arg)))
			return r;
	}
	return NULL;
}

static struct pm_req *pm_req_in(const struct pm_exe *exe,
				enum pm_req_state state)
{
	return pm_req_find(&exe->reqs, state, NULL, NULL);
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

/* --- with the symbolizer ------------------------------------------------------- */

/* Its completion. */
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
	pm_req_done(arg, err, syms, NULL);
}

static void pm_req_read(void *arg, int err, struct symbolizer_rows *rows)
{
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
	if (r->rows)
		err = symbolizer_rows(s, exe->file, pm_req_read, r);
	else
		err = symbolizer_resolve(s, exe->file, r->offsets, r->n,
					 pm_req_named, r);
	if (err)
		return err;
	exe->resolving++;
	r->state = PM_REQ_UNDER_WAY;
	return 0;
}

/* --- from state to state ------------------------------------------------------- */

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

/* 0: it will be answered; or the error it is to be answered with. */
static int pm_req_start(struct pm_req *r)
{
	int err;

	pm_req_move(r);
	if (r->exe->pm->closing)
		return -ECANCELED;
	if (r->exe->file)
		return pm_req_submit(r);
	if (r->exe->kind != PM_EXE_FILE)
		return -ENOENT;
	err = pm_exe_open(r->exe);
	if (!err)
		r->state = PM_REQ_WAITING;
	return err;
}

/* ... from inside of the question. -ENOMEM: it did not begin. */
static int pm_req_begin(struct pm_req *r)
{
	struct pm_exe *exe;
	int err = pm_req_start(r);

	if (!err || err == -ENOMEM)
		return err;
	exe = pm_req_leave(r);
	r->exe = exe;
	r->state = PM_REQ_FAILED;
	r->err = err;
	pm_list_add_tail(&exe->pm->failed, &r->node);
	return 0;
}

void pm_reqs_opened(struct pm_exe *exe, int err)
{
	struct pm_exe *root = pm_exe_root(exe);
	struct pm_req *r;
	int e;

	/* Those that come meanwhile may wait for another opening. */
	while ((r = pm_req_in(exe, PM_REQ_WAITING)))
		r->state = PM_REQ_BACK;
	while ((r = pm_req_in(exe, PM_REQ_BACK))) {
		e = err;
		if (!e && root == exe && !exe->file)
			e = -EMFILE;
		if (!e)
			e = pm_req_start(r);
		if (e)
			pm_req_refuse(r, e);
	}
}

void pm_reqs_fail(struct pm *pm)
{
	struct pm_list *last = pm->failed.prev, *l;
	struct pm_req *r;

	if (pm_list_empty(&pm->failed))
		return;
	do { /* what comes meanwhile stays for the next time */
		l = pm->failed.next;
		r = container_of(l, struct pm_req, node);
		pm_req_refuse(r, r->err);
	} while (l != last);
}

/* --- names ---------------------------------------------------------------------- */

/* Sends those collected, unless others are under way. */
static void pm_names_next(struct pm_exe *exe)
{
	struct pm_req *next = pm_req_in(exe, PM_REQ_COLLECTING), *r;
	struct pm_list *l;

	for (l = exe->reqs.next; l != &exe->reqs; l = l->next) {
		r = container_of(l, struct pm_req, node);
		if (r->names && r->state != PM_REQ_COLLECTING)
			return;
	}
	/* Without memory it stays, and goes with a later pm_names_send(). */
	if (next)
		pm_req_begin(next);
}

void pm_names_send(struct pm *pm)
{
	struct pm_list *l, *after;

	for (l = pm->asking.next; l != &pm->asking; l = after) {
		after = l->next;
		pm_names_next(container_of(l, struct pm_exe, asking));
	}
}

static int pm_req_grow(struct pm_req *r)
{
	size_t cap = r->cap ? 2 * r->cap : 16;
	uint64_t *offsets = realloc(r->offsets, cap * sizeof(*offsets));
	void **tags;

	if (offsets)
		r->offsets = offsets;
	tags = offsets ? realloc(r->tags, cap * sizeof(*tags)) : NULL;
	if (!tags)
		return pm_nomem(r->exe->pm);
	r->tags = tags;
	r->cap = cap;
	return 0;
}

int pm_exe_name(struct pm_exe *exe, uint64_t offset, void *tag, pm_names_fn fn,
		void *arg)
{
	struct pm_req *r = pm_req_find(&pm_exe_root(exe)->reqs,
				       PM_REQ_COLLECTING, fn, arg);
	int err = 0;

	if (!r)
		r = pm_req_new(exe, arg);
	if (!r)
		return -ENOMEM;
	r->state = PM_REQ_COLLECTING;
	r->names = fn;
	if (r->n == r->cap)
		err = pm_req_grow(r);
	if (!err) {
		r->offsets[r->n] = offset;
		r->tags[r->n++] = tag;
	} else if (!r->n) {
		pm_req_undo(r);
	}
	return err;
}

/* --- unwind rows ----------------------------------------------------------------- */

int pm_exe_rows(struct pm_exe *exe, symbolizer_rows_fn fn, void *arg)
{
	struct pm_req *r = pm_req_new(exe, arg);
	int err;

	if (!r)
		return -ENOMEM;
	r->rows = fn;
	err = pm_req_begin(r);
	if (err)
		pm_req_undo(r);
	return err;
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

/* --- the end --------------------------------------------------------------------- */

/* In whatever state. */
static struct pm_req *pm_req_any(struct pm *pm, pm_names_fn fn, const void *arg)
{
	struct pm_req *r = pm_req_find(&pm->failed, PM_REQ_ANY, fn, arg);
	struct pm_list *l;

	for (l = pm->asking.next; l != &pm->asking && !r; l = l->next)
		r = pm_req_find(&container_of(l, struct pm_exe, asking)->reqs,
				PM_REQ_ANY, fn, arg);
	return r;
}

void pm_names_cancel(struct pm *pm, pm_names_fn fn, void *arg)
{
	struct pm_req *r;

	while ((r = pm_req_any(pm, fn, arg)))
		pm_req_refuse(r, -ECANCELED);
}
