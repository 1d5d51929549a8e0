// SPDX-License-Identifier: Apache-2.0
/* job: see reporter/job.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/job.h"

void job_window_free(struct reporter_window *w)
{
	if (!w)
		return;
	reporter_outfile_abort(&w->file);
	window_fini(&w->tables);
	waits_free(w->waits);
	strbuf_fini(&w->comments);
	reporter_query_terms_fini(&w->terms);
	free(w->losses);
	free(w->path);
	free(w->data);
	free(w);
}

static void job_comment_count(struct reporter_window *w, const char *what,
			      uint64_t n)
{
	if (!n)
		return;
	strbuf_printf(&w->comments, "%s: %llu", what, (unsigned long long)n);
	strbuf_add(&w->comments, "", 1);
}

/* The profile itself has the counts of all that is missing in it. */
static void job_comments(struct reporter_window *w)
{
	struct reporter *r = w->r;
	const char *note = r->opts.note;
	uint64_t *from = w->archive ? r->losses_archived : w->losses;
	size_t i;

	strbuf_printf(&w->comments, "profd %s %s", r->version, r->hostname);
	strbuf_add(&w->comments, "", 1);
	if (note && *note)
		strbuf_add(&w->comments, note, strlen(note) + 1);
	w->head_len = w->comments.len;
	for (i = 0; i < r->opts.nlosses; i++) {
		if (r->losses[i] > from[i])
			job_comment_count(w, r->opts.loss_names[i],
					  r->losses[i] - from[i]);
		from[i] = r->losses[i];
	}
	if (w->archive) {
		w->unwritten = r->unwritten;
		r->unwritten = 0;
	}
	job_comment_count(w, "samples of earlier windows, not written",
			  w->unwritten);
	job_comment_count(w, "traces lost: out of memory", w->nomem);
	job_comment_count(w, "traces of an earlier window, which came late",
			  w->late);
}

/* As raw pprof, malloc'd. */
static int job_encode_raw(struct window *tables, const struct window_meta *meta,
			  void **data, size_t *len)
{
	struct sink *sink;
	int err, end;

	err = sink_new(&sink, REPORTER_RAW, -1);
	if (err)
		return err;
	err = reporter_window_encode(tables, meta, sink);
	end = sink_finish(sink);
	err = err ? err : end;
	if (!err)
		*data = sink_steal(sink, len);
	sink_free(sink);
	return err ? err : *data ? 0 : -ENOMEM;
}

static int job_add(struct reporter_query *q, struct window *tables,
		   const struct window_meta *meta)
{
	void *data = NULL;
	const char *what;
	size_t len = 0;
	int err = job_encode_raw(tables, meta, &data, &len);

	if (!err)
		err = reporter_query_add(q, data, len, false, &what);
	free(data);
	return err;
}

/*
 * The profile of selected samples: written once in full, then without the functions
 * and mappings that only other samples have.
 */
static int job_encode_selected(struct reporter_window *w)
{
	static const struct reporter_query_opts all;
	struct reporter_query *q;
	int err = reporter_query_new(&q, &all);

	if (!err)
		err = job_add(q, &w->tables, &w->meta);
	if (!err)
		err = reporter_query_data(q, REPORTER_QUERY_PPROF, w->format,
					  &w->data, &w->len);
	reporter_query_free(q);
	return err;
}

/* The waits, with their own comments. */
static struct window_meta job_waits_meta(const struct reporter_window *w)
{
	struct window_meta meta = w->meta;

	meta.comments = w->waits->comments.data;
	meta.comments_len = w->waits->comments.len;
	return meta;
}

/* Of both profiles with all labels: images tell which samples belong together. */
static int job_encode_wall(struct reporter_window *w)
{
	const struct reporter_query_opts opts = {
		.kind = REPORTER_QUERY_WALL,
		.terms = w->meta.terms,
		.without = w->form.without,
		.prefix = w->form.prefix,
	};
	struct window_meta cpu = w->meta, waits = job_waits_meta(w);
	struct reporter_query *q;
	int err = reporter_query_new(&q, &opts);

	cpu.terms = waits.terms = NULL;
	cpu.form = waits.form = (struct reporter_form){ .bare = w->form.bare };
	if (!err)
		err = job_add(q, &w->tables, &cpu);
	if (!err)
		err = job_add(q, &w->waits->tables, &waits);
	if (!err)
		err = reporter_query_end(q);
	if (!err)
		err = reporter_query_data(q, REPORTER_QUERY_PPROF, w->format,
					  &w->data, &w->len);
	reporter_query_free(q);
	return err;
}

static int job_encode(struct reporter_window *w, int fd)
{
	struct sink *sink;
	int err, end;

	err = sink_new(&sink, w->format, fd);
	if (err)
		return err;
	err = reporter_window_encode(&w->tables, &w->meta, sink);
	end = sink_finish(sink);
	err = err ? err : end;
	w->bytes = sink_bytes(sink);
	if (!err && fd < 0)
		w->data = sink_steal(sink, &w->len);
	sink_free(sink);
	return err;
}

static int job_write(struct reporter_window *w)
{
	int err;

	err = job_encode(w, w->file.fd);
	if (!err)
		err = reporter_outfile_commit(&w->file);
	if (err)
		reporter_outfile_abort(&w->file);
	else
		reporter_outfile_fini(&w->file);
	return err;
}

static struct store_times_info job_times_info(const struct reporter_window *w)
{
	struct store_times_info info = {
		.wall_ns = w->meta.time_ns,
		.boot_ns = w->begin,
		.duration_ns = w->meta.duration_ns,
	};

	memcpy(info.boot_id, w->r->boot_id, sizeof(info.boot_id));
	return info;
}

/* The side file of a window that is written; without it the window is whole, too. */
static void job_write_times(struct reporter_window *w)
{
	const struct store_times_info info = job_times_info(w);
	struct sink *sink;

	if (store_write_beside(&w->write, STORE_TIMES) ||
	    sink_new(&sink, REPORTER_ZSTD, w->write.file.fd))
		return;
	store_times_write(&w->tables, &info, sink);
	if (!sink_finish(sink) &&
	    !store_write_commit_beside(&w->write, STORE_TIMES))
		w->bytes += sink_bytes(sink);
	sink_free(sink);
}

/* That of its waits, likewise. */
static void job_write_wait_times(struct reporter_window *w)
{
	struct store_times_info info = job_times_info(w);
	const struct waits *waits = w->waits;
	struct sink *sink;

	if (!waits->singles.min)
		return;
	info.unrecorded = waits->singles.dropped + waits->lost;
	w->write.wait_times = true;
	if (store_write_beside(&w->write, STORE_WAIT_TIMES) ||
	    sink_new(&sink, REPORTER_ZSTD, w->write.file.fd))
		return;
	store_times_write_waits(&waits->tables, &waits->singles, &info, sink);
	if (!sink_finish(sink) &&
	    !store_write_commit_beside(&w->write, STORE_WAIT_TIMES))
		w->bytes += sink_bytes(sink);
	sink_free(sink);
}

/* The waits of a window that is written, likewise. */
static bool job_write_waits_profile(struct reporter_window *w)
{
	enum store_kind kind = store_wait(w->format);
	struct window_meta meta = job_waits_meta(w);
	struct sink *sink;
	bool written;
	int err, end;

	w->write.waits = true;
	if (store_write_beside(&w->write, kind) ||
	    sink_new(&sink, w->format, w->write.file.fd))
		return false;
	err = reporter_window_encode(&w->waits->tables, &meta, sink);
	end = sink_finish(sink);
	written = !err && !end && !store_write_commit_beside(&w->write, kind);
	if (written)
		w->bytes += sink_bytes(sink);
	sink_free(sink);
	return written;
}

static void job_write_waits(struct reporter_window *w)
{
	if (waits_any(w->waits) && job_write_waits_profile(w))
		job_write_wait_times(w);
}

/* The path of the archive's file: its last name, as far as it is known. */
static void job_path(struct reporter_window *w)
{
	const struct store_window *to = &w->write.window;

	if (asprintf(&w->path, "%s/%s/%s%s", store_dir(w->r->store), to->day,
		     to->stem, reporter_ending(w->format)) < 0)
		w->path = NULL;
}

/*
 * A window that is written, in the catalog; it is whole without that, too. Without the
 * window the rows of processes are written.
 */
static void job_catalog(const struct reporter_window *w, bool written)
{
	const struct catalog_window row = {
		.file = &w->write.window,
		.tables = &w->tables,
		.begin_ns = w->meta.time_ns,
		.begin_boot_ns = w->begin,
		.duration_ns = w->meta.duration_ns,
		.comments = w->comments.data,
		.comments_len = w->comments.len,
	};

	catalog_add_window(w->r->catalog, written ? &row : NULL);
}

static int job_archive(struct reporter_window *w)
{
	struct store_write *wr = &w->write;
	bool created;
	int err;

	err = store_write_begin(wr, w->r->store, w->r->hostname,
				w->meta.time_ns, w->meta.duration_ns,
				w->format);
	created = !err;
	if (!err)
		err = job_encode(w, wr->file.fd);
	if (!err)
		err = store_write_commit(wr);
	if (!err)
		job_write_times(w);
	if (!err)
		job_write_waits(w);
	job_catalog(w, !err);
	if (created)
		job_path(w);
	store_write_end(wr, &w->store_stats);
	return err;
}

/* On a worker thread: may only read what is constant in the reporter. */
static void job_run(uv_work_t *work)
{
	struct reporter_window *w = work->data;

	if (w->err)
		return;
	if (w->archive)
		w->err = job_archive(w);
	else
		w->err = w->file.fd >= 0 ? job_write(w)
			 : w->waits	 ? job_encode_wall(w)
			 : w->terms.n	 ? job_encode_selected(w)
					 : job_encode(w, -1);
}

static void job_archived(struct reporter_window *w)
{
	struct reporter *r = w->r;

	/* Each that completes shows that the disk responds. */
	r->archive_jobs--;
	r->jobs_since = clock_awake_ns();
	r->write_err = w->err;
#define X(name) r->stats.name = w->store_stats.name;
	if (w->write.store) {
		STORE_STATS(X)
	}
#undef X
	if (w->err) {
		r->stats.windows_failed++;
		r->stats.samples_unwritten += w->tables.nsamples;
		r->unwritten += w->tables.nsamples + w->unwritten;
	} else {
		r->stats.windows_written++;
		r->stats.window_bytes += w->bytes;
	}
	if (r->opts.written)
		r->opts.written(r->opts.arg,
				w->path ? w->path : store_dir(r->store), w->err,
				w->tables.nsamples);
}

static void job_done(uv_work_t *work, int status)
{
	struct reporter_window *w = work->data;
	struct reporter *r = w->r;

	if (w->archive) {
		job_archived(w);
	} else if (w->done && !r->freed) {
		w->done(w->arg, w->err, w->tables.nsamples, w->data, w->len);
		w->data = NULL;
	}
	job_window_free(w);
	r->jobs--;
	http_queries_wake(r);
	reporter_check_finished(r);
}

void job_start(struct reporter_window *w)
{
	struct reporter *r = w->r;

	bool empty = !w->tables.nsamples && !waits_any(w->waits);

	w->closed = true;
	if (w->archive)
		catalog_snapshot(r->catalog, empty);
	/* The counts of its dropped samples go to the next window. */
	if (w->archive && empty) {
		r->stats.windows_empty++;
		job_window_free(w);
		return;
	}
	job_comments(w);
	w->err = window_seal(&w->tables);
	if (w->comments.failed)
		w->err = -ENOMEM;
	if (!w->err && w->waits)
		w->err = waits_seal(w->waits, w->comments.data, w->head_len);
	w->meta = (struct window_meta){
		.time_ns = w->begin + clock_wall_offset_ns(),
		.duration_ns = w->end - w->begin,
		/* The archive's windows keep late traces, of before their begin. */
		.from = w->archive ? INT64_MIN : 0,
		.to = w->archive ? INT64_MAX
				 : times_step(w->begin, w->end - 1) + 1,
		.form = w->form,
		.terms = w->terms.n ? &w->terms : NULL,
		.comments = w->comments.data,
		.comments_len = w->comments.len,
	};
	w->work.data = w;
	r->jobs++;
	if (w->archive && !r->archive_jobs++)
		r->jobs_since = clock_awake_ns();
	/* Fails only if given no function. */
	uv_queue_work(r->opts.loop, &w->work, job_run, job_done);
}
