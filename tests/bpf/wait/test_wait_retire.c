// SPDX-License-Identifier: Apache-2.0
/*
 * A process that lives for weeks and waits at ever new sites has the sums of those it used
 * lately: the others are freed while it lives. What still waits at one keeps it, and no
 * nanosecond is missing.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "tests/bpf/wait/test_wait.h"

#define DEPTHS 120
#define REST_NS (200 * MSEC)

static pid_t child;
static uint64_t sites[4096]; /* of the child */
static size_t n_sites, n_freed;

static void on_site(void *arg, const struct waiting_sum *sum)
{
	size_t i = 0;

	if (sum->first && sum->key.tgid == (uint32_t)child) {
		assert_true(n_sites < ARRAY_SIZE(sites));
		sites[n_sites++] = sum->site;
	}
	while (sum->last && i < n_sites && sites[i] != sum->site)
		i++;
	if (sum->last && i < n_sites) {
		sites[i] = sites[--n_sites];
		n_freed++;
	}
	if (!sum->last)
		on_sum(arg, sum);
}

static void on_stack(void *arg, const struct abi_sample *rec, size_t len)
{
}

/* As waiting.c does it, once a second. */
static void read_once(void)
{
	waiting_sums_poll(sums);
	if (waiting_sums_wants_cut(sums))
		assert_int_equal(waiting_sums_cut(sums, clock_boottime_ns()),
				 0);
	waiting_sums_read(sums, on_site, NULL);
}

/* Each depth is a site of its own. */
static __attribute__((noinline)) int deep(int n)
{
	volatile char frame[64] = { 0 };

	if (n)
		return deep(n - 1) + frame[0];
	usleep(1000);
	return frame[1];
}

static void *blocked(void *arg)
{
	char c;

	if (read(*(int *)arg, &c, 1) != 1)
		_exit(1);
	return NULL;
}

static void run_child(int fds[2])
{
	pthread_t t;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (pthread_create(&t, NULL, blocked, fds))
		_exit(1);
	for (int i = 0; i < DEPTHS; i++)
		deep(i);
	/* From here on it uses one. */
	for (;;) {
		struct timespec ts = { .tv_nsec = 1000000 };

		syscall(SYS_nanosleep, &ts, NULL);
		if (!pthread_tryjoin_np(t, NULL))
			_exit(0);
	}
}

static uint64_t blocked_ns(void)
{
	const uint32_t what =
		ABI_WAIT_WHAT(SYS_read, ABI_WAIT_PIPE, ABI_FD_PIPE);
	const struct waiting_sum *s;

	waiting_sums_read(sums, on_site, NULL);
	s = sum_exact(child, what);
	return s ? s->ns : 0;
}

static void test_retire(void **state)
{
	uint64_t from, to, ns;
	int fds[2];

	/* A full ring would be a reason not to copy the stack of a site. */
	assert_int_equal(waiting_sums_stacks(sums, on_stack, NULL), 0);
	waiting_sums_rest(sums, REST_NS);
	assert_int_equal(pipe(fds), 0);
	child = fork();
	if (!child)
		run_child(fds);
	for (int i = 0; i < WAIT_SECONDS * 50 && n_freed < DEPTHS; i++) {
		read_once();
		sleep_ms(20);
	}
	print_message("%zu sums of sites freed, %zu are left\n", n_freed,
		      n_sites);
	assert_true(n_freed >= DEPTHS);
	/* That of the thread that waits all the time, and the one in use. */
	assert_true(n_sites >= 2);
	from = clock_boottime_ns();
	assert_int_equal(waiting_sums_cut(sums, from), 0);
	ns = blocked_ns();
	for (int i = 0; i < 60; i++) {
		read_once();
		sleep_ms(20);
	}
	to = clock_boottime_ns();
	assert_int_equal(waiting_sums_cut(sums, to), 0);
	assert_int_equal(blocked_ns() - ns, to - from);
	assert_int_equal(write(fds[1], "", 1), 1);
	reap(child);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_retire),
	};

	return cmocka_run_group_tests(tests, open_sums, close_sums);
}
