/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prog_renames MS LAST SPIN_MS: renames itself in a loop for MS milliseconds of wall
 * time, then to LAST, and then uses SPIN_MS of CPU time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

static double now(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return ts.tv_sec * 1e3 + ts.tv_nsec / 1e6;
}

int main(int argc, char **argv)
{
	double end;
	char name[16];
	long n = 0;

	if (argc != 4)
		return 2;
	end = now(CLOCK_MONOTONIC) + atof(argv[1]);
	while (now(CLOCK_MONOTONIC) < end) {
		for (int i = 0; i < 1000; i++) {
			name[0] = 'a' + n % 26;
			name[1] = 'a' + n / 26 % 26;
			name[2] = '\0';
			prctl(PR_SET_NAME, name);
			n++;
		}
	}
	prctl(PR_SET_NAME, argv[2]);
	printf("%ld\n", n);
	fflush(stdout);
	end = now(CLOCK_PROCESS_CPUTIME_ID) + atof(argv[3]);
	while (now(CLOCK_PROCESS_CPUTIME_ID) < end)
		;
	return 0;
}
