/* SPDX-License-Identifier: Apache-2.0 */
/* internal: what the files of the reporter share. */
#ifndef REPORTER_INTERNAL_H
#define REPORTER_INTERNAL_H

#include <sys/queue.h>

#include "base/base.h"
#include "reporter/catalog/catalog.h"
#include "reporter/reporter.h"
#include "reporter/store/store.h"
#include "reporter/store/times_file.h"
#include "reporter/waits.h"
#include "reporter/window.h"

struct http;
struct http_access;
struct http_query;
struct ledger_events;

/*
 * While open, in one of the reporter's lists; once closed, owned by its job until
 * that completes on the loop.
 */
struct reporter_window {
	TAILQ_ENTRY(reporter_window) entry;
	struct reporter *r;
	struct window tables;
	/* Beside the tables: of the archive's, with opts.waits, and of wall time. */
	struct waits *waits;
	uint64_t begin, end;
	uint64_t edge; /* see reporter_window_opts */
	bool archive;
	bool selected_only;
	bool closed;
	struct reporter_query_terms terms;
	struct reporter_form form;
	enum reporter_format format;
	struct reporter_outfile file; /* if the profile has a path */
	void (*done)(void *arg, int err, uint64_t nsamples, void *data,
		     size_t len);
	void *arg;
	uint64_t *losses; /* counts at the begin; NULL in the archive's */
	uint64_t nomem, late; /* traces */
	struct strbuf comments; /* strings with their NUL */
	size_t head_len; /* of them: without counts */
	/* The job. */
	uv_work_t work;
	struct window_meta meta;
	int err;
	char *path; /* of the archive's file; NULL: not created */
	uint64_t unwritten; /* samples of earlier windows, in its comments */
	struct store_write write; /* into the archive */
	struct store_stats store_stats; /* when written */
	void *data;
	size_t len;
	uint64_t bytes;
};

TAILQ_HEAD(reporter_windows, reporter_window);

struct reporter {
	struct reporter_opts opts; /* without the strings of the caller: */
	char *hostname;
	char *version;
	uint64_t window_ns;
	uint64_t *type_samples; /* samples added, by event */
	uint64_t *losses; /* the current counts */
	uint64_t *losses_archived; /* those that the archive has in comments */

	struct store *store; /* the archive, or NULL */
	struct catalog *catalog; /* of the archive, or NULL */
	uint8_t boot_id[STORE_BOOT_ID];
	struct reporter_windows windows; /* the archive's, by time */
	struct reporter_windows extras;
	uint64_t started; /* the begin of the first window */
	uint64_t base; /* before it no archive window can begin any more */
	uint64_t advanced; /* the watermark */
	uint64_t latest; /* time of the latest trace */
	uint64_t rotated; /* time of the last reporter_rotate() */
	uint64_t rotate_at; /* time of a delayed one; 0: none */
	uint64_t opened; /* number of windows */
	size_t jobs;
	size_t archive_jobs; /* of them: windows of the archive */
	uint64_t jobs_since; /* the first began, or the last one completed */
	int write_err; /* of the archive's last window; 0: written */
	uint64_t unwritten; /* samples that no window's comments have yet */
	struct reporter_stats stats;

	struct ledger_events *events; /* NULL without a listener */
	struct http_access *access; /* NULL: no token, no TLS */
	struct http *http; /* listeners */
	TAILQ_HEAD(, http_query)
	queries; /* of the archive, until they are done */
	unsigned int queries_running;
	unsigned int timelines; /* that are being sent */
	bool shed; /* reporter_shed() */
	uint64_t queries_cut; /* CLOCK_BOOTTIME until which their cuts count */
	size_t http_open; /* profile requests not yet answered in full */

	bool finishing;
	bool freed;
	bool grace_over; /* no more waiting for clients to read answers */
	void (*finished)(void *arg);
	void *finished_arg;
	uv_timer_t timer; /* of the finish */
	size_t handles; /* not yet closed */
};

/*
 * The archive's window of a time, opened if necessary; the oldest open one if
 * that is already closed. NULL: out of memory.
 */
struct reporter_window *reporter_window_at(struct reporter *r, uint64_t time);
/* Frees a window, at the latest when its job completes; 'done' is not called. */
void reporter_window_cancel(struct reporter_window *w);
/* Whether it has events that are apart. */
bool reporter_window_apart(const struct reporter_window *w);
/* To be called when reporter_apart_edge() may have changed. */
void reporter_edges_changed(const struct reporter *r);
/* To be called when a handle or a request is gone. */
void reporter_handle_closed(struct reporter *r);
void reporter_check_finished(struct reporter *r);

enum metrics_form {
	METRICS_PROMETHEUS,
	METRICS_TEXT, /* /status as lines */
	METRICS_JSON, /* /status and all metrics as one object */
};
/* malloc'd text of '*lenp' bytes; NULL: out of memory. */
char *metrics_text(struct reporter *r, enum metrics_form form, size_t *lenp);

int http_listen(struct reporter *r, const char *address);
/* To be called after new events, and when the reporter is finishing. */
void http_wake(struct reporter *r);
/* Starts queries whose time has come: after a window was written or closed. */
void http_queries_wake(struct reporter *r);
void http_queries_end(struct reporter *r);
/* The watermark that queries wait for; UINT64_MAX: none. */
uint64_t http_queries_due(const struct reporter *r);
/* Closes all connections and listeners; handles close on the loop. */
void http_stop(struct reporter *r);

#endif /* REPORTER_INTERNAL_H */
