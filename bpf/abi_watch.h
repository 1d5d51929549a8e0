/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abi_watch: the events of bpf/watch.bpf.c, their records, and the filter that user
 * space sets. Included by both sides.
 */
#ifndef BPF_ABI_WATCH_H
#define BPF_ABI_WATCH_H

#include "bpf/abi.h"

/*
 * X(NAME, name, published, category, text). 'published' are the other words by which
 * users know an event, with spaces between them.
 */
#define ABI_WATCH_EVENTS(X)                                                                     \
	X(PROCESS_FORK, "process_fork", "", "process", "a process was made; ppid: its parent")  \
	X(PROCESS_EXEC, "process_exec", "", "process", "a process runs another program")        \
	X(PROCESS_EXIT, "process_exit", "procexit", "process",                                  \
	  "a process ended; status: as of wait(2)")                                             \
	X(SIGNAL_GENERATE, "signal_generate", "", "signal",                                     \
	  "a signal was sent; spid: by which process, dpid: to which one")                      \
	X(SIGNAL_DELIVER, "signal_deliver", "signaldeliver", "signal",                          \
	  "a process takes a signal; spid: the sender, in its own pid namespace")               \
	X(TCP_CONNECT, "tcp_connect", "", "net",                                                \
	  "a connection was made, or was not; retval: 0 or -errno")                             \
	X(TCP_ACCEPT, "tcp_accept", "", "net", "a listening socket has a new connection")       \
	X(TCP_RTT, "tcp_rcv_established", "tcp_rtt", "net",                                     \
	  "round trip time in us, each 5 s of a connection at most, and at its end")            \
	X(TCP_CLOSE, "tcp_close", "", "net", "a connection ended; its totals")                  \
	X(TCP_STATE, "tcp_set_state", "inet_sock_set_state", "net", "a socket's state changed") \
	X(TCP_RETRANSMIT, "tcp_retransmit_skb", "", "net", "segments were sent again")          \
	X(TCP_SEND_RESET, "tcp_send_reset", "", "net", "a reset was sent")                      \
	X(TCP_RECEIVE_RESET, "tcp_receive_reset", "", "net", "a reset was received")            \
	X(TCP_DROP, "tcp_drop", "kfree_skb", "net", "a packet was dropped; reason: why")

enum abi_watch_name {
#define X(NAME, name, published, category, text) ABI_WATCH_##NAME,
	ABI_WATCH_EVENTS(X)
#undef X
	ABI_WATCH_NAMES, /* <= 32: bits of a filter */
};

enum abi_watch_flags {
	ABI_WATCH_TIMED = 1 << 0, /* has a latency */
	ABI_WATCH_FAILED = 1 << 1,
	ABI_WATCH_CLIENT = 1 << 2, /* its socket connected */
	ABI_WATCH_SERVER = 1 << 3, /* its socket was accepted, or listens */
	ABI_WATCH_SOCKET = 1 << 4, /* has addresses */
};

/* Ports in the host's byte order; IPv4 addresses in the first four bytes. */
struct abi_watch_ends {
	__u16 family; /* AF_INET, AF_INET6 */
	__u16 sport, dport;
	__u16 pad;
	__u8 src[16], dst[16]; /* the host's end first */
};

#define ABI_WATCH_VALUES 8

/* Each record begins with one. */
struct abi_watch_head {
	__u64 time; /* CLOCK_BOOTTIME, ns; read after the slot was reserved */
	__u64 latency; /* ns */
	struct abi_key key; /* whose event it is; tgid 0: not known */
	__u32 tid, uid, gid;
	__u16 name; /* enum abi_watch_name */
	__u16 flags; /* enum abi_watch_flags */
	char comm[ABI_COMM_LEN];
};

struct abi_watch_record {
	struct abi_watch_head head;
	struct abi_key created_by; /* who made the socket; tgid 0: not known */
	struct abi_watch_ends ends;
	__u64 v[ABI_WATCH_VALUES]; /* attributes, by name: processmanager/watch/names.c */
};

/* The union of all subscriptions; each one's own filter is applied in user space. */
struct abi_watch_filter {
	__u64 slower; /* ns: of events with a latency, those that took so long */
	__u32 names; /* bits by enum abi_watch_name */
	__u32 by_pid; /* only of the processes in the map of pids */
	__u32 failed; /* only events with an error */
	__u32 crowded; /* bytes in the ring from which on users have budgets */
};

/* Of a name: events that subscribers should have had. */
struct abi_watch_loss {
	__u64 dropped; /* the ring was full */
	__u64 limited; /* beyond the budget of its user */
};

#ifndef __bpf__
ABI_ASSERT(sizeof(struct abi_watch_ends) == 40);
ABI_ASSERT(sizeof(struct abi_watch_head) == 72);
ABI_ASSERT(sizeof(struct abi_watch_record) == 200);
ABI_ASSERT(sizeof(struct abi_watch_filter) == 24);
ABI_ASSERT(sizeof(struct abi_watch_loss) == 16);
ABI_ASSERT(ABI_WATCH_NAMES <= 32);
#endif

#endif /* BPF_ABI_WATCH_H */
