// SPDX-License-Identifier: Apache-2.0
/* Which user's file is opened next, and which user's is closed for it. */
#include "tests/unit/processmanager/test_pm_ask.h"

#define ALICE 1000
#define BOB 1001
#define T0 8000

static enum pm_limit limited_what;
static uint32_t limited_uid;

static void on_limited(void *arg, uint32_t uid, enum pm_limit what, uint64_t n)
{
	limited_uid = uid;
	limited_what = what;
}

static void process_of(uint32_t pid, uint32_t uid)
{
	struct quark_process qp = qp_of(pid, 1);

	qp.proc_uid = uid;
	qp.exe = (char *)"/bin/a";
	assert_int_equal(feed(QUARK_EV_EXEC, &qp, T0, 0), 0);
}

/* Process 5 is Alice's, 6 is Bob's. */
static int setup_users(unsigned int open_files)
{
	struct pm_opts opts = { .symbolizer = &fake,
				.open_files = open_files,
				.limited = on_limited };
	int err;

	memset(&fake, 0, sizeof(fake));
	err = pm_new(&pm, &opts);
	if (err)
		return err;
	do_walk(4, 1, "/sbin/init", 7000);
	do_walk(5, 4, "/bin/a", 7000);
	do_walk(6, 4, "/bin/b", 7000);
	process_of(5, ALICE);
	process_of(6, BOB);
	return 0;
}

static int two_users(void **state)
{
	return setup_users(0);
}

/* The i-th file of a process. */
static const char *path_of(uint32_t pid, uint32_t i)
{
	static char path[32];

	snprintf(path, sizeof(path), "/%u/%u", pid, i);
	return path;
}

static void map_file(uint32_t pid, uint32_t of, uint32_t i)
{
	struct pm_map_event ev = map_of(0x1000ULL * (i + 1),
					0x1000ULL * (i + 2), path_of(of, i), 0);

	ev.tgid = pid;
	ev.time = T0 + 1;
	ev.dev = 1;
	ev.ino = 100000ULL * of + i;
	ev.ino_generation = 3;
	assert_int_equal(pm_map_event(pm, &ev), 0);
}

static void map_files(uint32_t pid, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++)
		map_file(pid, pid, i);
}

/* The files exist, too. */
static void make_files(uint32_t pid, uint32_t n)
{
	static char paths[512][32];
	uint32_t i;

	for (i = 0; i < n; i++) {
		char *path = paths[fake.ndisk];

		snprintf(path, sizeof(paths[0]), "%s", path_of(pid, i));
		fake_file(path, fake.ndisk % 255 + 1, fake.ndisk + 1,
			  100000ULL * pid + i);
	}
}

/* How many of a process's files are open. */
static uint32_t held(uint32_t pid, uint32_t n)
{
	uint32_t i, open = 0;

	for (i = 0; i < n; i++)
		open += exe_info(exe_at(pid, 1, 0x1000ULL * (i + 1))).held;
	return open;
}

/* The index of a file's request to the symbolizer; or -1. */
static int asked(const char *path)
{
	size_t i;

	for (i = 0; i < fake.nqueue; i++)
		if (!strcmp(fake.queue[i]->path, path))
			return (int)i;
	return -1;
}

/* Answers the request for this file before all others. */
static void answer_first(int at)
{
	struct fake_req *r = fake.queue[at];

	memmove(fake.queue + 1, fake.queue, (size_t)at * sizeof(r));
	fake.queue[0] = r;
	fake_turn();
}

static void the_other_one_is_next(void **state)
{
	make_files(6, 1);
	map_files(5, 2000);
	map_files(6, 1);
	assert_in_range(asked(path_of(6, 0)), 0, 64);
	answer_first(asked(path_of(6, 0)));
	assert_int_equal(held(6, 1), 1);
	fake_run();
	assert_int_equal(held(6, 1), 1);
}

/* A user with many openings still has turns, one by one. */
static void users_take_turns(void **state)
{
	size_t before;

	make_files(6, 200);
	make_files(5, 200);
	map_files(5, 200);
	map_files(6, 200);
	before = fake.opens;
	while (held(6, 200) < 100)
		fake_turn();
	assert_true(held(5, 200) >= 80);
	assert_true(fake.opens - before < 250);
	fake_run();
	assert_int_equal(held(5, 200) + held(6, 200), 400);
}

/* A user may have as many slow openings as are free; they close nothing. */
static void slow_files_take_no_places_of_others(void **state)
{
	uint32_t i;

	make_files(6, 100);
	map_files(6, 50);
	fake_run();
	assert_int_equal(held(6, 50), 50);
	map_files(5, 512);
	assert_int_equal(stats().open_closed, 0);
	for (i = 50; i < 100; i++) {
		map_file(6, 6, i);
		assert_in_range(asked(path_of(6, i)), 0, 64);
		answer_first(asked(path_of(6, i)));
	}
	assert_int_equal(held(6, 100), 100);
	assert_int_equal(stats().open_closed, 0);
}

static void who_has_the_most_loses(void **state)
{
	pm_free(pm);
	assert_int_equal(setup_users(16), 0);
	make_files(6, 8);
	make_files(5, 100);
	map_files(6, 4);
	fake_run();
	map_files(5, 100);
	fake_run();
	assert_int_equal(held(6, 4), 4);
	assert_int_equal(held(5, 100), 12);
	/* Bob has as many as needed, up to the half. */
	map_files(6, 8);
	fake_run();
	assert_int_equal(held(6, 8), 8);
	assert_int_equal(held(5, 100), 8);
}

/* An opening that cannot fit closes no file. */
static void nothing_is_closed_in_vain(void **state)
{
	uint32_t i;

	pm_free(pm);
	assert_int_equal(setup_users(16), 0);
	make_files(4, 2);
	make_files(5, 100);
	map_files(4, 2); /* of root, who is neither */
	map_files(5, 14);
	fake_run();
	for (i = 0; i < 14; i++)
		assert_int_equal(ask(exe_at(5, 1, 0x1000ULL * (i + 1))), 0);
	for (i = 14; i < 100; i++)
		map_file(5, 5, i);
	assert_int_equal(stats().open_closed, 0);
	map_file(6, 5, 100);
	assert_int_equal(stats().open_closed, 0);
	fake_run();
	assert_true(stats().open_closed > 0);
}

/* A file of Alice's, last in her queue, is mapped by Bob too. */
static void a_file_of_two_users(void **state)
{
	map_files(5, 2000);
	assert_int_equal(asked(path_of(5, 1999)), -1);
	map_files(6, 100);
	map_file(6, 5, 1999);
	fake_run();
	map_files(5, 2000);
	assert_int_equal(stats().open_files, 0); /* no such file exists */
}

static void a_file_that_moves_is_opened_soon(void **state)
{
	int i;

	map_files(5, 2000);
	map_file(6, 5, 1999);
	for (i = 0; i < 200 && asked(path_of(5, 1999)) < 0; i++)
		fake_turn();
	assert_true(i < 200);
}

static void samples_wait_for_it(void **state)
{
	int i;

	map_files(5, 2000);
	pm_exe_hurry(exe_at(5, 1, 0x1000ULL * 1500));
	for (i = 0; i < 200 && asked(path_of(5, 1499)) < 0; i++)
		fake_turn();
	assert_true(i < 200);
}

static void ended_while_many_wait(void **state)
{
	map_files(5, 100);
	map_files(6, 100);
	assert_int_equal(ask(exe_at(5, 1, 0x1000ULL * 90)), 0);
	pm_free(pm);
	pm = NULL;
	assert_int_equal(answer_err, -ECANCELED);
}

static void execute(uint32_t pid, uint32_t uid, uint64_t ino)
{
	struct quark_new_file f = {
		.pid = pid,
		.uid = uid,
		.start_boottime = born(pid),
		.boottime = T0,
		.ident = { .dev = 1, .ino = ino, .ctime_ns = 1 },
		.path = "/tmp/new",
	};

	assert_int_equal(pm_new_file(pm, &f), 0);
}

/* By its own number, or by that of others. */
static void whose_limit_it_was(void **state)
{
	uint64_t ino;

	for (ino = 1; ino <= 129; ino++)
		execute(5, ALICE, ino);
	assert_int_equal(limited_uid, ALICE);
	assert_int_equal(limited_what, PM_LIMIT_FILES);
	for (ino = 1001; ino <= 1128; ino++)
		execute(6, BOB, ino);
	assert_int_equal(limited_uid, ALICE);
	execute(4, 0, 5000);
	assert_int_equal(limited_uid, 0);
	assert_int_equal(limited_what, PM_LIMIT_FILES_ALL);
}

#define T(name) cmocka_unit_test_setup_teardown(name, two_users, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(the_other_one_is_next),
		T(users_take_turns),
		T(slow_files_take_no_places_of_others),
		T(who_has_the_most_loses),
		T(nothing_is_closed_in_vain),
		T(a_file_of_two_users),
		T(a_file_that_moves_is_opened_soon),
		T(samples_wait_for_it),
		T(ended_while_many_wait),
		T(whose_limit_it_was),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
