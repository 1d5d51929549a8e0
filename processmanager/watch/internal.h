/* SPDX-License-Identifier: Apache-2.0 */
/* internal: what the files of watch share. */
#ifndef PROCESSMANAGER_WATCH_INTERNAL_H
#define PROCESSMANAGER_WATCH_INTERNAL_H

#include <pthread.h>
#include <sys/queue.h>

#include "base/base.h"
#include "bpf/abi_watch.h"
#include "processmanager/watch/arch.h"
#include "processmanager/watch/watch.h"

/* --- names.c ----------------------------------------------------------------- */

#define WATCH_BIT(i) (1U << (i))

/* Indexes of names: first those of enum abi_watch_name. */
enum watch_name_index {
	WATCH_NAMES_BEFORE_CALLS = ABI_WATCH_NAMES - 1,
#define CALL(nr, name, ...) WATCH_ENTER_##name, WATCH_EXIT_##name,
#define OPENS CALL
#define NO_EXIT(nr, name, ...) WATCH_ENTER_##name,
#include WATCH_CALLS
#undef CALL
#undef OPENS
#undef NO_EXIT
	WATCH_N_NAMES,
};

#define WATCH_SET_WORDS ((WATCH_N_NAMES + 63) / 64)
struct watch_set {
	uint64_t w[WATCH_SET_WORDS];
	/* Of its names: of which descriptors, bits by enum abi_watch_category. */
	uint8_t categories[WATCH_N_NAMES];
};

static inline bool watch_set_has(const struct watch_set *s, size_t i)
{
	return s->w[i / 64] >> i % 64 & 1;
}

static inline void watch_set_add(struct watch_set *s, size_t i,
				 uint8_t categories)
{
	s->w[i / 64] |= 1ULL << i % 64;
	s->categories[i] |= categories;
}

static inline void watch_set_join(struct watch_set *s,
				  const struct watch_set *t)
{
	for (size_t i = 0; i < WATCH_SET_WORDS; i++)
		s->w[i] |= t->w[i];
	for (size_t i = 0; i < WATCH_N_NAMES; i++)
		s->categories[i] |= t->categories[i];
}

static inline bool watch_set_is_empty(const struct watch_set *s)
{
	uint64_t any = 0;

	for (size_t i = 0; i < WATCH_SET_WORDS; i++)
		any |= s->w[i];
	return !any;
}

/* Adds the names that a pattern means. -EINVAL: none, and 'why' says so. */
int watch_names_match(const char *pattern, struct watch_set *names,
		      struct strbuf *why);

/* --- calls.c ----------------------------------------------------------------- */

/* Of an argument of a system call. */
enum watch_arg_kind {
	WATCH_ARG_NONE,
	WATCH_ARG_INT,
	WATCH_ARG_UINT,
	WATCH_ARG_MODE, /* 16 bits */
	WATCH_ARG_LONG,
	WATCH_ARG_ULONG,
	WATCH_ARG_POINTER,
	WATCH_ARG_FD,
	WATCH_ARG_ENDS, /* a descriptor, which the call may end */
	WATCH_ARG_PAIR, /* a pointer to two descriptors, which the call makes */
	WATCH_ARG_PATH,
};

struct watch_arg {
	const char *name; /* NULL: there is none */
	enum watch_arg_kind kind;
};

struct watch_call {
	const char *name;
	const char *symbol; /* behind WATCH_CALL_SYMBOL */
	uint16_t enter, exit; /* names; exit 0: it has none */
	bool opens; /* its result is a descriptor */
	struct watch_arg args[ABI_WATCH_ARGS];
};

/* By number; NULL: there is none. */
const struct watch_call *watch_call(uint32_t nr);
/* The number of a name's call, and which end of it; -ENOENT: it is another event. */
int watch_call_nr(size_t name, bool *exit);
/* As watch_decode_name() and watch_decode(), whose head is done. */
int watch_call_name(const void *record, size_t len);
int watch_call_decode(const void *record, size_t len, struct watch_event *out);

/* --- fd.c -------------------------------------------------------------------- */

/* A category's word, by enum abi_watch_category; NULL beyond the last. */
const char *watch_category(size_t i);
/* Of the descriptor of a call: enum abi_watch_category. NULL: it has none. */
static inline enum abi_watch_category
watch_fd_category(const struct abi_watch_fd *fd)
{
	return fd ? abi_watch_category(fd->kind) : ABI_WATCH_OTHER;
}
/* The descriptor of a checked record of a call; NULL: it has none. */
const struct abi_watch_fd *watch_call_fd(const struct abi_watch_call *r);
/* 'text': of fd->text_len bytes; 'out' may point into it. */
void watch_fd_decode(const struct abi_watch_fd *fd, const char *text,
		     struct watch_fd *out);
/* The socket of one of TCP's own events. */
void watch_fd_decode_tcp(const struct abi_watch_record *r,
			 struct watch_fd *out);

/* --- kernel.c ---------------------------------------------------------------- */

/*
 * Names as bits: those of enum abi_watch_name that hooks send, and whether there is any of
 * a system call, and of the end of one. An end needs the begin, too, which has its time.
 */
#define WATCH_MASK_CALLS WATCH_BIT(ABI_WATCH_NAMES)
#define WATCH_MASK_EXITS WATCH_BIT(ABI_WATCH_NAMES + 1)
uint32_t watch_mask_of(const struct watch_set *names);
/* Those that are made of segments. */
#define WATCH_SEGMENTS \
	(WATCH_BIT(ABI_WATCH_SCHED_SWITCH) | WATCH_BIT(ABI_WATCH_CPU_ANALYSIS))

/* Programs of bpf/watch/watch.bpf.c, by tracepoint; X(program, "tracepoint", mask). */
#define WATCH_TCP                                                             \
	(WATCH_BIT(ABI_WATCH_TCP_CONNECT) | WATCH_BIT(ABI_WATCH_TCP_ACCEPT) | \
	 WATCH_BIT(ABI_WATCH_TCP_RTT) | WATCH_BIT(ABI_WATCH_TCP_CLOSE) |      \
	 WATCH_BIT(ABI_WATCH_TCP_STATE) |                                     \
	 WATCH_BIT(ABI_WATCH_TCP_RETRANSMIT) |                                \
	 WATCH_BIT(ABI_WATCH_TCP_SEND_RESET) |                                \
	 WATCH_BIT(ABI_WATCH_TCP_RECEIVE_RESET))
#define WATCH_HOOKS(X)                                                         \
	X(watch_fork, "task_newtask", WATCH_BIT(ABI_WATCH_PROCESS_FORK))       \
	X(watch_exec, "sched_process_exec", WATCH_BIT(ABI_WATCH_PROCESS_EXEC)) \
	X(watch_exit, "sched_process_exit", WATCH_BIT(ABI_WATCH_PROCESS_EXIT)) \
	X(watch_signal_generate, "signal_generate",                            \
	  WATCH_BIT(ABI_WATCH_SIGNAL_GENERATE))                                \
	X(watch_signal_deliver, "signal_deliver",                              \
	  WATCH_BIT(ABI_WATCH_SIGNAL_DELIVER))                                 \
	X(watch_sock_state, "inet_sock_set_state", WATCH_TCP)                  \
	X(watch_sock_send, "sock_send_length", WATCH_TCP)                      \
	X(watch_sock_receive, "sock_recv_length", WATCH_TCP)                   \
	X(watch_sock_received, "tcp_rcv_space_adjust", WATCH_TCP)              \
	X(watch_tcp_rtt, "tcp_probe", WATCH_BIT(ABI_WATCH_TCP_RTT))            \
	X(watch_tcp_retransmit, "tcp_retransmit_skb",                          \
	  WATCH_BIT(ABI_WATCH_TCP_RETRANSMIT))                                 \
	X(watch_tcp_send_reset, "tcp_send_reset",                              \
	  WATCH_BIT(ABI_WATCH_TCP_SEND_RESET))                                 \
	X(watch_tcp_receive_reset, "tcp_receive_reset",                        \
	  WATCH_BIT(ABI_WATCH_TCP_RECEIVE_RESET))                              \
	X(watch_tcp_drop, "kfree_skb", WATCH_BIT(ABI_WATCH_TCP_DROP))          \
	X(watch_call_enter, "sys_enter", WATCH_MASK_CALLS)                     \
	X(watch_call_exit, "sys_exit", WATCH_MASK_EXITS)

enum watch_hook {
#define X(program, tracepoint, names) WATCH_HOOK_##program,
	WATCH_HOOKS(X)
#undef X
	WATCH_N_HOOKS,
};

#define WATCH_REASONS_MAX 512

/* What the running kernel has, from its BTF; made once. */
struct watch_kernel {
	int err; /* there is no BTF */
	bool has[WATCH_N_HOOKS];
	bool resets_of_none; /* tcp_send_reset comes without a socket, too */
	char *reasons[WATCH_REASONS_MAX]; /* of dropped packets, by number */
};

extern const char *const watch_tracepoints[WATCH_N_HOOKS];
const struct watch_kernel *watch_kernel(void);
/*
 * Whether the running kernel has a call, by its list of symbols, which the first call
 * reads: some 50 ms.
 */
bool watch_kernel_has_call(uint32_t nr);
/* The hooks of these names; without those that another hook replaces here. */
uint32_t watch_hooks_of(const struct watch_set *names);
/* The hook that has the events of a name; WATCH_N_HOOKS: none has. */
enum watch_hook watch_hook_of(size_t name);
/* Appends their tracepoints. */
void watch_hooks_list(uint32_t hooks, struct strbuf *out);

/* --- watch.c ----------------------------------------------------------------- */

/* What subscribers want together. */
struct watch_wanted {
	struct watch_set names;
	/* 'names' and 'crowded' are not set. */
	struct abi_watch_filter filters[ABI_WATCH_CLASSES];
	uint32_t pids[WATCH_PIDS_MAX]; /* ascending */
	size_t n_pids;
	uint32_t clients[WATCH_SUBS_MAX];
	size_t n_clients;
};

/* --- load.c ------------------------------------------------------------------ */

struct watch_load;

/* Loads all programs, attaches none. 0 or -errno, and *why is a literal. */
int watch_load_new(struct watch_load **lp, const struct watch_opts *opts,
		   const char **why);
/* Closes the ring's descriptor as well. 'l' may be NULL. */
void watch_load_free(struct watch_load *l);
/* Attaches these hooks and detaches all others. *failed: those that cannot be. */
int watch_load_attach(struct watch_load *l, uint32_t hooks, uint32_t *failed);
/* What hooks send. */
int watch_load_filter(struct watch_load *l, const struct watch_wanted *all);
int watch_load_ring(const struct watch_load *l); /* its descriptor */
/* Losses of each name, ever, which hooks write to. */
const struct abi_watch_loss *watch_load_losses(const struct watch_load *l);
/*
 * How often the kernel did not run a hook's program, ever: the program had been
 * interrupted on that CPU by what has the hook again (6.1, kernel/trace/bpf_trace.c).
 */
uint64_t watch_load_skipped(const struct watch_load *l, enum watch_hook hook);

/* --- decode.c ---------------------------------------------------------------- */

/* The name of a record; -EINVAL: it is none. */
int watch_decode_name(const void *record, size_t len);
/* The same; strings of the event may be in the record. */
int watch_decode(const void *record, size_t len, struct watch_event *out);

/* --- sched.c ----------------------------------------------------------------- */

/* Attributes of ABI_WATCH_SCHED_SWITCH, by 'what'. NULL: it is not known. */
const char *watch_sched_reason(uint64_t what);
const char *watch_sched_state(uint64_t what);
const char *watch_sched_call(uint64_t what);
const char *watch_sched_fd(uint64_t what);
/* As watch_decode_name() and watch_decode(), whose head is done. */
bool watch_sched_is(const void *record, size_t len);
void watch_sched_decode(const void *record, struct watch_event *out);

/* --- queue.c ----------------------------------------------------------------- */

/* A record, shared by those for whom it waits. On the loop's thread. */
struct watch_item {
	unsigned int refs;
	unsigned int name;
	size_t len;
	union {
		struct abi_watch_head head; /* of a record of 'len' bytes */
		struct abi_watch_record bytes;
	};
};

/* A copy, with one reference. NULL: no memory. */
struct watch_item *watch_item_new(const void *record, size_t len, int name);
void watch_item_put(struct watch_item *item); /* NULL is allowed */

/* A record of user space to the queues of those who want it. */
void watch_post(struct watch *w, const void *record, size_t len);

/* What waits for one subscriber; zeroed at first. */
struct watch_queue {
	struct watch_item **v; /* a ring of 'cap' */
	size_t first, n, cap;
	size_t bytes;
};

/* False, and no reference is taken: it is full, or there is no memory. */
bool watch_queue_add(struct watch_queue *q, struct watch_item *item);
/* The oldest, with its reference; NULL: there is none. */
struct watch_item *watch_queue_take(struct watch_queue *q);
void watch_queue_fini(struct watch_queue *q);

#endif /* PROCESSMANAGER_WATCH_INTERNAL_H */
