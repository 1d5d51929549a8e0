/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker: profd's side of one process that reads files. It gets one job at a
 * time (workers.h decides which), a question or several (worker_msg.h), and is
 * started for it if necessary. If the process fails, the job may be given to
 * another one.
 *
 * A failure counts against a file only if its process had read no other file:
 * memory, or a heap, may be as another file left it. Else the same question is
 * asked again in a new process. What took too much CPU time counts at once.
 *
 *	DOWN --start--> STARTING --HELLO--> IDLE <--> BUSY
 *	  ^-------- it fails, or is idle for too long -'
 *
 * The process is ended by SIGKILL. Nothing waits until it is reaped; the next
 * one is started meanwhile.
 */
#ifndef SYMBOLIZE_WORKER_H
#define SYMBOLIZE_WORKER_H

#include "symbolize/file.h"
#include "symbolize/reader/quarantine.h"
#include "symbolize/reader/worker_msg.h"

struct opener;
struct worker;
struct worker_look; /* of a worker_store */
struct worker_job;
struct workers_party;

/* Failures in a row, without an answer, that have no consequence. */
#define WORKER_PATIENCE 2
#define WORKER_BACKOFF_MS 10
#define WORKER_BACKOFF_MAX_MS 10000

enum worker_state {
	WORKER_DOWN,
	WORKER_STARTING,
	WORKER_IDLE,
	WORKER_BUSY,
};

/* The result of worker_kind.answer(); -EPROTO: the answer is invalid. */
enum worker_next {
	WORKER_DONE,
	WORKER_MORE, /* further messages answer this question */
	WORKER_AGAIN, /* there is another question */
};

struct worker_kind {
	enum worker_type type;
	/*
	 * Sets n, and what follows it; NULL: n is 0. Called again with the same
	 * result after a failure.
	 */
	void (*question)(struct worker_job *j, struct worker_question *q);
	/* Handles a message of any type that answers it. */
	int (*answer)(struct worker_job *j, struct worker_in *in);
	/*
	 * The worker is done with the job: 0; an error of the file; -EBADMSG or
	 * -EIO as in symbolize.h; -ECANCELED.
	 */
	void (*done)(struct worker_job *j, int err);
};

struct worker_job {
	TAILQ_ENTRY(worker_job) link;
	const struct worker_kind *kind;
	struct symbolizer_file *file; /* with its descriptor */
	struct workers_party *party; /* set by workers.c */
	uint64_t given_at; /* uv_hrtime() of worker_give() */
	uint64_t spent_ms; /* of its deadline, by its earlier questions */
	bool failed; /* a process just failed on it */
	bool waited; /* it was counted as waiting for CPU time */
	bool cancelled; /* its answer is not needed any more */
};

/* 'fd', or -errno, is closed after the call; the units begin at 'at'. */
typedef void (*worker_look_fn)(void *arg, int fd, uint64_t at);

/* Where units of files are kept; 'arg' is the first argument of all. */
struct worker_store {
	/* Whether those of this file may be. */
	bool (*may)(void *arg, const struct symbolizer_file *f);
	/* Looks for them; fn() follows, or cancel(). NULL: there are none. */
	struct worker_look *(*look)(void *arg, struct symbolizer_file *f,
				    worker_look_fn fn, void *fn_arg);
	void (*cancel)(struct worker_look *l);
	/* 0; -EBADMSG: they are invalid. */
	int (*keep)(void *arg, const struct symbolizer_file *f,
		    const void *store, size_t len);
	/* What was found cannot be used. */
	void (*damaged)(void *arg, const struct symbolizer_file *f);
};

struct worker_opts {
	uv_loop_t *loop;
	const char *program;
	struct opener *opener; /* borrowed; for debug files */
	const char *const *debug_dirs;
	/* A debug file was not found anywhere. May be NULL. */
	void (*missed)(void *arg, struct symbolizer_file *file,
		       const uint8_t *build_id, size_t len);
	void *missed_arg;
	const struct worker_store *store;
	void *store_arg;
	size_t memory;
	unsigned int cpu_s, deadline_ms, idle_ms;
	struct symbolizer_stats *stats;
	/* As in symbolizer_opts; may be NULL. */
	void (*undemangled)(void *arg, uint32_t uid, uint64_t n);
	void (*quarantined)(void *arg, const struct symbolizer_quarantined *q);
	void (*names_wait)(void *arg, uint32_t uid);
	void *report_arg; /* of these three */
	struct quarantine *quarantine; /* of all workers */
	/* The memory limit for its indexes, which take 'held' bytes now. */
	uint64_t (*index_room)(void *arg, uint64_t held);
	/*
	 * CPU time in ns for which a job has priority over other programs. 0:
	 * it has the usual priority or, *behind, a lower one.
	 */
	uint64_t (*pace)(void *arg, const struct worker_job *j, bool *behind);
	/* The current job used CPU time, with high priority or not. */
	void (*charge)(void *arg, struct worker_job *j, uint64_t cpu_ns,
		       bool hurried);
	/* The process failed because of the job's file; ended() follows. */
	void (*failed)(void *arg, struct worker_job *j);
	/*
	 * It is done with a job, which belongs to the callee again: 0, or an
	 * error as for done() above; 'again': the job has another question, or
	 * the same one after a failure.
	 */
	void (*ended)(void *arg, struct worker_job *j, int err, bool again);
	void (*ready)(void *arg); /* it may be given a job */
	void (*closed)(void *arg); /* worker_free() is done, on the loop */
	void *arg;
};

/* Does not start the process. 0 or -errno. */
int worker_new(struct worker **wp, const struct worker_opts *opts);
/* A job it has ends with -ECANCELED before this returns. */
void worker_free(struct worker *w);
/* Starts the process if it is DOWN. */
void worker_wake(struct worker *w);

/* To a worker without a job. ended() is not called from inside. */
void worker_give(struct worker *w, struct worker_job *j);
/* Takes its job back. False: too late, the job ends with ended(). */
bool worker_take_back(struct worker *w);

/* Ends the process if it has no job; the next job starts another one. */
void worker_rest(struct worker *w);

/* The pause after so many failures in a row. */
uint64_t worker_backoff_ms(unsigned int fails);

/* worker_main.c: what main() does in the process. */
int worker_main(int argc, char **argv);

enum worker_state worker_state(const struct worker *w);
struct worker_job *worker_job(const struct worker *w); /* or NULL */
/* It cannot be started, and the next attempt is not due yet. */
bool worker_refuses(const struct worker *w);
/* Its last process failed without a job, or could not be started. */
bool worker_failing(const struct worker *w);
void worker_status(const struct worker *w, char *buf, size_t len);

#endif /* SYMBOLIZE_WORKER_H */
