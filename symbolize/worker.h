/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker: profd's side of the process that reads files. Jobs are done one at a
 * time, in the order in which they come, each a question or several
 * (worker_msg.h). Whoever it is that answers, and how often it has to be
 * started anew for that, is no matter of theirs; which file it failed on is a
 * matter of this.
 *
 *	DOWN --start--> STARTING --HELLO--> IDLE <--> BUSY
 *	  ^------- it fails, or is not needed any more -'
 *
 * It is ended by SIGKILL and reaped whenever the kernel lets it go: nothing
 * waits for that, the next one is started meanwhile.
 */
#ifndef SYMBOLIZE_WORKER_H
#define SYMBOLIZE_WORKER_H

#include "symbolize/file.h"
#include "symbolize/worker_aside.h"
#include "symbolize/worker_msg.h"

struct opener;
struct worker;
struct worker_job;

/* What an answer leads to; -EPROTO: it is a lie. */
enum worker_next {
	WORKER_DONE,
	WORKER_MORE, /* there are more messages to this question */
	WORKER_AGAIN, /* there is another question */
};

struct worker_kind {
	enum worker_type type;
	/* Fills in n, and what follows it. The same again after a failure. */
	void (*question)(struct worker_job *j, struct worker_question *q);
	/* A message that answers it, of the right type or not. */
	int (*answer)(struct worker_job *j, struct worker_in *in);
	/*
	 * It is over and the worker has done with it: 0; an error of the file;
	 * -EBADMSG or -EIO as in symbolize.h; -ECANCELED.
	 */
	void (*done)(struct worker_job *j, int err);
};

struct worker_job {
	struct worker_job *next, *prev;
	const struct worker_kind *kind;
	struct symbolizer_file *file; /* of which it has the descriptor */
};

struct worker_opts {
	uv_loop_t *loop;
	const char *program;
	struct opener *opener; /* borrowed; for debug files */
	const char *const *debug_dirs;
	size_t memory;
	unsigned int cpu_s, deadline_ms, idle_ms;
	struct symbolizer_stats *stats;
	size_t index_ceiling; /* less what is used elsewhere: */
	size_t (*index_used)(void *arg);
	void (*closed)(void *arg); /* worker_free() is done, later on the loop */
	void *arg;
};

/* Starts it at once. 0 or -errno; that none can be started is no error here. */
int worker_new(struct worker **wp, const struct worker_opts *opts);
/* Jobs still there end with -ECANCELED before it returns. */
void worker_free(struct worker *w);

/* Its place in the queue is by its kind. done() is not called from inside. */
void worker_submit(struct worker *w, struct worker_job *j);
/* True: it will not be done. False: it is at work, and ends with done(). */
bool worker_cancel(struct worker *w, struct worker_job *j);

const struct worker_aside *worker_asides(const struct worker *w);
void worker_status(const struct worker *w, char *buf, size_t len);

#endif /* SYMBOLIZE_WORKER_H */
