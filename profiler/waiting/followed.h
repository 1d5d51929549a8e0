/* SPDX-License-Identifier: Apache-2.0 */
/*
 * followed: the processes whose segments are events of the watch: between the timelines,
 * which record them, and the analysis, which makes the events.
 */
#ifndef PROFILER_WAITING_FOLLOWED_H
#define PROFILER_WAITING_FOLLOWED_H

#include "processmanager/processmanager.h"
#include "processmanager/watch/watch.h"
#include "profiler/waiting/analysis.h"
#include "profiler/waiting/timeline.h"

struct waiting_followed {
	struct timelines *timelines;
	struct pm *pm;
	struct analysis *analysis; /* NULL: there is no watch */
};

/* All are borrowed; 'watch' may be NULL: nothing is followed then. 0 or -ENOMEM. */
int waiting_followed_init(struct waiting_followed *f,
			  struct timelines *timelines, struct pm *pm,
			  struct watch *watch);
void waiting_followed_fini(struct waiting_followed *f);

/* As watch_opts.follow. -ENOTSUP: there is no watch. */
int waiting_followed_pid(struct waiting_followed *f, uint32_t pid, bool begins);
/* A record of the timelines. */
void waiting_followed_segment(const struct waiting_followed *f,
			      const struct abi_segment *s);

/* Whether ticks are due some times a second. */
bool waiting_followed_busy(const struct waiting_followed *f);
/*
 * After timeline_tick(). True: all open intervals should be cut, and
 * waiting_followed_cut() be called.
 */
bool waiting_followed_tick(struct waiting_followed *f, uint64_t now);
void waiting_followed_cut(struct waiting_followed *f, uint64_t now);

#endif /* PROFILER_WAITING_FOLLOWED_H */
