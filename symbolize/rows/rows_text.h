/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_text: rows as lines of text, as `profd debug unwind-table` prints them and
 * as users write them for files that have none, or wrong ones.
 *
 *    ADDRESS CFA RBP [RA] [REGISTER=VALUE]...
 *
 * The short form is lossy: "deref" and "expr" stand for rules that only the full
 * form writes out. It has all registers, and can be parsed.
 *
 *    CFA     rsp+N, any register +N; *REG+N; plt or plt:N; expr:HEX; sig: before
 *            one of these, the frame of a signal handler; end, a gap
 *    VALUE   u, unchanged (of the return address: none, a root); none; c-N, in
 *            memory at CFA-N; cfa-N, that itself; REG, REG+N; *REG+N; expr:HEX;
 *            *expr:HEX; elsewhere (of the return address), on another stack
 */
#ifndef SYMBOLIZE_ROWS_TEXT_H
#define SYMBOLIZE_ROWS_TEXT_H

#include "symbolize/rows/rows.h"

/* What a value begins with in the full form, by enum symbolizer_from. */
extern const char *const symbolizer_rows_words[];

#endif /* SYMBOLIZE_ROWS_TEXT_H */
