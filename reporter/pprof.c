// SPDX-License-Identifier: Apache-2.0
/* pprof: see reporter/pprof.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/pprof.h"

#define PPROF_WIRE_BYTES 2 /* length-delimited */
#define PPROF_PREFIX_MAX 11 /* a byte of field number, a varint */

void pprof_fini(struct pprof *p)
{
	free(p->buf);
}

static void pprof_prefix(struct pprof *p, enum pprof_field field, size_t len)
{
	uint8_t b[PPROF_PREFIX_MAX];
	size_t n = 0;

	b[n++] = field << 3 | PPROF_WIRE_BYTES;
	for (; len > 0x7f; len >>= 7)
		b[n++] = len | 0x80;
	b[n++] = len;
	sink_write(p->sink, b, n);
}

void pprof_put(struct pprof *p, enum pprof_field field,
	       const ProtobufCMessage *m)
{
	size_t len = protobuf_c_message_get_packed_size(m);

	if (!p->buf || len > p->cap) {
		free(p->buf);
		p->cap = 2 * len + 64;
		p->buf = malloc(p->cap);
	}
	if (!p->buf) {
		p->err = -ENOMEM;
		return;
	}
	protobuf_c_message_pack(m, p->buf);
	if (field != PPROF_PROFILE)
		pprof_prefix(p, field, len);
	sink_write(p->sink, p->buf, len);
}

const char *pprof_utf8(const char *s, size_t *len, struct strbuf *sb)
{
	const char *p = s, *end = s + *len;
	const char *valid = s; /* not copied yet, up to p */
	uint32_t cp;
	size_t n;

	while (p < end) {
		n = text_decode((const unsigned char *)p, end - p, &cp);
		if (n) {
			p += n;
			continue;
		}
		strbuf_add(sb, valid, p - valid);
		strbuf_puts(sb, "\xef\xbf\xbd");
		valid = ++p;
	}
	if (valid == s)
		return s;
	strbuf_add(sb, valid, end - valid);
	*len = sb->len;
	return strbuf_str(sb);
}

void pprof_string(struct pprof *p, const char *str)
{
	struct strbuf sb = STRBUF_INIT;
	size_t len = strlen(str);
	const char *s = pprof_utf8(str, &len, &sb);

	if (s) {
		pprof_prefix(p, PPROF_STRING, len);
		sink_write(p->sink, s, len);
	} else {
		p->err = -ENOMEM;
	}
	strbuf_fini(&sb);
}
