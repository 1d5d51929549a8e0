// SPDX-License-Identifier: Apache-2.0
/*
 * The cost of a sample: in the kernel by stack depth (run time and run count of the
 * program as the kernel counts them), in user space to unwind it, and once to load
 * the program. JSON lines. What a thread of Go costs more, whose goroutine is copied from
 * the stack that it left, is the difference of two loads that differ in nothing else.
 * The kernel has one counter for all samples: "own" is the
 * share that were of our own children, and a figure with much less than 1 there
 * includes stacks of other processes.
 */
#include <errno.h>
#include <pthread.h>
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
#include "tests/bench/tick.h"
#include "tracehandler/record.h"
#include "tracehandler/unwind/unwind.h"

#define BENCH_HZ 97
#define BENCH_MS 3000
#define BENCH_WALKS 200000
#define BENCH_CHILDREN 64

/* ns a sample, except for the deepest ones, which are few; and what Go costs more. */
#define BENCH_BUDGET 10000
#define BENCH_GO_BUDGET 700

/* The last nearly fills the largest copy, for which interrupts are off. */
static const struct load {
	int depth;
	bool thread; /* not the first one: its stack ends with its mapping */
	bool go; /* as in C code that a goroutine has called */
	bool wanted; /* ... and the sampling program is told */
} loads[] = {
	{ .depth = 10 },
	{ .depth = 30 },
	{ .depth = 60 },
	{ .depth = 10, .thread = true },
	{ .depth = 30, .thread = true },
	{ .depth = 2200 },
	{ .depth = 10, .go = true },
	{ .depth = 10, .go = true, .wanted = true },
};

#define GO_STACK 8192 /* of the goroutine, a quarter of it used */

/* Words of runtime.g, as bpf/sampler/sampler_go.bpf.h has them. */
enum {
	GO_LO,
	GO_HI,
	GO_M = 6,
	GO_SP
};

static __thread uint64_t *tls_g;

/* The samples of the children, and one complete sample of them. */
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

static void *descend_thread(void *arg)
{
	const struct load *load = arg;

	descend(load->depth);
	return NULL;
}

/* The memory of a thread that has left the goroutine for the stack of g0. */
static void go_memory(void)
{
	static uint64_t g0[16], curg[16], m[32];
	uint64_t here = (uintptr_t)__builtin_frame_address(0);
	uint8_t *stack = malloc(GO_STACK);

	if (!stack)
		_exit(1);
	memset(stack, 1, GO_STACK);
	g0[GO_LO] = here - 65536;
	g0[GO_HI] = here + 65536;
	g0[GO_M] = curg[GO_M] = (uintptr_t)m;
	m[0] = (uintptr_t)g0;
	m[ABI_GO_CURG / 8] = (uintptr_t)curg;
	curg[GO_LO] = (uintptr_t)stack;
	curg[GO_HI] = (uintptr_t)stack + GO_STACK;
	curg[GO_SP] = curg[GO_HI] - GO_STACK / 4;
	tls_g = g0;
}

static pid_t child(const struct load *load)
{
	pid_t pid = fork();
	pthread_t thread;

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (load->go)
		go_memory();
	if (!load->thread)
		descend(load->depth);
	else if (!pthread_create(&thread, NULL, descend_thread, (void *)load))
		pthread_join(thread, NULL);
	_exit(0);
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
			.here = rec.stack,
		};
		n = trace_unwind_fp(&stack, pcs, ARRAY_SIZE(pcs), &why);
	}
	ns = clock_boottime_ns() - begin;
	printf("{\"bench\":\"unwind_fp_ns_per_sample\",\"depth\":%d,"
	       "\"value\":%.1f,\"frames\":%zu}\n",
	       depth, (double)ns / BENCH_WALKS, n);
}

static int compare_ns(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

/*
 * Read more often than samples come, so that most readings have one new sample: the
 * longest of those and their median, which the few deep stacks of other processes do
 * not change.
 */
static uint64_t watch_runs(struct sampler *s, int prog, uint64_t *median)
{
	struct bpf_prog_info now = { 0 }, last = { 0 };
	static uint64_t runs[BENCH_MS];
	size_t n = 0;
	int i;

	for (i = 0; i < BENCH_MS; i++) {
		usleep(1000);
		if (i % 100 == 0)
			sampler_poll(s);
		if (tick_read(prog, &now))
			break;
		if (last.run_cnt && now.run_cnt == last.run_cnt + 1)
			runs[n++] = now.run_time_ns - last.run_time_ns;
		last = now;
	}
	sampler_poll(s);
	qsort(runs, n, sizeof(*runs), compare_ns);
	*median = n ? runs[n / 2] : 0;
	return n ? runs[n - 1] : 0;
}

/* '*median': of the time of one run, ns. */
static int measure(struct sampler *s, int prog, struct seen *seen,
		   const struct load *load, uint64_t *median)
{
	intptr_t tls = (intptr_t)&tls_g - (intptr_t)__builtin_thread_pointer();
	struct bpf_prog_info a = { 0 }, b = { 0 };
	/* Deep stacks of one user are limited. */
	size_t i,
		ncpus = load->depth > 1000 ? 1 : sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t longest;
	int err;

	seen->n = seen->bytes = 0;
	seen->npids = MIN(ncpus, ARRAY_SIZE(seen->pids));
	for (i = 0; i < seen->npids; i++) {
		seen->pids[i] = child(load);
		if (load->wanted)
			sampler_want_go(s, seen->pids[i], (int32_t)tls,
					ABI_GO_CURG);
	}
	usleep(100 * 1000);
	err = tick_read(prog, &a);
	longest = watch_runs(s, prog, median);
	if (!err)
		err = tick_read(prog, &b);
	for (i = 0; i < seen->npids; i++) {
		kill(seen->pids[i], SIGKILL);
		waitpid(seen->pids[i], NULL, 0);
	}
	if (err || b.run_cnt == a.run_cnt || !seen->n || !seen->one)
		return err ? err : -ENODATA;
	printf("{\"bench\":\"bpf_ns_per_sample\",\"depth\":%d,\"thread\":%s,"
	       "\"go\":%s,\"go_wanted\":%s,"
	       "\"value\":%.0f,\"median\":%llu,\"budget\":%d,"
	       "\"longest\":%llu,\"bytes\":%.0f,\"samples\":%llu,"
	       "\"own\":%.2f}\n",
	       load->depth, load->thread ? "true" : "false",
	       load->go ? "true" : "false", load->wanted ? "true" : "false",
	       (double)(b.run_time_ns - a.run_time_ns) /
		       (b.run_cnt - a.run_cnt),
	       (unsigned long long)*median, BENCH_BUDGET,
	       (unsigned long long)longest, (double)seen->bytes / seen->n,
	       (unsigned long long)(b.run_cnt - a.run_cnt),
	       (double)seen->n / (b.run_cnt - a.run_cnt));
	walk_record(seen, load->depth);
	return 0;
}

static int measure_all(struct sampler *s, int prog, struct seen *seen)
{
	uint64_t median = 0, before;
	size_t i;
	int err;

	for (i = 0; i < ARRAY_SIZE(loads); i++) {
		before = median;
		err = measure(s, prog, seen, &loads[i], &median);
		if (err)
			return err;
		if (loads[i].wanted && before)
			printf("{\"bench\":\"bpf_go_ns_per_sample\","
			       "\"value\":%lld,\"budget\":%d,"
			       "\"ratio\":%.3f}\n",
			       (long long)(median - before), BENCH_GO_BUDGET,
			       (double)median / (double)before);
	}
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
	uint32_t last = tick_last_program();
	uint64_t begin = clock_boottime_ns();
	struct bpf_prog_info info;
	const char *what = "";
	struct sampler *s = NULL;
	int err, prog, stats;

	stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	err = sampler_new(&s, &opts, &what);
	if (err || stats < 0) {
		fprintf(stderr, "bench_sampler: %s: %s\n",
			err ? what : "bpf statistics",
			strerror(err ? -err : -stats));
		return 1;
	}
	begin = clock_boottime_ns() - begin;
	prog = tick_find_program(last, &info);
	printf("{\"bench\":\"sampler_open_ms\",\"value\":%.2f,"
	       "\"verified_insns\":%u}\n",
	       begin / 1e6, prog < 0 ? 0 : info.verified_insns);
	err = prog < 0 ? prog : sampler_enable(s);
	if (!err)
		err = measure_all(s, prog, &seen);
	if (err)
		fprintf(stderr, "bench_sampler: %s\n", strerror(-err));
	sampler_free(s);
	free(seen.one);
	close(prog);
	close(stats);
	return !!err;
}
