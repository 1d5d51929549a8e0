/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * watch_call: system calls. Both hooks run at each call of the host, so what is asked first
 * costs least: the number, then the process. An enter leaves for its exit the time, the
 * paths, of an exec the arguments, which are gone with the old image, of a close the
 * descriptor, and of other calls the inode of theirs; all else is in the
 * registers still when the call ends.
 */
#ifndef BPF_WATCH_CALL_BPF_H
#define BPF_WATCH_CALL_BPF_H

#include "bpf/abi_watch.h"
#include "bpf/arch.bpf.h"
#include "bpf/watch/watch_fd.bpf.h"
#include "bpf/watch/watch_send.bpf.h"

#define MAX_ERRNO 4095 /* linux/err.h */

/* By number; set by user space, also while hooks run: each member is a byte. */
struct abi_watch_conf watch_conf[ABI_WATCH_CALLS];

/* A thread's call that has begun. */
struct call {
	__u64 at; /* when */
	__u64 exec_id; /* of its image then */
	__u64 args[ABI_WATCH_ARGS]; /* of an exec only */
	char comm[ABI_COMM_LEN]; /* of an exec only */
	struct abi_watch_fd fd; /* of ABI_WATCH_ENDS only; its text is the second path */
	__u64 inode; /* of its descriptor then, as fd_inode() */
	__u16 nr;
	__u16 path_len[ABI_WATCH_PATHS];
	__u8 era; /* that of its number then */
	__u8 begun;
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call);
} watch_calls SEC(".maps");

struct call_path {
	char text[ABI_WATCH_PATH_MAX];
};

/* Only threads that make calls with a path have one, few have a second. */
struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct call_path);
} watch_first_path SEC(".maps"), watch_second_path SEC(".maps");

static __always_inline struct call_path *call_path(struct task_struct *task, __u32 i)
{
	if (i)
		return bpf_task_storage_get(&watch_second_path, task, NULL,
					    BPF_LOCAL_STORAGE_GET_F_CREATE);
	return bpf_task_storage_get(&watch_first_path, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
}

/* Neither of a 32-bit call, nor of who watches, nor of a process that is not wanted. */
static __always_inline bool call_is_wanted(const struct abi_watch_filter *f,
					   struct task_struct *task, const struct pt_regs *regs)
{
	__u32 bits = watch_pid(f, task->tgid);

	if (bits & ABI_WATCH_PID_CLIENT || (f->by_pid && !(bits & ABI_WATCH_PID_WANTED)))
		return false;
	return !arch_compat_call(task, regs) && !watch_is_self(task);
}

static __always_inline bool call_is_exec(__u32 nr)
{
	return nr == NR_EXECVE || nr == NR_EXECVEAT;
}

/* The value of the i-th path of a call; 0: it has none. */
static __always_inline __u64 call_path_arg(const struct abi_watch_conf *conf,
					   const struct abi_watch_call *r, __u32 i)
{
	__u64 arg = conf->path[i];

	arg--;
	barrier_var(arg); /* or the verifier loses sight of the bound */
	return arg < ABI_WATCH_ARGS ? r->args[arg] : 0;
}

/* The length with the NUL; 0: it is not in memory. */
static __always_inline __u16 call_read_path(struct call_path *p, __u64 at)
{
	long n = p ? bpf_probe_read_user_str(p->text, sizeof(p->text), (void *)at) : 0;

	return n > 0 ? n : 0;
}

/* --- descriptors ------------------------------------------------------------------ */

/* The argument of a call that is a descriptor; < 0: it has none. */
static __always_inline __s32 call_fd_arg(const struct abi_watch_conf *conf, const __u64 *args)
{
	__u64 arg = conf->fd;

	if (conf->makes == ABI_WATCH_MAKES_PAIR)
		return -1;
	arg--;
	barrier_var(arg);
	return arg < ABI_WATCH_ARGS ? (__s32)args[arg] : -1;
}

/* A call that begins; NULL: its descriptor is not read now. */
static __always_inline struct fd_scratch *call_begin_fd(const struct abi_watch_conf *conf, __s32 n,
							bool enters)
{
	__u8 categories = conf->categories[1];
	struct fd_scratch *s;

	if (n < 0 || (!enters && conf->makes != ABI_WATCH_ENDS))
		return NULL;
	if (enters)
		categories |= conf->categories[0];
	s = fd_get_scratch();
	if (s)
		fd_read(n, categories, FD_ANY_INODE);
	return s;
}

/* What a call leaves for its end. */
static __always_inline void call_leave_fd(struct call *c, struct task_struct *task,
					  const struct fd_scratch *s)
{
	struct call_path *p;
	__u64 at, n;

	c->fd.num = -1;
	if (!s)
		return;
	c->fd = s->fd;
	at = s->at;
	n = s->fd.text_len;
	p = n ? call_path(task, 1) : NULL;
	barrier_var(n);
	barrier_var(at);
	if (p && n <= ABI_WATCH_FD_TEXT_MAX && at < ABI_WATCH_FD_TEXT_MAX)
		bpf_probe_read_kernel(p->text, n, s->text + at);
	else
		c->fd.text_len = c->fd.src_len = 0;
}

/* What its begin has left; of one without a begin it is not known. */
static __always_inline struct fd_scratch *call_left_fd(const struct call *c,
						       struct task_struct *task, __s32 n)
{
	struct fd_scratch *s = fd_get_scratch();
	struct call_path *p;
	__u64 len;

	if (!s || n < 0)
		return NULL;
	fd_clear(s, n, ABI_FD_UNKNOWN);
	if (!c || c->fd.num != n)
		return s;
	s->fd = c->fd;
	s->at = 0;
	len = s->fd.text_len;
	p = len ? call_path(task, 1) : NULL;
	barrier_var(len);
	if (p && len <= ABI_WATCH_FD_TEXT_MAX)
		bpf_probe_read_kernel(s->text, len, p->text);
	return s;
}

/*
 * The descriptor of a call that ended: what it made, or its argument, unless that has become
 * another file since the begin.
 */
static __always_inline struct fd_scratch *call_end_fd(const struct abi_watch_conf *conf,
						      const struct call *c,
						      struct task_struct *task, const __u64 *args,
						      long res)
{
	__s32 n = call_fd_arg(conf, args), pair[2] = { -1, -1 };
	struct fd_scratch *s;
	bool made = false;
	__u64 at;

	if (conf->makes == ABI_WATCH_ENDS)
		return call_left_fd(c, task, n);
	if (conf->makes == ABI_WATCH_MAKES_RESULT && res >= 0) {
		n = res;
		made = true;
	} else if (conf->makes == ABI_WATCH_MAKES_PAIR && !res) {
		at = conf->fd - 1;
		barrier_var(at);
		if (at < ABI_WATCH_ARGS)
			bpf_probe_read_user(pair, sizeof(pair), (void *)args[at]);
		n = pair[0];
		made = true;
	}
	s = n < 0 ? NULL : fd_get_scratch();
	if (!s)
		return NULL;
	fd_read(n, conf->categories[1], c && !made ? c->inode : FD_ANY_INODE);
	s->fd.pair = pair[1];
	return s;
}

static __always_inline bool call_has_category(__u8 categories, const struct fd_scratch *s)
{
	return fd_has_category(categories, s ? s->fd.kind : ABI_FD_UNKNOWN);
}

/* --- records ---------------------------------------------------------------------- */

/* What follows a record; each may be NULL. */
struct call_texts {
	struct call_path *path[ABI_WATCH_PATHS];
	const struct fd_scratch *fd;
};

static __always_inline void call_put_path(struct bpf_dynptr *slot, __u32 at,
					  const struct call_path *p, __u32 len)
{
	__u64 n = len;

	barrier_var(n); /* what is compared is what is passed: the verifier knows no copies */
	if (p && n <= ABI_WATCH_PATH_MAX)
		bpf_dynptr_write(slot, at, (void *)p->text, n, 0);
}

static __always_inline void call_put_text(struct bpf_dynptr *slot, __u32 at,
					  const struct fd_scratch *s)
{
	__u64 n = s->fd.text_len, from = s->at;

	barrier_var(n);
	barrier_var(from);
	if (n <= ABI_WATCH_FD_TEXT_MAX && from < ABI_WATCH_FD_TEXT_MAX)
		bpf_dynptr_write(slot, at, (void *)s->text + from, n, 0);
}

/* The bytes of a record. */
static __always_inline __u32 call_size(const struct abi_watch_call *r, const struct call_texts *t)
{
	__u32 size = sizeof(*r) + r->path_len[0] + r->path_len[1];

	return t->fd ? size + sizeof(t->fd->fd) + t->fd->fd.text_len : size;
}

static __always_inline long call_send_texts(struct abi_watch_call *r, const struct call_texts *t)
{
	struct bpf_dynptr slot;
	__u32 at = sizeof(*r);

	if (bpf_ringbuf_reserve_dynptr(&watch_ring, call_size(r, t), 0, &slot)) {
		bpf_ringbuf_discard_dynptr(&slot, 0);
		return -1;
	}
	r->head.time = bpf_ktime_get_boot_ns();
	bpf_dynptr_write(&slot, 0, r, sizeof(*r), 0);
	if (t->fd) {
		bpf_dynptr_write(&slot, at, (void *)&t->fd->fd, sizeof(t->fd->fd), 0);
		at += sizeof(t->fd->fd);
	}
	call_put_path(&slot, at, t->path[0], r->path_len[0]);
	at += r->path_len[0];
	call_put_path(&slot, at, t->path[1], r->path_len[1]);
	at += r->path_len[1];
	if (t->fd)
		call_put_text(&slot, at, t->fd);
	bpf_ringbuf_submit_dynptr(&slot, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline long call_send_plain(const struct abi_watch_call *r)
{
	struct abi_watch_call *slot = bpf_ringbuf_reserve(&watch_ring, sizeof(*slot), 0);

	if (!slot)
		return -1;
	*slot = *r;
	slot->head.time = bpf_ktime_get_boot_ns();
	bpf_ringbuf_submit(slot, BPF_RB_NO_WAKEUP);
	return 0;
}

/*
 * A record whose only text is a short one, of its descriptor; most are. Its size is known
 * beforehand, so that it is written without calls of helpers; what is behind the text means
 * nothing.
 */
struct call_short {
	struct abi_watch_call call;
	struct abi_watch_fd fd;
	__u64 text[7];
};

static __always_inline bool call_is_short(const struct abi_watch_call *r,
					  const struct call_texts *t)
{
	return t->fd && !r->path_len[0] && !r->path_len[1] &&
	       t->fd->fd.text_len <= sizeof(((struct call_short *)0)->text);
}

static __always_inline long call_send_short(const struct abi_watch_call *r,
					    const struct fd_scratch *s)
{
	struct call_short *slot = bpf_ringbuf_reserve(&watch_ring, sizeof(*slot), 0);
	__u64 at = s->at;

	if (!slot)
		return -1;
	slot->call = *r;
	slot->call.head.time = bpf_ktime_get_boot_ns();
	slot->fd = s->fd;
	barrier_var(at);
	for (__u64 i = 0; i < sizeof(slot->text) && at < ABI_WATCH_FD_TEXT_MAX; i += sizeof(__u64))
		slot->text[i / sizeof(__u64)] = *(__u64 *)(s->text + at + i);
	bpf_ringbuf_submit(slot, BPF_RB_NO_WAKEUP);
	return 0;
}

static __always_inline long call_send_record(struct abi_watch_call *r, const struct call_texts *t)
{
	if (call_is_short(r, t))
		return call_send_short(r, t->fd);
	return call_size(r, t) > sizeof(*r) ? call_send_texts(r, t) : call_send_plain(r);
}

static __always_inline void call_send(const struct abi_watch_filter *f, struct abi_watch_call *r,
				      const struct call_texts *t)
{
	__u32 name = r->head.name, size = call_size(r, t);
	struct abi_watch_loss *l;

	if (name >= ABI_WATCH_ALL_NAMES)
		return;
	if (t->fd)
		r->head.flags |= ABI_WATCH_DESCRIPTOR;
	l = &watch_losses[name];
	if (!watch_may(f, &r->head, size))
		__sync_fetch_and_add(&l->limited, 1);
	else if (call_send_record(r, t))
		__sync_fetch_and_add(&l->dropped, 1);
}

#endif /* BPF_WATCH_CALL_BPF_H */
