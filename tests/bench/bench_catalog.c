// SPDX-License-Identifier: Apache-2.0
/*
 * What a process costs in the catalog, from its end to its rows on disk: CPU time of
 * all threads, that of the loop alone, and bytes. As in a build: a shell, which has the
 * arguments of its parent, then a compiler with its own; two images each, a parent per
 * hundred.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "reporter/catalog/catalog.h"
#include "tests/unit/reporter/test_reporter_pm.h"

#define N 100000
#define TOGETHER 200 /* processes, each time that the loop turns */
#define BENCH_SEC CLOCK_NSEC_PER_SEC

static int jobs;

static void on_job(void *arg, bool ended)
{
	jobs += ended ? -1 : 1;
}

static double cpu_s(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec + t.tv_nsec / 1e9;
}

/* Arguments, of which a copy is made before the next call. */
static size_t args_of(char args[256], int n, int gen)
{
	int len =
		gen ? snprintf(args, 256,
			       "gcc -O2 -c -o path/to/some_file%d.o -Iinclude "
			       "path/to/some_file%d.c",
			       n, n)
		    : snprintf(args, 256,
			       "/bin/sh -c gcc -O2 -c -o \"$@\" -Iinclude; "
			       "directory %d",
			       n / 100);

	for (int i = 0; i < len; i++)
		args[i] = args[i] == ' ' ? '\0' : args[i];
	return (size_t)len + 1;
}

static struct pm_image_info image_of(uint32_t pid, uint64_t start, int gen,
				     int n)
{
	static char args[2][256];
	struct pm_image_info i = {
		.serial = start + gen,
		.begin = start + gen * 1000000,
		.comm = gen ? "gcc" : "sh",
		.exe = gen ? "/usr/bin/x86_64-linux-gnu-gcc-12"
			   : "/usr/bin/dash",
		.cmdline = args[gen],
		.cmdline_len = args_of(args[gen], n, gen),
		.cwd = "/home/user/src/project",
		.cgroup = "/user.slice/user-1000.slice/session-2.scope",
	};

	snprintf(i.image_id, sizeof(i.image_id), "%u-%llx-%d", pid,
		 (unsigned long long)start, gen);
	return i;
}

static struct pm_image process_of(int n)
{
	uint64_t start = 1000 * BENCH_SEC + n * BENCH_SEC / 2000;
	uint32_t pid = 1000 + n % 30000;
	struct pm_image img = {
		.info = image_of(pid, start, 1, n),
		.process = { .pid = pid,
			     .ppid = 999,
			     .start = start,
			     .exit = start + 5000000,
			     .reap = start + 5100000,
			     .end = PM_REAPED,
			     .wait_status = n % 50 ? 0 : 1 << 8,
			     .cpu = PM_CPU_EXACT,
			     .cpu_ns = 4000000,
			     .samples = n % 3 == 0 },
	};

	snprintf(img.process.process_id, sizeof(img.process.process_id),
		 "%u-%llx", pid, (unsigned long long)start);
	snprintf(img.process.parent_id, sizeof(img.process.parent_id), "%u-%x",
		 999, n / 100);
	return img;
}

/* The threads that write. This one makes the processes, too. */
static double others_s(void)
{
	return cpu_s(CLOCK_PROCESS_CPUTIME_ID) - cpu_s(CLOCK_THREAD_CPUTIME_ID);
}

static double bench_run(struct catalog *c, uv_loop_t *loop)
{
	struct pm_image img, shell;
	double loop_s = 0, begin;
	int i;

	older[0] = &shell;
	for (i = 0; i < N; i++) {
		img = process_of(i);
		shell.info = image_of(img.process.pid, img.process.start, 0, i);
		begin = cpu_s(CLOCK_THREAD_CPUTIME_ID);
		catalog_ended(c, &img);
		loop_s += cpu_s(CLOCK_THREAD_CPUTIME_ID) - begin;
		while (i % TOGETHER == 0 && jobs)
			uv_run(loop, UV_RUN_ONCE);
	}
	return loop_s;
}

int main(void)
{
	char dir[] = "/tmp/bench_catalog.XXXXXX", cmd[64];
	struct catalog_opts o = { .dir = dir, .freq_hz = 99, .job = on_job };
	double begin, loop_s, all_s;
	struct catalog_stats s;
	struct catalog *c;
	uv_loop_t loop;

	if (!mkdtemp(dir) || uv_loop_init(&loop))
		return 1;
	o.loop = &loop;
	begin = others_s();
	if (catalog_new(&c, &o))
		return 1;
	loop_s = bench_run(c, &loop);
	catalog_stop(c);
	uv_run(&loop, UV_RUN_DEFAULT);
	all_s = others_s() - begin + loop_s;
	catalog_get_stats(c, &s);
	printf("{\"bench\":\"catalog\",\"processes\":%llu,\"dropped\":%llu,"
	       "\"us_each\":%.2f,\"loop_us_each\":%.2f,\"bytes_each\":%.0f}\n",
	       (unsigned long long)s.catalog_processes,
	       (unsigned long long)s.catalog_dropped, all_s * 1e6 / N,
	       loop_s * 1e6 / N, (double)s.catalog_bytes / N);
	catalog_free(c);
	uv_loop_close(&loop);
	snprintf(cmd, sizeof(cmd), "rm -rf %s", dir);
	return system(cmd);
}
