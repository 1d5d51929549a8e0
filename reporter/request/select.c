// SPDX-License-Identifier: Apache-2.0
/*
 * select: see reporter/request/select.h. The terms become one statement of SQL, whose
 * texts and numbers are bound, never part of it.
 */
#include <errno.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "reporter/catalog/catalog.h"
#include "reporter/query/model.h"
#include "reporter/request/db.h"
#include "reporter/request/select.h"

#define SELECT_OPS 10000 /* of SQLite's machine between two calls of go_on() */
/*
 * Parameters 1 and 2 are the span's, up to 5 those of request_select_rows; then each
 * term has one for its text and one for its number.
 */
#define SELECT_FIRST 6

struct select_names {
	char **items; /* sorted */
	size_t n, cap;
};

struct request_select {
	struct request_select_opts opts;
	sqlite3 *db;
	struct select_names images;
	struct select_names others; /* known windows without a sample of them */
};

/* --- conditions --------------------------------------------------------------- */

#define SELECT_TIME \
	"(ifnull(p.end_ns, ?2) >= ?1 AND ifnull(p.start_ns, 0) < ?2)"

/*
 * :t is the text of the term, :n its number. An id begins with its pid, by which the
 * catalog has an index.
 */
#define SELECT_ID(condition) "(p.pid = CAST(:t AS INTEGER) AND " condition ")"

/*
 * Since version 4, a condition on texts is one on programs, of which there are few; the
 * view has the text of each image, but no index.
 */
#define SELECT_TEXTS_VERSION 4
#define SELECT_TEXT(column, condition)                          \
	"i.program IN (SELECT g.id FROM program g JOIN text x " \
	"ON x.id = g." column " WHERE " condition ")"
#define SELECT_GROUP(condition)                                   \
	"i.program IN (SELECT g.id FROM program g JOIN cgroup x " \
	"ON x.id = g.cgroup WHERE " condition ")"

#define SELECT_UNDER(condition)                                       \
	"p.id IN (WITH RECURSIVE r(id) AS (SELECT p.id FROM image i " \
	"JOIN process p ON p.id = i.process "                         \
	"WHERE " condition " AND " SELECT_TIME                        \
	"), t(id) AS (SELECT c.id FROM process c "                    \
	"JOIN r ON c.parent_row = r.id UNION SELECT c.id "            \
	"FROM process c JOIN t ON c.parent_row = t.id) "              \
	"SELECT id FROM t)"

static const char *const select_exits[] = {
	[QUERY_EXIT_OK] = "p.exit_code = 0",
	[QUERY_EXIT_FAIL] = "(p.exit_code > 0 OR p.signal IS NOT NULL)",
	[QUERY_EXIT_SIGNAL] = "p.signal IS NOT NULL",
	/* By the index of codes above 0. */
	[QUERY_EXIT_CODE] = "(p.exit_code > 0 AND p.exit_code = :n)",
	[QUERY_EXIT_BY] = "p.signal = :n",
};

static const char *const select_conditions[QUERY_MATCHERS] = {
	[QUERY_USER] = "i.uid = :n",
	[QUERY_SUBTREE] =
		"p.id IN (WITH RECURSIVE t(id) AS (SELECT id FROM process p "
		"WHERE p.pid = CAST(:t AS INTEGER) "
		"AND (p.pid = :n OR p.process = :t) AND " SELECT_TIME
		" UNION SELECT c.id FROM process c "
		"JOIN t ON c.parent_row = t.id) SELECT id FROM t)",
	[QUERY_UNDER] = SELECT_UNDER("query_glob(:t, i.comm)"),
	[QUERY_ENTRY] = "(p.entry = :t OR p.entry_pid = :n)",
	[QUERY_ARGV] = "query_glob(:t, (SELECT group_concat(value, ' ') "
		       "FROM json_each(i.argv)))",
};

/* Since version 4; NULL: as before. */
static const char *const select_texts_conditions[QUERY_MATCHERS] = {
	[QUERY_USER] = "i.program IN (SELECT id FROM program WHERE uid = :n)",
	[QUERY_UNDER] =
		SELECT_UNDER(SELECT_TEXT("comm", "query_glob(:t, x.s)")),
};

#define SELECT_BOTH(column) "i." column " = :t", "query_glob(:t, i." column ")"
#define SELECT_GROUPS(column)              \
	SELECT_GROUP("x." column " = :t"), \
		SELECT_GROUP("query_glob(:t, x." column ")")

/* The column of services; before, none has one. */
#define SELECT_SERVICE_VERSION 5

/* Those that never change tell which windows are needed. */
static const struct {
	const char *key;
	bool changes;
	const char *equal, *like;
	struct {
		const char *equal, *like;
		int since; /* 0: SELECT_TEXTS_VERSION */
	} later; /* since that version; NULL: as before */
} select_labels[] = {
	{ "pid", false, "p.pid = :n", "p.pid = :n", { 0 } },
	{ "process",
	  false,
	  SELECT_ID("p.process = :t"),
	  "query_glob(:t, p.process)",
	  { 0 } },
	{ "image",
	  false,
	  SELECT_ID("i.image = :t"),
	  "query_glob(:t, i.image)",
	  { 0 } },
	{ "comm",
	  true,
	  SELECT_BOTH("comm"),
	  { SELECT_TEXT("comm", "x.s = :t"),
	    SELECT_TEXT("comm", "query_glob(:t, x.s)"), 0 } },
	{ "exe",
	  true,
	  "query_exe(:t, i.exe)",
	  "query_exe(:t, i.exe)",
	  { SELECT_TEXT("exe", "query_exe(:t, x.s)"),
	    SELECT_TEXT("exe", "query_exe(:t, x.s)"), 0 } },
	{ "container",
	  true,
	  SELECT_BOTH("container"),
	  { SELECT_GROUPS("container"), 0 } },
	{ "cgroup", true, SELECT_BOTH("cgroup"), { SELECT_GROUPS("path"), 0 } },
	{ "unit", true, SELECT_BOTH("unit"), { SELECT_GROUPS("unit"), 0 } },
	{ "service",
	  true,
	  "NULL",
	  "NULL",
	  { SELECT_BOTH("service"), SELECT_SERVICE_VERSION } },
};

static const char *select_label(const struct reporter_query_term *t,
				bool labels, int version)
{
	bool like = strpbrk(t->text, "*?\\");

	for (size_t i = 0; i < ARRAY_SIZE(select_labels); i++) {
		if (strcmp(select_labels[i].key, query_term_key(t)) != 0 ||
		    (!labels && select_labels[i].changes))
			continue;
		if (version >= (select_labels[i].later.since
					?: SELECT_TEXTS_VERSION) &&
		    select_labels[i].later.equal)
			return like ? select_labels[i].later.like
				    : select_labels[i].later.equal;
		return like ? select_labels[i].like : select_labels[i].equal;
	}
	return NULL;
}

/*
 * NULL: the catalog does not decide it; 'labels' as in request_select_opts, 'version' of
 * the catalog.
 */
static const char *select_condition(const struct reporter_query_term *t,
				    bool labels, int version)
{
	enum query_matcher matcher = query_term_matcher(t);

	if (matcher == QUERY_EXIT && t->exit == QUERY_EXIT_CODE && !t->num)
		return select_exits[QUERY_EXIT_OK];
	if (matcher == QUERY_EXIT)
		return select_exits[t->exit];
	if (query_term_is_label(t))
		return select_label(t, labels, version);
	return version >= SELECT_TEXTS_VERSION &&
			       select_texts_conditions[matcher]
		       ? select_texts_conditions[matcher]
		       : select_conditions[matcher];
}

bool request_select_helps(const struct reporter_query_terms *terms)
{
	for (size_t i = 0; i < terms->n; i++)
		if (!terms->items[i].negated &&
		    select_label(&terms->items[i], false, 0))
			return true;
	return false;
}

/* Appends a condition with the parameters of that term. */
static void select_put(struct strbuf *sql, const char *condition, size_t term)
{
	const char *p;

	for (; (p = strchr(condition, ':')); condition = p + 2) {
		strbuf_add(sql, condition, (size_t)(p - condition));
		strbuf_printf(sql, "?%zu",
			      SELECT_FIRST + 2 * term + (p[1] == 'n'));
	}
	strbuf_puts(sql, condition);
}

/*
 * The terms of one kind and sign: any of them is enough. Returns their number. What is
 * NULL is not taken; a function around a condition would keep SQLite from using an
 * index, so only negated ones have it.
 */
static size_t select_any(struct strbuf *sql,
			 const struct request_select_opts *o, size_t kind,
			 bool negated)
{
	const struct reporter_query_terms *terms = o->terms;
	const struct reporter_query_term *t;
	size_t n = 0;

	for (size_t i = 0; i < terms->n; i++) {
		t = &terms->items[i];
		if (t->kind != kind || t->negated != negated ||
		    !select_condition(t, o->labels, o->version))
			continue;
		strbuf_puts(sql, n++	   ? " OR "
				 : negated ? " AND NOT ("
					   : " AND (");
		strbuf_puts(sql, negated ? "ifnull(" : "(");
		select_put(sql, select_condition(t, o->labels, o->version), i);
		strbuf_puts(sql, negated ? ", 0)" : ")");
	}
	strbuf_puts(sql, n ? ")" : "");
	return n;
}

static void select_where(struct strbuf *sql,
			 const struct request_select_opts *o)
{
	size_t kinds = 0;

	for (size_t i = 0; i < o->terms->n; i++)
		kinds = MAX(kinds, o->terms->items[i].kind + 1);
	for (size_t kind = 0; kind < kinds; kind++) {
		select_any(sql, o, kind, false);
		select_any(sql, o, kind, true);
	}
}

/* A number; a parameter that the statement does not have is no error. */
static int select_bind(sqlite3_stmt *st, size_t at, int64_t v)
{
	int n = sqlite3_bind_parameter_count(st);

	return at > (size_t)n
		       ? 0
		       : request_db_error(sqlite3_bind_int64(st, (int)at, v));
}

static int select_bind_all(sqlite3_stmt *st,
			   const struct request_select_opts *o)
{
	size_t at = SELECT_FIRST, n = (size_t)sqlite3_bind_parameter_count(st);
	int err = select_bind(st, 1, o->span.from);

	if (!err)
		err = select_bind(st, 2, o->span.to);
	for (size_t i = 0; i < o->terms->n && at <= n && !err; i++, at += 2) {
		const struct reporter_query_term *t = &o->terms->items[i];

		err = request_db_error(sqlite3_bind_text(st, (int)at, t->text,
							 -1, SQLITE_STATIC));
		if (!err)
			err = select_bind(st, at + 1, t->num);
	}
	return err;
}

/* --- sets --------------------------------------------------------------------- */

static int select_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool select_has(const struct select_names *names, const char *name)
{
	size_t i;

	VECTOR_SEARCH(i, names->n, strcmp(names->items[i], name) < 0);
	return i < names->n && !strcmp(names->items[i], name);
}

/* The first column of the rows of a statement. */
static int select_read(sqlite3_stmt *st, struct select_names *names)
{
	const unsigned char *text;
	int rc, err = 0;

	while (!err && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		text = sqlite3_column_text(st, 0);
		if (!text)
			continue;
		err = VECTOR_ROOM(names->items, names->n, names->cap);
		if (err)
			break;
		names->items[names->n] = strdup((const char *)text);
		err = names->items[names->n] ? 0 : -ENOMEM;
		names->n += !err;
	}
	if (!err)
		err = request_db_error(rc);
	if (names->n)
		qsort(names->items, names->n, sizeof(*names->items),
		      select_compare);
	return err;
}

static void select_names_fini(struct select_names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->items[i]);
	free(names->items);
}

/* Runs a statement, and reads its names if 'names' is not NULL. */
static int select_run(struct request_select *s, const char *sql,
		      struct select_names *names)
{
	sqlite3_stmt *st;
	int err = request_db_prepare(s->db, sql, &st);

	if (err)
		return err;
	err = select_bind_all(st, &s->opts);
	if (!err)
		err = names ? select_read(st, names)
			    : request_db_error(sqlite3_step(st));
	sqlite3_finalize(st);
	return err;
}

/* --- the selection -------------------------------------------------------------- */

/* The chosen images, in a table of this connection. */
static int select_choose(struct request_select *s)
{
	struct strbuf sql = STRBUF_INIT;
	int err;

	strbuf_puts(&sql, "INSERT INTO temp.chosen SELECT i.id, i.image "
			  "FROM image i JOIN process p ON p.id = i.process "
			  "WHERE " SELECT_TIME);
	select_where(&sql, &s->opts);
	err = strbuf_str(&sql) ? 0 : -ENOMEM;
	if (!err)
		err = select_run(s,
				 "CREATE TEMP TABLE chosen("
				 "id INTEGER PRIMARY KEY, image TEXT)",
				 NULL);
	if (!err)
		err = select_run(s, sql.data, NULL);
	strbuf_fini(&sql);
	return err;
}

static int select_all(struct request_select *s)
{
	int err = select_run(s, "PRAGMA temp_store = MEMORY", NULL);

	/* All statements see the same state. */
	if (!err)
		err = select_run(s, "BEGIN", NULL);
	if (!err)
		err = select_choose(s);
	if (!err)
		err = select_run(s, "SELECT image FROM temp.chosen",
				 &s->images);
	if (!err)
		err = select_run(s,
				 "SELECT file FROM window WHERE id NOT IN "
				 "(SELECT wi.window FROM temp.chosen c "
				 "JOIN window_image wi ON wi.image = c.id)",
				 &s->others);
	return err;
}

static int select_progress(void *arg)
{
	const struct request_select_opts *o = arg;

	return !o->go_on(o->arg);
}

int request_select_new(struct request_select **sp,
		       const struct request_select_opts *opts)
{
	struct request_select *s = calloc(1, sizeof(*s));
	int err;

	*sp = NULL;
	if (!s)
		return -ENOMEM;
	s->opts = *opts;
	err = request_db_open(&s->db, opts->path);
	if (!err)
		err = request_db_version(s->db, &s->opts.version);
	if (!err && opts->go_on)
		sqlite3_progress_handler(s->db, SELECT_OPS, select_progress,
					 &s->opts);
	if (!err)
		err = select_all(s);
	/* A reader that stays would keep the log from being reused. */
	sqlite3_close(s->db);
	s->db = NULL;
	if (err)
		request_select_free(s);
	else
		*sp = s;
	return err;
}

void request_select_free(struct request_select *s)
{
	if (!s)
		return;
	select_names_fini(&s->images);
	select_names_fini(&s->others);
	free(s);
}

bool request_select_image(void *arg, const char *image)
{
	const struct request_select *s = arg;

	return select_has(&s->images, image);
}

bool request_select_window(const struct request_select *s, const char *file)
{
	return !select_has(&s->others, file);
}

static int select_life(sqlite3 *db, const char *process, int64_t now,
		       struct reporter_query_span *span)
{
	sqlite3_stmt *st;
	int err = request_db_prepare(db,
				     "SELECT start_ns, end_ns FROM process "
				     "WHERE pid = CAST(?1 AS INTEGER) AND "
				     "(process = ?1 OR pid = ?1) "
				     "ORDER BY start_ns DESC LIMIT 1",
				     &st);

	if (err)
		return err;
	err = request_db_error(
		sqlite3_bind_text(st, 1, process, -1, SQLITE_STATIC));
	if (!err)
		err = sqlite3_step(st) == SQLITE_ROW ? 0 : -ESRCH;
	if (!err) {
		span->from = sqlite3_column_int64(st, 0);
		span->to = sqlite3_column_type(st, 1) == SQLITE_NULL
				   ? now
				   : sqlite3_column_int64(st, 1);
	}
	sqlite3_finalize(st);
	return err;
}

int request_select_life(const char *path, const char *process, int64_t now,
			struct reporter_query_span *span)
{
	sqlite3 *db;
	int err = request_db_open(&db, path);

	if (!err)
		err = select_life(db, process, now, span);
	sqlite3_close(db);
	return err;
}

/* --- rows ------------------------------------------------------------------------- */

/* Words in the statements of lists. */
#define SELECT_WORDS "$"
#define SELECT_TERMS "$TERMS"
#define SELECT_SERVICE "$SERVICE"

static int select_rows_step(sqlite3_stmt *st, struct request_select_rows *rows)
{
	const char *text;
	int rc;

	while ((rc = sqlite3_step(st)) == SQLITE_ROW) {
		text = (const char *)sqlite3_column_text(st, 1);
		if (!text)
			return -ENOMEM;
		if (!rows->row(rows->arg, sqlite3_column_int64(st, 0), text))
			return 0;
	}
	return request_db_error(rc);
}

static int select_rows_run(sqlite3 *db, const struct request_select_opts *o,
			   struct request_select_rows *rows, const char *sql)
{
	sqlite3_stmt *st;
	int err = request_db_prepare(db, sql, &st);

	if (!err)
		err = select_bind_all(st, o);
	for (size_t i = 0; i < ARRAY_SIZE(rows->values) && !err; i++)
		err = select_bind(st, 3 + i, rows->values[i]);
	if (!err && rows->text && sqlite3_bind_parameter_count(st) >= 5)
		err = request_db_error(sqlite3_bind_text(st, 5, rows->text, -1,
							 SQLITE_STATIC));
	if (!err)
		err = select_rows_step(st, rows);
	sqlite3_finalize(st);
	return err;
}

static int select_rows_check(const struct request_select_opts *o,
			     struct request_select_rows *rows)
{
	for (size_t i = 0; i < o->terms->n; i++)
		if (!select_condition(&o->terms->items[i], true, 0)) {
			rows->wrong = query_term_key(&o->terms->items[i]);
			return -EINVAL;
		}
	return 0;
}

static int select_rows_sql(struct strbuf *sql,
			   const struct request_select_opts *o,
			   const struct request_select_rows *rows)
{
	const char *p, *from = rows->sql;

	for (; (p = strpbrk(from, SELECT_WORDS)); from = p) {
		strbuf_add(sql, from, (size_t)(p - from));
		if (!strncmp(p, SELECT_TERMS, strlen(SELECT_TERMS))) {
			p += strlen(SELECT_TERMS);
			strbuf_puts(sql, SELECT_TIME);
			select_where(sql, o);
		} else if (!strncmp(p, SELECT_SERVICE,
				    strlen(SELECT_SERVICE))) {
			p += strlen(SELECT_SERVICE);
			strbuf_puts(sql, o->version < SELECT_SERVICE_VERSION
						 ? "NULL"
						 : "i.service");
		} else {
			strbuf_add(sql, p++, 1);
		}
	}
	strbuf_puts(sql, from);
	return strbuf_str(sql) ? 0 : -ENOMEM;
}

int request_select_rows(const struct request_select_opts *opts,
			struct request_select_rows *rows)
{
	struct request_select_opts o = *opts;
	struct strbuf sql = STRBUF_INIT;
	sqlite3 *db = NULL;
	int err;

	o.labels = true;
	err = select_rows_check(&o, rows);
	if (!err)
		err = request_db_open(&db, o.path);
	if (!err && o.go_on)
		sqlite3_progress_handler(db, SELECT_OPS, select_progress, &o);
	if (!err)
		err = request_db_version(db, &o.version);
	if (!err)
		err = select_rows_sql(&sql, &o, rows);
	if (!err && o.version >= rows->version)
		err = select_rows_run(db, &o, rows, sql.data);
	sqlite3_close(db);
	strbuf_fini(&sql);
	return err;
}
