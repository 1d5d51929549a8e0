// SPDX-License-Identifier: Apache-2.0
/*
 * mapsreader: profd's side: see profiler/rescan/mapsreader.h. Answers come on a
 * stream, in the order of the questions. A killed reader is reaped by its id
 * when the kernel lets it end; a few may be waiting for that.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/rescan/mapsreader_msg.h"

#define READER_HOLD_NS (50 * CLOCK_NSEC_PER_MSEC)
/* For a reader that is running, or waits for a CPU. */
#define READER_RUN_NS (2 * CLOCK_NSEC_PER_SEC)
#define READER_IDLE_NS (5 * CLOCK_NSEC_PER_SEC)
/* Killed readers that have not ended; with so many, none is started. */
#define READER_LOST 8
/* Before another start when one failed, or the reader did. */
#define READER_PAUSE_NS CLOCK_NSEC_PER_SEC

/* A connection; freed when libuv has closed the handle. */
struct reader_link {
	uv_poll_t poll;
	struct mapsreader *reader; /* NULL: closed */
};

struct mapsreader {
	uv_loop_t *loop;
	mapsreader_fn fn;
	void *arg;
	struct reader_link *link; /* NULL: no process */
	int sock;
	pid_t pid;
	pid_t lost[READER_LOST]; /* killed, not reaped */
	size_t nlost;
	uint64_t restart_at, idle_since;
	/* The batch. */
	uint32_t tgids[MAPSREADER_BATCH];
	size_t n, i; /* i: the next to be answered */
	uint64_t patience_ns;
	uint64_t since; /* the reading of i began then, or later */
	uint64_t heard; /* the last bytes came then */
	/* The answer being received. */
	struct mapsreader_answer head;
	struct pm_maps maps;
	size_t have; /* bytes, head included */
};

struct mapsreader *mapsreader_new(uv_loop_t *loop, mapsreader_fn fn, void *arg)
{
	struct mapsreader *r = calloc(1, sizeof(*r));

	if (!r)
		return NULL;
	r->loop = loop;
	r->fn = fn;
	r->arg = arg;
	return r;
}

bool mapsreader_busy(const struct mapsreader *r)
{
	return r->i < r->n;
}

/* --- the process ---------------------------------------------------------- */

static void mapsreader_reap(struct mapsreader *r)
{
	size_t i, n = 0;

	for (i = 0; i < r->nlost; i++)
		if (!waitpid(r->lost[i], NULL, WNOHANG))
			r->lost[n++] = r->lost[i];
	r->nlost = n;
}

static void mapsreader_on_closed(uv_handle_t *h)
{
	free(h->data);
}

static void reader_end(struct mapsreader *r)
{
	if (!r->link)
		return;
	r->link->reader = NULL;
	uv_close((uv_handle_t *)&r->link->poll, mapsreader_on_closed);
	r->link = NULL;
	close(r->sock);
	if (r->pid) {
		kill(r->pid, SIGKILL);
		r->lost[r->nlost++] = r->pid;
	}
	r->pid = 0;
	pm_maps_fini(&r->maps);
	r->have = 0;
	mapsreader_reap(r);
}

static void mapsreader_read(struct mapsreader *r);

static void mapsreader_on_readable(uv_poll_t *poll, int status, int events)
{
	struct reader_link *l = poll->data;

	if (l->reader)
		mapsreader_read(l->reader);
}

/* libuv makes the socket non-blocking. */
static int link_start(struct mapsreader *r)
{
	struct reader_link *l = calloc(1, sizeof(*l));
	int err = l ? uv_poll_init(r->loop, &l->poll, r->sock) : -ENOMEM;

	if (err) {
		free(l);
		close(r->sock);
		return err;
	}
	l->reader = r;
	l->poll.data = l;
	r->link = l;
	uv_poll_start(&l->poll, UV_READABLE, mapsreader_on_readable);
	uv_unref((uv_handle_t *)&l->poll);
	return 0;
}

static int reader_start(struct mapsreader *r)
{
	int pair[2], err;

	mapsreader_reap(r);
	if (r->nlost == READER_LOST)
		return -EAGAIN;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return -errno;
	r->sock = pair[0];
	err = link_start(r);
	if (!err) {
		err = self_spawn(&r->pid, MAPSREADER_COMMAND, pair[1]);
		if (err) {
			r->pid = 0;
			reader_end(r);
		}
	}
	close(pair[1]);
	return err;
}

/* As in proc_pid_stat(5); '?': not known. */
static char reader_state(const struct mapsreader *r)
{
	struct procfs_stat st;

	return r->pid && procfs_stat((uint32_t)r->pid, &st) ? st.state : '?';
}

/* --- a batch -------------------------------------------------------------- */

static void mapsreader_deliver(struct mapsreader *r,
			       const struct mapsreader_result *res)
{
	struct pm_maps m = r->maps;
	size_t i = r->i++;

	memset(&r->maps, 0, sizeof(r->maps));
	r->have = 0;
	r->since = MAX(r->since, r->head.end);
	if (!mapsreader_busy(r))
		r->idle_since = clock_boottime_ns();
	r->fn(r->arg, i, res, &m);
}

/* Ends the reader: the reading under way fails, the rest get -EAGAIN. */
static void reader_fail(struct mapsreader *r, int err)
{
	struct mapsreader_result res = { .err = err, .waited = true };
	size_t left = r->n - r->i;

	reader_end(r);
	r->head.end = 0;
	if (err != -ETIMEDOUT)
		r->restart_at = clock_boottime_ns() + READER_PAUSE_NS;
	res.wall_ns = clock_boottime_ns() - r->since;
	for (; left; left--) {
		mapsreader_deliver(r, &res);
		res = (struct mapsreader_result){ .err = -EAGAIN };
	}
}

/* Where the next bytes of the answer go, and how many; 0: it is complete. */
static size_t answer_place(struct mapsreader *r, char **to)
{
	size_t maps = r->head.n * sizeof(*r->maps.maps), have = r->have;

	if (have < sizeof(r->head)) {
		*to = (char *)&r->head + have;
		return sizeof(r->head) - have;
	}
	have -= sizeof(r->head);
	if (have < maps) {
		*to = (char *)r->maps.maps + have;
		return maps - have;
	}
	*to = r->maps.text + (have - maps);
	return maps + r->head.text_len - have;
}

/* The head is there: room for the rest. */
static int answer_begin(struct mapsreader *r)
{
	const struct mapsreader_answer *a = &r->head;

	if (a->err > 0 || a->text_len > MAPSREADER_BYTES ||
	    a->n > MAPSREADER_BYTES / sizeof(*r->maps.maps) ||
	    (a->err && a->n) || !a->n != !a->text_len)
		return -EPROTO;
	if (!a->n)
		return 0;
	r->maps.maps = malloc(a->n * sizeof(*r->maps.maps));
	r->maps.text = malloc(a->text_len);
	return r->maps.maps && r->maps.text ? 0 : -ENOMEM;
}

static int answer_end(struct mapsreader *r)
{
	const struct mapsreader_answer *a = &r->head;
	struct mapsreader_result res = {
		.err = a->err,
		.waited = a->waited,
		.cpu_ns = a->cpu_ns,
		.wall_ns = a->end - a->begin,
	};
	struct pm_maps *m = &r->maps;
	uintptr_t offset;
	size_t i;

	if (a->n && m->text[a->text_len - 1])
		return -EPROTO;
	for (i = 0; i < a->n; i++) {
		offset = (uintptr_t)m->maps[i].path;
		if (offset >= a->text_len)
			return -EPROTO;
		m->maps[i].path = m->text + offset;
	}
	m->n = a->n;
	m->tgid = r->tgids[r->i];
	m->begin = a->begin;
	m->end = a->end;
	mapsreader_deliver(r, &res);
	return 0;
}

/* Receives a part of an answer. 0; -EAGAIN: no more now; -errno. */
static int answer_read(struct mapsreader *r)
{
	size_t want;
	ssize_t n;
	char *to;
	int err;

	if (!mapsreader_busy(r)) /* only the end of the stream can come */
		return recv(r->sock, &want, 1, MSG_PEEK) < 0 &&
				       (errno == EAGAIN || errno == EINTR)
			       ? -EAGAIN
			       : -EIO;
	want = answer_place(r, &to);
	n = want ? read(r->sock, to, want) : 0;
	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return errno == EINTR ? 0 : -EAGAIN;
	if (n < 0 || (want && !n))
		return -EIO;
	r->have += (size_t)n;
	r->heard = clock_boottime_ns();
	if (r->have == sizeof(r->head)) {
		err = answer_begin(r);
		if (err)
			return err;
	}
	if (r->have < sizeof(r->head) || answer_place(r, &to))
		return 0;
	return answer_end(r);
}

static void mapsreader_read(struct mapsreader *r)
{
	const struct reader_link *l = r->link;
	int err = 0;

	while (!err && r->link == l && l)
		err = answer_read(r);
	if (r->link == l && l && err != -EAGAIN)
		reader_fail(r, err);
}

int mapsreader_ask(struct mapsreader *r, const uint32_t *tgids, size_t n,
		   uint64_t slice_ns, uint64_t patience_ns)
{
	struct mapsreader_question q = { .slice_ns = slice_ns,
					 .n = (uint32_t)n };
	uint64_t now = clock_boottime_ns();
	int err;

	if (mapsreader_busy(r) || !n || n > MAPSREADER_BATCH)
		return -EBUSY;
	if (!r->link) {
		err = now < r->restart_at ? -EAGAIN : reader_start(r);
		if (err && now >= r->restart_at)
			r->restart_at = now + READER_PAUSE_NS;
		if (err)
			return err;
	}
	memcpy(q.tgids, tgids, n * sizeof(*tgids));
	memcpy(r->tgids, tgids, n * sizeof(*tgids));
	if (send(r->sock, &q, sizeof(q), MSG_NOSIGNAL) != sizeof(q)) {
		reader_end(r);
		return -EIO;
	}
	r->n = n;
	r->i = 0;
	r->patience_ns = patience_ns;
	r->head.end = 0;
	r->since = r->heard = clock_boottime_ns();
	return 0;
}

void mapsreader_wait(struct mapsreader *r, int ms)
{
	struct pollfd pfd = { .fd = r->sock, .events = POLLIN };

	if (r->link && poll(&pfd, 1, ms) > 0)
		mapsreader_read(r);
}

void mapsreader_check(struct mapsreader *r, uint64_t now)
{
	uint64_t took;

	if (r->nlost)
		mapsreader_reap(r);
	if (!r->link)
		return;
	if (!mapsreader_busy(r)) {
		if (now > r->idle_since + READER_IDLE_NS)
			reader_end(r);
		return;
	}
	took = now - MIN(MAX(r->since, r->heard), now);
	if (took <= r->patience_ns)
		return;
	/* The answer may be here, and profd late. */
	mapsreader_read(r);
	if (!mapsreader_busy(r) || now <= r->heard + r->patience_ns)
		return;
	if (took > READER_RUN_NS || reader_state(r) != 'R')
		reader_fail(r, -ETIMEDOUT);
}

uint64_t mapsreader_since(const struct mapsreader *r, uint64_t now)
{
	uint64_t took = now - MIN(r->since, now);

	if (!mapsreader_busy(r) || took > READER_RUN_NS / 2 ||
	    (took > READER_HOLD_NS && reader_state(r) != 'R'))
		return UINT64_MAX;
	return r->since;
}

void mapsreader_free(struct mapsreader *r)
{
	int i;

	if (!r)
		return;
	r->n = r->i = 0;
	reader_end(r);
	for (i = 0; r->nlost && i < 100; i++) {
		usleep(1000);
		mapsreader_reap(r);
	}
	free(r);
}
