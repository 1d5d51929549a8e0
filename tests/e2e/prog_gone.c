// SPDX-License-Identifier: Apache-2.0
/*
 * prog_gone MILLISECONDS: waits for the end of its standard input, deletes its own
 * executable, uses this much CPU time, and ends: its functions have names only if the
 * file was opened before.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/frame.h"

#define DEEP __attribute__((noinline, noclone))

void gone_hot(int64_t until);

static int64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return ts.tv_sec * 1000000000LL + ts.tv_nsec;
}

DEEP void gone_hot(int64_t until)
{
	WITH_FRAME;
	volatile unsigned int n;

	while (cpu_ns() < until)
		for (n = 0; n < 100000; n++)
			;
}

int main(int argc, char **argv)
{
	char c;

	if (argc != 2)
		return 2;
	while (read(0, &c, 1) > 0)
		;
	if (unlink(argv[0])) {
		perror(argv[0]);
		return 1;
	}
	gone_hot(cpu_ns() + atol(argv[1]) * 1000000LL);
	return 0;
}
