/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox: a process irrevocably gives up everything but one socket and its
 * memory. Any system call that is not on the list kills the process (SIGSYS).
 *
 * A process that talks to servers needs far more of them: names of hosts,
 * certificates and threads. It keeps what any user may do, except for the calls by
 * which kernels were attacked most, and runs no other program.
 */
#ifndef SYMBOLIZE_SANDBOX_H
#define SYMBOLIZE_SANDBOX_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* The only descriptor that stays open, besides 1 and 2. */
#define SANDBOX_SOCKET 0

struct sandbox_opts {
	size_t memory; /* additional private writable memory, in bytes */
	unsigned int cpu_s; /* CPU time, in total */
	size_t file_bytes; /* of a file that it writes */
	bool network; /* it talks to servers */
};

/*
 * 0; or -errno, and *what names the step: then the process must exit. *uid is
 * its user id from now on.
 */
int sandbox_enter(const struct sandbox_opts *o, uid_t *uid, const char **what);

#endif /* SYMBOLIZE_SANDBOX_H */
