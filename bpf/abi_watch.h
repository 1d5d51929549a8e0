/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abi_watch: the events of bpf/watch/watch.bpf.c, their records, and the filter that user
 * space sets. Included by both sides.
 */
#ifndef BPF_ABI_WATCH_H
#define BPF_ABI_WATCH_H

#include "bpf/abi.h"
#include "bpf/abi_fd.h"

/*
 * X(NAME, name, published, category, text). 'published' are the other words by which
 * users know an event, with spaces between them. The last two come from no program here:
 * user space makes them of segments (bpf/abi_wait.h).
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
	X(TCP_DROP, "tcp_drop", "kfree_skb", "net", "a packet was dropped; reason: why")        \
	X(SCHED_SWITCH, "sched_switch", "", "scheduler",                                        \
	  "a thread left its CPU; on: ns on it, reason: why")                                   \
	X(CPU_ANALYSIS, "cpu_analysis", "", "scheduler",                                        \
	  "what a thread did for a second, or 32 segments: on a CPU, and waits with reasons")

enum abi_watch_name {
#define X(NAME, name, published, category, text) ABI_WATCH_##NAME,
	ABI_WATCH_EVENTS(X)
#undef X
	ABI_WATCH_NAMES, /* <= 30: bits of a filter */
};

/* Numbers of system calls are below; on x86-64 the last one was 469 in 2025. */
#define ABI_WATCH_CALLS 512
/* The name of a system call's event: 'exit' is 0 or 1. */
#define ABI_WATCH_CALL(nr, exit) (ABI_WATCH_NAMES + 2 * (nr) + (exit))
#define ABI_WATCH_ALL_NAMES ABI_WATCH_CALL(ABI_WATCH_CALLS, 0)

enum abi_watch_flags {
	ABI_WATCH_TIMED = 1 << 0, /* has a latency */
	ABI_WATCH_FAILED = 1 << 1,
	ABI_WATCH_CLIENT = 1 << 2, /* its socket connected */
	ABI_WATCH_SERVER = 1 << 3, /* its socket was accepted, or listens */
	ABI_WATCH_SOCKET = 1 << 4, /* has addresses */
	ABI_WATCH_EXECED = 1 << 5, /* 'new_exec_id' is set */
	ABI_WATCH_DESCRIPTOR = 1 << 6, /* struct abi_watch_fd follows */
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
	__u16 name; /* enum abi_watch_name, or ABI_WATCH_CALL */
	__u16 flags; /* enum abi_watch_flags */
	char comm[ABI_COMM_LEN];
};

struct abi_watch_record {
	struct abi_watch_head head;
	struct abi_key created_by; /* who made the socket; tgid 0: not known */
	struct abi_watch_ends ends;
	__u64 v[ABI_WATCH_VALUES]; /* attributes, by name: processmanager/watch/names.c */
};

/* Categories of calls that may have any descriptor: by its kind. */
enum abi_watch_category {
	ABI_WATCH_FILE,
	ABI_WATCH_NET,
	ABI_WATCH_IPC,
	ABI_WATCH_OTHER,
	ABI_WATCH_CATEGORIES
};
#define ABI_WATCH_ANY_CATEGORY ((1 << ABI_WATCH_CATEGORIES) - 1)

/* Of a kind: enum abi_watch_category. */
static inline __u8 abi_watch_category(__u8 kind)
{
	__u8 category = ABI_WATCH_OTHER;

#define X(NAME, word, of)          \
	if (kind == ABI_FD_##NAME) \
		category = ABI_WATCH_##of;
	ABI_FDS(X)
#undef X
	return category;
}

enum abi_watch_fd_flags {
	ABI_WATCH_FD_CUT = 1 << 0, /* the path lacks its beginning */
	ABI_WATCH_FD_CLIENT = 1 << 1, /* of a socket of TCP: it connected */
	ABI_WATCH_FD_SERVER = 1 << 2, /* it was accepted, or listens */
	ABI_WATCH_FD_CONNECTED = 1 << 3, /* of a unix socket: to another one */
};

/*
 * A descriptor of a system call. Its text is the path with a NUL; of ANON the name with a
 * NUL; of UNIX its own address, then its peer's, from sun_path on and without a NUL.
 */
struct abi_watch_fd {
	__s32 num;
	__s32 pair; /* the second one that the call made; -1: there is none */
	__u16 protocol; /* of a socket: IPPROTO_* */
	__u16 text_len; /* 0: there is none */
	__u16 src_len; /* of UNIX: of its own address */
	__u8 kind; /* enum abi_fd_kind */
	__u8 flags; /* enum abi_watch_fd_flags */
	struct abi_watch_ends ends; /* of a socket the family; of INET both ends */
};

#define ABI_WATCH_FD_TEXT_MAX 1024 /* with the NUL */
#define ABI_WATCH_UNIX_MAX 108 /* sizeof(sun_path) */

#define ABI_WATCH_ARGS 6
#define ABI_WATCH_PATHS 2 /* of a call */
#define ABI_WATCH_PATH_MAX 1024 /* with the NUL */

/*
 * Of a system call; behind it are its descriptor, if a flag says so, its paths, each with a
 * NUL, and the descriptor's text.
 */
struct abi_watch_call {
	struct abi_watch_head head; /* of an execve, the image that called it */
	__u64 new_exec_id; /* of the image that runs since */
	__s64 res;
	__u64 args[ABI_WATCH_ARGS]; /* registers: of narrower types the low bits count */
	__u16 path_len[ABI_WATCH_PATHS]; /* with the NUL; 0: it is not there */
	__u8 late; /* bits by path: read when the call ended */
	__u8 unread; /* bits by path: not NULL, but not in memory */
	__u16 pad;
};

enum abi_watch_wants {
	ABI_WATCH_ENTER = 1 << 0,
	ABI_WATCH_EXIT = 1 << 1,
};

/* What becomes of the descriptor of a call. */
enum abi_watch_makes {
	ABI_WATCH_MAKES_NONE,
	ABI_WATCH_MAKES_RESULT, /* the result is one, if the call succeeded */
	ABI_WATCH_MAKES_PAIR, /* two, where its argument points to */
	ABI_WATCH_ENDS, /* it may be gone when the call ends */
};

/* Of a system call: which events are wanted, and what its arguments are. */
struct abi_watch_conf {
	__u8 wants; /* enum abi_watch_wants */
	__u8 era; /* grows when exits begin to be wanted */
	__u8 path[ABI_WATCH_PATHS]; /* 1: the first argument; 0: none */
	__u8 fd; /* the same, of a descriptor, or of the pointer to a pair */
	__u8 makes; /* enum abi_watch_makes */
	/* Of enters and exits: bits by enum abi_watch_category; 0: they have no such. */
	__u8 categories[2];
};

enum abi_watch_pid {
	ABI_WATCH_PID_WANTED = 1 << 0,
	ABI_WATCH_PID_CLIENT = 1 << 1, /* it watches; its system calls are no events */
};

/* System calls have a filter of their own: they are many. */
enum abi_watch_class {
	ABI_WATCH_OTHERS,
	ABI_WATCH_SYSCALLS,
	ABI_WATCH_CLASSES
};

/* The union of all subscriptions; each one's own filter is applied in user space. */
struct abi_watch_filter {
	__u64 slower; /* ns: of events with a latency, those that took so long */
	__u32 names; /* bits by enum abi_watch_name; of system calls: watch_calls */
	__u32 by_pid; /* only of the processes in the map of pids */
	__u32 failed; /* only events with an error */
	__u32 crowded; /* bytes in the ring from which on users have budgets */
	__u64 pids; /* bits by ABI_WATCH_PID_BIT() of those in the map of pids */
};

/* Most processes are told apart from those in the map by this, without looking there. */
#define ABI_WATCH_PID_BIT(pid) (1ULL << ((pid)&63))

/* Of a name: events that subscribers should have had. */
struct abi_watch_loss {
	__u64 dropped; /* the ring was full */
	__u64 limited; /* beyond the budget of its user */
};

#ifndef __bpf__
ABI_ASSERT(sizeof(struct abi_watch_ends) == 40);
ABI_ASSERT(sizeof(struct abi_watch_head) == 72);
ABI_ASSERT(sizeof(struct abi_watch_record) == 200);
ABI_ASSERT(sizeof(struct abi_watch_call) == 144);
ABI_ASSERT(sizeof(struct abi_watch_fd) == 56);
ABI_ASSERT(sizeof(struct abi_watch_conf) == 8);
ABI_ASSERT(sizeof(struct abi_watch_filter) == 32);
ABI_ASSERT(sizeof(struct abi_watch_loss) == 16);
ABI_ASSERT(ABI_WATCH_NAMES <= 30);
#endif

#endif /* BPF_ABI_WATCH_H */
