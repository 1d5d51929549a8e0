// SPDX-License-Identifier: Apache-2.0
/*
 * Segments of a thread, in whatever order their records come, as events of the watch: one
 * for each switch, and all time in segments; what is missing is said.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bpf/abi_watch.h"
#include "profiler/waiting/analysis.h"

#define PID 100
#define TID 101
#define MSEC CLOCK_NSEC_PER_MSEC

#define ON ABI_WAIT_WHAT_ON
#define QUEUE(reason) ABI_WAIT_WHAT(ABI_WAIT_NO_CALL, ABI_WAIT_##reason, 0)
#define SLEEP ABI_WAIT_WHAT(35, ABI_WAIT_SLEEP, 0)
#define PIPE ABI_WAIT_WHAT(0, ABI_WAIT_PIPE, ABI_FD_PIPE)
#define FUTEX ABI_WAIT_WHAT(202, ABI_WAIT_FUTEX, 0)

static struct watch *watch;
static struct watch_sub *sub;
static struct analysis *analysis;
static int followed; /* processes that are recorded */
static int refuses; /* what opts.follow() returns */
static struct abi_chosen counts;

static int follow_process(void *arg, uint32_t tgid, bool begins)
{
	if (begins && refuses)
		return refuses;
	followed += begins ? 1 : -1;
	return 0;
}

static void lost_of(void *arg, uint32_t tgid, struct abi_chosen *out)
{
	*out = counts;
}

static void owner_of(void *arg, struct watch_thread *t)
{
	t->uid = 7;
	t->gid = 8;
}

static int follow(void *arg, uint32_t pid, bool begins)
{
	return analysis_follow(analysis, pid, begins);
}

static int subscribe(struct watch_sub **out, struct strbuf *why)
{
	static const char *const names[] = { "sched_switch", "cpu_analysis" };
	static const uint32_t pids[] = { PID };
	const struct watch_want want = {
		.names = names,
		.n_names = ARRAY_SIZE(names),
		.pids = pids,
		.n_pids = ARRAY_SIZE(pids),
	};

	return watch_subscribe(watch, &want, out, why);
}

static int setup(void **state)
{
	const struct analysis_opts opts = {
		.follow = follow_process,
		.lost = lost_of,
		.owner = owner_of,
	};
	struct analysis_opts with = opts;
	struct strbuf why = STRBUF_INIT;

	counts = (struct abi_chosen){ 0 };
	refuses = 0;
	assert_int_equal(
		watch_new(&watch, &(struct watch_opts){ .follow = follow }), 0);
	with.watch = watch;
	analysis = analysis_new(&with);
	assert_non_null(analysis);
	assert_int_equal(subscribe(&sub, &why), 0);
	assert_int_equal(followed, 1);
	assert_false(analysis_tick(analysis, 1));
	return 0;
}

static int teardown(void **state)
{
	watch_free(watch);
	assert_int_equal(followed, 0);
	assert_false(analysis_busy(analysis));
	analysis_free(analysis);
	return 0;
}

static struct abi_segment record(uint32_t tid, uint64_t begin, uint64_t end,
				 uint32_t what, bool open)
{
	return (struct abi_segment){
		.begin = begin,
		.end = end,
		.key = { .tgid = PID, .start_boottime = 5, .exec_id = 1 },
		.tid = tid,
		.what = what,
		.flags = open ? ABI_SEGMENT_OPEN : 0,
		.comm = "work",
	};
}

static void give(uint32_t tid, uint64_t begin, uint64_t end, uint32_t what)
{
	const struct abi_segment s = record(tid, begin, end, what, false);

	analysis_segment(analysis, &s);
}

static void give_open(uint32_t tid, uint64_t begin, uint64_t end, uint32_t what)
{
	const struct abi_segment s = record(tid, begin, end, what, true);

	analysis_segment(analysis, &s);
}

/* The next event of a name; those of the other one before it are left out. */
static bool next_event(enum abi_watch_name name, struct watch_event *e)
{
	while (!watch_next(sub, e))
		if (e->name == name)
			return true;
	return false;
}

static const struct watch_attribute *attribute(const struct watch_event *e,
					       const char *key)
{
	for (size_t i = 0; i < e->n_attributes; i++)
		if (!strcmp(e->attributes[i].key, key))
			return &e->attributes[i];
	return NULL;
}

static uint64_t number(const struct watch_event *e, const char *key)
{
	const struct watch_attribute *a = attribute(e, key);

	return a ? a->u : 0;
}

static const char *text(const struct watch_event *e, const char *key)
{
	const struct watch_attribute *a = attribute(e, key);

	return a ? a->s : "";
}

static void check_switch(uint64_t time, uint64_t on, int64_t latency,
			 const char *state, const char *reason)
{
	struct watch_event e;

	if (!next_event(ABI_WATCH_SCHED_SWITCH, &e))
		fail_msg("no switch at %lu", (unsigned long)time);
	assert_int_equal(e.time, time);
	assert_int_equal(number(&e, "on"), on);
	assert_int_equal(e.timed, latency >= 0);
	if (e.timed)
		assert_int_equal(e.latency_ns, latency);
	assert_string_equal(text(&e, "state"), state);
	assert_string_equal(text(&e, "reason"), reason);
	assert_int_equal(e.key.tgid, PID);
	assert_int_equal(e.key.start_boottime, 5);
	assert_int_equal(e.uid, 7);
	assert_int_equal(e.gid, 8);
	assert_string_equal(e.comm, "work");
	assert_string_equal(e.category, "scheduler");
}

static void check_no_switch(void)
{
	struct watch_event e;

	assert_false(next_event(ABI_WATCH_SCHED_SWITCH, &e));
}

/* --- switches ------------------------------------------------------------------------- */

static void test_each_time_it_leaves(void **state)
{
	give(TID, 90, 100, ON);
	check_no_switch();
	give(TID, 100, 200, SLEEP);
	check_switch(100, 0, -1, "off", "sleep");
	give(TID, 200, 203, QUEUE(WOKEN));
	give(TID, 203, 250, ON);
	give(TID, 250, 260, QUEUE(PREEMPTED));
	check_switch(250, 47, 3, "runnable", "preempted");
	give(TID, 260, 270, ON);
	give_open(TID, 270, 300, PIPE);
	check_switch(270, 10, 10, "off", "pipe");
	check_no_switch();
}

static void test_what_it_waits_for(void **state)
{
	struct watch_event e;

	give(TID, 90, 100, ON);
	give(TID, 100, 200, PIPE);
	assert_true(next_event(ABI_WATCH_SCHED_SWITCH, &e));
	assert_string_equal(text(&e, "syscall"), watch_syscall(0));
	assert_string_equal(text(&e, "fd"), "pipe");
	assert_int_equal(e.tid, TID);
}

/* A new thread: all of it is known. */
static void test_a_new_thread(void **state)
{
	give(TID, 50, 60, QUEUE(NEW));
	give(TID, 60, 90, ON);
	give(TID, 90, 95, FUTEX);
	check_switch(90, 30, 10, "off", "futex");
}

/* A cut divides what is one, also where it had too much. */
static void test_cuts(void **state)
{
	give(TID, 0, 100, QUEUE(NEW));
	give_open(TID, 100, 150, ON);
	check_no_switch();
	give(TID, 150, 180, ON);
	check_no_switch();
	give_open(TID, 180, 200, SLEEP);
	check_switch(180, 80, 100, "off", "sleep");
	give(TID, 200, 190, SLEEP);
	give(TID, 190, 195, QUEUE(WOKEN));
	give(TID, 195, 210, ON);
	give(TID, 210, 220, SLEEP);
	check_switch(210, 15, 5, "off", "sleep");
	check_no_switch();
}

/* The records of a wake-up and of a switch are written by two CPUs. */
static void test_any_order(void **state)
{
	give(TID, 0, 100, QUEUE(NEW));
	give(TID, 150, 160, QUEUE(WOKEN));
	give(TID, 100, 120, ON);
	give(TID, 160, 170, ON);
	check_no_switch();
	give(TID, 120, 150, SLEEP);
	check_switch(120, 20, 100, "off", "sleep");
	give(TID, 170, 171, PIPE);
	check_switch(170, 10, 10, "off", "pipe");
	check_no_switch();
}

static void test_exec(void **state)
{
	struct abi_segment s;
	struct watch_event e;

	give(TID, 0, 100, QUEUE(NEW));
	give(TID, 100, 120, ON);
	s = record(TID, 120, 130, ON, false);
	s.key.exec_id = 2;
	analysis_segment(analysis, &s);
	s = record(TID, 130, 140, SLEEP, false);
	s.key.exec_id = 2;
	analysis_segment(analysis, &s);
	assert_true(next_event(ABI_WATCH_SCHED_SWITCH, &e));
	assert_int_equal(e.time, 130);
	assert_int_equal(number(&e, "on"), 30);
	assert_int_equal(e.key.exec_id, 2);
	check_no_switch();
}

/* Another thread than the first executes a program: it gets the number of that one. */
static void test_exec_of_another_thread(void **state)
{
	struct abi_segment s;
	struct watch_event e;

	give(PID, 0, 50, QUEUE(NEW));
	give(PID, 50, 60, ON);
	give(TID, 0, 100, QUEUE(NEW));
	give(TID, 100, 120, ON);
	s = record(PID, 120, 130, ON, false);
	s.key.exec_id = 2;
	analysis_segment(analysis, &s);
	check_switch(60, 10, 50, "dead", "exit");
	s = record(PID, 130, 140, SLEEP, false);
	s.key.exec_id = 2;
	analysis_segment(analysis, &s);
	assert_true(next_event(ABI_WATCH_SCHED_SWITCH, &e));
	assert_int_equal(e.tid, PID);
	assert_int_equal(e.time, 130);
	assert_int_equal(number(&e, "on"), 30);
	check_no_switch();
	/* Beside that one thread comes when another one goes, at the same time. */
	give(TID, 0, 100, QUEUE(NEW));
	give(TID, 100, 300, ON);
	s = record(PID, 300, 310, ON, false);
	s.key.exec_id = 1;
	analysis_segment(analysis, &s);
	s = record(PID, 140, 300, QUEUE(WOKEN), false);
	s.key.exec_id = 2;
	analysis_segment(analysis, &s);
	give(TID, 300, 301, SLEEP);
	check_switch(300, 200, 100, "off", "sleep");
}

/* --- the end, and long waits ---------------------------------------------------------- */

static void test_why_is_found_out(void **state)
{
	give(TID, 0, 10, QUEUE(NEW));
	give(TID, 10, 20 * MSEC, ON);
	assert_false(analysis_tick(analysis, 100 * MSEC));
	assert_true(analysis_tick(analysis, 500 * MSEC));
	give_open(TID, 20 * MSEC, 500 * MSEC, SLEEP);
	analysis_cut(analysis, 500 * MSEC);
	check_switch(20 * MSEC, 20 * MSEC - 10, 10, "off", "sleep");
	assert_false(analysis_tick(analysis, 2000 * MSEC));
	check_no_switch();
}

static void test_a_thread_ends(void **state)
{
	struct watch_event e;

	give(TID, 0, 10, QUEUE(NEW));
	give(TID, 10, 20 * MSEC, ON);
	/* It left when the cut was made. */
	give(PID, 499 * MSEC, 500 * MSEC - MSEC / 2, ON);
	analysis_cut(analysis, 500 * MSEC);
	check_switch(20 * MSEC, 20 * MSEC - 10, 10, "dead", "exit");
	check_no_switch();
	/* Cuts are not made for others within 0.4 s. */
	assert_false(analysis_tick(analysis, 900 * MSEC));
	assert_true(analysis_tick(analysis, 900 * MSEC + 1));
	analysis_cut(analysis, 901 * MSEC);
	assert_true(next_event(ABI_WATCH_SCHED_SWITCH, &e));
	assert_int_equal(e.tid, PID);
	assert_false(analysis_tick(analysis, 2000 * MSEC));
}

static void test_a_number_is_used_again(void **state)
{
	give(TID, 0, 10, QUEUE(NEW));
	give(TID, 10, 20, ON);
	give(TID, 30, 40, QUEUE(NEW));
	check_switch(20, 10, 10, "dead", "exit");
	give(TID, 40, 50, ON);
	give(TID, 50, 60, SLEEP);
	check_switch(50, 10, 10, "off", "sleep");
}

/* --- segments ------------------------------------------------------------------------- */

static void test_as_published(void **state)
{
	static const struct {
		const char *key, *text;
	} rows[] = {
		{ "time_type", "5,0,3,0,5,0,5" },
		{ "types", "other,on,futex,on,other,on,other" },
		{ "type_specs", "10,20,8,100,3,7,9" },
		{ "runq_latency", "10,0,2,0,3,0,4" },
		{ "reasons", "new,on,futex/throttled,on,preempted,on,pipe" },
		{ "fds", ",,,,,,pipe" },
	};
	struct watch_event e;
	char calls[64];

	give(TID, 1000, 1010, QUEUE(NEW));
	give(TID, 1010, 1030, ON);
	give(TID, 1030, 1036, FUTEX);
	give(TID, 1036, 1038, QUEUE(THROTTLED));
	give(TID, 1038, 1138, ON);
	give(TID, 1138, 1141, QUEUE(PREEMPTED));
	give(TID, 1141, 1148, ON);
	give(TID, 1148, 1153, PIPE);
	give(TID, 1153, 1157, QUEUE(WOKEN));
	/* Not over. */
	give_open(TID, 1157, 1200, ON);
	assert_false(analysis_tick(analysis, CLOCK_NSEC_PER_SEC / 2));
	assert_false(next_event(ABI_WATCH_CPU_ANALYSIS, &e));
	analysis_tick(analysis, 3 * CLOCK_NSEC_PER_SEC);
	assert_true(next_event(ABI_WATCH_CPU_ANALYSIS, &e));
	assert_int_equal(e.time, 1157);
	assert_int_equal(e.tid, TID);
	assert_int_equal(number(&e, "start_time"), 1000);
	assert_int_equal(number(&e, "end_time"), 1157);
	assert_int_equal(number(&e, "segments"), 7);
	assert_null(attribute(&e, "lost"));
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_string_equal(text(&e, rows[i].key), rows[i].text);
	snprintf(calls, sizeof(calls), ",,%s,,,,%s", watch_syscall(202),
		 watch_syscall(0));
	assert_string_equal(text(&e, "syscalls"), calls);
	assert_false(next_event(ABI_WATCH_CPU_ANALYSIS, &e));
}

/* Adds up the lengths. */
static uint64_t total(const char *specs)
{
	uint64_t ns = 0;
	char *end;

	for (; *specs; specs = *end ? end + 1 : end)
		ns += strtoull(specs, &end, 10);
	return ns;
}

static void test_32_are_an_event(void **state)
{
	struct watch_event e;
	uint64_t at = 10, end = 0;

	give(TID, 0, at, QUEUE(NEW));
	for (int i = 0; i < 100; i++, at += 30) {
		give(TID, at, at + 10, ON);
		give(TID, at + 10, at + 25, SLEEP);
		give(TID, at + 25, at + 30, QUEUE(WOKEN));
	}
	for (int i = 0; i < 6; i++) {
		assert_true(next_event(ABI_WATCH_CPU_ANALYSIS, &e));
		assert_int_equal(number(&e, "segments"), WATCH_SEGMENTS_MAX);
		assert_int_equal(number(&e, "start_time"), end);
		end = number(&e, "end_time");
		assert_int_equal(total(text(&e, "type_specs")),
				 end - number(&e, "start_time"));
	}
	assert_false(next_event(ABI_WATCH_CPU_ANALYSIS, &e));
}

/* --- losses ----------------------------------------------------------------------------- */

static void test_what_is_lost(void **state)
{
	struct watch_event e;

	give(TID, 0, 10, QUEUE(NEW));
	give(TID, 10, 30, ON);
	/* The wait is lost. */
	give(TID, 100, 110, QUEUE(WOKEN));
	give(TID, 110, 120, ON);
	give(TID, 120, 130, SLEEP);
	give(TID, 130, 140, QUEUE(WOKEN));
	give(TID, 140, 150, ON);
	give(TID, 150, 160, SLEEP);
	check_no_switch();
	counts.lost_rate = 3;
	counts.lost_ring = 2;
	analysis_tick(analysis, 10 * MSEC);
	assert_int_equal(watch_lost(sub, ABI_WATCH_SCHED_SWITCH), 5);
	assert_int_equal(watch_lost(sub, ABI_WATCH_CPU_ANALYSIS), 5);
	analysis_tick(analysis, 150 * MSEC);
	check_no_switch();
	analysis_tick(analysis, 220 * MSEC);
	assert_int_equal(watch_lost(sub, ABI_WATCH_SCHED_SWITCH), 5);
	/* Of the other name: the first segments. */
	assert_false(watch_next(sub, &e));
	assert_int_equal(e.time, 30);
	assert_null(attribute(&e, "reason"));
	assert_null(attribute(&e, "state"));
	assert_false(watch_next(sub, &e));
	assert_int_equal(number(&e, "end_time"), 30);
	check_switch(120, 10, -1, "off", "sleep");
	check_switch(150, 10, 10, "off", "sleep");
	analysis_tick(analysis, 3000 * MSEC);
	assert_true(next_event(ABI_WATCH_CPU_ANALYSIS, &e));
	/* The segment that was there only partly is in the loss. */
	assert_int_equal(number(&e, "start_time"), 110);
	assert_int_equal(number(&e, "lost"), 80);
	assert_int_equal(number(&e, "segments"), 3);
}

/* More than may be held. */
static void test_held_ones_are_bounded(void **state)
{
	uint64_t at = 1000;

	give(TID, 0, 10, QUEUE(NEW));
	for (int i = 0; i < 4; i++, at += 30) {
		give(TID, at, at + 10, ON);
		give(TID, at + 10, at + 25, SLEEP);
		give(TID, at + 25, at + 30, QUEUE(WOKEN));
	}
	check_switch(1010, 0, -1, "off", "sleep");
	check_switch(1040, 10, 5, "off", "sleep");
	check_switch(1070, 10, 5, "off", "sleep");
	check_switch(1100, 10, 5, "off", "sleep");
	check_no_switch();
}

/* After a loss nobody knows whether it has ended. */
static void test_an_end_that_may_be_a_loss(void **state)
{
	struct watch_event e;

	give(TID, 0, 10, QUEUE(NEW));
	give(TID, 10, 20 * MSEC, ON);
	counts.lost_ring = 1;
	analysis_tick(analysis, 600 * MSEC);
	analysis_cut(analysis, 600 * MSEC);
	assert_true(next_event(ABI_WATCH_SCHED_SWITCH, &e));
	assert_null(attribute(&e, "reason"));
	check_no_switch();
	assert_false(analysis_tick(analysis, 2000 * MSEC));
	/* It has not. */
	give(TID, 700 * MSEC, 701 * MSEC, ON);
	analysis_tick(analysis, 2100 * MSEC);
	analysis_tick(analysis, 2400 * MSEC);
	give(TID, 701 * MSEC, 702 * MSEC, SLEEP);
	check_switch(701 * MSEC, 0, -1, "off", "sleep");
}

static void test_threads_are_bounded(void **state)
{
	size_t n = 0;

	for (uint32_t tid = 1000; tid < 1000 + ANALYSIS_THREADS; tid++)
		give(tid, 0, 10, QUEUE(NEW));
	for (uint32_t tid = 1000; tid < 1000 + ANALYSIS_THREADS; tid++)
		give(tid, 10, 20, ON);
	for (uint32_t tid = 1000; tid < 1000 + ANALYSIS_THREADS; tid++)
		give(tid, 20, 30, SLEEP);
	for (struct watch_event e; next_event(ABI_WATCH_SCHED_SWITCH, &e);)
		n++;
	/* Half: as many as are free for others. */
	assert_int_equal(n, ANALYSIS_THREADS / 2);
	analysis_tick(analysis, 10 * MSEC);
	assert_int_equal(watch_lost(sub, ABI_WATCH_SCHED_SWITCH),
			 3 * ANALYSIS_THREADS / 2);
}

/* --- any order ----------------------------------------------------------------------------- */

#define RANDOM 3000

/*
 * Cuts anywhere, and records that come some places too late: the same switches, and all
 * time is there.
 */
static void test_random(void **state)
{
	static struct abi_segment list[RANDOM];
	uint64_t at = 10, lost = 0, told = 0, sum = 0;
	size_t n = 0, switches = 0, seen = 0;
	struct abi_segment was;
	struct watch_event e;

	srand(7);
	list[n++] = record(TID, 0, at, QUEUE(NEW), false);
	for (uint32_t step = 0; n < RANDOM - 4; step++) {
		static const uint32_t what[] = { ON, SLEEP, QUEUE(WOKEN), ON,
						 QUEUE(PREEMPTED) };
		uint64_t to = at + 1 + (uint64_t)rand() % 100;

		if (rand() % 4 == 0) {
			list[n++] = record(TID, at, to, what[step % 5], true);
			at = to;
			to += 1 + (uint64_t)rand() % 100;
		}
		list[n++] = record(TID, at, to, what[step % 5], false);
		switches += what[step % 5] == ON;
		at = to;
	}
	/* The last one to have left it is known to have when something follows. */
	list[n] = record(TID, at, at + 1, SLEEP, false);
	if (ABI_WAIT_WHAT_REASON(list[n - 1].what) == ABI_WAIT_ON)
		n++;
	for (size_t i = 1; i + 3 < n; i += 3)
		if (rand() % 2) {
			was = list[i];
			list[i] = list[i + 2];
			list[i + 2] = was;
		}
	for (size_t i = 0; i < n; i++)
		analysis_segment(analysis, &list[i]);
	analysis_tick(analysis, 3000 * MSEC);
	while (!watch_next(sub, &e)) {
		seen += e.name == ABI_WATCH_SCHED_SWITCH;
		if (e.name != ABI_WATCH_CPU_ANALYSIS)
			continue;
		assert_int_equal(number(&e, "start_time"), told);
		sum += total(text(&e, "type_specs"));
		lost += number(&e, "lost");
		told = number(&e, "end_time");
	}
	assert_int_equal(seen, switches);
	assert_int_equal(sum, told);
	assert_int_equal(lost, 0);
	assert_true(told > at / 2);
}

/* --- who is followed --------------------------------------------------------------------- */

static void test_followed_while_watched(void **state)
{
	struct strbuf why = STRBUF_INIT;
	struct watch_sub *more;
	struct watch_event e;

	assert_int_equal(subscribe(&more, &why), 0);
	assert_int_equal(followed, 1);
	give(TID, 0, 10, QUEUE(NEW));
	give(TID, 10, 20, ON);
	give(TID, 20, 30, SLEEP);
	check_switch(20, 10, 10, "off", "sleep");
	assert_false(watch_next(more, &e));
	watch_unsubscribe(sub);
	assert_int_equal(followed, 1);
	assert_true(analysis_busy(analysis));
	watch_unsubscribe(more);
	assert_int_equal(followed, 0);
	assert_false(analysis_busy(analysis));
	/* A record that was in the ring. */
	give(TID, 30, 40, ON);
	refuses = -E2BIG;
	assert_int_equal(subscribe(&sub, &why), -E2BIG);
	assert_non_null(strstr(strbuf_str(&why), "name fewer by --pid"));
	refuses = -ENOTSUP;
	strbuf_reset(&why);
	assert_int_equal(subscribe(&sub, &why), -ENOTSUP);
	assert_non_null(strstr(strbuf_str(&why), "start it with --wait"));
	strbuf_fini(&why);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
		TEST(test_each_time_it_leaves),
		TEST(test_what_it_waits_for),
		TEST(test_a_new_thread),
		TEST(test_cuts),
		TEST(test_any_order),
		TEST(test_exec),
		TEST(test_exec_of_another_thread),
		TEST(test_why_is_found_out),
		TEST(test_a_thread_ends),
		TEST(test_a_number_is_used_again),
		TEST(test_as_published),
		TEST(test_32_are_an_event),
		TEST(test_what_is_lost),
		TEST(test_held_ones_are_bounded),
		TEST(test_an_end_that_may_be_a_loss),
		TEST(test_threads_are_bounded),
		TEST(test_random),
		TEST(test_followed_while_watched),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
