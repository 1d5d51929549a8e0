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
#define LINES_CONTAINER_ID 64 /* hexadecimal digits */

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
	if (json_is_true(json_object_get(o, "args_cut")))
		strbuf_puts(sb, " ...");
	if (n)
		return;
	strbuf_puts(sb, "[");
	lines_text(sb, lines_str(o, "comm"));
	strbuf_puts(sb, "]");
}

void lines_where(struct strbuf *sb, const json_t *o)
{
	const char *container = lines_str(o, "container");
	const char *engine = lines_str(o, "engine");
	char id[13];

	if (!*container) {
		lines_text(sb, lines_str(o, "unit"));
		return;
	}
	snprintf(id, sizeof(id), "%s", container);
	if (*engine) {
		lines_text(sb, engine);
		strbuf_puts(sb, ":");
	}
	/* A name is whole, of an id the first digits say which. */
	lines_text(sb,
		   strlen(container) == LINES_CONTAINER_ID ? id : container);
}

void lines_coverage(struct strbuf *sb, const json_t *o)
{
	const json_t *cover = json_object_get(o, "coverage");
	const json_t *dev = json_object_get(o, "coverage_deviation");

	if (!cover || json_real_value(dev) > 1)
		return;
	strbuf_printf(sb, "%.0f%%±%.0f%%", 100 * json_real_value(cover),
		      100 * json_real_value(dev));
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

/* The rest, from the decimal point on, in *rest. */
static time_t lines_time_rest(const json_t *o, const char *key,
			      const char **rest)
{
	struct tm tm = { 0 };

	*rest = strptime(lines_str(o, key), "%FT%T", &tm);
	return *rest ? timegm(&tm) : 0;
}

time_t lines_time(const json_t *o, const char *key)
{
	const char *rest;

	return lines_time_rest(o, key, &rest);
}

void lines_clock(struct strbuf *sb, const json_t *o, const char *key)
{
	const char *rest;
	time_t t = lines_time_rest(o, key, &rest);
	char text[32];
	struct tm tm;

	if (!rest)
		return;
	localtime_r(&t, &tm);
	strftime(text, sizeof(text), "%T", &tm);
	strbuf_puts(sb, text);
	if (strlen(rest) > 7)
		strbuf_add(sb, rest, 7);
}

size_t lines_width(const char *s)
{
	size_t n = 0;

	for (; s && *s; s++)
		n += (*s & 0xc0) != 0x80;
	return n;
}

void lines_cut(struct strbuf *sb, size_t start, size_t width)
{
	size_t i;

	for (i = start; i < sb->len; i++)
		if ((sb->data[i] & 0xc0) != 0x80 && !width--)
			break;
	if (i >= sb->len)
		return;
	sb->data[i] = '\0';
	sb->len = i;
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
