/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Kernel types, trimmed by hand to the members that profd's programs read.
 * Offsets are put right at load (CO-RE), so order and gaps mean nothing here;
 * names and types do. A member that some supported kernel lacks is asked for
 * with bpf_core_field_exists(); such quirks live here and nowhere else.
 */
#ifndef __VMLINUX_H__
#define __VMLINUX_H__

typedef unsigned char __u8;
typedef unsigned short __u16;
typedef unsigned int __u32;
typedef unsigned long long __u64;
typedef signed char __s8;
typedef short __s16;
typedef int __s32;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef int pid_t;
typedef _Bool bool;

enum {
	false = 0,
	true = 1,
};

/* include/uapi/linux/bpf.h: numbers that never change. */
enum bpf_map_type {
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};

#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wpadded"

struct bpf_dynptr {
	__u64 opaque[2];
} __attribute__((aligned(8)));

/*
 * The frame that x86-64 pushes on entry to the kernel: whole and in order, as
 * the context of a perf_event program is checked by its real offsets. Its
 * layout is that of ptrace(2) and fixed.
 */
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx;
	unsigned long r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax;
	unsigned long ip, cs, flags, sp, ss;
};

struct bpf_perf_event_data {
	struct pt_regs regs;
	__u64 sample_period;
	__u64 addr;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct mm_struct {
	unsigned long start_stack;
};

struct vm_area_struct {
	unsigned long vm_start;
	unsigned long vm_end;
};

struct thread_struct { /* x86 */
	unsigned long fsbase;
};

struct task_struct {
	unsigned int flags;
	struct mm_struct *mm;
	unsigned int in_execve : 1;
	pid_t pid;
	pid_t tgid;
	struct task_struct *group_leader;
	__u64 start_boottime;
	char comm[16];
	__u64 self_exec_id;
	struct thread_struct thread;
};

#pragma clang attribute pop
#pragma clang diagnostic pop

#endif /* __VMLINUX_H__ */
