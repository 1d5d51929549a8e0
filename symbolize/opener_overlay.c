// SPDX-License-Identifier: Apache-2.0
/*
 * opener_overlay: whether an unprivileged user mounted an overlay: see
 * symbolize/opener.h.
 *
 * Any user can mount an overlay in a new user namespace. Its files are those of
 * the layers beneath, which may be on FUSE: there a process of that user
 * decides when an open, a read or a close returns, and which inode numbers
 * exist. The type of the file system does not distinguish such an overlay from
 * a container's.
 *
 * The mount namespace does: its owner is the user namespace that it was created
 * in, and a mount never propagates from a namespace with a less privileged
 * owner to one with a more privileged owner (mount_namespaces(7)). So an
 * overlay is trusted if it is listed in a mount namespace that our own user
 * namespace owns: by mount id, or by device where the mount is a copy, as in a
 * container that maps user ids.
 */
#include <fcntl.h>
#include <linux/nsfs.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "symbolize/opener.h"

/* A mount namespace has 100,000 mounts by default (fs.mount-max). */
#define OVERLAY_TEXT_MAX (16 << 20)
#define OVERLAY_MAX 65536

/* The overlays in one mount namespace. */
struct overlays {
	int fd; /* its mountinfo file, which pins the namespace; 0: none yet */
	struct overlay {
		uint64_t mount, dev;
	} * v; /* NULL: not read */
	size_t n;
};

static bool overlay_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* 'dir' is /proc/PID. For a user namespace above ours ioctl() fails: EPERM. */
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

bool opener_mounts_trusted(int32_t pid)
{
	int dir = pid ? procfs_open((uint32_t)pid) : -1;
	bool is = !pid || (dir >= 0 && owner_is_ours(dir));

	if (dir >= 0)
		close(dir);
	return is;
}

static void overlays_read(struct overlays *o)
{
	struct opener_mount m;
	const char *p;
	size_t len;
	char *text;

	free(o->v);
	o->v = NULL;
	o->n = 0;
	if (lseek(o->fd, 0, SEEK_SET))
		return;
	p = text = opener_mount_text(o->fd, OVERLAY_TEXT_MAX, &len);
	o->v = text ? malloc(OVERLAY_MAX * sizeof(*o->v)) : NULL;
	while (o->v && o->n < OVERLAY_MAX &&
	       opener_mount_next(&p, text + len, &m))
		if (m.overlay && m.id && m.dev)
			o->v[o->n++] = (struct overlay){ m.id, m.dev };
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
 * First the mountinfo file, then its owner: a process may move to a namespace
 * of its own in between, but without privileges it cannot return from there.
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
 * Our namespace and that of process 1 are cached until the kernel reports a
 * change, so that no id in the list can have been reused for another mount.
 */
static bool overlays_changed(const struct overlays *o)
{
	struct pollfd p = { .fd = o->fd, .events = POLLPRI };

	return !o->v || poll(&p, 1, 0);
}

static bool kept_open(struct overlays *o, bool first)
{
	int dir = first ? procfs_open(1) : -1;

	if (!first)
		o->fd = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	else if (dir < 0 || mounts_are_ours(dir) || !overlays_open(o, dir))
		o->fd = -1; /* nor will it be useful later */
	if (dir >= 0)
		close(dir);
	return o->fd > 0;
}

static bool kept_have(struct overlays *o, bool first, uint64_t mount,
		      uint64_t dev)
{
	if (o->fd <= 0 && ((first && o->fd < 0) || !kept_open(o, first)))
		return false;
	if (overlays_changed(o))
		overlays_read(o);
	return overlays_have(o, mount, dev);
}

/* The process is usually in a container, which has few mounts. */
static bool process_has(int32_t pid, uint64_t mount, uint64_t dev)
{
	int dir = pid ? procfs_open((uint32_t)pid) : -1;
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
	/* An opener has one thread and keeps these until it exits. */
	static struct overlays own, first;

	return kept_have(&own, false, mount, dev) ||
	       kept_have(&first, true, mount, dev) ||
	       process_has(pid, mount, dev);
}
