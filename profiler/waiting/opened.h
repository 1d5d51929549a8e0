/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opened: the stacks of waits that are open and have no site, since they began before
 * --wait did, or were not copied then. An iterator lists their threads, the stacks are
 * read from outside, by a thread that can be abandoned (base/proc/patience.h), and the
 * kernel's side gives the site to those that have not run meanwhile.
 *
 * At most ABI_WAIT_OPEN_MAX a tick at first, then a second; all threads once in ten
 * seconds.
 */
#ifndef PROFILER_WAITING_OPENED_H
#define PROFILER_WAITING_OPENED_H

#include <stdint.h>

#include "base/proc/patience.h"
#include "bpf/abi_wait.h"
#include "profiler/waiting/sums.h"

struct waiting_opened {
	struct patience patience;
	uint64_t began, next; /* CLOCK_BOOTTIME, ns */
	uint32_t after; /* the thread that was listed last; 0: none */
	uint64_t seed, number; /* of sites */
	uint64_t copied; /* stacks of such waits */
	uint64_t unread; /* those that could not be read, or moved */
};

void waiting_opened_init(struct waiting_opened *o, uint64_t now);
void waiting_opened_fini(struct waiting_opened *o);
/* Gives the records to 'fn', as waiting_sums_stacks(). */
void waiting_opened_tick(struct waiting_opened *o, struct waiting_sums *sums,
			 uint64_t now,
			 void (*fn)(void *arg, const struct abi_sample *rec,
				    size_t len),
			 void *arg);

#endif /* PROFILER_WAITING_OPENED_H */
