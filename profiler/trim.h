/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trim: gives memory back that a burst needed. malloc(3) by itself gives back
 * only what lies above the highest piece still in use, and after a storm of
 * processes some small one always lies at the very top.
 */
#ifndef PROFILER_TRIM_H
#define PROFILER_TRIM_H

#include <stdbool.h>
#include <stdint.h>

struct trim {
	uint64_t next; /* time of the next look */
	uint64_t waste; /* resident and not in use, that the last try left */
};

/*
 * To be called often; looks every ten seconds. True if it gave something back,
 * or tried to: then not again before there is more of it.
 */
bool trim_tick(struct trim *t, uint64_t now);

#endif /* PROFILER_TRIM_H */
