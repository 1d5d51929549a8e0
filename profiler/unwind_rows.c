// SPDX-License-Identifier: Apache-2.0
/* unwind_rows: see profiler/unwind_rows.h. */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/log.h"
#include "profiler/unwind_rows.h"

#define SUFFIX ".rows"
#define TEXT_MAX (64 << 20)

struct loading {
	const char *dir;
	int fd;
	unwind_rows_fn fn;
	void *arg;
};

/* The id at the begin of a file's name; its length, 0: none. */
static size_t name_id(const char *name, uint8_t *id)
{
	size_t n = strlen(name), digits = n - strlen(SUFFIX);

	if (digits % 2 || digits / 2 > SYMBOLIZER_BUILD_ID_MAX)
		return 0;
	for (size_t i = 0; i < digits / 2; i++) {
		const char *two = name + 2 * i;

		if (!isxdigit((unsigned char)two[0]) ||
		    !isxdigit((unsigned char)two[1]) ||
		    sscanf(two, "%2hhx", &id[i]) != 1)
			return 0;
	}
	return digits / 2;
}

static bool is_rows_name(const char *name)
{
	size_t n = strlen(name), suffix = strlen(SUFFIX);

	return n > suffix && *name != '.' &&
	       strcmp(name + n - suffix, SUFFIX) == 0;
}

/* All of a file, malloc'd; 0 or -errno. */
static int unwind_rows_read_file(int dir, const char *name, char **out,
				 size_t *len)
{
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	int err = fd < 0 ? -errno : 0;
	struct stat st;
	ssize_t n = 0;

	*out = NULL;
	*len = 0;
	if (!err && fstat(fd, &st))
		err = -errno;
	if (!err && (!S_ISREG(st.st_mode) || st.st_size > TEXT_MAX))
		err = S_ISREG(st.st_mode) ? -EFBIG : -EINVAL;
	if (!err) {
		*out = malloc((size_t)st.st_size + 1);
		err = *out ? 0 : -ENOMEM;
	}
	while (!err && *len < (size_t)st.st_size &&
	       (n = read(fd, *out + *len, (size_t)st.st_size - *len)) > 0)
		*len += (size_t)n;
	if (!err && n < 0)
		err = -errno;
	if (fd >= 0)
		close(fd);
	return err;
}

/* False: the file could not be loaded; logged. */
static bool load_file(const struct loading *l, const char *name)
{
	struct symbolizer_rows_error where = { 0 };
	uint8_t id[SYMBOLIZER_BUILD_ID_MAX];
	struct symbolizer_rows *rows = NULL;
	size_t len, id_len = name_id(name, id);
	char *text = NULL;
	int err;

	if (!id_len) {
		log_warn("%s/%s: the name is not BUILDID" SUFFIX
			 " or FILEID" SUFFIX,
			 l->dir, name);
		return false;
	}
	err = unwind_rows_read_file(l->fd, name, &text, &len);
	if (!err)
		err = symbolizer_rows_parse(text, len, &rows, &where);
	free(text);
	if (!err)
		err = l->fn(l->arg, id, id_len, rows);
	if (!err)
		return true;
	symbolizer_rows_free(rows);
	if (where.what)
		log_warn("%s/%s:%zu:%zu: %s", l->dir, name, where.line,
			 where.column, where.what);
	else
		log_warn("%s/%s: %s", l->dir, name, strerror(-err));
	return false;
}

int unwind_rows_load(const char *dir, unwind_rows_fn fn, void *arg)
{
	struct loading l = { .dir = dir, .fn = fn, .arg = arg };
	DIR *d = opendir(dir);
	struct dirent *de;
	int failed = 0;

	if (!d) {
		log_warn("%s: %s", dir, strerror(errno));
		return 1;
	}
	l.fd = dirfd(d);
	while ((de = readdir(d)))
		if (is_rows_name(de->d_name))
			failed += !load_file(&l, de->d_name);
	closedir(d);
	return failed;
}
