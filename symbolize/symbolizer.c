// SPDX-License-Identifier: Apache-2.0
/*
 * symbolizer: names and unwind rows, on the loop. For files of other processes
 * they come from the worker processes; workers.c has the queue. The kernel's
 * symbols and the vDSO cannot be forged: a thread of the pool reads these, one
 * request at a time and in the order of the requests, so their indexes need no
 * lock.
 *
 * A job that a worker or the pool has cannot be interrupted: a cancelled one is
 * answered at once and freed when it ends. The symbolizer itself is freed with
 * its last job and handle.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/internal.h"
#include "symbolize/rows/rows_hand.h"

/* The defaults of struct symbolizer_opts. */
#define INDEX_BYTES (16U << 20)
#define OPEN_DEADLINE_MS 2000U
#define WORKER_DEADLINE_MS 20000U
#define WORKER_IDLE_MS 30000U
#define WORKER_CPU_S 60U
#define WORKER_MEMORY (256U << 20)
#define RETRY_MS 600000U
#define CACHE_BYTES (256ULL << 20)

struct resolve_job {
	struct file_job job;
	symbolizer_resolve_fn fn;
	void *arg;
	struct symbolizer_answer answer;
	size_t n;
	uint32_t *todo; /* indexes of those to ask a worker for; NULL: all */
	size_t n_todo;
	size_t got; /* of these, received from the worker */
	size_t asked; /* ... before the current question */
	const uint64_t *at; /* n, behind the offsets: for symbolizer_code */
	uint64_t offsets[];
};

void symbolizer_unref(void *arg)
{
	struct symbolizer *s = arg;

	if (--s->refs)
		return;
	symbolizer_file_free(s->kernel);
	symbolizer_file_free(s->vdso);
	symbolizer_hand_free(s->hand);
	symbolizer_known_fini(&s->known);
	free(s->kallsyms);
	free(s);
}

/* --- work on files -------------------------------------------------------- */

static bool is_own(const struct symbolizer *s, const struct symbolizer_file *f)
{
	return f == s->kernel || f == s->vdso;
}

void symbolizer_job_damaged(struct file_job *j, bool damaged)
{
	bool first = damaged && !j->remote.file->damaged;

	j->s->stats.broken += first && !j->remote.file->code;
	j->s->stats.code_cut += first && j->remote.file->code;
	j->remote.file->damaged |= damaged;
}

/* The worker, or the pool, is done with it. */
static void file_end(struct file_job *j, int err)
{
	struct symbolizer_file *file = j->remote.file;

	file->busy = false;
	j->kind->count(j);
	if (file->closed)
		symbolizer_file_free(file);
	if (!j->remote.cancelled)
		j->kind->answer(j, err);
	j->kind->free(j);
}

static void on_file_work(uv_work_t *work)
{
	struct file_job *j = container_of(work, struct file_job, work);

	j->kind->work(j);
}

static void own_start(struct symbolizer *s);

static void on_file_done(uv_work_t *work, int status)
{
	struct file_job *j = container_of(work, struct file_job, work);
	struct symbolizer *s = j->s;

	TAILQ_REMOVE(&s->own, j, node);
	s->own_bytes = symbolizer_file_index_bytes(s->kernel) +
		       symbolizer_file_index_bytes(s->vdso);
	file_end(j, status ? -ECANCELED : j->err);
	if (!s->freed)
		own_start(s);
	symbolizer_unref(s);
}

/* The next job on a file of our own. */
static void own_start(struct symbolizer *s)
{
	struct file_job *j = TAILQ_FIRST(&s->own);

	if (!j || j->running)
		return;
	s->refs++;
	j->running = true;
	uv_queue_work(s->loop, &j->work, on_file_work, on_file_done);
}

void symbolizer_job_done(struct worker_job *r, int err)
{
	struct file_job *j = container_of(r, struct file_job, remote);

	file_end(j, err ? err : j->err);
}

/* The cache on disk was searched. */
static void on_looked(void *arg, struct cache_found *found)
{
	struct file_job *j = arg;

	TAILQ_REMOVE(&j->s->looking, j, node);
	j->lookup = NULL;
	j->kind->found(j, found);
	if (found->hit)
		file_end(j, found->err);
	else if (workers_submit(j->s->workers, &j->remote))
		file_end(j, -ENOMEM);
}

int symbolizer_job_request(struct symbolizer *s, struct file_job *j,
			   struct symbolizer_file *file,
			   const struct file_job_kind *kind,
			   const uint64_t *offsets, size_t n)
{
	j->s = s;
	j->kind = kind;
	j->remote.file = file;
	j->remote.kind = &kind->remote;
	if (is_own(s, file)) {
		TAILQ_INSERT_TAIL(&s->own, j, node);
		own_start(s);
		return 0;
	}
	symbolizer_fetching_renew(s, file);
	/* A JIT's code changes: its names are of a time. */
	j->lookup = file->code ? NULL
			       : cache_look(s->cache, file, kind->entry,
					    offsets, n, on_looked, j);
	if (!j->lookup)
		return workers_submit(s->workers, &j->remote);
	TAILQ_INSERT_TAIL(&s->looking, j, node);
	return 0;
}

static bool own_cancel(struct file_job *j)
{
	j->remote.cancelled = true;
	if (j->running)
		uv_cancel((uv_req_t *)&j->work);
	else
		TAILQ_REMOVE(&j->s->own, j, node);
	return !j->running;
}

static bool look_cancel(struct file_job *j)
{
	TAILQ_REMOVE(&j->s->looking, j, node);
	cache_cancel(j->lookup);
	return true;
}

/* Answers it now. If a worker or the pool has it, file_end() frees it. */
static void file_cancel(struct file_job *j)
{
	struct symbolizer *s = j->s;
	bool free_it = is_own(s, j->remote.file) ? own_cancel(j)
		       : j->lookup		 ? look_cancel(j)
				   : workers_cancel(s->workers, &j->remote);

	j->remote.file->busy |= !free_it;
	j->kind->answer(j, -ECANCELED);
	if (free_it)
		j->kind->free(j);
}

/* Jobs on 'file'; NULL: all, except for the kernel and the vDSO. */
static void file_cancel_all(struct symbolizer *s, struct symbolizer_file *file)
{
	struct worker_job *r;
	struct file_job *j;

	do {
		TAILQ_FOREACH(j, &s->looking, node)
			if (!file || j->remote.file == file)
				break;
		if (j)
			file_cancel(j);
	} while (j);
	while ((r = workers_pending(s->workers, file)))
		file_cancel(container_of(r, struct file_job, remote));
}

static void own_cancel_all(struct symbolizer *s)
{
	struct file_job *j;

	while ((j = TAILQ_LAST(&s->own, own_jobs)) && !j->remote.cancelled)
		file_cancel(j);
}

void symbolizer_close(struct symbolizer *s, struct symbolizer_file *file)
{
	if (!file)
		return;
	file->closed = true;
	file_cancel_all(s, file);
	if (!file->busy)
		symbolizer_file_free(file);
}

/* --- names ---------------------------------------------------------------- */

static struct resolve_job *resolve_of(struct file_job *j)
{
	return container_of(j, struct resolve_job, job);
}

static struct resolve_job *resolve_of_remote(struct worker_job *j)
{
	return resolve_of(container_of(j, struct file_job, remote));
}

/* How many are left; no more than one question has room for. */
static size_t resolve_next(const struct resolve_job *r, size_t from)
{
	size_t max = r->at ? WORKER_NAMES_MAX / 2 : WORKER_NAMES_MAX;

	return MIN(r->n_todo - from, max);
}

static void resolve_ask_code(const struct resolve_job *r,
			     struct worker_question *q)
{
	struct symbolizer_code *codes = (void *)(q + 1);
	size_t n = resolve_next(r, r->got);

	for (size_t i = 0; i < n; i++)
		codes[i] = (struct symbolizer_code){ r->offsets[r->got + i],
						     r->at[r->got + i] };
	q->n = (uint32_t)(2 * n);
	q->code = 1;
}

/* The index of the i-th offset to ask a worker for. */
static size_t resolve_index(const struct resolve_job *r, size_t i)
{
	return r->todo ? r->todo[i] : i;
}

static int resolve_compare(const void *a, const void *b, void *arg)
{
	const uint64_t *offsets = arg;
	uint64_t x = offsets[*(const uint32_t *)a];
	uint64_t y = offsets[*(const uint32_t *)b];

	return x < y ? -1 : x > y;
}

/*
 * What takes several questions is asked in the order of addresses: the worker then
 * reads each compile unit of a large file for one of them only. Without memory the
 * order is that of the request.
 */
static void resolve_sort(struct resolve_job *r)
{
	if (r->n_todo <= WORKER_NAMES_MAX || r->n > UINT32_MAX)
		return;
	if (!r->todo) {
		r->todo = malloc(r->n_todo * sizeof(*r->todo));
		for (size_t i = 0; r->todo && i < r->n_todo; i++)
			r->todo[i] = (uint32_t)i;
	}
	if (r->todo)
		qsort_r(r->todo, r->n_todo, sizeof(*r->todo), resolve_compare,
			r->offsets);
}

/* Asks for addresses: the worker does not know the segments. */
static void resolve_question(struct worker_job *j, struct worker_question *q)
{
	struct resolve_job *r = resolve_of_remote(j);
	uint64_t *vaddrs = (uint64_t *)(q + 1);

	r->asked = r->got;
	q->object = j->file->object;
	q->written = j->file->written;
	if (r->at) {
		resolve_ask_code(r, q);
		return;
	}
	if (!r->got)
		resolve_sort(r);
	q->n = (uint32_t)resolve_next(r, r->got);
	for (uint32_t i = 0; i < q->n; i++)
		vaddrs[i] = symbolizer_file_vaddr(
			j->file, r->offsets[resolve_index(r, r->got + i)]);
}

/* Takes the next name, also into 'keep' if not NULL. False: it is invalid. */
static bool resolve_take(struct resolve_job *r, struct worker_cursor *c,
			 struct cache_item *keep)
{
	size_t i = resolve_index(r, r->got);
	struct symbolizer_symbol *sym = &r->answer.syms[i];

	sym->offset = r->offsets[i];
	sym->vaddr = symbolizer_file_vaddr(r->job.remote.file, sym->offset);
	if (!worker_name_next(c, sym->vaddr, sym))
		return false;
	r->got++;
	/* symbolizer_answer_keep() may leave out the functions. */
	if (keep)
		cache_keep_name(r->job.s->cache, keep, sym);
	r->answer.tally.unnamed += !sym->nfunctions;
	r->answer.tally.resolved++;
	/* Without memory it has no name. */
	symbolizer_answer_keep(&r->answer, sym);
	return true;
}

/* What the names of an answer are added to for the cache on disk; or NULL. */
static struct cache_item *resolve_keep(const struct resolve_job *r,
				       const struct worker_names *a)
{
	const struct symbolizer_file *f = r->job.remote.file;

	if (!a->n || a->a.undemangled || r->at ||
	    symbolizer_fetching_file(r->job.s, f))
		return NULL;
	return cache_keep_names(r->job.s->cache, f);
}

/* Takes the names of an answer. False: it is invalid. */
static bool resolve_take_all(struct resolve_job *r,
			     const struct worker_names *a, const uint8_t *end)
{
	struct worker_cursor c = { .p = (const uint8_t *)(a + 1), .end = end };
	struct cache_item *keep = resolve_keep(r, a);
	bool ok = true;

	for (uint32_t i = 0; i < a->n && ok; i++)
		ok = resolve_take(r, &c, keep);
	if (keep)
		cache_keep_end(r->job.s->cache);
	return ok && c.p == c.end;
}

static int resolve_on_answer(struct worker_job *j, struct worker_in *in)
{
	struct resolve_job *r = resolve_of_remote(j);
	size_t end = r->asked + resolve_next(r, r->asked);
	const struct worker_names *a = worker_names(in);

	if (!a)
		return -EPROTO;
	symbolizer_job_damaged(&r->job, a->a.damaged);
	if (a->a.err)
		return WORKER_DONE;
	if (a->first != r->got - r->asked || a->n > end - r->got ||
	    (!a->n && r->got < end))
		return -EPROTO;
	if (!resolve_take_all(r, a, in->bytes + in->len))
		return -EPROTO;
	if (r->got < end)
		return WORKER_MORE;
	return r->got < r->n_todo ? WORKER_AGAIN : WORKER_DONE;
}

static void resolve_found(struct file_job *j, struct cache_found *found)
{
	struct resolve_job *r = resolve_of(j);

	if (!found->missing)
		return; /* none was found */
	symbolizer_answer_fini(&r->answer);
	r->answer = found->answer;
	r->todo = found->missing;
	r->n_todo = found->n_missing;
	memset(&found->answer, 0, sizeof(found->answer));
	found->missing = NULL;
}

static void resolve_work(struct file_job *j)
{
	struct resolve_job *r = resolve_of(j);

	j->err = symbolizer_file_resolve(j->remote.file, NULL, r->offsets,
					 r->at, r->n, &r->answer);
}

static void resolve_count(struct file_job *j)
{
	const struct symbolizer_tally *t = &resolve_of(j)->answer.tally;
	struct symbolizer_stats *st = &j->s->stats;

	st->resolved += t->resolved;
	st->unnamed += t->unnamed;
	st->broken += t->broken;
	st->index_built += t->built;
	st->kallsyms_hidden += t->hidden;
	st->undemangled += t->undemangled;
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
	free(r->todo);
	free(r);
}

static const struct file_job_kind resolve_kind = {
	{ WORKER_NAMES, resolve_question, resolve_on_answer,
	  symbolizer_job_done },
	resolve_work,
	ENTRY_NAMES,
	resolve_found,
	resolve_count,
	resolve_answer,
	resolve_free,
};

/* With room for 'n' numbers; NULL: no memory. */
static struct resolve_job *resolve_new(size_t n)
{
	struct resolve_job *r;
	size_t bytes;

	if (__builtin_mul_overflow(n, sizeof(*r->offsets), &bytes) ||
	    __builtin_add_overflow(bytes, sizeof(*r), &bytes))
		return NULL;
	r = calloc(1, bytes);
	if (r)
		arena_init(&r->answer.names);
	return r;
}

/* Takes over 'r', which may be NULL. */
static int resolve_submit(struct symbolizer *s, struct resolve_job *r,
			  struct symbolizer_file *file, size_t n,
			  symbolizer_resolve_fn fn, void *arg)
{
	int err = r ? 0 : -ENOMEM;

	if (err)
		return err;
	/* In the pool symbolizer_file_resolve() allocates them. */
	if (!is_own(s, file)) {
		r->answer.syms = calloc(n + 1, sizeof(*r->answer.syms));
		err = r->answer.syms ? 0 : -ENOMEM;
	}
	r->fn = fn;
	r->arg = arg;
	r->n = r->n_todo = n;
	if (!err)
		err = symbolizer_job_request(s, &r->job, file, &resolve_kind,
					     r->at ? NULL : r->offsets,
					     r->at ? 0 : n);
	if (err)
		resolve_free(&r->job);
	return err;
}

int symbolizer_resolve(struct symbolizer *s, struct symbolizer_file *file,
		       const uint64_t *offsets, size_t n,
		       symbolizer_resolve_fn fn, void *arg)
{
	struct resolve_job *r = resolve_new(n);

	if (r && n)
		memcpy(r->offsets, offsets, n * sizeof(*offsets));
	return resolve_submit(s, r, file, n, fn, arg);
}

int symbolizer_resolve_code(struct symbolizer *s, struct symbolizer_file *file,
			    const struct symbolizer_code *codes, size_t n,
			    symbolizer_resolve_fn fn, void *arg)
{
	struct resolve_job *r = n <= SIZE_MAX / 2 ? resolve_new(2 * n) : NULL;

	for (size_t i = 0; r && i < n; i++) {
		r->offsets[i] = codes[i].addr;
		r->offsets[n + i] = codes[i].at;
	}
	if (r)
		r->at = r->offsets + n;
	return resolve_submit(s, r, file, n, fn, arg);
}

/* --- interface ------------------------------------------------------------ */

static int start_workers(struct symbolizer *s,
			 const struct symbolizer_opts *opts)
{
	struct workers_opts w = {
		.worker = {
			.loop = s->loop,
			.program = opts->worker ?: symbolizer_program(),
			.debug_dirs = s->debug_dirs,
			.missed = symbolizer_fetching_missed,
			.missed_arg = s,
			.store = &symbolizer_units,
			.store_arg = s,
			.memory = opts->worker_memory ?: WORKER_MEMORY,
			.cpu_s = opts->worker_cpu_s ?: WORKER_CPU_S,
			.deadline_ms = opts->worker_deadline_ms
					       ?: WORKER_DEADLINE_MS,
			.idle_ms = opts->worker_idle_ms ?: WORKER_IDLE_MS,
			.stats = &s->stats,
			.undemangled = opts->undemangled,
			.quarantined = opts->quarantined,
			.names_wait = opts->names_wait,
			.report_arg = opts->arg,
		},
		.index_ceiling = opts->index_bytes ?: INDEX_BYTES,
		.index_used = &s->own_bytes,
		.retry_ms = opts->retry_ms ?: RETRY_MS,
		.closed = symbolizer_unref,
		.arg = s,
	};
	struct opener_opts o = {
		.loop = s->loop,
		.program = opts->opener ?: symbolizer_program(),
		.deadline_ms = opts->open_deadline_ms ?: OPEN_DEADLINE_MS,
		.stats = &s->stats,
		.closed = symbolizer_unref,
		.arg = s,
	};
	int err = opener_new(&s->opener, &o);

	s->refs += !err;
	if (err)
		return err;
	w.worker.opener = s->opener;
	err = workers_new(&s->workers, &w);
	s->refs += !err;
	return err;
}

/* Without it everything else works. */
static void start_cache(struct symbolizer *s,
			const struct symbolizer_opts *opts)
{
	const struct cache_opts o = {
		.loop = s->loop,
		.dir = opts->cache,
		.bytes = opts->cache_bytes ?: CACHE_BYTES,
		.debug_dirs = s->debug_dirs,
		.known = &s->known,
		.stats = &s->stats,
		.failed = opts->cache_failed,
		.failed_arg = opts->arg,
		.closed = symbolizer_unref,
		.arg = s,
	};
	int err = opts->cache ? cache_new(&s->cache, &o) : 0;

	s->refs += s->cache != NULL;
	s->stats.cache_failed += err != 0;
	if (err && opts->cache_failed)
		opts->cache_failed(opts->arg, err);
}

int symbolizer_new(struct symbolizer **sp, const struct symbolizer_opts *opts)
{
	struct symbolizer *s;
	int err = -ENOMEM;

	/* Set in workers: a program that does not check would fork for ever. */
	if (getenv(SYMBOLIZER_WORKER_ENV))
		return -ELOOP;
	s = calloc(1, sizeof(*s));
	if (!s)
		return -ENOMEM;
	s->loop = opts->loop;
	s->refs = 1;
	TAILQ_INIT(&s->openings);
	TAILQ_INIT(&s->own);
	TAILQ_INIT(&s->looking);
	s->kallsyms = strdup(opts->kallsyms ?: "/proc/kallsyms");
	if (s->kallsyms && !symbolizer_known_init(&s->known))
		err = symbolizer_file_kernel(&s->kernel, s->kallsyms);
	if (!err)
		err = symbolizer_file_vdso(&s->vdso);
	if (!err)
		err = symbolizer_fetching_dirs(s, opts);
	if (!err)
		err = start_workers(s, opts);
	if (!err) {
		start_cache(s, opts);
		symbolizer_fetching_start(s, opts, symbolizer_program());
	}
	if (err) {
		symbolizer_free(s);
		return err;
	}
	*sp = s;
	return 0;
}

void symbolizer_free(struct symbolizer *s)
{
	if (!s)
		return;
	s->freed = true;
	symbolizer_opening_fini(s);
	own_cancel_all(s);
	file_cancel_all(s, NULL);
	workers_free(s->workers);
	opener_free(s->opener);
	fetch_free(s->fetch);
	cache_free(s->cache);
	symbolizer_unref(s);
}

void symbolizer_kernel_changed(struct symbolizer *s)
{
	__atomic_store_n(&s->kernel->ksyms_changed, clock_boottime_ns(),
			 __ATOMIC_RELAXED);
}

static void kernel_read(void *arg, int err,
			const struct symbolizer_symbol *syms, size_t n)
{
}

void symbolizer_kernel_modules(struct symbolizer *s)
{
	__atomic_store_n(&s->kernel->ksyms_modules, clock_boottime_ns(),
			 __ATOMIC_RELAXED);
	/* Without memory the next request of a name reads them. */
	symbolizer_resolve(s, s->kernel, NULL, 0, kernel_read, NULL);
}

struct symbolizer_file *symbolizer_kernel(struct symbolizer *s)
{
	return s->kernel;
}

struct symbolizer_file *symbolizer_vdso(struct symbolizer *s)
{
	return s->vdso;
}

void symbolizer_get_stats(const struct symbolizer *s,
			  struct symbolizer_stats *out)
{
	*out = s->stats;
	out->index_bytes += s->own_bytes;
}

void symbolizer_shed(struct symbolizer *s, unsigned int halvings)
{
	workers_shed(s->workers, halvings);
}

void symbolizer_worker_status(const struct symbolizer *s, char *buf, size_t len)
{
	workers_status(s->workers, buf, len);
}

const char *symbolizer_quarantine(const struct symbolizer *s,
				  const struct symbolizer_ident *id)
{
	struct symbolizer_quarantined q;

	return quarantine_get(workers_quarantine(s->workers), id, &q) ? q.text
								      : NULL;
}

bool symbolizer_quarantined(const struct symbolizer *s, size_t i,
			    struct symbolizer_quarantined *out)
{
	return quarantine_at(workers_quarantine(s->workers), i, out);
}

size_t symbolizer_quarantined_now(const struct symbolizer *s)
{
	return quarantine_count(workers_quarantine(s->workers));
}

const uint64_t *symbolizer_quarantined_by(const struct symbolizer *s)
{
	return workers_quarantine(s->workers)->counts;
}
