// SPDX-License-Identifier: Apache-2.0
/* lines: see profiler/lines.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profiler/lines.h"

/* The longest line: 20 KiB of arguments, each byte of which may take six. */
#define LINE_MAX_BYTES (1 << 20)

static bool lines_one(struct lines *l, const char *text, size_t len)
{
	json_t *o = json_loadb(text, len, 0, NULL);
	bool more;

	if (!json_is_object(o)) {
		json_decref(o);
		l->bad = "the answer is not lines of JSON";
		return false;
	}
	more = l->line(l->arg, o);
	json_decref(o);
	return more;
}

bool lines_body(void *arg, const void *data, size_t len)
{
	struct lines *l = arg;
	const char *p = data, *end = p + len, *eol;

	while ((eol = memchr(p, '\n', end - p))) {
		strbuf_add(&l->part, p, eol - p);
		if (l->part.failed || !lines_one(l, l->part.data, l->part.len))
			return false;
		strbuf_reset(&l->part);
		p = eol + 1;
	}
	strbuf_add(&l->part, p, end - p);
	if (l->part.len > LINE_MAX_BYTES)
		l->bad = "a line of the answer is too long";
	return !l->bad && !l->part.failed;
}

bool lines_end(struct lines *l)
{
	bool whole = !l->part.len;

	if (!whole && !l->bad)
		l->bad = "the answer is cut short";
	strbuf_fini(&l->part);
	return whole;
}

const char *lines_str(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

uint64_t lines_int(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

bool lines_has(const json_t *o, const char *key)
{
	return json_object_get(o, key);
}

/* C0, DEL, and C1 in UTF-8, which some terminals obey. */
void lines_text(struct strbuf *sb, const char *s)
{
	const unsigned char *p = (const unsigned char *)s;

	for (; *p; p++) {
		if (*p < ' ' || *p == 0x7f) {
			strbuf_puts(sb, "?");
		} else if (*p == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) {
			strbuf_puts(sb, "?");
			p++;
		} else {
			strbuf_add(sb, p, 1);
		}
	}
}

void lines_command(struct strbuf *sb, const json_t *o)
{
	const json_t *args = json_object_get(o, "args");
	size_t i, n = json_array_size(args);
	const char *s;

	for (i = 0; i < n; i++) {
		s = json_string_value(json_array_get(args, i));
		strbuf_puts(sb, i ? " " : "");
		lines_text(sb, s ? s : "");
	}
	if (n)
		return;
	strbuf_puts(sb, "[");
	lines_text(sb, lines_str(o, "comm"));
	strbuf_puts(sb, "]");
}

void lines_status(struct strbuf *sb, const json_t *o)
{
	if (lines_has(o, "exit_code"))
		strbuf_printf(sb, "%" PRIu64, lines_int(o, "exit_code"));
	else if (lines_has(o, "signal_name"))
		strbuf_printf(sb, "SIG%s", lines_str(o, "signal_name"));
	else if (lines_has(o, "signal"))
		strbuf_printf(sb, "signal %" PRIu64, lines_int(o, "signal"));
	if (json_is_true(json_object_get(o, "core")))
		strbuf_puts(sb, " core");
}

void lines_clock(struct strbuf *sb, const json_t *o, const char *key,
		 bool micro)
{
	const char *rest, *s = lines_str(o, key);
	struct tm tm = { 0 };
	char text[32];
	time_t t;

	rest = strptime(s, "%FT%T", &tm);
	if (!rest)
		return;
	t = timegm(&tm);
	localtime_r(&t, &tm);
	strftime(text, sizeof(text), "%T", &tm);
	strbuf_puts(sb, text);
	if (micro && strlen(rest) > 7)
		strbuf_add(sb, rest, 7);
}

void lines_duration(struct strbuf *sb, uint64_t ns)
{
	if (ns < CLOCK_NSEC_PER_MSEC)
		strbuf_printf(sb, "%.0fus", ns / 1e3);
	else if (ns < CLOCK_NSEC_PER_SEC)
		strbuf_printf(sb, "%.1fms", ns / 1e6);
	else
		strbuf_printf(sb, "%.2fs", ns / 1e9);
}
