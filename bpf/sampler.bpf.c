// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * sampler: writes one ring record at each tick of the software CPU clock: the image key,
 * the kernel stack, the user registers and a copy of the used part of the user stack
 * (bpf/sampler_record.bpf.h). Nothing is unwound here, and nothing about the process has
 * to be known. Interrupts are off.
 */
#include "bpf/vmlinux.h"

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/sampler_record.bpf.h"
#include "bpf/sampler_trace.bpf.h"
#include "bpf/sampler/sampler_wanted.bpf.h"

char _license[] SEC("license") = "Dual BSD/GPL";

SEC("perf_event")
int sampler_tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 zero = 0;
	struct scratch *s = bpf_map_lookup_elem(&scratch, &zero);
	long n;

	if (!s || !task->pid) /* the idle task, in case exclude_idle does not apply */
		return 0;
	sampler_begin(s, task);
	if (arch_user_mode(&ctx->regs)) {
		s->head.flags |= ABI_SAMPLE_USER;
	} else {
		n = bpf_get_stack(ctx, s->kstack, sizeof(s->kstack), 0);
		s->kstack_part.type = ABI_PART_KSTACK;
		s->kstack_part.size = s->kstack_size = n > 0 ? n : 0;
	}
	sampler_wanted(s);
	user_part(s, task);
	if (trace_used)
		trace_part(s, task);
	if (!sampler_emit(s, true))
		return 0;
	if (s->user && !sampler_emit(s, false))
		return 0;
	sampler_count(ABI_SAMPLER_RING_FULL, 1);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(sampler_exec, struct task_struct *task)
{
	sampler_executed(task);
	return 0;
}

/* --- kernel modules ----------------------------------------------------------------- */

/* A record is written for each module that comes or goes, and wakes the loop. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 64 * 1024); /* a page, whatever its size */
} modules SEC(".maps");

static __always_inline int module_changed(struct module *mod, bool unloaded)
{
	struct module___6_3 *old = (void *)mod;
	struct abi_module *m = bpf_ringbuf_reserve(&modules, sizeof(*m), 0);

	if (!m)
		return 0;
	m->time = bpf_ktime_get_boot_ns();
	m->unloaded = unloaded;
	m->start = 0;
	m->size = 0;
	if (bpf_core_field_exists(mod->mem)) {
		m->start = (__u64)BPF_CORE_READ(mod, mem[0].base);
		m->size = BPF_CORE_READ(mod, mem[0].size);
	} else if (bpf_core_field_exists(old->core_layout)) {
		m->start = (__u64)BPF_CORE_READ(old, core_layout.base);
		m->size = BPF_CORE_READ(old, core_layout.text_size);
	}
	bpf_ringbuf_submit(m, BPF_RB_FORCE_WAKEUP);
	return 0;
}

/* When its text is in place, before it is initialized. */
SEC("raw_tp/module_load")
int sampler_module_load(struct bpf_raw_tracepoint_args *ctx)
{
	return module_changed((struct module *)ctx->args[0], false);
}

/* Before its text is freed. */
SEC("raw_tp/module_free")
int sampler_module_free(struct bpf_raw_tracepoint_args *ctx)
{
	return module_changed((struct module *)ctx->args[0], true);
}
