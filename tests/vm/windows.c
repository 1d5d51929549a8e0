// SPDX-License-Identifier: Apache-2.0
/*
 * windows FILE...: of each profile a line "TIME DURATION SAMPLES COMMENT...",
 * in nanoseconds, comments joined by "; ". Exit status 1 if the strict checker
 * finds anything wrong with one of them, which is then told instead.
 */
#include <inttypes.h>
#include <stdio.h>

#include "tests/unit/pprof_check.h"

static void print(const Perftools__Profiles__Profile *p)
{
	size_t i;

	printf("%" PRId64 " %" PRId64 " %" PRId64, p->time_nanos,
	       p->duration_nanos, pprof_samples(p));
	for (i = 0; i < p->n_comment; i++)
		printf("%s%s", i ? "; " : " ", p->string_table[p->comment[i]]);
	putchar('\n');
}

int main(int argc, char **argv)
{
	const char *wrong;
	int i, bad = argc < 2;

	for (i = 1; i < argc; i++) {
		wrong = pprof_check_file(argv[i]);
		if (wrong)
			printf("%s: %s\n", argv[i], wrong);
		else
			print(pprof_checked());
		bad |= !!wrong;
	}
	pprof_check_end();
	return bad;
}
