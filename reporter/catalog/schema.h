/* SPDX-License-Identifier: Apache-2.0 */
/* schema: the tables of the catalog, and the statements on them. */
#ifndef REPORTER_CATALOG_SCHEMA_H
#define REPORTER_CATALOG_SCHEMA_H

/* Makes version i + 1 of version i; CATALOG_VERSION elements. */
extern const char *const catalog_schema[];

/* X(NAME, the columns of table process that rows.c binds, by number) */
#define CATALOG_STATEMENTS(X)                                                   \
	X(BEGIN, "BEGIN IMMEDIATE")                                             \
	X(COMMIT, "COMMIT")                                                     \
	X(ROLLBACK, "ROLLBACK")                                                 \
	X(BOOT_ADD, "INSERT INTO boot(boot_id) VALUES(?1) "                     \
		    "ON CONFLICT DO NOTHING")                                   \
	X(BOOT_FIND, "SELECT id FROM boot WHERE boot_id = ?1")                  \
	X(PROCESS_FIND,                                                         \
	  "SELECT id FROM process WHERE boot = ?1 AND process = ?2")            \
	X(PROCESS_ADD,                                                          \
	  "INSERT INTO process(boot, process, pid, ppid, parent, "              \
	  "parent_row, start_ns, start_boot_ns, seen_ns, state, session, "      \
	  "pgid, entry, entry_pid, kernel_thread, samples, cpu, cpu_ns, "       \
	  "user_ns, system_ns, coverage, maxrss_bytes, minflt, majflt, "        \
	  "end_ns, reap_ns, exit_code, signal, core, uid) "                     \
	  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, "     \
	  "?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21, ?22, ?23, ?24, ?25, "        \
	  "?26, ?27, ?28, ?29, ?30) "                                           \
	  "ON CONFLICT DO NOTHING")                                             \
	/* Of a living one: no column of an index. */                           \
	X(PROCESS_SEEN,                                                         \
	  "UPDATE process SET ppid = ?4, parent = coalesce(parent, ?5), "       \
	  "start_ns = coalesce(start_ns, ?7), start_boot_ns = ?8, "             \
	  "seen_ns = ?9, state = ?10, session = ?11, pgid = ?12, "              \
	  "entry = ?13, entry_pid = ?14, kernel_thread = ?15, "                 \
	  "samples = ?16, cpu = ?17, cpu_ns = ?18, user_ns = ?19, "             \
	  "system_ns = ?20, coverage = ?21, maxrss_bytes = ?22, "               \
	  "minflt = ?23, majflt = ?24, uid = ?30 "                              \
	  "WHERE boot = ?1 AND process = ?2 "                                   \
	  "RETURNING id")                                                       \
	X(PROCESS_END,                                                          \
	  "UPDATE process SET ppid = ?4, parent = coalesce(parent, ?5), "       \
	  "parent_row = coalesce(parent_row, ?6), "                             \
	  "start_ns = coalesce(start_ns, ?7), start_boot_ns = ?8, "             \
	  "seen_ns = ?9, state = ?10, session = ?11, pgid = ?12, "              \
	  "entry = ?13, entry_pid = ?14, kernel_thread = ?15, "                 \
	  "samples = ?16, cpu = ?17, cpu_ns = ?18, user_ns = ?19, "             \
	  "system_ns = ?20, coverage = ?21, maxrss_bytes = ?22, "               \
	  "minflt = ?23, majflt = ?24, end_ns = ?25, reap_ns = ?26, "           \
	  "exit_code = ?27, signal = ?28, core = ?29, uid = ?30 "               \
	  "WHERE boot = ?1 AND process = ?2 RETURNING id")                      \
	/* Known by its labels only: it ended when it was seen last. */         \
	X(PROCESS_LABELS,                                                       \
	  "INSERT INTO process(boot, process, pid, start_boot_ns, start_ns, "   \
	  "seen_ns, end_ns, entry, entry_pid) "                                 \
	  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?6, ?7, ?8)")                         \
	X(PROCESS_AGAIN, "UPDATE process SET seen_ns = max(seen_ns, ?2), "      \
			 "end_ns = max(end_ns, ?2) WHERE id = ?1 AND "          \
			 "state IS NULL AND end_ns < ?2")                       \
	X(PROCESS_VANISH, "UPDATE process SET state = 'vanished', "             \
			  "end_ns = seen_ns WHERE end_ns IS NULL "              \
			  "AND state IN ('alive', 'exited')")                   \
	X(IMAGE_ADD,                                                            \
	  "INSERT INTO image(process, image, start_ns, end_ns, comm, exe, "     \
	  "argv, args_cut, cwd, uid, gid, cgroup, container, engine, pod, "     \
	  "unit, build_id, samples) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, "    \
	  "?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18) "                   \
	  "ON CONFLICT DO NOTHING")                                             \
	X(IMAGE_SEEN,                                                           \
	  "UPDATE image SET start_ns = coalesce(start_ns, ?3), end_ns = ?4, "   \
	  "comm = ?5, exe = coalesce(?6, exe), argv = coalesce(?7, argv), "     \
	  "args_cut = ?8, cwd = coalesce(?9, cwd), uid = ?10, gid = ?11, "      \
	  "cgroup = coalesce(?12, cgroup), "                                    \
	  "container = coalesce(?13, container), "                              \
	  "engine = coalesce(?14, engine), pod = coalesce(?15, pod), "          \
	  "unit = coalesce(?16, unit), build_id = coalesce(?17, build_id), "    \
	  "samples = max(?18, samples) WHERE process = ?1 AND image = ?2")      \
	X(IMAGE_FIND,                                                           \
	  "SELECT id FROM image WHERE process = ?1 AND image = ?2")             \
	X(RUN_ADD,                                                              \
	  "INSERT INTO run(boot, start_ns, start_boot_ns, alive_ns, version, "  \
	  "freq_hz) VALUES(?1, ?2, ?3, ?2, ?4, ?5) ON CONFLICT DO NOTHING")     \
	X(RUN_FIND,                                                             \
	  "SELECT id FROM run WHERE boot = ?1 AND start_boot_ns = ?2")          \
	X(RUN_ALIVE, "UPDATE run SET alive_ns = ?2 WHERE id = ?1")              \
	X(RUN_END, "UPDATE run SET alive_ns = ?2, end_ns = ?2 WHERE id = ?1")   \
	X(RUN_OLD, "DELETE FROM run WHERE alive_ns < ?1 AND NOT EXISTS "        \
		   "(SELECT 1 FROM window WHERE run = run.id)")                 \
	X(CHANGE_ADD,                                                           \
	  "INSERT INTO change(boot, time_ns, time_boot_ns, kind, process, "     \
	  "image, comm, uid, gid, cgroup, detail) "                             \
	  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)")               \
	/* Numbers grow with time, nearly. */                                   \
	X(CHANGE_OLD,                                                           \
	  "DELETE FROM change WHERE id < (SELECT min(id) FROM change) + "       \
	  "1000 AND (time_ns < ?1 OR "                                          \
	  "id <= (SELECT max(id) FROM change) - ?2)")                           \
	X(REST_ADD,                                                             \
	  "INSERT INTO rest(window, uid, comm, exe, count, failed, cpu_ns) "    \
	  "VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT DO UPDATE SET "       \
	  "count = count + ?5, failed = failed + ?6, cpu_ns = cpu_ns + ?7")     \
	X(CGROUP_SEEN,                                                          \
	  "INSERT INTO cgroup(path, seen_ns) VALUES(?1, ?2) "                   \
	  "ON CONFLICT(path) DO UPDATE SET seen_ns = max(seen_ns, ?2) "         \
	  "RETURNING id")                                                       \
	X(CGROUP_OLD, "DELETE FROM cgroup WHERE seen_ns < ?1")                  \
	X(WINDOW_ADD,                                                           \
	  "INSERT INTO window(file, boot, begin_ns, end_ns, begin_boot_ns, "    \
	  "bytes, times_bytes, samples, run) VALUES(?1, ?2, ?3, ?4, ?5, ?6, "   \
	  "?7, ?8, ?9) ON CONFLICT DO NOTHING")                                 \
	X(WINDOW_IMAGE_ADD,                                                     \
	  "INSERT INTO window_image(window, image, samples, cpu_ns, cgroup) "   \
	  "VALUES(?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET "               \
	  "samples = samples + ?3, cpu_ns = cpu_ns + ?4")                       \
	X(LOSS_ADD, "INSERT INTO loss(window, cause, count) "                   \
		    "VALUES(?1, ?2, ?3) ON CONFLICT DO UPDATE SET "             \
		    "count = count + ?3")                                       \
	X(WINDOW_FIND, "SELECT id FROM window WHERE file = ?1")                 \
	X(WINDOW_DROP_IMAGES, "DELETE FROM window_image WHERE window = ?1")     \
	X(WINDOW_DROP_LOSSES, "DELETE FROM loss WHERE window = ?1")             \
	X(WINDOW_DROP_REST, "DELETE FROM rest WHERE window = ?1")               \
	X(WINDOW_DROP, "DELETE FROM window WHERE id = ?1")                      \
	X(WINDOW_OLDEST, "SELECT min(begin_ns) FROM window")                    \
	X(WINDOW_NEXT, "SELECT id, file FROM window WHERE id > ?1 "             \
		       "ORDER BY id LIMIT 1")                                   \
	X(GONE_FIND, "INSERT INTO temp.gone SELECT id FROM process "            \
		     "WHERE end_ns < ?1 ORDER BY end_ns LIMIT 1000")            \
	X(USER_MOST,                                                            \
	  "SELECT coalesce(uid, -1) FROM process WHERE end_ns IS NOT NULL "     \
	  "GROUP BY uid ORDER BY count(*) DESC LIMIT 1")                        \
	X(GONE_FIND_OF,                                                         \
	  "INSERT INTO temp.gone SELECT id FROM process WHERE end_ns "          \
	  "IS NOT NULL AND uid IS nullif(?1, -1) "                              \
	  "ORDER BY samples > 0, end_ns LIMIT 1000")                            \
	/*                                                                    \
	 * They become counts of the window in which they ended; of a user's  \
	 * 32 most frequent programs, the others are one.                     \
	 */ \
	X(GONE_REST,                                                            \
	  "WITH one AS (SELECT (SELECT id FROM window WHERE begin_ns <= "       \
	  "p.end_ns ORDER BY begin_ns DESC LIMIT 1) AS w, "                     \
	  "coalesce(p.uid, -1) AS u, coalesce(i.comm, '') AS c, "               \
	  "coalesce(i.exe, '') AS e, "                                          \
	  "coalesce(p.exit_code > 0, p.signal IS NOT NULL) AS f, "              \
	  "coalesce(p.cpu_ns, 0) AS cpu FROM temp.gone g "                      \
	  "JOIN process p ON p.id = g.id LEFT JOIN image i ON i.id = "          \
	  "(SELECT id FROM image WHERE process = p.id ORDER BY start_ns "       \
	  "DESC, id DESC LIMIT 1)), "                                           \
	  "program AS (SELECT w, u, c, e, count(*) AS n, sum(f) AS f, "         \
	  "sum(cpu) AS cpu FROM one WHERE w IS NOT NULL "                       \
	  "GROUP BY w, u, c, e), "                                              \
	  "ranked AS (SELECT *, row_number() OVER (PARTITION BY w, u "          \
	  "ORDER BY n DESC) > 32 OR (SELECT count(*) FROM rest "                \
	  "WHERE window = w AND uid = u) > 64 AS many FROM program) "           \
	  "INSERT INTO rest(window, uid, comm, exe, count, failed, cpu_ns) "    \
	  "SELECT w, u, iif(many, '', c), iif(many, '', e), sum(n), sum(f), "   \
	  "sum(cpu) FROM ranked WHERE true GROUP BY 1, 2, 3, 4 "                \
	  "ON CONFLICT DO UPDATE SET count = count + excluded.count, "          \
	  "failed = failed + excluded.failed, "                                 \
	  "cpu_ns = cpu_ns + excluded.cpu_ns")                                  \
	X(GONE_WINDOWS,                                                         \
	  "DELETE FROM window_image WHERE image IN (SELECT i.id FROM image "    \
	  "i JOIN temp.gone g ON i.process = g.id)")                            \
	X(GONE_IMAGES, "DELETE FROM image WHERE process IN temp.gone")          \
	X(GONE_PARENTS, "UPDATE process SET parent_row = NULL "                 \
			"WHERE parent_row IN temp.gone")                        \
	X(GONE_PROCESSES, "DELETE FROM process WHERE id IN temp.gone")          \
	X(GONE_CLEAR, "DELETE FROM temp.gone")

enum catalog_statement {
#define X(NAME, sql) CATALOG_##NAME,
	CATALOG_STATEMENTS(X)
#undef X
	CATALOG_NSTATEMENTS,
};

extern const char *const catalog_statements[];

#endif /* REPORTER_CATALOG_SCHEMA_H */
