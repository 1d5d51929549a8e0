/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfsource_proc: a process as /proc has it, where no BPF program can tell of
 * it. What cannot be read is unknown.
 */
#ifndef PROFILER_PERFSOURCE_PROC_H
#define PROFILER_PERFSOURCE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"

/* Of /proc/PID/stat. */
struct procfs_stat {
	char comm[ABI_COMM_LEN];
	char state;
	uint32_t ppid;
	bool kthread;
	uint64_t start; /* boot time, ns: a whole number of clock ticks */
};

/* 'text' need not be NUL-terminated. 0 or -EINVAL. */
int procfs_stat_parse(const char *text, size_t len, struct procfs_stat *out);

struct procfs_thread {
	uint32_t tid;
	char comm[ABI_COMM_LEN];
};

struct procfs_process {
	uint32_t pid;
	uint32_t uid, gid;
	struct procfs_stat stat;
	uint64_t begin; /* of the reading */
	/* NULL: unknown. */
	char *exe, *cwd, *cgroup, *cmdline;
	size_t cmdline_len;
	struct procfs_thread *threads;
	size_t nthreads;
};

/*
 * 'proc': "/proc", or a test's directory. One block of memory for free(3), which
 * begins 'front' bytes, a multiple of 8, before *out: they are the caller's.
 * 0 or -errno.
 */
int procfs_read(const char *proc, uint32_t pid, size_t front,
		struct procfs_process **out);

/* Nanoseconds a clock tick, in which /proc counts. */
uint64_t procfs_tick(void);

#endif /* PROFILER_PERFSOURCE_PROC_H */
