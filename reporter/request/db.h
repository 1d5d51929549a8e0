/* SPDX-License-Identifier: Apache-2.0 */
/*
 * db: the catalog of an archive, opened to be read. Its file is not trusted: nothing in
 * it can call functions.
 */
#ifndef REPORTER_REQUEST_DB_H
#define REPORTER_REQUEST_DB_H

#include <sqlite3.h>

/* -errno of a result of SQLite; 0 for a row too. */
int request_db_error(int rc);
int request_db_prepare(sqlite3 *db, const char *sql, sqlite3_stmt **st);
/*
 * The statements have query_glob(PATTERN, TEXT), query_exe(PATTERN, PATH) and
 * rfc3339(NS). 0; -ENOENT: the archive has no catalog; -EPROTONOSUPPORT: it is of a
 * later version; -EBADMSG: damaged, or no catalog; -EBUSY; -ENOMEM. '*db' is to be
 * closed in any case.
 */
int request_db_open(sqlite3 **db, const char *archive);
/* The version of its tables. 0, or errors as above. */
int request_db_version(sqlite3 *db, int *version);

#endif /* REPORTER_REQUEST_DB_H */
