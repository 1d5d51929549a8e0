// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Reads a descriptor as bpf/watch/watch_fd.bpf.h does, and waits before a chosen read of
 * kernel memory until another thread has changed the descriptor: see
 * test_watch_fd_change.c.
 */
#include "bpf/cast.bpf.h"

/* Set before the program runs: the read to wait at, from 1 on; 0: none. */
__u32 change_at;

/* Reads so far. When this is change_at, the other thread changes the descriptor. */
__u32 change_reads;
__u32 change_done; /* it has done so */
__u32 change_seen; /* before the read went on */

/* Less than 1 s: the other thread has a CPU of its own. */
#define CHANGE_STEPS (1 << 23)

static long change_wait(__u32 i, void *arg)
{
	return *(volatile __u32 *)&change_done != 0;
}

static __noinline void change_here(void)
{
	__u32 n = *(volatile __u32 *)&change_reads + 1;

	*(volatile __u32 *)&change_reads = n;
	if (n != change_at)
		return;
	bpf_loop(CHANGE_STEPS, change_wait, NULL, 0);
	change_seen = *(volatile __u32 *)&change_done;
}

/* All reads of memory that may change are by one of these. */
#define bpf_probe_read_kernel(...) \
	(change_here(), (bpf_probe_read_kernel)(__VA_ARGS__))
#define bpf_rdonly_cast(...) (change_here(), (bpf_rdonly_cast)(__VA_ARGS__))

#include "bpf/watch/watch_fd.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

__s32 change_num; /* the descriptor */
struct abi_watch_fd change_fd; /* what was read */
char change_text[ABI_WATCH_FD_TEXT_MAX];

SEC("raw_tp")
int change_read(void *ctx)
{
	struct fd_scratch *s = fd_get_scratch();
	__u64 n, at;

	if (!s)
		return 0;
	fd_read(change_num, 0, FD_ANY_INODE);
	change_fd = s->fd;
	n = s->fd.text_len;
	at = s->at;
	barrier_var(n);
	barrier_var(at);
	if (n <= sizeof(change_text) && at < ABI_WATCH_FD_TEXT_MAX)
		(bpf_probe_read_kernel)(change_text, n, s->text + at);
	return 1;
}
