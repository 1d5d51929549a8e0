// SPDX-License-Identifier: Apache-2.0
/*
 * pprof_check FILE...: "FILE: ok", or the first broken rule and its place.
 * Exit status 1 if any is broken.
 */
#include <stdio.h>

#include "tests/unit/pprof_check.h"

int main(int argc, char **argv)
{
	const char *wrong;
	int i, bad = argc < 2;

	for (i = 1; i < argc; i++) {
		wrong = pprof_check_file(argv[i]);
		printf("%s: %s\n", argv[i], wrong ? wrong : "ok");
		bad |= !!wrong;
	}
	pprof_check_end();
	return bad;
}
