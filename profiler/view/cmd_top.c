// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_top: profd top. Of a running profd it requests one profile after the other; all
 * clients with the same interval get the same ones, so options choose among the samples
 * here and not there. Files and profiles of the past do not change.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "profiler/cmd/lines.h"
#include "profiler/view/load.h"
#include "profiler/view/top_ended.h"
#include "reporter/reporter.h"

#define TOP_PRINTED 20 /* rows */

/* Labels of live profiles: equal samples of threads and images are merged. */
#define TOP_LABELS                                              \
	"pid,comm,exe,cgroup,container,pod,unit,service,entry," \
	"process,reason,syscall,fd"

/* --- input ------------------------------------------------------------------------ */

static int top_taken(struct top *t, struct reporter_query *q)
{
	int err = top_take(t, q);

	return err ? cmd_fail("%s", strerror(-err)) : 0;
}

/* The profile of files, or of the past. */
static int top_open(struct top *t)
{
	const struct options *o = t->o;
	struct reporter_query *q = NULL;
	struct strbuf path = STRBUF_INIT;
	struct load_get get = { .o = o };
	int err, status;

	if (o->nargs) {
		status = load_files(t->ask.request, o->args, o->nargs, &q);
		if (!status)
			status = load_end(q);
	} else if (o->query_archive) {
		status = ask_archive(&t->ask, &q);
	} else {
		strbuf_puts(&path, "/api/profile?format=pprof");
		strbuf_puts(&path, strbuf_str(&t->ask.url));
		get.path = strbuf_str(&path);
		err = get.path ? load_server(&get, t->ask.request, &q)
			       : -ENOMEM;
		status = err ? cmd_fail("%s",
					*get.msg ? get.msg : strerror(-err))
			     : 0;
		strbuf_fini(&path);
		strbuf_fini(&get.body);
	}
	if (!status)
		return top_taken(t, q);
	reporter_query_free(q);
	return status;
}

static bool top_input(void *arg)
{
	struct top *t = arg;

	top_screen_keys(t);
	return t->leave;
}

/* Labels of threads and images only for those who use them. */
static const char *top_labels(const struct options *o)
{
	static const char *const rare[] = { "tid", "thread", "image",
					    "entry_pid" };
	bool all = o->only_tid.n || o->not_tid.n || o->only_thread.n ||
		   o->not_thread.n || o->only_image.n || o->not_image.n;

	for (size_t i = 0; i < ARRAY_SIZE(rare); i++)
		all |= !strcmp(o->top_rows, rare[i]);
	return all ? "all" : TOP_LABELS;
}

/* The next 'seconds', unless t->paused. 0 or -errno, with a line in get->msg. */
static int top_next(struct top *t, unsigned int seconds, struct load_get *get)
{
	struct reporter_query *q = NULL;
	char path[256];
	int err;

	snprintf(path, sizeof(path),
		 "/debug/pprof/profile?seconds=%u&labels=%s&type=%s", seconds,
		 top_labels(t->o),
		 reporter_query_kind_word(
			 reporter_request_kind(t->ask.request)));
	if (!strcmp(t->by, "process") && !t->ended)
		t->ended = top_ended_new(t->o);
	get->path = path;
	get->wait_s = seconds;
	err = load_server(get, t->ask.request, &q);
	if (err || t->paused) {
		reporter_query_free(q);
		return err;
	}
	err = top_take(t, q);
	if (!err && !strcmp(t->by, "process"))
		top_processes_get(t);
	if (!err)
		err = top_make(t);
	if (err)
		snprintf(get->msg, sizeof(get->msg), "%s", strerror(-err));
	return err;
}

/* What else can be done when no profd runs. */
static int top_fail(const struct options *o, int err, const char *msg)
{
	int status = cmd_fail("%s", msg);

	if (err == -ECONNREFUSED && !strcmp(o->server, OPTIONS_SERVER))
		fprintf(stderr,
			"profd: without one: profd record --all -d 10, then "
			"profd top profd.pb.gz\n");
	return status;
}

/* --- on a terminal ------------------------------------------------------------------ */

static void top_hold(struct top *t)
{
	while (t->paused && !t->leave)
		top_screen_wait(t);
}

/* The first profile is short, so that there is one soon. */
static int top_run_live(struct top *t, struct load_get *get)
{
	unsigned int seconds = 1;
	uint64_t done = 0;
	int err = 0;

	get->input_fd = STDIN_FILENO;
	get->input = top_input;
	get->arg = t;
	while (!t->leave && !err) {
		err = top_next(t, seconds, get);
		if (err)
			break;
		top_screen_draw(t);
		seconds = (unsigned int)t->o->interval;
		if (++done == t->o->repeat)
			break;
		top_hold(t);
	}
	return t->leave ? 0 : err;
}

static int top_run(struct top *t)
{
	struct load_get get = { .o = t->o };
	int err = 0, signum;

	top_screen_draw(t);
	if (t->live)
		err = top_run_live(t, &get);
	while (!t->live && !t->leave)
		top_screen_wait(t);
	top_screen_close();
	strbuf_fini(&get.body);
	if (err)
		return top_fail(t->o, err, get.msg);
	signum = top_screen_signal();
	/* Ctrl-C is a way to leave, as in top(1). */
	return signum && signum != SIGINT ? CMD_SIGNALLED + signum : 0;
}

/* --- printed ---------------------------------------------------------------------- */

static size_t top_width(const struct options *o)
{
	struct winsize ws;

	if (o->wide || !isatty(STDOUT_FILENO) ||
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws))
		return 0;
	return ws.ws_col;
}

static void top_print_row(const struct top_table *table,
			  const struct top_row *row, size_t width,
			  struct strbuf *out)
{
	size_t start = out->len;

	for (size_t i = 0; i < table->ncolumns; i++) {
		const struct top_column *c = &table->columns[i];
		const char *cell = row ? row->cells[i] : c->title;
		int pad = (int)c->width - (int)lines_width(cell);

		pad = MAX(pad, 0);
		strbuf_printf(out, "%*s%s%*s ", c->left ? 0 : pad, "", cell,
			      c->left ? pad : 0, "");
	}
	strbuf_printf(out, " %s", row ? row->name : table->title);
	if (width)
		lines_cut(out, start, width);
	strbuf_puts(out, "\n");
}

static void top_print_table(struct top *t, struct strbuf *out)
{
	const struct top_table *table = &t->table;
	size_t n = t->o->count ? t->o->count : TOP_PRINTED;

	strbuf_puts(out, strbuf_str(&table->head));
	strbuf_puts(out, "\n");
	top_print_row(table, NULL, 0, out);
	for (size_t i = 0; i < MIN(table->n, n); i++)
		top_print_row(table, &table->items[i], top_width(t->o), out);
}

/* An exit status, after a message. */
static int top_print(struct top *t)
{
	struct reporter_query_table rows = {
		.by = t->by,
		.cum = t->cum,
		.least = 0.005,
		.top = t->o->count ? t->o->count : TOP_PRINTED,
		.width = top_width(t->o),
	};
	struct strbuf out = STRBUF_INIT;
	int err = 0, status;

	if (!strcmp(t->by, "process"))
		top_print_table(t, &out);
	else
		err = reporter_query_table(t->table.q, &rows, &out);
	status = err ? cmd_fail("%s", strerror(-err)) : cmd_print(&out);
	strbuf_fini(&out);
	return status;
}

static int top_print_live(struct top *t)
{
	uint64_t n = t->o->repeat ? t->o->repeat : 1;
	struct load_get get = { .o = t->o };
	int err, status = 0;

	for (uint64_t i = 0; i < n && !status; i++) {
		err = top_next(t, (unsigned int)t->o->interval, &get);
		status = err ? top_fail(t->o, err, get.msg) : 0;
		if (!status && i)
			status = putchar('\n') == EOF;
		if (!status)
			status = top_print(t);
	}
	strbuf_fini(&get.body);
	return status;
}

/* --- the command ------------------------------------------------------------------ */

static const char *top_source(const struct options *o)
{
	if (o->nargs)
		return o->nargs == 1 ? o->args[0] : "several files";
	if (o->query_archive)
		return o->query_archive;
	return strcmp(o->server, OPTIONS_SERVER) ? o->server : "profd top";
}

static int top_check(struct top *t)
{
	const struct options *o = t->o;
	const char *past = reporter_request_past(t->ask.request);

	if (o->nargs && past)
		return cmd_usage(
			"top", "--%s: only of an archive, not of a FILE", past);
	t->live = !o->nargs && !o->query_archive && !past;
	return 0;
}

static int top_start(struct top *t)
{
	struct strbuf types = STRBUF_INIT;
	int err, status;

	if (t->live)
		return 0;
	status = top_open(t);
	if (status)
		return status;
	err = top_make(t);
	if (err == -ENOENT) {
		reporter_query_types(t->table.q, &types);
		status = cmd_fail("no sample type '%s'; there are: %s",
				  t->o->sample_type ? t->o->sample_type : "",
				  strbuf_str(&types));
		strbuf_fini(&types);
		return status;
	}
	return err ? cmd_fail("%s", strerror(-err)) : 0;
}

int cmd_top(const struct options *o)
{
	struct top t = {
		.o = o,
		.source = top_source(o),
		.by = o->top_rows,
		.cum = o->report_sort == OPTIONS_COLUMN_CUM,
	};
	int status;

	if (o->nargs && o->query_archive)
		return cmd_usage("top", "a FILE or --archive, not both");
	status = ask_init(&t.ask, "top", o);
	if (!status)
		status = top_check(&t);
	if (!status)
		status = top_start(&t);
	if (!status && !o->batch && top_screen_open())
		status = top_run(&t);
	else if (!status)
		status = t.live ? top_print_live(&t) : top_print(&t);
	top_fini(&t);
	return status;
}
