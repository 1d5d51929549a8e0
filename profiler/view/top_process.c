// SPDX-License-Identifier: Apache-2.0
/*
 * top_process: rows that are processes, with the samples of all their descendants and
 * what a running profd knows of them; see profiler/view/top.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profiler/cmd/client.h"
#include "profiler/cmd/lines.h"
#include "profiler/view/top_ended.h"

#define TOP_COMMAND 512 /* characters that are kept */
#define TOP_PATIENCE_NS (3 * CLOCK_NSEC_PER_SEC) /* for the answer */

static const struct top_column top_process_columns[] = {
	{ "PID", 7, false, 0 },	      { "FLAT", 8, false, 30 },
	{ "FLAT%", 6, false, 60 },    { "CUM", 8, false, 40 },
	{ "CUM%", 6, false, 70 },     { "STATE", 9, true, 50 },
	{ "CPU TIME", 9, false, 95 }, { "COVER", 8, false, 80 },
};

bool top_is_process(const struct top *t)
{
	return t->processes.n && !strcmp(t->by, "process");
}

/* --- the answer ------------------------------------------------------------------- */

struct top_answer {
	struct lines lines;
	struct top_processes *ps;
	uint64_t begin;
};

/* Moves a text into 'out', cut to its size; it is empty then. */
static void top_store(struct strbuf *sb, char *out, size_t size)
{
	size_t n = MIN(sb->len, size - 1);

	/* Not in the middle of a character. */
	while (n && n < sb->len && (sb->data[n] & 0xc0) == 0x80)
		n--;
	if (n)
		memcpy(out, sb->data, n);
	out[n] = '\0';
	strbuf_reset(sb);
}

static void top_state(struct strbuf *sb, const json_t *o)
{
	if (lines_has(o, "exit_code"))
		strbuf_puts(sb, "exit ");
	if (lines_has(o, "exit_code") || lines_has(o, "signal"))
		lines_status(sb, o);
	else
		lines_text(sb, lines_str(o, "state"));
}

bool top_process_read(struct top_process *p, const json_t *o)
{
	struct strbuf sb = STRBUF_INIT;

	memset(p, 0, sizeof(*p));
	lines_text(&sb, lines_str(o, "process"));
	top_store(&sb, p->id, sizeof(p->id));
	lines_text(&sb, lines_str(o, "parent"));
	top_store(&sb, p->parent_id, sizeof(p->parent_id));
	snprintf(p->pid, sizeof(p->pid), "%" PRIu32,
		 (uint32_t)lines_int(o, "pid"));
	top_state(&sb, o);
	top_store(&sb, p->state, sizeof(p->state));
	if (lines_has(o, "cpu_ns"))
		lines_duration(&sb, lines_int(o, "cpu_ns"));
	top_store(&sb, p->cpu, sizeof(p->cpu));
	lines_coverage(&sb, o);
	top_store(&sb, p->cover, sizeof(p->cover));
	lines_command(&sb, o);
	lines_cut(&sb, 0, TOP_COMMAND);
	p->command = sb.failed ? NULL : strbuf_steal(&sb);
	strbuf_fini(&sb);
	return p->command;
}

static bool top_answer_line(void *arg, json_t *o)
{
	struct top_answer *a = arg;
	struct top_processes *ps = a->ps;

	if (VECTOR_ROOM(ps->items, ps->n, ps->cap) ||
	    !top_process_read(&ps->items[ps->n], o))
		return false;
	ps->n++;
	return true;
}

static bool top_answer_body(void *arg, const void *data, size_t len)
{
	struct top_answer *a = arg;

	return lines_body(&a->lines, data, len);
}

static bool top_answer_late(void *arg)
{
	const struct top_answer *a = arg;

	return clock_awake_ns() - a->begin > TOP_PATIENCE_NS;
}

static int top_process_compare(const void *a, const void *b)
{
	const struct top_process *x = a, *y = b;

	return strcmp(x->id, y->id);
}

/* A process that is kept after its end is there twice. */
static void top_processes_sort(struct top_processes *ps)
{
	size_t n = 0;

	if (ps->n)
		qsort(ps->items, ps->n, sizeof(*ps->items),
		      top_process_compare);
	for (size_t i = 0; i < ps->n; i++) {
		if (n && !strcmp(ps->items[n - 1].id, ps->items[i].id))
			free(ps->items[i].command);
		else
			ps->items[n++] = ps->items[i];
	}
	ps->n = n;
}

void top_processes_get(struct top *t)
{
	struct top_answer a = {
		.lines = { .line = top_answer_line },
		.ps = &t->processes,
		.begin = clock_awake_ns(),
	};
	struct client_request req = {
		.path = "/processes?all=1",
		.body = top_answer_body,
		.cancelled = top_answer_late,
		.arg = &a,
	};
	char msg[768];

	a.lines.arg = &a;
	top_processes_fini(&t->processes);
	cmd_use_server(t->o, &req);
	/* Over TCP without a token, and of other servers, there are none. */
	if (client_get(&req, msg, sizeof(msg)) || a.lines.bad)
		top_processes_fini(&t->processes);
	lines_end(&a.lines);
	if (t->processes.n)
		top_ended_add(t->ended, &t->processes);
	top_processes_sort(&t->processes);
}

void top_processes_fini(struct top_processes *ps)
{
	for (size_t i = 0; i < ps->n; i++)
		free(ps->items[i].command);
	free(ps->items);
	*ps = (struct top_processes){ .items = NULL };
}

/* --- sums ------------------------------------------------------------------------- */

static struct top_process *top_process_find(const struct top_processes *ps,
					    const char *id)
{
	size_t i;

	VECTOR_SEARCH(i, ps->n, strcmp(ps->items[i].id, id) < 0);
	return i < ps->n && !strcmp(ps->items[i].id, id) ? &ps->items[i] : NULL;
}

static int64_t top_add(int64_t a, int64_t b)
{
	int64_t sum;

	if (!__builtin_add_overflow(a, b, &sum))
		return sum;
	return a < 0 ? INT64_MIN : INT64_MAX;
}

/*
 * Adds each process to its parent once all its children are in it. Processes that a
 * server sends as a circle have no sums.
 */
static void top_processes_sum(struct top_processes *ps)
{
	struct top_process *p;

	for (size_t i = 0; i < ps->n; i++) {
		p = &ps->items[i];
		p->parent = top_process_find(ps, p->parent_id);
		if (p->parent)
			p->parent->children++;
	}
	for (size_t i = 0; i < ps->n; i++) {
		/* From a leaf up to a process that has other children to come. */
		for (p = &ps->items[i]; p && !p->children; p = p->parent) {
			p->cum = top_add(p->cum, p->flat);
			p->children = SIZE_MAX; /* done */
			if (!p->parent)
				break;
			p->parent->cum = top_add(p->parent->cum, p->cum);
			p->parent->children--;
		}
	}
}

/* --- rows ------------------------------------------------------------------------- */

/* A row of a process that is known, or of one that is not. */
struct top_source {
	const struct top_process *p;
	const struct reporter_query_row *row;
	int64_t flat, cum;
};

static int top_source_compare(const void *a, const void *b, void *arg)
{
	const struct top_source *x = a, *y = b;
	const bool *cum = arg;
	int64_t vx = *cum ? x->cum : x->flat, vy = *cum ? y->cum : y->flat;

	if (vx != vy)
		return vx > vy ? -1 : 1;
	if (x->cum != y->cum)
		return x->cum > y->cum ? -1 : 1;
	return strcmp(x->p ? x->p->id : x->row->name,
		      y->p ? y->p->id : y->row->name);
}

static const char *top_ended_name(struct top_table *table,
				  const struct reporter_query_row *row)
{
	struct strbuf sb = STRBUF_INIT;
	const char *name = *row->comm ? row->comm : row->name;

	strbuf_puts(&sb, "[");
	text_add(&sb, name, strlen(name));
	strbuf_puts(&sb, "]");
	return top_text(table, &sb);
}

static const char *top_ended_pid(struct top_table *table,
				 const struct reporter_query_row *row)
{
	struct strbuf sb = STRBUF_INIT;

	text_add(&sb, row->name, strcspn(row->name, "-"));
	return top_text(table, &sb);
}

static int top_process_row(struct top_table *table, const struct top_source *s)
{
	struct top_row *row = &table->items[table->n++];
	const struct top_process *p = s->p;

	row->cells[0] = p ? p->pid : top_ended_pid(table, s->row);
	row->cells[1] = top_cell(table, TOP_VALUE, s->flat);
	row->cells[2] = top_cell(table, TOP_PERCENT, s->flat);
	row->cells[3] = top_cell(table, TOP_VALUE, s->cum);
	row->cells[4] = top_cell(table, TOP_PERCENT, s->cum);
	row->cells[5] = p ? p->state : "";
	row->cells[6] = p ? p->cpu : "";
	row->cells[7] = p ? p->cover : "";
	row->name = p ? p->command : top_ended_name(table, s->row);
	row->value = p ? p->id : s->row->name;
	return row->cells[0] && row->cells[1] && row->cells[2] &&
			       row->cells[3] && row->cells[4] && row->name
		       ? 0
		       : -ENOMEM;
}

/* Those that have samples, or descendants with some; and those that are not known. */
static size_t top_sources(struct top *t, struct top_source *out)
{
	struct top_processes *ps = &t->processes;
	struct top_process *p;
	size_t n = 0;

	for (size_t i = 0; i < ps->n; i++) {
		p = &ps->items[i];
		p->parent = NULL;
		p->children = 0;
		p->flat = p->cum = 0;
	}
	for (size_t i = 0; i < t->table.rows.n; i++) {
		const struct reporter_query_row *row = &t->table.rows.items[i];

		p = top_process_find(ps, row->name);
		if (p)
			p->flat = row->flat;
		else
			out[n++] = (struct top_source){ NULL, row, row->flat,
							row->flat };
	}
	top_processes_sum(ps);
	for (size_t i = 0; i < ps->n; i++) {
		p = &ps->items[i];
		if (p->flat || p->cum)
			out[n++] =
				(struct top_source){ p, NULL, p->flat, p->cum };
	}
	return n;
}

int top_processes_make(struct top *t)
{
	size_t n, most = t->table.rows.n + t->processes.n + 1;
	struct top_source *sources = calloc(most, sizeof(*sources));
	struct top_table *table = &t->table;
	int err = 0;

	table->columns = top_process_columns;
	table->ncolumns = ARRAY_SIZE(top_process_columns);
	table->items = calloc(most, sizeof(*table->items));
	if (!sources || !table->items)
		err = -ENOMEM;
	if (!err) {
		n = top_sources(t, sources);
		if (n)
			qsort_r(sources, n, sizeof(*sources),
				top_source_compare, &t->cum);
		for (size_t i = 0; i < n && !err; i++)
			err = top_process_row(table, &sources[i]);
	}
	free(sources);
	return err;
}
