// SPDX-License-Identifier: Apache-2.0
/*
 * load_sleep: sleeping processes.
 *
 *   load_sleep fork N   N children, which share all memory with their parent
 *   load_sleep exec N   N children, each of which executed this program again
 *   load_sleep maps N   none, but N executable mappings of this program
 *
 * Prints "pids PID...", of the children, and "ready" when all run; ends with them at
 * the end of its standard input.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#define PAGE 4096

static void fail(const char *what)
{
	perror(what);
	exit(1);
}

static void child(const char *self, bool anew)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (anew)
		execl(self, self, "sleeper", (char *)NULL);
	for (;;)
		pause();
}

/* It closes its end of the pipe when it is ready. */
static pid_t start(const char *self, bool anew)
{
	int fds[2];
	char c;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC))
		fail("pipe");
	pid = fork();
	if (pid < 0)
		fail("fork");
	if (!pid) {
		if (!anew) {
			close(fds[0]);
			close(fds[1]);
		}
		child(self, anew);
	}
	close(fds[1]);
	if (read(fds[0], &c, 1))
		fail("child");
	close(fds[0]);
	return pid;
}

/*
 * Two pages with one between them, in turn: the kernel would merge mappings that are
 * neighbours in the file, too.
 */
static void map_many(const char *self, long n)
{
	int fd = open(self, O_RDONLY | O_CLOEXEC);
	char *at;
	long i;

	if (fd < 0)
		fail(self);
	at = mmap(NULL, (size_t)n * PAGE, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		fail("mmap");
	for (i = 0; i < n; i++) {
		if (mmap(at + i * PAGE, PAGE, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_FIXED, fd,
			 i % 2 ? 2 * PAGE : 0) == MAP_FAILED)
			fail("mmap");
	}
	close(fd);
}

int main(int argc, char **argv)
{
	long n = argc > 2 ? atol(argv[2]) : 0, i;
	const char *how = argc > 1 ? argv[1] : "";
	char c;

	if (!strcmp(how, "sleeper")) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	if (n < 1)
		return 2;
	if (!strcmp(how, "maps"))
		map_many(argv[0], n);
	else
		printf("pids");
	for (i = 0; i < n && strcmp(how, "maps"); i++)
		printf(" %d", (int)start(argv[0], !strcmp(how, "exec")));
	printf("\nready\n");
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}
