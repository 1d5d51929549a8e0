// SPDX-License-Identifier: Apache-2.0
/*
 * prog_reuse DIR LIVES MS: processes, one right after the other, that all have one of
 * four pids: the next is created with the number (clone3(2), set_tid) as soon as
 * wait4(2) has returned the last. Their kind changes each time: programs of DIR, each
 * of MS milliseconds in functions of its own, or no program but functions in this
 * file. Prints a line for each:
 *
 *	NUMBER PID PPID KIND STATUS CPU_US
 *
 * STATUS is "exit N" or "signal N". A program has the argument "life-NUMBER". Two
 * processes run at a time.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/e2e/frame.h"

#define DEEP __attribute__((noinline, noclone))
#define PIDS 4
#define WORKERS 2

extern char **environ;

void forked_spin(uint64_t n);
void killed_spin(uint64_t n);

DEEP void forked_spin(uint64_t n)
{
	WITH_FRAME;
	while (n--)
		__asm__ volatile("" : "+r"(n));
}

DEEP void killed_spin(uint64_t n)
{
	WITH_FRAME;
	while (n--)
		__asm__ volatile("" : "+r"(n));
}

static void spin(void (*leaf)(uint64_t), long ms)
{
	struct timespec ts;

	do {
		leaf(1000000);
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	} while (ts.tv_sec * 1000 + ts.tv_nsec / 1000000 < ms);
}

struct plan {
	const char *dir, *ms;
	char tag[32];
};

/* "a" is DIR/prog_spin_a. */
static void run(const struct plan *p, const char *name, const char *what,
		const char *next)
{
	static char path[2][4096];
	const char *argv[8] = { path[0], p->ms, what }, **arg = argv + 2;

	snprintf(path[0], sizeof(path[0]), "%s/prog_spin_%s", p->dir, name);
	snprintf(path[1], sizeof(path[1]), "%s/%s", p->dir, next ? next : "");
	if (what) {
		argv[3] = path[1];
		arg = argv + 4;
	}
	if (what && !strcmp(what, "exec"))
		*arg++ = p->ms;
	*arg = p->tag;
	execve(argv[0], (char **)argv, environ);
	_exit(99);
}

static void child(const struct plan *p, int kind, int n)
{
	dup2(open("/dev/null", O_WRONLY), STDOUT_FILENO);
	switch (kind) {
	case 0:
		run(p, "a", NULL, NULL);
		break;
	case 1:
		run(p, "b", NULL, NULL);
		break;
	case 2:
		spin(forked_spin, atol(p->ms));
		_exit(n % 97);
		break;
	case 3:
		run(p, "a", "exec", "prog_spin_b");
		break;
	case 4:
		run(p, "old", "dlopen", "libplugin.so");
		break;
	case 5:
		spin(killed_spin, atol(p->ms));
		kill(getpid(), SIGKILL);
		break;
	case 6:
		run(p, "new", "exec", "prog_spin_old");
		break;
	}
	_exit(98);
}

/* As fork(2), with that pid. */
static pid_t fork_as(pid_t pid)
{
	struct clone_args args;

	memset(&args, 0, sizeof(args));
	args.exit_signal = SIGCHLD;
	args.set_tid = (uintptr_t)&pid;
	args.set_tid_size = 1;
	return syscall(SYS_clone3, &args, sizeof(args));
}

/*
 * Another process may have got the number meanwhile: waits for it, some seconds. -1:
 * it is still in use, or not allowed.
 */
static pid_t life(pid_t pid, const struct plan *p, int kind, int n)
{
	struct timespec pause = { 0, 1000000 };
	int tries;
	pid_t got;

	for (tries = 0; tries < 20000; tries++) {
		got = fork_as(pid);
		if (got == 0)
			child(p, kind, n);
		if (got > 0 || errno != EEXIST)
			return got;
		nanosleep(&pause, NULL);
	}
	return -1;
}

/* A free number. */
static pid_t free_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	waitpid(pid, NULL, 0);
	return pid;
}

static int worker(struct plan *p, int first, int n)
{
	pid_t pids[PIDS / WORKERS], pid;
	struct rusage ru;
	int i, status;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setlinebuf(stdout); /* shared with the other worker */
	for (i = 0; i < PIDS / WORKERS; i++)
		pids[i] = free_pid();
	for (i = first; i < n; i += WORKERS) {
		snprintf(p->tag, sizeof(p->tag), "life-%d", i);
		pid = life(pids[i / WORKERS % (PIDS / WORKERS)], p, i % 7, i);
		if (pid < 0) {
			perror("clone3");
			return 1;
		}
		if (wait4(pid, &status, 0, &ru) != pid)
			return 1;
		printf("%d %d %d %d %s %d %lld\n", i, pid, getpid(), i % 7,
		       WIFEXITED(status) ? "exit" : "signal",
		       WIFEXITED(status) ? WEXITSTATUS(status)
					 : WTERMSIG(status),
		       (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000LL +
			       ru.ru_utime.tv_usec + ru.ru_stime.tv_usec);
	}
	return fflush(stdout);
}

int main(int argc, char **argv)
{
	struct plan p = { "", "", "" };
	int i, status, err = 0;

	if (argc < 4)
		return 2;
	p.dir = argv[1];
	p.ms = argv[3];
	for (i = 0; i < WORKERS; i++)
		if (!fork())
			_exit(worker(&p, i, atoi(argv[2])));
	while (wait(&status) > 0)
		err |= status;
	return !!err;
}
