/* SPDX-License-Identifier: Apache-2.0 */
/* rows_hand: tables that go before those of the executables themselves. */
#ifndef SYMBOLIZE_ROWS_HAND_H
#define SYMBOLIZE_ROWS_HAND_H

#include "symbolize/symbolize.h"

/* A list of them, the last one first; NULL: none. */
struct symbolizer_hand;

/* As symbolizer_rows_by_hand() says. */
int symbolizer_hand_add(struct symbolizer_hand **list, const uint8_t *id,
			size_t len, struct symbolizer_rows *rows);
void symbolizer_hand_free(struct symbolizer_hand *list);
/*
 * What came of the reading of a file, 'err' or *rows, with its table by hand
 * over it, if there is one: the same again. When it fails *rows is gone.
 */
int symbolizer_hand_apply(const struct symbolizer_hand *list,
			  const struct symbolizer_ident *id, int err,
			  struct symbolizer_rows **rows);

#endif /* SYMBOLIZE_ROWS_HAND_H */
