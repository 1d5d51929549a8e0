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
#include <limits.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "symbolize/file.h"

#define DELETED " (deleted)"
#define DELETED_LEN (sizeof(DELETED) - 1)

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

static bool path_deleted(const char *path)
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

static int find_exe(const struct symbolizer_open_req *req)
{
	char path[32];
	int fd;

	if (!req->pid)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)req->pid);
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* How a place was found, and may be found once more; path NULL: not so. */
struct found {
	int at;
	const char *path;
	uint64_t resolve;
};

/* Where there is no /proc by which to reopen a place. */
static int open_again(const struct found *by, const struct stat *place)
{
	struct open_how how = {
		.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		.resolve = by->resolve,
	};
	struct stat st;
	int fd;

	fd = (int)syscall(SYS_openat2, by->at, by->path, &how, sizeof(how));
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && st.st_dev == place->st_dev &&
	    st.st_ino == place->st_ino)
		return fd;
	close(fd);
	return -ESTALE;
}

/* A descriptor for reading in place of one that is a mere place. */
static int open_found(int place, const struct found *by)
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
	if (fd < 0 && errno == ENOENT && by->path)
		return open_again(by, &st);
	return fd < 0 ? -errno : fd;
}

int symbolizer_open_way(const struct symbolizer_open_req *req,
			enum symbolizer_way way)
{
	/* Below our own root, where no symlink could be changed meanwhile. */
	struct found by = { AT_FDCWD, NULL, RESOLVE_NO_SYMLINKS };
	int place, fd;

	if (way == SYMBOLIZER_BY_PATH && !req->pid)
		by.path = req->path;
	if (way == SYMBOLIZER_BY_MAPPING)
		place = find_mapping(req);
	else if (way == SYMBOLIZER_BY_EXE)
		place = find_exe(req);
	else if (way == SYMBOLIZER_BY_PLAIN_PATH)
		place = find_plain_path(req);
	else
		place = find_path(req, req->path);
	if (place < 0)
		return place;
	fd = open_found(place, &by);
	close(place);
	return fd;
}

/*
 * Whether the device and inode of a mapping and those of stat() are of two
 * minds on this file's file system.
 */
static bool inode_doubtful(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && (fs.f_type == OVERLAYFS_SUPER_MAGIC ||
					 fs.f_type == BTRFS_SUPER_MAGIC);
}

int symbolizer_open_ways(const struct symbolizer_open_req *req,
			 enum symbolizer_way ways[SYMBOLIZER_N_WAYS])
{
	static const enum symbolizer_way orders[][3] = {
		{ SYMBOLIZER_BY_PATH, SYMBOLIZER_BY_MAPPING },
		{ SYMBOLIZER_BY_MAPPING, SYMBOLIZER_BY_PATH,
		  SYMBOLIZER_BY_PLAIN_PATH },
	};
	bool deleted = path_deleted(req->path);

	if (req->by_exe) {
		ways[0] = SYMBOLIZER_BY_EXE;
		return 1;
	}
	memcpy(ways, orders[deleted], sizeof(orders[deleted]));
	/* Without its mark the path is a guess that only an id can prove. */
	return deleted && req->build_id_len ? 3 : 2;
}

bool symbolizer_open_same(const struct symbolizer_open_req *req,
			  const struct symbolizer_ident *id)
{
	size_t len = MIN(req->build_id_len, (size_t)SYMBOLIZER_BUILD_ID_MAX);

	return !len || (id->build_id_len == len &&
			memcmp(id->build_id, req->build_id, len) == 0);
}

/* Whether the mapping in the process is of this very file, as of now. */
static bool mapping_is(const struct symbolizer_open_req *req,
		       const struct symbolizer_ident *id)
{
	int fd = symbolizer_open_way(req, SYMBOLIZER_BY_MAPPING);
	struct stat st;
	bool same;

	if (fd < 0)
		return false;
	same = fstat(fd, &st) == 0 && st.st_dev == id->dev &&
	       st.st_ino == id->ino;
	close(fd);
	return same;
}

/*
 * Device and inode are compared only where there is no build id, and where the
 * file system may call them otherwise in a mapping than in stat(), the mapping
 * itself is asked.
 */
static bool same_inode(const struct symbolizer_open_req *req,
		       const struct symbolizer_file *f)
{
	if (req->build_id_len || !req->ino)
		return true;
	if (f->ident.dev == req->dev && f->ident.ino == req->ino)
		return true;
	return inode_doubtful(f->fd) && mapping_is(req, &f->ident);
}

int symbolizer_open_file(struct symbolizer_file **fp,
			 const struct symbolizer_open_req *req,
			 enum symbolizer_way way)
{
	struct symbolizer_file *f = symbolizer_file_new();
	struct stat st;
	int err = -ENOMEM;

	if (!f)
		return err;
	f->path = strdup(req->path);
	if (!f->path)
		goto fail;
	f->fd = err = symbolizer_open_way(req, way);
	if (err < 0)
		goto fail;
	err = fstat(f->fd, &st) ? -errno : 0;
	if (err)
		goto fail;
	f->ident.dev = st.st_dev;
	f->ident.ino = st.st_ino;
	f->ident.size = (uint64_t)st.st_size;
	f->ident.mtime_ns =
		st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec;
	f->uid = req->uid;
	f->owner = st.st_uid;
	err = -ESTALE;
	if (!same_inode(req, f))
		goto fail;
	*fp = f;
	return 0;
fail:
	symbolizer_file_free(f);
	return err;
}

/* --- files that a file names -------------------------------------------------- */

/* Where it may be, below each directory; false: no such place. */
static bool place_build_id(char *to, size_t cap, const char *beside,
			   const char *name, const char *hex)
{
	return strlen(hex) > 2 && snprintf(to, cap, ".build-id/%.2s/%s.debug",
					   hex, hex + 2) < (int)cap;
}

/* As gdb has it: the directory of the file, below that of debug files. */
static bool place_beside(char *to, size_t cap, const char *beside,
			 const char *name, const char *hex)
{
	const char *slash = beside ? strrchr(beside, '/') : NULL;

	return name && slash && *beside == '/' &&
	       snprintf(to, cap, "%.*s/%s", (int)(slash - beside), beside,
			name) < (int)cap;
}

static bool place_plain(char *to, size_t cap, const char *beside,
			const char *name, const char *hex)
{
	return name && snprintf(to, cap, "%s", name) < (int)cap;
}

/* What several files share; dh_dwz(1) puts it there. */
static bool place_dwz(char *to, size_t cap, const char *beside,
		      const char *name, const char *hex)
{
	return name && snprintf(to, cap, ".dwz/%s", name) < (int)cap;
}

static bool place_dwz_arch(char *to, size_t cap, const char *beside,
			   const char *name, const char *hex)
{
	struct utsname uts;

	return name && uname(&uts) == 0 &&
	       snprintf(to, cap, ".dwz/%s-linux-gnu/%s", uts.machine, name) <
		       (int)cap;
}

static bool (*const places[])(char *, size_t, const char *, const char *,
			      const char *) = {
	place_build_id, place_beside, place_plain, place_dwz, place_dwz_arch,
};

/* 'path' may have come from anywhere: it leads nowhere but below 'dir'. */
static int open_beneath(const char *dir, const char *path)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS,
	};
	struct found by = { .resolve = how.resolve };
	int at, place, fd;

	at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -errno;
	path += strspn(path, "/");
	place = (int)syscall(SYS_openat2, at, path, &how, sizeof(how));
	by.at = at;
	by.path = path;
	fd = place < 0 ? -errno : open_found(place, &by);
	if (place >= 0)
		close(place);
	close(at);
	return fd;
}

int symbolizer_open_debug(const char *const *dirs, const char *beside,
			  const uint8_t *build_id, size_t len, const char *name,
			  unsigned int nth)
{
	char hex[2 * SYMBOLIZER_DEBUG_ID_MAX + 1] = "", path[PATH_MAX];
	size_t n_dirs = 0, place = nth % ARRAY_SIZE(places);
	int fd;

	while (dirs[n_dirs])
		n_dirs++;
	if (nth / ARRAY_SIZE(places) >= n_dirs)
		return -ENOENT;
	for (size_t i = 0; i < MIN(len, (size_t)SYMBOLIZER_DEBUG_ID_MAX); i++)
		snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
	if (!places[place](path, sizeof(path), beside, name, hex))
		return -EAGAIN;
	fd = open_beneath(dirs[nth / ARRAY_SIZE(places)], path);
	return fd < 0 ? -EAGAIN : fd;
}
