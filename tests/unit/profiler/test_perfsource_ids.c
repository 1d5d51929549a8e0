// SPDX-License-Identifier: Apache-2.0
/* Who a pid is, by the records of perf rings in the order of time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/perfsource_ids.h"

#define MS 1000000ULL

static struct {
	struct perfids *ids;
	struct {
		uint64_t what; /* 0: a process that was there */
		uint64_t time;
		struct quark_process qp;
		char exe[64], cwd[64];
		uint32_t group_dead;
	} told[64];
	size_t n;
	uint32_t wanted[16];
	size_t nwanted;
} t;

static void tell(uint64_t what, const struct quark_process *qp, uint64_t time)
{
	assert_true(t.n < ARRAY_SIZE(t.told));
	t.told[t.n].what = what;
	t.told[t.n].time = time;
	t.told[t.n].qp = *qp;
	snprintf(t.told[t.n].exe, 64, "%s", qp->exe ? qp->exe : "");
	snprintf(t.told[t.n].cwd, 64, "%s", qp->cwd ? qp->cwd : "");
	t.n++;
}

static void on_event(void *arg, const struct quark_event *ev)
{
	tell(ev->events, ev->process, ev->boottime);
	t.told[t.n - 1].group_dead = ev->group_dead;
}

static void on_process(void *arg, const struct quark_process *qp, uint64_t time)
{
	tell(0, qp, time);
}

static void on_want(void *arg, uint32_t pid)
{
	t.wanted[t.nwanted++] = pid;
}

static int begin_ids(void **state)
{
	struct perfids_opts o = { .event = on_event,
				  .process = on_process,
				  .want = on_want };

	memset(&t, 0, sizeof(t));
	return perfids_new(&t.ids, &o);
}

static int end_ids(void **state)
{
	perfids_free(t.ids);
	return 0;
}

static void feed(enum perfids_kind kind, uint64_t time, uint32_t pid,
		 uint32_t tid)
{
	struct perfids_record r = {
		.kind = kind, .pid = pid, .tid = tid, .time = time
	};

	assert_int_equal(perfids_feed(t.ids, &r), 0);
}

static void forked(uint64_t time, uint32_t ppid, uint32_t pid, uint32_t tid)
{
	struct perfids_record r = { .kind = PERFIDS_FORK,
				    .pid = pid,
				    .tid = tid,
				    .ppid = ppid,
				    .ptid = ppid,
				    .time = time };

	assert_int_equal(perfids_feed(t.ids, &r), 0);
}

static void named(enum perfids_kind kind, uint64_t time, uint32_t pid,
		  uint32_t tid, const char *comm)
{
	struct perfids_record r = {
		.kind = kind, .pid = pid, .tid = tid, .time = time
	};

	snprintf(r.comm, sizeof(r.comm), "%s", comm);
	assert_int_equal(perfids_feed(t.ids, &r), 0);
}

static void mapped(uint64_t time, uint32_t pid, const char *path)
{
	struct pm_map_event ev = {
		.time = time, .kind = PM_MAP_MMAP, .tgid = pid, .path = path
	};

	perfids_mapped(t.ids, &ev);
}

static void proc_says(enum perfids_kind kind, uint64_t time, uint64_t from,
		      uint64_t start, const char *cwd)
{
	struct perfsource_thread threads[] = { { 50, "main" },
					       { 51, "helper" } };
	struct perfsource_process p = {
		.pid = 50,
		.begin = from,
		.stat = { .comm = "daemon", .ppid = 1, .start = start },
		.exe = (char *)"/usr/sbin/daemon",
		.cwd = (char *)cwd,
		.threads = threads,
		.nthreads = 2,
	};
	struct perfids_record r = {
		.kind = kind, .pid = 50, .tid = 50, .time = time, .proc = &p
	};

	assert_int_equal(perfids_feed(t.ids, &r), 0);
}

static struct abi_sample sampled(uint64_t time, uint32_t pid, uint32_t tid,
				 uint32_t flags)
{
	struct abi_sample s = {
		.size = sizeof(s), .flags = flags, .time = time, .tid = tid
	};

	s.key.tgid = pid;
	assert_int_equal(perfids_sample(t.ids, &s), 0);
	return s;
}

static void a_life_from_fork_to_exit(void **state)
{
	struct abi_sample s;

	proc_says(PERFIDS_SCAN, 100 * MS, 100 * MS, 20 * MS, "/");
	forked(200 * MS, 50, 60, 60);
	assert_int_equal(t.told[1].what, QUARK_EV_FORK);
	assert_int_equal(t.told[1].qp.key.start_boottime, 200 * MS);
	assert_int_equal(t.told[1].qp.key.exec_id, 0);
	assert_int_equal(t.told[1].qp.parent_key.pid, 50);
	assert_int_equal(t.told[1].qp.parent_key.start_boottime, 20 * MS);
	assert_string_equal(t.told[1].qp.comm, "main"); /* its thread's */
	named(PERFIDS_EXEC, 201 * MS, 60, 60, "prog");
	/* Not reported before the executed file is known. */
	assert_int_equal(t.n, 2);
	s = sampled(202 * MS, 60, 60, 0);
	assert_int_equal(s.key.exec_id, 1);
	assert_true(s.flags & ABI_SAMPLE_EXEC);
	mapped(203 * MS, 60, "[stack]");
	mapped(203 * MS, 60, "//anon");
	assert_int_equal(t.n, 2);
	mapped(203 * MS, 60, "/bin/prog");
	assert_int_equal(t.told[2].what, QUARK_EV_EXEC);
	assert_int_equal(t.told[2].time, 203 * MS);
	assert_string_equal(t.told[2].exe, "/bin/prog");
	assert_string_equal(t.told[2].qp.comm, "prog");
	assert_int_equal(t.told[2].qp.key.exec_id, 1);
	s = sampled(210 * MS, 60, 60, ABI_SAMPLE_USER);
	assert_int_equal(s.key.start_boottime, 200 * MS);
	assert_int_equal(s.key.exec_id, 1);
	assert_string_equal(s.comm, "prog");
	feed(PERFIDS_EXIT, 220 * MS, 60, 60);
	assert_int_equal(t.told[3].what, QUARK_EV_EXIT);
	assert_int_equal(t.told[3].group_dead, 1);
	assert_true(t.told[3].qp.flags & QUARK_F_EXIT);
	/* Its last steps are still its own. */
	s = sampled(221 * MS, 60, 60, 0);
	assert_int_equal(s.key.start_boottime, 200 * MS);
	/* A child's count begins with its parent's. */
	forked(230 * MS, 60, 61, 61);
	assert_int_equal(t.told[4].qp.key.exec_id, 1);
}

static void an_exec_without_its_mapping_is_told_all_the_same(void **state)
{
	forked(10 * MS, 1, 60, 60);
	t.n = 0;
	named(PERFIDS_EXEC, 20 * MS, 60, 60, "prog");
	sampled(21 * MS, 60, 60, ABI_SAMPLE_USER);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.told[0].what, QUARK_EV_EXEC);
	assert_string_equal(t.told[0].exe, "");
	named(PERFIDS_EXEC, 30 * MS, 60, 60, "next");
	feed(PERFIDS_EXIT, 31 * MS, 60, 60);
	assert_int_equal(t.told[1].what, QUARK_EV_EXEC);
	assert_int_equal(t.told[1].qp.key.exec_id, 2);
	assert_int_equal(t.told[2].what, QUARK_EV_EXIT);
}

static void inside_execve_is_one_sample_at_most(void **state)
{
	struct abi_sample s;

	forked(10 * MS, 1, 60, 60);
	named(PERFIDS_EXEC, 20 * MS, 60, 60, "prog");
	mapped(21 * MS, 60, "/bin/prog");
	s = sampled(22 * MS, 60, 60, 0);
	assert_true(s.flags & ABI_SAMPLE_EXEC);
	s = sampled(23 * MS, 60, 60, 0);
	assert_false(s.flags & ABI_SAMPLE_EXEC);
	/* A tick in user code ends the exec. */
	named(PERFIDS_EXEC, 30 * MS, 60, 60, "prog");
	mapped(31 * MS, 60, "/bin/prog");
	sampled(32 * MS, 60, 60, ABI_SAMPLE_USER);
	s = sampled(33 * MS, 60, 60, 0);
	assert_false(s.flags & ABI_SAMPLE_EXEC);
	/* Or a mapping behind the one that comes last in execve. */
	named(PERFIDS_EXEC, 40 * MS, 60, 60, "prog");
	mapped(41 * MS, 60, "/bin/prog");
	mapped(42 * MS, 60, "/lib/ld.so");
	mapped(43 * MS, 60, "[vdso]");
	mapped(44 * MS, 60, "/lib/libc.so");
	s = sampled(45 * MS, 60, 60, 0);
	assert_false(s.flags & ABI_SAMPLE_EXEC);
}

static void a_process_ends_with_its_last_thread(void **state)
{
	forked(10 * MS, 1, 60, 60);
	forked(11 * MS, 60, 60, 61);
	forked(12 * MS, 60, 60, 62);
	t.n = 0;
	feed(PERFIDS_EXIT, 20 * MS, 60, 60); /* the leader first */
	feed(PERFIDS_EXIT, 21 * MS, 60, 62);
	assert_int_equal(t.n, 0);
	feed(PERFIDS_EXIT, 22 * MS, 60, 61);
	assert_int_equal(t.n, 1);
	assert_int_equal(t.told[0].what, QUARK_EV_EXIT);
	assert_int_equal(t.told[0].time, 22 * MS);
}

static void an_exec_of_another_thread_is_no_end(void **state)
{
	struct abi_sample s;

	forked(10 * MS, 1, 60, 60);
	forked(11 * MS, 60, 60, 61);
	t.n = 0;
	feed(PERFIDS_EXIT, 20 * MS, 60, 60);
	named(PERFIDS_EXEC, 21 * MS, 60, 60, "prog");
	mapped(22 * MS, 60, "/bin/prog");
	assert_int_equal(t.n, 1);
	assert_int_equal(t.told[0].what, QUARK_EV_EXEC);
	s = sampled(23 * MS, 60, 60, ABI_SAMPLE_USER);
	assert_int_equal(s.key.start_boottime, 10 * MS);
	feed(PERFIDS_EXIT, 30 * MS, 60, 60);
	assert_int_equal(t.told[1].what, QUARK_EV_EXIT);
}

static void threads_have_names_of_their_own(void **state)
{
	struct abi_sample s;

	forked(10 * MS, 1, 60, 60);
	named(PERFIDS_COMM, 11 * MS, 60, 60, "main");
	forked(12 * MS, 60, 60, 61);
	s = sampled(13 * MS, 60, 61, ABI_SAMPLE_USER);
	assert_string_equal(s.comm, "main"); /* the creator's */
	t.n = 0;
	named(PERFIDS_COMM, 14 * MS, 60, 61, "worker");
	assert_int_equal(t.n, 0);
	s = sampled(15 * MS, 60, 61, ABI_SAMPLE_USER);
	assert_string_equal(s.comm, "worker");
	s = sampled(15 * MS, 60, 60, ABI_SAMPLE_USER);
	assert_string_equal(s.comm, "main");
	named(PERFIDS_COMM, 16 * MS, 60, 60, "title");
	assert_int_equal(t.told[0].what, QUARK_EV_SETPROCTITLE);
	assert_string_equal(t.told[0].qp.comm, "title");
}

static void a_pid_that_is_used_again_is_another_process(void **state)
{
	struct abi_sample s;

	forked(10 * MS, 1, 60, 60);
	t.n = 0;
	forked(50 * MS, 1, 60, 60); /* and the EXIT was lost */
	assert_int_equal(t.told[0].what, QUARK_EV_EXIT);
	assert_int_equal(t.told[0].qp.key.start_boottime, 10 * MS);
	assert_int_equal(t.told[1].what, QUARK_EV_FORK);
	s = sampled(51 * MS, 60, 60, ABI_SAMPLE_USER);
	assert_int_equal(s.key.start_boottime, 50 * MS);
}

/* After the grace time the dead are forgotten, and no others. */
static void the_dead_are_forgotten(void **state)
{
	forked(10 * MS, 1, 60, 60);
	forked(10 * MS, 1, 61, 61);
	feed(PERFIDS_EXIT, 20 * MS, 60, 60);
	forked(7000 * MS, 1, 62, 62);
	t.n = 0;
	sampled(7001 * MS, 60, 60, ABI_SAMPLE_USER);
	assert_int_equal(t.n, 1); /* unknown now */
	assert_int_equal(t.told[0].what, 0);
	sampled(7001 * MS, 61, 61, ABI_SAMPLE_USER);
	assert_int_equal(t.n, 1);
}

static void a_stranger_is_taken_as_one_that_was_there(void **state)
{
	struct abi_sample s = sampled(30 * MS, 50, 51, ABI_SAMPLE_USER);

	assert_int_equal(t.n, 1);
	assert_int_equal(t.told[0].what, 0);
	assert_int_equal(t.told[0].qp.key.start_boottime, 30 * MS);
	assert_int_equal(s.key.start_boottime, 30 * MS);
	assert_int_equal(t.nwanted, 1);
	assert_int_equal(t.wanted[0], 50);
	proc_says(PERFIDS_READ, 40 * MS, 39 * MS, 10 * MS, "/srv");
	assert_int_equal(t.told[1].what, QUARK_EV_ID_CHANGE);
	assert_string_equal(t.told[1].exe, "/usr/sbin/daemon");
	assert_string_equal(t.told[1].qp.comm, "daemon");
	s = sampled(41 * MS, 50, 51, ABI_SAMPLE_USER);
	assert_string_equal(s.comm, "helper");
	assert_int_equal(s.key.start_boottime, 30 * MS); /* as it was called */
}

static void a_reading_of_another_image_is_dropped(void **state)
{
	forked(10 * MS, 1, 50, 50);
	named(PERFIDS_EXEC, 20 * MS, 50, 50, "a");
	mapped(21 * MS, 50, "/bin/a");
	t.n = 0;
	proc_says(PERFIDS_READ, 30 * MS, 19 * MS, 10 * MS, "/old");
	assert_int_equal(t.n, 0); /* begun before the exec */
	named(PERFIDS_EXEC, 31 * MS, 50, 50, "b");
	proc_says(PERFIDS_READ, 33 * MS, 32 * MS, 10 * MS, "/half");
	assert_int_equal(t.n, 0); /* which is not over */
	mapped(34 * MS, 50, "/bin/b");
	proc_says(PERFIDS_READ, 36 * MS, 35 * MS, 10 * MS, "/new");
	assert_int_equal(t.told[1].what, QUARK_EV_ID_CHANGE);
	assert_string_equal(t.told[1].cwd, "/new");
	assert_string_equal(t.told[1].exe, ""); /* the kernel's stays */
	feed(PERFIDS_EXIT, 40 * MS, 50, 50);
	feed(PERFIDS_EXIT, 40 * MS, 50, 51);
	t.n = 0;
	proc_says(PERFIDS_READ, 42 * MS, 41 * MS, 10 * MS, "/dead");
	assert_int_equal(t.n, 0);
}

/* Born while /proc was read: by FORK record and by ticks it is one. */
static void who_was_born_during_the_walk_is_there_once(void **state)
{
	struct abi_sample s;

	proc_says(PERFIDS_SCAN, 100 * MS, 100 * MS, 100 * MS, "/");
	t.n = 0;
	forked(107 * MS, 1, 50, 50);
	assert_int_equal(t.n, 0);
	s = sampled(110 * MS, 50, 50, ABI_SAMPLE_USER);
	assert_int_equal(s.key.start_boottime, 100 * MS);
	/* Much later it is a successor. */
	forked(500 * MS, 1, 50, 50);
	s = sampled(510 * MS, 50, 50, ABI_SAMPLE_USER);
	assert_int_equal(s.key.start_boottime, 500 * MS);
}

static void count(void *arg, uint32_t pid)
{
	*(uint32_t *)arg += pid;
}

static void who_lives_can_be_asked(void **state)
{
	uint32_t sum = 0;

	forked(10 * MS, 1, 60, 60); /* and 1, which it takes for granted */
	forked(10 * MS, 1, 70, 70);
	feed(PERFIDS_GONE, 20 * MS, 60, 60);
	perfids_living(t.ids, count, &sum);
	assert_int_equal(sum, 71);
	assert_int_equal(t.told[t.n - 1].what, QUARK_EV_EXIT);
	feed(PERFIDS_GONE, 21 * MS, 60, 60);
	assert_int_equal(t.told[t.n - 1].time, 20 * MS); /* once */
}

#define WITH_IDS(fn) cmocka_unit_test_setup_teardown(fn, begin_ids, end_ids)

int main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_IDS(a_life_from_fork_to_exit),
		WITH_IDS(an_exec_without_its_mapping_is_told_all_the_same),
		WITH_IDS(inside_execve_is_one_sample_at_most),
		WITH_IDS(a_process_ends_with_its_last_thread),
		WITH_IDS(an_exec_of_another_thread_is_no_end),
		WITH_IDS(threads_have_names_of_their_own),
		WITH_IDS(a_pid_that_is_used_again_is_another_process),
		WITH_IDS(the_dead_are_forgotten),
		WITH_IDS(a_stranger_is_taken_as_one_that_was_there),
		WITH_IDS(a_reading_of_another_image_is_dropped),
		WITH_IDS(who_was_born_during_the_walk_is_there_once),
		WITH_IDS(who_lives_can_be_asked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
