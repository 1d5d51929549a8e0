/* SPDX-License-Identifier: Apache-2.0 */
/* metrics: what the parts count, under the names that /metrics shows. */
#ifndef PROFILER_METRICS_H
#define PROFILER_METRICS_H

#include <stdbool.h>
#include <stdint.h>

#include "profiler/engine.h"
#include "profiler/source/source.h"

/*
 * Causes of records missing from a profile: in the comments of every profile,
 * counted over its time, and in /status, since the start. X(NAME, "in words")
 */
#define LOSSES(X)                                                               \
	X(RING_FULL, "samples lost: ring full")                                 \
	X(MISSED, "samples missing against busy CPU time x Hz")                 \
	X(NOMEM, "records lost: out of memory")                                 \
	X(PUMP_FULL, "records lost: too many waited for the others")            \
	X(BAD, "records refused: wrong lengths")                                \
	X(LIFECYCLE, "lifecycle events lost")                                   \
	X(LIFECYCLE_MS, "milliseconds in which lifecycle events were lost")     \
	X(MAPPING, "mapping records lost")                                      \
	X(MAPPING_MS, "milliseconds in which mapping records may be missing")   \
	X(TABLES_LATE, "stacks cut short: unwind tables were late")             \
	X(FILE_GONE,                                                            \
	  "stacks cut short: the file was deleted before it was read")          \
	X(NAMES_LATE, "stacks without all their names: file reading was late")  \
	X(PERF_GAPS, "gaps in perf records: mappings, events may be missing")   \
	X(THROTTLED, "times the kernel throttled sampling")                     \
	X(WAITS,                                                                \
	  "waits in no profile: too many sums, or their process forgotten")     \
	X(WAITS_MS, "milliseconds of waits without room for their sum")         \
	X(TRACE_TORN, "samples without their trace: it was being written")      \
	X(TRACE_UNREAD, "samples without their trace: it could not be read")    \
	X(TRACE_FULL,                                                           \
	  "samples without their trace: too many processes have tracers")       \
	X(TRACE_USER,                                                           \
	  "samples without their trace: too many processes of their user have " \
	  "tracers")

enum loss {
#define X(name, words) LOSS_##name,
	LOSSES(X)
#undef X
	LOSS_MAX,
};

/* CPUs above it count as seen. */
#define LOSSES_CPUS_SEEN 8192

/* All zeros at the start. */
struct losses {
	bool selected_only; /* only selected processes are recorded */
	uint64_t ring_full; /* samples dropped because the ring was full */
	double missed; /* samples expected that did not come */
	/* Samples in processes with a tracer: with ids, and without by cause. */
	uint64_t traced, torn, unread;
	/* A bit for each CPU that took samples of recorded processes. */
	uint64_t cpus_seen[LOSSES_CPUS_SEEN / 64];
};

const char *const *losses_names(void);
/* This CPU took a sample of a recorded process. */
void losses_saw_cpu(struct losses *l, unsigned int cpu);
/* The counts since the start, LOSS_MAX of them. Returns the samples taken. */
uint64_t losses_count(struct engine *e, uint64_t *out);
/* Counts again and gives the counts to the reporter. */
void losses_update(struct engine *e);

/* Of all CPUs; free(*out). Their number; 0 or less: no source, or no memory. */
int metrics_cpus(const struct source_run *s, struct sampler_cpu_stats **out);
/* All zeros if no source is open. */
void metrics_source(const struct source_run *s, struct source_stats *out);

/* Of profd's own process. */
void metrics_process(struct reporter_metrics *m);
/* For /status: CPU time of profd and of its child processes. */
void metrics_status_cpu(struct reporter_metrics *m);
/* reporter_opts.collect; 'arg' is the engine. */
void metrics_collect(void *arg, struct reporter_metrics *m);

#endif /* PROFILER_METRICS_H */
