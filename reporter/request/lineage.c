// SPDX-License-Identifier: Apache-2.0
/* lineage: see reporter/request/lineage.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/query/query.h"
#include "reporter/request/db.h"
#include "reporter/request/lineage.h"

/*
 * The image itself, then the parent of each, up to ?2 rows. A parent has the name that it
 * had when it started the child: a shell may have become another program since. The
 * last column says whether there is a parent above.
 */
static const char lineage_sql[] =
	"WITH RECURSIVE a(n, id, up, at, start) AS ("
	"SELECT 1, p.id, p.parent_row, NULL, ifnull(p.start_ns, 0) "
	"FROM process p JOIN image i ON i.process = p.id "
	"WHERE p.pid = CAST(?1 AS INTEGER) AND i.image = ?1 "
	"UNION ALL "
	"SELECT a.n + 1, p.id, p.parent_row, a.start, ifnull(p.start_ns, 0) "
	"FROM a JOIN process p ON p.id = a.up WHERE a.n < ?2) "
	"SELECT coalesce("
	"(SELECT x.comm FROM image x WHERE x.process = a.id "
	"AND CASE WHEN a.n = 1 THEN x.image = ?1 "
	"ELSE x.start_ns <= a.at END ORDER BY x.start_ns DESC, x.id DESC "
	"LIMIT 1), "
	"(SELECT x.comm FROM image x WHERE x.process = a.id "
	"ORDER BY x.start_ns, x.id LIMIT 1)), "
	"up IS NOT NULL, n FROM a ORDER BY n";

/* One more than those of the catalog: the one that stands for the others. */
#define LINEAGE_ROWS (REPORTER_QUERY_ANCESTORS_MAX - 1)

struct request_lineage {
	sqlite3 *db;
	sqlite3_stmt *st;
	/* The process first; then the other way round. */
	char *names[REPORTER_QUERY_ANCESTORS_MAX];
	size_t n;
};

int request_lineage_new(struct request_lineage **lp, const char *archive)
{
	struct request_lineage *l = calloc(1, sizeof(*l));
	int err = l ? request_db_open(&l->db, archive) : -ENOMEM;

	*lp = NULL;
	if (!err)
		err = request_db_prepare(l->db, lineage_sql, &l->st);
	if (!err)
		err = request_db_error(
			sqlite3_bind_int(l->st, 2, LINEAGE_ROWS));
	if (err)
		request_lineage_free(l);
	else
		*lp = l;
	return err;
}

static void lineage_reset(struct request_lineage *l)
{
	while (l->n)
		free(l->names[--l->n]);
}

void request_lineage_free(struct request_lineage *l)
{
	if (!l)
		return;
	lineage_reset(l);
	sqlite3_finalize(l->st);
	sqlite3_close(l->db);
	free(l);
}

static int lineage_add(struct request_lineage *l, const char *name)
{
	l->names[l->n] = strdup(name);
	l->n += !!l->names[l->n];
	return l->n && l->names[l->n - 1] ? 0 : -ENOMEM;
}

static int lineage_read(struct request_lineage *l)
{
	const char *comm;
	bool more = false;
	int rc = SQLITE_DONE, err = 0;

	while (!err && l->n < LINEAGE_ROWS &&
	       (rc = sqlite3_step(l->st)) == SQLITE_ROW) {
		/* An id that two boots of the host have: the first is taken. */
		if (sqlite3_column_int64(l->st, 2) != (int64_t)l->n + 1)
			continue;
		comm = (const char *)sqlite3_column_text(l->st, 0);
		more = sqlite3_column_int(l->st, 1);
		err = lineage_add(l, comm && *comm ? comm : "[no comm]");
	}
	if (!err)
		err = request_db_error(rc);
	if (!err && more && l->n == LINEAGE_ROWS)
		err = lineage_add(l, "[more ancestors]");
	return err;
}

int request_lineage_get(struct request_lineage *l, const char *image,
			const char *const **names, size_t *n)
{
	int err;

	lineage_reset(l);
	sqlite3_reset(l->st);
	err = request_db_error(
		sqlite3_bind_text(l->st, 1, image, -1, SQLITE_TRANSIENT));
	if (!err)
		err = lineage_read(l);
	/* Without a read transaction left: that would hold the log. */
	sqlite3_reset(l->st);
	for (size_t i = 0; i < l->n / 2; i++) {
		char *name = l->names[i];

		l->names[i] = l->names[l->n - 1 - i];
		l->names[l->n - 1 - i] = name;
	}
	*names = (const char *const *)l->names;
	*n = l->n;
	return err;
}
