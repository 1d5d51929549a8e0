// SPDX-License-Identifier: Apache-2.0
/*
 * opener_mount: parser of mountinfo files (proc_pid_mountinfo(5)): see
 * symbolize/opener.h. The kernel generates this text itself: reading it
 * accesses none of the mounted file systems.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "symbolize/opener.h"

/* Read on profd's loop, too: for a message the first 1 MiB is enough. */
#define MOUNTINFO_MAX (1 << 20)

/* The next word of a line; its length, 0: none. */
static size_t mount_next_word(const char **p, const char *end, const char **out)
{
	while (*p < end && **p == ' ')
		++*p;
	*out = *p;
	while (*p < end && **p != ' ')
		++*p;
	return (size_t)(*p - *out);
}

/* Decimal digits at the start; 0: none, or the number is too large. */
static uint64_t mount_number(const char **p, const char *end)
{
	uint64_t n = 0;

	for (; *p < end && **p >= '0' && **p <= '9'; ++*p)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(**p - '0'), &n))
			return 0;
	return n;
}

/* MAJOR:MINOR */
static uint64_t mount_device(const char *p, const char *end)
{
	uint64_t maj = mount_number(&p, end);

	if (p == end || *p++ != ':')
		return 0;
	return makedev((unsigned int)maj, (unsigned int)mount_number(&p, end));
}

bool opener_mount_next(const char **text, const char *end,
		       struct opener_mount *m)
{
	const char *eol, *w;
	size_t n;

	if (*text >= end)
		return false;
	eol = memchr(*text, '\n', (size_t)(end - *text));
	eol = eol ? eol : end;
	n = mount_next_word(text, eol, &w);
	m->id = mount_number(&w, w + n);
	mount_next_word(text, eol, &w); /* id of the parent */
	n = mount_next_word(text, eol, &w);
	m->dev = mount_device(w, w + n);
	mount_next_word(text, eol, &w); /* root, in the file system */
	m->point_len = mount_next_word(text, eol, &m->point);
	do /* options and optional fields, up to "-" */
		n = mount_next_word(text, eol, &w);
	while (n && (n != 1 || *w != '-'));
	n = mount_next_word(text, eol, &w);
	m->overlay = n == strlen("overlay") && memcmp(w, "overlay", n) == 0;
	*text = eol + (eol < end);
	return true;
}

bool opener_mount_find(const char *text, size_t len, uint64_t dev, char *out,
		       size_t cap)
{
	const char *end = text + len;
	struct opener_mount m;
	bool found = false;

	while (opener_mount_next(&text, end, &m)) {
		if (m.dev != dev || !dev || !m.point_len)
			continue;
		procfs_unescape(out, cap, m.point, m.point_len);
		found = true;
	}
	return found;
}

char *opener_mount_text(int fd, size_t max, size_t *len)
{
	size_t cap = 64 << 10;
	char *buf = malloc(cap), *more;
	ssize_t n = 1;

	*len = 0;
	while (buf && n > 0 && *len < max) {
		if (*len == cap) {
			more = realloc(buf, cap *= 2);
			if (!more)
				break;
			buf = more;
		}
		n = read(fd, buf + *len, cap - *len);
		*len += n > 0 ? (size_t)n : 0;
	}
	return buf;
}

/* The mounts of a process (0: ours), malloc'd, or NULL. */
static char *mount_read_all(int32_t pid, size_t *len)
{
	char path[40] = "/proc/self/mountinfo", *text;
	int fd;

	*len = 0;
	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	text = opener_mount_text(fd, MOUNTINFO_MAX, len);
	close(fd);
	return text;
}

bool opener_mount_of(uint64_t dev, int32_t pid, char *out, size_t cap)
{
	size_t len;
	char *text = mount_read_all(pid, &len);
	bool found = text && opener_mount_find(text, len, dev, out, cap);

	free(text);
	return found || (pid && opener_mount_of(dev, 0, out, cap));
}

bool opener_mount_is(uint64_t mount, uint64_t dev, int32_t pid)
{
	size_t len;
	char *text = mount_read_all(pid, &len);
	struct opener_mount m = { 0 };
	const char *p = text;

	while (p && mount && m.id != mount)
		if (!opener_mount_next(&p, text + len, &m))
			break;
	free(text);
	return dev && m.id == mount && m.dev == dev;
}
