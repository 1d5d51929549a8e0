// SPDX-License-Identifier: Apache-2.0
/* context: see symbolize/context/context.h. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/base.h"
#include "symbolize/context/context.h"

#define CONTEXT_MAGIC "OTEL_CTX"
#define CONTEXT_VERSION 2

/* --- the header ----------------------------------------------------------- */

struct context_head {
	char magic[8];
	uint32_t version, size;
	uint64_t published_ns, payload;
};

int symbolizer_context_header(const void *buf, size_t len,
			      struct symbolizer_context_header *out)
{
	struct context_head h;

	memset(out, 0, sizeof(*out));
	if (len < sizeof(h))
		return -EINVAL;
	memcpy(&h, buf, sizeof(h));
	if (memcmp(h.magic, CONTEXT_MAGIC, sizeof(h.magic)) != 0 ||
	    h.version != CONTEXT_VERSION)
		return -EINVAL;
	if (!h.published_ns)
		return -EAGAIN;
	if (h.size > SYMBOLIZER_CONTEXT_MAX)
		return -EFBIG;
	*out = (struct symbolizer_context_header){
		.published_ns = h.published_ns,
		.payload = h.payload,
		.size = h.size,
	};
	return 0;
}

/* --- attributes ----------------------------------------------------------- */

static const struct {
	const char *key;
	size_t at; /* in a context */
} context_keys[] = {
#define X(name, key) { key, offsetof(struct symbolizer_context, name) },
	SYMBOLIZER_CONTEXT_NAMES(X)
#undef X
};

/* C0 and C1 control characters are no part of a name. */
static bool context_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0);
}

bool symbolizer_context_text(const char *s, size_t len)
{
	size_t n;
	uint32_t c;

	if (!len || len > SYMBOLIZER_CONTEXT_NAME_MAX)
		return false;
	for (; len; s += n, len -= n) {
		n = text_decode((const unsigned char *)s, len, &c);
		if (!n || context_is_control(c))
			return false;
	}
	return true;
}

bool symbolizer_context_set(struct symbolizer_context *c, const char *key,
			    size_t key_len, const char *value, size_t len)
{
	char *to;

	for (size_t i = 0; i < ARRAY_SIZE(context_keys); i++) {
		if (strlen(context_keys[i].key) != key_len ||
		    memcmp(context_keys[i].key, key, key_len) != 0)
			continue;
		if (!symbolizer_context_text(value, len))
			return false;
		to = (char *)c + context_keys[i].at;
		memcpy(to, value, len);
		to[len] = '\0';
		return true;
	}
	return false;
}

bool symbolizer_context_valid(const struct symbolizer_context *c)
{
	const char *s;
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(context_keys); i++) {
		s = (const char *)c + context_keys[i].at;
		len = strnlen(s, SYMBOLIZER_CONTEXT_NAME_MAX + 1);
		if (len && !symbolizer_context_text(s, len))
			return false;
	}
	return true;
}

/* --- protobuf (protobuf.dev/programming-guides/encoding) ------------------ */

enum context_wire {
	CONTEXT_VARINT = 0,
	CONTEXT_FIXED64 = 1,
	CONTEXT_BYTES = 2,
	CONTEXT_FIXED32 = 5,
};

/* The bytes of a message, or of a field of one. */
struct context_part {
	const uint8_t *p;
	size_t len;
};

struct context_field {
	uint64_t number;
	bool bytes; /* it has 'part', else it is a number */
	struct context_part part;
};

static bool context_skip(struct context_part *m, uint64_t n)
{
	if (n > m->len)
		return false;
	m->p += n;
	m->len -= (size_t)n;
	return true;
}

static bool context_varint(struct context_part *m, uint64_t *out)
{
	uint8_t byte;

	*out = 0;
	for (unsigned int shift = 0; shift < 64; shift += 7) {
		if (!m->len)
			return false;
		byte = *m->p;
		context_skip(m, 1);
		*out |= (uint64_t)(byte & 0x7f) << shift;
		if (byte < 0x80)
			return shift < 63 || byte < 2;
	}
	return false;
}

/* The next field of a message that has some left. False: there is none. */
static bool context_next(struct context_part *m, struct context_field *f)
{
	uint64_t tag, v;

	*f = (struct context_field){ 0 };
	if (!context_varint(m, &tag) || tag >> 3 == 0 || tag > UINT32_MAX)
		return false;
	f->number = tag >> 3;
	switch (tag & 7) {
	case CONTEXT_VARINT:
		return context_varint(m, &v);
	case CONTEXT_FIXED64:
		return context_skip(m, 8);
	case CONTEXT_FIXED32:
		return context_skip(m, 4);
	case CONTEXT_BYTES:
		f->bytes = true;
		if (!context_varint(m, &v))
			return false;
		f->part = (struct context_part){ m->p, (size_t)v };
		return context_skip(m, v);
	default:
		return false;
	}
}

static int context_value(struct context_part m, struct context_part *value)
{
	struct context_field f;

	while (m.len) {
		if (!context_next(&m, &f))
			return -EINVAL;
		/* One of several: the last one is the value. */
		*value = f.number == 1 && f.bytes ? f.part
						  : (struct context_part){ 0 };
	}
	return 0;
}

static int context_attribute(struct context_part m,
			     struct symbolizer_context *out)
{
	struct context_part key = { 0 }, value = { 0 };
	struct context_field f;
	int err = 0;

	while (m.len && !err) {
		if (!context_next(&m, &f))
			return -EINVAL;
		if (f.number == 1 && f.bytes)
			key = f.part;
		if (f.number == 2 && f.bytes)
			err = context_value(f.part, &value);
	}
	if (!err && key.len)
		symbolizer_context_set(out, (const char *)key.p, key.len,
				       (const char *)value.p, value.len);
	return err;
}

static int context_resource(struct context_part m, size_t *attributes,
			    struct symbolizer_context *out)
{
	struct context_field f;
	int err = 0;

	while (m.len && !err) {
		if (!context_next(&m, &f))
			return -EINVAL;
		if (f.number != 1 || !f.bytes)
			continue;
		if (++*attributes > SYMBOLIZER_CONTEXT_ATTRIBUTES)
			return -E2BIG;
		err = context_attribute(f.part, out);
	}
	return err;
}

int symbolizer_context_parse(const uint8_t *buf, size_t len,
			     struct symbolizer_context *out)
{
	struct context_part m = { buf, len };
	struct context_field f;
	size_t attributes = 0;
	int err = 0;

	memset(out, 0, sizeof(*out));
	while (m.len && !err) {
		if (!context_next(&m, &f))
			return -EINVAL;
		if (f.number == 1 && f.bytes)
			err = context_resource(f.part, &attributes, out);
	}
	return err;
}
