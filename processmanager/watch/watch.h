/* SPDX-License-Identifier: Apache-2.0 */
/*
 * watch: events of the kernel by subscription: TCP, signals, system calls, and what
 * happens to processes. Only what somebody subscribes to is attached, by programs on BTF
 * tracepoints (bpf/watch/watch.bpf.c); without a subscriber nothing is loaded.
 *
 * Two events, of what threads do, come from no program here: whoever has the segments of
 * their time makes them (watch_post_switch(), watch_post_analysis()), of the processes
 * that subscriptions name by pid.
 *
 * All calls are made on the loop's thread, but watch_work(), which loads, attaches and
 * detaches programs and may take a second: that one is called on any other thread, one
 * call at a time, whenever watch_pending() says so.
 *
 * Records are copied from the ring into a bounded queue of each subscriber that wants
 * them, so that a slow one loses only its own events, which are counted by name.
 */
#ifndef PROCESSMANAGER_WATCH_H
#define PROCESSMANAGER_WATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/strbuf.h"
#include "bpf/abi.h"
#include "bpf/abi_wait.h"

struct watch;
struct watch_sub;

#define WATCH_SUBS_MAX 32
#define WATCH_PIDS_MAX 64
#define WATCH_ATTRIBUTES_MAX 16
/* "[v6]:port", or the address of a unix socket, NUL-terminated. */
#define WATCH_ADDRESS_MAX 112

/* An event that can be subscribed to. */
struct watch_name {
	const char *name; /* "tcp_connect": the short form */
	/*
	 * Other words for it, with spaces between; or "". Of a system call without
	 * the prefix: "pread".
	 */
	const char *published;
	/* "net", "signal", "process", ...; with by_fd "other". */
	const char *category;
	/* Each event's category is file, net, ipc or other, by its descriptor. */
	bool by_fd;
	const char *text; /* one line, for users */
};

/* The i-th; NULL beyond the last. Order and pointers do not change. */
const struct watch_name *watch_name(size_t i);
/* Its system call, "read", whose arguments are appended: "fd, buf, count"; or NULL. */
const char *watch_name_call(size_t i, struct strbuf *arguments);
/*
 * Appends the tracepoints that the i-th name needs: "inet_sock_set_state, ..."; none if
 * its events are made of segments.
 */
void watch_name_hooks(size_t i, struct strbuf *out);
/*
 * What a subscription to the i-th name needs, for users; NULL: nothing. Wild cards do not
 * mean such a name.
 */
const char *watch_name_needs(size_t i);
/*
 * Why the running kernel does not have the i-th name, or only a part of it; NULL:
 * nothing is missing. The first call, on any thread, reads the kernel's BTF, which
 * takes some 30 ms; watch_work() makes it, too.
 */
const char *watch_name_lack(size_t i);

enum watch_type {
	WATCH_INT, /* i */
	WATCH_UINT, /* u */
	WATCH_STRING, /* s */
	WATCH_POINTER, /* u */
};

struct watch_attribute {
	const char *key;
	enum watch_type type;
	union {
		int64_t i;
		uint64_t u;
		const char *s; /* never NULL; lives as long as the event */
	};
};

/* The descriptor of a system call, or the socket of one of TCP's events. */
struct watch_fd {
	/*
	 * "file", "dir", "char", "block", "link", "fifo", "pipe", "socket", "eventfd",
	 * ...; "closed": the number is none; "unknown": it became another one while it
	 * was read, or during the call. NULL: the event has no descriptor or socket.
	 */
	const char *kind;
	int num; /* -1: unknown, as of TCP's own events */
	int pair; /* the second one that the call made; -1: there is none */
	/*
	 * As its process sees it, from 'file' on the name in the directory; of "anon"
	 * the kernel's word without a directory; "": it has none. Lives as long as the
	 * event.
	 */
	const char *path;
	size_t file;
	bool cut; /* the path lacks its beginning */
	const char *protocol; /* "tcp", "udp", "unix", ...; or "" */
	const char *role; /* "client", "server", or "" if unknown */
	char src[WATCH_ADDRESS_MAX]; /* the local end; "" if unknown */
	char dst[WATCH_ADDRESS_MAX]; /* the other end */
};

struct watch_event {
	uint64_t time; /* CLOCK_BOOTTIME, ns */
	size_t name; /* watch_name(): of which */
	const char *category; /* of the name, or by its descriptor */
	bool timed; /* has a latency */
	bool failed;
	uint64_t latency_ns;
	/*
	 * Whose event it is: of a socket, its owner (who last connected, accepted, sent
	 * or received), never the process that was interrupted. tgid 0: not known.
	 */
	struct abi_key key;
	uint32_t tid, uid, gid;
	char comm[ABI_COMM_LEN]; /* of the thread, NUL-terminated */
	/* Who made the socket, if it is another one; tgid 0: the owner, or unknown. */
	struct abi_key created_by;
	/* Of an exec that succeeded: the image since then; tgid 0: it is another event. */
	struct abi_key image_new;
	struct watch_fd fd;
	size_t n_attributes;
	struct watch_attribute attributes[WATCH_ATTRIBUTES_MAX];
};

/* What a subscriber wants; copied, but the strings are only read by the call. */
struct watch_want {
	/*
	 * "NAME" or "NAME/CATEGORY", short or published, with wild cards of fnmatch(3);
	 * at least one. Calls that may have any descriptor have four categories.
	 */
	const char *const *names;
	size_t n_names;
	const uint32_t
		*pids; /* of processes, in the root namespace; n_pids 0: all */
	size_t n_pids; /* <= WATCH_PIDS_MAX */
	/*
	 * The process that reads the events; 0: profd itself. Its system calls are left
	 * out, for all subscribers: to print one it makes more.
	 */
	uint32_t client;
	/*
	 * Events with a latency: this or more. Ends of system calls whose latency is
	 * not known are left out then.
	 */
	uint64_t slower_ns;
	bool failed; /* only events with an error */
	/*
	 * Called for each event before it is queued; false: it is not wanted. NULL:
	 * all are. The event is borrowed for the call.
	 */
	bool (*take)(void *arg, const struct watch_event *e);
	void *arg;
};

struct watch_opts {
	uint32_t ring_size; /* bytes, a power of two; 0: 4 MiB */
	pid_t self; /* its and its children's events are left out; 0: of none */
	/* Called on the loop's thread when watch_pending() has become true. */
	void (*wake)(void *arg);
	/*
	 * A subscription begins (or ends) to want the events that are made of segments of
	 * whatever process has this pid. Begins: 0, -ENOTSUP: there are no segments,
	 * -E2BIG: of too many processes, or another -errno. NULL: -ENOTSUP.
	 */
	int (*follow)(void *arg, uint32_t pid, bool begins);
	void *arg;
};

/* Loads nothing. 0 or -ENOMEM. */
int watch_new(struct watch **wp, const struct watch_opts *opts);
/* No watch_work() may be running. Detaches all; ends subscribers. 'w' may be NULL. */
void watch_free(struct watch *w);

/*
 * 0, and its events come from when watch_ready() is true on; names that the kernel
 * lacks are taken, and never come. -EINVAL: 'why' says which name is wrong, and which
 * ones there are, or what it needs; what opts.follow() returned: 'why' says what to do;
 * -EUSERS: there are WATCH_SUBS_MAX; -ENOMEM.
 */
int watch_subscribe(struct watch *w, const struct watch_want *want,
		    struct watch_sub **out, struct strbuf *why);
/* Hooks that nobody needs any more are detached by watch_work(). 's' may be NULL. */
void watch_unsubscribe(struct watch_sub *s);

/* 1: its hooks are attached; 0: not yet; -errno: they cannot be, *why says which. */
int watch_ready(const struct watch_sub *s, const char **why);
/* Appends the tracepoints that are attached for it: "inet_sock_set_state, ...". */
void watch_hooks(const struct watch_sub *s, struct strbuf *out);
/* Whether it wants events of the i-th name. */
bool watch_wants(const struct watch_sub *s, size_t name);

/* Whether hooks must be changed. */
bool watch_pending(const struct watch *w);
/* Changes hooks as wanted when it was called; not on the loop's thread. 0 or -errno. */
int watch_work(struct watch *w);
/* On the loop's thread after watch_work(): the ring may be another one. */
void watch_worked(struct watch *w);

/*
 * For tests, whether there is a ring: -1: none. Its records wake nobody up: while there is
 * one, watch_read() is to be called ten times a second.
 */
int watch_fd(const struct watch *w);
/* Reads the ring into the queues. The number of records, or -errno. */
int watch_read(struct watch *w);

/*
 * The next event of a subscriber: 0, or -EAGAIN. Its strings are valid until the
 * next call, or the end of the subscription.
 */
int watch_next(struct watch_sub *s, struct watch_event *out);
/*
 * Events of the i-th name that this subscriber should have had: dropped in the kernel,
 * refused by its user's budget, or because its queue was full; and each time that the
 * kernel skipped the program that has events of this name. They only grow.
 */
uint64_t watch_lost(const struct watch_sub *s, size_t name);

/* --- events made of segments ------------------------------------------------------- */

/* Whose they are. */
struct watch_thread {
	struct abi_key key;
	uint32_t tid, uid, gid;
	char comm[ABI_COMM_LEN];
};

/* Of a switch: the thread has ended; why it left its CPU is not known. */
#define WATCH_SWITCH_ENDS ABI_WAIT_WHAT_ON
#define WATCH_SWITCH_UNKNOWN \
	ABI_WAIT_WHAT(ABI_WAIT_NO_CALL, ABI_WAIT_REASON_MAX, 0)

struct watch_switch {
	uint64_t time; /* it left its CPU; CLOCK_BOOTTIME, ns */
	uint64_t on_ns; /* since it was put there; 0: not known */
	bool timed; /* 'latency_ns' is known */
	uint64_t latency_ns; /* in the run queue before that */
	uint32_t what; /* ABI_WAIT_WHAT() of what it does then, or as above */
};

/* The time of a thread on a CPU, or from there until it is on one again. */
struct watch_segment {
	uint64_t ns;
	uint64_t queued_ns; /* of it, at its end, in the run queue */
	uint32_t what; /* ABI_WAIT_WHAT() of the wait; without one of the run queue */
	uint32_t queue; /* enum abi_wait_reason, of 'queued_ns'; 0: none */
};

#define WATCH_SEGMENTS_MAX 32 /* of an event */

struct watch_analysis {
	uint64_t start,
		end; /* CLOCK_BOOTTIME, ns: the segments are all between */
	uint64_t lost_ns; /* before 'start', of which nothing is known */
	size_t n; /* <= WATCH_SEGMENTS_MAX */
	const struct watch_segment *segments;
};

/*
 * The type of a segment as Kindling's probe has it, of ABI_WAIT_WHAT(). The number is
 * published, too.
 */
#define WATCH_TIMES(X)  \
	X(ON, on)       \
	X(FILE, file)   \
	X(NET, net)     \
	X(FUTEX, futex) \
	X(IDLE, idle)   \
	X(OTHER, other) \
	X(EPOLL, epoll)
enum watch_time {
#define X(NAME, name) WATCH_TIME_##NAME,
	WATCH_TIMES(X)
#undef X
	WATCH_N_TIMES,
};
enum watch_time watch_time(uint32_t what);

/* Whether any subscriber wants events of that name. */
bool watch_is_wanted(const struct watch *w, size_t name);
/* To the queues of those that want it, at once. Copied. */
void watch_post_switch(struct watch *w, const struct watch_thread *t,
		       const struct watch_switch *s);
void watch_post_analysis(struct watch *w, const struct watch_thread *t,
			 const struct watch_analysis *a);
/*
 * Segments of a process were lost: there was no room, or it had too many. Each is counted
 * as an event of both names, which may be more than there would have been.
 */
void watch_post_lost(struct watch *w, uint32_t pid, uint64_t dropped,
		     uint64_t limited);

/* --- the rest ----------------------------------------------------------------------- */

/* The name of a system call of this machine; NULL: there is none of that number. */
const char *watch_syscall(uint32_t nr);

/* X(name, gauge, "help"): of all subscribers together. */
#define WATCH_STATS(X)                                                           \
	X(records, 0, "watched events read from the kernel")                     \
	X(made, 0, "watched events made of segments of timelines")               \
	X(dropped, 0, "watched events lost because the ring was full")           \
	X(limited, 0, "watched events beyond the budget of a user")              \
	X(skipped, 0,                                                            \
	  "times that a tracepoint interrupted its own program and was not run") \
	X(overrun, 0, "watched events that a client read too late")              \
	X(subscribers, 1, "clients that watch now")                              \
	X(hooks, 1, "tracepoints attached for them now")

struct watch_stats {
#define X(name, gauge, help) uint64_t name;
	WATCH_STATS(X)
#undef X
};

void watch_stats(const struct watch *w, struct watch_stats *out);

#endif /* PROCESSMANAGER_WATCH_H */
