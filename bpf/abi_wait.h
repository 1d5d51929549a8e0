/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abi_wait: where the time of threads goes while they do not run, as bpf/wait/wait.bpf.c adds
 * it up for user space (profiler/waiting/).
 *
 * Each thread is in one state, and has the time at which that began, in one word of its
 * task storage. Whoever changes the state exchanges the word, and adds the time between
 * the old word's and the new one's to the sum of the old state. So each nanosecond of a
 * thread is in one sum, once, whichever CPUs see its switch, its wake-up and user space's
 * cut at the same moment:
 *
 *	on a CPU + run queue + waits + the open interval = time since its begin
 *
 * A sum has its time in slots, each for the time from one edge to the next. User space sets
 * an edge before its time comes; an interval that contains it is split there, whenever it
 * ends. After the edge the iterator adds what is open, and user space reads the slot.
 *
 * Sums are of an image, of a reason, system call and kind of descriptor, and, for waits, of
 * a site. They are in an array that user space has mapped, an index finds them by their
 * key, and a thread remembers those it used last.
 *
 * A site is a user stack that waits: the hash of the image, the user ip and sp, the system
 * call, and those of the words from sp on that may be return addresses, as they lie in the spans
 * of the image's executable mappings, which user space sets. Its stack is copied once, when
 * it is first seen, as a record of the sample ring's kind (struct abi_sample, of the event
 * ABI_EVENT_WAIT; 'value' is the site), and its sum exists from then on: so what has a sum
 * has a stack. Before the spans are known all words count; then stacks are right, too, but
 * nearly each wait is a new site.
 *
 *	wait_threads	task storage: the state, the image, the sums used last
 *	wait_sums	array, mapped: struct abi_wait_sum. The first ones, by reason, have
 *			the time that found no room, of all images
 *	wait_index	hash: struct abi_wait_key to the number of its sum
 *	wait_free	stack: numbers of sums that user space gave back, read and cleared
 *	samples		ring: the stacks of sites
 *	wait_given	hash: number of a thread to struct abi_wait_given
 *
 * The sum of the time on a CPU is the head of its image's sums. It counts the threads of
 * the image: when there is none any more, its sums are final, and user space frees them.
 *
 * A user may have as many sums as are free: alone half of all, so that the same number is
 * left for others; of n greedy users each has 1/(n + 1), and so have the others. Sums of
 * sites have half of that: an image can still add up by reason when its user has no room
 * for more sites.
 */
#ifndef BPF_ABI_WAIT_H
#define BPF_ABI_WAIT_H

#include "bpf/abi.h"
#include "bpf/abi_fd.h"

/*
 * X(NAME, name): what the time of a thread is. 'name' is for users. First the time on a CPU, then
 * those in the run queue, then waits. Side files have the numbers of these, from the first wait
 * on: a new reason of waits is the last one (docs/profd-times.5).
 */
#define ABI_WAIT_QUEUE_REASONS(X)                                 \
	X(WOKEN, woken) /* it was woken, and has not run since */ \
	X(PREEMPTED, preempted) /* others run in its place */     \
	X(YIELD, yield) /* sched_yield(2) */                      \
	X(NEW, new) /* it never ran */                            \
	X(THROTTLED, throttled) /* its control group's CPU quota is used up */

#define ABI_WAIT_WAIT_REASONS(X)                                             \
	X(SLEEP, sleep) /* for a time */                                     \
	X(FUTEX, futex)                                                      \
	X(POLL, poll) /* for one of several descriptors */                   \
	X(DISK, disk) /* block devices and file systems */                   \
	X(SOCKET, socket)                                                    \
	X(PIPE, pipe)                                                        \
	X(FAULT, fault) /* a page that has to be read */                     \
	X(LOCK, lock) /* in the kernel */                                    \
	X(STOP, stop) /* SIGSTOP, a tracer */                                \
	X(FROZEN, frozen) /* the freezer of control groups, or of suspend */ \
	X(CHILD, child) /* a child process: wait4(2), vfork(2) */            \
	X(OTHER, other)

#define ABI_WAIT_REASONS(X)       \
	X(ON, on)                 \
	ABI_WAIT_QUEUE_REASONS(X) \
	ABI_WAIT_WAIT_REASONS(X)

enum abi_wait_reason {
#define X(NAME, name) ABI_WAIT_##NAME,
	ABI_WAIT_REASONS(X)
#undef X
	ABI_WAIT_REASON_MAX,
};

/*
 * What a sum is of: the system call's number, the reason, and the kind of the descriptor
 * that is the call's first argument, enum abi_fd_kind.
 */
#define ABI_WAIT_NO_CALL 0xffffU
#define ABI_WAIT_WHAT(nr, reason, fd) ((__u32)(nr) << 16 | (__u32)(reason) << 8 | (__u32)(fd))
#define ABI_WAIT_WHAT_NR(what) ((what) >> 16)
#define ABI_WAIT_WHAT_REASON(what) ((what) >> 8 & 0xff)
#define ABI_WAIT_WHAT_FD(what) ((what)&0xff)
#define ABI_WAIT_WHAT_ON ABI_WAIT_WHAT(ABI_WAIT_NO_CALL, ABI_WAIT_ON, 0)

/* By number of a system call, set before load: a reason, and flags. 0: it has none. */
#define ABI_WAIT_CALLS 512
#define ABI_WAIT_CALL_REASON 0x1f
#define ABI_WAIT_CALL_FD 0x80 /* its first argument is a descriptor */

/*
 * What a sum has in place of a site whose stack was not copied. X(NAME, name, "help")
 */
#define ABI_WAIT_UNCOPIED(X)                                                       \
	X(PROCESS, process, "its process had copied too many, and it was new")     \
	X(USER, user, "the processes of its user had copied too many")             \
	X(RING, ring, "the ring was full")                                         \
	X(ROOM, room, "no sum was left for it, or its user has too many")          \
	X(UNREADABLE, unreadable, "its stack was not in memory, or inside execve") \
	X(BEFORE, before, "it began before --wait did")

enum abi_wait_site {
	ABI_WAIT_SITE_NONE, /* no wait, or no user stack: of kernel threads */
#define X(NAME, name, help) ABI_WAIT_SITE_##NAME,
	ABI_WAIT_UNCOPIED(X)
#undef X
	ABI_WAIT_SITE_LEAST, /* of sites */
};

struct abi_wait_key {
	__u64 start_boottime; /* as struct abi_key */
	__u64 exec_id;
	__u32 tgid;
	__u32 what; /* ABI_WAIT_WHAT(); 0: the sum is not in use */
	__u64 site; /* or enum abi_wait_site */
};

/* Addresses from 'start' on; 'len' is less than 1 << 63. */
struct abi_wait_span {
	__u64 start;
	__u64 len;
};

/* In 'start' of the first span, which is of a page: there is code of a JIT compiler. */
#define ABI_WAIT_SPAN_JIT 1

#define ABI_WAIT_WORDS 64 /* from sp on, that are read at a time for a site */
#define ABI_WAIT_SPANS 2 /* usually the program, and its libraries */

/* Copies: of an image, and of a user's images in pages of a stack. A second. */
#define ABI_WAIT_COPIES 200
#define ABI_WAIT_USER_COPIES 512

#define ABI_WAIT_SUMS 65536 /* a power of 2 */
#define ABI_WAIT_RESERVED 32 /* of them, by reason: time that found no room */
/* Set in 'threads' until the first thread of a new head counts. */
#define ABI_WAIT_HEAD_NEW 0x80000000U

/*
 * The slot of a time is the one that began last before it: wait_begins[i] is the begin of
 * slot i, UINT64_MAX if it has none. Edges may be set as long as they are ahead.
 */
#define ABI_WAIT_SLOTS 4 /* a power of 2 */

struct abi_wait_slot {
	__u64 count; /* of intervals that ended in it */
	__u64 ns; /* of these, and of open ones up to the last cut */
};

struct abi_wait_sum {
	struct abi_wait_key key;
	union {
		__u32 head; /* the number of the head; or, of a head itself: */
		__u32 threads; /* of the image now */
	};
	__u16 user; /* its number in wait_users */
	__u16 retired; /* enum abi_wait_retired */
	struct abi_wait_slot slots[ABI_WAIT_SLOTS];
	/* Of a head: */
	/*
	 * By the kernel's account of the same threads. What runs at an edge is charged the
	 * clock's time up to it, which is set right when its CPU time is known.
	 */
	__u64 cpu_ns[ABI_WAIT_SLOTS];
	__u64 wall_ns; /* of threads that have left the image */
	__u64 copies_full; /* bpf/limit.bpf.h: ABI_WAIT_COPIES */
	/* Set by user space, and inherited by fork; all zeros: not known. */
	struct abi_wait_span spans[ABI_WAIT_SPANS];
};

/*
 * A sum of waits to which nothing was added for long: user space takes it out of the index
 * and retires it. A cut pins those that threads still have as that of their wait, and user
 * space frees the others, since a thread takes no retired sum that it remembers.
 */
enum abi_wait_retired {
	ABI_WAIT_ACTIVE,
	ABI_WAIT_RETIRED,
	ABI_WAIT_PINNED,
};

/* Sums in use of a user; those with the same hash share it. */
#define ABI_WAIT_USERS 1024

/*
 * A thread that waits without a site, as it began before --wait did or was not copied:
 * written by an iterator. User space copies its stack, and gives the wait a site by the
 * thread's number. A cut takes that if the thread has not run meanwhile.
 */
struct abi_wait_open {
	struct abi_key key;
	__u32 tid;
	__u32 flags; /* enum abi_sample_flags */
	__u64 switches; /* of the thread so far */
	char comm[ABI_COMM_LEN];
	struct abi_regs regs;
};

#define ABI_WAIT_OPEN_MAX 64 /* that are given at a time */

struct abi_wait_given {
	struct abi_key key;
	__u64 switches;
	__u64 site; /* 0: it was taken */
};

/* X(name, gauge, "help"), for metrics. */
#define ABI_WAIT_COUNTERS(X)                                                        \
	X(untracked, 0, "times a thread got no account at once")                    \
	X(unwoken, 0, "waits that ended without a wake-up that was seen")           \
	X(missed, 0, "changes of a thread's state that were not seen")              \
	X(refused, 0, "sums refused: no room, or a user has too many")              \
	X(copied, 0, "stacks of sites copied")                                      \
	X(copied_bytes, 0, "bytes of them")                                         \
	X(used, 1, "sums in use")                                                   \
	X(records_limited, 0, "long waits not recorded: a process or user's share") \
	X(records_full, 0, "long waits not recorded: the ring was full")

struct abi_wait_counters {
#define X(name, gauge, help) __u64 name;
	ABI_WAIT_COUNTERS(X)
#undef X
};

/* --- segments --------------------------------------------------------------------- */

/*
 * The time of threads of chosen processes, one segment at a time, recorded beside the sums
 * from the same readings of the clock. What is added to a sum of a chosen process is a
 * record: so a thread's segments adjoin, and together are its sums to the nanosecond.
 *
 * A cut ends the record of an open interval (ABI_SEGMENT_OPEN), and the next one begins
 * there: user space joins them. Where the interval ended before the time of the cut, the
 * last record's end is before its begin, which takes back what was too much.
 *
 *	wait_chosen	hash: tgid to struct abi_chosen
 *	wait_chosen_bits	one for several processes, so that others cost one load
 *	segments	ring of struct abi_segment, in no order of time; never wakes up
 *
 * What woke a thread is taken at sched_waking, in its task storage, since sched_wakeup may
 * run on another CPU. It belongs to the record that ends the wait.
 */

/* What woke a thread; side files have the numbers. X(NAME, name) */
#define ABI_WAKERS(X)                                                                    \
	X(NONE, none) /* no wake-up was seen */                                          \
	X(TASK, task)                                                                    \
	X(SOFTIRQ, softirq) /* perhaps the current task, which may have sent a packet */ \
	X(IRQ, interrupt) /* hard: a timer, a device; no task */                         \
	X(UNKNOWN, unknown) /* perhaps the current task, perhaps an interrupt */

enum abi_waker_kind {
#define X(NAME, name) ABI_WAKER_##NAME,
	ABI_WAKERS(X)
#undef X
	ABI_WAKER_MAX,
};

struct abi_waker {
	struct abi_key key; /* all zeros: no task */
	__u32 tid;
	__u32 kind; /* enum abi_waker_kind */
};

enum abi_segment_flags {
	ABI_SEGMENT_OPEN = 1 << 0, /* it goes on: the next record begins at its end */
};

struct abi_segment {
	__u64 begin, end; /* CLOCK_BOOTTIME, ns */
	struct abi_key key;
	__u32 tid;
	__u32 what; /* ABI_WAIT_WHAT() */
	__u32 flags; /* enum abi_segment_flags */
	__u32 pad;
	__u64 site; /* of a wait, as in struct abi_wait_key; else 0 */
	struct abi_waker waker; /* of a wait that has ended */
	char comm[ABI_COMM_LEN]; /* of the thread */
};

#define ABI_CHOSEN_MAX 64
#define ABI_CHOSEN_BITS (64 * 1024) /* by tgid; a power of 2 */
#define ABI_SEGMENT_RING (2 << 20)

/*
 * A process may have so many records in each turn of 2^ABI_SEGMENT_TURN ns. The rest of the
 * turn is lost in one piece: what is recorded has no gaps.
 */
#define ABI_SEGMENT_TURN 27 /* 134 ms */
#define ABI_SEGMENT_TURN_MAX 4096

struct abi_chosen {
	__u64 turn; /* its number, counted from boot */
	__u64 used; /* in it */
	__u64 written;
	__u64 lost_rate; /* beyond ABI_SEGMENT_TURN_MAX */
	__u64 lost_ring; /* the ring was full */
};

/* --- long waits, one by one --------------------------------------------------------- */

/*
 * Each wait of wait_min or longer, of whatever process, is a struct abi_segment when it ends,
 * with its whole time: cuts do not divide it. One that lasts is, too, when wait_cut_records is
 * set for a cut, as ABI_SEGMENT_OPEN. Kernel threads that have nothing to do are left out.
 *
 *	wait_min	ns, set by user space; ABI_WAIT_MIN_NONE: nothing is recorded
 *	wait_records	ring of struct abi_segment, in no order of time; never wakes up
 *
 * A process, and a user, may have so many a second; those with the same hash share it.
 */
#define ABI_WAIT_MIN_NONE 0x7fffffffffffffffULL
#define ABI_RECORD_RING (4 << 20)
#define ABI_RECORD_PROCESS 5000
#define ABI_RECORD_USER 10000
#define ABI_RECORD_FEW 20 /* for tests: so many times fewer */

#ifndef __bpf__
ABI_ASSERT(sizeof(struct abi_wait_key) == 32);
ABI_ASSERT(sizeof(struct abi_wait_sum) == 184);
ABI_ASSERT(sizeof(struct abi_waker) == 32);
ABI_ASSERT(sizeof(struct abi_segment) == 112);
ABI_ASSERT(sizeof(struct abi_chosen) == 40);
ABI_ASSERT(ABI_WAIT_REASON_MAX <= ABI_WAIT_RESERVED);
ABI_ASSERT(ABI_WAIT_REASON_MAX <= ABI_WAIT_CALL_REASON + 1);
#endif

#endif /* BPF_ABI_WAIT_H */
