/* SPDX-License-Identifier: Apache-2.0 */
/* internal: what symbolizer.c, opening.c and rows/rows_request.c share. */
#ifndef SYMBOLIZE_INTERNAL_H
#define SYMBOLIZE_INTERNAL_H

#include <sys/queue.h>

#include "symbolize/cache/cache.h"
#include "symbolize/fetch/fetch.h"
#include "symbolize/file.h"
#include "symbolize/known.h"
#include "symbolize/opener.h"
#include "symbolize/reader/workers.h"

#define SYMBOLIZER_DEBUG_DIRS_MAX 15

struct file_job;
struct open_job;

struct symbolizer {
	uv_loop_t *loop;
	TAILQ_HEAD(, open_job) openings; /* not answered yet */
	/* Requests for the kernel and the vDSO; the first is in the pool. */
	TAILQ_HEAD(own_jobs, file_job) own;
	bool freed;
	unsigned int refs; /* itself, workers, openers, jobs in the pool */
	/* Requests that are looked up in the cache on disk. */
	struct own_jobs looking;
	struct cache *cache; /* or NULL */
	struct symbolizer_file *kernel, *vdso;
	size_t own_bytes; /* of their indexes, after the last request */
	struct opener *opener;
	struct fetch *fetch; /* or NULL */
	const char *debug_dirs[SYMBOLIZER_DEBUG_DIRS_MAX + 2];
	struct workers *workers;
	struct symbolizer_known known;
	struct symbolizer_hand *hand; /* rows that override a file's own */
	uint64_t last_id; /* of a file */
	uint64_t hurries; /* number of the last symbolizer_hurry() */
	struct symbolizer_stats stats;
	char *kallsyms;
};

/* symbolizer.c: work on an open file, names or rows. */
struct file_job {
	struct worker_job remote; /* with its file */
	struct symbolizer *s;
	const struct file_job_kind *kind;
	TAILQ_ENTRY(file_job) node; /* s->own or s->looking */
	struct cache_lookup *lookup; /* while it is in s->looking */
	uv_work_t work;
	bool running; /* in the pool */
	int err;
};

struct file_job_kind {
	struct worker_kind remote;
	void (*work)(struct file_job *j); /* in the pool */
	enum entry_kind entry;
	/* Takes what the cache on disk had. */
	void (*found)(struct file_job *j, struct cache_found *found);
	void (*count)(struct file_job *j);
	void (*answer)(struct file_job *j, int err);
	void (*free)(struct file_job *j);
};

/*
 * Looks for it in the cache on disk, then has it done. 0 or -ENOMEM: then the caller
 * still owns the job.
 */
int symbolizer_job_request(struct symbolizer *s, struct file_job *j,
			   struct symbolizer_file *file,
			   const struct file_job_kind *kind,
			   const uint64_t *offsets, size_t n);
/* Counted once a file. */
void symbolizer_job_damaged(struct file_job *j, bool damaged);
/* worker_kind.done() of such a job. */
void symbolizer_job_done(struct worker_job *r, int err);

/* opening.c: cancels all openings. */
void symbolizer_opening_fini(struct symbolizer *s);

/*
 * fetch/fetching.c: sets s->debug_dirs, the directory of downloads last; -E2BIG: too many.
 * The downloads themselves begin with symbolizer_fetching_start(), without which all
 * else works.
 */
int symbolizer_fetching_dirs(struct symbolizer *s,
			     const struct symbolizer_opts *opts);
void symbolizer_fetching_start(struct symbolizer *s,
			       const struct symbolizer_opts *opts,
			       const char *program);
/* For struct worker_opts. */
void symbolizer_fetching_missed(void *arg, struct symbolizer_file *file,
				const uint8_t *build_id, size_t len);
/* Before a worker gets 'file': if what it missed has arrived, it reads it anew. */
void symbolizer_fetching_renew(struct symbolizer *s,
			       struct symbolizer_file *file);
/* Whether a debug file that it missed may still arrive. */
bool symbolizer_fetching_file(const struct symbolizer *s,
			      const struct symbolizer_file *file);

/* units.c: the cache as a store of workers; its argument is the symbolizer. */
extern const struct worker_store symbolizer_units;

/* child.c: what is executed as a child. */
const char *symbolizer_program(void);

/* symbolizer.c: gives back a reference. */
void symbolizer_unref(void *arg);

#endif /* SYMBOLIZE_INTERNAL_H */
