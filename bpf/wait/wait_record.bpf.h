/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wait_record: long waits, one by one (bpf/abi_wait.h). Called with a run queue locked: see
 * wait_segment.
 */
#ifndef BPF_WAIT_RECORD_BPF_H
#define BPF_WAIT_RECORD_BPF_H

#include "bpf/abi_wait.h"
#include "bpf/limit.bpf.h"
#include "bpf/wait/wait_segment.bpf.h"
#include "bpf/wait/wait_sum.bpf.h"

/* Of one page unless user space asks for ABI_RECORD_RING. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, ABI_RECORD_RING);
} wait_records SEC(".maps");

/* Set by user space. */
__u64 wait_min = ABI_WAIT_MIN_NONE;
__u32 wait_cut_records;

/* Budgets of a second, by user as wait_users, and by process. */
__u64 wait_user_records[ABI_WAIT_USERS];
__u64 wait_process_records[ABI_WAIT_USERS];

/* For tests, on slow hosts: budgets are a twentieth. Set before load. */
const volatile bool wait_few_records;

/* A wait of unknown begin (0) is none. It may have begun after a cut's time. */
static __always_inline bool record_wanted(__u64 begin, __u64 end)
{
	return begin && (__s64)(end - begin) >= (__s64) * (volatile __u64 *)&wait_min;
}

static __always_inline bool record_idle(struct task_struct *task, __u32 what)
{
	return task_cast(task)->flags & PF_KTHREAD && ABI_WAIT_WHAT_REASON(what) == ABI_WAIT_OTHER;
}

/* By the user it has now: an image may have begun as another's. */
static __always_inline bool record_allowed(struct task_struct *task, __u32 tgid, __u64 now)
{
	__u32 process = sum_user(tgid) & (ABI_WAIT_USERS - 1);
	__u32 user = sum_user(task_cast(task)->real_cred->uid.val) & (ABI_WAIT_USERS - 1);
	__u32 less = wait_few_records ? ABI_RECORD_FEW : 1;

	return limit_take(&wait_process_records[process], ABI_RECORD_PROCESS / less, now) &&
	       limit_take(&wait_user_records[user], ABI_RECORD_USER / less, now);
}

/* 'waker': of a wait that has ended. */
static __noinline int record_put(struct task_struct *task, const struct abi_wait_key *key,
				 const struct abi_waker *waker, const struct segment *s, __u64 site)
{
	struct abi_segment *out;

	if (!key || !waker || !s || record_idle(task, s->what))
		return 0;
	if (!record_allowed(task, key->tgid, s->to)) {
		__sync_fetch_and_add(&wait_counters.records_limited, 1);
		return 0;
	}
	out = bpf_ringbuf_reserve(&wait_records, sizeof(*out), 0);
	if (!out) {
		__sync_fetch_and_add(&wait_counters.records_full, 1);
		return 0;
	}
	__builtin_memset(out, 0, sizeof(*out));
	out->begin = s->from;
	out->end = s->to;
	out->key.start_boottime = key->start_boottime;
	out->key.exec_id = key->exec_id;
	out->key.tgid = key->tgid;
	out->tid = s->tid;
	out->what = s->what;
	out->flags = s->flags;
	out->site = site;
	if (!(s->flags & ABI_SEGMENT_OPEN))
		out->waker = *waker;
	bpf_probe_read_kernel(out->comm, sizeof(out->comm), task->comm);
	bpf_ringbuf_submit(out, BPF_RB_NO_WAKEUP);
	return 0;
}

#endif /* BPF_WAIT_RECORD_BPF_H */
