// SPDX-License-Identifier: Apache-2.0
/*
 * http_query: profiles of the past, and lists of windows and processes.
 *
 * A query runs on a pool thread, few at a time, so that windows are still written. One
 * that reaches into the open window first ends that, so that no sample is in two windows
 * and none waits for the next boundary. Windows would become many and short: only
 * QUERY_CUTS may be ended in a row, then one every QUERY_CUT_NS, and queries wait.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/http/http.h"
#include "reporter/http/http_parse.h"

#define QUERY_CUTS 8
#define QUERY_CUT_NS (5 * CLOCK_NSEC_PER_SEC)
/* The open window is not waited for longer than that: a disk may hang. */
#define QUERY_WAIT_NS (10 * CLOCK_NSEC_PER_SEC)

enum query_state {
	QUERY_WAITING, /* for the open window, or for its turn */
	QUERY_RUNNING,
	QUERY_DONE,
};

/* A resource. */
struct query_kind {
	int (*set)(struct http_query *x, const char *key, const char *value,
		   const char **want);
	void (*run)(struct http_query *x); /* on a pool thread */
	enum MHD_Result (*send)(struct http_request *req, struct http_query *x);
	enum reporter_list_kind list;
};

/* Owned by its request; while it runs, by its job. */
struct http_query {
	TAILQ_ENTRY(http_query)
	entry; /* in reporter.queries, unless it is done */
	struct reporter *r;
	struct http_request *req; /* NULL: the client is gone */
	struct reporter_request *request;
	const struct query_kind *kind;
	struct http_work work_of; /* if it is another page's */
	struct reporter_list list; /* if it is one */
	char process[64]; /* of the list */
	enum reporter_format format;
	enum query_state state;
	/* CLOCK_BOOTTIME, 0: not needed: when the open window may be ended, ... */
	uint64_t cut_at;
	uint64_t cut; /* and samples before this are in the archive */
	uint64_t asked; /* CLOCK_BOOTTIME of the request */
	uint64_t since; /* the same by clock_awake_ns() */
	uv_work_t work;
	atomic_bool cancelled;
	struct reporter_request_run run;
	int err;
	void *data;
	size_t len;
};

static void query_free(struct http_query *x)
{
	if (x->work_of.release)
		x->work_of.release(x->work_of.arg);
	reporter_request_free(x->request);
	free(x->data);
	free(x);
}

/* --- running ------------------------------------------------------------------ */

static bool query_progress(void *arg, size_t done, size_t all)
{
	struct http_query *x = arg;

	return !atomic_load_explicit(&x->cancelled, memory_order_relaxed);
}

/* On a pool thread. */
static void query_run(uv_work_t *work)
{
	struct http_query *x = work->data;

	x->run = (struct reporter_request_run){
		.archive = store_dir(x->r->store),
		.progress = query_progress,
		.arg = x,
	};
	x->kind->run(x);
}

static void query_run_list(struct http_query *x)
{
	struct strbuf out = STRBUF_INIT;

	x->err = reporter_list_run(x->request, &x->list, &x->run, &out);
	x->len = out.len;
	x->data = x->err ? NULL : strbuf_steal(&out);
	strbuf_fini(&out);
}

static void query_run_profile(struct http_query *x)
{
	struct reporter_query *q;

	x->err = reporter_request_run(x->request, &x->run, &q);
	if (x->err)
		return;
	x->err = reporter_query_data(q, reporter_request_format(x->request),
				     x->format, &x->data, &x->len);
	reporter_query_free(q);
}

static void query_done(uv_work_t *work, int status)
{
	struct http_query *x = work->data;
	struct reporter *r = x->r;
	struct http_request *req = x->req;

	x->state = QUERY_DONE;
	TAILQ_REMOVE(&r->queries, x, entry);
	r->jobs--;
	r->queries_running--;
	if (!req) {
		query_free(x);
	} else {
		http_wait_end(req, HTTP_READY);
		http_run(req->http);
	}
	http_queries_wake(r);
	reporter_check_finished(r);
}

/* Ends the open window as soon as that is allowed. */
static void query_cut(struct http_query *x)
{
	struct reporter *r = x->r;
	uint64_t now = clock_boottime_ns();

	if (!x->cut_at || now < x->cut_at)
		return;
	if (r->rotated < x->asked && r->rotate_at < x->asked) {
		r->queries_cut = MAX(r->queries_cut, now) + QUERY_CUT_NS;
		reporter_rotate(r, now);
	}
	x->cut = r->rotate_at ? r->rotate_at : r->rotated;
	x->cut_at = 0;
}

/* Whether all samples of before the cut are in the archive's files. */
static bool query_ready(struct http_query *x)
{
	const struct reporter_window *w = TAILQ_FIRST(&x->r->windows);

	query_cut(x);
	if (x->cut_at)
		return false;
	if (!x->cut || clock_awake_ns() - x->since > QUERY_WAIT_NS)
		return true;
	return (!w || w->begin >= x->cut) && !x->r->archive_jobs;
}

void http_queries_wake(struct reporter *r)
{
	struct http_query *x;

	TAILQ_FOREACH(x, &r->queries, entry) {
		if (r->queries_running >= HTTP_QUERIES_RUNNING || r->freed)
			return;
		if (x->state != QUERY_WAITING || !query_ready(x))
			continue;
		x->state = QUERY_RUNNING;
		x->work.data = x;
		r->jobs++;
		r->queries_running++;
		uv_queue_work(r->opts.loop, &x->work, query_run, query_done);
	}
}

uint64_t http_queries_due(const struct reporter *r)
{
	const struct http_query *x;
	uint64_t due = UINT64_MAX;

	TAILQ_FOREACH(x, &r->queries, entry)
		if (x->state == QUERY_WAITING && (x->cut || x->cut_at))
			due = MIN(due, x->cut_at ? x->cut_at : x->cut);
	return due;
}

/* profd ends: nobody waits for a long query. */
void http_queries_end(struct reporter *r)
{
	struct http_query *x, *next;

	for (x = TAILQ_FIRST(&r->queries); x; x = next) {
		next = TAILQ_NEXT(x, entry);
		atomic_store_explicit(&x->cancelled, true,
				      memory_order_relaxed);
		if (x->state != QUERY_WAITING)
			continue;
		x->state = QUERY_DONE;
		x->err = -ECANCELED;
		TAILQ_REMOVE(&r->queries, x, entry);
		http_wait_end(x->req, HTTP_READY);
	}
}

void http_query_leave(struct http_request *req)
{
	struct http_query *x = req->query;

	if (!x)
		return;
	req->query = NULL;
	x->req = NULL;
	atomic_store_explicit(&x->cancelled, true, memory_order_relaxed);
	if (x->state == QUERY_RUNNING)
		return; /* its job frees it */
	if (x->state == QUERY_WAITING)
		TAILQ_REMOVE(&x->r->queries, x, entry);
	query_free(x);
}

/* --- answers ------------------------------------------------------------------ */

static const struct {
	const char *type, *ending;
} query_forms[] = {
	[REPORTER_QUERY_PPROF] = { "application/octet-stream", ".pb.gz" },
	[REPORTER_QUERY_FOLDED] = { HTTP_TEXT, ".txt" },
	[REPORTER_QUERY_SPEEDSCOPE] = { HTTP_JSON, ".speedscope.json" },
	[REPORTER_QUERY_JSON] = { HTTP_JSON, ".json" },
	[REPORTER_QUERY_FIREFOX] = { HTTP_JSON, ".firefox.json" },
};

static enum MHD_Result query_error(struct http_request *req,
				   const struct http_query *x)
{
	static const struct {
		int err;
		unsigned int status;
	} errors[] = {
		{ -EINVAL, MHD_HTTP_BAD_REQUEST },
		{ -ESRCH, MHD_HTTP_NOT_FOUND },
		{ -ENODATA, MHD_HTTP_NOT_FOUND },
		{ -EFBIG, MHD_HTTP_CONTENT_TOO_LARGE },
		{ -EBUSY, MHD_HTTP_SERVICE_UNAVAILABLE },
	};
	unsigned int status = MHD_HTTP_INTERNAL_SERVER_ERROR;

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].err == x->err)
			status = errors[i].status;
	return http_error(req, status, "%s\n",
			  *x->run.why ? x->run.why : strerror(-x->err));
}

static enum MHD_Result query_send_list(struct http_request *req,
				       struct http_query *x)
{
	char *text = x->data;

	x->data = NULL;
	return http_send_text(req, text, x->len, HTTP_JSON);
}

static enum MHD_Result query_send_profile(struct http_request *req,
					  struct http_query *x)
{
	enum reporter_query_format format = reporter_request_format(x->request);
	bool pprof = format == REPORTER_QUERY_PPROF;
	bool zstd = pprof && x->format == REPORTER_ZSTD;
	char disposition[64];
	const struct http_header headers[] = {
		{ MHD_HTTP_HEADER_CONTENT_TYPE, query_forms[format].type },
		{ MHD_HTTP_HEADER_VARY, MHD_HTTP_HEADER_ACCEPT_ENCODING },
		{ MHD_HTTP_HEADER_CACHE_CONTROL, "no-store" },
		{ MHD_HTTP_HEADER_CONTENT_DISPOSITION, disposition },
		{ zstd ? MHD_HTTP_HEADER_CONTENT_ENCODING : NULL, "zstd" },
		{ NULL, NULL },
	};
	struct MHD_Response *resp;

	snprintf(disposition, sizeof(disposition),
		 "attachment; filename=\"profile%s\"",
		 zstd ? ".pb" : query_forms[format].ending);
	resp = MHD_create_response_from_buffer(x->len, x->data,
					       MHD_RESPMEM_MUST_FREE);
	if (resp)
		x->data = NULL;
	req->http->r->stats.http_profiles++;
	return http_queue(req, MHD_HTTP_OK, resp, headers);
}

enum MHD_Result http_query_send(struct http_request *req)
{
	struct http_query *x = req->query;

	if (x->err == -ECANCELED)
		return http_busy(req, "profd is terminating");
	return x->err ? query_error(req, x) : x->kind->send(req, x);
}

/* --- requests ------------------------------------------------------------------- */

struct query_args {
	struct http_query *query;
	int err;
	const char *key, *value, *want;
};

static enum MHD_Result query_on_arg(void *arg, enum MHD_ValueKind kind,
				    const char *key, const char *value)
{
	struct query_args *a = arg;

	a->key = key;
	a->value = value ? value : "";
	a->err = a->query->kind->set(a->query, key, a->value, &a->want);
	return a->err ? MHD_NO : MHD_YES;
}

enum MHD_Result http_bad_parameter(struct http_request *req, int err,
				   const char *key, const char *value,
				   const char *want)
{
	static const struct {
		int err;
		const char *why;
	} errors[] = {
		{ -ENOENT, "no such parameter" },
		{ -EEXIST, "given twice" },
		{ -E2BIG, "too many" },
	};

	if (err == -EINVAL)
		return http_error(req, MHD_HTTP_BAD_REQUEST,
				  "%.64s: %s, not \"%.64s\"\n", key, want,
				  value);
	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].err == err)
			return http_error(req, MHD_HTTP_BAD_REQUEST,
					  "%.64s: %s\n", key, errors[i].why);
	return http_busy(req, strerror(-err));
}

/* Waits for its turn; 'end': see struct http_work. */
static void query_wait(struct http_request *req, struct http_query *x,
		       int64_t end)
{
	struct reporter *r = req->http->r;

	x->state = QUERY_WAITING;
	x->cut = x->cut_at = 0;
	x->since = clock_awake_ns();
	x->asked = clock_boottime_ns();
	if (end >= (int64_t)r->base + clock_wall_offset_ns())
		x->cut_at =
			MAX(x->asked,
			    r->queries_cut - MIN(r->queries_cut,
						 QUERY_CUTS * QUERY_CUT_NS));
	TAILQ_INSERT_TAIL(&r->queries, x, entry);
	http_wait_begin(req);
	http_queries_wake(r);
}

static enum MHD_Result query_begin(struct http_request *req,
				   struct http_query *x)
{
	const char *v = MHD_lookup_connection_value(
		req->conn, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING);

	x->format = http_accepts_zstd(v) ? REPORTER_ZSTD : REPORTER_GZIP;
	req->query = x;
	x->req = req;
	query_wait(req, x, reporter_request_end(x->request));
	return MHD_YES;
}

static int query_set_profile(struct http_query *x, const char *key,
			     const char *value, const char **want)
{
	return reporter_request_set(x->request, key, value, want);
}

static int query_set_list(struct http_query *x, const char *key,
			  const char *value, const char **want)
{
	return reporter_list_set(x->request, &x->list, key, value, want);
}

static enum MHD_Result query_answer(struct http_request *req,
				    const struct query_kind *kind)
{
	struct reporter *r = req->http->r;
	struct http_query *x = calloc(1, sizeof(*x));
	struct query_args a = { .query = x };
	enum MHD_Result res;
	int64_t now = (int64_t)clock_boottime_ns() + clock_wall_offset_ns();

	if (!x || reporter_request_new(&x->request, now, false)) {
		free(x);
		return http_busy(req, "out of memory");
	}
	x->r = r;
	x->kind = kind;
	x->list.kind = kind->list;
	snprintf(x->process, sizeof(x->process), "%s", req->rest);
	x->list.process = x->process;
	MHD_get_connection_values(req->conn, MHD_GET_ARGUMENT_KIND,
				  query_on_arg, &a);
	if (a.err)
		res = http_bad_parameter(req, a.err, a.key, a.value, a.want);
	else if (req->head)
		res = http_send_text(req, strdup(""), 0,
				     kind->send == query_send_list
					     ? HTTP_JSON
					     : "application/octet-stream");
	else if (!r->store)
		res = http_error(req, MHD_HTTP_NOT_FOUND, "no archive\n");
	else if (r->finishing)
		res = http_busy(req, "profd is terminating");
	else if (r->shed)
		res = http_busy(req, "too little memory is free for a query");
	else if (r->stats.http_waiting >= HTTP_WAITING_MAX ||
		 !http_may(req, HTTP_CONN_WAITING, HTTP_WAITING_USER))
		res = http_busy(req, "too many clients wait for a profile");
	else
		return query_begin(req, x);
	query_free(x);
	return res;
}

enum MHD_Result http_query(struct http_request *req)
{
	static const struct query_kind kind = {
		.set = query_set_profile,
		.run = query_run_profile,
		.send = query_send_profile,
	};

	return query_answer(req, &kind);
}

#define QUERY_LIST(NAME)                                               \
	{                                                              \
		.set = query_set_list, .run = query_run_list,          \
		.send = query_send_list, .list = REPORTER_LIST_##NAME, \
	}

enum MHD_Result http_list_windows(struct http_request *req)
{
	static const struct query_kind kind = QUERY_LIST(WINDOWS);

	return query_answer(req, &kind);
}

enum MHD_Result http_list_processes(struct http_request *req)
{
	static const struct query_kind kind = QUERY_LIST(PROCESSES);

	return query_answer(req, &kind);
}

enum MHD_Result http_list_process(struct http_request *req)
{
	static const struct query_kind kind = QUERY_LIST(PROCESS);

	return query_answer(req, &kind);
}

/* --- work of other pages ---------------------------------------------------------- */

static void query_run_work(struct http_query *x)
{
	x->err = x->work_of.run(x->work_of.arg, &x->run);
}

static enum MHD_Result query_send_work(struct http_request *req,
				       struct http_query *x)
{
	return x->work_of.send(req);
}

int http_query_work(struct http_request *req, const struct http_work *work)
{
	static const struct query_kind kind = {
		.run = query_run_work,
		.send = query_send_work,
	};
	struct http_query *x = calloc(1, sizeof(*x));

	if (!x)
		return -ENOMEM;
	x->r = req->http->r;
	x->kind = &kind;
	x->work_of = *work;
	req->query = x;
	x->req = req;
	query_wait(req, x, work->end);
	return 0;
}

void http_query_again(struct http_request *req)
{
	query_wait(req, req->query, INT64_MIN);
}

int http_query_error(const struct http_request *req)
{
	return req->query->err;
}
