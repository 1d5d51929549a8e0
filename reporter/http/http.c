// SPDX-License-Identifier: Apache-2.0
/*
 * http: libmicrohttpd, driven by the loop. Each listener is an MHD daemon without
 * threads, whose epoll descriptor the loop watches; all callbacks are on the
 * loop's thread.
 *
 * MHD does not poll a suspended connection, so the loop watches it for its end.
 * Like in Go's server, a client that only shuts down its sending side counts as
 * gone, too.
 */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "reporter/health.h"
#include "reporter/http/http.h"
#include "reporter/http/http_access.h"

/* Not reached: http_conn.c closes those beyond its own limit. */
#define HTTP_DAEMON_MAX (HTTP_CONNECTIONS_MAX + 32)
#define HTTP_AGAIN_MS 1000
#define HTTP_RETRY_AFTER "5"

/* In place of a request whose URI has a NUL, where MHD would cut it. */
static char http_bad_uri;

/* Freed when its handle is closed, which may be after the request. */
struct http_watch {
	uv_poll_t poll;
	struct http_request *req;
	struct reporter *r;
	int fd;
};

/* --- answers ------------------------------------------------------------- */

const char *http_arg(struct http_request *req, const char *name)
{
	return MHD_lookup_connection_value(req->conn, MHD_GET_ARGUMENT_KIND,
					   name);
}

enum MHD_Result http_queue(struct http_request *req, unsigned int status,
			   struct MHD_Response *resp,
			   const struct http_header *h)
{
	enum MHD_Result res;

	if (!resp)
		return MHD_NO;
	for (; h->name; h++)
		MHD_add_response_header(resp, h->name, h->value);
	MHD_add_response_header(resp, "X-Content-Type-Options", "nosniff");
	res = MHD_queue_response(req->conn, status, resp);
	MHD_destroy_response(resp);
	if (status >= MHD_HTTP_BAD_REQUEST)
		req->http->r->stats.http_errors++;
	return res;
}

/* 'data' is malloc'd and passes to the answer. */
static enum MHD_Result http_send(struct http_request *req, unsigned int status,
				 void *data, size_t len,
				 const struct http_header *h)
{
	struct MHD_Response *resp = MHD_create_response_from_buffer(
		len, data, MHD_RESPMEM_MUST_FREE);

	if (!resp)
		free(data);
	return http_queue(req, status, resp, h);
}

enum MHD_Result http_send_text(struct http_request *req, char *text, size_t len,
			       const char *type)
{
	const struct http_header h[] = {
		{ MHD_HTTP_HEADER_CONTENT_TYPE, type },
		{ NULL, NULL },
	};

	return text ? http_send(req, MHD_HTTP_OK, text, len, h) : MHD_NO;
}

enum MHD_Result http_error(struct http_request *req, unsigned int status,
			   const char *fmt, ...)
{
	const struct http_header h[] = {
		{ MHD_HTTP_HEADER_CONTENT_TYPE, HTTP_TEXT },
		/* Connections are limited; this one is not worth keeping. */
		{ MHD_HTTP_HEADER_CONNECTION, "close" },
		req->header,
		{ NULL, NULL },
	};
	char *text;
	va_list ap;
	int len;

	va_start(ap, fmt);
	len = vasprintf(&text, fmt, ap);
	va_end(ap);
	return len < 0 ? MHD_NO : http_send(req, status, text, len, h);
}

enum MHD_Result http_busy(struct http_request *req, const char *why)
{
	req->header = (struct http_header){ MHD_HTTP_HEADER_RETRY_AFTER,
					    HTTP_RETRY_AFTER };
	return http_error(req, MHD_HTTP_SERVICE_UNAVAILABLE, "%s\n", why);
}

/* --- the daemon on the loop ---------------------------------------------- */

static void http_on_timer(uv_timer_t *timer);

static bool http_has_connections(const struct http *h)
{
	const union MHD_DaemonInfo *info;

	info = MHD_get_daemon_info(h->daemon,
				   MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
	return info && info->num_connections;
}

/*
 * Those that began to wait in this run, at the head of the list. libmicrohttpd
 * 0.9.75 keeps what a connection waits for (to read, to write, nothing) as it was
 * when its handler suspended it: for a request to be read. Resumed, it reads again,
 * finds the end if the client has shut down its sending side, and closes without
 * an answer. After the run it is known that the connection waits for nothing.
 */
static void http_suspend_new(struct http *h)
{
	struct http_request *req;

	LIST_FOREACH(req, &h->waiting, waiting) {
		if (req->suspended)
			break;
		MHD_suspend_connection(req->conn);
		req->suspended = true;
	}
}

/*
 * Runs once a second while there are connections, to close those that are past
 * their deadline. Also, MHD stops listening at its limit of connections, and
 * only a run after the end of one starts it again.
 */
void http_run(struct http *h)
{
	bool busy = http_has_connections(h);
	MHD_UNSIGNED_LONG_LONG ms;
	bool timeout;

	h->r->stats.http_slow += http_conns_check(&h->conns);
	h->slice = HTTP_SLICE;
	MHD_run(h->daemon);
	http_suspend_new(h);
	timeout = MHD_get_timeout(h->daemon, &ms) == MHD_YES;
	if (busy && (!timeout || ms > HTTP_AGAIN_MS))
		ms = HTTP_AGAIN_MS;
	/* libuv 1.44 would run a timer of 0 ms again before all else. */
	if (busy || timeout)
		uv_timer_start(&h->timer, http_on_timer, MAX(ms, 1), 0);
	else
		uv_timer_stop(&h->timer);
}

static void http_on_timer(uv_timer_t *timer)
{
	http_run(timer->data);
}

static void http_on_readable(uv_poll_t *poll, int status, int events)
{
	struct http *h = poll->data;

	if (h->r->opts.refresh)
		h->r->opts.refresh(h->r->opts.arg);
	http_run(h);
}

/* --- waiting ----------------------------------------------------------- */

static void http_watch_closed(uv_handle_t *handle)
{
	struct http_watch *w = handle->data;
	struct reporter *r = w->r;

	free(w);
	reporter_handle_closed(r);
}

static void http_wait_leave(struct http_request *req, enum http_state state)
{
	LIST_REMOVE(req, waiting);
	req->http->r->stats.http_waiting--;
	req->state = state;
	if (req->watch)
		uv_close((uv_handle_t *)&req->watch->poll, http_watch_closed);
	req->watch = NULL;
}

void http_wait_end(struct http_request *req, enum http_state state)
{
	http_wait_leave(req, state);
	if (!req->suspended) /* in the run in which it began */
		MHD_suspend_connection(req->conn);
	req->suspended = false;
	MHD_resume_connection(req->conn);
}

static void http_wait_cancel(struct http_request *req)
{
	http_profile_leave(req);
	http_query_leave(req);
	http_wait_end(req, HTTP_GONE);
}

static void http_on_gone(uv_poll_t *poll, int status, int events)
{
	struct http_watch *w = poll->data;
	struct http *h = w->req->http;

	if (http_profile_ends(w->req, w->fd)) {
		uv_poll_stop(poll);
		return;
	}
	http_wait_cancel(w->req);
	http_run(h);
}

static int http_fd(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info;

	info = MHD_get_connection_info(conn, MHD_CONNECTION_INFO_CONNECTION_FD);
	return info ? info->connect_fd : -1;
}

/* If this fails (-ENOMEM), the profile is made even if the client is gone. */
static void http_watch(struct http_request *req)
{
	struct http_watch *w = calloc(1, sizeof(*w));
	struct reporter *r = req->http->r;
	int fd = http_fd(req->conn);

	if (!w || uv_poll_init(r->opts.loop, &w->poll, fd)) {
		free(w);
		return;
	}
	w->poll.data = w;
	w->req = req;
	w->r = r;
	w->fd = fd;
	r->handles++;
	req->watch = w;
	uv_poll_start(&w->poll, UV_DISCONNECT, http_on_gone);
}

void http_wait_begin(struct http_request *req)
{
	req->state = HTTP_WAITING;
	LIST_INSERT_HEAD(&req->http->waiting, req, waiting);
	req->http->r->stats.http_waiting++;
	http_watch(req);
}

/* --- endpoints ----------------------------------------------------------- */

static enum MHD_Result http_healthz(struct http_request *req)
{
	struct strbuf sb = STRBUF_INIT;
	struct reporter_health h;
	enum health_state state = health_collect(req->http->r, &h);
	enum MHD_Result res = MHD_NO;

	if (state != HEALTH_FAILING)
		strbuf_puts(&sb, health_word(state));
	if (state == HEALTH_DEGRADED)
		strbuf_puts(&sb, ": ");
	health_text(&h, &sb);
	strbuf_puts(&sb, "\n");
	if (!sb.failed && state != HEALTH_FAILING)
		return http_send_text(req, sb.data, sb.len, HTTP_TEXT);
	if (!sb.failed)
		res = http_error(req, MHD_HTTP_SERVICE_UNAVAILABLE, "%s",
				 sb.data);
	strbuf_fini(&sb);
	return res;
}

static enum MHD_Result http_metrics(struct http_request *req)
{
	size_t len = 0;
	char *text = metrics_text(req->http->r, METRICS_PROMETHEUS, &len);

	return http_send_text(req, text, len,
			      "text/plain; version=0.0.4; charset=utf-8");
}

static enum MHD_Result http_status(struct http_request *req)
{
	const char *form = http_arg(req, "format");
	bool json = form && !strcmp(form, "json");
	size_t len = 0;
	char *text;

	if (form && !json && strcmp(form, "text"))
		return http_error(req, MHD_HTTP_BAD_REQUEST,
				  "format: json or text, not \"%.64s\"\n",
				  form);
	text = metrics_text(req->http->r, json ? METRICS_JSON : METRICS_TEXT,
			    &len);
	return http_send_text(req, text, len,
			      json ? "application/json" : HTTP_TEXT);
}

/* A page without parameters that refuses them itself. */
static const char *http_no_key(size_t i)
{
	return NULL;
}

#define HTTP_ROUTE(PATH, ANSWER, TYPE, WHAT) \
	.path = (PATH), .answer = (ANSWER), .type = (TYPE), .what = (WHAT)

static const struct http_route http_routes[] = {
	{ HTTP_ROUTE("/api/events", http_events, HTTP_NDJSON,
		     "forks, execs and exits"),
	  .key = http_events_key, .terms = true },
	{ HTTP_ROUTE("/api/openapi.json", http_openapi, HTTP_JSON,
		     "this description") },
	{ HTTP_ROUTE("/api/process/", http_timeline, HTTP_NDJSON,
		     "what the threads of a process did in the last minutes, "
		     "segment by segment (--wait)"),
	  .prefix = true, .suffix = "/timeline", .args = { "last", "tid" } },
	{ HTTP_ROUTE("/api/process/", http_why, HTTP_NDJSON,
		     "where the time of a span of a thread went, through what "
		     "woke it, with the stacks of its waits (--wait)"),
	  .prefix = true, .suffix = "/why", .args = { "from", "to", "tid" } },
	{ HTTP_ROUTE("/api/process/", http_list_process, HTTP_JSON,
		     "a process of the archive, by its id or pid, with its "
		     "images, ancestors, children and windows"),
	  .prefix = true, .key = http_no_key },
	{ HTTP_ROUTE("/api/processes", http_list_processes, HTTP_JSON,
		     "processes of the archive"),
	  .key = reporter_list_key, .terms = true },
	{ HTTP_ROUTE("/api/profile", http_query, "application/octet-stream",
		     "a profile of any time of the archive"),
	  .key = reporter_request_key, .terms = true },
	{ HTTP_ROUTE("/api/watch", http_feed, HTTP_NDJSON,
		     "events of the kernel as they happen"),
	  .key = http_feed_key, .terms = true },
	{ HTTP_ROUTE("/api/windows", http_list_windows, HTTP_JSON,
		     "windows of the archive"),
	  .key = reporter_list_key },
	{ HTTP_ROUTE("/debug/pprof/", http_index, HTTP_TEXT,
		     "the list of profiles"),
	  .open = true },
	{ HTTP_ROUTE("/debug/pprof/profile", http_profile,
		     "application/octet-stream", "a profile from now on"),
	  .open = true, .key = http_profile_key, .terms = true },
	{ HTTP_ROUTE("/debug/pprof/wait", http_profile_waits,
		     "application/octet-stream",
		     "why threads do not run, from now on (--wait)"),
	  .open = true, .key = http_profile_waits_key, .terms = true },
	{ HTTP_ROUTE("/executables", http_executables, HTTP_NDJSON,
		     "executables of the processes"),
	  .args = { "id" } },
	{ HTTP_ROUTE("/healthz", http_healthz, HTTP_TEXT,
		     "whether profd works as it should"),
	  .open = true },
	{ HTTP_ROUTE("/metrics", http_metrics, HTTP_TEXT,
		     "counters for Prometheus"),
	  .open = true },
	{ HTTP_ROUTE("/processes", http_processes, HTTP_NDJSON,
		     "processes as they are now"),
	  .args = { "all" } },
	{ HTTP_ROUTE("/status", http_status, HTTP_TEXT, "the state of profd"),
	  .args = { "format" } },
};

const struct http_route *http_routes_get(size_t *n)
{
	*n = ARRAY_SIZE(http_routes);
	return http_routes;
}

/* Of a URL's parameters. */
struct http_args {
	const struct http_route *route;
	unsigned int seen; /* bits by index */
	const char *wrong, *why;
};

static enum MHD_Result http_on_arg(void *arg, enum MHD_ValueKind kind,
				   const char *key, const char *value)
{
	struct http_args *a = arg;
	size_t i = 0;

	while (i < HTTP_ARGS_MAX && a->route->args[i] &&
	       strcmp(a->route->args[i], key))
		i++;
	if (i == HTTP_ARGS_MAX || !a->route->args[i])
		a->why = "no such parameter";
	else if (a->seen >> i & 1)
		a->why = "given twice";
	a->seen |= 1U << i;
	if (!a->why)
		return MHD_YES;
	a->wrong = key;
	return MHD_NO;
}

static enum MHD_Result http_answer(struct http_request *req,
				   const struct http_route *route)
{
	struct http_args a = { .route = route };

	if (!route->key)
		MHD_get_connection_values(req->conn, MHD_GET_ARGUMENT_KIND,
					  http_on_arg, &a);
	if (a.why)
		return http_error(req, MHD_HTTP_BAD_REQUEST, "%.64s: %s\n",
				  a.wrong, a.why);
	return route->answer(req);
}

static const char *http_request_header(struct http_request *req,
				       const char *name)
{
	return MHD_lookup_connection_value(req->conn, MHD_HEADER_KIND, name);
}

static enum MHD_Result http_unauthorized(struct http_request *req,
					 const char *why)
{
	req->header = (struct http_header){ MHD_HTTP_HEADER_WWW_AUTHENTICATE,
					    "Bearer realm=\"profd\"" };
	return http_error(req, MHD_HTTP_UNAUTHORIZED, "%s\n", why);
}

/*
 * Whether the client may have that page (NULL: there is none); if not, '*res' is the
 * answer. The file of a unix socket decides who may connect.
 */
static bool http_allowed(struct http_request *req,
			 const struct http_route *route, enum MHD_Result *res)
{
	const struct http_access *access = req->http->r->access;
	const char *host = http_request_header(req, MHD_HTTP_HEADER_HOST);
	enum http_token token = HTTP_TOKEN_NONE;

	req->member = req->http->socket.ino;
	if (req->member)
		return true;
	if (access)
		token = http_access_token(
			access, http_request_header(
					req, MHD_HTTP_HEADER_AUTHORIZATION));
	req->member = token == HTTP_TOKEN_RIGHT;
	if (req->member)
		return true;
	if (token == HTTP_TOKEN_WRONG)
		*res = http_unauthorized(req, "wrong token");
	else if (req->http->socket.address.remote)
		*res = http_unauthorized(req, "a token is needed");
	else if (!http_host_is_local(host) &&
		 !(access && http_access_host(access, host)))
		*res = http_error(req, MHD_HTTP_FORBIDDEN,
				  "Host: neither an address nor localhost, nor "
				  "a name of --host-name\n");
	else if (route && !route->open)
		*res = http_unauthorized(
			req, "over TCP this needs a token (profd run "
			     "--token-file); or use the unix socket");
	else
		return true;
	return false;
}

static bool http_ends_in(const char *s, const char *end)
{
	size_t len = strlen(s), of = strlen(end);

	return len >= of && !strcmp(s + len - of, end);
}

static const struct http_route *http_find_route(const char *url)
{
	const struct http_route *r;
	size_t len;

	for (r = http_routes; r < http_routes + ARRAY_SIZE(http_routes); r++) {
		len = strlen(r->path);
		if (!strcmp(url, r->path) && !r->suffix)
			return r;
		if (r->prefix && !strncmp(url, r->path, len) &&
		    (!r->suffix || http_ends_in(url + len, r->suffix)))
			return r;
	}
	return NULL;
}

static enum MHD_Result http_dispatch(struct http_request *req, const char *url,
				     const char *method)
{
	const struct http_route *route = http_find_route(url);
	enum MHD_Result res;

	req->rest = route ? url + strlen(route->path) : "";
	req->head = !strcmp(method, MHD_HTTP_METHOD_HEAD);
	req->http->r->stats.http_requests++;
	if (req->bad_uri)
		return http_error(req, MHD_HTTP_BAD_REQUEST,
				  "a URL cannot contain a NUL (%%00)\n");
	if (!http_allowed(req, route, &res))
		return res;
	if (!route)
		return http_error(req, MHD_HTTP_NOT_FOUND,
				  "%.256s: no such page\n", url);
	if (req->head || !strcmp(method, MHD_HTTP_METHOD_GET))
		return http_answer(req, route);
	req->header =
		(struct http_header){ MHD_HTTP_HEADER_ALLOW, "GET, HEAD" };
	return http_error(req, MHD_HTTP_METHOD_NOT_ALLOWED,
			  "%.32s: only GET and HEAD\n", method);
}

static struct http_conn *http_conn_of(struct MHD_Connection *conn)
{
	const union MHD_ConnectionInfo *info;

	info = MHD_get_connection_info(conn,
				       MHD_CONNECTION_INFO_SOCKET_CONTEXT);
	return info ? info->socket_context : NULL;
}

bool http_may(struct http_request *req, enum http_conn_use use,
	      unsigned int max)
{
	struct http_conns *conns = &req->http->conns;

	if (!req->peer)
		return true;
	if (!http_conn_may(conns, req->peer, use, max))
		return false;
	http_conn_set(conns, req->peer, use);
	return true;
}

static void http_on_limited(void *arg, uid_t uid)
{
	struct reporter *r = arg;

	if (r->opts.limited)
		r->opts.limited(r->opts.arg, uid, REPORTER_LIMIT_CONNECTIONS);
}

static void http_on_connection(void *arg, struct MHD_Connection *conn,
			       void **context,
			       enum MHD_ConnectionNotificationCode what)
{
	struct http *h = arg;

	if (what == MHD_CONNECTION_NOTIFY_STARTED)
		*context = http_conn_new(&h->conns, http_fd(conn),
					 &h->r->stats.http_evicted);
	else if (*context)
		http_conn_free(&h->conns, *context);
}

/* The result is the first value of *con_cls. */
static void *http_on_uri(void *arg, const char *uri,
			 struct MHD_Connection *conn)
{
	return strstr(uri, "%00") ? &http_bad_uri : NULL;
}

static struct http_request *
http_request_new(struct http *h, struct MHD_Connection *conn, bool bad_uri)
{
	struct http_request *req = calloc(1, sizeof(*req));

	if (!req)
		return NULL;
	req->http = h;
	req->conn = conn;
	req->peer = http_conn_of(conn);
	req->bad_uri = bad_uri;
	return req;
}

/* Called with the headers, for each piece of the body, and for the answer. */
static enum MHD_Result http_on_request(void *arg, struct MHD_Connection *conn,
				       const char *url, const char *method,
				       const char *version, const char *upload,
				       size_t *upload_size, void **con_cls)
{
	struct http_request *req = *con_cls;

	if (!req || *con_cls == &http_bad_uri) {
		*con_cls = http_request_new(arg, conn, req);
		return *con_cls ? MHD_YES : MHD_NO;
	}
	if (*upload_size) {
		*upload_size = 0; /* ignored */
		return MHD_YES;
	}
	/* The request is complete: its deadline ends. */
	if (req->peer && req->state == HTTP_NEW)
		http_conn_set(&req->http->conns, req->peer, HTTP_CONN_BUSY);
	if (req->state == HTTP_NEW)
		return http_dispatch(req, url, method);
	if (req->state == HTTP_WAITING)
		return MHD_YES;
	return req->query && req->state != HTTP_GONE ? http_query_send(req)
						     : http_profile_send(req);
}

static void http_on_completed(void *arg, struct MHD_Connection *conn,
			      void **con_cls,
			      enum MHD_RequestTerminationCode why)
{
	struct http_request *req = *con_cls;
	struct http *h = arg;

	if (!req || *con_cls == &http_bad_uri)
		return;
	*con_cls = NULL;
	if (req->state == HTTP_WAITING) /* closed before it was suspended */
		http_wait_leave(req, HTTP_GONE);
	if (req->peer)
		http_conn_set(&h->conns, req->peer, HTTP_CONN_IDLE);
	http_profile_end(req);
	http_query_leave(req);
	http_ledger_end(req);
	http_events_end(req);
	http_feed_end(req);
	http_timeline_end(req);
	free(req);
	reporter_check_finished(h->r);
}

/* --- listeners ----------------------------------------------------------- */

static void http_closed(uv_handle_t *handle)
{
	struct http *h = handle->data;
	struct reporter *r = h->r;

	if (!--h->handles)
		free(h);
	reporter_handle_closed(r);
}

static void http_stop_one(struct http *h)
{
	/* MHD_stop_daemon() must not find suspended connections. */
	while (!LIST_EMPTY(&h->waiting))
		http_wait_cancel(LIST_FIRST(&h->waiting));
	http_socket_unlink(&h->socket);
	uv_close((uv_handle_t *)&h->poll, http_closed);
	uv_close((uv_handle_t *)&h->timer, http_closed);
	MHD_stop_daemon(h->daemon); /* closes the socket */
}

void http_stop(struct reporter *r)
{
	struct http *h;

	while ((h = r->http)) {
		r->http = h->next;
		http_stop_one(h);
	}
}

/* TLS 1.2 is the least that is not deprecated (RFC 8996). */
#define HTTP_TLS "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"

static enum MHD_Result http_on_tls(void *arg, const struct sockaddr *from,
				   socklen_t len)
{
	struct reporter *r = arg;

	if (http_access_connect(r->access, from, clock_awake_ns()))
		return MHD_YES;
	r->stats.http_refused++;
	return MHD_NO;
}

static int http_start_daemon(struct http *h)
{
	bool tls = !h->socket.ino && h->r->access &&
		   http_access_cert(h->r->access);
	const struct MHD_OptionItem options[] = {
		{ MHD_OPTION_LISTEN_SOCKET, h->socket.fd, NULL },
		{ MHD_OPTION_CONNECTION_LIMIT, HTTP_DAEMON_MAX, NULL },
		{ MHD_OPTION_CONNECTION_TIMEOUT, HTTP_IDLE_S, NULL },
		{ tls ? MHD_OPTION_HTTPS_PRIORITIES : MHD_OPTION_END, 0,
		  HTTP_TLS },
		{ MHD_OPTION_HTTPS_MEM_CERT, 0,
		  tls ? (char *)http_access_cert(h->r->access) : NULL },
		{ MHD_OPTION_HTTPS_MEM_KEY, 0,
		  tls ? (char *)http_access_key(h->r->access) : NULL },
		{ MHD_OPTION_END, 0, NULL },
	};
	const union MHD_DaemonInfo *info;
	int err;

	h->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME |
			(tls ? MHD_USE_TLS : 0),
		0, tls ? http_on_tls : NULL, h->r, http_on_request, h,
		MHD_OPTION_NOTIFY_COMPLETED, http_on_completed, h,
		MHD_OPTION_NOTIFY_CONNECTION, http_on_connection, h,
		MHD_OPTION_URI_LOG_CALLBACK, http_on_uri, NULL,
		MHD_OPTION_ARRAY, options, MHD_OPTION_END);
	if (!h->daemon) {
		close(h->socket.fd);
		return tls ? -EBADMSG : -ENOMEM;
	}
	info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	err = info ? uv_poll_init(h->r->opts.loop, &h->poll, info->epoll_fd)
		   : -ENOTSUP;
	if (err)
		MHD_stop_daemon(h->daemon);
	return err;
}

/* A token over a network that others read is none: TLS is needed, too. */
static bool http_may_listen(const struct reporter *r, const char *address)
{
	struct http_address a;

	return http_parse_address(address, &a) || !a.remote ||
	       (r->access && http_access_remote(r->access));
}

int http_listen(struct reporter *r, const char *address)
{
	struct http *h;
	int err;

	if (!http_may_listen(r, address))
		return -EPERM;
	h = calloc(1, sizeof(*h));
	if (!h)
		return -ENOMEM;
	h->r = r;
	TAILQ_INIT(&h->conns.list);
	h->conns.limited = http_on_limited;
	h->conns.arg = r;
	err = http_socket_open(&h->socket, address);
	if (err) {
		free(h);
		return err;
	}
	err = http_start_daemon(h);
	if (err) {
		http_socket_unlink(&h->socket);
		free(h);
		return err;
	}
	uv_timer_init(r->opts.loop, &h->timer); /* cannot fail */
	h->poll.data = h->timer.data = h;
	h->handles = 2;
	r->handles += 2;
	h->next = r->http;
	r->http = h;
	uv_poll_start(&h->poll, UV_READABLE, http_on_readable);
	http_run(h);
	return 0;
}
