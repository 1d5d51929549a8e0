/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * path: that of a file or cgroup, from its last name to its root, one name a step; the
 * string grows towards the beginning of its buffer.
 */
#ifndef BPF_PATH_BPF_H
#define BPF_PATH_BPF_H

#include "bpf/cast.bpf.h"

/* Behind a buffer whose length is a power of two: the verifier sees no closer bound. */
#define PATH_ROOM 512

struct walk {
	__u64 dentry, mnt, mnt_root, root_dentry, root_mnt; /* addresses */
	__u64 kn;
	__u32 pos; /* of the first byte in the buffer */
	__u32 cut; /* it lacks its beginning */
};

#define PATH_WORDS 4 /* of a name at most */

/*
 * A short name is in the dentry itself, behind members longer than it, so that bytes before
 * its begin can be read.
 */
static __always_inline bool path_is_inside(const struct dentry *dentry, const void *name, __u32 len)
{
	return CAST_EXISTS && dentry && len <= PATH_WORDS * sizeof(__u64) &&
	       (__u64)name - (__u64)dentry - PATH_WORDS * sizeof(__u64) <
		       bpf_core_type_size(struct dentry);
}

/*
 * From the end: what the last word has before the name is overwritten by what comes before
 * it. A helper's call costs more than all of this.
 */
static __always_inline void path_copy_words(char *buf, const __u32 size, __u32 end,
					    const void *name_end, __u32 len)
{
#pragma unroll
	for (__u32 n = sizeof(__u64); n <= PATH_WORDS * sizeof(__u64); n += sizeof(__u64)) {
		*(__u64 *)(buf + ((end - n) & (size - 1))) = CAST_WORD(name_end - n);
		if (len <= n)
			break;
	}
}

/*
 * Prepends "/name" in a buffer of 'size' + PATH_ROOM bytes. 'dentry': whose name it may be;
 * or NULL. False: there is no room.
 */
static __always_inline bool path_prepend(struct walk *w, char *buf, const __u32 size,
					 const void *name, __u32 len, const struct dentry *dentry)
{
	__u32 pos = w->pos, end = pos;

	len &= 255;
	if (pos <= len || pos > size) {
		w->cut = 1;
		return false;
	}
	pos = (pos - len - 1) & (size - 1);
	if (path_is_inside(dentry, name, len) && end >= PATH_WORDS * sizeof(__u64)) {
		path_copy_words(buf, size, end, name + len, len);
		buf[pos] = '/';
	} else {
		buf[pos] = '/';
		bpf_probe_read_kernel(buf + pos + 1, len, name);
	}
	w->pos = pos;
	return true;
}

static __always_inline void path_enter_mount(struct walk *w, const struct vfsmount *mnt)
{
	w->mnt = (__u64)mnt;
	w->mnt_root = (__u64)CAST_READ(struct vfsmount, mnt, mnt_root);
}

/* Where a path is, and the root of the process that sees it. */
struct path_at {
	struct dentry *dentry, *root_dentry;
	struct vfsmount *mnt, *root_mnt;
};

/* 'end': where the string ends. */
static __always_inline void path_begin(struct walk *w, const struct path_at *at, __u32 end)
{
	w->dentry = (__u64)at->dentry;
	path_enter_mount(w, at->mnt);
	w->root_dentry = (__u64)at->root_dentry;
	w->root_mnt = (__u64)at->root_mnt;
	w->pos = end;
	w->cut = 0;
}

/* 1: that was the last step. 'quick': short names are copied by words. */
static __always_inline long path_step(struct walk *w, char *buf, const __u32 size, const bool quick)
{
	struct dentry *dentry = (struct dentry *)w->dentry, *parent;
	struct vfsmount *mnt = (struct vfsmount *)w->mnt;
	struct mount *m, *above;
	const unsigned char *name;
	__u32 len;

	if (w->dentry == w->root_dentry && w->mnt == w->root_mnt)
		return 1;
	if (w->dentry == w->mnt_root) {
		m = (void *)mnt - bpf_core_field_offset(struct mount, mnt);
		above = CAST_READ(struct mount, m, mnt_parent);
		if (above == m)
			return 1; /* the namespace's root */
		w->dentry = (__u64)CAST_READ(struct mount, m, mnt_mountpoint);
		path_enter_mount(w, (void *)above + bpf_core_field_offset(struct mount, mnt));
		return 0;
	}
	parent = CAST_READ(struct dentry, dentry, d_parent);
	name = CAST_READ(struct dentry, dentry, d_name.name);
	len = CAST_READ(struct dentry, dentry, d_name.len);
	if (!path_prepend(w, buf, size, name, len, quick ? dentry : NULL))
		return 1;
	w->dentry = (__u64)parent;
	return parent == dentry || !parent; /* the root of a memfd's file system */
}

#endif /* BPF_PATH_BPF_H */
