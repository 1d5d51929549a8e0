/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cursor: reads little-endian numbers from a buffer. A read past the end sets 'bad'
 * and consumes the rest; it and all later reads give 0. So a caller may check 'bad'
 * once, after several reads.
 */
#ifndef BASE_CURSOR_H
#define BASE_CURSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct cursor {
	const uint8_t *p, *end; /* bytes not read yet */
	bool bad;
};

/* The next 'len' bytes; NULL and bad if there are fewer. */
const uint8_t *cursor_bytes(struct cursor *c, uint64_t len);
/* A number of 'size' bytes, 1 to 8. */
uint64_t cursor_fixed(struct cursor *c, size_t size);
int64_t cursor_signed(struct cursor *c, size_t size);
/*
 * LEB128 (DWARF 5, 7.6; protobuf's varint is the unsigned form). Ten bytes at most;
 * bits above 64 are dropped.
 */
uint64_t cursor_uleb(struct cursor *c);
int64_t cursor_sleb(struct cursor *c);

#endif /* BASE_CURSOR_H */
