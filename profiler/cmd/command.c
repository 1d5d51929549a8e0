// SPDX-License-Identifier: Apache-2.0
/* command: see profiler/cmd/command.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "profiler/cmd/command.h"

static void close_pair(int *fds)
{
	close(fds[0]);
	close(fds[1]);
}

/* In the child: waits to be let go, becomes the command. */
static void command_child(int hold, int result, char **argv)
{
	char go;
	ssize_t n;
	int err;

	do
		n = read(hold, &go, 1);
	while (n < 0 && errno == EINTR);
	/* End of file: whoever held us is gone, or wants us gone. */
	if (n != 1)
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
		/* Its own copy would keep the end of file from coming. */
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

	/* A child that was killed meanwhile shows by its status. */
	if (write(c->hold, "", 1) != 1)
		return 0;
	do
		n = read(c->result, &err, sizeof(err));
	while (n < 0 && errno == EINTR);
	close(c->hold);
	c->hold = -1;
	return n == sizeof(err) ? -err : 0;
}

int command_status(struct command *c)
{
	pid_t pid;
	int st;

	do
		pid = waitpid(c->pid, &st, WNOHANG);
	while (pid < 0 && errno == EINTR);
	if (!pid)
		return -EAGAIN;
	c->pid = 0;
	if (pid < 0)
		return -errno;
	return WIFSIGNALED(st) ? 128 + WTERMSIG(st) : WEXITSTATUS(st);
}

void command_fini(struct command *c)
{
	if (c->hold >= 0)
		close(c->hold);
	if (c->result >= 0)
		close(c->result);
	/* One never let go ends by itself now, and leaves no zombie. */
	if (c->pid && c->hold >= 0)
		waitpid(c->pid, NULL, 0);
}
