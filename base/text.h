/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text: bytes chosen by somebody else (names, arguments and paths of watched
 * processes) as text for a terminal. Everything that a terminal or a reader
 * could take for something else is escaped: C0 and C1 control characters, marks
 * that change the direction of text, characters without width, line separators,
 * and bytes that are not UTF-8 (RFC 3629).
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>

#include "base/strbuf.h"

/*
 * Appends 'len' bytes of text, NUL bytes included. Escapes are \u{202e} for a
 * character, and \033 (octal) for a control character of ASCII and for a byte
 * that is not UTF-8. A backslash stays as it is: the result is for people to
 * read, not for programs to parse.
 */
void text_add(struct strbuf *sb, const char *s, size_t len);
/*
 * Appends JSON text with all that is not ASCII written as \u202e: a parser reads
 * the same values from it. 'len' bytes; those that are not UTF-8 become \ufffd.
 */
void text_add_json(struct strbuf *sb, const char *s, size_t len);

#endif /* BASE_TEXT_H */
