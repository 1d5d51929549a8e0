// SPDX-License-Identifier: Apache-2.0
/* The catalog over time: retention, its size, readers, and what it is rebuilt from. */
#include "tests/unit/catalog/test_catalog.h"

#include "reporter/catalog/profile_labels.h"

static void put(uint32_t pid, uint64_t exit)
{
	struct pm_image img = process(pid, 0, PM_REAPED);

	img.process.exit = exit;
	img.process.samples = 1;
	catalog_ended(catalog, &img);
}

static void write_all(void)
{
	catalog_snapshot(catalog, true);
	settle();
}

/* Windows of a minute, with two images each, as 'reporter' writes them. */
static void windows(int n, struct reporter_keep keep)
{
	struct pm_image a = process(7, 0, PM_ALIVE),
			b = process(8, 7, PM_ALIVE);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "work");
	struct reporter_opts o = options();
	const uint64_t lost[] = { 5, 0 };
	int i;

	o.keep = keep;
	start(o);
	processes[0] = &a;
	processes[1] = &b;
	for (i = 0; i < n; i++) {
		add(&a, T0 + i * 60 * SEC, 7, "a", &f, 1);
		add(&b, T0 + i * 60 * SEC, 8, "b", &f, 1);
		add(&b, T0 + i * 60 * SEC + 1, 9, "c", &f, 1);
		a.process.samples = ++a.info.samples;
		b.process.samples = b.info.samples += 2;
		reporter_losses(t.r, lost);
		reporter_advance(t.r, T0 + (i + 1) * 60 * SEC);
		settle();
	}
	finish(T0 + n * 60 * SEC);
	reporter_free(t.r);
	t.r = NULL;
	settle();
	processes[0] = processes[1] = NULL;
}

static void remove_catalog(void)
{
	unlink(path_of(CATALOG_FILE));
	unlink(path_of(CATALOG_FILE "-wal"));
	unlink(path_of(CATALOG_FILE "-shm"));
}

/* --- retention ----------------------------------------------------------------- */

static void rows_go_with_their_window(void **state)
{
	/* The windows are of the year 2026, by a wall clock that the test sets. */
	windows(4, (struct reporter_keep){ .bytes = 3000 });
	assert_in_range(count_files(".pb.gz"), 1, 3);
	assert_rows("SELECT count(*) FROM window x LEFT JOIN window_image w ON "
		    "w.window = x.id WHERE w.window IS NULL",
		    "0");
	assert_rows("SELECT count(*) FROM window_image WHERE window NOT IN "
		    "(SELECT id FROM window)",
		    "0");
	assert_rows("SELECT count(*) FROM loss WHERE window NOT IN "
		    "(SELECT id FROM window)",
		    "0");
	assert_int_equal(atoi(rows("SELECT count(*) FROM window")),
			 count_files(".pb.gz"));
}

static void processes_go_when_they_ended_before_the_oldest_window(void **state)
{
	windows(3, (struct reporter_keep){ 0 });
	open_catalog();
	put(100, T0 - 301 * SEC); /* five minutes are for late traces */
	put(101, T0 - 299 * SEC);
	put(102, T0 + SEC);
	write_all();
	close_catalog();
	assert_rows("SELECT pid FROM process WHERE pid >= 100", "101 102");
	assert_rows("SELECT count(*) FROM image WHERE process NOT IN "
		    "(SELECT id FROM process)",
		    "0");
}

static void parents_that_are_gone_have_no_row(void **state)
{
	struct pm_image img = process(200, 100, PM_ALIVE);

	windows(1, (struct reporter_keep){ 0 });
	open_catalog();
	processes[0] = &img;
	catalog_stop(catalog);
	settle();
	catalog_free(catalog);
	open_catalog();
	put(100, T0 - 301 * SEC);
	write_all();
	write_all();
	close_catalog();
	assert_rows("SELECT pid, parent IS NOT NULL, parent_row IS NULL FROM "
		    "process WHERE pid IN (100, 200)",
		    "200|1|1");
}

static void above_its_limit_it_forgets_what_ended_first(void **state)
{
	uint64_t limit = 1 << 20;
	int i, first;

	open_catalog_of(4 * limit);
	for (i = 1; i <= 12000; i++) {
		put(i, 6 * SEC + i);
		if (i % 1000 == 0) {
			write_all();
			/* A batch above, and pages that are free. */
			assert_true(stats_of().catalog_bytes < 3 * limit);
		}
	}
	close_catalog();
	first = atoi(rows("SELECT min(pid) FROM process"));
	assert_in_range(first, 5000, 12000);
	assert_rows("SELECT max(pid), count(*) = max(pid) - min(pid) + 1 FROM "
		    "process",
		    "12000|1");
	assert_rows("PRAGMA integrity_check", "ok");
}

/* Of a user: 'n' with 'samples' each, the first one of pid 'from'. */
static void put_of(uint32_t uid, int from, int n, uint64_t exit, int samples)
{
	struct pm_image img;
	int i;

	for (i = from; i < from + n; i++) {
		img = process(i, 0, PM_REAPED);
		img.info.uid = uid;
		img.info.samples = img.process.samples = samples;
		img.process.exit = exit;
		catalog_ended(catalog, &img);
	}
}

static void a_user_with_many_displaces_none_of_others(void **state)
{
	uint64_t limit = 1 << 20;
	int i;

	open_catalog_of(4 * limit);
	put_of(1, 1, 100, 6 * SEC, 0);
	put_of(2, 101, 100, 6 * SEC, 0);
	write_all();
	for (i = 0; i < 12; i++) {
		put_of(3, 1000 + i * 1000, 1000, 7 * SEC, 1);
		write_all();
	}
	close_catalog();
	assert_rows("SELECT uid, count(*) FROM process WHERE uid < 3 GROUP BY "
		    "uid",
		    "1|100 2|100");
	assert_in_range(
		atoi(rows("SELECT min(pid) FROM process WHERE uid = 3")), 5000,
		12000);
}

static void a_user_has_so_many_rows_without_samples(void **state)
{
	open_catalog();
	put_of(1, 1, 5000, 6 * SEC, 0);
	put_of(2, 5001, 100, 6 * SEC, 0);
	assert_int_equal(stats_of().catalog_skipped, 1000);
	put_of(1, 5101, 100, 6 * SEC, 1); /* with samples */
	put_of(1, 5201, 100, 6 * SEC + SEC / 20, 0); /* 50 more */
	assert_int_equal(stats_of().catalog_skipped, 1050);
	close_catalog();
	assert_rows("SELECT uid, count(*) FROM process GROUP BY uid",
		    "1|4150 2|100");
}

static void many_users_share_what_none_has(void **state)
{
	int uid;

	open_catalog();
	/* All are remembered, and none has all of its tokens. */
	for (uid = 1; uid <= 64; uid++)
		put_of(uid, uid, 1, 6 * SEC, 0);
	put_of(65, 100, 3000, 6 * SEC, 0);
	put_of(66, 4000, 3000, 6 * SEC, 0);
	assert_int_equal(stats_of().catalog_skipped, 2000);
	/* The next second they have. */
	put_of(67, 8000, 3000, 7 * SEC, 0);
	assert_int_equal(stats_of().catalog_skipped, 2000);
	close_catalog();
}

static void free_pages_are_given_back(void **state)
{
	uint64_t most = 0;
	int i;

	open_catalog();
	for (i = 1; i <= 24000; i++) {
		put(i, 6 * SEC);
		if (i % 1000 == 0)
			write_all();
	}
	most = stats_of().catalog_bytes;
	close_catalog();
	/* All of them ended long before. */
	windows(1, (struct reporter_keep){ 0 });
	open_catalog();
	for (i = 0; i < 12; i++)
		write_all();
	assert_rows("SELECT count(*) FROM process WHERE pid > 8", "0");
	assert_true(stats_of().catalog_bytes < most / 2);
	close_catalog();
}

/* --- readers ---------------------------------------------------------------------- */

/* This program as another process: it reads until its standard input ends. */
static int reads(const char *path)
{
	sqlite3_stmt *s;
	sqlite3 *db;
	char c;

	if (sqlite3_open(path, &db) != SQLITE_OK ||
	    sqlite3_exec(db, "BEGIN", 0, 0, 0) != SQLITE_OK ||
	    sqlite3_prepare_v2(db, "SELECT * FROM process", -1, &s, NULL) !=
		    SQLITE_OK ||
	    sqlite3_step(s) != SQLITE_ROW || write(1, "", 1) != 1)
		return 1;
	while (read(0, &c, 1) > 0)
		;
	sqlite3_finalize(s);
	sqlite3_close(db);
	return 0;
}

static pid_t reader_begin(int *to)
{
	char path[256], c;
	int in[2], out[2];
	pid_t pid;

	snprintf(path, sizeof(path), "%s", path_of(CATALOG_FILE));
	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	pid = vfork();
	if (!pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		execl("/proc/self/exe", "reader", path, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	assert_int_equal(read(out[0], &c, 1), 1);
	close(out[0]);
	*to = in[1];
	return pid;
}

static void reader_end(pid_t pid, int to)
{
	int status;

	close(to);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

/*
 * A reader that keeps a snapshot: the log has an end, who reads is named, and profd goes
 * on after it.
 */
static void a_reader_does_not_make_the_log_grow_without_bound(void **state)
{
	const uint64_t most = 90 << 20; /* 64 MiB and a transaction */
	char name[32];
	pid_t reader;
	int i, to;

	open_catalog();
	put(1, 6 * SEC);
	write_all();
	reader = reader_begin(&to);
	for (i = 2; i < 400000 && !catalog_problem(catalog); i++) {
		put(i, 6 * SEC);
		if (i % 5000 == 0)
			write_all();
		assert_true(stats_of().catalog_wal_bytes < most);
	}
	assert_non_null(catalog_problem(catalog));
	snprintf(name, sizeof(name), "a reader, pid %d,", reader);
	assert_non_null(strstr(catalog_problem(catalog), name));
	assert_int_equal(stats_of().catalog_stopped, 1);
	write_all();
	assert_true(stats_of().catalog_wal_bytes < most);
	reader_end(reader, to);
	write_all();
	assert_null(catalog_problem(catalog));
	assert_int_equal(stats_of().catalog_stopped, 0);
	assert_int_equal(stats_of().catalog_dropped, 0);
	assert_true(stats_of().catalog_wal_bytes < 16 << 20);
	close_catalog();
}

/* --- rebuilding --------------------------------------------------------------------- */

static void a_lost_catalog_is_made_of_the_windows(void **state)
{
	static const char *const queries[] = {
		"SELECT file, begin_ns, end_ns, begin_boot_ns, bytes, "
		"times_bytes, samples FROM window ORDER BY file",
		"SELECT w.file, i.image, i.comm, i.exe, i.unit, x.samples, "
		"x.cpu_ns FROM window w JOIN window_image x ON x.window = w.id "
		"JOIN image i ON i.id = x.image ORDER BY 1, 2",
		"SELECT process, pid, start_boot_ns, start_ns FROM process "
		"ORDER BY 1",
		"SELECT file, cause, count FROM loss JOIN window w ON w.id = "
		"window ORDER BY 1, 2",
		"SELECT boot_id FROM boot WHERE boot_id NOT LIKE '01020300%'",
	};
	char *before[ARRAY_SIZE(queries)];
	size_t i;

	windows(3, (struct reporter_keep){ 0 });
	for (i = 0; i < ARRAY_SIZE(queries); i++)
		before[i] = strdup(rows(queries[i]));
	assert_true(strlen(before[1]) > 100);
	remove_catalog();
	open_catalog();
	assert_int_equal(stats_of().catalog_rebuilt, 3);
	assert_int_equal(stats_of().catalog_missing, 0);
	close_catalog();
	for (i = 0; i < ARRAY_SIZE(queries); i++) {
		assert_string_equal(rows(queries[i]), before[i]);
		free(before[i]);
	}
	assert_rows("SELECT count(*) FROM process WHERE state IS NOT NULL OR "
		    "end_ns <> (SELECT max(end_ns) FROM window)",
		    "0");
	/* Once is enough. */
	open_catalog();
	assert_int_equal(stats_of().catalog_rebuilt, 0);
	close_catalog();
}

static void a_rebuilt_process_that_lives_is_alive(void **state)
{
	windows(1, (struct reporter_keep){ 0 });
	remove_catalog();
	open_catalog();
	close_catalog();
	windows(1, (struct reporter_keep){ 0 });
	assert_rows("SELECT count(*) FROM window", "2");
	assert_rows("SELECT pid, state, end_ns FROM process ORDER BY pid",
		    "7|alive| 8|alive|");
}

/* profd was killed between a file and its row; and a file was removed by hand. */
static void windows_and_rows_agree_after_a_start(void **state)
{
	char cmd[512];

	windows(3, (struct reporter_keep){ 0 });
	rows("DELETE FROM window_image WHERE window = 3");
	rows("DELETE FROM loss WHERE window = 3");
	rows("DELETE FROM window WHERE id = 3");
	snprintf(cmd, sizeof(cmd), "cd %s/2026-* && rm $(ls | head -n 2)",
		 t.archive);
	assert_int_equal(system(cmd), 0);
	open_catalog();
	assert_int_equal(stats_of().catalog_rebuilt, 1);
	close_catalog();
	assert_rows("SELECT count(*) FROM window", "2");
	assert_rows("SELECT count(*), sum(samples) FROM window_image", "4|6");
}

static void a_window_that_cannot_be_read_is_tried_once(void **state)
{
	char cmd[512];

	windows(2, (struct reporter_keep){ 0 });
	snprintf(cmd, sizeof(cmd),
		 "cd %s/2026-* && for f in *.pb.gz; do echo no > $f; done; "
		 "for f in *.times.zst; do echo no > $f; done",
		 t.archive);
	assert_int_equal(system(cmd), 0);
	remove_catalog();
	open_catalog();
	close_catalog();
	assert_rows("SELECT samples, end_ns - begin_ns, begin_boot_ns FROM "
		    "window",
		    "0|60000000000| 0|60000000000|");
	open_catalog();
	assert_int_equal(stats_of().catalog_rebuilt, 0);
	close_catalog();
}

/* Each prefix of a profile, and each byte of it changed. */
static void a_damaged_profile_does_no_harm(void **state)
{
	struct catalog_profile p;
	char cmd[512];
	uint8_t *data = malloc(1 << 20);
	size_t len, i;
	FILE *f;

	windows(1, (struct reporter_keep){ 0 });
	snprintf(cmd, sizeof(cmd), "zcat %s/2026-*/*.pb.gz", t.archive);
	f = popen(cmd, "r");
	len = fread(data, 1, 1 << 20, f);
	assert_int_equal(pclose(f), 0);
	assert_int_equal(catalog_profile_parse(&p, data, len), 0);
	assert_int_equal(p.nimages, 2);
	assert_int_equal(p.samples, 3);
	catalog_profile_fini(&p);
	for (i = 0; i < len; i++) {
		catalog_profile_parse(&p, data, i);
		catalog_profile_fini(&p);
		data[i] ^= 0xff;
		catalog_profile_parse(&p, data, len);
		catalog_profile_fini(&p);
		data[i] ^= 0xff;
	}
	free(data);
}

#define T(name) cmocka_unit_test_setup_teardown(name, catalog_setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(rows_go_with_their_window),
		T(processes_go_when_they_ended_before_the_oldest_window),
		T(parents_that_are_gone_have_no_row),
		T(above_its_limit_it_forgets_what_ended_first),
		T(a_user_with_many_displaces_none_of_others),
		T(a_user_has_so_many_rows_without_samples),
		T(many_users_share_what_none_has),
		T(free_pages_are_given_back),
		T(a_reader_does_not_make_the_log_grow_without_bound),
		T(a_lost_catalog_is_made_of_the_windows),
		T(a_rebuilt_process_that_lives_is_alive),
		T(windows_and_rows_agree_after_a_start),
		T(a_window_that_cannot_be_read_is_tried_once),
		T(a_damaged_profile_does_no_harm),
	};

	if (argc == 2)
		return reads(argv[1]);
	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
