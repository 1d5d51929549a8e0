/* SPDX-License-Identifier: Apache-2.0 */
/*
 * patience: calls that may wait for ever. Reading /proc/PID takes locks that the
 * process PID may hold for as long as it wants. Such calls are made by a thread, which
 * is abandoned if it waits for too long. It ends when its call returns; and it ends
 * with the process, since these waits are killable.
 *
 * An object is used by one thread at a time. The thread it starts has all signals
 * blocked. A child of fork(2) has no such thread and must not use the object.
 */
#ifndef BASE_PATIENCE_H
#define BASE_PATIENCE_H

#include <stddef.h>
#include <sys/types.h>

/* So many threads of the process may be abandoned at a time. */
#define PATIENCE_ABANDONED_MAX 4

struct patience_job {
	/* Called by the thread; uses no memory but the job's. */
	void (*run)(struct patience_job *job);
	/* Called by the thread when run() of an abandoned job has returned. */
	void (*release)(struct patience_job *job);
	/* Parts that are done. run() may count them, by patience_step(). */
	size_t at;
};

/* All zeros: there is no thread yet. */
struct patience {
	struct patience_thread *thread;
};

/*
 * 0: run() has returned, the job is the caller's again.
 * -ETIMEDOUT: it was abandoned after waiting for 100 ms, or after a second
 * without progress; the job is the thread's, and *at is the part it waits in.
 * -EAGAIN: it was not run, since too many are abandoned already; or another
 * error of pthread_create(3). The job is the caller's.
 */
int patience_run(struct patience *p, struct patience_job *job, size_t *at);
void patience_step(struct patience_job *job);
/* The thread's id, which is started if there is none; or -errno. */
pid_t patience_tid(struct patience *p);
/* Ends the thread, which does nothing now. */
void patience_fini(struct patience *p);
/* Threads abandoned and not ended yet, of the whole process. */
size_t patience_abandoned(void);

#endif /* BASE_PATIENCE_H */
