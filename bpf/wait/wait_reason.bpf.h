/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * wait_reason: why a thread that leaves its CPU does not run: from its state, the system
 * call that it is in and that call's descriptor. All are read from the task itself, so no
 * hook of system calls is needed; prev of sched_switch is the current task, whose user
 * registers are complete.
 */
#ifndef BPF_WAIT_REASON_BPF_H
#define BPF_WAIT_REASON_BPF_H

#include "bpf/abi_wait.h"
#include "bpf/arch.bpf.h"
#include "bpf/file.bpf.h"
#include "bpf/quark_task.bpf.h"

/* include/linux/sched.h; the same since 6.1. */
#define TASK_INTERRUPTIBLE 0x1
#define TASK_UNINTERRUPTIBLE 0x2
#define TASK_STOPPED 0x4
#define TASK_TRACED 0x8
#define TASK_DEAD 0x80
#define TASK_WAKEKILL 0x100
#define TASK_NOLOAD 0x400 /* an idle kernel thread is in D, and no load */
#define TASK_NEW 0x800
#define TASK_FREEZABLE 0x2000
#define TASK_FROZEN 0x8000

/* By number of a system call, see ABI_WAIT_CALLS. Set before load. */
const volatile __u8 wait_calls[ABI_WAIT_CALLS];

/* By the kind of the descriptor, of calls such as read(2). 0: no more is known. */
static const volatile __u8 wait_fd_reasons[32] = {
	[ABI_FD_FILE] = ABI_WAIT_DISK,	   [ABI_FD_DIR] = ABI_WAIT_DISK,
	[ABI_FD_BLOCK] = ABI_WAIT_DISK,	   [ABI_FD_FIFO] = ABI_WAIT_PIPE,
	[ABI_FD_PIPE] = ABI_WAIT_PIPE,	   [ABI_FD_SOCKET] = ABI_WAIT_SOCKET,
	[ABI_FD_EPOLL] = ABI_WAIT_POLL,	   [ABI_FD_IO_URING] = ABI_WAIT_POLL,
	[ABI_FD_TIMERFD] = ABI_WAIT_SLEEP,
};

/* The kind of a descriptor. */
static __always_inline __u32 wait_fd_kind(struct task_struct *task, __u64 fd)
{
	struct file *file = file_at(task->files, fd);

	if (!file)
		return ABI_FD_NONE;
	return file_kind(CAST_READ(struct file, file, f_inode),
			 CAST_READ(struct file, file, f_path.dentry));
}

/* The kernel's part of the reason: of a state that is no sleep for what the call is for. */
static __always_inline __u32 reason_of_state(struct task_struct *task, __u32 state, __u32 nr,
					     __u32 reason)
{
	bool iowait = BPF_CORE_READ_BITFIELD(task, in_iowait);
	bool deep = (state & TASK_UNINTERRUPTIBLE) && !(state & TASK_NOLOAD);

	if (state & (TASK_STOPPED | TASK_TRACED))
		return ABI_WAIT_STOP;
	/* vfork(2): alone of deep sleeps it can be frozen, and counts as frozen all the time. */
	if (deep && reason == ABI_WAIT_CHILD && state & TASK_FREEZABLE)
		return reason;
	if (state & TASK_FROZEN || BPF_CORE_READ_BITFIELD(task, frozen))
		return ABI_WAIT_FROZEN;
	/* fsync(2) waits for the journal without in_iowait. */
	if (reason == ABI_WAIT_DISK)
		return reason;
	/* io_uring_enter(2) and epoll set in_iowait, or not, as they please. */
	if (iowait && (deep || reason != ABI_WAIT_POLL))
		return nr == ABI_WAIT_NO_CALL && !(task->flags & PF_KTHREAD) ? ABI_WAIT_FAULT
									     : ABI_WAIT_DISK;
	if (deep)
		return ABI_WAIT_LOCK;
	return reason ?: ABI_WAIT_OTHER;
}

/* The number of the system call that a task is in, and its first argument. */
static __always_inline __u32 task_call(struct task_struct *task, __u64 *arg)
{
	struct task_struct *cast = task_cast(task);
	const struct pt_regs *regs;
	__u64 nr, args[6];

	*arg = 0;
	if (cast->flags & (PF_KTHREAD | PF_IO_WORKER | PF_USER_WORKER))
		return ABI_WAIT_NO_CALL;
	regs = (void *)bpf_task_pt_regs(task);
	if (!regs)
		return ABI_WAIT_NO_CALL;
	nr = arch_call_nr(regs);
	if (nr >= ABI_WAIT_CALLS || arch_compat_call(cast, regs))
		return ABI_WAIT_NO_CALL;
	arch_call_args(args, regs);
	*arg = args[0];
	return nr;
}

/* What a task that sleeps in 'state' waits for. */
static __always_inline __u32 wait_what(struct task_struct *task, __u32 state)
{
	struct task_struct *cast = task_cast(task);
	__u32 fd = ABI_FD_NONE, reason = 0, call;
	__u64 arg;
	__u32 nr = task_call(task, &arg);

	if (nr != ABI_WAIT_NO_CALL) {
		call = wait_calls[nr & (ABI_WAIT_CALLS - 1)];
		reason = call & ABI_WAIT_CALL_REASON;
		if (call & ABI_WAIT_CALL_FD)
			fd = wait_fd_kind(cast, arg);
		if (!reason && fd)
			reason = wait_fd_reasons[fd & 31];
	}
	reason = reason_of_state(cast, state, nr, reason);
	return ABI_WAIT_WHAT(nr, reason, fd);
}

/* Whether its control group may not run now: since 6.18 each task knows that itself. */
static __always_inline bool task_throttled(struct task_struct *task)
{
	if (bpf_core_field_exists(task->throttled))
		return task->throttled;
	return bpf_core_field_exists(task->se.cfs_rq) &&
	       bpf_core_field_exists(task->se.cfs_rq->throttle_count) &&
	       task->se.cfs_rq->throttle_count > 0;
}

#define QUEUE_WHAT(reason) ABI_WAIT_WHAT(ABI_WAIT_NO_CALL, reason, ABI_FD_NONE)

/* Why a task that could run leaves its CPU. An interrupt of user code has no number. */
static __always_inline __u32 preempt_what(struct task_struct *task, bool preempt)
{
	__u64 arg;

	if (task_throttled(task_cast(task)))
		return QUEUE_WHAT(ABI_WAIT_THROTTLED);
	if (!preempt && task_call(task, &arg) == NR_SCHED_YIELD)
		return QUEUE_WHAT(ABI_WAIT_YIELD);
	return QUEUE_WHAT(ABI_WAIT_PREEMPTED);
}

static __always_inline __u32 woken_what(struct task_struct *task)
{
	return task_throttled(task_cast(task)) ? QUEUE_WHAT(ABI_WAIT_THROTTLED)
					       : QUEUE_WHAT(ABI_WAIT_WOKEN);
}

#endif /* BPF_WAIT_REASON_BPF_H */
