/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sample: the first stage of a sample. A record is parsed and goes to the stage
 * of stacks; it waits here, as it came, for the exec event of its image and for
 * unwind tables that are still being read.
 */
#ifndef TRACEHANDLER_SAMPLE_H
#define TRACEHANDLER_SAMPLE_H

#include "tracehandler/unwind/stack.h"
#include "tracehandler/wait.h"

struct trace_samples {
	const struct trace_opts *opts;
	struct trace_stacks *stacks;
	struct trace_waits *waits;
	struct trace_stats *stats;
	struct vault *vault; /* of records that wait */
};

/* All of it is borrowed. 0 or -ENOMEM. */
int trace_samples_init(struct trace_samples *s, const struct trace_opts *opts,
		       struct trace_stacks *stacks, struct trace_waits *waits,
		       struct trace_stats *stats);
/* No sample may wait any more. */
void trace_samples_fini(struct trace_samples *s);

/* As trace_handler_sample(). */
int trace_samples_put(struct trace_samples *s, const void *buf, size_t len);

#endif /* TRACEHANDLER_SAMPLE_H */
