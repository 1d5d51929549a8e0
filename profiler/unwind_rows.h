/* SPDX-License-Identifier: Apache-2.0 */
/* unwind_rows: a directory of unwind rows that people wrote. */
#ifndef PROFILER_UNWIND_ROWS_H
#define PROFILER_UNWIND_ROWS_H

#include "symbolize/symbolize.h"

/* Takes over 'rows' for the file with that build id or file id; 0 or -errno. */
typedef int (*unwind_rows_fn)(void *arg, const uint8_t *id, size_t len,
			      struct symbolizer_rows *rows);

/*
 * Gives 'fn' the rows of every file ID.rows in 'dir'. What cannot be read is left
 * out, with one line in the log that says where it is wrong. How many were, of the
 * directory itself 1.
 */
int unwind_rows_load(const char *dir, unwind_rows_fn fn, void *arg);

#endif /* PROFILER_UNWIND_ROWS_H */
