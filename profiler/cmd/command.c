// SPDX-License-Identifier: Apache-2.0
/* command: see profiler/cmd/command.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/cmd/command.h"

static void close_pair(int *fds)
{
	close(fds[0]);
	close(fds[1]);
}

/* In the child. */
static void command_child(int hold, int result, char **argv)
{
	ssize_t n;
	char go;
	int err;

	if (TEMP_FAILURE_RETRY(read(hold, &go, 1)) != 1)
		_exit(1);
	execvp(argv[0], argv);
	err = errno;
	n = write(result, &err, sizeof(err));
	_exit(n == sizeof(err) ? 127 : 1);
}

int command_start(struct command *c, char **argv)
{
	int hold[2], result[2], err;

	if (pipe2(hold, O_CLOEXEC))
		return -errno;
	if (pipe2(result, O_CLOEXEC)) {
		err = -errno;
		close_pair(hold);
		return err;
	}
	c->pid = fork();
	if (c->pid < 0) {
		err = -errno;
		c->pid = 0;
		close_pair(hold);
		close_pair(result);
		return err;
	}
	if (!c->pid) {
		/* With its own copy the child would never read end of file. */
		close(hold[1]);
		command_child(hold[0], result[1], argv);
	}
	close(hold[0]);
	close(result[1]);
	c->hold = hold[1];
	c->result = result[0];
	return 0;
}

int command_go(struct command *c)
{
	ssize_t n;
	int err = 0;

	/* If the child was killed, command_status() reports it. */
	if (write(c->hold, "", 1) != 1)
		return 0;
	n = TEMP_FAILURE_RETRY(read(c->result, &err, sizeof(err)));
	close(c->hold);
	c->hold = -1;
	return n == sizeof(err) ? -err : 0;
}

int command_status(struct command *c)
{
	struct rusage ru;
	int st;
	pid_t pid = TEMP_FAILURE_RETRY(wait4(c->pid, &st, WNOHANG, &ru));

	if (!pid)
		return -EAGAIN;
	c->pid = 0;
	if (pid < 0)
		return -errno;
	c->user_ns = ru.ru_utime.tv_sec * CLOCK_NSEC_PER_SEC +
		     ru.ru_utime.tv_usec * 1000;
	return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}

void command_fini(struct command *c)
{
	if (c->hold >= 0)
		close(c->hold);
	if (c->result >= 0)
		close(c->result);
	/* Without command_go() the process exits now. */
	if (c->pid && c->hold >= 0)
		waitpid(c->pid, NULL, 0);
}
