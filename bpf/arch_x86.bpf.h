/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* arch_x86: x86-64; included by bpf/arch.bpf.h. */
#ifndef BPF_ARCH_X86_BPF_H
#define BPF_ARCH_X86_BPF_H

#define PAGE_SIZE 4096
#define USER32_CS 0x23 /* GDT_ENTRY_DEFAULT_USER32_CS * 8 + 3 */

/* asm/unistd_64.h; 32-bit calls have other numbers and are not supported. */
#define NR_CHDIR 80
#define NR_FCHDIR 81
#define NR_SCHED_YIELD 24
#define NR_SETUID 105
#define NR_SETGID 106
#define NR_SETPGID 109
#define NR_SETSID 112
#define NR_SETREUID 113
#define NR_SETREGID 114
#define NR_SETRESUID 117
#define NR_SETRESGID 119
#define NR_CAPSET 126
#define NR_EXECVE 59
#define NR_EXECVEAT 322
#define NR_UNSHARE 272
#define NR_SETNS 308

static __always_inline bool arch_user_mode(const struct pt_regs *r)
{
	return r->cs & 3;
}

static __always_inline bool arch_compat(const struct pt_regs *r)
{
	return r->cs == USER32_CS;
}

/* Registers of a system call: whether it is execve or execveat. */
static __always_inline bool arch_exec_call(const struct pt_regs *r)
{
	if (arch_compat(r))
		return r->orig_ax == 11 || r->orig_ax == 358;
	return r->orig_ax == NR_EXECVE || r->orig_ax == NR_EXECVEAT;
}

/*
 * In a system call: whether its number is one of 32-bit programs. 64-bit code can make
 * those as well, by int $0x80. (Numbers of x32 are beyond all others.)
 */
static __always_inline bool arch_compat_call(const struct task_struct *task,
					     const struct pt_regs *r)
{
	return task->thread_info.status & 2; /* TS_COMPAT, asm/thread_info.h */
}

/* Of the call that ends. */
static __always_inline __u64 arch_call_nr(const struct pt_regs *r)
{
	return r->orig_ax;
}

/* Arguments of a call: as it made them, also when it ends, unless an exec has come between. */
static __always_inline void arch_call_args(__u64 *args, const struct pt_regs *r)
{
	args[0] = r->di;
	args[1] = r->si;
	args[2] = r->dx;
	args[3] = r->r10;
	args[4] = r->r8;
	args[5] = r->r9;
}

/* One of them: 1 is the first. */
static __always_inline __u64 arch_call_arg(const struct pt_regs *r, __u8 i)
{
	return i == 1	? r->di
	       : i == 2 ? r->si
	       : i == 3 ? r->dx
	       : i == 4 ? r->r10
	       : i == 5 ? r->r8
			: r->r9;
}

/* Where the user code is, or will go on. */
static __always_inline void arch_user_at(const struct pt_regs *r, __u64 *ip, __u64 *sp)
{
	*ip = r->ip;
	*sp = r->sp;
}

static __always_inline void arch_fill_regs(struct abi_regs *out, const struct pt_regs *r)
{
	out->gpr[0] = r->ax;
	out->gpr[1] = r->dx;
	out->gpr[2] = r->cx;
	out->gpr[3] = r->bx;
	out->gpr[4] = r->si;
	out->gpr[5] = r->di;
	out->gpr[ABI_REG_BP] = r->bp;
	out->gpr[ABI_REG_SP] = r->sp;
	out->gpr[8] = r->r8;
	out->gpr[9] = r->r9;
	out->gpr[10] = r->r10;
	out->gpr[11] = r->r11;
	out->gpr[12] = r->r12;
	out->gpr[13] = r->r13;
	out->gpr[14] = r->r14;
	out->gpr[15] = r->r15;
	out->ip = r->ip;
	out->flags = r->flags;
}

/*
 * preempt_count() of this CPU, whose current task this is. It is per CPU, and so is the run
 * queue, to which a task has the way: 'offset' leads from there to the count. 0: it is not
 * known.
 */
static __always_inline bool arch_preempt_count(struct task_struct *task, __s64 offset, __u32 *count)
{
	char *rq;

	if (!offset || !bpf_core_field_exists(task->se.cfs_rq) ||
	    !bpf_core_field_exists(task->se.cfs_rq->rq))
		return false;
	rq = (char *)BPF_CORE_READ(task, se.cfs_rq, rq);
	return rq && !bpf_probe_read_kernel(count, sizeof(*count), rq + offset);
}

/* What %fs points to; stale after WRFSBASE until the thread is switched out. */
static __always_inline unsigned long arch_thread_pointer(struct task_struct *task)
{
	return task->thread.fsbase;
}

#define ARCH_DTV 8 /* of the pointer to the dtv, from the thread pointer */

/* In Go's calls of the vDSO the stack pointer from before, see nanotime1. */
#define ARCH_GO_SP 12

/* The address of Go's g, which is stored below the thread pointer. 0: none. */
static __always_inline unsigned long arch_goroutine(struct task_struct *task,
						    const struct abi_regs *regs)
{
	unsigned long g, fsbase = arch_thread_pointer(task);

	if (!fsbase || bpf_probe_read_user(&g, sizeof(g), (void *)(fsbase - sizeof(g))))
		return 0;
	return g;
}

/*
 * Uprobes (arch/x86/kernel/uprobes.c). The trampoline of probed returns is a breakpoint or,
 * since 6.11, pushes three registers, makes a system call, which replaces the first by the
 * return address, pops two and returns.
 */
#define ARCH_PROBE_RETURNS_ON_STACK 1
#define ARCH_PROBE_RETURN_SIZE 17
#define ARCH_PROBE_UNKNOWN -1ULL

/* How far above sp the return address is, by the offset in it; before the call: unknown. */
static __always_inline __u64 arch_probe_return_depth(__u64 offset)
{
	return offset == 13 ? 16 : offset == 15 ? 8 : offset == 16 ? 0 : ARCH_PROBE_UNKNOWN;
}

/* The same of the trampoline that a probe calls since 6.18: push, push, push, syscall, pops. */
static __always_inline __u64 arch_probe_call_depth(__u64 offset)
{
	if (offset == 0 || offset == 0x11)
		return 0;
	if (offset == 1 || offset == 0x10)
		return 8;
	return offset == 3 || offset == 0xe ? 16 : 24;
}

/* Size of the XSAVE area of this task. Since 6.16 struct fpu follows its task. */
static __always_inline unsigned int xsave_size(struct task_struct *task)
{
	struct fpu *fpu;

	if (bpf_core_field_exists(task->thread.fpu))
		return BPF_CORE_READ(task, thread.fpu.fpstate, user_size);
	fpu = (struct fpu *)((char *)task + bpf_core_type_size(struct task_struct));
	return BPF_CORE_READ(fpu, fpstate, user_size);
}

/*
 * The stack pointer that a signal interrupted, if its frame is the first on the alternate
 * stack that ends at 'top'; else 0. From there downwards the kernel writes
 * (arch/x86/kernel/signal.c, get_sigframe()) the XSAVE area and its second magic, aligned
 * to 64, then the frame, aligned to 16 less 8. The frame has the address of the XSAVE
 * area, by which it is recognized.
 */
static __always_inline unsigned long arch_interrupted_sp(struct task_struct *task,
							 unsigned long top)
{
	struct {
		unsigned long sp, ip, flags, segments, err, trapno, oldmask, cr2, fpstate;
	} context; /* struct sigcontext, from its 'sp' on */
	unsigned long xsave = (top - xsave_size(task) - 4) & -64UL;
	unsigned long frame = ((xsave - 440) & -16UL) - 8; /* sizeof(struct rt_sigframe) */

	/* behind the return address: uc_flags, uc_link, uc_stack, 15 registers */
	if (bpf_probe_read_user(&context, sizeof(context), (void *)(frame + 8 + 40 + 15 * 8)))
		return 0;
	return context.fpstate == xsave ? context.sp : 0;
}

#endif /* BPF_ARCH_X86_BPF_H */
