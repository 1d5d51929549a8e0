/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wait_segment: segments of chosen processes (bpf/abi_wait.h): what woke a thread, and
 * the records. Called with a run queue locked: the map takes no memory then, and the ring
 * only a raw spinlock of its own; it is not shared with a perf_event program.
 */
#ifndef BPF_WAIT_SEGMENT_BPF_H
#define BPF_WAIT_SEGMENT_BPF_H

#include "bpf/abi_wait.h"
#include "bpf/arch.bpf.h"
#include "bpf/quark_task.bpf.h"

/* include/linux/preempt.h; the same since 6.1. */
#define PREEMPT_SOFTIRQ 0x100 /* runs one; those that are only disabled count by 0x200 */
#define PREEMPT_INTERRUPT 0xff0000 /* hard ones and NMIs */

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, ABI_SEGMENT_RING);
} segments SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, ABI_CHOSEN_MAX);
	__type(key, __u32);
	__type(value, struct abi_chosen);
} wait_chosen SEC(".maps");

/* Set by user space, before an entry is made. */
__u64 wait_chosen_bits[ABI_CHOSEN_BITS / 64];
/* See arch_preempt_count(). Set by user space, before the first entry is made. */
__s64 wait_preempt_offset;

struct segment {
	__u64 from, to;
	__u32 tid, what, flags, woken;
};

static __always_inline bool segment_wanted(__u32 tgid)
{
	__u32 bit = tgid & (ABI_CHOSEN_BITS - 1);

	return wait_chosen_bits[bit / 64] >> bit % 64 & 1;
}

/* Of the context of sched_waking. */
static __noinline int segment_waker(struct abi_waker *w)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 count = 0;

	if (!w)
		return 0;
	w->kind = !arch_preempt_count(task, wait_preempt_offset, &count) ? ABI_WAKER_UNKNOWN
		  : count & PREEMPT_INTERRUPT				 ? ABI_WAKER_IRQ
		  : count & PREEMPT_SOFTIRQ				 ? ABI_WAKER_SOFTIRQ
									 : ABI_WAKER_TASK;
	/* The idle task wakes nobody, but runs what other CPUs have sent to it. */
	if (!task->pid && w->kind != ABI_WAKER_SOFTIRQ)
		w->kind = ABI_WAKER_IRQ;
	if (!task->pid || w->kind == ABI_WAKER_IRQ) {
		__builtin_memset(&w->key, 0, sizeof(w->key));
		w->tid = 0;
		return 0;
	}
	fill_key(&w->key, task);
	w->tid = task->pid;
	return 0;
}

/* Whether a process may have one more record now. */
static __always_inline bool segment_allowed(struct abi_chosen *c, __u64 now)
{
	__u64 turn = now >> ABI_SEGMENT_TURN;

	/* Two CPUs may begin a turn: then it has some more. */
	if (c->turn != turn) {
		c->turn = turn;
		c->used = 0;
	}
	return __sync_fetch_and_add(&c->used, 1) < ABI_SEGMENT_TURN_MAX;
}

/* Takes the waker, if the segment ends by being woken. */
static __noinline int segment_put(struct task_struct *task, const struct abi_wait_key *key,
				  struct abi_waker *waker, const struct segment *s, __u64 site)
{
	struct abi_chosen *c;
	struct abi_segment *out;
	__u32 tgid;

	if (!key || !waker || !s)
		return 0;
	tgid = key->tgid;
	c = bpf_map_lookup_elem(&wait_chosen, &tgid);
	if (!c)
		return 0;
	if (!segment_allowed(c, s->to)) {
		__sync_fetch_and_add(&c->lost_rate, 1);
		return 0;
	}
	out = bpf_ringbuf_reserve(&segments, sizeof(*out), 0);
	if (!out) {
		__sync_fetch_and_add(&c->lost_ring, 1);
		return 0;
	}
	__builtin_memset(out, 0, sizeof(*out));
	out->begin = s->from;
	out->end = s->to;
	out->key.start_boottime = key->start_boottime;
	out->key.exec_id = key->exec_id;
	out->key.tgid = tgid;
	out->tid = s->tid;
	out->what = s->what;
	out->flags = s->flags;
	out->site = site;
	if (s->woken) {
		out->waker = *waker;
		waker->kind = ABI_WAKER_NONE;
	}
	bpf_probe_read_kernel(out->comm, sizeof(out->comm), task->comm);
	bpf_ringbuf_submit(out, BPF_RB_NO_WAKEUP);
	__sync_fetch_and_add(&c->written, 1);
	return 0;
}

#endif /* BPF_WAIT_SEGMENT_BPF_H */
