// SPDX-License-Identifier: Apache-2.0
/*
 * Dropped records: from then on only mappings that are certain are reported,
 * until a re-read; what was reported before stays; and a rescan corrects
 * what the lifecycle stream dropped. By replay.
 */
#include "tests/unit/processmanager/test_pm_fake.h"

#define MS CLOCK_NSEC_PER_MSEC
#define VFORK 0x4100ULL /* CLONE_VFORK | CLONE_VM */

/* Process 5, a shell since before profd, with its mappings. */
static int a_shell(void **state)
{
	struct pm_map_event maps[] = {
		map_of(0x1000, 0x2000, "/bin/sh", 0),
		map_of(0x7000, 0x8000, "/lib/libc.so", 0),
		map_of(0xf000, 0xf800, "[vdso]", 0),
	};

	if (setup(state))
		return -1;
	do_walk(5, 1, "/bin/sh", 6000);
	assert_int_equal(do_maps(5, 6010, 6020, maps, 3), 0);
	return 0;
}

/* Between the two it is unknown which records exist. */
static void do_lost_between(uint64_t from, uint64_t to)
{
	struct pm_map_event ev = { .kind = PM_MAP_LOST,
				   .time = from,
				   .end = to };

	assert_int_equal(pm_map_event(pm, &ev), 0);
}

static int reread_for(uint32_t pid, uint64_t begin, uint64_t time)
{
	struct pm_map_event maps[] = {
		map_of(0x1000, 0x2000, "/bin/new", 0),
		map_of(0xf000, 0xf800, "[vdso]", 0),
	};

	return do_maps(pid, begin, begin + time, maps, 2);
}

static int reread(uint32_t pid, uint64_t begin)
{
	return reread_for(pid, begin, 1);
}

static bool stale_set(uint32_t pid, uint64_t id)
{
	return pm_image_stale(pm, image_at(pid, id, 0));
}

static void a_stale_set_answers_nothing(void **state)
{
	assert_false(stale_set(5, 0));
	do_lost_between(7000, 7500);
	assert_true(stale_set(5, 0));
	assert_string_equal(found(5, 0, 7001, 0x1000), "lost");
	assert_string_equal(found(5, 0, 7600, 0x7000), "lost");
	assert_string_equal(found(5, 0, 7600, 0x3000), "lost");
	assert_int_equal(nwants, 1);
	assert_int_equal(wants[0].tgid, 5);
	assert_int_equal(stats().maps_lost, 1);
}

/* Later mappings replace known ones, and prove nothing about others. */
static void a_later_mapping_does_not_lift_the_doubt(void **state)
{
	do_lost_between(7000, 7500);
	do_mmap(5, 7600, 0x3000, 0x4000, "/lib/dl.so", 2);
	assert_string_equal(found(5, 0, 7601, 0x1000), "lost");
	assert_string_equal(found(5, 0, 7601, 0x3000), "lost");
}

/* The kernel maps it at the exec, and it is not moved. */
static void the_vdso_is_not_in_doubt(void **state)
{
	do_lost_between(7000, 7500);
	assert_string_equal(found(5, 0, 7001, 0xf100), "[vdso]");
}

static void a_reading_behind_the_loss_lifts_it(void **state)
{
	do_lost_between(7000, 7500);
	assert_int_equal(reread(5, 7500), 0);
	assert_false(stale_set(5, 0));
	assert_string_equal(found(5, 0, 7501, 0x1000), "new");
	assert_string_equal(found(5, 0, 7501, 0x7000), "none");
	assert_int_equal(stats().rereads, 1);
}

static void a_reading_within_the_loss_does_not(void **state)
{
	do_lost_between(7000, 7500);
	assert_int_equal(reread(5, 7499), 0);
	assert_true(stale_set(5, 0));
	assert_string_equal(found(5, 0, 7510, 0x1000), "lost");
	assert_int_equal(stats().rereads, 0);
	assert_int_equal(nwants, 1); /* another one, at once */
}

/*
 * A sample that waited is older than the re-read; and what that found may have been
 * mapped at 8003.
 */
static void a_reading_tells_nothing_of_the_time_before(void **state)
{
	do_lost_between(7000, 7500);
	assert_int_equal(reread_for(5, 8000, 5), 0);
	assert_string_equal(found(5, 0, 7999, 0x1000), "lost");
	assert_string_equal(found(5, 0, 8002, 0x1000), "lost");
	do_mmap(5, 8003, 0x1000, 0x2000, "/bin/new", 1);
	assert_string_equal(found(5, 0, 8005, 0x1000), "new");
}

/* Nothing was lost, but the scan has read what comes after the sample. */
static void a_reading_that_differs_is_of_its_end(void **state)
{
	assert_int_equal(reread_for(5, 8000, 5), 0);
	assert_string_equal(found(5, 0, 8002, 0x1000), "lost");
	assert_string_equal(found(5, 0, 8005, 0x1000), "new");
}

/* It only has more, and lacks what was unmapped. */
static void a_reading_that_agrees_is_of_its_begin(void **state)
{
	struct pm_map_event maps[] = {
		map_of(0x1000, 0x2000, "/bin/sh", 0),
		map_of(0x3000, 0x4000, "/lib/dl.so", 0),
		map_of(0xf000, 0xf800, "[vdso]", 0),
	};

	assert_int_equal(do_maps(5, 8000, 8005, maps, 3), 0);
	assert_string_equal(found(5, 0, 8002, 0x1000), "sh");
	assert_string_equal(found(5, 0, 8002, 0x3000), "dl.so");
	assert_string_equal(found(5, 0, 8002, 0x7000), "none");
}

static const char *seen(struct pm_view *view, uint64_t addr)
{
	struct pm_mapping m;
	struct pm_exe_info info;

	switch (pm_view_find(view, addr, &m)) {
	case PM_FOUND:
		pm_exe_info(m.exe, &info);
		return info.base;
	case PM_LOST:
		return "lost";
	default:
		return "none";
	}
}

static void a_view_keeps_what_was_certain_then(void **state)
{
	struct pm_view *before, *within, *late;

	before = pm_view_new(pm, image_at(5, 0, 6900), 6900);
	do_lost_between(7000, 7500);
	within = pm_view_new(pm, image_at(5, 0, 7100), 7100);
	assert_int_equal(reread(5, 7600), 0);
	late = pm_view_new(pm, image_at(5, 0, 7200), 7200);
	assert_string_equal(seen(before, 0x1000), "sh");
	assert_string_equal(seen(before, 0x3000), "none");
	assert_string_equal(seen(within, 0x1000), "lost");
	assert_string_equal(seen(late, 0x1000), "lost");
	assert_string_equal(seen(within, 0xf000), "[vdso]");
	pm_view_free(before);
	pm_view_free(within);
	pm_view_free(late);
}

static void an_exec_behind_the_loss_is_not_touched(void **state)
{
	do_lost_between(7000, 7500);
	do_whole_exec(5, 1, 7510, "/bin/ls", 2);
	assert_string_equal(found(5, 1, 7511, 0x1000), "ls");
	assert_string_equal(found(5, 1, 7511, 0x3000), "none");
	assert_false(stale_set(5, 1));
}

/* Reported at its begin: mappings within the gap are stale, though recorded. */
static void an_exec_within_the_loss_is_in_doubt(void **state)
{
	do_lost_between(7000, 7500);
	do_whole_exec(5, 1, 7400, "/bin/ls", 2);
	/* It is re-read before its first sample. */
	assert_int_equal(nwants, 1);
	assert_int_equal(wants[0].exec_id, 1);
	assert_string_equal(found(5, 1, 7511, 0x1000), "lost");
	assert_int_equal(reread(5, 7600), 0);
	assert_string_equal(found(5, 1, 7601, 0x1000), "new");
}

/* The COMM record came late: the set begins with it, before the gap. */
static void an_exec_whose_comm_record_came_late_too(void **state)
{
	do_lost_between(7001, 7002);
	do_exec(5, 1, 7003, "/bin/ls");
	do_comm(5, 7000);
	do_mmap(5, 7002, 0x1000, 0x2000, "/bin/ls", 2);
	assert_string_equal(found(5, 1, 7004, 0x1000), "lost");
	do_exec(5, 2, 7013, "/bin/du");
	do_comm(5, 7010); /* this one is after it */
	do_mmap(5, 7011, 0x1000, 0x2000, "/bin/du", 3);
	assert_string_equal(found(5, 2, 7014, 0x1000), "du");
}

static void an_exec_under_way_is_in_doubt(void **state)
{
	do_comm(5, 7000);
	do_mmap(5, 7001, 0x1000, 0x2000, "/bin/ls", 2);
	do_lost_between(7002, 7003);
	/* Read while it was under way: of one image, or of the other. */
	assert_int_equal(reread(5, 7004), 0);
	do_exec(5, 1, 7010, "/bin/ls");
	assert_string_equal(found(5, 1, 7011, 0x1000), "lost");
	assert_string_equal(found(5, 0, 7011, 0x1000), "lost");
	assert_int_equal(reread(5, 7020), 0);
	assert_string_equal(found(5, 1, 7021, 0x1000), "new");
}

static void a_child_shares_the_doubt_and_is_read_by_itself(void **state)
{
	do_lost_between(7000, 7001);
	do_fork(5, 0, 7, 7010);
	assert_true(stale_set(7, 0));
	assert_string_equal(found(7, 0, 7011, 0x1000), "lost");
	assert_int_equal(nwants, 1);
	assert_int_equal(wants[0].tgid, 7);
	assert_int_equal(reread(5, 7020), 0);
	assert_string_equal(found(5, 0, 7021, 0x1000), "new");
	assert_string_equal(found(7, 0, 7021, 0x1000), "lost");
	do_fork(5, 0, 8, 8010); /* of what is known again */
	assert_string_equal(found(8, 0, 8011, 0x1000), "new");
	assert_int_equal(reread(7, 8020), 0);
	assert_string_equal(found(7, 0, 8021, 0x1000), "new");
}

/* The exec's mappings came, but not its COMM record: they are not the old's. */
static void an_exec_whose_comm_record_was_lost(void **state)
{
	do_lost_between(7000, 7005);
	do_mmap(5, 7006, 0x1000, 0x2000, "/bin/ls", 2);
	do_mmap(5, 7007, 0x3000, 0x4000, "/lib/ld.so", 3);
	assert_string_equal(found(5, 0, 7008, 0x3000), "lost");
	do_exec(5, 1, 7010, "/bin/ls");
	assert_string_equal(found(5, 1, 7011, 0x3000), "lost");
	assert_int_equal(reread(5, 7020), 0);
	assert_string_equal(found(5, 1, 7021, 0x1000), "new");
	assert_string_equal(found(5, 1, 7021, 0x7000), "none");
}

/*
 * As far as is known, vfork's child execs in its parent's memory: the parent's
 * set is read from the parent, and nothing of the child's goes in.
 */
static void a_borrowed_set_gets_nothing_of_the_borrowers_exec(void **state)
{
	struct pm_map_event childs[] = { map_of(0x1000, 0x2000, "/bin/ls", 0) };

	do_fork_flags(5, 0, 7, 7001, VFORK);
	do_lost_between(7010, 7020); /* the COMM record among them */
	assert_false(stale_set(7, 0));
	assert_true(stale_set(5, 0));
	assert_string_equal(found(7, 0, 7021, 0x1000), "lost");
	assert_int_equal(nwants, 1);
	assert_int_equal(wants[0].tgid, 5);
	assert_int_equal(do_maps(7, 7030, 7040, childs, 1), 0);
	assert_string_equal(found(5, 0, 7041, 0x1000), "lost");
	assert_int_equal(reread(5, 7050), 0);
	assert_string_equal(found(5, 0, 7051, 0x1000), "new");
	do_mmap(7, 7060, 0x1000, 0x2000, "/bin/ls", 2);
	assert_string_equal(found(5, 0, 7061, 0x1000), "lost");
	do_exec(7, 1, 7070, "/bin/ls");
	assert_string_equal(found(7, 1, 7071, 0x1000), "lost");
	assert_int_equal(reread(5, 7080), 0);
	assert_string_equal(found(5, 0, 7081, 0x1000), "new");
	assert_int_equal(do_maps(7, 7080, 7090, childs, 1), 0);
	assert_string_equal(found(7, 1, 7091, 0x1000), "ls");
}

/* Long after a gap, a mapping in shared memory is one of all sharers. */
static void a_borrower_maps_for_the_lender(void **state)
{
	uint64_t t = 8000 + 2 * CLOCK_NSEC_PER_SEC;

	do_fork_flags(5, 0, 7, 7001, VFORK);
	do_lost_between(7010, 7020);
	assert_int_equal(reread(5, 7050), 0);
	do_mmap(7, t, 0x3000, 0x4000, "/lib/dl.so", 2);
	assert_string_equal(found(5, 0, t + 1, 0x3000), "dl.so");
	assert_string_equal(found(5, 0, t + 1, 0x1000), "new");
}

/* Its lender has ended, and no other process can be read. */
static void an_orphan_is_read_itself(void **state)
{
	do_fork_flags(5, 0, 7, 7001, VFORK);
	do_exit(5, 0, 7005);
	do_lost_between(7010, 7020);
	assert_true(stale_set(7, 0));
	assert_int_equal(reread(7, 7030), 0);
	assert_string_equal(found(7, 0, 7031, 0x1000), "new");
}

/* A slow re-read: mappings made since are kept. */
static void a_reading_that_comes_late_is_dropped(void **state)
{
	do_mmap(5, 7100, 0x3000, 0x4000, "/lib/dl.so", 2);
	assert_int_equal(reread(5, 7099), 0);
	assert_string_equal(found(5, 0, 7101, 0x3000), "dl.so");
	assert_string_equal(found(5, 0, 7101, 0x1000), "sh");
	assert_int_equal(stats().rereads, 0);
}

/* A re-read may fail: another one soon, but not at each sample. */
static void a_set_in_doubt_is_asked_for_five_times_a_second(void **state)
{
	uint64_t t;

	/* an unmapped address waits for a second, a stale set does not */
	assert_string_equal(found(5, 0, 7000, 0x3000), "none");
	assert_int_equal(nwants, 1);
	do_lost_between(7000 + 300 * MS, 7001 + 300 * MS);
	for (t = 0; t < 1000; t += 10)
		found(5, 0, 7002 + (300 + t) * MS, 0x1000);
	assert_int_equal(nwants, 1 + 5);
}

static void several_rings_gaps_are_one_span(void **state)
{
	do_lost_between(10 * MS, 30 * MS);
	do_lost_between(20 * MS, 40 * MS);
	do_lost_between(25 * MS, 35 * MS);
	do_lost_between(90 * MS, 92 * MS);
	assert_int_equal(stats().maps_lost, 4);
	assert_int_equal(stats().maps_lost_ms, 32);
	assert_int_equal(reread(5, 91 * MS), 0);
	assert_true(stale_set(5, 0));
	assert_int_equal(reread(5, 92 * MS), 0);
	assert_false(stale_set(5, 0));
}

/* A process that cannot be read any more is not re-read. */
static void the_dead_and_the_kernel_are_in_no_doubt(void **state)
{
	struct quark_process qp = qp_of(2, 0);

	qp.x_flags = QUARK_X_KTHREAD;
	assert_int_equal(pm_scan_process(pm, &qp, 6000), 0);
	do_lost_between(7000, 7001);
	assert_false(stale_set(2, 0));
	assert_string_equal(found(2, 0, 7002, 0x1000), "none");
	do_exit(5, 0, 7005);
	assert_false(stale_set(5, 0));
}

static void lifecycle_gaps_have_a_span_too(void **state)
{
	struct quark_event ev = { .events = QUARK_EV_GAP,
				  .boottime = 10 * MS,
				  .gap_from = 10 * MS,
				  .gap_to = 30 * MS };

	assert_int_equal(pm_event(pm, &ev), 0);
	ev.gap_from = 20 * MS;
	ev.gap_to = 35 * MS;
	assert_int_equal(pm_event(pm, &ev), 0);
	assert_int_equal(stats().gaps, 2);
	assert_int_equal(stats().gaps_ms, 25);
}

/* --- dropped lifecycle events --------------------------------------------- */

static void do_later_walk(const struct quark_process *qp, size_t n,
			  uint64_t time)
{
	size_t i;

	pm_rescan_begin(pm, time);
	for (i = 0; i < n; i++)
		assert_int_equal(pm_scan_process(pm, &qp[i], time), 0);
	pm_rescan_end(pm);
}

static struct quark_process runs(uint32_t pid, uint64_t id, const char *exe)
{
	struct quark_process qp = qp_of(pid, id);

	qp.exe = (char *)exe;
	qp.proc_ppid = 5;
	qp.parent_key.pid = 5;
	qp.parent_key.start_boottime = born(5);
	snprintf(qp.comm, sizeof(qp.comm), "%.15s", strrchr(exe, '/') + 1);
	return qp;
}

/* The mappings of an exec came, its event did not: they are its image's. */
static void an_exec_event_that_was_lost(void **state)
{
	struct quark_process now[] = { runs(5, 1, "/bin/ls") };

	do_comm(5, 7000);
	do_mmap(5, 7001, 0x1000, 0x2000, "/bin/ls", 2);
	do_later_walk(now, 1, 8000);
	assert_int_equal(stats().found, 1);
	assert_string_equal(info_at(5, 1, 8001).exe, "/bin/ls");
	assert_string_equal(info_at(5, 1, 8001).comm, "ls");
	assert_false(info_at(5, 1, 8001).provisional);
	assert_non_null(info_at(5, 1, 8001).main_exe);
	assert_string_equal(found(5, 1, 8001, 0x1000), "ls");
	assert_string_equal(found(5, 0, 6999, 0x1000), "sh");
	assert_int_equal(stats().maps_unbound, 0);
	do_later_walk(now, 1, 9000);
	assert_int_equal(stats().found, 1);
}

/* An image known by samples only becomes an ordinary one. */
static void a_sampled_image_without_event_is_adopted(void **state)
{
	struct quark_process now[] = { runs(5, 1, "/bin/ls") };

	do_comm(5, 7000);
	do_mmap(5, 7001, 0x1000, 0x2000, "/bin/ls", 2);
	assert_string_equal(found(5, 1, 7002, 0x1000), "ls");
	do_mmap(5, 7003, 0x3000, 0x4000, "/lib/dl.so", 3);
	do_later_walk(now, 1, 8000);
	assert_int_equal(stats().found, 1);
	assert_false(info_at(5, 1, 8001).provisional);
	assert_string_equal(info_at(5, 1, 8001).exe, "/bin/ls");
	assert_int_equal(info_at(5, 1, 8001).begin, 7002);
	assert_string_equal(found(5, 1, 8001, 0x1000), "ls");
	assert_string_equal(found(5, 1, 8001, 0x3000), "dl.so");
	pm_forget(pm, 8000);
	assert_int_equal(stats().images, 1);
}

static void a_sampled_process_without_fork_is_adopted(void **state)
{
	struct quark_process now[] = { qp_of(5, 0), runs(7, 0, "/bin/sh") };

	assert_int_equal(pm_select(pm, 5), 0);
	assert_string_equal(found(7, 0, 7100, 0x1000), "lost");
	do_later_walk(now, 2, 8000);
	assert_int_equal(stats().found, 1);
	assert_false(info_at(7, 0, 8001).provisional);
	assert_string_equal(info_at(7, 0, 8001).exe, "/bin/sh");
	assert_int_equal(info_at(7, 0, 8001).ppid, 5);
	assert_true(info_at(7, 0, 8001).selected);
	assert_int_equal(reread(7, 8010), 0);
	assert_string_equal(found(7, 0, 8011, 0x1000), "new");
}

/* Two execs, of which one event and one COMM record are missing. */
static void a_pending_set_of_another_exec_stands_in_no_ones_way(void **state)
{
	struct quark_process now[] = { runs(5, 2, "/bin/du") };

	do_comm(5, 7000); /* of the first; its event is dropped */
	do_mmap(5, 7001, 0x1000, 0x2000, "/bin/ls", 2);
	do_lost_between(7100, 7200); /* the second's COMM record among them */
	do_later_walk(now, 1, 8000);
	assert_string_equal(found(5, 2, 8001, 0x1000), "lost");
	assert_int_equal(stats().maps_unbound, 1);
	assert_int_equal(reread(5, 8010), 0);
	assert_string_equal(found(5, 2, 8011, 0x1000), "new");
}

/* The same, detected by a sample. */
static void a_sample_shows_that_a_pending_set_is_not_its_own(void **state)
{
	do_comm(5, 7000);
	do_mmap(5, 7001, 0x1000, 0x2000, "/bin/ls", 2);
	do_lost_between(7100, 7200);
	assert_string_equal(found(5, 2, 7300, 0x1000), "lost");
	assert_int_equal(reread(5, 7310), 0);
	assert_string_equal(found(5, 2, 7320, 0x1000), "new");
}

/* The scan is from before the next exec, which is under way. */
static void a_walk_leaves_the_next_execs_set_alone(void **state)
{
	struct quark_process now[] = { runs(5, 1, "/bin/ls") };

	do_comm(5, 7000); /* its event is dropped */
	do_comm(5, 7100);
	do_mmap(5, 7101, 0x1000, 0x2000, "/bin/du", 3);
	do_later_walk(now, 1, 7102);
	assert_string_equal(info_at(5, 1, 7103).exe, "/bin/ls");
	do_exec(5, 2, 7105, "/bin/du");
	assert_string_equal(found(5, 2, 7106, 0x1000), "du");
}

/* A set is that of the exec whose COMM record began it, not of an earlier. */
static void an_event_older_than_the_set_does_not_get_it(void **state)
{
	do_comm(5, 7100); /* of the second; the first's is dropped */
	do_mmap(5, 7101, 0x1000, 0x2000, "/bin/du", 3);
	do_exec(5, 1, 7050, "/bin/ls"); /* the first's, late */
	assert_string_equal(found(5, 1, 7060, 0x1000), "lost");
}

/* Process 6 execs after the streams were opened and before the scan. */
static void walked_behind_an_exec(void)
{
	pm_begin(pm, 6050);
	do_walk(6, 1, "/bin/cc1", 6000);
	do_comm(6, 6040);
	do_mmap(6, 6041, 0x1000, 0x2000, "/bin/cc1", 2);
}

/* libquark reports no event of that exec: the scan had its image already. */
static void a_walk_has_the_image_of_an_exec_without_event(void **state)
{
	walked_behind_an_exec();
	assert_string_equal(found(6, 0, 6060, 0x1000), "cc1");
	assert_int_equal(reread(6, 6070), 0);
	assert_string_equal(found(6, 0, 6080, 0x1000), "new");
	do_whole_exec(6, 1, 7000, "/bin/as", 3);
	assert_string_equal(found(6, 1, 7001, 0x1000), "as");
	assert_string_equal(found(6, 1, 7001, 0x3000), "none");
}

static void a_walk_had_an_image_older_than_the_exec(void **state)
{
	walked_behind_an_exec();
	do_exec(6, 1, 6044, "/bin/cc1");
	assert_string_equal(found(6, 1, 6060, 0x1000), "cc1");
	do_whole_exec(6, 2, 7000, "/bin/as", 3);
	assert_string_equal(found(6, 2, 7001, 0x1000), "as");
}

/* Also after two execs before the scan, which found the second's image. */
static void a_walk_has_the_image_of_the_last_of_two_execs(void **state)
{
	walked_behind_an_exec();
	do_comm(6, 6045);
	do_mmap(6, 6046, 0x1000, 0x2000, "/bin/ld", 4);
	assert_string_equal(found(6, 0, 6060, 0x1000), "ld");
	do_whole_exec(6, 1, 7000, "/bin/as", 3);
	assert_string_equal(found(6, 1, 7001, 0x1000), "as");
}

/* Within a second it may be one that is under way. */
static void a_pending_set_without_event_is_given_up(void **state)
{
	do_comm(5, 7000);
	do_lost_between(7100, 7200);
	assert_int_equal(reread(5, 7300), 0);
	assert_string_equal(found(5, 0, 7310, 0x1000), "lost");
	assert_int_equal(reread(5, 7001 + 1000 * MS), 0);
	assert_string_equal(found(5, 0, 8000 + 1000 * MS, 0x1000), "new");
	assert_int_equal(stats().maps_unbound, 1);
}

static void do_limited(uint32_t pid, uint64_t from, uint64_t to)
{
	struct pm_map_event ev = {
		.kind = PM_MAP_LOST, .tgid = pid, .time = from, .end = to
	};

	assert_int_equal(pm_map_event(pm, &ev), 0);
}

/* One process had too many: no other set is stale. */
static void what_one_process_has_too_many_concerns_it_alone(void **state)
{
	do_fork(5, 0, 6, 6500);
	do_limited(5, 7000, 7500);
	assert_string_equal(found(5, 0, 7001, 0x1000), "lost");
	assert_string_equal(found(5, 0, 7001, 0xf100), "[vdso]");
	assert_string_equal(found(6, 0, 7001, 0x1000), "sh");
	assert_true(stale_set(5, 0));
	assert_false(stale_set(6, 0));
	assert_int_equal(stats().maps_limited, 1);
	assert_int_equal(stats().maps_lost, 0);
	assert_int_equal(reread(5, 7499), 0);
	assert_true(stale_set(5, 0));
	assert_int_equal(reread(5, 7501), 0);
	assert_string_equal(found(5, 0, 7502, 0x1000), "new");
}

/* If others made too many, the process is re-read as any other. */
static void who_floods_by_its_own_doing(void **state)
{
	struct pm_map_event ev = {
		.kind = PM_MAP_LOST, .tgid = 5, .time = 7000, .end = 7500
	};
	struct abi_key key = { born(5), 0, 5, 0 };
	struct pm_image *img;

	do_limited(5, 7000, 7500);
	img = pm_image_get(pm, &key, 7501);
	assert_non_null(img);
	assert_false(pm_image_floods(pm, img));
	ev.flood = true;
	assert_int_equal(pm_map_event(pm, &ev), 0);
	assert_true(pm_image_floods(pm, img));
}

/* The mappings before belong to the image before. */
static void an_exec_ends_what_a_process_had_too_many(void **state)
{
	do_limited(5, 7000, 7500);
	do_whole_exec(5, 1, 7600, "/bin/ls", 2);
	assert_string_equal(found(5, 1, 7601, 0x1000), "ls");
	do_limited(5, 7400, 7550); /* read late, of another CPU */
	assert_string_equal(found(5, 1, 7602, 0x1000), "ls");
}

static void a_child_of_the_flooder_has_its_gap(void **state)
{
	do_limited(5, 7000, 7500);
	do_fork(5, 0, 8, 8100);
	assert_string_equal(found(8, 0, 8101, 0x1000), "lost");
}

#define T(name) cmocka_unit_test_setup_teardown(name, a_shell, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_stale_set_answers_nothing),
		T(a_later_mapping_does_not_lift_the_doubt),
		T(the_vdso_is_not_in_doubt),
		T(a_reading_behind_the_loss_lifts_it),
		T(a_reading_within_the_loss_does_not),
		T(a_reading_tells_nothing_of_the_time_before),
		T(a_reading_that_differs_is_of_its_end),
		T(a_reading_that_agrees_is_of_its_begin),
		T(a_view_keeps_what_was_certain_then),
		T(an_exec_behind_the_loss_is_not_touched),
		T(an_exec_within_the_loss_is_in_doubt),
		T(an_exec_whose_comm_record_came_late_too),
		T(an_exec_under_way_is_in_doubt),
		T(a_child_shares_the_doubt_and_is_read_by_itself),
		T(an_exec_whose_comm_record_was_lost),
		T(a_borrowed_set_gets_nothing_of_the_borrowers_exec),
		T(a_borrower_maps_for_the_lender),
		T(an_orphan_is_read_itself),
		T(a_reading_that_comes_late_is_dropped),
		T(a_set_in_doubt_is_asked_for_five_times_a_second),
		T(several_rings_gaps_are_one_span),
		T(the_dead_and_the_kernel_are_in_no_doubt),
		T(lifecycle_gaps_have_a_span_too),
		T(an_exec_event_that_was_lost),
		T(a_sampled_image_without_event_is_adopted),
		T(a_sampled_process_without_fork_is_adopted),
		T(a_pending_set_of_another_exec_stands_in_no_ones_way),
		T(a_sample_shows_that_a_pending_set_is_not_its_own),
		T(a_walk_leaves_the_next_execs_set_alone),
		T(an_event_older_than_the_set_does_not_get_it),
		T(a_walk_has_the_image_of_an_exec_without_event),
		T(a_walk_had_an_image_older_than_the_exec),
		T(a_walk_has_the_image_of_the_last_of_two_execs),
		T(a_pending_set_without_event_is_given_up),
		T(what_one_process_has_too_many_concerns_it_alone),
		T(an_exec_ends_what_a_process_had_too_many),
		T(a_child_of_the_flooder_has_its_gap),
		T(who_floods_by_its_own_doing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
