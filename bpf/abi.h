/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abi: what the kernel side and the user side say to each other. Included by
 * both; every structure has fixed-width members, explicit padding, and a size
 * that both compilers assert.
 *
 * A sample is one ring record: struct abi_sample, then typed parts one after
 * the other, each a struct abi_part and its payload, padded to 8 bytes. A
 * reader skips a part whose type it does not know, so that a new kind of part
 * moves nothing.
 */
#ifndef BPF_ABI_H
#define BPF_ABI_H

#ifndef __VMLINUX_H__ /* bpf/vmlinux.h defines the same names */
#include <linux/types.h>
#endif

#define ABI_COMM_LEN 16
#define ABI_KSTACK_MAX 127 /* kernel.perf_event_max_stack's default */
#define ABI_STACK_ALIGN 256 /* user stack is copied in pieces of this size */
#define ABI_STACK_COPY_MAX (256 * 1024)

/*
 * The image that a sample or an event belongs to: pid in the root pid
 * namespace, the group leader's start_boottime (ns), and the kernel's own exec
 * generation, task->self_exec_id. Joins made by it are exact.
 */
struct abi_key {
	__u64 start_boottime;
	__u64 exec_id;
	__u32 tgid;
	__u32 pad;
};

enum abi_sample_flags {
	ABI_SAMPLE_USER = 1 << 0, /* interrupted user code, not the kernel */
	ABI_SAMPLE_EXEC = 1 << 1, /* inside execve: no user part */
	ABI_SAMPLE_KTHREAD = 1 << 2, /* no user side at all */
	ABI_SAMPLE_COMPAT = 1 << 3, /* 32-bit code: registers and stack are too */
	ABI_SAMPLE_NOMM = 1 << 4, /* memory already given back: no user part */
};

struct abi_sample {
	__u32 size; /* of the whole record, this header and all parts */
	__u32 flags; /* enum abi_sample_flags */
	__u64 time; /* CLOCK_BOOTTIME, ns; read after the slot was reserved */
	struct abi_key key;
	__u32 tid;
	__u32 cpu;
	char comm[ABI_COMM_LEN]; /* of the thread */
};

enum abi_part_type {
	ABI_PART_KSTACK = 1, /* __u64 addresses, leaf first */
	ABI_PART_REGS = 2, /* struct abi_regs */
	ABI_PART_STACK = 3, /* struct abi_stack, then its bytes */
};

struct abi_part {
	__u32 type;
	__u32 size; /* of the payload; the next part starts 8-aligned behind */
};

/* User registers of x86-64, by DWARF number 0..15, then what has none. */
struct abi_regs {
	__u64 gpr[16]; /* rax rdx rcx rbx rsi rdi rbp rsp r8..r15 */
	__u64 ip;
	__u64 flags;
};

#define ABI_REG_BP 6
#define ABI_REG_SP 7

/* Why a stack copy ends where it ends. */
enum abi_stack_end {
	ABI_STACK_WHOLE = 0, /* at the end of that stack */
	ABI_STACK_CAP = 1, /* at --stack-copy */
	ABI_STACK_FAULT = 2, /* at a page that was not there */
	ABI_STACK_RING = 3, /* the ring had no room for it: no bytes */
};

struct abi_stack {
	__u64 start; /* address of the first byte copied, <= sp */
	__u32 size; /* bytes that follow and are good */
	__u32 end; /* enum abi_stack_end */
};

/*
 * Counters of the sampling program, one per-CPU array slot each.
 * X(NAME, name, help)
 */
#define ABI_SAMPLER_COUNTERS(X)                                                \
	X(TAKEN, taken, "samples handed to the ring")                          \
	X(RING_FULL, ring_full, "samples lost because the ring was full")      \
	X(EXEC, exec, "samples inside execve, without a user stack")           \
	X(STACK_CAP, stack_cap, "user stacks cut by the copy limit")           \
	X(STACK_FAULT, stack_fault, "user stacks cut at an absent page")       \
	X(VMA_BUSY, vma_busy, "stack ends unknown because mmap_lock was busy") \
	X(VMA_NONE, vma_none, "stack pointers outside of any mapping")         \
	X(BYTES, bytes, "bytes written to the ring")

enum abi_sampler_counter {
#define X(name, word, help) ABI_SAMPLER_##name,
	ABI_SAMPLER_COUNTERS(X)
#undef X
	ABI_SAMPLER_COUNTER_MAX,
};

#ifndef __bpf__
#define ABI_ASSERT(e) _Static_assert(e, #e)
ABI_ASSERT(sizeof(struct abi_key) == 24);
ABI_ASSERT(sizeof(struct abi_sample) == 64);
ABI_ASSERT(sizeof(struct abi_part) == 8);
ABI_ASSERT(sizeof(struct abi_regs) == 144);
ABI_ASSERT(sizeof(struct abi_stack) == 16);
#endif

#endif /* BPF_ABI_H */
