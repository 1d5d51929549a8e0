// SPDX-License-Identifier: Apache-2.0
/*
 * http_timeline: /api/process/ID/timeline, the segments of a process's threads as JSON
 * lines. The first line says since when they are recorded, and what is missing; the first
 * request is what begins that. The answer is of one moment, and is written in slices.
 * /api/process/ID/why: where the time of a span of one thread went, likewise.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/http/http.h"
#include "reporter/ledger/ledger.h"
#include "reporter/ledger/line.h"
#include "reporter/request/moment.h"

#define TIMELINE_LAST_NS (60 * CLOCK_NSEC_PER_SEC)
#define TIMELINE_SPAN_NS (10 * CLOCK_NSEC_PER_SEC)
#define TIMELINE_ID_MAX 64
/* A span that ends with the request ends a moment before it. */
#define TIMELINE_NOW_NS CLOCK_NSEC_PER_SEC
#define TIMELINE_MAX 4 /* answers at a time: each may have some MB */

/* What is asked for: segments, or a path. */
struct timeline_kind {
	/* 0 or the result of an error. */
	int (*args)(struct http_request *req, enum MHD_Result *res);
	/* 0 or -errno, of reporter_opts. */
	int (*ask)(const struct http_request *req, const struct abi_key *key,
		   bool lives);
	void (*more)(struct http_request *req, unsigned int slice);
	/* Whether the archive is asked in its place, with that result; NULL: never. */
	bool (*past)(const struct http_request *req, int err);
};

struct http_timeline {
	struct reporter_timeline t; /* of segments */
	uint32_t tid;
	struct reporter_path path;
	int64_t from,
		to; /* of the path, wall time, as asked for; and its thread */
	uint32_t asked;
	struct timeline_past *past; /* of its query */
	size_t at; /* the next segment, or step */
	int64_t wall;
};

/* A path of the archive; owned by its query. */
struct timeline_past {
	struct reporter_why why;
	struct strbuf out;
};

/* --- which process ----------------------------------------------------------------- */

/* "PID", or the id of a process, up to the suffix of the route. 0 or -EINVAL. */
static int timeline_id(const char *s, struct abi_key *key)
{
	struct reporter_why why;
	char id[TIMELINE_ID_MAX];
	size_t n = strcspn(s, "/");
	int err;

	if (n >= sizeof(id))
		return -EINVAL;
	memcpy(id, s, n);
	id[n] = '\0';
	err = reporter_why_process(&why, id);
	if (!err)
		*key = why.key;
	return err;
}

/* Whether the process of a key lives; one without a time gets it. */
static bool timeline_lives(struct pm *pm, struct abi_key *key)
{
	const struct pm_image *image;
	struct pm_image_info info;
	struct pm_iter it;

	pm_iter_init(&it, pm, false);
	while ((image = pm_iter_next(&it))) {
		pm_image_info(image, &info);
		if (info.key.tgid != key->tgid || info.exited ||
		    (key->start_boottime &&
		     key->start_boottime != info.key.start_boottime))
			continue;
		key->start_boottime = info.key.start_boottime;
		return true;
	}
	return false;
}

/* --- parameters --------------------------------------------------------------------- */

static int timeline_tid(struct http_request *req, uint32_t *out,
			enum MHD_Result *res)
{
	const char *tid = http_arg(req, "tid");
	unsigned long v = 0;
	char *end = NULL;

	if (tid)
		v = strtoul(tid, &end, 10);
	*out = (uint32_t)v;
	if (!tid || (*tid >= '1' && *tid <= '9' && !*end && v <= INT32_MAX))
		return 0;
	*res = http_bad_parameter(req, -EINVAL, "tid", tid,
				  "the number of a thread");
	return -EINVAL;
}

/* Unchanged if it is missing. */
static int timeline_moment(struct http_request *req, const char *key,
			   int64_t now, int64_t *out, enum MHD_Result *res)
{
	const char *text = http_arg(req, key);

	if (!text)
		return 0;
	if (reporter_moment_parse(text, now, false, out)) {
		*res = http_bad_parameter(req, -EINVAL, key, text,
					  "a time (10s, 1795430000.25, "
					  "2026-11-23T14:30:05Z)");
		return -EINVAL;
	}
	return 0;
}

/* CLOCK_BOOTTIME; before the boot it is 0. */
static uint64_t timeline_boot(int64_t wall)
{
	int64_t offset = clock_wall_offset_ns();

	return wall > offset ? (uint64_t)(wall - offset) : 0;
}

/* --- segments ----------------------------------------------------------------------- */

static int timeline_segments_args(struct http_request *req,
				  enum MHD_Result *res)
{
	struct http_timeline *t = req->timeline;
	const char *last = http_arg(req, "last");
	int64_t ns = TIMELINE_LAST_NS;

	if (last && (reporter_duration_parse(last, &ns) || ns <= 0)) {
		*res = http_bad_parameter(req, -EINVAL, "last", last,
					  "a duration (30s, 5m)");
		return -EINVAL;
	}
	t->t.to = clock_boottime_ns();
	t->t.from = t->t.to - MIN((uint64_t)ns, t->t.to);
	t->t.to = UINT64_MAX;
	return timeline_tid(req, &t->tid, res);
}

static int timeline_segments_ask(const struct http_request *req,
				 const struct abi_key *key, bool lives)
{
	const struct reporter_opts *opts = &req->http->r->opts;
	struct http_timeline *t = req->timeline;
	int err = opts->timeline
			  ? opts->timeline(opts->arg, key, lives, t->tid, &t->t)
			  : -ENOTSUP;

	t->t.to = clock_boottime_ns();
	return err;
}

static void timeline_segments_more(struct http_request *req, unsigned int slice)
{
	struct http_timeline *t = req->timeline;
	size_t piece = http_piece(slice);

	if (!t->wall) {
		t->wall = line_wall();
		ledger_timeline(&t->t, &req->lines);
	}
	while (t->at < t->t.n && req->lines.len < piece && !req->lines.failed)
		ledger_segment(&t->t.segments[t->at++], req->http->r->opts.pm,
			       t->wall, &req->lines);
}

static const struct timeline_kind timeline_kind_segments = {
	.args = timeline_segments_args,
	.ask = timeline_segments_ask,
	.more = timeline_segments_more,
};

/* --- the path ------------------------------------------------------------------------ */

static int timeline_path_args(struct http_request *req, enum MHD_Result *res)
{
	struct http_timeline *t = req->timeline;
	int64_t now = (int64_t)clock_boottime_ns() + clock_wall_offset_ns();

	t->to = now;
	t->from = now - (int64_t)TIMELINE_SPAN_NS;
	if (timeline_tid(req, &t->asked, res) ||
	    timeline_moment(req, "from", now, &t->from, res) ||
	    timeline_moment(req, "to", now, &t->to, res))
		return -EINVAL;
	t->to = MIN(t->to, now);
	t->path.tid = t->asked;
	t->path.of.from = timeline_boot(t->from);
	t->path.of.to = timeline_boot(t->to);
	if (t->from < t->to)
		return 0;
	*res = http_error(req, MHD_HTTP_BAD_REQUEST,
			  "from: must be before to, and in the past\n");
	return -EINVAL;
}

static int timeline_path_ask(const struct http_request *req,
			     const struct abi_key *key, bool lives)
{
	const struct reporter_opts *opts = &req->http->r->opts;

	return opts->path
		       ? opts->path(opts->arg, key, lives, &req->timeline->path)
		       : -ENOTSUP;
}

static void timeline_path_more(struct http_request *req, unsigned int slice)
{
	struct http_timeline *t = req->timeline;
	size_t piece = http_piece(slice);

	if (!t->wall) {
		t->wall = line_wall();
		ledger_path(&t->path, t->wall, &req->lines);
	}
	while (t->at < t->path.n && req->lines.len < piece &&
	       !req->lines.failed)
		ledger_step(&t->path, t->at++, req->http->r->opts.pm, t->wall,
			    &req->lines);
}

/* It is gone, or the span was over before the process was recorded. */
static bool timeline_path_past(const struct http_request *req, int err)
{
	const struct reporter_timeline *of = &req->timeline->path.of;
	uint64_t to = timeline_boot(req->timeline->to);

	if (!req->http->r->store || (err && err != -ESRCH))
		return false;
	return err || to + (of->begun ? TIMELINE_NOW_NS : 0) <= of->since;
}

static const struct timeline_kind timeline_kind_path = {
	.args = timeline_path_args,
	.ask = timeline_path_ask,
	.more = timeline_path_more,
	.past = timeline_path_past,
};

/* --- the path, of the archive ---------------------------------------------------------- */

/* On a pool thread. */
static int timeline_past_run(void *arg, struct reporter_request_run *run)
{
	struct timeline_past *p = arg;

	return reporter_why_run(&p->why, run, &p->out);
}

static enum MHD_Result timeline_past_send(struct http_request *req)
{
	struct strbuf *out = &req->timeline->past->out;
	size_t len = out->len;

	return http_send_text(req, strbuf_steal(out), len, HTTP_NDJSON);
}

static void timeline_past_release(void *arg)
{
	struct timeline_past *p = arg;

	strbuf_fini(&p->out);
	free(p);
}

static enum MHD_Result timeline_past_answer(struct http_request *req,
					    const struct abi_key *key)
{
	const struct http_timeline *t = req->timeline;
	const struct reporter *r = req->http->r;
	struct timeline_past *p;
	struct http_work work = {
		.run = timeline_past_run,
		.send = timeline_past_send,
		.release = timeline_past_release,
	};

	if (r->finishing)
		return http_busy(req, "profd is terminating");
	if (r->shed)
		return http_busy(req, "too little memory is free for a query");
	p = calloc(1, sizeof(*p));
	if (!p)
		return http_busy(req, "out of memory");
	p->why = (struct reporter_why){
		.key = *key,
		.tid = t->asked,
		.from = t->from,
		.to = t->to,
	};
	work.end = p->why.to;
	work.arg = p;
	if (http_query_work(req, &work)) {
		timeline_past_release(p);
		return http_busy(req, "out of memory");
	}
	req->timeline->past = p;
	return MHD_YES;
}

/* --- the answer --------------------------------------------------------------------- */

static enum MHD_Result timeline_error(struct http_request *req, int err)
{
	switch (err) {
	case -ENOTSUP:
		return http_error(req, MHD_HTTP_NOT_FOUND,
				  "this profd runs without --wait: start it "
				  "with --wait, or set wait = yes\n");
	case -E2BIG:
		return http_busy(req, "timelines of too many processes are "
				      "recorded");
	case -ESRCH:
		return http_error(req, MHD_HTTP_NOT_FOUND,
				  "no process %.*s lives\n",
				  (int)MIN(strcspn(req->rest, "/"), 64),
				  req->rest);
	}
	return http_busy(req, strerror(-err));
}

static enum MHD_Result timeline_answer(struct http_request *req,
				       const struct timeline_kind *kind)
{
	enum MHD_Result res = MHD_NO;
	struct abi_key key;
	bool lives;
	int err;

	if (timeline_id(req->rest, &key))
		return http_error(req, MHD_HTTP_BAD_REQUEST,
				  "/api/process/%.64s: a pid, or the id of a "
				  "process\n",
				  req->rest);
	if (kind->args(req, &res))
		return res;
	if (req->head)
		return http_send_text(req, strdup(""), 0, HTTP_NDJSON);
	lives = timeline_lives(req->http->r->opts.pm, &key);
	err = kind->ask(req, &key, lives);
	if (kind->past && kind->past(req, err))
		return timeline_past_answer(req, &key);
	if (err)
		return timeline_error(req, err);
	req->more = kind->more;
	return http_send_stream(req);
}

static enum MHD_Result timeline_begin(struct http_request *req,
				      const struct timeline_kind *kind)
{
	struct reporter *r = req->http->r;

	if (r->timelines >= TIMELINE_MAX ||
	    !http_may(req, HTTP_CONN_WAITING, HTTP_WAITING_USER))
		return http_busy(req, "too many timelines are being sent");
	req->timeline = calloc(1, sizeof(*req->timeline));
	if (!req->timeline)
		return http_busy(req, "out of memory");
	r->timelines++;
	return timeline_answer(req, kind);
}

enum MHD_Result http_timeline(struct http_request *req)
{
	return timeline_begin(req, &timeline_kind_segments);
}

enum MHD_Result http_why(struct http_request *req)
{
	return timeline_begin(req, &timeline_kind_path);
}

void http_timeline_end(struct http_request *req)
{
	if (!req->timeline)
		return;
	req->http->r->timelines--;
	free(req->timeline->t.segments);
	reporter_path_fini(&req->timeline->path);
	free(req->timeline);
}
