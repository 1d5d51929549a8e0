// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_ps: profd ps. The processes that a running profd knows, or those of the archive
 * that a query chooses, with their CPU time as the kernel counts it and the share of it
 * that samples account for.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "profiler/cmd/client.h"
#include "profiler/cmd/cmd.h"
#include "profiler/cmd/lines.h"
#include "profiler/view/ps_past.h"
#include "symbolize/symbolize.h"

#define PS_MAX_DEPTH 64 /* of the tree, as it is indented */
#define PS_USER 8 /* characters */
#define PS_PID_MAX 4194304
#define PS_HALF_A_YEAR (182 * 86400) /* seconds */
#define PS_USERS 64 /* entries of the cache of user names */
#define PS_PIPE 400 /* characters of a line, if not for a terminal */
#define PS_DELAY 1 /* seconds, of --sort cpu-rate without --delay */

struct ps_row {
	json_t *o;
	struct ps_row *parent;
	struct ps_row *child, *sibling; /* in the order of the table */
};

struct ps_user {
	uint64_t uid;
	char name[64]; /* "": unused */
};

/* A process id of the command line. */
struct ps_pid {
	uint64_t pid;
	bool found;
};

/* The CPU time of a process before an interval. */
struct ps_before {
	char process[40]; /* its id */
	uint64_t cpu_ns;
};

/* --- columns --------------------------------------------------------------- */

/* Cut like ps(1) does. */
static void ps_user(struct strbuf *sb, const json_t *o)
{
	const char *name = lines_str(o, "user");

	lines_text(sb, name);
	if (lines_width(name) <= PS_USER)
		return;
	lines_cut(sb, 0, PS_USER - 1);
	strbuf_puts(sb, "+");
}

/* The time of day, with the date if that is not today, or after half a year the date. */
static void ps_start(struct strbuf *sb, const json_t *o)
{
	time_t t = lines_time(o, "start");
	char text[32];
	struct tm tm;

	if (!t)
		return;
	localtime_r(&t, &tm);
	strftime(text, sizeof(text),
		 lines_is_today(t)		   ? "%T"
		 : time(NULL) - t < PS_HALF_A_YEAR ? "%b %e %H:%M"
						   : "%F",
		 &tm);
	strbuf_puts(sb, text);
}

static void ps_state(struct strbuf *sb, const json_t *o)
{
	if (lines_has(o, "exit_code"))
		strbuf_puts(sb, "exit ");
	if (lines_has(o, "exit_code") || lines_has(o, "signal"))
		lines_status(sb, o);
	else
		lines_text(sb, lines_str(o, "state"));
}

static void ps_cpu(struct strbuf *sb, const json_t *o)
{
	if (!lines_has(o, "cpu_ns"))
		return;
	if (!strcmp(lines_str(o, "cpu"), "provisional"))
		strbuf_puts(sb, "~");
	lines_duration(sb, lines_int(o, "cpu_ns"));
}

static void ps_rate(struct strbuf *sb, const json_t *o)
{
	const json_t *rate = json_object_get(o, "cpu_rate");

	if (rate)
		strbuf_printf(sb, "%.1f%%", 100 * json_real_value(rate));
}

/* What stands before the command. */
static const struct {
	const char *title;
	const char *number; /* the member, if the column is one; or NULL */
	void (*put)(struct strbuf *sb, const json_t *o);
	size_t most; /* characters; 0: no limit */
	bool right; /* aligned */
} ps_columns[] = {
	{ "PID", "pid", NULL, 0, true },
	{ "PPID", "ppid", NULL, 0, true },
	{ "USER", NULL, ps_user, PS_USER, false },
	{ "START", NULL, ps_start, 0, false },
	{ "STATE", NULL, ps_state, 12, false },
	{ "NOW", NULL, ps_rate, 0, true },
	{ "CPU", NULL, ps_cpu, 0, true },
	{ "SAMPLES", "samples", NULL, 0, true },
	{ "COVER", NULL, lines_coverage, 0, true },
	{ "WHERE", NULL, lines_where, 28, false },
};

struct ps {
	const struct options *o;
	struct lines lines;
	struct ps_pid *pids; /* of the command line */
	size_t npids; /* 0: all processes are printed */
	struct ps_row *rows; /* sorted by pid at the end of the answer */
	struct ps_row **order; /* as they are printed */
	size_t n, cap;
	/* Before the interval of --delay, by id; its length in ns, 0: none */
	struct ps_before *before;
	size_t nbefore, before_cap;
	uint64_t interval;
	size_t terminal; /* columns; 0: lines are not cut */
	size_t widths[ARRAY_SIZE(ps_columns)]; /* 0: left out */
	struct ps_user users[PS_USERS]; /* by uid */
	struct strbuf cell;
};

/* --- processes --------------------------------------------------------------*/

/* Whether the command line selects a process. */
static bool ps_is_selected(struct ps *ps, const json_t *o)
{
	uint64_t pid = lines_int(o, "pid");
	bool selected = false;
	size_t i;

	if (!ps->npids)
		return ps->o->ps_all ||
		       !json_is_true(json_object_get(o, "kernel_thread"));
	for (i = 0; i < ps->npids; i++)
		if (ps->pids[i].pid == pid)
			selected = ps->pids[i].found = true;
	return selected;
}

/*
 * The user's name, or the number where there is none. The symbolize worker runs
 * under a user id that is made from its pid.
 */
static const char *ps_user_name(struct ps *ps, const json_t *o)
{
	uint64_t uid = lines_int(o, "uid");
	struct ps_user *u = &ps->users[uid % PS_USERS];
	struct passwd *pw;

	if (uid == SYMBOLIZER_UID_BASE + lines_int(o, "pid"))
		return "profd";
	/* A lookup may be a request to another host. */
	if (u->name[0] && u->uid == uid)
		return u->name;
	u->uid = uid;
	pw = getpwuid(uid);
	if (pw && pw->pw_name[0])
		snprintf(u->name, sizeof(u->name), "%s", pw->pw_name);
	else
		snprintf(u->name, sizeof(u->name), "%" PRIu64, uid);
	return u->name;
}

static int ps_compare_before(const void *a, const void *b)
{
	const struct ps_before *x = a, *y = b;

	return strcmp(x->process, y->process);
}

/* Of the first answer. */
static bool ps_line_before(void *arg, json_t *o)
{
	struct ps *ps = arg;
	struct ps_before *b;

	if (VECTOR_ROOM(ps->before, ps->nbefore, ps->before_cap)) {
		ps->lines.bad = strerror(ENOMEM);
		return false;
	}
	b = &ps->before[ps->nbefore++];
	snprintf(b->process, sizeof(b->process), "%s", lines_str(o, "process"));
	b->cpu_ns = lines_int(o, "cpu_ns");
	return true;
}

/* Adds "cpu_rate", in CPUs; one that began in the interval used all its time in it. */
static int ps_add_rate(struct ps *ps, json_t *o)
{
	uint64_t cpu = lines_int(o, "cpu_ns");
	const struct ps_before *b;
	struct ps_before key;

	if (!ps->interval)
		return 0;
	snprintf(key.process, sizeof(key.process), "%s",
		 lines_str(o, "process"));
	b = bsearch(&key, ps->before, ps->nbefore, sizeof(key),
		    ps_compare_before);
	if (b)
		cpu = cpu > b->cpu_ns ? cpu - b->cpu_ns : 0;
	return json_object_set_new(o, "cpu_rate",
				   json_real((double)cpu / ps->interval));
}

/* As received; with a member of its own, made again. */
static bool ps_print_json(struct ps *ps, const json_t *o)
{
	if (!ps->interval)
		return lines_print_json(&ps->lines);
	return !json_dumpf(o, stdout,
			   JSON_COMPACT | JSON_ENSURE_ASCII |
				   JSON_REAL_PRECISION(6)) &&
	       putchar('\n') != EOF;
}

static bool ps_line(void *arg, json_t *o)
{
	struct ps *ps = arg;
	bool selected = ps_is_selected(ps, o);

	if (ps_add_rate(ps, o)) {
		ps->lines.bad = strerror(ENOMEM);
		return false;
	}
	if (ps->o->json)
		return !selected || ps_print_json(ps, o);
	/* Any process may turn out to be below a selected one. */
	if (!selected && !(ps->npids && ps->o->tree))
		return true;
	if (VECTOR_ROOM(ps->rows, ps->n, ps->cap) ||
	    (lines_has(o, "uid") &&
	     json_object_set_new(o, "user",
				 json_string_nocheck(ps_user_name(ps, o))))) {
		ps->lines.bad = strerror(ENOMEM);
		return false;
	}
	ps->rows[ps->n++] = (struct ps_row){ .o = json_incref(o) };
	return true;
}

static int ps_compare(const void *a, const void *b)
{
	const struct ps_row *x = a, *y = b;
	uint64_t px = lines_int(x->o, "pid"), py = lines_int(y->o, "pid");

	if (px != py)
		return px < py ? -1 : 1;
	return strcmp(lines_str(x->o, "start"), lines_str(y->o, "start"));
}

/* The process with that id, or else the last one with its pid, or NULL. */
static struct ps_row *ps_find(struct ps *ps, uint64_t pid, const char *process)
{
	struct ps_row *last = NULL;
	size_t i;

	VECTOR_SEARCH(i, ps->n, lines_int(ps->rows[i].o, "pid") < pid);
	for (; i < ps->n && lines_int(ps->rows[i].o, "pid") == pid; i++) {
		last = &ps->rows[i];
		if (!strcmp(lines_str(last->o, "process"), process))
			return last;
	}
	return last;
}

static bool ps_is_above(const struct ps_row *row, const struct ps_row *of)
{
	for (; of; of = of->parent)
		if (of == row)
			return true;
	return false;
}

/* Inserts at the front, last first: children are in the order of printing. */
static void ps_link(struct ps *ps)
{
	struct ps_row *row, *up;
	size_t i;

	for (i = ps->n; i-- > 0;) {
		row = ps->order[i];
		up = ps_find(ps, lines_int(row->o, "ppid"),
			     lines_str(row->o, "parent"));
		if (!up || ps_is_above(row, up))
			continue;
		row->parent = up;
		row->sibling = up->child;
		up->child = row;
	}
}

/* --- the table ------------------------------------------------------------ */

static void ps_cell(struct ps *ps, size_t column, const struct ps_row *row)
{
	strbuf_reset(&ps->cell);
	if (!row)
		strbuf_puts(&ps->cell, ps_columns[column].title);
	else if (ps_columns[column].number)
		strbuf_printf(&ps->cell, "%" PRIu64,
			      lines_int(row->o, ps_columns[column].number));
	else
		ps_columns[column].put(&ps->cell, row->o);
}

/* Of a process, or the heading if 'row' is NULL. */
static void ps_put(struct ps *ps, const struct ps_row *row, size_t depth,
		   struct strbuf *out)
{
	size_t i, start = out->len;
	int pad, width;

	for (i = 0; i < ARRAY_SIZE(ps_columns); i++) {
		width = (int)ps->widths[i];
		if (!width)
			continue;
		ps_cell(ps, i, row);
		if (ps->cell.failed) {
			out->failed = true;
			return;
		}
		lines_cut(&ps->cell, 0, width);
		pad = width - (int)lines_width(ps->cell.data);
		strbuf_printf(out, "%*s%s%*s ", ps_columns[i].right ? pad : 0,
			      "", strbuf_str(&ps->cell),
			      ps_columns[i].right ? 0 : pad, "");
	}
	strbuf_printf(out, "%*s", (int)(2 * MIN(depth, (size_t)PS_MAX_DEPTH)),
		      "");
	if (row)
		lines_command(out, row->o);
	else
		strbuf_puts(out, "COMMAND");
	if (ps->terminal)
		lines_cut(out, start, ps->terminal);
	strbuf_puts(out, "\n");
}

/* Without recursion: a tree may be as deep as there are pids. */
static void ps_put_tree(struct ps *ps, const struct ps_row *root,
			struct strbuf *sb)
{
	const struct ps_row *row = root;
	size_t depth = 0;

	for (;;) {
		ps_put(ps, row, depth, sb);
		if (row->child) {
			row = row->child;
			depth++;
			continue;
		}
		while (row != root && !row->sibling) {
			row = row->parent;
			depth--;
		}
		if (row == root)
			return;
		row = row->sibling;
	}
}

/* Columns are as wide as needed: the command gets the rest of the terminal. */
static void ps_measure(struct ps *ps)
{
	size_t i, k, width, most;

	for (k = 0; k < ARRAY_SIZE(ps_columns); k++) {
		for (i = width = 0; i < ps->n; i++) {
			ps_cell(ps, k, &ps->rows[i]);
			width = MAX(width, lines_width(strbuf_str(&ps->cell)));
		}
		most = ps_columns[k].most ? ps_columns[k].most : width;
		/* The pid's column is kept in a table without processes. */
		if (width || k == 0)
			ps->widths[k] = MAX(MIN(width, most),
					    strlen(ps_columns[k].title));
	}
}

/* Columns of the terminal; 0: it does not say. */
static size_t ps_terminal(void)
{
	struct winsize ws;

	if (!isatty(STDOUT_FILENO))
		return PS_PIPE;
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws) ? 0 : ws.ws_col;
}

/* --- the order ------------------------------------------------------------ */

/* Texts are sorted in ascending order, numbers in descending order. */
static const struct {
	const char *key;
	bool text;
} ps_orders[] = {
	[OPTIONS_SORT_CPU] = { "cpu_ns", false },
	[OPTIONS_SORT_CPU_RATE] = { "cpu_rate", false },
	[OPTIONS_SORT_SAMPLES] = { "samples", false },
	[OPTIONS_SORT_START] = { "start_boot_ns", false },
	[OPTIONS_SORT_PID] = { NULL, false },
	[OPTIONS_SORT_USER] = { "user", true },
	[OPTIONS_SORT_NAME] = { "comm", true },
};

/* By 'arg', an enum options_sort; equal ones by pid. */
static int ps_compare_rows(const void *a, const void *b, void *arg)
{
	const enum options_sort *sort = arg;
	const struct ps_row *x = *(struct ps_row *const *)a;
	const struct ps_row *y = *(struct ps_row *const *)b;
	const char *key = ps_orders[*sort].key;
	uint64_t m, n;
	double r, s;
	int c = 0;

	if (*sort == OPTIONS_SORT_CPU_RATE) {
		r = json_real_value(json_object_get(x->o, key));
		s = json_real_value(json_object_get(y->o, key));
		c = (r < s) - (r > s);
	} else if (ps_orders[*sort].text) {
		c = strcmp(lines_str(x->o, key), lines_str(y->o, key));
	} else if (key) {
		m = lines_int(x->o, key);
		n = lines_int(y->o, key);
		c = (m < n) - (m > n);
	}
	return c ? c : ps_compare(x, y);
}

static int ps_sort(struct ps *ps)
{
	enum options_sort key = ps->o->sort;
	size_t i;

	if (key == OPTIONS_SORT_NONE)
		key = ps->o->tree    ? OPTIONS_SORT_PID
		      : ps->interval ? OPTIONS_SORT_CPU_RATE
				     : OPTIONS_SORT_CPU;
	ps->order = calloc(ps->n + 1, sizeof(struct ps_row *));
	if (!ps->order)
		return -ENOMEM;
	if (!ps->n)
		return 0;
	qsort(ps->rows, ps->n, sizeof(*ps->rows), ps_compare);
	for (i = 0; i < ps->n; i++)
		ps->order[i] = &ps->rows[i];
	qsort_r(ps->order, ps->n, sizeof(struct ps_row *), ps_compare_rows,
		&key);
	return 0;
}

/* --- the command ---------------------------------------------------------- */

/* A tree begins at a selected process, or at one without a known parent. */
static bool ps_is_root(struct ps *ps, const struct ps_row *row)
{
	const struct ps_row *up;

	if (!ps->npids)
		return !row->parent;
	/* Below another selected process it is part of that tree. */
	for (up = row->parent; up; up = up->parent)
		if (ps_is_selected(ps, up->o))
			return false;
	return ps_is_selected(ps, row->o);
}

static int ps_print(struct ps *ps)
{
	struct strbuf sb = STRBUF_INIT;
	size_t i;

	if (ps_sort(ps))
		return cmd_fail("%s", strerror(ENOMEM));
	if (ps->o->tree)
		ps_link(ps);
	ps->terminal = ps->o->ps_wide ? 0 : ps_terminal();
	ps_measure(ps);
	ps_put(ps, NULL, 0, &sb);
	for (i = 0; i < ps->n; i++) {
		if (!ps->o->tree)
			ps_put(ps, ps->order[i], 0, &sb);
		else if (ps_is_root(ps, ps->order[i]))
			ps_put_tree(ps, ps->order[i], &sb);
	}
	return cmd_print(&sb);
}

/* Reports selected processes that do not exist; an exit status. */
static int ps_missing(const struct ps *ps)
{
	struct strbuf sb = STRBUF_INIT;
	size_t i;
	int status;

	for (i = 0; i < ps->npids; i++)
		if (!ps->pids[i].found)
			strbuf_printf(&sb, "%s %" PRIu64, sb.len ? "," : "",
				      ps->pids[i].pid);
	status = sb.len ? cmd_fail("no such process:%s", sb.data) : 0;
	strbuf_fini(&sb);
	return status;
}

/* Reads the arguments; an exit status. */
static int ps_read_pids(struct ps *ps)
{
	const struct options *o = ps->o;
	unsigned long pid;
	char *end;

	ps->pids = calloc(o->nargs + 1, sizeof(*ps->pids));
	if (!ps->pids)
		return cmd_fail("%s", strerror(ENOMEM));
	for (; ps->npids < o->nargs; ps->npids++) {
		const char *arg = o->args[ps->npids];

		pid = strtoul(arg, &end, 10);
		if (*end || *arg < '0' || *arg > '9' || pid < 1 ||
		    pid > PS_PID_MAX)
			return cmd_usage("ps",
					 "'%s': must be a process id, 1 to %d",
					 arg, PS_PID_MAX);
		ps->pids[ps->npids].pid = pid;
	}
	return 0;
}

/* Of the archive, what a query chooses; pids of the command line are terms of it. */
static int ps_past(struct ps *ps)
{
	const struct options *o = ps->o;
	struct ask ask;
	int status = ask_init(&ask, "ps", o);

	for (size_t i = 0; i < o->nargs && !status; i++)
		status =
			ask_term(&ask, o->tree ? "subtree" : "pid", o->args[i]);
	if (!status && o->json)
		status = ps_past_json(&ask);
	else if (!status)
		status = ps_past_read(&ask, ps_line, ps);
	ask_fini(&ask);
	return status;
}

static int ps_ask(struct ps *ps, bool (*line)(void *arg, json_t *o))
{
	struct client_request req = {
		/* Processes of the command line may have ended. */
		.path = ps->o->ps_all || ps->o->nargs ? "/processes?all=1"
						      : "/processes",
	};

	ps->lines = (struct lines){ .line = line, .arg = ps };
	return cmd_request_lines(ps->o, &req, &ps->lines);
}

/* Asks twice for --delay. */
static int ps_live(struct ps *ps)
{
	uint64_t s = ps->o->ps_delay, since = clock_boottime_ns();
	int status;

	if (!s && ps->o->sort == OPTIONS_SORT_CPU_RATE)
		s = PS_DELAY;
	if (!s)
		return ps_ask(ps, ps_line);
	status = ps_ask(ps, ps_line_before);
	if (status)
		return status;
	if (ps->nbefore)
		qsort(ps->before, ps->nbefore, sizeof(*ps->before),
		      ps_compare_before);
	sleep(s);
	ps->interval = clock_boottime_ns() - since;
	return ps_ask(ps, ps_line);
}

/* The figures by which a table is sorted mislead without it. */
static void ps_say_since(const struct ps *ps, bool past)
{
	if (!past && !ps->interval && !ps->o->json && !ps->o->tree &&
	    !ps->o->nargs && ps->o->sort <= OPTIONS_SORT_CPU)
		fprintf(stderr,
			"profd: CPU is since the start of each process "
			"(-d SECONDS sorts by that of the next seconds)\n");
}

int cmd_ps(const struct options *o)
{
	struct ps ps = { .o = o };
	bool past = ask_given(o);
	int status = ps_read_pids(&ps);
	size_t i;

	if (!status && past &&
	    (o->ps_delay || o->sort == OPTIONS_SORT_CPU_RATE))
		status = cmd_usage("ps", "--delay and --sort cpu-rate are for "
					 "the present, not for the archive");
	if (!status)
		status = past ? ps_past(&ps) : ps_live(&ps);
	if (!status && !o->json)
		status = ps_print(&ps);
	if (!status)
		ps_say_since(&ps, past);
	if (!status && !(past && o->json))
		status = ps_missing(&ps);
	for (i = 0; i < ps.n; i++)
		json_decref(ps.rows[i].o);
	strbuf_fini(&ps.cell);
	free(ps.before);
	free(ps.order);
	free(ps.rows);
	free(ps.pids);
	return status;
}
