// SPDX-License-Identifier: Apache-2.0
/* strbuf: see base/strbuf.h. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

void strbuf_fini(struct strbuf *sb)
{
	free(sb->data);
	memset(sb, 0, sizeof(*sb));
}

void strbuf_reset(struct strbuf *sb)
{
	sb->len = 0;
	sb->failed = false;
	if (sb->data)
		sb->data[0] = '\0';
}

/* Room for 'more' bytes and a NUL. */
static bool strbuf_reserve(struct strbuf *sb, size_t more)
{
	size_t cap = sb->cap ? sb->cap : 64;
	char *p;

	if (sb->failed)
		return false;
	while (cap - sb->len <= more)
		cap *= 2;
	if (cap == sb->cap)
		return true;
	p = realloc(sb->data, cap);
	if (!p) {
		sb->failed = true;
		return false;
	}
	sb->data = p;
	sb->cap = cap;
	return true;
}

void strbuf_add(struct strbuf *sb, const void *data, size_t len)
{
	if (!strbuf_reserve(sb, len))
		return;
	if (len)
		memcpy(sb->data + sb->len, data, len);
	sb->len += len;
	sb->data[sb->len] = '\0';
}

void strbuf_puts(struct strbuf *sb, const char *s)
{
	strbuf_add(sb, s, strlen(s));
}

void strbuf_printf(struct strbuf *sb, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !strbuf_reserve(sb, n)) {
		sb->failed = true;
		return;
	}
	va_start(ap, fmt);
	vsnprintf(sb->data + sb->len, n + 1, fmt, ap);
	va_end(ap);
	sb->len += n;
}

const char *strbuf_str(const struct strbuf *sb)
{
	if (sb->failed)
		return NULL;
	return sb->data ? sb->data : "";
}

char *strbuf_steal(struct strbuf *sb)
{
	char *p = NULL;

	if (!sb->failed)
		p = sb->data ? sb->data : strdup("");
	if (p != sb->data)
		free(sb->data);
	memset(sb, 0, sizeof(*sb));
	return p;
}
