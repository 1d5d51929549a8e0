// SPDX-License-Identifier: Apache-2.0
/*
 * The period in the kernel: samples times the period must be CPU time, so it must be
 * the requested one. Counts do not show small errors, since a busy host or a virtual
 * machine skips ticks. But the time between two samples is a multiple of the period.
 */
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/sampler.h"

#define CPUS 4096
#define GAPS 200
#define TRIES 6000 /* of 20 ms */
/* After a longer gap the number of periods is uncertain. */
#define MULTIPLE_MAX 4

struct gaps {
	double period;
	uint64_t last[CPUS]; /* time of the last sample there */
	double ns;
	uint64_t periods, n;
};

static void collect(void *arg, const struct abi_sample *rec, size_t len)
{
	struct gaps *g = arg;
	uint64_t *last = &g->last[rec->cpu % CPUS];
	double gap = (double)(rec->time - *last), k = round(gap / g->period);

	(void)len;
	if (*last && rec->time > *last && k >= 1 && k <= MULTIPLE_MAX) {
		g->ns += gap;
		g->periods += (uint64_t)k;
		g->n++;
	}
	*last = rec->time;
}

static pid_t spin(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (;;)
		__asm__ volatile("");
}

static void test_period(unsigned int hz)
{
	static struct gaps g;
	struct sampler_opts opts = {
		.freq_hz = hz,
		.stack_copy = 4096,
		.ring_bytes = 16 << 20,
		.sample = collect,
		.arg = &g,
	};
	struct sampler *s = NULL;
	const char *what = "";
	pid_t pid;
	int i;

	memset(&g, 0, sizeof(g));
	g.period = 1e9 / hz;
	assert_int_equal(sampler_new(&s, &opts, &what), 0);
	assert_int_equal(sampler_enable(s), 0);
	pid = spin();
	for (i = 0; i < TRIES && g.n < GAPS; i++) {
		usleep(20000);
		assert_true(sampler_poll(s) >= 0);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	sampler_free(s);
	print_message("# %u Hz: %.0f ns a period, of %u gaps\n", hz,
		      g.ns / (double)g.periods, (unsigned int)g.n);
	assert_true(g.n >= GAPS);
	/* Sums of gaps: if one is longer, the next is shorter. */
	assert_true(fabs(g.ns / (double)g.periods / g.period - 1) < 0.01);
}

static void test_default(void **state)
{
	(void)state;
	test_period(97);
}

static void test_often(void **state)
{
	(void)state;
	test_period(499);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_default),
		cmocka_unit_test(test_often),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
