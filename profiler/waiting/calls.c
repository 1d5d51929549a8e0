// SPDX-License-Identifier: Apache-2.0
/*
 * calls: see profiler/waiting/calls.h. Calls that are not listed are waits for something
 * else, or sleep in the kernel only, which its state tells. A call whose reason is 0 has
 * that of its descriptor.
 */
#include <stddef.h>
#include <string.h>

#include "base/base.h"
#include "processmanager/watch/watch.h"
#include "profiler/waiting/calls.h"

/* By name, since numbers and presence depend on the machine. */
static const struct {
	const char *name;
	uint8_t call;
} waiting_names[] = {
	{ "nanosleep", ABI_WAIT_SLEEP },
	{ "clock_nanosleep", ABI_WAIT_SLEEP },
	{ "futex", ABI_WAIT_FUTEX },
	{ "futex_waitv", ABI_WAIT_FUTEX },
	{ "futex_wait", ABI_WAIT_FUTEX },
	{ "poll", ABI_WAIT_POLL },
	{ "ppoll", ABI_WAIT_POLL },
	{ "select", ABI_WAIT_POLL },
	{ "pselect6", ABI_WAIT_POLL },
	{ "epoll_wait", ABI_WAIT_POLL | ABI_WAIT_CALL_FD },
	{ "epoll_pwait", ABI_WAIT_POLL | ABI_WAIT_CALL_FD },
	{ "epoll_pwait2", ABI_WAIT_POLL | ABI_WAIT_CALL_FD },
	{ "io_uring_enter", ABI_WAIT_POLL | ABI_WAIT_CALL_FD },
	{ "io_getevents", ABI_WAIT_POLL },
	{ "io_pgetevents", ABI_WAIT_POLL },
	{ "wait4", ABI_WAIT_CHILD },
	{ "waitid", ABI_WAIT_CHILD },
	{ "vfork", ABI_WAIT_CHILD },
	{ "clone", ABI_WAIT_CHILD },
	{ "clone3", ABI_WAIT_CHILD },
	{ "accept", ABI_WAIT_SOCKET | ABI_WAIT_CALL_FD },
	{ "accept4", ABI_WAIT_SOCKET | ABI_WAIT_CALL_FD },
	{ "connect", ABI_WAIT_SOCKET | ABI_WAIT_CALL_FD },
	{ "sendto", ABI_WAIT_SOCKET | ABI_WAIT_CALL_FD },
	{ "recvfrom", ABI_WAIT_SOCKET | ABI_WAIT_CALL_FD },
	{ "sendmsg", ABI_WAIT_SOCKET | ABI_WAIT_CALL_FD },
	{ "recvmsg", ABI_WAIT_SOCKET | ABI_WAIT_CALL_FD },
	{ "sendmmsg", ABI_WAIT_SOCKET | ABI_WAIT_CALL_FD },
	{ "recvmmsg", ABI_WAIT_SOCKET | ABI_WAIT_CALL_FD },
	{ "fsync", ABI_WAIT_DISK | ABI_WAIT_CALL_FD },
	{ "fdatasync", ABI_WAIT_DISK | ABI_WAIT_CALL_FD },
	{ "sync_file_range", ABI_WAIT_DISK | ABI_WAIT_CALL_FD },
	{ "syncfs", ABI_WAIT_DISK | ABI_WAIT_CALL_FD },
	{ "sync", ABI_WAIT_DISK },
	{ "msync", ABI_WAIT_DISK },
	{ "read", ABI_WAIT_CALL_FD },
	{ "write", ABI_WAIT_CALL_FD },
	{ "readv", ABI_WAIT_CALL_FD },
	{ "writev", ABI_WAIT_CALL_FD },
	{ "pread64", ABI_WAIT_CALL_FD },
	{ "pwrite64", ABI_WAIT_CALL_FD },
	{ "preadv", ABI_WAIT_CALL_FD },
	{ "pwritev", ABI_WAIT_CALL_FD },
	{ "preadv2", ABI_WAIT_CALL_FD },
	{ "pwritev2", ABI_WAIT_CALL_FD },
	{ "sendfile", ABI_WAIT_CALL_FD },
	{ "splice", ABI_WAIT_CALL_FD },
	{ "tee", ABI_WAIT_CALL_FD },
	{ "vmsplice", ABI_WAIT_CALL_FD },
	{ "ioctl", ABI_WAIT_CALL_FD },
};

void waiting_calls(uint8_t calls[ABI_WAIT_CALLS])
{
	const char *name;

	memset(calls, 0, ABI_WAIT_CALLS);
	for (uint32_t nr = 0; nr < ABI_WAIT_CALLS; nr++) {
		name = watch_syscall(nr);
		for (size_t i = 0; name && i < ARRAY_SIZE(waiting_names); i++)
			if (!strcmp(name, waiting_names[i].name))
				calls[nr] = waiting_names[i].call;
	}
}
