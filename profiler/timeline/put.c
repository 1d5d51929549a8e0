// SPDX-License-Identifier: Apache-2.0
/* put: see profiler/timeline/put.h. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cmd/lines.h"
#include "profiler/timeline/put.h"

uint64_t timeline_ns(const json_t *o, const char *key)
{
	return strtoull(lines_str(o, key), NULL, 10);
}

void timeline_put_header(struct strbuf *sb, const json_t *o, const char *what)
{
	static const char *const causes[][2] = {
		{ "rate", "too many in a short time" },
		{ "ring", "all processes made too many" },
		{ "memory", "the oldest, for want of room" },
	};
	const json_t *lost = json_object_get(o, "lost");
	uint64_t n, all = 0;

	strbuf_printf(sb, "process %" PRIu64 ", recorded since ",
		      lines_int(o, "pid"));
	lines_clock(sb, o, "since", !lines_is_today(lines_time(o, "since")));
	strbuf_printf(sb,
		      ", %" PRIu64 " %s, lost since then: ", lines_int(o, what),
		      what);
	for (size_t i = 0; i < ARRAY_SIZE(causes); i++) {
		n = lines_int(lost, causes[i][0]);
		if (n)
			strbuf_printf(sb, "%s%" PRIu64 " (%s)", all ? ", " : "",
				      n, causes[i][1]);
		all += n;
	}
	strbuf_puts(sb, all ? "\n" : "none\n");
}

void timeline_put_ns(struct strbuf *sb, const json_t *o, const char *key)
{
	if (lines_has(o, key))
		lines_duration(sb, timeline_ns(o, key));
}

/* "redis-server 12/14"; perhaps. */
static void timeline_put_waker(struct strbuf *sb, const json_t *w)
{
	const char *kind = lines_str(w, "kind");
	bool perhaps = !strcmp(kind, "softirq") || !strcmp(kind, "unknown");

	if (!strcmp(kind, "none")) {
		strbuf_puts(sb, "; no wake-up was seen");
		return;
	}
	strbuf_puts(sb, "; woken by ");
	if (strcmp(kind, "task") != 0)
		strbuf_printf(sb, "%s%s", perhaps ? "" : "an ",
			      strcmp(kind, "unknown") ? kind : "");
	if (!lines_has(w, "pid"))
		return;
	strbuf_puts(sb, !perhaps		  ? ""
			: strcmp(kind, "unknown") ? ", perhaps "
						  : "perhaps ");
	if (lines_has(w, "comm")) {
		lines_text(sb, lines_str(w, "comm"));
		strbuf_puts(sb, " ");
	}
	strbuf_printf(sb, "%" PRIu64 "/%" PRIu64, lines_int(w, "pid"),
		      lines_int(w, "tid"));
}

void timeline_put_why(struct strbuf *sb, const json_t *o)
{
	const json_t *waker = json_object_get(o, "waker");

	if (lines_has(o, "reason")) {
		strbuf_puts(sb, " ");
		lines_text(sb, lines_str(o, "reason"));
	}
	if (lines_has(o, "syscall")) {
		strbuf_puts(sb, " in ");
		lines_text(sb, lines_str(o, "syscall"));
	}
	if (lines_has(o, "fd")) {
		strbuf_puts(sb, " of ");
		lines_text(sb, lines_str(o, "fd"));
	}
	if (json_is_true(json_object_get(o, "open")))
		strbuf_puts(sb,
			    lines_has(o, "reason") ? ", so far" : " so far");
	if (waker)
		timeline_put_waker(sb, waker);
}
