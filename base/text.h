/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text: untrusted bytes (names, arguments and paths of watched processes) as text
 * for a terminal. All that could mislead a terminal or its user is escaped: C0 and
 * C1 control characters, marks that change the direction of text, characters without
 * width, line separators, and bytes that are not UTF-8 (RFC 3629).
 */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include <stddef.h>
#include <stdint.h>

#include "base/strbuf.h"

/*
 * Appends 'len' bytes of text, NUL bytes included. Escapes are \u{202e} for a
 * character, and \033 (octal) for an ASCII control character and for a byte that is
 * not UTF-8. A backslash is not escaped: the result is not for programs to parse.
 */
void text_add(struct strbuf *sb, const char *s, size_t len);
/*
 * Appends 'len' bytes of JSON text with characters that are not ASCII as \u202e,
 * which a parser reads alike. Bytes that are not UTF-8 become \ufffd.
 */
void text_add_json(struct strbuf *sb, const char *s, size_t len);
/* Appends a text as a string of JSON, in quotes, in ASCII as above. */
void text_add_json_string(struct strbuf *sb, const char *s);
/*
 * Decodes the character at 's' of 'len' bytes, at least one. Its length, or 0
 * if there is none: no overlong forms, no surrogates, nothing above U+10FFFF.
 */
size_t text_decode(const unsigned char *s, size_t len, uint32_t *cp);

#endif /* BASE_TEXT_H */
