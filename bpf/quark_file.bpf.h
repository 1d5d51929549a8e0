/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quark_file: the executed file, and whether user space knows it. A new file may be
 * deleted, and its process gone, within milliseconds, so its record wakes up the reader,
 * which can open it. Such wakeups are limited; further records wait for the next poll.
 */
#ifndef BPF_QUARK_FILE_BPF_H
#define BPF_QUARK_FILE_BPF_H

#include "bpf/ident.bpf.h"
#include "bpf/quark_limit.bpf.h"
#include "bpf/quark_ring.bpf.h"

static __always_inline void fill_file(struct abi_quark_image *im, struct file *file)
{
	struct abi_quark_file id;

	ident_of(&id, file);
	im->dev = id.dev;
	im->ino = id.ino;
	im->ctime_ns = id.ctime_ns;
	im->size = id.size;
}

/* Wake-ups for new files a second: for one uid's, and for all. */
#define NEW_FILES_UID 200
#define NEW_FILES_ALL 800
#define UID_ALL ((__u32)-1) /* INVALID_UID: no user has it */

/* attr.new_file is set. Set before load. */
const volatile bool quark_new_files;

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); /* set before load, with quark_new_files */
	__type(key, struct abi_quark_file);
	__type(value, __u32);
} known_files SEC(".maps");

static __always_inline bool may_wake(__u32 uid, __u64 now)
{
	struct uid_budget *b = uid_budget(uid);

	if (b && !limit_take(&b->files, NEW_FILES_UID, now))
		return false;
	b = uid_budget(UID_ALL);
	return !b || limit_take(&b->files, NEW_FILES_ALL, now);
}

/* Sets the flag of a new file's exec. True: its record wakes up the reader. */
static __always_inline bool new_file(struct abi_quark_image *im)
{
	struct abi_quark_file file = {
		.dev = im->dev,
		.ino = im->ino,
		.ctime_ns = im->ctime_ns,
		.size = im->size,
	};
	__u32 cpu = bpf_get_smp_processor_id();
	struct abi_quark_loss *l;

	if (!quark_new_files || !im->ino || bpf_map_lookup_elem(&known_files, &file))
		return false;
	im->head.flags |= ABI_QUARK_NEW_FILE;
	if (may_wake(im->ids.uid, bpf_ktime_get_boot_ns()))
		return true;
	l = bpf_map_lookup_elem(&losses, &cpu);
	if (l)
		l->unwoken++;
	return false;
}

#endif /* BPF_QUARK_FILE_BPF_H */
