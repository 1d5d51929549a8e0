/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workers: the requests for files of other processes, waiting or at work; which is
 * done next, and by which of the processes that read files.
 *
 * The first process is there from the beginning; further ones are started while
 * jobs wait and it is busy, and ended soon after.
 *
 * Jobs are fair by party: the owner of the file, and the user id it was opened
 * for. The party that has had the least time goes first, and one whose job is at
 * work gets no second process before that job is slow, never the last one, and none
 * at all when it has used much CPU time (worker_pace.h).
 *
 * Where the process ends by what it does with a party's files, again and again
 * without an answer between, that party has to pause, up to ten seconds; from the
 * eighth such end on its requests end with -EIO in the pause. Other parties are not
 * affected.
 *
 * Within a party: what a file is, and unwind tables, before names, for a stack
 * without its tables is lost and one without its names has addresses; the file
 * that had its turn longest ago first; one job of a file at a time.
 */
#ifndef SYMBOLIZE_WORKERS_H
#define SYMBOLIZE_WORKERS_H

#include "symbolize/reader/worker.h"

struct workers;

struct workers_opts {
	struct worker_opts worker; /* without aside and what follows it */
	size_t index_ceiling; /* of all workers, less what is used elsewhere: */
	size_t (*index_used)(void *arg);
	uint64_t retry_ms; /* of a quarantined file */
	void (*closed)(
		void *arg); /* workers_free() is done, later on the loop */
	void *arg;
};

/* Starts the first at once. 0 or -errno; that none can be started is none. */
int workers_new(struct workers **wsp, const struct workers_opts *opts);
/* Jobs still there end with -ECANCELED before it returns. */
void workers_free(struct workers *ws);

/* done() is not called from inside. 0 or -ENOMEM. */
int workers_submit(struct workers *ws, struct worker_job *j);
/*
 * It is cancelled from here on. True: it will not be done. False: it is at work,
 * and ends with done().
 */
bool workers_cancel(struct workers *ws, struct worker_job *j);
/*
 * A job on this file (NULL: on any, for names or rows) that is not cancelled,
 * waiting or at work; NULL: there is none.
 */
struct worker_job *workers_owed(const struct workers *ws,
				const struct symbolizer_file *f);

/* Requests for this file end with -EBADMSG for now. */
bool workers_quarantined(struct workers *ws, const struct symbolizer_file *f);

const struct worker_aside *workers_asides(const struct workers *ws);
/* One line: each process that there is. */
void workers_status(const struct workers *ws, char *buf, size_t len);

#endif /* SYMBOLIZE_WORKERS_H */
