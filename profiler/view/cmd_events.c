// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_events: profd events. Prints lifecycle events of a running profd, the latest,
 * those of a time, or each as it happens, one a line.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cmd/client.h"
#include "profiler/cmd/cmd.h"
#include "profiler/cmd/lines.h"
#include "profiler/view/ask.h"

static volatile sig_atomic_t events_signal;

static void events_on_signal(int signum)
{
	events_signal = signum;
}

static bool events_cancelled(void *arg)
{
	return events_signal;
}

/* Lines that are sorted at a time: an "end" is some seconds late. */
#define EVENTS_SORTED 16384

/* A line of the answer, without --follow. */
struct event {
	uint64_t time; /* wall, ns */
	size_t number; /* in the answer */
	char *text; /* with the newline */
	size_t len;
};

struct events {
	const struct options *o;
	struct ask ask;
	struct lines lines;
	const struct lines *shown; /* has the line that is printed */
	uint32_t types; /* of --type, a bit for each of event_kinds; 0: all */
	bool dated; /* times are printed with the date */
	struct strbuf path; /* of the request */
	struct event *list;
	size_t n, cap, number;
	uint64_t offset; /* from boot time to wall time; 0: not known */
};

/* --- types ---------------------------------------------------------------- */

static void events_put_gap(struct strbuf *sb, const json_t *o)
{
	strbuf_printf(sb, "%" PRIu64 " events lost", lines_int(o, "lost"));
}

static void events_put_missed(struct strbuf *sb, const json_t *o)
{
	strbuf_printf(sb, "%" PRIu64 " events not read in time",
		      lines_int(o, "count"));
}

static void events_put_comm(struct strbuf *sb, const json_t *o)
{
	lines_text(sb, lines_str(o, "comm"));
}

static void events_put_ids(struct strbuf *sb, const json_t *o)
{
	strbuf_printf(sb, "uid %" PRIu64 " gid %" PRIu64 " ",
		      lines_int(o, "uid"), lines_int(o, "gid"));
	lines_text(sb, lines_str(o, "cwd"));
}

static void events_put_cgroup(struct strbuf *sb, const json_t *o)
{
	lines_text(sb, lines_str(o, "comm"));
	strbuf_puts(sb, " to ");
	lines_text(sb, lines_str(o, "cgroup"));
}

static void events_put_end(struct strbuf *sb, const json_t *o)
{
	lines_text(sb, lines_str(o, "comm"));
	if (lines_has(o, "exit_code") || lines_has(o, "signal")) {
		strbuf_puts(sb, " status ");
		lines_status(sb, o);
	}
	if (!lines_has(o, "cpu_ns"))
		return;
	strbuf_puts(sb, " cpu ");
	lines_duration(sb, lines_int(o, "cpu_ns"));
}

/* All samples of the process are counted. */
static void events_put_summary(struct strbuf *sb, const json_t *o)
{
	struct strbuf cover = STRBUF_INIT;

	events_put_end(sb, o);
	if (lines_has(o, "maxrss_bytes"))
		strbuf_printf(sb, " rss %" PRIu64 "M",
			      (lines_int(o, "maxrss_bytes") + (1 << 19)) >> 20);
	strbuf_printf(sb, " samples %" PRIu64, lines_int(o, "samples"));
	lines_coverage(&cover, o);
	if (cover.len)
		strbuf_printf(sb, " cover %s", cover.data);
	strbuf_fini(&cover);
}

static const struct {
	const char *word;
	void (*put)(struct strbuf *sb, const json_t *o);
} event_kinds[] = {
	{ "gap", events_put_gap },	 { "missed", events_put_missed },
	{ "fork", events_put_comm },	 { "exec", lines_command },
	{ "rename", events_put_comm },	 { "id_change", events_put_ids },
	{ "cgroup", events_put_cgroup }, { "exit", events_put_end },
	{ "reap", events_put_end },	 { "end", events_put_summary },
};

/* Index into event_kinds; its size, if the type is that of a newer profd. */
static size_t events_kind(const char *word, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(event_kinds); i++)
		if (strlen(event_kinds[i].word) == len &&
		    !memcmp(event_kinds[i].word, word, len))
			break;
	return i;
}

/* Reads --type, each a list separated by commas; an exit status. */
static int events_read_types(struct events *e)
{
	const struct options_strings *types = &e->o->type;
	struct strbuf words = STRBUF_INIT;
	const char *p = "";
	size_t i, k = 0, n = 0;

	for (i = 0; i < types->n; i++) {
		for (p = types->items[i]; *p; p += n + (p[n] == ',')) {
			n = strcspn(p, ",");
			k = events_kind(p, n);
			if (k == ARRAY_SIZE(event_kinds))
				goto wrong;
			e->types |= 1U << k;
		}
	}
	return 0;
wrong:
	for (k = 0; k < ARRAY_SIZE(event_kinds); k++)
		strbuf_printf(&words, "%s%s", k ? ", " : "",
			      event_kinds[k].word);
	cmd_usage("events", "--type '%.*s': must be one of %s", (int)n, p,
		  words.failed ? "" : words.data);
	strbuf_fini(&words);
	return OPTIONS_USAGE;
}

/* --- the request ----------------------------------------------------------- */

/* An exit status. */
static int events_put_path(struct events *e)
{
	const struct options *o = e->o;

	if (!!o->query_from + !!o->query_last + !!o->since > 1)
		return cmd_usage("events",
				 "--from, --last and --since exclude each "
				 "other");
	strbuf_printf(&e->path, "/api/events?follow=%d%s", o->follow,
		      strbuf_str(&e->ask.url));
	if (o->since)
		strbuf_printf(&e->path, "&from=%" PRId64, (int64_t)o->since);
	for (size_t i = 0, n = 0; i < ARRAY_SIZE(event_kinds); i++)
		if (e->types >> i & 1)
			strbuf_printf(&e->path, "%s%s", n++ ? "," : "&type=",
				      event_kinds[i].word);
	return 0;
}

static bool events_has_type(const struct events *e, const char *word)
{
	return !e->types || 1U << events_kind(word, strlen(word)) & e->types;
}

/* --- printing ------------------------------------------------------------- */

static void events_put_line(const struct events *e, struct strbuf *sb,
			    const json_t *o, const char *word)
{
	bool dated = e->dated || !lines_is_today(lines_time(o, "time"));
	size_t kind = events_kind(word, strlen(word));

	if (kind == ARRAY_SIZE(event_kinds) || !events_has_type(e, word))
		return;
	lines_clock(sb, o, "time", dated);
	if (lines_has(o, "pid"))
		strbuf_printf(sb, " %7" PRIu64 " %7" PRIu64,
			      lines_int(o, "pid"), lines_int(o, "ppid"));
	strbuf_printf(sb, " %-9s ", word);
	event_kinds[kind].put(sb, o);
	strbuf_puts(sb, "\n");
}

/* Of struct lines. */
static bool events_show(void *arg, json_t *o)
{
	struct events *e = arg;
	const json_t *words = json_object_get(o, "events");
	struct strbuf sb = STRBUF_INIT;
	const char *word;
	size_t i;

	if (e->o->json)
		return lines_print_json(e->shown);
	for (i = 0; i < json_array_size(words); i++) {
		word = json_string_value(json_array_get(words, i));
		if (word)
			events_put_line(e, &sb, o, word);
	}
	return lines_print(&sb);
}

/* Of an event that has none, a loss: where it is in the answer. */
static uint64_t events_time(struct events *e, const json_t *o)
{
	const char *fraction = strchr(lines_str(o, "time"), '.');
	uint64_t s = lines_time(o, "time"), ns;
	uint64_t boot = lines_int(o, "time_boot_ns");

	if (!s)
		return e->n ? e->list[e->n - 1].time : 0;
	ns = s * CLOCK_NSEC_PER_SEC +
	     (fraction ? strtoull(fraction + 1, NULL, 10) : 0);
	/* The wall clock is adjusted all the time; one difference keeps the order. */
	if (boot && !e->offset)
		e->offset = ns - boot;
	return boot ? boot + e->offset : ns;
}

static int events_by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/*
 * Prints all but the last 'keep' in the order of time: an "end" has the time of the
 * end, but is in the answer where the last samples were complete.
 */
static bool events_flush(struct events *e, size_t keep)
{
	struct lines one = { .line = events_show, .arg = e, .events = true };
	size_t i, n = e->n - MIN(e->n, keep);
	bool ok = true;

	e->shown = &one;
	if (e->n)
		qsort(e->list, e->n, sizeof(*e->list), events_by_time);
	for (i = 0; i < n; i++) {
		ok = ok && lines_body(&one, e->list[i].text, e->list[i].len);
		free(e->list[i].text);
	}
	lines_end(&one);
	e->n -= n;
	if (e->n)
		memmove(e->list, e->list + n, e->n * sizeof(*e->list));
	return ok;
}

static bool events_add(struct events *e, const json_t *o)
{
	char *text = malloc(e->lines.len + 1);

	if (!text || VECTOR_ROOM(e->list, e->n, e->cap)) {
		e->lines.bad = strerror(ENOMEM);
		free(text);
		return false;
	}
	memcpy(text, e->lines.text, e->lines.len);
	text[e->lines.len] = '\n';
	e->list[e->n] = (struct event){ .time = events_time(e, o),
					.number = e->number++,
					.text = text,
					.len = e->lines.len + 1 };
	e->n++;
	e->dated |= !lines_is_today(lines_time(o, "time"));
	return e->n < EVENTS_SORTED || events_flush(e, EVENTS_SORTED / 2);
}

/* Of struct lines. */
static bool events_line(void *arg, json_t *o)
{
	struct events *e = arg;

	if (!e->o->follow)
		return events_add(e, o);
	e->shown = &e->lines;
	return events_show(e, o) && !fflush(stdout);
}

int cmd_events(const struct options *o)
{
	struct events e = {
		.o = o,
		.lines = { .line = events_line, .arg = &e, .events = true },
	};
	struct client_request req = {
		.endless = true, /* as long as it takes */
		.cancelled = events_cancelled,
	};
	struct sigaction sa = { .sa_handler = events_on_signal };
	int status = ask_init(&e.ask, "events", o);
	size_t i;

	if (!status)
		status = events_read_types(&e);
	if (!status)
		status = events_put_path(&e);
	if (status)
		goto out;
	req.path = strbuf_str(&e.path);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	status = req.path ? cmd_request_lines(o, &req, &e.lines)
			  : cmd_fail("%s", strerror(ENOMEM));
	if (events_signal)
		status = o->follow ? 0 : CMD_SIGNALLED + events_signal;
	else if (!status && (!events_flush(&e, 0) || fflush(stdout)))
		status = cmd_fail("cannot write to standard output");
out:
	for (i = 0; i < e.n; i++)
		free(e.list[i].text);
	free(e.list);
	strbuf_fini(&e.path);
	ask_fini(&e.ask);
	return status;
}
