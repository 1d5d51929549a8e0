/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sampler_go: the two stacks of a thread of Go. The runtime and C code run on the stack of
 * g0, of which each thread has one; the goroutine that called them waits on its own stack,
 * and its g has where (runtime.g.sched). That stack is copied as well, for processes whose
 * runtime's code has told user space where a thread has its g; others pay for a load.
 *
 * The offsets are those of runtime2.go, Go 1.17 to 1.26; 1.25 dropped a word. A process can
 * write anything there: it decides which of its own bytes are copied, within the limits of
 * any copy (plan_stack()), and user space believes nothing that does not fit together.
 *
 * The word that tells where they are: the offset of curg in bytes, and below it the words
 * from the thread pointer to g, 16 bits each. 0: not wanted.
 */
#ifndef BPF_SAMPLER_GO_BPF_H
#define BPF_SAMPLER_GO_BPF_H

/* Words of runtime.g and runtime.m. */
enum {
	GO_G_LO = 0, /* bounds of its stack */
	GO_G_HI = 1,
	GO_G_M = 6,
	GO_G_SP = 7, /* of g.sched: where it goes on */
	GO_G_PC = 8,
	GO_G_BP = 12,
	GO_G_BP_OLD = 13,
	GO_G_WORDS = 14,
	GO_M_G0 = 0,
	GO_M_CURG = ABI_GO_CURG / 8,
	GO_M_CURG_OLD = ABI_GO_CURG_OLD / 8,
	GO_M_WORDS = 25,
};

struct go_part {
	struct abi_part part;
	struct abi_go go;
};

struct go_state {
	__u64 g[GO_G_WORDS]; /* of the thread pointer */
	__u64 m[GO_M_WORDS];
	__u64 curg[GO_G_WORDS];
	__u64 lo, hi; /* of the stack that sp is on; hi 0: not known */
	__u64 start, end; /* of what is copied of the goroutine's; end 0: nothing */
};

static __always_inline bool go_read(void *to, __u32 size, __u64 from)
{
	return from && !bpf_probe_read_user(to, size, (void *)from);
}

/* The goroutine 'g' left for g0; false: what it has saved does not fit. */
static __always_inline bool go_saved(struct go_state *st, struct abi_go *go, __u64 g, bool old)
{
	__u64 sp;

	if (!go_read(st->curg, sizeof(st->curg), g) || st->curg[GO_G_M] != st->g[GO_G_M])
		return false;
	sp = st->curg[GO_G_SP];
	if (sp < st->curg[GO_G_LO] || sp >= st->curg[GO_G_HI])
		return false;
	go->state = ABI_GO_SAVED;
	go->g = g;
	go->pc = st->curg[GO_G_PC];
	go->sp = st->start = sp;
	go->bp = old ? st->curg[GO_G_BP_OLD] : st->curg[GO_G_BP];
	go->end = st->end = st->curg[GO_G_HI];
	return true;
}

/*
 * A call of the vDSO runs on the stack of g0, but the thread's g stays the goroutine, and
 * sched is old. Its frame is where one of two registers that C code preserves points to;
 * in C code that uses them for something else all of the stack is copied.
 */
static __always_inline bool go_calls_vdso(struct go_state *st, struct abi_go *go, __u64 g,
					  const struct abi_regs *r)
{
	__u64 lo = st->g[GO_G_LO], hi = st->g[GO_G_HI], sp = r->gpr[ABI_REG_SP];
	__u64 bounds[2], start = hi;

	if (!go_read(bounds, sizeof(bounds), st->m[GO_M_G0]) || sp < bounds[0] || sp >= bounds[1])
		return false;
	st->lo = bounds[0];
	st->hi = bounds[1];
	if (r->gpr[ABI_REG_BP] >= lo && r->gpr[ABI_REG_BP] < start)
		start = r->gpr[ABI_REG_BP];
	if (r->gpr[ARCH_GO_SP] >= lo && r->gpr[ARCH_GO_SP] < start)
		start = r->gpr[ARCH_GO_SP];
	st->start = start < hi ? start : lo;
	st->end = hi;
	go->state = ABI_GO_VDSO;
	go->g = g;
	go->end = hi;
	go->pc = go->sp = go->bp = go->base = 0;
	return true;
}

static __always_inline bool go_look(struct go_state *st, struct abi_go *go, __u32 wanted,
				    struct task_struct *task, const struct abi_regs *r)
{
	long tls = (short)wanted * 8L;
	bool old = wanted >> 16 == ABI_GO_CURG_OLD;
	__u64 g, curg, sp = r->gpr[ABI_REG_SP];

	if (!go_read(&g, sizeof(g), arch_thread_pointer(task) + tls) ||
	    !go_read(st->g, sizeof(st->g), g) || !go_read(st->m, sizeof(st->m), st->g[GO_G_M]))
		return false;
	if (sp >= st->g[GO_G_LO] && sp < st->g[GO_G_HI]) {
		st->lo = st->g[GO_G_LO];
		st->hi = st->g[GO_G_HI];
	}
	curg = old ? st->m[GO_M_CURG_OLD] : st->m[GO_M_CURG];
	if (st->m[GO_M_G0] != g)
		return !st->hi && curg == g && go_calls_vdso(st, go, g, r);
	go->base = st->g[GO_G_SP];
	if (curg)
		return go_saved(st, go, curg, old);
	go->state = ABI_GO_NONE;
	go->g = go->pc = go->sp = go->bp = go->end = 0;
	return true;
}

/* Fills 'go', and the bounds in 'st'. False: the sample has no such part. */
static __always_inline bool sampler_go_find(struct go_state *st, struct abi_go *go, __u32 wanted,
					    struct task_struct *task, const struct abi_regs *r)
{
	st->hi = st->end = 0;
	return wanted && go_look(st, go, wanted, task, r);
}

#endif /* BPF_SAMPLER_GO_BPF_H */
