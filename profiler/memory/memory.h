/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory: the ceiling of --memory-max. What profd and the processes it started hold is
 * measured; near the ceiling, caches are cut step by step, and given their room back
 * when there is some. The kernel's own limit (MemoryMax= of a unit) would end profd.
 *
 *	level  from	what is shed
 *	1      70 %	half of each cache; workers without a job; free heap
 *	2      80 %	three quarters of each cache; new queries of the archive
 *	3      90 %	seven eighths of each cache; the open window, which is written;
 *			the largest of the other processes, if it is large
 *
 * The ceiling is the option's, or less where a control group has a lower limit.
 */
#ifndef PROFILER_MEMORY_H
#define PROFILER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define MEMORY_LEVELS 3

/* Where the limits and figures are read. */
struct memory_host {
	const char *cgroups; /* /proc/self/cgroup */
	const char *mount; /* /sys/fs/cgroup */
	const char *children; /* /proc/self/task/PID/children; NULL: own */
};

struct memory_usage {
	uint64_t own; /* anonymous and resident, in bytes */
	uint64_t others; /* the same of the processes it started */
	uint64_t largest_bytes; /* of one of those, and its pid */
	pid_t largest;
};

struct memory {
	uint64_t option; /* of --memory-max; 0: none */
	uint64_t rings; /* bytes, which a control group is charged for as well */
	uint64_t max; /* the ceiling; 0: none */
	bool cgroup; /* it comes from a control group */
	struct memory_usage usage;
	uint64_t used; /* in all */
	uint64_t highest; /* of 'used', since the start */
	unsigned int level;
	uint64_t shed[MEMORY_LEVELS]; /* times that each level was reached */
	uint64_t ended; /* processes ended */
	uint64_t above; /* last time at which the level was needed, or changed */
	uint64_t lowered; /* time of its last fall; 0: none */
	uint64_t back; /* how long it must not have been needed to fall */
	uint64_t limits_at; /* time of the next look at limits */
	uint64_t trimmed; /* time of the last malloc_trim(3) */
};

extern const struct memory_host memory_this_host;

/*
 * The lowest memory limit of the control groups, of version 1 or 2, that this process
 * is in, or UINT64_MAX.
 */
uint64_t memory_cgroup_limit(const struct memory_host *host);
/* 'host' as above. */
void memory_measure(const struct memory_host *host, struct memory_usage *out);

/* Sets the ceiling from the option and the control groups' limit. */
void memory_set_max(struct memory *m, uint64_t cgroup_limit);
/*
 * The level for what is in use now, m->used, by one step at a time, but at the ceiling
 * the last one at once; down after some time only. 'now' in ns. True: it changed.
 */
bool memory_decide(struct memory *m, uint64_t now);
/* Whether 'bytes' are so much of the ceiling that giving them back matters. */
bool memory_matters(const struct memory *m, uint64_t bytes);

/*
 * Measures and decides; 'now' in ns. To be called once a second, and more often while
 * memory_hurries(). True: the level changed.
 */
bool memory_tick(struct memory *m, uint64_t now);
/* Whether the ceiling is near enough to look often. */
bool memory_hurries(const struct memory *m);

#endif /* PROFILER_MEMORY_H */
