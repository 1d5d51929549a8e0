/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * abi_fd: the kinds of descriptors, for watched events and for waits. The programs find
 * them with file_kind() of bpf/file.bpf.h.
 */
#ifndef BPF_ABI_FD_H
#define BPF_ABI_FD_H

#include "bpf/abi.h"

/*
 * Side files have the numbers: a new kind is the last one (docs/profd-times.5).
 * X(NAME, word, category): 'word' is for users; 'category' is that of the event of a call
 * which may have any descriptor (enum abi_watch_category). Those with a path are together.
 */
#define ABI_FDS(X)                                              \
	X(NONE, "closed", OTHER) /* the number is of no file */ \
	X(UNKNOWN, "unknown", OTHER)                            \
	X(FILE, "file", FILE)                                   \
	X(DIR, "dir", FILE)                                     \
	X(CHAR, "char", FILE)                                   \
	X(BLOCK, "block", FILE)                                 \
	X(LINK, "link", FILE)                                   \
	X(FIFO, "fifo", IPC)                                    \
	X(PIPE, "pipe", IPC)                                    \
	X(SOCKET, "socket", NET) /* of a wait: any */           \
	X(UNIX, "socket", IPC)                                  \
	X(EVENTFD, "eventfd", IPC)                              \
	X(SIGNALFD, "signalfd", IPC)                            \
	X(INOTIFY, "inotify", IPC)                              \
	X(EPOLL, "epoll", OTHER)                                \
	X(TIMERFD, "timerfd", OTHER)                            \
	X(PIDFD, "pidfd", OTHER)                                \
	X(IO_URING, "io_uring", OTHER)                          \
	X(NAMESPACE, "ns", OTHER)                               \
	X(ANON, "anon", OTHER)

enum abi_fd_kind {
#define X(NAME, word, category) ABI_FD_##NAME,
	ABI_FDS(X)
#undef X
	ABI_FD_KINDS
};

#ifndef __bpf__
ABI_ASSERT(ABI_FD_KINDS <= 32);
#endif

#endif /* BPF_ABI_FD_H */
