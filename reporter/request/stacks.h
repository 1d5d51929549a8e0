/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stacks: the stacks of long waits of an archive: those of the samples of their sums, in
 * the profiles of waits. Each of these is read once, and a few of them at most.
 */
#ifndef REPORTER_REQUEST_STACKS_H
#define REPORTER_REQUEST_STACKS_H

#include "reporter/ledger/step.h"
#include "reporter/request/lanes.h"

struct stacks;

/* 'l' must outlive it. NULL: out of memory. */
struct stacks *stacks_new(const struct lanes *l);
void stacks_free(struct stacks *s); /* NULL is allowed */
/* Of reporter_path_stacks(); 'arg' is the stacks. */
size_t stacks_frames(void *arg, uint64_t site, struct reporter_step_frame *out,
		     size_t max);

#endif /* REPORTER_REQUEST_STACKS_H */
