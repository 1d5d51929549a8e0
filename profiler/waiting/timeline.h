/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline: the segments of the last minutes of chosen processes. A process is chosen when
 * its timeline is asked for, and until TIMELINE_IDLE_NS after the last request.
 *
 * Of one that was chosen for its path (why.h) the processes of the threads that wake it are
 * chosen, too, and of those likewise, up to TIMELINE_PATH_WAKERS of each path and
 * TIMELINE_WAKERS of all. They last as long as the first one, and make room for those of
 * requests.
 *
 * Each has a ring of records that grows, up to TIMELINE_SEGMENTS and, of all of them
 * together, TIMELINE_BUDGET; then its oldest are overwritten, and counted. The site of each
 * is counted as in use (sites.h).
 */
#ifndef PROFILER_WAITING_TIMELINE_H
#define PROFILER_WAITING_TIMELINE_H

#include "profiler/waiting/segments.h"
#include "profiler/waiting/sites.h"
#include "reporter/reporter.h"

#define TIMELINE_IDLE_NS (300 * CLOCK_NSEC_PER_SEC)
#define TIMELINE_SEGMENTS 32768 /* of a process: 3.7 MB */
#define TIMELINE_WAKERS 32
#define TIMELINE_PATH_WAKERS 16
#define TIMELINE_FIRST 256 /* has each, whatever others have */
#define TIMELINE_BUDGET 131072 /* of all: 14.7 MB */

struct timelines;

/* Both must outlive it. NULL: out of memory. */
struct timelines *timeline_new(struct waiting_sums *sums,
			       struct waiting_sites *sites);
void timeline_free(struct timelines *t);

/* Reads what was recorded, and ends those without requests. 'now': CLOCK_BOOTTIME. */
void timeline_tick(struct timelines *t, uint64_t now);
/* Whether timeline_tick() is due some times a second. */
bool timeline_busy(const struct timelines *t);

/*
 * Chooses a process of this key, which is alive; 'why': for its path. 0 also if it is;
 * -E2BIG: too many are, or -errno.
 */
int timeline_choose(struct timelines *t, const struct abi_key *key, bool why,
		    uint64_t now);
/*
 * The segments from 'from' to 'to' of a process that is chosen, of one thread, or 0: of
 * all. A key without start_boottime: of whatever process had that pid last. -ESRCH: it is
 * not chosen; or -ENOMEM. out->begun is not set.
 */
int timeline_get(struct timelines *t, const struct abi_key *key, uint32_t tid,
		 uint64_t now, struct reporter_timeline *out);

/*
 * Likewise the path of a thread, see why.h, in a process that was chosen for it; 'out' has
 * the span and the thread.
 */
int timeline_path(struct timelines *t, const struct abi_key *key, uint64_t now,
		  struct reporter_path *out);

/*
 * Puts records in order, by thread, and joins those of an interval that was cut. Returns
 * how many are left.
 */
size_t timeline_join(struct reporter_segment *s, size_t n);

struct timeline_stats {
	uint64_t chosen; /* now */
	uint64_t segments; /* recorded */
	uint64_t lost; /* of all causes */
};
void timeline_get_stats(const struct timelines *t, struct timeline_stats *out);

#endif /* PROFILER_WAITING_TIMELINE_H */
