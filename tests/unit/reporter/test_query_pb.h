/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of protobuf, field by field, for profiles as they may come from anywhere. */
#ifndef TESTS_UNIT_REPORTER_TEST_QUERY_PB_H
#define TESTS_UNIT_REPORTER_TEST_QUERY_PB_H

#include <stdint.h>
#include <string.h>

struct msg {
	uint8_t bytes[4096];
	size_t len;
};

static inline void varint(struct msg *m, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		m->bytes[m->len++] = (uint8_t)(v | 0x80);
	m->bytes[m->len++] = (uint8_t)v;
}

static inline void number(struct msg *m, unsigned int field, uint64_t v)
{
	varint(m, field << 3);
	varint(m, v);
}

static inline void bytes(struct msg *m, unsigned int field, const void *p,
			 size_t len)
{
	varint(m, field << 3 | 2);
	varint(m, len);
	memcpy(m->bytes + m->len, p, len);
	m->len += len;
}

static inline void inner(struct msg *m, unsigned int field,
			 const struct msg *in)
{
	bytes(m, field, in->bytes, in->len);
}

#endif /* TESTS_UNIT_REPORTER_TEST_QUERY_PB_H */
