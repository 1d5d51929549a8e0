// SPDX-License-Identifier: Apache-2.0
/*
 * catalog: see reporter/catalog/catalog.h. This file: batches of rows, made on the
 * loop, and the jobs that write them.
 *
 * Batches are written in the order in which they were made, by whoever comes first: a
 * job of the catalog or that of a window. A batch that cannot be written is kept, and
 * written later, as long as there is memory for it.
 *
 * A parent is added before its first child that ends, so that the row of a child can
 * have the row of its parent.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/catalog/internal.h"

/* Some 1,500 processes, which take 20 ms to write. */
#define CATALOG_BATCH_BYTES (1U << 20)
#define CATALOG_PENDING_BYTES (8U << 20)
#define CATALOG_ANCESTORS 32
/* A second and at once, of a user: processes without samples, and changes. */
#define CATALOG_ROWS_RATE 1000
#define CATALOG_ROWS_BURST 4000
#define CATALOG_CHANGES_RATE 1
#define CATALOG_CHANGES_BURST 2000
#define CATALOG_PAUSE_MS 20 /* between windows that are read again */
/* Of the file, if the archive has no limit; else a quarter of that. */
#define CATALOG_BYTES (1ULL << 30)
/* Removed windows whose rows are still there: retention's steps, some times. */
#define CATALOG_REMOVALS 8192

static void catalog_batch_free(struct catalog_batch *b)
{
	if (!b)
		return;
	arena_fini(&b->arena);
	free(b);
}

static void catalog_batches_free(struct catalog_batches *list)
{
	struct catalog_batch *b;

	while ((b = STAILQ_FIRST(list))) {
		STAILQ_REMOVE_HEAD(list, entry);
		catalog_batch_free(b);
	}
}

/* --- writing, on pool threads ---------------------------------------------------- */

static size_t catalog_take(struct catalog *c, struct catalog_batches *taken)
{
	const struct catalog_batch *b;
	size_t n = 0;

	pthread_mutex_lock(&c->mutex);
	STAILQ_INIT(taken);
	STAILQ_CONCAT(taken, &c->pending);
	pthread_mutex_unlock(&c->mutex);
	STAILQ_FOREACH(b, taken, entry)
		n += b->n;
	return n;
}

/* The rows of windows whose files were removed. */
static int catalog_write_removed(struct catalog *c)
{
	struct catalog_removals removed = STAILQ_HEAD_INITIALIZER(removed);
	struct catalog_removal *r;
	int err = 0;

	pthread_mutex_lock(&c->mutex);
	STAILQ_CONCAT(&removed, &c->removed);
	c->nremoved = 0;
	pthread_mutex_unlock(&c->mutex);
	while ((r = STAILQ_FIRST(&removed))) {
		STAILQ_REMOVE_HEAD(&removed, entry);
		if (!err)
			err = catalog_windows_remove(&c->db, r->file);
		free(r);
	}
	return err;
}

/* What was not given a row since the last window; NULL: no memory. */
static struct catalog_rest *catalog_take_rest(struct catalog *c)
{
	struct catalog_rest *rest = malloc(sizeof(*rest));

	if (!rest)
		return NULL;
	pthread_mutex_lock(&c->mutex);
	*rest = c->rest;
	catalog_rest_clear(&c->rest);
	pthread_mutex_unlock(&c->mutex);
	return rest;
}

/* It is written with another window. */
static void catalog_put_rest(struct catalog *c, const struct catalog_rest *rest)
{
	pthread_mutex_lock(&c->mutex);
	for (size_t i = 0; i < rest->n; i++)
		catalog_rest_add(&c->rest, &rest->programs[i]);
	pthread_mutex_unlock(&c->mutex);
}

static uint64_t catalog_limit(const struct catalog *c)
{
	return c->opts.bytes ? c->opts.bytes / 4 : CATALOG_BYTES;
}

static int catalog_write_taken(struct catalog *c,
			       const struct catalog_batches *taken,
			       const struct catalog_window *w)
{
	struct catalog_db *db = &c->db;
	const struct catalog_batch *b;
	struct catalog_rest *rest;
	int err = db->converting	   ? -EINPROGRESS
		  : catalog_db_stalled(db) ? -EAGAIN
					   : 0;

	db->texts_limit = catalog_limit(c) / 2;
	if (!err)
		err = catalog_db_run(db, CATALOG_BEGIN, NULL);
	if (err) {
		/* Its rows are made of its file. */
		db->fresh |= w != NULL;
		return err;
	}
	STAILQ_FOREACH(b, taken, entry) {
		err = catalog_rows_write(db, b, c->opts.freq_hz);
		if (!err)
			err = catalog_rows_changes(db, b);
		if (err)
			break;
	}
	rest = !err && w ? catalog_take_rest(c) : NULL;
	if (!err && w)
		err = rest ? catalog_windows_add(db, w, rest) : -ENOMEM;
	if (!err)
		err = catalog_write_removed(c);
	if (!err)
		err = catalog_texts_flush(db);
	if (!err)
		err = catalog_keep_prune(db, catalog_limit(c));
	if (!err)
		err = catalog_db_alive(db, c->ends);
	if (!err)
		err = catalog_db_run(db, CATALOG_COMMIT, NULL);
	if (err && rest)
		catalog_put_rest(c, rest);
	free(rest);
	/* What is missing, or too much, is found when they are compared again. */
	db->fresh |= err != 0;
	/* Some errors have rolled it back already. */
	if (err && !sqlite3_get_autocommit(db->sql))
		catalog_db_run(db, CATALOG_ROLLBACK, NULL);
	if (err)
		catalog_texts_forget(db);
	return err;
}

static int catalog_try(struct catalog *c, const struct catalog_batches *taken,
		       const struct catalog_window *w)
{
	int err = 0;

	catalog_db_check(&c->db, c->dir);
	if (!c->db.sql)
		err = catalog_db_open(&c->db, c->dir, &c->run);
	return err ? err : catalog_write_taken(c, taken, w);
}

/* After the attempt to write 'n' processes, and perhaps a window. */
static void catalog_wrote(struct catalog *c, struct catalog_batches *taken,
			  size_t n, bool window, int err)
{
	struct catalog_stats now = { 0 };
	struct catalog_batches rest;
	const struct catalog_batch *b;
	pid_t reader = err == -EAGAIN ? catalog_db_reader(&c->db, c->dir) : 0;

	if (!err)
		catalog_keep_vacuum(&c->db);
	if (c->db.sql)
		catalog_db_checkpoint(&c->db, &now.catalog_bytes,
				      &now.catalog_wal_bytes);
	pthread_mutex_lock(&c->mutex);
	c->err = err;
	c->reader = reader;
	c->stats.catalog_bytes = now.catalog_bytes;
	c->stats.catalog_wal_bytes = now.catalog_wal_bytes;
	c->stats.catalog_set_aside = c->db.set_aside;
	c->stats.catalog_texts_skipped = c->db.texts_skipped;
	c->stats.catalog_stopped = err != 0;
	c->rebuild |= c->db.converting || (!err && c->db.fresh);
	if (err) {
		c->stats.catalog_failed += err != -EINPROGRESS;
		rest = (struct catalog_batches)STAILQ_HEAD_INITIALIZER(rest);
		STAILQ_CONCAT(&rest, taken);
		STAILQ_CONCAT(&rest, &c->pending);
		STAILQ_CONCAT(&c->pending, &rest);
	} else {
		c->stats.catalog_processes += n;
		c->stats.catalog_windows += window;
		STAILQ_FOREACH(b, taken, entry)
			c->pending_bytes -= b->arena.bytes;
	}
	pthread_mutex_unlock(&c->mutex);
	if (!err)
		catalog_batches_free(taken);
}

static void catalog_write(struct catalog *c, const struct catalog_window *w)
{
	struct catalog_batches taken;
	size_t n;
	int err;

	pthread_mutex_lock(&c->writer);
	n = catalog_take(c, &taken);
	err = catalog_try(c, &taken, w);
	if (err == -EBADMSG) {
		catalog_db_set_aside(&c->db, c->dir);
		err = catalog_try(c, &taken, w);
	}
	if (w)
		c->tried_ns = MAX(c->tried_ns, w->begin_ns);
	catalog_wrote(c, &taken, n, w, err);
	pthread_mutex_unlock(&c->writer);
}

void catalog_add_window(struct catalog *c, const struct catalog_window *w)
{
	catalog_write(c, w);
}

void catalog_removed(struct catalog *c, const struct store_window *w)
{
	struct catalog_removal *r = malloc(sizeof(*r));

	if (!r)
		return;
	catalog_windows_name(r->file, w);
	pthread_mutex_lock(&c->mutex);
	if (c->nremoved < CATALOG_REMOVALS) {
		STAILQ_INSERT_TAIL(&c->removed, r, entry);
		c->nremoved++;
		r = NULL;
	}
	pthread_mutex_unlock(&c->mutex);
	/* Too many: their rows go at the next start. */
	free(r);
}

/* --- jobs -------------------------------------------------------------------------- */

static void catalog_job_run(uv_work_t *work)
{
	struct catalog_job *job = work->data;

	catalog_write(job->c, NULL);
}

static void catalog_job_close(uv_work_t *work)
{
	struct catalog *c = ((struct catalog_job *)work->data)->c;

	c->ends = true;
	catalog_write(c, NULL);
	pthread_mutex_lock(&c->writer);
	catalog_db_close(&c->db);
	pthread_mutex_unlock(&c->writer);
}

static void catalog_job_rebuild(uv_work_t *work)
{
	catalog_rebuild_step(((struct catalog_job *)work->data)->c);
}

static void catalog_rebuild_soon(struct catalog *c);

static void catalog_job_done(uv_work_t *work, int status)
{
	struct catalog_job *job = work->data;
	struct catalog *c = job->c;

	c->queued = false;
	free(job);
	catalog_rebuild_soon(c);
	c->opts.job(c->opts.arg, true);
}

static void catalog_queue(struct catalog *c, uv_work_cb run)
{
	struct catalog_job *job = calloc(1, sizeof(*job));

	/* What is pending is written with the next window. */
	if (!job)
		return;
	job->c = c;
	job->work.data = job;
	c->queued = true;
	c->opts.job(c->opts.arg, false);
	/* Fails only if given no function. */
	uv_queue_work(c->opts.loop, &job->work, run, catalog_job_done);
}

static void catalog_on_timer(uv_timer_t *timer)
{
	struct catalog *c = timer->data;

	if (!c->queued)
		catalog_queue(c, catalog_job_rebuild);
}

/* If something is missing, one step after a pause: it may take a part of a CPU. */
static void catalog_rebuild_soon(struct catalog *c)
{
	bool rebuild;

	pthread_mutex_lock(&c->mutex);
	rebuild = c->rebuild;
	pthread_mutex_unlock(&c->mutex);
	if (rebuild && !c->stopped)
		uv_timer_start(&c->timer, catalog_on_timer, CATALOG_PAUSE_MS,
			       0);
}

/* --- batches, on the loop ------------------------------------------------------------ */

/* Hands the open batch over. */
static void catalog_push(struct catalog *c)
{
	struct catalog_batch *b = c->open;

	if (!b)
		return;
	c->open = NULL;
	pthread_mutex_lock(&c->mutex);
	STAILQ_INSERT_TAIL(&c->pending, b, entry);
	c->pending_bytes += b->arena.bytes;
	pthread_mutex_unlock(&c->mutex);
}

/* The open batch; NULL: there is no memory for more. */
static struct catalog_batch *catalog_batch(struct catalog *c)
{
	size_t bytes;

	pthread_mutex_lock(&c->mutex);
	bytes = c->pending_bytes;
	pthread_mutex_unlock(&c->mutex);
	if (bytes >= CATALOG_PENDING_BYTES)
		return NULL;
	if (c->open)
		return c->open;
	c->open = calloc(1, sizeof(*c->open));
	if (!c->open)
		return NULL;
	STAILQ_INIT(&c->open->processes);
	STAILQ_INIT(&c->open->changes);
	return c->open;
}

static struct catalog_known *catalog_find(const struct catalog *c, uint32_t pid,
					  uint64_t start)
{
	struct catalog_known *k;

	HASH_FIND(k, &c->known, hash_mix(pid, start), node,
		  k->pid == pid && k->start == start);
	return k;
}

/* It has a row with these values. */
static void catalog_know(struct catalog *c, const struct pm_process_info *p,
			 uint64_t serial)
{
	struct catalog_known *k = catalog_find(c, p->pid, p->start);

	if (!k) {
		k = calloc(1, sizeof(*k));
		/* Then it is written more often than necessary. */
		if (!k)
			return;
		k->pid = p->pid;
		k->start = p->start;
		hash_insert(&c->known, &k->node, hash_mix(p->pid, p->start));
	}
	k->end = p->end;
	k->samples = p->samples;
	k->serial = serial;
	k->turn = c->turn;
}

static void catalog_forget(struct catalog *c, struct catalog_known *k)
{
	hash_remove(&c->known, &k->node);
	free(k);
}

static void catalog_push_full(struct catalog *c)
{
	if (c->open->arena.bytes < CATALOG_BATCH_BYTES)
		return;
	catalog_push(c);
	if (!c->queued && !c->stopped)
		catalog_queue(c, catalog_job_run);
}

/* Adds a row for a process as it is now. */
static bool catalog_put(struct catalog *c, const struct pm_image *newest,
			bool update)
{
	struct catalog_batch *b = catalog_batch(c);
	struct catalog_process *p =
		b ? catalog_pack(&b->arena, c->opts.args, newest, update)
		  : NULL;

	if (!p) {
		pthread_mutex_lock(&c->mutex);
		c->stats.catalog_dropped++;
		pthread_mutex_unlock(&c->mutex);
		return false;
	}
	STAILQ_INSERT_TAIL(&b->processes, p, entry);
	b->n++;
	catalog_push_full(c);
	return true;
}

/* The ancestors that have no row yet, the oldest first. */
static void catalog_put_parents(struct catalog *c, const struct pm_image *img)
{
	const struct pm_image *chain[CATALOG_ANCESTORS];
	struct pm_image_info info;
	struct pm_process_info p;
	struct abi_key key;
	size_t n = 0;

	pm_process_info(img, &p);
	while (n < CATALOG_ANCESTORS && catalog_id_parse(p.parent_id, &key) &&
	       !catalog_find(c, key.tgid, key.start_boottime)) {
		chain[n] = pm_newest(c->opts.pm, &key);
		if (!chain[n])
			break;
		pm_process_info(chain[n++], &p);
	}
	while (n-- > 0) {
		pm_process_info(chain[n], &p);
		pm_image_info(chain[n], &info);
		if (catalog_put(c, chain[n], false))
			catalog_know(c, &p, info.serial);
	}
}

/* Whether a process without samples, and without a row, may have one. */
static bool catalog_may(struct catalog *c, const struct pm_image *last,
			const struct pm_process_info *p)
{
	struct catalog_rest_program one;
	struct pm_image_info info;

	pm_image_info(last, &info);
	if (catalog_budget_take(&c->budget, info.uid,
				p->exit ? p->exit : clock_boottime_ns()))
		return true;
	one = (struct catalog_rest_program){
		.uid = info.uid,
		.count = 1,
		.failed = p->wait_status && p->wait_status != PM_STATUS_UNKNOWN,
		.cpu_ns = p->cpu_ns,
	};
	snprintf(one.comm, sizeof(one.comm), "%s", info.comm ?: "");
	snprintf(one.exe, sizeof(one.exe), "%s", info.exe ?: "");
	pthread_mutex_lock(&c->mutex);
	catalog_rest_add(&c->rest, &one);
	c->stats.catalog_skipped++;
	pthread_mutex_unlock(&c->mutex);
	if (c->opts.limited)
		c->opts.limited(c->opts.arg, info.uid);
	return false;
}

void catalog_ended(struct catalog *c, const struct pm_image *last)
{
	struct catalog_known *k;
	struct pm_process_info p;

	if (c->stopped)
		return;
	pm_process_info(last, &p);
	k = catalog_find(c, p.pid, p.start);
	if (!k && !p.samples && !catalog_may(c, last, &p))
		return;
	catalog_put_parents(c, last);
	catalog_put(c, last, false);
	if (k)
		catalog_forget(c, k);
}

static bool catalog_may_change(struct catalog *c, const struct quark_event *ev)
{
	/* No process has this user: of gaps. */
	uint32_t uid = ev->process ? ev->process->proc_uid : UINT32_MAX;

	return catalog_budget_take(&c->changes, uid, ev->boottime);
}

void catalog_event(struct catalog *c, const struct quark_event *ev)
{
	uint32_t kinds[CATALOG_CHANGE_KINDS];
	struct catalog_change *change;
	struct catalog_batch *b;
	size_t n = c->stopped ? 0 : catalog_change_kinds(ev, kinds);

	for (size_t i = 0; i < n; i++) {
		b = catalog_may_change(c, ev) ? catalog_batch(c) : NULL;
		change =
			b ? catalog_pack_change(&b->arena, ev, kinds[i]) : NULL;
		if (change) {
			STAILQ_INSERT_TAIL(&b->changes, change, entry);
			catalog_push_full(c);
			continue;
		}
		pthread_mutex_lock(&c->mutex);
		c->stats.catalog_changes_skipped++;
		pthread_mutex_unlock(&c->mutex);
	}
}

/* Adds a row if its row does not have its state. */
static void catalog_look(struct catalog *c, const struct pm_image *img)
{
	struct catalog_known *k;
	struct pm_image_info info;
	struct pm_process_info p;

	pm_process_info(img, &p);
	pm_image_info(img, &info);
	k = catalog_find(c, p.pid, p.start);
	if (k && !c->first && k->end == p.end && k->samples == p.samples &&
	    k->serial == info.serial) {
		k->turn = c->turn;
		return;
	}
	if (!k)
		catalog_put_parents(c, img);
	if (catalog_put(c, img, k && !c->first))
		catalog_know(c, &p, info.serial);
}

static void catalog_sweep(struct catalog *c)
{
	struct hash_node *n, *tmp;
	struct catalog_known *k;
	size_t i;

	hash_for_each(&c->known, i, n, tmp) {
		k = container_of(n, struct catalog_known, node);
		if (k->turn != c->turn)
			catalog_forget(c, k);
	}
}

void catalog_snapshot(struct catalog *c, bool alone)
{
	struct catalog_batch *b;
	struct pm_image *img;
	struct pm_iter it;

	if (c->stopped)
		return;
	if (!c->turn++) {
		catalog_push(c);
		c->first = true;
		b = catalog_batch(c);
		if (b)
			b->vanish = true;
	}
	pm_iter_init(&it, c->opts.pm, true);
	while ((img = pm_iter_next(&it)))
		catalog_look(c, img);
	catalog_sweep(c);
	catalog_push(c);
	c->first = false;
	if (alone && !c->queued)
		catalog_queue(c, catalog_job_run);
	else
		catalog_rebuild_soon(c);
}

/* --- the object ------------------------------------------------------------------------ */

int catalog_new(struct catalog **cp, const struct catalog_opts *opts)
{
	struct catalog *c = calloc(1, sizeof(*c));

	if (!c)
		return -ENOMEM;
	/* Its counts of memory cost a lock at each allocation. */
	sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
	c->opts = *opts;
	c->opts.dir = NULL;
	c->dir = strdup(opts->dir);
	if (!c->dir || hash_init(&c->known, 0)) {
		free(c->dir);
		free(c);
		return -ENOMEM;
	}
	STAILQ_INIT(&c->pending);
	STAILQ_INIT(&c->removed);
	if (uv_timer_init(opts->loop, &c->timer)) {
		hash_fini(&c->known);
		free(c->dir);
		free(c);
		return -ENOMEM;
	}
	c->timer.data = c;
	c->run = (struct catalog_run){
		.boot_id = c->opts.boot_id,
		.version = opts->version,
		.freq_hz = opts->freq_hz,
		.start_boot_ns = clock_boottime_ns(),
	};
	c->run.start_ns =
		(int64_t)c->run.start_boot_ns + clock_wall_offset_ns();
	c->budget.rate = CATALOG_ROWS_RATE;
	c->budget.burst = CATALOG_ROWS_BURST;
	c->changes.rate = CATALOG_CHANGES_RATE;
	c->changes.burst = CATALOG_CHANGES_BURST;
	pthread_mutex_init(&c->mutex, NULL);
	pthread_mutex_init(&c->writer, NULL);
	catalog_queue(c, catalog_job_run);
	*cp = c;
	return 0;
}

static void catalog_timer_closed(uv_handle_t *h)
{
	struct catalog *c = h->data;

	c->opts.job(c->opts.arg, true);
}

void catalog_stop(struct catalog *c)
{
	if (!c || c->stopped)
		return;
	catalog_push(c);
	c->stopped = true;
	c->opts.job(c->opts.arg, false);
	uv_close((uv_handle_t *)&c->timer, catalog_timer_closed);
	catalog_queue(c, catalog_job_close);
}

void catalog_free(struct catalog *c)
{
	struct catalog_removal *r;
	struct hash_node *n, *tmp;
	size_t i;

	if (!c)
		return;
	hash_for_each(&c->known, i, n, tmp)
		free(container_of(n, struct catalog_known, node));
	hash_fini(&c->known);
	catalog_batch_free(c->open);
	catalog_batches_free(&c->pending);
	while ((r = STAILQ_FIRST(&c->removed))) {
		STAILQ_REMOVE_HEAD(&c->removed, entry);
		free(r);
	}
	catalog_db_close(&c->db);
	store_list_free(&c->missing);
	pthread_mutex_destroy(&c->mutex);
	pthread_mutex_destroy(&c->writer);
	free(c->dir);
	free(c);
}

void catalog_get_stats(struct catalog *c, struct catalog_stats *out)
{
	pthread_mutex_lock(&c->mutex);
	*out = c->stats;
	out->catalog_pending = c->pending_bytes;
	pthread_mutex_unlock(&c->mutex);
	if (c->open)
		out->catalog_pending += c->open->arena.bytes;
}

const char *catalog_problem(struct catalog *c)
{
	pid_t reader;
	int err;

	pthread_mutex_lock(&c->mutex);
	err = c->err;
	reader = c->reader;
	pthread_mutex_unlock(&c->mutex);
	if (err == -EPROTONOSUPPORT)
		return "it is of a later version of profd";
	if (err == -EBUSY)
		return "another program holds its lock";
	if (err == -EAGAIN && reader) {
		snprintf(c->problem, sizeof(c->problem),
			 "a reader, pid %d, has held its log for too long",
			 reader);
		return c->problem;
	}
	if (err == -EAGAIN)
		return "a reader has held its log for too long";
	if (err == -EINPROGRESS)
		return "rows of an earlier version are being converted";
	return err ? strerror(-err) : NULL;
}
