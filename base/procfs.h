/* SPDX-License-Identifier: Apache-2.0 */
/* procfs: what every reader of /proc needs, see proc(5). Any thread. */
#ifndef BASE_PROCFS_H
#define BASE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls 'fn' for every number that is a name in 'dir', until it returns an error. 0 or -errno. */
int procfs_numbers(const char *dir, int (*fn)(void *arg, uint32_t number),
		   void *arg);

/* The beginning of a file of /proc/PID, with a NUL behind it. False: nothing. */
bool procfs_text(uint32_t pid, const char *name, char *text, size_t size);

#endif /* BASE_PROCFS_H */
