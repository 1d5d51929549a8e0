// SPDX-License-Identifier: Apache-2.0
/* outfile: see reporter/outfile.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "reporter/outfile.h"

#define OUTFILE_MODE 0640 /* the archive shows what everybody runs */
#define OUTFILE_USER_MODE 0666 /* less the umask: a file somebody asked for */
#define OUTFILE_TRIES 1000 /* names "-1", "-2"... before giving up */

static int outfile_create(struct outfile *f)
{
	f->fd = openat(f->dirfd, f->tmp,
		       O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC,
		       f->keep ? OUTFILE_MODE : OUTFILE_USER_MODE);
	return f->fd < 0 ? -errno : 0;
}

static int outfile_names(struct outfile *f, const char *name, const char *tag)
{
	f->name = strdup(name);
	if (!f->name || asprintf(&f->tmp, "%s%s" OUTFILE_TMP, name, tag) < 0) {
		f->tmp = NULL;
		return -ENOMEM;
	}
	return 0;
}

void outfile_fini(struct outfile *f)
{
	if (f->fd >= 0)
		close(f->fd);
	if (f->dirfd >= 0 && !f->keep)
		close(f->dirfd);
	free(f->name);
	free(f->tmp);
	*f = (struct outfile){ .dirfd = -1, .fd = -1 };
}

int outfile_open_at(struct outfile *f, int dirfd, const char *name)
{
	static unsigned int serial;
	char tag[16];
	int err;

	*f = (struct outfile){ .dirfd = dirfd, .fd = -1, .keep = true };
	/* Two windows of one second may be written at the same time. */
	snprintf(tag, sizeof(tag), ".%u",
		 __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED));
	err = outfile_names(f, name, tag);
	if (!err)
		err = outfile_create(f);
	if (err)
		outfile_fini(f);
	return err;
}

static int outfile_open_dir(struct outfile *f, const char *path)
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
	return outfile_names(f, slash ? slash + 1 : path, "");
}

int outfile_open(struct outfile *f, const char *path)
{
	struct stat st;
	int err;

	*f = (struct outfile){ .dirfd = -1, .fd = -1 };
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		f->fd = open(path, O_WRONLY | O_CLOEXEC);
		return f->fd < 0 ? -errno : 0;
	}
	err = outfile_open_dir(f, path);
	if (!err)
		err = outfile_create(f);
	if (err)
		outfile_fini(f);
	return err;
}

/* "a.pb.zst" is taken: "a-1.pb.zst". */
static int outfile_next_name(struct outfile *f, const char *first, int n)
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

static int outfile_rename_new(struct outfile *f)
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
		/* Where there is no such rename (EINVAL), look first. */
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

int outfile_commit(struct outfile *f)
{
	int err = 0;

	if (f->tmp && fsync(f->fd))
		err = -errno;
	if (close(f->fd) && !err)
		err = -errno;
	f->fd = -1;
	if (!f->tmp)
		return err;
	if (!err && f->keep)
		err = outfile_rename_new(f);
	else if (!err && renameat(f->dirfd, f->tmp, f->dirfd, f->name))
		err = -errno;
	if (err) {
		unlinkat(f->dirfd, f->tmp, 0);
		return err;
	}
	/* It is there; that the directory cannot be synced is not its fault. */
	fsync(f->dirfd);
	return 0;
}

void outfile_abort(struct outfile *f)
{
	if (f->tmp)
		unlinkat(f->dirfd, f->tmp, 0);
	outfile_fini(f);
}
