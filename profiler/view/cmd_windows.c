// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_windows: profd windows. The windows of the archive, the oldest first: begin,
 * length, samples, losses, bytes of all files, of the waits among them, and file.
 */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cmd/lines.h"
#include "profiler/view/pages.h"

#define WINDOWS_MAX 1000000
#define WINDOWS_OUTPUT 65536 /* bytes collected before they are written */

struct windows {
	struct ask ask;
	json_t *all; /* the newest first */
};

static int windows_add(void *arg, json_t *o)
{
	struct windows *w = arg;

	if (json_array_size(w->all) >= WINDOWS_MAX)
		return cmd_fail(
			"more than %d windows: give a shorter time (--from, --to, --last)",
			WINDOWS_MAX);
	return json_array_append(w->all, o) ? cmd_fail("%s", strerror(ENOMEM))
					    : 0;
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
	struct strbuf size = STRBUF_INIT, waits = STRBUF_INIT;
	char day[24] = "";
	struct tm tm;

	if (localtime_r(&begin, &tm))
		strftime(day, sizeof(day), "%F %T", &tm);
	windows_bytes(&size,
		      lines_int(o, "bytes") + lines_int(o, "times_bytes"));
	if (lines_int(o, "wait_bytes"))
		windows_bytes(&waits, lines_int(o, "wait_bytes"));
	else
		strbuf_puts(&waits, "-");
	strbuf_printf(out, "%-19s %6llds %8" PRIu64 " %8" PRIu64 " %6s %6s  ",
		      day, (long long)(end - begin), lines_int(o, "samples"),
		      windows_losses(o), strbuf_str(&size) ?: "",
		      strbuf_str(&waits) ?: "");
	lines_text(out, lines_str(o, "file"));
	strbuf_puts(out, "\n");
	strbuf_fini(&size);
	strbuf_fini(&waits);
}

/* An exit status, after a message. */
static int windows_print(const struct windows *w)
{
	struct strbuf out = STRBUF_INIT;
	size_t n = json_array_size(w->all);
	const json_t *o;
	int status = 0;

	if (!w->ask.o->json)
		strbuf_printf(&out, "%-19s %7s %8s %8s %6s %6s  %s\n", "BEGIN",
			      "LENGTH", "SAMPLES", "LOSSES", "SIZE", "WAITS",
			      "FILE");
	while (n-- && !status) {
		o = json_array_get(w->all, n);
		if (w->ask.o->json)
			pages_json(&out, o);
		else
			windows_line(&out, o);
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
	if (!status)
		status = pages_read(&w.ask, REPORTER_LIST_WINDOWS, windows_add,
				    &w);
	if (!status && !json_array_size(w.all))
		status = cmd_fail("no window of that time");
	else if (!status)
		status = windows_print(&w);
	ask_fini(&w.ask);
	json_decref(w.all);
	return status;
}
