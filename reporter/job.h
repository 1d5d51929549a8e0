/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job: what becomes of a window when it closes: sealed on the loop, encoded
 * and written by a worker, told of on the loop.
 */
#ifndef REPORTER_JOB_H
#define REPORTER_JOB_H

#include "reporter/internal.h"

/* Takes a window that is in no list any more. */
void job_start(struct reporter_window *w);
/* A window that is in no list and has no job; removes its unfinished file. */
void job_window_free(struct reporter_window *w);

#endif /* REPORTER_JOB_H */
