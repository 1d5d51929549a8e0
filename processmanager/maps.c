// SPDX-License-Identifier: Apache-2.0
/*
 * maps: reads the executable mappings of /proc/PID/maps. A line is
 *
 *   start-end perms offset major:minor inode      path
 *
 * with all numbers but the inode in hex; a newline in a path is written \012,
 * and nothing else is escaped; a deleted file's path ends in " (deleted)"
 * (proc(5)). The watched process chooses the paths. Malformed lines are
 * skipped.
 *
 * Paths are appended to a text that moves while it grows, so until the end a
 * mapping has the offset of its path.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/base.h"
#include "processmanager/processmanager.h"

/* A path of the kernel, escapes included, is at most a page. */
#define MAPS_PATH_MAX 4096
#define MAPS_READ_SIZE (64 * 1024)
#define MAPS_TEXT_MAX (64 * 1024 * 1024)
/* 65,530 mappings with paths of 400 bytes. */
#define MAPS_READ_MAX (32 * 1024 * 1024)

struct maps_parser {
	struct pm_maps *out;
	struct strbuf text;
	size_t cap; /* of out->maps */
	size_t last; /* offset of the last path in text */
	/* The line before, if it is that of a file and not executable; or len 0. */
	struct pm_map_event below;
	size_t below_len;
	char below_path[MAPS_PATH_MAX + 1]; /* with escapes */
};

struct maps_cursor {
	const char *p, *end;
};

static int maps_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

/* A number and the character that follows it. */
static bool maps_number(struct maps_cursor *c, unsigned int base, char after,
			uint64_t *out)
{
	const char *start = c->p;
	uint64_t v = 0;
	int d;

	for (; c->p < c->end; c->p++) {
		d = maps_digit(*c->p);
		if (d < 0 || d >= (int)base)
			break;
		if (__builtin_mul_overflow(v, (uint64_t)base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)d, &v))
			return false;
	}
	if (c->p == start)
		return false;
	*out = v;
	if (c->p == c->end)
		return after == ' '; /* of the last number */
	return *c->p++ == after;
}

/* "rwxp " */
static bool maps_perms(struct maps_cursor *c, bool *exec)
{
	if (c->end - c->p < 5 || c->p[4] != ' ')
		return false;
	*exec = c->p[2] == 'x';
	c->p += 5;
	return true;
}

static bool maps_fields(struct maps_cursor *c, struct pm_map_event *ev,
			bool *exec)
{
	uint64_t major, minor;

	if (!maps_number(c, 16, '-', &ev->start) ||
	    !maps_number(c, 16, ' ', &ev->end) || ev->start >= ev->end ||
	    !maps_perms(c, exec) || !maps_number(c, 16, ' ', &ev->pgoff) ||
	    !maps_number(c, 16, ':', &major) ||
	    !maps_number(c, 16, ' ', &minor) || major > UINT32_MAX ||
	    minor > UINT32_MAX || !maps_number(c, 10, ' ', &ev->ino))
		return false;
	ev->dev = makedev((unsigned int)major, (unsigned int)minor);
	while (c->p < c->end && *c->p == ' ')
		c->p++;
	return true;
}

/* Into 'path', which must have room for it. Returns its length. */
static size_t maps_unescape(const struct maps_cursor *c, char *path)
{
	const char *p = c->p;
	size_t n = 0;

	while (p < c->end) {
		if (c->end - p >= 4 && !memcmp(p, "\\012", 4)) {
			path[n++] = '\n';
			p += 4;
		} else {
			path[n++] = *p++;
		}
	}
	path[n] = '\0';
	return n;
}

/* Consecutive mappings of a file share its path. */
static int maps_path(struct maps_parser *mp, const char *path, size_t len)
{
	struct strbuf *sb = &mp->text;

	if (sb->len && sb->len - mp->last == len + 1 &&
	    !memcmp(sb->data + mp->last, path, len))
		return 0;
	if (sb->len + len + 1 > MAPS_TEXT_MAX)
		return -EFBIG;
	mp->last = sb->len;
	strbuf_add(sb, path, len + 1);
	return sb->failed ? -ENOMEM : 0;
}

static int maps_add(struct maps_parser *mp, struct pm_map_event *ev,
		    const struct maps_cursor *escaped)
{
	struct pm_maps *out = mp->out;
	char path[MAPS_PATH_MAX + 1];
	int err = maps_path(mp, path, maps_unescape(escaped, path));

	if (err)
		return err;
	ev->path = (const char *)(uintptr_t)mp->last;
	if (VECTOR_ROOM(out->maps, out->n, mp->cap))
		return -ENOMEM;
	out->maps[out->n++] = *ev;
	return 0;
}

static void maps_keep_below(struct maps_parser *mp,
			    const struct pm_map_event *ev,
			    const struct maps_cursor *path)
{
	if (*path->p != '/')
		return;
	mp->below = *ev;
	mp->below.below = true;
	mp->below_len = (size_t)(path->end - path->p);
	memcpy(mp->below_path, path->p, mp->below_len);
}

/* One line, without its newline. 0, also if it is malformed; or -errno. */
static int maps_line(struct maps_parser *mp, const char *line, size_t len)
{
	struct maps_cursor c = { line, line + len }, below;
	struct pm_map_event ev = { .kind = PM_MAP_MMAP };
	size_t below_len = mp->below_len;
	bool exec;
	int err = 0;

	mp->below_len = 0;
	if (!maps_fields(&c, &ev, &exec) || c.end - c.p > MAPS_PATH_MAX ||
	    memchr(c.p, '\0', (size_t)(c.end - c.p)))
		return 0;
	if (!exec) {
		if (c.p < c.end)
			maps_keep_below(mp, &ev, &c);
		return 0;
	}
	below = (struct maps_cursor){ mp->below_path,
				      mp->below_path + below_len };
	if (below_len && (c.p == c.end || *c.p == '['))
		err = maps_add(mp, &mp->below, &below);
	return err ? err : maps_add(mp, &ev, &c);
}

/*
 * The complete lines of a text; with 'last' also what follows the last newline.
 * Returns the bytes used, or -errno.
 */
static ssize_t maps_lines(struct maps_parser *mp, const char *text, size_t len,
			  bool last)
{
	const char *p = text, *end = text + len, *nl;
	int err;

	while (p < end) {
		nl = memchr(p, '\n', (size_t)(end - p));
		if (!nl && !last)
			break;
		nl = nl ? nl : end;
		err = maps_line(mp, p, (size_t)(nl - p));
		if (err)
			return err;
		p = nl < end ? nl + 1 : end;
	}
	return p - text;
}

static void maps_begin(struct maps_parser *mp, struct pm_maps *out)
{
	memset(mp, 0, sizeof(*mp));
	memset(out, 0, sizeof(*out));
	mp->out = out;
}

/* Replaces the offsets by paths; frees everything on error. */
static int maps_end(struct maps_parser *mp, int err)
{
	struct pm_maps *out = mp->out;
	struct pm_map_event *exact;
	size_t i;

	if (err) {
		strbuf_fini(&mp->text);
		pm_maps_fini(out);
		return err;
	}
	/* Thousands of these may be queued. */
	exact = out->n ? realloc(out->maps, out->n * sizeof(*exact)) : NULL;
	if (exact)
		out->maps = exact;
	out->text = strbuf_steal(&mp->text);
	for (i = 0; i < out->n; i++)
		out->maps[i].path = out->text + (uintptr_t)out->maps[i].path;
	return 0;
}

int pm_maps_parse(const char *text, size_t len, struct pm_maps *out)
{
	struct maps_parser mp;
	ssize_t n;

	maps_begin(&mp, out);
	n = maps_lines(&mp, text, len, true);
	return maps_end(&mp, n < 0 ? (int)n : 0);
}

void pm_maps_fini(struct pm_maps *m)
{
	free(m->maps);
	free(m->text);
	memset(m, 0, sizeof(*m));
}

/* 'buf': of MAPS_READ_SIZE bytes. */
static int maps_read_fd(struct maps_parser *mp, int fd, char *buf)
{
	size_t have = 0, all = 0;
	ssize_t n, used;

	while (all <= MAPS_READ_MAX) {
		n = read(fd, buf + have, MAPS_READ_SIZE - have);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		have += (size_t)n;
		all += (size_t)n;
		used = maps_lines(mp, buf, have, !n);
		if (used < 0)
			return (int)used;
		if (!used && have == MAPS_READ_SIZE)
			return -EINVAL; /* no line of the kernel is that long */
		if (!n)
			return 0;
		have -= (size_t)used;
		memmove(buf, buf + used, have);
	}
	return -EFBIG;
}

int pm_maps_read(const char *proc, uint32_t tgid, struct pm_maps *out)
{
	struct maps_parser mp;
	uint64_t begin;
	char path[512];
	char *buf;
	int fd, err;

	maps_begin(&mp, out);
	if (snprintf(path, sizeof(path), "%s/%u/maps", proc, tgid) >=
	    (int)sizeof(path))
		return -ENAMETOOLONG;
	buf = malloc(MAPS_READ_SIZE);
	if (!buf)
		return -ENOMEM;
	begin = clock_boottime_ns();
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0) {
		err = -errno;
		goto out;
	}
	err = maps_end(&mp, maps_read_fd(&mp, fd, buf));
	close(fd);
	if (!err) {
		out->tgid = tgid;
		out->begin = begin;
		out->end = clock_boottime_ns();
	}
out:
	free(buf);
	return err;
}
