/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock: inside profd every time is CLOCK_BOOTTIME in nanoseconds, as the
 * kernel side has it. Wall time exists at the border only, and the distance
 * between the two is measured anew whenever it is needed, so that a step of
 * the clock or a suspend bends nothing that was measured.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

#define CLOCK_NSEC_PER_SEC 1000000000ULL
#define CLOCK_NSEC_PER_MSEC 1000000ULL

/* Now, CLOCK_BOOTTIME, nanoseconds. */
uint64_t clock_boottime_ns(void);
/* What to add to a boot time for nanoseconds since the epoch, as of now. */
int64_t clock_wall_offset_ns(void);
/* For how long the host slept since it booted, suspended. */
uint64_t clock_slept_ns(void);
/*
 * CLOCK_MONOTONIC, which stands while the host sleeps: for how long somebody
 * may take, where a suspend is not his time.
 */
uint64_t clock_awake_ns(void);

#endif /* BASE_CLOCK_H */
