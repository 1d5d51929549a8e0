// SPDX-License-Identifier: Apache-2.0
/*
 * prog_traced: a program with a tracer, for test_traces.sh. Two requests take turns: each
 * burns CPU time in a function of its own, with its trace and span in the variable that
 * OpenTelemetry's thread context names; between them is a function outside of any. So which
 * function a sample is in tells which ids it must have. A child of fork burns in the first
 * one, without publishing anything.
 *
 *	prog_traced SECONDS
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

int main(int argc, char **argv)
{
	double end = now(CLOCK_MONOTONIC) + (argc > 1 ? atof(argv[1]) : 1);
	pid_t pid;

	publish();
	set(&red);
	pid = fork();
	if (!pid)
		while (now(CLOCK_MONOTONIC) < end)
			child_request();
	while (pid && now(CLOCK_MONOTONIC) < end) {
		set(&red);
		red_request();
		set(&blue);
		blue_request();
		set(NULL);
		no_request();
	}
	return pid ? waitpid(pid, NULL, 0) < 0 : 0;
}
