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

/*
 * The one path that stands for a process's cgroups, out of the text of
 * /proc/PID/cgroup, which is changed; points into it, NULL: none. The rule is that of
 * cgroup_kn() in bpf/quark.bpf.c, so that all sources say the same: the unified
 * hierarchy's path unless that is its root, else memory's, else pids'; but engines
 * of version 1 leave a process where it was in the unified one, so memory's or
 * pids' goes first where its last name is that of a container (64 characters or
 * more).
 */
const char *procfs_cgroup(char *text);

#endif /* BASE_PROCFS_H */
