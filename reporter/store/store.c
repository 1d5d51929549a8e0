// SPDX-License-Identifier: Apache-2.0
/*
 * store: see reporter/store/store.h. This file: the directories, their permissions and
 * lock, and the way of a window into them; keep.c removes, list.c reads.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "reporter/store/internal.h"

#define STORE_MODE 0750
#define STORE_LOCK ".lock"
#define STORE_COPIES 1000

/* --- descriptors held back ------------------------------------------------- */

/* While no window is written; a failure leaves fewer. */
static void store_spare_fill(struct store *s)
{
	int fd;

	while (s->nspare < STORE_SPARE && s->dirfd >= 0) {
		fd = fcntl(s->dirfd, F_DUPFD_CLOEXEC, 0);
		if (fd < 0)
			return;
		s->spare[s->nspare++] = fd;
	}
}

static void store_spare_close(struct store *s)
{
	while (s->nspare)
		close(s->spare[--s->nspare]);
}

/* --- directories ------------------------------------------------------------ */

/*
 * A directory has to belong to the user that profd runs as and to be writable
 * for that user alone: others could create names in it, or remove our files.
 */
static int store_open_own(int dirfd, const char *path)
{
	int fd = openat(dirfd, path,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;
	int err = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st))
		err = -errno;
	else if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		err = -EPERM;
	if (!err)
		return fd;
	close(fd);
	return err;
}

int store_open_day(int dirfd, const char *day)
{
	return store_open_own(dirfd, *day ? day : ".");
}

DIR *store_read_dir(int dirfd)
{
	int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

static int store_compare_days(const void *a, const void *b)
{
	return strcmp(a, b);
}

int store_days(int dirfd, char (**daysp)[STORE_DAY_MAX], size_t *n)
{
	DIR *dir = store_read_dir(dirfd);
	char(*days)[STORE_DAY_MAX] = NULL;
	struct dirent *de;
	size_t cap = 0;
	int err = 0;

	*n = 0;
	if (!dir)
		return -errno;
	while (!err && (de = readdir(dir))) {
		if (!store_day_parse(de->d_name))
			continue;
		err = VECTOR_ROOM(days, *n, cap);
		if (!err)
			memcpy(days[(*n)++], de->d_name, STORE_DAY_MAX);
	}
	closedir(dir);
	if (err) {
		free(days);
		return err;
	}
	if (*n)
		qsort(days, *n, sizeof(*days), store_compare_days);
	*daysp = days;
	return 0;
}

static int store_lock(struct store *s)
{
	s->lockfd = openat(s->dirfd, STORE_LOCK,
			   O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (s->lockfd < 0)
		return -errno;
	if (flock(s->lockfd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	/* On a full disk it stays empty. */
	if (!ftruncate(s->lockfd, 0))
		dprintf(s->lockfd, "%d\n", (int)getpid());
	return 0;
}

pid_t store_holder(const char *path)
{
	int dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;
	char text[16] = "";

	if (dirfd >= 0)
		fd = openat(dirfd, STORE_LOCK,
			    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof(text) - 1) < 0)
		*text = '\0';
	if (fd >= 0)
		close(fd);
	if (dirfd >= 0)
		close(dirfd);
	return (pid_t)strtol(text, NULL, 10);
}

static bool store_exists(int dirfd, const char *stem, enum store_kind kind)
{
	char name[STORE_FILE_MAX];

	store_file(name, stem, kind);
	return !faccessat(dirfd, name, F_OK, AT_SYMLINK_NOFOLLOW);
}

/* A profile of waits or its side file, of this user, whose window is gone. */
static bool store_is_orphan(int dirfd, const char *file,
			    const struct store_name *name)
{
	char stem[STORE_STEM_MAX];
	struct stat st;

	if (name->kind <= STORE_TIMES)
		return false;
	store_name_stem(name, file, stem);
	for (int kind = 0; kind < STORE_TIMES; kind++)
		if (store_exists(dirfd, stem, kind))
			return false;
	return !fstatat(dirfd, file, &st, AT_SYMLINK_NOFOLLOW) &&
	       S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

/* By our own names only: the directory may hold other files. */
static void store_sweep_dir(int dirfd, uint64_t *swept)
{
	DIR *dir = store_read_dir(dirfd);
	struct store_name name;
	struct dirent *de;

	while (dir && (de = readdir(dir)))
		if (store_name_parse(de->d_name, &name) &&
		    (name.tmp || store_is_orphan(dirfd, de->d_name, &name)) &&
		    !unlinkat(dirfd, de->d_name, 0))
			++*swept;
	if (dir)
		closedir(dir);
}

static int store_sweep(struct store *s, uint64_t *swept)
{
	char(*days)[STORE_DAY_MAX] = NULL;
	int err, fd;
	size_t i, n;

	err = store_days(s->dirfd, &days, &n);
	if (err)
		return err;
	store_sweep_dir(s->dirfd, swept);
	for (i = 0; i < n; i++) {
		fd = store_open_day(s->dirfd, days[i]);
		if (fd < 0)
			continue;
		store_sweep_dir(fd, swept);
		close(fd);
	}
	free(days);
	return 0;
}

static void store_close(struct store *s)
{
	if (s->lockfd >= 0)
		close(s->lockfd);
	if (s->dirfd >= 0)
		close(s->dirfd);
	s->lockfd = s->dirfd = -1;
}

static int store_open(struct store *s)
{
	int err = dirs_make_parents(s->path, 0755);

	if (!err && mkdir(s->path, STORE_MODE) && errno != EEXIST)
		err = -errno;
	if (err)
		return err;
	s->dirfd = store_open_own(AT_FDCWD, s->path);
	return s->dirfd < 0 ? s->dirfd : store_lock(s);
}

int store_new(struct store **sp, const struct store_opts *opts, uint64_t *swept)
{
	struct store *s = calloc(1, sizeof(*s));
	int err = -ENOMEM;

	if (!s)
		return -ENOMEM;
	pthread_mutex_init(&s->mutex, NULL);
	s->dirfd = s->lockfd = -1;
	s->opts = *opts;
	s->path = strdup(opts->path);
	if (s->path)
		err = store_open(s);
	if (!err)
		err = store_sweep(s, swept);
	if (err) {
		store_free(s);
		return err;
	}
	store_spare_fill(s);
	*sp = s;
	return err;
}

void store_free(struct store *s)
{
	if (!s)
		return;
	store_spare_close(s);
	store_close(s);
	pthread_mutex_destroy(&s->mutex);
	free(s->path);
	free(s);
}

const char *store_dir(const struct store *s)
{
	return s->path;
}

/* After the directory was removed: creates and locks a new one. */
static int store_again(struct store *s)
{
	struct store fresh = { .path = s->path, .dirfd = -1, .lockfd = -1 };
	int err = store_open(&fresh);

	if (err) {
		store_close(&fresh);
		return err;
	}
	store_close(s);
	s->dirfd = fresh.dirfd;
	s->lockfd = fresh.lockfd;
	s->scanned = 0;
	return 0;
}

/* --- a window -------------------------------------------------------------- */

static int store_create(struct store_write *w)
{
	struct store *s = w->store;
	char name[STORE_FILE_MAX];

	if (mkdirat(s->dirfd, w->window.day, STORE_MODE) && errno != EEXIST)
		return -errno;
	w->dirfd = store_open_day(s->dirfd, w->window.day);
	if (w->dirfd < 0)
		return w->dirfd;
	store_file(name, w->window.stem, (enum store_kind)w->window.format);
	return reporter_outfile_open_at(&w->file, w->dirfd, name);
}

int store_write_begin(struct store_write *w, struct store *s, const char *host,
		      int64_t wall_ns, uint64_t duration_ns,
		      enum reporter_format format)
{
	struct store_name name;
	char file[STORE_FILE_MAX];
	int err;

	*w = STORE_WRITE_NONE;
	w->store = s;
	w->window.format = format;
	store_day(w->window.day, wall_ns);
	store_stem(w->window.stem, host, wall_ns, duration_ns);
	store_file(file, w->window.stem, (enum store_kind)format);
	if (!store_name_parse(file, &name))
		return -EINVAL; /* a date beyond the year 9999 */
	w->window.begin_ns = name.begin * (int64_t)CLOCK_NSEC_PER_SEC;
	w->window.duration_ns = name.seconds * CLOCK_NSEC_PER_SEC;
	pthread_mutex_lock(&s->mutex);
	s->newest = MAX(s->newest, name.begin + (int64_t)name.seconds);
	store_spare_close(s);
	w->reserved = keep_estimate(s);
	err = keep_make_room(s, w->reserved);
	s->reserved += w->reserved;
	s->writers++;
	if (!err)
		err = store_create(w);
	if (err == -ENOENT) {
		err = store_again(s);
		if (!err)
			err = store_create(w);
	}
	pthread_mutex_unlock(&s->mutex);
	return err;
}

/*
 * A name with no file of any kind: a side file that a user left behind must not
 * become that of another window.
 */
static int store_pick(struct store_write *w)
{
	char stem[STORE_STEM_MAX], file[STORE_FILE_MAX], *name;
	size_t len = strlen(w->window.stem);
	int kind, n = 0;

	memcpy(stem, w->window.stem, len + 1);
	for (kind = 0; kind < STORE_KINDS && n <= STORE_COPIES; kind++) {
		if (!store_exists(w->dirfd, stem, kind))
			continue;
		snprintf(stem + len, sizeof(stem) - len, "-%d", ++n);
		kind = -1;
	}
	if (!n)
		return 0;
	store_file(file, stem, (enum store_kind)w->window.format);
	name = strdup(file);
	if (!name)
		return -ENOMEM;
	free(w->file.name);
	w->file.name = name;
	return 0;
}

/* The bytes of a file that is complete. */
static uint64_t store_size(const struct store_write *w)
{
	struct stat st;

	return fstat(w->file.fd, &st) ? 0 : st.st_size;
}

int store_write_commit(struct store_write *w)
{
	uint64_t bytes = store_size(w);
	struct store_name name;
	int err = store_pick(w);

	if (!err)
		err = reporter_outfile_commit(&w->file);
	if (err) {
		reporter_outfile_abort(&w->file);
		return err;
	}
	w->window.bytes = bytes;
	if (store_name_parse(w->file.name, &name))
		store_name_stem(&name, w->file.name, w->window.stem);
	reporter_outfile_fini(&w->file);
	return 0;
}

int store_write_beside(struct store_write *w, enum store_kind kind)
{
	char name[STORE_FILE_MAX];

	store_file(name, w->window.stem, kind);
	return reporter_outfile_open_at(&w->file, w->dirfd, name);
}

int store_write_commit_beside(struct store_write *w, enum store_kind kind)
{
	uint64_t bytes = store_size(w);
	int err = reporter_outfile_commit(&w->file);

	if (err) {
		reporter_outfile_abort(&w->file);
		return err;
	}
	*(kind == STORE_TIMES	     ? &w->window.times_bytes
	  : kind == STORE_WAIT_TIMES ? &w->window.wait_times_bytes
				     : &w->window.wait_bytes) = bytes;
	reporter_outfile_fini(&w->file);
	return 0;
}

void store_write_end(struct store_write *w, struct store_stats *stats)
{
	uint64_t bytes = store_window_all(&w->window);
	struct store *s = w->store;

	reporter_outfile_abort(&w->file);
	if (w->dirfd >= 0)
		close(w->dirfd);
	w->dirfd = -1;
	if (!s)
		return;
	pthread_mutex_lock(&s->mutex);
	if (w->reserved) {
		s->reserved -= w->reserved;
		s->writers--;
	}
	if (w->window.bytes) {
		s->stats.archive_windows++;
		s->stats.archive_bytes += bytes;
		if (!s->stats.archive_oldest_seconds)
			s->stats.archive_oldest_seconds =
				w->window.begin_ns / CLOCK_NSEC_PER_SEC;
		s->stats.times_failed +=
			!w->window.times_bytes ||
			(w->wait_times && !w->window.wait_times_bytes);
		s->stats.waits_failed += w->waits && !w->window.wait_bytes;
		s->sizes[s->nsizes++ % STORE_SIZES] = bytes;
	}
	if (!s->writers)
		store_spare_fill(s);
	*stats = s->stats;
	pthread_mutex_unlock(&s->mutex);
}
