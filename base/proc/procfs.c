// SPDX-License-Identifier: Apache-2.0
/* procfs: see base/proc/procfs.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"

int procfs_numbers(const char *path, int (*fn)(void *arg, uint32_t number),
		   void *arg)
{
	DIR *dir = opendir(path);
	struct dirent *d;
	unsigned long n;
	char *end;
	int err = 0;

	if (!dir)
		return -errno;
	while (!err && (d = readdir(dir))) {
		if (*d->d_name < '0' || *d->d_name > '9')
			continue;
		n = strtoul(d->d_name, &end, 10);
		if (!*end && n <= INT32_MAX)
			err = fn(arg, n);
	}
	closedir(dir);
	return err;
}

int procfs_open(uint32_t pid)
{
	char path[32];
	int fd;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

ssize_t procfs_read(int dir, const char *name, char *buf, size_t size)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	*buf = '\0';
	if (fd < 0)
		return -errno;
	do {
		n = read(fd, buf + len, size - 1 - len);
		if (n > 0)
			len += n;
	} while (n > 0 && len < size - 1);
	if (n < 0)
		n = -errno;
	close(fd);
	buf[len] = '\0';
	return n < 0 ? n : (ssize_t)len;
}

bool procfs_text(uint32_t pid, const char *name, char *text, size_t size)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	return procfs_read(AT_FDCWD, path, text, size) > 0;
}

#define PROCFS_KTHREAD 0x00200000U /* PF_KTHREAD of include/linux/sched.h */

int procfs_stat_parse(const char *text, size_t len, struct procfs_stat *out)
{
	const char *open = memchr(text, '(', len);
	const char *close = memrchr(text, ')', len);
	unsigned long long start, user, system;
	char rest[1024];
	unsigned int flags;
	size_t n;

	memset(out, 0, sizeof(*out));
	if (!open || !close || close < open)
		return -EINVAL;
	/* A name may contain anything; it ends at the last parenthesis. */
	n = MIN((size_t)(close - open - 1), sizeof(out->comm) - 1);
	memcpy(out->comm, open + 1, n);
	n = MIN(len - (close + 1 - text), sizeof(rest) - 1);
	memcpy(rest, close + 1, n);
	rest[n] = '\0';
	/* Fields 3 to 7, 9, 14, 15 and 22. */
	if (sscanf(rest,
		   " %c %u %u %u %u %*d %u %*u %*u %*u %*u %llu %llu %*d %*d"
		   " %*d %*d %*d %*d %llu",
		   &out->state, &out->ppid, &out->pgid, &out->sid, &out->tty,
		   &flags, &user, &system, &start) != 9)
		return -EINVAL;
	out->kthread = flags & PROCFS_KTHREAD;
	out->utime = user;
	out->stime = system;
	if (__builtin_mul_overflow(start, procfs_tick(), &out->start))
		return -EINVAL;
	return 0;
}

bool procfs_stat_at(int dir, struct procfs_stat *out)
{
	char text[2048];
	ssize_t n = procfs_read(dir, "stat", text, sizeof(text));

	errno = n < 0 ? (int)-n : 0;
	return n > 0 && !procfs_stat_parse(text, n, out);
}

bool procfs_stat(uint32_t pid, struct procfs_stat *out)
{
	char text[2048];

	return procfs_text(pid, "stat", text, sizeof(text)) &&
	       !procfs_stat_parse(text, strlen(text), out);
}

uint64_t procfs_tick(void)
{
	return CLOCK_NSEC_PER_SEC / sysconf(_SC_CLK_TCK);
}

uint64_t procfs_tick_of(uint64_t boottime)
{
	return boottime / procfs_tick() * procfs_tick();
}

bool procfs_ids_parse(const char *status, struct procfs_ids *out)
{
	/* Control characters of the name above it are escaped. */
	const char *at = strstr(status, "\nUid:\t");

	return at && sscanf(at, "\nUid:\t%u %u %u %*u\nGid:\t%u %u %u",
			    &out->uid, &out->euid, &out->suid, &out->gid,
			    &out->egid, &out->sgid) == 6;
}

static bool procfs_is_octal(char c)
{
	return c >= '0' && c <= '7';
}

void procfs_unescape(char *to, size_t cap, const char *from, size_t len)
{
	size_t i, n = 0;

	for (i = 0; i < len && n + 1 < cap; i++) {
		if (from[i] == '\\' && len - i > 3 &&
		    procfs_is_octal(from[i + 1]) &&
		    procfs_is_octal(from[i + 2]) &&
		    procfs_is_octal(from[i + 3])) {
			to[n++] = (char)((from[i + 1] - '0') * 64 +
					 (from[i + 2] - '0') * 8 +
					 (from[i + 3] - '0'));
			i += 3;
		} else {
			to[n++] = from[i];
		}
	}
	to[n] = '\0';
}

/* "memory" is one of "cpu,memory"; "" of "" only. */
static bool procfs_in_list(const char *list, const char *name)
{
	size_t n = strlen(name);
	const char *end;

	for (;; list = end + 1) {
		end = strchrnul(list, ',');
		if ((size_t)(end - list) == n && !memcmp(list, name, n))
			return true;
		if (!*end)
			return false;
	}
}

/* A container's id has so many hexadecimal digits; its name may be longer. */
#define CONTAINER_ID_LEN 64

static bool procfs_is_container(const char *path)
{
	return path && strlen(strrchr(path, '/') + 1) >= CONTAINER_ID_LEN;
}

static bool procfs_below_root(const char *path)
{
	return path && path[1];
}

const char *procfs_cgroup(char *text)
{
	static const char *const lists[] = { "", "memory", "pids" };
	const char *path[ARRAY_SIZE(lists)] = { NULL };
	char *line, *list, *at, *save = NULL;
	size_t i;

	/* A line is "ID:CONTROLLERS:PATH". */
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		list = strchr(line, ':');
		at = list ? strchr(++list, ':') : NULL;
		if (!at || at[1] != '/')
			continue;
		*at++ = '\0';
		for (i = 0; i < ARRAY_SIZE(lists); i++)
			if (procfs_in_list(list, lists[i]))
				path[i] = at;
	}
	for (i = 1; i < ARRAY_SIZE(lists); i++)
		if (procfs_is_container(path[i]))
			return path[i];
	for (i = 0; i < ARRAY_SIZE(lists); i++)
		if (procfs_below_root(path[i]))
			return path[i];
	for (i = ARRAY_SIZE(lists); i-- > 0;)
		if (path[i])
			return path[i];
	return NULL;
}
