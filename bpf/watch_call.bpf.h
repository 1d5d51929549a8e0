/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * watch_call: system calls. Both hooks run at each call of the host, so what is asked first
 * costs least: the number, then the process. An enter leaves for its exit the time, the
 * paths, and of an exec the arguments, which are gone with the old image; all else is in
 * the registers still when the call ends.
 */
#ifndef BPF_WATCH_CALL_BPF_H
#define BPF_WATCH_CALL_BPF_H

#include "bpf/abi_watch.h"
#include "bpf/arch.bpf.h"
#include "bpf/watch_send.bpf.h"

#define MAX_ERRNO 4095 /* linux/err.h */

/* By number; set by user space, also while hooks run: each member is a byte. */
struct abi_watch_conf watch_conf[ABI_WATCH_CALLS];

/* A thread's call that has begun. */
struct call {
	__u64 at; /* when */
	__u64 exec_id; /* of its image then */
	__u64 args[ABI_WATCH_ARGS]; /* of an exec only */
	char comm[ABI_COMM_LEN]; /* of an exec only */
	__u16 nr;
	__u16 path_len[ABI_WATCH_PATHS];
	__u8 era; /* that of its number then */
	__u8 begun;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call);
} watch_calls SEC(".maps");

struct call_path {
	char text[ABI_WATCH_PATH_MAX];
};

/* Only threads that make calls with a path have one, few have a second. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call_path);
} watch_first_path SEC(".maps"), watch_second_path SEC(".maps");

static __always_inline struct call_path *call_path(struct task_struct *task, __u32 i)
{
	if (i)
		return bpf_task_storage_get(&watch_second_path, task, NULL,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	return bpf_task_storage_get(&watch_first_path, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Neither of a 32-bit call, nor of who watches, nor of a process that is not wanted. */
static __always_inline bool call_is_wanted(const struct abi_watch_filter *f,
					   struct task_struct *task, const struct pt_regs *regs)
{
	__u32 bits = watch_pid(task->tgid);

	if (bits & ABI_WATCH_PID_CLIENT || (f->by_pid && !(bits & ABI_WATCH_PID_WANTED)))
		return false;
	return !arch_compat_call(task, regs) && !watch_is_self(task);
}

static __always_inline bool call_is_exec(__u32 nr)
{
	return nr == NR_EXECVE || nr == NR_EXECVEAT;
}

/* The value of the i-th path of a call; 0: it has none. */
static __always_inline __u64 call_path_arg(const struct abi_watch_conf *conf,
					   const struct abi_watch_call *r, __u32 i)
{
	__u64 arg = conf->path[i];

	arg--;
	barrier_var(arg); /* or the verifier loses sight of the bound */
	return arg < ABI_WATCH_ARGS ? r->args[arg] : 0;
}

/* The length with the NUL; 0: it is not in memory. */
static __always_inline __u16 call_read_path(struct call_path *p, __u64 at)
{
	long n = p ? bpf_probe_read_user_str(p->text, sizeof(p->text), (void *)at) : 0;

	return n > 0 ? n : 0;
}

static __always_inline void call_put_path(struct bpf_dynptr *slot, __u32 at,
					  const struct call_path *p, __u32 len)
{
	__u64 n = len;

	barrier_var(n); /* what is compared is what is passed: the verifier knows no copies */
	if (p && n <= ABI_WATCH_PATH_MAX)
		bpf_dynptr_write(slot, at, (void *)p->text, n, 0);
}

/* With its paths, which are as 'first' and 'second' have them. */
static __always_inline long call_send_paths(struct abi_watch_call *r, const struct call_path *first,
					    const struct call_path *second)
{
	__u32 at = sizeof(*r) + r->path_len[0];
	struct bpf_dynptr slot;

	if (bpf_ringbuf_reserve_dynptr(&watch_ring, at + r->path_len[1], 0, &slot)) {
		bpf_ringbuf_discard_dynptr(&slot, 0);
		return -1;
	}
	r->head.time = bpf_ktime_get_boot_ns();
	bpf_dynptr_write(&slot, 0, r, sizeof(*r), 0);
	call_put_path(&slot, sizeof(*r), first, r->path_len[0]);
	call_put_path(&slot, at, second, r->path_len[1]);
	bpf_ringbuf_submit_dynptr(&slot, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline long call_send_plain(const struct abi_watch_call *r)
{
	struct abi_watch_call *slot = bpf_ringbuf_reserve(&watch_ring, sizeof(*slot), 0);

	if (!slot)
		return -1;
	*slot = *r;
	slot->head.time = bpf_ktime_get_boot_ns();
	bpf_ringbuf_submit(slot, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline void call_send(const struct abi_watch_filter *f, struct abi_watch_call *r,
				      const struct call_path *first, const struct call_path *second)
{
	__u32 name = r->head.name, paths = r->path_len[0] + r->path_len[1];
	struct abi_watch_loss *l;

	if (name >= ABI_WATCH_ALL_NAMES)
		return;
	l = &watch_losses[name];
	if (!watch_may(f, &r->head, sizeof(*r) + paths))
		__sync_fetch_and_add(&l->limited, 1);
	else if (paths ? call_send_paths(r, first, second) : call_send_plain(r))
		__sync_fetch_and_add(&l->dropped, 1);
}

#endif /* BPF_WATCH_CALL_BPF_H */
