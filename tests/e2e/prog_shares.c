// SPDX-License-Identifier: Apache-2.0
/*
 * prog_shares SECONDS: main at depth 1, f02 to f29 below it, and two leaf functions
 * at depth 30, which get 70 % and 30 % of the CPU time. At the end it prints their
 * exact shares: "heavy 0.7001 light 0.2999".
 *
 * A leaf runs for 70 or 30 ms of CPU time without interruption. In a cycle of 100 ms
 * either gets the expected number of 99 Hz samples within one, so over 100 cycles the
 * share in a correct profile varies by about half a point, where independent draws
 * would vary by one and a half.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tests/e2e/frame.h"

#define DEEP __attribute__((noinline, noclone))

void heavy_leaf(uint64_t n);
void light_leaf(uint64_t n);

DEEP void heavy_leaf(uint64_t n)
{
	WITH_FRAME;
	while (n--)
		__asm__ volatile("" : "+r"(n));
}

DEEP void light_leaf(uint64_t n)
{
	WITH_FRAME;
	while (n--)
		__asm__ volatile("" : "+r"(n));
}

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

/* The work behind the call keeps it from becoming a jump. */
#define LEVEL(name, next)                                   \
	void name(void (*leaf)(uint64_t), int64_t);         \
	DEEP void name(void (*leaf)(uint64_t), int64_t end) \
	{                                                   \
		next(leaf, end);                            \
		__asm__ volatile("");                       \
	}

/* Depth 29; reads the time about every half millisecond. */
void f29(void (*leaf)(uint64_t), int64_t end);
DEEP void f29(void (*leaf)(uint64_t), int64_t end)
{
	while (cpu_ns() < end)
		leaf(1000000);
}

LEVEL(f28, f29)
LEVEL(f27, f28)
LEVEL(f26, f27)
LEVEL(f25, f26)
LEVEL(f24, f25)
LEVEL(f23, f24)
LEVEL(f22, f23)
LEVEL(f21, f22)
LEVEL(f20, f21)
LEVEL(f19, f20)
LEVEL(f18, f19)
LEVEL(f17, f18)
LEVEL(f16, f17)
LEVEL(f15, f16)
LEVEL(f14, f15)
LEVEL(f13, f14)
LEVEL(f12, f13)
LEVEL(f11, f12)
LEVEL(f10, f11)
LEVEL(f09, f10)
LEVEL(f08, f09)
LEVEL(f07, f08)
LEVEL(f06, f07)
LEVEL(f05, f06)
LEVEL(f04, f05)
LEVEL(f03, f04)
LEVEL(f02, f03)

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 10;
	int64_t begin = cpu_ns(), end = begin + (int64_t)(seconds * 1e9);
	int64_t now, then = begin, heavy = 0;

	while (then < end) {
		f02(heavy_leaf, then + 70000000);
		now = cpu_ns();
		heavy += now - then;
		f02(light_leaf, now + 30000000);
		then = cpu_ns();
	}
	printf("heavy %.4f light %.4f\n", (double)heavy / (then - begin),
	       1 - (double)heavy / (then - begin));
	return 0;
}
