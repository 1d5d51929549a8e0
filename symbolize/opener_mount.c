// SPDX-License-Identifier: Apache-2.0
/*
 * opener_mount: mount points by device, for messages, and overlays by who mounted
 * them: see symbolize/opener.h. A mountinfo file (proc_pid_mountinfo(5)) is text
 * of the kernel's own: reading it asks no file system that is mounted.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "symbolize/opener.h"

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

static bool mount_word_is(const char *w, size_t n, const char *want)
{
	return strlen(want) == n && memcmp(want, w, n) == 0;
}

enum {
	FIELD_ID,
	FIELD_PARENT,
	FIELD_DEVICE, /* MAJOR:MINOR */
	FIELD_ROOT,
	FIELD_POINT,
	FIELD_TYPE, /* behind optional fields and "-" */
	N_FIELDS,
};

struct fields {
	const char *at[N_FIELDS];
	size_t len[N_FIELDS];
};

/* The next line of [*text, end); false: there is none. */
static bool next_line(const char **text, const char *end, struct fields *f)
{
	const char *eol, *w;
	size_t n;

	if (*text >= end)
		return false;
	eol = memchr(*text, '\n', (size_t)(end - *text));
	eol = eol ? eol : end;
	for (int i = 0; i <= FIELD_POINT; i++)
		f->len[i] = mount_next_word(text, eol, &f->at[i]);
	do
		n = mount_next_word(text, eol, &w);
	while (n && !mount_word_is(w, n, "-"));
	f->len[FIELD_TYPE] = mount_next_word(text, eol, &f->at[FIELD_TYPE]);
	*text = eol + (eol < end);
	return true;
}

static bool is_of(const struct fields *f, uint64_t dev)
{
	char want[32];

	snprintf(want, sizeof(want), "%u:%u", major(dev), minor(dev));
	return mount_word_is(f->at[FIELD_DEVICE], f->len[FIELD_DEVICE], want);
}

bool opener_mount_find(const char *text, size_t len, uint64_t dev, char *out,
		       size_t cap)
{
	const char *end = text + len;
	bool found = false;
	struct fields f;

	while (next_line(&text, end, &f)) {
		if (!is_of(&f, dev) || !f.len[FIELD_POINT])
			continue;
		procfs_unescape(out, cap, f.at[FIELD_POINT],
				f.len[FIELD_POINT]);
		found = true;
	}
	return found;
}

bool opener_mount_has(const char *text, size_t len, uint64_t mount,
		      uint64_t dev)
{
	const char *end = text + len;
	struct fields f;
	char want[32];

	snprintf(want, sizeof(want), "%llu", (unsigned long long)mount);
	while (next_line(&text, end, &f))
		if (mount_word_is(f.at[FIELD_ID], f.len[FIELD_ID], want))
			return is_of(&f, dev);
	return false;
}

/* A number of decimal digits at the begin; 0: none, or one that is too large. */
static uint64_t mount_number(const char **p, const char *end)
{
	uint64_t n = 0;

	for (; *p < end && **p >= '0' && **p <= '9'; ++*p)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(**p - '0'), &n))
			return 0;
	return n;
}

static bool is_overlay(const struct fields *f, struct opener_overlay *o)
{
	const char *p = f->at[FIELD_DEVICE], *end = p + f->len[FIELD_DEVICE];
	uint64_t maj, min;

	if (!mount_word_is(f->at[FIELD_TYPE], f->len[FIELD_TYPE], "overlay"))
		return false;
	maj = mount_number(&p, end);
	if (p == end || *p++ != ':')
		return false;
	min = mount_number(&p, end);
	o->dev = makedev((unsigned int)maj, (unsigned int)min);
	p = f->at[FIELD_ID];
	o->mount = mount_number(&p, p + f->len[FIELD_ID]);
	return o->dev && o->mount;
}

size_t opener_mount_overlays(const char *text, size_t len,
			     struct opener_overlay *out, size_t cap)
{
	const char *end = text + len;
	struct opener_overlay o;
	struct fields f;
	size_t n = 0;

	while (n < cap && next_line(&text, end, &f))
		if (is_overlay(&f, &o))
			out[n++] = o;
	return n;
}

/* The mounts of a process (0: ours), malloc'd, or NULL. */
static char *mount_read_all(int32_t pid, size_t *len)
{
	char path[40] = "/proc/self/mountinfo", *buf;
	ssize_t n;
	int fd;

	if (pid)
		snprintf(path, sizeof(path), "/proc/%d/mountinfo", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	*len = 0;
	buf = malloc(MOUNTINFO_MAX);
	while (buf && *len < MOUNTINFO_MAX &&
	       (n = read(fd, buf + *len, MOUNTINFO_MAX - *len)) > 0)
		*len += (size_t)n;
	close(fd);
	return buf;
}

bool opener_mount_of(uint64_t dev, int32_t pid, char *out, size_t cap)
{
	size_t len = 0;
	char *text = mount_read_all(pid, &len);
	bool found = text && opener_mount_find(text, len, dev, out, cap);

	free(text);
	return found || (pid && opener_mount_of(dev, 0, out, cap));
}

bool opener_mount_is(uint64_t mount, uint64_t dev, int32_t pid)
{
	size_t len = 0;
	char *text = mount_read_all(pid, &len);
	bool is = text && opener_mount_has(text, len, mount, dev);

	free(text);
	return is;
}
