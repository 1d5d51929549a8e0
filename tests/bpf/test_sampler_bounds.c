// SPDX-License-Identifier: Apache-2.0
/*
 * The end of a stack other than the first thread's: its mapping is looked up once a
 * thread, and again when mappings have changed.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/sampler.h"
#include "tracehandler/record.h"

#define BOUNDS_HZ 997
#define HALF ((size_t)32 << 10)
#define SPIN_NS (200 * CLOCK_NSEC_PER_MSEC)

/* Samples of the child. */
struct seen {
	pid_t pid;
	uint64_t region;
	size_t n; /* samples of its user code on a stack in the region */
	size_t half, full; /* of n: copied to half of the region, to its end */
	size_t back; /* of 'half': after the first of 'full' */
};

/* Mapped before the fork, at the same address in parent and child. */
static char *region;

static void seen_sample(void *arg, const struct abi_sample *rec, size_t len)
{
	struct seen *s = arg;
	struct trace_record r;
	uint64_t end;

	if (rec->key.tgid != (uint32_t)s->pid ||
	    trace_record_parse(rec, len, &r) || !r.has_stack ||
	    !(r.head.flags & ABI_SAMPLE_USER) ||
	    r.regs.gpr[ABI_REG_SP] - s->region >= HALF)
		return;
	s->n++;
	end = r.stack.start + r.stack.size - s->region;
	if (r.stack.end == ABI_STACK_WHOLE && end == HALF) {
		s->half++;
		s->back += !!s->full;
	}
	s->full += r.stack.end == ABI_STACK_WHOLE && end == 2 * HALF;
}

static void spin(void)
{
	struct timespec ts;
	uint64_t ns, end = 0;

	do {
		for (volatile int i = 0; i < 10000; i++)
			;
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
		ns = ts.tv_sec * CLOCK_NSEC_PER_SEC + ts.tv_nsec;
		end = end ? end : ns + SPIN_NS;
	} while (ns < end);
}

static void region_map(void)
{
	region = mmap(NULL, 2 * HALF + 8192, PROT_NONE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(region != MAP_FAILED);
	region += 4096;
	assert_int_equal(mprotect(region, HALF, PROT_READ | PROT_WRITE), 0);
}

/* Doubles the mapping while the stack is in use. */
static void context_main(void)
{
	spin();
	if (mprotect(region + HALF, HALF, PROT_READ | PROT_WRITE))
		_exit(1);
	memset(region + HALF, 1, HALF);
	spin();
	_exit(0);
}

static void child_growing(void)
{
	ucontext_t uc, back;

	memset(region, 1, HALF);
	getcontext(&uc);
	uc.uc_stack.ss_sp = region;
	uc.uc_stack.ss_size = HALF;
	uc.uc_link = &back;
	makecontext(&uc, context_main, 0);
	swapcontext(&back, &uc);
}

static void *thread_main(void *arg)
{
	spin();
	spin();
	return NULL;
}

static void child_thread(void)
{
	pthread_attr_t attr;
	pthread_t t;

	pthread_attr_init(&attr);
	pthread_attr_setstack(&attr, region, HALF);
	if (!pthread_create(&t, &attr, thread_main, NULL))
		pthread_join(t, NULL);
}

static uint64_t asked(struct sampler *s)
{
	struct sampler_cpu_stats st[1024];
	int i, n = sampler_get_stats(s, st, ARRAY_SIZE(st));
	uint64_t sum = 0;

	assert_true(n > 0);
	for (i = 0; i < n; i++)
		sum += st[i].counters[ABI_SAMPLER_VMA_ASKED];
	return sum;
}

/* Samples a child that runs 'fn', to its end. Returns the number of lookups. */
static uint64_t watch(struct seen *seen, void (*fn)(void))
{
	struct sampler_opts opts = { .freq_hz = BOUNDS_HZ,
				     .sample = seen_sample,
				     .arg = seen };
	const char *what;
	struct sampler *s;
	uint64_t n;
	int status;

	region_map();
	*seen = (struct seen){ .region = (uintptr_t)region };
	assert_int_equal(sampler_new(&s, &opts, &what), 0);
	seen->pid = fork();
	assert_true(seen->pid >= 0);
	if (!seen->pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fn();
		_exit(0);
	}
	assert_int_equal(sampler_enable(s), 0);
	while (!waitpid(seen->pid, &status, WNOHANG)) {
		usleep(20000);
		assert_true(sampler_poll(s) >= 0);
	}
	assert_int_equal(status, 0);
	sampler_disable(s);
	assert_true(sampler_poll(s) >= 0);
	n = asked(s);
	sampler_free(s);
	munmap(region - 4096, 2 * HALF + 8192);
	return n;
}

/* Other threads of the host cause lookups, too, but not with each sample. */
static void once_a_thread(void **state)
{
	struct seen seen;
	uint64_t n = watch(&seen, child_thread);

	print_message("%zu samples, %zu whole, asked %llu times\n", seen.n,
		      seen.half, (unsigned long long)n);
	assert_true(seen.n > 50);
	assert_true(seen.half * 100 >= seen.n * 95); /* mmap_lock may be busy */
	assert_true(n > 0);
	assert_true(n < seen.n / 2);
}

static void again_when_mappings_change(void **state)
{
	struct seen seen;

	watch(&seen, child_growing);
	print_message("%zu samples, %zu of the half, %zu of all, %zu behind\n",
		      seen.n, seen.half, seen.full, seen.back);
	assert_true(seen.half > 20);
	assert_true(seen.full > 20);
	assert_int_equal(seen.back, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(once_a_thread),
		cmocka_unit_test(again_when_mappings_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
