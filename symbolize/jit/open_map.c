// SPDX-License-Identifier: Apache-2.0
/*
 * open_map: finds perf-PID.map of a process, in an opener. Its runtime writes it to
 * /tmp as it sees that, under its pid as it sees that: in its own root and its
 * innermost pid namespace.
 *
 * In a directory for all users, anything can have that name. So a symlink is not
 * followed, a second hard link is refused, and the file is one that the process's user
 * may read anyway: the user's own, or root's and readable for all.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "symbolize/file.h"

#define MAP_DIR "tmp"

struct map_process {
	int dir; /* /proc/PID */
	uint32_t pid; /* in its own namespace */
	uint32_t uid; /* that it opens files with, nearly always */
};

/* The last number of the line is of the innermost namespace, see proc_pid_status(5). */
static bool map_own_pid(const char *status, uint32_t *pid)
{
	static const char key[] = "\nNSpid:";
	const char *p = strstr(status, key), *last = NULL;

	for (p = p ? p + sizeof(key) - 1 : ""; *p && *p != '\n'; p++)
		if (*p >= '0' && *p <= '9' && (p[-1] < '0' || p[-1] > '9'))
			last = p;
	*pid = last ? (uint32_t)strtoul(last, NULL, 10) : 0;
	return last;
}

static int map_process(struct map_process *p,
		       const struct symbolizer_open_req *req)
{
	char status[4096];
	struct procfs_ids ids;

	if (procfs_read(p->dir, "status", status, sizeof(status)) <= 0)
		return -ESRCH;
	if (!map_own_pid(status, &p->pid) || !procfs_ids_parse(status, &ids))
		return -EINVAL;
	p->uid = ids.euid;
	return 0;
}

/* It is still that process: what was found by its pid before is the process's. */
static bool map_process_is(const struct map_process *p,
			   const struct symbolizer_open_req *req)
{
	struct procfs_stat st;

	return procfs_stat_at(p->dir, &st) &&
	       st.start == procfs_tick_of(req->process_start);
}

static int map_check_owner(int place, const struct map_process *p)
{
	struct stat st;

	if (fstat(place, &st))
		return -errno;
	if (st.st_nlink > 1)
		return -EACCES;
	if (st.st_uid == p->uid || (!st.st_uid && st.st_mode & S_IROTH))
		return 0;
	return -EACCES;
}

static int map_find(int tmp, const struct map_process *p)
{
	struct open_how how = {
		.flags = O_PATH | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
			   RESOLVE_NO_MAGICLINKS,
	};
	char name[32];
	int fd;

	snprintf(name, sizeof(name), "perf-%u.map", p->pid);
	fd = (int)syscall(SYS_openat2, tmp, name, &how, sizeof(how));
	if (fd >= 0)
		return fd;
	return errno == ELOOP ? -EACCES : -errno;
}

static int map_open(const struct map_process *p, pid_t pid, uint64_t *where,
		    struct symbolizer_stat *st)
{
	int tmp, place, err;

	tmp = symbolizer_place_below(pid, MAP_DIR, where);
	if (tmp < 0)
		return tmp;
	place = map_find(tmp, p);
	close(tmp);
	if (place < 0)
		return place;
	err = map_check_owner(place, p);
	if (!err)
		err = symbolizer_place_open(place, pid, where, st);
	close(place);
	return err;
}

int symbolizer_open_map(const struct symbolizer_open_req *req, uint64_t *where,
			struct symbolizer_stat *st)
{
	struct map_process p = { .dir = procfs_open((uint32_t)req->pid) };
	int err;

	if (p.dir < 0)
		return p.dir;
	err = map_process(&p, req);
	if (!err)
		err = map_open(&p, req->pid, where, st);
	if (err >= 0 && !map_process_is(&p, req)) {
		close(err);
		err = -ESRCH;
	}
	close(p.dir);
	return err;
}
