/* SPDX-License-Identifier: Apache-2.0 */
/* unwind_rows: a directory of hand-written unwind rows. */
#ifndef PROFILER_UNWIND_ROWS_H
#define PROFILER_UNWIND_ROWS_H

#include "symbolize/symbolize.h"

/* Takes over 'rows' for the file with that build id or file id; 0 or -errno. */
typedef int (*unwind_rows_fn)(void *arg, const uint8_t *id, size_t len,
			      struct symbolizer_rows *rows);

/*
 * Gives 'fn' the rows of every file ID.rows in 'dir'. Files that cannot be read
 * are logged, with the place of the error. Their number, or 1 if that is the
 * directory.
 */
int unwind_rows_load(const char *dir, unwind_rows_fn fn, void *arg);

#endif /* PROFILER_UNWIND_ROWS_H */
