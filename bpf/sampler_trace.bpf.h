/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sampler_trace: the trace ids of the running thread, from the record of its tracer
 * (bpf/abi_trace.h). The thread is interrupted, so a record cannot change while it is
 * read: the pointer or the byte 'valid' tells whether it is whole. Everything is the
 * process's own memory: nothing but the ids is taken from it, and no pointer is followed
 * beyond the record. What cannot be read has no ids, and is counted by cause.
 */
#ifndef BPF_SAMPLER_TRACE_BPF_H
#define BPF_SAMPLER_TRACE_BPF_H

#include "bpf/abi_trace.h"

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, ABI_TRACE_SLOTS);
	__type(key, __u32);
	__type(value, struct abi_trace_slot);
} trace_slots SEC(".maps");

/* Entries of the map, set by user space: while it is 0 nothing is looked up. */
__u32 trace_used;

/* OpenTelemetry's record, packed; 28 bytes, then attributes. */
struct trace_record {
	__u8 trace_id[16];
	__u8 span_id[8];
	__u8 valid;
	__u8 flags;
	__u16 attrs_size;
};

/* Elastic's, unaligned. */
struct trace_elastic {
	__u16 minor;
	__u8 valid, present, flags;
	__u8 trace_id[16];
	__u8 span_id[8];
	__u8 transaction_id[8];
} __attribute__((packed));

/* Whether the loader's words for the variable are what they were. */
static __always_inline bool trace_guarded(const struct abi_trace_slot *slot)
{
	__u64 words[2] = { 0 };
	/* There may be nothing behind the last word. */
	__u32 size = slot->guard_words == 1 ? sizeof(*words) : sizeof(words);

	if (!slot->guard_words)
		return true;
	return !bpf_probe_read_user(words, size, (void *)slot->guard) &&
	       words[0] == slot->words[0] && words[1] == slot->words[1];
}

/* glibc's dtv: { number of entries, - }, { generation, - }, { block, - } ... */
static __always_inline __u64 trace_block_glibc(const struct abi_trace_slot *slot, __u64 dtv)
{
	__u64 head[4], block;

	if (bpf_probe_read_user(head, sizeof(head), (void *)(dtv - 16)) || slot->module > head[0] ||
	    head[2] < slot->generation ||
	    bpf_probe_read_user(&block, sizeof(block), (void *)(dtv + slot->module * 16)))
		return 0;
	return block == -1ULL ? 0 : block; /* TLS_DTV_UNALLOCATED */
}

/* musl's: number of entries, block, ... */
static __always_inline __u64 trace_block_musl(const struct abi_trace_slot *slot, __u64 dtv)
{
	__u64 count, block;

	if (bpf_probe_read_user(&count, sizeof(count), (void *)dtv) || slot->module > count ||
	    bpf_probe_read_user(&block, sizeof(block), (void *)(dtv + slot->module * 8)))
		return 0;
	return block;
}

/* The address of the thread's variable; 0: it has none. */
static __always_inline __u64 trace_variable(const struct abi_trace_slot *slot, __u64 tp)
{
	__u64 dtv, block;

	if (!slot->module)
		return tp + slot->offset;
	if (bpf_probe_read_user(&dtv, sizeof(dtv), (void *)(tp + ARCH_DTV)) || !dtv)
		return 0;
	block = slot->entry == 8 ? trace_block_musl(slot, dtv) : trace_block_glibc(slot, dtv);
	return block ? block + slot->offset : 0;
}

/* These two: ABI_SAMPLER_TRACED: 'out' is set. Else why there are no ids. */
static __always_inline __u32 trace_read_otel(__u64 record, struct abi_trace *out)
{
	struct trace_record r;

	if (bpf_probe_read_user(&r, sizeof(r), (void *)record))
		return ABI_SAMPLER_TRACE_UNREAD;
	if (r.valid != 1)
		return r.valid ? ABI_SAMPLER_TRACE_INVALID : ABI_SAMPLER_TRACE_TORN;
	__builtin_memcpy(out->trace_id, r.trace_id, sizeof(r.trace_id));
	__builtin_memcpy(out->span_id, r.span_id, sizeof(r.span_id));
	__builtin_memset(out->transaction_id, 0, sizeof(out->transaction_id));
	out->flags = r.flags;
	return ABI_SAMPLER_TRACED;
}

static __always_inline __u32 trace_read_elastic(__u64 record, struct abi_trace *out)
{
	struct trace_elastic r;

	if (bpf_probe_read_user(&r, sizeof(r), (void *)record))
		return ABI_SAMPLER_TRACE_UNREAD;
	if (!r.minor)
		return ABI_SAMPLER_TRACE_INVALID;
	if (!r.valid)
		return ABI_SAMPLER_TRACE_TORN;
	if (!r.present)
		return ABI_SAMPLER_TRACE_NONE;
	__builtin_memcpy(out->trace_id, r.trace_id, sizeof(r.trace_id));
	__builtin_memcpy(out->span_id, r.span_id, sizeof(r.span_id));
	__builtin_memcpy(out->transaction_id, r.transaction_id, sizeof(r.transaction_id));
	out->flags = r.flags;
	return ABI_SAMPLER_TRACED;
}

/* Likewise. */
static __always_inline __u32 trace_read(const struct abi_trace_slot *slot, __u64 tp,
					struct abi_trace *out)
{
	__u64 at, record;
	__u32 what;

	if (!tp || !trace_guarded(slot))
		return ABI_SAMPLER_TRACE_UNLOADED;
	at = trace_variable(slot, tp);
	if (!at)
		return ABI_SAMPLER_TRACE_UNSET;
	if (bpf_probe_read_user(&record, sizeof(record), (void *)at))
		return ABI_SAMPLER_TRACE_UNREAD;
	if (!record)
		return ABI_SAMPLER_TRACE_NONE;
	what = slot->elastic ? trace_read_elastic(record, out) : trace_read_otel(record, out);
	if (what == ABI_SAMPLER_TRACED && !*(__u64 *)out->trace_id &&
	    !*(__u64 *)(out->trace_id + 8))
		return ABI_SAMPLER_TRACE_NONE;
	return what;
}

/* Adds the ids to the record, after user_part(). */
static __noinline void trace_part(struct scratch *s, struct task_struct *task)
{
	struct abi_trace_slot *slot;
	__u32 tgid, what;

	if (!s->user || s->head.flags & ABI_SAMPLE_COMPAT)
		return;
	tgid = s->head.key.tgid;
	slot = bpf_map_lookup_elem(&trace_slots, &tgid);
	if (!slot || slot->start_boottime != s->head.key.start_boottime ||
	    slot->exec_id != s->head.key.exec_id)
		return;
	what = trace_read(slot, arch_thread_pointer(task), &s->trace);
	sampler_count(what, 1);
	s->traced = what == ABI_SAMPLER_TRACED;
}

#endif /* BPF_SAMPLER_TRACE_BPF_H */
