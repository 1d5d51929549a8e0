// SPDX-License-Identifier: Apache-2.0
/* line: see reporter/ledger/line.h. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "reporter/ledger/ledger.h"
#include "reporter/ledger/line.h"
#include "reporter/pprof.h"

int64_t line_wall(void)
{
	return clock_wall_offset_ns() / 1000 * 1000;
}

struct line line_new(int64_t wall)
{
	return (struct line){ .o = json_object(),
			      .wall = wall,
			      .room = LINE_TEXT_MAX };
}

void line_put(struct line *l, const char *key, json_t *value)
{
	char buf[LEDGER_NAME_MAX];

	if (l->event)
		key = ledger_name(key, buf);
	if (json_object_set_new_nocheck(l->o, key, value))
		l->failed = true;
}

void line_int(struct line *l, const char *key, uint64_t value)
{
	line_put(l, key, json_integer((json_int_t)value));
}

json_t *ledger_text(const char *s, size_t len)
{
	struct strbuf sb = STRBUF_INIT;
	const char *utf8 = pprof_utf8(s, &len, &sb);
	json_t *v = utf8 ? json_stringn_nocheck(utf8, len) : NULL;

	strbuf_fini(&sb);
	return v;
}

/* Bytes of JSON for the character at 's', of 'n' bytes; 0: not UTF-8. */
static size_t line_cost(const char *s, size_t n)
{
	unsigned char c = *s;

	if (!n)
		return sizeof("\xef\xbf\xbd") - 1;
	if (c == '"' || c == '\\')
		return 2;
	return c < ' ' ? sizeof("\\u0000") - 1 : n;
}

size_t line_fits(size_t *room, const char *s, size_t len)
{
	size_t i = 0, n, cost;
	uint32_t cp;

	while (i < len) {
		n = text_decode((const unsigned char *)s + i, len - i, &cp);
		cost = line_cost(s + i, n);
		if (cost > *room)
			break;
		*room -= cost;
		i += n ? n : 1;
	}
	return i;
}

void line_text(struct line *l, const char *key, const char *s, size_t len)
{
	size_t fits = line_fits(&l->room, s, len);

	l->cut |= fits < len;
	if (fits)
		line_put(l, key, ledger_text(s, fits));
}

void line_str(struct line *l, const char *key, const char *s)
{
	if (s && *s)
		line_text(l, key, s, strlen(s));
}

void line_time(struct line *l, const char *key, uint64_t boottime)
{
	uint64_t ns = boottime + l->wall;
	time_t s = ns / CLOCK_NSEC_PER_SEC;
	char text[64];
	struct tm tm;
	size_t n;

	if (!boottime)
		return;
	gmtime_r(&s, &tm);
	n = strftime(text, sizeof(text), "%FT%T", &tm);
	snprintf(text + n, sizeof(text) - n, ".%09uZ",
		 (unsigned int)(ns % CLOCK_NSEC_PER_SEC));
	line_str(l, key, text);
}

void line_moment(struct line *l, const char *key, uint64_t boottime)
{
	char name[32];

	if (!boottime)
		return;
	line_time(l, key, boottime);
	snprintf(name, sizeof(name), "%s_boot_ns", key);
	line_int(l, name, boottime);
}

static int ledger_append(const char *data, size_t len, void *arg)
{
	strbuf_add(arg, data, len);
	return 0;
}

void ledger_dump(json_t *o, struct strbuf *sb)
{
	if (json_dump_callback(o, ledger_append, sb, JSON_COMPACT))
		sb->failed = true;
	strbuf_add(sb, "\n", 1);
	json_decref(o);
}

void line_cgroup(struct line *l, const char *cgroup)
{
	struct pm_cgroup in;

	if (!cgroup)
		return;
	pm_cgroup_parse(cgroup, strlen(cgroup), &in);
	line_str(l, "cgroup", cgroup);
	line_text(l, "container", in.container.s, in.container.len);
	line_str(l, "engine", in.engine);
	line_text(l, "pod", in.pod.s, in.pod.len);
	line_text(l, "unit", in.unit.s, in.unit.len);
}

void line_end(struct line *l, struct strbuf *sb)
{
	if (l->cut)
		line_put(l, "cut", json_true());
	sb->failed |= l->failed;
	ledger_dump(l->o, sb);
}
