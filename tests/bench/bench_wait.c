// SPDX-License-Identifier: Apache-2.0
/*
 * What --wait costs those whose time is added up: two processes on one CPU hand a byte to
 * and fro through pipes, with and without its programs, in turns. Each hand-over is one
 * wake-up and one switch; ns of CPU time for each, the median of the differences. The goal
 * is 400 ns a switch. Then a cut, with many threads that wait, and the memory.
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/waiting/records.h"
#include "profiler/waiting/sums.h"

#define ROUNDS 15
#define TRIPS 50000
#define SWITCHES (2.0 * TRIPS)
#define CUT_THREADS 2000
#define CUTS 20

static int to[2], from[2];

static void die(const char *what)
{
	fprintf(stderr, "bench_wait: %s: %s\n", what, strerror(errno));
	exit(1);
}

static struct waiting_sums *open_sums(unsigned int flags)
{
	struct waiting_sums *s = NULL;
	const char *what;

	errno = -waiting_sums_new(&s, 0, flags, &what);
	if (!s)
		die(what);
	return s;
}

static void echo(void)
{
	char c;

	while (read(to[0], &c, 1) == 1)
		if (write(from[1], &c, 1) != 1)
			break;
	_exit(0);
}

/* ns a switch: both have the CPU for themselves. */
static double ping_pong(void)
{
	uint64_t begin = clock_awake_ns();
	char c = 0;

	for (int i = 0; i < TRIPS; i++)
		if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1)
			die("pipe");
	return (double)(clock_awake_ns() - begin) / SWITCHES;
}

static int compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static double median(double *v, size_t n)
{
	qsort(v, n, sizeof(*v), compare);
	return v[n / 2];
}

/* With waits of 'min' ns and longer recorded one by one; 0: none are. */
static double ping_pong_with(uint64_t min)
{
	struct waiting_sums *s = open_sums(min ? WAITING_SUMS_RECORDS : 0);
	struct waiting_records *r = NULL;
	double ns;

	if (min && waiting_records_new(&r, s, min))
		die("records");
	ns = ping_pong();
	waiting_records_free(r);
	waiting_sums_free(s);
	return ns;
}

static void bench_switch(const char *load, uint64_t min)
{
	double without[ROUNDS], with[ROUNDS], more[ROUNDS];
	cpu_set_t one, all;
	pid_t pid;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (pipe(to) || pipe(from))
		die("pipe");
	pid = fork();
	if (!pid) {
		close(to[1]);
		echo();
	}
	ping_pong();
	for (int i = 0; i < ROUNDS; i++) {
		without[i] = ping_pong();
		with[i] = ping_pong_with(min);
		more[i] = with[i] - without[i];
	}
	close(to[1]);
	waitpid(pid, NULL, 0);
	sched_setaffinity(0, sizeof(all), &all);
	printf("{\"bench\":\"wait\",\"load\":\"%s\",\"ns_without\":%.0f,"
	       "\"ns_with\":%.0f,\"ns_more\":%.0f}\n",
	       load, median(without, ROUNDS), median(with, ROUNDS),
	       median(more, ROUNDS));
}

static void *sleeper(void *arg)
{
	pause();
	return NULL;
}

static void bench_cut(void)
{
	struct waiting_sums *s = open_sums(0);
	struct abi_wait_counters c;
	double us[CUTS];
	pthread_attr_t attr;
	uint64_t begin;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 65536);
	for (int i = 0; i < CUT_THREADS; i++)
		if (pthread_create(&t, &attr, sleeper, NULL))
			die("threads");
	for (int i = 0; i < CUTS; i++) {
		begin = clock_awake_ns();
		if (waiting_sums_cut(s, clock_boottime_ns()))
			die("cut");
		us[i] = (double)(clock_awake_ns() - begin) / 1000;
	}
	waiting_sums_counters(s, &c);
	printf("{\"bench\":\"wait\",\"threads\":%d,\"cut_us\":%.0f,"
	       "\"sums\":%llu}\n",
	       CUT_THREADS, median(us, CUTS), c.used);
	waiting_sums_free(s);
}

int main(void)
{
	bench_switch("pipe", 0);
	/* None is so long; and each is, of which most are beyond the budget. */
	bench_switch("pipe_min", CLOCK_NSEC_PER_MSEC);
	bench_switch("pipe_all", 1);
	bench_cut();
	return 0;
}
