// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that sleep before anything follows them are listed with their registers, and
 * their waits get the site that user space gives, with all of their time; but not the
 * wait of one that has run meanwhile.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "tests/bpf/wait/test_wait.h"

#define SLEEPERS 8

static struct abi_wait_open open_of[SLEEPERS];
static struct abi_wait_given given[SLEEPERS];
static size_t n_open;
static pid_t child;
static uint64_t sited_ns, other_ns;

static void *blocked(void *arg)
{
	char c;

	return read(*(int *)arg, &c, 1) < 0 ? arg : NULL;
}

/* Two pipes: the last thread alone has the second one. */
static pid_t start(int all[2], int one[2])
{
	pthread_t t;
	pid_t pid;

	assert_int_equal(pipe(all), 0);
	assert_int_equal(pipe(one), 0);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < SLEEPERS - 1; i++)
		if (pthread_create(&t, NULL, blocked,
				   i == SLEEPERS - 2 ? one : all))
			_exit(1);
	blocked(all);
	_exit(0);
}

static void on_site(void *arg, const struct waiting_sum *sum)
{
	if (sum->key.tgid != (uint32_t)child)
		return;
	if (sum->site >= ABI_WAIT_SITE_LEAST)
		sited_ns += sum->ns;
	else
		other_ns += sum->ns;
}

static void list(void)
{
	struct abi_wait_open page[ABI_WAIT_OPEN_MAX];
	uint32_t after = 0;
	size_t n;

	n_open = 0;
	do {
		n = waiting_sums_list(sums, after, page);
		for (size_t i = 0; i < n; i++) {
			assert_true(page[i].tid > after);
			after = page[i].tid;
			if (page[i].key.tgid != (uint32_t)child)
				continue;
			assert_true(n_open < SLEEPERS);
			assert_true(page[i].regs.ip);
			assert_true(page[i].regs.gpr[ABI_REG_SP]);
			open_of[n_open++] = page[i];
		}
	} while (n == ABI_WAIT_OPEN_MAX);
}

static void give(void)
{
	for (size_t i = 0; i < n_open; i++)
		given[i] = (struct abi_wait_given){
			.key = open_of[i].key,
			.switches = open_of[i].switches,
			.site = 1000 + i,
		};
	waiting_sums_give(sums, open_of, given, n_open);
}

static void test_open(void **state)
{
	int all[2], one[2];
	uint64_t from, to;
	size_t taken = 0;
	const char *what;

	child = start(all, one);
	/* Nothing follows it yet. */
	sleep_ms(500);
	assert_int_equal(waiting_sums_new(&sums, 0, false, &what), 0);
	list();
	assert_int_equal(n_open, SLEEPERS);
	assert_int_equal(write(one[1], "", 1), 1);
	sleep_ms(200);
	give();
	for (size_t i = 0; i < n_open; i++)
		taken += !given[i].site;
	assert_int_equal(taken, SLEEPERS - 1);
	list();
	assert_int_equal(n_open, 0);
	from = clock_boottime_ns();
	assert_int_equal(waiting_sums_cut(sums, from), 0);
	waiting_sums_read(sums, on_site, NULL);
	sited_ns = other_ns = 0;
	sleep_ms(50);
	to = clock_boottime_ns();
	assert_int_equal(waiting_sums_cut(sums, to), 0);
	waiting_sums_read(sums, on_site, NULL);
	assert_int_equal(sited_ns, (SLEEPERS - 1) * (to - from));
	assert_int_equal(other_ns, 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),
	};

	return cmocka_run_group_tests(tests, NULL, close_sums);
}
