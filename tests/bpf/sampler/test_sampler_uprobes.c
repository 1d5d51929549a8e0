// SPDX-License-Identifier: Apache-2.0
/*
 * Uprobes of other tools: in the samples of a probed program ip and the return addresses
 * are those that it would have without them, in no mapping of the kernel's probes.
 */
#include <errno.h>
#include <linux/perf_event.h>
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
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/sampler.h"
#include "tracehandler/record.h"

#define PROBED_HZ 997
#define SAMPLES_MIN 150
#define DEADLINE_S 60
#define RANGES 4

/* --- the probed programs ----------------------------------------------------------- */

static volatile uint64_t sink;

/*
 * asm_step: an instruction that the kernel steps out of line. asm_call: steps a call.
 * asm_nop: a nop of five bytes, which becomes a call of a trampoline on newer kernels.
 */
__asm__(".pushsection .text\n"
	".globl asm_step\nasm_step: mov %rdi, %rax\n ret\n"
	".globl asm_call\nasm_call: lea asm_step(%rip), %rax\n"
	".globl asm_call_at\nasm_call_at: call *%rax\n ret\n"
	".globl asm_nop\nasm_nop: .byte 0x0f, 0x1f, 0x44, 0x00, 0x00\n ret\n"
	".popsection\n");
void asm_step(uint64_t n);
void asm_call(uint64_t n);
void asm_nop(uint64_t n);
extern const char asm_call_at[];

static __attribute__((noipa)) void spin(uint64_t n)
{
	while (n--)
		sink++;
}

static __attribute__((noipa)) void returning(uint64_t n)
{
	spin(20000);
	sink += n;
}

/* Six return addresses are replaced at its deepest. */
static __attribute__((noipa)) void nested(uint64_t n)
{
	if (n)
		nested(n - 1);
	else
		spin(20000);
	sink += n;
}

struct load {
	const char *name;
	void (*fn)(uint64_t n);
	uint64_t n; /* its argument */
	const void *at; /* the address that is probed */
	bool returns; /* its return is */
};

static const struct load loads[] = {
	{ "stepped", asm_step, 0, asm_step, false },
	{ "stepped call", asm_call, 0, asm_call_at, false },
	{ "return", returning, 0, returning, true },
	{ "returns", nested, 5, nested, true },
	{ "short return", asm_step, 0, asm_step, true },
	{ "nop", asm_nop, 0, asm_nop, false },
};

/* --- probes ------------------------------------------------------------------------- */

static uint64_t number_in(const char *path, const char *format)
{
	unsigned long long v = 0;
	FILE *f = fopen(path, "r");

	if (!f)
		return UINT64_MAX;
	if (fscanf(f, format, &v) != 1)
		v = UINT64_MAX;
	fclose(f);
	return v;
}

/* The offset of an address in our executable. */
static uint64_t offset_of(const void *at)
{
	unsigned long long lo, hi, offset, found = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		if (sscanf(line, "%llx-%llx %*s %llx", &lo, &hi, &offset) ==
			    3 &&
		    (uintptr_t)at >= lo && (uintptr_t)at < hi)
			found = (uintptr_t)at - lo + offset;
	fclose(f);
	assert_true(found);
	return found;
}

/* Probes one process. A descriptor. */
static int probe(const struct load *l, pid_t pid)
{
	static const char dir[] = "/sys/bus/event_source/devices/uprobe/";
	struct perf_event_attr attr = { .size = sizeof(attr) };
	char path[128], self[512];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);
	uint64_t bit;
	int fd;

	assert_true(len > 0);
	self[len] = '\0';
	snprintf(path, sizeof(path), "%stype", dir);
	attr.type = (uint32_t)number_in(path, "%llu");
	snprintf(path, sizeof(path), "%sformat/retprobe", dir);
	bit = number_in(path, "config:%llu");
	if (attr.type == UINT32_MAX || bit > 63)
		return -ENOENT;
	attr.config = l->returns ? 1ULL << bit : 0;
	attr.uprobe_path = (uintptr_t)self;
	attr.probe_offset = offset_of(l->at);
	fd = (int)syscall(SYS_perf_event_open, &attr, pid, -1, -1,
			  PERF_FLAG_FD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* --- samples ------------------------------------------------------------------------- */

struct range {
	uint64_t start, end;
};

struct test {
	pid_t pid;
	struct range ranges[RANGES]; /* [uprobes], [uprobes-trampoline] */
	size_t nranges;
	size_t n, user, ip,
		stack; /* of that: where ip, or a return address is */
};

static bool is_probes(const struct test *t, uint64_t addr)
{
	for (size_t i = 0; i < t->nranges; i++)
		if (addr >= t->ranges[i].start && addr < t->ranges[i].end)
			return true;
	return false;
}

static void read_ranges(struct test *t)
{
	unsigned long long lo, hi;
	char path[64], line[512];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", t->pid);
	f = fopen(path, "r");
	assert_non_null(f);
	t->nranges = 0;
	while (fgets(line, sizeof(line), f))
		if (strstr(line, "[uprobes") && t->nranges < RANGES &&
		    sscanf(line, "%llx-%llx", &lo, &hi) == 2)
			t->ranges[t->nranges++] = (struct range){ lo, hi };
	fclose(f);
}

static void on_sample(void *arg, const struct abi_sample *s, size_t len)
{
	struct test *t = arg;
	struct trace_record rec;
	uint64_t at, word;
	bool bad = false;

	if ((pid_t)s->key.tgid != t->pid || !t->nranges)
		return;
	assert_int_equal(trace_record_parse(s, len, &rec), 0);
	if (!rec.has_regs || !rec.has_stack)
		return;
	t->n++;
	t->ip += is_probes(t, rec.regs.ip);
	/* Only the frames of the probed program: below them is old data. */
	at = rec.regs.gpr[ABI_REG_SP];
	for (; trace_piece_read(&rec.stack, at, &word, 8); at += 8)
		bad |= is_probes(t, word);
	t->stack += bad;
}

static pid_t pids[ARRAY_SIZE(loads)];

static void run_load(const struct load *l)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	raise(SIGSTOP);
	for (;;)
		l->fn(l->n);
}

/* All at first: a child inherits our stack, where later addresses of probes are. */
static int start_loads(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++) {
		pids[i] = fork();
		if (!pids[i])
			run_load(&loads[i]);
		if (pids[i] < 0 || waitpid(pids[i], NULL, WUNTRACED) < 0)
			return -1;
	}
	return 0;
}

static int stop_loads(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++) {
		if (pids[i] <= 0)
			continue;
		kill(pids[i], SIGKILL);
		waitpid(pids[i], NULL, 0);
	}
	return 0;
}

static void sample_load(const struct load *l, struct test *t)
{
	struct sampler_opts opts = {
		.freq_hz = PROBED_HZ,
		.ring_bytes = 32 << 20,
		.sample = on_sample,
		.arg = t,
	};
	struct sampler *s = NULL;
	const char *what;
	int fd;

	memset(t, 0, sizeof(*t));
	t->pid = pids[l - loads];
	fd = probe(l, t->pid);
	if (fd == -ENOENT)
		skip(); /* a kernel without uprobes */
	assert_true(fd >= 0);
	assert_int_equal(sampler_new(&s, &opts, &what), 0);
	assert_int_equal(sampler_enable(s), 0);
	kill(t->pid, SIGCONT);
	for (int i = 0; i < DEADLINE_S * 20 && t->n < SAMPLES_MIN; i++) {
		read_ranges(t);
		usleep(50000);
		assert_true(sampler_poll(s) >= 0);
	}
	sampler_disable(s);
	kill(t->pid, SIGSTOP);
	close(fd);
	sampler_free(s);
	print_message("# %s: %zu samples, ip %zu, stack %zu of the probes\n",
		      l->name, t->n, t->ip, t->stack);
}

static void as_without_probes(void **state)
{
	struct test t;

	for (size_t i = 0; i < ARRAY_SIZE(loads); i++) {
		sample_load(&loads[i], &t);
		assert_true(t.n >= SAMPLES_MIN);
		/* While the kernel's list does not have the return it replaces. */
		assert_true(t.ip * 10 <= t.n);
		assert_true(t.stack * 10 <= t.n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_without_probes),
	};

	return cmocka_run_group_tests(tests, start_loads, stop_loads);
}
