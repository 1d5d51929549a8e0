/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analysis: the watch's events sched_switch and cpu_analysis, made of the segments of
 * processes that are followed for it.
 *
 * The segments of a thread adjoin: each begins when the one before it ended, whatever the
 * order in which their records come. One that does not is held until those before it have
 * come, at most ANALYSIS_HELD of them for ANALYSIS_HOLD_NS; then what is missing is lost.
 *
 * Why a thread has left its CPU is known when its next segment has ended, or was cut: so,
 * of one that begins to wait for long, a cut is wanted, twice a second at most. Has a
 * thread no segment after a cut, it has ended.
 *
 * Knows nothing of rings, maps and the process manager. All calls on the loop's thread.
 */
#ifndef PROFILER_WAITING_ANALYSIS_H
#define PROFILER_WAITING_ANALYSIS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/base.h"
#include "bpf/abi_wait.h"
#include "processmanager/watch/watch.h"

struct analysis;

#define ANALYSIS_HELD 8
#define ANALYSIS_HOLD_NS (200 * CLOCK_NSEC_PER_MSEC)
#define ANALYSIS_CUT_NS (400 * CLOCK_NSEC_PER_MSEC)
/* An event of fewer than WATCH_SEGMENTS_MAX segments comes so long after the first. */
#define ANALYSIS_EVENT_NS CLOCK_NSEC_PER_SEC
/* Threads that are followed at a time: of a process as many as are free for others. */
#define ANALYSIS_THREADS 8192

struct analysis_opts {
	struct watch *watch; /* gets the events; borrowed */
	/* Begins or ends to record a process: timeline_follow(). */
	int (*follow)(void *arg, uint32_t tgid, bool begins);
	/* What was lost since then: timeline_followed(). */
	void (*lost)(void *arg, uint32_t tgid, struct abi_chosen *out);
	/* Sets uid and gid of a thread by its key. */
	void (*owner)(void *arg, struct watch_thread *t);
	void *arg;
};

/* NULL: out of memory. */
struct analysis *analysis_new(const struct analysis_opts *opts);
void analysis_free(struct analysis *a); /* NULL is allowed */

/*
 * Makes events of a process, or ends that: as often as it began. 0, or what opts.follow()
 * returned.
 */
int analysis_follow(struct analysis *a, uint32_t tgid, bool begins);
bool analysis_busy(const struct analysis *a);

/* A record, as it came; of a process that is not followed it is ignored. */
void analysis_segment(struct analysis *a, const struct abi_segment *s);
/*
 * After the records of before 'now' were given, some times a second. True: all open
 * intervals should be cut, their records given, and analysis_cut() called.
 */
bool analysis_tick(struct analysis *a, uint64_t now);
/* All were cut at 'time', and the records were given. */
void analysis_cut(struct analysis *a, uint64_t time);

#endif /* PROFILER_WAITING_ANALYSIS_H */
