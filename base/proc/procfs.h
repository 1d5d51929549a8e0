/* SPDX-License-Identifier: Apache-2.0 */
/* procfs: reads and parses files of /proc, see proc(5). Any thread. */
#ifndef BASE_PROCFS_H
#define BASE_PROCFS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Calls 'fn' for each name in 'dir' that is a number, until an error. 0 or -errno. */
int procfs_numbers(const char *dir, int (*fn)(void *arg, uint32_t number),
		   void *arg);

/*
 * A descriptor of /proc/PID (O_PATH), which does not refer to a later process of the
 * same pid; or -errno. -ENOENT: there is no such process.
 */
int procfs_open(uint32_t pid);

/*
 * Reads file 'name' below descriptor 'dir' (or AT_FDCWD), at most size - 1 bytes, and
 * adds a NUL. The number of bytes, or -errno.
 */
ssize_t procfs_read(int dir, const char *name, char *buf, size_t size);

/* The same for file 'name' of /proc/PID. False: an error, or the file is empty. */
bool procfs_text(uint32_t pid, const char *name, char *text, size_t size);

#define PROCFS_COMM 16 /* TASK_COMM_LEN, include/linux/sched.h */

/* Of /proc/PID/stat, see proc_pid_stat(5). */
struct procfs_stat {
	char comm[PROCFS_COMM]; /* longer names of kernel threads are cut */
	char state;
	bool kthread;
	uint32_t ppid, pgid, sid, tty;
	uint64_t utime, stime; /* in clock ticks */
	uint64_t start; /* CLOCK_BOOTTIME, ns; a multiple of the clock tick */
};

/* 'text' need not be NUL-terminated. 0 or -EINVAL. */
int procfs_stat_parse(const char *text, size_t len, struct procfs_stat *out);
bool procfs_stat(uint32_t pid, struct procfs_stat *out);
bool procfs_stat_at(int dir, struct procfs_stat *out);

/* Nanoseconds of a clock tick, the unit of times in /proc. */
uint64_t procfs_tick(void);
/* The time rounded down to a clock tick, to compare with 'start'. */
uint64_t procfs_tick_of(uint64_t boottime);

struct procfs_ids {
	uint32_t uid, euid, suid, gid, egid, sgid;
};

/* Parses the text of /proc/PID/status. False: it has no such lines. */
bool procfs_ids_parse(const char *status, struct procfs_ids *out);

/*
 * Copies a field of mountinfo, in which space, tab, newline and backslash are octal
 * ("\\040"), to 'to' with a NUL, cut to 'cap', at least 1. 'to' may be 'from'.
 */
void procfs_unescape(char *to, size_t cap, const char *from, size_t len);

/*
 * The path of a process's cgroup, from the text of /proc/PID/cgroup, which is
 * changed. Points into it; NULL: none. The rule is that of cgroup_kn() in
 * bpf/quark.bpf.c: the path in the unified hierarchy unless that is its root, else
 * in memory's, else in pids'. But container engines for version 1 do not move a
 * process in the unified hierarchy, so memory's or pids' comes first if its last
 * name is that of a container (64 characters or more).
 */
const char *procfs_cgroup(char *text);

#endif /* BASE_PROCFS_H */
