// SPDX-License-Identifier: Apache-2.0
/*
 * What libquark costs a process life (fork, exec and exit of /bin/true), as the
 * published interface has it: user CPU of the reader, BPF time in the kernel,
 * memory, latency from an event to its reader, and how the rate of lives changes
 * while quark-mon runs.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "processmanager/quark/quark.h"

#define LIVES 5000
#define RATE_LIVES 3000
#define PAIRS 3
#define LATENCIES 200

static void die(const char *what)
{
	fprintf(stderr, "bench_quark: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double now(clockid_t id)
{
	struct timespec ts;

	clock_gettime(id, &ts);
	return ts.tv_sec + ts.tv_nsec / 1e9;
}

static void one_life(void)
{
	char *argv[] = { "true", NULL }, *env[] = { NULL };
	pid_t pid;

	if (posix_spawn(&pid, "/bin/true", NULL, NULL, argv, env))
		die("/bin/true");
	waitpid(pid, NULL, 0);
}

static pid_t storm(int lives)
{
	pid_t pid = fork();
	int i;

	if (pid < 0)
		die("fork");
	if (pid)
		return pid;
	for (i = 0; i < lives; i++)
		one_life();
	_exit(0);
}

static void open_queue(struct quark_queue *qq, int flags, int hold)
{
	struct quark_queue_attr attr;

	quark_queue_default_attr(&attr);
	attr.flags = QQ_EBPF | flags;
	attr.max_env = 0;
	attr.hold_time = hold;
	if (quark_queue_open(qq, &attr) < 0) {
		fprintf(stderr, "bench_quark: %s\n", quark_queue_open_error());
		exit(1);
	}
}

/* Run time and runs of libquark's programs, ns. */
static double bpf_time(const char *name, double *runs)
{
	double sum = 0;
	__u32 id = 0;

	*runs = 0;
	while (!bpf_prog_get_next_id(id, &id)) {
		struct bpf_prog_info info = { 0 };
		__u32 len = sizeof(info);
		int fd = bpf_prog_get_fd_by_id(id);

		if (fd < 0)
			continue;
		if (!bpf_obj_get_info_by_fd(fd, &info, &len) &&
		    !strcmp(info.name, name)) {
			sum += info.run_time_ns;
			*runs += info.run_cnt;
		}
		close(fd);
	}
	return sum;
}

/* KiB, of /proc/self/status. */
static long status_kib(const char *field)
{
	char line[256];
	long v = -1;
	FILE *f = fopen("/proc/self/status", "re");

	while (f && fgets(line, sizeof(line), f))
		if (!strncmp(line, field, strlen(field)))
			v = atol(line + strlen(field) + 1);
	if (f)
		fclose(f);
	return v;
}

/*
 * Ends a while after the storm, so that the last life has come out. Lives of
 * others count: their cost is in it as well.
 */
static uint64_t read_storm(struct quark_queue *qq, pid_t pid)
{
	double end = 0;
	uint64_t lives = 0;

	while (!end || now(CLOCK_MONOTONIC) < end) {
		const struct quark_event *ev = quark_queue_get_event(qq);

		if (ev) {
			lives += !!(ev->events & QUARK_EV_EXIT);
			continue;
		}
		quark_queue_block(qq);
		if (!end && waitpid(pid, NULL, WNOHANG) == pid)
			end = now(CLOCK_MONOTONIC) + 1.5;
	}
	return lives;
}

static void bench_cost(void)
{
	static const char *const progs[] = { "quark_fork", "quark_exec",
					     "quark_exit", "quark_reap",
					     "quark_rename" };
	int stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	struct quark_queue_stats st;
	struct quark_queue qq;
	double cpu, runs, bpf = 0;
	uint64_t lives;
	size_t i;

	if (stats < 0)
		die("bpf_enable_stats");
	open_queue(&qq, 0, 1000);
	cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	lives = read_storm(&qq, storm(LIVES));
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	quark_queue_get_stats(&qq, &st);
	for (i = 0; i < sizeof(progs) / sizeof(progs[0]); i++) {
		double ns = bpf_time(progs[i], &runs);

		/* A life has none of its own beside its exec. */
		if (runs && strcmp(progs[i], "quark_rename"))
			bpf += ns / runs;
	}
	printf("{\"bench\":\"quark_life\",\"lives\":%llu,\"lost\":%llu,"
	       "\"reader_cpu_us\":%.2f,\"bpf_us\":%.2f,\"rss_kib\":%ld,"
	       "\"rss_anon_kib\":%ld}\n",
	       (unsigned long long)lives, (unsigned long long)st.lost,
	       cpu * 1e6 / lives, bpf / 1e3, status_kib("VmRSS"),
	       status_kib("RssAnon"));
	quark_queue_close(&qq);
	close(stats);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* From the exit's own time to the moment when the reader has it. */
static void bench_latency(const char *name, int flags, int hold)
{
	double ms[LATENCIES];
	struct quark_queue qq;
	int n = 0;

	open_queue(&qq, flags, hold);
	while (n < LATENCIES) {
		const struct quark_event *ev;
		double end;

		one_life();
		end = now(CLOCK_MONOTONIC) + 0.03;
		while (n < LATENCIES && now(CLOCK_MONOTONIC) < end) {
			ev = quark_queue_get_event(&qq);
			if (!ev)
				quark_queue_block(&qq);
			else if (ev->events & QUARK_EV_EXIT)
				ms[n++] = now(CLOCK_BOOTTIME) * 1e3 -
					  ev->boottime / 1e6;
		}
	}
	qsort(ms, LATENCIES, sizeof(ms[0]), ascending);
	printf("{\"bench\":\"quark_latency\",\"mode\":\"%s\","
	       "\"median_ms\":%.2f,\"p99_ms\":%.2f}\n",
	       name, ms[LATENCIES / 2], ms[LATENCIES * 99 / 100]);
	quark_queue_close(&qq);
}

static pid_t start_mon(void)
{
	const char *build = getenv("B");
	char path[4096];
	pid_t pid = fork();
	int fd;

	if (pid)
		return pid;
	snprintf(path, sizeof(path), "%s/quark-mon", build ? build : "build");
	fd = open("/dev/null", O_WRONLY);
	dup2(fd, 1);
	dup2(fd, 2);
	execl(path, "quark-mon", NULL);
	_exit(127);
}

static double rate(void)
{
	double start = now(CLOCK_MONOTONIC);

	waitpid(storm(RATE_LIVES), NULL, 0);
	return RATE_LIVES / (now(CLOCK_MONOTONIC) - start);
}

static void bench_rate(void)
{
	double with[PAIRS], without[PAIRS], ratio[PAIRS];
	int i, status;
	pid_t mon;

	for (i = 0; i < PAIRS; i++) {
		without[i] = rate();
		mon = start_mon();
		sleep(1);
		with[i] = rate();
		kill(mon, SIGINT);
		if (waitpid(mon, &status, 0) != mon || status)
			die("quark-mon");
		ratio[i] = with[i] / without[i];
	}
	qsort(with, PAIRS, sizeof(with[0]), ascending);
	qsort(without, PAIRS, sizeof(without[0]), ascending);
	qsort(ratio, PAIRS, sizeof(ratio[0]), ascending);
	printf("{\"bench\":\"quark_rate\",\"lives_per_s\":%.0f,"
	       "\"lives_per_s_with_quark_mon\":%.0f,\"ratio\":%.3f}\n",
	       without[PAIRS / 2], with[PAIRS / 2], ratio[PAIRS / 2]);
}

int main(void)
{
	bench_cost();
	bench_latency("QQ_NO_AGG", QQ_NO_AGG, 0);
	bench_latency("QQ_MIN_AGG, hold_time 10", QQ_MIN_AGG, 10);
	bench_rate();
	return 0;
}
