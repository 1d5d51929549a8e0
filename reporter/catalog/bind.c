// SPDX-License-Identifier: Apache-2.0
/*
 * bind: parameters of statements. Texts are bound without a copy, unless they have to
 * be changed to be UTF-8.
 */
#include <errno.h>
#include <string.h>

#include "reporter/catalog/internal.h"
#include "reporter/pprof.h"

struct catalog_bind catalog_bind(struct catalog_db *db,
				 enum catalog_statement which)
{
	struct catalog_bind b = { .db = db, .s = db->statements[which] };

	sqlite3_clear_bindings(b.s);
	return b;
}

void catalog_bind_int(struct catalog_bind *b, int at, uint64_t v)
{
	/* The tables have signed numbers. */
	if (sqlite3_bind_int64(b->s, at, (int64_t)MIN(v, INT64_MAX)))
		b->failed = true;
}

void catalog_bind_signed(struct catalog_bind *b, int at, int64_t v)
{
	if (sqlite3_bind_int64(b->s, at, v))
		b->failed = true;
}

void catalog_bind_real(struct catalog_bind *b, int at, double v)
{
	if (sqlite3_bind_double(b->s, at, v))
		b->failed = true;
}

/* Whole characters of at most 'max' bytes. */
static size_t bind_fit(const char *s, size_t len, size_t max)
{
	size_t n;

	if (len <= max)
		return len;
	/* At most three bytes back to the first one of a character. */
	for (n = max; n > max - 3 && ((unsigned char)s[n] & 0xc0) == 0x80; n--)
		;
	return n;
}

static bool bind_is_ascii(const char *s, size_t len)
{
	unsigned char all = 0;
	size_t i;

	for (i = 0; i < len; i++)
		all |= (unsigned char)s[i];
	return all < 0x80;
}

size_t catalog_bind_text(struct catalog_bind *b, int at, const char *s,
			 size_t len)
{
	struct strbuf sb = STRBUF_INIT;
	const char *utf8 = s;

	if (!s || !len)
		return 0;
	len = bind_fit(s, len, CATALOG_TEXT_MAX);
	if (!bind_is_ascii(s, len))
		utf8 = pprof_utf8(s, &len, &sb);
	if (!utf8 ||
	    sqlite3_bind_text(b->s, at, utf8, (int)len,
			      utf8 == s ? SQLITE_STATIC : SQLITE_TRANSIENT))
		b->failed = true;
	strbuf_fini(&sb);
	return len;
}

void catalog_bind_str(struct catalog_bind *b, int at, const char *s)
{
	catalog_bind_text(b, at, s, s ? strlen(s) : 0);
}

/* One character of a JSON string, or the replacement of a byte that is none. */
static void bind_json_char(struct strbuf *sb, const char *s, size_t n)
{
	unsigned char c = (unsigned char)*s;

	if (!n)
		strbuf_puts(sb, "\xef\xbf\xbd");
	else if (c == '"' || c == '\\')
		strbuf_printf(sb, "\\%c", c);
	else if (c < ' ')
		strbuf_printf(sb, "\\u%04x", c);
	else
		strbuf_add(sb, s, n);
}

/* False: it did not fit. */
static bool bind_json_string(struct strbuf *sb, const char *s, size_t len)
{
	size_t i, n, run = 0;
	uint32_t cp;

	for (i = 0; i < len && sb->len + (i - run) < CATALOG_ARGS_MAX; i += n) {
		unsigned char c = (unsigned char)s[i];

		n = 1;
		if (c >= ' ' && c < 0x80 && c != '"' && c != '\\')
			continue;
		strbuf_add(sb, s + run, i - run);
		n = text_decode((const unsigned char *)s + i, len - i, &cp);
		bind_json_char(sb, s + i, n);
		n = n ? n : 1;
		run = i + n;
	}
	strbuf_add(sb, s + run, i - run);
	return i == len;
}

bool catalog_bind_args(struct catalog_bind *b, int at, const char *args,
		       size_t len)
{
	struct strbuf *sb = &b->text;
	struct quark_cmdline_iter it;
	const char *arg, *comma = "[\"";
	bool fits = true;

	if (!args || !len)
		return false;
	quark_cmdline_iter_init(&it, args, len);
	while (fits && (arg = quark_cmdline_iter_next(&it))) {
		strbuf_puts(sb, comma);
		comma = "\",\"";
		fits = bind_json_string(sb, arg, strlen(arg));
	}
	strbuf_puts(sb, sb->len ? "\"]" : "[]");
	if (sb->failed ||
	    sqlite3_bind_text(b->s, at, sb->data, (int)sb->len, SQLITE_STATIC))
		b->failed = true;
	return !fits;
}

int catalog_bind_run(struct catalog_bind *b, enum catalog_statement which,
		     int64_t *value)
{
	int err = b->failed ? -ENOMEM : catalog_db_run(b->db, which, value);

	strbuf_fini(&b->text);
	return err;
}
