// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_windows: profd windows. The windows of the archive, the oldest first: begin,
 * length, samples, losses, bytes and file.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cmd/lines.h"
#include "profiler/view/ask.h"
#include "profiler/view/load.h"
#include "reporter/reporter.h"

#define WINDOWS_PAGE "10000" /* windows of an answer */
#define WINDOWS_MAX 1000000
#define WINDOWS_OUTPUT 65536 /* bytes collected before they are written */

struct windows {
	struct ask ask;
	struct reporter_list list; /* of the archive's own directory */
	json_t *all; /* the newest first */
	char after[24]; /* "next" of the last answer; "": the first */
};

/* --- answers -------------------------------------------------------------------- */

static int windows_server(struct windows *w, struct strbuf *out)
{
	struct load_get get = { .o = w->ask.o };
	struct strbuf path = STRBUF_INIT;
	int err = -ENOMEM;

	strbuf_puts(&path, "/api/windows?limit=" WINDOWS_PAGE);
	strbuf_puts(&path, strbuf_str(&w->ask.url));
	if (*w->after)
		strbuf_printf(&path, "&after=%s", w->after);
	get.path = strbuf_str(&path);
	if (get.path)
		err = load_get(&get);
	strbuf_fini(&path);
	*out = get.body;
	return err ? cmd_fail("%s", *get.msg ? get.msg : strerror(-err)) : 0;
}

static int windows_archive(struct windows *w, struct strbuf *out)
{
	struct reporter_request_run run = {
		.archive = w->ask.o->query_archive,
		.progress = ask_progress,
		.arg = &w->ask,
	};
	const char *want;
	int err = 0;

	w->list = (struct reporter_list){ .kind = REPORTER_LIST_WINDOWS };
	err = reporter_list_set(w->ask.request, &w->list, "limit", WINDOWS_PAGE,
				&want);
	if (!err && *w->after)
		err = reporter_list_set(w->ask.request, &w->list, "after",
					w->after, &want);
	if (!err)
		err = reporter_list_run(w->ask.request, &w->list, &run, out);
	return ask_result(&w->ask, &run, err);
}

/* Adds the next answer. An exit status, after a message. */
static int windows_page(struct windows *w)
{
	const struct options *o = w->ask.o;
	struct strbuf text = STRBUF_INIT;
	json_t *answer = NULL, *page;
	const char *next;
	int status = o->query_archive ? windows_archive(w, &text)
				      : windows_server(w, &text);

	if (!status)
		answer = json_loadb(text.data, text.len, 0, NULL);
	strbuf_fini(&text);
	if (status)
		return status;
	page = json_object_get(answer, "windows");
	if (!json_is_array(page) || json_array_extend(w->all, page))
		status = cmd_fail("%s: its answer is no list of windows",
				  o->query_archive ? o->query_archive
						   : o->server);
	next = json_string_value(json_object_get(answer, "next"));
	snprintf(w->after, sizeof(w->after), "%s", next ? next : "");
	if (!json_array_size(page))
		*w->after = '\0';
	json_decref(answer);
	return status;
}

/* --- output --------------------------------------------------------------------- */

static void windows_bytes(struct strbuf *sb, uint64_t n)
{
	static const char units[] = "KMGT";
	double v = (double)n / 1024;
	size_t i = 0;

	for (; v >= 1000 && units[i + 1]; i++)
		v /= 1024;
	strbuf_printf(sb, v < 10 ? "%.1f%c" : "%.0f%c", v, units[i]);
}

/* All counts of its losses, of which --json has each. */
static uint64_t windows_losses(const json_t *o)
{
	json_t *losses = json_object_get(o, "losses"), *v;
	uint64_t sum = 0;
	const char *key;

	json_object_foreach(losses, key, v) sum +=
		(uint64_t)json_integer_value(v);
	return sum;
}

/* To the nearest second: a window's boundary is a few ns off the one of the clock. */
static time_t windows_time(const json_t *o, const char *key)
{
	const char *fraction = strchr(lines_str(o, key), '.');

	return lines_time(o, key) + (fraction && fraction[1] >= '5');
}

static void windows_line(struct strbuf *out, const json_t *o)
{
	time_t begin = windows_time(o, "begin"), end = windows_time(o, "end");
	struct strbuf size = STRBUF_INIT;
	char day[24] = "";
	struct tm tm;

	if (localtime_r(&begin, &tm))
		strftime(day, sizeof(day), "%F %T", &tm);
	windows_bytes(&size,
		      lines_int(o, "bytes") + lines_int(o, "times_bytes"));
	strbuf_printf(out, "%-19s %6llds %8" PRIu64 " %8" PRIu64 " %6s  ", day,
		      (long long)(end - begin), lines_int(o, "samples"),
		      windows_losses(o), strbuf_str(&size) ?: "");
	lines_text(out, lines_str(o, "file"));
	strbuf_puts(out, "\n");
	strbuf_fini(&size);
}

/* An exit status, after a message. */
static int windows_print(const struct windows *w)
{
	struct strbuf out = STRBUF_INIT;
	size_t n = json_array_size(w->all);
	const json_t *o;
	char *text;
	int status = 0;

	if (!w->ask.o->json)
		strbuf_printf(&out, "%-19s %7s %8s %8s %6s  %s\n", "BEGIN",
			      "LENGTH", "SAMPLES", "LOSSES", "SIZE", "FILE");
	while (n-- && !status) {
		o = json_array_get(w->all, n);
		text = w->ask.o->json
			       ? json_dumps(o, JSON_COMPACT | JSON_ENSURE_ASCII)
			       : NULL;
		if (text)
			strbuf_printf(&out, "%s\n", text);
		else
			windows_line(&out, o);
		free(text);
		if (out.len > WINDOWS_OUTPUT)
			status = cmd_print(&out);
	}
	if (!status)
		status = cmd_print(&out);
	strbuf_fini(&out);
	return status;
}

int cmd_windows(const struct options *o)
{
	struct windows w = { .all = json_array() };
	int status;

	if (o->nargs)
		return cmd_usage("windows", "takes no arguments");
	status = ask_init(&w.ask, "windows", o);
	if (!status && !w.all)
		status = cmd_fail("%s", strerror(ENOMEM));
	while (!status) {
		status = windows_page(&w);
		if (!*w.after)
			break;
		if (!status && json_array_size(w.all) >= WINDOWS_MAX)
			status = cmd_fail(
				"more than %d windows: give a shorter time (--from, --to, --last)",
				WINDOWS_MAX);
	}
	if (!status && !json_array_size(w.all))
		status = cmd_fail("no window of that time");
	else if (!status)
		status = windows_print(&w);
	ask_fini(&w.ask);
	json_decref(w.all);
	return status;
}
