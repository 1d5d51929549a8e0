// SPDX-License-Identifier: Apache-2.0
/* fetch_dir: see symbolize/fetch/fetch_dir.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "symbolize/fetch/fetch_dir.h"

#define FETCH_DIR_BUILD_ID ".build-id"
#define FETCH_DIR_TMP "tmp." /* and the process id */
#define FETCH_DIR_NAME (2 * FETCH_ID_MAX + sizeof("/.debug"))
/* What a file counts at least, so that many small ones have a bound too. */
#define FETCH_DIR_FILE_MIN (16U << 10)

/* A file that is there. */
struct fetch_file {
	char name[FETCH_DIR_NAME];
	uint64_t bytes;
	struct timespec mtime;
};

struct fetch_files {
	struct fetch_file *at;
	size_t n, cap;
};

static void fetch_dir_name(char name[FETCH_DIR_NAME], const struct fetch_id *id)
{
	size_t n =
		(size_t)snprintf(name, FETCH_DIR_NAME, "%02x/", id->bytes[0]);

	for (size_t i = 1; i < id->len; i++)
		n += (size_t)snprintf(name + n, 3, "%02x", id->bytes[i]);
	snprintf(name + n, FETCH_DIR_NAME - n, ".debug");
}

/*
 * All are made at once: when the time of change of ".build-id" is a new one, all
 * that the cache on disk has is read anew.
 */
static int make_dirs(int fd)
{
	char name[3];

	for (unsigned int i = 0; i < 256; i++) {
		snprintf(name, sizeof(name), "%02x", i);
		if (mkdirat(fd, name, 0700) && errno != EEXIST)
			return -errno;
	}
	return 0;
}

static int open_own(const char *path)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int err = 0;

	if (fd < 0 || fstat(fd, &st))
		err = -errno;
	else if (st.st_uid != geteuid() || st.st_mode & 022)
		err = -EPERM;
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

int fetch_dir_open(struct fetch_dir *d, const char *path, uint64_t max)
{
	int top, err = dirs_make_parents(path, 0755);

	memset(d, 0, sizeof(*d));
	d->fd = -1;
	d->max = max;
	snprintf(d->tmp, sizeof(d->tmp), FETCH_DIR_TMP "%d", (int)getpid());
	if (!err && mkdir(path, 0700) && errno != EEXIST)
		err = -errno;
	if (err)
		return err;
	top = open_own(path);
	if (top < 0)
		return top;
	if (mkdirat(top, FETCH_DIR_BUILD_ID, 0700) && errno != EEXIST)
		err = -errno;
	if (!err) {
		d->fd = openat(top, FETCH_DIR_BUILD_ID,
			       O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		err = d->fd < 0 ? -errno : make_dirs(d->fd);
	}
	close(top);
	if (err)
		fetch_dir_close(d);
	return err;
}

void fetch_dir_close(struct fetch_dir *d)
{
	if (d->fd >= 0)
		close(d->fd);
	d->fd = -1;
}

/* --- the budget ----------------------------------------------------------- */

static uint64_t file_bytes(const struct stat *st)
{
	return MAX((uint64_t)st->st_size, (uint64_t)FETCH_DIR_FILE_MIN);
}

/* What is no debug file is left alone. */
static int files_add(struct fetch_files *all, int fd, const char *dir,
		     const char *base)
{
	struct fetch_file *f;
	struct stat st;
	char name[FETCH_DIR_NAME];
	int n = snprintf(name, sizeof(name), "%s/%s", dir, base);

	if (n >= (int)sizeof(name) || fnmatch("*.debug", base, 0) ||
	    fstatat(fd, base, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode))
		return 0;
	if (VECTOR_ROOM(all->at, all->n, all->cap))
		return -ENOMEM;
	f = &all->at[all->n++];
	memcpy(f->name, name, sizeof(f->name));
	f->bytes = file_bytes(&st);
	f->mtime = st.st_mtim;
	return 0;
}

static int files_scan(struct fetch_files *all, int fd, const char *dir)
{
	int at = openat(fd, dir,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dirp = at < 0 ? NULL : fdopendir(at);
	struct dirent *e;
	int err = 0;

	while (dirp && !err && (e = readdir(dirp)))
		err = files_add(all, at, dir, e->d_name);
	if (dirp)
		closedir(dirp);
	else if (at >= 0)
		close(at);
	return err;
}

static int cmp_time(const void *a, const void *b)
{
	const struct timespec *x = &((const struct fetch_file *)a)->mtime;
	const struct timespec *y = &((const struct fetch_file *)b)->mtime;

	if (x->tv_sec != y->tv_sec)
		return x->tv_sec < y->tv_sec ? -1 : 1;
	return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

/* Counts what is there; the oldest files go until the rest is 'max' bytes. */
static int fetch_dir_cut(struct fetch_dir *d, uint64_t max)
{
	struct fetch_files all = { 0 };
	char dir[16];
	int err = 0;

	for (unsigned int i = 0; i < 256 && !err; i++) {
		snprintf(dir, sizeof(dir), "%02x", i);
		err = files_scan(&all, d->fd, dir);
	}
	d->bytes = 0;
	for (size_t i = 0; i < all.n; i++)
		d->bytes += all.at[i].bytes;
	if (all.n)
		qsort(all.at, all.n, sizeof(*all.at), cmp_time);
	for (size_t i = 0; i < all.n && d->bytes > max; i++) {
		if (unlinkat(d->fd, all.at[i].name, 0))
			continue;
		d->bytes -= all.at[i].bytes;
		d->evicted++;
	}
	d->scanned = true;
	free(all.at);
	return err;
}

/* --- one file ------------------------------------------------------------- */

int fetch_dir_create(struct fetch_dir *d)
{
	struct statvfs fs;
	int fd;

	if (fstatvfs(d->fd, &fs))
		return -errno;
	if (fs.f_bavail < fs.f_blocks / FETCH_DIR_FREE)
		return -ENOSPC;
	/* Of a process that ended in between. */
	fetch_dir_drop(d);
	fd = openat(d->fd, d->tmp, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	return fd < 0 ? -errno : fd;
}

int fetch_dir_take(struct fetch_dir *d, const struct fetch_id *id)
{
	char name[FETCH_DIR_NAME];
	struct stat st;
	uint64_t bytes;

	fetch_dir_name(name, id);
	if (fstatat(d->fd, d->tmp, &st, AT_SYMLINK_NOFOLLOW))
		return -errno;
	bytes = file_bytes(&st);
	if (bytes > d->max)
		return -EFBIG;
	if (!d->scanned || d->bytes + bytes > d->max)
		fetch_dir_cut(d, d->max - bytes);
	if (renameat(d->fd, d->tmp, d->fd, name))
		return -errno;
	d->bytes += bytes;
	return 0;
}

void fetch_dir_drop(struct fetch_dir *d)
{
	unlinkat(d->fd, d->tmp, 0);
}
