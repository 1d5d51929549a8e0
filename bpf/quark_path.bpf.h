/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* quark_path: paths of files and cgroups as strings, from the kernel's trees. */
#ifndef BPF_QUARK_PATH_BPF_H
#define BPF_QUARK_PATH_BPF_H

#include "bpf/quark_ring.bpf.h"

struct walk_ctx {
	__u32 slot;
	__u32 which;
};

/* Prepends "/name" to the path. False: there is no room. */
static __always_inline bool scratch_prepend(struct scratch *s, __u32 which, const void *name,
					    __u32 len)
{
	if (which >= PATHS) {
		s->walk.cut = 1;
		return false;
	}
	return path_prepend(&s->walk, s->path[which], ABI_QUARK_PATH_MAX, name, len, NULL);
}

static long walk_dentry(__u32 i, void *arg)
{
	struct walk_ctx *ctx = arg;
	__u32 slot = ctx->slot, which = ctx->which;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &slot);

	if (!s || which >= PATHS)
		return 1;
	return path_step(&s->walk, s->path[which], ABI_QUARK_PATH_MAX, false);
}

static __always_inline struct kernfs_node *kernfs_parent(struct kernfs_node *kn)
{
	struct kernfs_node___6_14 *old = (void *)kn;

	if (bpf_core_field_exists(kn->__parent))
		return BPF_CORE_READ(kn, __parent);
	return (void *)BPF_CORE_READ(old, parent);
}

static long walk_kernfs(__u32 i, void *arg)
{
	struct walk_ctx *ctx = arg;
	__u32 slot = ctx->slot;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &slot);
	struct kernfs_node *kn, *parent;
	const char *name;
	long len;

	if (!s)
		return 1;
	kn = (struct kernfs_node *)s->walk.kn;
	parent = kernfs_parent(kn);
	if (!parent)
		return 1; /* the root has no name */
	name = BPF_CORE_READ(kn, name);
	len = bpf_probe_read_kernel_str(s->name, sizeof(s->name), name);
	if (len <= 1 || !scratch_prepend(s, ctx->which, name, len - 1))
		return 1;
	s->walk.kn = (__u64)parent;
	return 0;
}

/* The length of the path that was walked; "/" if it is empty. */
static __always_inline __u32 path_result(struct scratch *s, __u32 which)
{
	__u32 pos = s->walk.pos;

	if (s->walk.cut)
		s->image.head.flags |= ABI_QUARK_PATH_CUT;
	if (pos < ABI_QUARK_PATH_MAX)
		return ABI_QUARK_PATH_MAX - pos;
	s->path[which][ABI_QUARK_PATH_MAX - 1] = '/';
	return 1;
}

static __always_inline __u32 walk_path(struct scratch *s, __u32 slot, __u32 which,
				       const struct path *path, const struct fs_struct *fs)
{
	struct walk_ctx ctx = { .slot = slot, .which = which };
	const struct path_at at = { .dentry = path->dentry,
				    .mnt = path->mnt,
				    .root_dentry = fs->root.dentry,
				    .root_mnt = fs->root.mnt };
	struct walk *w = &s->walk;

	path_begin(w, &at, ABI_QUARK_PATH_MAX);
	if (bpf_loop(PATH_DEPTH, walk_dentry, &ctx, 0) == PATH_DEPTH)
		w->cut = 1;
	return path_result(s, which);
}

/* A name of so many characters or more: the hexadecimal id of a container. */
#define CONTAINER_ID_LEN 64

static __always_inline bool path_names_container(struct kernfs_node *kn)
{
	char name[CONTAINER_ID_LEN + 1];

	return bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(kn, name)) ==
	       sizeof(name);
}

/* The process's cgroup of a version 1 controller; NULL: none, or it is of version 2. */
static __always_inline struct kernfs_node *css_kn(struct css_set *set, __u32 id)
{
	struct cgroup_subsys_state *css;
	struct cgroup *cgroup;

	bpf_core_read(&css, sizeof(css), &set->subsys[0] + id);
	if (!css)
		return NULL;
	cgroup = BPF_CORE_READ(css, cgroup);
	if (BPF_CORE_READ(cgroup, root) == BPF_CORE_READ(set, dfl_cgrp, root))
		return NULL;
	return BPF_CORE_READ(cgroup, kn);
}

/*
 * The cgroup of one hierarchy: the unified one unless it is the root there, else memory's,
 * else pids'. But container engines of version 1 do not move a process in the unified
 * hierarchy, so memory's or pids' is preferred if it names a container.
 */
static __always_inline struct kernfs_node *cgroup_kn(struct task_struct *task)
{
	struct css_set *set = BPF_CORE_READ(task, cgroups);
	struct kernfs_node *kn = BPF_CORE_READ(set, dfl_cgrp, kn);
	struct kernfs_node *memory = NULL, *pids = NULL;

	if (bpf_core_enum_value_exists(enum cgroup_subsys_id, memory_cgrp_id))
		memory = css_kn(set, bpf_core_enum_value(enum cgroup_subsys_id, memory_cgrp_id));
	if (bpf_core_enum_value_exists(enum cgroup_subsys_id, pids_cgrp_id))
		pids = css_kn(set, bpf_core_enum_value(enum cgroup_subsys_id, pids_cgrp_id));
	if (memory && path_names_container(memory))
		return memory;
	if (pids && path_names_container(pids))
		return pids;
	if (kernfs_parent(kn))
		return kn;
	if (memory && kernfs_parent(memory))
		return memory;
	return pids ? pids : kn;
}

static __always_inline __u32 walk_cgroup(struct scratch *s, __u32 slot, __u32 which,
					 struct task_struct *task)
{
	struct walk_ctx ctx = { .slot = slot, .which = which };

	s->walk.kn = (__u64)cgroup_kn(task);
	s->walk.pos = ABI_QUARK_PATH_MAX;
	s->walk.cut = 0;
	bpf_loop(PATH_DEPTH, walk_kernfs, &ctx, 0);
	return path_result(s, which);
}

#endif /* BPF_QUARK_PATH_BPF_H */
