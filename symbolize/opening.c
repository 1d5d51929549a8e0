// SPDX-License-Identifier: Apache-2.0
/*
 * opening: from a request to an open file. The openers (opener.h) try the ways
 * that may lead to it one by one, since a path can hang. Then a worker
 * identifies the file, unless the same unchanged file was identified before
 * (known.h).
 *
 * The openers have a deadline for each way, the workers one for each question.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/internal.h"

struct open_job {
	TAILQ_ENTRY(open_job) node; /* s->openings */
	struct symbolizer *s;
	struct opener_job open; /* while 'asked' is false; then: */
	struct worker_job remote;
	bool asked; /* the workers have it */
	struct symbolizer_open_req req;
	uint8_t build_id[SYMBOLIZER_BUILD_ID_MAX];
	symbolizer_open_fn fn;
	void *arg;
	enum symbolizer_way ways[SYMBOLIZER_N_WAYS];
	int n_ways, way;
	struct symbolizer_file *file; /* of this way */
	int first; /* the error to report, if all ways fail */
	bool damaged; /* ... of an ELF file that is damaged */
	bool stale; /* a way led to another file */
	uint64_t hurry; /* as in struct symbolizer_file */
	char path[];
};

const char *symbolizer_problem(int err)
{
	static const struct {
		int err;
		const char *text;
	} problems[] = {
		{ -ENOEXEC, "not an ELF executable, library or relocatable "
			    "file, or its headers are damaged" },
		{ -ENODATA, "no unwind information (.eh_frame, .debug_frame)" },
		{ -ENOTSUP, "not for " SYMBOLIZER_MACHINE },
		{ -EBADMSG, "the symbolize worker crashed, took too long or "
			    "ran out of memory" },
		{ -EIO, "the symbolize worker could not be started" },
		{ -SYMBOLIZER_EPLACE,
		  "on a file system that is not read (FUSE, and "
		  "the kernel's own)" },
		{ -ENOTUNIQ, "several functions have that name" },
		{ -ERANGE, "the offset is beyond its end" },
		{ -EILSEQ, "its compressed contents are damaged" },
		{ -EACCES, "cannot be opened, or is not a regular file" },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(problems); i++)
		if (problems[i].err == err)
			return problems[i].text;
	return strerror(-err);
}

static void count_open(struct symbolizer_stats *st, int err)
{
	st->opened += err == 0;
	st->open_failed += err != 0 && err != -ECANCELED;
	st->open_stale += err == -ESTALE;
	st->open_refused += err == -SYMBOLIZER_EPLACE || err == -EACCES;
	st->open_timeouts += err == -ETIMEDOUT;
}

static bool open_is_code(const struct open_job *o)
{
	return o->req.perf_map || o->req.jitdump;
}

/* Most processes have no perf map, which is no failure. */
static void count_open_code(struct symbolizer_stats *st, int err)
{
	st->code_opened += err == 0;
	st->code_refused += err == -SYMBOLIZER_EPLACE || err == -EACCES;
	st->open_timeouts += err == -ETIMEDOUT;
}

/* The caller frees it, unless a worker has it. */
static void open_answer(struct open_job *o, int err)
{
	struct symbolizer_file *file = err ? NULL : o->file;

	TAILQ_REMOVE(&o->s->openings, o, node);
	if (open_is_code(o))
		count_open_code(&o->s->stats, err);
	else
		count_open(&o->s->stats, err);
	if (file)
		o->file = NULL;
	o->fn(o->arg, err, file);
}

static void open_free(struct open_job *o)
{
	symbolizer_file_free(o->file);
	free(o);
}

static int open_submit(struct open_job *o);
static void open_next(struct open_job *o, int err, bool damaged);

/* One way led to the file, or all failed. */
static void open_end(struct open_job *o, int err, bool damaged)
{
	o->s->stats.broken += damaged;
	if (!o->remote.cancelled)
		open_answer(o, err);
	open_free(o);
}

/* --- identifying the file ------------------------------------------------- */

static struct open_job *open_of(struct worker_job *j)
{
	return container_of(j, struct open_job, remote);
}

static int ident_answer(struct worker_job *j, struct worker_in *in)
{
	const struct worker_ident *a = worker_ident(in);
	struct symbolizer_file *f = j->file;

	if (!a)
		return -EPROTO;
	f->damaged = a->a.damaged;
	if (a->a.err)
		return WORKER_DONE;
	free(f->segments);
	f->n_segments = 0;
	f->segments = calloc(a->n + 1, sizeof(*f->segments));
	if (!f->segments)
		return WORKER_DONE; /* as if it had none */
	f->n_segments = a->n;
	memcpy(f->segments, a + 1, a->n * sizeof(*f->segments));
	memcpy(f->ident.build_id, a->build_id, sizeof(f->ident.build_id));
	memcpy(f->ident.file_id, a->file_id, sizeof(f->ident.file_id));
	f->ident.build_id_len = (uint8_t)a->build_id_len;
	f->slot = a->slot;
	f->hashed = a->hashed;
	if (f->hashed)
		symbolizer_content_owned(&f->ident, a->content, f->owner);
	else
		symbolizer_content_alone(&f->ident, &f->own);
	symbolizer_known_add(&open_of(j)->s->known, f);
	return WORKER_DONE;
}

/* Whether it has the build id of the request, if that has one. */
static bool open_has_build_id(const struct open_job *o)
{
	const struct symbolizer_ident *id = &o->file->ident;
	size_t len = o->req.build_id_len;

	return !len || (id->build_id_len == len &&
			memcmp(id->build_id, o->build_id, len) == 0);
}

static void open_identified(struct open_job *o, int err)
{
	bool damaged = o->file->damaged;

	if (!err && !open_has_build_id(o))
		err = -ESTALE;
	if (!err && o->file->own.in & SYMBOLIZER_OWN_DIRS)
		symbolizer_content_alone(&o->file->ident, &o->file->own);
	if (o->remote.cancelled || !err)
		open_end(o, err, damaged);
	else
		open_next(o, err, err != -ESTALE && damaged);
}

static void ident_done(struct worker_job *j, int err)
{
	struct open_job *o = open_of(j);

	o->asked = false;
	open_identified(o, err);
}

static void ident_question(struct worker_job *j, struct worker_question *q)
{
	q->object = j->file->object;
}

static const struct worker_kind ident_kind = {
	.type = WORKER_IDENT,
	.question = ident_question,
	.answer = ident_answer,
	.done = ident_done,
};

/* --- opening it ----------------------------------------------------------- */

static struct symbolizer_file *file_of(const struct open_job *o,
				       const struct symbolizer_stat *st)
{
	struct symbolizer_file *f = symbolizer_file_new();

	if (f)
		f->path = strdup(o->req.path);
	if (!f || !f->path) {
		symbolizer_file_free(f);
		return NULL;
	}
	f->uid = o->req.uid;
	f->hurry = o->hurry;
	f->owner = st->owner;
	f->code = open_is_code(o);
	f->object = o->req.object;
	f->mount = st->mount;
	f->own = st->own;
	f->ident.dev = st->dev;
	f->ident.ino = st->ino;
	f->ident.size = st->size;
	f->ident.mtime_ns = st->mtime_ns;
	f->ident.ctime_ns = st->ctime_ns;
	return f;
}

static void on_open_done(struct opener_job *j, int err,
			 const struct opener_answer *a, int fd)
{
	struct open_job *o = container_of(j, struct open_job, open);
	struct symbolizer *s = o->s;

	if (!err) {
		o->file = file_of(o, &a->st);
		if (!o->file) {
			close(fd);
			err = -ENOMEM;
		}
	}
	if (err == -EBUSY || err == -ETIMEDOUT || err == -ECANCELED) {
		open_end(o, err, false);
		return;
	}
	if (err) {
		open_next(o, err, false);
		return;
	}
	o->file->fd = fd;
	o->file->id = ++s->last_id;
	if (o->file->code) {
		open_end(o, 0, false);
		return;
	}
	if (!workers_quarantined(s->workers, o->file) &&
	    symbolizer_known_get(&s->known, o->file)) {
		s->stats.identified_known++;
		open_identified(o, 0);
		return;
	}
	o->remote.file = o->file;
	o->asked = true;
	if (workers_submit(s->workers, &o->remote))
		ident_done(&o->remote, -ENOMEM);
}

/* This way failed, or led to another file. */
static void open_next(struct open_job *o, int err, bool damaged)
{
	symbolizer_file_free(o->file);
	o->file = NULL;
	/* Later errors replace ENOENT and EPERM, as of an unmapped file. */
	if (o->way == 0 || o->first == -ENOENT || o->first == -EPERM) {
		o->first = err;
		o->damaged = damaged;
	}
	o->stale |= err == -ESTALE;
	if (++o->way == o->n_ways || o->s->freed)
		open_end(o, o->stale ? -ESTALE : o->first, o->damaged);
	else if (open_submit(o))
		open_end(o, -ENOMEM, false);
}

/* Hands the next way to the openers. */
static int open_submit(struct open_job *o)
{
	const struct symbolizer_map_root *root = o->req.root;
	struct opener_question *q;
	int fd = -1;

	q = opener_question(OPENER_FILE, &o->req.path, 1);
	if (!q)
		return -ENOMEM;
	if (root) {
		fd = fcntl(root->fd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0) {
			free(q);
			return -errno;
		}
		q->root_pid = root->pid;
		q->root_uid = root->uid;
	}
	q->way = o->ways[o->way];
	q->pid = o->req.pid;
	q->dev = o->req.dev;
	q->ino = o->req.ino;
	q->generation = o->req.generation;
	q->map_start = o->req.map_start;
	q->map_end = o->req.map_end;
	q->process_start = o->req.process_start;
	o->open = (struct opener_job){
		.dev = o->req.dev,
		.uid = o->req.uid,
		.pid = o->req.pid,
		.first = o->req.by_exe || o->hurry,
		.q = q,
		.fd = fd,
		.done = on_open_done,
	};
	opener_submit(o->s->opener, &o->open);
	return 0;
}

/* --- requests ------------------------------------------------------------- */

/* Answers it now. If a worker has it, ident_done() frees it later. */
static void open_cancel(struct open_job *o)
{
	bool free_it = true;

	if (o->asked)
		free_it = workers_cancel(o->s->workers, &o->remote);
	else
		opener_cancel(o->s->opener, &o->open);
	open_answer(o, -ECANCELED);
	if (free_it)
		open_free(o);
}

static bool open_path_deleted(const char *path)
{
	size_t len = strlen(path), mark = strlen(SYMBOLIZER_DELETED);

	return len > mark && !strcmp(path + len - mark, SYMBOLIZER_DELETED);
}

/* The ways that may lead to the file, in the order in which they are tried. */
static void open_set_ways(struct open_job *o)
{
	const struct symbolizer_open_req *req = &o->req;

	if (req->perf_map) {
		o->ways[o->n_ways++] = SYMBOLIZER_PERF_MAP;
		return;
	}
	if (req->by_exe) {
		o->ways[o->n_ways++] = SYMBOLIZER_BY_EXE;
		return;
	}
	if (req->map_start < req->map_end)
		o->ways[o->n_ways++] = SYMBOLIZER_BY_MAPPING;
	o->ways[o->n_ways++] = SYMBOLIZER_BY_PATH;
	/* Only a build id can prove that this guess is right. */
	if (open_path_deleted(req->path) && req->build_id_len)
		o->ways[o->n_ways++] = SYMBOLIZER_BY_PLAIN_PATH;
}

int symbolizer_open(struct symbolizer *s, const struct symbolizer_open_req *req,
		    symbolizer_open_fn fn, void *arg)
{
	size_t len = strlen(req->path) + 1;
	struct open_job *o = calloc(1, sizeof(*o) + len);

	if (!o)
		return -ENOMEM;
	o->s = s;
	o->req = *req;
	o->req.path = memcpy(o->path, req->path, len);
	o->req.build_id_len = MIN(req->build_id_len, sizeof(o->build_id));
	if (o->req.build_id_len)
		memcpy(o->build_id, req->build_id, o->req.build_id_len);
	o->req.build_id = o->build_id;
	o->hurry = req->hurry ? ++s->hurries : 0;
	open_set_ways(o);
	o->remote.kind = &ident_kind;
	o->fn = fn;
	o->arg = arg;
	if (open_submit(o)) {
		free(o);
		return -ENOMEM;
	}
	o->req.root = NULL; /* a perf map has one way */
	TAILQ_INSERT_TAIL(&s->openings, o, node);
	return 0;
}

void symbolizer_hurry(struct symbolizer *s, struct symbolizer_file *file)
{
	if (!file->hurry)
		file->hurry = ++s->hurries;
}

void symbolizer_hurry_open(struct symbolizer *s, uint64_t dev, uint64_t ino)
{
	struct open_job *o;

	TAILQ_FOREACH(o, &s->openings, node) {
		if (!ino || o->req.dev != dev || o->req.ino != ino || o->hurry)
			continue;
		o->hurry = ++s->hurries;
		if (o->asked)
			o->file->hurry = o->hurry;
		else
			opener_hurry(s->opener, &o->open);
	}
}

void symbolizer_opening_fini(struct symbolizer *s)
{
	struct open_job *o;

	while ((o = TAILQ_FIRST(&s->openings)))
		open_cancel(o);
}

const char *symbolizer_hung(const struct symbolizer *s, size_t i,
			    unsigned int *n)
{
	return opener_hung(s->opener, i, n);
}
