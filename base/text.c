// SPDX-License-Identifier: Apache-2.0
/* text: see base/text.h. */
#include "base/base.h"

#define TEXT_REPLACEMENT 0xfffd

/*
 * Code points that are escaped, first and last: control characters, line separators,
 * and of Unicode's format characters (category Cf) those that hide, reorder or tag
 * text.
 */
static const struct {
	uint32_t first, last;
} text_refused[] = {
	{ 0x00, 0x1f }, /* C0 */
	{ 0x7f, 0x9f }, /* DEL and C1 */
	{ 0xad, 0xad }, /* soft hyphen */
	{ 0x61c, 0x61c }, /* Arabic letter mark */
	{ 0x180e, 0x180e }, /* Mongolian vowel separator */
	{ 0x200b, 0x200f }, /* no width; left-to-right and right-to-left mark */
	{ 0x2028, 0x202e }, /* line separators, embedding, override */
	{ 0x2060, 0x206f }, /* word joiner, isolates, deprecated formats */
	{ 0xfeff, 0xfeff }, /* byte order mark */
	{ 0xfff9, 0xfffb }, /* interlinear annotation */
	{ 0xe0000, 0xe0fff }, /* tags */
};

size_t text_decode(const unsigned char *s, size_t len, uint32_t *cp)
{
	static const uint32_t lowest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t n, i;

	if (*s < 0x80) {
		*cp = *s;
		return 1;
	}
	n = *s >= 0xf0 ? 4 : *s >= 0xe0 ? 3 : 2;
	if (*s < 0xc2 || *s > 0xf4 || n > len)
		return 0;
	*cp = *s & (0x7f >> n);
	for (i = 1; i < n; i++) {
		if ((s[i] & 0xc0) != 0x80)
			return 0;
		*cp = *cp << 6 | (s[i] & 0x3f);
	}
	if (*cp < lowest[n] || *cp > 0x10ffff ||
	    (*cp >= 0xd800 && *cp <= 0xdfff))
		return 0;
	return n;
}

static bool text_is_refused(uint32_t cp)
{
	for (size_t i = 0; i < ARRAY_SIZE(text_refused); i++)
		if (cp >= text_refused[i].first && cp <= text_refused[i].last)
			return true;
	return false;
}

void text_add(struct strbuf *sb, const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s, *end = p + len;
	const unsigned char *plain = p; /* from here to p: to be appended */
	uint32_t cp;
	size_t n;

	while (p < end) {
		if (*p >= ' ' && *p < 0x7f) { /* nearly always */
			p++;
			continue;
		}
		n = text_decode(p, end - p, &cp);
		if (n && !text_is_refused(cp)) {
			p += n;
			continue;
		}
		strbuf_add(sb, plain, p - plain);
		if (n && cp >= 0x80)
			strbuf_printf(sb, "\\u{%x}", cp);
		else
			strbuf_printf(sb, "\\%03o", *p);
		p += n ? n : 1;
		plain = p;
	}
	strbuf_add(sb, plain, p - plain);
}

void text_add_json(struct strbuf *sb, const char *s, size_t len)
{
	const unsigned char *p = (const unsigned char *)s, *end = p + len;
	uint32_t cp;
	size_t n;

	for (; p < end; p += n) {
		n = text_decode(p, end - p, &cp);
		if (!n) {
			cp = TEXT_REPLACEMENT;
			n = 1;
		}
		if (cp < 0x7f) {
			strbuf_add(sb, p, 1);
		} else if (cp < 0x10000) {
			strbuf_printf(sb, "\\u%04x", cp);
		} else { /* RFC 8259, 7: as a surrogate pair */
			cp -= 0x10000;
			strbuf_printf(sb, "\\u%04x\\u%04x", 0xd800 | cp >> 10,
				      0xdc00 | (cp & 0x3ff));
		}
	}
}

void text_add_json_string(struct strbuf *sb, const char *s)
{
	size_t plain;

	strbuf_puts(sb, "\"");
	while (*s) {
		for (plain = 0; (unsigned char)s[plain] >= ' ' &&
				s[plain] != '"' && s[plain] != '\\';)
			plain++;
		text_add_json(sb, s, plain);
		s += plain;
		if (*s == '"' || *s == '\\')
			strbuf_printf(sb, "\\%c", *s++);
		else if (*s)
			strbuf_printf(sb, "\\u%04x", (unsigned char)*s++);
	}
	strbuf_puts(sb, "\"");
}
