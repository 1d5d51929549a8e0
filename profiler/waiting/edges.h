/* SPDX-License-Identifier: Apache-2.0 */
/*
 * edges: the times at which the kernel's side of waiting begins another slot of each sum
 * (ABI_WAIT_SLOTS in bpf/abi_wait.h). An edge is set before its time, is passed when the
 * time of before it has been read, and then leaves its slot to a later one. Times are
 * CLOCK_BOOTTIME in ns.
 */
#ifndef PROFILER_WAITING_EDGES_H
#define PROFILER_WAITING_EDGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi_wait.h"

#define WAITING_EDGES (ABI_WAIT_SLOTS - 1) /* that can be set at a time */

struct waiting_edges {
	__u64 *begins; /* of the kernel's side: wait_begins */
	uint64_t times[WAITING_EDGES]; /* in order */
	bool late[WAITING_EDGES]; /* it was set after its time */
	size_t n;
	uint32_t slot; /* of the time before the first edge */
};

/* 'begins' is borrowed; its first slot is in use. */
void waiting_edges_init(struct waiting_edges *e, __u64 *begins);
/*
 * Sets the edges that are to come, in order; those of before that are not among them are
 * withdrawn, unless their time has come. Those for which no slot is free have to be set
 * again later.
 */
void waiting_edges_set(struct waiting_edges *e, const uint64_t *times, size_t n,
		       uint64_t now);
/* The first that is not passed; UINT64_MAX: there is none. */
uint64_t waiting_edges_first(const struct waiting_edges *e);
/*
 * If 'time' is the first edge it is passed, and what is after it may be read. False: it
 * was not set before its time, so that what ended in between was added before it.
 */
bool waiting_edges_pass(struct waiting_edges *e, uint64_t time);
/* Whether a slot has no time of after the first edge. */
bool waiting_edges_before(const struct waiting_edges *e, uint32_t slot);

#endif /* PROFILER_WAITING_EDGES_H */
