/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * watch_send: the filter, the budgets of users and the ring of watched events. Nothing
 * of this is shared with the sampler or libquark, so that a storm of events costs
 * neither a record.
 */
#ifndef BPF_WATCH_SEND_BPF_H
#define BPF_WATCH_SEND_BPF_H

#include "bpf/abi_watch.h"
#include "bpf/limit.bpf.h"
#include "bpf/quark_task.bpf.h"

/* Events of 256 bytes a second of one user while the ring is crowded. */
#define WATCH_UID_RATE 2000
#define WATCH_UID_BYTES 256
#define WATCH_UIDS_MAX 1024
#define WATCH_NO_UID ~0U /* no process can have it */
#define WATCH_PIDS_MAX 192 /* and clients, of the filter before, and of the next one */

/* profd, whose events are left out, and those of its children. Set before load. */
const volatile __u32 watch_self;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4 * 1024 * 1024); /* set before load */
} watch_ring SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ABI_WATCH_CLASSES);
	__type(key, __u32);
	__type(value, struct abi_watch_filter);
} watch_filter SEC(".maps");

/* By process: enum abi_watch_pid. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, WATCH_PIDS_MAX);
	__type(key, __u32);
	__type(value, __u32);
} watch_pids SEC(".maps");

/* By name. User space has it mapped: they are too many to be looked up one by one. */
struct abi_watch_loss watch_losses[ABI_WATCH_ALL_NAMES];

/* When a user's budget is full again. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, WATCH_UIDS_MAX);
	__type(key, __u32);
	__type(value, __u64);
} watch_uids SEC(".maps");

static __always_inline struct abi_watch_filter *watch_get_filter(__u32 class)
{
	return bpf_map_lookup_elem(&watch_filter, &class);
}

static __always_inline bool watch_wanted(const struct abi_watch_filter *f, enum abi_watch_name name)
{
	return f && f->names >> name & 1;
}

/* Bits of enum abi_watch_pid. */
static __always_inline __u32 watch_pid(const struct abi_watch_filter *f, __u32 tgid)
{
	__u32 *bits = NULL;

	if (f->pids & ABI_WATCH_PID_BIT(tgid))
		bits = bpf_map_lookup_elem(&watch_pids, &tgid);
	return bits ? *bits : 0;
}

/* profd's own, or a helper process of it. */
static __always_inline bool watch_is_self(struct task_struct *task)
{
	return watch_self && ((__u32)task->tgid == watch_self ||
			      (__u32)task_cast(task)->real_parent->tgid == watch_self);
}

/*
 * As fill_key() and a read of comm, at less cost: each load from a task that was cast gets a
 * check of its address, so numbers are read from the task itself.
 */
static __always_inline void watch_fill_key(struct abi_key *key, struct task_struct *task)
{
	key->start_boottime = task_cast(task)->group_leader->start_boottime;
	key->exec_id = task->self_exec_id;
	key->tgid = task->tgid;
	key->pad = 0;
}

static __always_inline void watch_fill_comm(char *comm, const struct task_struct *task)
{
	for (int i = 0; i < ABI_COMM_LEN; i += sizeof(__u64))
		*(__u64 *)(comm + i) = CAST_WORD(task->comm + i);
}

static __always_inline void watch_fill_head(struct abi_watch_head *h, struct task_struct *task)
{
	const struct cred *cred = task_cast(task)->real_cred;

	watch_fill_key(&h->key, task);
	h->tid = task->pid;
	h->uid = cred->uid.val;
	h->gid = cred->gid.val;
	watch_fill_comm(h->comm, task);
}

static __always_inline void watch_fill_task(struct abi_watch_record *r, struct task_struct *task)
{
	watch_fill_head(&r->head, task);
}

/*
 * While the ring is crowded, a user has so many events a second. What is of no process has
 * a budget of its own: anybody can make resets and drops, also from another host.
 */
static __always_inline bool watch_may(const struct abi_watch_filter *f,
				      const struct abi_watch_head *h, __u32 bytes)
{
	__u32 uid = h->key.tgid ? h->uid : WATCH_NO_UID;
	__u64 zero = 0, *full;

	if (bpf_ringbuf_query(&watch_ring, BPF_RB_AVAIL_DATA) < f->crowded)
		return true;
	full = bpf_map_lookup_elem(&watch_uids, &uid);
	if (!full) {
		bpf_map_update_elem(&watch_uids, &uid, &zero, BPF_NOEXIST);
		full = bpf_map_lookup_elem(&watch_uids, &uid);
	}
	return !full || limit_take_many(full, WATCH_UID_RATE, 1 + bytes / WATCH_UID_BYTES,
					bpf_ktime_get_boot_ns());
}

static __noinline void watch_send(struct abi_watch_record *r)
{
	struct abi_watch_filter *f = watch_get_filter(ABI_WATCH_OTHERS);
	struct abi_watch_record *slot;
	struct abi_watch_loss *l;
	__u32 name;

	if (!r || !watch_wanted(f, r->head.name & 31))
		return;
	if (f->by_pid && !(watch_pid(f, r->head.key.tgid) & ABI_WATCH_PID_WANTED))
		return;
	if (r->head.flags & ABI_WATCH_TIMED && r->head.latency < f->slower)
		return;
	if (f->failed && !(r->head.flags & ABI_WATCH_FAILED))
		return;
	name = r->head.name & 31;
	l = &watch_losses[name];
	if (!watch_may(f, &r->head, sizeof(*r))) {
		__sync_fetch_and_add(&l->limited, 1);
		return;
	}
	slot = bpf_ringbuf_reserve(&watch_ring, sizeof(*slot), 0);
	if (!slot) {
		__sync_fetch_and_add(&l->dropped, 1);
		return;
	}
	*slot = *r;
	slot->head.time = bpf_ktime_get_boot_ns();
	bpf_ringbuf_submit(slot, BPF_RB_NO_WAKEUP);
}

#endif /* BPF_WATCH_SEND_BPF_H */
