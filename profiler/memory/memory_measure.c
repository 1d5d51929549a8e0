// SPDX-License-Identifier: Apache-2.0
/*
 * memory_measure: the figures of profiler/memory/memory.h: what processes hold, see
 * proc_pid_statm(5), and what control groups allow, see the kernel's
 * Documentation/admin-guide/cgroup-v1/memory.rst and cgroup-v2.rst.
 */
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/memory/memory.h"

/* Version 1 has a large number for no limit, version 2 the word "max". */
#define MEMORY_NO_LIMIT (1ULL << 60)
/* More children than workers, openers and readers ever are. */
#define MEMORY_CHILDREN 64

const struct memory_host memory_this_host = {
	.cgroups = "/proc/self/cgroup",
	.mount = "/sys/fs/cgroup",
};

/* --- limits --------------------------------------------------------------- */

static void memory_lower(uint64_t *limit, uint64_t other)
{
	*limit = MIN(*limit, other);
}

static uint64_t memory_read_limit(const char *path)
{
	char text[64], *end;
	uint64_t n;

	if (procfs_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return UINT64_MAX;
	n = strtoull(text, &end, 10);
	return end == text || n >= MEMORY_NO_LIMIT ? UINT64_MAX : n;
}

/*
 * The lowest limit of 'path' and of the groups above it. In a container the path may be
 * one of the host, which is not mounted: then only the mount's root has a file.
 */
static uint64_t memory_walk(const char *mount, const char *hierarchy,
			    char *path, const char *file)
{
	uint64_t limit = UINT64_MAX;
	char full[PATH_MAX];
	char *slash;

	for (;;) {
		if (snprintf(full, sizeof(full), "%s%s%s/%s", mount, hierarchy,
			     path, file) < (int)sizeof(full))
			memory_lower(&limit, memory_read_limit(full));
		slash = strrchr(path, '/');
		if (!slash)
			return limit;
		*slash = '\0';
	}
}

/* Whether the list with commas has the controller of memory. */
static bool memory_in(const char *list, size_t len)
{
	static const char name[] = "memory";
	const char *end = list + len, *comma;

	for (; list < end; list = comma + 1) {
		comma = memchr(list, ',', end - list) ?: end;
		if (comma - list == sizeof(name) - 1 &&
		    !memcmp(list, name, sizeof(name) - 1))
			return true;
	}
	return false;
}

/* One line of /proc/self/cgroup: "N:controllers:path", see cgroups(7). */
static uint64_t memory_line_limit(const char *mount, char *line)
{
	char *list = strchr(line, ':'), *path;
	uint64_t a, b;

	path = list ? strchr(++list, ':') : NULL;
	if (!path)
		return UINT64_MAX;
	*path++ = '\0';
	if (!*list) {
		char *again = strdupa(path);

		a = memory_walk(mount, "", path, "memory.max");
		b = memory_walk(mount, "/unified", again, "memory.max");
		return MIN(a, b);
	}
	if (!memory_in(list, strlen(list)))
		return UINT64_MAX;
	return memory_walk(mount, "/memory", path, "memory.limit_in_bytes");
}

uint64_t memory_cgroup_limit(const struct memory_host *host)
{
	uint64_t limit = UINT64_MAX;
	char text[16384], *save, *line;

	if (procfs_read(AT_FDCWD, host->cgroups, text, sizeof(text)) <= 0)
		return limit;
	for (line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		memory_lower(&limit, memory_line_limit(host->mount, line));
	return limit;
}

/* --- usage ---------------------------------------------------------------- */

/*
 * Pages of files and of rings are not counted: the kernel can drop the first, and the
 * second are mapped twice.
 */
static uint64_t memory_anonymous(pid_t pid)
{
	unsigned long resident, shared;
	char text[256];

	if (!procfs_text(pid, "statm", text, sizeof(text)) ||
	    sscanf(text, "%*u %lu %lu", &resident, &shared) != 2 ||
	    resident < shared)
		return 0;
	return (uint64_t)(resident - shared) * sysconf(_SC_PAGESIZE);
}

/* The loop's thread starts all of them. It needs CONFIG_PROC_CHILDREN. */
void memory_measure(const struct memory_host *host, struct memory_usage *out)
{
	char path[64], text[MEMORY_CHILDREN * 12], *end, *s = text;
	uint64_t bytes;
	pid_t pid;

	*out = (struct memory_usage){ .own = memory_anonymous(getpid()) };
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	if (procfs_read(AT_FDCWD, host->children ?: path, text, sizeof(text)) <=
	    0)
		return;
	for (; (pid = strtol(s, &end, 10)) > 0 && end != s; s = end) {
		bytes = memory_anonymous(pid);
		out->others += bytes;
		if (bytes <= out->largest_bytes)
			continue;
		out->largest_bytes = bytes;
		out->largest = pid;
	}
}
