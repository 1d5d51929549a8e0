/* SPDX-License-Identifier: Apache-2.0 */
/* procfs: what every reader of /proc needs, see proc(5). Any thread. */
#ifndef BASE_PROCFS_H
#define BASE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Calls 'fn' for every number that is a name in 'dir', until it returns an error. 0 or -errno. */
int procfs_numbers(const char *dir, int (*fn)(void *arg, uint32_t number),
		   void *arg);

/*
 * A descriptor of /proc/PID (O_PATH), which stays that process's when its pid is
 * another's. -errno: ENOENT if there is no such process.
 */
int procfs_open(uint32_t pid);

/*
 * The beginning of file 'name' below descriptor 'dir' (AT_FDCWD: any file that the
 * kernel makes, by its path), at most size - 1 bytes, and a NUL behind it. How many,
 * or -errno.
 */
ssize_t procfs_read(int dir, const char *name, char *buf, size_t size);

/* Likewise of a file of /proc/PID. False: nothing. */
bool procfs_text(uint32_t pid, const char *name, char *text, size_t size);

#define PROCFS_COMM 16 /* TASK_COMM_LEN, include/linux/sched.h */

/* Of /proc/PID/stat, see proc_pid_stat(5). */
struct procfs_stat {
	char comm[PROCFS_COMM]; /* kernel threads' may be longer: cut */
	char state;
	bool kthread;
	uint32_t ppid, pgid, sid, tty;
	uint64_t utime, stime; /* in clock ticks */
	uint64_t start; /* CLOCK_BOOTTIME, ns: a whole number of clock ticks */
};

/* 'text' need not be NUL-terminated. 0 or -EINVAL. */
int procfs_stat_parse(const char *text, size_t len, struct procfs_stat *out);
bool procfs_stat(uint32_t pid, struct procfs_stat *out);
bool procfs_stat_at(int dir, struct procfs_stat *out);

/* Nanoseconds a clock tick, in which /proc counts. */
uint64_t procfs_tick(void);
/* The tick that a time lies in, as 'start' has it. */
uint64_t procfs_tick_of(uint64_t boottime);

struct procfs_ids {
	uint32_t uid, euid, suid, gid, egid, sgid;
};

/* Of the text of /proc/PID/status. False: it does not say. */
bool procfs_ids_parse(const char *status, struct procfs_ids *out);

/*
 * A word of mountinfo, in which space, tab, newline and backslash are octal
 * ("\\040"), into 'to' with a NUL; cut to 'cap', at least 1. 'to' may be 'from'.
 */
void procfs_unescape(char *to, size_t cap, const char *from, size_t len);

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
