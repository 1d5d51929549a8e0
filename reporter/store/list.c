// SPDX-License-Identifier: Apache-2.0
/* list: reads the names of an archive, see reporter/store/store.h. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "reporter/store/internal.h"

static int list_add(struct store_list *list, int dirfd, const char *day,
		    const char *file, const struct store_name *name)
{
	struct store_window *w;
	struct stat st;

	if (fstatat(dirfd, file, &st, AT_SYMLINK_NOFOLLOW) ||
	    !S_ISREG(st.st_mode))
		return 0;
	if (list->n == STORE_LIST_MAX)
		return -E2BIG;
	if (VECTOR_ROOM(list->windows, list->n, list->cap))
		return -ENOMEM;
	w = &list->windows[list->n++];
	*w = (struct store_window){
		.begin_ns = name->begin * (int64_t)CLOCK_NSEC_PER_SEC,
		.duration_ns = name->seconds * CLOCK_NSEC_PER_SEC,
	};
	snprintf(w->day, sizeof(w->day), "%s", day);
	store_name_stem(name, file, w->stem);
	if (name->kind == STORE_TIMES) {
		w->times_bytes = MAX(st.st_size, 1);
	} else if (name->kind == STORE_WAIT_TIMES) {
		w->wait_times_bytes = MAX(st.st_size, 1);
	} else if (name->kind > STORE_TIMES) {
		w->format = (enum reporter_format)(name->kind - STORE_WAIT_RAW);
		w->wait_bytes = MAX(st.st_size, 1);
	} else {
		w->format = (enum reporter_format)name->kind;
		w->bytes = MAX(st.st_size, 1);
	}
	return 0;
}

/* Whether a window overlaps [from, to). */
static bool list_is_in(const struct store_name *name, int64_t from, int64_t to)
{
	const int64_t second = (int64_t)CLOCK_NSEC_PER_SEC;

	/* Rounded durations: a second more at each side. */
	return name->begin <= to / second + (to % second > 0) &&
	       name->begin + (int64_t)name->seconds + 1 >= from / second;
}

static int list_dir(struct store_list *list, int dirfd, const char *day,
		    int64_t from, int64_t to)
{
	int fd = openat(dirfd, *day ? day : ".",
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : store_read_dir(fd);
	struct store_name name;
	struct dirent *de;
	int err = 0;

	/* A directory that retention has just removed. */
	if (!dir)
		err = errno == ENOENT || errno == ENOTDIR || errno == ELOOP
			      ? 0
			      : -errno;
	while (dir && !err && (de = readdir(dir)))
		if (store_name_parse(de->d_name, &name) && !name.tmp &&
		    list_is_in(&name, from, to))
			err = list_add(list, fd, day, de->d_name, &name);
	if (dir)
		closedir(dir);
	if (fd >= 0)
		close(fd);
	return err;
}

/* By time; the files of a window together, its profile first. */
static int list_compare(const void *a, const void *b)
{
	const struct store_window *x = a, *y = b;
	int by;

	if (x->begin_ns != y->begin_ns)
		return x->begin_ns < y->begin_ns ? -1 : 1;
	by = strcmp(x->stem, y->stem);
	if (!by)
		by = strcmp(x->day, y->day);
	return by ? by : (y->bytes > 0) - (x->bytes > 0);
}

/* Makes one window of a file, its side file and its waits. */
static void list_join(struct store_list *list)
{
	struct store_window *w = NULL, *at;
	size_t i, n = 0;

	for (i = 0; i < list->n; i++) {
		at = &list->windows[i];
		if (at->bytes) {
			w = &list->windows[n++];
			*w = *at;
		} else if (w && !strcmp(w->stem, at->stem) &&
			   !strcmp(w->day, at->day)) {
			w->times_bytes += at->times_bytes;
			w->wait_times_bytes += at->wait_times_bytes;
			/* Profiles of a window have one format. */
			if (at->format == w->format)
				w->wait_bytes += at->wait_bytes;
		}
	}
	list->n = n;
}

static int list_days(struct store_list *list, int dirfd, int64_t from,
		     int64_t to)
{
	const int64_t most = (int64_t)(2 * 3600 * CLOCK_NSEC_PER_SEC);
	char first[STORE_DAY_MAX] = "", last[STORE_DAY_MAX] = "9999-99-99";
	char(*days)[STORE_DAY_MAX] = NULL;
	size_t i, n;
	int err;

	/* A window is an hour at most, and begins on its day. */
	if (from > INT64_MIN + most)
		store_day(first, from - most);
	if (to < INT64_MAX - most)
		store_day(last, to + most);
	err = store_days(dirfd, &days, &n);
	if (!err)
		err = list_dir(list, dirfd, "", from, to);
	for (i = 0; !err && i < n; i++)
		if (strcmp(days[i], first) >= 0 && strcmp(days[i], last) <= 0)
			err = list_dir(list, dirfd, days[i], from, to);
	free(days);
	return err;
}

int store_list(struct store_list *list, const char *path, int64_t from,
	       int64_t to)
{
	int err, fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	*list = (struct store_list){ 0 };
	if (fd < 0)
		return -errno;
	err = list_days(list, fd, from, to);
	close(fd);
	if (err) {
		store_list_free(list);
		return err;
	}
	if (list->n)
		qsort(list->windows, list->n, sizeof(*list->windows),
		      list_compare);
	list_join(list);
	return 0;
}

void store_list_free(struct store_list *list)
{
	free(list->windows);
	*list = (struct store_list){ 0 };
}

void store_window_path(const struct store_window *w, enum store_kind kind,
		       char path[STORE_PATH_MAX])
{
	char name[STORE_FILE_MAX];

	store_file(name, w->stem, kind);
	snprintf(path, STORE_PATH_MAX, "%s%s%s", w->day, *w->day ? "/" : "",
		 name);
}

int store_window_open(const struct store_window *w, int dirfd,
		      enum store_kind kind)
{
	char path[STORE_PATH_MAX];
	struct stat st;
	int fd;

	store_window_path(w, kind, path);
	/* Does not wait for the writer of a pipe. */
	fd = openat(dirfd, path,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (!fstat(fd, &st) && S_ISREG(st.st_mode))
		return fd;
	close(fd);
	return -EINVAL;
}

uint64_t store_wait_bytes(const char *path, const char *file)
{
	const char *slash = file ? strrchr(file, '/') : NULL;
	const char *base = slash ? slash + 1 : file;
	char stem[STORE_STEM_MAX], wait[STORE_FILE_MAX], *full;
	struct store_name name;
	struct stat st;
	uint64_t bytes = 0;

	if (!base || !store_name_parse(base, &name) || name.tmp ||
	    name.kind >= STORE_TIMES)
		return 0;
	store_name_stem(&name, base, stem);
	store_file(wait, stem, store_wait(name.kind));
	if (asprintf(&full, "%s/%.*s%s", path, (int)(base - file), file, wait) <
	    0)
		return 0;
	if (!lstat(full, &st) && S_ISREG(st.st_mode))
		bytes = st.st_size;
	free(full);
	return bytes;
}
