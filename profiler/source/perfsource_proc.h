/* SPDX-License-Identifier: Apache-2.0 */
/*
 * perfsource_proc: a process as /proc has it, for hosts without BPF. What
 * cannot be read is unknown.
 */
#ifndef PROFILER_PERFSOURCE_PROC_H
#define PROFILER_PERFSOURCE_PROC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/proc/patience.h"
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
 * 'proc': "/proc", or a test's directory. *out is in one block for free(3),
 * which begins 'front' bytes, a multiple of 8, before it; the caller uses
 * those. 0 or -errno.
 */
int perfsource_process_read(const char *proc, uint32_t pid, size_t front,
			    struct perfsource_process **out);

/*
 * Readings that may wait for ever: /proc/PID takes locks that the process may
 * hold as long as it likes. A thread makes them, which is abandoned when it
 * waits (base/proc/patience.h). Its process is not read for a minute, nor are
 * other processes of a user with two such processes; and at most ten readings a
 * minute may wait, a second in all. All zeros at the start; the loop's thread
 * only.
 */
#define PERFSOURCE_READINGS_MAX 64
#define PERFSOURCE_HUNG_MAX 10

struct perfsource_reader {
	struct patience patience;
	size_t nhung;
	struct perfsource_hung {
		uint32_t pid, uid;
		uint64_t until; /* CLOCK_BOOTTIME, ns */
	} hung[PERFSOURCE_HUNG_MAX];
	uint64_t unread; /* processes that did not answer, or were not read */
};

struct perfsource_reading {
	uint32_t pid;
	/* As perfsource_process_read(); -EAGAIN: no answer, or not read. */
	int err;
	/* Likewise; with -EAGAIN only its owner, or NULL. */
	struct perfsource_process *out;
};

/* Reads 'n' of them, PERFSOURCE_READINGS_MAX at most, from 'proc' (static). */
void perfsource_reader_run(struct perfsource_reader *rd, const char *proc,
			   struct perfsource_reading *readings, size_t n,
			   size_t front);
void perfsource_reader_fini(struct perfsource_reader *rd);

#endif /* PROFILER_PERFSOURCE_PROC_H */
