/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary: what a recording lacks, in the words of its last line. It counts what
 * the comments of the profile count, over the same time.
 */
#ifndef PROFILER_SUMMARY_H
#define PROFILER_SUMMARY_H

#include "profiler/metrics.h"
#include "tracehandler/tracehandler.h"

struct summary {
	uint64_t losses[LOSS_MAX];
	struct trace_stats stacks;
};

/* The counts by now; the reporter is told as well. */
void summary_count(struct summary *s, struct engine *e);
/*
 * "812 samples, 3 incomplete (2 tables late, 1 no unwind info), 0 lost": the
 * counts of 'to' less those of 'from', of which kinds that are zero are left out.
 */
void summary_text(const struct summary *from, const struct summary *to,
		  uint64_t samples, struct strbuf *out);

#endif /* PROFILER_SUMMARY_H */
