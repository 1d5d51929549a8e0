/* SPDX-License-Identifier: Apache-2.0 */
/*
 * opened: the stacks of waits that are open and have no site, since they began before
 * --wait did, or were not copied then. An iterator lists their threads, the stacks are
 * read from outside, by a thread that can be abandoned (base/proc/patience.h), and the
 * kernel's side gives the site to those that have not run meanwhile.
 *
 * At most ABI_WAIT_OPEN_MAX a tick at first, then a second; all threads once in ten
 * seconds. A stack can be in a mapping that is never read to the end (FUSE): such a thread
 * is left alone for a minute, and while two of them are waited for no stack is read.
 */
#ifndef PROFILER_WAITING_OPENED_H
#define PROFILER_WAITING_OPENED_H

#include <stdint.h>

#include "base/proc/patience.h"
#include "bpf/abi_wait.h"
#include "profiler/waiting/sums.h"

struct opened_job;

#define WAITING_OPENED_HUNG 8

struct waiting_opened {
	struct patience patience;
	struct opened_job *job; /* the thread's now; or NULL */
	/* What it reads, which the job has no more when it was abandoned. */
	uint32_t tids[ABI_WAIT_OPEN_MAX];
	struct {
		uint32_t tid;
		uint64_t until; /* it is not read before */
	} hung[WAITING_OPENED_HUNG];
	size_t nhung; /* so far: the next one's place */
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
