// SPDX-License-Identifier: Apache-2.0
/* wire: fields of a protobuf message; see reporter/edit/edit.h. */
#include <errno.h>

#include "reporter/edit/edit.h"

/* False: cut off, or longer than 64 bits. */
static bool edit_varint(struct edit_bytes *b, uint64_t *v)
{
	unsigned int shift = 0;

	for (*v = 0; b->len && shift < 64; shift += 7) {
		uint8_t c = *b->p++;

		b->len--;
		*v |= (uint64_t)(c & 0x7f) << shift;
		if (!(c & 0x80))
			return true;
	}
	return false;
}

static bool edit_skip(struct edit_bytes *b, uint64_t n)
{
	if (n > b->len)
		return false;
	b->p += n;
	b->len -= n;
	return true;
}

int edit_next(struct edit_bytes *msg, struct edit_field *out)
{
	struct edit_bytes b = *msg;
	uint64_t tag, n = 0;
	bool ok;

	if (!b.len)
		return 0;
	if (!edit_varint(&b, &tag) || !(tag >> 3))
		return -EBADMSG;
	*out = (struct edit_field){ .number = tag >> 3, .wire = tag & 7 };
	switch (out->wire) {
	case EDIT_VARINT:
		ok = edit_varint(&b, &out->value);
		break;
	case EDIT_LEN:
		ok = edit_varint(&b, &n);
		out->bytes = (struct edit_bytes){ b.p, n };
		break;
	default:
		/* Groups, which proto3 does not have, have no length. */
		ok = out->wire == EDIT_FIXED64 || out->wire == EDIT_FIXED32;
		n = out->wire == EDIT_FIXED64 ? 8 : 4;
	}
	if (!ok || !edit_skip(&b, n))
		return -EBADMSG;
	out->whole = (struct edit_bytes){ msg->p, (size_t)(b.p - msg->p) };
	*msg = b;
	return 1;
}

int edit_next_packed(struct edit_bytes *msg, uint64_t *out)
{
	if (!msg->len)
		return 0;
	return edit_varint(msg, out) ? 1 : -EBADMSG;
}
