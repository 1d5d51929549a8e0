/* SPDX-License-Identifier: Apache-2.0 */
/* internal: what reporter.c, http.c and metrics.c know of each other. */
#ifndef REPORTER_INTERNAL_H
#define REPORTER_INTERNAL_H

#include "base/base.h"
#include "reporter/archive.h"
#include "reporter/reporter.h"
#include "reporter/window.h"

struct http;
struct ledger_events;

/*
 * Open it is in one of the reporter's lists; closed it belongs to its job until
 * that completed on the loop.
 */
struct reporter_window {
	struct reporter_window *next;
	struct reporter *r;
	struct window tables;
	uint64_t begin, end;
	bool archive;
	bool selected_only;
	bool cancelled; /* nobody waits for it any more */
	enum reporter_format format;
	struct reporter_outfile file; /* of a profile that has a path */
	void (*done)(void *arg, int err, uint64_t nsamples, void *data,
		     size_t len);
	void *arg;
	uint64_t *losses; /* counts at the begin; not of the archive's */
	uint64_t nomem, late; /* traces */
	struct strbuf comments; /* lines, each with its NUL */
	/* The job. */
	uv_work_t work;
	struct window_meta meta;
	int err;
	char *path; /* of the archive's file; NULL: not made */
	void *data;
	size_t len;
	uint64_t bytes;
};

struct reporter {
	uv_loop_t *loop;
	char *hostname;
	char *version;
	unsigned int freq_hz;
	const struct reporter_event_type *types; /* of events */
	size_t ntypes;
	uint64_t *type_samples; /* added, by event */
	uint64_t window_ns;
	void (*collect)(void *arg, struct reporter_metrics *m);
	void (*asked)(void *arg);
	void (*limited)(void *arg, uint32_t uid);
	void (*health)(void *arg, struct reporter_health *h);
	void (*written)(void *arg, const char *path, int err,
			uint64_t nsamples);
	void *arg;
	const char *const *loss_names;
	size_t nlosses;
	const char *note;
	uint64_t *losses; /* counts by now */
	uint64_t *losses_archived; /* ... said by the archive's windows */

	struct archive *archive;
	enum reporter_format archive_format;
	struct reporter_window *windows; /* the archive's, by time */
	struct reporter_window *extras;
	uint64_t base; /* a window of the archive begins here, or did */
	uint64_t advanced;
	uint64_t latest; /* time of a trace */
	uint64_t rotated; /* the last time reporter_rotate() cut a window */
	uint64_t opened; /* windows */
	uint64_t rotate_at; /* it is to do so again; 0: it is not */
	size_t jobs;
	size_t archive_jobs; /* of them: windows of the archive */
	uint64_t jobs_since; /* one began, or the last one was done */
	int write_err; /* of the archive's last window; 0: it was written */
	struct reporter_stats stats;

	struct pm *pm;
	struct ledger_events *events; /* the last ones; NULL: nobody listens */
	struct http *http; /* listeners */
	size_t http_open; /* profile requests not yet answered in full */

	bool finishing;
	bool freed;
	bool grace_over; /* clients had their time to take their answers */
	void (*finished)(void *arg);
	void *finished_arg;
	uv_timer_t timer; /* of the finish */
	size_t handles; /* not yet closed */
};

/* ".pb" and so on. */
const char *reporter_ending(enum reporter_format format);
/* Forgets a window whose 'done' shall not be called. */
void reporter_window_cancel(struct reporter_window *w);
/* To be called when a handle or a request is gone. */
void reporter_handle_closed(struct reporter *r);
void reporter_check_finished(struct reporter *r);

enum metrics_form {
	METRICS_PROMETHEUS,
	METRICS_TEXT, /* lines of /status */
	METRICS_JSON, /* the same, and all metrics, as one object */
};
/* Bytes of text; malloc'd, NULL without memory. */
char *metrics_text(struct reporter *r, enum metrics_form form, size_t *lenp);

int http_listen(struct reporter *r, const char *address);
/* There are new events, or an end of them. */
void http_wake(struct reporter *r);
/* Ends all connections; handles close on the loop. */
void http_stop(struct reporter *r);

#endif /* REPORTER_INTERNAL_H */
