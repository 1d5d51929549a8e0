/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worker_pace: budgets for CPU time of the workers, by party (workers.h).
 *
 * A table that samples wait for is read at high priority (nice -10), because on
 * busy CPUs it would be too late. Since any user can have files read at will,
 * this has a budget, in total and per party; beyond it, files are read at the
 * usual priority. The files of a party that used much CPU time are read at a
 * lower priority than other programs, by one process at a time.
 *
 * CPU time for names is a budget of each user: beyond it the names of that user's
 * files wait. Tables do not wait, because a stack without them is lost.
 *
 * Spent time is forgotten at a fraction of the time that passes. Times are
 * uv_hrtime(), in ns. A zeroed struct has spent nothing. Not thread safe.
 */
#ifndef SYMBOLIZE_WORKER_PACE_H
#define SYMBOLIZE_WORKER_PACE_H

#include <stdbool.h>
#include <stdint.h>

#define WORKER_PACE_MS 1000000ULL
/* CPU time at high priority: 1/PART of the time, and at most BURST at once. */
#define WORKER_PACE_ALL_PART 10
#define WORKER_PACE_ALL_BURST (1000 * WORKER_PACE_MS)
#define WORKER_PACE_PARTY_PART 20
#define WORKER_PACE_PARTY_BURST (500 * WORKER_PACE_MS)
/* The least that is granted. */
#define WORKER_PACE_LEAST (5 * WORKER_PACE_MS)
/* CPU time at any priority, per party. */
#define WORKER_PACE_CPU_PART 4
#define WORKER_PACE_CPU_BURST (2000 * WORKER_PACE_MS)
/* ... for names, per user; failures count, too. */
#define WORKER_PACE_NAMES_PART 8
#define WORKER_PACE_NAMES_BURST (1000 * WORKER_PACE_MS)

struct worker_spent {
	uint64_t ns, at;
};

struct worker_pace {
	struct worker_spent hurried;
};

struct worker_pace_party {
	uint32_t owner, uid; /* both root: no budget of its own */
	struct worker_spent hurried, cpu, names;
};

/*
 * CPU time for which a job of this party may have high priority. Half of the
 * total budget is reserved for files that root owns.
 */
uint64_t worker_pace_hurry(const struct worker_pace *all,
			   const struct worker_pace_party *p, uint64_t now);
/* A job used CPU time, at high priority or not. */
void worker_pace_charge(struct worker_pace *all, struct worker_pace_party *p,
			uint64_t cpu_ns, bool hurried, uint64_t now);
/* Whether it has used more than its budget. */
bool worker_pace_over(const struct worker_pace_party *p, uint64_t now);
/* CPU time was used for its names. */
void worker_pace_charge_names(struct worker_pace_party *p, uint64_t cpu_ns,
			      uint64_t now);
/* What of it counts now; 0: it has no budget of its own. */
uint64_t worker_pace_names(const struct worker_pace_party *p, uint64_t now);
/* Whether everything that it spent is forgotten. */
bool worker_pace_fresh(const struct worker_pace_party *p, uint64_t now);

#endif /* SYMBOLIZE_WORKER_PACE_H */
