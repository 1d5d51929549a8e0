/* SPDX-License-Identifier: Apache-2.0 */
/*
 * records: long waits, one by one, as the kernel's side records them (bpf/abi_wait.h), for
 * the archive. They are kept here until their time has come, in the order in which they are
 * in the ring, which is nearly that of their ends; what lasts at an edge apart. All calls on the loop's thread.
 */
#ifndef PROFILER_WAITING_RECORDS_H
#define PROFILER_WAITING_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "bpf/abi_wait.h"

struct waiting_sums;
struct waiting_records;

/*
 * Waits of 'min' ns or longer are recorded from now on. 'sums' was made with
 * WAITING_SUMS_RECORDS, and must outlive it. 0 or -errno.
 */
int waiting_records_new(struct waiting_records **rp, struct waiting_sums *sums,
			uint64_t min);
void waiting_records_free(struct waiting_records *r); /* NULL is allowed */

/* The next cut is at an edge: what waits at it is recorded, too; or not any more. */
void waiting_records_edge(struct waiting_records *r, bool edge);
/* Reads the ring. */
void waiting_records_poll(struct waiting_records *r);
/* Gives those of which all before are given that ended at 'time' or before. */
void waiting_records_give(struct waiting_records *r, uint64_t time,
			  void (*fn)(void *arg, const struct abi_segment *s),
			  void *arg);
/* Whether it has to be polled some times a second, or the ring would be full. */
bool waiting_records_busy(const struct waiting_records *r);

struct waiting_records_stats {
	uint64_t records; /* from the ring */
	uint64_t unkept; /* of them, lost: out of memory, or too many waited */
	uint64_t lost; /* by the kernel's side, and 'unkept' */
};
void waiting_records_get_stats(const struct waiting_records *r,
			       struct waiting_records_stats *out);

#endif /* PROFILER_WAITING_RECORDS_H */
