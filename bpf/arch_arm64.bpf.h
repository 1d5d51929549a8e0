/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* arch_arm64: arm64; included by bpf/arch.bpf.h. */
#ifndef BPF_ARCH_ARM64_BPF_H
#define BPF_ARCH_ARM64_BPF_H

/* The smallest; a larger page is copied in several slices. */
#define PAGE_SIZE 4096
#define PSR_MODE_MASK 0xf
#define PSR_MODE32 0x10

/* asm-generic/unistd.h; 32-bit calls have other numbers and are not supported. */
#define NR_CHDIR 49
#define NR_FCHDIR 50
#define NR_SCHED_YIELD 124
#define NR_SETUID 146
#define NR_SETGID 144
#define NR_SETPGID 154
#define NR_SETSID 157
#define NR_SETREUID 145
#define NR_SETREGID 143
#define NR_SETRESUID 147
#define NR_SETRESGID 149
#define NR_CAPSET 91
#define NR_EXECVE 221
#define NR_EXECVEAT 281
#define NR_UNSHARE 97
#define NR_SETNS 268

static __always_inline bool arch_user_mode(const struct pt_regs *r)
{
	return !(r->pstate & PSR_MODE_MASK); /* EL0 */
}

static __always_inline bool arch_compat(const struct pt_regs *r)
{
	return r->pstate & PSR_MODE32;
}

/* Registers of a system call: whether it is execve or execveat. */
static __always_inline bool arch_exec_call(const struct pt_regs *r)
{
	if (arch_compat(r))
		return r->regs[7] == 11 || r->regs[7] == 387;
	return r->regs[8] == NR_EXECVE || r->regs[8] == NR_EXECVEAT;
}

/* In a system call: whether its number is one of 32-bit programs. */
static __always_inline bool arch_compat_call(const struct task_struct *task,
					     const struct pt_regs *r)
{
	return arch_compat(r);
}

/* Of the call that ends. */
static __always_inline __u64 arch_call_nr(const struct pt_regs *r)
{
	return r->regs[8];
}

/* Arguments of a call, also when it ends: the first is kept beside its result. */
static __always_inline void arch_call_args(__u64 *args, const struct pt_regs *r)
{
	args[0] = r->orig_x0;
	args[1] = r->regs[1];
	args[2] = r->regs[2];
	args[3] = r->regs[3];
	args[4] = r->regs[4];
	args[5] = r->regs[5];
}

static __always_inline __u64 arch_call_arg(const struct pt_regs *r, __u8 i)
{
	return i == 1	? r->orig_x0
	       : i == 2 ? r->regs[1]
	       : i == 3 ? r->regs[2]
	       : i == 4 ? r->regs[3]
	       : i == 5 ? r->regs[4]
			: r->regs[5];
}

/* Where the user code is, or will go on. */
static __always_inline void arch_user_at(const struct pt_regs *r, __u64 *ip, __u64 *sp)
{
	*ip = r->pc;
	*sp = r->sp;
}

static __always_inline void arch_fill_regs(struct abi_regs *out, const struct pt_regs *r)
{
	for (int i = 0; i < 31; i++)
		out->gpr[i] = r->regs[i];
	out->gpr[ABI_REG_SP] = r->sp;
	out->ip = r->pc;
	out->flags = r->pstate;
}

/* preempt_count() of this CPU: the current task has it. */
static __always_inline bool arch_preempt_count(struct task_struct *task, __s64 offset, __u32 *count)
{
	*count = BPF_CORE_READ(task, thread_info.preempt_count);
	return true;
}

/* Of slots user space knows on x86-64 only; then it is thread.uw.tp_value. */
static __always_inline unsigned long arch_thread_pointer(struct task_struct *task)
{
	return 0;
}

#define ARCH_DTV 0

/* In Go's calls of the vDSO the stack pointer from before, see nanotime1. */
#define ARCH_GO_SP 20

/* The address of Go's g: in x28. */
static __always_inline unsigned long arch_goroutine(struct task_struct *task,
						    const struct abi_regs *regs)
{
	return regs->gpr[28];
}

/* A probed return's address is in a register at first: stacks are not mended here. */
#define ARCH_PROBE_RETURNS_ON_STACK 0
#define ARCH_PROBE_RETURN_SIZE 0
#define ARCH_PROBE_UNKNOWN -1ULL

static __always_inline __u64 arch_probe_return_depth(__u64 offset)
{
	return ARCH_PROBE_UNKNOWN;
}

static __always_inline __u64 arch_probe_call_depth(__u64 offset)
{
	return 0;
}

/* Signal frames have many sizes here: the interrupted stack is not searched. */
static __always_inline unsigned long arch_interrupted_sp(struct task_struct *task,
							 unsigned long top)
{
	return 0;
}

#endif /* BPF_ARCH_ARM64_BPF_H */
