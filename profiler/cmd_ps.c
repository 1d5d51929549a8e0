// SPDX-License-Identifier: Apache-2.0
/*
 * cmd_ps: profd ps. The processes of a host as a running profd knows them:
 * with their CPU time by the kernel's account, and how much of it samples
 * account for.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/client.h"
#include "profiler/cmd.h"
#include "profiler/lines.h"

#define PS_MAX_DEPTH 64 /* of the tree, as it is indented */

struct ps_row {
	json_t *o;
	struct ps_row *parent;
	struct ps_row *child, *sibling; /* in the order of the table */
};

struct ps {
	struct ps_row *rows;
	size_t n, cap;
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

static void ps_put(const struct ps_row *row, size_t depth, struct strbuf *sb)
{
	const json_t *o = row->o, *cover = json_object_get(o, "coverage");
	struct strbuf text = STRBUF_INIT;

	strbuf_printf(sb, "%7" PRIu64 " %7" PRIu64 " ", lines_int(o, "pid"),
		      lines_int(o, "ppid"));
	lines_clock(&text, o, "start", false);
	strbuf_printf(sb, "%-8s ", strbuf_str(&text));
	strbuf_reset(&text);
	if (lines_has(o, "exit"))
		lines_status(&text, o);
	strbuf_printf(sb, "%-12s ",
		      text.len ? text.data : lines_str(o, "state"));
	strbuf_reset(&text);
	if (lines_has(o, "cpu_ns"))
		lines_duration(&text, lines_int(o, "cpu_ns"));
	strbuf_printf(sb, "%9s %8" PRIu64 " ", strbuf_str(&text),
		      lines_int(o, "samples"));
	strbuf_reset(&text);
	if (cover)
		strbuf_printf(&text, "%.0f%%", 100 * json_real_value(cover));
	strbuf_printf(sb, "%6s  %*s", strbuf_str(&text),
		      (int)(2 * MIN(depth, (size_t)PS_MAX_DEPTH)), "");
	lines_command(sb, o);
	strbuf_puts(sb, "\n");
	if (text.failed)
		sb->failed = true;
	strbuf_fini(&text);
}

/* Parent first, without recursion: a tree may be as deep as there are pids. */
static void ps_put_tree(const struct ps_row *root, struct strbuf *sb)
{
	const struct ps_row *row = root;
	size_t depth = 0;

	for (;;) {
		ps_put(row, depth, sb);
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

static int ps_print(struct ps *ps, bool tree)
{
	struct strbuf sb = STRBUF_INIT;
	size_t i;
	int err;

	if (ps->n)
		qsort(ps->rows, ps->n, sizeof(*ps->rows), ps_compare);
	if (tree)
		ps_link(ps);
	strbuf_puts(&sb, "    PID    PPID START    STATE              CPU  "
			 "SAMPLES  COVER  COMMAND\n");
	for (i = 0; i < ps->n; i++) {
		if (!tree)
			ps_put(&ps->rows[i], 0, &sb);
		else if (!ps->rows[i].parent)
			ps_put_tree(&ps->rows[i], &sb);
	}
	err = sb.failed || fputs(strbuf_str(&sb), stdout) < 0 || fflush(stdout);
	strbuf_fini(&sb);
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
