// SPDX-License-Identifier: Apache-2.0
/*
 * fetch: see symbolize/fetch/fetch.h. A download has these steps; those of the
 * directory are in the pool:
 *
 *	a file to write to -> question to the process -> answer -> its name
 *
 * The process is started for the first download, and ended when it was idle for
 * some time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "symbolize/fetch/fetch.h"
#include "symbolize/fetch/fetch_dir.h"
#include "symbolize/reader/worker_child.h"

#define FETCH_IDLE_MS 10000
#define FETCH_GRACE_MS 10000 /* beyond the process's own limits */
/* After a failure; doubled with each further one in a row. */
#define FETCH_PAUSE_MS 10000
#define FETCH_PAUSE_MAX_MS 60000
/* fetch_free() waits this long for the process to be reaped. */
#define FETCH_LAST_MS 300

enum fetch_step {
	FETCH_REST,
	FETCH_CREATING, /* in the pool */
	FETCH_ASKING, /* the process has the question, or is starting */
	FETCH_TAKING, /* in the pool */
};

struct fetch {
	struct fetch_opts opts;
	char *program;
	struct strbuf urls; /* each with its NUL */
	size_t n_urls;
	struct fetch_queue queue;
	struct fetch_dir dir; /* the pool's during a step there */
	enum fetch_step step;
	struct fetch_item *item; /* unless at REST */
	int fd; /* to write to, or -1 */
	int err; /* of the step */
	uv_work_t work;
	uv_timer_t timer;
	struct worker_children children;
	struct worker_child *child; /* or NULL */
	bool ready; /* HELLO was received */
	uint64_t question;
	unsigned int fails; /* in a row */
	uint64_t resume_at; /* uv_now() */
	bool freed;
	struct worker_in in;
};

static void fetch_step_next(struct fetch *f);
static void fetch_on_timer(uv_timer_t *timer);

static uint64_t fetch_now(const struct fetch *f)
{
	return uv_now(f->opts.loop);
}

static void fetch_set_timer(struct fetch *f, uint64_t ms)
{
	uv_update_time(f->opts.loop);
	uv_timer_start(&f->timer, fetch_on_timer, MAX(ms, 1), 0);
}

/* --- the end of a download ------------------------------------------------ */

static void fetch_stop(struct fetch *f)
{
	if (f->child)
		worker_child_end(f->child);
	f->child = NULL;
	f->ready = false;
}

/* A server was not reached, or did not do its part. */
static bool is_outage(int err)
{
	static const int outages[] = { ECONNREFUSED, ETIMEDOUT, EIO,
				       EKEYREJECTED, ELOOP,	ENOSPC };

	for (size_t i = 0; i < ARRAY_SIZE(outages); i++)
		if (err == -outages[i])
			return true;
	return false;
}

static void fetch_outage(struct fetch *f, int err)
{
	uint64_t ms = FETCH_PAUSE_MS << MIN(f->fails, 10U);
	uint64_t now = fetch_now(f);

	if (!f->fails++ && f->opts.failed)
		f->opts.failed(f->opts.arg, err);
	if (!f->opts.once) {
		f->resume_at = now + MIN(ms, (uint64_t)FETCH_PAUSE_MAX_MS);
		fetch_queue_again(&f->queue, f->item, now);
		return;
	}
	fetch_queue_done(&f->queue, f->item, FETCH_FAILED, now);
	if (err != -EIO && err != -ELOOP)
		fetch_queue_give_up(&f->queue, now);
}

static void fetch_arrived(struct fetch *f, const struct fetch_item *it)
{
	for (unsigned int i = 0; i < it->n_wanters && f->opts.arrived; i++)
		f->opts.arrived(f->opts.arg, it->wanters[i].bytes,
				it->wanters[i].len);
}

static void fetch_ended(struct fetch *f, int err)
{
	struct fetch_item *it = f->item;
	struct symbolizer_stats *st = f->opts.stats;

	st->fetch_done += !err;
	st->fetch_none += err == -ENOENT;
	st->fetch_failed += err && err != -ENOENT;
	st->fetch_evicted = f->dir.evicted;
	st->fetch_bytes = f->dir.bytes;
	if (is_outage(err)) {
		fetch_outage(f, err);
	} else {
		f->fails = 0;
		fetch_queue_done(&f->queue, it,
				 !err		  ? FETCH_HAVE
				 : err == -ENOENT ? FETCH_NONE
						  : FETCH_FAILED,
				 fetch_now(f));
		if (!err)
			fetch_arrived(f, it);
	}
	f->item = NULL;
	f->step = FETCH_REST;
	st->fetch_pending = f->queue.pending;
	fetch_step_next(f);
}

/* --- steps in the pool ---------------------------------------------------- */

static void fetch_close_if_done(void *arg);

static void on_work(uv_work_t *work)
{
	struct fetch *f = container_of(work, struct fetch, work);

	if (f->step == FETCH_CREATING) {
		f->fd = fetch_dir_create(&f->dir);
		f->err = MIN(f->fd, 0);
		return;
	}
	if (!f->err)
		f->err = fetch_dir_take(&f->dir, &f->item->id);
	if (f->err)
		fetch_dir_drop(&f->dir);
}

static void fetch_ask(struct fetch *f);

static void on_worked(uv_work_t *work, int status)
{
	struct fetch *f = container_of(work, struct fetch, work);
	bool created = f->step == FETCH_CREATING;

	f->step = created && !f->err ? FETCH_ASKING : FETCH_REST;
	if (f->freed)
		fetch_close_if_done(f);
	else if (f->step == FETCH_ASKING)
		fetch_ask(f);
	else
		fetch_ended(f, f->err);
}

static void fetch_work(struct fetch *f, enum fetch_step step, int err)
{
	f->step = step;
	f->err = err;
	uv_queue_work(f->opts.loop, &f->work, on_work, on_worked);
}

/* The process is done with the file. */
static void fetch_answered(struct fetch *f, int err)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
	fetch_work(f, FETCH_TAKING, err);
}

/* --- the process ---------------------------------------------------------- */

static void fetch_broken(struct fetch *f, int err)
{
	fetch_stop(f);
	if (f->step == FETCH_ASKING)
		fetch_answered(f, err);
}

static void fetch_send(struct fetch *f)
{
	struct fetch_question *q = calloc(1, sizeof(*q) + f->urls.len);
	int err = -ENOMEM;

	if (q) {
		q->max = MIN(FETCH_FILE_MAX, f->dir.max);
		q->urls_len = (uint32_t)f->urls.len;
		q->id_len = f->item->id.len;
		memcpy(q->id, f->item->id.bytes, q->id_len);
		memcpy(q + 1, f->urls.data, f->urls.len);
		err = worker_send(worker_child_socket(f->child), &q->head,
				  FETCH_GET, sizeof(*q) + f->urls.len,
				  ++f->question, f->fd);
	}
	free(q);
	if (err && err != -EPIPE) /* then fetch_on_exit() follows */
		fetch_broken(f, -EIO);
}

static void fetch_ask(struct fetch *f)
{
	char *argv[] = { "profd", SYMBOLIZER_FETCH, NULL };

	fetch_set_timer(f, f->n_urls * FETCH_TIMEOUT_S * 1000 + FETCH_GRACE_MS);
	if (f->child && f->ready) {
		fetch_send(f);
		return;
	}
	if (!f->child &&
	    worker_child_start(&f->child, &f->children, f->program, argv))
		fetch_broken(f, -EIO);
}

static int fetch_on_message(struct fetch *f)
{
	const struct fetch_answer *a = (const void *)f->in.bytes;

	if (f->in.len != sizeof(*a) || f->in.fd >= 0 || a->err > 0)
		return -EPROTO;
	if (!f->ready) {
		if (a->head.type != FETCH_HELLO || a->err)
			return -EPROTO;
		f->ready = true;
		if (f->step == FETCH_ASKING)
			fetch_send(f);
		return 0;
	}
	if (a->head.type != FETCH_DONE || a->head.job != f->question ||
	    f->step != FETCH_ASKING)
		return -EPROTO;
	fetch_answered(f, a->err);
	return 0;
}

static void fetch_on_readable(void *arg)
{
	struct fetch *f = arg;
	int err = worker_recv(worker_child_socket(f->child), &f->in);

	if (!err)
		err = fetch_on_message(f);
	worker_in_close(&f->in);
	if (err == -EPIPE && f->child)
		worker_child_kill(f->child); /* fetch_on_exit() follows */
	else if (err && err != -EAGAIN)
		fetch_broken(f, -EIO);
}

static void fetch_on_exit(void *arg, int status)
{
	fetch_broken(arg, -EIO);
}

/* --- whose turn it is ----------------------------------------------------- */

static void fetch_step_next(struct fetch *f)
{
	if (f->freed || f->step != FETCH_REST)
		return;
	if (f->queue.pending && fetch_now(f) < f->resume_at) {
		fetch_stop(f);
		fetch_set_timer(f, f->resume_at - fetch_now(f));
		return;
	}
	f->item = fetch_queue_next(&f->queue);
	if (f->item)
		fetch_work(f, FETCH_CREATING, 0);
	else if (f->child)
		fetch_set_timer(f, FETCH_IDLE_MS);
}

static void fetch_on_timer_closed(uv_handle_t *handle)
{
	struct fetch *f =
		container_of((uv_timer_t *)handle, struct fetch, timer);
	void (*closed)(void *arg) = f->opts.closed;
	void *arg = f->opts.closed_arg;

	if (f->fd >= 0)
		close(f->fd);
	if (f->item)
		fetch_dir_drop(&f->dir);
	fetch_dir_close(&f->dir);
	fetch_queue_fini(&f->queue);
	strbuf_fini(&f->urls);
	free(f->program);
	free(f);
	closed(arg);
}

/* The last step of fetch_free(), when nothing else has a pointer to it. */
static void fetch_close_if_done(void *arg)
{
	struct fetch *f = arg;

	if (f->freed && LIST_EMPTY(&f->children.list) &&
	    f->step != FETCH_CREATING && f->step != FETCH_TAKING &&
	    !uv_is_closing((uv_handle_t *)&f->timer))
		uv_close((uv_handle_t *)&f->timer, fetch_on_timer_closed);
}

static void fetch_on_timer(uv_timer_t *timer)
{
	struct fetch *f = container_of(timer, struct fetch, timer);

	if (f->freed)
		worker_children_forget(&f->children);
	else if (f->step == FETCH_ASKING)
		fetch_broken(f, -ETIMEDOUT);
	else if (f->queue.pending)
		fetch_step_next(f);
	else
		fetch_stop(f);
}

/* --- interface ------------------------------------------------------------ */

static int fetch_set_urls(struct fetch *f, const char *const *urls)
{
	for (; urls[f->n_urls]; f->n_urls++)
		strbuf_add(&f->urls, urls[f->n_urls],
			   strlen(urls[f->n_urls]) + 1);
	if (f->urls.failed)
		return -ENOMEM;
	return f->urls.len > FETCH_URLS_MAX ? -E2BIG : 0;
}

int fetch_new(struct fetch **fp, const struct fetch_opts *opts)
{
	struct fetch *f = calloc(1, sizeof(*f));
	int err;

	if (!f)
		return -ENOMEM;
	f->opts = *opts;
	f->dir.fd = f->fd = -1;
	f->children = (struct worker_children){
		.loop = opts->loop,
		.readable = fetch_on_readable,
		.ended = fetch_on_exit,
		.gone = fetch_close_if_done,
		.arg = f,
	};
	err = fetch_set_urls(f, opts->urls);
	if (!err)
		err = fetch_queue_init(&f->queue);
	f->program = strdup(opts->program);
	if (!err && !f->program)
		err = -ENOMEM;
	if (!err)
		err = fetch_dir_open(&f->dir, opts->dir, opts->bytes);
	if (!err)
		err = uv_timer_init(opts->loop, &f->timer);
	if (err) {
		fetch_dir_close(&f->dir);
		fetch_queue_fini(&f->queue);
		strbuf_fini(&f->urls);
		free(f->program);
		free(f);
		return err;
	}
	/* A loop that has nothing else to do ends. */
	uv_unref((uv_handle_t *)&f->timer);
	*fp = f;
	return 0;
}

void fetch_free(struct fetch *f)
{
	if (!f)
		return;
	f->freed = true;
	fetch_stop(f);
	fetch_close_if_done(f);
	if (uv_is_closing((uv_handle_t *)&f->timer))
		return;
	uv_ref((uv_handle_t *)&f->timer);
	fetch_set_timer(f, FETCH_LAST_MS);
}

void fetch_want(struct fetch *f, const uint8_t *id, size_t len,
		const struct symbolizer_file *file)
{
	struct fetch_id want, wanter;
	int err;

	if (!fetch_id_set(&want, id, len))
		return;
	wanter = want;
	if (file && !fetch_id_set(&wanter, file->ident.build_id,
				  file->ident.build_id_len))
		return;
	err = fetch_queue_want(&f->queue, &want, &wanter,
			       file ? file->uid : getuid(), fetch_now(f));
	f->opts.stats->fetch_refused += err && err != -EEXIST;
	f->opts.stats->fetch_pending = f->queue.pending;
	if (!err)
		fetch_step_next(f);
}

enum fetch_state fetch_state(const struct fetch *f, const uint8_t *id,
			     size_t len)
{
	const struct fetch_item *it;
	struct fetch_id want;

	it = fetch_id_set(&want, id, len) ? fetch_queue_find(&f->queue, &want)
					  : NULL;
	return it ? it->state : FETCH_UNKNOWN;
}

size_t fetch_pending(const struct fetch *f)
{
	return f->queue.pending;
}
