// SPDX-License-Identifier: Apache-2.0
/*
 * prog_waits: waits at one place that three functions call, from frames of equal size: ip,
 * sp and the registers are the same each time, and so is the caller of the wait. Each
 * function waits for a time of its own, so that its sums tell whose waits they have.
 *
 *   prog_waits ROUNDS	after each round one() has waited for 1 ms, two() for 2 ms,
 *			three() for 4 ms
 *   prog_waits storm	waits for microseconds, for ever, and each time from another
 *			chain of callers, on eight threads
 *
 * The order changes, so that no caller has always the same one before it.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
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

/* --- a storm of sites --------------------------------------------------------- */

CALLED void storm_left(unsigned long way);
CALLED void storm_right(unsigned long way);

/* Each bit is a caller; the highest one ends it. */
static void storm_go(unsigned long way)
{
	const struct timespec ts = { 0, 1000 };

	if (way == 1)
		nanosleep(&ts, NULL);
	else if (way & 1)
		storm_right(way >> 1);
	else
		storm_left(way >> 1);
}

void storm_left(unsigned long way)
{
	storm_go(way);
	NO_TAIL;
}

void storm_right(unsigned long way)
{
	storm_go(way);
	NO_TAIL;
}

/* The chain is short: all of it is in the words by which sites are told apart. */
static void *storm(void *arg)
{
	for (unsigned long way = 0;; way++)
		storm_go(1UL << 14 | way % (1UL << 14));
	return arg;
}

int main(int argc, char **argv)
{
	static void (*const fns[])(void) = { waits_one, waits_two,
					     waits_three };
	long rounds = argc > 1 ? atol(argv[1]) : 1;
	pthread_t thread;

	if (argc > 1 && !strcmp(argv[1], "storm")) {
		for (int i = 1; i < 8; i++)
			if (pthread_create(&thread, NULL, storm, NULL))
				return 1;
		storm(NULL);
	}
	for (long i = 0; i < rounds; i++)
		for (long n = 0; n < 3; n++)
			fns[(n * (1 + i % 2) + i) % 3]();
	return 0;
}
