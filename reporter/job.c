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
	strbuf_fini(&w->comments);
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
	for (i = 0; i < r->opts.nlosses; i++) {
		if (r->losses[i] > from[i])
			job_comment_count(w, r->opts.loss_names[i],
					  r->losses[i] - from[i]);
		from[i] = r->losses[i];
	}
	job_comment_count(w, "traces lost: out of memory", w->nomem);
	job_comment_count(w, "traces of an earlier window, which came late",
			  w->late);
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
	if (w->archive &&
	    asprintf(&w->path, "%s/%s", archive_dir(w->r->archive),
		     w->file.name) < 0)
		w->path = NULL;
	if (err)
		reporter_outfile_abort(&w->file);
	else
		reporter_outfile_fini(&w->file);
	return err;
}

/* On a worker thread: may only read what is constant in the reporter. */
static void job_run(uv_work_t *work)
{
	struct reporter_window *w = work->data;

	if (!w->err && w->archive)
		w->err = archive_create(w->r->archive, &w->file, w->r->hostname,
					w->meta.time_ns, w->meta.duration_ns,
					reporter_ending(w->format));
	if (!w->err)
		w->err = w->file.fd >= 0 ? job_write(w) : job_encode(w, -1);
}

static void job_archived(struct reporter_window *w)
{
	struct reporter *r = w->r;

	/* Each that completes shows that the disk responds. */
	r->archive_jobs--;
	r->jobs_since = clock_awake_ns();
	r->write_err = w->err;
	if (w->err) {
		r->stats.windows_failed++;
	} else {
		r->stats.windows_written++;
		r->stats.window_bytes += w->bytes;
	}
	if (r->opts.written)
		r->opts.written(r->opts.arg,
				w->path ? w->path : archive_dir(r->archive),
				w->err, w->tables.nsamples);
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
	reporter_check_finished(r);
}

void job_start(struct reporter_window *w)
{
	struct reporter *r = w->r;

	w->closed = true;
	/* The counts of its dropped samples go to the next window. */
	if (w->archive && !w->tables.nsamples) {
		r->stats.windows_empty++;
		job_window_free(w);
		return;
	}
	job_comments(w);
	w->err = window_seal(&w->tables);
	if (w->comments.failed)
		w->err = -ENOMEM;
	w->meta = (struct window_meta){
		.time_ns = w->begin + clock_wall_offset_ns(),
		.duration_ns = w->end - w->begin,
		/* The archive's windows keep late traces, of before their begin. */
		.from = w->archive ? INT64_MIN : 0,
		.to = w->archive ? INT64_MAX
				 : times_step(w->begin, w->end - 1) + 1,
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
