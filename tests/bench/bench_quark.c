// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of libquark per process (fork, exec and exit of /bin/true), through its
 * public interface: user CPU time of the reader, BPF time in the kernel, memory,
 * latency from an event to its reader, also by the fill of the queue, many events of
 * one process, the highest rate without loss, and how the rate of processes changes
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

#include "processmanager/quark/priv.h"

#define LIVES 5000
#define RATE_LIVES 3000
#define PAIRS 3
#define LATENCIES 200
#define PEAK_LIVES 20000
#define HOLD_LENGTH 4500 /* short enough to be filled, see test_quark_hold.c */

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

/* KiB, of /proc/self/smaps: Pss of the rings and maps of the kernel, or of the rest. */
static long pss_kib(bool rings)
{
	bool ring = false;
	char line[4096];
	long sum = 0, n;
	FILE *f = fopen("/proc/self/smaps", "re");

	while (f && fgets(line, sizeof(line), f)) {
		/* The line of a mapping begins with its addresses. */
		if (sscanf(line, "%*x-%lx", &n) == 1)
			ring = strstr(line, "anon_inode:");
		if (sscanf(line, "Pss: %ld", &n) == 1 && ring == rings)
			sum += n;
	}
	if (f)
		fclose(f);
	return sum;
}

/*
 * Ends a while after the storm, so that the last events have come. Processes of
 * others count: their cost is included as well.
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
	long idle;
	size_t i;

	if (stats < 0)
		die("bpf_enable_stats");
	open_queue(&qq, 0, 1000);
	idle = pss_kib(false);
	cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	lives = read_storm(&qq, storm(LIVES));
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	quark_queue_get_stats(&qq, &st);
	for (i = 0; i < sizeof(progs) / sizeof(progs[0]); i++) {
		double ns = bpf_time(progs[i], &runs);

		/* A process has no rename of its own beside its exec. */
		if (runs && strcmp(progs[i], "quark_rename"))
			bpf += ns / runs;
	}
	printf("{\"bench\":\"quark_life\",\"lives\":%llu,\"lost\":%llu,"
	       "\"reader_cpu_us\":%.2f,\"bpf_us\":%.2f,"
	       "\"idle_pss_without_rings_kib\":%ld,"
	       "\"pss_without_rings_kib\":%ld,\"pss_rings_kib\":%ld}\n",
	       (unsigned long long)lives, (unsigned long long)st.lost,
	       cpu * 1e6 / lives, bpf / 1e3, idle, pss_kib(false),
	       pss_kib(true));
	quark_queue_close(&qq);
	close(stats);
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* From the time of the exit to its arrival at the reader. */
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

static void vfork_life(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	if (pid < 0 || waitpid(pid, NULL, 0) != pid)
		die("vfork");
}

/* The latency that quark(7) states for a fill, in ms. */
static double line_ms(int percent)
{
	if (percent < 10)
		return 1000;
	return percent < 90 ? (90 - percent) * 1000 / 80.0 : 0;
}

/*
 * A full queue that is read goes through all fills: median latency of the events at
 * each, and the difference to the stated one.
 */
static void bench_hold(void)
{
	static const int fills[] = { 95, 50, 20, 5 };
	static double late[4][HOLD_LENGTH], ms[4][HOLD_LENGTH];
	struct quark_queue_attr attr;
	struct quark_queue_priv *qq;
	struct quark_queue q;
	int n[4] = { 0 }, i;

	quark_queue_default_attr(&attr);
	attr.flags = QQ_EBPF | QQ_OWN_EVENTS;
	attr.max_env = 0;
	attr.max_length = HOLD_LENGTH;
	if (quark_queue_open(&q, &attr) < 0)
		die("open");
	qq = q.priv;
	for (i = 0; i < HOLD_LENGTH / 2; i++) {
		vfork_life();
		quark_queue_populate(&q);
	}
	while (!n[3]) {
		uint64_t joined = qq->stats.aggregations;
		const struct quark_event *ev = quark_queue_get_event(&q);
		double at, percent;

		if (!ev) {
			quark_queue_block(&q);
			continue;
		}
		at = now(CLOCK_BOOTTIME) * 1e3 - ev->boottime / 1e6;
		percent = (qq->order.count + qq->held.count + 1 +
			   qq->stats.aggregations - joined) *
			  100.0 / HOLD_LENGTH;
		for (i = 0; i < 4; i++) {
			if (percent < fills[i] - 2 || percent > fills[i] + 2 ||
			    n[i] == HOLD_LENGTH)
				continue;
			late[i][n[i]] = at - line_ms(percent + 0.5);
			ms[i][n[i]++] = at;
		}
	}
	quark_queue_close(&q);
	for (i = 0; i < 4; i++) {
		qsort(ms[i], n[i], sizeof(double), ascending);
		qsort(late[i], n[i], sizeof(double), ascending);
		printf("{\"bench\":\"quark_hold\",\"fill_percent\":%d,"
		       "\"line_ms\":%.1f,\"median_ms\":%.1f,"
		       "\"median_behind_line_ms\":%.1f}\n",
		       fills[i], line_ms(fills[i]), ms[i][n[i] / 2],
		       late[i][n[i] / 2]);
	}
}

/* One process changes its ids many times, which becomes one event. */
static void bench_chain(int changes)
{
	struct quark_queue_attr attr;
	struct quark_queue_stats st;
	struct quark_queue qq;
	double cpu;
	pid_t pid;
	int i;

	quark_queue_default_attr(&attr);
	attr.flags = QQ_EBPF;
	attr.max_env = 0;
	attr.max_length = 1 << 20;
	if (quark_queue_open(&qq, &attr) < 0)
		die("open");
	cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	pid = fork();
	if (pid < 0)
		die("fork");
	if (pid == 0) {
		/* The saved id remains root. */
		for (i = 0; i < changes; i++)
			if (setresuid(-1, i & 1 ? 0 : 1, -1))
				_exit(1);
		_exit(0);
	}
	read_storm(&qq, pid);
	cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	quark_queue_get_stats(&qq, &st);
	printf("{\"bench\":\"quark_chain\",\"changes\":%d,\"lost\":%llu,"
	       "\"aggregations\":%llu,\"reader_cpu_us_per_event\":%.3f}\n",
	       changes, (unsigned long long)st.lost,
	       (unsigned long long)st.aggregations, cpu * 1e6 / st.insertions);
	quark_queue_close(&qq);
}

/* As fast as the machine can, with 'workers': processes a second. */
static double peak(int workers, void (*life)(void), uint64_t *lost)
{
	double start, took = 0;
	struct quark_queue_stats st;
	struct quark_queue qq;
	pid_t pid;
	int i, k;

	open_queue(&qq, 0, 1000);
	start = now(CLOCK_MONOTONIC);
	pid = fork();
	if (pid == 0) {
		for (i = 0; i < workers; i++) {
			if (fork())
				continue;
			for (k = 0; k < PEAK_LIVES / workers; k++)
				life();
			_exit(0);
		}
		while (wait(NULL) > 0)
			;
		_exit(0);
	}
	while (!took) {
		if (quark_queue_get_event(&qq))
			continue;
		quark_queue_block(&qq);
		if (waitpid(pid, NULL, WNOHANG) == pid)
			took = now(CLOCK_MONOTONIC) - start;
	}
	while (quark_queue_get_event(&qq))
		;
	quark_queue_get_stats(&qq, &st);
	*lost = st.lost;
	quark_queue_close(&qq);
	return PEAK_LIVES / took;
}

/* The highest rate without loss that the machine reached. */
static void bench_peak(const char *name, void (*life)(void))
{
	double best = 0, most = 0, r;
	uint64_t lost, sum = 0;
	int workers;

	for (workers = 1; workers <= 8; workers *= 2) {
		r = peak(workers, life, &lost);
		sum += lost;
		most = MAX(most, r);
		if (!lost)
			best = MAX(best, r);
	}
	printf("{\"bench\":\"quark_peak\",\"life\":\"%s\","
	       "\"lives_per_s_without_loss\":%.0f,\"lives_per_s\":%.0f,"
	       "\"lost\":%llu}\n",
	       name, best, most, (unsigned long long)sum);
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
	bench_hold();
	bench_chain(10000);
	bench_chain(100000);
	bench_peak("vfork, _exit", vfork_life);
	bench_peak("posix_spawn /bin/true", one_life);
	bench_rate();
	return 0;
}
