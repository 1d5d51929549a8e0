// SPDX-License-Identifier: Apache-2.0
/*
 * metrics_process: profd itself, without its worker processes, under the names
 * that Prometheus' client libraries use: process_*; and the CPU time of its child
 * processes.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

static double process_seconds(clockid_t clock)
{
	struct timespec cpu;

	if (clock_gettime(clock, &cpu))
		return 0;
	return cpu.tv_sec + (double)cpu.tv_nsec / CLOCK_NSEC_PER_SEC;
}

static double process_timeval(const struct timeval *tv)
{
	return tv->tv_sec + tv->tv_usec / 1e6;
}

/*
 * Of all child processes: those that were waited for, and the others. The loop's
 * thread starts all of them. Without CONFIG_PROC_CHILDREN only the first are known.
 */
static double process_helpers_seconds(void)
{
	char path[64], text[4096], *end, *s = text;
	struct rusage ended;
	clockid_t clock;
	double sum = 0;
	pid_t pid;

	if (!getrusage(RUSAGE_CHILDREN, &ended))
		sum = process_timeval(&ended.ru_utime) +
		      process_timeval(&ended.ru_stime);
	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	if (procfs_read(AT_FDCWD, path, text, sizeof(text)) <= 0)
		return sum;
	for (; (pid = strtol(s, &end, 10)) > 0 && end != s; s = end)
		if (!clock_getcpuclockid(pid, &clock))
			sum += process_seconds(clock);
	return sum;
}

void metrics_status_cpu(struct reporter_metrics *m)
{
	double own = process_seconds(CLOCK_PROCESS_CPUTIME_ID);
	double helpers = process_helpers_seconds();

	reporter_status(m, "CPU time", "%.2f s, and %.2f s of helper processes",
			own, helpers);
	reporter_member_real(m, "cpu", "own_seconds", own);
	reporter_member_real(m, "cpu", "helper_seconds", helpers);
}

void metrics_process(struct reporter_metrics *m)
{
	reporter_metric(m, "process_cpu_seconds_total",
			"CPU time, user and system", true, NULL,
			process_seconds(CLOCK_PROCESS_CPUTIME_ID));
	reporter_metric(m, "profd_helper_cpu_seconds_total",
			"CPU time of all helper processes, ended or not: "
			"they open and read files and mappings",
			true, NULL, process_helpers_seconds());
	process_memory(m);
	process_files(m);
	process_start(m);
}
