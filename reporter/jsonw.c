// SPDX-License-Identifier: Apache-2.0
/* jsonw: see reporter/jsonw.h; RFC 8259. */
#include <stdio.h>
#include <string.h>

#include "reporter/jsonw.h"
#include "reporter/pprof.h"

static void jsonw_comma(struct jsonw *w)
{
	if (w->more)
		strbuf_add(w->sb, ",", 1);
	w->more = true;
}

void jsonw_open(struct jsonw *w, char bracket)
{
	jsonw_comma(w);
	strbuf_add(w->sb, &bracket, 1);
	w->more = false;
}

void jsonw_close(struct jsonw *w, char bracket)
{
	strbuf_add(w->sb, &bracket, 1);
	w->more = true;
}

void jsonw_key(struct jsonw *w, const char *key)
{
	jsonw_comma(w);
	strbuf_add(w->sb, "\"", 1);
	strbuf_puts(w->sb, key);
	strbuf_add(w->sb, "\":", 2);
	w->more = false;
}

/* Bytes that stand for themselves, and for nothing else. */
static size_t jsonw_plain(const char *s, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++)
		if (s[i] < ' ' || s[i] == 0x7f || s[i] == '"' || s[i] == '\\')
			break;
	return i;
}

/* One character that is not plain; its bytes. */
static size_t jsonw_char(struct jsonw *w, const char *s, size_t len)
{
	unsigned char c = *s;
	char text[8];
	size_t n;

	if (c == '"' || c == '\\') {
		text[0] = '\\';
		text[1] = c;
		strbuf_add(w->sb, text, 2);
		return 1;
	}
	if (c < 0x80) {
		snprintf(text, sizeof(text), "\\u%04x", c);
		strbuf_puts(w->sb, text);
		return 1;
	}
	n = pprof_utf8((const unsigned char *)s);
	if (n && n <= len) {
		strbuf_add(w->sb, s, n);
		return n;
	}
	strbuf_puts(w->sb, "\xef\xbf\xbd");
	return 1;
}

void jsonw_text(struct jsonw *w, const char *s, size_t len)
{
	size_t i = 0, n;

	jsonw_comma(w);
	strbuf_add(w->sb, "\"", 1);
	while (i < len) {
		n = jsonw_plain(s + i, len - i);
		strbuf_add(w->sb, s + i, n);
		i += n;
		if (i < len)
			i += jsonw_char(w, s + i, len - i);
	}
	strbuf_add(w->sb, "\"", 1);
}

void jsonw_int(struct jsonw *w, uint64_t value)
{
	char text[24], *p = text + sizeof(text);

	jsonw_comma(w);
	do {
		*--p = '0' + value % 10;
		value /= 10;
	} while (value);
	strbuf_add(w->sb, p, text + sizeof(text) - p);
}

void jsonw_real(struct jsonw *w, double value)
{
	jsonw_comma(w);
	strbuf_printf(w->sb, "%.9g", value);
}

void jsonw_bool(struct jsonw *w, bool value)
{
	jsonw_comma(w);
	strbuf_puts(w->sb, value ? "true" : "false");
}
