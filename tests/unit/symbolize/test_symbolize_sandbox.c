// SPDX-License-Identifier: Apache-2.0
/* The sandbox, from inside: what a process can still do. */
#include <fcntl.h>
#include <signal.h>
#include <sys/capability.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "symbolize/reader/sandbox.h"
#include "symbolize/reader/worker_msg.h"
#include "tests/unit/symbolize/test_symbolize.h"

/* --- what is forbidden ------------------------------------------------------------- */

static void try_nothing(void)
{
}

static void try_memory(void)
{
	char *p = malloc(1 << 20);

	memset(p, 1, 1 << 20);
	p = realloc(p, 4 << 20);
	free(p);
}

static void try_open(void)
{
	syscall(SYS_open, "/dev/null", O_RDONLY);
}

static void try_openat(void)
{
	open("/dev/null", O_RDONLY);
}

static void try_readlink(void)
{
	char path[8];

	if (readlink("/proc/self/exe", path, sizeof(path)) < 0)
		_exit(1);
}

static void try_openat2(void)
{
	syscall(SYS_openat2, AT_FDCWD, "/dev/null", NULL, 0);
}

static void try_stat(void)
{
	struct stat st;

	syscall(SYS_newfstatat, AT_FDCWD, "/etc/passwd", &st, 0);
}

static void try_socket(void)
{
	socket(AF_UNIX, SOCK_STREAM, 0);
}

static void try_fork(void)
{
	if (fork() == 0)
		_exit(0);
}

static void try_exec(void)
{
	execl("/bin/true", "true", NULL);
}

static void try_kill(void)
{
	kill(getppid(), 0);
}

static void try_ptrace(void)
{
	ptrace(PTRACE_TRACEME, 0, 0, 0);
}

static void try_code(void)
{
	mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
	     0);
}

static void try_make_code(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	mprotect(p, 4096, PROT_READ | PROT_EXEC);
}

static void try_other_socket(void)
{
	char c;
	struct iovec iov = { &c, 1 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 };

	sendmsg(1, &m, 0);
}

static void try_plain_memfd(void)
{
	memfd_create("x", 0);
}

static void try_dup(void)
{
	fcntl(0, F_DUPFD, 5);
}

static void try_limit(void)
{
	struct rlimit lim = { 1, 1 };

	setrlimit(RLIMIT_CPU, &lim);
}

static void try_uid(void)
{
	syscall(SYS_setuid, 0);
}

/* In a child, in the sandbox: how it ends. */
static int end_of(void (*try)(void))
{
	struct sandbox_opts o = { .memory = 64 << 20,
				  .cpu_s = 60,
				  .file_bytes = 1 << 20 };
	const char *what;
	uid_t uid;
	pid_t pid = fork();
	int st;

	if (pid == 0) {
		if (sandbox_enter(&o, &uid, &what))
			_exit(99);
		try();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &st, 0), pid);
	return WIFSIGNALED(st) ? -WTERMSIG(st) : WEXITSTATUS(st);
}

static void in_the_sandbox_there_is_nothing_to_be_had(void **state)
{
	static void (*const tries[])(void) = {
		try_open, try_openat, try_readlink,	try_openat2,
		try_stat, try_socket, try_fork,		try_exec,
		try_kill, try_ptrace, try_code,		try_make_code,
		try_dup,  try_limit,  try_other_socket, try_plain_memfd,
		try_uid,
	};

	assert_int_equal(end_of(try_nothing), 0);
	assert_int_equal(end_of(try_memory), 0);
	for (size_t i = 0; i < ARRAY_SIZE(tries); i++)
		if (end_of(tries[i]) != -SIGSYS)
			fail_msg("attempt %zu was not the end", i);
}

static void eat_memory(void)
{
	for (size_t i = 0; i < 1024; i++) {
		char *p = malloc(1 << 20);

		if (!p)
			_exit(7);
		memset(p, 1, 1 << 20);
	}
}

/* Not with AddressSanitizer, which allocates memory in other ways. */
__attribute__((unused)) static void memory_in_the_sandbox_ends(void **state)
{
	assert_int_equal(end_of(eat_memory), 7);
}

/* Sparse, and far larger than the limit: only what is written to counts. */
static void map_large(void)
{
	const size_t size = 2ULL << 30;
	int flags = MAP_PRIVATE | MAP_NORESERVE;
	char *p = mmap(NULL, size, PROT_READ, flags, SANDBOX_SOCKET, 0);
	char *reserved =
		mmap(NULL, size, PROT_NONE, flags | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || reserved == MAP_FAILED || p[size - 1] ||
	    mprotect(reserved, 1 << 20, PROT_READ | PROT_WRITE))
		_exit(1);
	*reserved = 1;
	/* More than the limit is too much. */
	_exit(mprotect(reserved, 65 << 20, PROT_READ | PROT_WRITE) ? 0 : 2);
}

__attribute__((unused)) static void
files_larger_than_the_memory_can_be_mapped(void **state)
{
	int old = dup(SANDBOX_SOCKET), fd = memfd_create("large", 0);

	assert_true(old >= 0 && fd >= 0);
	assert_int_equal(ftruncate(fd, 2LL << 30), 0);
	/* The only descriptor that stays open. */
	assert_int_equal(dup2(fd, SANDBOX_SOCKET), SANDBOX_SOCKET);
	assert_int_equal(end_of(map_large), 0);
	dup2(old, SANDBOX_SOCKET);
	close(old);
	close(fd);
}

static void eat_time(void)
{
	for (volatile unsigned int i = 0;; i++)
		;
}

static void time_in_the_sandbox_ends(void **state)
{
	struct sandbox_opts o = { .memory = 64 << 20,
				  .cpu_s = 1,
				  .file_bytes = 1 << 20 };
	const char *what;
	uid_t uid;
	pid_t pid = fork();
	int st;

	if (pid == 0) {
		if (sandbox_enter(&o, &uid, &what))
			_exit(99);
		eat_time();
	}
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_true(WIFSIGNALED(st) && WTERMSIG(st) == SIGXCPU);
}

/* In the sandbox, until its socket ends. */
static void stay_root(int sock)
{
	const cap_value_t need = CAP_SETUID;
	struct sandbox_opts o = { .memory = 64 << 20,
				  .cpu_s = 60,
				  .file_bytes = 1 << 20 };
	cap_t caps = cap_get_proc();
	static struct worker_in in;
	const char *what;
	uid_t uid;

	cap_set_flag(caps, CAP_EFFECTIVE, 1, &need, CAP_CLEAR);
	if (cap_set_proc(caps) || dup2(sock, 0) < 0 ||
	    sandbox_enter(&o, &uid, &what) || uid != 0)
		_exit(99);
	worker_recv(0, &in);
	_exit(0);
}

/* When it cannot change its user id, and so keeps its capabilities. */
static void it_gives_up_capabilities_by_itself(void **state)
{
	int pair[2], st;
	pid_t pid;

	if (geteuid())
		skip();
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	pid = fork();
	if (pid == 0)
		stay_root(pair[1]);
	close(pair[1]);
	for (int i = 0; i < 6000 && strcmp(proc_line(pid, "Seccomp"), "2"); i++)
		usleep(10000);
	assert_string_equal(proc_line(pid, "Seccomp"), "2");
	assert_string_equal(proc_line(pid, "CapEff"), "0000000000000000");
	assert_string_equal(proc_line(pid, "CapPrm"), "0000000000000000");
	close(pair[0]);
	assert_int_equal(waitpid(pid, &st, 0), pid);
	assert_int_equal(st, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(in_the_sandbox_there_is_nothing_to_be_had),
#ifndef __SANITIZE_ADDRESS__
		cmocka_unit_test(memory_in_the_sandbox_ends),
		cmocka_unit_test(files_larger_than_the_memory_can_be_mapped),
#endif
		cmocka_unit_test(time_in_the_sandbox_ends),
		cmocka_unit_test(it_gives_up_capabilities_by_itself),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
