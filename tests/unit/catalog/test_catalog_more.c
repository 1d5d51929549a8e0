// SPDX-License-Identifier: Apache-2.0
/*
 * The catalog beside processes and windows: runs of profd, changes, what has no row, an
 * older file, and views.
 */
#include "tests/unit/catalog/test_catalog.h"

#include "reporter/catalog/rest.h"
#include "reporter/catalog/schema.h"

static void write_all(void)
{
	catalog_snapshot(catalog, true);
	settle();
}

/* An empty window of this minute, with the rows that are pending. */
static void window(void)
{
	static int64_t n;
	struct store_window file = { .day = "20260101", .bytes = 1 };
	struct window tables;
	const struct window_opts none = { .events = 1 };
	const struct catalog_window w = {
		.file = &file,
		.tables = &tables,
		.begin_ns = ++n * 60 * (int64_t)SEC,
		.begin_boot_ns = n * 60 * SEC,
		.duration_ns = 60 * SEC,
		.comments = "",
	};

	snprintf(file.stem, sizeof(file.stem), "w%lld", (long long)n);
	assert_int_equal(window_init(&tables, &none), 0);
	catalog_snapshot(catalog, false);
	catalog_add_window(catalog, &w);
	window_fini(&tables);
	settle();
}

/* --- runs ------------------------------------------------------------------------ */

static void a_run_has_a_row_and_its_end(void **state)
{
	open_catalog();
	window();
	assert_rows("SELECT version, freq_hz, end_ns IS NULL, "
		    "alive_ns >= start_ns FROM run",
		    "1.2.3|100|1|1");
	assert_rows("SELECT r.id FROM window w JOIN run r ON r.id = w.run",
		    "1");
	close_catalog();
	assert_rows("SELECT end_ns >= start_ns, end_ns = alive_ns FROM run",
		    "1|1");
	open_catalog();
	close_catalog();
	assert_rows("SELECT count(*) FROM run", "2");
}

/* --- changes ----------------------------------------------------------------------- */

static struct quark_event event(uint64_t kinds, uint32_t id_change,
				struct quark_process *qp)
{
	*qp = (struct quark_process){
		.pid = 7,
		.key = { .pid = 7, .start_boottime = 0xab, .exec_id = 3 },
		.proc_uid = 33,
		.proc_gid = 34,
		.cgroup = "/new",
	};
	memcpy(qp->comm, "renamed", sizeof("renamed"));
	return (struct quark_event){ .events = kinds,
				     .boottime = 70 * SEC,
				     .id_change = id_change,
				     .process = qp };
}

static void a_change_has_what_is_new(void **state)
{
	struct quark_process qp;
	struct quark_event ev;

	open_catalog();
	ev = event(QUARK_EV_SETPROCTITLE, 0, &qp);
	catalog_event(catalog, &ev);
	ev = event(QUARK_EV_ID_CHANGE,
		   QUARK_ID_CHANGE_SETUID | QUARK_ID_CHANGE_CGROUP, &qp);
	catalog_event(catalog, &ev);
	/* Those are in other tables. */
	ev = event(QUARK_EV_FORK | QUARK_EV_EXEC | QUARK_EV_EXIT, 0, &qp);
	catalog_event(catalog, &ev);
	write_all();
	close_catalog();
	assert_rows("SELECT kind, process, image, comm, uid, gid, cgroup, "
		    "time_boot_ns FROM change",
		    "rename|7-ab|7-ab-3|renamed||||70000000000 "
		    "id_change|7-ab|7-ab-3||33|34||70000000000 "
		    "cgroup|7-ab|7-ab-3||||/new|70000000000");
	assert_rows("SELECT event, process, detail FROM events",
		    "rename|7-ab|renamed id_change|7-ab|33:34 "
		    "cgroup|7-ab|/new");
}

static void a_gap_says_what_is_missing(void **state)
{
	struct quark_event ev = {
		.events = QUARK_EV_GAP,
		.boottime = 80 * SEC,
		.gap_kinds = QUARK_EV_FORK | QUARK_EV_EXIT,
		.gap_from = 78 * SEC,
		.gap_to = 79 * SEC,
		.gap_lost = 5,
	};

	open_catalog();
	catalog_event(catalog, &ev);
	write_all();
	close_catalog();
	assert_rows("SELECT kind, process IS NULL, "
		    "json_extract(detail, '$.lost'), "
		    "json_extract(detail, '$.to_ns') - "
		    "json_extract(detail, '$.from_ns'), "
		    "json_extract(detail, '$.kinds') FROM change",
		    "gap|1|5|1000000000|[\"fork\",\"exit\"]");
}

/* A user renames as fast as the kernel lets him. */
static void changes_of_a_user_are_bounded(void **state)
{
	struct quark_process qp;
	struct quark_event ev = event(QUARK_EV_SETPROCTITLE, 0, &qp);

	open_catalog();
	for (int i = 0; i < 3000; i++)
		catalog_event(catalog, &ev);
	qp.proc_uid = 44;
	catalog_event(catalog, &ev);
	write_all();
	assert_int_equal(stats_of().catalog_changes_skipped, 1000);
	close_catalog();
	assert_rows("SELECT count(*) FROM change", "2001");
}

static void changes_go_with_time(void **state)
{
	struct quark_process qp;
	struct quark_event ev = event(QUARK_EV_SETPROCTITLE, 0, &qp);

	open_catalog();
	catalog_event(catalog, &ev);
	write_all();
	rows("UPDATE change SET time_ns = 1");
	close_catalog();
	rows("UPDATE run SET alive_ns = 1");
	rows("INSERT INTO cgroup(path, seen_ns) VALUES('/old', 1)");
	rows("INSERT INTO window(file, begin_ns, end_ns, bytes, times_bytes, "
	     "samples) VALUES('x', 900000000000, 960000000000, 0, 0, 0)");
	open_catalog();
	write_all();
	assert_rows("SELECT count(*) FROM change", "0");
	assert_rows("SELECT count(*) FROM cgroup", "0");
	assert_rows("SELECT count(*) FROM run", "1");
	close_catalog();
}

/* --- what has no row ------------------------------------------------------------------ */

static void end_of(uint32_t uid, int from, int n, const char *comm, int status)
{
	for (int i = from; i < from + n; i++) {
		struct pm_image img = process(i, 0, PM_REAPED);

		img.info.uid = uid;
		img.info.comm = comm;
		img.info.exe = "/bin/x";
		img.process.wait_status = status;
		img.process.cpu_ns = 5;
		catalog_ended(catalog, &img);
	}
}

static void what_has_no_row_is_counted_by_program(void **state)
{
	open_catalog();
	end_of(5, 1, 4000, "a", 0);
	end_of(5, 5000, 10, "a", 0);
	end_of(5, 6000, 3, "b", 1 << 8);
	window();
	assert_rows("SELECT uid, comm, exe, count, failed, cpu_ns FROM rest",
		    "5|a|/bin/x|10|0|50 5|b|/bin/x|3|3|15");
	assert_rows("SELECT count FROM loss", "13");
	/* Once. */
	window();
	assert_rows("SELECT sum(count) FROM rest", "13");
	close_catalog();
}

static void the_rest_is_bounded(void **state)
{
	struct catalog_rest *r = calloc(1, sizeof(*r));
	struct catalog_rest_program one = { .count = 1, .cpu_ns = 2 };
	size_t of_first = 0, others = 0;

	for (uint32_t uid = 0; uid < 300; uid++) {
		for (int i = 0; i < 100; i++) {
			one.uid = uid;
			snprintf(one.comm, sizeof(one.comm), "c%d", i);
			catalog_rest_add(r, &one);
		}
	}
	assert_int_equal(r->count, 30000);
	assert_in_range(r->n, 2, CATALOG_REST_MAX);
	for (size_t i = 0; i < r->n; i++) {
		if (!r->programs[i].uid)
			of_first++;
		if (r->programs[i].uid == CATALOG_REST_USERS)
			others = r->programs[i].count;
	}
	/* The others of his are one more. */
	assert_int_equal(of_first, CATALOG_REST_OF_USER + 1);
	assert_true(others > 20000);
	free(r);
}

/* Above the limit of the file. */
static void what_is_forgotten_is_counted(void **state)
{
	open_catalog_of(4 << 20);
	window();
	for (int i = 0; i < 12; i++) {
		for (int n = 0; n < 1000; n++) {
			struct pm_image img =
				process(1 + i * 1000 + n, 0, PM_REAPED);
			char comm[16];

			/* The first ones have samples. */
			img.info.samples = img.process.samples = !i;
			img.info.uid = 9;
			snprintf(comm, sizeof(comm), "c%d", n);
			img.info.comm = comm;
			/* The budget is by this time. */
			img.process.exit = (70 + i) * SEC;
			catalog_ended(catalog, &img);
		}
		write_all();
	}
	close_catalog();
	assert_rows("SELECT (SELECT count(*) FROM process) + "
		    "(SELECT sum(count) FROM rest)",
		    "12000");
	assert_rows("SELECT count(*) FROM process WHERE samples > 0", "1000");
	assert_in_range(atoi(rows("SELECT count(*) FROM rest")), 2, 200);
}

/* --- an older file, and views ------------------------------------------------------------ */

static void version_2_is_brought_up(void **state)
{
	sqlite3 *db;

	make_archive();
	assert_int_equal(sqlite3_open(path_of(CATALOG_FILE), &db), SQLITE_OK);
	for (int i = 0; i < 2; i++)
		assert_int_equal(sqlite3_exec(db, catalog_schema[i], NULL, NULL,
					      NULL),
				 SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(
			db,
			"PRAGMA application_id = 1886545508;"
			"PRAGMA user_version = 2;"
			"INSERT INTO boot VALUES(1, 'b');"
			"INSERT INTO process(id, boot, process, pid, seen_ns) "
			"VALUES(1, 1, '7-a', 7, 0);"
			"INSERT INTO image(id, process, image, samples) "
			"VALUES(1, 1, '7-a-1', 4);"
			"INSERT INTO window_image VALUES(1, 1, 4, 40);",
			NULL, NULL, NULL),
		SQLITE_OK);
	sqlite3_close(db);
	open_catalog();
	assert_null(catalog_problem(catalog));
	close_catalog();
	assert_rows("PRAGMA user_version", "5");
	assert_rows("SELECT window, image, cgroup, samples, cpu_ns FROM "
		    "window_image",
		    "1|1|0|4|40");
	assert_rows("PRAGMA integrity_check", "ok");
}

static void views_are_for_people(void **state)
{
	struct pm_image img = process(7, 0, PM_REAPED);

	open_catalog();
	img.info.comm = "gcc";
	img.process.wait_status = 1 << 8;
	img.process.cpu_ns = 1500000000;
	img.process.cpu = PM_CPU_EXACT;
	catalog_ended(catalog, &img);
	window();
	close_catalog();
	assert_rows("SELECT pid, comm, state, exit_code, cpu_s, "
		    "start GLOB '20*T*Z' FROM processes",
		    "7|gcc|reaped|1|1.5|1");
	assert_rows("SELECT process, comm FROM images", "7-12a05f207|gcc");
	assert_rows("SELECT profd, begin GLOB '1970-*' FROM windows",
		    "1.2.3|1");
	assert_rows("SELECT event, detail FROM events ORDER BY time, event",
		    "fork|0 exit|1");
}

#define T(name) cmocka_unit_test_setup_teardown(name, catalog_setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_run_has_a_row_and_its_end),
		T(a_change_has_what_is_new),
		T(a_gap_says_what_is_missing),
		T(changes_of_a_user_are_bounded),
		T(changes_go_with_time),
		T(what_has_no_row_is_counted_by_program),
		T(the_rest_is_bounded),
		T(what_is_forgotten_is_counted),
		T(version_2_is_brought_up),
		T(views_are_for_people),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
