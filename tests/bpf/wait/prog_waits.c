// SPDX-License-Identifier: Apache-2.0
/*
 * prog_waits: waits at one place that three functions call, from frames of equal size: ip,
 * sp and the registers are the same each time, and so is the caller of the wait. Each
 * function waits for a time of its own, so that its sums tell whose waits they have.
 *
 *   prog_waits ROUNDS	after each round one() has waited for 1 ms, two() for 2 ms,
 *			three() for 4 ms
 *
 * The order changes, so that no caller has always the same one before it.
 */
#include <stdlib.h>
#include <time.h>

/* A call before it is no tail call. */
#define NO_TAIL __asm__ volatile("" : : : "memory")
#define CALLED __attribute__((noinline, noclone))

CALLED void waits_leaf(long ms);
CALLED void waits_middle(long ms);
CALLED void waits_one(void);
CALLED void waits_two(void);
CALLED void waits_three(void);

void waits_leaf(long ms)
{
	const struct timespec ts = { 0, ms * 1000000 };

	nanosleep(&ts, NULL);
	NO_TAIL;
}

void waits_middle(long ms)
{
	waits_leaf(ms);
	NO_TAIL;
}

void waits_one(void)
{
	waits_middle(1);
	NO_TAIL;
}

void waits_two(void)
{
	waits_middle(2);
	NO_TAIL;
}

void waits_three(void)
{
	waits_middle(4);
	NO_TAIL;
}

int main(int argc, char **argv)
{
	static void (*const fns[])(void) = { waits_one, waits_two,
					     waits_three };
	long rounds = argc > 1 ? atol(argv[1]) : 1;

	for (long i = 0; i < rounds; i++)
		for (long n = 0; n < 3; n++)
			fns[(n * (1 + i % 2) + i) % 3]();
	return 0;
}
