// SPDX-License-Identifier: Apache-2.0
/*
 * prog_killer DIR PID USEC: waits until a file is created in DIR, then this many
 * microseconds more, and kills PID with SIGKILL. A shell that polls would be too late:
 * the moment lasts a millisecond. Prints "ready" when it watches. Gives up after a
 * minute with status 1.
 */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct pollfd p = { .events = POLLIN };
	struct timespec delay = { 0, 0 };

	if (argc < 4)
		return 2;
	delay.tv_nsec = atol(argv[3]) * 1000;
	p.fd = inotify_init1(IN_CLOEXEC);
	if (p.fd < 0 || inotify_add_watch(p.fd, argv[1], IN_CREATE) < 0) {
		perror(argv[1]);
		return 1;
	}
	puts("ready");
	fflush(stdout);
	if (poll(&p, 1, 60000) != 1)
		return 1;
	if (delay.tv_nsec)
		nanosleep(&delay, NULL);
	return kill(atoi(argv[2]), SIGKILL) ? 1 : 0;
}
