// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Counts retransmits by the ends of their socket, and shares no code with bpf/watch: see
 * prog_retransmits.c.
 */
#include "bpf/vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "tests/watch/prog_retransmits.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

#define AF_INET6 10

/* __tcp_retransmit_skb(), 6.17: EAGAIN, ENOMEM, EBUSY, EINVAL, EHOSTUNREACH. */
static const int retransmits_unsent[] = { 11, 12, 16, 22, 113 };

static __always_inline bool retransmits_is_unsent(int err)
{
	for (int i = 0; i < 5; i++)
		if (err == -retransmits_unsent[i])
			return true;
	return false;
}

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 16384);
	__type(key, struct retransmits_ends);
	__type(value, struct retransmits_sums);
} retransmits SEC(".maps");

__u64 retransmits_uncounted; /* the map was full */

SEC("tp_btf/tcp_retransmit_skb")
int retransmits_count(__u64 *ctx)
{
	struct trace_event_raw_tcp_retransmit_skb___6_17 *with = NULL;
	struct sk_buff *skb = (void *)ctx[1];
	struct sock *sk = (void *)ctx[0];
	const struct sock_common *c = &sk->__sk_common;
	struct retransmits_sums *sums, none = {};
	struct retransmits_ends ends = {};
	__u16 segs = 0;
	int err = 0;

	ends.family = c->skc_family;
	ends.sport = c->skc_num;
	ends.dport = c->skc_dport; /* in the network's byte order */
	if (ends.family == AF_INET6) {
		bpf_core_read(ends.src, 16, &c->skc_v6_rcv_saddr);
		bpf_core_read(ends.dst, 16, &c->skc_v6_daddr);
	} else {
		bpf_core_read(ends.src, 4, &c->skc_rcv_saddr);
		bpf_core_read(ends.dst, 4, &c->skc_daddr);
	}
	bpf_map_update_elem(&retransmits, &ends, &none, BPF_NOEXIST);
	sums = bpf_map_lookup_elem(&retransmits, &ends);
	if (!sums) {
		__sync_fetch_and_add(&retransmits_uncounted, 1);
		return 0;
	}
	bpf_core_read(&segs, sizeof(segs),
		      &((struct tcp_skb_cb *)skb->cb)->tcp_gso_segs);
	if (bpf_core_field_exists(with->err))
		err = ctx[2];
	if (retransmits_is_unsent(err)) {
		__sync_fetch_and_add(&sums->unsent, 1);
		return 0;
	}
	__sync_fetch_and_add(&sums->events, 1);
	__sync_fetch_and_add(&sums->segs, segs);
	return 0;
}
