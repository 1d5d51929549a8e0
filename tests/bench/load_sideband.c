// SPDX-License-Identifier: Apache-2.0
/*
 * load_sideband: opens the mapping stream as profd does and empties its rings as often,
 * without using the records, until it is ended: for the cost of the stream to others.
 * Prints "open" when it is.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "profiler/source/sideband.h"

static void ignore(void *arg, const struct pm_map_event *ev)
{
}

int main(void)
{
	const struct timespec pause = { 0, 100000000 };
	const struct sideband_opts opts = { .map = ignore };
	struct sideband *s;
	const char *what;
	int err;

	err = sideband_new(&s, &opts, &what);
	if (err) {
		fprintf(stderr, "%s: %s\n", what, strerror(-err));
		return 1;
	}
	puts("open");
	fflush(stdout);
	for (;;) {
		nanosleep(&pause, NULL);
		sideband_poll(s);
	}
}
