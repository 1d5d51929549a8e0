/* SPDX-License-Identifier: Apache-2.0 */
/* internal: the symbolizer's inside, for symbolizer.c and opening.c. */
#ifndef SYMBOLIZE_INTERNAL_H
#define SYMBOLIZE_INTERNAL_H

#include "symbolize/file.h"
#include "symbolize/known.h"
#include "symbolize/opener.h"
#include "symbolize/reader/workers.h"

/* All kinds of requests, in a list of those not yet answered. */
struct job {
	TAILQ_ENTRY(job) link;
	struct symbolizer *s;
	uv_work_t work;
	bool running; /* in the pool */
	bool answered;
	int err;
};

TAILQ_HEAD(jobs, job);

struct symbolizer {
	uv_loop_t *loop;
	uv_timer_t timer; /* to the deadline of the oldest in opens */
	struct jobs opens, idents, files;
	bool working; /* a job on a file of our own is in the pool */
	bool freed;
	unsigned int
		refs; /* the timer, the worker, the openers, jobs in the pool */
	unsigned int deadline_ms;
	struct symbolizer_file *kernel, *vdso;
	size_t own_bytes; /* of their indexes, as counted */
	struct opener *opener;
	struct workers *workers;
	struct symbolizer_known known;
	struct symbolizer_hand *hand; /* rows that go before a file's own */
	uint64_t last_id; /* of a file */
	uint64_t hurries; /* files that samples waited for */
	struct symbolizer_stats stats;
	char *kallsyms;
};

void symbolizer_unref(struct symbolizer *s);

/* opening.c */
int symbolizer_opening_init(struct symbolizer *s);
/* Ends what is under way, and closes its timer, which has a reference. */
void symbolizer_opening_fini(struct symbolizer *s);

#endif /* SYMBOLIZE_INTERNAL_H */
