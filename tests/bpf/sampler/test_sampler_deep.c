// SPDX-License-Identifier: Apache-2.0
/*
 * Stacks deeper than 64 KiB: how much of them is copied, and that a user with many of
 * them does not affect others.
 */
#include <pthread.h>
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

#define KIB 1024
#define DEEP_HZ 197
#define RUN_NS (400 * CLOCK_NSEC_PER_MSEC)
#define NOBODY 65534
#define CHILDREN 8

/* Samples of one process. */
struct seen {
	uint32_t tgid;
	size_t n; /* with user registers */
	size_t whole, cut, bare; /* ABI_STACK_WHOLE, _CAP, _RING */
	size_t deep; /* more than 64 KiB */
	size_t limited; /* with ABI_SAMPLE_DEEP_LIMITED */
	size_t most; /* bytes */
};

struct test {
	struct sampler *s;
	struct seen seen[CHILDREN];
	size_t n;
};

static void on_sample(void *arg, const struct abi_sample *rec, size_t len)
{
	struct trace_record r;
	struct test *t = arg;
	struct seen *c = t->seen;

	while (c < t->seen + t->n && c->tgid != rec->key.tgid)
		c++;
	if (c == t->seen + t->n || trace_record_parse(rec, len, &r) ||
	    !r.has_stack || !(r.head.flags & ABI_SAMPLE_USER))
		return;
	c->n++;
	c->whole += r.stack.end == ABI_STACK_WHOLE;
	c->cut += r.stack.end == ABI_STACK_CAP;
	c->bare += r.stack.end == ABI_STACK_RING;
	c->deep += r.stack.size > 64 * KIB;
	c->limited += !!(r.head.flags & ABI_SAMPLE_DEEP_LIMITED);
	c->most = MAX(c->most, r.stack.size);
}

static volatile uint64_t sink, stop; /* 'stop' is never set */

static __attribute__((noipa)) void descend(size_t bytes)
{
	volatile char frame[KIB];

	frame[0] = (char)bytes;
	if (bytes > KIB)
		descend(bytes - KIB);
	while (bytes <= KIB && !stop)
		sink++;
	sink += frame[0];
}

static void deep(size_t bytes)
{
	descend(bytes);
}

static void *in_thread(void *arg)
{
	descend((uintptr_t)arg);
	return NULL;
}

static void deep_thread(size_t bytes)
{
	pthread_t t;

	if (pthread_create(&t, NULL, in_thread, (void *)bytes))
		_exit(1);
	pthread_join(t, NULL);
}

static void in_coroutine(void)
{
	descend(16 * KIB);
}

/* Runs on a small stack at the beginning of a mapping of so many bytes. */
static void coroutine(size_t bytes)
{
	static ucontext_t to, from;

	getcontext(&to);
	to.uc_stack.ss_sp = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (to.uc_stack.ss_sp == MAP_FAILED)
		_exit(1);
	memset(to.uc_stack.ss_sp, 1, bytes);
	to.uc_stack.ss_size = 32 * KIB;
	makecontext(&to, in_coroutine, 0);
	swapcontext(&from, &to);
}

static void start(struct test *t, unsigned int hz, size_t cap, size_t ring)
{
	struct sampler_opts opts = {
		.freq_hz = hz,
		.stack_copy = cap,
		.ring_bytes = ring,
		.sample = on_sample,
		.arg = t,
	};
	const char *what;

	memset(t, 0, sizeof(*t));
	assert_int_equal(sampler_new(&t->s, &opts, &what), 0);
	assert_int_equal(sampler_enable(t->s), 0);
}

static void spawn(struct test *t, void (*fn)(size_t), size_t bytes, uid_t uid)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		setpriority(PRIO_PROCESS, 0, 0);
		if (uid && setresuid(uid, uid, uid))
			_exit(1);
		fn(bytes);
		_exit(0);
	}
	t->seen[t->n++].tgid = pid;
}

/* Until the first child has used so much CPU time; drains every 'ms'. */
static void run(struct test *t, unsigned int ms)
{
	struct timespec ts = { 0 };
	clockid_t clock;
	int i;

	assert_int_equal(clock_getcpuclockid(t->seen[0].tgid, &clock), 0);
	for (i = 0;
	     i < 3000 && ts.tv_sec * CLOCK_NSEC_PER_SEC + ts.tv_nsec < RUN_NS;
	     i++) {
		usleep(ms * 1000);
		assert_true(sampler_poll(t->s) >= 0);
		assert_int_equal(clock_gettime(clock, &ts), 0);
	}
}

static uint64_t total(struct test *t, enum abi_sampler_counter which)
{
	int i, n = sampler_get_stats(t->s, NULL, 0);
	struct sampler_cpu_stats *st = calloc(n, sizeof(*st));
	uint64_t sum = 0;

	assert_non_null(st);
	assert_int_equal(sampler_get_stats(t->s, st, n), n);
	for (i = 0; i < n; i++)
		sum += st[i].counters[which];
	free(st);
	return sum;
}

static void finish(struct test *t)
{
	size_t i;

	for (i = 0; i < t->n; i++) {
		kill(t->seen[i].tgid, SIGKILL);
		waitpid(t->seen[i].tgid, NULL, 0);
	}
	sampler_disable(t->s);
	assert_true(sampler_poll(t->s) >= 0);
}

static void watch(struct test *t, size_t cap, void (*fn)(size_t), size_t bytes)
{
	start(t, DEEP_HZ, cap, 32 << 20);
	spawn(t, fn, bytes, 0);
	run(t, 20);
	finish(t);
	assert_true(t->seen[0].n > 10);
}

static void whole_up_to_256_kib(void **state)
{
	struct test t;

	watch(&t, 0, deep, 220 * KIB);
	assert_true(t.seen[0].whole >=
		    t.seen[0].n - 2); /* from before its stack is deep */
	assert_true(t.seen[0].most > 220 * KIB);
	assert_true(total(&t, ABI_SAMPLER_STACK_DEEP) >= t.seen[0].n - 2);
	sampler_free(t.s);
}

static void a_threads_too(void **state)
{
	struct test t;

	watch(&t, 0, deep_thread, 200 * KIB);
	assert_true(t.seen[0].whole >=
		    t.seen[0].n - 2); /* from before its stack is deep */
	assert_true(t.seen[0].most > 200 * KIB);
	sampler_free(t.s);
}

/* The stack is cut, and the record says so. */
static void deeper_than_that(void **state)
{
	struct test t;

	watch(&t, 0, deep, 400 * KIB);
	assert_true(t.seen[0].cut >=
		    t.seen[0].n - 2); /* from before its stack is deep */
	assert_int_equal(t.seen[0].most, 256 * KIB);
	sampler_free(t.s);
}

/* The mapping does not show how deep the stack is. */
static void a_stack_in_the_heap(void **state)
{
	struct test t;

	watch(&t, 0, coroutine, 4 << 20);
	assert_true(t.seen[0].cut >= t.seen[0].n - 2);
	assert_true(t.seen[0].most <= 64 * KIB);
	sampler_free(t.s);
}

/* A lower --stack-copy is not exceeded. */
static void a_limit_that_was_given(void **state)
{
	struct test t;

	watch(&t, 32 * KIB, deep, 100 * KIB);
	assert_true(t.seen[0].cut >= t.seen[0].n - 2);
	assert_int_equal(t.seen[0].most, 32 * KIB);
	sampler_free(t.s);
}

/*
 * Deep stacks that would overflow the ring between two drains: they are cut, and no
 * process lacks a sample or a stack.
 */
static void half_of_the_ring_is_for_others(void **state)
{
	struct seen *other;
	struct test t;
	int i;

	start(&t, 97, 0, 2 << 20);
	spawn(&t, deep, 30 * KIB, 0);
	for (i = 0; i < 4; i++)
		spawn(&t, deep, 250 * KIB, NOBODY);
	run(&t, 100);
	finish(&t);
	other = &t.seen[0];
	print_message("ring_full %llu, limited %llu, other %zu of %zu whole\n",
		      (unsigned long long)total(&t, ABI_SAMPLER_RING_FULL),
		      (unsigned long long)total(&t, ABI_SAMPLER_DEEP_LIMITED),
		      other->whole, other->n);
	assert_true(other->n > 10);
	assert_true(other->whole * 100 >= other->n * 95);
	assert_true(total(&t, ABI_SAMPLER_DEEP_LIMITED) > 0);
	/* Their process is known from the samples. */
	assert_true(t.seen[1].limited + t.seen[2].limited > 0);
	assert_int_equal(other->limited, 0);
	assert_true(total(&t, ABI_SAMPLER_RING_FULL) * 20 <= other->n);
	sampler_free(t.s);
}

/* One user does not get all bytes a second for deep stacks. */
static void half_of_the_bytes_are_for_others(void **state)
{
	struct seen *other;
	struct test t;
	int i;

	start(&t, 499, 0, 256 << 20);
	spawn(&t, deep, 100 * KIB, 0);
	for (i = 0; i < 4; i++)
		spawn(&t, deep, 250 * KIB, NOBODY);
	run(&t, 20);
	finish(&t);
	other = &t.seen[0];
	print_message("limited %llu, deep %zu of %zu, other %zu of %zu whole\n",
		      (unsigned long long)total(&t, ABI_SAMPLER_DEEP_LIMITED),
		      t.seen[1].deep, t.seen[1].n, other->whole, other->n);
	assert_true(other->n > 10);
	assert_true(other->whole * 100 >= other->n * 95);
	assert_true(t.seen[1].deep < t.seen[1].n);
	sampler_free(t.s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whole_up_to_256_kib),
		cmocka_unit_test(a_threads_too),
		cmocka_unit_test(deeper_than_that),
		cmocka_unit_test(a_stack_in_the_heap),
		cmocka_unit_test(a_limit_that_was_given),
		cmocka_unit_test(half_of_the_ring_is_for_others),
		cmocka_unit_test(half_of_the_bytes_are_for_others),
	};

	/* The result does not depend on the load of the machine. */
	setpriority(PRIO_PROCESS, 0, -20);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
