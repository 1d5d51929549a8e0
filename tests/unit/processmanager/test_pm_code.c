// SPDX-License-Identifier: Apache-2.0
/*
 * Perf maps: the names of executable memory, the versions of a map that grows, when
 * one is looked for, and how long its file is held.
 */
#include "tests/unit/processmanager/test_pm_ask.h"

#define SEC CLOCK_NSEC_PER_SEC
#define MS CLOCK_NSEC_PER_MSEC

static struct fake_disk *map;

/* Time passes for the manager with any record. */
static void now(uint64_t time)
{
	do_exit(99, 0, time);
}

/* Process 5 and its code; its map has 100 bytes. */
static struct pm_exe *with_map(void)
{
	fake_file("[anon]", 0, 0, 77);
	map = fake_lookup("[anon]");
	map->size = 100;
	do_mmap(5, 8000, 0x4000, 0x5000, "//anon", 0);
	return exe_at(5, 0, 0x4000);
}

static uint32_t version_at(struct pm_exe *exe, uint64_t time)
{
	uint32_t version;

	assert_true(pm_exe_code(exe, time, &version));
	return version;
}

/* Requests a name for a sample; the size of the map that is sent. */
static uint64_t size_at(struct pm_exe *exe, uint64_t time)
{
	uint64_t at;

	assert_int_equal(
		pm_exe_name_at(exe, 0x4010, time, NULL, on_names, NULL), 0);
	pm_names_send(pm);
	if (fake.queue[0]->open_fn)
		fake_turn();
	assert_non_null(fake.queue[0]->resolve_fn);
	at = fake.queue[0]->at;
	answers = 0;
	fake_run();
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, 0);
	return at;
}

static void test_the_map_is_its_file(void **state)
{
	struct pm_exe *exe = with_map();

	assert_int_equal(version_at(exe, 9000), 1);
	assert_int_equal(
		pm_exe_name_at(exe, 0x4010, 9000, NULL, on_names, NULL), 0);
	pm_names_send(pm);
	assert_true(fake.queue[0]->perf_map);
	assert_int_equal(fake.queue[0]->pid, 5);
	answers = 0;
	fake_run();
	assert_int_equal(answers, 1);
	assert_string_equal(answer, "[anon]");
	assert_int_equal(stats().open_files, 1);
	assert_int_equal(version_at(exe, 9000), 1);
	assert_int_equal(fake.opens, 1);
}

static void test_growth_is_a_version(void **state)
{
	struct pm_exe *exe = with_map();
	uint32_t version = version_at(exe, 9000);

	assert_int_equal(size_at(exe, 9000), 100);
	now(SEC);
	assert_int_equal(version_at(exe, SEC), version);
	map->size = 200;
	now(2 * SEC);
	assert_int_equal(version_at(exe, 2 * SEC), version + 1);
	/* Samples that are older than the last check had the old map. */
	assert_int_equal(version_at(exe, SEC - 1), version);
	assert_int_equal(size_at(exe, 2 * SEC), 200);
	assert_int_equal(size_at(exe, SEC - 1), 100);
	/* It is not checked at each sample, */
	map->size = 300;
	now(2 * SEC + 50 * MS);
	assert_int_equal(version_at(exe, 3 * SEC), version + 1);
	now(2 * SEC + 100 * MS);
	assert_int_equal(version_at(exe, 3 * SEC), version + 2);
	/* and less often if it is large. */
	map->size = 30 << 20;
	now(3 * SEC);
	assert_int_equal(version_at(exe, 3 * SEC), version + 3);
	map->size++;
	now(6 * SEC);
	assert_int_equal(version_at(exe, 6 * SEC), version + 3);
	now(6 * SEC + 100 * MS);
	assert_int_equal(version_at(exe, 7 * SEC), version + 4);
	/* What is gone from a file that shrank cannot be read. */
	map->size = 10;
	now(20 * SEC);
	assert_int_equal(version_at(exe, 20 * SEC), version + 5);
	assert_int_equal(size_at(exe, 1), 10);
}

static void test_none_is_looked_for_again(void **state)
{
	struct pm_exe *exe;
	uint32_t version;

	do_mmap(5, 8000, 0x4000, 0x5000, "//anon", 0);
	exe = exe_at(5, 0, 0x4000);
	assert_true(pm_exe_code(exe, 1, &version));
	assert_int_equal(version, 1);
	assert_string_equal(name_of(exe), strerror(ENOENT));
	assert_int_equal(fake.opens, 1);
	/* Known not to be there: frames ask for nothing. */
	now(500 * MS);
	assert_false(pm_exe_code(exe, 500 * MS, &version));
	assert_int_equal(version, 1);
	now(2 * SEC);
	assert_true(pm_exe_code(exe, 2 * SEC, &version));
	assert_int_equal(version, 2);
	assert_string_equal(name_of(exe), strerror(ENOENT));
	now(3 * SEC + 900 * MS);
	assert_false(pm_exe_code(exe, 4 * SEC, &version));
	now(4 * SEC);
	assert_true(pm_exe_code(exe, 4 * SEC, &version));
	fake_file("[anon]", 0, 0, 77);
	assert_string_equal(name_of(exe), "[anon]");
	assert_int_equal(fake.opens, 3);
}

static void test_each_process_has_its_own(void **state)
{
	struct pm_exe *five = with_map(), *six;

	do_mmap(6, 8000, 0x4000, 0x5000, "//anon", 0);
	six = exe_at(6, 0, 0x4000);
	assert_ptr_not_equal(five, six);
	assert_string_equal(name_of(five), "[anon]");
	assert_string_equal(name_of(six), "[anon]");
	assert_int_equal(fake.last_pid, 6);
	assert_int_equal(fake.held, 2);
}

static void test_held_after_the_end(void **state)
{
	struct pm_exe *exe = pm_exe_get(with_map());

	assert_string_equal(name_of(exe), "[anon]");
	do_exit(5, 0, 2 * SEC);
	do_reap(5, 0, 2 * SEC);
	pm_forget(pm, 3 * SEC);
	assert_string_equal(name_of(exe), "[anon]");
	now(7 * SEC);
	pm_forget(pm, 7 * SEC);
	assert_int_equal(fake.held, 0);
	assert_string_equal(name_of(exe), strerror(ESRCH));
	pm_exe_put(exe);
}

static void test_no_map_of_a_process_that_ended(void **state)
{
	struct pm_exe *exe = pm_exe_get(with_map());

	do_exit(5, 0, 2 * SEC);
	assert_string_equal(name_of(exe), strerror(ESRCH));
	assert_int_equal(fake.opens, 0);
	pm_exe_put(exe);
}

/* They are files held open: at the limit one is closed, and opened again. */
static void test_files_are_limited(void **state)
{
	struct pm_exe *five = with_map(), *six;

	do_mmap(6, 8000, 0x4000, 0x5000, "//anon", 0);
	six = exe_at(6, 0, 0x4000);
	pm_set_open_files(pm, 1);
	assert_string_equal(name_of(five), "[anon]");
	assert_string_equal(name_of(six), "[anon]");
	assert_int_equal(fake.held, 1);
	assert_string_equal(name_of(five), "[anon]");
	assert_int_equal(fake.opens, 3);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, two_processes, teardown)
	const struct CMUnitTest tests[] = {
		T(test_the_map_is_its_file),
		T(test_growth_is_a_version),
		T(test_none_is_looked_for_again),
		T(test_each_process_has_its_own),
		T(test_held_after_the_end),
		T(test_no_map_of_a_process_that_ended),
		T(test_files_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
