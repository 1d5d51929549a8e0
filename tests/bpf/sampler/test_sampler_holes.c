// SPDX-License-Identifier: Apache-2.0
/*
 * A stack with a large array that was not touched yet: its pages are absent, and the
 * stack above them is copied nevertheless.
 */
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

#define PAGE 4096UL
#define REGION (16 * PAGE)
#define ARRAY (7 * PAGE)
#define HANG_S 60

static char *region;
static volatile uint64_t sink;

static __attribute__((noinline)) void spin(void)
{
	for (;;)
		sink++;
}

static void on_context(void)
{
	char array[ARRAY];

	__asm__ volatile("" : : "r"(array) : "memory");
	spin();
	__asm__ volatile("" : : "r"(array) : "memory");
}

static void child(void)
{
	ucontext_t uc, back;

	getcontext(&uc);
	uc.uc_stack.ss_sp = region;
	uc.uc_stack.ss_size = REGION;
	uc.uc_link = &back;
	makecontext(&uc, on_context, 0);
	swapcontext(&back, &uc);
}

struct seen {
	uint32_t tgid;
	unsigned int whole, other;
};

static void look(void *arg, const struct abi_sample *head, size_t len)
{
	struct seen *seen = arg;
	struct trace_record r;
	uint64_t first, top;

	assert_int_equal(trace_record_parse(head, len, &r), 0);
	if (head->key.tgid != seen->tgid || !r.has_stack ||
	    r.regs.gpr[ABI_REG_SP] - (uintptr_t)region >= REGION ||
	    r.regs.ip - (uintptr_t)spin >= 32)
		return;
	/* If mmap_lock was busy, the mapping's end was not known. */
	if (r.stack.end != ABI_STACK_WHOLE) {
		seen->other++;
		return;
	}
	seen->whole++;
	top = (uintptr_t)region + REGION;
	assert_int_equal(r.stack.start + r.stack.size, top);
	first = r.stack.start / PAGE;
	/* The array's pages, six at least; neither sp's nor the last. */
	assert_in_range(__builtin_popcountll(r.stack.holes), 6, 8);
	assert_false(r.stack.holes >> (r.regs.gpr[ABI_REG_SP] / PAGE - first) &
		     1);
	assert_false(r.stack.holes >> (top / PAGE - 1 - first) & 1);
}

static void test_holes(void **state)
{
	struct seen seen = { 0 };
	struct sampler_opts opts = { .freq_hz = 997,
				     .sample = look,
				     .arg = &seen };
	const char *what = "nothing";
	struct sampler *s = NULL;
	time_t begin = time(NULL);
	pid_t pid;

	region = mmap(NULL, REGION, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(region, MAP_FAILED);
	assert_int_equal(madvise(region, REGION, MADV_NOHUGEPAGE), 0);
	assert_int_equal(sampler_new(&s, &opts, &what), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child();
		_exit(1);
	}
	seen.tgid = (uint32_t)pid;
	assert_int_equal(sampler_enable(s), 0);
	while (seen.whole < 20 && time(NULL) - begin < HANG_S) {
		usleep(20000);
		assert_true(sampler_poll(s) >= 0);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	sampler_free(s);
	print_message("# %u whole, %u with an unknown end\n", seen.whole,
		      seen.other);
	assert_true(seen.whole >= 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_holes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
