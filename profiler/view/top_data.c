// SPDX-License-Identifier: Apache-2.0
/* top_data: the table of a profile, as text; see profiler/view/top.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "profiler/view/top_ended.h"
#include "reporter/reporter.h"

#define TOP_LEAST 0.005 /* share of the total that a row needs, as of report */

static const struct top_column top_columns[] = {
	{ "FLAT", 10, false, 0 }, { "FLAT%", 6, false, 40 },
	{ "SUM%", 6, false, 80 }, { "CUM", 10, false, 50 },
	{ "CUM%", 6, false, 60 },
};

/* A label has no callers. */
static const struct top_column top_label_columns[] = {
	{ "CPU", 10, false, 0 },
	{ "CPU%", 6, false, 30 },
	{ "SUM%", 6, false, 60 },
};

const char *top_text(struct top_table *table, struct strbuf *sb)
{
	const char *text = strbuf_str(sb), *copy = NULL;

	if (text)
		copy = arena_memdup(&table->arena, text, sb->len + 1);
	strbuf_fini(sb);
	return copy ? copy : text && !*text ? "" : NULL;
}

int top_take(struct top *t, struct reporter_query *q)
{
	void *data;
	size_t len;
	int err = reporter_query_data(q, REPORTER_QUERY_PPROF, REPORTER_RAW,
				      &data, &len);

	reporter_query_free(q);
	if (err)
		return err;
	free(t->profile);
	t->profile = data;
	t->len = len;
	return 0;
}

/* --- focus ------------------------------------------------------------------------ */

/* A pattern that matches this text only; a row "[no LABEL]" is of all others. */
static char *top_pattern(const char *key, const char *value)
{
	struct strbuf sb = STRBUF_INIT;

	strbuf_printf(&sb, "[no %s]", key);
	if (!sb.failed && !strcmp(sb.data, value)) {
		strbuf_reset(&sb);
		strbuf_puts(&sb, "!*");
		return strbuf_steal(&sb);
	}
	strbuf_reset(&sb);
	for (; *value; value++) {
		strbuf_puts(&sb, strchr("*?\\!", *value) ? "\\" : "");
		strbuf_add(&sb, value, 1);
	}
	return sb.failed ? NULL : strbuf_steal(&sb);
}

static void top_focus_fini(struct top_focus *f)
{
	reporter_query_terms_fini(&f->terms);
	free(f->value);
}

int top_focus(struct top *t, const char *value)
{
	struct top_focus *f = &t->focus[t->nfocus];
	char *pattern;
	const char *want;
	int err = -ENOMEM;

	if (t->nfocus == TOP_FOCUS_MAX)
		return -E2BIG;
	*f = (struct top_focus){ .value = strdup(value), .by = t->by };
	pattern = top_pattern(t->by, value);
	if (f->value && pattern)
		err = reporter_query_terms_parse(&f->terms, t->by, pattern,
						 &want);
	if (!err && reporter_query_terms_history(&f->terms))
		err = -ENOENT;
	free(pattern);
	if (err) {
		top_focus_fini(f);
		return err;
	}
	t->nfocus++;
	t->by = "function";
	return 0;
}

bool top_unfocus(struct top *t)
{
	if (!t->nfocus)
		return false;
	t->by = t->focus[--t->nfocus].by;
	top_focus_fini(&t->focus[t->nfocus]);
	return true;
}

/* The samples of '*qp', or of t->profile, that are in 'f'. */
static int top_narrow(struct top *t, const struct top_focus *f,
		      struct reporter_query **qp)
{
	struct reporter_query_opts opts = { .terms = f ? &f->terms : NULL };
	struct reporter_query *q = NULL;
	const char *what;
	void *data = NULL;
	size_t len = 0;
	int err = 0;

	if (*qp)
		err = reporter_query_data(*qp, REPORTER_QUERY_PPROF,
					  REPORTER_RAW, &data, &len);
	if (!err)
		err = reporter_query_new(&q, &opts);
	if (!err)
		err = reporter_query_add(q, data ? data : t->profile,
					 data ? len : t->len, false, &what);
	free(data);
	reporter_query_free(*qp);
	*qp = q;
	return err;
}

/* Each focus in a query of its own: in one, values of a label are alternatives. */
static int top_query(struct top *t, struct reporter_query **qp)
{
	int err = t->nfocus ? 0 : top_narrow(t, NULL, qp);

	for (size_t i = 0; i < t->nfocus && !err; i++)
		err = top_narrow(t, &t->focus[i], qp);
	if (!err)
		err = reporter_query_select(*qp, t->o->sample_type);
	if (!err && !t->o->show_all)
		err = reporter_query_hide_idle(*qp);
	return err;
}

/* --- rows ------------------------------------------------------------------------- */

static bool top_is_label(const char *by)
{
	return strcmp(by, "function") != 0 && strcmp(by, "line") != 0 &&
	       strcmp(by, "file") != 0;
}

static const char *top_value(struct top_table *table, int64_t v)
{
	struct strbuf sb = STRBUF_INIT;

	reporter_query_rows_value(&table->rows, v, &sb);
	return top_text(table, &sb);
}

static const char *top_percent(struct top_table *table, int64_t v)
{
	struct strbuf sb = STRBUF_INIT;

	reporter_query_rows_percent(&table->rows, v, &sb);
	return top_text(table, &sb);
}

const char *top_cell(struct top_table *table, enum top_cell cell, int64_t v)
{
	return cell == TOP_VALUE ? top_value(table, v) : top_percent(table, v);
}

static const char *top_name(struct top_table *table,
			    const struct reporter_query_row *row, bool process)
{
	struct strbuf sb = STRBUF_INIT;

	text_add(&sb, row->name, strlen(row->name));
	strbuf_puts(&sb, row->mark);
	if (process && *row->comm) {
		strbuf_puts(&sb, "  ");
		text_add(&sb, row->comm, strlen(row->comm));
	}
	return top_text(table, &sb);
}

static bool top_row_whole(const struct top_row *row, size_t ncells)
{
	for (size_t i = 0; i < ncells; i++)
		if (!row->cells[i])
			return false;
	return row->name;
}

static int top_rows(struct top *t)
{
	struct top_table *table = &t->table;
	bool label = top_is_label(t->by);

	table->items = calloc(table->rows.n + 1, sizeof(*table->items));
	if (!table->items)
		return -ENOMEM;
	table->columns = label ? top_label_columns : top_columns;
	table->ncolumns =
		label ? ARRAY_SIZE(top_label_columns) : ARRAY_SIZE(top_columns);
	for (size_t i = 0; i < table->rows.n; i++) {
		const struct reporter_query_row *r = &table->rows.items[i];
		struct top_row *row = &table->items[table->n++];

		row->cells[0] = top_value(table, r->flat);
		row->cells[1] = top_percent(table, r->flat);
		row->cells[2] = top_percent(table, r->sum);
		row->cells[3] = top_value(table, r->cum);
		row->cells[4] = top_percent(table, r->cum);
		row->name = top_name(table, r, !strcmp(t->by, "process"));
		row->value = label ? r->name : NULL;
		if (!top_row_whole(row, 5))
			return -ENOMEM;
	}
	return 0;
}

/* --- the head --------------------------------------------------------------------- */

static void top_head(struct top *t)
{
	const struct top_table *table = &t->table;
	const struct reporter_query_rows *rows = &table->rows;
	time_t at = (t->live ? rows->end : rows->begin) / 1000000000;
	struct strbuf *head = &t->table.head;
	struct strbuf hidden = STRBUF_INIT;
	char text[64];
	struct tm tm;

	text_add(head, t->source, strlen(t->source));
	if (at && localtime_r(&at, &tm)) {
		strftime(text, sizeof(text), t->live ? "%T" : "%F %T", &tm);
		strbuf_printf(head, "  %s", text);
	}
	if (rows->end > rows->begin)
		strbuf_printf(head, "  %.1fs",
			      (double)(rows->end - rows->begin) / 1e9);
	strbuf_puts(head, "  ");
	reporter_query_rows_type(rows, head);
	strbuf_puts(head, " ");
	reporter_query_rows_value(rows, rows->total, head);
	reporter_query_hidden(table->q, &hidden);
	if (hidden.len)
		strbuf_printf(head, "  %s hidden", strbuf_str(&hidden));
	strbuf_fini(&hidden);
}

static void top_what(struct top *t)
{
	struct strbuf *what = &t->table.what;
	const struct top_focus *f;

	strbuf_puts(what, "by ");
	text_add(what, t->by, strlen(t->by));
	if (!top_is_label(t->by) || top_is_process(t))
		strbuf_printf(what, ", sorted by %s", t->cum ? "cum" : "flat");
	for (size_t i = 0; i < t->nfocus; i++) {
		f = &t->focus[i];
		strbuf_printf(what, "%s ", i ? "," : "; only");
		text_add(what, f->by, strlen(f->by));
		strbuf_puts(what, " ");
		text_add(what, f->value, strlen(f->value));
	}
}

/* --- the whole -------------------------------------------------------------------- */

void top_table_fini(struct top_table *table)
{
	reporter_query_rows_fini(&table->rows);
	reporter_query_free(table->q);
	free(table->items);
	arena_fini(&table->arena);
	strbuf_fini(&table->head);
	strbuf_fini(&table->what);
	*table = (struct top_table){ .q = NULL };
}

static const char *top_title(const char *by)
{
	static const struct {
		const char *by, *title;
	} titles[] = {
#define X(key, by, title) { by, title },
		TOP_ROWS(X)
#undef X
	};

	for (size_t i = 0; i < ARRAY_SIZE(titles); i++)
		if (!strcmp(by, titles[i].by))
			return titles[i].title;
	return "NAME";
}

int top_make(struct top *t)
{
	bool process = top_is_process(t);
	struct reporter_query_table rows = {
		.by = t->by,
		.cum = t->cum,
		/* Of a process without samples, descendants may have them. */
		.least = process ? 0 : TOP_LEAST,
	};
	struct top_table *table = &t->table;
	int err;

	top_table_fini(table);
	arena_init(&table->arena);
	err = top_query(t, &table->q);
	if (!err)
		err = reporter_query_rows(table->q, &rows, &table->rows);
	if (!err)
		err = process ? top_processes_make(t) : top_rows(t);
	table->title = top_title(t->by);
	if (!err) {
		top_head(t);
		top_what(t);
		err = table->head.failed || table->what.failed ? -ENOMEM : 0;
	}
	return err;
}

void top_fini(struct top *t)
{
	top_table_fini(&t->table);
	top_processes_fini(&t->processes);
	top_ended_free(t->ended);
	while (top_unfocus(t))
		;
	free(t->profile);
	ask_fini(&t->ask);
}
