/* SPDX-License-Identifier: Apache-2.0 */
/*
 * walkqueue: processes whose mappings are to be re-read, in which order and how
 * soon. Any user can make re-reads necessary, and make each of them long: by the
 * number of mappings, or by holding the locks that a reading waits for. So users
 * take turns, by the time that reading their processes took, CPU time and waits;
 * each has so much of it a second, and all together. Processes that make more mappings
 * than are recorded, of which what was re-read is soon stale again, come after the
 * others and have little. Those of which a reading waited for long come last and have
 * the least, one at a time.
 * Times are CLOCK_BOOTTIME in ns. Not thread safe.
 */
#ifndef PROFILER_WALKQUEUE_H
#define PROFILER_WALKQUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WALKQUEUE_MS (1000000ULL)
/* Time a second, and what may have been saved up: */
#define WALKQUEUE_ALL_NS (100 * WALKQUEUE_MS) /* for all together */
#define WALKQUEUE_ALL_BURST (400 * WALKQUEUE_MS)
#define WALKQUEUE_USER_NS (60 * WALKQUEUE_MS) /* for processes of a user */
#define WALKQUEUE_USER_BURST (300 * WALKQUEUE_MS)
#define WALKQUEUE_FLOOD_NS (10 * WALKQUEUE_MS) /* ... for those that flood */
#define WALKQUEUE_FLOOD_BURST (50 * WALKQUEUE_MS)
#define WALKQUEUE_SLOW_NS (10 * WALKQUEUE_MS) /* ... for those that are slow */
#define WALKQUEUE_SLOW_BURST (50 * WALKQUEUE_MS)
/* A reading that waited, and took longer in all, makes its process slow ... */
#define WALKQUEUE_SLOW_LIMIT (20 * WALKQUEUE_MS)
/* ... for so long, or until a reading of it is short. */
#define WALKQUEUE_SLOW_PERIOD (60000 * WALKQUEUE_MS)
/* What a reading is taken to cost until it is known. */
#define WALKQUEUE_GUESS (WALKQUEUE_MS / 10)

struct walkqueue;

struct walkqueue_item {
	uint32_t tgid;
	uint32_t uid;
	bool flood;
	bool slow; /* said by rescan_queue_take() */
};

struct walkqueue_stats {
	uint64_t waiting; /* now */
	uint64_t dropped; /* no room, or no memory */
	uint64_t limited; /* calls that found processes, and no time for them */
	uint64_t cpu_ns; /* charged */
	uint64_t wait_ns; /* charged besides */
	uint64_t slow; /* readings */
};

struct walkqueue *rescan_queue_new(void); /* NULL: no memory */
void rescan_queue_free(struct walkqueue *q);
/* One that waits already is left where it is. */
void rescan_queue_add(struct walkqueue *q, const struct walkqueue_item *item);
/*
 * Those that may be read now, at most 'max', into 'out'. How many; a slow one is
 * alone.
 */
size_t rescan_queue_take(struct walkqueue *q, uint64_t now,
			 struct walkqueue_item *out, size_t max);
/* Reading this one, which was taken, used so much CPU time and waited for so long. */
void rescan_queue_charge(struct walkqueue *q, const struct walkqueue_item *item,
			 uint64_t cpu_ns, uint64_t wait_ns);
/* Its user has no time left. */
bool rescan_queue_spent(struct walkqueue *q, const struct walkqueue_item *item);
/* Who waits because his share of the time is used up; the one who owes most. */
bool rescan_queue_limits(const struct walkqueue *q, uint32_t *uid);
void rescan_queue_get_stats(const struct walkqueue *q,
			    struct walkqueue_stats *out);

#endif /* PROFILER_WALKQUEUE_H */
