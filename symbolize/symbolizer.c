// SPDX-License-Identifier: Apache-2.0
/*
 * symbolizer: what happens on the loop. Two kinds of jobs go to its pool.
 *
 * Opening: no more than OPENS_AT_ONCE of them, for a path can hang (a dead
 * NFS server), and the pool is not ours alone. Each has a deadline from the
 * moment of its request; what comes later is thrown away.
 *
 * Names and unwind rows: one at a time, in the order of the requests, so that
 * indexes belong to whoever has the turn: the worker while a job runs, the loop
 * otherwise. An index in use can outgrow the ceiling; the loop then puts out
 * those that were not used for longest.
 *
 * A job that runs cannot be called back. Who does not want its result any more
 * (a deadline, a close, the end) answers the request and leaves the job
 * without one; the symbolizer itself is freed with its last job and handle.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/file.h"
#include "symbolize/rows_hand.h"

#define OPENS_AT_ONCE 2
#define INDEX_BYTES_DEFAULT (8 << 20)
#define OPEN_DEADLINE_MS_DEFAULT 2000

/* All kinds of requests, in a list of those not yet answered. */
struct job {
	struct job *next, *prev;
	struct symbolizer *s;
	uv_work_t work;
	bool running; /* in the pool */
	bool answered;
	int err;
};

struct jobs {
	struct job *head, *tail;
};

struct open_job {
	struct job job;
	struct symbolizer_open_req req;
	uint8_t build_id[SYMBOLIZER_BUILD_ID_MAX];
	uint64_t deadline; /* uv_now() */
	symbolizer_open_fn fn;
	void *arg;
	struct symbolizer_file *file;
	bool damaged;
	char path[];
};

/* Work on an open file: names or rows. */
struct file_job {
	struct job job;
	struct symbolizer_file *file;
	const struct file_job_kind *kind;
};

struct file_job_kind {
	void (*work)(struct file_job *j); /* on a worker */
	void (*count)(struct file_job *j);
	void (*answer)(struct file_job *j, int err);
	void (*free)(struct file_job *j);
};

struct resolve_job {
	struct file_job job;
	symbolizer_resolve_fn fn;
	void *arg;
	struct symbolizer_answer answer;
	size_t n;
	uint64_t offsets[];
};

struct rows_job {
	struct file_job job;
	symbolizer_rows_fn fn;
	void *arg;
	struct symbolizer_rows *rows;
};

struct symbolizer {
	uv_loop_t *loop;
	uv_timer_t timer; /* to the deadline of the oldest opening */
	struct jobs opens, files;
	unsigned int opening; /* openings in the pool */
	bool working; /* a job on a file is in the pool */
	bool freed;
	unsigned int refs; /* the timer and jobs in the pool */
	unsigned int deadline_ms;
	size_t index_ceiling;
	struct symbolizer_file *kernel, *vdso;
	struct symbolizer_hand *hand; /* rows that go before a file's */
	struct symbolizer_file *lru_first, *lru_last; /* first: just used */
	struct symbolizer_stats stats;
	char *kallsyms;
};

static void jobs_add(struct jobs *l, struct job *j)
{
	j->next = NULL;
	j->prev = l->tail;
	if (l->tail)
		l->tail->next = j;
	else
		l->head = j;
	l->tail = j;
}

static void jobs_remove(struct jobs *l, struct job *j)
{
	if (j->prev)
		j->prev->next = j->next;
	else
		l->head = j->next;
	if (j->next)
		j->next->prev = j->prev;
	else
		l->tail = j->prev;
}

static void symbolizer_unref(struct symbolizer *s)
{
	if (--s->refs)
		return;
	symbolizer_file_free(s->kernel);
	symbolizer_file_free(s->vdso);
	symbolizer_hand_free(s->hand);
	free(s->kallsyms);
	free(s);
}

/* --- indexes under their ceiling ------------------------------------------ */

static void lru_remove(struct symbolizer *s, struct symbolizer_file *f)
{
	if (!f->in_lru)
		return;
	if (f->lru_prev)
		f->lru_prev->lru_next = f->lru_next;
	else
		s->lru_first = f->lru_next;
	if (f->lru_next)
		f->lru_next->lru_prev = f->lru_prev;
	else
		s->lru_last = f->lru_prev;
	f->in_lru = false;
}

static void lru_add(struct symbolizer *s, struct symbolizer_file *f)
{
	f->lru_prev = NULL;
	f->lru_next = s->lru_first;
	if (s->lru_first)
		s->lru_first->lru_prev = f;
	else
		s->lru_last = f;
	s->lru_first = f;
	f->in_lru = true;
}

static void account(struct symbolizer *s, struct symbolizer_file *f)
{
	size_t bytes = symbolizer_file_index_bytes(f);

	s->stats.index_bytes += bytes - f->index_bytes;
	f->index_bytes = bytes;
}

/*
 * No worker has an index now. 'f' was just used. The kernel's is not put out:
 * every stack asks for it, and reading it is what costs most.
 */
static void lru_used(struct symbolizer *s, struct symbolizer_file *f)
{
	account(s, f);
	lru_remove(s, f);
	if (f != s->kernel && f->index_bytes)
		lru_add(s, f);
	while (s->stats.index_bytes > s->index_ceiling && s->lru_last) {
		f = s->lru_last;
		lru_remove(s, f);
		symbolizer_file_drop_index(f);
		account(s, f);
		s->stats.index_evicted++;
	}
}

static void file_release(struct symbolizer *s, struct symbolizer_file *f)
{
	lru_remove(s, f);
	s->stats.index_bytes -= f->index_bytes;
	symbolizer_file_free(f);
}

/* --- opening -------------------------------------------------------------- */

static void on_open_work(uv_work_t *work)
{
	struct open_job *o = container_of(work, struct open_job, job.work);

	o->job.err = symbolizer_file_open(&o->file, &o->req, &o->damaged);
}

static void count_open(struct symbolizer_stats *st, int err)
{
	st->opened += err == 0;
	st->open_failed += err != 0 && err != -ECANCELED;
	st->open_stale += err == -ESTALE;
	st->open_timeouts += err == -ETIMEDOUT;
}

/* Takes the job off the list; it is the caller's to free unless it runs. */
static void open_answer(struct open_job *o, int err)
{
	struct symbolizer *s = o->job.s;
	struct symbolizer_file *file = err ? NULL : o->file;

	jobs_remove(&s->opens, &o->job);
	if (!s->opens.head)
		uv_timer_stop(&s->timer);
	o->job.answered = true;
	count_open(&s->stats, err);
	if (file)
		o->file = NULL;
	o->fn(o->arg, err, file);
}

static void open_free(struct open_job *o)
{
	symbolizer_file_free(o->file);
	free(o);
}

static void opens_start(struct symbolizer *s);

static void on_open_done(uv_work_t *work, int status)
{
	struct open_job *o = container_of(work, struct open_job, job.work);
	struct symbolizer *s = o->job.s;

	o->job.running = false;
	s->opening--;
	s->stats.broken += o->damaged || (o->file && o->file->damaged);
	if (!o->job.answered)
		open_answer(o, status ? -ECANCELED : o->job.err);
	open_free(o);
	if (!s->freed)
		opens_start(s);
	symbolizer_unref(s);
}

static void opens_start(struct symbolizer *s)
{
	struct job *j;

	for (j = s->opens.head; j && s->opening < OPENS_AT_ONCE; j = j->next) {
		if (j->running)
			continue;
		/* Fails without a work function only. */
		uv_queue_work(s->loop, &j->work, on_open_work, on_open_done);
		j->running = true;
		s->opening++;
		s->refs++;
	}
}

static void timer_set(struct symbolizer *s);

/* Requests are in the order of their deadlines: all have the same time. */
static void on_deadline(uv_timer_t *timer)
{
	struct symbolizer *s = container_of(timer, struct symbolizer, timer);
	struct open_job *o;

	while (!s->freed && s->opens.head) {
		o = container_of(s->opens.head, struct open_job, job);
		if (o->deadline > uv_now(s->loop))
			break;
		if (o->job.running)
			uv_cancel((uv_req_t *)&o->job.work);
		open_answer(o, -ETIMEDOUT);
		if (!o->job.running)
			open_free(o);
	}
	if (!s->freed)
		timer_set(s);
}

static void timer_set(struct symbolizer *s)
{
	uint64_t now = uv_now(s->loop);
	struct open_job *o;

	if (!s->opens.head) {
		uv_timer_stop(&s->timer);
		return;
	}
	o = container_of(s->opens.head, struct open_job, job);
	uv_timer_start(&s->timer, on_deadline,
		       o->deadline > now ? o->deadline - now : 0, 0);
}

int symbolizer_open(struct symbolizer *s, const struct symbolizer_open_req *req,
		    symbolizer_open_fn fn, void *arg)
{
	size_t len = strlen(req->path) + 1;
	struct open_job *o = calloc(1, sizeof(*o) + len);

	if (!o)
		return -ENOMEM;
	o->job.s = s;
	o->req = *req;
	o->req.path = memcpy(o->path, req->path, len);
	o->req.build_id_len = MIN(req->build_id_len, sizeof(o->build_id));
	if (o->req.build_id_len)
		memcpy(o->build_id, req->build_id, o->req.build_id_len);
	o->req.build_id = o->build_id;
	/* The loop's idea of now may be old when it was busy. */
	uv_update_time(s->loop);
	o->deadline = uv_now(s->loop) + s->deadline_ms;
	o->fn = fn;
	o->arg = arg;
	jobs_add(&s->opens, &o->job);
	opens_start(s);
	if (s->opens.head == &o->job)
		timer_set(s);
	return 0;
}

/* --- work on files --------------------------------------------------------- */

static void on_file_work(uv_work_t *work)
{
	struct file_job *j = container_of(work, struct file_job, job.work);

	j->kind->work(j);
}

static void file_answer(struct file_job *j, int err)
{
	jobs_remove(&j->job.s->files, &j->job);
	j->job.answered = true;
	j->kind->answer(j, err);
}

static void files_start(struct symbolizer *s);

static void on_file_done(uv_work_t *work, int status)
{
	struct file_job *j = container_of(work, struct file_job, job.work);
	struct symbolizer *s = j->job.s;

	s->working = false;
	j->job.running = false;
	j->file->busy = false;
	j->kind->count(j);
	if (j->file->closed)
		file_release(s, j->file);
	else if (!s->freed)
		lru_used(s, j->file);
	if (!j->job.answered)
		file_answer(j, status ? -ECANCELED : j->job.err);
	j->kind->free(j);
	if (!s->freed)
		files_start(s);
	symbolizer_unref(s);
}

static void files_start(struct symbolizer *s)
{
	struct file_job *j;

	if (s->working || !s->files.head)
		return;
	j = container_of(s->files.head, struct file_job, job);
	s->working = true;
	s->refs++;
	j->job.running = true;
	j->file->busy = true;
	uv_queue_work(s->loop, &j->job.work, on_file_work, on_file_done);
}

static void file_request(struct symbolizer *s, struct file_job *j,
			 struct symbolizer_file *file,
			 const struct file_job_kind *kind)
{
	j->job.s = s;
	j->file = file;
	j->kind = kind;
	jobs_add(&s->files, &j->job);
	files_start(s);
}

void symbolizer_close(struct symbolizer *s, struct symbolizer_file *file)
{
	struct file_job *f;
	struct job *j, *next;

	if (!file)
		return;
	file->closed = true;
	for (j = s->files.head; j; j = next) {
		next = j->next;
		f = container_of(j, struct file_job, job);
		if (f->file != file)
			continue;
		file_answer(f, -ECANCELED);
		if (!j->running)
			f->kind->free(f);
		next = s->files.head; /* the callee may have changed it */
	}
	if (!file->busy)
		file_release(s, file);
}

/* --- names ---------------------------------------------------------------- */

static struct resolve_job *resolve_of(struct file_job *j)
{
	return container_of(j, struct resolve_job, job);
}

static void resolve_work(struct file_job *j)
{
	struct resolve_job *r = resolve_of(j);

	j->job.err =
		symbolizer_file_resolve(j->file, r->offsets, r->n, &r->answer);
}

static void resolve_count(struct file_job *j)
{
	const struct symbolizer_tally *t = &resolve_of(j)->answer.tally;
	struct symbolizer_stats *st = &j->job.s->stats;

	st->resolved += t->resolved;
	st->unnamed += t->unnamed;
	st->broken += t->broken;
	st->index_built += t->built;
	st->kallsyms_hidden += t->hidden;
}

static void resolve_answer(struct file_job *j, int err)
{
	struct resolve_job *r = resolve_of(j);

	r->fn(r->arg, err, err ? NULL : r->answer.syms, err ? 0 : r->n);
}

static void resolve_free(struct file_job *j)
{
	struct resolve_job *r = resolve_of(j);

	symbolizer_answer_fini(&r->answer);
	free(r);
}

static const struct file_job_kind resolve_kind = {
	resolve_work,
	resolve_count,
	resolve_answer,
	resolve_free,
};

int symbolizer_resolve(struct symbolizer *s, struct symbolizer_file *file,
		       const uint64_t *offsets, size_t n,
		       symbolizer_resolve_fn fn, void *arg)
{
	struct resolve_job *r;
	size_t bytes;

	if (__builtin_mul_overflow(n, sizeof(*offsets), &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(*r), &bytes))
		return -ENOMEM;
	r = calloc(1, bytes);
	if (!r)
		return -ENOMEM;
	symbolizer_answer_init(&r->answer);
	r->fn = fn;
	r->arg = arg;
	r->n = n;
	if (n)
		memcpy(r->offsets, offsets, n * sizeof(*offsets));
	file_request(s, &r->job, file, &resolve_kind);
	return 0;
}

/* --- unwind rows ------------------------------------------------------------ */

static struct rows_job *rows_of(struct file_job *j)
{
	return container_of(j, struct rows_job, job);
}

static void rows_work(struct file_job *j)
{
	j->job.err = symbolizer_file_rows(j->file, NULL, &rows_of(j)->rows);
}

static void rows_count(struct file_job *j)
{
	struct symbolizer_rows_info info;

	if (!rows_of(j)->rows || j->file->damaged)
		return;
	symbolizer_rows_info(rows_of(j)->rows, &info);
	j->file->damaged = info.damage != NULL;
	j->job.s->stats.broken += j->file->damaged;
}

static void rows_answer(struct file_job *j, int err)
{
	struct rows_job *r = rows_of(j);
	struct symbolizer_rows *rows = err ? NULL : r->rows;

	if (rows)
		r->rows = NULL;
	err = symbolizer_hand_apply(j->job.s->hand, &j->file->ident, err,
				    &rows);
	r->fn(r->arg, err, rows);
}

static void rows_job_free(struct file_job *j)
{
	symbolizer_rows_free(rows_of(j)->rows);
	free(rows_of(j));
}

static const struct file_job_kind rows_kind = {
	rows_work,
	rows_count,
	rows_answer,
	rows_job_free,
};

int symbolizer_rows(struct symbolizer *s, struct symbolizer_file *file,
		    symbolizer_rows_fn fn, void *arg)
{
	struct rows_job *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->fn = fn;
	r->arg = arg;
	file_request(s, &r->job, file, &rows_kind);
	return 0;
}

int symbolizer_rows_by_hand(struct symbolizer *s, const uint8_t *build_id,
			    size_t len, struct symbolizer_rows *rows)
{
	return symbolizer_hand_add(&s->hand, build_id, len, rows);
}

/* --- the symbolizer itself ------------------------------------------------ */

int symbolizer_new(struct symbolizer **sp, const struct symbolizer_opts *opts)
{
	struct symbolizer *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		return -ENOMEM;
	s->loop = opts->loop;
	s->index_ceiling =
		opts->index_bytes ? opts->index_bytes : INDEX_BYTES_DEFAULT;
	s->deadline_ms = opts->open_deadline_ms ? opts->open_deadline_ms
						: OPEN_DEADLINE_MS_DEFAULT;
	s->refs = 1;
	s->kallsyms =
		strdup(opts->kallsyms ? opts->kallsyms : "/proc/kallsyms");
	if (s->kallsyms)
		err = symbolizer_file_kernel(&s->kernel, s->kallsyms);
	if (!err)
		err = symbolizer_file_vdso(&s->vdso);
	if (!err)
		err = uv_timer_init(s->loop, &s->timer);
	if (err) {
		symbolizer_unref(s);
		return err;
	}
	*sp = s;
	return 0;
}

static void on_timer_closed(uv_handle_t *handle)
{
	symbolizer_unref(
		container_of((uv_timer_t *)handle, struct symbolizer, timer));
}

void symbolizer_free(struct symbolizer *s)
{
	struct open_job *o;
	struct file_job *f;

	if (!s)
		return;
	s->freed = true;
	while (s->opens.head) {
		o = container_of(s->opens.head, struct open_job, job);
		if (o->job.running)
			uv_cancel((uv_req_t *)&o->job.work);
		open_answer(o, -ECANCELED);
		if (!o->job.running)
			open_free(o);
	}
	while (s->files.head) {
		f = container_of(s->files.head, struct file_job, job);
		if (f->job.running)
			uv_cancel((uv_req_t *)&f->job.work);
		file_answer(f, -ECANCELED);
		if (!f->job.running)
			f->kind->free(f);
	}
	uv_close((uv_handle_t *)&s->timer, on_timer_closed);
}

struct symbolizer_file *symbolizer_kernel(struct symbolizer *s)
{
	return s->kernel;
}

struct symbolizer_file *symbolizer_vdso(struct symbolizer *s)
{
	return s->vdso;
}

const struct symbolizer_ident *
symbolizer_ident(const struct symbolizer_file *file)
{
	return &file->ident;
}

const struct symbolizer_segment *
symbolizer_segments(const struct symbolizer_file *file, size_t *np)
{
	*np = file->n_segments;
	return file->segments;
}

void symbolizer_get_stats(const struct symbolizer *s,
			  struct symbolizer_stats *out)
{
	*out = s->stats;
}
