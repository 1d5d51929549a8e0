/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clock: inside profd every time is CLOCK_BOOTTIME in nanoseconds, as in the BPF
 * programs. Wall time is computed only for output, by an offset that is measured
 * each time, so that a step of the clock or a suspend does not distort it.
 */
#ifndef BASE_CLOCK_H
#define BASE_CLOCK_H

#include <stdint.h>

#define CLOCK_NSEC_PER_SEC 1000000000ULL
#define CLOCK_NSEC_PER_MSEC 1000000ULL

uint64_t clock_boottime_ns(void);
/* The current offset from boot time to nanoseconds since the epoch. */
int64_t clock_wall_offset_ns(void);
/* How long the host has been suspended since it booted. */
uint64_t clock_slept_ns(void);
/* CLOCK_MONOTONIC, for timeouts that do not expire during a suspend. */
uint64_t clock_awake_ns(void);

#endif /* BASE_CLOCK_H */
