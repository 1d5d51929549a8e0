/* SPDX-License-Identifier: Apache-2.0 */
/*
 * self: starts this program again, as a process that does one thing for it. Of the
 * environment, which may hold secrets, it has the path of libraries only.
 */
#ifndef BASE_SELF_H
#define BASE_SELF_H

#include <sys/types.h>

/*
 * Runs "profd COMMAND" with 'sock' as its standard input; the caller reaps it. 0 or
 * -errno.
 */
int self_spawn(pid_t *pid, const char *command, int sock);

#endif /* BASE_SELF_H */
