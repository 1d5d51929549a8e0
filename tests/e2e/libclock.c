// SPDX-License-Identifier: Apache-2.0
/*
 * libclock.so: with LD_PRELOAD, a wall clock of its own, which is wrong by the number
 * of seconds in the file $CLOCK_OFFSET as soon as that exists. No other clock changes,
 * as when a real one is stepped, which must not be done on a shared machine.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long offset(void)
{
	const char *path = getenv("CLOCK_OFFSET");
	int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	char text[32] = "";

	if (fd < 0)
		return 0;
	if (read(fd, text, sizeof(text) - 1) < 0)
		text[0] = '\0';
	close(fd);
	return atol(text);
}

int clock_gettime(clockid_t id, struct timespec *ts)
{
	static int (*real)(clockid_t id, struct timespec * ts);
	int ret;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
	ret = real(id, ts);
	if (!ret && id == CLOCK_REALTIME)
		ts->tv_sec += offset();
	return ret;
}
