// SPDX-License-Identifier: Apache-2.0
/*
 * Texts of the catalog: a row each, which goes with its last image; what one user may
 * put there; and a catalog of version 3, whose rows have their texts themselves.
 */
#include "tests/unit/catalog/test_catalog.h"

#include "reporter/catalog/schema.h"

#define NOBODY 65534

static void write_all(void)
{
	catalog_snapshot(catalog, true);
	settle();
}

static int count(const char *sql)
{
	return atoi(rows(sql));
}

/* --- a row each ------------------------------------------------------------------ */

static struct pm_image compiler(uint32_t pid, const char *args, size_t len)
{
	struct pm_image img = process(pid, 0, PM_REAPED);

	img.info.comm = "cc1";
	img.info.exe = "/usr/lib/cc1";
	img.info.cwd = "/src";
	img.info.uid = NOBODY;
	img.info.cmdline = args;
	img.info.cmdline_len = len;
	img.process.samples = 1;
	return img;
}

static void repeated_texts_have_one_row(void **state)
{
	static const char args[] = "cc1\0-O2";
	struct pm_image img;

	open_catalog();
	for (uint32_t pid = 1; pid <= 100; pid++) {
		img = compiler(pid, args, sizeof(args));
		catalog_ended(catalog, &img);
	}
	write_all();
	/* Of the next transaction, too. */
	for (uint32_t pid = 101; pid <= 200; pid++) {
		img = compiler(pid, args, sizeof(args));
		catalog_ended(catalog, &img);
	}
	close_catalog();
	assert_rows("SELECT count(*) FROM program", "1");
	assert_rows("SELECT count(*) FROM text WHERE s IN ('cc1', "
		    "'/usr/lib/cc1', '/src')",
		    "3");
	assert_rows("SELECT count(*) FROM args", "1");
	assert_rows("SELECT count(*), comm, exe, cwd, argv, uid FROM image",
		    "200|cc1|/usr/lib/cc1|/src|[\"cc1\",\"-O2\"]|65534");
}

static void numbers_of_a_transaction_that_failed_are_not_used(void **state)
{
	struct pm_image img;
	sqlite3 *db;

	open_catalog();
	assert_int_equal(sqlite3_open(path_of(CATALOG_FILE), &db), SQLITE_OK);
	/* The window's rows fail, after those of the process. */
	assert_int_equal(sqlite3_exec(db,
				      "CREATE TRIGGER t BEFORE UPDATE ON run "
				      "BEGIN SELECT raise(ABORT, 'no'); END",
				      0, 0, 0),
			 SQLITE_OK);
	img = compiler(1, "a", 2);
	catalog_ended(catalog, &img);
	write_all();
	assert_int_equal(stats_of().catalog_stopped, 1);
	assert_int_equal(
		sqlite3_exec(db,
			     "DROP TRIGGER t; INSERT INTO text(s, uid) "
			     "VALUES('other', 0); INSERT INTO args(s, "
			     "uid) VALUES('[\"other\"]', 0)",
			     0, 0, 0),
		SQLITE_OK);
	sqlite3_close(db);
	write_all();
	close_catalog();
	assert_rows("SELECT comm, exe, argv FROM image",
		    "cc1|/usr/lib/cc1|[\"a\"]");
}

/* --- they go with their images ------------------------------------------------------ */

/* 'n' processes, of which each has texts of its own. */
static void put_random(int from, int n, size_t bytes, enum pm_end end,
		       struct pm_image *keep)
{
	char *cwd = malloc(bytes + 1), *args = malloc(bytes + 1), comm[16];
	struct pm_image img;

	memset(cwd, 'd', bytes);
	memset(args, 'a', bytes);
	cwd[bytes] = args[bytes] = '\0';
	for (int i = from; i < from + n; i++) {
		img = process(i, 0, end);
		snprintf(comm, sizeof(comm), "c%d", i);
		cwd[snprintf(cwd, bytes, "/%d", i)] = '/';
		args[snprintf(args, bytes, "%d", i)] = 'a';
		img.info.comm = comm;
		img.info.cwd = cwd;
		img.info.cmdline = args;
		img.info.cmdline_len = bytes + 1;
		img.info.uid = NOBODY;
		img.process.samples = 1;
		if (keep) {
			*keep = img;
			processes[0] = keep;
			write_all();
		} else {
			catalog_ended(catalog, &img);
		}
	}
	free(cwd);
	free(args);
}

static void texts_go_with_their_last_image(void **state)
{
	struct pm_image img;

	open_catalog();
	put_random(1, 1000, 100, PM_REAPED, NULL);
	img = compiler(5000, "x", 2);
	img.process.exit = 1000 * SEC;
	catalog_ended(catalog, &img);
	write_all();
	assert_int_equal(count("SELECT count(*) FROM args"), 1001);
	assert_in_range(count("SELECT count(*) FROM text"), 2001, 2010);
	assert_rows("SELECT count(*), uid, bytes = (SELECT sum(length(s) + 16) "
		    "FROM (SELECT s FROM text UNION ALL SELECT s FROM args)) "
		    "FROM text_use",
		    "1|65534|1");
	/* What ended before this window goes. */
	rows("INSERT INTO window(file, begin_ns, end_ns, bytes, times_bytes, "
	     "samples) SELECT 'x', min(end_ns) + 400000000000, "
	     "min(end_ns) + 460000000000, 0, 0, 0 FROM process");
	write_all();
	close_catalog();
	assert_rows("SELECT comm, exe, argv FROM image",
		    "cc1|/usr/lib/cc1|[\"x\"]");
	assert_rows("SELECT count(*) FROM args", "1");
	assert_rows("SELECT count(*) FROM program", "1");
	assert_rows("SELECT count(*) FROM text WHERE s NOT IN ('cc1', "
		    "'/usr/lib/cc1', '/src', 'abcd01')",
		    "0");
	assert_rows("SELECT bytes < 200 FROM text_use", "1");
	assert_rows("PRAGMA integrity_check", "ok");
}

/* It calls prctl(PR_SET_NAME) before each window. */
static void names_of_a_living_process_are_not_kept(void **state)
{
	struct pm_image img = process(7, 0, PM_ALIVE);
	char comm[16];

	open_catalog();
	processes[0] = &img;
	for (int i = 0; i < 50; i++) {
		snprintf(comm, sizeof(comm), "name%d", i);
		img.info.comm = comm;
		img.info.cmdline = "p";
		img.info.cmdline_len = 2;
		img.process.samples = ++img.info.samples;
		write_all();
	}
	close_catalog();
	assert_rows("SELECT comm, samples, argv FROM image",
		    "name49|50|[\"p\"]");
	assert_rows("SELECT count(*) FROM args", "1");
	assert_rows("SELECT count(*) FROM text WHERE s GLOB 'name*'", "1");
	assert_rows("SELECT count(*) FROM program", "1");
}

/* What is found out later is added; what is not known any more stays. */
static void a_living_process_keeps_what_is_known(void **state)
{
	struct pm_image img = process(7, 0, PM_ALIVE);

	open_catalog();
	processes[0] = &img;
	img.info.cwd = NULL;
	write_all();
	img.info.cwd = "/later";
	img.info.cmdline = "p\0q";
	img.info.cmdline_len = 4;
	img.process.samples = ++img.info.samples;
	write_all();
	img.info.cwd = img.info.exe = img.info.cgroup = NULL;
	img.process.samples = ++img.info.samples;
	write_all();
	close_catalog();
	assert_rows("SELECT comm, exe, cwd, argv, cgroup, unit FROM image",
		    "alpha|/usr/bin/alpha|/later|[\"p\",\"q\"]|"
		    "/system.slice/x.service|x.service");
}

/* --- one user ------------------------------------------------------------------------ */

/* Living processes cannot be removed: new texts are left out. */
static void texts_of_a_user_are_bounded(void **state)
{
	static struct pm_image img, other;

	open_catalog_of(16 << 20); /* 4 MiB of catalog, 2 of texts */
	put_random(1, 400, 4000, PM_ALIVE, &img);
	assert_in_range(count("SELECT bytes FROM text_use WHERE uid = 65534"),
			1 << 20, (2 << 20) + 10000);
	assert_in_range(stats_of().catalog_texts_skipped, 200, 900);
	other = compiler(5000, "x", 2);
	other.info.uid = 1000;
	catalog_ended(catalog, &other);
	write_all();
	close_catalog();
	assert_rows("SELECT comm, exe, argv FROM image WHERE uid = 1000",
		    "cc1|/usr/lib/cc1|[\"x\"]");
	/* Its processes have rows all the same. */
	assert_rows("SELECT count(*) FROM process", "401");
	assert_rows("SELECT count(*) FROM image WHERE argv IS NULL AND NOT "
		    "args_cut",
		    "0");
}

/* Those that have ended make room; other users' rows stay. */
static void long_texts_displace_those_of_their_user(void **state)
{
	struct pm_image img;

	open_catalog_of(16 << 20);
	for (int i = 0; i < 500; i++) {
		img = compiler(10000 + i, "x", 2);
		img.info.uid = 1000;
		catalog_ended(catalog, &img);
	}
	for (int i = 0; i < 20; i++) {
		put_random(1 + i * 100, 100, 3000, PM_REAPED, NULL);
		write_all();
	}
	assert_int_equal(stats_of().catalog_texts_skipped, 0);
	close_catalog();
	assert_in_range(count("SELECT bytes FROM text_use WHERE uid = 65534"),
			0, 2 << 20);
	assert_rows("SELECT count(*), count(argv) FROM image WHERE uid = 1000",
		    "500|500");
	/* The newest is there. */
	assert_rows("SELECT count(*) FROM image WHERE comm = 'c2000'", "1");
}

/* --- version 3 -------------------------------------------------------------------------- */

#define PROCESS "SELECT * FROM process ORDER BY id"
#define IMAGE                                                             \
	"SELECT id, process, image, start_ns, end_ns, comm, exe, argv, "  \
	"args_cut, cwd, uid, gid, cgroup, container, engine, pod, unit, " \
	"build_id, samples FROM image ORDER BY id"

static void make_version_3(const char *sql)
{
	sqlite3 *db;

	make_archive();
	assert_int_equal(sqlite3_open(path_of(CATALOG_FILE), &db), SQLITE_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(sqlite3_exec(db, catalog_schema[i], NULL, NULL,
					      NULL),
				 SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "PRAGMA application_id = 1886545508;"
				      "PRAGMA user_version = 3;"
				      "INSERT INTO boot VALUES(1, "
				      "'01020300-0000-0000-0000-000000000000')",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL))
		fail_msg("%s", sqlite3_errmsg(db));
	sqlite3_close(db);
}

static const char version_3[] =
	/* It lives; it has ended; it is known by labels; its parent is unknown. */
	"INSERT INTO process VALUES(1,1,'7-12a05f207',7,1,'1-a',NULL,100,"
	"5000000007,NULL,NULL,300,'alive',NULL,NULL,NULL,3,4,'sshd',5,0,9,NULL,"
	"NULL,'now',2,0.5,1000,4096,1,0),"
	"(2,1,'8-b',8,7,'7-12a05f207',1,110,11,200,210,205,'reaped',0,NULL,NULL,"
	"3,4,'init',1,0,9,4,5,'exact',2,0.5,1000,4096,1,0),"
	"(3,2,'9-c',9,NULL,NULL,NULL,NULL,12,400,NULL,400,NULL,NULL,NULL,NULL,"
	"NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,0,NULL,NULL,NULL,NULL,NULL),"
	"(4,1,'10-d',10,1,NULL,NULL,NULL,13,500,NULL,400,'vanished',NULL,11,1,"
	"NULL,NULL,NULL,NULL,1,NULL,NULL,NULL,NULL,0,NULL,0,NULL,NULL,NULL);"
	"INSERT INTO image VALUES(1,1,'7-12a05f207-1',100,150,'sh','/bin/sh',"
	"'[\"sh\"]',0,'/',1000,100,'/a/b','c0','docker','p','u.service','ab',1),"
	"(2,1,'7-12a05f207-2',150,NULL,'cc','/bin/cc','[\"cc\"]',1,'/s',1000,"
	"100,'/a/b','c0','docker','p','u.service',NULL,1),"
	"(3,2,'8-b-3',110,200,'sh','/bin/sh','[\"sh\"]',0,'/',0,0,'/',NULL,NULL,"
	"NULL,NULL,NULL,2),"
	"(7,3,'9-c-1',NULL,NULL,'x',NULL,NULL,0,NULL,NULL,NULL,NULL,NULL,NULL,"
	"NULL,NULL,NULL,0);"
	"INSERT INTO cgroup VALUES(3,'/a/b',700);"
	"INSERT INTO window_image VALUES(1,2,3,5,6);";

static void version_3_is_converted(void **state)
{
	static char before[2][8192];
	struct pm_image img = process(7, 0, PM_REAPED);

	make_version_3(version_3);
	strcpy(before[0], rows(PROCESS));
	strcpy(before[1], rows(IMAGE));
	open_catalog();
	assert_null(catalog_problem(catalog));
	assert_rows("PRAGMA user_version", "5");
	assert_rows(PROCESS, before[0]);
	assert_rows(IMAGE, before[1]);
	assert_rows("SELECT id, path, seen_ns, unit FROM cgroup ORDER BY id",
		    "3|/a/b|700|u.service 4|/|200|");
	assert_rows("SELECT window, image, cgroup FROM window_image", "1|2|3");
	assert_rows("SELECT count(*) FROM sqlite_schema WHERE tbl_name IN "
		    "('process', 'image') AND type <> 'view'",
		    "0");
	/* The one that lives ends. */
	img.process.wait_status = 5 << 8;
	catalog_ended(catalog, &img);
	close_catalog();
	assert_rows("SELECT id, exit_code, state FROM process WHERE pid = 7",
		    "1|5|reaped");
	assert_rows("SELECT id, argv FROM image WHERE process = 1 ORDER BY id",
		    "1|[\"sh\"] 2|[\"cc\"]");
	assert_rows("PRAGMA integrity_check", "ok");
}

/* More than are converted before it is open. */
static const char many_of_version_3[] =
	"WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
	"WHERE i < 25000) INSERT INTO process(id, boot, process, pid, "
	"start_boot_ns, start_ns, end_ns, seen_ns, state) SELECT i, 1, i || "
	"'-a', i, 10, i, 900 + i, 900 + i, 'reaped' FROM n;"
	"INSERT INTO image(id, process, image, comm, argv, uid) SELECT id, id, "
	"process || '-1', 'c' || (id % 100), json_array('c', id), id % 7 "
	"FROM process";

#define SUMS                                                         \
	"SELECT count(*), sum(i.id), count(DISTINCT i.comm), "       \
	"sum(i.argv ->> '$[1]'), sum(p.end_ns), sum(i.uid), "        \
	"min(i.image), max(p.state) FROM process p JOIN image i ON " \
	"i.process = p.id"

static void begin_conversion(void)
{
	const struct catalog_opts o = {
		.loop = &t.loop,
		.dir = t.archive,
		.boot_id = { 1, 2, 3 },
		.freq_hz = 100,
		.version = "1.2.3",
		.job = on_job,
	};

	assert_int_equal(catalog_new(&catalog, &o), 0);
	while (catalog_jobs)
		uv_run(&t.loop, UV_RUN_ONCE);
}

static void many_rows_are_converted_in_steps(void **state)
{
	struct pm_image img = process(30000, 0, PM_REAPED);
	static char sums[8192];
	int steps = 0;

	make_version_3(many_of_version_3);
	strcpy(sums, rows(SUMS));
	begin_conversion();
	catalog_ended(catalog, &img);
	while (count("PRAGMA user_version") == 3) {
		/* Readers see all of them, as they were. */
		assert_string_equal(rows(SUMS), sums);
		catalog_snapshot(catalog, false);
		assert_non_null(strstr(catalog_problem(catalog), "converted"));
		uv_run(&t.loop, UV_RUN_ONCE);
		steps++;
	}
	assert_in_range(steps, 2, 100);
	assert_string_equal(rows(SUMS), sums);
	settle();
	write_all();
	assert_null(catalog_problem(catalog));
	assert_int_equal(stats_of().catalog_failed, 0);
	close_catalog();
	/* The row that waited. */
	assert_rows("SELECT id FROM process WHERE pid = 30000", "25001");
	assert_rows("PRAGMA integrity_check", "ok");
}

static void a_conversion_that_was_interrupted_goes_on(void **state)
{
	static char sums[8192];

	make_version_3(many_of_version_3);
	strcpy(sums, rows(SUMS));
	begin_conversion();
	assert_rows("PRAGMA user_version", "3");
	assert_in_range(count("SELECT count(*) FROM process_row"), 1000, 24000);
	close_catalog();
	assert_string_equal(rows(SUMS), sums);
	open_catalog();
	close_catalog();
	assert_rows("PRAGMA user_version", "5");
	assert_string_equal(rows(SUMS), sums);
}

/* --- version 4 -------------------------------------------------------------------------- */

static const char version_4[] =
	"PRAGMA application_id = 1886545508; PRAGMA user_version = 4;"
	"INSERT INTO boot VALUES(1, '01020300-0000-0000-0000-000000000000');"
	"INSERT INTO text VALUES(1, 'sh', 0);"
	"INSERT INTO program VALUES(1, 1, 0, 0, 0, 0, 0, 0);"
	"INSERT INTO process_row(id, boot, pid, start_boot_ns, seen) "
	"VALUES(1, 1, 7, 5000000007, 0);"
	"INSERT INTO image_row(id, process, exec, program) VALUES(1, 1, 0, 1)";

static void make_version_4(void)
{
	sqlite3 *db;

	make_archive();
	assert_int_equal(sqlite3_open(path_of(CATALOG_FILE), &db), SQLITE_OK);
	for (int i = 0; i < CATALOG_SCHEMA_TEXTS; i++)
		assert_int_equal(sqlite3_exec(db, catalog_schema[i], NULL, NULL,
					      NULL),
				 SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, catalog_schema_end, NULL, NULL, NULL),
			 SQLITE_OK);
	if (sqlite3_exec(db, version_4, NULL, NULL, NULL))
		fail_msg("%s", sqlite3_errmsg(db));
	sqlite3_close(db);
}

static void version_4_gets_services(void **state)
{
	struct pm_image old = process(7, 0, PM_REAPED);
	struct pm_image new = process(8, 0, PM_REAPED);

	make_version_4();
	open_catalog();
	assert_null(catalog_problem(catalog));
	assert_rows("PRAGMA user_version", "5");
	assert_rows("SELECT id, comm, service IS NULL FROM image", "1|sh|1");
	new.info.service = "shop";
	catalog_ended(catalog, &old);
	catalog_ended(catalog, &new);
	close_catalog();
	assert_rows("SELECT pid, service FROM image i JOIN process p "
		    "ON p.id = i.process ORDER BY pid",
		    "7| 7| 8|shop");
	assert_rows("SELECT count(*) FROM images WHERE service = 'shop'", "1");
	/* Once. */
	open_catalog();
	assert_null(catalog_problem(catalog));
	close_catalog();
	assert_rows("PRAGMA integrity_check", "ok");
}

/* A row that is written again without one keeps it. */
static void a_service_stays_known(void **state)
{
	struct pm_image img = process(7, 0, PM_ALIVE);

	open_catalog();
	processes[0] = &img;
	img.info.service = "shop";
	write_all();
	img.info.service = NULL;
	img.process.samples = ++img.info.samples;
	write_all();
	assert_rows("SELECT service FROM image", "shop");
	img.info.service = "cart";
	img.process.samples = ++img.info.samples;
	write_all();
	close_catalog();
	processes[0] = NULL;
	assert_rows("SELECT service FROM image", "cart");
}

#define T(name) cmocka_unit_test_setup_teardown(name, catalog_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(repeated_texts_have_one_row),
		T(numbers_of_a_transaction_that_failed_are_not_used),
		T(texts_go_with_their_last_image),
		T(names_of_a_living_process_are_not_kept),
		T(a_living_process_keeps_what_is_known),
		T(texts_of_a_user_are_bounded),
		T(long_texts_displace_those_of_their_user),
		T(version_3_is_converted),
		T(many_rows_are_converted_in_steps),
		T(a_conversion_that_was_interrupted_goes_on),
		T(version_4_gets_services),
		T(a_service_stays_known),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
