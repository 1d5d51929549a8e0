// SPDX-License-Identifier: Apache-2.0
/*
 * What --wait costs those whose time is added up: two processes on one CPU hand a byte to
 * and fro through pipes, without its programs and with them, in turns. Each hand-over is one
 * wake-up and one switch; ns of both processes' CPU time for each, the medians of the
 * differences in one round. The goals are 400 ns a switch for durations, that is, without
 * room for sums of sites, and 550 with sites, whose spans of code are known as they are to
 * profd. Then a cut, with many threads that wait, and the memory.
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
#include "profiler/waiting/sums.h"

#define ROUNDS 15
#define TRIPS 20000
#define TRIES 3
#define SWITCHES (2.0 * TRIPS)
#define CUT_THREADS 2000
#define CUTS 20

static int to[2], from[2];
static pid_t other; /* hands each byte back */

static void die(const char *what)
{
	fprintf(stderr, "bench_wait: %s: %s\n", what, strerror(errno));
	exit(1);
}

/* 'limit': as for waiting_sums_new(). */
static struct waiting_sums *open_sums(uint32_t limit)
{
	struct waiting_sums *s = NULL;
	const char *what;

	errno = -waiting_sums_new(&s, limit, false, &what);
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

/* Of both processes, ns. */
static double cpu_time(void)
{
	double sum = 0;
	struct timespec t;
	clockid_t clocks[2] = { CLOCK_PROCESS_CPUTIME_ID };

	errno = clock_getcpuclockid(other, &clocks[1]);
	if (errno)
		die("clock");
	for (size_t i = 0; i < ARRAY_SIZE(clocks); i++) {
		clock_gettime(clocks[i], &t);
		sum += (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
	}
	return sum;
}

/* ns a switch. */
static double ping_pong(void)
{
	double begin = cpu_time();
	char c = 0;

	for (int i = 0; i < TRIPS; i++)
		if (write(to[1], &c, 1) != 1 || read(from[0], &c, 1) != 1)
			die("pipe");
	return (cpu_time() - begin) / SWITCHES;
}

/* Where code is: this program's, and that of its libraries. */
static void read_spans(struct abi_wait_span spans[ABI_WAIT_SPANS])
{
	FILE *maps = fopen("/proc/self/maps", "r");
	struct abi_wait_span *s;
	unsigned long begin, end;
	char line[512], x;

	if (!maps)
		die("maps");
	while (fgets(line, sizeof(line), maps)) {
		if (sscanf(line, "%lx-%lx %*c%*c%c", &begin, &end, &x) != 3 ||
		    x != 'x' || strchr(line, '[')) /* not of the kernel's */
			continue;
		s = &spans[begin >> 40 == (unsigned long)&maps >> 40];
		s->start = s->start ?: begin;
		s->len = end - s->start;
	}
	fclose(maps);
}

static void give_spans(void *arg, const struct abi_key *key,
		       struct abi_wait_span *spans)
{
	if (key->tgid == (uint32_t)getpid() || key->tgid == (uint32_t)other)
		memcpy(spans, arg, ABI_WAIT_SPANS * sizeof(*spans));
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

enum {
	WITHOUT,
	DURATIONS,
	SITES,
	STATES
};

/* Of some tries the quickest. */
static double switch_ns(int state)
{
	struct abi_wait_span spans[ABI_WAIT_SPANS] = { { 0 } };
	struct waiting_sums *s = NULL;
	double ns = 0, one;

	if (state != WITHOUT)
		s = open_sums(state == DURATIONS ? 1 : 0);
	if (s) {
		read_spans(spans);
		waiting_sums_spans(s, give_spans, spans);
	}
	ping_pong();
	for (int i = 0; i < TRIES; i++) {
		one = ping_pong();
		ns = !i || one < ns ? one : ns;
	}
	waiting_sums_free(s);
	return ns;
}

static void bench_switch(void)
{
	double ns[STATES][ROUNDS], more[STATES][ROUNDS];
	cpu_set_t one, all;

	sched_getaffinity(0, sizeof(all), &all);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	if (pipe(to) || pipe(from))
		die("pipe");
	other = fork();
	if (!other) {
		close(to[1]);
		echo();
	}
	for (int i = 0; i < ROUNDS; i++)
		for (int k = 0; k < STATES; k++) {
			ns[k][i] = switch_ns(k);
			more[k][i] = ns[k][i] - ns[WITHOUT][i];
		}
	close(to[1]);
	waitpid(other, NULL, 0);
	sched_setaffinity(0, sizeof(all), &all);
	printf("{\"bench\":\"wait\",\"load\":\"pipe\",\"ns_without\":%.0f,"
	       "\"ns_more_durations\":%.0f,\"ns_more_sites\":%.0f}\n",
	       median(ns[WITHOUT], ROUNDS), median(more[DURATIONS], ROUNDS),
	       median(more[SITES], ROUNDS));
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
	bench_switch();
	bench_cut();
	return 0;
}
