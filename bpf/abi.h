/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abi: the records and maps that the BPF programs and user space share. Included by
 * both; every structure has fixed-width members, explicit padding and an asserted size.
 *
 * A sample is one ring record: struct abi_sample, then typed parts one after the other,
 * each a struct abi_part and its payload, padded to 8 bytes. A reader skips parts of
 * unknown types, so that a new type does not move the others.
 */
#ifndef BPF_ABI_H
#define BPF_ABI_H

#ifndef __VMLINUX_H__ /* bpf/vmlinux.h defines the same names */
#include <linux/types.h>
#endif

#define ABI_COMM_LEN 16
#define ABI_KSTACK_MAX 127 /* kernel.perf_event_max_stack's default */
#define ABI_STACK_ALIGN 256 /* user stack is copied in multiples of this size */
#define ABI_STACK_RED_ZONE 128 /* below sp, and in use: System V ABI, 3.2.2 */
#define ABI_STACK_COPY_MAX (256 * 1024)

/*
 * The image that a sample or an event belongs to: pid in the root pid namespace, the
 * group leader's start_boottime (ns), and the exec generation, task->self_exec_id.
 */
struct abi_key {
	__u64 start_boottime;
	__u64 exec_id;
	__u32 tgid;
	__u32 pad;
};

enum abi_sample_flags {
	ABI_SAMPLE_USER = 1 << 0, /* interrupted user code, not the kernel */
	ABI_SAMPLE_EXEC = 1 << 1, /* inside execve: no user part */
	ABI_SAMPLE_KTHREAD = 1 << 2, /* a kernel thread: no user part */
	ABI_SAMPLE_COMPAT = 1 << 3, /* 32-bit code, registers and stack */
	ABI_SAMPLE_NOMM = 1 << 4, /* an exiting task has freed its memory: no user part */
	ABI_SAMPLE_DEEP_LIMITED = 1 << 5, /* a deep stack was cut by the limit of such copies */
};

/*
 * The event of a sample. A sample counts one, and has a value in the unit of the event's
 * second sample type. Of a periodic event the value 0 means the recording's period. Events
 * that are 'apart' are no samples but sums of bpf/wait/wait.bpf.c, in profiles of their own.
 * X(NAME, name, periodic, apart, "type", "unit", "type", "unit", "label"): 'name' is for
 * metrics, the types are pprof's, of the count and of the value (NULL, NULL: none); 'label'
 * is for comments.
 */
#define ABI_EVENTS(X)                                                                \
	X(CPU, cpu, 1, 0, "samples", "count", "cpu", "nanoseconds", "the CPU clock") \
	X(WAIT, wait, 0, 1, "waits", "count", "wait", "nanoseconds", "waits")        \
	X(RUNQUEUE, runqueue, 0, 1, "runqueues", "count", "runqueue", "nanoseconds", \
	  "times in the run queue")                                                  \
	X(RUNNING, running, 0, 1, "runs", "count", "running", "nanoseconds", "times on a CPU")

enum abi_event {
#define X(name, word, periodic, apart, count, count_unit, value, value_unit, label) \
	ABI_EVENT_##name,
	ABI_EVENTS(X)
#undef X
	ABI_EVENT_MAX,
};

struct abi_sample {
	__u32 size; /* of the whole record, this header and all parts */
	__u32 flags; /* enum abi_sample_flags */
	__u64 time; /* CLOCK_BOOTTIME, ns; read after the slot was reserved */
	struct abi_key key;
	__u32 tid;
	__u32 cpu;
	char comm[ABI_COMM_LEN]; /* of the thread */
	__u32 event; /* enum abi_event */
	__u32 pad;
	__u64 value; /* see ABI_EVENTS */
};

enum abi_part_type {
	ABI_PART_KSTACK = 1, /* __u64 addresses, leaf first */
	ABI_PART_REGS = 2, /* struct abi_regs */
	/*
	 * struct abi_stack, then its bytes: of the stack that sp is on. A second one is of
	 * the stack that was left for a signal's alternate one, or for Go's g0.
	 */
	ABI_PART_STACK = 3,
	ABI_PART_CODE = 4, /* struct abi_code */
	ABI_PART_TRACE = 5, /* struct abi_trace, bpf/abi_trace.h */
	ABI_PART_GO = 6, /* struct abi_go */
};

struct abi_part {
	__u32 type;
	__u32 size; /* of the payload; the next part follows, aligned to 8 */
};

/* User registers: first by DWARF number, then those without one. */
#if defined(__TARGET_ARCH_arm64) || defined(__aarch64__)
#define ABI_GPRS 32 /* x0..x30 sp */
#define ABI_REG_BP 29
#define ABI_REG_SP 31
#else
#define ABI_GPRS 16 /* rax rdx rcx rbx rsi rdi rbp rsp r8..r15 */
#define ABI_REG_BP 6
#define ABI_REG_SP 7
#endif

struct abi_regs {
	__u64 gpr[ABI_GPRS];
	__u64 ip;
	__u64 flags;
};

/* Why a stack copy ends. */
enum abi_stack_end {
	ABI_STACK_WHOLE = 0, /* at the end of the stack */
	ABI_STACK_CAP = 1, /* at --stack-copy */
	ABI_STACK_FAULT = 2, /* at an absent page */
	ABI_STACK_RING = 3, /* it did not fit into the ring: no bytes */
};

/*
 * A page inside may be absent: of a large array that was not touched yet, or swapped
 * out. Its bytes here are undefined.
 */
struct abi_stack {
	__u64 start; /* (sp - ABI_STACK_RED_ZONE), rounded to ABI_STACK_ALIGN */
	__u32 size; /* bytes that follow; the last is not in a hole */
	__u32 end; /* enum abi_stack_end */
	__u64 holes; /* bit i: page i is absent, counted from that of 'start' */
};

/* The code at ip, of processes for which user space has set a bit of code_wanted. */
#define ABI_CODE_MAX 32
#define ABI_CODE_WANTED (64 * 1024) /* bits; one for several processes, by tgid */

struct abi_code {
	__u64 size; /* of 'bytes'; at the end of a mapping it is less than ABI_CODE_MAX */
	__u8 bytes[ABI_CODE_MAX];
};

/*
 * Of a thread of Go that runs on the stack of its g0, in processes of which go_wanted says
 * where the thread's g is: the goroutine that left its stack for that one. A second stack
 * of the record is the goroutine's then. All of it is what the process has in its memory.
 */
#define ABI_GO_WANTED (16 * 1024) /* one for several processes, by tgid */
#define ABI_GO_FILES 2048 /* executed files of Go that the sampling program knows */
/* Offsets of curg in runtime.m, by which versions are told apart: 1.17 to 1.24, and since. */
#define ABI_GO_CURG_OLD 192
#define ABI_GO_CURG 184

enum abi_go_state {
	ABI_GO_NONE, /* there is none: the scheduler runs */
	ABI_GO_SAVED, /* it goes on at pc, sp and bp */
	ABI_GO_VDSO, /* it calls the vDSO; the registers that C preserves have where it goes on */
	ABI_GO_MAX,
};

struct abi_go {
	__u64 state; /* enum abi_go_state */
	__u64 g;
	__u64 pc, sp, bp; /* with SAVED */
	__u64 end; /* of its stack; sp is below */
	__u64 base; /* with NONE and SAVED: where the runtime begins to use the stack of g0 */
};

/* The text of a kernel module, without that of its initialization; in a ring of its own. */
struct abi_module {
	__u64 time; /* CLOCK_BOOTTIME, ns */
	__u64 start;
	__u32 size;
	__u32 unloaded; /* 0: it was loaded */
};

#define ABI_STACK_PAGE 4096
#define ABI_STACK_HOLES 64

/*
 * Counters of the sampling program, one per-CPU array slot each.
 * X(NAME, name, help)
 */
#define ABI_SAMPLER_COUNTERS(X)                                                \
	X(TAKEN, taken, "samples written to the ring")                         \
	X(RING_FULL, ring_full, "samples lost because the ring was full")      \
	X(ALTSTACK, altstack, "stacks of signals, copied in two pieces")       \
	X(EXEC, exec, "samples inside execve, without a user stack")           \
	X(STACK_CAP, stack_cap, "user stacks cut by the copy limit")           \
	X(STACK_DEEP, stack_deep, "user stacks copied beyond 64 KiB")          \
	X(DEEP_LIMITED, deep_limited, "deep user stacks cut for want of room") \
	X(STACK_FAULT, stack_fault, "user stacks cut at an absent page")       \
	X(STACK_HOLE, stack_hole, "user stacks with absent pages inside")      \
	X(VMA_ASKED, vma_asked, "stack ends looked up in the mappings")        \
	X(VMA_BUSY, vma_busy, "stack ends unknown because mmap_lock was busy") \
	X(VMA_NONE, vma_none, "stack pointers outside of any mapping")         \
	X(BYTES, bytes, "bytes written to the ring")                           \
	X(TRACED, traced, "samples with the ids of a trace")                   \
	X(TRACE_NONE, trace_none, "... outside of any trace")                  \
	X(TRACE_TORN, trace_torn, "... whose ids were being written")          \
	X(TRACE_INVALID, trace_invalid, "... whose record is not one of ids")  \
	X(TRACE_UNSET, trace_unset, "... of threads that no tracer has used")  \
	X(TRACE_UNREAD, trace_unread, "... whose ids could not be read")       \
	X(TRACE_UNLOADED, trace_unloaded, "... after the tracer was unloaded")

enum abi_sampler_counter {
#define X(name, word, help) ABI_SAMPLER_##name,
	ABI_SAMPLER_COUNTERS(X)
#undef X
	ABI_SAMPLER_COUNTER_MAX,
};

/*
 * Records from bpf/quark.bpf.c to libquark. Each begins with abi_quark_head and has a
 * fixed size; an abi_quark_image is followed by its strings: exe, args, cwd, cgroup, env,
 * in that order, without terminators. In the ring they are packed (struct
 * abi_quark_packed).
 * X(NAME, structure, QUARK_EV_ name)
 */
#define ABI_QUARK_KINDS(X)                                    \
	X(FORK, abi_quark_fork, QUARK_EV_FORK)                \
	X(EXEC, abi_quark_image, QUARK_EV_EXEC)               \
	X(EXIT, abi_quark_exit, QUARK_EV_EXIT)                \
	X(ID_CHANGE, abi_quark_id_change, QUARK_EV_ID_CHANGE) \
	X(RENAME, abi_quark_rename, QUARK_EV_SETPROCTITLE)    \
	X(REAP, abi_quark_reap, QUARK_EV_REAP)

enum abi_quark_kind {
#define X(name, type, event) ABI_QUARK_##name,
	ABI_QUARK_KINDS(X)
#undef X
	ABI_QUARK_KIND_MAX,
	ABI_QUARK_TASK, /* abi_quark_image of the task iterator, not in the ring */
};

#define ABI_QUARK_ARGS_MAX 20480
#define ABI_QUARK_PATH_MAX 4096
#define ABI_QUARK_ENV_MAX 16384

enum abi_quark_flags {
	ABI_QUARK_KTHREAD = 1 << 0,
	ABI_QUARK_ARGS_CUT = 1 << 1, /* longer than the maximum, or unreadable */
	ABI_QUARK_PATH_CUT = 1 << 2, /* a path lacks its beginning */
	ABI_QUARK_GROUP_DEAD = 1 << 3, /* EXIT: the last thread; TASK: dead */
	ABI_QUARK_LAST_IDS = 1 << 4, /* EXIT: uid to sid are set */
	ABI_QUARK_NEW_FILE = 1 << 5, /* EXEC: user space does not know the file */
};

struct abi_quark_head {
	__u32 kind; /* enum abi_quark_kind */
	__u32 flags; /* enum abi_quark_flags */
	__u64 time; /* CLOCK_BOOTTIME, ns; read after the slot was reserved */
	struct abi_key key;
	__u32 tid;
	__u32 cpu;
};

struct abi_quark_ids {
	__u32 uid, gid, suid, sgid, euid, egid;
	__u32 pgid, sid;
	__u32 tty_major, tty_minor;
	__u32 uts_inonum, ipc_inonum, mnt_inonum, net_inonum;
	__u64 cap_inheritable, cap_permitted, cap_effective, cap_bset, cap_ambient;
};

struct abi_quark_fork {
	struct abi_quark_head head; /* of the child */
	struct abi_key parent;
	struct abi_key origin; /* the caller; with CLONE_PARENT not the parent */
	__u64 clone_flags;
	char comm[ABI_COMM_LEN];
	struct abi_quark_ids ids;
};

struct abi_quark_image {
	struct abi_quark_head head; /* tid: the thread that called execve */
	struct abi_key parent;
	char comm[ABI_COMM_LEN];
	struct abi_quark_ids ids;
	__u64 dev; /* the kernel's dev_t: major << 20 | minor */
	__u64 ino;
	__u64 ctime_ns;
	__u64 size;
	__s32 wait_status; /* TASK with GROUP_DEAD */
	__u32 exe_len, args_len, cwd_len, cgroup_len, env_len;
};

struct abi_quark_exit {
	struct abi_quark_head head;
	struct abi_key parent;
	char comm[ABI_COMM_LEN];
	__u64 cpu_time; /* provisional */
	__u64 maxrss; /* pages */
	__u64 minflt;
	__u64 majflt;
	__s32 wait_status;
	/* At the exit: not every change since the last event was reported. */
	__u32 uid, gid, pgid, sid;
	__u32 pad;
};

/* What can change without an exec. Changed paths follow. */
struct abi_quark_id_change {
	struct abi_quark_head head;
	struct abi_quark_ids ids;
	__u32 cwd_len, cgroup_len;
};

struct abi_quark_rename {
	struct abi_quark_head head;
	char comm[ABI_COMM_LEN];
	__u32 limited; /* renames since the last reported one, not reported */
	__u32 pad;
};

/*
 * Written among perf's mapping records (PERF_RECORD_SAMPLE, PERF_SAMPLE_RAW) when an exec
 * has replaced the address space and not mapped anything yet: later records of this
 * process belong to the new image.
 */
struct abi_exec_mark {
	__u32 tgid, tid; /* of the root pid namespace */
};

struct abi_quark_reap {
	struct abi_quark_head head;
	char comm[ABI_COMM_LEN];
	__u64 cpu_time; /* exact: signal->sum_sched_runtime */
	__u64 utime;
	__u64 stime;
	__u64 minflt;
	__u64 majflt;
	__s32 wait_status;
	__u32 pad;
};

/*
 * A record in the ring. It is folded first, since most members equal others; then its
 * words that are not zero are stored here in their order, followed by its strings. The
 * mask has a bit for each word: 0 and 1 are tid, folded, and the upper half of exec_id;
 * from bit 2 on those behind abi_quark_head.
 */
struct abi_quark_packed {
	__u64 time;
	__u64 start_boottime;
	__u64 mask;
	__u32 exec_id;
	__u32 tgid;
	__u16 cpu;
	__u8 kind;
	__u8 flags;
	__u32 words[1];
};

#define ABI_QUARK_PACKED_HEAD __builtin_offsetof(struct abi_quark_packed, words)

enum abi_quark_ns {
	ABI_QUARK_UTS,
	ABI_QUARK_IPC,
	ABI_QUARK_MNT,
	ABI_QUARK_NET,
	ABI_QUARK_NAMESPACES,
};

#define ABI_QUARK_CAPS_ALL 0x1ffffffffffULL /* of Linux 5.9 */

/*
 * Folding: a member that usually equals another member or a constant becomes the XOR of
 * the two. Folding twice restores it, so no member may be folded against a folded one.
 * 'home': libquark's own namespaces.
 */
static inline void abi_quark_fold_ids(struct abi_quark_ids *ids, const volatile __u32 *home)
{
	__u64 caps = ids->uid ? 0 : ABI_QUARK_CAPS_ALL;

	ids->suid ^= ids->uid;
	ids->euid ^= ids->uid;
	ids->sgid ^= ids->gid;
	ids->egid ^= ids->gid;
	ids->sid ^= ids->pgid;
	ids->uts_inonum ^= home[ABI_QUARK_UTS];
	ids->ipc_inonum ^= home[ABI_QUARK_IPC];
	ids->mnt_inonum ^= home[ABI_QUARK_MNT];
	ids->net_inonum ^= home[ABI_QUARK_NET];
	ids->cap_permitted ^= caps;
	ids->cap_effective ^= caps;
	ids->cap_bset ^= ABI_QUARK_CAPS_ALL;
}

static inline void abi_quark_fold_fork(struct abi_quark_fork *f, const volatile __u32 *home)
{
	f->origin.start_boottime ^= f->parent.start_boottime;
	f->origin.tgid ^= f->parent.tgid;
	f->parent.exec_id ^= f->head.key.exec_id;
	f->origin.exec_id ^= f->head.key.exec_id;
	abi_quark_fold_ids(&f->ids, home);
}

static inline void abi_quark_fold_image(struct abi_quark_image *im, const volatile __u32 *home)
{
	im->parent.exec_id ^= im->head.key.exec_id;
	abi_quark_fold_ids(&im->ids, home);
}

static inline void abi_quark_fold_exit(struct abi_quark_exit *e)
{
	e->parent.exec_id ^= e->head.key.exec_id;
	e->sid ^= e->pgid;
}

/* An executed file: the key of the map of files that user space knows. */
struct abi_quark_file {
	__u64 dev; /* as in struct abi_quark_image */
	__u64 ino;
	__u64 ctime_ns; /* a file that is overwritten keeps inode and generation */
	__u64 size;
};

/*
 * Records dropped since the ring was full: an element for each CPU, of a map that user
 * space has mapped. After reading, user space resets 'first' to 0.
 */
struct abi_quark_loss {
	__u64 lost[8]; /* by enum abi_quark_kind */
	__u64 first; /* boot times of the first and the last dropped record */
	__u64 last;
	__u64 limited; /* not reported: repeated too often, see quark_limit.bpf.h */
	__u64 unwoken; /* new files without a wakeup, see quark_file.bpf.h */
	__u64 pad[4]; /* two cache lines for each CPU */
};

#ifndef __bpf__
#define ABI_ASSERT(e) _Static_assert(e, #e)
ABI_ASSERT(sizeof(struct abi_key) == 24);
ABI_ASSERT(sizeof(struct abi_sample) == 80);
ABI_ASSERT(sizeof(struct abi_part) == 8);
ABI_ASSERT(sizeof(struct abi_regs) == 8 * ABI_GPRS + 16);
ABI_ASSERT(sizeof(struct abi_stack) == 24);
ABI_ASSERT(sizeof(struct abi_code) == 40);
ABI_ASSERT(sizeof(struct abi_go) == 56);
ABI_ASSERT(sizeof(struct abi_quark_head) == 48);
ABI_ASSERT(sizeof(struct abi_quark_ids) == 96);
ABI_ASSERT(sizeof(struct abi_quark_fork) == 216);
ABI_ASSERT(sizeof(struct abi_quark_image) == 240);
ABI_ASSERT(sizeof(struct abi_quark_exit) == 144);
ABI_ASSERT(sizeof(struct abi_quark_id_change) == 152);
ABI_ASSERT(sizeof(struct abi_quark_rename) == 72);
ABI_ASSERT(sizeof(struct abi_exec_mark) == 8);
ABI_ASSERT(sizeof(struct abi_module) == 24);
ABI_ASSERT(sizeof(struct abi_quark_reap) == 112);
ABI_ASSERT(ABI_QUARK_PACKED_HEAD == 36);
ABI_ASSERT(sizeof(struct abi_quark_packed) == 40);
ABI_ASSERT(sizeof(struct abi_quark_file) == 32);
ABI_ASSERT(sizeof(struct abi_quark_loss) == 128);
#endif

#endif /* BPF_ABI_H */
