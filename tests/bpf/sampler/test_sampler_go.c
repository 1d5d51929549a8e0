// SPDX-License-Identifier: Apache-2.0
/*
 * The goroutine that left its stack for that of g0, and the copy of that stack: a program
 * with memory as Go's runtime has it, and with memory in which something does not fit. And
 * that a program which is known to be of Go is sampled so from the beginning.
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
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/sampler.h"
#include "tracehandler/record.h"

#define SIZE 8192UL /* of the goroutine's stack */
#define USED 2048UL
#define PC 0x401234
#define BASE 0x7000
#define HANG_S 60
#define SAMPLES 20

/* Words of runtime.g and runtime.m, as bpf/sampler/sampler_go.bpf.h has them. */
enum {
	LO,
	HI,
	G_M = 6,
	G_SP,
	G_PC,
	G_BP = 12,
	G_BP_OLD
};

static __thread uint64_t *tls_g;
static uint64_t g0[16], curg[16], m[32];
static uint8_t *stack;
static volatile uint64_t sink;

static __attribute__((noinline)) void spin(void)
{
	for (;;)
		sink++;
}

/* --- what the program has in its memory ------------------------------------------- */

static void saved(void)
{
}

static void saved_old(void)
{
	m[ABI_GO_CURG_OLD / 8] = m[ABI_GO_CURG / 8];
	m[ABI_GO_CURG / 8] = 0x1234; /* another member */
	curg[G_BP_OLD] = curg[G_BP];
	curg[G_BP] = 1;
}

static void no_goroutine(void)
{
	m[ABI_GO_CURG / 8] = 0;
}

static void calls_vdso(void)
{
	tls_g = curg;
	curg[G_SP] = 0;
}

static void on_its_own_stack(void)
{
	tls_g = curg;
	curg[LO] = g0[LO];
	curg[HI] = g0[HI];
}

static void of_another_thread(void)
{
	curg[G_M]++;
}

static void left_from_nowhere(void)
{
	curg[G_SP] = curg[HI];
}

static void absent(void)
{
	m[ABI_GO_CURG / 8] = 8;
}

static void without_end(void)
{
	curg[HI] = UINT64_MAX;
}

struct kind {
	void (*make)(void);
	int state; /* enum abi_go_state, or -1: no part */
	bool old, not_wanted;
};

static const struct kind kinds[] = {
	{ saved, ABI_GO_SAVED, false, false },
	{ saved_old, ABI_GO_SAVED, true, false },
	{ saved, -1, false, true },
	{ no_goroutine, ABI_GO_NONE, false, false },
	{ calls_vdso, ABI_GO_VDSO, false, false },
	{ on_its_own_stack, -1, false, false },
	{ of_another_thread, -1, false, false },
	{ left_from_nowhere, -1, false, false },
	{ absent, -1, false, false },
	{ without_end, ABI_GO_SAVED, false, false },
};

static void child(const struct kind *k)
{
	uint64_t here = (uintptr_t)__builtin_frame_address(0);

	g0[LO] = here - 65536;
	g0[HI] = here + 256;
	g0[G_M] = curg[G_M] = (uintptr_t)m;
	g0[G_SP] = BASE;
	m[0] = (uintptr_t)g0;
	m[ABI_GO_CURG / 8] = (uintptr_t)curg;
	curg[LO] = (uintptr_t)stack;
	curg[HI] = (uintptr_t)stack + SIZE;
	curg[G_SP] = curg[HI] - USED;
	curg[G_PC] = PC;
	curg[G_BP] = curg[G_SP] + 32;
	tls_g = g0;
	k->make();
	spin();
}

/* --- and what its samples have ----------------------------------------------------- */

struct seen {
	const struct kind *kind;
	uint32_t tgid;
	unsigned int n;
};

static void look_at_stack(const struct trace_record *r, uint64_t from)
{
	uint64_t end = (uintptr_t)stack + SIZE;

	assert_true(r->has_left);
	assert_true(r->left.start <= from);
	assert_true(from - r->left.start <
		    ABI_STACK_RED_ZONE + ABI_STACK_ALIGN);
	assert_true(r->left.start + r->left.size >= end);
	assert_memory_equal(r->left.bytes + (from - r->left.start),
			    (const void *)(uintptr_t)from, end - from);
}

static void look(void *arg, const struct abi_sample *head, size_t len)
{
	uint64_t end = (uintptr_t)stack + SIZE;
	struct seen *seen = arg;
	struct trace_record r;

	assert_int_equal(trace_record_parse(head, len, &r), 0);
	if (head->key.tgid != seen->tgid || !r.has_stack ||
	    r.regs.ip - (uintptr_t)spin >= 32)
		return;
	seen->n++;
	if (seen->kind->state < 0) {
		assert_false(r.has_go || r.has_left);
		return;
	}
	assert_true(r.has_go);
	assert_int_equal(r.go.state, seen->kind->state);
	if (r.go.state == ABI_GO_NONE) {
		assert_false(r.has_left);
		assert_int_equal(r.go.g, 0);
		assert_int_equal(r.go.base, BASE);
		return;
	}
	assert_int_equal(r.go.g, (uintptr_t)curg);
	if (r.go.state == ABI_GO_VDSO) {
		assert_int_equal(r.go.sp, 0);
		assert_int_equal(r.go.end, end);
		look_at_stack(&r, (uintptr_t)stack);
		return;
	}
	assert_int_equal(r.go.pc, PC);
	assert_int_equal(r.go.sp, end - USED);
	assert_int_equal(r.go.bp, end - USED + 32);
	assert_int_equal(r.go.base, BASE);
	look_at_stack(&r, end - USED);
	if (seen->kind->make == without_end)
		assert_int_not_equal(r.left.end, ABI_STACK_WHOLE);
	else
		assert_int_equal(r.go.end, end);
}

static void sample_one(const struct kind *k)
{
	struct seen seen = { .kind = k };
	struct sampler_opts opts = { .freq_hz = 997,
				     .sample = look,
				     .arg = &seen };
	intptr_t tls = (intptr_t)&tls_g - (intptr_t)__builtin_thread_pointer();
	time_t begin = time(NULL);
	const char *what = "nothing";
	struct sampler *s = NULL;
	pid_t pid;

	assert_int_equal(sampler_new(&s, &opts, &what), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		child(k);
	}
	seen.tgid = (uint32_t)pid;
	sampler_want_go(s, seen.tgid + k->not_wanted, (int32_t)tls,
			k->old ? ABI_GO_CURG_OLD : ABI_GO_CURG);
	assert_int_equal(sampler_enable(s), 0);
	while (seen.n < SAMPLES && time(NULL) - begin < HANG_S) {
		usleep(20000);
		assert_true(sampler_poll(s) >= 0);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	sampler_free(s);
	assert_true(seen.n >= SAMPLES);
}

static void make_stack(void)
{
	stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (stack == MAP_FAILED)
		abort();
	for (size_t i = 0; i < SIZE; i++)
		stack[i] = (uint8_t)(i * 7 + i / 251);
}

static void test_go(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		print_message("# kind %zu\n", i);
		sample_one(&kinds[i]);
	}
}

/* --- from the first sample of a program on ------------------------------------------ */

struct first {
	uint32_t tgid;
	unsigned int n, go;
};

static void look_at_first(void *arg, const struct abi_sample *head, size_t len)
{
	struct first *first = arg;
	struct trace_record r;

	assert_int_equal(trace_record_parse(head, len, &r), 0);
	if (head->key.tgid != first->tgid || !r.has_stack)
		return;
	first->n++;
	first->go += r.has_go && r.go.pc == PC;
}

static struct quark_file_ident own_file(void)
{
	struct stat st;

	assert_int_equal(stat("/proc/self/exe", &st), 0);
	return (struct quark_file_ident){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.ctime_ns = (uint64_t)st.st_ctim.tv_sec * 1000000000 +
			    (uint64_t)st.st_ctim.tv_nsec,
		.size = (uint64_t)st.st_size,
	};
}

/*
 * Executes this file, which spins on the stack of g0, until so many samples have a
 * goroutine: how many have. The first ones are of its start, which may be slow.
 */
static unsigned int sample_executed(struct sampler *s, struct first *first,
				    unsigned int wanted)
{
	time_t begin = time(NULL);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execl("/proc/self/exe", "test_sampler_go", "spin", NULL);
		_exit(1);
	}
	*first = (struct first){ .tgid = (uint32_t)pid };
	while ((first->n < SAMPLES || first->go < wanted) &&
	       time(NULL) - begin < HANG_S) {
		usleep(20000);
		assert_true(sampler_poll(s) >= 0);
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_true(first->n >= SAMPLES);
	return first->go;
}

/* A process of a file that is known to be of Go is wanted by its exec. */
static void test_go_executed(void **state)
{
	intptr_t tls = (intptr_t)&tls_g - (intptr_t)__builtin_thread_pointer();
	const struct quark_file_ident file = own_file();
	struct first first;
	struct sampler_opts opts = { .freq_hz = 997,
				     .sample = look_at_first,
				     .arg = &first };
	const char *what = "nothing";
	struct sampler *s = NULL;

	assert_int_equal(sampler_new(&s, &opts, &what), 0);
	assert_int_equal(sampler_enable(s), 0);
	assert_int_equal(sample_executed(s, &first, 0), 0);
	sampler_go_file(s, &file, (int32_t)tls, ABI_GO_CURG);
	assert_true(sample_executed(s, &first, SAMPLES / 2) >= SAMPLES / 2);
	sampler_go_file(s, &file, 0, 0);
	assert_int_equal(sample_executed(s, &first, 0), 0);
	sampler_free(s);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_go),
		cmocka_unit_test(test_go_executed),
	};

	make_stack();
	if (argc > 1)
		child(&kinds[0]);

	return cmocka_run_group_tests(tests, NULL, NULL);
}
