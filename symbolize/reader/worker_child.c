// SPDX-License-Identifier: Apache-2.0
/*
 * worker_child: see symbolize/reader/worker_child.h. libuv reaps it on SIGCHLD,
 * by its pid; other code that has child processes has to wait for them by pid,
 * too.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "symbolize/reader/worker_child.h"

#define NICE_BEFORE (-10)
#define NICE_BEHIND 5 /* more than ours */

struct worker_child {
	LIST_ENTRY(worker_child) link;
	struct worker_children *all;
	bool listed;
	uv_process_t process;
	uv_poll_t poll;
	int sock; /* -1: after worker_child_end() */
	bool ended;
	bool may_nice; /* raising its priority succeeded once */
	enum worker_nice nice;
	unsigned int handles;
};

static void worker_child_on_closed(uv_handle_t *h)
{
	struct worker_child *c = h->data;

	if (--c->handles)
		return;
	if (c->listed) {
		LIST_REMOVE(c, link);
		c->all->gone(c->all->arg);
	}
	free(c);
}

static void worker_child_clear(struct worker_child *c)
{
	if (!uv_is_closing((uv_handle_t *)&c->process))
		uv_close((uv_handle_t *)&c->process, worker_child_on_closed);
}

static void on_process_exit(uv_process_t *p, int64_t status, int sig)
{
	struct worker_child *c = p->data;

	c->ended = true;
	if (c->sock >= 0)
		c->all->ended(c->all->arg, sig ? -sig : (int)status);
	worker_child_end(c);
	worker_child_clear(c);
}

static void worker_child_on_readable(uv_poll_t *poll, int status, int events)
{
	struct worker_child *c = poll->data;

	c->all->readable(c->all->arg);
}

/*
 * Of our environment, which may hold secrets, only the path of libraries; and a
 * variable that symbolizer_new() checks.
 */
static char **worker_child_environ(char *buf, size_t cap, char **env)
{
	const char *path = getenv("LD_LIBRARY_PATH");

	env[0] = SYMBOLIZER_WORKER_ENV "=1";
	env[1] = env[2] = NULL;
	if (path && snprintf(buf, cap, "LD_LIBRARY_PATH=%s", path) < (int)cap)
		env[1] = buf;
	return env;
}

static int worker_child_spawn(struct worker_child *c, const char *program,
			      char **argv, int sock)
{
	char *env[3], path[PATH_MAX];
	uv_stdio_container_t stdio[3] = {
		{ .flags = UV_INHERIT_FD, .data.fd = sock },
		{ .flags = UV_IGNORE },
		{ .flags = UV_IGNORE },
	};
	uv_process_options_t o = {
		.exit_cb = on_process_exit,
		.file = program,
		.args = argv,
		.env = worker_child_environ(path, sizeof(path), env),
		/* Terminal signals are not for it: profd needs it. */
		.flags = UV_PROCESS_DETACHED,
		.stdio_count = 3,
		.stdio = stdio,
	};

	c->handles = 1;
	c->process.data = c;
	return uv_spawn(c->all->loop, &c->process, &o);
}

/* libuv will not reap it: its handle is closed before the loop turns. */
static void end_now(struct worker_child *c)
{
	pid_t pid = c->process.pid;

	uv_process_kill(&c->process, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	c->ended = true;
}

static int worker_child_run(struct worker_child *c, const char *program,
			    char **argv, int sock)
{
	int err = worker_child_spawn(c, program, argv, sock);

	if (err)
		return err;
	uv_unref((uv_handle_t *)&c->process);
	err = uv_poll_init(c->all->loop, &c->poll, c->sock);
	if (err) {
		end_now(c);
		return err;
	}
	c->poll.data = c;
	c->handles++;
	uv_poll_start(&c->poll, UV_READABLE, worker_child_on_readable);
	uv_unref((uv_handle_t *)&c->poll);
	return 0;
}

int worker_child_start(struct worker_child **cp, struct worker_children *all,
		       const char *program, char **argv)
{
	struct worker_child *c = calloc(1, sizeof(*c));
	int pair[2], err;

	if (!c)
		return -ENOMEM;
	c->all = all;
	/* Each end has its own file status; only this one is non-blocking. */
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) ||
	    fcntl(pair[0], F_SETFL, O_NONBLOCK)) {
		err = -errno;
		free(c);
		return err;
	}
	c->sock = pair[0];
	err = worker_child_run(c, program, argv, pair[1]);
	close(pair[1]);
	if (err) {
		/* Even after a failed uv_spawn() the handle must be closed. */
		close(c->sock);
		c->sock = -1;
		worker_child_clear(c);
		return err;
	}
	LIST_INSERT_HEAD(&all->list, c, link);
	c->listed = true;
	*cp = c;
	return 0;
}

int worker_child_socket(const struct worker_child *c)
{
	return c->sock;
}

pid_t worker_child_pid(const struct worker_child *c)
{
	return c->process.pid;
}

void worker_child_nice(struct worker_child *c, enum worker_nice nice)
{
	int usual = getpriority(PRIO_PROCESS, 0);
	const int values[] = {
		[WORKER_WITH] = usual,
		[WORKER_BEFORE] = MIN(usual, NICE_BEFORE),
		[WORKER_BEHIND] = MIN(usual + NICE_BEHIND, 19),
	};

	/* Lowering it needs no privilege, but undoing that does. */
	if (c->nice == nice || (nice == WORKER_BEHIND && !c->may_nice))
		return;
	if (setpriority(PRIO_PROCESS, (id_t)c->process.pid, values[nice]))
		return;
	c->nice = nice;
	c->may_nice |= nice == WORKER_BEFORE;
}

void worker_child_ref(struct worker_child *c, bool ref)
{
	if (ref)
		uv_ref((uv_handle_t *)&c->poll);
	else
		uv_unref((uv_handle_t *)&c->poll);
}

void worker_child_kill(struct worker_child *c)
{
	uv_poll_stop(&c->poll);
	if (!c->ended)
		uv_process_kill(&c->process, SIGKILL);
}

void worker_child_end(struct worker_child *c)
{
	if (c->sock < 0)
		return;
	uv_close((uv_handle_t *)&c->poll, worker_child_on_closed);
	close(c->sock);
	c->sock = -1;
	if (!c->ended)
		uv_process_kill(&c->process, SIGKILL);
}

void worker_children_forget(struct worker_children *all)
{
	struct worker_child *c;

	LIST_FOREACH(c, &all->list, link) {
		worker_child_end(c);
		worker_child_clear(c);
	}
}
