// SPDX-License-Identifier: Apache-2.0
/* connector: profd's side: see profiler/tracing/connector.h. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/tracing/connector.h"

/* Before another start when a process failed. */
#define CONNECTOR_PAUSE_NS CLOCK_NSEC_PER_SEC
#define CONNECTOR_TICK_MS 250

struct connector_job {
	uint64_t number; /* 0: free */
	uint64_t since; /* clock_awake_ns() */
	struct abi_key key;
	uint32_t uid;
};

/* The socket; freed when libuv has closed the handle. */
struct connector_link {
	uv_poll_t poll;
	struct connector *connector; /* NULL: closed */
	int fd;
};

/* Likewise. */
struct connector_clock {
	uv_timer_t timer;
	struct connector *connector;
};

struct connector {
	struct connector_opts opts;
	struct connector_link *link; /* NULL: no process */
	struct connector_clock *clock;
	pid_t pid;
	uint64_t restart_at; /* clock_awake_ns() */
	uint64_t number;
	struct connector_job jobs[CONNECTOR_AT_ONCE];
};

/* --- the process -------------------------------------------------------------- */

static void connector_on_link_closed(uv_handle_t *h)
{
	struct connector_link *l = h->data;

	close(l->fd);
	free(l);
}

static void connector_on_clock_closed(uv_handle_t *h)
{
	free(h->data);
}

/* It only reads messages and forks, so it ends at once. */
static void connector_end(struct connector *c)
{
	if (!c->link)
		return;
	c->link->connector = NULL;
	uv_close((uv_handle_t *)&c->link->poll, connector_on_link_closed);
	c->link = NULL;
	if (c->pid > 0) {
		kill(c->pid, SIGKILL);
		waitpid(c->pid, NULL, 0);
	}
	c->pid = 0;
}

static void connector_answer(struct connector *c, struct connector_job *j,
			     int err, int fd)
{
	struct abi_key key = j->key;

	j->number = 0;
	c->opts.done(c->opts.arg, &key, err, fd);
}

static void connector_fail(struct connector *c)
{
	connector_end(c);
	c->restart_at = clock_awake_ns() + CONNECTOR_PAUSE_NS;
	for (size_t i = 0; i < CONNECTOR_AT_ONCE; i++)
		if (c->jobs[i].number)
			connector_answer(c, &c->jobs[i], -EIO, -1);
}

/* 1: a message; 0: none now; or -errno. '*fd' is owned, -1: none. */
static int connector_receive(int sock, struct connector_answer *a, int *fd)
{
	struct iovec iov = { a, sizeof(*a) };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr msg = {
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *head;
	ssize_t n = recvmsg(sock, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*fd = -1;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	head = CMSG_FIRSTHDR(&msg);
	if (head && head->cmsg_type == SCM_RIGHTS)
		memcpy(fd, CMSG_DATA(head), sizeof(*fd));
	if (n == sizeof(*a) && a->err <= 0 && (a->err == 0) == (*fd >= 0))
		return 1;
	if (*fd >= 0)
		close(*fd);
	return -EPROTO;
}

/* One that came too late has none. */
static struct connector_job *connector_job_of(struct connector *c,
					      uint64_t number)
{
	for (size_t i = 0; i < CONNECTOR_AT_ONCE; i++)
		if (number && c->jobs[i].number == number)
			return &c->jobs[i];
	return NULL;
}

static void connector_on_readable(uv_poll_t *poll, int status, int events)
{
	struct connector_link *l = poll->data;
	struct connector *c = l->connector;
	struct connector_answer a;
	struct connector_job *j;
	int n = 1, fd;

	while (c && c->link == l && n > 0) {
		n = connector_receive(l->fd, &a, &fd);
		j = n > 0 ? connector_job_of(c, a.number) : NULL;
		if (j)
			connector_answer(c, j, a.err, fd);
		else if (n > 0 && fd >= 0)
			close(fd);
	}
	if (n < 0)
		connector_fail(c);
}

static void connector_on_timer(uv_timer_t *timer)
{
	struct connector *c =
		((struct connector_clock *)timer->data)->connector;
	uint64_t last = CONNECTOR_DEADLINE_MS * CLOCK_NSEC_PER_MSEC;
	uint64_t now = clock_awake_ns();
	bool any = false;

	for (size_t i = 0; i < CONNECTOR_AT_ONCE; i++) {
		struct connector_job *j = &c->jobs[i];

		if (j->number && now - j->since > last)
			connector_answer(c, j, -ETIMEDOUT, -1);
		any |= j->number != 0;
	}
	if (!any)
		uv_timer_stop(timer);
}

/* Takes over the socket. */
static int connector_link_start(struct connector *c, int fd)
{
	struct connector_link *l = calloc(1, sizeof(*l));
	int err = l ? uv_poll_init(c->opts.loop, &l->poll, fd) : -ENOMEM;

	if (err) {
		free(l);
		close(fd);
		return err;
	}
	l->fd = fd;
	l->connector = c;
	l->poll.data = l;
	c->link = l;
	uv_poll_start(&l->poll, UV_READABLE, connector_on_readable);
	uv_unref((uv_handle_t *)&l->poll);
	return 0;
}

static int connector_start(struct connector *c)
{
	int pair[2], err;

	if (c->link)
		return 0;
	if (clock_awake_ns() < c->restart_at)
		return -EIO;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
		return -errno;
	err = connector_link_start(c, pair[0]);
	if (!err)
		err = self_spawn(&c->pid, CONNECTOR_COMMAND, pair[1]);
	close(pair[1]);
	if (err) {
		c->pid = 0;
		connector_end(c);
		c->restart_at = clock_awake_ns() + CONNECTOR_PAUSE_NS;
	}
	return err;
}

/* --- requests ------------------------------------------------------------------- */

int connector_new(struct connector **cp, const struct connector_opts *opts)
{
	struct connector *c = calloc(1, sizeof(*c));
	struct connector_clock *clock = calloc(1, sizeof(*clock));
	int err =
		c && clock ? uv_timer_init(opts->loop, &clock->timer) : -ENOMEM;

	if (err) {
		free(clock);
		free(c);
		return err;
	}
	uv_unref((uv_handle_t *)&clock->timer);
	clock->timer.data = clock;
	clock->connector = c;
	c->clock = clock;
	c->opts = *opts;
	*cp = c;
	return 0;
}

void connector_free(struct connector *c)
{
	if (!c)
		return;
	connector_end(c);
	uv_close((uv_handle_t *)&c->clock->timer, connector_on_clock_closed);
	free(c);
}

/* NULL: this user has as many as are free. */
static struct connector_job *connector_room(struct connector *c, uint32_t uid)
{
	struct connector_job *room = NULL;
	unsigned int used = 0, own = 0;

	for (size_t i = 0; i < CONNECTOR_AT_ONCE; i++) {
		used += c->jobs[i].number != 0;
		own += c->jobs[i].number && c->jobs[i].uid == uid;
		if (!c->jobs[i].number)
			room = &c->jobs[i];
	}
	return own < CONNECTOR_AT_ONCE - used ? room : NULL;
}

int connector_ask(struct connector *c, const struct abi_key *key, uint32_t uid,
		  const char *path)
{
	struct connector_job *j = connector_room(c, uid);
	struct connector_question q = {
		.start_boottime = key->start_boottime,
		.tgid = key->tgid,
		.uid = uid,
	};
	size_t len = strlen(path) + 1;
	int err;

	if (!j)
		return -EBUSY;
	if (len > sizeof(q.path))
		return -ENAMETOOLONG;
	err = connector_start(c);
	if (err)
		return err;
	memcpy(q.path, path, len);
	q.number = ++c->number;
	if (send(c->link->fd, &q,
		 offsetof(struct connector_question, path) + len,
		 MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
		return -errno;
	*j = (struct connector_job){
		.number = q.number,
		.since = clock_awake_ns(),
		.key = *key,
		.uid = uid,
	};
	if (!uv_is_active((uv_handle_t *)&c->clock->timer))
		uv_timer_start(&c->clock->timer, connector_on_timer,
			       CONNECTOR_TICK_MS, CONNECTOR_TICK_MS);
	return 0;
}
