/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_pace: CPU time of the processes that read files, by party (workers.h).
 *
 * A table that samples wait for is read before other programs run (nice -10), for
 * on busy CPUs it would come too late. Any user can have files read at will, so
 * this has a budget: in all, and for a party; beyond it, files are read at the
 * usual priority. A party that has used much CPU time in all is read for behind
 * other programs, by one process at a time.
 *
 * What was spent falls by a part of the time that passes. Times are uv_hrtime(),
 * in ns. Zeroed, a struct is one of which nothing was spent. Not thread safe.
 */
#ifndef SYMBOLIZE_WORKER_PACE_H
#define SYMBOLIZE_WORKER_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define WORKER_PACE_MS 1000000ULL
/* CPU time before other programs: which part of the time, and what is saved up. */
#define WORKER_PACE_ALL_PART 10
#define WORKER_PACE_ALL_BURST (1000 * WORKER_PACE_MS)
#define WORKER_PACE_PARTY_PART 20
#define WORKER_PACE_PARTY_BURST (500 * WORKER_PACE_MS)
/* Less than that is not worth it. */
#define WORKER_PACE_LEAST (5 * WORKER_PACE_MS)
/* CPU time at any priority, for a party. */
#define WORKER_PACE_CPU_PART 4
#define WORKER_PACE_CPU_BURST (2000 * WORKER_PACE_MS)

struct worker_spent {
	uint64_t ns, at;
};

struct worker_pace {
	struct worker_spent hurried;
};

struct worker_pace_party {
	uint32_t owner, uid; /* root's files are read for root: no budget */
	struct worker_spent hurried, cpu;
};

/*
 * CPU time that a job of this party may have before other programs. Half of all
 * there is to be had is kept for files that root owns.
 */
uint64_t worker_pace_hurry(const struct worker_pace *all,
			   const struct worker_pace_party *p, uint64_t now);
/* A job had so much CPU time, before other programs or not. */
void worker_pace_charge(struct worker_pace *all, struct worker_pace_party *p,
			uint64_t cpu_ns, bool hurried, uint64_t now);
/* It has used more than its budget. */
bool worker_pace_over(const struct worker_pace_party *p, uint64_t now);
/* It is as if it had never spent anything. */
bool worker_pace_fresh(const struct worker_pace_party *p, uint64_t now);

#endif /* SYMBOLIZE_WORKER_PACE_H */
