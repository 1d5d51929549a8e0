// SPDX-License-Identifier: Apache-2.0
/*
 * What a sample costs: in the kernel by stack depth (run time and run count of
 * the program as the kernel keeps them), in user space to walk it, and once to
 * load the program. JSON lines. The kernel keeps one account for all samples:
 * the share of them that were of our own children is "own", and a figure with
 * much less than 1 there is one of the neighbours' stacks as well.
 */
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <bpf/bpf.h>

#include "base/base.h"
#include "profiler/source/sampler.h"
#include "tracehandler/record.h"
#include "tracehandler/unwind/unwind.h"

#define BENCH_HZ 97
#define BENCH_MS 3000
#define BENCH_WALKS 200000
#define BENCH_CHILDREN 64

/* The last nearly fills the largest copy: interrupts are off for so long. */
static const int depths[] = { 10, 30, 60, 2200 };

/* What came of the children, and one whole sample of them. */
struct seen {
	pid_t pids[BENCH_CHILDREN];
	size_t npids;
	uint64_t n, bytes;
	void *one;
	size_t len;
};

static void seen_sample(void *arg, const struct abi_sample *rec, size_t len)
{
	struct seen *s = arg;
	size_t i;

	for (i = 0; i < s->npids; i++)
		if (rec->key.tgid == (uint32_t)s->pids[i])
			break;
	if (i == s->npids)
		return;
	s->n++;
	s->bytes += len;
	if (!(rec->flags & ABI_SAMPLE_USER))
		return;
	free(s->one);
	s->one = malloc(len);
	if (s->one)
		memcpy(s->one, rec, s->len = len);
}

static volatile uint64_t sink, stop;

static __attribute__((noipa)) void spin(void)
{
	while (!stop)
		sink++;
}

static __attribute__((noipa)) void descend(int depth)
{
	volatile char frame[80]; /* 112 bytes a frame, all in all */

	frame[0] = depth;
	if (depth)
		descend(depth - 1);
	else
		spin();
	sink += frame[0];
}

static pid_t child(int depth)
{
	pid_t pid = fork();

	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		descend(depth);
		_exit(0);
	}
	return pid;
}

/* The program was loaded after 'last': its descriptor, or -errno. */
static int find_program(uint32_t last, struct bpf_prog_info *info)
{
	uint32_t len, id = last;
	int fd;

	while (!bpf_prog_get_next_id(id, &id)) {
		fd = bpf_prog_get_fd_by_id(id);
		if (fd < 0)
			continue;
		memset(info, 0, sizeof(*info));
		len = sizeof(*info);
		if (!bpf_obj_get_info_by_fd(fd, info, &len) &&
		    !strcmp(info->name, "sampler_tick"))
			return fd;
		close(fd);
	}
	return -ENOENT;
}

static uint32_t last_program(void)
{
	uint32_t id = 0;

	while (!bpf_prog_get_next_id(id, &id))
		;
	return id;
}

static void walk_record(const struct seen *s, int depth)
{
	uint64_t pcs[128], begin, ns;
	struct trace_stack stack;
	struct trace_record rec;
	enum trace_end why;
	size_t i, n = 0;

	begin = clock_boottime_ns();
	for (i = 0; i < BENCH_WALKS; i++) {
		if (trace_record_parse(s->one, s->len, &rec))
			return;
		stack = (struct trace_stack){
			.regs = &rec.regs,
			.here = { rec.stack_bytes, rec.stack.start,
				  rec.stack.size, rec.stack.end,
				  rec.stack.holes },
		};
		n = trace_unwind_fp(&stack, pcs, ARRAY_SIZE(pcs), &why);
	}
	ns = clock_boottime_ns() - begin;
	printf("{\"bench\":\"unwind_fp_ns_per_sample\",\"depth\":%d,"
	       "\"value\":%.1f,\"frames\":%zu}\n",
	       depth, (double)ns / BENCH_WALKS, n);
}

/*
 * Looked at more often than samples come: the longest of those that were alone
 * since the last look.
 */
static uint64_t longest_run(struct sampler *s, int prog)
{
	struct bpf_prog_info now = { 0 }, last = { 0 };
	uint64_t longest = 0;
	uint32_t len;
	int i;

	for (i = 0; i < BENCH_MS; i++) {
		usleep(1000);
		if (i % 100 == 0)
			sampler_poll(s);
		len = sizeof(now);
		memset(&now, 0, sizeof(now));
		if (bpf_obj_get_info_by_fd(prog, &now, &len))
			break;
		if (last.run_cnt && now.run_cnt == last.run_cnt + 1)
			longest = MAX(longest,
				      now.run_time_ns - last.run_time_ns);
		last = now;
	}
	sampler_poll(s);
	return longest;
}

static int measure(struct sampler *s, int prog, struct seen *seen, int depth)
{
	struct bpf_prog_info a = { 0 }, b = { 0 };
	/* Deep ones of one user are limited. */
	size_t i, ncpus = depth > 1000 ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t len = sizeof(a);
	uint64_t longest;
	int err;

	seen->n = seen->bytes = 0;
	seen->npids = MIN(ncpus, ARRAY_SIZE(seen->pids));
	for (i = 0; i < seen->npids; i++)
		seen->pids[i] = child(depth);
	usleep(100 * 1000);
	err = bpf_obj_get_info_by_fd(prog, &a, &len);
	longest = longest_run(s, prog);
	len = sizeof(b);
	if (!err)
		err = bpf_obj_get_info_by_fd(prog, &b, &len);
	for (i = 0; i < seen->npids; i++) {
		kill(seen->pids[i], SIGKILL);
		waitpid(seen->pids[i], NULL, 0);
	}
	if (err || b.run_cnt == a.run_cnt || !seen->n || !seen->one)
		return err ? err : -ENODATA;
	printf("{\"bench\":\"bpf_ns_per_sample\",\"depth\":%d,\"value\":%.0f,"
	       "\"longest\":%llu,\"bytes\":%.0f,\"samples\":%llu,"
	       "\"own\":%.2f}\n",
	       depth,
	       (double)(b.run_time_ns - a.run_time_ns) /
		       (b.run_cnt - a.run_cnt),
	       (unsigned long long)longest, (double)seen->bytes / seen->n,
	       (unsigned long long)(b.run_cnt - a.run_cnt),
	       (double)seen->n / (b.run_cnt - a.run_cnt));
	walk_record(seen, depth);
	return 0;
}

int main(void)
{
	struct seen seen = { 0 };
	struct sampler_opts opts = {
		.freq_hz = BENCH_HZ,
		.sample = seen_sample,
		.arg = &seen,
	};
	uint32_t last = last_program();
	uint64_t begin = clock_boottime_ns();
	struct bpf_prog_info info;
	const char *what = "";
	struct sampler *s = NULL;
	int err, prog, stats;
	size_t i;

	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	err = sampler_new(&s, &opts, &what);
	if (err || stats < 0) {
		fprintf(stderr, "bench_sampler: %s: %s\n",
			err ? what : "bpf statistics",
			strerror(err ? -err : -stats));
		return 1;
	}
	begin = clock_boottime_ns() - begin;
	prog = find_program(last, &info);
	printf("{\"bench\":\"sampler_open_ms\",\"value\":%.2f,"
	       "\"verified_insns\":%u}\n",
	       begin / 1e6, prog < 0 ? 0 : info.verified_insns);
	err = prog < 0 ? prog : sampler_enable(s);
	for (i = 0; i < ARRAY_SIZE(depths) && !err; i++)
		err = measure(s, prog, &seen, depths[i]);
	if (err)
		fprintf(stderr, "bench_sampler: %s\n", strerror(-err));
	sampler_free(s);
	free(seen.one);
	close(prog);
	close(stats);
	return !!err;
}
