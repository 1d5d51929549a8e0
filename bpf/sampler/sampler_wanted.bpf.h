/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * sampler_wanted: the processes whose samples need more than registers and stack. User
 * space sets them; those that execute a known program of Go are set here, at the exec,
 * so that their first sample has it.
 */
#ifndef BPF_SAMPLER_WANTED_BPF_H
#define BPF_SAMPLER_WANTED_BPF_H

#include "bpf/ident.bpf.h"
#include "bpf/sampler_record.bpf.h"

/* By tgid: the code at ip. */
__u64 code_wanted[ABI_CODE_WANTED / 64];

/* By tgid: a word of bpf/sampler/sampler_go.bpf.h. */
__u32 go_wanted[ABI_GO_WANTED];

/*
 * Executed files of Go, and the word of their processes. A file that was evicted costs its
 * processes the samples until user space has unwound one.
 */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, ABI_GO_FILES);
	__type(key, struct abi_quark_file);
	__type(value, __u32);
} go_files SEC(".maps");

static __always_inline void sampler_wanted(struct scratch *s)
{
	__u32 tgid = s->head.key.tgid, bit = tgid % ABI_CODE_WANTED;

	s->want_code = code_wanted[bit / 64] >> (bit % 64) & 1;
	s->want_go = go_wanted[tgid % ABI_GO_WANTED];
}

/*
 * A program that is not of Go keeps what is there: another process may have the slot, and
 * execs of one user must not take it from that.
 */
static __always_inline void sampler_executed(struct task_struct *task)
{
	struct mm_struct *mm = task->mm;
	struct abi_quark_file id;
	__u32 *word;

	if (!mm || !mm->exe_file)
		return;
	ident_of(&id, mm->exe_file);
	word = bpf_map_lookup_elem(&go_files, &id);
	if (word)
		go_wanted[(__u32)task->tgid % ABI_GO_WANTED] = *word;
}

#endif /* BPF_SAMPLER_WANTED_BPF_H */
