// SPDX-License-Identifier: Apache-2.0
/*
 * open: from the path of a watched process to a descriptor, without being led
 * where the process wants us. This runs in an opener (opener.h), since each
 * step of it may wait for a file system for ever.
 *
 * A file is looked up as O_PATH, which opens nothing and so wakes no device and
 * no FIFO. Only what is a regular file, lies on a file system that is made for
 * files, and has the device and inode that the kernel reported for the mapping,
 * is then opened for reading. They are compared first: -EOPNOTSUPP says that this
 * very file is on a file system that is not read, -EACCES that something there,
 * which may be another file, is not opened. The safest way is
 * /proc/PID/map_files, which is the mapping's own file. A path is resolved below
 * /proc/PID/root (openat2, Linux 5.6): a plain open() would follow an absolute
 * symlink to *our* root.
 *
 * Before a mount is entered, its device is written to *where.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "symbolize/file.h"
#include "symbolize/opener.h"

#define DELETED " (deleted)"
#define DELETED_LEN (sizeof(DELETED) - 1)

/* Those that <linux/magic.h> lacks; from the kernel's sources. */
#define CONFIGFS_SUPER_MAGIC 0x62656570
#define FUSE_CTL_SUPER_MAGIC 0x65735543
#define MQUEUE_SUPER_MAGIC 0x19800202
#define NFSD_SUPER_MAGIC 0x6e667364
#define RPC_PIPEFS_SUPER_MAGIC 0x67596969
#define SHIFTFS_SUPER_MAGIC 0x6a656a62
#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif
#ifndef STATX_MNT_ID_UNIQUE /* before Linux 6.8's headers */
#define STATX_MNT_ID_UNIQUE 0x4000U
#endif

/*
 * Where reading a regular file has effects, waits, or tells what is not in any
 * file. On FUSE a process of the watched may decide when a read or a close
 * returns; and where a user may have put a file system on top of FUSE: ecryptfs has
 * a set-user-id helper, shiftfs (Ubuntu) is mounted in user namespaces, and so is
 * overlayfs, of which opener_overlay.c tells who mounted it.
 */
static const long refused[] = {
	PROC_SUPER_MAGIC,
	SYSFS_MAGIC,
	TRACEFS_MAGIC,
	DEBUGFS_MAGIC,
	SECURITYFS_MAGIC,
	CGROUP_SUPER_MAGIC,
	CGROUP2_SUPER_MAGIC,
	BPF_FS_MAGIC,
	PSTOREFS_MAGIC,
	EFIVARFS_MAGIC,
	BINFMTFS_MAGIC,
	SELINUX_MAGIC,
	SMACK_MAGIC,
	NSFS_MAGIC,
	PIPEFS_MAGIC,
	SOCKFS_MAGIC,
	ANON_INODE_FS_MAGIC,
	DEVPTS_SUPER_MAGIC,
	RDTGROUP_SUPER_MAGIC,
	BDEVFS_MAGIC,
	CONFIGFS_SUPER_MAGIC,
	FUSE_CTL_SUPER_MAGIC,
	MQUEUE_SUPER_MAGIC,
	NFSD_SUPER_MAGIC,
	RPC_PIPEFS_SUPER_MAGIC,
	OPENPROM_SUPER_MAGIC,
	FUSE_SUPER_MAGIC,
	ECRYPTFS_SUPER_MAGIC,
	SHIFTFS_SUPER_MAGIC,
};

static bool path_deleted(const char *path)
{
	size_t len = strlen(path);

	return len > DELETED_LEN &&
	       strcmp(path + len - DELETED_LEN, DELETED) == 0;
}

static uint64_t dev_of(const struct statx *st)
{
	return makedev(st->stx_dev_major, st->stx_dev_minor);
}

/* What is known of it without asking its file system, if that may be. */
static int open_stat(int fd, struct statx *st)
{
	return statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		     STATX_TYPE | STATX_MODE | STATX_UID | STATX_INO |
			     STATX_MNT_ID,
		     st)
		       ? -errno
		       : 0;
}

static void open_enter_mount(int fd, uint64_t *where)
{
	struct statx st;

	if (!open_stat(fd, &st))
		__atomic_store_n(where, dev_of(&st), __ATOMIC_RELAXED);
}

/* --- places ----------------------------------------------------------------------- */

static int place_at(int dir, const char *path, uint64_t resolve)
{
	struct open_how how = {
		.flags = O_PATH | O_CLOEXEC,
		.resolve = resolve | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

/*
 * One component after the other, so that it is known which mount is entered. The
 * kernel's paths have no symlinks; one that is there now was put there.
 */
static int open_walk_path(int root, const char *path, uint64_t *where)
{
	char name[NAME_MAX + 1];
	int dir = root, fd = -ENOENT;
	size_t len;

	for (path += strspn(path, "/"); *path; path += strspn(path, "/")) {
		len = strcspn(path, "/");
		fd = -ENAMETOOLONG;
		if (len < sizeof(name)) {
			memcpy(name, path, len);
			name[len] = '\0';
			fd = place_at(dir, name,
				      RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS);
		}
		if (dir != root)
			close(dir);
		if (fd < 0)
			return fd;
		open_enter_mount(fd, where);
		dir = fd;
		path += len;
	}
	return fd;
}

static int find_below(int dir, const char *path, uint64_t *where)
{
	int fd = place_at(dir, path, RESOLVE_IN_ROOT | RESOLVE_NO_XDEV);

	return fd == -EXDEV ? open_walk_path(dir, path, where) : fd;
}

/*
 * 'path' behind the root of the process: /proc/PID/maps has paths as from the
 * reader's root or, where that is of another mount namespace, from the first root
 * of the process' namespace, and so has the link /proc/PID/root. NULL: it has no
 * such root in front.
 */
static const char *behind_root(const char *link, const char *path)
{
	char root[PATH_MAX];
	ssize_t len = readlink(link, root, sizeof(root));

	if (len <= 1 || len == sizeof(root) ||
	    strncmp(path, root, (size_t)len) != 0 || path[len] != '/')
		return NULL;
	return path + len;
}

/* Below the root of the process, or ours. */
static int find_below_root(pid_t pid, const char *path, uint64_t *where)
{
	char root[32] = "/";
	int dir, fd;

	if (pid)
		snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	open_enter_mount(dir, where);
	fd = find_below(dir, path, where);
	path = fd == -ENOENT && pid ? behind_root(root, path) : NULL;
	if (path)
		fd = find_below(dir, path, where);
	close(dir);
	return fd;
}

/* What the user of profd names, by any path, has no inode to compare. */
static int find_path(const struct symbolizer_open_req *req, const char *path,
		     uint64_t *where)
{
	int fd;

	if (req->pid || req->ino)
		return find_below_root(req->pid, path, where);
	fd = open(path, O_PATH | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int find_plain_path(const struct symbolizer_open_req *req,
			   uint64_t *where)
{
	char *path;
	int fd;

	path = strndup(req->path, strlen(req->path) - DELETED_LEN);
	if (!path)
		return -ENOMEM;
	fd = find_path(req, path, where);
	free(path);
	return fd;
}

static bool range_known(const struct symbolizer_open_req *req)
{
	return req->map_start < req->map_end;
}

static int find_mapping(const struct symbolizer_open_req *req)
{
	char path[80], self[16] = "self";
	int fd;

	if (!range_known(req))
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

static int open_find(const struct symbolizer_open_req *req,
		     enum symbolizer_way way, uint64_t *where)
{
	switch (way) {
	case SYMBOLIZER_BY_MAPPING:
		return find_mapping(req);
	case SYMBOLIZER_BY_EXE:
		return find_exe(req);
	case SYMBOLIZER_BY_PLAIN_PATH:
		return find_plain_path(req, where);
	default:
		return find_path(req, req->path, where);
	}
}

/* --- whether it is the one ---------------------------------------------------------- */

enum verdict {
	VERDICT_OTHER,
	VERDICT_SAME,
	VERDICT_ASK, /* the kernel, once it is open: opener_inode_is() */
};

/*
 * By a path anybody may be led anywhere. So what is opened for the question alone
 * has at least the right number, and is a file that all users may read.
 */
static bool may_ask_by_path(const struct symbolizer_open_req *req,
			    const struct statx *st, long fs_type)
{
	if (st->stx_ino != req->ino || !(st->stx_mode & S_IROTH))
		return false;
	return fs_type == OVERLAYFS_SUPER_MAGIC ||
	       opener_mount_is(st->stx_mnt_id, req->dev, req->pid);
}

/*
 * stat(2) and the records of mappings do not agree everywhere: on btrfs stat(2)
 * has a device for each subvolume; on overlayfs a record may have the layer
 * beneath (before Linux 6.18, in /proc before 6.7), and stat(2) a device of its
 * own where layers are on several file systems. Both are mounted by users, too,
 * who then choose the inode numbers: an equal number alone proves nothing, nor
 * does the way by which the file was found, since a process may have mapped
 * another file there, or executed another, since.
 */
static enum verdict open_compare(const struct symbolizer_open_req *req,
				 enum symbolizer_way way,
				 const struct statx *st, long fs_type)
{
	bool asks = fs_type == OVERLAYFS_SUPER_MAGIC ||
		    fs_type == (long)BTRFS_SUPER_MAGIC;

	if (!req->ino)
		return req->pid ? VERDICT_OTHER : VERDICT_SAME;
	if (dev_of(st) == req->dev && st->stx_ino == req->ino)
		return VERDICT_SAME;
	if (way != SYMBOLIZER_BY_MAPPING && way != SYMBOLIZER_BY_EXE)
		asks = asks && may_ask_by_path(req, st, fs_type);
	return asks ? VERDICT_ASK : VERDICT_OTHER;
}

/* An inode number is given to another file as soon as the first is deleted. */
static bool same_generation(const struct symbolizer_open_req *req, int fd)
{
	int generation = 0;

	return !req->generation || ioctl(fd, FS_IOC_GETVERSION, &generation) ||
	       (uint32_t)generation == (uint32_t)req->generation;
}

static bool is_the_one(const struct symbolizer_open_req *req,
		       enum verdict verdict, int fd)
{
	if (verdict == VERDICT_ASK)
		return opener_inode_is(fd, req);
	return same_generation(req, fd);
}

static bool is_refused(long fs_type)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (fs_type == refused[i])
			return true;
	return false;
}

/*
 * A regular file where files are. 'pid' is of a process that may see its mount;
 * 'proven': it was compared with what the kernel reported, and is the one.
 */
static int check_place(const struct statx *st, long fs_type, pid_t pid,
		       bool proven)
{
	if (!S_ISREG(st->stx_mode))
		return -EACCES;
	if (!is_refused(fs_type) &&
	    (fs_type != OVERLAYFS_SUPER_MAGIC ||
	     opener_overlay_trusted(st->stx_mnt_id, dev_of(st), pid)))
		return 0;
	return proven ? -EOPNOTSUPP : -EACCES;
}

/* The path that the kernel has for it now, seen from here. */
static bool path_is(int place, const char *path)
{
	char self[32], now[PATH_MAX];
	ssize_t len;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", place);
	len = readlink(self, now, sizeof(now));
	return len > 0 && (size_t)len < sizeof(now) &&
	       strlen(path) == (size_t)len &&
	       memcmp(path, now, (size_t)len) == 0;
}

/*
 * Two files of one overlay may be reported by one number, if their layers are on
 * several file systems (Linux 6.18); so may files of two subvolumes of btrfs, as
 * long as no generation is known. Then one of them may be made by a user for the
 * sake of the other, who cannot make a file of root's, nor give his own the path of
 * another where he mounts nothing.
 */
static bool numbers_suffice(const struct symbolizer_open_req *req, int place,
			    const struct statx *st, long fs_type)
{
	if (fs_type == OVERLAYFS_SUPER_MAGIC
		    ? !opener_mount_is(st->stx_mnt_id, req->dev, req->pid)
		    : req->generation != 0)
		return true;
	if (!st->stx_uid && !(st->stx_mode & (S_IWGRP | S_IWOTH)))
		return true;
	return path_is(place, req->path) && opener_mounts_trusted(req->pid);
}

/* 0: it may be opened; then *verdict is not VERDICT_OTHER. */
static int open_check(const struct symbolizer_open_req *req,
		      enum symbolizer_way way, int place, struct statx *st,
		      enum verdict *verdict)
{
	struct statfs fs;
	int err = open_stat(place, st);

	if (err)
		return err;
	if (fstatfs(place, &fs))
		return -errno;
	*verdict = open_compare(req, way, st, fs.f_type);
	if (*verdict == VERDICT_OTHER)
		return -ESTALE;
	err = check_place(st, fs.f_type, req->pid, *verdict == VERDICT_SAME);
	if (!err && *verdict == VERDICT_ASK &&
	    !numbers_suffice(req, place, st, fs.f_type))
		err = -EACCES;
	return err;
}

/* --- opening it ------------------------------------------------------------------------ */

/* How a place was found, and may be found once more; path NULL: not so. */
struct found {
	int at;
	const char *path;
	uint64_t resolve;
};

static int64_t open_ns(const struct timespec *ts)
{
	return ts->tv_sec * 1000000000LL + ts->tv_nsec;
}

/* Since Linux 6.8; 0: not known. */
static uint64_t mount_for_ever(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		  STATX_MNT_ID_UNIQUE, &st) ||
	    !(st.stx_mask & STATX_MNT_ID_UNIQUE))
		return 0;
	return st.stx_mnt_id;
}

/*
 * Closing may wait for a file system (flush), and who waits there may be beyond
 * SIGKILL. So it is done once here, on a copy, before anybody else has it.
 */
static void close_copy(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy >= 0)
		close(copy);
}

/*
 * A descriptor for reading in place of one that is a mere place; by its way once
 * more where there is no /proc.
 */
static int open_reopen(int place, const struct statx *was,
		       const struct found *by, struct symbolizer_stat *out)
{
	struct open_how how = {
		.flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC,
		.resolve = by->resolve,
	};
	struct stat st;
	char self[32];
	int fd;

	snprintf(self, sizeof(self), "/proc/self/fd/%d", place);
	fd = open(self, (int)how.flags);
	if (fd < 0 && errno == ENOENT && by->path)
		fd = (int)syscall(SYS_openat2, by->at, by->path, &how,
				  sizeof(how));
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) || st.st_dev != dev_of(was) ||
	    st.st_ino != was->stx_ino) {
		close(fd);
		return -ESTALE;
	}
	close_copy(fd);
	*out = (struct symbolizer_stat){ st.st_dev,
					 st.st_ino,
					 (uint64_t)st.st_size,
					 open_ns(&st.st_mtim),
					 open_ns(&st.st_ctim),
					 mount_for_ever(fd),
					 st.st_uid,
					 0 };
	return fd;
}

int symbolizer_open_way(const struct symbolizer_open_req *req,
			enum symbolizer_way way, uint64_t *where,
			struct symbolizer_stat *st)
{
	/* Below our own root, where no symlink could be changed meanwhile. */
	struct found by = { AT_FDCWD, NULL, RESOLVE_NO_SYMLINKS };
	int place = open_find(req, way, where), err;
	struct statx sx;
	enum verdict verdict = VERDICT_OTHER;

	if (place < 0)
		return place;
	open_enter_mount(place, where);
	if (way == SYMBOLIZER_BY_PATH && !req->pid)
		by.path = req->path;
	err = open_check(req, way, place, &sx, &verdict);
	if (!err)
		err = open_reopen(place, &sx, &by, st);
	close(place);
	if (err < 0 || is_the_one(req, verdict, err))
		return err;
	close(err);
	return -ESTALE;
}

int symbolizer_open_ways(const struct symbolizer_open_req *req,
			 enum symbolizer_way ways[SYMBOLIZER_N_WAYS])
{
	int n = 0;

	if (req->by_exe) {
		ways[n++] = SYMBOLIZER_BY_EXE;
		return n;
	}
	if (range_known(req))
		ways[n++] = SYMBOLIZER_BY_MAPPING;
	ways[n++] = SYMBOLIZER_BY_PATH;
	/* Without its mark the path is a guess that only an id can prove. */
	if (path_deleted(req->path) && req->build_id_len)
		ways[n++] = SYMBOLIZER_BY_PLAIN_PATH;
	return n;
}

bool symbolizer_open_same(const struct symbolizer_open_req *req,
			  const struct symbolizer_ident *id)
{
	size_t len = MIN(req->build_id_len, (size_t)SYMBOLIZER_BUILD_ID_MAX);

	return !len || (id->build_id_len == len &&
			memcmp(id->build_id, req->build_id, len) == 0);
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
static int open_beneath(const char *dir, const char *path, uint64_t *where)
{
	struct found by = { .resolve =
				    RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS };
	struct symbolizer_stat st;
	int at, place, err;
	struct statx sx;
	struct statfs fs;

	at = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (at < 0)
		return -errno;
	open_enter_mount(at, where);
	path += strspn(path, "/");
	place = err = place_at(at, path, by.resolve);
	by.at = at;
	by.path = path;
	if (place >= 0) {
		open_enter_mount(place, where);
		err = open_stat(place, &sx);
		if (!err && fstatfs(place, &fs))
			err = -errno;
		if (!err)
			err = check_place(&sx, fs.f_type, 0, true);
		if (!err)
			err = open_reopen(place, &sx, &by, &st);
		close(place);
	}
	close(at);
	return err;
}

int symbolizer_open_debug(const char *const *dirs, const char *beside,
			  const uint8_t *build_id, size_t len, const char *name,
			  unsigned int nth, uint64_t *where)
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
	fd = open_beneath(dirs[nth / ARRAY_SIZE(places)], path, where);
	return fd < 0 ? -EAGAIN : fd;
}
