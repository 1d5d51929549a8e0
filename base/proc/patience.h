/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patience: calls that may never return. Reading /proc/PID takes locks that process
 * PID can hold for as long as it wants. Such calls are made by a thread, which is
 * abandoned if it sleeps for too long. It exits when its call returns; and the
 * process can exit before, since these sleeps are killable.
 *
 * An object is used by one thread at a time. The thread it starts has all signals
 * blocked. After fork(2) the child must not use the object: it lacks the thread.
 */
#ifndef BASE_PATIENCE_H
#define BASE_PATIENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The limit of threads of the process that are abandoned at a time. */
#define PATIENCE_ABANDONED_MAX 4

struct patience_job {
	/* Called by the thread; uses no memory but the job's. */
	void (*run)(struct patience_job *job);
	/* Called by the thread when run() of an abandoned job has returned. */
	void (*release)(struct patience_job *job);
	/* Parts done so far; run() may count them with patience_step(). */
	size_t at;
};

/* All zero: no thread yet. */
struct patience {
	struct patience_thread *thread;
	/* No job begins unless after it so many more could be abandoned, by others. */
	size_t spare;
};

/*
 * Runs the job in the thread, which is started if needed.
 * 0: run() has returned, the job is the caller's again.
 * -ETIMEDOUT: it was abandoned after a sleep of 100 ms, or after a second without
 * progress; the job is the thread's, and *at is the part it sleeps in.
 * -EAGAIN, or another error of pthread_create(3): it did not run, for -EAGAIN since
 * too many threads are abandoned. The job is the caller's.
 */
int patience_run(struct patience *p, struct patience_job *job, size_t *at);
/*
 * The same without waiting: patience_poll() tells how it went, and has to be called until
 * it does. 0; or -EAGAIN and others as of patience_run().
 */
int patience_begin(struct patience *p, struct patience_job *job);
/*
 * 0 and -ETIMEDOUT as of patience_run(), which are told once; -EINPROGRESS. Within 100 ms
 * nothing is abandoned, later only if two calls find no progress.
 */
int patience_poll(struct patience *p, size_t *at);
/* Abandons a job that was begun. True: it is done, and the caller's again. */
bool patience_abandon(struct patience *p);
void patience_step(struct patience_job *job);
/* The id of the thread, which is started if needed; or -errno. */
pid_t patience_tid(struct patience *p);
/* Ends the thread, which is idle. */
void patience_fini(struct patience *p);
/* Abandoned threads of the process that have not exited. */
size_t patience_abandoned(void);

#endif /* BASE_PATIENCE_H */
