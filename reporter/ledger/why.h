/* SPDX-License-Identifier: Apache-2.0 */
/*
 * why: where the time of a span of a thread went: the way back through what woke it. From
 * the end of the span backwards the thread's own segments are taken; in place of a wait
 * that another thread has ended, what that thread did meanwhile, and so on. So each moment
 * of the span is in one step, and the steps that are not followed add up to the span.
 */
#ifndef REPORTER_LEDGER_WHY_H
#define REPORTER_LEDGER_WHY_H

#include "reporter/ledger/step.h"

#define WHY_DEPTH 32
#define WHY_STEPS 4096

struct why_opts {
	/*
	 * The segment of a thread that contains the time before 'time': begin < time <= end.
	 * Valid until why_path() returns. NULL: it is not recorded; *until is the end of
	 * the last one before, 0: there is none.
	 */
	const struct reporter_segment *(*find)(void *arg,
					       const struct abi_key *key,
					       uint32_t tid, uint64_t time,
					       uint64_t *until);
	void *arg;
};

/*
 * The path of a thread from 'from' to 'to' (CLOCK_BOOTTIME, ns), by time; a step that is
 * followed comes before those that replace it. malloc'd; NULL: out of memory.
 */
struct reporter_step *why_path(const struct why_opts *o,
			       const struct abi_key *key, uint32_t tid,
			       uint64_t from, uint64_t to, size_t *n);

#endif /* REPORTER_LEDGER_WHY_H */
