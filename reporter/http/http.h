/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http: what http.c (the daemon on the loop, profiles) and http_ledger.c
 * (processes, events) know of each other.
 */
#ifndef REPORTER_HTTP_H
#define REPORTER_HTTP_H

#include <microhttpd.h>

#include "reporter/http/http_conn.h"
#include "reporter/http/http_socket.h"
#include "reporter/internal.h"

#define HTTP_SLICE 32
#define HTTP_TEXT "text/plain; charset=utf-8"

struct http {
	struct http *next;
	struct reporter *r;
	struct MHD_Daemon *daemon;
	struct http_socket socket;
	struct http_conns conns;
	struct http_request *waiting;
	struct http_request *followers;
	uv_poll_t poll;
	uv_timer_t timer;
	int handles;
	unsigned int slice; /* processes that this run may still tell of */
};

enum http_state {
	HTTP_NEW,
	HTTP_WAITING, /* suspended; in the listener's list */
	HTTP_READY,
	HTTP_FAILED,
	HTTP_GONE,
};

struct http_watch;

struct http_request {
	struct http_request *next;
	struct http *http;
	struct MHD_Connection *conn;
	struct http_conn *peer; /* the same; NULL: no memory for it */
	enum http_state state;
	bool bad_uri;
	struct http_watch *watch;
	/* A profile. */
	bool profile; /* counted in http_open */
	bool early; /* a client that sends no more wants what there is */
	struct reporter_window *window;
	enum reporter_format format;
	char stem[ARCHIVE_NAME_MAX];
	void *data;
	size_t len;
	/* A table of processes. */
	struct ledger_table *table;
	/* A list of executables. */
	struct pm_exe *exe; /* the last one listed; refcounted */
	/* Events. */
	bool following;
	struct http_request *next_follower;
	uint64_t at, until; /* the next one's number; that of the end */
	struct strbuf lines; /* not sent yet, from 'sent' on */
	size_t sent;
};

struct http_header {
	const char *name, *value;
};

/* 'text' is malloc'd and the answer's from here on; NULL: no memory. */
enum MHD_Result http_send_text(struct http_request *req, char *text, size_t len,
			       const char *type);
/* One line of text; 'header' may be NULL. */
enum MHD_Result http_error(struct http_request *req, unsigned int status,
			   const struct http_header *header, const char *fmt,
			   ...) __attribute__((format(printf, 4, 5)));
enum MHD_Result http_busy(struct http_request *req, const char *why);
/*
 * Whether the client's user may have one more connection of that use, which this
 * one then is.
 */
bool http_may(struct http_request *req, enum http_conn_use use,
	      unsigned int max);
/* Runs what is ready, and says when to come again. */
void http_run(struct http *h);
/* Suspends the connection, which is watched for its end; and goes on. */
void http_wait_begin(struct http_request *req);
void http_wait_end(struct http_request *req, enum http_state state);

/* --- http_ledger.c --------------------------------------------------------- */

enum MHD_Result http_processes(struct http_request *req, bool head);
enum MHD_Result http_executables(struct http_request *req, bool head);
enum MHD_Result http_events(struct http_request *req, bool head);
/* The request is over. */
void http_ledger_end(struct http_request *req);

#endif /* REPORTER_HTTP_H */
