/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers: the queue of requests for files of other processes, and the worker
 * processes that read them.
 *
 * The first process is started at once; further ones are started while jobs are
 * queued and it is busy, and ended soon after.
 *
 * Jobs are scheduled fairly by party: the owner of the file, and the user id
 * that it was opened for. The party that used the least time is next. A party
 * with a job at work gets a second process only when that job is slow, never
 * the last free process, and none if it has used much CPU time (worker_pace.h).
 * A user's contexts are a party of their own: they take microseconds, and would
 * wait for files that take seconds.
 *
 * If processes repeatedly fail on a party's files without an answer in between,
 * that party pauses, up to ten seconds; from the eighth failure on its requests
 * end with -EIO during the pause. Other parties are not affected.
 *
 * Names of a user's files wait while reading them takes more CPU time than the
 * user's share (worker_pace.h).
 *
 * Within a party, identities and unwind tables go before names: a stack without
 * tables is lost, one without names still has addresses. Then the file that had
 * its turn longest ago is next; one job of a file at a time.
 */
#ifndef SYMBOLIZE_WORKERS_H
#define SYMBOLIZE_WORKERS_H

#include "symbolize/reader/worker.h"

struct workers;

struct workers_opts {
	struct worker_opts worker; /* up to 'report_arg' */
	size_t index_ceiling; /* of the indexes of all workers, and: */
	const size_t *index_used; /* of those elsewhere */
	uint64_t retry_ms; /* of a quarantined file */
	void (*closed)(
		void *arg); /* workers_free() is done, later on the loop */
	void *arg;
};

/* 0 or -errno. Success even if no process can be started. */
int workers_new(struct workers **wsp, const struct workers_opts *opts);
/* Remaining jobs end with -ECANCELED before it returns. */
void workers_free(struct workers *ws);

/* done() is not called from inside. 0 or -ENOMEM. */
int workers_submit(struct workers *ws, struct worker_job *j);
/* True: done() will not be called. False: it will, a worker has the job. */
bool workers_cancel(struct workers *ws, struct worker_job *j);
/* A job on 'f' (NULL: any for names or rows), not cancelled; or NULL. */
struct worker_job *workers_pending(const struct workers *ws,
				   const struct symbolizer_file *f);

/* Whether requests for this file end with -EBADMSG for now. */
bool workers_quarantined(struct workers *ws, const struct symbolizer_file *f);

const struct quarantine *workers_quarantine(const struct workers *ws);
/*
 * Sets the ceiling of indexes to 1 / 2^halvings of the usual one; unless that is 0,
 * processes without a job are ended.
 */
void workers_shed(struct workers *ws, unsigned int halvings);
/* One line about all running processes. */
void workers_status(const struct workers *ws, char *buf, size_t len);

#endif /* SYMBOLIZE_WORKERS_H */
