// SPDX-License-Identifier: Apache-2.0
/* archive: see reporter/archive.h. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "reporter/archive.h"

#define ARCHIVE_MODE 0750
#define ARCHIVE_LOCK ".lock"
#define ARCHIVE_PREFIX "cpu-"
#define ARCHIVE_ENDING_MAX 16
#define ARCHIVE_HOST_MAX 64

struct archive {
	pthread_mutex_t mutex; /* of the descriptors, which workers replace */
	char *path;
	int dirfd;
	int lockfd;
};

/*
 * The directory has to belong to the user that profd runs as and to be writable
 * for that user alone: others could create names in it, or remove our files.
 */
static int archive_open_dir(struct archive *a)
{
	struct stat st;

	a->dirfd =
		open(a->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (a->dirfd < 0 || fstat(a->dirfd, &st))
		return -errno;
	return st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH))
		       ? 0
		       : -EPERM;
}

static int archive_lock(struct archive *a)
{
	a->lockfd = openat(a->dirfd, ARCHIVE_LOCK,
			   O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (a->lockfd < 0)
		return -errno;
	if (flock(a->lockfd, LOCK_EX | LOCK_NB))
		return errno == EWOULDBLOCK ? -EBUSY : -errno;
	return 0;
}

/* By our own names only: the directory may hold other files. */
static bool archive_is_leftover(const char *name)
{
	size_t len = strlen(name), tail = strlen(REPORTER_OUTFILE_TMP);

	return !strncmp(name, ARCHIVE_PREFIX, strlen(ARCHIVE_PREFIX)) &&
	       strstr(name, ".pb") && len > tail &&
	       !strcmp(name + len - tail, REPORTER_OUTFILE_TMP);
}

static int archive_sweep(struct archive *a, uint64_t *swept)
{
	int fd = openat(a->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *de;

	if (!dir) {
		int err = -errno;

		if (fd >= 0)
			close(fd);
		return err;
	}
	while ((de = readdir(dir)))
		if (archive_is_leftover(de->d_name) &&
		    !unlinkat(a->dirfd, de->d_name, 0))
			++*swept;
	closedir(dir);
	return 0;
}

static void archive_close(struct archive *a)
{
	if (a->lockfd >= 0)
		close(a->lockfd);
	if (a->dirfd >= 0)
		close(a->dirfd);
	a->lockfd = a->dirfd = -1;
}

static int archive_open(struct archive *a)
{
	int err = dirs_make_parents(a->path, 0755);

	if (!err && mkdir(a->path, ARCHIVE_MODE) && errno != EEXIST)
		err = -errno;
	if (!err)
		err = archive_open_dir(a);
	if (!err)
		err = archive_lock(a);
	return err;
}

int archive_new(struct archive **ap, const char *path, uint64_t *swept)
{
	struct archive *a = calloc(1, sizeof(*a));
	int err = -ENOMEM;

	if (!a)
		return -ENOMEM;
	pthread_mutex_init(&a->mutex, NULL);
	a->dirfd = a->lockfd = -1;
	a->path = strdup(path);
	if (a->path)
		err = archive_open(a);
	if (!err)
		err = archive_sweep(a, swept);
	if (err)
		archive_free(a);
	else
		*ap = a;
	return err;
}

void archive_free(struct archive *a)
{
	if (!a)
		return;
	archive_close(a);
	pthread_mutex_destroy(&a->mutex);
	free(a->path);
	free(a);
}

/* After the directory was removed: creates and locks a new one. */
static int archive_again(struct archive *a)
{
	struct archive fresh = { .path = a->path, .dirfd = -1, .lockfd = -1 };
	int err = archive_open(&fresh);

	if (err) {
		archive_close(&fresh);
		return err;
	}
	archive_close(a);
	a->dirfd = fresh.dirfd;
	a->lockfd = fresh.lockfd;
	return 0;
}

void archive_stem(char buf[ARCHIVE_NAME_MAX], const char *host, int64_t wall_ns,
		  uint64_t duration_ns)
{
	time_t sec = wall_ns / (int64_t)CLOCK_NSEC_PER_SEC;
	uint64_t len =
		(duration_ns + CLOCK_NSEC_PER_SEC / 2) / CLOCK_NSEC_PER_SEC;
	char name[ARCHIVE_HOST_MAX + 1], when[32];
	struct tm tm;
	size_t i;

	for (i = 0; host[i] && i < ARCHIVE_HOST_MAX; i++)
		name[i] = isalnum((unsigned char)host[i]) ||
					  strchr("._-", host[i])
				  ? host[i]
				  : '_';
	name[i] = '\0';
	gmtime_r(&sec, &tm);
	strftime(when, sizeof(when), "%Y%m%dT%H%M%SZ", &tm);
	snprintf(buf, ARCHIVE_NAME_MAX, ARCHIVE_PREFIX "%s-%s-%llus", name,
		 when, (unsigned long long)MAX(len, 1));
}

int archive_create(struct archive *a, struct reporter_outfile *f,
		   const char *host, int64_t wall_ns, uint64_t duration_ns,
		   const char *ending)
{
	char stem[ARCHIVE_NAME_MAX];
	char name[sizeof(stem) + ARCHIVE_ENDING_MAX];
	int err;

	archive_stem(stem, host, wall_ns, duration_ns);
	snprintf(name, sizeof(name), "%s%s", stem, ending);
	pthread_mutex_lock(&a->mutex);
	err = reporter_outfile_open_at(f, a->dirfd, name);
	if (err == -ENOENT)
		err = archive_again(a);
	if (err == 0 && f->fd < 0)
		err = reporter_outfile_open_at(f, a->dirfd, name);
	pthread_mutex_unlock(&a->mutex);
	return err;
}

const char *archive_dir(const struct archive *a)
{
	return a->path;
}
