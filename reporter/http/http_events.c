// SPDX-License-Identifier: Apache-2.0
/*
 * http_events: forks, execs and exits as JSON lines: first those that only the catalog
 * still has, then those in memory, then, to followers, each as it comes.
 *
 * A stream that follows has no end. Its connection is suspended while there are no
 * events, and reporter_advance(), which is called once per drain, resumes all of
 * them. A slow client delays no other: for events that left the ring before the
 * client read them it gets a line with their number.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/http/http.h"
#include "reporter/ledger/ledger.h"
#include "reporter/request/moment.h"
#include "reporter/request/past.h"

/* The past that a term asks of without a time: the last hour, as of other queries. */
#define EVENTS_SPAN_NS (3600 * (int64_t)CLOCK_NSEC_PER_SEC)

/* Its users are the request, and its query while that exists. */
struct http_events {
	unsigned int users;
	struct reporter_query_terms terms;
	struct ledger_filter filter;
	int64_t now, from, to; /* wall time */
	uint64_t after;
	bool timed, follow;
	bool cataloged; /* a term is of what only the catalog knows */
	unsigned int seen; /* bits by parameter */
	/* Of the catalog. */
	struct request_past past;
	struct strbuf out;
	bool more;
};

static void events_put(void *arg)
{
	struct http_events *e = arg;

	if (!e || --e->users)
		return;
	reporter_query_terms_fini(&e->terms);
	strbuf_fini(&e->out);
	free(e);
}

/* --- parameters ------------------------------------------------------------ */

static int events_after(struct http_events *e, const char *value,
			const char **want)
{
	char *end;

	*want = "the id of an event";
	errno = 0;
	e->after = strtoull(value, &end, 10);
	return *value >= '0' && *value <= '9' && !errno && !*end ? 0 : -EINVAL;
}

static int events_follow(struct http_events *e, const char *value,
			 const char **want)
{
	*want = "0 or 1";
	e->follow = !strcmp(value, "1");
	return e->follow || !strcmp(value, "0") ? 0 : -EINVAL;
}

static int events_moment(struct http_events *e, const char *value, int64_t *out,
			 const char **want)
{
	*want = "a time with a zone (2026-11-23T14:30:05Z), seconds since "
		"1970, or how long ago (90s, 10m, 2h)";
	e->timed = true;
	return reporter_moment_parse(value, e->now, false, out);
}

static int events_from(struct http_events *e, const char *value,
		       const char **want)
{
	return events_moment(e, value, &e->from, want);
}

static int events_to(struct http_events *e, const char *value,
		     const char **want)
{
	return events_moment(e, value, &e->to, want);
}

static int events_last(struct http_events *e, const char *value,
		       const char **want)
{
	int64_t ns;
	int err = reporter_duration_parse(value, &ns);

	*want = "a duration (90s, 10m, 2h, 7d)";
	e->timed = true;
	if (!err)
		e->from = e->now - ns;
	return err;
}

static int events_type(struct http_events *e, const char *value,
		       const char **want)
{
	uint64_t bit;
	size_t n;

	*want = "types with commas: fork, exec, exit, reap, end, rename, "
		"id_change, cgroup, gap, missed";
	do {
		n = strcspn(value, ",");
		bit = ledger_type(value, n);
		if (!bit)
			return -EINVAL;
		e->filter.types |= bit;
		value += n;
	} while (*value++);
	return 0;
}

static const struct {
	const char *key;
	int (*set)(struct http_events *e, const char *value, const char **want);
} events_keys[] = {
	{ "after", events_after }, { "follow", events_follow },
	{ "from", events_from },   { "to", events_to },
	{ "last", events_last },   { "type", events_type },
};

/* Terms that every event answers; the others need the catalog. */
static const char *const events_terms[] = {
	"comm", "pid", "process", "not-comm", "not-pid", "not-process",
};

const char *http_events_key(size_t i)
{
	return i < ARRAY_SIZE(events_keys) ? events_keys[i].key : NULL;
}

static int events_term(struct http_events *e, const char *key,
		       const char *value, const char **want)
{
	bool plain = false;

	for (size_t i = 0; i < ARRAY_SIZE(events_terms); i++)
		plain |= !strcmp(key, events_terms[i]);
	e->cataloged |= !plain;
	return reporter_query_terms_parse(&e->terms, key, value, want);
}

static int events_set(struct http_events *e, const char *key, const char *value,
		      const char **want)
{
	for (size_t i = 0; i < ARRAY_SIZE(events_keys); i++) {
		if (strcmp(key, events_keys[i].key) != 0)
			continue;
		if (e->seen >> i & 1)
			return -EEXIST;
		e->seen |= 1U << i;
		return events_keys[i].set(e, value, want);
	}
	return events_term(e, key, value, want);
}

struct events_arg {
	struct http_events *e;
	int err;
	const char *key, *value, *want;
};

static enum MHD_Result events_on_arg(void *arg, enum MHD_ValueKind kind,
				     const char *key, const char *value)
{
	struct events_arg *a = arg;

	a->key = key;
	a->value = value ? value : "";
	a->err = events_set(a->e, key, a->value, &a->want);
	return a->err ? MHD_NO : MHD_YES;
}

/* What is wrong with the parameters together; NULL: nothing. */
static const char *events_conflict(const struct http_events *e)
{
	if (e->timed && e->after)
		return "after and times exclude each other";
	if (e->cataloged && (e->follow || e->after))
		return "events in memory have only comm, pid and process: "
		       "with follow and after there are no other terms";
	if (e->follow && e->to != INT64_MAX)
		return "follow has no end, so to cannot be given";
	if (e->from >= e->to)
		return "from is not before to";
	return NULL;
}

/* --- selection --------------------------------------------------------------- */

static bool events_label(const void *arg, const char *key, size_t i,
			 struct reporter_query_value *out)
{
	const struct ledger_what *what = arg;

	*out = (struct reporter_query_value){ .num = what->pid };
	if (!strcmp(key, "comm"))
		out->text = what->comm;
	else if (!strcmp(key, "process"))
		out->text = what->process;
	else if (strcmp(key, "pid") != 0)
		return false;
	return !i && (out->text || *key == 'p');
}

static bool events_wanted(void *arg, const struct ledger_what *what)
{
	const struct http_events *e = arg;

	return reporter_query_terms_take(&e->terms, events_label, what);
}

static uint64_t events_boot(int64_t wall)
{
	int64_t offset = (int64_t)clock_wall_offset_ns();

	return wall == INT64_MAX ? 0
	       : wall > offset	 ? (uint64_t)(wall - offset)
				 : 1;
}

/* --- the past ------------------------------------------------------------------ */

/* On a pool thread. */
static int events_run(void *arg, struct reporter_request_run *run)
{
	struct http_events *e = arg;

	strbuf_reset(&e->out);
	return request_past_read(&e->past, run, &e->out, &e->more);
}

/* The lines of a page; then the next page is made. */
static void events_past_more(struct http_request *req)
{
	struct http_events *e = req->events;
	int err = http_query_error(req);

	if (err) {
		req->lines.failed = true;
		return;
	}
	strbuf_add(&req->lines, strbuf_str(&e->out), e->out.len);
	strbuf_reset(&e->out);
	if (e->out.failed)
		req->lines.failed = true;
	else if (e->more && !req->lines.len)
		http_query_again(req);
	else if (!e->more)
		http_query_leave(req);
}

static void events_more(struct http_request *req, unsigned int slice)
{
	struct http_events *e = req->events;
	bool all = !e->filter.types && !e->filter.wanted && !e->timed;

	if (req->query)
		events_past_more(req);
	if (!req->query && !req->lines.len && req->at < req->until)
		ledger_events_read(req->http->r->events, &req->at,
				   http_piece(slice), all ? NULL : &e->filter,
				   &req->lines);
}

/* Whether the catalog is needed, for what is before the ring's events. */
static bool events_needs_past(const struct http_request *req,
			      struct http_events *e)
{
	const struct reporter *r = req->http->r;
	uint64_t since = ledger_events_since(r->events);
	int64_t wall =
		e->cataloged ? e->now : (int64_t)since + clock_wall_offset_ns();

	if (!e->timed || !r->store || e->from >= wall)
		return false;
	e->past = (struct request_past){
		.terms = &e->terms,
		.span = { e->from, MIN(e->to, wall) },
		.types = e->filter.types,
		.host = r->hostname,
	};
	request_past_init(&e->past);
	e->filter.from = since;
	return true;
}

static enum MHD_Result events_past(struct http_request *req,
				   struct http_events *e)
{
	const struct http_work work = {
		.end = e->past.span.to,
		.run = events_run,
		.send = http_send_stream,
		.release = events_put,
		.arg = e,
	};

	if (req->http->r->shed)
		return http_busy(req, "too little memory is free for a query");
	if (http_query_work(req, &work))
		return http_busy(req, "out of memory");
	e->users++;
	return MHD_YES;
}

/* What followers have not read yet stays in the ring. */
static void events_keep(struct reporter *r)
{
	const struct http_request *req;
	uint64_t needed = UINT64_MAX;

	for (const struct http *h = r->http; h; h = h->next)
		LIST_FOREACH(req, &h->followers, follower)
			needed =
				MIN(needed, req->events ? req->at : UINT64_MAX);
	ledger_events_need(r->events, needed);
}

/* --- requests -------------------------------------------------------------------- */

static enum MHD_Result events_begin(struct http_request *req,
				    struct http_events *e)
{
	struct http *h = req->http;
	struct ledger_events *ring = h->r->events;
	bool past = events_needs_past(req, e);

	req->more = events_more;
	req->at = ledger_events_first(ring);
	req->until = e->cataloged ? req->at : ledger_events_next(ring);
	if (req->head || (!e->follow && !past && !e->after))
		return http_send_stream(req);
	if (h->r->stats.http_followers >= HTTP_FOLLOWERS_MAX ||
	    !http_may(req, HTTP_CONN_FOLLOWING, HTTP_FOLLOWERS_USER))
		return http_busy(req, "too many clients follow events");
	if (e->after)
		req->at = MIN(e->after + 1, req->until);
	else if (!e->timed)
		req->at = req->until;
	if (e->follow)
		req->until = UINT64_MAX;
	req->endless = e->follow;
	req->following = true;
	LIST_INSERT_HEAD(&h->followers, req, follower);
	h->r->stats.http_followers++;
	events_keep(h->r);
	return past ? events_past(req, e) : http_send_stream(req);
}

enum MHD_Result http_events(struct http_request *req)
{
	struct http_events *e = calloc(1, sizeof(*e));
	struct events_arg a = { .e = e };
	const char *why;

	if (!e)
		return http_busy(req, "out of memory");
	e->users = 1;
	req->events = e;
	e->now = (int64_t)clock_boottime_ns() + clock_wall_offset_ns();
	e->from = INT64_MIN;
	e->to = INT64_MAX;
	MHD_get_connection_values(req->conn, MHD_GET_ARGUMENT_KIND,
				  events_on_arg, &a);
	if (a.err)
		return http_bad_parameter(req, a.err, a.key, a.value, a.want);
	if (e->cataloged && !e->timed) {
		e->timed = true;
		e->from = e->now - EVENTS_SPAN_NS;
	}
	why = events_conflict(e);
	if (why)
		return http_error(req, MHD_HTTP_BAD_REQUEST, "%s\n", why);
	if (e->terms.n)
		e->filter.wanted = events_wanted;
	e->filter.arg = e;
	e->filter.from = e->timed ? events_boot(e->from) : 0;
	e->filter.to = events_boot(e->to);
	return events_begin(req, e);
}

void http_events_end(struct http_request *req)
{
	if (req->following) {
		LIST_REMOVE(req, follower);
		req->http->r->stats.http_followers--;
	}
	events_put(req->events);
}

void http_wake(struct reporter *r)
{
	struct http_request *req;
	struct http *h;
	bool any;

	for (h = r->http; h; h = h->next) {
		any = false;
		LIST_FOREACH(req, &h->followers, follower) {
			if (req->feed)
				http_feed_collect(req);
			/* A query resumes its request itself. */
			if (req->state != HTTP_WAITING || req->query)
				continue;
			http_wait_end(req, HTTP_READY);
			any = true;
		}
		if (any)
			http_run(h);
	}
	if (r->events)
		events_keep(r);
}
