/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker: profd's side of one process that reads files. It is given one job at a
 * time, a question or several (worker_msg.h), and started for that if it is not
 * there; workers.h says which job. What it fails on is the file's fault or not:
 * then the job may be given to a process once more.
 *
 *	DOWN --start--> STARTING --HELLO--> IDLE <--> BUSY
 *	  ^------- it fails, or is not needed any more -'
 *
 * The process is ended by SIGKILL and reaped whenever the kernel lets it go:
 * nothing waits for that, the next one is started meanwhile.
 */
#ifndef SYMBOLIZE_WORKER_H
#define SYMBOLIZE_WORKER_H

#include "symbolize/file.h"
#include "symbolize/reader/worker_aside.h"
#include "symbolize/reader/worker_msg.h"

struct opener;
struct worker;
struct worker_job;
struct workers_party;

/* Failures without an answer between them: these many have no consequence. */
#define WORKER_PATIENCE 2
#define WORKER_BACKOFF_MS 10
#define WORKER_BACKOFF_MAX_MS 10000

enum worker_state {
	WORKER_DOWN,
	WORKER_STARTING,
	WORKER_IDLE,
	WORKER_BUSY,
};

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
	TAILQ_ENTRY(worker_job) link;
	const struct worker_kind *kind;
	struct symbolizer_file *file; /* of which it has the descriptor */
	struct workers_party *party; /* while workers.c has it */
	uint64_t spent_ms; /* by its questions so far, of its deadline */
	bool failed; /* a process ended by it just now */
	bool cancelled; /* nobody waits for its answer any more */
};

struct worker_opts {
	uv_loop_t *loop;
	const char *program;
	struct opener *opener; /* borrowed; for debug files */
	const char *const *debug_dirs;
	size_t memory;
	unsigned int cpu_s, deadline_ms, idle_ms;
	struct symbolizer_stats *stats;
	/* symbolizer_opts; may be NULL. */
	void (*undemangled)(void *arg, uint32_t uid, uint64_t n);
	void *undemangled_arg;
	struct worker_aside *aside; /* of all workers */
	/* What its indexes may take of memory. */
	uint64_t (*index_room)(void *arg, uint64_t held);
	/*
	 * CPU time in ns that a job may have before other programs. 0: with
	 * them, or, *behind, behind them.
	 */
	uint64_t (*pace)(void *arg, const struct worker_job *j, bool *behind);
	/* A job that is under way had so much CPU time, like that or not. */
	void (*charge)(void *arg, struct worker_job *j, uint64_t cpu_ns,
		       bool hurried);
	/* The process ended by what it does with this file; ended() follows. */
	void (*failed)(void *arg, struct worker_job *j);
	/*
	 * It has done with a job, which is the callee's again: 0, an error as
	 * for done() above; 'again': it has another question, or the same one
	 * after a failure.
	 */
	void (*ended)(void *arg, struct worker *w, struct worker_job *j,
		      int err, bool again);
	void (*ready)(void *arg); /* it may be given a job */
	void (*closed)(void *arg); /* worker_free() is done, later on the loop */
	void *arg;
};

/* Not started. 0 or -errno. */
int worker_new(struct worker **wp, const struct worker_opts *opts);
/* A job still there ends with -ECANCELED before it returns. */
void worker_free(struct worker *w);
/* Starts it if it is DOWN. */
void worker_wake(struct worker *w);

/* To one without a job. ended() is not called from inside. */
void worker_give(struct worker *w, struct worker_job *j);
/* Of the job it has. True: it will not be done. False: it ends with ended(). */
bool worker_take_back(struct worker *w);

/* The pause after so many failures in a row. */
uint64_t worker_backoff_ms(unsigned int fails);

enum worker_state worker_state(const struct worker *w);
struct worker_job *worker_job(const struct worker *w); /* or NULL */
uint64_t worker_given_at(const struct worker *w); /* uv_hrtime() */
/* No process to be had: it cannot be started, and pauses before it is tried. */
bool worker_refuses(const struct worker *w);
/* It has ended, or could not be started, without a job to blame. */
bool worker_doubtful(const struct worker *w);
void worker_status(const struct worker *w, char *buf, size_t len);

#endif /* SYMBOLIZE_WORKER_H */
