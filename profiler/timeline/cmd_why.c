// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_why: profd why. Where the time of a span of a thread went, as the path back through
 * what woke it, by a running profd with --wait: one step a line, with where in the program
 * it waited; what a waker did below the wait that it has ended; and then the sums. As for
 * profd timeline, the first request is what begins the recording.
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
#include "profiler/timeline/stack.h"

#define WHY_WAIT_S 10 /* as profd timeline does */
#define WHY_INDENT_MAX 20 /* deeper wakers have no more of it */
#define WHY_COLUMN 26 /* of the thread of the span */
#define WHY_TOTALS 10 /* lines; the rest is one more */

/* What a thread did, in all steps. */
struct why_total {
	char *text; /* malloc'd */
	uint64_t ns;
};

struct why_view {
	const struct options *o;
	struct lines lines;
	int64_t now, from, to; /* wall time, ns */
	struct strbuf path; /* of the request */
	char *least; /* of the archive: the shortest wait it has; malloc'd */
	bool header; /* was read */
	bool begun; /* the recording, by this request: nothing is printed */
	bool before; /* the span was over before it began: likewise */
	bool nothing; /* of the thread is recorded: one step without a segment */
	struct stack_list stacks;
	struct why_total *totals;
	size_t n, cap;
};

/* --- sums ------------------------------------------------------------------------------- */

static void why_count(struct why_view *v, const char *text, uint64_t ns)
{
	size_t i;

	for (i = 0; i < v->n; i++)
		if (!strcmp(v->totals[i].text, text))
			break;
	if (i == v->n) {
		if (VECTOR_ROOM(v->totals, v->n, v->cap))
			return;
		v->totals[i] = (struct why_total){ .text = strdup(text) };
		if (!v->totals[i].text)
			return;
		v->n++;
	}
	v->totals[i].ns += ns;
}

static int why_by_time(const void *a, const void *b)
{
	const struct why_total *x = a, *y = b;

	return x->ns != y->ns ? x->ns < y->ns ? 1 : -1
			      : strcmp(x->text, y->text);
}

static void why_put_total(struct strbuf *sb, uint64_t ns, const char *text)
{
	struct strbuf time = STRBUF_INIT;

	lines_duration(&time, ns);
	strbuf_printf(sb, "%-15s %9s %s\n", "", strbuf_str(&time) ?: "", text);
	strbuf_fini(&time);
}

/* The largest first. False: it cannot be printed. */
static bool why_print_totals(struct why_view *v)
{
	struct strbuf sb = STRBUF_INIT;
	uint64_t all = 0, rest = 0;

	if (!v->n)
		return true;
	qsort(v->totals, v->n, sizeof(*v->totals), why_by_time);
	for (size_t i = 0; i < v->n; i++) {
		all += v->totals[i].ns;
		rest += i < WHY_TOTALS ? 0 : v->totals[i].ns;
	}
	strbuf_puts(&sb, "\n");
	why_put_total(&sb, all, "in all");
	for (size_t i = 0; i < MIN(v->n, WHY_TOTALS); i++)
		why_put_total(&sb, v->totals[i].ns, v->totals[i].text);
	if (rest)
		why_put_total(&sb, rest, "others");
	return lines_print(&sb);
}

static void why_forget(struct why_view *v)
{
	for (size_t i = 0; i < v->n; i++)
		free(v->totals[i].text);
	free(v->totals);
	v->totals = NULL;
	v->n = v->cap = 0;
	stack_list_fini(&v->stacks);
}

/* --- steps ------------------------------------------------------------------------------ */

/* What a step says of its end, beside its segment. */
static const struct {
	const char *end, *text;
} why_ends[] = {
	{ "unrecorded", ", which is not recorded" },
	{ "gap", " not recorded" },
	{ "delivery",
	  "; before, it had made the wake-up, which was on its way" },
	{ "circle", ", which waited for this" },
	{ "deep", ", not followed: too many in a row" },
	{ "many", " not followed: too many steps" },
};

/* Of an archive of long waits: what is between them. */
static void why_put_short(const struct why_view *v, struct strbuf *sb,
			  const json_t *o)
{
	if (!strcmp(lines_str(o, "end"), "short"))
		strbuf_printf(sb,
			      " ran, was runnable, or waited for less than %s "
			      "at a time",
			      v->least ?: "");
}

/* "server 11/12 off" */
static void why_put_thread(struct strbuf *sb, const json_t *o)
{
	if (lines_has(o, "thread")) {
		lines_text(sb, lines_str(o, "thread"));
		strbuf_puts(sb, " ");
	}
	strbuf_printf(sb, "%" PRIu64 "/%" PRIu64, lines_int(o, "pid"),
		      lines_int(o, "tid"));
	if (lines_has(o, "state"))
		strbuf_printf(sb, " %s", lines_str(o, "state"));
}

static void why_put(const struct why_view *v, struct strbuf *sb,
		    const json_t *o, bool followed)
{
	size_t depth = MIN(lines_int(o, "depth"), WHY_INDENT_MAX);
	struct strbuf time = STRBUF_INIT;
	const char *end = lines_str(o, "end");

	lines_clock(sb, o, "time", false);
	timeline_put_ns(&time, o, "duration_ns");
	/* The steps of the waker have its time. */
	strbuf_printf(sb, " %9s %*s", followed ? "" : strbuf_str(&time) ?: "",
		      (int)depth * 2, "");
	why_put_thread(sb, o);
	if (followed)
		strbuf_printf(sb, " %s", strbuf_str(&time) ?: "");
	timeline_put_why(sb, o);
	why_put_short(v, sb, o);
	for (size_t i = 0; i < ARRAY_SIZE(why_ends); i++)
		if (!strcmp(end, why_ends[i].end))
			strbuf_puts(sb, why_ends[i].text);
	strbuf_puts(sb, "\n");
	stack_put(&v->stacks, sb, o, WHY_COLUMN + depth * 2 + 2,
		  v->o->why_stacks);
	strbuf_fini(&time);
}

/* "server 11/12 off futex" */
static void why_count_step(struct why_view *v, const json_t *o)
{
	struct strbuf sb = STRBUF_INIT;

	why_put_thread(&sb, o);
	why_put_short(v, &sb, o);
	if (!lines_has(o, "state") && strcmp(lines_str(o, "end"), "short") != 0)
		strbuf_puts(&sb, " not recorded, or not followed");
	if (lines_has(o, "reason")) {
		strbuf_puts(&sb, " ");
		lines_text(&sb, lines_str(o, "reason"));
	}
	why_count(v, strbuf_str(&sb) ?: "", timeline_ns(o, "duration_ns"));
	strbuf_fini(&sb);
}

static void why_step(struct why_view *v, struct strbuf *sb, json_t *o)
{
	bool followed = !strcmp(lines_str(o, "end"), "followed");

	stack_list_add(&v->stacks, o);
	why_put(v, sb, o, followed);
	if (!followed)
		why_count_step(v, o);
}

static void why_header(struct why_view *v, const json_t *o)
{
	struct strbuf least = STRBUF_INIT;

	v->begun = json_is_true(json_object_get(o, "begun"));
	v->before =
		timeline_ns(o, "to_boot_ns") <= timeline_ns(o, "since_boot_ns");
	v->nothing = lines_int(o, "steps") == 1;
	lines_duration(&least, timeline_ns(o, "wait_min_ns"));
	free(v->least);
	v->least = strbuf_steal(&least);
}

static void why_put_header(struct strbuf *sb, const json_t *o)
{
	timeline_put_header(sb, o, "steps");
	strbuf_printf(sb, "%-15s %9s %s\n", "TIME", "DURATION",
		      "THREAD, STATE AND WHY");
}

/* Of struct lines. */
static bool why_line(void *arg, json_t *o)
{
	struct why_view *v = arg;
	struct strbuf sb = STRBUF_INIT;
	bool header = !v->header;

	v->header = true;
	if (header)
		why_header(v, o);
	else
		v->nothing &= !strcmp(lines_str(o, "end"), "gap");
	if (v->begun || v->before)
		return true;
	if (v->o->json)
		return lines_print_json(&v->lines);
	if (header)
		why_put_header(&sb, o);
	else
		why_step(v, &sb, o);
	return lines_print(&sb);
}

/* --- the request ------------------------------------------------------------------------ */

static int why_moment(const struct why_view *v, const char *key,
		      const char *text, int64_t *out)
{
	if (!reporter_moment_parse(text, v->now, true, out) && *out >= 0)
		return 0;
	return cmd_usage("why",
			 "--%s '%s': must be a time (10s, 14:30:05.25, now)",
			 key, text);
}

static int why_span(struct why_view *v)
{
	int status;

	v->now = (int64_t)clock_boottime_ns() + clock_wall_offset_ns();
	status = why_moment(v, "from", v->o->why_from, &v->from);
	if (!status)
		status = why_moment(v, "to", v->o->why_to, &v->to);
	if (status || (v->from < v->to && v->from < v->now))
		return status;
	return cmd_usage("why", "--from %s: must be before --to %s, and past",
			 v->o->why_from, v->o->why_to);
}

/* Times without a zone are those of this host: they are sent by the second. */
static void why_put_moment(struct why_view *v, const char *key, int64_t at)
{
	strbuf_printf(&v->path, "%s=%" PRId64 ".%09" PRId64, key,
		      at / (int64_t)CLOCK_NSEC_PER_SEC,
		      at % (int64_t)CLOCK_NSEC_PER_SEC);
}

static void why_read(struct why_view *v)
{
	v->lines = (struct lines){ .line = why_line, .arg = v };
	v->header = v->begun = v->before = v->nothing = false;
}

/* Of an archive, without a server. */
static int why_archive(struct why_view *v)
{
	struct reporter_request_run run = { .archive = v->o->query_archive };
	struct strbuf out = STRBUF_INIT;
	struct reporter_why why;
	int err = reporter_why_process(&why, v->o->args[0]);

	if (err)
		return cmd_usage("why",
				 "'%s': must be a PID, or the id of a "
				 "process",
				 v->o->args[0]);
	why.tid = (uint32_t)v->o->timeline_tid;
	why.from = v->from;
	why.to = MIN(v->to, v->now);
	err = reporter_why_run(&why, &run, &out);
	why_read(v);
	if (!err && (!lines_body(&v->lines, out.data, out.len) ||
		     !lines_end(&v->lines)))
		err = -EIO;
	strbuf_fini(&out);
	return err ? cmd_fail("%s", *run.why ? run.why : strerror(-err)) : 0;
}

static int why_ask(struct why_view *v)
{
	struct client_request req = { .path = NULL };

	if (v->o->query_archive)
		return why_archive(v);
	strbuf_reset(&v->path);
	strbuf_puts(&v->path, "/api/process/");
	client_escape(&v->path, v->o->args[0]);
	why_put_moment(v, "/why?from", v->from);
	why_put_moment(v, "&to", v->to);
	if (v->o->timeline_tid)
		strbuf_printf(&v->path, "&tid=%" PRIu64, v->o->timeline_tid);
	req.path = strbuf_str(&v->path);
	if (!req.path)
		return cmd_fail("%s", strerror(ENOMEM));
	why_read(v);
	return cmd_request_lines(v->o, &req, &v->lines);
}

/* The recording has just begun: what is asked for up to now can be had some time later. */
static int why_again_later(struct why_view *v)
{
	int64_t s = (v->now - v->from - 1) / (int64_t)CLOCK_NSEC_PER_SEC + 1;
	unsigned int wait_s = (unsigned int)MIN(s, WHY_WAIT_S);
	int status;

	fprintf(stderr,
		"profd: process %s is recorded from now on; waiting for %u s "
		"of it\n",
		v->o->args[0], wait_s);
	sleep(wait_s);
	status = why_span(v);
	return status ? status : why_ask(v);
}

int cmd_why(const struct options *o)
{
	struct why_view v = { .o = o };
	int status;

	if (o->nargs != 1)
		return cmd_usage("why", "needs one PID");
	status = why_span(&v);
	if (!status)
		status = why_ask(&v);
	if (!status && v.begun && v.to >= v.now)
		status = why_again_later(&v);
	if (!status && (v.begun || v.before))
		status = cmd_fail("process %s was not recorded at that time: "
				  "it is recorded now, until 5 minutes after "
				  "the last request; ask for a later time",
				  o->args[0]);
	else if (!status && !o->json && !why_print_totals(&v))
		status = cmd_fail("cannot write to standard output");
	if (!status && v.nothing)
		status = cmd_fail("nothing of this thread is recorded at that "
				  "time: profd timeline %s has the threads, "
				  "for --tid",
				  o->args[0]);
	why_forget(&v);
	strbuf_fini(&v.path);
	free(v.least);
	return status;
}
