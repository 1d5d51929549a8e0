// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Counts the ends of system calls by thread: see prog_exits.c. */
#include "bpf/vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/abi.h"
#include "bpf/arch.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define EXITS_CALLS \
	512 /* numbers are below; of a return from a signal it is -1 */

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, __u32);
	__type(value, __u64);
} exits SEC(".maps");

const volatile __u32 exits_uid;
__u64 exits_uncounted; /* the map was full */

SEC("tp_btf/sys_exit")
int exits_count(__u64 *ctx)
{
	const struct pt_regs *regs = (void *)ctx[0];
	__u32 tid = bpf_get_current_pid_tgid();
	__u64 zero = 0, *n;

	if ((__u32)bpf_get_current_uid_gid() != exits_uid ||
	    arch_call_nr(regs) >= EXITS_CALLS)
		return 0;
	bpf_map_update_elem(&exits, &tid, &zero, BPF_NOEXIST);
	n = bpf_map_lookup_elem(&exits, &tid);
	__sync_fetch_and_add(n ?: &exits_uncounted, 1);
	return 0;
}
