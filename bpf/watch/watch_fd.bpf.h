/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * watch_fd: what a descriptor is, read at the event from the kernel's own structures: the
 * table of files of the process, the file, its inode and dentries or its socket. Nothing is
 * remembered from earlier events, so that no name is stale.
 * Another thread may close the descriptor meanwhile, and the kernel may use the memory of
 * its file again at once (6.7 and newer). So the descriptor, and what was found by it, are
 * read once more at the end: if anything differs, its kind is unknown. Inodes, sockets, and
 * dentries of file systems stay in memory meanwhile, since programs run in a critical
 * section of RCU.
 */
#ifndef BPF_WATCH_FD_BPF_H
#define BPF_WATCH_FD_BPF_H

#include "bpf/abi_watch.h"
#include "bpf/file.bpf.h"
#include "bpf/path.bpf.h"
#include "bpf/watch/watch_sock.bpf.h"

/* Of a path of so many bytes: "/a/a/...". */
#define FD_DEPTH (ABI_WATCH_FD_TEXT_MAX / 2)
#define FD_ANON_MAX 64

/* By the first three a descriptor is known again: of a socket the inode is its own. */
struct fd_seen {
	struct file *file;
	struct inode *inode;
	struct dentry *dentry;
	struct sock *sk;
};

struct fd_scratch {
	struct abi_watch_fd fd;
	struct walk walk;
	__u64 at; /* where its text begins */
	/* For the verifier, a text may begin at the end. */
	char text[2 * ABI_WATCH_FD_TEXT_MAX];
};

/* A program that runs on a CPU is not interrupted by one that reads descriptors. */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct fd_scratch);
} watch_fds SEC(".maps");

static __always_inline struct fd_scratch *fd_get_scratch(void)
{
	__u32 zero = 0;

	return bpf_map_lookup_elem(&watch_fds, &zero);
}

/* As file_at(), by a load instead of a helper's call. */
static __always_inline struct file *fd_file(struct task_struct *task, __u32 n)
{
	struct files_struct *files = task_cast(task)->files;
	struct fdtable *fdt;

	if (!files)
		return NULL;
	fdt = files->fdt;
	return n < fdt->max_fds ? (void *)CAST_WORD(fdt->fd + n) : NULL;
}

/* --- what it is ----------------------------------------------------------------- */

static __always_inline __u8 fd_kind(struct fd_scratch *s, struct fd_seen *seen)
{
	__u8 kind = file_kind(seen->inode, seen->dentry);
	struct socket *socket;

	if (kind != ABI_FD_SOCKET)
		return kind;
	socket = CAST_READ(struct file, seen->file, private_data);
	seen->sk = CAST_READ(struct socket, socket, sk);
	s->fd.ends.family = CAST_READ(struct sock, seen->sk, __sk_common.skc_family);
	return s->fd.ends.family == AF_UNIX ? ABI_FD_UNIX : ABI_FD_SOCKET;
}

/* --- its name ------------------------------------------------------------------- */

static __always_inline void fd_read_anon(struct fd_scratch *s, const struct dentry *dentry)
{
	long n = bpf_probe_read_kernel_str(s->text, FD_ANON_MAX,
					   CAST_READ(struct dentry, dentry, d_name.name));

	s->at = 0;
	s->fd.text_len = n > 1 ? n : 0;
}

static long fd_walk_dentry(__u32 i, void *arg)
{
	struct fd_scratch *s = fd_get_scratch();

	return s ? path_step(&s->walk, s->text, ABI_WATCH_FD_TEXT_MAX, true) : 1;
}

static __always_inline void fd_read_path(struct fd_scratch *s, struct task_struct *task,
					 const struct fd_seen *seen)
{
	struct fs_struct *fs = task_cast(task)->fs;
	struct file *file = seen->file;
	struct path_at at = { .dentry = seen->dentry };

	at.mnt = CAST_READ(struct file, file, f_path.mnt);
	if (fs) {
		at.root_mnt = fs->root.mnt;
		at.root_dentry = fs->root.dentry;
	}
	s->text[ABI_WATCH_FD_TEXT_MAX - 1] = '\0';
	path_begin(&s->walk, &at, ABI_WATCH_FD_TEXT_MAX - 1);
	if (bpf_loop(FD_DEPTH, fd_walk_dentry, NULL, 0) == FD_DEPTH)
		s->walk.cut = 1;
	if (s->walk.pos == ABI_WATCH_FD_TEXT_MAX - 1 && !s->walk.cut) {
		s->walk.pos--;
		s->text[ABI_WATCH_FD_TEXT_MAX - 2] = '/';
	}
	if (s->walk.cut)
		s->fd.flags |= ABI_WATCH_FD_CUT;
	s->at = s->walk.pos;
	s->fd.text_len = ABI_WATCH_FD_TEXT_MAX - s->walk.pos;
}

/* Appends the address of a unix socket; its length. */
static __always_inline __u32 fd_unix_address(struct fd_scratch *s, const struct sock *sk)
{
	struct unix_address *address = BPF_CORE_READ((const struct unix_sock *)sk, addr);
	__u64 at = s->fd.text_len & 255, len;

	if (!address)
		return 0;
	len = (__u32)BPF_CORE_READ(address, len) - sizeof(__u16);
	barrier_var(len); /* or the verifier loses sight of the bound */
	if (len > ABI_WATCH_UNIX_MAX ||
	    bpf_probe_read_kernel(s->text + at, len, &address->name[0].sun_path))
		return 0;
	s->fd.text_len += len;
	return len;
}

static __always_inline void fd_read_unix(struct fd_scratch *s, const struct sock *sk)
{
	struct sock *peer;

	s->at = 0;
	if (!bpf_core_type_exists(struct unix_sock))
		return;
	peer = BPF_CORE_READ((const struct unix_sock *)sk, peer);
	if (peer)
		s->fd.flags |= ABI_WATCH_FD_CONNECTED;
	if (BPF_CORE_READ(sk, __sk_common.skc_state) == TCP_LISTEN)
		s->fd.flags |= ABI_WATCH_FD_SERVER;
	s->fd.src_len = fd_unix_address(s, sk);
	if (!peer)
		return;
	fd_unix_address(s, peer);
	/* Only as long as it is the peer, its address stays in memory. */
	if (BPF_CORE_READ((const struct unix_sock *)sk, peer) != peer)
		s->fd.text_len = s->fd.src_len;
}

/*
 * An accepted socket has the backlog of the one that listened; one that got its port by
 * connect(2) shares it with no other (fastreuse: net/ipv4/inet_hashtables.c).
 */
static __always_inline __u8 fd_tcp_role(const struct sock *sk)
{
	const struct inet_connection_sock *icsk = (const struct inet_connection_sock *)sk;
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	struct inet_bind_bucket *bucket;

	if (state == TCP_LISTEN)
		return ABI_WATCH_FD_SERVER;
	if (state == TCP_SYN_SENT)
		return ABI_WATCH_FD_CLIENT;
	if (state == TCP_CLOSE)
		return 0;
	if (BPF_CORE_READ(sk, sk_max_ack_backlog))
		return ABI_WATCH_FD_SERVER;
	bucket = BPF_CORE_READ(icsk, icsk_bind_hash);
	return bucket && BPF_CORE_READ(bucket, fastreuse) < 0 ? ABI_WATCH_FD_CLIENT : 0;
}

static __always_inline void fd_read_socket(struct fd_scratch *s, const struct sock *sk)
{
	__u16 family = s->fd.ends.family;

	s->fd.protocol = BPF_CORE_READ(sk, sk_protocol);
	if (family != AF_INET && family != AF_INET6)
		return;
	ends_fill(&s->fd.ends, sk);
	if (s->fd.protocol == IPPROTO_TCP)
		s->fd.flags |= fd_tcp_role(sk);
}

/* --- a descriptor ----------------------------------------------------------------- */

static __always_inline bool fd_is_as_seen(struct task_struct *task, __u32 n,
					  const struct fd_seen *seen)
{
	struct file *file = seen->file;

	return fd_file(task, n) == file && CAST_READ(struct file, file, f_inode) == seen->inode &&
	       CAST_READ(struct file, file, f_path.dentry) == seen->dentry;
}

static __always_inline bool fd_has_category(__u8 categories, __u8 kind)
{
	return !categories || categories >> abi_watch_category(kind) & 1;
}

static __always_inline void fd_clear(struct fd_scratch *s, __s32 n, __u8 kind)
{
	__builtin_memset(&s->fd, 0, sizeof(s->fd));
	s->fd.num = n;
	s->fd.pair = -1;
	s->fd.kind = kind;
}

#define FD_ANY_INODE (~0ULL)

/* The address of its inode; 0: it is closed. */
static __always_inline __u64 fd_inode(struct task_struct *task, __s32 n)
{
	struct file *file = fd_file(task, n);

	return file ? (__u64)CAST_READ(struct file, file, f_inode) : 0;
}

/*
 * Reads a descriptor of the current task into fd_get_scratch(); of one whose category is
 * not among these only the kind. One that has not this inode has become another one.
 * Not static: the verifier walks such a function once, not in each state of its callers.
 */
__noinline int fd_read(__s32 n, __u8 categories, __u64 inode)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct file *file = fd_file(task, n);
	struct fd_scratch *s = fd_get_scratch();
	struct fd_seen seen = { .file = file };

	if (!s)
		return 0;
	fd_clear(s, n, ABI_FD_NONE);
	if (file)
		seen.inode = CAST_READ(struct file, file, f_inode);
	if (inode != FD_ANY_INODE && (__u64)seen.inode != inode) {
		s->fd.kind = ABI_FD_UNKNOWN;
		return 0;
	}
	if (!file)
		return 0;
	seen.dentry = CAST_READ(struct file, file, f_path.dentry);
	s->fd.kind = fd_kind(s, &seen);
	if (!fd_has_category(categories, s->fd.kind))
		return 0;
	if (s->fd.kind >= ABI_FD_FILE && s->fd.kind <= ABI_FD_FIFO)
		fd_read_path(s, task, &seen);
	else if (s->fd.kind == ABI_FD_SOCKET)
		fd_read_socket(s, seen.sk);
	else if (s->fd.kind == ABI_FD_UNIX)
		fd_read_unix(s, seen.sk);
	else if (s->fd.kind == ABI_FD_ANON)
		fd_read_anon(s, seen.dentry);
	if (!fd_is_as_seen(task, n, &seen))
		fd_clear(s, n, ABI_FD_UNKNOWN);
	return 0;
}

#endif /* BPF_WATCH_FD_BPF_H */
