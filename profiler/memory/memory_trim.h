/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_trim: gives memory back to the kernel after a burst. malloc(3) by itself
 * gives back only what is above the highest block in use, and after a storm of
 * processes some small block always is at the very top.
 */
#ifndef PROFILER_MEMORY_TRIM_H
#define PROFILER_MEMORY_TRIM_H

#include <stdbool.h>
#include <stdint.h>

struct memory_trim {
	uint64_t next; /* time of the next check */
	uint64_t waste; /* bytes resident and not in use after the last trim */
};

/*
 * Checks every ten seconds; to be called more often. True: it trimmed the heap,
 * and will not do so again before the waste has grown.
 */
bool memory_trim_tick(struct memory_trim *t, uint64_t now);

#endif /* PROFILER_MEMORY_TRIM_H */
