/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sandbox: a process gives up everything but one socket and its memory. There
 * is no way back, and none forward: a system call that is not on the list ends
 * the process (SIGSYS).
 */
#ifndef SYMBOLIZE_SANDBOX_H
#define SYMBOLIZE_SANDBOX_H

#include <stddef.h>
#include <sys/types.h>

/* The one descriptor that stays usable; 1 and 2 are whatever is there. */
#define SANDBOX_SOCKET 0

struct sandbox_opts {
	size_t memory; /* address space beside what the program has already */
	unsigned int cpu_s; /* CPU time, in all */
	size_t file_bytes; /* of a memfd */
};

/*
 * 0; or -errno, and *what names the step: then it must end. *uid is who it is
 * from now on.
 */
int sandbox_enter(const struct sandbox_opts *o, uid_t *uid, const char **what);

#endif /* SYMBOLIZE_SANDBOX_H */
