/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* quark_ring: configuration, maps, and writing of records to the ring. */
#ifndef BPF_QUARK_RING_BPF_H
#define BPF_QUARK_RING_BPF_H

#include "bpf/abi.h"
#include "bpf/path.bpf.h"
#include "bpf/quark_pack.bpf.h"
#include "bpf/quark_task.bpf.h"

#define PATHS 3
#define PATH_BUF (ABI_QUARK_PATH_MAX + PATH_ROOM)
#define PATH_DEPTH 1024 /* components, at most */

/* Set before load. */
const volatile bool quark_no_wakeup;
const volatile bool quark_threads;
const volatile __u32 quark_max_env;
const volatile __u32 quark_cpus; /* possible ones: the iterator's slot */
const volatile __u32 quark_half; /* of the ring, bytes */
const volatile __u32 quark_home[ABI_QUARK_NAMESPACES];

/* Lengths, saved before the record is packed. */
struct strings {
	__u32 exe, args, cwd, cgroup, env, pad;
};

/* Where a record is made before its size is known. */
struct scratch {
	union {
		struct abi_quark_image image;
		struct abi_quark_id_change change;
		/* The stack has no room for these beside walk_kernfs(). */
		struct abi_quark_fork fork;
		struct abi_quark_exit exit;
	};
	struct strings len;
	struct walk walk;
	char name[256]; /* of a cgroup, for its length */
	/* Before args: for the verifier, a path may extend past its end. */
	char path[PATHS][PATH_BUF];
	char args[ABI_QUARK_ARGS_MAX];
	char env[ABI_QUARK_ENV_MAX];
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 16 * 1024 * 1024);
} ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* CPUs, set before load */
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct abi_quark_loss);
} losses SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* CPUs and one for the iterator, set before load */
	__type(key, __u32);
	__type(value, struct scratch);
} scratches SEC(".maps");

static void ring_drop(enum abi_quark_kind kind)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct abi_quark_loss *l = bpf_map_lookup_elem(&losses, &cpu);
	__u64 now = bpf_ktime_get_boot_ns();

	if (!l)
		return;
	l->lost[kind & 7]++;
	l->last = now;
	if (!l->first)
		l->first = now;
}

static __always_inline __u64 ring_wakeup(void)
{
	if (!quark_no_wakeup)
		return 0;
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) > quark_half ? BPF_RB_FORCE_WAKEUP
									: BPF_RB_NO_WAKEUP;
}

/* All but the time. */
static __always_inline void ring_fill_head(struct abi_quark_head *h, enum abi_quark_kind kind,
					   struct task_struct *task)
{
	h->kind = kind;
	h->flags = task->flags & PF_KTHREAD ? ABI_QUARK_KTHREAD : 0;
	fill_key(&h->key, task);
	h->tid = task->pid;
	h->cpu = bpf_get_smp_processor_id();
}

/* Reserves a slot. False: there is no room; nothing to submit. */
static __always_inline bool ring_reserve(enum abi_quark_kind kind, __u32 size,
					 struct bpf_dynptr *out)
{
	if (!bpf_ringbuf_reserve_dynptr(&ring, size, 0, out))
		return true;
	bpf_ringbuf_discard_dynptr(out, 0);
	ring_drop(kind);
	return false;
}

/* Sets the record's time, now that the slot is reserved, and submits it. */
static __always_inline void ring_submit(struct bpf_dynptr *out, struct abi_quark_head *packed,
					__u32 size, bool wake)
{
	((packed_t *)packed)->time = bpf_ktime_get_boot_ns();
	bpf_dynptr_write(out, 0, packed, size, 0);
	bpf_ringbuf_submit_dynptr(out, wake ? BPF_RB_FORCE_WAKEUP : ring_wakeup());
}

/* A record without strings. */
static __always_inline void ring_send(struct abi_quark_head *h, enum abi_quark_kind kind,
				      __u32 size, __u32 caps_at)
{
	struct bpf_dynptr out;

	size = record_pack(h, size, caps_at);
	if (ring_reserve(kind, size, &out))
		ring_submit(&out, h, size, false);
}

#endif /* BPF_QUARK_RING_BPF_H */
