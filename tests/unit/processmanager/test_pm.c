// SPDX-License-Identifier: Apache-2.0
/*
 * The process manager as a specification: the image of a key, and what is
 * mapped in it, at every point of the order of events and when they come out
 * of order.
 */
#include "tests/unit/processmanager/test_pm_fake.h"

#define SEC CLOCK_NSEC_PER_SEC
#define VFORK 0x4100ULL /* CLONE_VFORK | CLONE_VM */

/* Process 5, a shell since before profd, with its mappings. */
static void a_shell(void)
{
	struct pm_map_event maps[] = {
		map_of(0x1000, 0x2000, "/bin/sh", 0),
		map_of(0x7000, 0x8000, "/lib/libc.so", 0),
	};

	do_walk(5, 1, "/bin/sh", 6000);
	assert_int_equal(do_maps(5, 6010, 6020, maps, 2), 0);
}

static void test_walk_makes_processes(void **state)
{
	struct pm_image_info info;

	a_shell();
	info = info_at(5, 0, 7000);
	assert_string_equal(info.comm, "sh");
	assert_string_equal(info.exe, "/bin/sh");
	assert_string_equal(info.process_id, "5-1388");
	assert_string_equal(info.image_id, "5-1388-0");
	assert_int_equal(info.ppid, 1);
	assert_false(info.provisional);
	assert_non_null(info.main_exe);
	assert_string_equal(found(5, 0, 7000, 0x1fff), "sh");
	assert_string_equal(found(5, 0, 7000, 0x7000), "libc.so");
	assert_string_equal(found(5, 0, 7000, 0x2000), "none");
	assert_int_equal(stats().scanned, 1);
	assert_int_equal(stats().rereads, 0);
	/* known by key already: no change */
	do_walk(5, 1, "/bin/other", 6000);
	assert_string_equal(info_at(5, 0, 7000).exe, "/bin/sh");
	assert_int_equal(stats().scanned, 1);
}

static void test_fork_copies_on_write(void **state)
{
	a_shell();
	do_fork(5, 0, 7, 7001);
	assert_int_equal(stats().mappings, 2); /* shared: counted once */
	assert_string_equal(info_at(7, 0, 7002).exe, "/bin/sh");
	assert_string_equal(info_at(7, 0, 7002).comm, "sh");
	assert_non_null(info_at(7, 0, 7002).main_exe);
	assert_string_equal(found(7, 0, 7002, 0x1000), "sh");
	do_mmap(7, 7003, 0x3000, 0x4000, "/lib/child.so", 2);
	assert_int_equal(stats().mappings, 5);
	assert_string_equal(found(7, 0, 7004, 0x3000), "child.so");
	assert_string_equal(found(5, 0, 7004, 0x3000), "none");
	do_mmap(5, 7005, 0x5000, 0x6000, "/lib/parent.so", 3);
	assert_string_equal(found(5, 0, 7006, 0x5000), "parent.so");
	assert_string_equal(found(7, 0, 7006, 0x5000), "none");
}

static void test_vfork_child_borrows_until_exec(void **state)
{
	a_shell();
	do_fork_flags(5, 0, 7, 7001, VFORK);
	do_mmap(5, 7002, 0x3000, 0x4000, "/lib/parent.so", 2);
	assert_string_equal(found(7, 0, 7003, 0x3000), "parent.so");
	do_mmap(7, 7004, 0x5000, 0x6000, "/lib/child.so", 3);
	assert_string_equal(found(5, 0, 7005, 0x5000), "child.so");
	do_whole_exec(7, 1, 7010, "/bin/true", 4);
	assert_string_equal(found(7, 1, 7011, 0x1000), "true");
	assert_string_equal(found(5, 0, 7011, 0x1000), "sh");
	do_mmap(5, 7012, 0x9000, 0xa000, "/lib/late.so", 5);
	assert_string_equal(found(7, 1, 7013, 0x9000), "none");
}

static void test_thread_is_no_process(void **state)
{
	a_shell();
	do_fork_flags(5, 0, 7, 7001, 0x10100);
	assert_int_equal(stats().processes, 1);
	assert_int_equal(stats().forks, 0);
}

static void test_exec_is_a_cut(void **state)
{
	struct pm_image_info info;
	uint64_t serial;

	a_shell();
	serial = info_at(5, 0, 6500).serial;
	do_comm(5, 7000);
	do_mmap(5, 7001, 0x1000, 0x3000, "/bin/ls", 2);
	assert_string_equal(found(5, 0, 6999, 0x1000), "sh");
	do_mmap(5, 7002, 0x9000, 0xa000, "/lib/ld.so", 3);
	do_exec(5, 1, 7003, "/bin/ls");
	assert_string_equal(found(5, 1, 7004, 0x1000), "ls");
	assert_string_equal(found(5, 1, 7004, 0x9000), "ld.so");
	assert_string_equal(found(5, 1, 7004, 0x7000), "none");
	/* the old image is still what it was */
	assert_string_equal(found(5, 0, 6999, 0x1000), "sh");
	assert_string_equal(info_at(5, 0, 6999).exe, "/bin/sh");
	info = info_at(5, 1, 7004);
	assert_int_not_equal(info.serial, serial);
	assert_string_equal(info.exe, "/bin/ls");
	assert_ptr_equal(info.main_exe, exe_at(5, 1, 0x1000));
	/* and the next mapping is the new one's */
	do_mmap(5, 7005, 0xb000, 0xc000, "/lib/dl.so", 4);
	assert_string_equal(found(5, 1, 7006, 0xb000), "dl.so");
	assert_string_equal(found(5, 0, 7006, 0xb000), "none");
}

/* The kernel increments self_exec_id before the exec event. */
static void test_sample_between_comm_and_exec(void **state)
{
	struct pm_image *img;

	a_shell();
	do_comm(5, 7000);
	do_mmap(5, 7001, 0x1000, 0x2000, "/bin/ls", 2);
	img = image_at(5, 1, 7002);
	assert_true(info_at(5, 1, 7002).provisional);
	assert_int_equal(stats().provisional, 1);
	assert_string_equal(found(5, 1, 7002, 0x1000), "ls");
	do_mmap(5, 7003, 0x9000, 0xa000, "/lib/ld.so", 3);
	assert_string_equal(found(5, 1, 7004, 0x9000), "ld.so");
	do_exec(5, 1, 7005, "/bin/ls");
	assert_ptr_equal(image_at(5, 1, 7006), img);
	assert_false(info_at(5, 1, 7006).provisional);
	assert_string_equal(info_at(5, 1, 7006).exe, "/bin/ls");
	assert_string_equal(found(5, 1, 7006, 0x9000), "ld.so");
	do_mmap(5, 7007, 0xb000, 0xc000, "/lib/dl.so", 4);
	assert_string_equal(found(5, 1, 7008, 0xb000), "dl.so");
	assert_int_equal(stats().maps_unbound, 0);
}

static void test_sample_before_late_comm(void **state)
{
	a_shell();
	assert_string_equal(found(5, 1, 7004, 0x1000), "lost");
	do_comm(5, 7000); /* late */
	do_mmap(5, 7001, 0x1000, 0x2000, "/bin/ls", 2);
	assert_string_equal(found(5, 1, 7004, 0x1000), "ls");
	do_exec(5, 1, 7003, "/bin/ls");
	assert_string_equal(found(5, 1, 7005, 0x1000), "ls");
	assert_string_equal(found(5, 1, 7005, 0x5000), "none");
}

/* The same, of an unknown process. */
static void test_sample_of_a_stranger_before_late_comm(void **state)
{
	assert_string_equal(found(5, 3, 7004, 0x1000), "lost");
	do_comm(5, 7000);
	do_mmap(5, 7001, 0x1000, 0x2000, "/bin/ls", 2);
	assert_string_equal(found(5, 3, 7004, 0x1000), "ls");
	do_comm(5, 7010); /* and this one is the next exec's */
	do_mmap(5, 7011, 0x1000, 0x2000, "/bin/du", 3);
	assert_string_equal(found(5, 3, 7004, 0x1000), "ls");
	do_exec(5, 4, 7012, "/bin/du");
	assert_string_equal(found(5, 4, 7013, 0x1000), "du");
}

static void test_exec_event_before_late_comm(void **state)
{
	a_shell();
	do_exec(5, 1, 7003, "/bin/ls");
	assert_string_equal(found(5, 1, 7004, 0x1000), "lost");
	do_comm(5, 7000);
	do_mmap(5, 7001, 0x1000, 0x2000, "/bin/ls", 2);
	assert_string_equal(found(5, 1, 7004, 0x1000), "ls");
	assert_string_equal(found(5, 1, 7004, 0x5000), "none");
	assert_string_equal(found(5, 0, 7004, 0x1000), "sh");
}

/* An exec of a thread that is not the leader: every record has the tgid. */
static void test_exec_of_another_thread(void **state)
{
	struct pm_map_event ev = map_of(0x1000, 0x2000, "/bin/ls", 2);
	struct quark_process qp = qp_of(5, 0);
	struct quark_event e;

	a_shell();
	memset(&e, 0, sizeof(e));
	e.events = QUARK_EV_EXIT; /* the old leader; the process lives */
	e.process = &qp;
	e.boottime = 6999;
	assert_int_equal(pm_event(pm, &e), 0);
	do_comm(5, 7000);
	ev.tgid = 5;
	ev.tid = 8;
	ev.time = 7001;
	assert_int_equal(pm_map_event(pm, &ev), 0);
	do_exec(5, 1, 7002, "/bin/ls");
	assert_string_equal(found(5, 1, 7003, 0x1000), "ls");
	assert_false(info_at(5, 1, 7003).exited);
	assert_int_equal(stats().exits, 0);
}

/* An exec event was dropped: ids distinguish the images in between. */
static void test_two_comms_without_exec(void **state)
{
	a_shell();
	do_comm(5, 7000);
	do_mmap(5, 7001, 0x1000, 0x2000, "/bin/env", 2);
	do_comm(5, 7010);
	do_mmap(5, 7011, 0x1000, 0x2000, "/bin/ls", 3);
	assert_int_equal(stats().maps_unbound, 1);
	assert_string_equal(found(5, 1, 7005, 0x1000), "lost");
	do_exec(5, 2, 7012, "/bin/ls");
	assert_string_equal(found(5, 2, 7013, 0x1000), "ls");
	assert_string_equal(found(5, 1, 7005, 0x1000), "lost");
	assert_string_equal(found(5, 0, 6999, 0x1000), "sh");
}

static void test_set_of_a_skipped_generation_is_lost(void **state)
{
	a_shell();
	do_comm(5, 7000);
	do_mmap(5, 7001, 0x1000, 0x2000, "/bin/env", 2);
	do_exec(5, 2, 7012, "/bin/ls"); /* which of the two made the set? */
	assert_string_equal(found(5, 2, 7013, 0x1000), "lost");
	assert_int_equal(stats().maps_unbound, 1);
	assert_int_equal(nwants, 1);
	assert_int_equal(wants[0].tgid, 5);
	assert_int_equal(wants[0].exec_id, 2);
	assert_int_equal(wants[0].start_boottime, born(5));
}

static void test_failed_exec_dies(void **state)
{
	a_shell();
	do_comm(5, 7000);
	do_exit(5, 0, 7001);
	do_reap(5, 0, 7002);
	pm_forget(pm, 7003);
	assert_int_equal(stats().processes, 0);
}

static void test_ids_change(void **state)
{
	struct quark_process qp = qp_of(5, 0);

	a_shell();
	qp.proc_uid = 33;
	qp.cgroup = (char *)"/system.slice/x";
	assert_int_equal(feed(QUARK_EV_ID_CHANGE, &qp, 6500, 0), 0);
	assert_int_equal(info_at(5, 0, 6501).uid, 33);
	assert_string_equal(info_at(5, 0, 6501).exe, "/bin/sh");
	assert_string_equal(info_at(5, 0, 6501).cgroup, "/system.slice/x");
}

static void test_cmdline_keeps_its_nuls(void **state)
{
	struct quark_process qp = qp_of(5, 1);
	struct pm_image_info info;

	a_shell();
	qp.cmdline = (char *)"ls\0-l";
	qp.cmdline_len = 6;
	assert_int_equal(feed(QUARK_EV_EXEC, &qp, 7000, 0), 0);
	info = info_at(5, 1, 7001);
	assert_int_equal(info.cmdline_len, 6);
	assert_memory_equal(info.cmdline, "ls\0-l", 6);
}

static void test_reused_pid_is_another_process(void **state)
{
	struct quark_process qp = qp_of(5, 0);
	struct abi_key key = { 9000, 0, 5, 0 };
	struct pm_mapping m;

	a_shell();
	do_exit(5, 0, 7000);
	do_reap(5, 0, 7001);
	qp.key.start_boottime = 9000;
	assert_int_equal(feed(QUARK_EV_FORK, &qp, 9001, 0), 0);
	assert_int_equal(stats().processes, 2);
	do_mmap(5, 9002, 0x1000, 0x2000, "/bin/new", 2);
	assert_string_equal(found(5, 0, 7000, 0x1000), "sh");
	assert_int_equal(pm_image_find(pm, pm_image_get(pm, &key, 9003), 9003,
				       0x1000, &m),
			 PM_FOUND);
	assert_ptr_not_equal(m.exe, exe_at(5, 0, 0x1000));
	pm_forget(pm, 7002);
	assert_int_equal(stats().processes, 1);
	assert_int_equal(pm_image_find(pm, pm_image_get(pm, &key, 9004), 9004,
				       0x1000, &m),
			 PM_FOUND);
}

/* The exit of the pid's first process was dropped. */
static void test_reused_pid_buries_the_old(void **state)
{
	struct quark_process qp = qp_of(5, 0);

	a_shell();
	qp.key.start_boottime = 9000;
	assert_int_equal(feed(QUARK_EV_FORK, &qp, 9001, 0), 0);
	assert_true(info_at(5, 0, 9002).exited);
	pm_forget(pm, 9002 + 11 * SEC);
	assert_int_equal(stats().processes, 1);
}

static void test_late_fork_finds_its_process(void **state)
{
	a_shell();
	pm_select(pm, 5);
	assert_string_equal(found(7, 0, 7002, 0x1000), "lost");
	assert_true(info_at(7, 0, 7002).provisional);
	do_fork(5, 0, 7, 7001);
	assert_string_equal(found(7, 0, 7003, 0x1000), "sh");
	assert_false(info_at(7, 0, 7003).provisional);
	assert_true(info_at(7, 0, 7003).selected);
	assert_string_equal(info_at(7, 0, 7003).exe, "/bin/sh");
	assert_int_equal(stats().processes, 2);
}

static void test_late_fork_behind_the_end(void **state)
{
	a_shell();
	do_reap(7, 0, 7005);
	assert_int_equal(stats().unknown, 1);
	do_fork(5, 0, 7, 7001);
	assert_true(info_at(7, 0, 7003).exited);
	pm_forget(pm, 7006);
	assert_int_equal(stats().processes, 1);
}

static void test_late_exec_is_an_older_image(void **state)
{
	a_shell();
	do_whole_exec(5, 2, 7020, "/bin/ls", 2);
	do_exec(5, 1, 7010, "/bin/env");
	assert_string_equal(info_at(5, 1, 7011).exe, "/bin/env");
	assert_string_equal(info_at(5, 2, 7021).exe, "/bin/ls");
	pm_forget(pm, 7022);
	assert_int_equal(stats().images, 1);
	assert_string_equal(info_at(5, 2, 7021).exe, "/bin/ls");
}

static void test_late_mapping_goes_to_its_image(void **state)
{
	a_shell();
	do_whole_exec(5, 1, 7010, "/bin/ls", 2);
	do_mmap(5, 6900, 0x3000, 0x4000, "/lib/old.so", 3);
	assert_string_equal(found(5, 0, 6901, 0x3000), "old.so");
	assert_string_equal(found(5, 1, 7011, 0x3000), "none");
	do_mmap(5, 7009, 0x4000, 0x5000, "/lib/new.so", 4);
	assert_string_equal(found(5, 1, 7011, 0x4000), "new.so");
}

static void test_walk_contains_what_came_before(void **state)
{
	struct pm_map_event maps[] = { map_of(0x1000, 0x2000, "/bin/sh", 0) };

	do_walk(5, 1, "/bin/sh", 6000);
	assert_string_equal(found(5, 0, 6001, 0x1000), "lost");
	assert_int_equal(do_maps(5, 6010, 6020, maps, 1), 0);
	do_mmap(5, 6009, 0x1000, 0x2000, "/lib/before.so", 2);
	assert_string_equal(found(5, 0, 6030, 0x1000), "sh");
	assert_int_equal(stats().maps_before_scan, 1);
	do_mmap(5, 6011, 0x1000, 0x2000, "/lib/after.so", 3);
	assert_string_equal(found(5, 0, 6030, 0x1000), "after.so");
	assert_int_equal(stats().maps_before_scan, 1);
}

static void test_walk_that_an_exec_ran_into(void **state)
{
	struct pm_map_event maps[] = { map_of(0x1000, 0x2000, "/bin/ls", 0) };

	/* In its place, at its begin; the exec comes after. */
	do_walk(5, 1, "/bin/sh", 6000);
	assert_int_equal(do_maps(5, 6010, 6020, maps, 1), 0);
	do_exec(5, 1, 6015, "/bin/ls");
	assert_string_equal(found(5, 0, 6012, 0x1000), "lost");
	assert_string_equal(found(5, 1, 6016, 0x1000), "lost");
	assert_int_equal(nwants, 1);
	assert_int_equal(wants[0].exec_id, 1);
	/* Late, after the exec. */
	assert_int_equal(do_maps(5, 6010, 6020, maps, 1), 0);
	assert_string_equal(found(5, 1, 6016, 0x1000), "lost");
	/* The next one is good. */
	assert_int_equal(do_maps(5, 6030, 6040, maps, 1), 0);
	assert_string_equal(found(5, 1, 6041, 0x1000), "ls");
}

static void test_walk_in_the_middle_of_an_exec(void **state)
{
	struct pm_map_event maps[] = { map_of(0x1000, 0x2000, "/bin/ls", 0) };

	a_shell();
	do_comm(5, 7000);
	assert_int_equal(do_maps(5, 7001, 7002, maps, 1), 0);
	assert_string_equal(found(5, 0, 6999, 0x1000), "sh");
	do_mmap(5, 7003, 0x3000, 0x4000, "/bin/ls", 2);
	do_exec(5, 1, 7004, "/bin/ls");
	assert_string_equal(found(5, 1, 7005, 0x3000), "ls");
	assert_int_equal(stats().maps_before_scan, 0);
}

static void test_walk_of_nobody(void **state)
{
	struct pm_map_event maps[] = { map_of(0x1000, 0x2000, "/bin/ls", 0) };

	assert_int_equal(do_maps(77, 100000, 100001, maps, 1), -ESRCH);
	a_shell();
	/* Read while it was ending: the known mappings stay. */
	assert_int_equal(do_maps(5, 8000, 8001, NULL, 0), 0);
	assert_string_equal(found(5, 0, 8002, 0x1000), "sh");
}

static void test_lost_records_cast_doubt(void **state)
{
	struct pm_map_event maps[] = {
		map_of(0x1000, 0x2000, "/bin/sh", 0),
		map_of(0x3000, 0x4000, "/lib/dl.so", 0),
	};

	a_shell();
	do_lost(7000);
	assert_int_equal(stats().maps_lost, 1);
	/* Something else may have been mapped in its place. */
	assert_string_equal(found(5, 0, 7001, 0x1000), "lost");
	assert_int_equal(nwants, 1);
	assert_string_equal(found(5, 0, 7001, 0x3000), "lost");
	assert_int_equal(nwants, 1);
	do_fork(5, 0, 7, 7002); /* inherits the uncertainty */
	assert_string_equal(found(7, 0, 7003, 0x3000), "lost");
	do_whole_exec(7, 1, 7010, "/bin/ls", 2); /* which ends with an exec */
	assert_string_equal(found(7, 1, 7011, 0x3000), "none");
	assert_int_equal(do_maps(5, 7020, 7030, maps, 2), 0);
	assert_string_equal(found(5, 0, 7031, 0x3000), "dl.so");
	assert_string_equal(found(5, 0, 7031, 0x4000), "none");
	assert_int_equal(stats().rereads, 1);
}

static void test_lost_during_exec_casts_doubt(void **state)
{
	a_shell();
	do_comm(5, 7000);
	do_mmap(5, 7001, 0x1000, 0x2000, "/bin/ls", 2);
	do_lost(7002);
	do_exec(5, 1, 7003, "/bin/ls");
	assert_string_equal(found(5, 1, 7004, 0x1000), "lost");
	assert_string_equal(found(5, 1, 7004, 0x3000), "lost");
}

static void test_maps_are_wanted_once_a_second(void **state)
{
	a_shell();
	assert_string_equal(found(5, 0, 7000, 0x3000), "none");
	assert_string_equal(found(5, 0, 7001, 0x3000), "none");
	assert_string_equal(found(5, 0, 6999 + SEC, 0x3000), "none");
	assert_int_equal(nwants, 1);
	assert_string_equal(found(5, 0, 7000 + SEC, 0x3000), "none");
	assert_int_equal(nwants, 2);
	/* The maps of an ended process are not read. */
	do_exit(5, 0, 7001 + SEC);
	assert_string_equal(found(5, 0, 7002 + 3 * SEC, 0x3000), "none");
	assert_int_equal(nwants, 2);
}

static void test_kernel_thread_has_no_maps(void **state)
{
	struct quark_process qp = qp_of(2, 0);

	qp.x_flags = QUARK_X_KTHREAD;
	assert_int_equal(pm_scan_process(pm, &qp, 6000), 0);
	assert_true(info_at(2, 0, 6001).kthread);
	assert_string_equal(found(2, 0, 6001, 0x1000), "none");
	assert_int_equal(nwants, 0);
}

static void test_unknown_process_is_made(void **state)
{
	assert_string_equal(found(9, 3, 10000, 0x1000), "lost");
	assert_int_equal(nwants, 1);
	assert_int_equal(stats().provisional, 1);
	do_mmap(8, 10000, 0x1000, 0x2000, "/x", 1); /* of no process */
	assert_int_equal(stats().unknown, 1);
	do_exit(10, 0, 11000);
	assert_int_equal(stats().unknown, 2);
	assert_int_equal(stats().processes, 2);
}

static void test_gap_is_counted(void **state)
{
	assert_int_equal(feed(QUARK_EV_GAP, NULL, 100, 0), 0);
	assert_int_equal(stats().gaps, 1);
}

static void test_forget_frees_what_is_over(void **state)
{
	a_shell();
	do_fork(5, 0, 7, 7001);
	do_whole_exec(7, 1, 7010, "/bin/true", 2);
	assert_int_equal(stats().images, 3);
	do_exit(7, 1, 7020);
	do_reap(7, 1, 7030);
	pm_forget(pm, 7010);
	assert_int_equal(stats().images, 3);
	pm_forget(pm, 7011); /* what the exec replaced */
	assert_int_equal(stats().images, 2);
	pm_forget(pm, 7030);
	assert_int_equal(stats().processes, 2);
	assert_string_equal(found(7, 1, 7025, 0x1000), "true");
	pm_forget(pm, 7031);
	assert_int_equal(stats().processes, 1);
	assert_int_equal(stats().images, 1);
	assert_int_equal(stats().mappings, 2);
}

static void test_zombie_is_forgotten_after_the_grace_time(void **state)
{
	a_shell();
	do_exit(5, 0, 7000);
	pm_forget(pm, 7000 + 10 * SEC);
	assert_int_equal(stats().processes, 1);
	pm_forget(pm, 7001 + 10 * SEC);
	assert_int_equal(stats().processes, 0);
	assert_int_equal(stats().mappings, 0);
}

/* A program that execs in a loop must not grow. */
static void test_exec_loop_stays_small(void **state)
{
	uint64_t id, t = 10000;

	a_shell();
	for (id = 1; id <= 1000; id++, t += 10) {
		do_whole_exec(5, id, t, "/bin/sh", 2);
		pm_forget(pm, t);
	}
	assert_true(stats().images <= 2);
	assert_true(stats().mappings <= 4);
	assert_true(stats().exes <= 8);
}

static void test_select_marks_descendants(void **state)
{
	a_shell();
	do_fork(5, 0, 7, 7001);
	do_fork(7, 0, 8, 8001);
	do_fork(5, 0, 9, 9001);
	do_walk(12, 8, "/bin/w", 12001); /* known by its ppid */
	assert_int_equal(pm_select(pm, 7), 0);
	assert_false(info_at(5, 0, 9002).selected);
	assert_false(info_at(9, 0, 9002).selected);
	assert_true(info_at(7, 0, 9002).selected);
	assert_true(info_at(8, 0, 9002).selected);
	assert_true(info_at(12, 0, 12002).selected);
	do_fork(8, 0, 13, 13001);
	do_whole_exec(13, 1, 13010, "/bin/ls", 2);
	assert_true(info_at(13, 1, 13011).selected);
	assert_int_equal(pm_select(pm, 99), -ESRCH);
	do_exit(9, 0, 13012);
	assert_int_equal(pm_select(pm, 9), -ESRCH);
}

static void test_select_reaches_grandchildren_of_the_dead(void **state)
{
	a_shell();
	do_fork(5, 0, 7, 7001);
	do_fork(7, 0, 8, 8001);
	do_exit(7, 0, 8002);
	do_reap(7, 0, 8003);
	pm_forget(pm, 8004);
	assert_int_equal(pm_select(pm, 5), 0);
	assert_true(info_at(8, 0, 8005).selected);
}

static void test_iteration_gives_the_living(void **state)
{
	struct pm_iter it;
	struct pm_image_info info;
	struct pm_image *img;
	uint32_t pid;
	uint64_t sum = 0, n = 0;

	a_shell();
	for (pid = 100; pid < 2100; pid++)
		do_fork(5, 0, pid, born(pid));
	do_exit(100, 0, 9000000);
	do_whole_exec(101, 1, 9000010, "/bin/ls", 2);
	pm_iter_init(&it, pm, false);
	while ((img = pm_iter_next(&it))) {
		pm_image_info(img, &info);
		sum += info.key.tgid;
		n++;
		if (info.key.tgid == 101)
			assert_int_equal(info.key.exec_id, 1);
	}
	assert_int_equal(n, 2000);
	assert_int_equal(sum, 5 + (101 + 2099) * 1999 / 2);
}

/* fork + exec + exit + reap, as a build does: nothing stays behind. */
static void test_churn_leaves_nothing(void **state)
{
	struct pm_stats before, after;
	uint32_t pid;
	uint64_t t;

	fake_file("/bin/true", 2, 2, 2);
	fake_file("/lib/ld.so", 9, 9, 9);
	a_shell();
	before = stats();
	for (pid = 100; pid < 5100; pid++) {
		t = born(pid);
		do_fork_flags(5, 0, pid, t + 1, pid % 2 ? VFORK : 17);
		do_whole_exec(pid, 1, t + 10, "/bin/true", 2);
		do_exit(pid, 1, t + 20);
		do_reap(pid, 1, t + 30);
		pm_forget(pm, t);
		fake_run();
	}
	pm_forget(pm, UINT64_MAX);
	after = stats();
	assert_int_equal(after.processes, before.processes);
	assert_int_equal(after.images, before.images);
	assert_int_equal(after.mappings, before.mappings);
	assert_int_equal(after.exes, before.exes + 2);
	assert_int_equal(after.unknown, 0);
	assert_int_equal(after.provisional, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_walk_makes_processes),
		T(test_fork_copies_on_write),
		T(test_vfork_child_borrows_until_exec),
		T(test_thread_is_no_process),
		T(test_exec_is_a_cut),
		T(test_sample_between_comm_and_exec),
		T(test_sample_before_late_comm),
		T(test_sample_of_a_stranger_before_late_comm),
		T(test_exec_event_before_late_comm),
		T(test_exec_of_another_thread),
		T(test_two_comms_without_exec),
		T(test_set_of_a_skipped_generation_is_lost),
		T(test_failed_exec_dies),
		T(test_ids_change),
		T(test_cmdline_keeps_its_nuls),
		T(test_reused_pid_is_another_process),
		T(test_reused_pid_buries_the_old),
		T(test_late_fork_finds_its_process),
		T(test_late_fork_behind_the_end),
		T(test_late_exec_is_an_older_image),
		T(test_late_mapping_goes_to_its_image),
		T(test_walk_contains_what_came_before),
		T(test_walk_that_an_exec_ran_into),
		T(test_walk_in_the_middle_of_an_exec),
		T(test_walk_of_nobody),
		T(test_lost_records_cast_doubt),
		T(test_lost_during_exec_casts_doubt),
		T(test_maps_are_wanted_once_a_second),
		T(test_kernel_thread_has_no_maps),
		T(test_unknown_process_is_made),
		T(test_gap_is_counted),
		T(test_forget_frees_what_is_over),
		T(test_zombie_is_forgotten_after_the_grace_time),
		T(test_exec_loop_stays_small),
		T(test_select_marks_descendants),
		T(test_select_reaches_grandchildren_of_the_dead),
		T(test_iteration_gives_the_living),
		T(test_churn_leaves_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
