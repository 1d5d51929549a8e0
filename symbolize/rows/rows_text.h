/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows_text: rows as lines of text, one each, as `profd debug unwind-table`
 * prints them and as people write them for files that say nothing, or lie.
 *
 *    ADDRESS CFA RBP [RA] [REGISTER=VALUE]...
 *
 * What is short loses something: "deref" and "expr" do not say of what. The
 * full form says it, and all registers; it alone can be read back whole.
 *
 *    CFA     rsp+N, any register +N; *REG+N; plt or plt:N; expr:HEX; sig: in
 *            front of one, the frame of a signal handler; end, a gap
 *    VALUE   u, unchanged (of the return address: none, a root); none; c-N, in
 *            memory at CFA-N; cfa-N, that itself; REG, REG+N; *REG+N; expr:HEX;
 *            *expr:HEX
 */
#ifndef SYMBOLIZE_ROWS_TEXT_H
#define SYMBOLIZE_ROWS_TEXT_H

#include "symbolize/rows/rows.h"

#define ROWS_DWARF_RBP 6
#define ROWS_DWARF_RSP 7

/*
 * What a stub of a PLT pushes is pushed after its ninth byte or its eleventh,
 * and no instruction begins in between: this stands for both.
 */
#define ROWS_PLT_DEFAULT 9

/* By DWARF number. */
extern const char *const symbolizer_reg_names[SYMBOLIZER_REGS];

#endif /* SYMBOLIZE_ROWS_TEXT_H */
