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

#include "base/proc/procfs.h"
#include "bpf/abi.h"

struct perfsource_thread {
	uint32_t tid;
	char comm[ABI_COMM_LEN];
};

struct perfsource_process {
	uint32_t pid;
	uint32_t uid, gid;
	struct procfs_stat stat;
	uint64_t begin; /* of the reading */
	/* NULL: unknown. */
	char *exe, *cwd, *cgroup, *cmdline;
	size_t cmdline_len;
	struct perfsource_thread *threads;
	size_t nthreads;
};

/*
 * 'proc': "/proc", or a test's directory. One block of memory for free(3), which
 * begins 'front' bytes, a multiple of 8, before *out: they are the caller's.
 * 0 or -errno.
 */
int perfsource_process_read(const char *proc, uint32_t pid, size_t front,
			    struct perfsource_process **out);

#endif /* PROFILER_PERFSOURCE_PROC_H */
