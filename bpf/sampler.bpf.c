// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sampler: one ring record a tick of the software CPU clock: who runs, the
 * kernel stack, the user registers and a copy of the live part of the user
 * stack. Nothing is unwound here and nothing has to be known of the process.
 *
 * The stack is read straight into the ring: a slot of the record's real size
 * is reserved first, the clock read second (see base/ring.h for why in this
 * order), and then the slot is filled in slices whose sizes the verifier can
 * see, none of which crosses a page, so that an absent page costs the bytes
 * behind it and no more.
 *
 * Helpers of Linux 6.1 only; no kfuncs. Interrupts are off all the while.
 */
#include "bpf/vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi.h"

#define PAGE_SIZE 4096
#define USER32_CS 0x23 /* GDT_ENTRY_DEFAULT_USER32_CS * 8 + 3 */

/* Pages of the largest copy, and slices of the two broken ones at its ends. */
#define COPY_SLICES (ABI_STACK_COPY_MAX / PAGE_SIZE + 4 * PAGE_SIZE / ABI_STACK_ALIGN)

char _license[] SEC("license") = "Dual BSD/GPL";

/* Bytes of user stack copied at most; a multiple of ABI_STACK_ALIGN. */
const volatile __u32 stack_cap = 64 * 1024;

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 8 * 1024 * 1024);
} samples SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, ABI_SAMPLER_COUNTER_MAX);
	__type(key, __u32);
	__type(value, __u64);
} counters SEC(".maps");

/* A record's small parts, until its size is known. */
struct scratch {
	struct abi_sample head;
	struct abi_part kstack_part;
	__u64 kstack[ABI_KSTACK_MAX];
	struct abi_part regs_part;
	struct abi_regs regs;
	struct abi_part stack_part;
	struct abi_stack stack;
	__u32 kstack_size; /* 0: the tick hit user code */
	__u32 user; /* registers and stack belong to the record */
	__u32 stack_len; /* what is to be copied */
	__u32 stack_end; /* why no more, if all of that can be read */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

static __always_inline void count(__u32 counter, __u64 n)
{
	__u64 *v = bpf_map_lookup_elem(&counters, &counter);

	if (v)
		*v += n;
}

struct vma_search {
	unsigned long start_stack;
	unsigned long sp;
	unsigned long end;
};

/* The end of the mapping, or start_stack: above it are argv and environ. */
static long on_vma(struct task_struct *task, struct vm_area_struct *vma, struct vma_search *s)
{
	s->end = vma->vm_end;
	if (s->start_stack >= s->sp && s->start_stack < s->end)
		s->end = s->start_stack;
	return 0;
}

/*
 * Go keeps its stacks in the heap, where the mapping's end is megabytes away.
 * The runtime's g lies in front of the thread pointer and begins with the
 * bounds of the stack in use; anything else that lies there does not enclose
 * the stack pointer.
 */
static __always_inline unsigned long goroutine_end(struct task_struct *task, unsigned long sp,
						   unsigned long end)
{
	unsigned long g, bounds[2], fsbase = task->thread.fsbase;

	if (!fsbase || bpf_probe_read_user(&g, sizeof(g), (void *)(fsbase - sizeof(g))))
		return end;
	if (!g || bpf_probe_read_user(bounds, sizeof(bounds), (void *)g))
		return end;
	if (bounds[0] > sp || sp >= bounds[1] || bounds[1] >= end)
		return end;
	return bounds[1];
}

/* Where the stack that sp points into ends, as far as it matters. */
static __always_inline unsigned long stack_end(struct task_struct *task, unsigned long sp)
{
	struct vma_search s = { .sp = sp };
	long err;

	s.start_stack = task->mm->start_stack;
	if (s.start_stack - sp <= stack_cap) /* unsigned: below sp is far away */
		return s.start_stack;
	s.end = -1UL;
	err = bpf_find_vma(task, sp, on_vma, &s, 0);
	if (err == -16) { /* EBUSY */
		count(ABI_SAMPLER_VMA_BUSY, 1);
	} else if (err) {
		count(ABI_SAMPLER_VMA_NONE, 1);
		return sp + 1; /* the first slice finds out */
	}
	return goroutine_end(task, sp, s.end);
}

/*
 * Where the copy begins: below sp, as a function may keep registers in its red
 * zone. The page below may never have been touched, and then holds none.
 */
static __always_inline unsigned long stack_start(unsigned long sp)
{
	unsigned long start = (sp - ABI_STACK_RED_ZONE) & -(unsigned long)ABI_STACK_ALIGN;
	__u8 byte;

	if ((start ^ sp) & -(unsigned long)PAGE_SIZE &&
	    bpf_probe_read_user(&byte, sizeof(byte), (void *)start))
		return sp & -(unsigned long)ABI_STACK_ALIGN;
	return start;
}

static __always_inline void plan_stack(struct scratch *s, struct task_struct *task)
{
	unsigned long sp = s->regs.gpr[ABI_REG_SP];
	unsigned long start = stack_start(sp);
	unsigned long len = stack_end(task, sp) - start;

	s->stack_end = ABI_STACK_WHOLE;
	if (len > stack_cap) {
		len = stack_cap;
		s->stack_end = ABI_STACK_CAP;
	}
	s->stack.start = start;
	s->stack_len = (len + ABI_STACK_ALIGN - 1) & -ABI_STACK_ALIGN;
}

static __always_inline void fill_regs(struct abi_regs *out, const struct pt_regs *r)
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

static __always_inline bool is_exec_call(const struct pt_regs *r)
{
	if (r->cs == USER32_CS)
		return r->orig_ax == 11 || r->orig_ax == 358;
	return r->orig_ax == 59 || r->orig_ax == 322;
}

/*
 * From exec_mmap to the return to user space the saved registers belong to the
 * old image and its memory is gone. in_execve spans a little more. A kernel
 * without that member would lose the user stack of the whole system call: the
 * registers alone cannot tell, and a stack left out is better than a wrong one.
 */
static __always_inline bool inside_exec(struct task_struct *task, const struct pt_regs *r)
{
	if (!is_exec_call(r))
		return false;
	if (bpf_core_field_exists(task->in_execve))
		return BPF_CORE_READ_BITFIELD(task, in_execve);
	return true;
}

static __always_inline void user_part(struct scratch *s, struct task_struct *task)
{
	struct pt_regs r;

	if (task->flags & PF_KTHREAD) {
		s->head.flags |= ABI_SAMPLE_KTHREAD;
		return;
	}
	if (!task->mm) {
		s->head.flags |= ABI_SAMPLE_NOMM;
		return;
	}
	if (bpf_probe_read_kernel(&r, sizeof(r), (void *)bpf_task_pt_regs(task)))
		return;
	if (!r.ip && !r.sp) { /* a worker of io_uring or vhost: mm, but no user side */
		s->head.flags |= ABI_SAMPLE_KTHREAD;
		return;
	}
	if (r.cs == USER32_CS)
		s->head.flags |= ABI_SAMPLE_COMPAT;
	if (inside_exec(task, &r)) {
		s->head.flags |= ABI_SAMPLE_EXEC;
		count(ABI_SAMPLER_EXEC, 1);
		return;
	}
	s->user = true;
	fill_regs(&s->regs, &r);
	plan_stack(s, task);
}

static __always_inline void fill_head(struct abi_sample *h, struct task_struct *task)
{
	h->flags = 0;
	h->key.start_boottime = task->group_leader->start_boottime;
	h->key.exec_id = task->self_exec_id;
	h->key.tgid = task->tgid;
	h->key.pad = 0;
	h->tid = task->pid;
	h->cpu = bpf_get_smp_processor_id();
	bpf_get_current_comm(h->comm, sizeof(h->comm));
}

struct copy {
	struct bpf_dynptr slot;
	__u64 from;
	__u32 at; /* in the slot */
	__u32 left;
};

static __always_inline long copy_slice(struct copy *c, const __u32 size)
{
	void *to = bpf_dynptr_data(&c->slot, c->at, size);

	if (!to || bpf_probe_read_user(to, size, (void *)c->from))
		return 1;
	c->from += size;
	c->at += size;
	c->left -= size;
	return 0;
}

static long copy_step(__u32 i, struct copy *c)
{
	__u32 room = PAGE_SIZE - (c->from & (PAGE_SIZE - 1));

	if (room > c->left)
		room = c->left;
	if (room >= PAGE_SIZE)
		return copy_slice(c, PAGE_SIZE);
	if (room >= 4 * ABI_STACK_ALIGN)
		return copy_slice(c, 4 * ABI_STACK_ALIGN);
	if (room >= ABI_STACK_ALIGN)
		return copy_slice(c, ABI_STACK_ALIGN);
	return 1;
}

static __always_inline void copy_stack(struct scratch *s, struct copy *c, __u32 size, __u32 end)
{
	__u32 at = c->at;

	c->from = s->stack.start;
	c->left = size;
	c->at = at + sizeof(s->stack_part) + sizeof(s->stack);
	bpf_loop(COPY_SLICES, copy_step, c, 0);
	s->stack_part.type = ABI_PART_STACK;
	s->stack_part.size = sizeof(s->stack) + size;
	s->stack.size = size - c->left;
	s->stack.end = c->left ? ABI_STACK_FAULT : end;
	bpf_dynptr_write(&c->slot, at, &s->stack_part, sizeof(s->stack_part) + sizeof(s->stack), 0);
	if (s->stack.end == ABI_STACK_FAULT)
		count(ABI_SAMPLER_STACK_FAULT, 1);
	if (s->stack.end == ABI_STACK_CAP)
		count(ABI_SAMPLER_STACK_CAP, 1);
}

/* Wakes the reader only when he has to hurry: he comes by himself otherwise. */
static __always_inline __u64 wakeup(void)
{
	__u64 used = bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA);

	if (used > bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE) / 2)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

/* One record with 'len' bytes of stack in it, or -ENOSPC. */
static __noinline int emit(struct scratch *s, __u32 len, __u32 end)
{
	__u32 size = sizeof(s->head);
	struct copy c = {};

	if (!s)
		return -22; /* EINVAL: for the verifier */
	if (s->kstack_size)
		size += sizeof(s->kstack_part) + s->kstack_size;
	if (s->user)
		size += sizeof(s->regs_part) + sizeof(s->regs) + sizeof(s->stack_part) +
			sizeof(s->stack) + len;
	if (bpf_ringbuf_reserve_dynptr(&samples, size, 0, &c.slot)) {
		bpf_ringbuf_discard_dynptr(&c.slot, 0);
		return -28;
	}
	s->head.time = bpf_ktime_get_boot_ns();
	s->head.size = size;
	bpf_dynptr_write(&c.slot, 0, &s->head, sizeof(s->head), 0);
	c.at = sizeof(s->head);
	if (s->kstack_size) {
		size = s->kstack_size;
		if (size > sizeof(s->kstack))
			size = sizeof(s->kstack);
		size += sizeof(s->kstack_part);
		bpf_dynptr_write(&c.slot, c.at, &s->kstack_part, size, 0);
		c.at += size;
	}
	if (s->user) {
		size = sizeof(s->regs_part) + sizeof(s->regs);
		bpf_dynptr_write(&c.slot, c.at, &s->regs_part, size, 0);
		c.at += size;
		copy_stack(s, &c, len, end);
	}
	bpf_ringbuf_submit_dynptr(&c.slot, wakeup());
	count(ABI_SAMPLER_TAKEN, 1);
	count(ABI_SAMPLER_BYTES, s->head.size);
	return 0;
}

SEC("perf_event")
int sampler_tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 zero = 0;
	struct scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	long n;

	if (!s || !task->pid) /* the idle task, should exclude_idle let it through */
		return 0;
	fill_head(&s->head, task);
	s->kstack_size = 0;
	s->user = false;
	s->stack_len = 0;
	s->regs_part.type = ABI_PART_REGS;
	s->regs_part.size = sizeof(s->regs);
	if (ctx->regs.cs & 3) {
		s->head.flags |= ABI_SAMPLE_USER;
	} else {
		n = bpf_get_stack(ctx, s->kstack, sizeof(s->kstack), 0);
		s->kstack_part.type = ABI_PART_KSTACK;
		s->kstack_part.size = s->kstack_size = n > 0 ? n : 0;
	}
	user_part(s, task);
	if (!emit(s, s->stack_len, s->stack_end))
		return 0;
	if (s->user && !emit(s, 0, ABI_STACK_RING))
		return 0;
	count(ABI_SAMPLER_RING_FULL, 1);
	return 0;
}
