/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* file: the open file of a descriptor, and its kind. */
#ifndef BPF_FILE_BPF_H
#define BPF_FILE_BPF_H

#include "bpf/abi_fd.h"
#include "bpf/cast.bpf.h"

/* uapi/linux/stat.h: the type in a mode; stable. */
#define MODE_FIFO 1
#define MODE_CHAR 2
#define MODE_DIR 4
#define MODE_BLOCK 6
#define MODE_FILE 8
#define MODE_LINK 10
#define MODE_SOCKET 12
#define MODE_TYPE(mode) ((mode) >> 12 & 15)

/* uapi/linux/magic.h: stable. */
#define ANON_INODE_FS_MAGIC 0x09041934
#define SOCKFS_MAGIC 0x534f434b
#define PIPEFS_MAGIC 0x50495045
#define PID_FS_MAGIC 0x50494446 /* 6.9 */
#define NSFS_MAGIC 0x6e736673

/* The first eight bytes of a name, as they are in memory on a little-endian machine. */
#define FILE_NAME(a, b, c, d, e, f, g, h)                                                        \
	((__u64)(a) | (__u64)(b) << 8 | (__u64)(c) << 16 | (__u64)(d) << 24 | (__u64)(e) << 32 | \
	 (__u64)(f) << 40 | (__u64)(g) << 48 | (__u64)(h) << 56)

/* Files that have one inode together are known by the name that the kernel gave them. */
#define FILE_IS_EVENTFD FILE_NAME('[', 'e', 'v', 'e', 'n', 't', 'f', 'd')
#define FILE_IS_EPOLL FILE_NAME('[', 'e', 'v', 'e', 'n', 't', 'p', 'o')
#define FILE_IS_TIMERFD FILE_NAME('[', 't', 'i', 'm', 'e', 'r', 'f', 'd')
#define FILE_IS_SIGNALFD FILE_NAME('[', 's', 'i', 'g', 'n', 'a', 'l', 'f')
#define FILE_IS_IO_URING FILE_NAME('[', 'i', 'o', '_', 'u', 'r', 'i', 'n')
#define FILE_IS_INOTIFY FILE_NAME('i', 'n', 'o', 't', 'i', 'f', 'y', 0)
#define FILE_IS_PIDFD FILE_NAME('[', 'p', 'i', 'd', 'f', 'd', ']', 0)

/*
 * The file of a descriptor; NULL: there is none. Another thread may close it meanwhile:
 * then what is read of it is of another file, or of none. Such a pointer has no type for
 * the verifier.
 */
static __always_inline struct file *file_at(struct files_struct *files, __u32 n)
{
	struct file *file = NULL;
	struct fdtable *fdt;

	if (!files)
		return NULL;
	fdt = files->fdt;
	if (n < fdt->max_fds)
		bpf_probe_read_kernel(&file, sizeof(file), fdt->fd + n);
	return file;
}

/* Of a file without a type. */
static __always_inline __u8 file_anon_kind(const struct dentry *dentry)
{
	__u64 name = 0;

	bpf_probe_read_kernel(&name, sizeof(name), CAST_READ(struct dentry, dentry, d_name.name));
	switch (name) {
	case FILE_IS_EVENTFD:
		return ABI_FD_EVENTFD;
	case FILE_IS_EPOLL:
		return ABI_FD_EPOLL;
	case FILE_IS_TIMERFD:
		return ABI_FD_TIMERFD;
	case FILE_IS_SIGNALFD:
		return ABI_FD_SIGNALFD;
	case FILE_IS_IO_URING:
		return ABI_FD_IO_URING;
	case FILE_IS_INOTIFY:
		return ABI_FD_INOTIFY;
	case FILE_IS_PIDFD:
		return ABI_FD_PIDFD;
	}
	return ABI_FD_ANON;
}

/* The kind of what is open; of all sockets SOCKET. */
static __always_inline __u8 file_kind(const struct inode *inode, const struct dentry *dentry)
{
	__u16 mode = MODE_TYPE(CAST_READ(struct inode, inode, i_mode));
	const struct super_block *sb;
	unsigned long magic;

	if (mode == MODE_DIR)
		return ABI_FD_DIR;
	if (mode == MODE_CHAR)
		return ABI_FD_CHAR;
	if (mode == MODE_BLOCK)
		return ABI_FD_BLOCK;
	if (mode == MODE_LINK)
		return ABI_FD_LINK;
	sb = CAST_READ(struct inode, inode, i_sb);
	magic = CAST_READ(struct super_block, sb, s_magic);
	if (mode == MODE_FIFO)
		return magic == PIPEFS_MAGIC ? ABI_FD_PIPE : ABI_FD_FIFO;
	if (mode == MODE_SOCKET && magic == SOCKFS_MAGIC)
		return ABI_FD_SOCKET;
	if (magic == PID_FS_MAGIC)
		return ABI_FD_PIDFD;
	if (magic == NSFS_MAGIC)
		return ABI_FD_NAMESPACE;
	/* Since 6.16 they have the type of a file. */
	if (!mode || magic == ANON_INODE_FS_MAGIC)
		return file_anon_kind(dentry);
	/* A socket in a file system, opened as a path, is a name like others. */
	return ABI_FD_FILE;
}

#endif /* BPF_FILE_BPF_H */
