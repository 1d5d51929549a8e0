/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: what the parts count, under the names that /metrics shows. */
#ifndef PROFILER_METRICS_H
#define PROFILER_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "profiler/engine.h"
#include "profiler/source/source.h"

/*
 * Causes by which a profile may show less than there was. In every profile's
 * comments, as the difference over its time, and in /status, since the start.
 * X(NAME, "in words")
 */
#define LOSSES(X)                                                              \
	X(RING_FULL, "samples lost: ring full")                                \
	X(MISSED, "samples missing against busy CPU time x Hz")                \
	X(NOMEM, "records lost: out of memory")                                \
	X(PUMP_FULL, "records lost: too many waited for the others")           \
	X(BAD, "records refused: wrong lengths")                               \
	X(LIFECYCLE, "lifecycle events lost")                                  \
	X(LIFECYCLE_MS, "milliseconds in which lifecycle events were lost")    \
	X(MAPPING, "mapping records lost")                                     \
	X(MAPPING_MS, "milliseconds in which mapping records may be missing")  \
	X(TABLES_LATE, "stacks cut short: unwind tables were late")            \
	X(FILE_GONE,                                                           \
	  "stacks cut short: the file was deleted before it was read")         \
	X(NAMES_LATE, "stacks without all their names: file reading was late") \
	X(PERF_GAPS, "gaps in perf records: mappings, events may be missing")  \
	X(THROTTLED, "times the kernel throttled sampling")

enum loss {
#define X(name, words) LOSS_##name,
	LOSSES(X)
#undef X
	LOSS_MAX,
};

/* CPUs above it count as seen. */
#define LOSSES_CPUS_SEEN 8192

/* Of the samples that were to come. Zeros at the start. */
struct losses {
	bool selected_only; /* samples of other processes are of no use */
	uint64_t ring_full; /* samples lost because the ring was full */
	double missed; /* samples that should have come, so far */
	/* CPUs on which what is recorded was sampled, a bit each. */
	uint64_t cpus_seen[LOSSES_CPUS_SEEN / 64];
};

const char *const *losses_names(void);
/* A sample of what is recorded was taken on this CPU. */
void losses_saw_cpu(struct losses *l, unsigned int cpu);
/* The counts by now, LOSS_MAX of them. */
void losses_count(struct engine *e, uint64_t *out);
/* Counts again and gives the counts to the reporter. */
void losses_update(struct engine *e);

/* Of all CPUs; free(*out). How many, 0 or less: there is nothing to say. */
int metrics_cpus(const struct source_run *s, struct sampler_cpu_stats **out);
/* All zero where no source is open. */
void metrics_source(const struct source_run *s, struct source_stats *out);

/* profd's own CPU time, memory and files. */
void metrics_process(struct reporter_metrics *m);
/* reporter_opts.collect; 'arg' is the engine. */
void metrics_collect(void *arg, struct reporter_metrics *m);

#endif /* PROFILER_METRICS_H */
