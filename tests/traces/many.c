// SPDX-License-Identifier: Apache-2.0
/*
 * many: processes of several users that have each a context of its own, for test_many.sh.
 * Each is the service many-PID, and burns 2 ms of CPU time in turns of 20 s until this ends.
 * Prints "ready" when all are there.
 *
 *	many PROCESSES USERS
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/traces/context.h"

#define FIRST_UID 20000
#define BURN_NS 2000000
#define TURN_US 20000000

static long cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000L + ts.tv_nsec;
}

static void work(int i, int users)
{
	struct context_header *h;
	char name[32];

	if (setgid((gid_t)(FIRST_UID + i % users)) ||
	    setuid((uid_t)(FIRST_UID + i % users)))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	h = context_map(0);
	if (!h)
		_exit(1);
	snprintf(name, sizeof(name), "many-%d", getpid());
	context_publish_service(h, name, 1);
	srand((unsigned int)i);
	usleep((useconds_t)rand() % TURN_US);
	for (;;) {
		for (long end = cpu_ns() + BURN_NS; cpu_ns() < end;)
			;
		usleep(TURN_US);
	}
}

int main(int argc, char **argv)
{
	int n = argc == 3 ? atoi(argv[1]) : 0;
	int users = argc == 3 ? atoi(argv[2]) : 0;

	if (n < 1 || users < 1)
		return 2;
	for (int i = 0; i < n; i++) {
		pid_t pid = fork();

		if (pid < 0)
			return 1;
		if (!pid)
			work(i, users);
	}
	puts("ready");
	fflush(stdout);
	pause();
	return 0;
}
