/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abi_trace: the map by which the sampling program finds the trace ids of a thread, and
 * the part of a sample with them (ABI_PART_TRACE). A tracer keeps a pointer to the
 * record of the running thread in a thread-local variable (OpenTelemetry OTEP 4947, or
 * Elastic's universal profiling integration); user space has found where that is,
 * symbolize/elf/slot.h.
 */
#ifndef BPF_ABI_TRACE_H
#define BPF_ABI_TRACE_H

#include "bpf/abi.h"

#define ABI_TRACE_SLOTS 16384 /* processes */

/*
 * The slot of a process; the key of the map is its tgid. It is used for samples of this
 * image only, so a child of fork and an exec inherit none.
 */
struct abi_trace_slot {
	__u64 start_boottime;
	__u64 exec_id;
	/* Of the variable: from the thread pointer or, with 'module', in its block. */
	__u64 offset;
	__u64 module; /* index in the thread's dtv; 0: none is needed */
	/* glibc: the dtv must not be older, so that its entry is this module's. */
	__u64 generation;
	/*
	 * Where the loader's words for the variable are, and what they were. Not there or
	 * different: the library was unloaded.
	 */
	__u64 guard;
	__u64 words[2];
	__u32 guard_words; /* how many of them are compared; 0: it cannot be unloaded */
	__u32 entry; /* bytes of an entry of the dtv: 16 glibc, 8 musl */
	__u32 elastic; /* 1: the record is Elastic's, 0: OpenTelemetry's */
	__u32 pad;
};

/* The payload of ABI_PART_TRACE. */
struct abi_trace {
	__u8 trace_id[16]; /* not all zero */
	__u8 span_id[8];
	__u8 transaction_id[8]; /* of Elastic's record; else 0 */
	__u8 flags; /* as in W3C's traceparent */
	__u8 pad[7];
};

#ifndef __bpf__
ABI_ASSERT(sizeof(struct abi_trace_slot) == 80);
ABI_ASSERT(sizeof(struct abi_trace) == 40);
#endif

#endif /* BPF_ABI_TRACE_H */
