/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * watch_sock: the owner of a socket, and its addresses. What TCP does happens in
 * interrupts, in which the current task is whoever was interrupted. So each socket
 * remembers who last connected, listened, sent or received: only those run in a process.
 */
#ifndef BPF_WATCH_SOCK_BPF_H
#define BPF_WATCH_SOCK_BPF_H

#include <bpf/bpf_endian.h>

#include "bpf/watch/watch_send.bpf.h"

/* include/linux/socket.h, uapi/linux/in.h, if_ether.h, net/tcp_states.h: stable. */
#define AF_UNIX 1
#define AF_INET 2
#define AF_INET6 10
#define IPPROTO_TCP 6
#define ETH_P_IP 0x0800
#define ETH_P_IPV6 0x86dd

enum tcp_state {
	TCP_ESTABLISHED = 1,
	TCP_SYN_SENT = 2,
	TCP_SYN_RECV = 3,
	TCP_TIME_WAIT = 6,
	TCP_CLOSE = 7,
	TCP_LISTEN = 10,
	TCP_NEW_SYN_RECV = 12,
};

/*
 * Grows when hooks are attached again: a socket may have changed hands while none was. Set
 * by user space before that.
 */
__u32 watch_era;

struct owner {
	struct abi_key key, created_by;
	__u32 tid, uid, gid;
	__u32 flags; /* of ABI_WATCH_CLIENT, ABI_WATCH_SERVER */
	__u32 self; /* it is profd's own */
	__u32 era; /* watch_era when it was set */
	char comm[ABI_COMM_LEN];
	__u64 connect_at; /* when connect() began */
	__u64 rtt_at; /* of the last event with its round trip time */
};

/* An accepted socket begins with a copy of that of the one that listens. */
struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC | BPF_F_CLONE);
	__type(key, int);
	__type(value, struct owner);
} watch_owners SEC(".maps");

static __always_inline bool sock_is_tcp(const struct sock *sk)
{
	__u16 family = sk->__sk_common.skc_family;

	return sk->sk_protocol == IPPROTO_TCP && (family == AF_INET || family == AF_INET6);
}

/* Neither a request to connect nor the remainder of a connection: those are smaller. */
static __always_inline bool sock_is_full(const struct sock *sk)
{
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);

	return state != TCP_TIME_WAIT && state != TCP_NEW_SYN_RECV;
}

/* 'task' owns the socket from now on. */
static __always_inline void owner_set(struct owner *o, struct task_struct *task)
{
	const struct cred *cred = task_cast(task)->real_cred;

	watch_fill_key(&o->key, task);
	if (!o->created_by.tgid)
		o->created_by = o->key;
	o->tid = task->pid;
	o->uid = cred->uid.val;
	o->gid = cred->gid.val;
	o->self = watch_is_self(task);
	o->era = watch_era;
	watch_fill_comm(o->comm, task);
}

static __always_inline bool owner_is(const struct owner *o, struct task_struct *task)
{
	struct abi_key key;

	watch_fill_key(&key, task);
	return o->tid == (__u32)task->pid && o->key.tgid == key.tgid &&
	       o->key.exec_id == key.exec_id && o->key.start_boottime == key.start_boottime;
}

static __always_inline bool is_mapped(const __u8 *a)
{
	return *(__u64 *)a == 0 && *(__u32 *)(a + 8) == bpf_htonl(0xffff);
}

/* IPv4 over an IPv6 socket is IPv4. */
static __always_inline void ends_unmap(struct abi_watch_ends *e)
{
	if (e->family != AF_INET6 || (!is_mapped(e->dst) && !is_mapped(e->src)))
		return;
	e->family = AF_INET;
	*(__u32 *)e->src = *(__u32 *)(e->src + 12);
	*(__u32 *)e->dst = *(__u32 *)(e->dst + 12);
}

/* 'sk' may be any address. */
static __always_inline void ends_fill(struct abi_watch_ends *e, const struct sock *sk)
{
	const struct sock_common *c = &sk->__sk_common;

	e->family = BPF_CORE_READ(c, skc_family);
	e->dport = bpf_ntohs(BPF_CORE_READ(c, skc_dport));
	/* Unlike skc_num, still set after the close. What is left in TIME_WAIT has none. */
	e->sport = sock_is_full(sk)
			   ? bpf_ntohs(BPF_CORE_READ((const struct inet_sock *)sk, inet_sport))
			   : BPF_CORE_READ(c, skc_num);
	if (e->family == AF_INET6 && bpf_core_field_exists(c->skc_v6_daddr)) {
		bpf_core_read(e->src, 16, &c->skc_v6_rcv_saddr);
		bpf_core_read(e->dst, 16, &c->skc_v6_daddr);
	} else {
		bpf_core_read(e->src, 4, &c->skc_rcv_saddr);
		bpf_core_read(e->dst, 4, &c->skc_daddr);
	}
	ends_unmap(e);
}

/* False: the bytes are not in the linear part of the packet. */
static __always_inline bool packet_read(void *to, __u32 len, const unsigned char *at,
					const unsigned char *end)
{
	return at + len <= end && !bpf_probe_read_kernel(to, len, at);
}

/* The socket of a packet is the sender's until it leaves the host, then the receiver's. */
static __always_inline bool packet_leaves(const struct sk_buff *skb, __u16 sport)
{
	struct sock *sk = BPF_CORE_READ(skb, sk);

	return sk && sport && BPF_CORE_READ(sk, __sk_common.skc_num) == sport;
}

/*
 * The addresses of a packet in TCP over IP, the host's end first: the receiver's, but of
 * what leaves. False: it is another one, or has no headers. Only the kernel sets
 * skb->protocol: the bytes of others may look like headers, as those of a unix socket.
 */
static __always_inline bool ends_of_packet(struct abi_watch_ends *e, const struct sk_buff *skb)
{
	const unsigned char *head = BPF_CORE_READ(skb, head), *end, *ip;
	__u16 protocol = BPF_CORE_READ(skb, protocol);
	__u8 from[16] = {}, to[16] = {}, h[40];
	__u16 ports[2] = {};

	end = head + BPF_CORE_READ(skb, tail);
	ip = head + BPF_CORE_READ(skb, network_header);
	if (protocol == bpf_htons(ETH_P_IP)) {
		if (!packet_read(h, 20, ip, end) || h[9] != IPPROTO_TCP)
			return false;
		e->family = AF_INET;
		__builtin_memcpy(from, h + 12, 4);
		__builtin_memcpy(to, h + 16, 4);
		/* Only the first fragment has ports. */
		if (!(h[6] & 0x1f) && !h[7])
			packet_read(ports, sizeof(ports), ip + (h[0] & 15) * 4, end);
	} else if (protocol == bpf_htons(ETH_P_IPV6)) {
		if (!packet_read(h, 40, ip, end) || h[6] != IPPROTO_TCP)
			return false;
		e->family = AF_INET6;
		__builtin_memcpy(from, h + 8, 16);
		__builtin_memcpy(to, h + 24, 16);
		packet_read(ports, sizeof(ports), ip + 40, end);
	} else {
		return false;
	}
	if (packet_leaves(skb, bpf_ntohs(ports[0]))) {
		e->sport = bpf_ntohs(ports[0]);
		e->dport = bpf_ntohs(ports[1]);
		__builtin_memcpy(e->src, from, 16);
		__builtin_memcpy(e->dst, to, 16);
	} else {
		e->sport = bpf_ntohs(ports[1]);
		e->dport = bpf_ntohs(ports[0]);
		__builtin_memcpy(e->src, to, 16);
		__builtin_memcpy(e->dst, from, 16);
	}
	return true;
}

/* All but the name and the values. False: it is profd's own. */
static __always_inline bool sock_fill(struct abi_watch_record *r, const struct sock *sk,
				      const struct owner *o)
{
	__builtin_memset(r, 0, sizeof(*r));
	r->head.flags = ABI_WATCH_SOCKET;
	ends_fill(&r->ends, sk);
	if (!o)
		return true;
	r->head.key = o->key;
	if (o->created_by.tgid != o->key.tgid ||
	    o->created_by.start_boottime != o->key.start_boottime)
		r->created_by = o->created_by;
	r->head.tid = o->tid;
	r->head.uid = o->uid;
	r->head.gid = o->gid;
	__builtin_memcpy(r->head.comm, o->comm, sizeof(r->head.comm));
	r->head.flags |= o->flags;
	return !o->self;
}

#endif /* BPF_WATCH_SOCK_BPF_H */
