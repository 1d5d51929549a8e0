// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_why: profd why. Where the time of a span of a thread went, as the path back through
 * what woke it, by a running profd with --wait: one step a line, what a waker did below
 * the wait that it has ended.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cmd/client.h"
#include "profiler/cmd/cmd.h"
#include "profiler/cmd/lines.h"
#include "profiler/timeline/put.h"

struct why_view {
	const struct options *o;
	struct lines lines;
	struct strbuf path; /* of the request */
	bool header; /* was read */
};

/* What a step says of its end, beside its segment. */
static const struct {
	const char *end, *text;
} why_ends[] = {
	{ "unrecorded", "; what did it is not recorded" },
	{ "circle", "; that thread waited for this one" },
	{ "deep", "; and so on: too many steps" },
};

static void why_put(struct strbuf *sb, const json_t *o)
{
	const char *end = lines_str(o, "end");
	size_t depth = lines_int(o, "depth");
	struct strbuf text = STRBUF_INIT;

	lines_clock(sb, o, "time", false);
	timeline_put_ns(&text, o, "duration_ns");
	strbuf_printf(sb, " %9s %*s", strbuf_str(&text) ?: "",
		      (int)MIN(depth, 40) * 2, "");
	if (lines_has(o, "thread")) {
		lines_text(sb, lines_str(o, "thread"));
		strbuf_puts(sb, " ");
	}
	strbuf_printf(sb, "%" PRIu64 "/%" PRIu64, lines_int(o, "pid"),
		      lines_int(o, "tid"));
	if (lines_has(o, "state"))
		strbuf_printf(sb, " %s", lines_str(o, "state"));
	timeline_put_why(sb, o);
	for (size_t i = 0; i < ARRAY_SIZE(why_ends); i++)
		if (!strcmp(end, why_ends[i].end))
			strbuf_puts(sb, why_ends[i].text);
	strbuf_puts(sb, "\n");
	strbuf_fini(&text);
}

/* Of struct lines. */
static bool why_line(void *arg, json_t *o)
{
	struct why_view *v = arg;
	struct strbuf sb = STRBUF_INIT;
	bool header = !v->header;

	v->header = true;
	if (v->o->json)
		return lines_print_json(&v->lines);
	if (header) {
		timeline_put_header(&sb, o, "steps");
		strbuf_printf(&sb, "%-15s %9s %s\n", "TIME", "DURATION",
			      "THREAD, STATE AND WHY");
	} else {
		why_put(&sb, o);
	}
	return lines_print(&sb);
}

/* Times without a zone are those of this host: they are sent by the second. */
static int why_moment(struct why_view *v, const char *key, const char *text)
{
	int64_t now = (int64_t)clock_boottime_ns() + clock_wall_offset_ns(), at;

	if (reporter_moment_parse(text, now, true, &at) || at < 0)
		return cmd_usage("why",
				 "--%s '%s': must be a time (10s, 14:30:05.25, "
				 "now)",
				 key, text);
	strbuf_printf(&v->path, "&%s=@%" PRId64 ".%09" PRId64, key,
		      at / 1000000000, at % 1000000000);
	return 0;
}

int cmd_why(const struct options *o)
{
	struct why_view v = { .o = o, .lines = { .line = why_line } };
	struct client_request req = { .path = NULL };
	int status;

	if (o->nargs != 1)
		return cmd_usage("why", "needs one PID");
	v.lines.arg = &v;
	strbuf_puts(&v.path, "/api/process/");
	client_escape(&v.path, o->args[0]);
	strbuf_puts(&v.path, "/why?");
	if (o->timeline_tid)
		strbuf_printf(&v.path, "tid=%" PRIu64, o->timeline_tid);
	status = why_moment(&v, "from", o->why_from);
	if (!status)
		status = why_moment(&v, "to", o->why_to);
	req.path = strbuf_str(&v.path);
	if (!status)
		status = req.path ? cmd_request_lines(o, &req, &v.lines)
				  : cmd_fail("%s", strerror(ENOMEM));
	strbuf_fini(&v.path);
	return status;
}
