// SPDX-License-Identifier: Apache-2.0
/*
 * load_small SECONDS PERMILLE: one of many processes on a host. It runs for some
 * seconds and uses this many thousandths of a CPU, in a few calls. The bench makes
 * many executables of it, copies with other build ids.
 */
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "tests/e2e/frame.h"

#define DEEP __attribute__((noinline, noclone))

void small_leaf(uint64_t n);
void small_middle(int depth, uint64_t n);

DEEP void small_leaf(uint64_t n)
{
	WITH_FRAME;
	while (n--)
		__asm__ volatile("" : "+r"(n));
}

DEEP void small_middle(int depth, uint64_t n)
{
	if (depth > 0)
		small_middle(depth - 1, n);
	else
		small_leaf(n);
	__asm__ volatile("");
}

static int64_t now_ns(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

int main(int argc, char **argv)
{
	const int64_t slice = 50000000;
	struct timespec pause = { 0, 0 };
	int64_t end, cpu, spent;
	long permille;

	if (argc < 3)
		return 2;
	end = now_ns(CLOCK_MONOTONIC) + atol(argv[1]) * 1000000000LL;
	permille = atol(argv[2]);
	while (now_ns(CLOCK_MONOTONIC) < end) {
		cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
		do {
			small_middle(12, 100000);
			spent = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
		} while (spent < slice * permille / 1000);
		if (permille >= 1000)
			continue;
		pause.tv_nsec =
			slice - spent > 1000000 ? slice - spent : 1000000;
		nanosleep(&pause, NULL);
	}
	return 0;
}
