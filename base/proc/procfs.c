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

/* "memory" is one of "cpu,memory"; "" of "" only. */
static bool in_list(const char *list, const char *name)
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

/* Hexadecimal digits of a container's id, alone or with more around it. */
#define CONTAINER_ID_LEN 64

static bool names_container(const char *path)
{
	return path && strlen(strrchr(path, '/') + 1) >= CONTAINER_ID_LEN;
}

static bool below_root(const char *path)
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
			if (in_list(list, lists[i]))
				path[i] = at;
	}
	for (i = 1; i < ARRAY_SIZE(lists); i++)
		if (names_container(path[i]))
			return path[i];
	for (i = 0; i < ARRAY_SIZE(lists); i++)
		if (below_root(path[i]))
			return path[i];
	for (i = ARRAY_SIZE(lists); i-- > 0;)
		if (path[i])
			return path[i];
	return NULL;
}
