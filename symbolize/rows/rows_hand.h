/* SPDX-License-Identifier: Apache-2.0 */
/* rows_hand: tables written by users, which precede those of executables. */
#ifndef SYMBOLIZE_ROWS_HAND_H
#define SYMBOLIZE_ROWS_HAND_H

#include "symbolize/symbolize.h"

/* A list, the last added first; NULL: empty. */
struct symbolizer_hand;

/* As symbolizer_rows_by_hand(). */
int symbolizer_hand_add(struct symbolizer_hand **list, const uint8_t *id,
			size_t len, struct symbolizer_rows *rows);
void symbolizer_hand_free(struct symbolizer_hand *list);
/*
 * Replaces the result of reading a file, 'err' or *rows, by that with its table
 * by hand over it, if there is one. When it fails *rows is freed.
 */
int symbolizer_hand_apply(const struct symbolizer_hand *list,
			  const struct symbolizer_ident *id, int err,
			  struct symbolizer_rows **rows);

#endif /* SYMBOLIZE_ROWS_HAND_H */
