// SPDX-License-Identifier: Apache-2.0
/*
 * http_timeline: /api/process/ID/timeline, the segments of a process's threads as JSON
 * lines. The first line says since when they are recorded, and what is missing; the first
 * request is what begins that. The answer is of one moment, and is written in slices.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/http/http.h"
#include "reporter/ledger/ledger.h"
#include "reporter/ledger/line.h"
#include "reporter/request/moment.h"

#define TIMELINE_LAST_NS (60 * CLOCK_NSEC_PER_SEC)
#define TIMELINE_MAX 4 /* answers at a time: each may have some MB */

struct http_timeline {
	struct reporter_timeline t;
	uint32_t tid;
	size_t at; /* the next segment */
	int64_t wall;
};

/* --- which process ----------------------------------------------------------------- */

/* "PID", or the id of a process, up to the suffix of the route. 0 or -EINVAL. */
static int timeline_id(const char *s, struct abi_key *key)
{
	const char *end = strchr(s, '/');
	unsigned long pid;
	char *p;

	errno = 0;
	pid = strtoul(s, &p, 10);
	if (*s < '0' || *s > '9' || errno || !pid || pid > INT32_MAX)
		return -EINVAL;
	*key = (struct abi_key){ .tgid = (uint32_t)pid };
	if (p != end && (*p != '-' || p + 1 == end))
		return -EINVAL;
	if (p != end)
		key->start_boottime = strtoull(p + 1, &p, 16);
	return p == end && !errno ? 0 : -EINVAL;
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

/* --- the answer --------------------------------------------------------------------- */

static void timeline_more(struct http_request *req, unsigned int slice)
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

/* 0 or the result of an error. */
static int timeline_args(struct http_request *req, struct http_timeline *t,
			 enum MHD_Result *res)
{
	const char *last = http_arg(req, "last"), *tid = http_arg(req, "tid");
	int64_t ns = TIMELINE_LAST_NS;
	unsigned long v = 0;
	char *end = NULL;

	if (last && (reporter_duration_parse(last, &ns) || ns <= 0)) {
		*res = http_bad_parameter(req, -EINVAL, "last", last,
					  "a duration (30s, 5m)");
		return -EINVAL;
	}
	if (tid)
		v = strtoul(tid, &end, 10);
	if (tid && (*tid < '1' || *tid > '9' || *end || v > INT32_MAX)) {
		*res = http_bad_parameter(req, -EINVAL, "tid", tid,
					  "the number of a thread");
		return -EINVAL;
	}
	t->tid = (uint32_t)v;
	t->t.to = clock_boottime_ns();
	t->t.from = t->t.to - MIN((uint64_t)ns, t->t.to);
	t->t.to = UINT64_MAX;
	return 0;
}

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
				  "no process %.64s lives\n", req->rest);
	}
	return http_busy(req, strerror(-err));
}

static enum MHD_Result timeline_answer(struct http_request *req,
				       struct http_timeline *t)
{
	const struct reporter *r = req->http->r;
	enum MHD_Result res = MHD_NO;
	struct abi_key key;
	bool lives;
	int err;

	if (timeline_id(req->rest, &key))
		return http_error(req, MHD_HTTP_BAD_REQUEST,
				  "/api/process/%.64s: a pid, or the id of a "
				  "process\n",
				  req->rest);
	if (timeline_args(req, t, &res))
		return res;
	if (req->head)
		return http_send_text(req, strdup(""), 0, HTTP_NDJSON);
	if (!r->opts.timeline)
		return timeline_error(req, -ENOTSUP);
	lives = timeline_lives(r->opts.pm, &key);
	err = r->opts.timeline(r->opts.arg, &key, lives, t->tid, &t->t);
	if (err)
		return timeline_error(req, err);
	t->t.to = clock_boottime_ns();
	req->more = timeline_more;
	return http_send_stream(req);
}

enum MHD_Result http_timeline(struct http_request *req)
{
	struct reporter *r = req->http->r;

	if (r->timelines >= TIMELINE_MAX ||
	    !http_may(req, HTTP_CONN_WAITING, HTTP_WAITING_USER))
		return http_busy(req, "too many timelines are being sent");
	req->timeline = calloc(1, sizeof(*req->timeline));
	if (!req->timeline)
		return http_busy(req, "out of memory");
	r->timelines++;
	return timeline_answer(req, req->timeline);
}

void http_timeline_end(struct http_request *req)
{
	if (!req->timeline)
		return;
	req->http->r->timelines--;
	free(req->timeline->t.segments);
	free(req->timeline);
}
