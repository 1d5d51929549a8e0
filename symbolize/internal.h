/* SPDX-License-Identifier: Apache-2.0 */
/* internal: what symbolizer.c and opening.c share. */
#ifndef SYMBOLIZE_INTERNAL_H
#define SYMBOLIZE_INTERNAL_H

#include <sys/queue.h>

#include "symbolize/cache/cache.h"
#include "symbolize/file.h"
#include "symbolize/known.h"
#include "symbolize/opener.h"
#include "symbolize/reader/workers.h"

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
	struct workers *workers;
	struct symbolizer_known known;
	struct symbolizer_hand *hand; /* rows that override a file's own */
	uint64_t last_id; /* of a file */
	uint64_t hurries; /* number of the last symbolizer_hurry() */
	struct symbolizer_stats stats;
	char *kallsyms;
};

/* opening.c: cancels all openings. */
void symbolizer_opening_fini(struct symbolizer *s);

#endif /* SYMBOLIZE_INTERNAL_H */
