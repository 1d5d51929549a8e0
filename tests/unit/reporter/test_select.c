// SPDX-License-Identifier: Apache-2.0
/*
 * Images and windows that terms choose by a catalog, which is made here in SQL; by one of
 * version 3; and by that one after profd has converted it.
 */
#include <errno.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "reporter/catalog/internal.h"
#include "reporter/request/select.h"

static char dir[] = "/tmp/test_select.XXXXXX";
static char dir_3[] = "/tmp/test_select.XXXXXX";
static char dir_4[] = "/tmp/test_select.XXXXXX";
static const char *archive = dir;

/*
 * init 1 starts sshd 2 and make 3; make starts sh 4 (code 1), which starts gcc 5
 * (code 1), which starts cc1 6 (killed by 11); make also starts cp 7 (code 0). Another
 * process had pid 6 before, in another window.
 */
static const char schema[] =
	"PRAGMA user_version = 1;"
	"CREATE TABLE process(id INTEGER PRIMARY KEY, boot INTEGER, process TEXT,"
	" pid INTEGER, parent_row INTEGER, start_ns INTEGER, end_ns INTEGER,"
	" exit_code INTEGER, signal INTEGER, entry TEXT, entry_pid INTEGER);"
	"CREATE TABLE image(id INTEGER PRIMARY KEY, process INTEGER, image TEXT,"
	" comm TEXT, argv TEXT, uid INTEGER);"
	"CREATE TABLE window(id INTEGER PRIMARY KEY, file TEXT);"
	"CREATE TABLE window_image(window INTEGER, image INTEGER,"
	" PRIMARY KEY(window, image)) WITHOUT ROWID;"
	"INSERT INTO process VALUES"
	"(1,1,'1-a',1,NULL,0,NULL,NULL,NULL,'init',1),"
	"(2,1,'2-b',2,1,100,NULL,NULL,NULL,'sshd',2),"
	"(3,1,'3-c',3,2,200,900,2,NULL,'sshd',2),"
	"(4,1,'4-d',4,3,300,800,1,NULL,'sshd',2),"
	"(5,1,'5-e',5,4,310,700,1,NULL,'sshd',2),"
	"(6,1,'6-f',6,5,320,600,NULL,11,'sshd',2),"
	"(7,1,'7-9',7,3,810,820,0,NULL,'sshd',2),"
	"(8,1,'6-0',6,1,10,20,0,NULL,'init',1),"
	/* The same ids in another boot, without a relation. */
	"(9,2,'3-c',3,NULL,200,900,0,NULL,'init',1);"
	"INSERT INTO image VALUES"
	"(1,1,'1-a-1','init','[\"/sbin/init\"]',0),"
	"(2,2,'2-b-1','sshd','[\"sshd\",\"-D\"]',0),"
	"(3,3,'3-c-1','make','[\"make\",\"-j2\"]',1000),"
	"(4,4,'4-d-1','sh','[\"sh\",\"-c\",\"gcc -O2\"]',1000),"
	"(5,5,'5-e-1','sh',NULL,1000),"
	"(6,5,'5-e-2','gcc','[\"gcc\",\"-O2\",\"a.c\"]',1000),"
	"(7,6,'6-f-1','cc1','[\"cc1\",\"-O2\",\"a.c\"]',1000),"
	"(8,7,'7-9-1','cp','[\"cp\",\"a\",\"b\"]',1000),"
	"(9,8,'6-0-1','old','[\"old\"]',0),"
	"(10,9,'3-c-2','other','[\"other\"]',0);"
	"INSERT INTO window VALUES(1,'a'),(2,'b'),(3,'c');"
	"INSERT INTO window_image VALUES(1,9),(2,3),(2,7),(3,8),(3,1);";

/* The same rows, with more columns. */
static const char schema_3[] =
	"PRAGMA application_id = 1886545508; PRAGMA user_version = 3;"
	"INSERT INTO boot VALUES(1, 'a'), (2, 'b');"
	"INSERT INTO process(id, boot, process, pid, parent_row, start_ns, "
	"end_ns, exit_code, signal, entry, entry_pid, seen_ns) "
	"SELECT *, 0 FROM o.process;"
	"INSERT INTO image(id, process, image, comm, argv, uid, exe, cgroup, "
	"container, unit) SELECT *, '/usr/bin/' || comm, '/c/' || comm, "
	"'c' || comm, comm || '.service' FROM o.image;"
	"INSERT INTO window(id, file, begin_ns, end_ns, bytes, times_bytes, "
	"samples) SELECT id, file, 0, 0, 0, 0, 0 FROM o.window;"
	"INSERT INTO window_image(window, image, samples, cpu_ns) "
	"SELECT window, image, 1, 1 FROM o.window_image; DETACH o";

static const char *path_in(const char *where)
{
	static char path[64];

	snprintf(path, sizeof(path), "%s/catalog.sqlite", where);
	return path;
}

static void version_3(char *where)
{
	char attach[80];
	sqlite3 *db;

	assert_non_null(mkdtemp(where));
	snprintf(attach, sizeof(attach), "ATTACH '%s' AS o", path_in(dir));
	assert_int_equal(sqlite3_open(path_in(where), &db), SQLITE_OK);
	for (int i = 0; i < 3; i++)
		assert_int_equal(sqlite3_exec(db, catalog_schema[i], NULL, NULL,
					      NULL),
				 SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, attach, NULL, NULL, NULL), SQLITE_OK);
	if (sqlite3_exec(db, schema_3, NULL, NULL, NULL))
		fail_msg("%s", sqlite3_errmsg(db));
	sqlite3_close(db);
}

static void convert(const char *where)
{
	static const uint8_t boot[STORE_BOOT_ID] = { 1 };
	const struct catalog_run run = { .boot_id = boot, .version = "1" };
	struct catalog_db *db = calloc(1, sizeof(*db));

	assert_int_equal(catalog_db_open(db, where, &run), 0);
	assert_false(db->converting);
	catalog_db_close(db);
	free(db);
}

static int catalog(void **state)
{
	sqlite3 *db;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(sqlite3_open(path_in(dir), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, schema, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	version_3(dir_3);
	version_3(dir_4);
	convert(dir_4);
	return 0;
}

static int remove_catalog(void **state)
{
	char cmd[256];

	snprintf(cmd, sizeof(cmd), "rm -r %s %s %s", dir, dir_3, dir_4);
	return system(cmd);
}

/* The chosen images, by their numbers: "367". */
static const char *choose(struct reporter_query_terms *terms, int64_t from,
			  int64_t to, char windows[4])
{
	static const char *const images[] = { "1-a-1", "2-b-1", "3-c-1",
					      "4-d-1", "5-e-1", "5-e-2",
					      "6-f-1", "7-9-1", "6-0-1" };
	static char text[16];
	const struct request_select_opts opts = {
		.path = archive,
		.terms = terms,
		.span = { from, to },
	};
	struct request_select *s;
	size_t i, n = 0, k = 0;

	assert_int_equal(request_select_new(&s, &opts), 0);
	for (i = 0; i < ARRAY_SIZE(images); i++)
		if (request_select_image(s, images[i]))
			text[n++] = (char)('1' + i);
	text[n] = '\0';
	for (i = 0; i < 3; i++)
		if (request_select_window(s, (char[]){ (char)('a' + i), 0 }))
			windows[k++] = (char)('a' + i);
	windows[k] = '\0';
	assert_true(request_select_window(s, "of later"));
	assert_false(request_select_image(s, "nobody"));
	request_select_free(s);
	return text;
}

static void terms_choose(void **state)
{
	static const struct {
		const char *key[3], *value[3];
		const char *images, *windows;
		int64_t from, to;
	} cases[] = {
		{ { "subtree" }, { "3" }, "345678", "bc", 0, 1000 },
		{ { "subtree" }, { "4-d" }, "4567", "b", 0, 1000 },
		{ { "subtree" }, { "6" }, "79", "ab", 0, 1000 },
		{ { "subtree" }, { "6" }, "7", "b", 100, 1000 },
		{ { "not-subtree" }, { "4" }, "12389", "abc", 0, 1000 },
		{ { "under" }, { "make" }, "45678", "bc", 0, 1000 },
		{ { "under" }, { "sh" }, "567", "b", 0, 1000 },
		{ { "exit", "under" }, { "fail", "m*ke" }, "4567", "b", 0, 1000 },
		{ { "exit" }, { "ok" }, "89", "ac", 0, 1000 },
		{ { "exit" }, { "signal" }, "7", "b", 0, 1000 },
		{ { "exit" }, { "SIGSEGV" }, "7", "b", 0, 1000 },
		{ { "exit" }, { "1" }, "456", "", 0, 1000 },
		{ { "exit", "exit" }, { "1", "2" }, "3456", "b", 0, 1000 },
		/* Who has not ended has not ended with 0. */
		{ { "exit" }, { "!ok" }, "1234567", "bc", 0, 1000 },
		{ { "user" }, { "1000" }, "345678", "bc", 0, 1000 },
		{ { "user", "comm" }, { "1000", "x" }, "345678", "bc", 0, 1000 },
		{ { "entry" }, { "sshd" }, "2345678", "bc", 0, 1000 },
		{ { "entry" }, { "1" }, "19", "ac", 0, 1000 },
		{ { "argv" }, { "* -O2*" }, "467", "b", 0, 1000 },
		{ { "argv" }, { "*'; DROP TABLE image" }, "", "", 0, 1000 },
		{ { "process" }, { "5-e" }, "56", "", 0, 1000 },
		{ { "image" }, { "5-e-*" }, "56", "", 0, 1000 },
		{ { "pid", "exit" }, { "6", "ok" }, "9", "a", 0, 1000 },
		/* Only who lived in the span. */
		{ { "user" }, { "0" }, "12", "c", 500, 600 },
		{ { "user" }, { "0" }, "19", "ac", 0, 50 },
	};
	struct reporter_query_terms t = { 0 };
	const char *want;
	char windows[4];

	archive = *state;
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t k = 0; k < 3 && cases[i].key[k]; k++)
			assert_int_equal(reporter_query_terms_parse(
						 &t, cases[i].key[k],
						 cases[i].value[k], &want),
					 0);
		print_message("%s=%s\n", cases[i].key[0], cases[i].value[0]);
		assert_string_equal(choose(&t, cases[i].from, cases[i].to,
					   windows),
				    cases[i].images);
		assert_string_equal(windows, cases[i].windows);
		reporter_query_terms_fini(&t);
	}
}

static bool add_row(void *arg, int64_t number, const char *text)
{
	char *out = arg;

	out[strlen(out)] = (char)('0' + number);
	return true;
}

/* Names, which are texts of rows or of their programs. */
static void rows_have_names(void **state)
{
	static const struct {
		const char *key, *value, *images;
	} cases[] = {
		{ "comm", "sh", "45" },
		{ "comm", "c*", "78" },
		{ "not-comm", "sh", "1236789" },
		{ "exe", "/usr/bin/gcc", "6" },
		{ "exe", "gcc", "6" },
		{ "exe", "/usr/bin/c*", "78" },
		{ "cgroup", "/c/make", "3" },
		{ "cgroup", "/c/s*", "245" },
		{ "container", "ccp", "8" },
		{ "unit", "init.service", "1" },
		{ "unit", "c?.service", "8" },
		{ "user", "0", "129" },
		{ "under", "sh", "567" },
		{ "exit", "1", "456" },
		{ "exit", "0", "89" },
		{ "comm", "nobody", "" },
	};
	const char *const archives[] = { dir_3, dir_4 };
	struct reporter_query_terms t = { 0 };
	const char *want;

	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		const struct request_select_opts opts = {
			.path = archives[i % 2],
			.terms = &t,
			.span = { 0, 1000 },
		};
		char found[16] = "";
		struct request_select_rows rows = {
			.sql = "SELECT i.id, i.image FROM image i JOIN process "
			       "p ON p.id = i.process WHERE i.id < 10 AND "
			       "$TERMS ORDER BY i.id",
			.row = add_row,
			.arg = found,
		};

		assert_int_equal(
			reporter_query_terms_parse(&t, cases[i / 2].key,
						   cases[i / 2].value, &want),
			0);
		assert_int_equal(request_select_rows(&opts, &rows), 0);
		print_message("%s=%s %s\n", cases[i / 2].key,
			      cases[i / 2].value, archives[i % 2]);
		assert_string_equal(found, cases[i / 2].images);
		reporter_query_terms_fini(&t);
	}
}

static bool add_service(void *arg, int64_t number, const char *text)
{
	char *out = arg;

	sprintf(out + strlen(out), "%d:%s ", (int)number, text);
	return true;
}

/* Before version 5 no image has a service. */
static void images_have_services(void **state)
{
	static const struct {
		const char *value, *images, *before;
	} cases[] = {
		{ "shop", "4:shop 5:shop ", "" },
		{ "s*", "4:shop 5:shop ", "" },
		{ "!shop", "3:- 6:- 7:cart ", "3:- 4:- 5:- 6:- 7:- " },
	};
	const char *const archives[] = { dir_4, dir_3 };
	struct reporter_query_terms t = { 0 };
	const char *want;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path_in(dir_4), &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db,
				      "UPDATE image_row SET service = "
				      "iif(id < 6, 'shop', 'cart') "
				      "WHERE id IN (4, 5, 7)",
				      NULL, NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	for (size_t i = 0; i < 2 * ARRAY_SIZE(cases); i++) {
		const struct request_select_opts opts = {
			.path = archives[i % 2],
			.terms = &t,
			.span = { 0, 1000 },
		};
		char found[128] = "";
		struct request_select_rows rows = {
			.sql = "SELECT i.id, ifnull($SERVICE, '-') FROM "
			       "image i JOIN process p ON p.id = i.process "
			       "WHERE i.id BETWEEN 3 AND 7 AND $TERMS "
			       "ORDER BY i.id",
			.row = add_service,
			.arg = found,
		};

		assert_int_equal(reporter_query_terms_parse(&t, "service",
							    cases[i / 2].value,
							    &want),
				 0);
		assert_int_equal(request_select_rows(&opts, &rows), 0);
		assert_string_equal(found, i % 2 ? cases[i / 2].before
						 : cases[i / 2].images);
		reporter_query_terms_fini(&t);
	}
}

static void few_windows_are_enough(void **state)
{
	static const struct {
		const char *key, *value;
		bool helps;
	} cases[] = {
		{ "pid", "1", true },	    { "not-pid", "1", false },
		{ "process", "1-a", true }, { "image", "x", true },
		{ "comm", "make", false },  { "exit", "ok", false },
	};
	struct reporter_query_terms t = { 0 };
	const char *want;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(reporter_query_terms_parse(&t, cases[i].key,
							    cases[i].value,
							    &want),
				 0);
		assert_int_equal(request_select_helps(&t), cases[i].helps);
		reporter_query_terms_fini(&t);
	}
}

static void lives(void **state)
{
	struct reporter_query_span span;

	/* The latest process of a pid. */
	assert_int_equal(request_select_life(dir, "6", 1000, &span), 0);
	assert_int_equal(span.from, 320);
	assert_int_equal(span.to, 600);
	assert_int_equal(request_select_life(dir, "6-0", 1000, &span), 0);
	assert_int_equal(span.to, 20);
	assert_int_equal(request_select_life(dir, "2", 1000, &span), 0);
	assert_int_equal(span.to, 1000);
	assert_int_equal(request_select_life(dir, "99", 1000, &span), -ESRCH);
}

static bool never(void *arg)
{
	return false;
}

static void catalogs_that_cannot_be_read(void **state)
{
	struct reporter_query_terms t = { 0 };
	struct request_select_opts opts = { .path = "/nonexistent",
					    .terms = &t,
					    .span = { 0, 1 } };
	struct request_select *s;
	char path[64];
	sqlite3 *db;
	FILE *f;

	assert_int_equal(request_select_new(&s, &opts), -ENOENT);
	opts.path = dir;
	snprintf(path, sizeof(path), "%s/catalog.sqlite", dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 1000", NULL,
				      NULL, NULL),
			 SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(request_select_new(&s, &opts), -EPROTONOSUPPORT);
	f = fopen(path, "w");
	for (int i = 0; i < 1000; i++)
		fputs("garbage", f);
	fclose(f);
	assert_int_equal(request_select_new(&s, &opts), -EBADMSG);
}

static void a_selection_ends_when_told(void **state)
{
	struct reporter_query_terms t = { 0 };
	const struct request_select_opts opts = {
		.path = dir,
		.terms = &t,
		.span = { 0, 1000 },
		.go_on = never,
	};
	char path[64];
	sqlite3 *db;
	struct request_select *s;

	snprintf(path, sizeof(path), "%s/catalog.sqlite", dir);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(db,
			     "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL "
			     "SELECT i + 1 FROM n WHERE i < 20000) "
			     "INSERT INTO image SELECT i, 1, 'x', 'x', NULL, 0 "
			     "FROM n",
			     NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	assert_int_equal(request_select_new(&s, &opts), -ECANCELED);
	assert_null(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		{ "terms_choose", terms_choose, NULL, NULL, dir },
		{ "version 3", terms_choose, NULL, NULL, dir_3 },
		{ "version 4", terms_choose, NULL, NULL, dir_4 },
		cmocka_unit_test(rows_have_names),
		cmocka_unit_test(images_have_services),
		cmocka_unit_test(few_windows_are_enough),
		cmocka_unit_test(lives),
		cmocka_unit_test(a_selection_ends_when_told),
		cmocka_unit_test(catalogs_that_cannot_be_read),
	};

	return cmocka_run_group_tests(tests, catalog, remove_catalog);
}
