// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_timeline: profd timeline. What the threads of a process did one after the other, and
 * what woke them, by a running profd with --wait. The first request is what begins the
 * recording: then it waits for as long as the time that was asked for, and asks again.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiler/cmd/client.h"
#include "profiler/cmd/cmd.h"
#include "profiler/cmd/lines.h"
#include "profiler/timeline/put.h"

#define TIMELINE_WAIT_S 10

struct timeline_view {
	const struct options *o;
	struct lines lines;
	struct strbuf path; /* of the request */
	bool begun; /* the recording, by this request: nothing is printed */
	bool header; /* was read */
};

/* --- lines ---------------------------------------------------------------------------- */

static void timeline_put_columns(struct strbuf *sb, const json_t *o)
{
	timeline_put_header(sb, o, "segments");
	strbuf_printf(sb, "%-15s %7s %-15s %-8s %9s %s\n", "TIME", "TID",
		      "THREAD", "STATE", "DURATION", "WHY");
}

static void timeline_put(struct strbuf *sb, const json_t *o)
{
	struct strbuf text = STRBUF_INIT;

	lines_clock(sb, o, "time", false);
	strbuf_printf(sb, " %7" PRIu64 " ", lines_int(o, "tid"));
	lines_text(&text, lines_str(o, "thread"));
	strbuf_printf(sb, "%-15s ", strbuf_str(&text) ?: "");
	strbuf_printf(sb, "%-8s ", lines_str(o, "state"));
	strbuf_reset(&text);
	timeline_put_ns(&text, o, "duration_ns");
	strbuf_printf(sb, "%9s", strbuf_str(&text) ?: "");
	timeline_put_why(sb, o);
	if (timeline_ns(o, "latency_ns")) {
		strbuf_puts(sb, "; then runnable for ");
		timeline_put_ns(sb, o, "latency_ns");
	}
	strbuf_puts(sb, "\n");
	strbuf_fini(&text);
}

/* Of struct lines. */
static bool timeline_line(void *arg, json_t *o)
{
	struct timeline_view *v = arg;
	struct strbuf sb = STRBUF_INIT;
	bool header = !v->header;

	v->header = true;
	if (header)
		v->begun = json_is_true(json_object_get(o, "begun"));
	if (v->begun)
		return true;
	if (v->o->json)
		return lines_print_json(&v->lines);
	if (header)
		timeline_put_columns(&sb, o);
	else
		timeline_put(&sb, o);
	return lines_print(&sb);
}

/* --- the request ------------------------------------------------------------------------ */

static int timeline_ask(struct timeline_view *v)
{
	struct client_request req = { .path = strbuf_str(&v->path) };

	v->lines = (struct lines){ .line = timeline_line, .arg = v };
	v->begun = v->header = false;
	if (!req.path)
		return cmd_fail("%s", strerror(ENOMEM));
	return cmd_request_lines(v->o, &req, &v->lines);
}

int cmd_timeline(const struct options *o)
{
	struct timeline_view v = { .o = o };
	unsigned int wait_s;
	int64_t last;
	int status;

	if (o->nargs != 1)
		return cmd_usage("timeline", "needs one PID");
	if (reporter_duration_parse(o->timeline_last, &last) || last <= 0)
		return cmd_usage("timeline",
				 "--last '%s': must be a duration (30s, 5m)",
				 o->timeline_last);
	strbuf_puts(&v.path, "/api/process/");
	client_escape(&v.path, o->args[0]);
	strbuf_puts(&v.path, "/timeline?last=");
	client_escape(&v.path, o->timeline_last);
	if (o->timeline_tid)
		strbuf_printf(&v.path, "&tid=%" PRIu64, o->timeline_tid);
	status = timeline_ask(&v);
	if (!status && v.begun) {
		wait_s = (unsigned int)MIN((last + 999999999) / 1000000000,
					   TIMELINE_WAIT_S);
		fprintf(stderr,
			"profd: process %s is recorded from now on; waiting "
			"for %u s of it\n",
			o->args[0], wait_s);
		sleep(wait_s);
		status = timeline_ask(&v);
	}
	strbuf_fini(&v.path);
	return status;
}
