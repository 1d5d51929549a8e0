/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sampler_probe: what uprobes of other tools do to a stack. An instruction that is probed
 * is stepped in the mapping [uprobes]; a probe of a function's return has put the address
 * of a trampoline there over the return address, and a frequent probe is a call of another
 * trampoline. The kernel has what was there in current->utask, which no other program can
 * read: so registers and the copied stack are mended here. Tasks that never met a uprobe
 * pay for one load.
 *
 * kernel/events/uprobes.c and arch/x86/kernel/uprobes.c; the names are the same in 6.1 to
 * 6.18, and absent without CONFIG_UPROBES.
 */
#ifndef BPF_SAMPLER_PROBE_BPF_H
#define BPF_SAMPLER_PROBE_BPF_H

#include <bpf/bpf_core_read.h>

#define PROBE_XOL_MAX 16 /* bytes of an instruction that is stepped, and a jump behind it */
#define PROBE_RETURNS_MAX 64 /* MAX_URETPROBE_DEPTH */

/* What is to be mended in the copied stack, of one task. */
struct probe {
	__u64 returns; /* its first struct return_instance; 0: nothing was replaced */
	__u64 trampoline; /* what replaced the return addresses */
	__u64 xol, vaddr; /* where an instruction is stepped, and its place; 0: none is */
	__u64 sp;
	/* The copy: */
	__u64 start;
	__u32 at, size; /* in the slot */
	__u64 next; /* struct return_instance */
	__u64 was, is, word; /* what is replaced, by what, and what was found */
};

static __always_inline bool probe_is_stepped(const struct probe *p, __u64 addr)
{
	return p->xol && addr - p->xol <= PROBE_XOL_MAX;
}

static __always_inline void probe_read(struct probe *p, struct uprobe_task *u, struct mm_struct *mm)
{
	struct xol_area *area = BPF_CORE_READ(mm, uprobes_state.xol_area);

	p->xol = BPF_CORE_READ(u, xol_vaddr);
	p->vaddr = BPF_CORE_READ(u, vaddr);
	p->returns = (__u64)BPF_CORE_READ(u, return_instances);
	p->trampoline = area ? BPF_CORE_READ(area, vaddr) : 0;
}

/*
 * At the end of a probed function ip is in the trampoline. While its instance is the first
 * one, that has the caller; the trampoline has pushed three words at most.
 */
static __always_inline bool probe_returned(const struct probe *p, struct abi_regs *regs)
{
	struct return_instance *ri = (void *)p->returns;
	__u64 sp;

	if (!ri)
		return false;
	sp = BPF_CORE_READ(ri, stack) + sizeof(sp);
	if (sp - regs->gpr[ABI_REG_SP] > 3 * sizeof(sp))
		return false;
	regs->ip = BPF_CORE_READ(ri, orig_ret_vaddr);
	regs->gpr[ABI_REG_SP] = sp;
	return true;
}

/* Goes on with the return address that is 'depth' bytes above sp. */
static __always_inline void probe_pop(struct abi_regs *regs, __u64 depth)
{
	__u64 sp = regs->gpr[ABI_REG_SP] + depth, ip;

	if (bpf_probe_read_user(&ip, sizeof(ip), (void *)sp))
		return;
	regs->ip = ip;
	regs->gpr[ABI_REG_SP] = sp + sizeof(ip);
}

static __always_inline void probe_mend_ip(const struct probe *p, struct mm_struct *mm,
					  struct abi_regs *regs)
{
	__u64 vaddr, depth;

	if (probe_is_stepped(p, regs->ip)) {
		regs->ip = p->vaddr + (regs->ip - p->xol);
		return;
	}
	if (p->trampoline && regs->ip - p->trampoline < ARCH_PROBE_RETURN_SIZE) {
		depth = arch_probe_return_depth(regs->ip - p->trampoline);
		if (!probe_returned(p, regs) && depth != ARCH_PROBE_UNKNOWN)
			probe_pop(regs, depth);
		return;
	}
	if (!bpf_core_field_exists(mm->uprobes_state.head_tramps)) /* 6.18 */
		return;
	vaddr = (__u64)BPF_CORE_READ(mm, uprobes_state.head_tramps.first);
	if (!vaddr)
		return;
	/* 'node' is the first member; the others are rare. */
	vaddr = BPF_CORE_READ((struct uprobe_trampoline *)vaddr, vaddr);
	if (regs->ip - vaddr < PAGE_SIZE)
		probe_pop(regs, arch_probe_call_depth(regs->ip - vaddr));
}

/* Mends the registers; 'p' is what to do to the stack. Not of 32-bit code. */
static __always_inline void probe_regs(struct probe *p, struct task_struct *task,
				       struct mm_struct *mm, struct abi_regs *regs)
{
	struct uprobe_task *u;

	if (!bpf_core_field_exists(task->utask) || !ARCH_PROBE_RETURNS_ON_STACK)
		return;
	u = task->utask;
	if (!u)
		return;
	probe_read(p, u, mm);
	probe_mend_ip(p, mm, regs);
	p->sp = regs->gpr[ABI_REG_SP];
}

/* Replaces the word at 'addr' of the copied stack by p->is, if it is p->was. */
static __always_inline void probe_patch(struct probe *p, struct bpf_dynptr *slot, __u64 addr)
{
	__u64 offset = addr - p->start;

	if (addr < p->start || offset + sizeof(p->word) > p->size)
		return;
	offset += p->at;
	if (bpf_dynptr_read(&p->word, sizeof(p->word), slot, offset, 0) || p->word != p->was)
		return;
	bpf_dynptr_write(slot, offset, &p->is, sizeof(p->is), 0);
}

/*
 * The next of the replaced return addresses. False: there is none. A function may have
 * several probes: the first has replaced the address already.
 */
static __always_inline bool probe_patch_return(struct probe *p, struct bpf_dynptr *slot)
{
	struct return_instance *ri = (void *)p->next;

	if (!bpf_core_type_exists(struct return_instance) || !ri)
		return false;
	p->is = BPF_CORE_READ(ri, orig_ret_vaddr);
	p->next = (__u64)BPF_CORE_READ(ri, next);
	probe_patch(p, slot, BPF_CORE_READ(ri, stack));
	return true;
}

#endif /* BPF_SAMPLER_PROBE_BPF_H */
