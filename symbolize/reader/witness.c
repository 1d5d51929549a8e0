// SPDX-License-Identifier: Apache-2.0
/* witness: see symbolize/reader/witness.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/reader/witness.h"

/* The path, and zeros to a multiple of 8, follow. */
struct witness {
	uint64_t dev, ino, size; /* 0: there is no such file */
	int64_t mtime_ns, ctime_ns;
	uint64_t path_len; /* without its NUL */
};

static int64_t witness_ns(const struct timespec *ts)
{
	return ts->tv_sec * 1000000000LL + ts->tv_nsec;
}

/* Bytes of a path. */
static size_t witness_room(size_t path_len)
{
	return (path_len + 8) & ~(size_t)7;
}

static void witness_set(struct witness *w, const struct stat *st)
{
	w->dev = st->st_dev;
	w->ino = st->st_ino;
	w->size = (uint64_t)st->st_size;
	w->mtime_ns = witness_ns(&st->st_mtim);
	w->ctime_ns = witness_ns(&st->st_ctim);
}

static void witness_add(struct strbuf *sb, const struct witness *w,
			const char *path)
{
	static const char zeros[8];
	size_t before = sb->len;

	strbuf_add(sb, w, sizeof(*w));
	strbuf_add(sb, path, w->path_len);
	strbuf_add(sb, zeros, witness_room(w->path_len) - w->path_len);
	if (!sb->failed &&
	    memmem(sb->data, before, sb->data + before, sb->len - before))
		sb->len = before; /* it is there already */
}

void witness_path(struct strbuf *sb, const char *path)
{
	struct witness w = { .path_len = strlen(path) };
	struct stat st;

	if (!stat(path, &st))
		witness_set(&w, &st);
	witness_add(sb, &w, path);
}

void witness_fd(struct strbuf *sb, int fd)
{
	char link[64], path[PATH_MAX];
	struct witness w = { 0 };
	struct stat st;
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, sizeof(path) - 1);
	if (n <= 0 || fstat(fd, &st)) {
		/* It cannot be recognized later. */
		sb->failed = true;
		return;
	}
	path[n] = '\0';
	w.path_len = (uint64_t)n;
	witness_set(&w, &st);
	witness_add(sb, &w, path);
}

void witness_dirs(struct strbuf *sb, const char *const *dirs,
		  const uint8_t *build_id, size_t len)
{
	char path[PATH_MAX];

	for (; *dirs; dirs++) {
		snprintf(path, sizeof(path), "%s/.build-id", *dirs);
		witness_path(sb, path);
		if (!len)
			continue;
		snprintf(path, sizeof(path), "%s/.build-id/%02x", *dirs,
			 build_id[0]);
		witness_path(sb, path);
	}
}

void witness_join(struct strbuf *sb, const uint8_t *p, size_t len)
{
	struct witness w;
	size_t one;

	for (; len >= sizeof(w); p += one, len -= one) {
		memcpy(&w, p, sizeof(w));
		if (w.path_len >= len)
			return;
		one = sizeof(w) + witness_room(w.path_len);
		if (one > len)
			return;
		if (!sb->len || !memmem(sb->data, sb->len, p, one))
			strbuf_add(sb, p, one);
	}
}

int witness_check(const uint8_t *p, size_t len)
{
	struct witness was, is;
	struct stat st;
	const char *path;
	int err = 0;

	if (len > WITNESS_MAX)
		return -EBADMSG;
	for (; len; p += witness_room(was.path_len),
		    len -= witness_room(was.path_len)) {
		if (len < sizeof(was))
			return -EBADMSG;
		memcpy(&was, p, sizeof(was));
		p += sizeof(was);
		len -= sizeof(was);
		path = (const char *)p;
		if (was.path_len >= PATH_MAX ||
		    len < witness_room(was.path_len) ||
		    strnlen(path, was.path_len + 1) != was.path_len)
			return -EBADMSG;
		is = (struct witness){ .path_len = was.path_len };
		if (!err && !stat(path, &st))
			witness_set(&is, &st);
		if (!err && memcmp(&is, &was, sizeof(is)) != 0)
			err = -ESTALE;
	}
	return err;
}
