// SPDX-License-Identifier: Apache-2.0
/*
 * db: the catalog's file. In WAL mode readers neither wait for the writer nor hold it
 * up. The WAL and its index stay when the last connection closes
 * (SQLITE_FCNTL_PERSIST_WAL): members of the group, who may not create files, could
 * not read the catalog without them.
 *
 * The directory belongs to profd, so no other user can make the file or a link in its
 * place. It is never opened except by SQLite, and the WAL's index only while SQLite has
 * it, too: closing any descriptor of a file drops the process's locks on it (fcntl(2)).
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "reporter/catalog/internal.h"

#define DB_MODE 0640
#define DB_BUSY_MS 1000 /* another program writes */
/*
 * Pages of the WAL: above the first number they are copied to the file, as far as no
 * reader needs them; above the second one readers are waited for, for a moment; above
 * the third one, 64 MiB, nothing is written until there is no such reader.
 */
#define DB_WAL_PAGES 1000
#define DB_WAL_WAIT 4096
#define DB_WAL_MOST 16384
#define DB_WAIT_MS 100
/* Bytes of the WAL's index that readers lock (sqlite.org/walformat.html, 2.3.1). */
#define DB_READ_LOCKS 123
#define DB_NREAD_LOCKS 5

int catalog_db_errno(struct catalog_db *db, int rc)
{
	int os;

	switch (rc & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return 0;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return -EBUSY;
	case SQLITE_CORRUPT:
	case SQLITE_NOTADB:
	case SQLITE_ERROR: /* a table or column is missing */
	case SQLITE_SCHEMA:
		return -EBADMSG;
	case SQLITE_CONSTRAINT:
		return -EINVAL;
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return -EACCES;
	default:
		os = db->sql ? sqlite3_system_errno(db->sql) : 0;
		return os == ENOSPC || os == EDQUOT ? -ENOSPC : -EIO;
	}
}

int catalog_db_run(struct catalog_db *db, enum catalog_statement which,
		   int64_t *value)
{
	sqlite3_stmt *s = db->statements[which];
	int rc = sqlite3_step(s);

	if (rc == SQLITE_ROW) {
		/* NULL: min() of no rows. */
		if (value && sqlite3_column_type(s, 0) != SQLITE_NULL)
			*value = sqlite3_column_int64(s, 0);
		/* RETURNING: the row exists, the statement is not at its end. */
		rc = sqlite3_step(s);
	}
	sqlite3_reset(s);
	return catalog_db_errno(db, rc);
}

int catalog_db_pragma(struct catalog_db *db, const char *pragma, int64_t *value)
{
	char sql[96];
	sqlite3_stmt *s;
	int rc;

	snprintf(sql, sizeof(sql), "PRAGMA %s", pragma);
	rc = sqlite3_prepare_v2(db->sql, sql, -1, &s, NULL);
	if (rc == SQLITE_OK) {
		rc = sqlite3_step(s);
		if (rc == SQLITE_ROW && value)
			*value = sqlite3_column_int64(s, 0);
		sqlite3_finalize(s);
	}
	return catalog_db_errno(db, rc);
}

static int db_exec(struct catalog_db *db, const char *sql)
{
	return catalog_db_errno(db,
				sqlite3_exec(db->sql, sql, NULL, NULL, NULL));
}

void catalog_db_close(struct catalog_db *db)
{
	size_t i;

	for (i = 0; i < CATALOG_NSTATEMENTS; i++)
		sqlite3_finalize(db->statements[i]);
	memset(db->statements, 0, sizeof(db->statements));
	sqlite3_close(db->sql);
	if (db->index_open)
		close(db->index);
	db->index_open = false;
	db->sql = NULL;
	db->boot = db->run = 0;
	db->oldest = 0;
	db->frames = 0;
	db->parent_row = 0;
	db->converting = db->loose = false;
	catalog_texts_forget(db);
}

/* --- the directory ------------------------------------------------------------- */

static int db_open_dir(const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static void db_set_aside(struct catalog_db *db, int dirfd)
{
	if (renameat(dirfd, CATALOG_FILE, dirfd, CATALOG_BAD))
		return;
	db->set_aside++;
	/* It may hold what the file lacks. */
	if (renameat(dirfd, CATALOG_FILE "-wal", dirfd, CATALOG_BAD "-wal"))
		unlinkat(dirfd, CATALOG_BAD "-wal", 0);
	unlinkat(dirfd, CATALOG_FILE "-shm", 0);
}

void catalog_db_set_aside(struct catalog_db *db, const char *dir)
{
	int fd = db_open_dir(dir);

	catalog_db_close(db);
	if (fd < 0)
		return;
	db_set_aside(db, fd);
	close(fd);
}

static bool db_is_ours(const struct stat *st)
{
	return S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
	       st->st_nlink == 1;
}

/* The archive's group may read it, nobody else. SQLite's other files follow. */
static int db_create(int dirfd)
{
	struct stat st;
	int fd = openat(dirfd, CATALOG_FILE,
			O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			DB_MODE);

	if (fd < 0)
		return -errno;
	/* A WAL of another file must not become that of this one. */
	unlinkat(dirfd, CATALOG_FILE "-wal", 0);
	unlinkat(dirfd, CATALOG_FILE "-shm", 0);
	if (fstat(dirfd, &st) || fchown(fd, (uid_t)-1, st.st_gid) ||
	    fchmod(fd, DB_MODE)) {
		/* With the group of the user then. */
	}
	close(fd);
	return 0;
}

/* Ensures that the name is a regular file of ours. */
static int db_prepare(struct catalog_db *db, int dirfd)
{
	struct stat st;
	int i, err;

	for (i = 0; i < 2; i++) {
		if (!fstatat(dirfd, CATALOG_FILE, &st, AT_SYMLINK_NOFOLLOW) &&
		    !db_is_ours(&st))
			db_set_aside(db, dirfd);
		err = db_create(dirfd);
		if (err && err != -EEXIST)
			return err;
		if (fstatat(dirfd, CATALOG_FILE, &st, AT_SYMLINK_NOFOLLOW))
			return -errno;
		if (!db_is_ours(&st))
			continue;
		db->dev = st.st_dev;
		db->ino = st.st_ino;
		return 0;
	}
	return -EPERM;
}

void catalog_db_check(struct catalog_db *db, const char *dir)
{
	char path[PATH_MAX];
	struct stat st;

	if (!db->sql)
		return;
	snprintf(path, sizeof(path), "%s/" CATALOG_FILE, dir);
	if (lstat(path, &st) || st.st_dev != db->dev || st.st_ino != db->ino)
		catalog_db_close(db);
}

/* --- opening -------------------------------------------------------------------- */

static int db_on_commit(void *arg, sqlite3 *sql, const char *name, int frames)
{
	struct catalog_db *db = arg;

	db->frames = frames;
	return SQLITE_OK;
}

static void db_checkpoint(struct catalog_db *db)
{
	int mode = db->frames < DB_WAL_WAIT ? SQLITE_CHECKPOINT_PASSIVE
					    : SQLITE_CHECKPOINT_TRUNCATE;
	int rc;

	sqlite3_busy_timeout(db->sql, DB_WAIT_MS);
	rc = sqlite3_wal_checkpoint_v2(db->sql, NULL, mode, NULL, NULL);
	sqlite3_busy_timeout(db->sql, DB_BUSY_MS);
	if (rc == SQLITE_OK && mode == SQLITE_CHECKPOINT_TRUNCATE)
		db->frames = 0;
}

bool catalog_db_stalled(struct catalog_db *db)
{
	if (db->frames >= DB_WAL_MOST)
		db_checkpoint(db);
	return db->frames >= DB_WAL_MOST;
}

pid_t catalog_db_reader(struct catalog_db *db, const char *dir)
{
	struct flock lock = { .l_type = F_WRLCK,
			      .l_whence = SEEK_SET,
			      .l_start = DB_READ_LOCKS,
			      .l_len = DB_NREAD_LOCKS };
	char path[PATH_MAX];

	if (!db->sql)
		return 0;
	if (!db->index_open) {
		snprintf(path, sizeof(path), "%s/" CATALOG_FILE "-shm", dir);
		db->index = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		db->index_open = db->index >= 0;
	}
	if (!db->index_open || fcntl(db->index, F_GETLK, &lock))
		return 0;
	return lock.l_type == F_UNLCK ? 0 : MAX(lock.l_pid, 0);
}

void catalog_db_checkpoint(struct catalog_db *db, uint64_t *bytes,
			   uint64_t *wal_bytes)
{
	int64_t pages = 0, size = 0;

	if (db->frames >= DB_WAL_PAGES)
		db_checkpoint(db);
	catalog_db_pragma(db, "page_count", &pages);
	catalog_db_pragma(db, "page_size", &size);
	*bytes = pages * size;
	*wal_bytes = db->frames * size;
}

static int db_connect(struct catalog_db *db, const char *dir)
{
	const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOFOLLOW |
			  SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE;
	char path[PATH_MAX + sizeof(CATALOG_FILE) + 1];
	int rc, keep = 1;

	/* NOFOLLOW refuses links in any component; those of DIR's path are ours. */
	if (!realpath(dir, path))
		return -errno;
	strcat(path, "/" CATALOG_FILE);
	rc = sqlite3_open_v2(path, &db->sql, flags, NULL);
	if (rc != SQLITE_OK)
		return catalog_db_errno(db, rc);
	sqlite3_extended_result_codes(db->sql, 1);
	sqlite3_busy_timeout(db->sql, DB_BUSY_MS);
	/* In place of the one that does a checkpoint. */
	sqlite3_wal_hook(db->sql, db_on_commit, db);
	sqlite3_db_config(db->sql, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	rc = sqlite3_file_control(db->sql, "main", SQLITE_FCNTL_PERSIST_WAL,
				  &keep);
	return catalog_db_errno(db, rc);
}

/* 0: it is a catalog, or empty. -EBADMSG: it is neither. */
static int db_identify(struct catalog_db *db, int64_t *version)
{
	int64_t application = 0, objects = 0;
	int err = catalog_db_pragma(db, "application_id", &application);

	*version = 0;
	if (!err)
		err = catalog_db_pragma(db, "user_version", version);
	if (!err)
		err = catalog_db_pragma(db, "schema_version", &objects);
	if (err)
		return err;
	if (application != CATALOG_APPLICATION)
		return application || *version || objects ? -EBADMSG : 0;
	return *version > CATALOG_VERSION ? -EPROTONOSUPPORT : 0;
}

static bool db_has_column(struct catalog_db *db, const char *table,
			  const char *column)
{
	return sqlite3_table_column_metadata(db->sql, "main", table, column,
					     NULL, NULL, NULL, NULL,
					     NULL) == SQLITE_OK;
}

/* Of a version in which texts have numbers: in one transaction. */
static int db_extend(struct catalog_db *db, int64_t version)
{
	char done[64];
	int err = 0;

	if (version == CATALOG_VERSION)
		return 0;
	err = db_exec(db, "BEGIN IMMEDIATE");
	if (err)
		return err;
	for (; !err && version < CATALOG_VERSION; version++)
		err = db_exec(db, catalog_schema[version]);
	if (!err)
		err = db_exec(db, catalog_schema_views);
	snprintf(done, sizeof(done), "PRAGMA user_version = %d; COMMIT",
		 CATALOG_VERSION);
	if (!err)
		err = db_exec(db, done);
	if (err)
		db_exec(db, "ROLLBACK");
	return err;
}

/*
 * The tables of this version. Those of version 3 have rows meanwhile, see convert.c, by
 * which number the file goes until they are copied.
 */
static int db_migrate(struct catalog_db *db, int64_t version)
{
	const int64_t last = CATALOG_SCHEMA_TEXTS - 1;
	/* A conversion has begun. */
	bool begun = version == last && db_has_column(db, "process_row", "id");
	char done[128];
	int err = 0;

	if (version < 0)
		return -EBADMSG;
	if (version > last)
		return db_extend(db, version);
	/* Takes effect before there are tables only. */
	if (!version)
		err = db_exec(db, "PRAGMA auto_vacuum = INCREMENTAL");
	if (!err)
		err = db_exec(db, "BEGIN IMMEDIATE");
	if (err)
		return err;
	for (; !err && version < last; version++)
		err = db_exec(db, catalog_schema[version]);
	if (!err && !begun)
		err = db_exec(db, catalog_schema[version]);
	/* Perhaps by a profd of the version before. */
	if (!err && !db_has_column(db, "image_row", "service"))
		err = db_exec(db, catalog_schema[CATALOG_SCHEMA_TEXTS]);
	snprintf(done, sizeof(done),
		 "PRAGMA application_id = %d; PRAGMA user_version = %d; COMMIT",
		 CATALOG_APPLICATION, (int)last);
	if (!err)
		err = db_exec(db, done);
	if (err)
		db_exec(db, "ROLLBACK");
	return err ? err : catalog_convert_begin(db);
}

static int db_statements(struct catalog_db *db)
{
	int rc = SQLITE_OK;
	size_t i;

	for (i = 0; i < CATALOG_NSTATEMENTS && rc == SQLITE_OK; i++)
		rc = sqlite3_prepare_v3(db->sql, catalog_statements[i], -1,
					SQLITE_PREPARE_PERSISTENT,
					&db->statements[i], NULL);
	return catalog_db_errno(db, rc);
}

int catalog_db_boot(struct catalog_db *db, const uint8_t id[STORE_BOOT_ID],
		    int64_t *row)
{
	char text[37];
	struct catalog_bind b;
	int err;

	/* As in /proc/sys/kernel/random/boot_id. */
	snprintf(text, sizeof(text),
		 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-"
		 "%02x%02x%02x%02x%02x%02x",
		 id[0], id[1], id[2], id[3], id[4], id[5], id[6], id[7], id[8],
		 id[9], id[10], id[11], id[12], id[13], id[14], id[15]);
	b = catalog_bind(db, CATALOG_BOOT_ADD);
	catalog_bind_str(&b, 1, text);
	err = catalog_bind_run(&b, CATALOG_BOOT_ADD, NULL);
	if (err)
		return err;
	b = catalog_bind(db, CATALOG_BOOT_FIND);
	catalog_bind_str(&b, 1, text);
	return catalog_bind_run(&b, CATALOG_BOOT_FIND, row);
}

/* The row of this run, made if it is missing: the file may be a new one. */
static int db_run(struct catalog_db *db, const struct catalog_run *run)
{
	struct catalog_bind b = catalog_bind(db, CATALOG_RUN_ADD);
	int err;

	catalog_bind_int(&b, 1, db->boot);
	catalog_bind_int(&b, 2, run->start_ns);
	catalog_bind_int(&b, 3, run->start_boot_ns);
	catalog_bind_str(&b, 4, run->version);
	catalog_bind_int(&b, 5, run->freq_hz);
	err = catalog_bind_run(&b, CATALOG_RUN_ADD, NULL);
	if (err)
		return err;
	b = catalog_bind(db, CATALOG_RUN_FIND);
	catalog_bind_int(&b, 1, db->boot);
	catalog_bind_int(&b, 2, run->start_boot_ns);
	return catalog_bind_run(&b, CATALOG_RUN_FIND, &db->run);
}

int catalog_db_alive(struct catalog_db *db, bool ends)
{
	enum catalog_statement which =
		ends ? CATALOG_RUN_END : CATALOG_RUN_ALIVE;
	struct catalog_bind b = catalog_bind(db, which);

	catalog_bind_int(&b, 1, db->run);
	catalog_bind_int(&b, 2, clock_boottime_ns() + clock_wall_offset_ns());
	return catalog_bind_run(&b, which, NULL);
}

static int db_open_once(struct catalog_db *db, const char *dir,
			const struct catalog_run *run)
{
	/*
	 * NORMAL: a transaction may be undone by a loss of power, not by kill -9, and
	 * the file is never damaged. The writer does the checkpoints itself.
	 */
	static const char *const settings =
		"PRAGMA journal_mode = WAL;"
		"PRAGMA synchronous = NORMAL;"
		"PRAGMA journal_size_limit = 4194304;"
		"PRAGMA cache_size = -4096;"
		"PRAGMA temp_store = MEMORY;"
		"PRAGMA trusted_schema = OFF;"
		"CREATE TEMP TABLE gone(id INTEGER PRIMARY KEY);"
		"CREATE TEMP TABLE loose(id INTEGER PRIMARY KEY);"
		"CREATE TEMP TABLE loose_args(id INTEGER PRIMARY KEY, program);"
		"CREATE TEMP TABLE loose_text(id INTEGER PRIMARY KEY)";
	int64_t version;
	int err = db_connect(db, dir);

	if (!err)
		err = db_identify(db, &version);
	/* Before the change to WAL mode, which writes to the file. */
	if (!err && !version)
		err = db_exec(db, "PRAGMA auto_vacuum = INCREMENTAL");
	if (!err)
		err = db_exec(db, settings);
	if (!err)
		err = db_migrate(db, version);
	if (!err)
		err = db_statements(db);
	if (!err)
		err = catalog_db_boot(db, run->boot_id, &db->boot);
	if (!err)
		err = db_run(db, run);
	db->fresh = !err;
	return err;
}

int catalog_db_open(struct catalog_db *db, const char *dir,
		    const struct catalog_run *run)
{
	int i, err, fd = db_open_dir(dir);

	if (fd < 0)
		return fd;
	for (i = 0; i < 2; i++) {
		err = db_prepare(db, fd);
		if (!err)
			err = db_open_once(db, dir, run);
		if (err)
			catalog_db_close(db);
		if (err != -EBADMSG)
			break;
		db_set_aside(db, fd);
	}
	close(fd);
	return err;
}
