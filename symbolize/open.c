// SPDX-License-Identifier: Apache-2.0
/*
 * open: from the path of a watched process to a descriptor, without being led
 * where the process wants us. An absolute symlink under /proc/PID/root is
 * followed to *our* root by a plain open(), so the path is resolved within a
 * descriptor of that root (openat2, Linux 5.6), first as O_PATH, which opens
 * nothing and so wakes no device and no FIFO. Only what proves to be a regular
 * file is then opened for reading. FUSE would let the process decide when our
 * reads return.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "symbolize/file.h"

#define DELETED " (deleted)"
#define DELETED_LEN (sizeof(DELETED) - 1)

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

bool symbolizer_path_deleted(const char *path)
{
	size_t len = strlen(path);

	return len > DELETED_LEN &&
	       strcmp(path + len - DELETED_LEN, DELETED) == 0;
}

/* An O_PATH descriptor below the root of the process. */
static int find_below_root(pid_t pid, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	char root[32];
	int dir, fd;

	snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
	if (fd < 0)
		fd = -errno;
	close(dir);
	return fd;
}

static int find_path(const struct symbolizer_open_req *req, const char *path)
{
	int fd;

	if (req->pid)
		return find_below_root(req->pid, path);
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int find_plain_path(const struct symbolizer_open_req *req)
{
	char *path;
	int fd;

	path = strndup(req->path, strlen(req->path) - DELETED_LEN);
	if (!path)
		return -ENOMEM;
	fd = find_path(req, path);
	free(path);
	return fd;
}

static int find_mapping(const struct symbolizer_open_req *req)
{
	char path[80], self[16] = "self";
	int fd;

	if (req->map_start >= req->map_end)
		return -ENOENT;
	if (req->pid)
		snprintf(self, sizeof(self), "%d", (int)req->pid);
	snprintf(path, sizeof(path), "/proc/%s/map_files/%llx-%llx", self,
		 (unsigned long long)req->map_start,
		 (unsigned long long)req->map_end);
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A descriptor for reading in place of one that is a mere place. */
static int open_found(int place)
{
	struct statfs fs;
	struct stat st;
	char self[32];
	int fd;

	if (fstat(place, &st) || fstatfs(place, &fs))
		return -errno;
	if (!S_ISREG(st.st_mode) || fs.f_type == FUSE_SUPER_MAGIC)
		return -EACCES;
	snprintf(self, sizeof(self), "/proc/self/fd/%d", place);
	fd = open(self, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

int symbolizer_open_way(const struct symbolizer_open_req *req,
			enum symbolizer_way way)
{
	int place, fd;

	if (way == SYMBOLIZER_BY_MAPPING)
		place = find_mapping(req);
	else if (way == SYMBOLIZER_BY_PLAIN_PATH)
		place = find_plain_path(req);
	else
		place = find_path(req, req->path);
	if (place < 0)
		return place;
	fd = open_found(place);
	close(place);
	return fd;
}

bool symbolizer_inode_doubtful(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == OVERLAYFS_SUPER_MAGIC ||
					 fs.f_type == BTRFS_SUPER_MAGIC);
}
