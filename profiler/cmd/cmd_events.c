// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_events: profd events. Prints the lifecycle events that a running profd
 * has seen last, or as they come, one a line.
 */
#include <errno.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cmd/client.h"
#include "profiler/cmd/cmd.h"
#include "profiler/cmd/lines.h"

static volatile sig_atomic_t events_signal;

static void events_on_signal(int signum)
{
	events_signal = signum;
}

static bool events_cancelled(void *arg)
{
	return events_signal;
}

/* One event, when they are put in order. */
struct event {
	uint64_t time; /* CLOCK_BOOTTIME, ns */
	size_t number; /* in the answer */
	json_t *o;
	char *text; /* for --json: the line */
	size_t len;
};

struct events {
	const struct options *o;
	struct lines lines;
	bool dated; /* with their days */
	struct event *list; /* without --follow: until all are there */
	size_t n, cap;
	bool failed; /* no memory */
};

static void events_put_gap(struct strbuf *sb, const json_t *o)
{
	strbuf_printf(sb, "%" PRIu64 " events lost", lines_int(o, "lost"));
}

static void put_missed(struct strbuf *sb, const json_t *o)
{
	strbuf_printf(sb, "%" PRIu64 " events went by unread",
		      lines_int(o, "count"));
}

static void put_fork(struct strbuf *sb, const json_t *o)
{
	lines_text(sb, lines_str(o, "comm"));
}

static void put_rename(struct strbuf *sb, const json_t *o)
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

/* All that is known of it by now. */
static void put_life(struct strbuf *sb, const json_t *o)
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
} kinds[] = {
	{ "gap", events_put_gap },
	{ "missed", put_missed },
	{ "fork", put_fork },
	{ "exec", lines_command },
	{ "rename", put_rename },
	{ "id_change", events_put_ids },
	{ "cgroup", events_put_cgroup },
	{ "exit", events_put_end },
	{ "reap", events_put_end },
	{ "end", put_life },
};

/* --- which ones ----------------------------------------------------------- */

/* Whether one of the words of --type, which may be lists, is 'word'. */
static bool is_type(const struct options_strings *types, const char *word)
{
	size_t i, len = strlen(word), n;
	const char *p;

	for (i = 0; i < types->n; i++) {
		for (p = types->items[i]; *p; p += n + (p[n] == ',')) {
			n = strcspn(p, ",");
			if (n == len && !memcmp(p, word, len))
				return true;
		}
	}
	return !types->n;
}

static bool is_comm(const struct options_strings *comms, const char *comm)
{
	size_t i;

	for (i = 0; i < comms->n; i++)
		if (!fnmatch(comms->items[i], comm, 0))
			return true;
	return !comms->n;
}

static bool is_pid(const struct options_numbers *pids, uint64_t pid)
{
	size_t i;

	for (i = 0; i < pids->n; i++)
		if (pids->items[i] == pid)
			return true;
	return !pids->n;
}

/* What is said of no process, a loss, concerns all of them. */
static bool is_wanted(const struct options *o, const json_t *event)
{
	const json_t *words = json_object_get(event, "events");
	uint64_t t = lines_time(event, "time");
	const char *word;
	bool any = false;
	size_t i;

	for (i = 0; i < json_array_size(words); i++) {
		word = json_string_value(json_array_get(words, i));
		any |= word && is_type(&o->type, word);
	}
	if (!any || (o->since && t && (uint64_t)t < o->since))
		return false;
	return !lines_has(event, "pid") ||
	       (is_pid(&o->event_pid, lines_int(event, "pid")) &&
		is_comm(&o->comm, lines_str(event, "comm")));
}

/* Every word of --type is one; an exit status. */
static int check_types(const struct options *o)
{
	const char *p;
	size_t i, k, n;

	for (i = 0; i < o->type.n; i++) {
		for (p = o->type.items[i]; *p; p += n + (p[n] == ',')) {
			n = strcspn(p, ",");
			for (k = 0; k < ARRAY_SIZE(kinds); k++)
				if (strlen(kinds[k].word) == n &&
				    !memcmp(kinds[k].word, p, n))
					break;
			if (k < ARRAY_SIZE(kinds))
				continue;
			fprintf(stderr, "profd events: --type '%.*s': must be",
				(int)n, p);
			for (k = 0; k < ARRAY_SIZE(kinds); k++)
				fprintf(stderr, "%s %s", k ? "," : "",
					kinds[k].word);
			fputs("\n", stderr);
			return OPTIONS_USAGE;
		}
	}
	return 0;
}

/* --- printing ------------------------------------------------------------- */

static void put_kind(const struct events *e, struct strbuf *sb, const json_t *o,
		     const char *word)
{
	bool dated = e->dated || !lines_is_today(lines_time(o, "time"));
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].word, word))
			break;
	if (i == ARRAY_SIZE(kinds))
		return; /* of a newer profd */
	lines_clock(sb, o, "time", dated);
	if (lines_has(o, "pid"))
		strbuf_printf(sb, " %7" PRIu64 " %7" PRIu64,
			      lines_int(o, "pid"), lines_int(o, "ppid"));
	strbuf_printf(sb, " %-9s ", word);
	kinds[i].put(sb, o);
	strbuf_puts(sb, "\n");
}

static bool events_print_event(const struct events *e, const json_t *o)
{
	const json_t *words = json_object_get(o, "events");
	struct strbuf sb = STRBUF_INIT;
	const char *word;
	size_t i;
	bool ok;

	for (i = 0; i < json_array_size(words); i++) {
		word = json_string_value(json_array_get(words, i));
		if (word && is_type(&e->o->type, word))
			put_kind(e, &sb, o, word);
	}
	ok = !sb.failed && fputs(strbuf_str(&sb), stdout) >= 0;
	strbuf_fini(&sb);
	return ok;
}

static bool events_add(struct events *e, json_t *o)
{
	struct event *ev;

	if (VECTOR_ROOM(e->list, e->n, e->cap))
		goto nomem;
	ev = &e->list[e->n];
	*ev = (struct event){ .time = lines_int(o, "time_boot_ns"),
			      .number = e->n };
	if (e->o->json) {
		ev->len = e->lines.len;
		ev->text = malloc(ev->len + 1);
		if (!ev->text)
			goto nomem;
		memcpy(ev->text, e->lines.text, ev->len);
	} else {
		ev->o = json_incref(o);
	}
	e->dated |= !lines_is_today(lines_time(o, "time"));
	e->n++;
	return true;
nomem:
	e->failed = true;
	return false;
}

static bool events_line(void *arg, json_t *o)
{
	struct events *e = arg;
	bool ok;

	if (!is_wanted(e->o, o))
		return true;
	if (!e->o->follow)
		return events_add(e, o);
	ok = e->o->json ? lines_print_json(&e->lines)
			: events_print_event(e, o);
	/* What follows may never come. */
	return ok && !fflush(stdout);
}

static int by_time(const void *a, const void *b)
{
	const struct event *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->number < y->number ? -1 : x->number > y->number;
}

/*
 * In the order of time: what is known of a process in the end comes when its last
 * samples are done, but belongs to its end.
 */
static bool events_print(struct events *e)
{
	bool ok = true;
	size_t i;

	if (e->n)
		qsort(e->list, e->n, sizeof(*e->list), by_time);
	for (i = 0; i < e->n && ok; i++) {
		if (!e->o->json) {
			ok = events_print_event(e, e->list[i].o);
			continue;
		}
		e->lines.text = e->list[i].text;
		e->lines.len = e->list[i].len;
		ok = lines_print_json(&e->lines);
	}
	return ok && !fflush(stdout);
}

static int events_finish(struct events *e, int err, const char *msg)
{
	const char *bad = e->lines.bad;

	if (events_signal)
		return e->o->follow ? 0 : CMD_SIGNALLED + events_signal;
	if (err && err != -ECANCELED)
		return cmd_fail("%s", msg);
	if (bad || e->failed)
		return cmd_fail("%s: %s", e->o->server,
				bad ? bad : strerror(ENOMEM));
	cmd_skipped(&e->lines);
	if (err || !events_print(e))
		return cmd_fail("standard output cannot be written");
	return 0;
}

int cmd_events(const struct options *o)
{
	struct events e = { .o = o,
			    .lines = { .line = events_line, .arg = &e } };
	/* With --since and --follow, those that are kept come first. */
	struct client_request req = {
		.server = o->server,
		.path = !o->follow ? "/events"
			: o->since ? "/events?follow=1&all=1"
				   : "/events?follow=1",
		.endless = o->follow,
		.body = lines_body,
		.cancelled = events_cancelled,
		.arg = &e.lines,
	};
	struct sigaction sa = { .sa_handler = events_on_signal };
	int status, err;
	char msg[768];
	size_t i;

	status = check_types(o);
	if (status)
		return status;
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	err = client_get(&req, msg, sizeof(msg));
	lines_end(&e.lines);
	status = events_finish(&e, err, msg);
	for (i = 0; i < e.n; i++) {
		json_decref(e.list[i].o);
		free(e.list[i].text);
	}
	free(e.list);
	return status;
}
