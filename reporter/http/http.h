/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http: what http.c (the server on the loop, profiles) and http_ledger.c
 * (processes, executables, events) share.
 */
#ifndef REPORTER_HTTP_H
#define REPORTER_HTTP_H

#include <microhttpd.h>
#include <sys/queue.h>

#include "reporter/http/http_conn.h"
#include "reporter/http/http_socket.h"
#include "reporter/internal.h"

#define HTTP_SLICE 32
#define HTTP_TEXT "text/plain; charset=utf-8"

/* A listener. */
struct http {
	struct http *next;
	struct reporter *r;
	struct MHD_Daemon *daemon;
	struct http_socket socket;
	struct http_conns conns;
	LIST_HEAD(, http_request) waiting;
	LIST_HEAD(, http_request) followers;
	uv_poll_t poll;
	uv_timer_t timer;
	int handles;
	unsigned int slice; /* processes that this run may still write */
};

enum http_state {
	HTTP_NEW,
	HTTP_WAITING, /* suspended; in the listener's list */
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
	bool bad_uri;
	bool head; /* the method is HEAD */
	struct http_header header; /* one more of an error; NULL: none */
	struct http_watch *watch;
	/* A profile. */
	bool profile; /* counted in http_open */
	bool early; /* a client that ends its sending side ends the profile */
	struct reporter_window *window;
	enum reporter_format format;
	char stem[ARCHIVE_NAME_MAX];
	void *data;
	size_t len;
	/* A stream of lines: appends to 'lines', by the size of the slice. */
	void (*more)(struct http_request *req, unsigned int slice);
	struct strbuf lines; /* not sent yet from 'sent' on */
	size_t sent;
	struct ledger_table *table; /* of processes */
	struct pm_exe *exe; /* the last one written; refcounted */
	bool following; /* events, without an end */
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
/* Suspends the connection and watches it for its end; and resumes it. */
void http_wait_begin(struct http_request *req);
void http_wait_end(struct http_request *req, enum http_state state);

/* --- http_ledger.c --------------------------------------------------------- */

enum MHD_Result http_processes(struct http_request *req);
enum MHD_Result http_executables(struct http_request *req);
enum MHD_Result http_events(struct http_request *req);
/* Frees what these keep in the request. */
void http_ledger_end(struct http_request *req);

#endif /* REPORTER_HTTP_H */
