// SPDX-License-Identifier: Apache-2.0
/*
 * open_map: finds perf-PID.map of a process, in an opener. Its runtime writes it to
 * /tmp as it sees that, under its pid as it sees that: in its own root and its
 * innermost pid namespace.
 *
 * In a directory for all users, anything can have that name. So a symlink is not
 * followed, a second hard link is refused, and the file is one that the process's user
 * may read anyway: the user's own, or root's and readable for all.
 *
 * A runtime may write it as its process ends, and then /proc leads nowhere: for that the
 * root is opened while the process lives.
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
#define MAP_SLACK_NS 1000000000LL /* times of files are coarse */

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

static int map_process(int dir, struct symbolizer_map_root *p)
{
	char status[4096];
	struct procfs_ids ids;

	if (procfs_read(dir, "status", status, sizeof(status)) <= 0)
		return -ESRCH;
	if (!map_own_pid(status, &p->pid) || !procfs_ids_parse(status, &ids))
		return -EINVAL;
	p->uid = ids.euid;
	return 0;
}

/* It is still that process: what was found by its pid before is the process's. */
static bool map_process_is(int dir, uint64_t start)
{
	struct procfs_stat st;

	return procfs_stat_at(dir, &st) && st.start == procfs_tick_of(start);
}

static int map_check_owner(int place, const struct symbolizer_map_root *p)
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

static int map_find(int tmp, const struct symbolizer_map_root *p)
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

static int map_open(const struct symbolizer_map_root *p, pid_t pid,
		    uint64_t *where, struct symbolizer_stat *st)
{
	int tmp, place, err;

	tmp = symbolizer_place_below(pid, p->fd, MAP_DIR, where);
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

static int map_open_living(const struct symbolizer_open_req *req,
			   uint64_t *where, struct symbolizer_stat *st)
{
	struct symbolizer_map_root p = { .fd = -1 };
	int dir = procfs_open((uint32_t)req->pid), err;

	if (dir < 0)
		return dir;
	err = map_process(dir, &p);
	if (!err)
		err = map_open(&p, req->pid, where, st);
	if (err >= 0 && !map_process_is(dir, req->process_start)) {
		close(err);
		err = -ESRCH;
	}
	close(dir);
	return err;
}

/* An earlier process with this pid may have left one. */
static int map_open_ended(const struct symbolizer_open_req *req,
			  uint64_t *where, struct symbolizer_stat *st)
{
	int fd = map_open(req->root, req->pid, where, st);

	if (fd >= 0 && st->mtime_ns - clock_wall_offset_ns() + MAP_SLACK_NS <
			       (int64_t)req->process_start) {
		close(fd);
		fd = -ESTALE;
	}
	return fd;
}

int symbolizer_open_map(const struct symbolizer_open_req *req, uint64_t *where,
			struct symbolizer_stat *st)
{
	return req->root ? map_open_ended(req, where, st)
			 : map_open_living(req, where, st);
}

int symbolizer_map_root_open(pid_t pid, uint64_t process_start,
			     struct symbolizer_map_root *out)
{
	int dir = procfs_open((uint32_t)pid), err;

	if (dir < 0)
		return dir;
	out->fd = openat(dir, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	err = out->fd < 0 ? -errno : map_process(dir, out);
	if (!err && !map_process_is(dir, process_start))
		err = -ESRCH;
	if (err && out->fd >= 0)
		close(out->fd);
	close(dir);
	return err;
}
