// SPDX-License-Identifier: Apache-2.0
/*
 * load_spawn N PROGRAM: spawns PROGRAM N times, one after the other, and prints the
 * cost: "wall S children S self S", CPU seconds of user and system together, from
 * wait4 and getrusage.
 */
#include <errno.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

extern char **environ;

static double cpu_s(const struct rusage *ru)
{
	return ru->ru_utime.tv_sec + ru->ru_stime.tv_sec +
	       (ru->ru_utime.tv_usec + ru->ru_stime.tv_usec) / 1e6;
}

static double now_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

/* One process; its CPU time, or -1. */
static double spawn_one(char **argv)
{
	struct rusage ru;
	int err, status;
	pid_t pid;

	err = posix_spawn(&pid, argv[0], NULL, NULL, argv, environ);
	if (err) {
		fprintf(stderr, "%s: %s\n", argv[0], strerror(err));
		return -1;
	}
	if (wait4(pid, &status, 0, &ru) != pid || status) {
		fprintf(stderr, "%s: wait status %#x\n", argv[0], status);
		return -1;
	}
	return cpu_s(&ru);
}

int main(int argc, char **argv)
{
	double begin = now_s(), children = 0, one;
	struct rusage self;
	long i, n;

	if (argc < 3)
		return 2;
	n = atol(argv[1]);
	for (i = 0; i < n; i++) {
		one = spawn_one(argv + 2);
		if (one < 0)
			return 1;
		children += one;
	}
	getrusage(RUSAGE_SELF, &self);
	printf("wall %.6f children %.6f self %.6f\n", now_s() - begin, children,
	       cpu_s(&self));
	return 0;
}
