// SPDX-License-Identifier: Apache-2.0
/* libquark: which events join which, how long they are held, entry leaders. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "processmanager/quark/agg.c"
#include "processmanager/quark/leader.c"
#include "processmanager/quark/record.c"

static struct quark_held held;
static struct pool records = { .size = sizeof(struct quark_record) };

static int setup(void **state)
{
	return quark_held_init(&held, false);
}

static int setup_min(void **state)
{
	return quark_held_init(&held, true);
}

static int teardown(void **state)
{
	quark_held_fini(&held);
	return 0;
}

static void add_tid(uint32_t pid, uint64_t start, uint64_t kind, uint64_t time,
		    uint32_t tid)
{
	struct quark_record *rec = quark_record_new(&records);
	struct quark_event ev = { .events = kind, .boottime = time };

	rec->p.pid = rec->p.key.pid = pid;
	rec->p.key.start_boottime = start;
	rec->p.exit_code = time; /* identifies the record */
	ev.process = &rec->p;
	ev.tid = tid;
	ev.id_change = kind == QUARK_EV_ID_CHANGE ? 1U << (time % 3) : 0;
	assert_int_equal(quark_held_add(&held, &ev, rec, tid), 0);
}

static void add(uint32_t pid, uint64_t kind, uint64_t time)
{
	add_tid(pid, pid, kind, time, 0);
}

/* The next event: pid, kinds, time of the first, record of the last. */
static void expect(uint32_t pid, uint64_t kinds, uint64_t first, uint64_t last)
{
	size_t joined;
	struct raw_event *e = quark_held_pop(&held, NULL, &joined);

	assert_non_null(e);
	assert_int_equal(e->ev.process->pid, pid);
	assert_int_equal(e->ev.events, kinds);
	assert_int_equal(e->ev.boottime, first);
	assert_int_equal(e->ev.process->exit_code, last);
	quark_held_free(e);
}

static void expect_none(void)
{
	size_t joined;

	assert_null(quark_held_pop(&held, NULL, &joined));
	assert_int_equal(held.count, 0);
}

#define FORK QUARK_EV_FORK
#define EXEC QUARK_EV_EXEC
#define EXIT QUARK_EV_EXIT
#define COMM QUARK_EV_SETPROCTITLE
#define IDS QUARK_EV_ID_CHANGE

static void test_short_life(void **state)
{
	add(2, FORK, 1);
	add(3, FORK, 2);
	add(2, EXEC, 3);
	add(3, EXIT, 4);
	add(2, COMM, 5);
	add(2, EXIT, 6);
	expect(2, FORK | EXEC | COMM | EXIT, 1, 6);
	expect(3, FORK | EXIT, 2, 4);
	expect_none();
}

static void test_once(void **state)
{
	/* A second exec would hide the first one. */
	add(2, FORK, 1);
	add(2, EXEC, 2);
	add(2, EXEC, 3);
	add(2, EXIT, 4);
	expect(2, FORK | EXEC, 1, 2);
	expect(2, EXEC | EXIT, 3, 4);
	expect_none();
}

static void test_pairs(void **state)
{
	add(2, COMM, 1);
	add(2, COMM, 2);
	add(2, EXIT, 3);
	expect(2, COMM | EXIT, 1, 3);
	add(2, IDS, 1);
	add(2, IDS, 2);
	add(2, EXEC, 3);
	expect(2, IDS, 1, 2);
	expect(2, EXEC, 3, 3);
	/* Not in the table. */
	add(2, EXIT, 1);
	add(2, FORK, 2);
	expect(2, EXIT, 1, 1);
	expect(2, FORK, 2, 2);
	add(2, COMM, 1);
	add(2, EXEC, 2);
	expect(2, COMM, 1, 1);
	expect(2, EXEC, 2, 2);
	expect_none();
}

static void test_ids_before_exec(void **state)
{
	size_t joined;
	struct raw_event *e;

	add(2, FORK, 1);
	add(2, IDS, 3);
	add(2, IDS, 4);
	add(2, EXEC, 5);
	add(2, EXIT, 6);
	e = quark_held_pop(&held, NULL, &joined);
	assert_int_equal(e->ev.events, FORK | IDS);
	assert_int_equal(e->ev.id_change, 1 << 0 | 1 << 1);
	assert_int_equal(joined, 2);
	quark_held_free(e);
	expect(2, EXEC | EXIT, 5, 6);
	expect_none();
}

/* One pid, two processes. */
static void test_reused_pid(void **state)
{
	add_tid(2, 10, FORK, 1, 0);
	add_tid(2, 20, EXEC, 2, 0);
	add_tid(2, 10, EXIT, 3, 0);
	expect(2, FORK | EXIT, 1, 3);
	expect(2, EXEC, 2, 2);
	expect_none();
}

static void test_threads(void **state)
{
	add(2, FORK, 1);
	add_tid(2, 2, FORK, 2, 7);
	add_tid(2, 2, EXIT, 3, 7);
	add(2, EXIT, 4);
	expect(2, FORK | EXIT, 1, 4);
	expect(2, FORK | EXIT, 2, 3);
	expect_none();
}

static void test_min(void **state)
{
	add(2, FORK, 1);
	add(2, COMM, 2);
	add(2, EXEC, 3);
	add(2, COMM, 4);
	add(2, EXIT, 5);
	expect(2, FORK | COMM, 1, 2);
	expect(2, EXEC | COMM, 3, 4);
	expect(2, EXIT, 5, 5);
	expect_none();
}

static void test_no_process(void **state)
{
	struct quark_event gap = { .events = QUARK_EV_GAP, .boottime = 1 };
	size_t joined;

	assert_int_equal(quark_held_add(&held, &gap, NULL, false), 0);
	gap.boottime = 2;
	assert_int_equal(quark_held_add(&held, &gap, NULL, false), 0);
	quark_held_free(quark_held_pop(&held, NULL, &joined));
	assert_int_equal(held.count, 1);
	assert_int_equal(joined, 0);
}

static void test_order_survives_growth(void **state)
{
	int i;

	for (i = 0; i < 100; i++)
		add(2, COMM, i + 1);
	for (i = 3; i < 500; i++)
		add(i, FORK, 200 + i);
	expect(2, COMM, 1, 100);
	expect(3, FORK, 203, 203);
}

/* Own extensions are never joined, whatever the caller's cells are. */
static void test_invalid(void **state)
{
	held.matrix[RAW_INVALID][RAW_EXIT_THREAD] = quark_can_aggregate_mult;
	held.matrix[RAW_EXIT_THREAD][RAW_INVALID] = quark_can_aggregate_mult;
	add(2, EXIT, 1);
	add(2, QUARK_EV_REAP, 2);
	add(2, EXIT, 3);
	expect(2, EXIT, 1, 1);
	expect(2, QUARK_EV_REAP, 2, 2);
	expect(2, EXIT, 3, 3);
	expect_none();
}

static double cpu_seconds(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/*
 * CPU time of n events of one process, in at once and out: as pairs that do not
 * join, or all as one. The least of three, without an interruption.
 */
static double cost(int n, uint64_t other)
{
	struct raw_event *e;
	double best = 1e9, start;
	size_t joined;
	int i, k;

	for (k = 0; k < 3; k++) {
		start = cpu_seconds();
		for (i = 0; i < n; i++)
			add(2, i & 1 ? other : COMM, i + 1);
		while ((e = quark_held_pop(&held, NULL, &joined)))
			quark_held_free(e);
		best = MIN(best, cpu_seconds() - start);
		assert_int_equal(held.count, 0);
		assert_int_equal(held.hash.count, 0);
	}
	return best;
}

/* Four times as many take four times as long; with a search, sixteen times. */
static void test_linear(void **state)
{
	double once = cost(8000, COMM), four = cost(32000, COMM);

	assert_true(four < 9 * once);
	once = cost(8000, IDS);
	four = cost(32000, IDS);
	assert_true(four < 9 * once);
}

static void test_hold(void **state)
{
	const uint64_t second = 1000000000;

	assert_int_equal(quark_hold_ns(second, 0, 10000), second);
	assert_int_equal(quark_hold_ns(second, 500, 10000), second);
	assert_int_equal(quark_hold_ns(second, 999, 10000), second);
	assert_int_equal(quark_hold_ns(second, 2000, 10000), 875000000);
	assert_int_equal(quark_hold_ns(second, 5000, 10000), 500000000);
	assert_int_equal(quark_hold_ns(second, 8900, 10000), 12500000);
	assert_int_equal(quark_hold_ns(second, 9000, 10000), 0);
	assert_int_equal(quark_hold_ns(second, 20000, 10000), 0);
	assert_int_equal(quark_hold_ns(second, 1, 1), 0);
}

/* --- entry leaders --------------------------------------------------------- */

static struct quark_process proc(uint32_t pid, uint32_t ppid, uint32_t sid,
				 const char *exe)
{
	struct quark_process p = { .pid = pid,
				   .proc_ppid = ppid,
				   .proc_sid = sid,
				   .exe = (char *)exe };

	return p;
}

static void check_leader(struct quark_process *p,
			 const struct quark_process *parent, uint32_t type,
			 uint32_t leader)
{
	quark_entry_leader(p, parent);
	assert_int_equal(p->proc_entry_leader_type, type);
	assert_int_equal(p->proc_entry_leader, leader);
}

static void test_leaders(void **state)
{
	struct quark_process init = proc(1, 0, 1, "/sbin/init");
	struct quark_process kthreadd = proc(2, 0, 0, NULL);
	struct quark_process kworker = proc(30, 2, 0, NULL);
	struct quark_process sshd = proc(40, 1, 40, "/usr/sbin/sshd");
	struct quark_process shell = proc(41, 40, 41, "/bin/bash");
	struct quark_process ls = proc(42, 41, 41, "/bin/ls");
	struct quark_process orphan = proc(50, 49, 49, "/bin/x");

	check_leader(&init, NULL, QUARK_ELT_INIT, 1);
	check_leader(&kthreadd, NULL, QUARK_ELT_KTHREAD, 2);
	check_leader(&kworker, &kthreadd, QUARK_ELT_KTHREAD, 30);
	check_leader(&sshd, &init, QUARK_ELT_INIT, 1);
	check_leader(&shell, &sshd, QUARK_ELT_SSHD, 41);
	check_leader(&ls, &shell, QUARK_ELT_SSHD, 41);
	check_leader(&orphan, NULL, QUARK_ELT_UNKNOWN, 0);
	/* An entry leader that is set stays when the parent ends. */
	check_leader(&ls, NULL, QUARK_ELT_SSHD, 41);
	check_leader(&ls, &init, QUARK_ELT_SSHD, 41);
}

static void test_leader_terminals(void **state)
{
	struct quark_process login = proc(60, 1, 60, "/bin/login");
	struct quark_process other = proc(61, 1, 61, "/bin/other");
	struct quark_process ssm = proc(62, 1, 62, "/x/ssm-session-worker");
	struct quark_process sh = proc(70, 60, 70, "/bin/sh");

	sh.proc_tty_major = 4;
	sh.proc_tty_minor = 64;
	check_leader(&sh, &other, QUARK_ELT_CONSOLE, 70);
	sh = proc(70, 60, 70, "/bin/sh");
	sh.proc_tty_major = 4;
	sh.proc_tty_minor = 1;
	check_leader(&sh, &other, QUARK_ELT_UNKNOWN, 0);
	check_leader(&sh, &login, QUARK_ELT_TERM, 70);
	sh = proc(70, 60, 70, "/bin/sh");
	check_leader(&sh, &ssm, QUARK_ELT_UNKNOWN, 0);
	sh.proc_tty_major = 136;
	check_leader(&sh, &ssm, QUARK_ELT_SSM, 70);
	/* Only the leader of a session. */
	sh = proc(70, 60, 60, "/bin/sh");
	sh.proc_tty_major = 4;
	sh.proc_tty_minor = 64;
	check_leader(&sh, &other, QUARK_ELT_UNKNOWN, 0);
}

static void test_leader_containers(void **state)
{
	struct quark_process shim =
		proc(80, 1, 80, "/usr/bin/containerd-shim-runc-v2");
	struct quark_process runc = proc(81, 80, 80, "/usr/bin/runc");
	struct quark_process app = proc(82, 80, 82, "/app");

	shim.proc_entry_leader_type = QUARK_ELT_INIT;
	shim.proc_entry_leader = 1;
	check_leader(&runc, &shim, QUARK_ELT_INIT, 1);
	check_leader(&app, &shim, QUARK_ELT_CONTAINER, 82);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_short_life),
		T(test_once),
		T(test_pairs),
		T(test_ids_before_exec),
		T(test_reused_pid),
		T(test_threads),
		cmocka_unit_test_setup_teardown(test_min, setup_min, teardown),
		T(test_no_process),
		T(test_order_survives_growth),
		T(test_linear),
		T(test_invalid),
		cmocka_unit_test(test_hold),
		cmocka_unit_test(test_leaders),
		cmocka_unit_test(test_leader_terminals),
		cmocka_unit_test(test_leader_containers),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
