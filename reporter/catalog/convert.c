// SPDX-License-Identifier: Apache-2.0
/*
 * convert: a catalog of version 3 becomes one of version 4, in which texts have numbers.
 * Its rows are copied some thousand at a time, so that neither the start of profd nor a
 * window waits for all of them; a catalog of some ten thousand processes is converted
 * before it is open.
 *
 * Until the end the file is one of version 3 to those who read it. Nothing else is
 * written meanwhile: the rows of this profd wait in memory, and its windows are added
 * from their files later. Rows keep their numbers, so that after kill -9 the copy goes on
 * after the last row it has.
 */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "reporter/catalog/internal.h"

#define CONVERT_CHUNK 2000 /* processes: some 50 ms */
#define CONVERT_AT_ONCE 10 /* chunks */

/*
 * What is copied at a time: images with the key of their program (schema.c), and all
 * texts of these.
 */
static const char convert_views[] =
	"CREATE TEMP VIEW IF NOT EXISTS old_image AS SELECT i.*, "
	"ifnull((SELECT id FROM text WHERE s = i.comm), 0) AS a, "
	"ifnull((SELECT id FROM text WHERE s = i.exe), 0) AS b, "
	"ifnull((SELECT id FROM text WHERE s = i.cwd), 0) AS c, "
	"ifnull((SELECT id FROM text WHERE s = i.build_id), 0) AS d, "
	"ifnull((SELECT id FROM cgroup WHERE path = i.cgroup), 0) AS e, "
	"ifnull(i.uid, -1) AS f, ifnull(i.gid, -1) AS g "
	"FROM main.image i WHERE i.process IN (SELECT id FROM temp.gone);"
	"CREATE TEMP VIEW IF NOT EXISTS old_text AS "
	"SELECT comm AS s, f FROM old_image UNION ALL "
	"SELECT exe, f FROM old_image UNION ALL "
	"SELECT cwd, f FROM old_image UNION ALL "
	"SELECT build_id, f FROM old_image";

/* A text of two users is the first one's. 'id_part' is a function of this file. */
static const char *const convert_rows[] = {
	"INSERT OR IGNORE INTO text(s, uid) SELECT s, min(f) FROM old_text "
	"WHERE s <> '' GROUP BY s",
	"INSERT INTO cgroup(path, seen_ns, container, engine, pod, unit) "
	"SELECT cgroup, max(ifnull(end_ns, 0)), max(container), max(engine), "
	"max(pod), max(unit) FROM old_image WHERE cgroup <> '' GROUP BY cgroup "
	"ON CONFLICT(path) DO UPDATE SET "
	"seen_ns = max(seen_ns, excluded.seen_ns), "
	"container = excluded.container, engine = excluded.engine, "
	"pod = excluded.pod, unit = excluded.unit",
	"INSERT OR IGNORE INTO program(comm, exe, cwd, build_id, cgroup, uid, "
	"gid) SELECT DISTINCT a, b, c, d, e, f, g FROM old_image",
	"INSERT OR IGNORE INTO word(s) SELECT DISTINCT entry FROM main.process "
	"WHERE id IN temp.gone AND entry <> '' LIMIT 100",
	"INSERT OR IGNORE INTO args(id, s, uid) SELECT id, argv, f "
	"FROM old_image WHERE argv IS NOT NULL ORDER BY id",
	"INSERT OR IGNORE INTO process_row(id, boot, pid, start_boot_ns, ppid, "
	"parent_row, parent_pid, parent_start_boot_ns, start_ns, end_ns, "
	"reap, seen, state, exit_code, signal, core, session, pgid, entry, "
	"entry_pid, kernel_thread, cpu_ns, user_ns, system_ns, cpu, samples, "
	"coverage, uid, maxrss_bytes, minflt, majflt) "
	"SELECT id, boot, pid, id_part(process, 1), ppid, parent_row, "
	"iif(parent_row IS NULL, id_part(parent, 0), NULL), "
	"iif(parent_row IS NULL, id_part(parent, 1), NULL), start_ns, end_ns, "
	"reap_ns - end_ns, seen_ns - ifnull(end_ns, 0), "
	"(SELECT id FROM word WHERE s = p.state), exit_code, signal, core, "
	"session, pgid, (SELECT id FROM word WHERE s = p.entry), entry_pid, "
	"kernel_thread, cpu_ns, user_ns, system_ns, "
	"(SELECT id FROM word WHERE s = p.cpu), samples, coverage, uid, "
	"maxrss_bytes, minflt, majflt FROM main.process p "
	"WHERE id IN temp.gone AND id_part(process, 1) IS NOT NULL "
	"ORDER BY id",
	"INSERT OR IGNORE INTO image_row(id, process, exec, start_ns, end_ns, "
	"program, args, args_cut, samples) SELECT id, process, "
	"id_part(image, 2), start_ns, end_ns, (SELECT id FROM program WHERE "
	"comm = a AND exe = b AND cwd = c AND build_id = d AND cgroup = e AND "
	"uid = f AND gid = g), iif(argv IS NULL, NULL, id), args_cut, samples "
	"FROM old_image WHERE id_part(image, 2) IS NOT NULL AND "
	"process IN (SELECT id FROM process_row) ORDER BY id",
	"INSERT INTO text_use SELECT f, sum(length(CAST(argv AS BLOB)) + 16) "
	"FROM old_image WHERE argv IS NOT NULL GROUP BY f ON CONFLICT(uid) "
	"DO UPDATE SET bytes = bytes + excluded.bytes",
	"DELETE FROM temp.gone",
};

static const char convert_last[] =
	"INSERT INTO text_use SELECT uid, sum(length(CAST(s AS BLOB)) + 16) "
	"FROM text WHERE true GROUP BY uid ON CONFLICT(uid) "
	"DO UPDATE SET bytes = bytes + excluded.bytes;"
	"DROP VIEW old_text; DROP VIEW old_image";

/* id_part(ID, N): 0 its pid, 1 its start, 2 the number of its exec; or NULL. */
static void convert_id_part(sqlite3_context *c, int n, sqlite3_value **args)
{
	const char *id = (const char *)sqlite3_value_text(args[0]);
	struct abi_key key;

	if (!id || !catalog_id_parse(id, &key))
		return;
	switch (sqlite3_value_int(args[1])) {
	case 0:
		sqlite3_result_int64(c, key.tgid);
		break;
	case 1:
		sqlite3_result_int64(c, (int64_t)key.start_boottime);
		break;
	default:
		sqlite3_result_int64(c, (int64_t)key.exec_id);
	}
}

static int convert_exec(struct catalog_db *db, const char *sql)
{
	return catalog_db_errno(db,
				sqlite3_exec(db->sql, sql, NULL, NULL, NULL));
}

/* The integers of a row of two; 0 where it is NULL. */
static int convert_ask(struct catalog_db *db, const char *sql, int64_t value[2])
{
	sqlite3_stmt *s;
	int rc = sqlite3_prepare_v2(db->sql, sql, -1, &s, NULL);

	value[0] = value[1] = 0;
	if (rc != SQLITE_OK)
		return catalog_db_errno(db, rc);
	rc = sqlite3_step(s);
	if (rc == SQLITE_ROW) {
		value[0] = sqlite3_column_int64(s, 0);
		value[1] = sqlite3_column_int64(s, 1);
	}
	sqlite3_finalize(s);
	return catalog_db_errno(db, rc);
}

/* The processes after the last one: into temp.gone. '*n' of them. */
static int convert_choose(struct catalog_db *db, int64_t *n)
{
	int64_t last[2];
	char sql[160];
	int err;

	snprintf(sql, sizeof(sql),
		 "INSERT INTO temp.gone SELECT id FROM main.process "
		 "WHERE id > %" PRId64 " ORDER BY id LIMIT %d",
		 db->converted, CONVERT_CHUNK);
	err = convert_exec(db, sql);
	if (!err)
		err = convert_ask(db, "SELECT count(*), max(id) FROM temp.gone",
				  last);
	if (err)
		return err;
	*n = last[0];
	db->converted = MAX(db->converted, last[1]);
	return 0;
}

static int convert_copy(struct catalog_db *db)
{
	int err = 0;

	for (size_t i = 0; i < ARRAY_SIZE(convert_rows) && !err; i++)
		err = convert_exec(db, convert_rows[i]);
	return err;
}

static int convert_end(struct catalog_db *db)
{
	char done[64];
	int err = convert_exec(db, convert_last);

	if (!err)
		err = convert_exec(db, catalog_schema_end);
	if (!err)
		err = convert_exec(db, catalog_schema_views);
	snprintf(done, sizeof(done), "PRAGMA user_version = %d",
		 CATALOG_VERSION);
	return err ? err : convert_exec(db, done);
}

int catalog_convert_step(struct catalog_db *db)
{
	const int64_t before = db->converted;
	int64_t n = 0;
	int err = convert_exec(db, "BEGIN IMMEDIATE");

	if (err)
		return err;
	err = convert_choose(db, &n);
	if (!err)
		err = n ? convert_copy(db) : convert_end(db);
	if (!err)
		err = convert_exec(db, "COMMIT");
	if (err) {
		if (!sqlite3_get_autocommit(db->sql))
			convert_exec(db, "ROLLBACK");
		db->converted = before;
	} else if (!n) {
		db->converting = false;
	}
	return err;
}

int catalog_convert_begin(struct catalog_db *db)
{
	int64_t at[2];
	int err = catalog_db_errno(
		db, sqlite3_create_function(db->sql, "id_part", 2,
					    SQLITE_UTF8 | SQLITE_DETERMINISTIC |
						    SQLITE_DIRECTONLY,
					    NULL, convert_id_part, NULL, NULL));

	if (!err)
		err = convert_exec(db, convert_views);
	if (!err)
		err = convert_ask(db, "SELECT max(id), 0 FROM process_row", at);
	if (err)
		return err;
	db->converted = at[0];
	db->converting = true;
	for (int i = 0; i < CONVERT_AT_ONCE && db->converting && !err; i++)
		err = catalog_convert_step(db);
	return err;
}
