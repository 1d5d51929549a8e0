/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job: the way of a window after it closes: sealed on the loop, encoded and
 * written by a worker thread, reported on the loop.
 */
#ifndef REPORTER_JOB_H
#define REPORTER_JOB_H

#include "reporter/internal.h"

/* Takes over a window, which is in no list. */
void job_start(struct reporter_window *w);
/* 'w' is in no list and has no job. Removes its temporary file. */
void job_window_free(struct reporter_window *w);

#endif /* REPORTER_JOB_H */
