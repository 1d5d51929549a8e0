// SPDX-License-Identifier: Apache-2.0
/* outfile: see reporter/outfile.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "reporter/outfile.h"

#define OUTFILE_MODE 0640 /* profiles have data of all users */
#define OUTFILE_USER_MODE 0666 /* less the umask */
#define OUTFILE_TRIES 1000 /* names before giving up */
#define OUTFILE_PROC_PATH 32

static mode_t outfile_mode(const struct reporter_outfile *f)
{
	return f->keep ? OUTFILE_MODE : OUTFILE_USER_MODE;
}

/* Of an open file, which has no other name. */
static void outfile_proc_path(int fd, char path[OUTFILE_PROC_PATH])
{
	snprintf(path, OUTFILE_PROC_PATH, "/proc/self/fd/%d", fd);
}

/* Creates the file as f->tmp; if it is open already, links it there. */
static int outfile_make(struct reporter_outfile *f)
{
	char path[OUTFILE_PROC_PATH];

	if (f->fd >= 0) {
		outfile_proc_path(f->fd, path);
		return linkat(AT_FDCWD, path, f->dirfd, f->tmp,
			      AT_SYMLINK_FOLLOW)
			       ? -errno
			       : 0;
	}
	f->fd = openat(f->dirfd, f->tmp,
		       O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
		       outfile_mode(f));
	return f->fd < 0 ? -errno : 0;
}

/* Under a temporary name. */
static int outfile_make_named(struct reporter_outfile *f)
{
	uint32_t tag;
	int n, err = -EEXIST;

	for (n = 0; n < OUTFILE_TRIES && err == -EEXIST; n++) {
		if (getrandom(&tag, sizeof(tag), GRND_NONBLOCK) != sizeof(tag))
			tag = (uint32_t)clock_awake_ns() + n;
		free(f->tmp);
		if (asprintf(&f->tmp, "%s.%08x" REPORTER_OUTFILE_TMP, f->name,
			     tag) < 0) {
			f->tmp = NULL;
			return -ENOMEM;
		}
		err = outfile_make(f);
	}
	if (err) {
		/* It is not ours. */
		free(f->tmp);
		f->tmp = NULL;
	}
	return err;
}

/*
 * Without a name, if the file system allows it and /proc is there, by which the file
 * is linked later.
 */
static int outfile_create(struct reporter_outfile *f)
{
	char path[OUTFILE_PROC_PATH];

	f->fd = openat(f->dirfd, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC,
		       outfile_mode(f));
	if (f->fd < 0)
		return errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL
			       ? outfile_make_named(f)
			       : -errno;
	outfile_proc_path(f->fd, path);
	if (!access(path, F_OK))
		return 0;
	close(f->fd);
	f->fd = -1;
	return outfile_make_named(f);
}

void reporter_outfile_fini(struct reporter_outfile *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->dirfd >= 0)
		close(f->dirfd);
	free(f->name);
	free(f->tmp);
	*f = REPORTER_OUTFILE_NONE;
}

int reporter_outfile_open_at(struct reporter_outfile *f, int dirfd,
			     const char *name)
{
	int err = -ENOMEM;

	*f = REPORTER_OUTFILE_NONE;
	f->keep = true;
	f->name = strdup(name);
	f->dirfd = fcntl(dirfd, F_DUPFD_CLOEXEC, 0);
	if (f->dirfd < 0)
		err = -errno;
	else if (f->name)
		err = outfile_create(f);
	if (err)
		reporter_outfile_fini(f);
	return err;
}

static int outfile_open_dir(struct reporter_outfile *f, const char *path)
{
	const char *slash = strrchr(path, '/');
	char *dir;

	if (!slash)
		dir = strdup(".");
	else
		dir = strndup(path, slash == path ? 1 : slash - path);
	if (!dir)
		return -ENOMEM;
	f->dirfd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	free(dir);
	if (f->dirfd < 0)
		return -errno;
	f->name = strdup(slash ? slash + 1 : path);
	return f->name ? 0 : -ENOMEM;
}

/*
 * Opens without waiting for the reader of a pipe. Checks the type again, in case
 * the path was replaced by a regular file, which must not be written in place.
 */
static int outfile_open_special(struct reporter_outfile *f, const char *path)
{
	struct stat st;
	int flags;

	f->fd = open(path, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
	if (f->fd < 0)
		return -errno;
	flags = fcntl(f->fd, F_GETFL);
	if (fstat(f->fd, &st) || flags < 0 ||
	    fcntl(f->fd, F_SETFL, flags & ~O_NONBLOCK))
		return -errno;
	return S_ISREG(st.st_mode) ? -EEXIST : 0;
}

int reporter_outfile_open(struct reporter_outfile *f, const char *path)
{
	struct stat st;
	int err;

	*f = REPORTER_OUTFILE_NONE;
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		f->in_place = true;
		err = outfile_open_special(f, path);
	} else {
		err = outfile_open_dir(f, path);
		if (!err)
			err = outfile_create(f);
	}
	if (err)
		reporter_outfile_fini(f);
	return err;
}

/* "a.pb.gz" exists: tries "a-1.pb.gz". */
static int outfile_next_name(struct reporter_outfile *f, const char *first,
			     int n)
{
	size_t stem = strcspn(first, ".");
	const char *ending = strstr(first, ".pb");
	char *name;

	if (ending)
		stem = ending - first;
	if (asprintf(&name, "%.*s-%d%s", (int)stem, first, n, first + stem) < 0)
		return -ENOMEM;
	free(f->name);
	f->name = name;
	return 0;
}

static int outfile_rename_new(struct reporter_outfile *f)
{
	char *first = strdup(f->name);
	int err = first ? -EEXIST : -ENOMEM, n = 0;

	while (err == -EEXIST && n <= OUTFILE_TRIES) {
		if (n && outfile_next_name(f, first, n)) {
			err = -ENOMEM;
			break;
		}
		n++;
		err = 0;
		/* EINVAL: the file system lacks RENAME_NOREPLACE. */
		if (renameat2(f->dirfd, f->tmp, f->dirfd, f->name,
			      RENAME_NOREPLACE))
			err = -errno;
		if (err == -EINVAL &&
		    !faccessat(f->dirfd, f->name, F_OK, AT_SYMLINK_NOFOLLOW))
			err = -EEXIST;
		if (err == -EINVAL)
			err = renameat(f->dirfd, f->tmp, f->dirfd, f->name)
				      ? -errno
				      : 0;
	}
	free(first);
	return err;
}

/*
 * Synced before it has a name, so that a name is seen for a moment only; and after, as
 * Btrfs does not log a file without one.
 */
static int outfile_finish(struct reporter_outfile *f)
{
	int err;

	if (f->in_place)
		return 0;
	if (fsync(f->fd))
		return -errno;
	if (f->tmp)
		return 0;
	err = outfile_make_named(f);
	return !err && fsync(f->fd) ? -errno : err;
}

int reporter_outfile_commit(struct reporter_outfile *f)
{
	int err = outfile_finish(f);

	if (close(f->fd) && !err)
		err = -errno;
	f->fd = -1;
	if (f->in_place)
		return err;
	if (!err && f->keep)
		err = outfile_rename_new(f);
	else if (!err && renameat(f->dirfd, f->tmp, f->dirfd, f->name))
		err = -errno;
	if (err) {
		if (f->tmp)
			unlinkat(f->dirfd, f->tmp, 0);
		return err;
	}
	/* Best effort: the file itself is complete. */
	fsync(f->dirfd);
	return 0;
}

void reporter_outfile_abort(struct reporter_outfile *f)
{
	if (f->tmp)
		unlinkat(f->dirfd, f->tmp, 0);
	reporter_outfile_fini(f);
}
