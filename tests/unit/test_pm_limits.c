// SPDX-License-Identifier: Apache-2.0
/*
 * What one user can make the process manager remember, and that whoever is limited
 * is named.
 */
#include "tests/unit/test_pm_fake.h"

#define SEC CLOCK_NSEC_PER_SEC
#define ARGS 20000 /* of an exec: what the kernel side copies at most */

static uint64_t limited_uid, limited_bytes;
static enum pm_limit limited_what;

static void on_limited(void *arg, uint32_t uid, enum pm_limit what, uint64_t n)
{
	assert_int_equal(what, limited_what);
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
	return pm_new(&pm, &opts);
}

/* Arguments that nobody else has. */
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
	/* What it is now, whole; of what it was the beginning, or nothing. */
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

/* Who fills it has half of it, and others are remembered as ever. */
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
	/* Of the last one too something is known. */
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
	/* When they have gone, it is as if they had never been. */
	for (pid = 1000; pid < 3000; pid++) {
		do_exit(pid, 16, 12000);
		do_reap(pid, 16, 12001);
	}
	pm_forget(pm, 60 * SEC);
	assert_true(stats().text_bytes < 100 * (ARGS + 1024));
}

/* Whoever floods a stream is named, also by records that change nothing else. */
static void who_floods_is_told(void **state)
{
	struct pm_map_event ev = {
		.kind = PM_MAP_LOST, .tgid = 9, .time = 9100, .end = 9200
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
	/* Nobody known. */
	ev.tgid = 10;
	assert_int_equal(pm_map_event(pm, &ev), 0);
	assert_int_equal(limited_bytes, 1025);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, setup_limited, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(old_arguments_are_kept_in_part),
		TEST(one_user_has_no_more_than_his_share),
		TEST(who_floods_is_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
