/* SPDX-License-Identifier: Apache-2.0 */
/* unwind_rows: a directory of unwind rows that people wrote. */
#ifndef PROFILER_UNWIND_ROWS_H
#define PROFILER_UNWIND_ROWS_H

#include "symbolize/symbolize.h"

/*
 * Gives 's' the rows of every file BUILDID.rows in 'dir'. What cannot be read
 * is left out, with one line in the log that says where it is wrong. How many
 * were, of the directory itself 1.
 */
int unwind_rows_load(struct symbolizer *s, const char *dir);

#endif /* PROFILER_UNWIND_ROWS_H */
