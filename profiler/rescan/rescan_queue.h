/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rescan_queue: processes whose mappings are to be re-read: their order, and
 * how much of it a second. Any user can make re-reads necessary and each of
 * them long: by the number of mappings, or by holding the locks that a reading
 * waits for. So users take turns, by the time that reading their processes
 * took, CPU time and waits; a second has a share of time for each of them, and
 * for all together. Processes that make more mappings than are recorded, so
 * that a re-read is soon stale again, come after the others and have a small
 * share. Processes whose reading waited for long come last, with the smallest
 * share, one at a time. Times are CLOCK_BOOTTIME in ns. Not thread safe.
 */
#ifndef PROFILER_RESCAN_QUEUE_H
#define PROFILER_RESCAN_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RESCAN_MS (1000000ULL)
/* Time a second, and how much of it can accumulate: */
#define RESCAN_ALL_NS (100 * RESCAN_MS) /* for all together */
#define RESCAN_ALL_BURST (400 * RESCAN_MS)
#define RESCAN_USER_NS (60 * RESCAN_MS) /* for processes of a user */
#define RESCAN_USER_BURST (300 * RESCAN_MS)
#define RESCAN_FLOOD_NS (10 * RESCAN_MS) /* ... for those that flood */
#define RESCAN_FLOOD_BURST (50 * RESCAN_MS)
#define RESCAN_SLOW_NS (10 * RESCAN_MS) /* ... for those that are slow */
#define RESCAN_SLOW_BURST (50 * RESCAN_MS)
/* A process is slow after a reading that waited and took longer ... */
#define RESCAN_SLOW_LIMIT (20 * RESCAN_MS)
/* ... for so long, or until a reading of it is short. */
#define RESCAN_SLOW_PERIOD (60000 * RESCAN_MS)
/* The assumed cost of a reading until it is known. */
#define RESCAN_GUESS (RESCAN_MS / 10)

struct rescan_queue;

struct rescan_item {
	uint32_t tgid;
	uint32_t uid;
	bool flood;
	bool slow; /* set by rescan_queue_take() */
};

struct rescan_queue_stats {
	uint64_t waiting; /* now */
	uint64_t dropped; /* no room, or no memory */
	uint64_t limited; /* calls that found processes without time left */
	uint64_t cpu_ns, wait_ns; /* charged */
	uint64_t slow; /* readings */
};

struct rescan_queue *rescan_queue_new(void); /* NULL: no memory */
void rescan_queue_free(struct rescan_queue *q);
/* Does nothing if the process is queued already. */
void rescan_queue_add(struct rescan_queue *q, const struct rescan_item *item);
/*
 * Takes those that may be read now, at most 'max', into 'out'. Their number; a
 * slow one comes alone.
 */
size_t rescan_queue_take(struct rescan_queue *q, uint64_t now,
			 struct rescan_item *out, size_t max);
/* Charges the user of a taken process with what its reading used. */
void rescan_queue_charge(struct rescan_queue *q, const struct rescan_item *item,
			 uint64_t cpu_ns, uint64_t wait_ns);
/* Its user has no time left. */
bool rescan_queue_spent(struct rescan_queue *q, const struct rescan_item *item);
/* Of the users whose processes wait for time, the one with the largest debt. */
bool rescan_queue_limits(const struct rescan_queue *q, uint32_t *uid);
void rescan_queue_get_stats(const struct rescan_queue *q,
			    struct rescan_queue_stats *out);

#endif /* PROFILER_RESCAN_QUEUE_H */
