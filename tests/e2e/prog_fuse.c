// SPDX-License-Identifier: Apache-2.0
/*
 * prog_fuse DIR FILE [noflush|flush]: a FUSE file system (linux/fuse.h, protocol 7.31)
 * at DIR in which every name has the content of FILE, each with an inode of its own. It
 * answers the requests needed to run a program, and never a STATFS: a process that
 * sends one, as profd does before it opens a file, waits until this program ends. With
 * noflush it does not answer when a file is closed either: an execve that closes one
 * waits with its exec_update_lock held, and so does a process that opens its
 * /proc/PID/maps. With flush it answers a STATFS, and never a FLUSH: a process that
 * closes a file waits. Prints "mounted".
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#define REQUEST_MAX (FUSE_MIN_READ_BUFFER + (128 << 10))
#define FOR_EVER 3600

static int dev;
static int content = -1;
static bool noflush, statfs_answered;
static struct stat st;

static void reply(const struct fuse_in_header *in, int err, const void *body,
		  size_t len)
{
	struct fuse_out_header out = {
		.len = (uint32_t)(sizeof(out) + (err ? 0 : len)),
		.error = -err,
		.unique = in->unique,
	};
	struct iovec iov[] = { { &out, sizeof(out) }, { (void *)body, len } };

	if (writev(dev, iov, err ? 1 : 2) < 0)
		perror("prog_fuse: reply");
}

static struct fuse_attr attr_of(uint64_t ino)
{
	struct fuse_attr a = { .ino = ino, .nlink = 1, .blksize = 4096 };

	a.mode = ino == FUSE_ROOT_ID ? S_IFDIR | 0755 : S_IFREG | 0755;
	if (ino != FUSE_ROOT_ID)
		a.size = (uint64_t)st.st_size;
	a.blocks = a.size / 512;
	a.mtime = a.ctime = a.atime = (uint64_t)st.st_mtime;
	return a;
}

static uint64_t ino_of(const char *name)
{
	uint64_t h = 2;

	for (; *name; name++)
		h = h * 131 + (unsigned char)*name;
	return h % 1000003 + 2;
}

static void do_lookup(const struct fuse_in_header *in)
{
	uint64_t ino = ino_of((const char *)(in + 1));
	struct fuse_entry_out e = {
		.nodeid = ino,
		.generation = 1,
		.entry_valid = FOR_EVER,
		.attr_valid = FOR_EVER,
		.attr = attr_of(ino),
	};

	reply(in, 0, &e, sizeof(e));
}

static void do_getattr(const struct fuse_in_header *in)
{
	struct fuse_attr_out a = { .attr_valid = FOR_EVER,
				   .attr = attr_of(in->nodeid) };

	reply(in, 0, &a, sizeof(a));
}

static void do_open(const struct fuse_in_header *in)
{
	struct fuse_open_out o = { .fh = 1, .open_flags = FOPEN_KEEP_CACHE };

	reply(in, 0, &o, sizeof(o));
}

static void do_read(const struct fuse_in_header *in)
{
	const struct fuse_read_in *r = (const void *)(in + 1);
	static char buf[REQUEST_MAX];
	ssize_t n;

	n = pread(content, buf, r->size < sizeof(buf) ? r->size : sizeof(buf),
		  (off_t)r->offset);
	reply(in, n < 0 ? EIO : 0, buf, n < 0 ? 0 : (size_t)n);
}

static void do_statfs(const struct fuse_in_header *in)
{
	struct fuse_statfs_out s = { .st = { .bsize = 4096, .namelen = 255 } };

	if (statfs_answered)
		reply(in, 0, &s, sizeof(s));
}

static void do_init(const struct fuse_in_header *in)
{
	const struct fuse_init_in *i = (const void *)(in + 1);
	struct fuse_init_out o = {
		.major = FUSE_KERNEL_VERSION,
		.minor = 31,
		.max_readahead = i->max_readahead,
		.max_write = 4096,
	};

	reply(in, 0, &o, sizeof(o));
	puts("mounted");
	fflush(stdout);
}

static void serve(const struct fuse_in_header *in)
{
	switch (in->opcode) {
	case FUSE_INIT:
		do_init(in);
		break;
	case FUSE_LOOKUP:
		do_lookup(in);
		break;
	case FUSE_GETATTR:
		do_getattr(in);
		break;
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		do_open(in);
		break;
	case FUSE_READ:
		do_read(in);
		break;
	case FUSE_STATFS:
		do_statfs(in);
		break;
	case FUSE_FLUSH:
		if (!noflush)
			reply(in, 0, NULL, 0);
		break;
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		reply(in, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		break; /* no answer */
	default:
		reply(in, ENOSYS, NULL, 0);
	}
}

int main(int argc, char **argv)
{
	static char buf[REQUEST_MAX] __attribute__((aligned(8)));
	char options[128];
	ssize_t n;

	if (argc != 3 && argc != 4)
		return 2;
	noflush = argc == 4;
	statfs_answered = argc == 4 && !strcmp(argv[3], "flush");
	content = open(argv[2], O_RDONLY | O_CLOEXEC);
	dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (content < 0 || dev < 0 || fstat(content, &st))
		return 3;
	snprintf(options, sizeof(options),
		 "fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other", dev);
	if (mount("prog_fuse", argv[1], "fuse", MS_NODEV | MS_NOSUID,
		  options)) {
		perror("prog_fuse: mount");
		return 4;
	}
	while ((n = read(dev, buf, sizeof(buf))) > 0 || errno == EINTR)
		if (n >= (ssize_t)sizeof(struct fuse_in_header))
			serve((const void *)buf);
	return 0;
}
