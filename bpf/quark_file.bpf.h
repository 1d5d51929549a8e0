/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* quark_file: the executed file, and whether user space knows it. */
#ifndef BPF_QUARK_FILE_BPF_H
#define BPF_QUARK_FILE_BPF_H

#include "bpf/quark_ring.bpf.h"

/* The rest is a flag: the time was asked for (6.13). */
#define NSEC_MASK 0x3fffffff

static __always_inline __u64 ctime_ns(struct inode *inode)
{
	struct inode___6_6 *i66 = (void *)inode;
	struct inode___6_1 *i61 = (void *)inode;

	if (bpf_core_field_exists(inode->i_ctime_sec))
		return BPF_CORE_READ(inode, i_ctime_sec) * 1000000000ULL +
		       (BPF_CORE_READ(inode, i_ctime_nsec) & NSEC_MASK);
	if (bpf_core_field_exists(i66->__i_ctime))
		return BPF_CORE_READ(i66, __i_ctime.tv_sec) * 1000000000ULL +
		       BPF_CORE_READ(i66, __i_ctime.tv_nsec);
	return BPF_CORE_READ(i61, i_ctime.tv_sec) * 1000000000ULL +
	       BPF_CORE_READ(i61, i_ctime.tv_nsec);
}

static __always_inline void fill_file(struct abi_quark_image *im, struct file *file)
{
	struct inode *inode = file->f_inode;

	im->dev = inode->i_sb->s_dev;
	im->ino = inode->i_ino;
	im->ctime_ns = ctime_ns(inode);
	im->size = inode->i_size;
}

#endif /* BPF_QUARK_FILE_BPF_H */
