// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * watch: TCP, signals, processes and system calls as events for subscribers
 * (processmanager/watch).
 * User space attaches only programs that somebody needs. All are BTF tracepoints: a
 * classic tracepoint program would silence the sampler, and locked-down kernels forbid
 * fentry and kprobes. Loads on 6.1 and newer; a program whose tracepoint the kernel lacks
 * is not loaded.
 */
#include "bpf/vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/watch/watch_call.bpf.h"
#include "bpf/watch/watch_fd.bpf.h"
#include "bpf/watch/watch_send.bpf.h"
#include "bpf/watch/watch_sock.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

/* --- processes ---------------------------------------------------------------- */

SEC("tp_btf/task_newtask")
int BPF_PROG(watch_fork, struct task_struct *task, __u64 clone_flags)
{
	struct abi_watch_record r = { .head.name = ABI_WATCH_PROCESS_FORK };

	if (!task->pid || clone_flags & CLONE_THREAD || watch_is_self(task))
		return 0;
	watch_fill_task(&r, task);
	r.v[0] = task_cast(task)->real_parent->tgid;
	watch_send(&r);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(watch_exec, struct task_struct *task, pid_t old_pid)
{
	struct abi_watch_record r = { .head.name = ABI_WATCH_PROCESS_EXEC };

	if (watch_is_self(task))
		return 0;
	watch_fill_task(&r, task);
	watch_send(&r);
	return 0;
}

/* The last thread: see quark_exit() of bpf/quark.bpf.c. */
SEC("tp_btf/sched_process_exit")
int watch_exit(__u64 *ctx)
{
	struct trace_event_raw_sched_process_exit___6_16 *with = NULL;
	struct task_struct *task = (void *)ctx[0], *cast = task_cast(task);
	struct abi_watch_record r = { .head.name = ABI_WATCH_PROCESS_EXIT };
	struct signal_struct *sig = cast->signal;
	bool group_dead;

	if (bpf_core_field_exists(with->group_dead))
		group_dead = ctx[1];
	else
		group_dead = !sig->live.counter;
	if (!group_dead || watch_is_self(task))
		return 0;
	watch_fill_task(&r, task);
	r.v[0] = (__u32)task_wait_status(cast->group_leader, sig);
	if (r.v[0])
		r.head.flags |= ABI_WATCH_FAILED;
	watch_send(&r);
	return 0;
}

/* --- signals ------------------------------------------------------------------ */

/* include/linux/signal.h, uapi/asm-generic/siginfo.h. */
#define SEND_SIG_NOINFO 0
#define SEND_SIG_PRIV 1
#define SI_USER 0
#define SI_QUEUE -1
#define SI_TKILL -6
#define SI_KERNEL 0x80
#define SIGCHLD 17

/* Whether a process sent it, and which code it has. */
static __always_inline bool signal_has_sender(int sig, const struct kernel_siginfo *info, int *code)
{
	if ((__u64)info <= SEND_SIG_PRIV) {
		*code = (__u64)info == SEND_SIG_PRIV ? SI_KERNEL : SI_USER;
		return (__u64)info == SEND_SIG_NOINFO;
	}
	*code = BPF_CORE_READ(info, si_code);
	return *code == SI_USER || *code == SI_QUEUE || *code == SI_TKILL ||
	       (sig == SIGCHLD && *code > 0 && *code != SI_KERNEL);
}

/* A signal that a process sends is its event; the kernel's are the receiver's. */
SEC("tp_btf/signal_generate")
int BPF_PROG(watch_signal_generate, int sig, struct kernel_siginfo *info, struct task_struct *task,
	     int group, int result)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct abi_watch_record r = { .head.name = ABI_WATCH_SIGNAL_GENERATE };
	int code;
	bool sent = signal_has_sender(sig, info, &code);

	if (watch_is_self(task) || (sent && watch_is_self(current)))
		return 0;
	if (sent)
		watch_fill_task(&r, current);
	else
		watch_fill_task(&r, task);
	r.v[0] = sig;
	r.v[1] = sent ? current->tgid : 0;
	r.v[2] = task->tgid;
	r.v[3] = (__s64)code;
	r.v[4] = result;
	watch_send(&r);
	return 0;
}

SEC("tp_btf/signal_deliver")
int BPF_PROG(watch_signal_deliver, int sig, struct kernel_siginfo *info)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct abi_watch_record r = { .head.name = ABI_WATCH_SIGNAL_DELIVER };
	int code;

	if (watch_is_self(current))
		return 0;
	watch_fill_task(&r, current);
	r.v[0] = sig;
	if (signal_has_sender(sig, info, &code) && (__u64)info > SEND_SIG_PRIV)
		r.v[1] = BPF_CORE_READ(info, _sifields._kill._pid);
	r.v[2] = current->tgid;
	r.v[3] = (__s64)code;
	watch_send(&r);
	return 0;
}

/* --- TCP ---------------------------------------------------------------------- */

/* A client in SYN_RECV has got a SYN for its own: it still connects. */
static __always_inline void state_connect(struct abi_watch_record *r, const struct sock *sk,
					  const struct owner *o, int state)
{
	r->head.name = ABI_WATCH_TCP_CONNECT;
	r->v[0] = r->v[1] = 0;
	if (state != TCP_ESTABLISHED) {
		/* 0: who connected closed it, or had no port or no memory. */
		r->v[0] = -(__s64)sk->sk_err;
		r->v[1] = !sk->sk_err;
		r->head.flags |= ABI_WATCH_FAILED;
	}
	if (o && o->connect_at) {
		r->head.latency = bpf_ktime_get_boot_ns() - o->connect_at;
		r->head.flags |= ABI_WATCH_TIMED;
	}
	watch_send(r);
}

static __always_inline void rtt_send(struct abi_watch_record *r, const struct sock *sk)
{
	r->head.name = ABI_WATCH_TCP_RTT;
	r->v[0] = BPF_CORE_READ((const struct tcp_sock *)sk, srtt_us) >> 3;
	if (r->v[0])
		watch_send(r);
}

/*
 * Not at tcp_destroy_sock: what is reset by close(2), or never accepted, has lost its other
 * end and its totals there.
 */
static __always_inline void state_close(struct abi_watch_record *r, const struct sock *sk)
{
	const struct tcp_sock *tp = (const struct tcp_sock *)sk;

	r->v[1] = 0;
	rtt_send(r, sk);
	r->head.name = ABI_WATCH_TCP_CLOSE;
	r->v[0] = BPF_CORE_READ(tp, bytes_acked);
	r->v[1] = BPF_CORE_READ(tp, bytes_received);
	r->v[2] = BPF_CORE_READ(tp, segs_out);
	r->v[3] = BPF_CORE_READ(tp, segs_in);
	r->v[4] = BPF_CORE_READ(tp, total_retrans);
	r->v[5] = BPF_CORE_READ(tp, srtt_us) >> 3;
	r->v[6] = sk->sk_err;
	if (sk->sk_err)
		r->head.flags |= ABI_WATCH_FAILED;
	watch_send(r);
}

SEC("tp_btf/inet_sock_set_state")
int BPF_PROG(watch_sock_state, struct sock *sk, int old, int state)
{
	bool begins = old == TCP_CLOSE && (state == TCP_SYN_SENT || state == TCP_LISTEN);
	struct abi_watch_record r;
	struct owner *o;

	if (!sock_is_tcp(sk))
		return 0;
	o = bpf_sk_storage_get(&watch_owners, sk, NULL,
			       begins ? BPF_LOCAL_STORAGE_GET_F_CREATE : 0);
	if (o && begins) { /* in connect(2) or listen(2) */
		o->created_by.tgid = 0;
		owner_set(o, bpf_get_current_task_btf());
		o->flags = state == TCP_LISTEN ? ABI_WATCH_SERVER : ABI_WATCH_CLIENT;
		o->connect_at = bpf_ktime_get_boot_ns();
		o->rtt_at = 0;
	}
	if (o && old == TCP_SYN_RECV && state == TCP_ESTABLISHED && o->flags & ABI_WATCH_SERVER)
		o->connect_at = o->rtt_at = 0;
	if (!sock_fill(&r, sk, o))
		return 0;
	r.head.name = ABI_WATCH_TCP_STATE;
	r.v[0] = old;
	r.v[1] = state;
	watch_send(&r);
	if (state == TCP_SYN_RECV)
		return 0;
	if (old == TCP_SYN_SENT || (old == TCP_SYN_RECV && r.head.flags & ABI_WATCH_CLIENT)) {
		state_connect(&r, sk, o, state);
	} else if (old == TCP_SYN_RECV && state == TCP_ESTABLISHED) {
		r.head.name = ABI_WATCH_TCP_ACCEPT;
		r.head.flags |= ABI_WATCH_SERVER;
		watch_send(&r);
	} else if (state == TCP_CLOSE && old != TCP_SYN_RECV && old != TCP_LISTEN) {
		state_close(&r, sk);
	}
	return 0;
}

static __always_inline void sock_used(struct sock *sk)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct owner *o;

	if (!sk || !sock_is_tcp(sk))
		return;
	o = bpf_sk_storage_get(&watch_owners, sk, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (o && !owner_is(o, current))
		owner_set(o, current);
}

/* 6.3 and newer. */
SEC("tp_btf/sock_send_length")
int BPF_PROG(watch_sock_send, struct sock *sk)
{
	sock_used(sk);
	return 0;
}

SEC("tp_btf/sock_recv_length")
int BPF_PROG(watch_sock_receive, struct sock *sk)
{
	sock_used(sk);
	return 0;
}

/* Before 6.3. */
SEC("tp_btf/tcp_rcv_space_adjust")
int BPF_PROG(watch_sock_received, struct sock *sk)
{
	sock_used(sk);
	return 0;
}

#define RTT_EVERY (5 * NSEC_PER_SEC)

SEC("tp_btf/tcp_probe")
int BPF_PROG(watch_tcp_rtt, struct sock *sk)
{
	__u64 now = bpf_ktime_get_boot_ns();
	struct abi_watch_record r;
	struct owner *o;

	o = bpf_sk_storage_get(&watch_owners, sk, NULL, 0);
	if (!o || (o->rtt_at && now - o->rtt_at < RTT_EVERY))
		return 0;
	o->rtt_at = now;
	if (sock_fill(&r, sk, o))
		rtt_send(&r, sk);
	return 0;
}

#define EAGAIN 11
#define ENOMEM 12
#define EBUSY 16
#define EINVAL 22
#define ENOBUFS 105
#define EHOSTUNREACH 113

/*
 * The errors of __tcp_retransmit_skb() (6.17) before it hands a segment to IP: that is in a
 * queue of this host still, or has no room in the window, and so on. Nothing else counts it as
 * a retransmit.
 */
static __always_inline bool retransmit_begun(int err)
{
	return err != -EBUSY && err != -EAGAIN && err != -EHOSTUNREACH && err != -ENOMEM &&
	       err != -EINVAL;
}

/* From 6.17 on also what could not be sent, with an error. */
SEC("tp_btf/tcp_retransmit_skb")
int watch_tcp_retransmit(__u64 *ctx)
{
	struct trace_event_raw_tcp_retransmit_skb___6_17 *with = NULL;
	const struct tcp_skb_cb *cb;
	struct sk_buff *skb = (void *)ctx[1];
	struct sock *sk = (void *)ctx[0];
	struct abi_watch_record r;
	__u16 segs = 0;
	int err = 0;

	if (bpf_core_field_exists(with->err))
		err = ctx[2];
	if (!retransmit_begun(err) ||
	    !sock_fill(&r, sk, bpf_sk_storage_get(&watch_owners, sk, NULL, 0)))
		return 0;
	r.head.name = ABI_WATCH_TCP_RETRANSMIT;
	cb = (const struct tcp_skb_cb *)skb->cb;
	bpf_core_read(&segs, sizeof(segs), &cb->tcp_gso_segs);
	r.v[0] = segs;
	r.v[1] = sk->__sk_common.skc_state;
	/* Positive: a queue of this host dropped it, as net_xmit_errno() says. */
	r.v[2] = err > 0 ? -ENOBUFS : (__s64)err;
	if (r.v[2])
		r.head.flags |= ABI_WATCH_FAILED;
	watch_send(&r);
	return 0;
}

/* The packet of a reset without a socket is the one that it answers. */
SEC("tp_btf/tcp_send_reset")
int BPF_PROG(watch_tcp_send_reset, struct sock *sk, const struct sk_buff *skb)
{
	struct abi_watch_record r = { .head.flags = ABI_WATCH_SOCKET };

	if (sk) {
		if (!sock_fill(&r, sk, bpf_sk_storage_get(&watch_owners, sk, NULL, 0)))
			return 0;
	} else if (!skb || !ends_of_packet(&r.ends, skb)) {
		return 0;
	}
	r.head.name = ABI_WATCH_TCP_SEND_RESET;
	watch_send(&r);
	return 0;
}

SEC("tp_btf/tcp_receive_reset")
int BPF_PROG(watch_tcp_receive_reset, struct sock *sk)
{
	struct abi_watch_record r;

	if (!sock_fill(&r, sk, bpf_sk_storage_get(&watch_owners, sk, NULL, 0)))
		return 0;
	r.head.name = ABI_WATCH_TCP_RECEIVE_RESET;
	watch_send(&r);
	return 0;
}

/*
 * Its later arguments differ between kernels; the first three do not. A dropped packet
 * has no owner: most are dropped before their socket is known.
 */
SEC("tp_btf/kfree_skb")
int BPF_PROG(watch_tcp_drop, struct sk_buff *skb, void *location, int reason)
{
	struct abi_watch_record r = { .head.name = ABI_WATCH_TCP_DROP,
				      .head.flags = ABI_WATCH_SOCKET };

	if (!ends_of_packet(&r.ends, skb))
		return 0;
	r.v[0] = reason;
	watch_send(&r);
	return 0;
}

/* --- system calls --------------------------------------------------------------- */

SEC("tp_btf/sys_enter")
int BPF_PROG(watch_call_enter, struct pt_regs *regs, long id)
{
	struct abi_watch_filter *f = watch_get_filter(ABI_WATCH_SYSCALLS);
	struct task_struct *task = bpf_get_current_task_btf();
	struct call_texts t = {};
	__u16 len[ABI_WATCH_PATHS] = {};
	struct abi_watch_conf *conf;
	struct abi_watch_call r;
	struct call *c = NULL;
	__u64 nr = id, at;
	__s32 n = -1;
	bool enters;
	__u8 wants;

	if (nr >= ABI_WATCH_CALLS)
		return 0;
	conf = &watch_conf[nr];
	wants = conf->wants;
	if (!wants || !f || !call_is_wanted(f, task, regs))
		return 0;
	if (wants == ABI_WATCH_EXIT && !conf->path[0] && conf->makes != ABI_WATCH_ENDS &&
	    !call_is_exec(nr)) {
		if (conf->fd && conf->makes != ABI_WATCH_MAKES_PAIR)
			n = arch_call_arg(regs, conf->fd);
		goto begun; /* most, and the quickest */
	}
	enters = wants & ABI_WATCH_ENTER && !f->failed;
	__builtin_memset(&r, 0, sizeof(r));
	arch_call_args(r.args, regs);
	for (int i = 0; i < ABI_WATCH_PATHS; i++) {
		at = call_path_arg(conf, &r, i);
		if (!at)
			continue;
		t.path[i] = call_path(task, i);
		r.path_len[i] = len[i] = call_read_path(t.path[i], at);
		r.unread |= !len[i] << i;
	}
	n = call_fd_arg(conf, r.args);
	t.fd = call_begin_fd(conf, n, enters);
	if (enters && call_has_category(conf->categories[0], t.fd)) {
		watch_fill_head(&r.head, task);
		r.head.name = ABI_WATCH_CALL(nr, 0);
		call_send(f, &r, &t);
	}
	if (!(wants & ABI_WATCH_EXIT))
		return 0;
begun:
	c = bpf_task_storage_get(&watch_calls, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!c)
		return 0;
	c->nr = nr;
	c->era = conf->era;
	c->exec_id = task->self_exec_id;
	c->path_len[0] = len[0];
	c->path_len[1] = len[1];
	if (n >= 0)
		c->inode = fd_inode(task, n);
	if (conf->makes == ABI_WATCH_ENDS)
		call_leave_fd(c, task, t.fd);
	if (call_is_exec(nr)) {
		__builtin_memcpy(c->args, r.args, sizeof(c->args));
		watch_fill_comm(c->comm, task);
	}
	c->begun = 1;
	c->at = bpf_ktime_get_boot_ns();
	return 0;
}

/*
 * The call of a fork ends in the child, too, which did not begin one; nor did, in our
 * sight, what was in the kernel when the hooks came, or seccomp refused.
 */
SEC("tp_btf/sys_exit")
int BPF_PROG(watch_call_exit, struct pt_regs *regs, long res)
{
	struct abi_watch_filter *f = watch_get_filter(ABI_WATCH_SYSCALLS);
	struct task_struct *task = bpf_get_current_task_btf();
	bool failed = res < 0 && res >= -MAX_ERRNO, execed;
	struct call_texts t = {};
	struct abi_watch_conf *conf;
	struct abi_watch_call r;
	__u64 nr = arch_call_nr(regs), latency = 0, at;
	struct call *c;

	if (nr >= ABI_WATCH_CALLS)
		return 0;
	conf = &watch_conf[nr];
	if (!(conf->wants & ABI_WATCH_EXIT) || !f || !call_is_wanted(f, task, regs))
		return 0;
	c = bpf_task_storage_get(&watch_calls, task, NULL, 0);
	if (c && (!c->begun || c->nr != nr || c->era != conf->era))
		c = NULL;
	if (c)
		c->begun = 0;
	if (f->failed && !failed)
		return 0;
	if (c)
		latency = bpf_ktime_get_boot_ns() - c->at;
	if (latency < f->slower)
		return 0;
	__builtin_memset(&r, 0, sizeof(r));
	r.head.latency = latency;
	r.head.flags = c ? ABI_WATCH_TIMED : 0;
	arch_call_args(r.args, regs);
	execed = call_is_exec(nr) && !res;
	if (execed && c)
		__builtin_memcpy(r.args, c->args, sizeof(r.args));
	if (conf->fd || conf->makes) {
		t.fd = call_end_fd(conf, c, task, r.args, res);
		if (!call_has_category(conf->categories[1], t.fd))
			return 0;
	}
	watch_fill_head(&r.head, task);
	if (execed && c) {
		__builtin_memcpy(r.head.comm, c->comm, sizeof(r.head.comm));
		r.new_exec_id = r.head.key.exec_id;
		r.head.key.exec_id = c->exec_id;
		r.head.flags |= ABI_WATCH_EXECED;
	}
	if (failed)
		r.head.flags |= ABI_WATCH_FAILED;
	r.head.name = ABI_WATCH_CALL(nr, 1);
	r.res = res;
	for (int i = 0; i < ABI_WATCH_PATHS; i++) {
		at = call_path_arg(conf, &r, i);
		if (!at)
			continue;
		t.path[i] = call_path(task, i);
		if (c && c->path_len[i]) {
			r.path_len[i] = c->path_len[i];
			continue;
		}
		/* Of an exec, the new image has it above its environment. */
		if (execed)
			at = nr == NR_EXECVE ? BPF_CORE_READ(task, mm, env_end) : 0;
		r.path_len[i] = at ? call_read_path(t.path[i], at) : 0;
		r.late |= !!r.path_len[i] << i;
		r.unread |= !r.path_len[i] << i;
	}
	call_send(f, &r, &t);
	return 0;
}

/* --- sockets that exist ------------------------------------------------------- */

/* A socket's owner is the first process that has it open, until it is used. */
SEC("iter/task_file")
int watch_seed(struct bpf_iter__task_file *ctx)
{
	struct task_struct *task = ctx->task;
	struct file *file = ctx->file;
	struct socket *socket;
	struct owner *o;
	struct sock *sk;

	if (!task || !file)
		return 0;
	socket = bpf_sock_from_file(file);
	sk = socket ? socket->sk : NULL;
	if (!sk || !sock_is_tcp(sk))
		return 0;
	o = bpf_sk_storage_get(&watch_owners, sk, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!o || (o->key.tgid && o->era == watch_era))
		return 0;
	owner_set(o, task);
	if (sk->__sk_common.skc_state == TCP_LISTEN)
		o->flags = ABI_WATCH_SERVER;
	/* Who made it is not known. */
	o->created_by.tgid = 0;
	return 0;
}
