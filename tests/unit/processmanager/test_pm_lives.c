// SPDX-License-Identifier: Apache-2.0
/*
 * Unusual processes: odd names, children with another parent,
 * ends that are reported late.
 */
#include "tests/unit/processmanager/test_pm_fake.h"

#define SEC CLOCK_NSEC_PER_SEC
#define PM_TEST_VFORK (0x100 | 0x4000 | 17) /* CLONE_VM, CLONE_VFORK */

static struct pm_process_info ended[8];
static size_t nended;

static void on_ended(void *arg, const struct pm_image *last)
{
	assert_true(nended < ARRAY_SIZE(ended));
	pm_process_info(last, &ended[nended++]);
}

static int setup_ended(void **state)
{
	struct pm_opts opts = { .symbolizer = &fake,
				.want_maps = on_want,
				.ended = on_ended };

	memset(&fake, 0, sizeof(fake));
	nwants = 0;
	nended = 0;
	return pm_new(&pm, &opts);
}

static void rename_to(uint32_t pid, uint64_t id, uint64_t time,
		      const char *comm)
{
	struct quark_process qp = qp_of(pid, id);

	snprintf(qp.comm, sizeof(qp.comm), "%s", comm);
	assert_int_equal(feed(QUARK_EV_SETPROCTITLE, &qp, time, 0), 0);
}

static void test_no_name_is_a_name(void **state)
{
	do_walk(5, 1, "/bin/sh", 6000);
	rename_to(5, 0, 7000, "worker");
	assert_string_equal(info_at(5, 0, 7001).comm, "worker");
	rename_to(5, 0, 8000, "");
	assert_string_equal(info_at(5, 0, 8001).comm, "");
	assert_int_equal(stats().renames, 2);
}

/* exec's own rename is no event: a name stays its image's. */
static void test_name_before_an_exec_of_that_name(void **state)
{
	struct pm_image_info info;
	struct pm_image *old;

	do_walk(5, 1, "/bin/bash", 6000);
	rename_to(5, 0, 7000, "sh");
	old = image_at(5, 0, 7001);
	do_exec(5, 1, 7500, "/bin/sh");
	pm_image_info(old, &info);
	assert_string_equal(info.comm, "sh");
}

/* After the point of no return, so that there is no exec event either. */
static void test_exec_that_fails_too_late(void **state)
{
	struct quark_process qp = qp_of(5, 1);

	do_walk(5, 1, "/bin/sh", 6000);
	strcpy(qp.comm, "damaged");
	assert_int_equal(feed(QUARK_EV_EXIT, &qp, 7000, 0), 0);
	assert_string_equal(info_at(5, 0, 7001).comm, "damaged");
}

/* Of CLONE_PARENT, by which runtimes of containers start them. */
static void test_sibling_by_clone_has_its_makers_memory(void **state)
{
	struct pm_map_event m = map_of(0x1000, 0x2000, "/bin/init", 0);
	struct pm_map_event n = map_of(0x1000, 0x2000, "/bin/runc", 0);
	struct quark_process qp = qp_of(7, 0);
	struct quark_event ev = { .events = QUARK_EV_FORK,
				  .process = &qp,
				  .boottime = 7000,
				  .clone_flags = 0x8000 | 17 };
	struct pm_process_info p;

	do_walk(4, 1, "/bin/init", 6000);
	do_walk(5, 4, "/bin/runc", 6000);
	do_maps(4, 6001, 6002, &m, 1);
	do_maps(5, 6001, 6002, &n, 1);
	qp.proc_ppid = 4;
	qp.parent_key = qp_of(4, 0).key;
	ev.fork_key = qp_of(5, 0).key;
	assert_int_equal(pm_event(pm, &ev), 0);
	assert_string_equal(found(7, 0, 7100, 0x1000), "runc");
	assert_string_equal(info_at(7, 0, 7100).comm, "runc");
	pm_process_info(image_at(7, 0, 7100), &p);
	assert_int_equal(p.ppid, 4);
}

/* Its exec event was dropped: the child has not the image before it. */
static void test_child_of_an_unknown_image(void **state)
{
	struct pm_map_event m = map_of(0x1000, 0x2000, "/bin/bash", 0);

	do_walk(5, 1, "/bin/bash", 6000);
	do_maps(5, 6001, 6002, &m, 1);
	do_fork(5, 1, 7, 9000); /* generation 1 is unknown */
	do_fork_flags(5, 1, 8, 9001, PM_TEST_VFORK);
	assert_string_equal(found(7, 1, 9100, 0x1000), "lost");
	assert_string_equal(found(8, 1, 9100, 0x1000), "lost");
	m = map_of(0x1000, 0x2000, "/bin/ls", 0);
	do_maps(8, 9200, 9201, &m, 1);
	assert_string_equal(found(8, 1, 9300, 0x1000), "ls");
	assert_string_equal(found(5, 0, 9300, 0x1000), "bash");
	/* With a known image as always. */
	do_fork(5, 0, 9, 9400);
	assert_string_equal(found(9, 0, 9500, 0x1000), "bash");
}

static void test_exit_told_behind_its_reap(void **state)
{
	struct pm_process_info p;

	do_walk(5, 1, "/bin/sh", 6000);
	do_fork(5, 0, 7, 7000);
	do_reap(7, 0, 7500);
	do_exit(7, 0, 7300);
	pm_process_info(image_at(7, 0, 7400), &p);
	assert_int_equal(p.exit, 7300);
	assert_int_equal(p.reap, 7500);
}

/* It was reported after its grace time: not again. */
static void test_zombie_reaped_after_the_grace_time(void **state)
{
	struct quark_process qp = qp_of(7, 0);

	do_walk(5, 1, "/bin/sh", 6000);
	pm_begin(pm, 6500);
	do_fork(5, 0, 7, 7000);
	do_exit(7, 0, 7200);
	pm_forget(pm, 20 * SEC);
	assert_int_equal(nended, 1);
	qp.flags = QUARK_F_EXIT;
	qp.exit_boottime = 7200;
	assert_int_equal(feed(QUARK_EV_REAP, &qp, 21 * SEC, 0), 0);
	pm_forget(pm, 22 * SEC);
	assert_int_equal(nended, 1);
	assert_int_equal(ended[0].pid, 7);
	assert_int_equal(stats().processes, 1);
	assert_int_equal(stats().unknown, 0);
	/* One whose exit was dropped is reported. */
	qp = qp_of(8, 0);
	assert_int_equal(feed(QUARK_EV_REAP, &qp, 23 * SEC, 0), 0);
	assert_int_equal(stats().unknown, 1);
}

/* A rescan that found only these. */
static void walk_over(uint64_t time, uint32_t pid)
{
	struct quark_process qp = qp_of(pid, 0);

	pm_rescan_begin(pm, time);
	assert_int_equal(pm_scan_process(pm, &qp, time), 0);
	pm_rescan_end(pm);
}

static enum pm_end end_of(uint32_t pid, uint64_t time)
{
	struct pm_process_info p;

	pm_process_info(image_at(pid, 0, time), &p);
	return p.end;
}

/* A rescan may miss a process; one with a sign of life lives. */
static void test_gone_by_mistake(void **state)
{
	struct quark_process qp = qp_of(7, 0);
	struct pm_process_info p;

	struct pm_map_event m = map_of(0x1000, 0x2000, "/bin/sh", 0);

	do_walk(5, 1, "/bin/sh", 6000);
	do_maps(5, 6001, 6002, &m, 1);
	do_fork(5, 0, 7, 7000);
	assert_string_equal(found(7, 0, 7100, 0x1000), "sh");
	walk_over(8000, 5);
	assert_int_equal(stats().vanished, 1);
	assert_int_equal(end_of(7, 7500), PM_VANISHED);
	assert_int_equal(end_of(7, 8500), PM_ALIVE);
	assert_int_equal(stats().found, 1);
	assert_string_equal(found(7, 0, 8500, 0x1000), "lost");
	walk_over(9000, 5);
	assert_int_equal(end_of(7, 8500), PM_VANISHED);
	walk_over(10000, 7);
	assert_int_equal(end_of(7, 8500), PM_ALIVE);
	assert_int_equal(end_of(5, 8500), PM_VANISHED);
	rename_to(5, 0, 10500, "worker");
	assert_int_equal(end_of(5, 8500), PM_ALIVE);
	walk_over(11000, 5);
	assert_int_equal(feed(QUARK_EV_EXIT, &qp, 11500, 0), 0);
	pm_process_info(image_at(7, 0, 7500), &p);
	assert_int_equal(p.end, PM_EXITED);
	assert_int_equal(p.exit, 11500);
	pm_forget(pm, 60 * SEC);
	assert_int_equal(stats().processes, 1);
}

/* libquark's own finding, which has the time of the rescan. */
static void test_ends_in_a_gap(void **state)
{
	struct quark_process qp = qp_of(7, 0);

	do_walk(5, 1, "/bin/sh", 6000);
	do_fork(5, 0, 7, 7000);
	qp.flags = QUARK_F_EXIT;
	qp.exit_boottime = 8000;
	pm_rescan_begin(pm, 8000);
	assert_int_equal(pm_scan_process(pm, &qp, 8000), 0);
	pm_rescan_end(pm);
	assert_int_equal(end_of(7, 7500), PM_VANISHED);
}

static void test_name_of_a_lost_rename(void **state)
{
	struct quark_process qp = qp_of(5, 0);

	do_walk(5, 1, "/bin/sh", 6000);
	strcpy(qp.comm, "worker");
	pm_rescan_begin(pm, 8000);
	assert_int_equal(pm_scan_process(pm, &qp, 8000), 0);
	pm_rescan_end(pm);
	assert_string_equal(info_at(5, 0, 8100).comm, "worker");
	assert_int_equal(stats().found, 0);
}

/* Freeing a lot of memory may take it longer than a zombie is kept. */
static void test_long_way_out(void **state)
{
	struct pm_image *img;

	do_walk(5, 1, "/bin/sh", 6000);
	do_fork(5, 0, 7, 7000);
	do_exit(7, 0, 8000);
	img = image_at(7, 0, 9 * SEC);
	pm_forget(pm, 12 * SEC);
	assert_int_equal(nended, 0);
	assert_ptr_equal(image_at(7, 0, 13 * SEC), img);
	pm_forget(pm, 24 * SEC);
	assert_int_equal(nended, 1);
}

/* Its exec event was dropped: the attributes before are not valid. */
static void test_child_of_an_image_nobody_told_of(void **state)
{
	struct pm_map_event m = map_of(0x1000, 0x2000, "/bin/sh", 0);

	do_walk(5, 1, "/bin/sh", 6000);
	do_maps(5, 6001, 6002, &m, 1);
	do_fork(5, 0, 7, 7000);
	assert_string_equal(found(7, 0, 7100, 0x1000), "sh");
	do_fork(5, 1, 8, 8000);
	assert_string_equal(found(8, 1, 8100, 0x1000), "lost");
}

/* A process shorter than the opening of its file, which is closed later. */
static void test_gone_before_its_file_was_open(void **state)
{
	do_walk(5, 1, "/bin/sh", 6000);
	fake_file("/mnt/a.so", 1, 1, 10);
	do_mmap(5, 8000, 0x1000, 0x2000, "/mnt/a.so", 0);
	do_exit(5, 0, SEC);
	do_reap(5, 0, SEC);
	pm_forget(pm, 9 * SEC);
	assert_int_equal(stats().processes, 0);
	fake_run();
	assert_int_equal(fake.held, 1);
	pm_forget(pm, 12 * SEC);
	assert_int_equal(fake.held, 1);
	pm_forget(pm, 14 * SEC);
	assert_int_equal(fake.held, 0);
	assert_int_equal(stats().open_released, 1);
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup_ended, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_no_name_is_a_name),
		T(test_name_before_an_exec_of_that_name),
		T(test_exec_that_fails_too_late),
		T(test_sibling_by_clone_has_its_makers_memory),
		T(test_child_of_an_unknown_image),
		T(test_exit_told_behind_its_reap),
		T(test_zombie_reaped_after_the_grace_time),
		T(test_gone_by_mistake),
		T(test_ends_in_a_gap),
		T(test_name_of_a_lost_rename),
		T(test_long_way_out),
		T(test_child_of_an_image_nobody_told_of),
		T(test_gone_before_its_file_was_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
