// SPDX-License-Identifier: Apache-2.0
/*
 * open: from the path in a watched process to a descriptor, without letting the
 * process redirect us to another file. This runs in an opener (opener.h), since
 * each step may wait for a file system for ever.
 *
 * A file is first looked up with O_PATH, which has no effect on devices and
 * FIFOs. It is opened for reading only if it is a regular file, on a file
 * system that is made for files, and has the device and inode that the kernel
 * reported for the mapping. These are compared first: -SYMBOLIZER_EPLACE means that
 * this very file is on a file system that is not read, -EACCES that what was
 * found, possibly another file, must not be opened. The safest way is
 * /proc/PID/map_files, which leads to the mapping's own file. A path is
 * resolved below /proc/PID/root (openat2, Linux 5.6): a plain open() would
 * follow an absolute symlink from *our* root.
 *
 * The device of each mount is written to *where before the mount is entered.
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

/* Not in <linux/magic.h>; from the kernel's sources. */
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
 * File systems where reading a regular file has side effects, blocks, or
 * returns generated data. On FUSE a watched process may decide when a read or a
 * close returns. The same holds where users can stack a file system on FUSE:
 * ecryptfs has a set-user-id helper, shiftfs (Ubuntu) can be mounted in user
 * namespaces. So can overlayfs, which opener_overlay.c checks.
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

static uint64_t dev_of(const struct statx *st)
{
	return makedev(st->stx_dev_major, st->stx_dev_minor);
}

/* Without a request to a file server, if possible. */
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

/* --- lookup: to an O_PATH descriptor, or -errno --------------------------- */

static int place_plain(const char *path)
{
	int fd = open(path, O_PATH | O_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

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
 * Component by component, to know which mount is entered. Paths from the kernel
 * have no symlinks; one that is there now was added later.
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
 * 'path' relative to the root of the process, NULL: it does not begin with
 * that. Paths in /proc/PID/maps and the link /proc/PID/root are relative to the
 * reader's root or, from another mount namespace, to the initial root of the
 * process's namespace.
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

/* Below the root of the process; pid 0: below ours. */
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

/* A path that the user of profd gave comes without an inode to compare. */
static int find_path(const struct symbolizer_open_req *req, const char *path,
		     uint64_t *where)
{
	if (req->pid || req->ino)
		return find_below_root(req->pid, path, where);
	return place_plain(path);
}

static int find_plain_path(const struct symbolizer_open_req *req,
			   uint64_t *where)
{
	char *path;
	int fd;

	path = strndup(req->path,
		       strlen(req->path) - strlen(SYMBOLIZER_DELETED));
	if (!path)
		return -ENOMEM;
	fd = find_path(req, path, where);
	free(path);
	return fd;
}

static int find_mapping(const struct symbolizer_open_req *req)
{
	char path[80], self[16] = "self";

	if (req->map_start >= req->map_end)
		return -ENOENT;
	if (req->pid)
		snprintf(self, sizeof(self), "%d", (int)req->pid);
	snprintf(path, sizeof(path), "/proc/%s/map_files/%llx-%llx", self,
		 (unsigned long long)req->map_start,
		 (unsigned long long)req->map_end);
	return place_plain(path);
}

static int find_exe(const struct symbolizer_open_req *req)
{
	char path[32];

	if (!req->pid)
		return -ENOENT;
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)req->pid);
	return place_plain(path);
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

/* --- whether it is the file of the request -------------------------------- */

enum verdict {
	VERDICT_OTHER,
	VERDICT_SAME,
	VERDICT_ASK, /* opener_inode_is() decides, once the file is open */
};

/*
 * A path may lead to any file. So a file that is opened just for
 * opener_inode_is() has at least the right number, and all users may read it.
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
 * stat(2) and mapping records differ on two file systems: on btrfs stat(2) has
 * a device for each subvolume; on overlayfs a record may have the numbers of
 * the layer beneath (before Linux 6.18, in /proc before 6.7), and stat(2) a
 * device of its own if layers are on several file systems. Users can mount both
 * and so choose inode numbers: an equal number alone proves nothing. Nor does
 * the way by which the file was found, since the process may by now have mapped
 * or executed another file.
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

static bool is_requested_file(const struct symbolizer_open_req *req,
			      enum verdict verdict, int fd)
{
	int generation = 0;

	if (verdict == VERDICT_ASK)
		return opener_inode_is(fd, req);
	/* After a file is deleted, its inode number may be reused at once. */
	return !req->generation || ioctl(fd, FS_IOC_GETVERSION, &generation) ||
	       (uint32_t)generation == (uint32_t)req->generation;
}

static bool is_refused(long fs_type)
{
	for (size_t i = 0; i < ARRAY_SIZE(refused); i++)
		if (fs_type == refused[i])
			return true;
	return false;
}

/*
 * Whether it may be opened. 'pid' is a process that may see its mount;
 * 'proven': it is the file that the kernel reported.
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
	return proven ? -SYMBOLIZER_EPLACE : -EACCES;
}

/* Whether it has this path now, from our root. */
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
 * Two files of one overlay may be reported with the same number if its layers
 * are on several file systems (Linux 6.18); so may files of two btrfs
 * subvolumes while no generation is known. A user could create a file that
 * collides with another. But no user can create a file of root's, or give a
 * file the path of another without mounting something.
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

/* --- opening -------------------------------------------------------------- */

/* The lookup that found a place, to repeat it; path NULL: impossible. */
struct found {
	int at;
	const char *path;
	uint64_t resolve;
};

static int64_t open_ns(const struct timespec *ts)
{
	return ts->tv_sec * 1000000000LL + ts->tv_nsec;
}

/* Since Linux 6.8; 0: unknown. */
static uint64_t mount_unique_id(int fd)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC,
		  STATX_MNT_ID_UNIQUE, &st) ||
	    !(st.stx_mask & STATX_MNT_ID_UNIQUE))
		return 0;
	return st.stx_mnt_id;
}

/*
 * Closing may wait for a file system (flush), even beyond SIGKILL. So a copy is
 * closed here first, where it blocks only an opener.
 */
static void close_copy(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	if (copy >= 0)
		close(copy);
}

/* Opens a place for reading; without /proc, by repeating the lookup. */
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
	*out = (struct symbolizer_stat){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.size = (uint64_t)st.st_size,
		.mtime_ns = open_ns(&st.st_mtim),
		.ctime_ns = open_ns(&st.st_ctim),
		.mount = mount_unique_id(fd),
		.owner = st.st_uid,
	};
	return fd;
}

/* --- debug files in the root of a process ----------------------------------- */

#define OPEN_OWN_DIR "usr/lib/debug"

/* The root of a process, or ours. A descriptor or -errno. */
static int own_root(pid_t pid, struct statx *st)
{
	char root[32] = "/";
	int dir, err;

	if (pid)
		snprintf(root, sizeof(root), "/proc/%d/root", (int)pid);
	dir = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0)
		return -errno;
	err = open_stat(dir, st);
	if (!err)
		return dir;
	close(dir);
	return err;
}

/*
 * Where debug files of the executable 'sx' may be. In another root than ours only
 * if it has a directory of debug files at all: other files of it can be shared with
 * equal ones of other roots, as those of most containers are. Only in the mount
 * that the executable is in, so that nothing is entered that could hang.
 */
static void own_find(pid_t pid, const struct statx *sx,
		     struct symbolizer_own *own)
{
	struct statx root, ours;
	int dir = own_root(pid, &root), at;

	if (dir < 0)
		return;
	*own = (struct symbolizer_own){
		.pid = pid,
		.dev = dev_of(&root),
		.ino = root.stx_ino,
		.mount = sx->stx_mnt_id,
		.owner = sx->stx_uid,
	};
	at = own_root(0, &ours);
	if (at >= 0 && dev_of(&ours) == own->dev && ours.stx_ino == own->ino) {
		own->in = SYMBOLIZER_OWN_BESIDE;
	} else if (at >= 0 && root.stx_mnt_id == own->mount) {
		close(at);
		at = place_at(dir, OPEN_OWN_DIR,
			      RESOLVE_IN_ROOT | RESOLVE_NO_XDEV);
		if (at >= 0)
			own->in = SYMBOLIZER_OWN_BESIDE | SYMBOLIZER_OWN_DIRS;
	}
	if (at >= 0)
		close(at);
	close(dir);
}

int symbolizer_open_way(const struct symbolizer_open_req *req,
			enum symbolizer_way way, uint64_t *where,
			struct symbolizer_stat *st)
{
	/* Symlinks could have changed since the lookup. */
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
	if (err >= 0 && !is_requested_file(req, verdict, err)) {
		close(err);
		err = -ESTALE;
	}
	/* Layers of overlays may be shared by users who trust each other less. */
	if (err >= 0 && verdict == VERDICT_SAME)
		own_find(req->pid, &sx, &st->own);
	return err;
}

/* --- for jit/open_map.c --------------------------------------------------- */

int symbolizer_place_below(pid_t pid, int root, const char *path,
			   uint64_t *where)
{
	if (root < 0)
		return find_below_root(pid, path, where);
	open_enter_mount(root, where);
	return find_below(root, path, where);
}

int symbolizer_place_open(int place, pid_t pid, uint64_t *where,
			  struct symbolizer_stat *st)
{
	struct found by = { AT_FDCWD, NULL, RESOLVE_NO_SYMLINKS };
	struct statfs fs;
	struct statx sx;
	int err;

	open_enter_mount(place, where);
	err = open_stat(place, &sx);
	if (!err && fstatfs(place, &fs))
		err = -errno;
	if (!err)
		err = check_place(&sx, fs.f_type, pid, false);
	return err ? err : open_reopen(place, &sx, &by, st);
}

/* --- debug files ---------------------------------------------------------- */

#define DEBUG_PLACES 5U /* in each directory of debug files */
#define DEBUG_BESIDE 2U /* next to the executable, and in .debug there */

/* The path of a debug file in the i-th place; false: it cannot be there. */
static bool debug_place(unsigned int i, const char *beside, const char *name,
			const char *hex, char path[PATH_MAX])
{
	const char *slash = beside ? strrchr(beside, '/') : NULL;
	struct utsname uts;
	int n = -1;

	if (i == 0 && strlen(hex) > 2)
		n = snprintf(path, PATH_MAX, ".build-id/%.2s/%s.debug", hex,
			     hex + 2);
	/* As gdb: the executable's directory, below that of debug files. */
	else if (i == 1 && name && *name != '/' && slash && *beside == '/')
		n = snprintf(path, PATH_MAX, "%.*s/%s", (int)(slash - beside),
			     beside, name);
	else if (i == 2 && name)
		n = snprintf(path, PATH_MAX, "%s", name);
	/* Where dh_dwz(1) puts what several files share. */
	else if (i == 3 && name)
		n = snprintf(path, PATH_MAX, ".dwz/%s", name);
	else if (i == 4 && name && uname(&uts) == 0)
		n = snprintf(path, PATH_MAX, ".dwz/%s-linux-gnu/%s",
			     uts.machine, name);
	return n >= 0 && n < PATH_MAX;
}

/* 'path' may come from a hostile file: it cannot lead out of 'dir'. */
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

/* The i-th place in the root of the process; false: it cannot be there. */
static bool own_place(unsigned int i, const char *const *dirs, size_t n_dirs,
		      const struct symbolizer_own *own, const char *beside,
		      const char *name, const char *hex, char path[PATH_MAX])
{
	const char *slash = beside ? strrchr(beside, '/') : NULL;
	char rest[PATH_MAX];
	int n = -1;

	if (i < n_dirs * DEBUG_PLACES) {
		if (own->in & SYMBOLIZER_OWN_DIRS &&
		    debug_place(i % DEBUG_PLACES, beside, name, hex, rest))
			n = snprintf(path, PATH_MAX, "%s/%s",
				     dirs[i / DEBUG_PLACES], rest);
	} else if (own->in & SYMBOLIZER_OWN_BESIDE && name && *name == '/') {
		if (i == n_dirs * DEBUG_PLACES)
			n = snprintf(path, PATH_MAX, "%s", name);
	} else if (own->in & SYMBOLIZER_OWN_BESIDE && name && slash &&
		   *beside == '/') {
		n = snprintf(path, PATH_MAX, "%.*s/%s%s", (int)(slash - beside),
			     beside,
			     i == n_dirs * DEBUG_PLACES ? "" : ".debug/", name);
	}
	return n >= 0 && n < PATH_MAX;
}

/* Whether nobody else could have made it than the executable. */
static bool own_trusted(const struct symbolizer_own *own,
			const struct statx *sx)
{
	return sx->stx_mnt_id == own->mount && sx->stx_uid == own->owner &&
	       !(sx->stx_mode & (S_IWGRP | S_IWOTH));
}

static int own_open(const struct symbolizer_own *own, const char *path,
		    uint64_t *where)
{
	const struct found by = { AT_FDCWD, NULL, 0 };
	struct symbolizer_stat st;
	struct statx root, sx;
	struct statfs fs;
	int dir = own_root(own->pid, &root), place, err;

	if (dir < 0 && !(own->in & SYMBOLIZER_OWN_DIRS))
		dir = own_root(0, &root); /* the process is gone */
	if (dir < 0)
		return dir;
	/* The process may have changed its root, or be another one. */
	place = dev_of(&root) != own->dev || root.stx_ino != own->ino ? -ESTALE
		: own->in & SYMBOLIZER_OWN_DIRS
			? place_at(dir, path, RESOLVE_IN_ROOT | RESOLVE_NO_XDEV)
			: find_below(dir, path, where);
	close(dir);
	if (place < 0)
		return place;
	err = open_stat(place, &sx);
	if (!err && !own_trusted(own, &sx))
		err = -EACCES;
	if (!err && fstatfs(place, &fs))
		err = -errno;
	if (!err)
		err = check_place(&sx, fs.f_type, own->pid, true);
	if (!err)
		err = open_reopen(place, &sx, &by, &st);
	close(place);
	return err;
}

/* The path of the executable in the root of its process. */
static const char *own_path(const struct symbolizer_own *own,
			    const char *beside)
{
	const char *behind = NULL;
	char root[32];

	if (beside && own->pid) {
		snprintf(root, sizeof(root), "/proc/%d/root", (int)own->pid);
		behind = behind_root(root, beside);
	}
	return behind ? behind : beside;
}

int symbolizer_open_debug(const char *const *dirs,
			  const struct symbolizer_own *own, const char *beside,
			  const uint8_t *build_id, size_t len, const char *name,
			  unsigned int nth, uint64_t *where)
{
	char hex[2 * SYMBOLIZER_DEBUG_ID_MAX + 1] = "", path[PATH_MAX];
	size_t n_dirs = 0;
	int fd;

	while (dirs[n_dirs])
		n_dirs++;
	for (size_t i = 0; i < MIN(len, (size_t)SYMBOLIZER_DEBUG_ID_MAX); i++)
		snprintf(hex + 2 * i, 3, "%02x", build_id[i]);
	/* The first places are those in the root of the process. */
	if (nth < n_dirs * DEBUG_PLACES + DEBUG_BESIDE) {
		if (!own_place(nth, dirs, n_dirs, own, own_path(own, beside),
			       name, hex, path))
			return -EAGAIN;
		fd = own_open(own, path, where);
		return fd < 0 ? -EAGAIN : fd;
	}
	nth -= (unsigned int)n_dirs * DEBUG_PLACES + DEBUG_BESIDE;
	if (nth / DEBUG_PLACES >= n_dirs)
		return -ENOENT;
	if (!debug_place(nth % DEBUG_PLACES, beside, name, hex, path))
		return -EAGAIN;
	fd = open_beneath(dirs[nth / DEBUG_PLACES], path, where);
	return fd < 0 ? -EAGAIN : fd;
}
