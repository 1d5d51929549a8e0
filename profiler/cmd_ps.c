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

#include "profiler/client.h"
#include "profiler/cmd.h"
#include "profiler/lines.h"

#define PS_MAX_DEPTH 64 /* of the tree, as it is indented */
#define PS_USER 8 /* characters */
#define PS_WHERE 28

struct ps_row {
	json_t *o;
	struct ps_row *parent;
	struct ps_row *child, *sibling; /* in the order of the table */
};

struct ps {
	struct ps_row *rows;
	size_t n, cap;
	time_t now;
	size_t columns; /* 0: as many as it takes */
	size_t where; /* width of that column */
	uint64_t uid;
	char user[64]; /* name of 'uid' */
	struct strbuf cell;
};

static bool ps_line(void *arg, json_t *o)
{
	struct ps *ps = arg;
	struct ps_row *rows;
	size_t cap;

	if (ps->n == ps->cap) {
		cap = ps->cap ? 2 * ps->cap : 256;
		rows = realloc(ps->rows, cap * sizeof(*rows));
		if (!rows)
			return false;
		ps->rows = rows;
		ps->cap = cap;
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

/* By pid, of which there may be several: the one with that process id. */
static struct ps_row *ps_find(struct ps *ps, uint64_t pid, const char *process)
{
	struct ps_row *last = NULL;
	size_t lo = 0, hi = ps->n, mid;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		if (lines_int(ps->rows[mid].o, "pid") < pid)
			lo = mid + 1;
		else
			hi = mid;
	}
	for (; lo < ps->n && lines_int(ps->rows[lo].o, "pid") == pid; lo++) {
		last = &ps->rows[lo];
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

/* Children end up in the order of the table: they are put in from its end. */
static void ps_link(struct ps *ps)
{
	struct ps_row *row, *up;
	size_t i;

	for (i = ps->n; i-- > 0;) {
		row = &ps->rows[i];
		up = ps_find(ps, lines_int(row->o, "ppid"),
			     lines_str(row->o, "parent"));
		if (!up || ps_is_above(row, up))
			continue;
		row->parent = up;
		row->sibling = up->child;
		up->child = row;
	}
}

/* The cell as a column of so many characters; negative: to the left. */
static void ps_cell(struct ps *ps, struct strbuf *out, int width)
{
	const char *s = strbuf_str(&ps->cell);
	int pad, most = abs(width);

	if (!s)
		return;
	if (width < 0)
		lines_cut(&ps->cell, 0, most);
	pad = most - (int)lines_width(s);
	strbuf_printf(out, "%*s%s%*s ", width > 0 ? MAX(pad, 0) : 0, "", s,
		      width < 0 ? MAX(pad, 0) : 0, "");
	strbuf_reset(&ps->cell);
}

/* Of a user without a name the number; cut as ps(1) does. */
static void ps_user(struct ps *ps, const json_t *o, struct strbuf *sb)
{
	uint64_t uid = lines_int(o, "uid");
	struct passwd *pw;

	if (!lines_has(o, "uid"))
		return;
	if (!ps->user[0] || ps->uid != uid) {
		pw = getpwuid(uid);
		if (pw && strlen(pw->pw_name) > PS_USER)
			snprintf(ps->user, sizeof(ps->user), "%.*s+",
				 PS_USER - 1, pw->pw_name);
		else if (pw)
			snprintf(ps->user, sizeof(ps->user), "%s", pw->pw_name);
		else
			snprintf(ps->user, sizeof(ps->user), "%" PRIu64, uid);
		ps->uid = uid;
	}
	lines_text(sb, ps->user);
}

/* A time of today, or else a day. */
static void ps_start(const struct ps *ps, const json_t *o, struct strbuf *sb)
{
	time_t t = lines_time(o, "start");
	char text[32];
	struct tm tm;

	if (!t)
		return;
	localtime_r(&t, &tm);
	strftime(text, sizeof(text), ps->now - t < 24 * 3600 ? "%T" : "%b %e",
		 &tm);
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

static void ps_put(struct ps *ps, const struct ps_row *row, size_t depth,
		   struct strbuf *out)
{
	const json_t *o = row->o;
	struct strbuf *sb = &ps->cell;
	size_t start = out->len;

	strbuf_printf(out, "%7" PRIu64 " %7" PRIu64 " ", lines_int(o, "pid"),
		      lines_int(o, "ppid"));
	ps_user(ps, o, sb);
	ps_cell(ps, out, -PS_USER);
	ps_start(ps, o, sb);
	ps_cell(ps, out, -8);
	ps_state(ps, o, sb);
	ps_cell(ps, out, -12);
	ps_cpu(ps, o, sb);
	ps_cell(ps, out, 9);
	strbuf_printf(sb, "%" PRIu64, lines_int(o, "samples"));
	ps_cell(ps, out, 7);
	lines_coverage(sb, o);
	ps_cell(ps, out, 10);
	if (ps->where) {
		lines_where(sb, o);
		ps_cell(ps, out, -(int)ps->where);
	}
	strbuf_printf(out, "%*s", (int)(2 * MIN(depth, (size_t)PS_MAX_DEPTH)),
		      "");
	lines_command(out, o);
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

/* The widest place anybody is in; 0: nobody is in any. */
static size_t ps_where_width(struct ps *ps)
{
	size_t i, width = 0;

	for (i = 0; i < ps->n; i++) {
		lines_where(&ps->cell, ps->rows[i].o);
		width = MAX(width, lines_width(strbuf_str(&ps->cell)));
		strbuf_reset(&ps->cell);
	}
	return width ? MIN(MAX(width, strlen("WHERE")), (size_t)PS_WHERE) : 0;
}

/* Columns of the terminal; 0: it is none, and lines are whole. */
static size_t ps_columns(void)
{
	struct winsize ws;

	if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &ws))
		return 0;
	return ws.ws_col;
}

static int ps_print(struct ps *ps, bool tree)
{
	struct strbuf sb = STRBUF_INIT;
	size_t i;
	int err;

	if (ps->n)
		qsort(ps->rows, ps->n, sizeof(*ps->rows), ps_compare);
	if (tree)
		ps_link(ps);
	ps->now = time(NULL);
	ps->columns = ps_columns();
	ps->where = ps_where_width(ps);
	strbuf_puts(&sb, "    PID    PPID USER     START    STATE              "
			 "CPU SAMPLES      COVER ");
	if (ps->where)
		strbuf_printf(&sb, "%-*s ", (int)ps->where, "WHERE");
	strbuf_puts(&sb, "COMMAND\n");
	for (i = 0; i < ps->n; i++) {
		if (!tree)
			ps_put(ps, &ps->rows[i], 0, &sb);
		else if (!ps->rows[i].parent)
			ps_put_tree(ps, &ps->rows[i], &sb);
	}
	err = sb.failed || ps->cell.failed ||
	      fputs(strbuf_str(&sb), stdout) < 0 || fflush(stdout);
	strbuf_fini(&sb);
	strbuf_fini(&ps->cell);
	return err ? cmd_fail("standard output cannot be written") : 0;
}

static bool ps_raw(void *arg, const void *data, size_t len)
{
	return fwrite(data, 1, len, stdout) == len;
}

static int ps_finish(const struct options *o, struct ps *ps,
		     struct lines *lines, int err, const char *msg)
{
	if (!lines_end(lines) || lines->bad)
		return cmd_fail("%s: %s", o->server, lines->bad);
	if (err == -ECANCELED)
		return cmd_fail("%s", o->json ? "standard output cannot be "
						"written"
					      : "out of memory");
	if (err)
		return cmd_fail("%s", msg);
	if (!o->json)
		return ps_print(ps, o->tree);
	return fflush(stdout) ? cmd_fail("standard output cannot be written")
			      : 0;
}

int cmd_ps(const struct options *o)
{
	struct ps ps = { .rows = NULL };
	struct lines lines = { .line = ps_line, .arg = &ps };
	struct client_request req = {
		.server = o->server,
		.path = o->all ? "/processes?all=1" : "/processes",
		.body = o->json ? ps_raw : lines_body,
		.arg = &lines,
	};
	char msg[768] = "";
	int status, err;
	size_t i;

	err = client_get(&req, msg, sizeof(msg));
	status = ps_finish(o, &ps, &lines, err, msg);
	for (i = 0; i < ps.n; i++)
		json_decref(ps.rows[i].o);
	free(ps.rows);
	return status;
}
