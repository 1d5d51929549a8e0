// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_ps: profd ps. The processes of a host as a running profd knows them:
 * with their CPU time by the kernel's account, and how much of it samples
 * account for.
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
#include "symbolize/symbolize.h"

#define PS_MAX_DEPTH 64 /* of the tree, as it is indented */
#define PS_USER 8 /* characters */
#define PS_PID_MAX 4194304
/* Names of users that are kept: the database may be on another host. */
#define PS_USERS 64

/* What stands before the command, one column each. */
enum ps_column {
	PS_PID,
	PS_PPID,
	PS_OWNER,
	PS_START,
	PS_STATE,
	PS_CPU,
	PS_SAMPLES,
	PS_COVER,
	PS_WHERE,
	PS_COLUMN_MAX,
};

struct ps_row {
	json_t *o;
	char *user; /* when sorted by it */
	struct ps_row *parent;
	struct ps_row *child, *sibling; /* in the order of the table */
};

struct ps_user {
	uint64_t uid;
	char name[64]; /* "": unused */
};

struct ps {
	const struct options *o;
	struct lines lines;
	uint64_t *pids; /* those asked for, NULL: all */
	bool *found; /* ... of them */
	size_t npids;
	struct ps_row *rows; /* by pid, once all are there */
	struct ps_row **order; /* ... as they are printed */
	size_t n, cap;
	size_t columns; /* 0: as many as it takes */
	size_t widths[PS_COLUMN_MAX]; /* 0: nobody has anything in it */
	struct ps_user users[PS_USERS]; /* by uid */
	struct strbuf cell;
	bool failed; /* no memory */
};

/* Whether a process is one of those asked for. */
static bool ps_is_asked(struct ps *ps, const json_t *o)
{
	uint64_t pid = lines_int(o, "pid");
	bool asked = false;
	size_t i;

	if (!ps->npids)
		return ps->o->ps_all ||
		       !json_is_true(json_object_get(o, "kernel_thread"));
	for (i = 0; i < ps->npids; i++) {
		if (ps->pids[i] != pid)
			continue;
		asked = ps->found[i] = true;
	}
	return asked;
}

static bool ps_add(struct ps *ps, json_t *o)
{
	if (VECTOR_ROOM(ps->rows, ps->n, ps->cap)) {
		ps->failed = true;
		return false;
	}
	ps->rows[ps->n++] = (struct ps_row){ .o = json_incref(o) };
	return true;
}

static bool ps_line(void *arg, json_t *o)
{
	struct ps *ps = arg;

	if (ps->o->json)
		return !ps_is_asked(ps, o) || lines_print_json(&ps->lines);
	/* Below whom is not known yet. */
	if (ps->npids && ps->o->tree)
		return ps_add(ps, o);
	return !ps_is_asked(ps, o) || ps_add(ps, o);
}

static int ps_compare(const void *a, const void *b)
{
	const struct ps_row *x = a, *y = b;
	uint64_t px = lines_int(x->o, "pid"), py = lines_int(y->o, "pid");

	if (px != py)
		return px < py ? -1 : 1;
	return strcmp(lines_str(x->o, "start"), lines_str(y->o, "start"));
}

/* By pid, of which there may be several: the one with that process id. */
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

/* Children end up in the order asked for: they are put in from its end. */
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

/*
 * The reader of executables runs under a user id of its own, made from its pid,
 * which no database has.
 */
static bool ps_is_profd(const json_t *o, uint64_t uid)
{
	return uid == SYMBOLIZER_UID_BASE + lines_int(o, "pid");
}

static const char *ps_user_name(struct ps *ps, const json_t *o)
{
	uint64_t uid = lines_int(o, "uid");
	struct ps_user *u = &ps->users[uid % PS_USERS];
	struct passwd *pw;

	if (ps_is_profd(o, uid))
		return "profd";
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

/* Of a user without a name the number; cut as ps(1) does. */
static void ps_user(struct ps *ps, const json_t *o, struct strbuf *sb)
{
	const char *name;

	if (!lines_has(o, "uid"))
		return;
	name = ps_user_name(ps, o);
	lines_text(sb, name);
	if (lines_width(name) <= PS_USER)
		return;
	lines_cut(sb, 0, PS_USER - 1);
	strbuf_puts(sb, "+");
}

/* A time of today, or else a day. */
static void ps_start(struct ps *ps, const json_t *o, struct strbuf *sb)
{
	time_t t = lines_time(o, "start");
	char text[32];
	struct tm tm;

	if (!t)
		return;
	localtime_r(&t, &tm);
	strftime(text, sizeof(text), lines_is_today(t) ? "%T" : "%F", &tm);
	strbuf_puts(sb, text);
}

static void ps_state(struct ps *ps, const json_t *o, struct strbuf *sb)
{
	if (lines_has(o, "exit_code"))
		strbuf_puts(sb, "exit ");
	if (lines_has(o, "exit_code") || lines_has(o, "signal"))
		lines_status(sb, o);
	else
		lines_text(sb, lines_str(o, "state"));
}

static void ps_cpu(struct ps *ps, const json_t *o, struct strbuf *sb)
{
	if (!lines_has(o, "cpu_ns"))
		return;
	/* Some of it is still to come. */
	if (!strcmp(lines_str(o, "cpu"), "provisional"))
		strbuf_puts(sb, "~");
	lines_duration(sb, lines_int(o, "cpu_ns"));
}

static void ps_pid(struct ps *ps, const json_t *o, struct strbuf *sb)
{
	strbuf_printf(sb, "%" PRIu64, lines_int(o, "pid"));
}

static void ps_ppid(struct ps *ps, const json_t *o, struct strbuf *sb)
{
	strbuf_printf(sb, "%" PRIu64, lines_int(o, "ppid"));
}

static void ps_samples(struct ps *ps, const json_t *o, struct strbuf *sb)
{
	strbuf_printf(sb, "%" PRIu64, lines_int(o, "samples"));
}

static void ps_cover(struct ps *ps, const json_t *o, struct strbuf *sb)
{
	lines_coverage(sb, o);
}

static void ps_where(struct ps *ps, const json_t *o, struct strbuf *sb)
{
	lines_where(sb, o);
}

static const struct {
	const char *title;
	void (*put)(struct ps *ps, const json_t *o, struct strbuf *sb);
	size_t most; /* characters; 0: whole */
	bool right; /* numbers are */
} ps_table[] = {
	[PS_PID] = { "PID", ps_pid, 0, true },
	[PS_PPID] = { "PPID", ps_ppid, 0, true },
	[PS_OWNER] = { "USER", ps_user, PS_USER, false },
	[PS_START] = { "START", ps_start, 0, false },
	[PS_STATE] = { "STATE", ps_state, 12, false },
	[PS_CPU] = { "CPU", ps_cpu, 0, true },
	[PS_SAMPLES] = { "SAMPLES", ps_samples, 0, true },
	[PS_COVER] = { "COVER", ps_cover, 0, true },
	[PS_WHERE] = { "WHERE", ps_where, 28, false },
};

/* The cell, in its column, which may be left out. */
static void ps_cell(struct ps *ps, enum ps_column c, struct strbuf *out)
{
	int pad, width = (int)ps->widths[c];
	bool right = ps_table[c].right;

	if (width && strbuf_str(&ps->cell)) {
		lines_cut(&ps->cell, 0, width);
		pad = width - (int)lines_width(ps->cell.data);
		strbuf_printf(out, "%*s%s%*s ", right ? pad : 0, "",
			      ps->cell.data, right ? 0 : pad, "");
	}
	strbuf_reset(&ps->cell);
}

static void ps_put(struct ps *ps, const struct ps_row *row, size_t depth,
		   struct strbuf *out)
{
	size_t start = out->len;
	enum ps_column c;

	for (c = 0; c < PS_COLUMN_MAX; c++) {
		ps_table[c].put(ps, row->o, &ps->cell);
		ps_cell(ps, c, out);
	}
	strbuf_printf(out, "%*s", (int)(2 * MIN(depth, (size_t)PS_MAX_DEPTH)),
		      "");
	lines_command(out, row->o);
	if (ps->columns)
		lines_cut(out, start, ps->columns);
	strbuf_puts(out, "\n");
}

/* Parent first, without recursion: a tree may be as deep as there are pids. */
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

/*
 * Each column is as wide as what stands in it: the command, which is read first,
 * has what is left of the terminal.
 */
static void ps_measure(struct ps *ps)
{
	size_t i, width, most;
	enum ps_column c;

	for (c = 0; c < PS_COLUMN_MAX; c++) {
		for (i = width = 0; i < ps->n; i++) {
			ps_table[c].put(ps, ps->rows[i].o, &ps->cell);
			width = MAX(width, lines_width(strbuf_str(&ps->cell)));
			strbuf_reset(&ps->cell);
		}
		most = ps_table[c].most ? ps_table[c].most : width;
		if (width || c == PS_PID)
			ps->widths[c] = MAX(MIN(width, most),
					    strlen(ps_table[c].title));
	}
}

/* Columns of the terminal; 0: it is none, and lines are whole. */
static size_t ps_columns(void)
{
	struct winsize ws;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws))
		return 0;
	return ws.ws_col;
}

/* --- the order ------------------------------------------------------------ */

/* The greatest first. */
static int ps_most(const struct ps_row *x, const struct ps_row *y,
		   const char *key)
{
	uint64_t a = lines_int(x->o, key), b = lines_int(y->o, key);

	return a == b ? 0 : a > b ? -1 : 1;
}

static int ps_by_cpu(const struct ps_row *x, const struct ps_row *y)
{
	return ps_most(x, y, "cpu_ns");
}

static int ps_by_samples(const struct ps_row *x, const struct ps_row *y)
{
	return ps_most(x, y, "samples");
}

/* The youngest first. */
static int ps_by_start(const struct ps_row *x, const struct ps_row *y)
{
	return ps_most(x, y, "start_boot_ns");
}

static int ps_by_user(const struct ps_row *x, const struct ps_row *y)
{
	return strcmp(x->user, y->user);
}

static int ps_by_name(const struct ps_row *x, const struct ps_row *y)
{
	return strcmp(lines_str(x->o, "comm"), lines_str(y->o, "comm"));
}

static int (*const ps_orders[])(const struct ps_row *x,
				const struct ps_row *y) = {
	[OPTIONS_SORT_CPU] = ps_by_cpu,
	[OPTIONS_SORT_SAMPLES] = ps_by_samples,
	[OPTIONS_SORT_START] = ps_by_start,
	[OPTIONS_SORT_USER] = ps_by_user,
	[OPTIONS_SORT_NAME] = ps_by_name,
};

/* Of equal ones the lower pid comes first. */
static int ps_compare_rows(const void *a, const void *b, void *arg)
{
	int (*order)(const struct ps_row *x, const struct ps_row *y) = arg;
	const struct ps_row *x = *(struct ps_row *const *)a;
	const struct ps_row *y = *(struct ps_row *const *)b;
	int c = order ? order(x, y) : 0;

	return c ? c : ps_compare(x, y);
}

static int ps_sort(struct ps *ps)
{
	enum options_sort key = ps->o->sort;
	size_t i;

	if (key == OPTIONS_SORT_NONE)
		key = ps->o->tree ? OPTIONS_SORT_PID : OPTIONS_SORT_CPU;
	if (ps->n)
		qsort(ps->rows, ps->n, sizeof(*ps->rows), ps_compare);
	ps->order = calloc(ps->n + 1, sizeof(struct ps_row *));
	if (!ps->order)
		return -ENOMEM;
	for (i = 0; i < ps->n; i++) {
		ps->order[i] = &ps->rows[i];
		if (key != OPTIONS_SORT_USER)
			continue;
		ps->rows[i].user = strdup(ps_user_name(ps, ps->rows[i].o));
		if (!ps->rows[i].user)
			return -ENOMEM;
	}
	if (ps->n && key != OPTIONS_SORT_PID)
		qsort_r(ps->order, ps->n, sizeof(struct ps_row *),
			ps_compare_rows, ps_orders[key]);
	return 0;
}

/* --- in all --------------------------------------------------------------- */

static void ps_heading(struct ps *ps, struct strbuf *sb)
{
	size_t start = sb->len;
	enum ps_column c;

	for (c = 0; c < PS_COLUMN_MAX; c++) {
		strbuf_puts(&ps->cell, ps_table[c].title);
		ps_cell(ps, c, sb);
	}
	strbuf_puts(sb, "COMMAND");
	if (ps->columns)
		lines_cut(sb, start, ps->columns);
	strbuf_puts(sb, "\n");
}

/* One that was asked for, or that nobody is above of; with all below it. */
static void ps_put_root(struct ps *ps, struct ps_row *row, struct strbuf *sb)
{
	const struct ps_row *up;

	if (!ps->npids && row->parent)
		return;
	if (ps->npids && !ps_is_asked(ps, row->o))
		return;
	/* It is printed below that one. */
	for (up = row->parent; ps->npids && up; up = up->parent)
		if (ps_is_asked(ps, up->o))
			return;
	ps_put_tree(ps, row, sb);
}

static int ps_print(struct ps *ps)
{
	struct strbuf sb = STRBUF_INIT;
	size_t i;
	int err;

	if (ps_sort(ps))
		return cmd_fail("%s", strerror(ENOMEM));
	if (ps->o->tree)
		ps_link(ps);
	ps->columns = ps->o->wide ? 0 : ps_columns();
	ps_measure(ps);
	ps_heading(ps, &sb);
	for (i = 0; i < ps->n; i++) {
		if (ps->o->tree)
			ps_put_root(ps, ps->order[i], &sb);
		else
			ps_put(ps, ps->order[i], 0, &sb);
	}
	err = sb.failed || ps->cell.failed ||
	      fputs(strbuf_str(&sb), stdout) < 0;
	strbuf_fini(&sb);
	return err ? cmd_fail("standard output cannot be written") : 0;
}

/* Of those asked for, who is not there: one line, and an exit status. */
static int ps_missing(const struct ps *ps)
{
	struct strbuf sb = STRBUF_INIT;
	size_t i;
	int status;

	for (i = 0; i < ps->npids; i++)
		if (!ps->found[i])
			strbuf_printf(&sb, "%s %" PRIu64, sb.len ? "," : "",
				      ps->pids[i]);
	status = sb.len ? cmd_fail("no such process:%s", sb.data) : 0;
	strbuf_fini(&sb);
	return status;
}

static int ps_finish(struct ps *ps, int err, const char *msg)
{
	int status = 0;

	if (!lines_end(&ps->lines) && !err)
		return cmd_fail("%s: %s", ps->o->server, ps->lines.bad);
	if (err == -ECANCELED)
		return ps->lines.bad ? cmd_fail("%s: %s", ps->o->server,
						ps->lines.bad)
		       : ps->failed  ? cmd_fail("%s", strerror(ENOMEM))
				     : cmd_fail("standard output cannot be "
						 "written");
	if (err)
		return cmd_fail("%s", msg);
	cmd_skipped(&ps->lines);
	if (!ps->o->json)
		status = ps_print(ps);
	if (!status && fflush(stdout))
		status = cmd_fail("standard output cannot be written");
	return status ? status : ps_missing(ps);
}

/* The arguments, which are process ids; an exit status. */
static int ps_read_pids(struct ps *ps)
{
	const struct options *o = ps->o;
	unsigned long pid;
	char *end;
	size_t i;

	ps->pids = calloc(o->nargs + 1, sizeof(*ps->pids));
	ps->found = calloc(o->nargs + 1, sizeof(*ps->found));
	if (!ps->pids || !ps->found)
		return cmd_fail("%s", strerror(ENOMEM));
	for (i = 0; i < o->nargs; i++) {
		pid = strtoul(o->args[i], &end, 10);
		if (*end || o->args[i][0] < '0' || o->args[i][0] > '9' ||
		    pid < 1 || pid > PS_PID_MAX) {
			fprintf(stderr,
				"profd ps: '%s': must be a process id, 1 to "
				"%d (see profd ps --help)\n",
				o->args[i], PS_PID_MAX);
			return OPTIONS_USAGE;
		}
		ps->pids[ps->npids++] = pid;
	}
	return 0;
}

int cmd_ps(const struct options *o)
{
	struct ps ps = { .o = o, .lines = { .line = ps_line, .arg = &ps } };
	struct client_request req = {
		.server = o->server,
		/* Who is named is wanted dead or alive. */
		.path = o->ps_all || o->nargs ? "/processes?all=1"
					      : "/processes",
		.body = lines_body,
		.arg = &ps.lines,
	};
	char msg[768] = "";
	int status, err;
	size_t i;

	status = ps_read_pids(&ps);
	if (!status) {
		err = client_get(&req, msg, sizeof(msg));
		status = ps_finish(&ps, err, msg);
	}
	for (i = 0; i < ps.n; i++) {
		json_decref(ps.rows[i].o);
		free(ps.rows[i].user);
	}
	strbuf_fini(&ps.cell);
	free(ps.order);
	free(ps.rows);
	free(ps.pids);
	free(ps.found);
	return status;
}
