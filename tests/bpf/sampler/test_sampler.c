// SPDX-License-Identifier: Apache-2.0
/*
 * The sample stream of the real kernel: children that each do one known thing, and
 * their records.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/sampler.h"
#include "tracehandler/record.h"

#define RUN_MS 400 /* at least, and until a child has had: */
#define CPU_NS 100000000ULL /* a tenth of a second */
#define PAGE 4096UL
/*
 * Where copying is slower than sampling (an emulated machine), the ring fills faster
 * than it is drained: the samples so far are enough.
 */
#define BYTES_MAX (512UL << 20)

/* --- collected samples --------------------------------------------------- */

struct samples {
	struct trace_record *recs;
	void **bufs;
	size_t n, cap;
	size_t bytes;
	size_t bad;
};

static void collect(void *arg, const struct abi_sample *rec, size_t len)
{
	struct samples *all = arg;
	void *copy;

	if (all->bytes + len > BYTES_MAX)
		return;
	all->bytes += len;
	copy = malloc(len);
	assert_non_null(copy);
	memcpy(copy, rec, len);
	if (all->n == all->cap) {
		all->cap = all->cap ? all->cap * 2 : 1024;
		all->recs = realloc(all->recs, all->cap * sizeof(*all->recs));
		all->bufs = realloc(all->bufs, all->cap * sizeof(*all->bufs));
		assert_non_null(all->recs);
		assert_non_null(all->bufs);
	}
	if (trace_record_parse(copy, len, &all->recs[all->n]))
		all->bad++;
	all->bufs[all->n++] = copy;
}

static void samples_fini(struct samples *all)
{
	size_t i;

	for (i = 0; i < all->n; i++)
		free(all->bufs[i]);
	free(all->bufs);
	free(all->recs);
}

static struct sampler *start(struct samples *all, unsigned int hz, size_t cap,
			     size_t ring)
{
	struct sampler_opts opts = {
		.freq_hz = hz,
		.stack_copy = cap,
		.ring_bytes = ring,
		.sample = collect,
		.arg = all,
	};
	const char *what = "nothing";
	struct sampler *s = NULL;
	int err = sampler_new(&s, &opts, &what);

	if (err)
		fail_msg("sampler_new: %s: %s", what, strerror(-err));
	assert_int_equal(sampler_enable(s), 0);
	return s;
}

static pid_t spawn(void (*fn)(void *), void *arg)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn(arg);
		_exit(0);
	}
	return pid;
}

static void end(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Even if a busy machine gives it little. */
static void sample(struct sampler *s, pid_t pid, uint64_t cpu_ns)
{
	struct timespec ts = { 0 };
	clockid_t clock;
	int i;

	assert_int_equal(clock_getcpuclockid(pid, &clock), 0);
	for (i = 0;
	     i < RUN_MS / 20 ||
	     (i < 6000 && ts.tv_sec * 1000000000ULL + ts.tv_nsec < cpu_ns);
	     i++) {
		usleep(20000);
		assert_true(sampler_poll(s) >= 0);
		assert_int_equal(clock_gettime(clock, &ts), 0);
	}
}

/* Samples everything while a child runs fn(arg). */
static pid_t watch(struct samples *all, size_t cap, void (*fn)(void *),
		   void *arg, uint64_t cpu_ns)
{
	struct sampler *s = start(all, 997, cap, 64 << 20);
	pid_t pid = spawn(fn, arg);

	sample(s, pid, cpu_ns);
	end(pid);
	sampler_disable(s);
	assert_true(sampler_poll(s) >= 0);
	sampler_free(s);
	assert_int_equal(all->bad, 0);
	return pid;
}

/* Iterates over the samples of one process. */
static const struct trace_record *next(const struct samples *all, size_t *i,
				       pid_t tgid)
{
	while (*i < all->n) {
		const struct trace_record *r = &all->recs[(*i)++];

		if (r->head.key.tgid == (uint32_t)tgid)
			return r;
	}
	return NULL;
}

/* --- sampled processes --------------------------------------------------- */

static volatile uint64_t sink, stop; /* 'stop' is never set */

static __attribute__((noinline)) void leaf_spin(void)
{
	while (!stop)
		sink++;
}

static bool in_leaf(const struct trace_record *r)
{
	return r->has_regs && r->regs.ip - (uintptr_t)leaf_spin < 32 &&
	       r->stack.end != ABI_STACK_RING; /* the reader is slow */
}

static __attribute__((noipa)) void descend(int depth)
{
	volatile char frame[1024];

	frame[0] = depth;
	if (depth)
		descend(depth - 1);
	else
		leaf_spin();
	sink += frame[0];
}

static void child_spin(void *arg)
{
	descend(*(int *)arg);
}

static void child_syscalls(void *arg)
{
	int fd = open("/dev/null", O_WRONLY);
	char buf[64] = "";

	while (write(fd, buf, sizeof(buf)) >= 0)
		sink++;
}

static void child_exec_once(void *arg)
{
	while (clock() < CLOCKS_PER_SEC / 20)
		sink++;
	execl("/proc/self/exe", "spinner", "--spin", NULL);
}

static void child_exec_often(void *arg)
{
	for (;;) {
		pid_t pid = fork();

		if (!pid)
			execl("/bin/true", "true", NULL);
		waitpid(pid, NULL, 0);
	}
}

static void child_netns(void *arg)
{
	while (!unshare(CLONE_NEWNET))
		sink++;
}

/* --- key, time, CPU ------------------------------------------------------ */

/* In clock ticks, field 22 of proc(5)'s /proc/PID/stat. */
static unsigned long long start_ticks(pid_t pid)
{
	char path[64], buf[1024] = "", *p;
	unsigned long long v = 0;
	int i;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	f = fopen(path, "r");
	assert_non_null(f);
	assert_true(fread(buf, 1, sizeof(buf) - 1, f) > 0);
	fclose(f);
	p = strrchr(buf, ')');
	assert_non_null(p);
	for (i = 2, p++; i < 21; i++)
		p = strchr(p + 1, ' ');
	assert_int_equal(sscanf(p, "%llu", &v), 1);
	return v;
}

static void test_user_code(void **state)
{
	struct samples all = { 0 };
	const struct trace_record *r;
	struct sampler *s = start(&all, 997, 0, 0);
	uint64_t tick = 1000000000 / sysconf(_SC_CLK_TCK);
	uint64_t before = clock_boottime_ns(), leaf = 0, user = 0, seen = 0;
	unsigned long long ticks;
	int depth = 10;
	pid_t pid = spawn(child_spin, &depth);
	size_t i = 0;

	ticks = start_ticks(pid);
	sample(s, pid, CPU_NS);
	end(pid);
	sampler_free(s);
	assert_int_equal(all.bad, 0);
	while ((r = next(&all, &i, pid))) {
		seen++;
		assert_int_equal(r->head.tid, pid);
		assert_int_equal(r->head.key.start_boottime / tick, ticks);
		assert_in_range(r->head.time, before, clock_boottime_ns());
		assert_string_equal(r->head.comm,
				    program_invocation_short_name);
		if (!(r->head.flags & ABI_SAMPLE_USER))
			continue;
		user++;
		assert_int_equal(r->nkstack, 0);
		assert_true(r->has_regs && r->has_stack);
		leaf += in_leaf(r);
	}
	assert_true(seen > 5);
	assert_true(leaf > user / 2);
	samples_fini(&all);
}

/* The used part of the stack: from below sp to argc. */
static void test_stack_copy(void **state)
{
	struct samples all = { 0 };
	const struct trace_record *r;
	int depth = 20, frames;
	pid_t pid = watch(&all, 0, child_spin, &depth, CPU_NS);
	uint64_t sp, fp, ret, n = 0;
	size_t i = 0;

	while ((r = next(&all, &i, pid))) {
		if (!in_leaf(r))
			continue;
		n++;
		sp = r->regs.gpr[ABI_REG_SP];
		assert_int_equal(r->stack.start, (sp - 128) & ~255ULL);
		assert_int_equal(r->stack.end, ABI_STACK_WHOLE);
		assert_in_range(r->stack.size, 20 * 1024, 64 * 1024);
		fp = r->regs.gpr[ABI_REG_BP];
		/* gcc makes no frame for the leaf */
		for (frames = 0; frames < depth; frames++) {
			uint64_t at = fp - r->stack.start;

			assert_in_range(fp, sp, sp + r->stack.size - 512);
			memcpy(&ret, r->stack.bytes + at + 8, 8);
			assert_in_range(ret, (uintptr_t)descend,
					(uintptr_t)descend + 256);
			memcpy(&fp, r->stack.bytes + at, 8);
		}
	}
	assert_true(n > 0);
	samples_fini(&all);
}

/* Depth in KiB, cap, and how the copy must end. */
static void check_cap(int depth, size_t cap, enum abi_stack_end why, size_t min)
{
	struct samples all = { 0 };
	const struct trace_record *r;
	pid_t pid = watch(&all, cap, child_spin, &depth, CPU_NS);
	size_t i = 0, n = 0;

	while ((r = next(&all, &i, pid))) {
		assert_true(!r->has_stack || r->stack.size <= cap);
		if (!in_leaf(r))
			continue;
		n++;
		assert_int_equal(r->stack.end, why);
		assert_in_range(r->stack.size, min, cap);
	}
	assert_true(n > 0);
	samples_fini(&all);
}

static void test_cap(void **state)
{
	check_cap(100, 16 * 1024, ABI_STACK_CAP, 16 * 1024);
}

/* Nearly the largest copy, whole, in slices of pages. */
static void test_cap_max(void **state)
{
	check_cap(210, ABI_STACK_COPY_MAX, ABI_STACK_WHOLE, 210 * 1024);
}

static void test_kernel_code(void **state)
{
	struct samples all = { 0 };
	const struct trace_record *r;
	pid_t pid = watch(&all, 0, child_syscalls, NULL, CPU_NS);
	size_t i = 0, k, n = 0, deep = 0;

	while ((r = next(&all, &i, pid))) {
		if (r->head.flags & ABI_SAMPLE_USER)
			continue;
		n++;
		assert_in_range(r->nkstack, 1, ABI_KSTACK_MAX);
		deep += r->nkstack > 2;
		for (k = 0; k < r->nkstack; k++)
			assert_true(trace_record_kpc(r, k) >> 47 == 0x1ffff);
		if (r->head.flags & (ABI_SAMPLE_EXEC | ABI_SAMPLE_NOMM))
			continue;
		assert_true(r->has_regs && r->has_stack);
		assert_true(r->regs.ip >> 47 == 0);
	}
	assert_true(deep > 5);
	samples_fini(&all);
}

static void test_exec_generation(void **state)
{
	struct samples all = { 0 };
	const struct trace_record *r, *last = NULL;
	pid_t pid = watch(&all, 0, child_exec_once, NULL, CPU_NS);
	size_t i = 0, gens = 0;

	while ((r = next(&all, &i, pid))) {
		if (last) {
			assert_int_equal(r->head.key.start_boottime,
					 last->head.key.start_boottime);
			assert_in_range(r->head.key.exec_id,
					last->head.key.exec_id,
					last->head.key.exec_id + 1);
			gens += r->head.key.exec_id != last->head.key.exec_id;
		}
		last = r;
	}
	assert_int_equal(gens, 1);
	assert_string_equal(last->head.comm, "exe");
	samples_fini(&all);
}

/* Samples with 'flag' have no user part. */
static void check_kernel_only(void (*fn)(void *), enum abi_sample_flags flag)
{
	struct samples all = { 0 };
	const struct trace_record *r;
	size_t i = 0, n = 0;

	/* A busy machine may run other tasks. */
	for (int run = 0; run < 100 && !n; run++)
		for (watch(&all, 0, fn, NULL, 0); i < all.n; i++) {
			r = &all.recs[i];
			assert_int_not_equal(r->head.tid, 0); /* idle */
			if (!(r->head.flags & flag))
				continue;
			n++;
			assert_false(r->has_regs || r->has_stack);
			assert_true(r->nkstack > 0);
		}
	assert_true(n > 0);
	samples_fini(&all);
}

static void test_inside_exec(void **state)
{
	check_kernel_only(child_exec_often, ABI_SAMPLE_EXEC);
}

/* Network namespaces are taken down by kernel workers. */
static void test_kernel_threads(void **state)
{
	check_kernel_only(child_netns, ABI_SAMPLE_KTHREAD);
}

/* --- stacks other than the main thread's --------------------------------- */

/* Mapped before the fork, at the same address in parent and child. */
static char *region;
#define REGION (16 * PAGE)

static void region_map(void)
{
	region = mmap(NULL, REGION + 2 * PAGE, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (region == MAP_FAILED)
		abort();
	region += PAGE;
	if (mprotect(region, REGION, PROT_READ | PROT_WRITE))
		abort();
}

static void *thread_main(void *arg)
{
	leaf_spin();
	return NULL;
}

static void child_thread(void *arg)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, region, REGION);
	pthread_create(&t, &attr, thread_main, NULL);
	pthread_join(t, NULL);
}

static void context_main(void)
{
	leaf_spin();
}

/* On the lower half of the region; the upper one was never touched. */
static void child_absent_page(void *arg)
{
	ucontext_t uc, back;

	getcontext(&uc);
	uc.uc_stack.ss_sp = region;
	uc.uc_stack.ss_size = REGION / 2;
	uc.uc_link = &back;
	makecontext(&uc, context_main, 0);
	swapcontext(&back, &uc);
}

/*
 * Like the Go runtime: g below the thread pointer, the stack's bounds at its start.
 * libc cannot be used then, so the child stays in one loop.
 */
static void child_goroutine(void *arg)
{
	static uint64_t tls[512], g[2];
	uint64_t *fs = &tls[256];

	memset(region, 0, REGION);
	g[0] = (uintptr_t)region;
	g[1] = (uintptr_t)region + 2 * PAGE;
	fs[-1] = (uintptr_t)g;
	__asm__ volatile("mov %0, %%rsp\n\t"
			 "syscall\n"
			 "1:	jmp 1b"
			 :
			 : "r"(region + 2 * PAGE - 64), "a"(158), "D"(0x1002),
			   "S"(fs)
			 : "rcx", "r11", "memory");
}

/* 32-bit code: two bytes, jmp to itself, entered by a far return. */
static void child_compat(void *arg)
{
	char *code = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	if (code == MAP_FAILED)
		_exit(1);
	memcpy(code, "\xeb\xfe", 2);
	__asm__ volatile("lea 8128(%0), %%rsp\n\t"
			 "pushq $0x23\n\t"
			 "push %0\n\t"
			 "lretq"
			 :
			 : "r"(code)
			 : "memory");
}

/* Every stack that begins in the region must end as expected. */
static void check_region(void (*fn)(void *), uint64_t size,
			 enum abi_stack_end why)
{
	struct samples all = { 0 };
	pid_t pid = watch(&all, 0, fn, NULL, CPU_NS);
	const struct trace_record *r;
	size_t i = 0, n = 0;

	while ((r = next(&all, &i, pid))) {
		if (r->regs.gpr[ABI_REG_SP] - (uintptr_t)region >= REGION ||
		    !(r->head.flags & ABI_SAMPLE_USER) ||
		    r->stack.end == ABI_STACK_RING)
			continue;
		/* mmap_lock was busy: it ended at the absent page behind. */
		if (r->stack.end == ABI_STACK_FAULT &&
		    r->stack.start + r->stack.size ==
			    (uintptr_t)region + REGION)
			continue;
		n++;
		assert_int_equal(r->stack.start + r->stack.size,
				 (uintptr_t)region + size);
		assert_int_equal(r->stack.end, why);
	}
	assert_true(n > 0);
	samples_fini(&all);
}

static void test_thread_stack(void **state)
{
	check_region(child_thread, REGION, ABI_STACK_WHOLE);
}

static void test_absent_page(void **state)
{
	check_region(child_absent_page, REGION / 2, ABI_STACK_FAULT);
}

static void test_goroutine(void **state)
{
	check_region(child_goroutine, 2 * PAGE, ABI_STACK_WHOLE);
}

static void test_compat(void **state)
{
	struct samples all = { 0 };
	pid_t pid = watch(&all, 0, child_compat, NULL, CPU_NS);
	const struct trace_record *r;
	size_t i = 0, n = 0;

	while ((r = next(&all, &i, pid))) {
		if (!(r->head.flags & ABI_SAMPLE_COMPAT))
			continue;
		n++;
		assert_true(r->regs.ip < 1ULL << 32);
		assert_true(r->has_stack && r->stack.size > 0);
	}
	assert_true(n > 0);
	samples_fini(&all);
}

/* --- accounts ------------------------------------------------------------ */

static uint64_t total(const struct sampler_cpu_stats *st, int n,
		      enum abi_sampler_counter which)
{
	uint64_t sum = 0;
	int i;

	for (i = 0; i < n; i++)
		sum += st[i].counters[which];
	return sum;
}

/* A ring that is not drained: first no stacks, then no samples; all counted. */
static void test_ring_full(void **state)
{
	struct sampler_cpu_stats st[CPU_SETSIZE];
	struct samples all = { 0 };
	struct sampler *s = start(&all, 1999, 0, 128 * 1024);
	int depth = 40, n;
	pid_t pid = spawn(child_spin, &depth);
	const struct trace_record *r;
	size_t i = 0, ring = 0;

	usleep(2 * RUN_MS * 1000);
	end(pid);
	sampler_disable(s);
	n = sampler_get_stats(s, st, ARRAY_SIZE(st));
	assert_true(n > 0);
	assert_true(total(st, n, ABI_SAMPLER_RING_FULL) > 0);
	assert_int_equal(sampler_poll(s), total(st, n, ABI_SAMPLER_TAKEN));
	assert_int_equal(all.n, total(st, n, ABI_SAMPLER_TAKEN));
	assert_int_equal(all.bad, 0);
	while (i < all.n) { /* of any process: a busy machine fills it, too */
		r = &all.recs[i++];
		if (!r->has_stack || r->stack.end != ABI_STACK_RING)
			continue;
		ring++;
		assert_int_equal(r->stack.size, 0);
		assert_true(r->has_regs);
	}
	assert_true(ring > 0);
	sampler_free(s);
	samples_fini(&all);
}

static void on_signal(int sig)
{
	leaf_spin();
}

/* A signal handler on an alternate stack, in the region. */
static void child_altstack(void *arg)
{
	stack_t ss = { .ss_sp = region, .ss_size = REGION - 24 };
	struct sigaction sa = { .sa_handler = on_signal,
				.sa_flags = SA_ONSTACK };

	memset(region, 0, REGION);
	if (!sigaltstack(&ss, NULL) && !sigaction(SIGUSR1, &sa, NULL))
		raise(SIGUSR1);
}

/* Both stacks, each to its end; the second from the interrupted sp. */
static void test_altstack(void **state)
{
	struct samples all = { 0 };
	pid_t pid = watch(&all, 0, child_altstack, NULL, CPU_NS);
	const struct trace_record *r;
	size_t i = 0, n = 0, end, main_end = 0;

	while ((r = next(&all, &i, pid))) {
		if (!in_leaf(r))
			continue;
		n++;
		end = (uintptr_t)region + REGION - 24;
		assert_int_equal(r->stack.end, ABI_STACK_WHOLE);
		assert_in_range(r->stack.start + r->stack.size, end, end + 255);
		assert_true(r->has_left);
		assert_int_equal(r->left.end, ABI_STACK_WHOLE);
		/* raise() was called at the depth of this function */
		assert_in_range(r->left.start, (uintptr_t)&end - 8192,
				(uintptr_t)&end + 4096);
		end = r->left.start + r->left.size;
		assert_true(!main_end || main_end == end);
		main_end = end;
	}
	assert_true(n > 0);
	samples_fini(&all);
}

static void child_pinned(void *arg)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(*(unsigned int *)arg, &one);
	sched_setaffinity(0, sizeof(one), &one);
	leaf_spin();
}

static void check_cpu(const struct samples *all,
		      const struct sampler_cpu_stats *st, bool online)
{
	size_t i, here = 0;

	for (i = 0; i < all->n; i++)
		here += all->recs[i].head.cpu == st->cpu;
	assert_int_equal(st->online, online);
	assert_int_equal(here, st->counters[ABI_SAMPLER_TAKEN]);
	if (!online)
		return;
	assert_true(here > 0);
	assert_true(st->busy_s > 0);
	assert_true(st->missed < st->expected / 4);
}

/* Every CPU is sampled, as often as expected. */
static void test_all_cpus(void **state)
{
	struct sampler_cpu_stats st[CPU_SETSIZE];
	struct samples all = { 0 };
	struct sampler *s;
	pid_t pids[CPU_SETSIZE] = { 0 };
	struct cpus online;
	unsigned int cpu;
	int n;

	assert_int_equal(cpus_online(&online), 0);
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (cpus_has(&online, cpu))
			pids[cpu] = spawn(child_pinned, &cpu);
	/* Few enough for an emulated machine. */
	s = start(&all, 97, 0, 0);
	usleep(2 * RUN_MS * 1000);
	assert_int_equal(sampler_hotplug(s), 0);
	sampler_disable(s);
	sampler_poll(s);
	n = sampler_get_stats(s, st, ARRAY_SIZE(st));
	for (cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (pids[cpu])
			end(pids[cpu]);
	assert_true(n > 0);
	for (cpu = 0; cpu < (unsigned int)n; cpu++)
		check_cpu(&all, &st[cpu], cpus_has(&online, cpu));
	cpus_fini(&online);
	sampler_free(s);
	samples_fini(&all);
}

/* Before enable and after disable there are no samples; the watermark rises. */
static void test_off_is_off(void **state)
{
	struct samples all = { 0 };
	struct sampler *s = start(&all, 997, 0, 0);
	int depth = 1;
	pid_t pid = spawn(child_spin, &depth);
	uint64_t now;

	usleep(100 * 1000);
	sampler_disable(s);
	assert_true(sampler_poll(s) > 0);
	usleep(50 * 1000);
	now = clock_boottime_ns();
	assert_int_equal(sampler_poll(s), 0);
	assert_true(sampler_watermark(s) > now - 10000000);
	assert_int_equal(sampler_enable(s), 0);
	usleep(100 * 1000);
	assert_true(sampler_poll(s) > 0);
	end(pid);
	sampler_free(s);
	samples_fini(&all);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_user_code),
		cmocka_unit_test(test_stack_copy),
		cmocka_unit_test(test_cap),
		cmocka_unit_test(test_cap_max),
		cmocka_unit_test(test_kernel_code),
		cmocka_unit_test(test_exec_generation),
		cmocka_unit_test(test_inside_exec),
		cmocka_unit_test(test_kernel_threads),
		cmocka_unit_test(test_thread_stack),
		cmocka_unit_test(test_absent_page),
		cmocka_unit_test(test_goroutine),
		cmocka_unit_test(test_compat),
		cmocka_unit_test(test_altstack),
		cmocka_unit_test(test_ring_full),
		cmocka_unit_test(test_all_cpus),
		cmocka_unit_test(test_off_is_off),
	};

	if (argc > 1 && !strcmp(argv[1], "--spin"))
		leaf_spin();
	region_map();
	/* The result does not depend on the load of the machine. */
	setpriority(PRIO_PROCESS, 0, -20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
