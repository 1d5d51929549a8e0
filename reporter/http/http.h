/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http: what http.c (the server on the loop) and the files of its pages share.
 */
#ifndef REPORTER_HTTP_H
#define REPORTER_HTTP_H

#include <microhttpd.h>
#include <sys/queue.h>

#include "reporter/http/http_conn.h"
#include "reporter/http/http_socket.h"
#include "reporter/internal.h"
#include "reporter/request/request.h"

#define HTTP_SLICE 32
#define HTTP_TEXT "text/plain; charset=utf-8"
#define HTTP_JSON "application/json"
#define HTTP_NDJSON "application/x-ndjson"

/* A listener. */
struct http {
	struct http *next;
	struct reporter *r;
	struct MHD_Daemon *daemon;
	struct http_socket socket;
	struct http_conns conns;
	LIST_HEAD(, http_request) waiting;
	LIST_HEAD(, http_request) followers;
	LIST_HEAD(, http_profile) profiles; /* that others may share */
	uv_poll_t poll;
	uv_timer_t timer;
	int handles;
	unsigned int slice; /* processes that this run may still write */
};

enum http_state {
	HTTP_NEW,
	HTTP_WAITING, /* in the listener's list */
	HTTP_READY,
	HTTP_FAILED,
	HTTP_GONE, /* the client has closed the connection */
};

struct http_watch;

struct http_header {
	const char *name, *value;
};

struct http_request {
	LIST_ENTRY(http_request) waiting;
	LIST_ENTRY(http_request) follower;
	struct http *http;
	struct MHD_Connection *conn;
	struct http_conn *peer; /* of 'conn'; NULL: out of memory */
	enum http_state state;
	bool suspended; /* by libmicrohttpd; while it waits */
	bool bad_uri;
	const char *rest; /* of the path, behind the route's; while it begins */
	bool head; /* the method is HEAD */
	bool member; /* the client may read everything: unix socket, or token */
	struct http_header header; /* one more of an error; NULL: none */
	struct http_watch *watch;
	struct http_query
		*query; /* of the archive; NULL: it is another request */
	/* Of a profile that is not sent yet, and the others who wait for it. */
	struct http_profile *profile;
	LIST_ENTRY(http_request) sharer;
	bool counted; /* in http_open */
	/* A stream of lines: appends to 'lines', by the size of the slice. */
	void (*more)(struct http_request *req, unsigned int slice);
	struct strbuf lines; /* not sent yet from 'sent' on */
	size_t sent;
	struct ledger_table *table; /* of processes */
	struct pm_exe *exe; /* the last one written; refcounted */
	/* Events: */
	struct http_events *events;
	struct http_feed *feed; /* of watched events */
	struct http_timeline *timeline; /* that is being sent */
	bool following; /* in the list of followers: those in the ring are kept */
	bool endless;
	uint64_t at, until; /* numbers of the next event and of the end */
};

/* An argument of the URL; NULL: missing. */
const char *http_arg(struct http_request *req, const char *name);
/* Takes over 'resp', which may be NULL; 'h' ends with a NULL name. */
enum MHD_Result http_queue(struct http_request *req, unsigned int status,
			   struct MHD_Response *resp,
			   const struct http_header *h);
/* 'text' is malloc'd and passes to the answer; NULL: out of memory. */
enum MHD_Result http_send_text(struct http_request *req, char *text, size_t len,
			       const char *type);
/* One line of text, with its end of line. */
enum MHD_Result http_error(struct http_request *req, unsigned int status,
			   const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* 503, to be tried again. */
enum MHD_Result http_busy(struct http_request *req, const char *why);
/*
 * Whether the client's user may have one more connection of that use; if so, this
 * connection becomes one.
 */
bool http_may(struct http_request *req, enum http_conn_use use,
	      unsigned int max);
/* Handles all that is ready, and sets the timer of the next run. */
void http_run(struct http *h);
/*
 * Suspends the connection at the end of this run, and watches it for its end; and
 * resumes it.
 */
void http_wait_begin(struct http_request *req);
void http_wait_end(struct http_request *req, enum http_state state);

/* --- http_profile.c -------------------------------------------------------- */

enum MHD_Result http_profile(struct http_request *req);
enum MHD_Result http_profile_waits(struct http_request *req);
/* Its parameter number 'i', terms aside; NULL: there are not so many. */
const char *http_profile_key(size_t i);
const char *http_profile_waits_key(size_t i);
/* The answer, once the wait has ended. */
enum MHD_Result http_profile_send(struct http_request *req);
/*
 * The client has closed its connection 'fd', or its sending side: whether that only
 * ends the profile.
 */
bool http_profile_ends(struct http_request *req, int fd);
/* The client is gone; without clients a profile is cancelled. */
void http_profile_leave(struct http_request *req);
/* Frees what is kept for the request. */
void http_profile_end(struct http_request *req);
/* The page that lists the profiles. */
enum MHD_Result http_index(struct http_request *req);

/* --- http_query.c ---------------------------------------------------------- */

#define HTTP_QUERIES_RUNNING 2

enum MHD_Result http_query(struct http_request *req);
enum MHD_Result http_list_windows(struct http_request *req);
enum MHD_Result http_list_processes(struct http_request *req);
enum MHD_Result http_list_process(struct http_request *req);
/* The answer, once it is there. */
enum MHD_Result http_query_send(struct http_request *req);
/* Ends the query of a request; its answer was sent, or is not wanted. */
void http_query_leave(struct http_request *req);
/* 400, or 503 if it was for lack of memory: a parameter by reporter_request_set(). */
enum MHD_Result http_bad_parameter(struct http_request *req, int err,
				   const char *key, const char *value,
				   const char *want);

/* Other work on the archive, in the same queue. */
struct http_work {
	int64_t end; /* wall time: what was before it has to be in the archive */
	/* On a pool thread; an error as of reporter_request_run(). */
	int (*run)(void *arg, struct reporter_request_run *run);
	enum MHD_Result (*send)(struct http_request *req); /* without error */
	void (*release)(void *arg); /* nobody uses 'arg' any more */
	void *arg;
};
/* The request waits until it is done. 0, or -ENOMEM: 'arg' is not used. */
int http_query_work(struct http_request *req, const struct http_work *work);
/* Runs it once more. */
void http_query_again(struct http_request *req);
/* The result of the work, when it is done. */
int http_query_error(const struct http_request *req);

/* --- http_openapi.c -------------------------------------------------------- */

/* The parameters of an endpoint; at most. */
#define HTTP_ARGS_MAX 8

/* A page. */
struct http_route {
	const char *path;
	bool open; /* over TCP without a token, too */
	bool prefix; /* a name follows, ... */
	const char *suffix; /* ... and this; NULL: nothing */
	bool terms; /* parameters choose processes, too */
	enum MHD_Result (*answer)(struct http_request *req);
	const char *what; /* in a line */
	const char *type; /* of the answer */
	/* It checks its parameters itself; this is their number 'i', or NULL. */
	const char *(*key)(size_t i);
	const char *args[HTTP_ARGS_MAX]; /* if not */
};

/* Those of the server; '*n' of them. */
const struct http_route *http_routes_get(size_t *n);
/* The description of all pages by OpenAPI 3.0. */
enum MHD_Result http_openapi(struct http_request *req);

/* --- http_ledger.c --------------------------------------------------------- */

enum MHD_Result http_processes(struct http_request *req);
enum MHD_Result http_executables(struct http_request *req);
/* Bytes of text for a slice. */
size_t http_piece(unsigned int slice);
/* Answers with what req->more() appends. */
enum MHD_Result http_send_stream(struct http_request *req);
/* Frees what these keep in the request. */
void http_ledger_end(struct http_request *req);

/* --- http_events.c --------------------------------------------------------- */

enum MHD_Result http_events(struct http_request *req);
/* Its parameter number 'i'; NULL: there are not so many. */
const char *http_events_key(size_t i);
void http_events_end(struct http_request *req);

/* --- http_feed.c ------------------------------------------------------------ */

enum MHD_Result http_feed(struct http_request *req);
/* Its parameter number 'i', terms aside; NULL: there are not so many. */
const char *http_feed_key(size_t i);
/* Makes lines of the events that have come. */
void http_feed_collect(struct http_request *req);
void http_feed_end(struct http_request *req);

/* --- http_timeline.c -------------------------------------------------------- */

enum MHD_Result http_timeline(struct http_request *req);
enum MHD_Result http_why(struct http_request *req);
void http_timeline_end(struct http_request *req);

#endif /* REPORTER_HTTP_H */
