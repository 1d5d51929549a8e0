// SPDX-License-Identifier: Apache-2.0
/*
 * opener_overlay: who mounted an overlay: see symbolize/opener.h.
 *
 * An overlay is mounted by any user, in a user namespace of his own, and its files
 * are then those of the layers beneath: of FUSE, where a process of that user
 * decides when an open, a read or a close returns, and which inode numbers there
 * are. The type of the file system alone does not tell such an overlay from that
 * of a container.
 *
 * A mount namespace says who mounts in it: it has an owner, the user namespace that
 * it was made in. What is mounted in a namespace with a less privileged owner
 * never propagates to one with a more privileged owner (mount_namespaces(7)). So
 * an overlay is trusted if it is listed in a mount namespace that our own user
 * namespace owns: by its mount id, or by its device where the mount is a copy, as
 * in a container with user ids of its own.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/opener.h"

/* A mount namespace has 100,000 mounts by default (fs.mount-max). */
#define OVERLAY_TEXT_MAX (16 << 20)
#define OVERLAY_MAX 65536

/* Of one mount namespace. */
struct overlays {
	int fd; /* a mountinfo file, which pins the namespace; 0: not opened */
	struct opener_overlay *v; /* NULL: to be read */
	size_t n;
};

static bool overlay_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* 'dir' is /proc/PID. Of a namespace above ours the kernel says EPERM. */
static bool owner_is_ours(int dir)
{
	int ns = openat(dir, "ns/mnt", O_RDONLY | O_CLOEXEC);
	int owner = ns < 0 ? -1 : ioctl(ns, NS_GET_USERNS);
	struct stat theirs, ours;
	bool is = owner >= 0 && !fstat(owner, &theirs) &&
		  !stat("/proc/self/ns/user", &ours) &&
		  overlay_same_file(&theirs, &ours);

	if (owner >= 0)
		close(owner);
	if (ns >= 0)
		close(ns);
	return is;
}

static bool mounts_are_ours(int dir)
{
	struct stat theirs, ours;

	return !fstatat(dir, "ns/mnt", &theirs, 0) &&
	       !stat("/proc/self/ns/mnt", &ours) &&
	       overlay_same_file(&theirs, &ours);
}

/* /proc/PID, which stays that of one process even if its number is reused. */
static int process_dir(int32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

bool opener_mounts_trusted(int32_t pid)
{
	int dir = pid ? process_dir(pid) : -1;
	bool is = !pid || (dir >= 0 && owner_is_ours(dir));

	if (dir >= 0)
		close(dir);
	return is;
}

/* All of it, malloc'd, up to the limit; NULL without memory. */
static char *overlay_read_text(int fd, size_t *len)
{
	size_t cap = 64 << 10;
	char *buf = malloc(cap), *more;
	ssize_t n = 1;

	*len = 0;
	while (buf && n > 0 && *len < OVERLAY_TEXT_MAX) {
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

static void overlays_read(struct overlays *o)
{
	size_t len = 0;
	char *text;

	if (lseek(o->fd, 0, SEEK_SET))
		return;
	text = overlay_read_text(o->fd, &len);
	o->v = text ? malloc(OVERLAY_MAX * sizeof(*o->v)) : NULL;
	o->n = o->v ? opener_mount_overlays(text, len, o->v, OVERLAY_MAX) : 0;
	free(text);
}

static bool overlays_have(const struct overlays *o, uint64_t mount,
			  uint64_t dev)
{
	for (size_t i = 0; i < o->n; i++)
		if (o->v[i].mount == mount || o->v[i].dev == dev)
			return true;
	return false;
}

static void overlays_close(struct overlays *o)
{
	if (o->fd > 0)
		close(o->fd);
	free(o->v);
	*o = (struct overlays){ 0 };
}

/*
 * The mountinfo file first, its owner then: a process may leave for a namespace of
 * its own in between, but none comes back from there without privileges.
 */
static bool overlays_open(struct overlays *o, int dir)
{
	o->fd = openat(dir, "mountinfo", O_RDONLY | O_CLOEXEC);
	if (o->fd > 0 && owner_is_ours(dir))
		return true;
	overlays_close(o);
	return false;
}

/*
 * Ours and those of the first process are kept until the kernel says that they
 * changed, so that no id in the list can be another mount's by now.
 */
static bool overlays_changed(const struct overlays *o)
{
	struct pollfd p = { .fd = o->fd, .events = POLLPRI };

	return !o->v || poll(&p, 1, 0);
}

static bool kept_open(struct overlays *o, bool first)
{
	int dir = first ? process_dir(1) : -1;

	if (!first)
		o->fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	else if (dir < 0 || mounts_are_ours(dir) || !overlays_open(o, dir))
		o->fd = -1; /* nor will it be of use later */
	if (dir >= 0)
		close(dir);
	return o->fd > 0;
}

static bool kept_have(struct overlays *o, bool first, uint64_t mount,
		      uint64_t dev)
{
	if (o->fd <= 0 && ((first && o->fd < 0) || !kept_open(o, first)))
		return false;
	if (overlays_changed(o)) {
		free(o->v);
		o->v = NULL;
		o->n = 0;
		overlays_read(o);
	}
	return overlays_have(o, mount, dev);
}

/* Mostly a container, whose mounts are few. */
static bool process_has(int32_t pid, uint64_t mount, uint64_t dev)
{
	int dir = pid ? process_dir(pid) : -1;
	struct overlays o = { 0 };
	bool has = false;

	if (dir < 0)
		return false;
	if (!mounts_are_ours(dir) && overlays_open(&o, dir)) {
		overlays_read(&o);
		has = overlays_have(&o, mount, dev);
		overlays_close(&o);
	}
	close(dir);
	return has;
}

bool opener_overlay_trusted(uint64_t mount, uint64_t dev, int32_t pid)
{
	/* An opener has one thread, and they are open as long as it runs. */
	static struct overlays own, first;

	return kept_have(&own, false, mount, dev) ||
	       kept_have(&first, true, mount, dev) ||
	       process_has(pid, mount, dev);
}
