// SPDX-License-Identifier: Apache-2.0
/*
 * Threads that sleep before anything follows them are listed with their registers, and
 * their waits get the site that user space gives, with all of their time; but not the
 * wait of one that has run meanwhile. A stack that cannot be read to the end takes nothing
 * from those of others.
 */
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "profiler/waiting/opened.h"
#include "tests/bpf/wait/test_wait.h"

#define SLEEPERS 8

static struct abi_wait_open open_of[SLEEPERS];
static struct abi_wait_given given[SLEEPERS];
static size_t n_open;
static pid_t child;
static uint64_t sited_ns, other_ns;

static void *blocked(void *arg)
{
	char c;

	return read(*(int *)arg, &c, 1) < 0 ? arg : NULL;
}

/* Two pipes: the last thread alone has the second one. */
static pid_t start(int all[2], int one[2])
{
	pthread_t t;
	pid_t pid;

	assert_int_equal(pipe(all), 0);
	assert_int_equal(pipe(one), 0);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < SLEEPERS - 1; i++)
		if (pthread_create(&t, NULL, blocked,
				   i == SLEEPERS - 2 ? one : all))
			_exit(1);
	blocked(all);
	_exit(0);
}

static void on_site(void *arg, const struct waiting_sum *sum)
{
	if (sum->key.tgid != (uint32_t)child)
		return;
	if (sum->site >= ABI_WAIT_SITE_LEAST)
		sited_ns += sum->ns;
	else
		other_ns += sum->ns;
}

static void list(void)
{
	struct abi_wait_open page[ABI_WAIT_OPEN_MAX];
	uint32_t after = 0;
	size_t n;

	n_open = 0;
	do {
		n = waiting_sums_list(sums, after, page);
		for (size_t i = 0; i < n; i++) {
			assert_true(page[i].tid > after);
			after = page[i].tid;
			if (page[i].key.tgid != (uint32_t)child)
				continue;
			assert_true(n_open < SLEEPERS);
			assert_true(page[i].regs.ip);
			assert_true(page[i].regs.gpr[ABI_REG_SP]);
			open_of[n_open++] = page[i];
		}
	} while (n == ABI_WAIT_OPEN_MAX);
}

static void give(void)
{
	for (size_t i = 0; i < n_open; i++)
		given[i] = (struct abi_wait_given){
			.key = open_of[i].key,
			.switches = open_of[i].switches,
			.site = 1000 + i,
		};
	waiting_sums_give(sums, open_of, given, n_open);
}

static void test_open(void **state)
{
	int all[2], one[2];
	uint64_t from, to;
	size_t taken = 0;
	const char *what;

	child = start(all, one);
	/* Nothing follows it yet. */
	sleep_ms(500);
	assert_int_equal(waiting_sums_new(&sums, 0, 0, &what), 0);
	list();
	assert_int_equal(n_open, SLEEPERS);
	assert_int_equal(write(one[1], "", 1), 1);
	sleep_ms(200);
	give();
	for (size_t i = 0; i < n_open; i++)
		taken += !given[i].site;
	assert_int_equal(taken, SLEEPERS - 1);
	list();
	assert_int_equal(n_open, 0);
	from = clock_boottime_ns();
	assert_int_equal(waiting_sums_cut(sums, from), 0);
	waiting_sums_read(sums, on_site, NULL);
	sited_ns = other_ns = 0;
	sleep_ms(50);
	to = clock_boottime_ns();
	assert_int_equal(waiting_sums_cut(sums, to), 0);
	waiting_sums_read(sums, on_site, NULL);
	assert_int_equal(sited_ns, (SLEEPERS - 1) * (to - from));
	assert_int_equal(other_ns, 0);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* --- a stack that is never read ---------------------------------------------------- */

#define HUNG_BYTES (64 * 1024)
#define HUNG_OTHERS 4

/* Memory whose pages wait for who answers for them, which nobody does. */
static char *endless(void)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	char *at = mmap(NULL, HUNG_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);

	reg.range.start = (uintptr_t)at;
	reg.range.len = HUNG_BYTES;
	if (at == MAP_FAILED || fd < 0 || ioctl(fd, UFFDIO_API, &api) ||
	    ioctl(fd, UFFDIO_REGISTER, &reg))
		_exit(1);
	return at;
}

/* Reads with its stack pointer there: the kernel does not use the stack. */
static long blocked_at(int fd, char *sp)
{
	long n = SYS_read;
	char c;

	__asm__ volatile("mov %%rsp, %%rbx\n\tmov %[sp], %%rsp\n\tsyscall\n\t"
			 "mov %%rbx, %%rsp"
			 : "+a"(n)
			 : "D"(fd), "S"(&c), "d"(1L), [sp] "r"(sp)
			 : "rbx", "rcx", "r11", "memory");
	return n;
}

static pid_t start_hung(int fds[2])
{
	pthread_t t;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (int i = 0; i < HUNG_OTHERS; i++)
		if (pthread_create(&t, NULL, blocked, fds))
			_exit(1);
	_exit(blocked_at(fds[0], endless() + HUNG_BYTES / 2) != 0);
}

static void on_stack(void *arg, const struct abi_sample *rec, size_t len)
{
	if (rec->key.tgid == (uint32_t)child)
		++*(int *)arg;
}

static void test_hung(void **state)
{
	uint64_t end = clock_awake_ns() + WAIT_SECONDS * CLOCK_NSEC_PER_SEC;
	struct waiting_opened o;
	const char *what;
	int fds[2], copied = 0;

	child = start_hung(fds);
	sleep_ms(500);
	close_sums(NULL);
	assert_int_equal(waiting_sums_new(&sums, 0, 0, &what), 0);
	waiting_opened_init(&o, clock_boottime_ns());
	while (copied < HUNG_OTHERS || !o.unread) {
		assert_true(clock_awake_ns() < end);
		waiting_opened_tick(&o, sums, clock_boottime_ns(), on_stack,
				    &copied);
		assert_true(patience_abandoned() <= PATIENCE_ABANDONED_MAX / 2);
		sleep_ms(20);
	}
	assert_int_equal(copied, HUNG_OTHERS);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	waiting_opened_fini(&o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_hung),
	};

	return cmocka_run_group_tests(tests, NULL, close_sums);
}
