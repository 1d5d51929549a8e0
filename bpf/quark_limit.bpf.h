/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * quark_limit: budgets for events that a process can repeat at will. A loop of
 * prctl(PR_SET_NAME) makes a million records a second. A record beyond the budget is
 * counted, and its kind is pending in the task's storage: the state is reported before
 * the next record of that process that is not limited.
 */
#ifndef BPF_QUARK_LIMIT_BPF_H
#define BPF_QUARK_LIMIT_BPF_H

#include "bpf/limit.bpf.h"
#include "bpf/quark_ring.bpf.h"

#define UIDS_MAX 1024
/* The budget of all processes of a uid, in budgets of one task. */
#define UID_REPEATS 100

/* A second and task; 0: no limit. Set before load. */
const volatile __u32 quark_repeats;

enum pending {
	PENDING_NAME = 1 << 0,
	PENDING_IDS = 1 << 1,
	PENDING_CWD = 1 << 2,
	PENDING_CGROUP = 1 << 3,
};

struct repeats {
	__u64 name, change; /* see limit_take(): when the budget is full again */
	__u64 pending; /* enum pending */
	__u64 renames; /* refused; the next rename's record has the number */
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct repeats);
} repeats SEC(".maps");

struct uid_budget {
	__u64 repeats, files; /* see limit_take() */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, UIDS_MAX);
	__type(key, __u32);
	__type(value, struct uid_budget);
} uids SEC(".maps");

/* NULL: no memory. */
static __always_inline struct uid_budget *uid_budget(__u32 uid)
{
	struct uid_budget *b = bpf_map_lookup_elem(&uids, &uid);
	struct uid_budget full = {};

	if (b)
		return b;
	bpf_map_update_elem(&uids, &uid, &full, BPF_NOEXIST);
	return bpf_map_lookup_elem(&uids, &uid);
}

static __always_inline void count_limited(void)
{
	__u32 cpu = bpf_get_smp_processor_id();
	struct abi_quark_loss *l = bpf_map_lookup_elem(&losses, &cpu);

	if (l)
		l->limited++;
}

/*
 * Whether the task may report this once more; otherwise it becomes pending. Without
 * memory for the task's storage only its user's budget counts, and nothing becomes
 * pending: the next exec or exit reports the state anyway.
 */
static __always_inline bool may_repeat(struct task_struct *task, enum pending what)
{
	struct uid_budget *uid;
	struct repeats *r;
	__u64 now;

	if (!quark_repeats)
		return true;
	r = bpf_task_storage_get(&repeats, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	now = bpf_ktime_get_boot_ns();
	if (r && !limit_take(what == PENDING_NAME ? &r->name : &r->change, quark_repeats, now))
		goto refuse;
	uid = uid_budget(BPF_CORE_READ(task, real_cred, uid.val));
	if (uid && !limit_take(&uid->repeats, quark_repeats * UID_REPEATS, now))
		goto refuse;
	/* Atomic: another CPU may set another bit of this task. */
	if (r && r->pending & what)
		__sync_fetch_and_and(&r->pending, ~(__u64)what);
	return true;
refuse:
	if (r) {
		__sync_fetch_and_or(&r->pending, (__u64)what);
		if (what == PENDING_NAME)
			__sync_fetch_and_add(&r->renames, 1);
	}
	count_limited();
	return false;
}

/* Clears and returns what is pending of the task; the caller reports it. */
static __always_inline __u64 take_pending(struct task_struct *task)
{
	struct repeats *r;

	if (!quark_repeats)
		return 0;
	r = bpf_task_storage_get(&repeats, task, NULL, 0);
	if (!r || !r->pending)
		return 0;
	return __sync_lock_test_and_set(&r->pending, 0);
}

/* Renames of the task that were refused since the last call. */
static __always_inline __u32 take_renames(struct task_struct *task)
{
	struct repeats *r;
	__u64 n;

	if (!quark_repeats)
		return 0;
	r = bpf_task_storage_get(&repeats, task, NULL, 0);
	if (!r)
		return 0;
	n = __sync_lock_test_and_set(&r->renames, 0);
	return n > ~0U ? ~0U : n;
}

#endif /* BPF_QUARK_LIMIT_BPF_H */
