// SPDX-License-Identifier: Apache-2.0
/*
 * prog_lives N WORKERS [GIANTS]: N processes of every kind, and a line for each with
 * the result of wait4(2):
 *
 *	ARGUMENT PID PPID STATUS CPU_US
 *
 * STATUS is "exit N" or "signal N". ARGUMENT is unique, so that a process can be
 * identified without its pid. GIANTS of them touch 1 GiB each.
 */
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static void *touch(void *arg)
{
	size_t len = (size_t)arg, i;
	volatile char *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
				MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (i = 0; (void *)p != MAP_FAILED && i < len; i += 4096)
		p[i] = 1;
	return NULL;
}

/* Threads that still run when the process ends, and others. */
static void threads(int code, int leader_first)
{
	pthread_t t[3];
	int i;

	for (i = 0; i < 3; i++)
		pthread_create(&t[i], NULL, touch, (void *)(64UL << 10));
	if (!leader_first)
		_exit(code);
	pthread_exit(NULL); /* the others end a moment later, with 0 */
}

static void *exec_true(void *arg)
{
	char *argv[] = { "/bin/true", arg, NULL };

	execve(argv[0], argv, environ);
	_exit(99);
}

static int child(const char *tag, int kind, int code)
{
	pthread_t t;

	switch (kind) {
	case 0:
		return code;
	case 1:
		kill(getpid(), SIGKILL);
		break;
	case 2:
		raise(SIGTERM);
		break;
	case 3:
		threads(code, 0);
		break;
	case 4:
		threads(0, 1);
		break;
	case 5: /* an exec by a thread that is not the leader */
		pthread_create(&t, NULL, exec_true, (void *)tag);
		pause();
		break;
	case 6:
		touch((void *)(1UL << 30));
		return code;
	}
	return 98;
}

static int one_life(int n, int kind)
{
	char tag[32], kinds[16], code[16];
	char *argv[] = { "/proc/self/exe", tag, kinds, code, NULL };
	struct rusage ru;
	int status;
	pid_t pid;

	snprintf(tag, sizeof(tag), "life-%d", n);
	snprintf(kinds, sizeof(kinds), "%d", kind);
	snprintf(code, sizeof(code), "%d", n % 97);
	if (posix_spawn(&pid, argv[0], NULL, NULL, argv, environ) ||
	    wait4(pid, &status, 0, &ru) != pid)
		return 1;
	printf("%s %d %d %s %d %lld\n", tag, pid, getpid(),
	       WIFEXITED(status) ? "exit" : "signal",
	       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
	       (ru.ru_utime.tv_sec + ru.ru_stime.tv_sec) * 1000000LL +
		       ru.ru_utime.tv_usec + ru.ru_stime.tv_usec);
	return 0;
}

static int worker(int first, int n, int step, int giants)
{
	int i, err = 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setlinebuf(stdout); /* shared with the other workers */
	for (i = first; i < n && !err; i += step)
		err = one_life(i, i < giants ? 6 : i % 6);
	return fflush(stdout) || err;
}

int main(int argc, char **argv)
{
	int i, n, workers, status, err = 0;

	if (argc > 3 && !strncmp(argv[1], "life-", 5))
		return child(argv[1], atoi(argv[2]), atoi(argv[3]));
	if (argc < 3)
		return 2;
	n = atoi(argv[1]);
	workers = atoi(argv[2]);
	for (i = 0; i < workers; i++)
		if (!fork())
			_exit(worker(i, n, workers,
				     argc > 3 ? atoi(argv[3]) : 0));
	while (wait(&status) > 0)
		err |= status;
	return !!err;
}
