// SPDX-License-Identifier: Apache-2.0
/*
 * prog_traced: a program with a tracer, for test_traces*.sh. Two requests take turns: each
 * burns CPU time in a function of its own, with its trace and span in the variable that
 * OpenTelemetry's thread context names; between them is a function outside of any. So which
 * function a sample is in tells which ids it must have. A child of fork burns in a fourth
 * one, without publishing anything, and another child in a fifth, with a context and ids of
 * its own. At the end it prints the CPU time of the two requests, in nanoseconds.
 *
 *	prog_traced SECONDS [SECONDS]
 *
 * The first are of CPU time, of each process; the second of the clock: outside of any
 * request, before.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct record {
	uint8_t trace_id[16], span_id[8];
	uint8_t valid, flags;
	uint16_t attrs_size;
} __attribute__((packed, aligned(2)));

__thread struct record *otel_thread_ctx_v1
	__attribute__((visibility("default")));

static struct record red = { { 0xaa, [15] = 1 }, { 0xa1, [7] = 1 }, 1, 1, 0 };
static struct record own = { { 0xcc, [15] = 3 }, { 0xc1, [7] = 1 }, 1, 1, 0 };
static struct record blue = { { 0xbb, [15] = 2 }, { 0xb1, [7] = 2 }, 1, 1, 0 };

static double now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

#define BURN(name, iterations)                                           \
	__attribute__((noinline)) void name(void)                        \
	{                                                                \
		for (volatile unsigned int i = 0; i < (iterations); i++) \
			;                                                \
	}

BURN(red_request, 4000000)
BURN(blue_request, 2000000)
BURN(no_request, 1000000)
BURN(child_request, 4000000)
BURN(own_request, 4000000)

static void publish(void)
{
	int fd = memfd_create("OTEL_CTX", 0);
	void *p;

	if (fd < 0 || ftruncate(fd, 4096))
		exit(1);
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED || madvise(p, 4096, MADV_DONTFORK))
		exit(1);
	close(fd);
}

#define set(r) (*(struct record *volatile *)&otel_thread_ctx_v1 = (r))

static void child(double cpu, struct record *r, void (*request)(void))
{
	if (fork())
		return;
	if (r) {
		publish();
		set(r);
	}
	while (now(CLOCK_PROCESS_CPUTIME_ID) < cpu)
		request();
	_exit(0);
}

/* Adds the CPU time of a request to '*sum'. */
static void work(struct record *r, void (*request)(void), double *sum)
{
	double begin = now(CLOCK_THREAD_CPUTIME_ID);

	set(r);
	request();
	set(NULL);
	*sum += now(CLOCK_THREAD_CPUTIME_ID) - begin;
}

int main(int argc, char **argv)
{
	double begin = now(CLOCK_MONOTONIC) + (argc > 2 ? atof(argv[2]) : 0);
	double cpu = argc > 1 ? atof(argv[1]) : 1;
	double times[2] = { 0 };

	publish();
	set(&red);
	child(cpu, NULL, child_request);
	child(cpu, &own, own_request);
	set(NULL);
	while (now(CLOCK_MONOTONIC) < begin)
		no_request();
	cpu += now(CLOCK_PROCESS_CPUTIME_ID);
	while (now(CLOCK_PROCESS_CPUTIME_ID) < cpu) {
		work(&red, red_request, &times[0]);
		work(&blue, blue_request, &times[1]);
		no_request();
	}
	while (wait(NULL) > 0)
		;
	printf("%.0f %.0f\n", times[0] * 1e9, times[1] * 1e9);
	return 0;
}
