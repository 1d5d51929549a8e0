// SPDX-License-Identifier: Apache-2.0
/*
 * metrics_process: profd itself, without its worker processes, under the names
 * that Prometheus' client libraries use: process_*.
 */
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/metrics.h"

static int count_number(void *arg, uint32_t number)
{
	++*(unsigned int *)arg;
	return 0;
}

static void process_files(struct reporter_metrics *m)
{
	unsigned int n = 0;
	struct rlimit lim;

	if (!procfs_numbers("/proc/self/fd", count_number, &n) && n)
		reporter_metric(m, "process_open_fds",
				"file descriptors open now", false, NULL,
				n - 1); /* that of the directory itself */
	if (!getrlimit(RLIMIT_NOFILE, &lim))
		reporter_metric(m, "process_max_fds",
				"file descriptors open, at most", false, NULL,
				lim.rlim_cur);
}

/* See proc_pid_statm(5). */
static void process_memory(struct reporter_metrics *m)
{
	unsigned long long size, resident;
	long page = sysconf(_SC_PAGESIZE);
	char text[256];

	if (!procfs_text(getpid(), "statm", text, sizeof(text)) ||
	    sscanf(text, "%llu %llu", &size, &resident) != 2)
		return;
	reporter_metric(m, "process_resident_memory_bytes", "resident memory",
			false, NULL, (double)resident * page);
	reporter_metric(m, "process_virtual_memory_bytes", "virtual memory",
			false, NULL, (double)size * page);
}

static void process_start(struct reporter_metrics *m)
{
	struct procfs_stat st;
	double boot;

	if (!procfs_stat(getpid(), &st))
		return;
	boot = (double)st.start / CLOCK_NSEC_PER_SEC;
	reporter_metric(m, "process_start_time_seconds",
			"start, in seconds since the epoch", false, NULL,
			boot + (double)clock_wall_offset_ns() /
					CLOCK_NSEC_PER_SEC);
}

void metrics_process(struct reporter_metrics *m)
{
	struct timespec cpu;

	if (!clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu))
		reporter_metric(m, "process_cpu_seconds_total",
				"CPU time, user and system", true, NULL,
				cpu.tv_sec + (double)cpu.tv_nsec /
						     CLOCK_NSEC_PER_SEC);
	process_memory(m);
	process_files(m);
	process_start(m);
}
