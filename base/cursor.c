// SPDX-License-Identifier: Apache-2.0
/* cursor: see base/cursor.h. */
#include "base/cursor.h"

#include <string.h>

static void cursor_fail(struct cursor *c)
{
	c->p = c->end;
	c->bad = true;
}

const uint8_t *cursor_bytes(struct cursor *c, uint64_t len)
{
	const uint8_t *p = c->p;

	if (len > (size_t)(c->end - c->p)) {
		cursor_fail(c);
		return NULL;
	}
	c->p += len;
	return p;
}

uint64_t cursor_fixed(struct cursor *c, size_t size)
{
	const uint8_t *p = cursor_bytes(c, size);
	uint64_t v = 0;

	if (p)
		memcpy(&v, p, size);
	return v;
}

int64_t cursor_signed(struct cursor *c, size_t size)
{
	unsigned int shift = 64 - 8 * (unsigned int)size;

	return (int64_t)(cursor_fixed(c, size) << shift) >> shift;
}

static uint64_t cursor_leb(struct cursor *c, bool is_signed)
{
	unsigned int shift = 0;
	uint64_t v = 0;
	uint8_t byte;

	do {
		if (c->p == c->end || shift > 63) {
			cursor_fail(c);
			return 0;
		}
		byte = *c->p++;
		v |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while (byte & 0x80);
	if (is_signed && (byte & 0x40) && shift < 64)
		v |= ~0ULL << shift;
	return v;
}

uint64_t cursor_uleb(struct cursor *c)
{
	return cursor_leb(c, false);
}

int64_t cursor_sleb(struct cursor *c)
{
	return (int64_t)cursor_leb(c, true);
}
