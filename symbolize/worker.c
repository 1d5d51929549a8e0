// SPDX-License-Identifier: Apache-2.0
/*
 * worker: see symbolize/worker.h.
 *
 * Whose fault it is: a death with a job under way is the file's; one without is
 * nobody's, and when that happens five times running, or it does not even come
 * to its greeting, then there is no worker to be had: jobs end with -EIO until
 * it can be started again, which is tried every ten seconds at least.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "symbolize/worker.h"
#include "symbolize/worker_ask.h"
#include "symbolize/worker_child.h"

/* A deadline is counted in so many ticks: time in which we were stopped too,
 * or the host asleep, is one of them at most. */
#define WORKER_TICKS 4
/* Failures without an answer between them: these many start it at once. */
#define WORKER_PATIENCE 2
#define WORKER_BACKOFF_MS 10
#define WORKER_BACKOFF_MAX_MS 10000
/* With so many, or so many without a job to blame, there is none to be had. */
#define WORKER_BROKEN 8
#define WORKER_BROKEN_BLAMELESS 5
/* One that cannot be reaped keeps the end waiting so long. */
#define WORKER_LAST_MS 1000
#define WORKER_ASKS_MAX 64 /* of one job */
#define WORKER_READS_MAX 16 /* messages in one turn of the loop */

enum worker_state {
	WORKER_DOWN,
	WORKER_STARTING,
	WORKER_IDLE,
	WORKER_BUSY,
};

struct worker {
	struct worker_opts opts;
	char *program;
	enum worker_state state;
	uv_timer_t timer;
	unsigned int ticks; /* of the deadline, gone by */
	struct worker_children children;
	struct worker_child *child; /* the one that counts, or NULL */
	bool ending; /* it has ended, and what it said is still being read */
	struct worker_job *head, *tail; /* waiting */
	struct worker_job *now; /* under way, or to be asked first */
	bool asked; /* ... and the worker may have seen the question */
	uint64_t question; /* its number */
	unsigned int asks, asking; /* of this job; of all, in the pool */
	unsigned int fails, blameless; /* without an answer between them */
	uint64_t restart_at; /* uv_now(), when DOWN */
	bool freed;
	struct worker_aside aside;
	uid_t uid;
	char why[96]; /* the last failure's */
	struct worker_in in;
};

static void worker_run(struct worker *w);
static void on_timer(uv_timer_t *timer);

/* --- the queue ---------------------------------------------------------------- */

/*
 * What is short and lets a stack go on comes first: what a file is, then names.
 * There may be a hundred tables to read when profd starts, and the names of the
 * first stacks are not to wait for all of them.
 */
static void queue_add(struct worker *w, struct worker_job *j)
{
	struct worker_job *prev = w->tail;

	while (prev && prev->kind->type > j->kind->type)
		prev = prev->prev;
	j->prev = prev;
	j->next = prev ? prev->next : w->head;
	*(prev ? &prev->next : &w->head) = j;
	*(j->next ? &j->next->prev : &w->tail) = j;
}

static void queue_remove(struct worker *w, struct worker_job *j)
{
	*(j->prev ? &j->prev->next : &w->head) = j->next;
	*(j->next ? &j->next->prev : &w->tail) = j->prev;
}

static bool wanted(const struct worker *w)
{
	return w->now || w->head;
}

/* The loop goes on as long as there is something to be done. */
static void set_refs(struct worker *w)
{
	if (w->freed)
		return;
	if (w->child)
		worker_child_ref(w->child, wanted(w));
	if (wanted(w))
		uv_ref((uv_handle_t *)&w->timer);
	else
		uv_unref((uv_handle_t *)&w->timer);
}

static void timer_set(struct worker *w, uint64_t ms)
{
	/* The loop's idea of now may be old when it was busy. */
	uv_update_time(w->opts.loop);
	uv_timer_start(&w->timer, on_timer, ms, 0);
}

static void deadline_set(struct worker *w)
{
	w->ticks = 0;
	timer_set(w, w->opts.deadline_ms / WORKER_TICKS);
}

/* --- the end of a worker -------------------------------------------------------- */

static void let_go(struct worker *w)
{
	if (w->child)
		worker_child_end(w->child);
	w->child = NULL;
	w->state = WORKER_DOWN;
	w->opts.stats->index_bytes = 0;
	uv_timer_stop(&w->timer);
}

static void job_done(struct worker *w, struct worker_job *j, int err)
{
	w->now = NULL;
	j->kind->done(j, err);
}

/* When the next one may be started, after so many failures in a row. */
static uint64_t backoff_ms(unsigned int fails)
{
	unsigned int shift = fails - WORKER_PATIENCE - 1;

	if (fails <= WORKER_PATIENCE)
		return 0;
	if (shift > 10)
		return WORKER_BACKOFF_MAX_MS;
	return MIN(WORKER_BACKOFF_MS << shift, WORKER_BACKOFF_MAX_MS);
}

static bool broken(const struct worker *w)
{
	return w->fails >= WORKER_BROKEN ||
	       w->blameless >= WORKER_BROKEN_BLAMELESS;
}

/* It failed, or had to be ended; 'thirds' as in worker_aside.h. */
static void lost(struct worker *w, unsigned int thirds, const char *why)
{
	struct worker_job *j = w->now;
	bool blame = j && w->asked;

	/* What it said of its start itself is better. */
	if (w->state != WORKER_STARTING || !w->why[0])
		snprintf(w->why, sizeof(w->why), "%s", why);
	let_go(w);
	w->asked = false;
	w->fails++;
	w->blameless = blame ? 0 : w->blameless + 1;
	w->restart_at = uv_now(w->opts.loop) + backoff_ms(w->fails);
	if (blame && worker_aside_add(&w->aside, j->file, thirds, why)) {
		w->opts.stats->put_aside++;
		job_done(w, j, -EBADMSG);
	}
	worker_run(w);
}

static void lied(struct worker *w)
{
	w->opts.stats->worker_lies++;
	lost(w, WORKER_ASIDE_WHOLE, "the reader talked nonsense");
}

/* Which ends are not the file's fault for certain, and how to call the rest. */
static const struct {
	int status; /* negative: a signal */
	unsigned int thirds;
	const char *why;
} ends[] = {
	{ -SIGKILL, 1, "the reader was killed" },
	{ -SIGTERM, 1, "the reader was killed" },
	{ -SIGINT, 1, "the reader was killed" },
	{ -SIGXCPU, WORKER_ASIDE_WHOLE, "it took too much CPU time to read" },
	{ -SIGSYS, WORKER_ASIDE_WHOLE, "the reader did what it may not" },
	{ 0, WORKER_ASIDE_WHOLE,
	  "the reader crashed" }, /* and everything else */
};

static void on_readable(void *arg);

static void on_ended(void *arg, int status)
{
	struct worker *w = arg;
	struct worker_child *c = w->child;
	size_t i = 0;

	/* Its last words still count. */
	w->ending = true;
	on_readable(w);
	w->ending = false;
	if (w->child != c) {
		worker_run(w);
		return;
	}
	while (i < ARRAY_SIZE(ends) - 1 && ends[i].status != status)
		i++;
	w->opts.stats->worker_failed++;
	lost(w, ends[i].thirds, ends[i].why);
}

/* --- the start ------------------------------------------------------------------ */

static void on_timer_closed(uv_handle_t *handle)
{
	struct worker *w =
		container_of((uv_timer_t *)handle, struct worker, timer);
	void (*closed)(void *arg) = w->opts.closed;
	void *arg = w->opts.arg;

	worker_aside_fini(&w->aside);
	free(w->program);
	free(w);
	closed(arg);
}

/* The last step of worker_free(), when nothing else has a pointer to it. */
static void close_if_done(struct worker *w)
{
	if (w->freed && !w->children.head && !w->asking &&
	    !uv_is_closing((uv_handle_t *)&w->timer))
		uv_close((uv_handle_t *)&w->timer, on_timer_closed);
}

static void on_gone(void *arg)
{
	close_if_done(arg);
}

static void start(struct worker *w)
{
	char memory[24], cpu[16];
	char *argv[] = { "profd", SYMBOLIZER_WORKER, memory, cpu, NULL };
	int err;

	snprintf(memory, sizeof(memory), "%zu", w->opts.memory);
	snprintf(cpu, sizeof(cpu), "%u", w->opts.cpu_s);
	w->opts.stats->worker_starts++;
	w->state = WORKER_STARTING;
	w->why[0] = '\0';
	err = worker_child_start(&w->child, &w->children, w->program, argv);
	if (!err) {
		deadline_set(w);
		return;
	}
	w->opts.stats->worker_failed++;
	snprintf(w->why, sizeof(w->why), "it cannot be run: %s",
		 strerror(-err));
	lost(w, 0, "");
}

static int greeted(struct worker *w)
{
	const struct worker_hello *h = worker_hello(&w->in);

	if (!h)
		return -EPROTO;
	if (h->err) {
		/* It ends by itself now. */
		snprintf(w->why, sizeof(w->why), "%s: %s", h->what,
			 strerror(-h->err));
		return 0;
	}
	w->uid = h->uid;
	w->state = WORKER_IDLE;
	return 0;
}

/* --- questions and answers ------------------------------------------------------- */

static void ask(struct worker *w)
{
	union {
		struct worker_question q;
		uint8_t room[sizeof(struct worker_question) +
			     WORKER_NAMES_MAX * sizeof(uint64_t)];
	} m;
	struct worker_job *j = w->now;
	size_t used = w->opts.index_used(w->opts.arg);
	int err;

	memset(&m.q, 0, sizeof(m.q));
	m.q.file = j->file->id;
	m.q.size = j->file->ident.size;
	m.q.index_bytes =
		w->opts.index_ceiling - MIN(w->opts.index_ceiling, used);
	j->kind->question(j, &m.q);
	w->state = WORKER_BUSY;
	deadline_set(w);
	w->asked = true;
	err = worker_send(worker_child_socket(w->child), &m.q.head,
			  j->kind->type, sizeof(m.q) + m.q.n * sizeof(uint64_t),
			  ++w->question, j->file->fd);
	/* It is dead, which will be heard; or it let the socket fill up. */
	if (err == -EPIPE)
		w->asked = false;
	else if (err)
		lied(w);
}

/* Whether it is to be replaced for the CPU time it has had. */
static bool worn_out(const struct worker *w)
{
	struct timespec ts;
	clockid_t clock;

	return clock_getcpuclockid(worker_child_pid(w->child), &clock) == 0 &&
	       clock_gettime(clock, &ts) == 0 &&
	       ts.tv_sec >= (time_t)(w->opts.cpu_s / 2);
}

static void finished(struct worker *w, int err)
{
	struct worker_job *j = w->now;

	w->fails = w->blameless = w->asks = 0;
	w->asked = false;
	w->state = WORKER_IDLE;
	worker_aside_forgive(&w->aside, j->file);
	if (worn_out(w))
		let_go(w);
	job_done(w, j, err);
}

static int heard_answer(struct worker *w)
{
	const struct worker_answer *a;
	struct worker_job *j = w->now;
	int next, err;

	if (w->in.head.job != w->question || w->in.head.type != j->kind->type ||
	    w->in.len < sizeof(*a))
		return -EPROTO;
	next = j->kind->answer(j, &w->in);
	if (next < 0)
		return next;
	a = (const void *)w->in.bytes;
	err = a->err;
	if (err == -ENOMEM) {
		w->opts.stats->worker_nomem++;
		lost(w, 1, "it took too much memory to read");
		return 0;
	}
	w->opts.stats->index_built += a->built;
	w->opts.stats->index_evicted += a->evicted;
	w->opts.stats->undemangled += a->undemangled;
	w->opts.stats->index_bytes = a->index_bytes;
	if (err || next == WORKER_DONE)
		finished(w, err);
	else if (next == WORKER_AGAIN)
		ask(w);
	else
		deadline_set(w);
	return 0;
}

static void on_file(void *arg, uint64_t question, int fd, unsigned int nth)
{
	struct worker_file out = { .err = MIN(fd, 0), .nth = nth };
	struct worker *w = arg;
	int err;

	w->asking--;
	close_if_done(w);
	/* A question has another number when it is asked again. */
	if (w->state != WORKER_BUSY || w->question != question)
		return;
	err = worker_send(worker_child_socket(w->child), &out.head, WORKER_FILE,
			  sizeof(out), question, fd);
	if (err && err != -EPIPE)
		lied(w);
}

static int heard_ask(struct worker *w)
{
	const struct worker_ask *a = worker_ask(&w->in);

	if (!a || a->head.job != w->question || w->asks++ == WORKER_ASKS_MAX)
		return -EPROTO;
	w->asking++;
	if (worker_ask_start(w->opts.opener, w->opts.debug_dirs, w->now->file,
			     a, on_file, w))
		on_file(w, w->question, -ENOMEM, a->nth);
	return 0;
}

static int heard(struct worker *w)
{
	if (w->state == WORKER_STARTING)
		return greeted(w);
	if (w->state != WORKER_BUSY)
		return -EPROTO; /* nobody asked */
	return w->in.head.type == WORKER_ASK ? heard_ask(w) : heard_answer(w);
}

static void on_readable(void *arg)
{
	struct worker *w = arg;
	struct worker_child *c = w->child;
	int err = 0;

	for (int i = 0; i < WORKER_READS_MAX && w->child == c && !err; i++) {
		err = worker_recv(worker_child_socket(c), &w->in);
		if (!err)
			err = heard(w);
		worker_in_close(&w->in);
	}
	if (w->child == c && err == -EPIPE)
		worker_child_deafen(c); /* its end comes by on_ended() */
	else if (w->child == c && err && err != -EAGAIN)
		lied(w);
	else
		worker_run(w);
}

/* --- time ------------------------------------------------------------------------- */

/* As many as there are now: what comes of that must not keep us here. */
static void refuse_all(struct worker *w, int err)
{
	struct worker_job *j;
	size_t n = 0;

	for (j = w->head; j; j = j->next)
		n++;
	if (w->now)
		job_done(w, w->now, err);
	while (n-- && (j = w->head)) {
		queue_remove(w, j);
		j->kind->done(j, err);
	}
}

static void overdue(struct worker *w)
{
	uint64_t question = w->question;
	enum worker_state state = w->state;
	struct worker_child *c = w->child;

	/* It may have been us who were late. */
	on_readable(w);
	if (w->child != c || w->question != question || w->state != state)
		return;
	if (++w->ticks < WORKER_TICKS) {
		timer_set(w, w->opts.deadline_ms / WORKER_TICKS);
		return;
	}
	w->opts.stats->worker_hung++;
	lost(w, WORKER_ASIDE_WHOLE, "it took too long to read");
}

static void on_timer(uv_timer_t *timer)
{
	struct worker *w = container_of(timer, struct worker, timer);

	if (w->freed)
		worker_children_forget(&w->children);
	else if (w->state == WORKER_STARTING || w->state == WORKER_BUSY)
		overdue(w);
	else if (w->state == WORKER_IDLE && !wanted(w))
		let_go(w); /* memory is worth more than indexes nobody needs */
	else
		worker_run(w);
}

/* A job to be asked, in w->now; none is left otherwise. */
static void next_job(struct worker *w)
{
	struct worker_job *j;

	while (!w->now && (j = w->head)) {
		queue_remove(w, j);
		if (worker_aside_has(&w->aside, j->file))
			j->kind->done(j, -EBADMSG);
		else
			w->now = j;
	}
}

static void run_down(struct worker *w)
{
	uint64_t now = uv_now(w->opts.loop);

	if (now < w->restart_at && broken(w))
		refuse_all(w, -EIO);
	if (w->freed || w->state != WORKER_DOWN || !wanted(w))
		return;
	if (now < w->restart_at)
		timer_set(w, w->restart_at - now);
	else
		start(w);
}

/* Does what is next; never from inside of a request. */
static void worker_run(struct worker *w)
{
	if (w->freed || w->ending)
		return;
	if (w->state == WORKER_IDLE) {
		next_job(w);
		if (w->freed)
			return;
		if (w->now)
			ask(w);
		else
			timer_set(w, w->opts.idle_ms);
	} else if (w->state == WORKER_DOWN) {
		run_down(w);
	}
	set_refs(w);
}

void worker_submit(struct worker *w, struct worker_job *j)
{
	queue_add(w, j);
	if (w->state == WORKER_IDLE || w->state == WORKER_DOWN)
		timer_set(w, 0);
	set_refs(w);
}

bool worker_cancel(struct worker *w, struct worker_job *j)
{
	if (w->now == j && w->asked)
		return false;
	if (w->now == j)
		w->now = NULL;
	else
		queue_remove(w, j);
	set_refs(w);
	return true;
}

/* --- the whole ---------------------------------------------------------------------- */

int worker_new(struct worker **wp, const struct worker_opts *opts)
{
	struct worker *w = calloc(1, sizeof(*w));
	int err;

	if (!w)
		return -ENOMEM;
	w->opts = *opts;
	w->children = (struct worker_children){
		.loop = opts->loop,
		.readable = on_readable,
		.ended = on_ended,
		.gone = on_gone,
		.arg = w,
	};
	w->program = strdup(opts->program);
	err = w->program ? uv_timer_init(opts->loop, &w->timer) : -ENOMEM;
	if (err) {
		free(w->program);
		free(w);
		return err;
	}
	start(w);
	set_refs(w);
	*wp = w;
	return 0;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	w->freed = true;
	refuse_all(w, -ECANCELED);
	let_go(w);
	close_if_done(w);
	if (uv_is_closing((uv_handle_t *)&w->timer))
		return;
	uv_ref((uv_handle_t *)&w->timer);
	timer_set(w, WORKER_LAST_MS);
}

const struct worker_aside *worker_asides(const struct worker *w)
{
	return &w->aside;
}

void worker_status(const struct worker *w, char *buf, size_t len)
{
	if (w->state == WORKER_IDLE || w->state == WORKER_BUSY)
		snprintf(buf, len,
			 "process %d, user id %u%s, no capabilities, seccomp",
			 (int)worker_child_pid(w->child), w->uid,
			 w->uid == getuid() ? " as profd" : "");
	else if (broken(w))
		snprintf(buf, len, "none: %s", w->why);
	else if (w->state == WORKER_STARTING)
		snprintf(buf, len, "starting");
	else
		snprintf(buf, len, "not running: nothing to do");
}
