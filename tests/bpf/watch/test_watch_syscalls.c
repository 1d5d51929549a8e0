// SPDX-License-Identifier: Apache-2.0
/*
 * System calls as events, what is special: paths, execs, forks, ends without an event,
 * 32-bit calls, thresholds, and a user's storm beside another user. What holds of each
 * call is in test_watch_calls.c.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/bpf/watch/test_watch_calls.h"

/* --- paths ---------------------------------------------------------------------- */

static const struct watch_event *of_path(const char *half)
{
	char name[64];

	snprintf(name, sizeof(name), "syscall_%s-chdir", half);
	return wait_of(name, getpid());
}

/* A page of a file that no process has touched. */
static char *untouched(const char *text)
{
	char name[] = "/tmp/watch-XXXXXX";
	int fd = mkstemp(name);
	char *at;

	assert_true(fd >= 0);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(write(fd, text, strlen(text) + 1), strlen(text) + 1);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(at != MAP_FAILED);
	close(fd);
	return at;
}

static void paths(void **state)
{
	char *late = untouched(NOWHERE), any[4096], long_one[4096];
	const struct watch_event *e;

	begin("chdir", 0, false, false);
	assert_int_equal(chdir(late), -1);
	e = of_path("enter");
	assert_string_equal(text(e, "path_unread"), "filename");
	assert_int_equal(attribute(e, "filename")->u, (uint64_t)late);
	e = of_path("exit");
	assert_string_equal(text(e, "filename"), NOWHERE);
	assert_string_equal(text(e, "path_late"), "filename");
	assert_null(attribute(e, "path_unread"));
	stop();

	begin("chdir", 0, false, false);
	assert_int_equal(syscall(SYS_chdir, BAD), -1);
	e = of_path("exit");
	assert_int_equal(attribute(e, "filename")->type, WATCH_POINTER);
	assert_int_equal(attribute(e, "filename")->u, BAD);
	assert_string_equal(text(e, "path_unread"), "filename");
	assert_int_equal(number(e, "res"), -EFAULT);
	stop();

	/* NULL is no path. */
	begin("chdir", 0, false, false);
	assert_int_equal(syscall(SYS_chdir, NULL), -1);
	e = of_path("exit");
	assert_null(attribute(e, "path_unread"));
	stop();

	for (size_t i = 0; i < 600; i++)
		any[i] = (char)(1 + i % 255);
	any[600] = '\0';
	memset(long_one, 'x', sizeof(long_one));
	long_one[sizeof(long_one) - 1] = '\0';
	begin("chdir", 0, false, false);
	assert_int_equal(chdir(any), -1);
	assert_int_equal(chdir(long_one), -1);
	e = of_path("exit");
	assert_string_equal(text(e, "filename"), any);
	assert_null(attribute(e, "path_cut"));
	wait_nth("syscall_exit-chdir", 1);
	e = nth_of("syscall_exit-chdir", getpid(), 1);
	assert_non_null(e);
	long_one[1023] = '\0';
	assert_string_equal(text(e, "filename"), long_one);
	assert_string_equal(text(e, "path_cut"), "filename");
	assert_int_equal(number(e, "res"), -ENAMETOOLONG);
	stop();
	munmap(late, 4096);
}

/* --- processes ------------------------------------------------------------------- */

static bool same_image(const struct abi_key *a, const struct abi_key *b)
{
	return a->tgid == b->tgid && a->start_boottime == b->start_boottime &&
	       a->exec_id == b->exec_id;
}

static void an_exec_names_both_images(void **state)
{
	const struct watch_event *e, *enter;
	char *const argv[] = { "true", NULL };
	pid_t pid;

	for (int absent = 0; absent < 2; absent++) {
		char *file = untouched("/bin/true");

		begin("syscall_*-exec*", 0, false, true);
		pid = child = fork();
		if (!pid) {
			if (absent || *file)
				syscall(SYS_execve, file, argv, NULL);
			_exit(1);
		}
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		e = wait_of("syscall_exit-execve", pid);
		enter = wait_of("syscall_enter-execve", pid);
		assert_true(same_image(&e->key, &enter->key));
		assert_int_equal(e->image_new.exec_id, e->key.exec_id + 1);
		assert_int_equal(e->image_new.tgid, pid);
		assert_int_equal(e->image_new.start_boottime,
				 e->key.start_boottime);
		assert_string_equal(e->comm, enter->comm);
		assert_string_not_equal(e->comm, "true");
		assert_string_equal(text(e, "filename"), "/bin/true");
		assert_true(!attribute(e, "path_late") == !absent);
		assert_int_equal(attribute(e, "argv")->u, (uint64_t)argv);
		assert_int_equal(number(e, "res"), 0);
		assert_true(e->timed && !e->failed);
		stop();
		munmap(file, 4096);
	}
}

static void forks_and_ends(void **state)
{
	const struct watch_event *e;
	pid_t pid;

	begin("fork exit setsid", 0, false, true);
	pid = child = (pid_t)syscall(SYS_fork);
	if (!pid) {
		syscall(SYS_setsid);
		syscall(SYS_exit, 7);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	e = wait_of("syscall_enter-exit", pid);
	assert_int_equal(number(e, "error_code"), 7);
	e = wait_of("syscall_exit-fork", getpid());
	assert_int_equal(number(e, "res"), pid);
	assert_true(e->timed);
	/* It ends in the child as well, which has not begun it. */
	e = wait_of("syscall_exit-fork", pid);
	assert_int_equal(number(e, "res"), 0);
	assert_false(e->timed);
	assert_null(nth_of("syscall_enter-fork", pid, 0));
	e = wait_of("syscall_exit-setsid", pid);
	assert_int_equal(number(e, "res"), pid);
	assert_string_equal(watch_name(e->name)->category, "process");
	stop();
}

static void on_signal(int sig)
{
}

static void more_ends(void **state)
{
	pid_t pid, other;

	begin("exit_group rt_sigreturn vfork pause", 0, false, true);
	pid = child = fork();
	if (!pid) {
		signal(SIGALRM, on_signal);
		alarm(1);
		syscall(SYS_pause);
		other = vfork();
		if (!other)
			_exit(0);
		syscall(SYS_exit_group, 3);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(number(wait_of("syscall_enter-exit_group", pid),
				"error_code"),
			 3);
	assert_non_null(nth_of("syscall_enter-rt_sigreturn", pid, 0));
	assert_non_null(nth_of("syscall_exit-vfork", pid, 0));
	/* What the program sees as EINTR is ERESTARTNOHAND here. */
	assert_int_equal(number(nth_of("syscall_exit-pause", pid, 0), "res"),
			 -514);
	stop();
}

/* Their numbers are those of other calls. */
static void calls_of_32_bits_are_left_out(void **state)
{
	int status;
	long res = 20; /* getpid there, writev here */
	pid_t pid;

	begin("writev getppid exit_group", 0, false, true);
	pid = child = fork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		asm volatile("int $0x80"
			     : "+a"(res)
			     :
			     : "memory", "r8", "r9", "r10", "r11");
		syscall(SYS_getppid);
		_exit(res != getpid());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status)) {
		stop();
		skip(); /* a kernel without them */
	}
	assert_int_equal(status, 0);
	wait_of("syscall_exit-getppid", pid);
	wait_of("syscall_enter-exit_group", pid);
	assert_null(nth_of("syscall_enter-writev", pid, 0));
	assert_null(nth_of("syscall_exit-writev", pid, 0));
	stop();
}

/* --- filters ---------------------------------------------------------------------- */

static void nap(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	syscall(SYS_nanosleep, &t, NULL);
}

static void slow_and_failed_ones(void **state)
{
	const struct watch_event *e;

	begin("nanosleep", 20 * CLOCK_NSEC_PER_MSEC, false, false);
	nap(0);
	nap(50);
	e = wait_of("syscall_exit-nanosleep", getpid());
	assert_true(e->latency_ns >= 50 * CLOCK_NSEC_PER_MSEC);
	assert_null(nth_of("syscall_exit-nanosleep", getpid(), 1));
	stop();

	begin("close", 0, true, false);
	close(dup(0));
	close(-1);
	e = wait_of("syscall_exit-close", getpid());
	assert_int_equal(number(e, "res"), -EBADF);
	assert_int_equal(number(e, "fd"), -1);
	/* A begin has not failed. */
	assert_null(nth_of("syscall_enter-close", getpid(), 0));
	assert_null(nth_of("syscall_exit-close", getpid(), 1));
	stop();
}

/* Who reads events makes more by each. */
static void not_of_who_watches(void **state)
{
	pid_t pid;
	static const char *const name[] = { "getppid", "exit_group" };
	const struct watch_want want = { .names = name,
					 .n_names = 2,
					 .take = of_family,
					 .client = (uint32_t)getpid() };

	begin("getppid", 0, false, true);
	stop();
	n_got = 0;
	sub = subscribe(&want);
	syscall(SYS_getppid);
	pid = child = fork();
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	wait_of("syscall_enter-exit_group", pid);
	for (size_t i = 0; i < n_got; i++)
		assert_true(got[i].key.tgid != (uint32_t)getpid());
	stop();
}

static void drain_of(pid_t pid, size_t *own, size_t *other)
{
	struct watch_event e;

	assert_true(watch_read(watch) >= 0);
	while (!watch_next(sub, &e))
		++*(e.key.tgid == (uint32_t)pid ? own : other);
}

/* Long paths of one user, in two processes, and the calls of another. */
static void a_storm_of_calls(void **state)
{
	static const char *const name[] = { "syscall_exit-chdir" };
	const struct watch_want want = { .names = name, .n_names = 1 };
	size_t own = 0, flood = 0, sent = 0, lost = 0;
	char path[4000];
	pid_t storm[2];

	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	begin("syscall_exit-chdir", 0, false, true);
	stop();
	sub = subscribe(&want);
	own_budget(true);
	for (int i = 0; i < 2; i++) {
		storm[i] = fork();
		if (!storm[i]) {
			assert_int_equal(syscall(SYS_setuid, 65534), 0);
			for (;;)
				syscall(SYS_chdir, path);
		}
	}
	for (int round = 0; round < 20; round++) {
		usleep(150000);
		for (int k = 0; k < 20; k++, sent++)
			syscall(SYS_chdir, NOWHERE);
		drain_of(getpid(), &own, &flood);
	}
	for (int i = 0; i < 2; i++) {
		kill(storm[i], SIGKILL);
		waitpid(storm[i], NULL, 0);
	}
	for (int tries = 0; tries < 1000 && own < sent; tries++) {
		usleep(5000);
		drain_of(getpid(), &own, &flood);
	}
	for (size_t i = 0; watch_name(i); i++)
		lost += watch_lost(sub, i);
	print_message("%zu of the storm, %zu lost\n", flood, lost);
	own_budget(false);
	assert_int_equal(own, sent);
	assert_true(flood > 0 && lost > 0);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths),
		cmocka_unit_test(an_exec_names_both_images),
		cmocka_unit_test(forks_and_ends),
		cmocka_unit_test(more_ends),
		cmocka_unit_test(calls_of_32_bits_are_left_out),
		cmocka_unit_test(slow_and_failed_ones),
		cmocka_unit_test(not_of_who_watches),
		cmocka_unit_test(a_storm_of_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
