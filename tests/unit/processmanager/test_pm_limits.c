// SPDX-License-Identifier: Apache-2.0
/*
 * How much one user can make the process manager store, and that the user
 * that is limited is reported.
 */
#include "tests/unit/processmanager/test_pm_fake.h"

#define SEC CLOCK_NSEC_PER_SEC
#define ARGS 20000 /* of an exec: what the kernel side copies at most */

static uint64_t limited_uid, limited_bytes;
static enum pm_limit limited_what;
static bool any_limit; /* of any kind */
static uint64_t maps_uid; /* the user last limited in mappings */

static void on_limited(void *arg, uint32_t uid, enum pm_limit what, uint64_t n)
{
	if (any_limit && what == PM_LIMIT_MAPS)
		maps_uid = uid;
	assert_true(any_limit || what == limited_what);
	limited_uid = uid;
	limited_bytes += n;
}

static struct pm_image *image_of(uint32_t pid, uint64_t id)
{
	struct abi_key key = { born(pid), id, pid, 0 };

	return pm_image_get(pm, &key, 0);
}

static int setup_limited(void **state)
{
	struct pm_opts opts = { .symbolizer = &fake, .limited = on_limited };

	limited_what = PM_LIMIT_TEXT;
	memset(&fake, 0, sizeof(fake));
	limited_bytes = 0;
	any_limit = false;
	maps_uid = 0;
	return pm_new(&pm, &opts);
}

/* Arguments that no other process has. */
static void exec_long(uint32_t pid, uint64_t id, uint64_t time, uint32_t uid)
{
	static char args[ARGS];
	struct quark_process qp = qp_of(pid, id);
	struct quark_event ev = { .events = QUARK_EV_EXEC,
				  .process = &qp,
				  .boottime = time };

	memset(args, 'x', sizeof(args));
	snprintf(args, sizeof(args), "%u %llu", pid, (unsigned long long)id);
	args[ARGS - 1] = '\0';
	qp.proc_uid = uid;
	qp.exe = "/bin/long";
	qp.cmdline = args;
	qp.cmdline_len = sizeof(args);
	assert_int_equal(pm_event(pm, &ev), 0);
}

static void old_arguments_are_kept_in_part(void **state)
{
	struct pm_image_info v[PM_HISTORY_MAX];
	size_t i, sum = 0;

	do_walk(9, 1, "/bin/sh", 9000);
	for (i = 1; i <= 40; i++) {
		exec_long(9, i, 9000 + i, 7);
		pm_forget(pm, 9001 + i);
	}
	assert_int_equal(pm_image_history(image_of(9, 40), v, PM_HISTORY_MAX),
			 PM_HISTORY_MAX);
	/*
	 * Those of the newest image are complete; of older ones the beginning,
	 * or nothing.
	 */
	assert_int_equal(v[0].cmdline_len, ARGS);
	assert_false(v[0].args_cut);
	for (i = 1; i < PM_HISTORY_MAX; i++) {
		assert_true(v[i].args_cut);
		assert_true(v[i].cmdline_len <= 4096);
		sum += v[i].cmdline_len;
	}
	assert_int_equal(v[1].cmdline_len, 4096);
	assert_int_equal(sum, 16384);
	assert_true(stats().text_bytes < ARGS + 16384 + 1024);
	assert_int_equal(limited_bytes, 0);
}

/* A user that fills it has half of it, and others are stored as before. */
static void one_user_has_no_more_than_his_share(void **state)
{
	struct pm_image_info v[PM_HISTORY_MAX];
	uint32_t pid;
	uint64_t i;

	for (pid = 1000; pid < 3000; pid++) {
		do_walk(pid, 1, "/bin/sh", 9000);
		for (i = 1; i <= 16; i++)
			exec_long(pid, i, 9000 + i, 65534);
	}
	pm_forget(pm, 10000);
	assert_true(stats().text_bytes <= (16 << 20) + 2000 * 600);
	assert_true(stats().text_cut > 0);
	assert_int_equal(limited_uid, 65534);
	assert_true(limited_bytes > 0);
	/* Something is stored of the last one too. */
	pm_image_history(image_of(2999, 16), v, 1);
	assert_int_equal(v[0].cmdline_len, 512);
	assert_true(v[0].args_cut);
	assert_string_equal(v[0].exe, "/bin/long");
	limited_uid = 0;
	for (pid = 5000; pid < 5100; pid++) {
		do_walk(pid, 1, "/bin/sh", 9000);
		exec_long(pid, 1, 11000, 1000);
		pm_image_history(image_of(pid, 1), v, 1);
		assert_int_equal(v[0].cmdline_len, ARGS);
		assert_false(v[0].args_cut);
	}
	assert_int_equal(limited_uid, 0);
	/* When they have been forgotten, nothing is left. */
	for (pid = 1000; pid < 3000; pid++) {
		do_exit(pid, 16, 12000);
		do_reap(pid, 16, 12001);
	}
	pm_forget(pm, 60 * SEC);
	assert_true(stats().text_bytes < 100 * (ARGS + 1024));
}

/*
 * A user that floods a stream is reported, also by records that change nothing
 * else.
 */
static void who_floods_is_told(void **state)
{
	struct pm_map_event ev = {
		.kind = PM_MAP_LOST,
		.tgid = 9,
		.time = 9100,
		.end = 9200,
		.flood = true,
	};
	struct quark_event renamed = { .events = QUARK_EV_SETPROCTITLE,
				       .boottime = 9100,
				       .limited = 1024 };
	struct quark_process qp;

	do_walk(9, 1, "/bin/sh", 9000);
	exec_long(9, 1, 9001, 7);
	limited_what = PM_LIMIT_NAMES;
	qp = qp_of(9, 1);
	qp.proc_uid = 7;
	renamed.process = &qp;
	assert_int_equal(pm_event(pm, &renamed), 0);
	assert_int_equal(limited_uid, 7);
	assert_int_equal(limited_bytes, 1024);
	limited_what = PM_LIMIT_MAPS;
	assert_int_equal(pm_map_event(pm, &ev), 0);
	assert_int_equal(limited_bytes, 1025);
	/* Not by its own doing. */
	ev.flood = false;
	limited_what = PM_LIMIT_MAPS_ALL;
	assert_int_equal(pm_map_event(pm, &ev), 0);
	assert_int_equal(limited_bytes, 1026);
	/* An unknown process. */
	ev.tgid = 10;
	assert_int_equal(pm_map_event(pm, &ev), 0);
	assert_int_equal(limited_bytes, 1026);
}

/* --- files and mappings --------------------------------------------------- */

#define START 200000 /* after all of them began */
#define MANY 40000 /* files, of one user */

/*
 * 'n' mappings of a file each, from 'first' on, with paths as long as they get.
 */
static void map_files(uint32_t pid, uint64_t time, uint32_t first, uint32_t n)
{
	static char path[4000];
	struct pm_map_event ev;
	uint32_t i;

	memset(path, 'd', sizeof(path));
	path[0] = '/';
	for (i = first; i < first + n; i++) {
		snprintf(path + 3900, 100, "/file-%u", i);
		ev = map_of(0x1000ULL * i, 0x1000ULL * (i + 1), path, 0);
		ev.tgid = pid;
		ev.time = time;
		ev.dev = 1;
		ev.ino = 1 + i;
		ev.ino_generation = 1;
		assert_int_equal(pm_map_event(pm, &ev), 0);
		fake_run();
	}
}

static void process_of(uint32_t pid, uint32_t uid)
{
	do_walk(pid, 1, "/bin/sh", START);
	exec_long(pid, 1, START + 1, uid);
}

/* Paths count as text; a file's name is always kept. */
static void paths_have_a_share(void **state)
{
	struct pm_exe_info info;

	process_of(9, 65534);
	process_of(10, 7);
	map_files(9, START + 100, 1, 10000);
	assert_true(stats().text_cut > 1000);
	assert_int_equal(limited_uid, 65534);
	assert_true(stats().text_bytes <= (16 << 20) + 10000 * 128);
	pm_exe_info(exe_at(9, 1, 0x1000), &info);
	assert_int_equal(strlen(info.path), 3900 + strlen("/file-1"));
	pm_exe_info(exe_at(9, 1, 0x1000 * 10000), &info);
	assert_string_equal(info.path, ".../file-10000");
	assert_string_equal(info.base, "file-10000");
	limited_uid = 0;
	map_files(10, START + 100, 20000, 10);
	assert_int_equal(limited_uid, 0);
	pm_exe_info(exe_at(10, 1, 0x1000 * 20001), &info);
	assert_int_equal(strlen(info.path), 3900 + strlen("/file-20001"));
}

/* A process that maps ever new files becomes stale, and no other. */
static void files_have_a_share(void **state)
{
	process_of(9, 65534);
	process_of(10, 7);
	map_files(9, START + 100, 1, 10);
	assert_string_equal(found(9, 1, START + 101, 0x1000), "file-1");
	any_limit = true;
	map_files(9, START + 102, 11, MANY);
	assert_true(stats().exes <= 16384 + 10);
	assert_true(stats().exes_refused > 0);
	assert_int_equal(maps_uid, 65534);
	assert_string_equal(found(9, 1, START + 103, 0x1000), "lost");
	limited_uid = 0;
	map_files(10, START + 200, MANY + 100, 100);
	assert_int_equal(limited_uid, 0);
	assert_string_equal(found(10, 1, START + 201, 0x1000 * (MANY + 150)),
			    "file-40150");
}

/* As many mappings as a process may have, of one file, in many processes. */
static void mappings_have_a_share(void **state)
{
	struct pm_map_event ev = map_of(0, 0, "/lib/x.so", 5);
	uint32_t pid, i;

	any_limit = true;
	process_of(5, 7);
	ev.tgid = 5;
	ev.time = START + 50;
	ev.start = 0x1000;
	ev.end = 0x2000;
	assert_int_equal(pm_map_event(pm, &ev), 0);
	for (pid = 100; pid < 112; pid++) {
		process_of(pid, 65534);
		ev.tgid = pid;
		ev.time = START + 100;
		for (i = 1; i <= 65000; i++) {
			ev.start = 0x2000ULL * i;
			ev.end = ev.start + 0x1000;
			assert_int_equal(pm_map_event(pm, &ev), 0);
		}
	}
	assert_true(stats().mappings <= (1 << 19) + 12 * 256);
	assert_true(stats().maps_refused > 0);
	assert_int_equal(maps_uid, 65534);
	assert_string_equal(found(111, 1, START + 101, 0x2000), "lost");
	/* Earlier ones are complete; so are another user's. */
	assert_string_equal(found(100, 1, START + 101, 0x2000), "x.so");
	assert_string_equal(found(5, 1, START + 101, 0x1000), "x.so");
	limited_uid = 0;
	process_of(6, 7);
	ev.tgid = 6;
	for (i = 1; i <= 10000; i++) {
		ev.start = 0x2000ULL * i;
		ev.end = ev.start + 0x1000;
		assert_int_equal(pm_map_event(pm, &ev), 0);
	}
	assert_int_equal(limited_uid, 0);
	assert_string_equal(found(6, 1, START + 101, 0x2000), "x.so");
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_limited, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(old_arguments_are_kept_in_part),
		TEST(one_user_has_no_more_than_his_share),
		TEST(who_floods_is_told),
		TEST(paths_have_a_share),
		TEST(files_have_a_share),
		TEST(mappings_have_a_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
