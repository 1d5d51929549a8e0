// SPDX-License-Identifier: Apache-2.0
/*
 * Windows are exact: of a process whose threads run, sleep and hand a byte to and fro, the
 * sums of each window are its threads times its length, to the nanosecond, though what
 * happens between an edge and its cut is in the kernel's sums by then.
 */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>

#include "profiler/waiting/edges.h"
#include "tests/bpf/wait/test_wait.h"

#define WINDOWS 12
#define WINDOW_NS (40 * MSEC)
#define AHEAD_NS (50 * MSEC) /* that edges are set before their time */
#define LATE_MS 8 /* of cuts, after the last edge */

/* --- the load --------------------------------------------------------------------- */

static void *spin(void *arg)
{
	for (volatile int i = 0; !arg; i++)
		;
	return arg;
}

static void *nap(void *arg)
{
	for (unsigned int i = 0; !arg; i++)
		usleep(i * 37 % 1000);
	return arg;
}

static int to[2], from[2];

static void *ping(void *arg)
{
	char c = 0;

	while (write(to[1], &c, 1) == 1 && read(from[0], &c, 1) == 1)
		;
	return NULL;
}

static void *pong(void *arg)
{
	char c;

	while (read(to[0], &c, 1) == 1 && write(from[1], &c, 1) == 1)
		sched_yield();
	return NULL;
}

static void *(*const loads[])(void *) = { spin, nap, nap, ping, pong };

#define THREADS (ARRAY_SIZE(loads) + 1)

static pid_t start(void)
{
	pid_t pid = fork();
	pthread_t t;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pipe(to) || pipe(from))
		_exit(1);
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++)
		if (pthread_create(&t, NULL, loads[i], NULL))
			_exit(1);
	spin(NULL);
	return 0;
}

static void stop(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* --- the windows ------------------------------------------------------------------ */

/* However late this test runs itself: it sets as many edges at a time as there may be. */
static void set_edges(uint64_t *edges)
{
	uint64_t now = clock_boottime_ns();

	for (size_t i = 0; i < WAITING_EDGES; i++)
		edges[i] = now + AHEAD_NS + i * WINDOW_NS;
	waiting_sums_edges(sums, edges, WAITING_EDGES, clock_boottime_ns());
}

static void await(uint64_t time)
{
	while (clock_boottime_ns() < time)
		sleep_ms(1);
}

/* What a process has had since the edge before. 'wall_ns': of it, on a CPU. */
static struct waiting_sum window(pid_t pid, uint64_t edge, bool *exact)
{
	static struct waiting_sum before;
	struct waiting_sum now, w = { 0 };

	assert_int_equal(waiting_sums_cut(sums, edge), 0);
	read_sums();
	*exact = waiting_sums_pass(sums, edge);
	now = sum_of(pid, 0xff);
	now.wall_ns = sum_of(pid, ABI_WAIT_ON).ns;
	w.ns = now.ns - before.ns;
	w.cpu_ns = now.cpu_ns - before.cpu_ns;
	w.wall_ns = now.wall_ns - before.wall_ns;
	before = now;
	return w;
}

/* Consecutive windows; those between two sets of edges are as long as the host is busy. */
static void test_windows(void **state)
{
	uint64_t edges[WAITING_EDGES], last = 0;
	bool exact, was = false;
	struct waiting_sum w;
	size_t n = 0;
	pid_t pid = start();

	sleep_ms(200);
	read_sums();
	for (int tries = 0; n < WINDOWS && tries < 10 * WINDOWS; tries++) {
		set_edges(edges);
		await(edges[WAITING_EDGES - 1] + LATE_MS * MSEC);
		for (size_t i = 0; i < WAITING_EDGES; i++) {
			w = window(pid, edges[i], &exact);
			print_message("%" PRIu64 " ns: %" PRIu64
				      ", on a CPU %" PRIu64
				      ", CPU time %" PRIu64 "\n",
				      edges[i] - last, w.ns, w.wall_ns,
				      w.cpu_ns);
			if (exact && was) {
				assert_int_equal(w.ns,
						 THREADS * (edges[i] - last));
				n++;
			}
			was = exact;
			last = edges[i];
		}
	}
	assert_true(n >= WINDOWS);
	stop(pid);
}

/* Images that end in a window have all of their time, in it and the next one. */
static void test_ends(void **state)
{
	uint64_t edge = clock_boottime_ns() + 50 * MSEC;
	struct waiting_sum before, after;
	pid_t pid = fork();

	if (!pid) {
		while (clock_boottime_ns() < edge + 10 * MSEC)
			;
		_exit(0);
	}
	waiting_sums_edges(sums, &edge, 1, clock_boottime_ns());
	await(edge + 30 * MSEC);
	waitpid(pid, NULL, 0);
	assert_int_equal(waiting_sums_cut(sums, edge), 0);
	read_sums();
	read_sums();
	before = sum_of(pid, 0xff);
	assert_true(waiting_sums_pass(sums, edge));
	for (int i = 0; i < WAIT_SECONDS * 100; i++) {
		read_sums();
		after = sum_of(pid, 0xff);
		if (after.wall_ns && after.wall_ns == after.ns)
			break;
		sleep_ms(10);
	}
	assert_int_equal(after.ns, after.wall_ns);
	assert_true(before.ns < edge);
	assert_true(after.ns - before.ns >= 10 * MSEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_windows),
		cmocka_unit_test(test_ends),
	};

	return cmocka_run_group_tests(tests, open_sums, close_sums);
}
