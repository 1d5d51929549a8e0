// SPDX-License-Identifier: Apache-2.0
/* db: see reporter/request/db.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "reporter/catalog/catalog.h"
#include "reporter/query/model.h"
#include "reporter/request/db.h"
#include "reporter/store/store.h"

#define DB_BUSY_MS 5000

int request_db_error(int rc)
{
	static const struct {
		int rc, err;
	} errors[] = {
		{ SQLITE_OK, 0 },
		{ SQLITE_ROW, 0 },
		{ SQLITE_DONE, 0 },
		{ SQLITE_NOMEM, -ENOMEM },
		{ SQLITE_BUSY, -EBUSY },
		{ SQLITE_LOCKED, -EBUSY },
		{ SQLITE_CANTOPEN, -ENOENT },
		{ SQLITE_PERM, -EACCES },
		{ SQLITE_INTERRUPT, -ECANCELED },
	};

	for (size_t i = 0; i < ARRAY_SIZE(errors); i++)
		if (errors[i].rc == (rc & 0xff))
			return errors[i].err;
	return -EBADMSG;
}

int request_db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **st)
{
	return request_db_error(sqlite3_prepare_v2(db, sql, -1, st, NULL));
}

/* The function query_glob(PATTERN, TEXT) of the statements. */
static void request_db_glob(sqlite3_context *c, int n, sqlite3_value **args)
{
	const char *p = (const char *)sqlite3_value_text(args[0]);
	const char *s = (const char *)sqlite3_value_text(args[1]);

	sqlite3_result_int(c, p && s && query_glob(p, s));
}

/* The function query_exe(PATTERN, PATH): as the term exe. */
static void request_db_exe(sqlite3_context *c, int n, sqlite3_value **args)
{
	const char *p = (const char *)sqlite3_value_text(args[0]);
	const char *s = (const char *)sqlite3_value_text(args[1]);

	sqlite3_result_int(c, p && s && query_exe(p, s));
}

/* The function rfc3339(NS): wall time as text. */
static void request_db_time(sqlite3_context *c, int n, sqlite3_value **args)
{
	int64_t ns = sqlite3_value_int64(args[0]);
	int64_t part = ns % (int64_t)CLOCK_NSEC_PER_SEC;
	time_t s = ns / (int64_t)CLOCK_NSEC_PER_SEC - (part < 0);
	char text[64];
	struct tm tm;
	size_t len;

	if (sqlite3_value_type(args[0]) == SQLITE_NULL || !gmtime_r(&s, &tm))
		return;
	part += part < 0 ? (int64_t)CLOCK_NSEC_PER_SEC : 0;
	len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(text + len, sizeof(text) - len, ".%09dZ", (int)part);
	sqlite3_result_text(c, text, -1, SQLITE_TRANSIENT);
}

/* The function wait_bytes(FILE): the size of the profile of waits of a window. */
static void request_db_wait_bytes(sqlite3_context *c, int n,
				  sqlite3_value **args)
{
	const char *file = (const char *)sqlite3_value_text(args[0]);
	uint64_t bytes = store_wait_bytes(sqlite3_user_data(c), file);

	sqlite3_result_int64(c, (sqlite3_int64)bytes);
}

static int request_db_waits(sqlite3 *db, const char *archive)
{
	char *path = strdup(archive);

	/* It frees the path also if it fails. */
	return path ? request_db_error(sqlite3_create_function_v2(
			      db, "wait_bytes", 1, SQLITE_UTF8, path,
			      request_db_wait_bytes, NULL, NULL, free))
		    : -ENOMEM;
}

static int request_db_function(sqlite3 *db, const char *name, int nargs,
			       void (*call)(sqlite3_context *, int,
					    sqlite3_value **))
{
	return request_db_error(sqlite3_create_function(
		db, name, nargs, SQLITE_UTF8 | SQLITE_DETERMINISTIC, NULL, call,
		NULL, NULL));
}

int request_db_version(sqlite3 *db, int *version)
{
	sqlite3_stmt *st;
	int err = request_db_prepare(db, "PRAGMA user_version", &st);

	if (err)
		return err;
	err = request_db_error(sqlite3_step(st));
	*version = sqlite3_column_int(st, 0);
	sqlite3_finalize(st);
	return err;
}

int request_db_open(sqlite3 **db, const char *archive)
{
	const int flags = SQLITE_OPEN_READONLY | SQLITE_OPEN_NOFOLLOW |
			  SQLITE_OPEN_NOMUTEX;
	int err, version = 0;
	char *path;

	*db = NULL;
	if (asprintf(&path, "%s/%s", archive, CATALOG_FILE) < 0)
		return -ENOMEM;
	/* SQLite does not tell why it cannot open a file. */
	err = access(path, R_OK) ? -errno : 0;
	if (!err)
		err = request_db_error(sqlite3_open_v2(path, db, flags, NULL));
	free(path);
	if (err)
		return err;
	sqlite3_busy_timeout(*db, DB_BUSY_MS);
	/* Nothing in the file may call functions or have side effects. */
	sqlite3_db_config(*db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(*db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	err = request_db_function(*db, "query_glob", 2, request_db_glob);
	if (!err)
		err = request_db_function(*db, "query_exe", 2, request_db_exe);
	if (!err)
		err = request_db_function(*db, "rfc3339", 1, request_db_time);
	if (!err)
		err = request_db_waits(*db, archive);
	if (!err)
		err = request_db_version(*db, &version);
	return !err && version > CATALOG_VERSION ? -EPROTONOSUPPORT : err;
}
