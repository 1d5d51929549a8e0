// SPDX-License-Identifier: Apache-2.0
/* procfs: see base/procfs.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

bool procfs_text(uint32_t pid, const char *name, char *text, size_t size)
{
	char path[32];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, size - 1);
	close(fd);
	text[MAX(n, 0)] = '\0';
	return n > 0;
}
