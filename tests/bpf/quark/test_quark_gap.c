// SPDX-License-Identifier: Apache-2.0
/*
 * Name, directory and session of a process are right after a loss of their records,
 * without another exec.
 */
#include "tests/bpf/quark/test_quark.h"

/* More than any ring of the smallest size has room for. */
#define RENAMES 2000

static int pipes[2][2];

static void wait_byte(int fd)
{
	char c;

	CHECK(read(fd, &c, 1) == 1);
}

/* A backend may have a ring for each CPU. */
static void stay_here(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
}

static void change_and_wait(void)
{
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	wait_byte(pipes[0][0]);
	CHECK(prctl(PR_SET_NAME, "in-the-gap") == 0);
	CHECK(setsid() > 0);
	CHECK(chdir("/proc") == 0);
	CHECK(write(pipes[1][1], "", 1) == 1);
	for (;;)
		pause();
}

static void body(void)
{
	struct quark_queue_stats st = { 0 };
	const struct quark_process *p;
	double end = seconds() + 120;
	struct tape t = { 0 };
	struct quark_queue qq;
	pid_t child;
	int i;

	CHECK(!pipe2(pipes[0], O_CLOEXEC) && !pipe2(pipes[1], O_CLOEXEC));
	stay_here();
	child = fork();
	CHECK(child >= 0);
	if (!child)
		change_and_wait();
	open_raw(&qq, 4096);
	for (i = 0; i < RENAMES; i++)
		CHECK(prctl(PR_SET_NAME, "another") == 0);
	CHECK(write(pipes[0][1], "", 1) == 1);
	wait_byte(pipes[1][0]);
	while (!st.repairs) {
		tape_read(&t, &qq);
		quark_queue_get_stats(&qq, &st);
		CHECK(seconds() < end);
		CHECK(quark_queue_block(&qq) == 0);
	}
	CHECK_INT(tape_count(&t, child, QUARK_EV_SETPROCTITLE), 0);
	CHECK(st.lost > 0);
	p = quark_process_lookup(&qq, child);
	CHECK(p);
	CHECK_STR(p->comm, "in-the-gap");
	CHECK_INT(p->proc_sid, child);
	CHECK_INT(p->proc_pgid, child);
	CHECK_STR(p->cwd, "/proc");
	CHECK_STR(p->cmdline, program_invocation_name);
	tape_fini(&t);
	quark_queue_close(&qq);
	CHECK(!kill(child, SIGKILL) && waitpid(child, NULL, 0) == child);
	for (i = 0; i < 4; i++)
		close(pipes[i / 2][i % 2]);
}

static void what_a_gap_took_is_right_again(void **state)
{
	in_child(body);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_gap_took_is_right_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
