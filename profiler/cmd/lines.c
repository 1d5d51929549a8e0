// SPDX-License-Identifier: Apache-2.0
/* lines: see profiler/cmd/lines.h. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/cmd/lines.h"
#include "reporter/reporter.h"

#define LINES_CONTAINER_ID 64 /* hexadecimal digits */

static bool lines_one(struct lines *l, const char *text, size_t len)
{
	json_t *o = json_loadb(text, len, 0, NULL), *event;
	bool more;

	if (l->events && json_is_object(o)) {
		event = o;
		o = reporter_event_plain(event);
		json_decref(event);
	}
	if (!json_is_object(o)) {
		json_decref(o);
		l->bad = "the answer is not lines of JSON";
		return false;
	}
	l->text = text;
	l->len = len;
	more = l->line(l->arg, o);
	json_decref(o);
	return more;
}

/* Adds a piece of a line. A line beyond the limit is skipped up to its end. */
static void lines_part(struct lines *l, const char *data, size_t len)
{
	if (l->skipping)
		return;
	if (len <= LINES_LONGEST - l->part.len) {
		strbuf_add(&l->part, data, len);
		return;
	}
	l->skipping = true;
	l->skipped++;
	strbuf_fini(&l->part);
}

static bool lines_line_end(struct lines *l)
{
	if (l->skipping) {
		l->skipping = false;
		return true;
	}
	if (l->part.failed) {
		l->bad = "out of memory";
		return false;
	}
	if (!lines_one(l, strbuf_str(&l->part), l->part.len))
		return false;
	strbuf_reset(&l->part);
	return true;
}

bool lines_body(void *arg, const void *data, size_t len)
{
	struct lines *l = arg;
	const char *p = data, *end = p + len, *eol;

	while ((eol = memchr(p, '\n', end - p))) {
		lines_part(l, p, eol - p);
		if (!lines_line_end(l))
			return false;
		p = eol + 1;
	}
	lines_part(l, p, end - p);
	return true;
}

bool lines_end(struct lines *l)
{
	bool whole = !l->part.len && !l->skipping;

	if (!whole && !l->bad)
		l->bad = "the answer is cut short";
	strbuf_fini(&l->part);
	return whole;
}

bool lines_print(struct strbuf *sb)
{
	bool ok = !sb->failed && fputs(strbuf_str(sb), stdout) >= 0;

	strbuf_fini(sb);
	return ok;
}

bool lines_print_json(const struct lines *l)
{
	struct strbuf sb = STRBUF_INIT;

	if (!isatty(STDOUT_FILENO))
		return fwrite(l->text, 1, l->len, stdout) == l->len &&
		       putchar('\n') != EOF;
	text_add_json(&sb, l->text, l->len);
	strbuf_puts(&sb, "\n");
	return lines_print(&sb);
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

void lines_text(struct strbuf *sb, const char *s)
{
	text_add(sb, s, strlen(s));
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
	/* An id is shortened, a name is not. */
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

time_t lines_time(const json_t *o, const char *key)
{
	struct tm tm = { 0 };

	return strptime(lines_str(o, key), "%FT%T", &tm) ? timegm(&tm) : 0;
}

bool lines_is_today(time_t t)
{
	time_t now = time(NULL);
	struct tm then, today;

	localtime_r(&t, &then);
	localtime_r(&now, &today);
	return then.tm_year == today.tm_year && then.tm_yday == today.tm_yday;
}

void lines_clock(struct strbuf *sb, const json_t *o, const char *key,
		 bool dated)
{
	const char *fraction = strchr(lines_str(o, key), '.');
	time_t t = lines_time(o, key);
	char text[64];
	struct tm tm;

	if (!t)
		return;
	localtime_r(&t, &tm);
	strftime(text, sizeof(text), dated ? "%F %T" : "%T", &tm);
	strbuf_puts(sb, text);
	if (fraction && strlen(fraction) > 7)
		strbuf_add(sb, fraction, 7);
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
