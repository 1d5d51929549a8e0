/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of descriptors share: a directory, and a subscriber of this process. */
#ifndef TESTS_BPF_WATCH_TEST_WATCH_FDS_H
#define TESTS_BPF_WATCH_TEST_WATCH_FDS_H

#include <fcntl.h>
#include <limits.h>
#include <sys/syscall.h>

#include "tests/bpf/watch/test_watch.h"

#define BAD 0x1230 /* no page is there */

static char dir[] = "/tmp/test-watch-fds-XXXXXX";

/* --- events ----------------------------------------------------------------------- */

/* What watching itself calls at its begin is left out. */
static uint64_t since;

static bool is_new(void *arg, const struct watch_event *e)
{
	return e->time >= since;
}

static inline void begin(const char *const *names, size_t n)
{
	const uint32_t self = (uint32_t)getpid();
	const struct watch_want want = { .names = names,
					 .n_names = n,
					 .pids = &self,
					 .n_pids = 1,
					 .take = is_new };

	if (!watch)
		assert_int_equal(watch_new(&watch, &(struct watch_opts){ 0 }),
				 0);
	if (!got)
		got = calloc(GOT_MAX, sizeof(*got));
	n_got = 0;
	since = UINT64_MAX;
	sub = subscribe(&want);
	since = clock_boottime_ns();
}

static inline void end(void)
{
	for (size_t i = 0; i < n_got; i++)
		free((char *)got[i].fd.path);
	stop();
}

/* The i-th event of a name. */
static inline const struct watch_event *event(const char *end, const char *call,
					      size_t i)
{
	char name[64];

	snprintf(name, sizeof(name), "syscall_%s-%s", end, call);
	return wait_nth(name, i);
}

static inline void read_link(int fd, char *out, size_t size)
{
	char proc[64], *gone;
	ssize_t n;

	snprintf(proc, sizeof(proc), "/proc/self/fd/%d", fd);
	n = readlink(proc, out, size - 1);
	if (n < 0)
		fail_msg("%s: %s", proc, strerror(errno));
	out[n] = '\0';
	gone = strstr(out, " (deleted)");
	if (gone)
		*gone = '\0';
}

static inline int open_in(const char *name, int flags)
{
	char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return open(path, flags, 0600);
}

static inline const char *in(const char *name)
{
	static char path[512];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	return path;
}

static inline int clean(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	watch_free(watch);
	return system(command);
}

#endif /* TESTS_BPF_WATCH_TEST_WATCH_FDS_H */
