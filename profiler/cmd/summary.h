/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary: the last line of a recording, with its samples, incomplete stacks and
 * losses. The counts are those of the profile's comments.
 */
#ifndef PROFILER_SUMMARY_H
#define PROFILER_SUMMARY_H

#include "profiler/metrics.h"
#include "tracehandler/tracehandler.h"

struct summary {
	uint64_t losses[LOSS_MAX];
	struct trace_stats stacks;
};

/* The current counts, which are passed to the reporter too. */
void summary_count(struct summary *s, struct engine *e);
/*
 * "812 samples, 3 incomplete (2 tables late, 1 no unwind info), 0 lost": the
 * counts of 'to' less those of 'from'. Kinds that are zero are left out.
 */
void summary_text(const struct summary *from, const struct summary *to,
		  uint64_t samples, struct strbuf *out);

#endif /* PROFILER_SUMMARY_H */
