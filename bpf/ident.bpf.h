/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* ident: an executed file, as user space knows it again (struct abi_quark_file). */
#ifndef BPF_IDENT_BPF_H
#define BPF_IDENT_BPF_H

#include "bpf/abi.h"
#include "bpf/vmlinux.h"
#include <bpf/bpf_core_read.h>

/* The other bits have a flag: the time was read (6.13). */
#define NSEC_MASK 0x3fffffff

static __always_inline __u64 ident_ctime_ns(struct inode *inode)
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

static __always_inline void ident_of(struct abi_quark_file *id, struct file *file)
{
	struct inode *inode = file->f_inode;

	id->dev = inode->i_sb->s_dev;
	id->ino = inode->i_ino;
	id->ctime_ns = ident_ctime_ns(inode);
	id->size = inode->i_size;
}

#endif /* BPF_IDENT_BPF_H */
