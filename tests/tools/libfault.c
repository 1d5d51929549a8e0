// SPDX-License-Identifier: Apache-2.0
/*
 * libfault.so: with LD_PRELOAD, a disk that fails. Calls on files below $FAULT_DIR fail
 * as the file $FAULT_RULE says, in one line:
 *
 *	OPERATIONS ERROR SKIP COUNT PATTERN
 *
 * OPERATIONS is a list of open, write, sync, link, rename, truncate, with commas; ERROR
 * is ENOSPC, EIO or SHORT (a write of half the bytes). The first SKIP matching calls
 * succeed, the next COUNT fail. PATTERN is for the path of the file, as in fnmatch(3);
 * one without a name is opened as "DIRECTORY/." and is then "DIRECTORY/#N (deleted)".
 * The counts begin again when the file is replaced. Each fault adds a line to
 * $FAULT_RULE.log.
 *
 * Only `profd run` itself is affected, not its worker processes, which may not open
 * files.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define FAULT_SHORT (-1)

static struct {
	pthread_mutex_t mutex;
	pid_t pid; /* 0: not affected */
	const char *dir, *rule;
	/* The rule, and the file that it is of. */
	ino_t ino;
	char operations[64], error[16], pattern[PATH_MAX];
	long skip, count;
} fault = { .mutex = PTHREAD_MUTEX_INITIALIZER };

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void fault_init(int argc, char **argv)
{
	fault.dir = getenv("FAULT_DIR");
	fault.rule = getenv("FAULT_RULE");
	if (argc > 1 && !strcmp(argv[1], "run") && fault.dir && fault.rule)
		fault.pid = getpid();
}

static void fault_read(void)
{
	struct stat st;
	FILE *f;

	if (stat(fault.rule, &st)) {
		fault.ino = 0;
		return;
	}
	if (fault.ino == st.st_ino)
		return;
	f = fopen(fault.rule, "re");
	if (!f)
		return;
	fault.ino = st.st_ino;
	if (fscanf(f, "%63s %15s %ld %ld %4095s", fault.operations, fault.error,
		   &fault.skip, &fault.count, fault.pattern) != 5)
		fault.count = 0;
	fclose(f);
}

static void fault_log(const char *operation, const char *path)
{
	char line[PATH_MAX + 64], log[PATH_MAX];
	int fd, n;

	snprintf(log, sizeof(log), "%s.log", fault.rule);
	n = snprintf(line, sizeof(line), "%s %s %s\n", operation, fault.error,
		     path);
	fd = REAL(open)(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0)
		return;
	if (REAL(write)(fd, line, n) != n)
		abort();
	close(fd);
}

static bool fault_is_below(const char *path)
{
	size_t len = strlen(fault.dir);

	return !strncmp(path, fault.dir, len) && path[len] == '/' &&
	       !fnmatch(fault.pattern, path, 0);
}

/* The error of this call: an errno, FAULT_SHORT, or 0. */
static int fault_due(const char *operation, const char *path)
{
	int err = 0;

	pthread_mutex_lock(&fault.mutex);
	fault_read();
	if (fault.ino && fault.count && strstr(fault.operations, operation) &&
	    fault_is_below(path)) {
		if (fault.skip) {
			fault.skip--;
		} else {
			fault.count--;
			err = !strcmp(fault.error, "EIO")     ? EIO
			      : !strcmp(fault.error, "SHORT") ? FAULT_SHORT
							      : ENOSPC;
			fault_log(operation, path);
		}
	}
	pthread_mutex_unlock(&fault.mutex);
	return err;
}

static int fault_of_fd(const char *operation, int fd)
{
	int was = errno, err = 0;
	char link[32], path[PATH_MAX];
	ssize_t n;

	if (fault.pid != getpid() || !fault.pid)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n > 0) {
		path[n] = '\0';
		err = fault_due(operation, path);
	}
	errno = was;
	return err;
}

/* A name in a directory. */
static int fault_of_name(const char *operation, int dirfd, const char *name)
{
	int was = errno, err;
	char link[32], path[PATH_MAX], all[2 * PATH_MAX];
	ssize_t n = 0;

	if (fault.pid != getpid() || !fault.pid)
		return 0;
	snprintf(link, sizeof(link), "/proc/self/fd/%d", dirfd);
	if (*name != '/' && dirfd != AT_FDCWD)
		n = readlink(link, path, sizeof(path) - 1);
	path[n > 0 ? n : 0] = '\0';
	snprintf(all, sizeof(all), "%s%s%s", path, n > 0 ? "/" : "", name);
	err = fault_due(operation, all);
	errno = was;
	return err;
}

static int fault_fails(int err)
{
	if (err <= 0)
		return 0;
	errno = err;
	return -1;
}

/* --- the calls; large files have the same ones under another name ----------------- */

static mode_t fault_mode(int flags, va_list ap)
{
	return flags & (O_CREAT | O_TMPFILE) ? va_arg(ap, mode_t) : 0;
}

#define OPENAT(name)                                                 \
	int name(int dirfd, const char *path, int flags, ...)        \
	{                                                            \
		va_list ap;                                          \
		mode_t mode;                                         \
                                                                     \
		va_start(ap, flags);                                 \
		mode = fault_mode(flags, ap);                        \
		va_end(ap);                                          \
		if (flags & (O_WRONLY | O_RDWR) &&                   \
		    fault_fails(fault_of_name("open", dirfd, path))) \
			return -1;                                   \
		return REAL(name)(dirfd, path, flags, mode);         \
	}
OPENAT(openat)
OPENAT(openat64)

#define OPEN(name)                                                      \
	int name(const char *path, int flags, ...)                      \
	{                                                               \
		va_list ap;                                             \
		mode_t mode;                                            \
                                                                        \
		va_start(ap, flags);                                    \
		mode = fault_mode(flags, ap);                           \
		va_end(ap);                                             \
		if (flags & (O_WRONLY | O_RDWR) &&                      \
		    fault_fails(fault_of_name("open", AT_FDCWD, path))) \
			return -1;                                      \
		return REAL(name)(path, flags, mode);                   \
	}
OPEN(open)
OPEN(open64)

ssize_t write(int fd, const void *buf, size_t len)
{
	int err = fault_of_fd("write", fd);

	if (fault_fails(err))
		return -1;
	return REAL(write)(fd, buf, err == FAULT_SHORT ? (len + 1) / 2 : len);
}

#define PWRITE(name, type)                                         \
	ssize_t name(int fd, const void *buf, size_t len, type at) \
	{                                                          \
		int err = fault_of_fd("write", fd);                \
                                                                   \
		if (fault_fails(err))                              \
			return -1;                                 \
		if (err == FAULT_SHORT)                            \
			len = (len + 1) / 2;                       \
		return REAL(name)(fd, buf, len, at);               \
	}
PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

#define SYNC(name)                                                            \
	int name(int fd)                                                      \
	{                                                                     \
		return fault_fails(fault_of_fd("sync", fd)) ? -1              \
							    : REAL(name)(fd); \
	}
SYNC(fsync)
SYNC(fdatasync)

#define TRUNCATE(name, type)                                    \
	int name(int fd, type len)                              \
	{                                                       \
		return fault_fails(fault_of_fd("truncate", fd)) \
			       ? -1                             \
			       : REAL(name)(fd, len);           \
	}
TRUNCATE(ftruncate, off_t)
TRUNCATE(ftruncate64, off64_t)

int linkat(int from, const char *a, int to, const char *b, int flags)
{
	return fault_fails(fault_of_name("link", to, b))
		       ? -1
		       : REAL(linkat)(from, a, to, b, flags);
}

int renameat(int from, const char *a, int to, const char *b)
{
	return fault_fails(fault_of_name("rename", to, b))
		       ? -1
		       : REAL(renameat)(from, a, to, b);
}

int renameat2(int from, const char *a, int to, const char *b,
	      unsigned int flags)
{
	return fault_fails(fault_of_name("rename", to, b))
		       ? -1
		       : REAL(renameat2)(from, a, to, b, flags);
}
