/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sampler_record: writes one record of the sample ring (bpf/abi.h): the image key, the
 * user registers and a copy of the used part of the user stack; and the kernel stack, if
 * the caller has put it into the scratch.
 *
 * The stack is read directly into the ring: first a slot of the record's size is reserved,
 * then the clock is read (base/ring.h has the reason for this order), then the slot is
 * filled in slices of constant sizes, as the verifier requires. A slice that cannot be
 * read is read again in slices that do not cross a page, so that an absent page costs only
 * its own bytes.
 *
 * Each object that includes this has a ring, a scratch and counters of its own: a hardware
 * interrupt with the sampling program may come inside another program. To be called with
 * interrupts or preemption off, for the current task. Helpers of Linux 6.1 only; no kfuncs.
 */
#ifndef BPF_SAMPLER_RECORD_BPF_H
#define BPF_SAMPLER_RECORD_BPF_H

#include "bpf/abi.h"
#include "bpf/abi_trace.h"
#include "bpf/arch.bpf.h"
#include "bpf/sampler_code.bpf.h"
#include "bpf/sampler/sampler_go.bpf.h"
#include "bpf/sampler_probe.bpf.h"

/*
 * Slices of a copy at most. Two pages take one, or five to ten if one of them is absent:
 * a deep copy with many absent pages ends early.
 */
#define COPY_SLICES (2 * ABI_STACK_COPY_MAX / PAGE_SIZE)

/* Bytes in a row that may be absent. */
#define HOLE_MAX (128 * 1024)

/* Limits of a copy: usual, and of a deep stack; multiples of ABI_STACK_ALIGN. */
const volatile __u32 stack_cap = 64 * 1024;
const volatile __u32 deep_cap = ABI_STACK_COPY_MAX;

/*
 * Any user can have deep stacks, on all CPUs and all the time. The host copies at most
 * 64 MiB of them a second, half of it for one user id. Nanoseconds a byte, and the burst.
 */
#define DEEP_NS (1000000000 / (64 * 1024 * 1024) + 1)
#define DEEP_BURST_NS 200000000
#define DEEP_USERS 64 /* accounts, which user ids share; the next is the host's */

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

/*
 * Accounts of deep copies: the time up to which the bytes copied so far last. If several
 * CPUs write at once, the bytes of one are not counted.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, DEEP_USERS + 1);
	__type(key, __u32);
	__type(value, __u64);
} deep_until SEC(".maps");

/*
 * The mapping that a thread's stack pointer was in last, by thread id. bpf_find_vma()
 * releases mmap_lock in an interrupt that the CPU sends to itself, which costs as much as
 * the rest of a sample (5.5 us on Linux 6.18), and it fails while another thread holds the
 * lock. 'check' is a hash of the bounds, the thread and the sizes of its address space: it
 * does not match an entry of another thread, from before a change of mappings, or half
 * written by another CPU.
 */
struct bounds {
	__u64 start;
	__u64 end;
	__u64 check;
};

#define BOUNDS_SLOTS 4096

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, BOUNDS_SLOTS);
	__type(key, __u32);
	__type(value, struct bounds);
} bounds SEC(".maps");

/* A part of a stack to be copied. */
struct plan {
	__u64 start;
	__u32 len;
	__u32 end; /* enum abi_stack_end, if all of it can be read */
	__u32 hole_max; /* bytes in a row that may be absent */
	__u32 limited; /* a deep copy was refused */
};

/* Progress of a copy; in a map, since the verifier does not track its values. */
struct steps {
	__u64 from;
	__u64 first; /* number of the first page */
	__u64 holes; /* as in struct abi_stack */
	__u32 at; /* in the slot */
	__u32 left;
	__u32 good; /* what was left after the last slice that could be read */
	__u32 hole_max;
	__u32 paged; /* while more than this is left, slices end with their page */
	__u32 pad;
};

/* A record's small parts, until its size is known. */
struct scratch {
	struct abi_sample head;
	struct abi_part kstack_part;
	__u64 kstack[ABI_KSTACK_MAX];
	struct abi_part trace_part;
	struct abi_trace trace;
	struct abi_part regs_part;
	struct abi_regs regs;
	struct abi_part stack_part;
	struct abi_stack stack;
	struct pt_regs user_regs;
	__u32 kstack_size; /* 0: the tick hit user code */
	__u32 user; /* registers and stack belong to the record */
	__u32 has_code; /* so does 'code' */
	__u32 traced; /* so does 'trace' */
	__u32 has_go; /* so does 'go' */
	__u32 want_code, want_go; /* set by the caller, for user_part() */
	__u32 pad;
	struct code_part code;
	struct go_part go;
	struct go_state go_state;
	struct plan plan; /* of the stack that sp is on */
	struct plan left; /* of the one left for a signal's, or a goroutine's; or len 0 */
	struct steps steps;
	struct probe probe;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

static __always_inline void sampler_count(__u32 counter, __u64 n)
{
	__u64 *v = bpf_map_lookup_elem(&counters, &counter);

	if (v)
		*v += n;
}

struct vma_search {
	unsigned long start_stack;
	unsigned long sp;
	unsigned long end;
	__u32 exact; /* the end of the stack itself, not only of its mapping */
	__u32 pad;
	struct bounds found;
};

static __always_inline __u64 bounds_mix(__u64 hash, __u64 v)
{
	hash = (hash ^ v) * 0x9fb21c651e98df25ULL;
	return hash ^ hash >> 32;
}

/* Of the thread, its image, and what nearly every change of mappings changes. */
static __always_inline __u64 bounds_owner(struct task_struct *task, struct mm_struct *mm)
{
	__u64 hash = bounds_mix(task->start_boottime, task->pid);

	hash = bounds_mix(hash, task->self_exec_id);
	hash = bounds_mix(hash, mm->total_vm);
	hash = bounds_mix(hash, mm->data_vm);
	return bounds_mix(hash, mm->map_count);
}

static __always_inline __u64 bounds_check(const struct bounds *b, __u64 owner)
{
	return bounds_mix(bounds_mix(owner, b->start), b->end);
}

static long on_vma(struct task_struct *task, struct vm_area_struct *vma, struct vma_search *s)
{
	s->found.start = vma->vm_start;
	s->found.end = vma->vm_end;
	return 0;
}

/* Sets v->found to the mapping of v->sp. 0, or an error of bpf_find_vma(). */
static __always_inline long find_bounds(struct task_struct *task, struct mm_struct *mm,
					struct vma_search *v)
{
	__u32 slot = task->pid & (BOUNDS_SLOTS - 1);
	struct bounds *known = bpf_map_lookup_elem(&bounds, &slot);
	__u64 owner = bounds_owner(task, mm);
	long err;

	if (!known)
		return -2; /* ENOENT: for the verifier */
	v->found.start = known->start;
	v->found.end = known->end;
	if (v->sp >= v->found.start && v->sp < v->found.end &&
	    known->check == bounds_check(&v->found, owner))
		return 0;
	sampler_count(ABI_SAMPLER_VMA_ASKED, 1);
	err = bpf_find_vma(task, v->sp, on_vma, v, 0);
	if (err)
		return err;
	known->start = v->found.start;
	known->end = v->found.end;
	known->check = bounds_check(&v->found, owner);
	return 0;
}

/*
 * Go's stacks are in the heap, where the mapping's end is megabytes away. The runtime's g
 * begins with the bounds of the current stack. In other programs the two words do not
 * enclose the stack pointer.
 */
static __always_inline void goroutine_end(struct scratch *s, struct task_struct *task,
					  struct vma_search *v)
{
	unsigned long bounds[2] = { s->go_state.lo, s->go_state.hi }, g;

	if (!s->go_state.hi) {
		g = arch_goroutine(task, &s->regs);
		if (!g || bpf_probe_read_user(bounds, sizeof(bounds), (void *)g))
			return;
	}
	if (bounds[0] > v->sp || v->sp >= bounds[1] || bounds[1] >= v->end)
		return;
	v->end = bounds[1];
	v->exact = true;
}

/* Sets v->end and v->exact for the stack that v->sp points into. */
static __always_inline void stack_end(struct scratch *s, struct task_struct *task,
				      struct mm_struct *mm, struct vma_search *v)
{
	long err;

	v->start_stack = v->end = mm->start_stack;
	v->exact = true;
	if (v->start_stack - v->sp <= deep_cap) /* unsigned: false if it is below sp */
		return;
	v->end = -1UL;
	v->exact = false;
	err = find_bounds(task, mm, v);
	if (!err) {
		/* Above start_stack are argv and environ. */
		v->exact = v->start_stack >= v->sp && v->start_stack < v->found.end;
		v->end = v->exact ? v->start_stack : v->found.end;
	} else if (err == -16) { /* EBUSY */
		sampler_count(ABI_SAMPLER_VMA_BUSY, 1);
	} else {
		sampler_count(ABI_SAMPLER_VMA_NONE, 1);
		v->end = v->sp + 1; /* one slice; it may be readable */
		return;
	}
	goroutine_end(s, task, v);
}

/* Charges 'len' bytes to an account, which allows one in 'ns'. False: not allowed. */
static __always_inline bool deep_take(__u32 account, __u64 now, __u32 len, __u32 ns)
{
	__u64 *until = bpf_map_lookup_elem(&deep_until, &account), from;

	if (!until)
		return false;
	from = *until;
	if (from + DEEP_BURST_NS < now)
		from = now - DEEP_BURST_NS;
	if (from > now)
		return false;
	*until = from + (__u64)len * ns;
	return true;
}

/* Whether a deep copy is allowed. Half of the ring is reserved for usual ones. */
static __always_inline bool deep_room(__u32 len)
{
	__u64 used = bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA);
	__u32 uid = bpf_get_current_uid_gid();
	__u64 now;

	if (used + len > bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE) / 2)
		return false;
	now = bpf_ktime_get_ns();
	return deep_take(uid % DEEP_USERS, now, len, 2 * DEEP_NS) &&
	       deep_take(DEEP_USERS, now, len, DEEP_NS);
}

/*
 * How much of 'len' bytes may be copied: 'cap', or 'deep' for a deep stack. If only the
 * end of the mapping is known, which may be far behind that of the stack (coroutines have
 * theirs in the heap), a deep copy is made only if it reaches that end.
 */
static __always_inline __u32 plan_cap(struct plan *p, unsigned long len, __u32 cap, __u32 deep,
				      bool exact)
{
	p->limited = false;
	if (len <= cap || deep <= cap || (len > deep && !exact))
		return cap;
	if (len < deep)
		deep = (len + ABI_STACK_ALIGN - 1) & -ABI_STACK_ALIGN;
	if (!deep_room(deep)) {
		sampler_count(ABI_SAMPLER_DEEP_LIMITED, 1);
		p->limited = true;
		return cap;
	}
	sampler_count(ABI_SAMPLER_STACK_DEEP, 1);
	return deep;
}

/* 'used' bytes of the limits are taken by another stack. */
static __always_inline void plan_stack(struct plan *p, const struct vma_search *v, __u32 used)
{
	unsigned long sp = v->sp, end = v->end;
	/* With the red zone, in which a function may save registers. */
	unsigned long start = (sp - ABI_STACK_RED_ZONE) & -(unsigned long)ABI_STACK_ALIGN;
	unsigned long len = end - start;
	__u32 cap = plan_cap(p, len, stack_cap - used, deep_cap - used, v->exact);

	p->end = ABI_STACK_WHOLE;
	if (len > cap) {
		len = cap;
		p->end = ABI_STACK_CAP;
	}
	/* If the end is not known, the copy ends at the first absent page. */
	p->hole_max = end == -1UL ? 0 : HOLE_MAX;
	p->start = start;
	p->len = (len + ABI_STACK_ALIGN - 1) & -ABI_STACK_ALIGN;
}

/* The stack that was left for g0's. The two share the limits. */
static __always_inline void plan_goroutine(struct scratch *s)
{
	struct vma_search v = { .sp = s->go_state.start, .end = s->go_state.end, .exact = true };

	if (!s->has_go || !v.end || s->plan.len >= stack_cap)
		return;
	plan_stack(&s->left, &v, s->plan.len);
}

/*
 * A signal handler may run on an alternate stack (sigaltstack(2)). Then the interrupted
 * stack is copied, too. The two share the limits.
 */
static __always_inline void plan_stacks(struct scratch *s, struct task_struct *task,
					struct mm_struct *mm)
{
	struct vma_search v = { .sp = s->regs.gpr[ABI_REG_SP], .exact = true };
	unsigned long size = task->sas_ss_size, top = task->sas_ss_sp + size;

	s->left.len = 0;
	s->left.limited = false;
	s->go_state.hi = 0;
	if (top - v.sp >= size) {
		if (!(s->head.flags & ABI_SAMPLE_COMPAT))
			s->has_go = sampler_go_find(&s->go_state, &s->go.go, s->want_go, task,
						    &s->regs);
		stack_end(s, task, mm, &v);
		plan_stack(&s->plan, &v, 0);
		plan_goroutine(s);
		return;
	}
	v.end = top;
	plan_stack(&s->plan, &v, 0);
	v.sp = arch_interrupted_sp(task, top);
	if (!v.sp || top - v.sp < size || s->plan.len >= stack_cap)
		return;
	stack_end(s, task, mm, &v);
	plan_stack(&s->left, &v, s->plan.len);
	sampler_count(ABI_SAMPLER_ALTSTACK, 1);
}

/*
 * From exec_mmap to the return to user space the saved registers belong to the old image,
 * whose memory is gone. in_execve is set a little longer. On a kernel without that member
 * the user stack is omitted in the whole system call: the registers alone do not show
 * whether the memory is gone, and no stack is better than a wrong one.
 */
static __always_inline bool sampler_inside_exec(struct task_struct *task, const struct pt_regs *r)
{
	if (!arch_exec_call(r))
		return false;
	if (bpf_core_field_exists(task->in_execve))
		return BPF_CORE_READ_BITFIELD(task, in_execve);
	return true;
}

static __noinline void user_part(struct scratch *s, struct task_struct *task)
{
	/* Once: the verifier searches the kernel's BTF for each load of a pointer. */
	struct mm_struct *mm = task->mm;
	struct pt_regs *r = &s->user_regs;

	if (task->flags & PF_KTHREAD) {
		s->head.flags |= ABI_SAMPLE_KTHREAD;
		return;
	}
	if (!mm) {
		s->head.flags |= ABI_SAMPLE_NOMM;
		return;
	}
	if (bpf_probe_read_kernel(r, sizeof(*r), (void *)bpf_task_pt_regs(task)))
		return;
	arch_fill_regs(&s->regs, r);
	if (!s->regs.ip && !r->sp) { /* a worker of io_uring or vhost: mm, but no user code */
		s->head.flags |= ABI_SAMPLE_KTHREAD;
		return;
	}
	if (arch_compat(r))
		s->head.flags |= ABI_SAMPLE_COMPAT;
	if (sampler_inside_exec(task, r)) {
		s->head.flags |= ABI_SAMPLE_EXEC;
		sampler_count(ABI_SAMPLER_EXEC, 1);
		return;
	}
	s->user = true;
	s->probe.returns = s->probe.xol = 0;
	if (!arch_compat(r))
		probe_regs(&s->probe, task, mm, &s->regs);
	/* 32-bit code has no rows ever. */
	if (arch_compat(r) || s->want_code)
		s->has_code = code_copy(&s->code, s->regs.ip);
	plan_stacks(s, task, mm);
	if (s->plan.limited || s->left.limited)
		s->head.flags |= ABI_SAMPLE_DEEP_LIMITED;
}

static __always_inline void sampler_fill_head(struct abi_sample *h, struct task_struct *task)
{
	h->flags = 0;
	h->key.start_boottime = task->group_leader->start_boottime;
	h->key.exec_id = task->self_exec_id;
	h->key.tgid = task->tgid;
	h->key.pad = 0;
	h->tid = task->pid;
	h->cpu = bpf_get_smp_processor_id();
	bpf_get_current_comm(h->comm, sizeof(h->comm));
	h->event = ABI_EVENT_CPU;
	h->pad = 0;
	h->value = 0; /* the recording's period: a clock, sampled at a frequency */
}

struct copy {
	struct bpf_dynptr slot;
	struct steps *steps;
	struct probe *probe;
};

/* Skips an absent slice. It costs a microsecond, so there is a limit. */
static __always_inline bool copy_hole(struct steps *c)
{
	__u64 page = c->from / ABI_STACK_PAGE - c->first;

	if (page >= ABI_STACK_HOLES || (page && c->good - c->left >= c->hole_max))
		return false;
	c->holes |= 1ULL << page;
	return true;
}

/* A slice of several pages that cannot be read is read again page by page. */
static __always_inline bool copy_paged(struct steps *c, __u32 size)
{
	if (size <= PAGE_SIZE - (c->from & (PAGE_SIZE - 1)))
		return false;
	c->paged = c->left - size;
	return true;
}

static __always_inline long copy_slice(struct copy *copy, const __u32 size)
{
	struct steps *c = copy->steps;
	void *to = bpf_dynptr_data(&copy->slot, c->at, size);
	bool good;

	if (!to)
		return 1;
	good = !bpf_probe_read_user(to, size, (void *)c->from);
	if (!good && copy_paged(c, size))
		return 0;
	if (!good && !copy_hole(c))
		return 1;
	c->from += size;
	c->at += size;
	c->left -= size;
	if (good)
		c->good = c->left;
	return 0;
}

/* The largest slice that fits; a call costs more than the kilobyte it reads. */
static long copy_step(__u32 i, struct copy *copy)
{
	struct steps *c = copy->steps;
	__u32 room = c->left;

	if (c->left > c->paged)
		room = PAGE_SIZE - (c->from & (PAGE_SIZE - 1));
	if (room > c->left)
		room = c->left;
	if (room >= 2 * PAGE_SIZE)
		return copy_slice(copy, 2 * PAGE_SIZE);
	if (room >= 8 * ABI_STACK_ALIGN)
		return copy_slice(copy, 8 * ABI_STACK_ALIGN);
	if (room >= 2 * ABI_STACK_ALIGN)
		return copy_slice(copy, 2 * ABI_STACK_ALIGN);
	if (room >= ABI_STACK_ALIGN)
		return copy_slice(copy, ABI_STACK_ALIGN);
	return 1;
}

static __always_inline void copy_stack(struct scratch *s, struct copy *copy, const struct plan *p,
				       bool whole)
{
	struct steps *c = &s->steps;
	__u32 at = c->at, size = whole ? p->len : 0;

	c->from = p->start;
	c->first = p->start / ABI_STACK_PAGE;
	c->hole_max = p->hole_max;
	c->holes = 0;
	c->left = c->good = c->paged = size;
	c->at = at + sizeof(s->stack_part) + sizeof(s->stack);
	bpf_loop(COPY_SLICES, copy_step, copy, 0);
	s->stack_part.type = ABI_PART_STACK;
	s->stack_part.size = sizeof(s->stack) + size;
	s->stack.start = p->start;
	s->stack.size = size - c->good;
	s->stack.end = !whole ? ABI_STACK_RING : c->good ? ABI_STACK_FAULT : p->end;
	s->stack.holes = c->holes;
	bpf_dynptr_write(&copy->slot, at, &s->stack_part, sizeof(s->stack_part) + sizeof(s->stack),
			 0);
	if (s->stack.end == ABI_STACK_FAULT)
		sampler_count(ABI_SAMPLER_STACK_FAULT, 1);
	else if (c->holes)
		sampler_count(ABI_SAMPLER_STACK_HOLE, 1);
	if (s->stack.end == ABI_STACK_CAP)
		sampler_count(ABI_SAMPLER_STACK_CAP, 1);
	c->at = at + sizeof(s->stack_part) + sizeof(s->stack) + size;
}

static long mend_return(__u32 i, struct copy *copy)
{
	return !probe_patch_return(copy->probe, &copy->slot);
}

/*
 * What was copied last, from 'at' on in the slot. After a stepped call the return address
 * at sp is in [uprobes], too.
 */
static __always_inline void mend_stack(struct scratch *s, struct copy *copy, __u32 at)
{
	struct probe *p = &s->probe;

	if (!bpf_core_type_exists(struct return_instance) || (!p->returns && !p->xol))
		return;
	p->start = s->stack.start;
	p->size = s->stack.size;
	p->at = at + sizeof(s->stack_part) + sizeof(s->stack);
	if (p->xol && !bpf_probe_read_user(&p->was, sizeof(p->was), (void *)p->sp) &&
	    probe_is_stepped(p, p->was)) {
		p->is = p->vaddr + (p->was - p->xol);
		probe_patch(p, &copy->slot, p->sp);
	}
	p->was = p->trampoline;
	p->next = p->returns;
	if (p->next)
		bpf_loop(PROBE_RETURNS_MAX, mend_return, copy, 0);
}

/* Wakes the reader only if the ring is half full: it polls anyway. */
static __always_inline __u64 sampler_wakeup(void)
{
	__u64 used = bpf_ringbuf_query(&samples, BPF_RB_AVAIL_DATA);

	if (used > bpf_ringbuf_query(&samples, BPF_RB_RING_SIZE) / 2)
		return BPF_RB_FORCE_WAKEUP;
	return BPF_RB_NO_WAKEUP;
}

/* Bytes of the part with the ids of a trace. */
static __always_inline __u32 trace_size(const struct scratch *s)
{
	return s->traced ? sizeof(s->trace_part) + sizeof(s->trace) : 0;
}

static __always_inline void trace_put(struct scratch *s, struct copy *c)
{
	if (!s->traced)
		return;
	s->trace_part.type = ABI_PART_TRACE;
	s->trace_part.size = sizeof(s->trace);
	bpf_dynptr_write(&c->slot, s->steps.at, &s->trace_part,
			 sizeof(s->trace_part) + sizeof(s->trace), 0);
	s->steps.at += trace_size(s);
}

static __always_inline __u32 record_size(const struct scratch *s, bool whole)
{
	const __u32 stack = sizeof(s->stack_part) + sizeof(s->stack);
	__u32 size = sizeof(s->head);

	if (s->kstack_size)
		size += sizeof(s->kstack_part) + s->kstack_size;
	size += trace_size(s);
	if (!s->user)
		return size;
	size += sizeof(s->regs_part) + sizeof(s->regs) + stack;
	if (s->has_code)
		size += sizeof(s->code);
	if (s->has_go)
		size += sizeof(s->go);
	if (whole)
		size += s->plan.len + (s->left.len ? stack + s->left.len : 0);
	return size;
}

/* The parts that every record has; then the caller may set event, value and kernel stack. */
static __always_inline void sampler_begin(struct scratch *s, struct task_struct *task)
{
	sampler_fill_head(&s->head, task);
	s->kstack_size = 0;
	s->user = s->has_code = s->traced = s->has_go = false;
	s->want_code = s->want_go = 0;
	s->regs_part.type = ABI_PART_REGS;
	s->regs_part.size = sizeof(s->regs);
}

/* Writes a record, with the stacks if 'whole'. 0 or -ENOSPC. */
static __noinline int sampler_emit(struct scratch *s, bool whole)
{
	struct copy c = {};
	__u32 size;

	if (!s)
		return -22; /* EINVAL: for the verifier */
	c.steps = &s->steps;
	c.probe = &s->probe;
	s->head.size = record_size(s, whole);
	if (bpf_ringbuf_reserve_dynptr(&samples, s->head.size, 0, &c.slot)) {
		bpf_ringbuf_discard_dynptr(&c.slot, 0);
		return -28;
	}
	s->head.time = bpf_ktime_get_boot_ns();
	bpf_dynptr_write(&c.slot, 0, &s->head, sizeof(s->head), 0);
	s->steps.at = sizeof(s->head);
	if (s->kstack_size) {
		size = s->kstack_size;
		if (size > sizeof(s->kstack))
			size = sizeof(s->kstack);
		size += sizeof(s->kstack_part);
		bpf_dynptr_write(&c.slot, s->steps.at, &s->kstack_part, size, 0);
		s->steps.at += size;
	}
	trace_put(s, &c);
	if (s->user) {
		size = sizeof(s->regs_part) + sizeof(s->regs);
		bpf_dynptr_write(&c.slot, s->steps.at, &s->regs_part, size, 0);
		s->steps.at += size;
		if (s->has_code) {
			bpf_dynptr_write(&c.slot, s->steps.at, &s->code, sizeof(s->code), 0);
			s->steps.at += sizeof(s->code);
		}
		if (s->has_go) {
			s->go.part.type = ABI_PART_GO;
			s->go.part.size = sizeof(s->go.go);
			bpf_dynptr_write(&c.slot, s->steps.at, &s->go, sizeof(s->go), 0);
			s->steps.at += sizeof(s->go);
		}
		size = s->steps.at;
		copy_stack(s, &c, &s->plan, whole);
		mend_stack(s, &c, size);
		size = s->steps.at;
		if (whole && s->left.len) {
			copy_stack(s, &c, &s->left, whole);
			mend_stack(s, &c, size);
		}
	}
	bpf_ringbuf_submit_dynptr(&c.slot, sampler_wakeup());
	sampler_count(ABI_SAMPLER_TAKEN, 1);
	sampler_count(ABI_SAMPLER_BYTES, s->head.size);
	return 0;
}

#endif /* BPF_SAMPLER_RECORD_BPF_H */
