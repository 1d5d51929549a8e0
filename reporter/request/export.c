// SPDX-License-Identifier: Apache-2.0
/*
 * export: see reporter/request/request.h. The directory is locked as profd locks its
 * archive, so that none writes to it meanwhile, and none that one writes to is chosen.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reporter/catalog/catalog.h"
#include "reporter/catalog/schema.h"
#include "reporter/request/db.h"
#include "reporter/request/internal.h"
#include "reporter/store/store.h"

#define EXPORT_OPS \
	10000 /* of SQLite's machine between two calls of progress() */

struct export
{
	struct request_run *x;
	struct reporter_export *to;
	struct store *store;
	int from, dir; /* the archive, and the new one */
	struct store_list list;
	sqlite3 *db;
};

/* Sets why to the reason of 'err'. */
static int export_fail(struct export *e, int err, const char *file)
{
	if (err == -ECANCELED)
		return err;
	return request_fail(e->x, err, "%s%s%s: %s", e->to->path,
			    *file ? "/" : "", file, strerror(-err));
}

/* --- the directories ------------------------------------------------------------------ */

static bool export_is_empty(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;
	bool empty = true;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && empty && (de = readdir(dir)))
		empty = !strcmp(de->d_name, ".") || !strcmp(de->d_name, "..");
	if (dir)
		closedir(dir);
	return empty;
}

/* It was empty before it was locked: the lock is a file in it. */
static int export_check(struct export *e)
{
	struct stat from, to;
	int fd = open(e->to->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bool empty;

	if (fd < 0)
		return errno == ENOENT ? 0 : export_fail(e, -errno, "");
	empty = export_is_empty(fd);
	if (fstat(fd, &to) || fstat(e->from, &from)) {
		close(fd);
		return export_fail(e, -EIO, "");
	}
	close(fd);
	if (from.st_dev == to.st_dev && from.st_ino == to.st_ino)
		return request_fail(e->x, -EINVAL,
				    "%s: is the archive that is exported",
				    e->to->path);
	if (!empty && !e->to->force)
		return request_fail(e->x, -EEXIST,
				    "%s: is not empty (--force writes into it)",
				    e->to->path);
	return 0;
}

static int export_open(struct export *e)
{
	const struct store_opts opts = { .path = e->to->path };
	uint64_t swept = 0;
	int err;

	e->from = open(e->x->out->archive, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (e->from < 0)
		return request_fail(e->x, -errno, "%s: %s", e->x->out->archive,
				    strerror(errno));
	err = export_check(e);
	if (err)
		return err;
	err = store_new(&e->store, &opts, &swept);
	if (err == -EBUSY)
		return request_fail(e->x, err, "%s: a profd writes to it",
				    e->to->path);
	if (err == -EPERM)
		return request_fail(e->x, err,
				    "%s: belongs to another user, or others "
				    "can write to it",
				    e->to->path);
	if (err)
		return export_fail(e, err, "");
	e->dir = open(e->to->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return e->dir < 0 ? export_fail(e, -errno, "") : 0;
}

/* --- windows ---------------------------------------------------------------------------- */

static int export_copy(struct export *e, int from, int to)
{
	char piece[65536];
	ssize_t n, done, w;

	for (;;) {
		n = TEMP_FAILURE_RETRY(read(from, piece, sizeof(piece)));
		if (n <= 0)
			return n < 0 ? -errno : 0;
		if (!request_go_on(e->x))
			return -ECANCELED;
		for (done = 0; done < n; done += w) {
			w = TEMP_FAILURE_RETRY(
				write(to, piece + done, (size_t)(n - done)));
			if (w < 0)
				return -errno;
		}
		e->to->bytes += (uint64_t)n;
	}
}

/* A file of a window. -ENOENT: it is gone, or there is none. */
static int export_file(struct export *e, const struct store_window *w,
		       enum store_kind kind)
{
	struct reporter_outfile file;
	char path[4096], name[STORE_PATH_MAX];
	int err, fd = store_window_open(w, e->from, kind);

	if (fd < 0)
		return fd;
	store_window_path(w, kind, name);
	snprintf(path, sizeof(path), "%s/%s", e->to->path, name);
	err = reporter_outfile_open(&file, path);
	if (!err) {
		err = export_copy(e, fd, file.fd);
		if (!err)
			err = reporter_outfile_commit(&file);
		if (err)
			reporter_outfile_abort(&file);
		else
			reporter_outfile_fini(&file);
	}
	close(fd);
	return err == -ENOENT ? -EIO : err;
}

static int export_window(struct export *e, struct store_window *w)
{
	int err = 0;

	if (*w->day && mkdirat(e->dir, w->day, 0750) && errno != EEXIST)
		return export_fail(e, -errno, w->day);
	err = export_file(e, w, (enum store_kind)w->format);
	/* Retention has removed it. */
	if (err == -ENOENT) {
		w->bytes = 0;
		return 0;
	}
	if (!err) {
		e->to->windows++;
		err = export_file(e, w, STORE_TIMES);
		e->to->times += !err;
		err = err == -ENOENT ? 0 : err;
	}
	if (!err && w->wait_bytes) {
		err = export_file(e, w, store_wait(w->format));
		err = err == -ENOENT ? 0 : err;
	}
	if (!err && w->wait_times_bytes) {
		err = export_file(e, w, STORE_WAIT_TIMES);
		err = err == -ENOENT ? 0 : err;
	}
	return err ? export_fail(e, err, w->stem) : 0;
}

static int export_windows(struct export *e,
			  const struct reporter_query_span *span)
{
	struct reporter_request_run *out = e->x->out;
	int err = store_list(&e->list, out->archive, span->from, span->to);

	if (err)
		return request_fail(e->x, err, "%s: %s", out->archive,
				    strerror(-err));
	out->found.windows = e->list.n;
	for (size_t i = 0; i < e->list.n && !err; i++) {
		if (out->progress && !out->progress(out->arg, i, e->list.n))
			return -ECANCELED;
		err = export_window(e, &e->list.windows[i]);
	}
	if (!err && !e->to->windows)
		err = request_fail(e->x, -ENODATA, "%s: no window of that time",
				   out->archive);
	return err;
}

/* --- the catalog ------------------------------------------------------------------------ */

/*
 * Processes with samples in the windows, and their ancestors. Those of version 3 only, and
 * of 4 and later ones, have it here; 0: of all. Rows that others refer to are first.
 */
static const struct {
	int version;
	const char *sql;
} export_sql[] = {
	{ 0, "CREATE TEMP TABLE p(id INTEGER PRIMARY KEY)" },
	{ 0, "INSERT INTO temp.p WITH RECURSIVE a(id) AS ("
	     "SELECT i.process FROM temp.w JOIN src.window_image x "
	     "ON x.window = w.id JOIN src.image i ON i.id = x.image "
	     "UNION SELECT q.parent_row FROM src.process q JOIN a "
	     "ON q.id = a.id "
	     "WHERE q.parent_row IS NOT NULL) SELECT id FROM a" },
	{ 0, "INSERT INTO main.boot SELECT * FROM src.boot" },
	{ 3, "INSERT INTO main.process SELECT * FROM src.process "
	     "WHERE id IN temp.p ORDER BY id" },
	{ 3, "INSERT INTO main.image SELECT * FROM src.image "
	     "WHERE process IN temp.p ORDER BY id" },
	{ 4, "INSERT INTO main.process_row SELECT * FROM src.process_row "
	     "WHERE id IN temp.p ORDER BY id" },
	{ 4, "INSERT INTO main.image_row SELECT * FROM src.image_row "
	     "WHERE process IN temp.p ORDER BY id" },
	{ 4, "INSERT INTO main.program SELECT * FROM src.program "
	     "WHERE id IN (SELECT program FROM main.image_row)" },
	{ 4, "INSERT INTO main.args SELECT * FROM src.args "
	     "WHERE id IN (SELECT args FROM main.image_row)" },
	{ 4, "INSERT INTO main.text SELECT * FROM src.text WHERE id IN ("
	     "SELECT comm FROM main.program UNION "
	     "SELECT exe FROM main.program UNION "
	     "SELECT cwd FROM main.program UNION "
	     "SELECT build_id FROM main.program)" },
	{ 4, "INSERT INTO main.text_use SELECT uid, "
	     "sum(length(CAST(s AS BLOB)) + 16) FROM (SELECT uid, s FROM "
	     "main.text UNION ALL SELECT uid, s FROM main.args) GROUP BY uid" },
	{ 4, "INSERT OR REPLACE INTO main.word SELECT * FROM src.word" },
	{ 0, "INSERT INTO main.run SELECT * FROM src.run WHERE id IN "
	     "(SELECT run FROM src.window WHERE id IN temp.w)" },
	{ 0, "INSERT INTO main.window SELECT * FROM src.window "
	     "WHERE id IN temp.w ORDER BY id" },
	{ 0, "INSERT INTO main.window_image SELECT * FROM src.window_image "
	     "WHERE window IN temp.w" },
	{ 3, "INSERT INTO main.cgroup SELECT * FROM src.cgroup WHERE id IN "
	     "(SELECT cgroup FROM main.window_image)" },
	{ 4, "INSERT INTO main.cgroup SELECT * FROM src.cgroup WHERE id IN "
	     "(SELECT cgroup FROM main.window_image UNION "
	     "SELECT cgroup FROM main.program)" },
	{ 0, "INSERT INTO main.loss SELECT * FROM src.loss "
	     "WHERE window IN temp.w" },
	{ 0, "INSERT INTO main.rest SELECT * FROM src.rest "
	     "WHERE window IN temp.w" },
	{ 0, "INSERT INTO main.change SELECT * FROM src.change "
	     "WHERE (boot, process) IN (SELECT boot, process "
	     "FROM main.process) "
	     "OR process IS NULL AND EXISTS (SELECT 1 FROM main.window "
	     "WHERE time_ns BETWEEN begin_ns AND end_ns) ORDER BY id" },
	{ 0, "COMMIT" },
	{ 0, "DETACH src" },
};

static int export_exec(struct export *e, const char *sql)
{
	return request_db_error(sqlite3_exec(e->db, sql, NULL, NULL, NULL));
}

/* The files that are in the export, by the catalog's numbers. */
static int export_chosen(struct export *e)
{
	char file[STORE_PATH_MAX];
	sqlite3_stmt *st;
	int err = request_db_prepare(e->db,
				     "INSERT INTO temp.w SELECT id "
				     "FROM src.window WHERE file = ?1",
				     &st);

	for (size_t i = 0; i < e->list.n && !err; i++) {
		const struct store_window *w = &e->list.windows[i];

		if (!w->bytes)
			continue;
		store_window_path(w, (enum store_kind)w->format, file);
		sqlite3_reset(st);
		err = request_db_error(
			sqlite3_bind_text(st, 1, file, -1, SQLITE_TRANSIENT));
		if (!err)
			err = request_db_error(sqlite3_step(st));
	}
	sqlite3_finalize(st);
	return err;
}

/* As a URI, to be read only: SQLite would write to its log else. */
static int export_attach(struct export *e)
{
	struct strbuf uri = STRBUF_INIT;
	const char *path = e->x->out->archive;
	sqlite3_stmt *st = NULL;
	int err = 0;

	/* An empty authority is before a path that begins with '/' only. */
	strbuf_puts(&uri, *path == '/' ? "file://" : "file:");
	for (const char *p = path; *p; p++)
		if (strchr("?#%", *p))
			strbuf_printf(&uri, "%%%02X", (unsigned char)*p);
		else
			strbuf_add(&uri, p, 1);
	strbuf_puts(&uri, "/" CATALOG_FILE "?mode=ro");
	if (!strbuf_str(&uri))
		err = -ENOMEM;
	if (!err)
		err = request_db_prepare(e->db, "ATTACH ?1 AS src", &st);
	if (!err)
		err = request_db_error(sqlite3_bind_text(st, 1, uri.data, -1,
							 SQLITE_TRANSIENT));
	if (!err)
		err = request_db_error(sqlite3_step(st));
	sqlite3_finalize(st);
	strbuf_fini(&uri);
	return err;
}

/* Rows are copied as they are, of this version or an earlier one. */
static int export_version(struct export *e, int *version)
{
	sqlite3_stmt *st;
	int err = request_db_prepare(e->db, "PRAGMA src.user_version", &st);

	if (!err)
		err = request_db_error(sqlite3_step(st));
	*version = err ? 0 : sqlite3_column_int(st, 0);
	if (!err &&
	    (*version > CATALOG_VERSION || *version < CATALOG_SCHEMA_TEXTS - 1))
		err = -EPROTONOSUPPORT;
	sqlite3_finalize(st);
	return err;
}

static int export_schema(struct export *e, int version)
{
	char sql[96];
	int err = 0;

	for (int i = 0; i < version && !err; i++) {
		err = export_exec(e, catalog_schema[i]);
		if (!err && i + 1 == CATALOG_SCHEMA_TEXTS)
			err = export_exec(e, catalog_schema_end);
	}
	if (!err && version == CATALOG_VERSION)
		err = export_exec(e, catalog_schema_views);
	snprintf(sql, sizeof(sql),
		 "PRAGMA main.application_id = %d; "
		 "PRAGMA main.user_version = %d",
		 CATALOG_APPLICATION, version);
	return err ? err : export_exec(e, sql);
}

static int export_progress(void *arg)
{
	return !request_go_on(arg);
}

static int export_rows(struct export *e)
{
	int err, version;

	sqlite3_progress_handler(e->db, EXPORT_OPS, export_progress, e->x);
	sqlite3_busy_timeout(e->db, 5000);
	/* Nothing in the file may call functions or have side effects. */
	sqlite3_db_config(e->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(e->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	err = export_attach(e);
	if (!err)
		err = export_version(e, &version);
	/* A file that has no name yet needs no journal. */
	if (!err)
		err = export_exec(e, "PRAGMA main.journal_mode = OFF");
	if (!err)
		err = export_exec(e, "PRAGMA temp_store = MEMORY");
	if (!err)
		err = export_exec(
			e, "CREATE TEMP TABLE w(id INTEGER PRIMARY KEY)");
	if (!err)
		err = export_exec(e, "BEGIN");
	if (!err)
		err = export_schema(e, version);
	if (!err)
		err = export_chosen(e);
	for (size_t i = 0; i < ARRAY_SIZE(export_sql) && !err; i++)
		if (!export_sql[i].version ||
		    export_sql[i].version == MIN(version, CATALOG_SCHEMA_TEXTS))
			err = export_exec(e, export_sql[i].sql);
	return err;
}

/* Written beside its place, and renamed. */
static int export_catalog(struct export *e)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE |
			  SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI;
	static const char *const logs[] = { CATALOG_FILE "-wal",
					    CATALOG_FILE "-shm",
					    CATALOG_FILE "-journal" };
	const char *tmp = CATALOG_FILE REPORTER_OUTFILE_TMP;
	char path[4096], from[4096];
	int err;

	snprintf(from, sizeof(from), "%s/" CATALOG_FILE, e->x->out->archive);
	if (access(from, F_OK) && errno == ENOENT)
		return 0;
	/* "./": a name that begins with "file:" would be a URI. */
	snprintf(path, sizeof(path), "%s%s/%s", *e->to->path == '/' ? "" : "./",
		 e->to->path, tmp);
	unlinkat(e->dir, tmp, 0);
	err = request_db_error(sqlite3_open_v2(path, &e->db, flags, NULL));
	if (!err)
		err = export_rows(e);
	if (sqlite3_close(e->db) != SQLITE_OK && !err)
		err = -EIO;
	e->db = NULL;
	/* A log of the one that is replaced would be applied to this one. */
	for (size_t i = 0; i < ARRAY_SIZE(logs) && !err; i++)
		if (unlinkat(e->dir, logs[i], 0) && errno != ENOENT)
			err = -errno;
	if (!err &&
	    (renameat(e->dir, tmp, e->dir, CATALOG_FILE) || fsync(e->dir)))
		err = -errno;
	if (err)
		unlinkat(e->dir, tmp, 0);
	e->to->catalog = !err;
	return err && err != -ECANCELED ? request_catalog_error(e->x, err)
					: err;
}

/* --- the whole ---------------------------------------------------------------------------- */

int reporter_export_run(const struct reporter_request *r,
			struct reporter_request_run *run,
			struct reporter_export *to)
{
	struct request_run x = { .r = r, .out = run };
	struct export e = { .x = &x, .to = to, .from = -1, .dir = -1 };
	struct reporter_query_span span;
	int err;

	*run->why = '\0';
	err = request_span(&x, &span);
	if (!err)
		err = export_open(&e);
	if (!err)
		err = export_windows(&e, &span);
	if (!err)
		err = export_catalog(&e);
	store_list_free(&e.list);
	store_free(e.store);
	if (e.from >= 0)
		close(e.from);
	if (e.dir >= 0)
		close(e.dir);
	if (err && !*run->why)
		request_fail(&x, err, "%s", strerror(-err));
	return err;
}
