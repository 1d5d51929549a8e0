// SPDX-License-Identifier: Apache-2.0
/* The catalog: its file, its tables, what is in a row, and what a batch may cost. */
#include "tests/unit/catalog/test_catalog.h"

static void write_all(void)
{
	catalog_snapshot(catalog, true);
	settle();
}

/* --- the file ------------------------------------------------------------------ */

static void a_new_file_says_what_it_is(void **state)
{
	struct stat st;

	open_catalog();
	assert_rows("PRAGMA application_id", "1886545508");
	assert_rows("PRAGMA user_version", "5");
	assert_rows("PRAGMA journal_mode", "wal");
	assert_rows("PRAGMA auto_vacuum", "2");
	assert_rows("SELECT boot_id FROM boot",
		    "01020300-0000-0000-0000-000000000000");
	assert_rows("SELECT group_concat(name) FROM (SELECT name FROM "
		    "sqlite_schema WHERE type = 'table' ORDER BY 1)",
		    "args,boot,cgroup,change,image_row,loss,process_row,"
		    "program,rest,run,text,text_use,window,window_image,word");
	assert_rows("SELECT group_concat(name) FROM (SELECT name FROM "
		    "sqlite_schema WHERE type = 'view' ORDER BY 1)",
		    "events,image,images,process,processes,windows");
	assert_int_equal(stat(path_of(CATALOG_FILE), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(stat(path_of(CATALOG_FILE "-wal"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_int_equal(stat(path_of(CATALOG_FILE "-shm"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	assert_null(catalog_problem(catalog));
	close_catalog();
	/* Who may not create files reads it without a running profd. */
	assert_int_equal(access(path_of(CATALOG_FILE "-wal"), F_OK), 0);
	assert_int_equal(access(path_of(CATALOG_FILE "-shm"), F_OK), 0);
}

static void each_kind_of_query_has_an_index(void **state)
{
	static const char *const queries[][2] = {
		{ "SELECT * FROM process WHERE pid = 1", "(pid=?" },
		{ "SELECT i.* FROM text t JOIN program g ON g.comm = t.id "
		  "JOIN image i ON i.program = g.id WHERE t.s = 'x'",
		  "image_row_by_program" },
		{ "SELECT i.* FROM text t JOIN program g ON g.exe = t.id "
		  "JOIN image i ON i.program = g.id WHERE t.s = 'x'",
		  "program_by_exe" },
		{ "SELECT * FROM image WHERE process = 1", "(process=?)" },
		{ "SELECT * FROM process WHERE exit_code > 0",
		  "process_row_by_exit" },
		{ "SELECT * FROM process WHERE signal IS NOT NULL",
		  "process_row_by_signal" },
		{ "SELECT * FROM process WHERE signal = 9",
		  "process_row_by_signal" },
		{ "SELECT * FROM process WHERE end_ns >= 7",
		  "process_row_by_end" },
		{ "SELECT * FROM process WHERE start_ns < 7",
		  "process_row_by_start" },
		{ "SELECT * FROM process WHERE pid = 1 AND "
		  "start_boot_ns = 5 AND boot = 1",
		  "(pid=? AND start_boot_ns=? AND boot=?)" },
		{ "WITH RECURSIVE t(id) AS (SELECT 1 UNION SELECT p.id FROM "
		  "process p JOIN t ON p.parent_row = t.id) SELECT * FROM t",
		  "process_row_by_parent" },
		{ "SELECT * FROM window WHERE begin_ns < 9 AND end_ns > 3",
		  "window_by_time" },
		{ "SELECT window FROM window_image WHERE image = 3",
		  "window_by_image" },
		{ "SELECT * FROM change WHERE kind = 'gap' AND time_ns > 5",
		  "change_by_kind" },
		{ "SELECT * FROM change WHERE process = '1-2'",
		  "change_by_process" },
		{ "SELECT id FROM process WHERE end_ns IS NOT NULL AND uid IS 5 "
		  "ORDER BY samples > 0, end_ns",
		  "process_row_by_user" },
	};
	sqlite3_stmt *s;
	sqlite3 *db;
	bool found;
	char sql[512];
	size_t i;

	open_catalog();
	close_catalog();
	assert_int_equal(sqlite3_open(path_of(CATALOG_FILE), &db), SQLITE_OK);
	for (i = 0; i < ARRAY_SIZE(queries); i++) {
		snprintf(sql, sizeof(sql), "EXPLAIN QUERY PLAN %s",
			 queries[i][0]);
		assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &s, NULL),
				 SQLITE_OK);
		found = false;
		while (sqlite3_step(s) == SQLITE_ROW)
			found |= strstr((const char *)sqlite3_column_text(s, 3),
					queries[i][1]) != NULL;
		sqlite3_finalize(s);
		if (!found)
			fail_msg("%s: no %s", queries[i][0], queries[i][1]);
	}
	sqlite3_close(db);
}

/* Another file of that name is kept under another one. */
static void foreign(const char *make, bool kept)
{
	char cmd[512];

	make_archive();
	snprintf(cmd, sizeof(cmd), "cd %s && %s", t.archive, make);
	assert_int_equal(system(cmd), 0);
	open_catalog();
	assert_null(catalog_problem(catalog));
	assert_int_equal(stats_of().catalog_set_aside, 1);
	assert_int_equal(access(path_of(CATALOG_BAD), F_OK), kept ? 0 : -1);
	write_all();
	close_catalog();
	assert_rows("SELECT count(*) FROM boot", "1");
}

static void a_text_is_set_aside(void **state)
{
	foreign("echo no database, but a text that is long enough for a "
		"header of one hundred bytes, which SQLite reads first of all "
		"> " CATALOG_FILE,
		true);
}

static void another_database_is_set_aside(void **state)
{
	foreign("sqlite3 " CATALOG_FILE " 'CREATE TABLE t(x)'", true);
	assert_string_equal(ask_file(path_of(CATALOG_BAD),
				     "SELECT name FROM sqlite_schema"),
			    "t");
}

static void a_link_is_not_followed(void **state)
{
	struct stat st;

	foreign("echo secret > ../target; ln -s ../target " CATALOG_FILE, true);
	assert_int_equal(lstat(path_of(CATALOG_FILE), &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(lstat(path_of("../target"), &st), 0);
	assert_int_equal(st.st_size, 7);
}

static void a_second_name_is_not_written_to(void **state)
{
	struct stat st;

	foreign(": > ../target; ln ../target " CATALOG_FILE, true);
	assert_int_equal(lstat(path_of("../target"), &st), 0);
	assert_int_equal(st.st_size, 0);
}

static void a_pipe_is_set_aside(void **state)
{
	foreign("mkfifo " CATALOG_FILE, true);
}

static void a_later_version_is_left_alone(void **state)
{
	char cmd[512];

	open_catalog();
	close_catalog();
	snprintf(cmd, sizeof(cmd), "sqlite3 %s 'PRAGMA user_version = 1000'",
		 path_of(CATALOG_FILE));
	assert_int_equal(system(cmd), 0);
	open_catalog();
	assert_non_null(strstr(catalog_problem(catalog), "later version"));
	assert_int_equal(stats_of().catalog_stopped, 1);
	assert_int_equal(stats_of().catalog_set_aside, 0);
	write_all();
	assert_int_equal(stats_of().catalog_stopped, 1);
	close_catalog();
	assert_rows("PRAGMA user_version", "1000");
}

static void a_file_that_disappears_is_made_again(void **state)
{
	struct pm_image img = process(7, 0, PM_REAPED);

	open_catalog();
	assert_int_equal(unlink(path_of(CATALOG_FILE)), 0);
	catalog_ended(catalog, &img);
	write_all();
	assert_rows("SELECT pid FROM process", "7");
	close_catalog();
}

/* Pages in the middle are overwritten while it is open. */
static void damage_is_set_aside(void **state)
{
	struct pm_image img;
	char page[4096];
	int fd, i;

	open_catalog();
	for (i = 1; i < 3000; i++) {
		img = process(i, 0, PM_REAPED);
		catalog_ended(catalog, &img);
	}
	write_all();
	close_catalog();
	memset(page, 0xa5, sizeof(page));
	fd = open(path_of(CATALOG_FILE), O_WRONLY);
	for (i = 1; i < 100; i++)
		assert_int_equal(pwrite(fd, page, sizeof(page), i * 4096L),
				 sizeof(page));
	close(fd);
	open_catalog();
	img = process(9000, 0, PM_REAPED);
	catalog_ended(catalog, &img);
	write_all();
	assert_null(catalog_problem(catalog));
	assert_int_equal(stats_of().catalog_set_aside, 1);
	assert_rows("SELECT pid FROM process", "9000");
	assert_rows("PRAGMA integrity_check", "ok");
	close_catalog();
}

/* --- rows ------------------------------------------------------------------------ */

static void a_process_has_what_the_ledger_has(void **state)
{
	struct pm_image img = process(7, 1, PM_REAPED);
	struct pm_image shell = process(7, 1, PM_REAPED);
	static const char args[] = "prog\0a \"b\"\\\n\0\xff\xc3\xa4\0";

	wall_offset = 1000 * (int64_t)SEC;
	img.info.comm = "prog\xff";
	img.info.cmdline = args;
	img.info.cmdline_len = sizeof(args) - 1;
	img.info.cwd = "/tmp";
	img.info.uid = 1000;
	img.info.gid = 100;
	img.info.begin = 5 * SEC + 500;
	img.info.samples = 40;
	snprintf(img.info.image_id, sizeof(img.info.image_id), "7-12a05f207-2");
	shell.info.comm = "sh";
	shell.info.samples = 2;
	shell.info.main_exe = NULL;
	older[0] = &shell;
	img.process.wait_status = 3 << 8;
	img.process.reap = 7 * SEC;
	img.process.cpu = PM_CPU_EXACT;
	img.process.cpu_ns = SEC / 2;
	img.process.user_ns = SEC / 4;
	img.process.system_ns = SEC / 4;
	img.process.samples = 42;
	img.process.maxrss = 4096;
	img.process.minflt = 5;
	img.process.sid = 11;
	img.process.pgid = 12;
	img.process.leader_type = QUARK_ELT_SSHD;
	img.process.leader = 44;
	open_catalog();
	catalog_ended(catalog, &img);
	close_catalog();
	assert_rows("SELECT pid, ppid, process, parent, state, exit_code, "
		    "signal, core, session, pgid, entry, entry_pid, "
		    "kernel_thread FROM process",
		    "7|1|7-12a05f207|1-12a05f201|reaped|3|||11|12|sshd|44|0");
	assert_rows("SELECT start_ns, start_boot_ns, end_ns, reap_ns "
		    "FROM process",
		    "1005000000007|5000000007|1006000000000|1007000000000");
	assert_rows("SELECT cpu, cpu_ns, user_ns, system_ns, samples, "
		    "coverage, maxrss_bytes, minflt, majflt FROM process",
		    "exact|500000000|250000000|250000000|42|0.84|4096|5|0");
	assert_rows(
		"SELECT comm, exe, samples, cwd, uid, gid, build_id, "
		"args_cut FROM image ORDER BY start_ns",
		"sh|/usr/bin/alpha|2||0|0||0 "
		"prog\xef\xbf\xbd|/usr/bin/alpha|40|/tmp|1000|100|abcd01|0");
	assert_rows("SELECT json_extract(argv, '$[1]'), "
		    "json_array_length(argv), json_extract(argv, '$[2]') "
		    "FROM image WHERE argv IS NOT NULL",
		    "a \"b\"\\\n|3|\xef\xbf\xbd\xc3\xa4");
	assert_rows("SELECT unit, cgroup FROM image LIMIT 1",
		    "x.service|/system.slice/x.service");
	assert_rows("SELECT a.end_ns = b.start_ns, b.end_ns = p.end_ns "
		    "FROM image a, image b, process p WHERE a.comm = 'sh' "
		    "AND b.id <> a.id",
		    "1|1");
}

static void arguments_are_kept_as_configured(void **state)
{
	static const char args[] = "mysql\0--password=x\0";
	struct pm_image img;

	for (enum reporter_args which = REPORTER_ARGS_FULL;
	     which <= REPORTER_ARGS_NONE; which++) {
		img = process(7 + which, 0, PM_REAPED);
		img.info.cmdline = args;
		img.info.cmdline_len = sizeof(args) - 1;
		catalog_args = which;
		open_catalog();
		catalog_ended(catalog, &img);
		close_catalog();
	}
	catalog_args = REPORTER_ARGS_FULL;
	assert_rows("SELECT argv, args_cut FROM image ORDER BY id",
		    "[\"mysql\",\"--password=x\"]|0 [\"mysql\"]|1 |1");
}

static void long_text_is_cut_at_a_character(void **state)
{
	struct pm_image img = process(7, 0, PM_REAPED);
	size_t size = 3 * 4096;
	char *args = malloc(size), *exe = malloc(size);

	memset(args, 'a', size);
	memset(args + 2, '\n', size - 2);
	memset(exe, 'x', size);
	memcpy(exe + 4095, "\xc3\xa4\xc3\xa4", 4);
	exe[size - 1] = '\0';
	img.info.cmdline = args;
	img.info.cmdline_len = size;
	img.info.exe = exe;
	open_catalog();
	catalog_ended(catalog, &img);
	close_catalog();
	assert_rows("SELECT length(exe), args_cut, json_valid(argv), "
		    "length(argv) BETWEEN 4096 AND 4200 FROM image",
		    "4095|1|1|1");
	free(args);
	free(exe);
}

/*
 * One of these ends where the memory of its batch ends: a sanitizer sees what is
 * read beyond.
 */
static void arguments_end_where_they_are_cut(void **state)
{
	char args[3 * 4096], exe[4096];
	struct pm_image img;
	int pid;

	memset(args, 'a', sizeof(args));
	args[3] = '\0';
	open_catalog();
	for (pid = 1; pid <= 64; pid++) {
		memset(exe, 'x', sizeof(exe));
		exe[sizeof(exe) - 8 * pid] = '\0';
		img = process(pid, 0, PM_REAPED);
		img.info.exe = exe;
		img.info.cmdline = args;
		img.info.cmdline_len = sizeof(args);
		catalog_ended(catalog, &img);
		write_all();
	}
	close_catalog();
	assert_rows("SELECT count(*), min(args_cut) FROM image "
		    "WHERE json_valid(argv) AND argv ->> '$[0]' = 'aaa'",
		    "64|1");
}

static void a_signal_is_no_exit_code(void **state)
{
	struct pm_image img = process(7, 0, PM_REAPED);

	img.process.wait_status = SIGSEGV | 0x80;
	open_catalog();
	catalog_ended(catalog, &img);
	img = process(8, 0, PM_VANISHED);
	catalog_ended(catalog, &img);
	close_catalog();
	assert_rows("SELECT pid, state, exit_code, signal, core FROM process",
		    "7|reaped||11|1 8|vanished|||");
}

static void a_living_process_is_updated(void **state)
{
	struct pm_image img = process(7, 0, PM_ALIVE);

	open_catalog();
	processes[0] = &img;
	write_all();
	assert_rows("SELECT state, samples, end_ns FROM process", "alive|0|");
	assert_int_equal(stats_of().catalog_processes, 1);
	/* Nothing is new. */
	write_all();
	assert_int_equal(stats_of().catalog_processes, 1);
	img.process.samples = img.info.samples = 3;
	write_all();
	assert_rows("SELECT state, samples FROM process", "alive|3");
	assert_rows("SELECT samples FROM image", "3");
	assert_int_equal(stats_of().catalog_processes, 2);
	img.process.end = PM_REAPED;
	img.process.exit = 6 * SEC;
	img.process.wait_status = 0;
	processes[0] = NULL;
	catalog_ended(catalog, &img);
	write_all();
	assert_rows("SELECT id, state, exit_code, end_ns IS NOT NULL FROM "
		    "process",
		    "1|reaped|0|1");
	close_catalog();
}

static void a_child_has_the_row_of_its_parent(void **state)
{
	struct pm_image make = process(10, 0, PM_ALIVE),
			sh = process(20, 10, PM_ALIVE),
			cc = process(30, 20, PM_REAPED);

	open_catalog();
	processes[0] = &make;
	processes[1] = &sh;
	catalog_ended(catalog, &cc);
	write_all();
	assert_rows("WITH RECURSIVE t(id) AS (SELECT id FROM process WHERE "
		    "pid = 10 UNION SELECT p.id FROM process p JOIN t ON "
		    "p.parent_row = t.id) SELECT pid, state FROM t JOIN "
		    "process USING(id)",
		    "10|alive 20|alive 30|reaped");
	/* The first snapshot has all that live, later ones what is new. */
	assert_int_equal(stats_of().catalog_processes, 5);
	write_all();
	assert_int_equal(stats_of().catalog_processes, 5);
	close_catalog();
}

/* It ended while no profd ran. */
static void what_is_not_there_after_a_restart_has_vanished(void **state)
{
	struct pm_image a = process(7, 0, PM_ALIVE),
			b = process(8, 0, PM_ALIVE);

	open_catalog();
	processes[0] = &a;
	processes[1] = &b;
	write_all();
	close_catalog();
	processes[1] = NULL;
	open_catalog();
	write_all();
	close_catalog();
	assert_rows("SELECT pid, state, end_ns IS NULL FROM process",
		    "7|alive|1 8|vanished|0");
}

/* --- the memory of batches ---------------------------------------------------------- */

static void many_processes_do_not_wait_for_a_window(void **state)
{
	struct pm_image img;
	int i;

	open_catalog();
	for (i = 1; i <= 20000; i++) {
		img = process(i, 0, PM_REAPED);
		img.process.samples = 1;
		catalog_ended(catalog, &img);
		uv_run(&t.loop, UV_RUN_NOWAIT);
		assert_true(stats_of().catalog_pending < 10 << 20);
		if (i % 2000 == 0)
			settle();
	}
	assert_in_range(stats_of().catalog_processes, 15000, 20000);
	assert_int_equal(stats_of().catalog_dropped, 0);
	close_catalog();
	assert_rows("SELECT count(*) FROM process", "20000");
}

/* Another program holds the lock: rows wait, and what is too much is counted. */
static void a_catalog_that_cannot_be_written_costs_bounded_memory(void **state)
{
	struct pm_image img;
	sqlite3 *db;
	uint64_t dropped;
	char want[32];
	int i;

	open_catalog();
	assert_int_equal(sqlite3_open(path_of(CATALOG_FILE), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "BEGIN IMMEDIATE", 0, 0, 0),
			 SQLITE_OK);
	for (i = 1; i <= 20000; i++) {
		img = process(i, 0, PM_REAPED);
		img.process.samples = 1;
		catalog_ended(catalog, &img);
		assert_true(stats_of().catalog_pending < 10 << 20);
	}
	settle();
	assert_non_null(strstr(catalog_problem(catalog), "lock"));
	dropped = stats_of().catalog_dropped;
	assert_in_range(dropped, 1000, 19000);
	assert_int_equal(stats_of().catalog_processes, 0);
	sqlite3_close(db);
	write_all();
	assert_null(catalog_problem(catalog));
	close_catalog();
	snprintf(want, sizeof(want), "%d", 20000 - (int)dropped);
	assert_rows("SELECT count(*) FROM process", want);
}

/* --- windows ---------------------------------------------------------------------------- */

static void a_window_has_its_images_and_losses(void **state)
{
	const Perftools__Profiles__Profile *p;
	const uint64_t lost[] = { 5, 0 };
	struct pm_image img = process(7, 0, PM_ALIVE);
	struct pm_image other = process(8, 0, PM_ALIVE);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "work");
	char want[512];
	int i;

	start(options());
	processes[0] = &img;
	other.info.service = "cart";
	for (i = 0; i < 30; i++) {
		assert_int_equal(add(&img, T0 + i, 7, "a", &f, 1), 0);
		assert_int_equal(add(&other, T0 + i, 8 + i % 3, "b", &f, 1), 0);
	}
	/* In another group; one image all the same. */
	other.info.cgroup = "/";
	assert_int_equal(add(&other, T0 + 99, 8, "b", &f, 1), 0);
	reporter_losses(t.r, lost);
	finish(T0 + 30 * SEC);
	reporter_free(t.r);
	t.r = NULL;
	settle();
	p = checked(t.path[0]);
	assert_int_equal(pprof_samples(p), 61);
	snprintf(want, sizeof(want), "%s|%lld|%lld|%lld|61",
		 t.path[0] + strlen(t.archive) + 1, (long long)p->time_nanos,
		 (long long)(p->time_nanos + p->duration_nanos), (long long)T0);
	assert_rows("SELECT file, begin_ns, end_ns, begin_boot_ns, samples "
		    "FROM window",
		    want);
	/* The second process is known by its labels only. */
	assert_rows("SELECT pid, state, w.samples, w.cpu_ns, comm, unit FROM "
		    "window_image w JOIN image i ON i.id = w.image JOIN "
		    "process p ON p.id = i.process ORDER BY pid, w.samples "
		    "DESC",
		    "7|alive|30|303030300|alpha|x.service "
		    "8||30|303030300|alpha|x.service "
		    "8||1|10101010|alpha|x.service");
	assert_rows("SELECT DISTINCT pid, service FROM image i JOIN process p "
		    "ON p.id = i.process WHERE service IS NOT NULL",
		    "8|cart");
	/* By control group. */
	assert_rows("SELECT path, sum(samples) FROM window_image x JOIN cgroup "
		    "c ON c.id = x.cgroup GROUP BY path",
		    "/|1 /system.slice/x.service|60");
	snprintf(want, sizeof(want), "61|%lld", (long long)pprof_sum(p, "cpu"));
	assert_rows("SELECT sum(samples), sum(cpu_ns) FROM window_image", want);
	assert_rows("SELECT cause, count FROM loss",
		    "samples lost: ring full|5");
	assert_rows("SELECT bytes > 0 AND times_bytes > 0 FROM window", "1");
}

#define T(name) cmocka_unit_test_setup_teardown(name, catalog_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_new_file_says_what_it_is),
		T(each_kind_of_query_has_an_index),
		T(a_text_is_set_aside),
		T(another_database_is_set_aside),
		T(a_link_is_not_followed),
		T(a_second_name_is_not_written_to),
		T(a_pipe_is_set_aside),
		T(a_later_version_is_left_alone),
		T(a_file_that_disappears_is_made_again),
		T(damage_is_set_aside),
		T(a_process_has_what_the_ledger_has),
		T(arguments_are_kept_as_configured),
		T(long_text_is_cut_at_a_character),
		T(arguments_end_where_they_are_cut),
		T(a_signal_is_no_exit_code),
		T(a_living_process_is_updated),
		T(a_child_has_the_row_of_its_parent),
		T(what_is_not_there_after_a_restart_has_vanished),
		T(many_processes_do_not_wait_for_a_window),
		T(a_catalog_that_cannot_be_written_costs_bounded_memory),
		T(a_window_has_its_images_and_losses),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
