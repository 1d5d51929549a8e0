// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_events: profd events. Prints the lifecycle events that a running profd
 * has seen last, or as they come, one a line.
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "profiler/client.h"
#include "profiler/cmd.h"
#include "profiler/lines.h"

static volatile sig_atomic_t events_signal;

static void on_signal(int signum)
{
	events_signal = signum;
}

static bool cancelled(void *arg)
{
	return events_signal;
}

/* Whole lines only: what follows may never come. */
static bool print_raw(void *arg, const void *data, size_t len)
{
	const char *end = memrchr(data, '\n', len);
	size_t n = end ? end + 1 - (const char *)data : 0;
	struct strbuf *part = &((struct lines *)arg)->part;

	if (n && part->len) {
		fwrite(part->data, 1, part->len, stdout);
		strbuf_reset(part);
	}
	strbuf_add(part, (const char *)data + n, len - n);
	return fwrite(data, 1, n, stdout) == n && !fflush(stdout) &&
	       !part->failed;
}

static void put_gap(struct strbuf *sb, const json_t *o)
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

static void put_ids(struct strbuf *sb, const json_t *o)
{
	strbuf_printf(sb, "uid %" PRIu64 " gid %" PRIu64 " ",
		      lines_int(o, "uid"), lines_int(o, "gid"));
	lines_text(sb, lines_str(o, "cwd"));
}

static void put_cgroup(struct strbuf *sb, const json_t *o)
{
	lines_text(sb, lines_str(o, "comm"));
	strbuf_puts(sb, " to ");
	lines_text(sb, lines_str(o, "cgroup"));
}

static void put_end(struct strbuf *sb, const json_t *o)
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

	put_end(sb, o);
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
	{ "gap", put_gap },	  { "missed", put_missed },
	{ "fork", put_fork },	  { "exec", lines_command },
	{ "rename", put_rename }, { "id_change", put_ids },
	{ "cgroup", put_cgroup }, { "exit", put_end },
	{ "reap", put_end },	  { "end", put_life },
};

static void put_kind(struct strbuf *sb, const json_t *o, const char *word)
{
	size_t i;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strcmp(kinds[i].word, word))
			break;
	if (i == ARRAY_SIZE(kinds))
		return; /* of a newer profd */
	lines_clock(sb, o, "time");
	if (lines_has(o, "pid"))
		strbuf_printf(sb, " %7" PRIu64 " %7" PRIu64,
			      lines_int(o, "pid"), lines_int(o, "ppid"));
	strbuf_printf(sb, " %-9s ", word);
	kinds[i].put(sb, o);
	strbuf_puts(sb, "\n");
}

static bool print_line(void *arg, json_t *o)
{
	const json_t *words = json_object_get(o, "events");
	struct strbuf sb = STRBUF_INIT;
	const char *word;
	size_t i;
	bool ok;

	for (i = 0; i < json_array_size(words); i++) {
		word = json_string_value(json_array_get(words, i));
		if (word)
			put_kind(&sb, o, word);
	}
	ok = !sb.failed && fputs(strbuf_str(&sb), stdout) >= 0 &&
	     !fflush(stdout);
	strbuf_fini(&sb);
	return ok;
}

int cmd_events(const struct options *o)
{
	struct lines lines = { .line = print_line };
	struct client_request req = {
		.server = o->server,
		.path = o->follow ? "/events?follow=1" : "/events",
		.endless = o->follow,
		.body = o->json ? print_raw : lines_body,
		.cancelled = cancelled,
		.arg = &lines,
	};
	struct sigaction sa = { .sa_handler = on_signal };
	char msg[768];
	int err;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	err = client_get(&req, msg, sizeof(msg));
	lines_end(&lines);
	if (events_signal)
		return o->follow ? 0 : CMD_SIGNALLED + events_signal;
	if (!err)
		return lines.bad ? cmd_fail("%s: %s", o->server, lines.bad) : 0;
	if (err != -ECANCELED)
		return cmd_fail("%s", msg);
	return lines.bad ? cmd_fail("%s: %s", o->server, lines.bad)
			 : cmd_fail("standard output cannot be written");
}
