// SPDX-License-Identifier: Apache-2.0
/*
 * Unwind rows of installed programs, large and common ones: size of the table, time
 * to build it (the best of three) and peak memory above that of a process that builds
 * none. One JSON line each.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "symbolize/rows/rows.h"

#define LIBS "/usr/lib/x86_64-linux-gnu/"

static const char *const files[] = {
	LIBS "libLLVM-14.so.1", LIBS "libc.so.6", "/usr/bin/python3",
	"/usr/bin/gdb",		"/usr/bin/node",  "/bin/bash",
};

static int read_once(const char *path, struct symbolizer_rows **rows)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), err = -1;
	struct symbolizer_src src;
	struct stat st;

	if (fd >= 0 && !fstat(fd, &st)) {
		symbolizer_src_fd(&src, fd, (uint64_t)st.st_size);
		err = symbolizer_rows_read(rows, &src, NULL);
	}
	if (fd >= 0)
		close(fd);
	return err;
}

/* Peak memory in kilobytes of a process that reads 'path', or nothing if NULL. */
static long peak_kb(const char *path)
{
	struct symbolizer_rows *rows;
	struct rusage use;
	int status;
	pid_t pid = fork();

	if (pid == 0)
		_exit(path ? read_once(path, &rows) != 0 : 0);
	if (pid < 0 || wait4(pid, &status, 0, &use) != pid || status)
		return -1;
	return use.ru_maxrss;
}

static int bench(const char *path, long peak)
{
	struct symbolizer_rows_info info;
	struct symbolizer_rows *rows;
	uint64_t begin, best = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		begin = clock_boottime_ns();
		if (read_once(path, &rows))
			return -1;
		best = MIN(best, clock_boottime_ns() - begin);
		symbolizer_rows_info(rows, &info);
		symbolizer_rows_free(rows);
	}
	printf("{\"bench\":\"unwind_rows\",\"file\":\"%s\",\"rows\":%zu,"
	       "\"rules\":%zu,\"bytes\":%zu,\"text_bytes\":%llu,"
	       "\"bytes_per_mib\":%.0f,\"ms\":%.1f,\"peak_bytes\":%ld}\n",
	       path, info.rows, info.rules, info.bytes,
	       (unsigned long long)info.text,
	       info.text ? (double)info.bytes / (double)info.text * 1048576 : 0,
	       (double)best / 1e6, peak * 1024);
	return peak < 0 ? -1 : 0;
}

int main(void)
{
	long peaks[ARRAY_SIZE(files)], base = peak_kb(NULL);
	int err = 0;

	/* First: a child inherits the peak of its parent. */
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		peaks[i] = peak_kb(files[i]) - base;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		if (!access(files[i], R_OK) && bench(files[i], peaks[i])) {
			fprintf(stderr, "%s: cannot be read\n", files[i]);
			err = 1;
		}
	return err;
}
