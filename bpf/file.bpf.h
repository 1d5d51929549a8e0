/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* file: the open file of a descriptor, and what tells files without a type apart. */
#ifndef BPF_FILE_BPF_H
#define BPF_FILE_BPF_H

#include "bpf/vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

/* uapi/linux/stat.h: the type in a mode; stable. */
#define MODE_FIFO 1
#define MODE_CHAR 2
#define MODE_DIR 4
#define MODE_BLOCK 6
#define MODE_FILE 8
#define MODE_LINK 10
#define MODE_SOCKET 12
#define MODE_TYPE(mode) ((mode) >> 12 & 15)

#define ANON_INODE_FS_MAGIC 0x09041934 /* uapi/linux/magic.h */

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

#endif /* BPF_FILE_BPF_H */
