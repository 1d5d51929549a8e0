// SPDX-License-Identifier: Apache-2.0
/*
 * worker: see symbolize/reader/worker.h.
 *
 * Whose fault it is: an end with a job under way is the file's, and workers.c
 * says what follows for others of the same user. One without is nobody's, and when
 * that happens five times running, or it does not even come to its greeting, then
 * there is no worker to be had: jobs end with -EIO until it can be started again,
 * which is tried every ten seconds at least.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "symbolize/reader/worker.h"
#include "symbolize/reader/worker_ask.h"
#include "symbolize/reader/worker_child.h"

/* A deadline is counted in so many ticks: time in which we were stopped too,
 * or the host asleep, is one of them at most. */
#define WORKER_TICKS 40
/* With so many ends in a row without a job to blame there is none to be had. */
#define WORKER_BROKEN 5
/* One that cannot be reaped keeps the end waiting so long. */
#define WORKER_LAST_MS 1000
#define WORKER_ASKS_MAX 64 /* of one job */
#define WORKER_READS_MAX 16 /* messages in one turn of the loop */

struct worker {
	struct worker_opts opts;
	char *program;
	enum worker_state state;
	uv_timer_t timer;
	unsigned int ticks; /* of the deadline, gone by */
	uint64_t tick_ms, asked_at; /* uv_now() */
	uint64_t cpu_ns; /* of the process, when it was asked */
	uint64_t charged_ns; /* ... that jobs were charged for */
	uint64_t charged_at; /* uv_hrtime() */
	bool hurried;
	uint64_t index_bytes; /* of its part in stats->index_bytes */
	struct worker_children children;
	struct worker_child *child; /* the one that counts, or NULL */
	bool ending; /* it has ended, and what it said is still being read */
	struct worker_job *now; /* under way, or to be asked */
	uint64_t given_at; /* uv_hrtime() */
	bool asked; /* ... and the worker may have seen the question */
	uint64_t question; /* its number */
	unsigned int asks, asking; /* of this job; of all, in the pool */
	unsigned int blameless; /* ends, without an answer between them */
	uint64_t restart_at; /* uv_now(), when DOWN */
	bool freed;
	uid_t uid;
	char why[96]; /* the last failure's */
	struct worker_in in;
};

static void worker_run(struct worker *w);
static void worker_on_timer(uv_timer_t *timer);

/* --- time --- */

/* The loop goes on as long as there is something to be done. */
static void set_refs(struct worker *w)
{
	if (w->freed)
		return;
	if (w->child)
		worker_child_ref(w->child, w->now != NULL);
	if (w->now)
		uv_ref((uv_handle_t *)&w->timer);
	else
		uv_unref((uv_handle_t *)&w->timer);
}

static void worker_set_timer(struct worker *w, uint64_t ms)
{
	/* The loop's idea of now may be old when it was busy. */
	uv_update_time(w->opts.loop);
	uv_timer_start(&w->timer, worker_on_timer, MAX(ms, 1), 0);
}

/* In WORKER_TICKS equal parts: what is left of it. */
static void deadline_set(struct worker *w, uint64_t spent_ms)
{
	uint64_t all = w->opts.deadline_ms;

	w->ticks = 0;
	w->tick_ms = MAX((all - MIN(all, spent_ms)) / WORKER_TICKS, 1ULL);
	worker_set_timer(w, w->tick_ms);
	w->asked_at = uv_now(w->opts.loop);
}

/* How much of it is gone; time in which we were stopped is a tick at most. */
static uint64_t deadline_spent(const struct worker *w)
{
	return MIN(uv_now(w->opts.loop) - w->asked_at,
		   (w->ticks + 1) * w->tick_ms);
}

/* CPU time of the process; 0: it cannot be told. */
static uint64_t cpu_ns(const struct worker *w)
{
	struct timespec ts;
	clockid_t clock;

	if (clock_getcpuclockid(worker_child_pid(w->child), &clock) ||
	    clock_gettime(clock, &ts))
		return 0;
	return (uint64_t)ts.tv_sec * CLOCK_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

static void worker_charge(struct worker *w)
{
	uint64_t now = cpu_ns(w), at = uv_hrtime();

	/* It has ended, and is reaped: not more than the time that passed. */
	if (!now)
		now = w->charged_ns + (at - w->charged_at);
	if (!w->asked || now <= w->charged_ns)
		return;
	w->opts.charge(w->opts.arg, w->now, now - w->charged_ns, w->hurried);
	w->charged_ns = now;
	w->charged_at = at;
}

/* From now on it goes before other programs no more. */
static void worker_calm(struct worker *w)
{
	bool behind = false;

	worker_charge(w);
	w->hurried = false;
	w->opts.pace(w->opts.arg, w->now, &behind);
	worker_child_nice(w->child, behind ? WORKER_BEHIND : WORKER_WITH);
}

/* --- the end of a worker -------------------------------------------------------- */

static void worker_let_go(struct worker *w)
{
	if (w->child)
		worker_child_end(w->child);
	w->child = NULL;
	w->state = WORKER_DOWN;
	w->opts.stats->index_bytes -= w->index_bytes;
	w->index_bytes = 0;
	uv_timer_stop(&w->timer);
}

static void job_ended(struct worker *w, int err, bool again)
{
	struct worker_job *j = w->now;

	w->now = NULL;
	w->asked = false;
	w->opts.ended(w->opts.arg, w, j, err, again);
}

uint64_t worker_backoff_ms(unsigned int fails)
{
	unsigned int shift = fails - WORKER_PATIENCE - 1;

	if (fails <= WORKER_PATIENCE)
		return 0;
	if (shift > 10)
		return WORKER_BACKOFF_MAX_MS;
	return MIN(WORKER_BACKOFF_MS << shift, WORKER_BACKOFF_MAX_MS);
}

static bool worker_broken(const struct worker *w)
{
	return w->blameless >= WORKER_BROKEN;
}

/* It ended while it worked for a job. */
static void job_failed(struct worker *w, unsigned int thirds, const char *why)
{
	struct worker_job *j = w->now;
	bool aside;

	j->spent_ms = 0;
	if (thirds)
		w->opts.failed(w->opts.arg, j);
	aside = thirds && worker_aside_add(w->opts.aside, j->file, thirds, why,
					   uv_now(w->opts.loop));
	w->opts.stats->put_aside += aside;
	job_ended(w, aside ? -EBADMSG : 0, !aside);
}

/* It failed, or had to be ended; 'thirds' as in worker_aside.h. */
static void worker_lost(struct worker *w, unsigned int thirds, const char *why)
{
	bool blame = w->now && w->asked;

	/* What it said of its start itself is better. */
	if (w->state != WORKER_STARTING || !w->why[0])
		snprintf(w->why, sizeof(w->why), "%s", why);
	if (blame)
		worker_charge(w);
	worker_let_go(w);
	w->asks = 0;
	w->blameless = blame ? 0 : w->blameless + 1;
	w->restart_at = uv_now(w->opts.loop) + worker_backoff_ms(w->blameless);
	if (blame)
		job_failed(w, thirds, why);
	w->asked = false;
	worker_run(w);
}

static void worker_lied(struct worker *w)
{
	w->opts.stats->worker_lies++;
	worker_lost(w, WORKER_ASIDE_WHOLE, "the reader talked nonsense");
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

static void worker_on_readable(void *arg);

static void worker_on_ended(void *arg, int status)
{
	struct worker *w = arg;
	struct worker_child *c = w->child;
	size_t i = 0;

	/* Its last words still count. */
	w->ending = true;
	worker_on_readable(w);
	w->ending = false;
	if (w->child != c) {
		worker_run(w);
		return;
	}
	while (i < ARRAY_SIZE(ends) - 1 && ends[i].status != status)
		i++;
	w->opts.stats->worker_failed++;
	worker_lost(w, ends[i].thirds, ends[i].why);
}

/* --- the start ------------------------------------------------------------------ */

static void worker_on_timer_closed(uv_handle_t *handle)
{
	struct worker *w =
		container_of((uv_timer_t *)handle, struct worker, timer);
	void (*closed)(void *arg) = w->opts.closed;
	void *arg = w->opts.arg;

	free(w->program);
	free(w);
	closed(arg);
}

/* The last step of worker_free(), when nothing else has a pointer to it. */
static void close_if_done(struct worker *w)
{
	if (w->freed && !w->children.head && !w->asking &&
	    !uv_is_closing((uv_handle_t *)&w->timer))
		uv_close((uv_handle_t *)&w->timer, worker_on_timer_closed);
}

static void worker_on_gone(void *arg)
{
	close_if_done(arg);
}

static void worker_start(struct worker *w)
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
		deadline_set(w, 0);
		return;
	}
	w->opts.stats->worker_failed++;
	snprintf(w->why, sizeof(w->why), "it cannot be run: %s",
		 strerror(-err));
	worker_lost(w, 0, "");
}

static int worker_greeted(struct worker *w)
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

/* Not for longer than a tick, which no table of a usual file takes. */
static void worker_hurry(struct worker *w)
{
	bool behind = false;
	uint64_t ms = w->opts.pace(w->opts.arg, w->now, &behind) /
		      CLOCK_NSEC_PER_MSEC;

	w->hurried = ms != 0;
	w->opts.stats->worker_unhurried +=
		!ms && w->now->kind->type != WORKER_NAMES;
	worker_child_nice(w->child, ms	     ? WORKER_BEFORE
				    : behind ? WORKER_BEHIND
					     : WORKER_WITH);
	if (ms)
		worker_set_timer(w, MIN(ms, w->tick_ms));
}

static void worker_send_question(struct worker *w)
{
	union {
		struct worker_question q;
		uint8_t room[sizeof(struct worker_question) +
			     WORKER_NAMES_MAX * sizeof(uint64_t)];
	} m;
	struct worker_job *j = w->now;
	int err;

	memset(&m.q, 0, sizeof(m.q));
	m.q.file = j->file->id;
	m.q.size = j->file->ident.size;
	m.q.index_bytes = w->opts.index_room(w->opts.arg, w->index_bytes);
	j->kind->question(j, &m.q);
	w->state = WORKER_BUSY;
	w->cpu_ns = w->charged_ns = cpu_ns(w);
	w->charged_at = uv_hrtime();
	deadline_set(w, j->spent_ms);
	worker_hurry(w);
	w->asked = true;
	err = worker_send(worker_child_socket(w->child), &m.q.head,
			  j->kind->type, sizeof(m.q) + m.q.n * sizeof(uint64_t),
			  ++w->question, j->file->fd);
	/* It is dead, which will be heard; or it let the socket fill up. */
	if (err == -EPIPE)
		w->asked = false;
	else if (err)
		worker_lied(w);
}

static void worker_finished(struct worker *w, int err, bool again)
{
	struct worker_job *j = w->now;

	w->blameless = w->asks = 0;
	w->state = WORKER_IDLE;
	worker_calm(w); /* it has to clear up after its answer */
	j->spent_ms = again ? j->spent_ms + deadline_spent(w) : 0;
	worker_aside_forgive(w->opts.aside, j->file);
	/* Replaced for the CPU time it has had, before a limit ends it. */
	if (cpu_ns(w) / CLOCK_NSEC_PER_SEC >= w->opts.cpu_s / 2)
		worker_let_go(w);
	job_ended(w, err, again);
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
		worker_lost(w, 1, "it took too much memory to read");
		return 0;
	}
	w->opts.stats->index_built += a->built;
	w->opts.stats->index_evicted += a->evicted;
	w->opts.stats->undemangled += a->undemangled;
	if (a->undemangled && w->opts.undemangled)
		w->opts.undemangled(w->opts.undemangled_arg, j->file->uid,
				    a->undemangled);
	w->opts.stats->index_bytes += a->index_bytes - w->index_bytes;
	w->index_bytes = a->index_bytes;
	if (err || next != WORKER_MORE)
		worker_finished(w, err, !err && next == WORKER_AGAIN);
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
		worker_lied(w);
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

static int worker_heard(struct worker *w)
{
	if (w->state == WORKER_STARTING)
		return worker_greeted(w);
	if (w->state != WORKER_BUSY)
		return -EPROTO; /* nobody asked */
	return w->in.head.type == WORKER_ASK ? heard_ask(w) : heard_answer(w);
}

static void worker_on_readable(void *arg)
{
	struct worker *w = arg;
	struct worker_child *c = w->child;
	int err = 0;

	for (int i = 0; i < WORKER_READS_MAX && w->child == c && !err; i++) {
		err = worker_recv(worker_child_socket(c), &w->in);
		if (!err)
			err = worker_heard(w);
		worker_in_close(&w->in);
	}
	if (w->child == c && err == -EPIPE)
		worker_child_deafen(c); /* its end comes by worker_on_ended() */
	else if (w->child == c && err && err != -EAGAIN)
		worker_lied(w);
	else
		worker_run(w);
}

/* --- time ------------------------------------------------------------------------- */

/*
 * It took too long: the file's fault, if it used the CPU for it. A process that
 * was stopped, or got no CPU, could not answer; one that waits for the file may
 * have to wait each time, so that counts, but not at once.
 */
static void give_up(struct worker *w)
{
	uint64_t used = (cpu_ns(w) - w->cpu_ns) / CLOCK_NSEC_PER_MSEC;
	struct procfs_stat st;
	char state =
		procfs_stat(worker_child_pid(w->child), &st) ? st.state : '\0';

	w->opts.stats->worker_hung++;
	if (w->state == WORKER_STARTING || used >= w->opts.deadline_ms / 4)
		worker_lost(w, WORKER_ASIDE_WHOLE, "it took too long to read");
	else if (state == 'T' || state == 't')
		worker_lost(w, 0, "the reader was stopped");
	else
		worker_lost(w, 1, "the reader was kept waiting");
}

static void worker_overdue(struct worker *w)
{
	uint64_t question = w->question;
	enum worker_state state = w->state;
	struct worker_child *c = w->child;
	bool hurried;

	/* It may have been us who were late. */
	worker_on_readable(w);
	if (w->child != c || w->question != question || w->state != state)
		return;
	hurried = w->hurried;
	if (w->state == WORKER_BUSY)
		worker_calm(w);
	/* What it was hurried for is no tick. */
	if (hurried || ++w->ticks < WORKER_TICKS) {
		worker_set_timer(w, w->tick_ms);
		return;
	}
	give_up(w);
}

static void worker_on_timer(uv_timer_t *timer)
{
	struct worker *w = container_of(timer, struct worker, timer);

	if (w->freed)
		worker_children_forget(&w->children);
	else if (w->state == WORKER_STARTING || w->state == WORKER_BUSY)
		worker_overdue(w);
	else if (w->state == WORKER_IDLE && !w->now)
		worker_let_go(
			w); /* memory is worth more than indexes nobody needs */
	else
		worker_run(w);
}

static void run_down(struct worker *w)
{
	uint64_t now = uv_now(w->opts.loop);

	if (w->now && worker_refuses(w))
		job_ended(w, -EIO, false);
	if (w->freed || w->state != WORKER_DOWN || !w->now)
		return;
	if (now < w->restart_at)
		worker_set_timer(w, w->restart_at - now);
	else
		worker_start(w);
}

/* Does what is next; never from inside of a request. */
static void worker_run(struct worker *w)
{
	if (w->freed || w->ending)
		return;
	if (w->state == WORKER_IDLE && w->now)
		worker_send_question(w);
	else if (w->state == WORKER_IDLE)
		worker_set_timer(w, w->opts.idle_ms);
	else if (w->state == WORKER_DOWN)
		run_down(w);
	set_refs(w);
	if (!w->freed && !w->now)
		w->opts.ready(w->opts.arg);
}

void worker_give(struct worker *w, struct worker_job *j)
{
	w->now = j;
	w->given_at = uv_hrtime();
	if (w->state == WORKER_IDLE || w->state == WORKER_DOWN)
		worker_set_timer(w, 0);
	set_refs(w);
}

bool worker_take_back(struct worker *w)
{
	if (w->asked)
		return false;
	w->now = NULL;
	set_refs(w);
	return true;
}

void worker_wake(struct worker *w)
{
	if (w->state == WORKER_DOWN)
		worker_start(w);
	set_refs(w);
}

enum worker_state worker_state(const struct worker *w)
{
	return w->state;
}

struct worker_job *worker_job(const struct worker *w)
{
	return w->now;
}

uint64_t worker_given_at(const struct worker *w)
{
	return w->given_at;
}

bool worker_refuses(const struct worker *w)
{
	return w->state == WORKER_DOWN && worker_broken(w) &&
	       uv_now(w->opts.loop) < w->restart_at;
}

bool worker_doubtful(const struct worker *w)
{
	return w->blameless != 0;
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
		.readable = worker_on_readable,
		.ended = worker_on_ended,
		.gone = worker_on_gone,
		.arg = w,
	};
	w->program = strdup(opts->program);
	err = w->program ? uv_timer_init(opts->loop, &w->timer) : -ENOMEM;
	if (err) {
		free(w->program);
		free(w);
		return err;
	}
	set_refs(w);
	*wp = w;
	return 0;
}

void worker_free(struct worker *w)
{
	if (!w)
		return;
	w->freed = true;
	if (w->now)
		job_ended(w, -ECANCELED, false);
	worker_let_go(w);
	close_if_done(w);
	if (uv_is_closing((uv_handle_t *)&w->timer))
		return;
	uv_ref((uv_handle_t *)&w->timer);
	worker_set_timer(w, WORKER_LAST_MS);
}

void worker_status(const struct worker *w, char *buf, size_t len)
{
	if (w->state == WORKER_IDLE || w->state == WORKER_BUSY)
		snprintf(buf, len,
			 "process %d, user id %u%s, no capabilities, seccomp",
			 (int)worker_child_pid(w->child), w->uid,
			 w->uid == getuid() ? " as profd" : "");
	else if (worker_broken(w))
		snprintf(buf, len, "none: %s", w->why);
	else if (w->state == WORKER_STARTING)
		snprintf(buf, len, "starting");
	else
		snprintf(buf, len, "not running: nothing to do");
}
