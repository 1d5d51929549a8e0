/* SPDX-License-Identifier: Apache-2.0 */
/* schema: the tables of the catalog, and the statements on them. */
#ifndef REPORTER_CATALOG_SCHEMA_H
#define REPORTER_CATALOG_SCHEMA_H

/* The version since which texts have numbers. */
#define CATALOG_SCHEMA_TEXTS 4

/*
 * Makes version i + 1 of version i; CATALOG_VERSION elements. Of CATALOG_SCHEMA_TEXTS it
 * makes the tables; when they have the rows of those of the version before, the other one
 * replaces these by views.
 */
extern const char *const catalog_schema[];
extern const char catalog_schema_end[];
/* Views of CATALOG_SCHEMA_TEXTS become those of the last version, which has the tables. */
extern const char catalog_schema_views[];

/* X(NAME, the columns of table process that rows.c binds, by number) */
#define CATALOG_STATEMENTS(X)                                                            \
	X(BEGIN, "BEGIN IMMEDIATE")                                                      \
	X(COMMIT, "COMMIT")                                                              \
	X(ROLLBACK, "ROLLBACK")                                                          \
	X(BOOT_ADD, "INSERT INTO boot(boot_id) VALUES(?1) "                              \
		    "ON CONFLICT DO NOTHING")                                            \
	X(BOOT_FIND, "SELECT id FROM boot WHERE boot_id = ?1")                           \
	X(PROCESS_FIND, "SELECT id FROM process_row WHERE pid = ?2 AND "                 \
			"start_boot_ns = ?3 AND boot = ?1")                              \
	X(PROCESS_ADD,                                                                   \
	  "INSERT INTO process_row(boot, parent_start_boot_ns, pid, ppid, "              \
	  "parent_pid, parent_row, start_ns, start_boot_ns, seen, state, "               \
	  "session, pgid, entry, entry_pid, kernel_thread, samples, cpu, "               \
	  "cpu_ns, user_ns, system_ns, coverage, maxrss_bytes, minflt, "                 \
	  "majflt, end_ns, reap, exit_code, signal, core, uid) "                         \
	  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, "              \
	  "?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, "                 \
	  "?26, ?27, ?28, ?29, ?30) "                                                    \
	  "ON CONFLICT DO NOTHING")                                                      \
	/* Of a living one: no column of an index. */                                    \
	X(PROCESS_SEEN,                                                                  \
	  "UPDATE process_row SET ppid = ?4, "                                           \
	  "parent_pid = coalesce(parent_pid, ?5), "                                      \
	  "parent_start_boot_ns = coalesce(parent_start_boot_ns, ?2), "                  \
	  "start_ns = coalesce(start_ns, ?7), start_boot_ns = ?8, "                      \
	  "seen = ?9, state = ?10, session = ?11, pgid = ?12, "                          \
	  "entry = ?13, entry_pid = ?14, kernel_thread = ?15, "                          \
	  "samples = ?16, cpu = ?17, cpu_ns = ?18, user_ns = ?19, "                      \
	  "system_ns = ?20, coverage = ?21, maxrss_bytes = ?22, "                        \
	  "minflt = ?23, majflt = ?24, uid = ?30 "                                       \
	  "WHERE pid = ?3 AND start_boot_ns = ?8 AND boot = ?1 "                         \
	  "RETURNING id")                                                                \
	X(PROCESS_END,                                                                   \
	  "UPDATE process_row SET ppid = ?4, "                                           \
	  "parent_pid = coalesce(parent_pid, ?5), "                                      \
	  "parent_start_boot_ns = coalesce(parent_start_boot_ns, ?2), "                  \
	  "parent_row = coalesce(parent_row, ?6), "                                      \
	  "start_ns = coalesce(start_ns, ?7), start_boot_ns = ?8, "                      \
	  "seen = ?9, state = ?10, session = ?11, pgid = ?12, "                          \
	  "entry = ?13, entry_pid = ?14, kernel_thread = ?15, "                          \
	  "samples = ?16, cpu = ?17, cpu_ns = ?18, user_ns = ?19, "                      \
	  "system_ns = ?20, coverage = ?21, maxrss_bytes = ?22, "                        \
	  "minflt = ?23, majflt = ?24, end_ns = ?25, reap = ?26, "                       \
	  "exit_code = ?27, signal = ?28, core = ?29, uid = ?30 "                        \
	  "WHERE pid = ?3 AND start_boot_ns = ?8 AND boot = ?1 "                         \
	  "RETURNING id")                                                                \
	/* Known by its labels only: it ended when it was seen last. */                  \
	X(PROCESS_LABELS,                                                                \
	  "INSERT INTO process_row(boot, pid, start_boot_ns, start_ns, "                 \
	  "seen, end_ns, entry, entry_pid) "                                             \
	  "VALUES(?1, ?2, ?3, ?4, 0, ?5, ?6, ?7)")                                       \
	X(PROCESS_AGAIN, "UPDATE process_row SET end_ns = ?2 WHERE id = ?1 "             \
			 "AND state IS NULL AND end_ns < ?2")                            \
	X(PROCESS_VANISH,                                                                \
	  "UPDATE process_row SET state = (SELECT id FROM word WHERE "                   \
	  "s = 'vanished'), end_ns = seen, seen = 0 WHERE end_ns IS NULL "               \
	  "AND state IN (SELECT id FROM word WHERE s IN "                                \
	  "('alive', 'exited'))")                                                        \
	X(WORD_FIND, "SELECT id FROM word WHERE s = ?1")                                 \
	/* There are few: of states, accounts and kinds of entry. */                     \
	X(WORD_ADD, "INSERT INTO word(s) SELECT ?1 WHERE "                               \
		    "(SELECT count(*) FROM word) < 256")                                 \
	X(TEXT_FIND, "SELECT id FROM text WHERE s = ?1")                                 \
	X(TEXT_ADD, "INSERT INTO text(s, uid) VALUES(?1, ?2)")                           \
	X(ARGS_ADD, "INSERT INTO args(s, uid) VALUES(?1, ?2)")                           \
	X(USE_FIND, "SELECT bytes FROM text_use WHERE uid = ?1")                         \
	X(USE_SET, "INSERT INTO text_use VALUES(?1, ?2) ON CONFLICT(uid) "               \
		   "DO UPDATE SET bytes = ?2")                                           \
	X(USE_OLD, "DELETE FROM text_use WHERE bytes <= 0")                              \
	X(PROGRAM_FIND,                                                                  \
	  "SELECT id FROM program WHERE comm = ?1 AND exe = ?2 AND "                     \
	  "cwd = ?3 AND build_id = ?4 AND cgroup = ?5 AND uid = ?6 AND "                 \
	  "gid = ?7")                                                                    \
	X(PROGRAM_ADD,                                                                   \
	  "INSERT INTO program(comm, exe, cwd, build_id, cgroup, uid, gid) "             \
	  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)")                                          \
	X(IMAGE_ADD,                                                                     \
	  "INSERT INTO image_row(process, exec, start_ns, end_ns, program, "             \
	  "args, args_cut, samples, service) "                                           \
	  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) "                                  \
	  "ON CONFLICT DO NOTHING")                                                      \
	X(IMAGE_SEEN,                                                                    \
	  "UPDATE image_row SET start_ns = coalesce(start_ns, ?3), "                     \
	  "end_ns = ?4, program = ?5, args = coalesce(?6, args), "                       \
	  "service = coalesce(?9, service), "                                            \
	  "args_cut = max(?7, args_cut), samples = max(?8, samples) WHERE process = ?1 " \
	  "AND exec = ?2")                                                               \
	/* As it is in its row. */                                                       \
	X(IMAGE_PROGRAM,                                                                 \
	  "SELECT g.id, g.exe, g.cwd, g.build_id, g.cgroup, "                            \
	  "i.args FROM image_row i JOIN program g "                                      \
	  "ON g.id = i.program WHERE i.process = ?1 AND i.exec = ?2")                    \
	X(PROGRAM_LOOSE, "INSERT OR IGNORE INTO temp.loose VALUES(?1)")                  \
	X(IMAGE_FIND,                                                                    \
	  "SELECT id FROM image_row WHERE process = ?1 AND exec = ?2")                   \
	X(RUN_ADD,                                                                       \
	  "INSERT INTO run(boot, start_ns, start_boot_ns, alive_ns, version, "           \
	  "freq_hz) VALUES(?1, ?2, ?3, ?2, ?4, ?5) ON CONFLICT DO NOTHING")              \
	X(RUN_FIND,                                                                      \
	  "SELECT id FROM run WHERE boot = ?1 AND start_boot_ns = ?2")                   \
	X(RUN_ALIVE, "UPDATE run SET alive_ns = ?2 WHERE id = ?1")                       \
	X(RUN_END, "UPDATE run SET alive_ns = ?2, end_ns = ?2 WHERE id = ?1")            \
	X(RUN_OLD, "DELETE FROM run WHERE alive_ns < ?1 AND NOT EXISTS "                 \
		   "(SELECT 1 FROM window WHERE run = run.id)")                          \
	X(CHANGE_ADD,                                                                    \
	  "INSERT INTO change(boot, time_ns, time_boot_ns, kind, process, "              \
	  "image, comm, uid, gid, cgroup, detail) "                                      \
	  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")                        \
	/* Numbers grow with time, nearly. */                                            \
	X(CHANGE_OLD,                                                                    \
	  "DELETE FROM change WHERE id < (SELECT min(id) FROM change) + "                \
	  "1000 AND (time_ns < ?1 OR "                                                   \
	  "id <= (SELECT max(id) FROM change) - ?2)")                                    \
	X(REST_ADD,                                                                      \
	  "INSERT INTO rest(window, uid, comm, exe, count, failed, cpu_ns) "             \
	  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET "                \
	  "count = count + ?5, failed = failed + ?6, cpu_ns = cpu_ns + ?7")              \
	X(CGROUP_SEEN,                                                                   \
	  "INSERT INTO cgroup(path, seen_ns, container, engine, pod, unit) "             \
	  "VALUES(?1, ?2, ?3, ?4, ?5, ?6) "                                              \
	  "ON CONFLICT(path) DO UPDATE SET "                                             \
	  "seen_ns = max(seen_ns, excluded.seen_ns), "                                   \
	  "container = excluded.container, engine = excluded.engine, "                   \
	  "pod = excluded.pod, unit = excluded.unit "                                    \
	  "RETURNING id")                                                                \
	X(CGROUP_OLD, "DELETE FROM cgroup WHERE seen_ns < ?1 AND NOT EXISTS "            \
		      "(SELECT 1 FROM program WHERE cgroup = cgroup.id)")                \
	X(WINDOW_ADD,                                                                    \
	  "INSERT INTO window(file, boot, begin_ns, end_ns, begin_boot_ns, "             \
	  "bytes, times_bytes, samples, run) VALUES(?1, ?2, ?3, ?4, ?5, ?6, "            \
	  "?7, ?8, ?9) ON CONFLICT DO NOTHING")                                          \
	X(WINDOW_IMAGE_ADD,                                                              \
	  "INSERT INTO window_image(window, image, samples, cpu_ns, cgroup) "            \
	  "VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET "                        \
	  "samples = samples + ?3, cpu_ns = cpu_ns + ?4")                                \
	X(LOSS_ADD, "INSERT INTO loss(window, cause, count) "                            \
		    "VALUES(?1, ?2, ?3) ON CONFLICT DO UPDATE SET "                      \
		    "count = count + ?3")                                                \
	X(WINDOW_FIND, "SELECT id FROM window WHERE file = ?1")                          \
	X(WINDOW_DROP_IMAGES, "DELETE FROM window_image WHERE window = ?1")              \
	X(WINDOW_DROP_LOSSES, "DELETE FROM loss WHERE window = ?1")                      \
	X(WINDOW_DROP_REST, "DELETE FROM rest WHERE window = ?1")                        \
	X(WINDOW_DROP, "DELETE FROM window WHERE id = ?1")                               \
	X(WINDOW_OLDEST, "SELECT min(begin_ns) FROM window")                             \
	X(WINDOW_NEXT, "SELECT id, file FROM window WHERE id > ?1 "                      \
		       "ORDER BY id LIMIT 1")                                            \
	X(GONE_FIND, "INSERT INTO temp.gone SELECT id FROM process_row "                 \
		     "WHERE end_ns < ?1 ORDER BY end_ns LIMIT 1000")                     \
	X(USER_MOST,                                                                     \
	  "SELECT coalesce(uid, -1) AS u FROM process_row "                              \
	  "WHERE end_ns IS NOT NULL GROUP BY uid ORDER BY count(*) * 500 + "             \
	  "ifnull((SELECT bytes FROM text_use WHERE uid = u), 0) DESC "                  \
	  "LIMIT 1")                                                                     \
	X(USER_TEXTS, "SELECT uid FROM text_use WHERE bytes > ?1 "                       \
		      "ORDER BY bytes DESC LIMIT 1")                                     \
	X(GONE_FIND_OF,                                                                  \
	  "INSERT INTO temp.gone SELECT id FROM process_row WHERE end_ns "               \
	  "IS NOT NULL AND uid IS nullif(?1, -1) "                                       \
	  "ORDER BY samples > 0, end_ns LIMIT 1000")                                     \
	/*                                                                    \
	 * They become counts of the window in which they ended; of a user's  \
	 * 32 most frequent programs, the others are one.                     \
	 */          \
	X(GONE_REST,                                                                     \
	  "WITH one AS (SELECT (SELECT id FROM window WHERE begin_ns <= "                \
	  "p.end_ns ORDER BY begin_ns DESC LIMIT 1) AS w, "                              \
	  "coalesce(p.uid, -1) AS u, coalesce(i.comm, '') AS c, "                        \
	  "coalesce(i.exe, '') AS e, "                                                   \
	  "coalesce(p.exit_code > 0, p.signal IS NOT NULL) AS f, "                       \
	  "coalesce(p.cpu_ns, 0) AS cpu FROM temp.gone g "                               \
	  "JOIN process p ON p.id = g.id LEFT JOIN image i ON i.id = "                   \
	  "(SELECT id FROM image WHERE process = p.id ORDER BY start_ns "                \
	  "DESC, id DESC LIMIT 1)), "                                                    \
	  "program AS (SELECT w, u, c, e, count(*) AS n, sum(f) AS f, "                  \
	  "sum(cpu) AS cpu FROM one WHERE w IS NOT NULL "                                \
	  "GROUP BY w, u, c, e), "                                                       \
	  "ranked AS (SELECT *, row_number() OVER (PARTITION BY w, u "                   \
	  "ORDER BY n DESC) > 32 OR (SELECT count(*) FROM rest "                         \
	  "WHERE window = w AND uid = u) > 64 AS many FROM program) "                    \
	  "INSERT INTO rest(window, uid, comm, exe, count, failed, cpu_ns) "             \
	  "SELECT w, u, iif(many, '', c), iif(many, '', e), sum(n), sum(f), "            \
	  "sum(cpu) FROM ranked WHERE true GROUP BY 1, 2, 3, 4 "                         \
	  "ON CONFLICT DO UPDATE SET count = count + excluded.count, "                   \
	  "failed = failed + excluded.failed, "                                          \
	  "cpu_ns = cpu_ns + excluded.cpu_ns")                                           \
	X(GONE_WINDOWS,                                                                  \
	  "DELETE FROM window_image WHERE image IN (SELECT i.id FROM image_row "         \
	  "i JOIN temp.gone g ON i.process = g.id)")                                     \
	X(GONE_PROGRAMS, "INSERT OR IGNORE INTO temp.loose SELECT program "              \
			 "FROM image_row WHERE process IN temp.gone")                    \
	X(GONE_ARGS, "INSERT OR IGNORE INTO temp.loose_args SELECT args, "               \
		     "program FROM image_row WHERE process IN temp.gone "                \
		     "AND args IS NOT NULL")                                             \
	X(GONE_IMAGES, "DELETE FROM image_row WHERE process IN temp.gone")               \
	/* It keeps the id of its parent. */                                             \
	X(GONE_PARENTS,                                                                  \
	  "UPDATE process_row SET parent_row = NULL, parent_pid = p.pid, "               \
	  "parent_start_boot_ns = p.start_boot_ns FROM temp.gone g "                     \
	  "JOIN process_row p ON p.id = g.id "                                           \
	  "WHERE process_row.parent_row = g.id")                                         \
	X(GONE_PROCESSES, "DELETE FROM process_row WHERE id IN temp.gone")               \
	/* Of programs and arguments, those that no image has any more. */               \
	X(ARGS_LOOSE, "INSERT OR IGNORE INTO temp.loose_args VALUES(?1, ?2)")            \
	X(LOOSE_ARGS, "DELETE FROM args WHERE id IN (SELECT l.id FROM "                  \
		      "temp.loose_args l WHERE NOT EXISTS (SELECT 1 FROM "               \
		      "image_row i WHERE i.program = l.program AND "                     \
		      "i.args = l.id))")                                                 \
	X(LOOSE_USED, "DELETE FROM temp.loose WHERE EXISTS (SELECT 1 FROM "              \
		      "image_row i WHERE i.program = loose.id)")                         \
	X(LOOSE_TEXTS,                                                                   \
	  "INSERT INTO temp.loose_text "                                                 \
	  "SELECT comm FROM program WHERE id IN temp.loose UNION "                       \
	  "SELECT exe FROM program WHERE id IN temp.loose UNION "                        \
	  "SELECT cwd FROM program WHERE id IN temp.loose UNION "                        \
	  "SELECT build_id FROM program WHERE id IN temp.loose")                         \
	X(LOOSE_PROGRAMS, "DELETE FROM program WHERE id IN temp.loose")                  \
	X(LOOSE_DROP,                                                                    \
	  "DELETE FROM text WHERE id IN temp.loose_text "                                \
	  "AND NOT EXISTS (SELECT 1 FROM program WHERE comm = text.id) "                 \
	  "AND NOT EXISTS (SELECT 1 FROM program WHERE exe = text.id) "                  \
	  "AND NOT EXISTS (SELECT 1 FROM program WHERE cwd = text.id) "                  \
	  "AND NOT EXISTS (SELECT 1 FROM program WHERE build_id = text.id)")             \
	X(LOOSE_CLEAR, "DELETE FROM temp.loose")                                         \
	X(LOOSE_CLEAR_ARGS, "DELETE FROM temp.loose_args")                               \
	X(LOOSE_CLEAR_TEXTS, "DELETE FROM temp.loose_text")                              \
	X(GONE_CLEAR, "DELETE FROM temp.gone")

enum catalog_statement {
#define X(NAME, sql) CATALOG_##NAME,
	CATALOG_STATEMENTS(X)
#undef X
	CATALOG_NSTATEMENTS,
};

extern const char *const catalog_statements[];

#endif /* REPORTER_CATALOG_SCHEMA_H */
