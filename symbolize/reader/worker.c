// SPDX-License-Identifier: Apache-2.0
/*
 * worker: see symbolize/reader/worker.h.
 *
 * An exit while the worker has a question is attributed to the file, if it had read
 * no other (worker.h); workers.c decides what this means for other files of the user.
 * Any other exit, also before HELLO, is attributed to no file. After five of these in
 * a row jobs end with -EIO until it starts again, which is tried every ten seconds.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "symbolize/reader/worker.h"
#include "symbolize/reader/witness.h"
#include "symbolize/reader/worker_ask.h"
#include "symbolize/reader/worker_child.h"

/*
 * A deadline is counted in this many ticks. Time in which profd was stopped, or
 * the host suspended, counts as one tick at most.
 */
#define WORKER_TICKS 40
/* After so many failures in a row without a job, jobs end with -EIO. */
#define WORKER_BROKEN 5
/* worker_free() waits this long for a process to be reaped. */
#define WORKER_LAST_MS 1000
#define WORKER_ASKS_MAX 256 /* and KEEPs, for one job */
#define WORKER_READS_MAX 16 /* messages in one turn of the loop */

struct worker {
	struct worker_opts opts;
	char *program;
	enum worker_state state;
	uv_timer_t timer;
	unsigned int ticks; /* of the deadline, elapsed */
	uint64_t tick_ms, asked_at; /* uv_now() */
	uint64_t cpu_ns; /* of the process, when the question was sent */
	uint64_t charged_ns; /* CPU time of the process up to the last charge */
	uint64_t charged_at; /* uv_hrtime() */
	bool hurried; /* the process has priority now */
	uint64_t index_bytes; /* its share of stats->index_bytes */
	struct worker_children children;
	struct worker_child *child; /* the current one, or NULL */
	bool ending; /* it has exited, its last messages are being read */
	uint64_t read; /* id of the file that it read; 0: none */
	bool several; /* it has read others, too */
	struct worker_job *now; /* its job, or NULL */
	bool asked; /* ... and the process may have received the question */
	uint64_t question; /* its number */
	unsigned int asks; /* for files, by this job */
	/* The build id asked for last; len 0: by name. */
	uint8_t asked_id[WORKER_ASK_ID_MAX];
	size_t asked_id_len;
	unsigned int asking; /* all that the openers have */
	struct worker_look *look; /* for units of the job's file, or NULL */
	bool looked; /* units of this question come from the disk */
	unsigned int jobless_fails; /* failures without a job, in a row */
	uint64_t restart_at; /* uv_now(), when DOWN */
	bool freed;
	uid_t uid;
	char why[96]; /* of the last failure */
	struct worker_in in;
};

static void worker_run(struct worker *w);
static void worker_on_timer(uv_timer_t *timer);

/* --- time, priority ------------------------------------------------------- */

/* Keeps the loop alive while there is a job. */
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
	/* uv_now() is old if the loop was busy. */
	uv_update_time(w->opts.loop);
	uv_timer_start(&w->timer, worker_on_timer, MAX(ms, 1), 0);
}

/* Divides the rest of the deadline into WORKER_TICKS. */
static void deadline_set(struct worker *w, uint64_t spent_ms)
{
	uint64_t all = w->opts.deadline_ms;

	w->ticks = 0;
	w->tick_ms = MAX((all - MIN(all, spent_ms)) / WORKER_TICKS, 1ULL);
	worker_set_timer(w, w->tick_ms);
	w->asked_at = uv_now(w->opts.loop);
}

/* The elapsed part of it; while profd was stopped, a tick at most. */
static uint64_t deadline_spent(const struct worker *w)
{
	return MIN(uv_now(w->opts.loop) - w->asked_at,
		   (w->ticks + 1) * w->tick_ms);
}

/* CPU time of the process; 0: unknown. */
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

	/* It was reaped: assume that it used a CPU since the last charge. */
	if (!now)
		now = w->charged_ns + (at - w->charged_at);
	if (!w->asked || now <= w->charged_ns)
		return;
	w->opts.charge(w->opts.arg, w->now, now - w->charged_ns, w->hurried);
	w->charged_ns = now;
	w->charged_at = at;
}

/* 'hurry': high, but for a tick at most: usual tables take less. */
static void worker_set_priority(struct worker *w, bool hurry)
{
	bool behind = false;
	uint64_t ms;

	worker_charge(w);
	ms = w->opts.pace(w->opts.arg, w->now, &behind) / CLOCK_NSEC_PER_MSEC;
	w->hurried = hurry && ms;
	w->opts.stats->worker_unhurried +=
		hurry && !ms && w->now->kind->type != WORKER_NAMES;
	worker_child_nice(w->child, w->hurried ? WORKER_BEFORE
				    : behind   ? WORKER_BEHIND
					       : WORKER_WITH);
	if (w->hurried)
		worker_set_timer(w, MIN(ms, w->tick_ms));
}

/* --- end of a process ----------------------------------------------------- */

static void worker_look_cancel(struct worker *w)
{
	if (w->look)
		w->opts.store->cancel(w->look);
	w->look = NULL;
	w->looked = false;
}

static void worker_stop(struct worker *w)
{
	worker_look_cancel(w);
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

	worker_look_cancel(w);
	w->now = NULL;
	w->asked = false;
	w->opts.ended(w->opts.arg, j, err, again);
}

uint64_t worker_backoff_ms(unsigned int fails)
{
	if (fails <= WORKER_PATIENCE)
		return 0;
	return MIN(WORKER_BACKOFF_MS << MIN(fails - WORKER_PATIENCE - 1, 10U),
		   WORKER_BACKOFF_MAX_MS);
}

static bool worker_broken(const struct worker *w)
{
	return w->jobless_fails >= WORKER_BROKEN;
}

/* Adds a failure. True: the file of its job is quarantined. */
static bool worker_blame(struct worker *w, unsigned int thirds,
			 enum symbolizer_reason why)
{
	struct symbolizer_quarantined q;
	struct worker_job *j = w->now;

	w->opts.failed(w->opts.arg, j);
	if (!quarantine_add(w->opts.quarantine, j->file, thirds, why,
			    uv_now(w->opts.loop)))
		return false;
	w->opts.stats->quarantined++;
	/* It may have been there already; the newest is another one then. */
	if (w->opts.quarantined &&
	    quarantine_get(w->opts.quarantine, &j->file->ident, &q))
		w->opts.quarantined(w->opts.report_arg, &q);
	return true;
}

/* Whether this may be due to what other files left in the process. */
static bool worker_shared(const struct worker *w, enum symbolizer_reason why)
{
	return w->several && why != SYMBOLIZER_REASON_CPU &&
	       why != SYMBOLIZER_REASON_TIME;
}

/* The process failed while it worked on the job. */
static void job_failed(struct worker *w, unsigned int thirds,
		       enum symbolizer_reason why)
{
	bool quarantined = false;

	w->now->spent_ms = 0;
	if (thirds && worker_shared(w, why)) {
		w->now->file->alone = true;
		w->opts.stats->worker_shared++;
	} else if (thirds) {
		quarantined = worker_blame(w, thirds, why);
	}
	job_ended(w, quarantined ? -EBADMSG : 0, !quarantined);
}

/* The process failed, or has to be ended; 'thirds' as in quarantine.h. */
static void worker_fail(struct worker *w, unsigned int thirds,
			enum symbolizer_reason why)
{
	bool had_job = w->now && w->asked;

	/* If it reported an error of its start, that is more specific. */
	if (w->state != WORKER_STARTING || !w->why[0])
		snprintf(w->why, sizeof(w->why), "%s", quarantine_text(why));
	if (had_job)
		worker_charge(w);
	worker_stop(w);
	w->asks = 0;
	w->jobless_fails = had_job ? 0 : w->jobless_fails + 1;
	w->restart_at =
		uv_now(w->opts.loop) + worker_backoff_ms(w->jobless_fails);
	if (had_job)
		job_failed(w, thirds, why);
	w->asked = false;
	worker_run(w);
}

static void worker_misbehaved(struct worker *w)
{
	w->opts.stats->worker_lies++;
	worker_fail(w, QUARANTINE_WHOLE, SYMBOLIZER_REASON_INVALID);
}

/* What exit statuses mean, and how much they count against the file. */
static const struct {
	int status; /* negative: a signal */
	unsigned int thirds;
	enum symbolizer_reason why;
} ends[] = {
	{ -SIGKILL, 1, SYMBOLIZER_REASON_KILLED },
	{ -SIGTERM, 1, SYMBOLIZER_REASON_KILLED },
	{ -SIGINT, 1, SYMBOLIZER_REASON_KILLED },
	{ -SIGXCPU, QUARANTINE_WHOLE, SYMBOLIZER_REASON_CPU },
	{ -SIGSYS, QUARANTINE_WHOLE, SYMBOLIZER_REASON_SYSCALL },
	{ 0, QUARANTINE_WHOLE, SYMBOLIZER_REASON_CRASHED }, /* all others */
};

static void worker_on_readable(void *arg);

static void worker_on_ended(void *arg, int status)
{
	struct worker *w = arg;
	struct worker_child *c = w->child;
	size_t i = 0;

	/* Messages from before its exit are still valid. */
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
	worker_fail(w, ends[i].thirds, ends[i].why);
}

/* --- start of a process --------------------------------------------------- */

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
static void close_if_done(void *arg)
{
	struct worker *w = arg;

	if (w->freed && LIST_EMPTY(&w->children.list) && !w->asking &&
	    !uv_is_closing((uv_handle_t *)&w->timer))
		uv_close((uv_handle_t *)&w->timer, worker_on_timer_closed);
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
	w->read = 0;
	w->several = false;
	err = worker_child_start(&w->child, &w->children, w->program, argv);
	if (!err) {
		deadline_set(w, 0);
		return;
	}
	w->opts.stats->worker_failed++;
	snprintf(w->why, sizeof(w->why), "it cannot be run: %s",
		 strerror(-err));
	worker_fail(w, 0, SYMBOLIZER_REASON_CRASHED); /* "why" stays */
}

static int worker_on_hello(struct worker *w)
{
	const struct worker_hello *h = worker_hello(&w->in);

	if (!h)
		return -EPROTO;
	if (h->err) {
		/* It will exit. */
		snprintf(w->why, sizeof(w->why), "%s: %s", h->what,
			 strerror(-h->err));
		return 0;
	}
	w->uid = h->uid;
	w->state = WORKER_IDLE;
	return 0;
}

/* --- questions and answers ------------------------------------------------ */

static bool worker_may_keep(const struct worker *w)
{
	const struct symbolizer_file *f = w->now->file;

	return w->opts.store && w->now->kind->type == WORKER_NAMES &&
	       !f->code && !f->unitless &&
	       w->opts.store->may(w->opts.store_arg, f);
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

	w->several |= w->read && w->read != j->file->id;
	w->read = j->file->id;
	memset(&m.q, 0, sizeof(m.q));
	m.q.file = j->file->id;
	m.q.size = j->file->ident.size;
	m.q.index_bytes = w->opts.index_room(w->opts.arg, w->index_bytes);
	m.q.units = worker_may_keep(w);
	if (j->kind->question)
		j->kind->question(j, &m.q);
	w->state = WORKER_BUSY;
	w->cpu_ns = w->charged_ns = cpu_ns(w);
	w->charged_at = uv_hrtime();
	deadline_set(w, j->spent_ms);
	worker_set_priority(w, true);
	w->asked = true;
	err = worker_send(worker_child_socket(w->child), &m.q.head,
			  j->kind->type, sizeof(m.q) + m.q.n * sizeof(uint64_t),
			  ++w->question, j->file->fd);
	/* EPIPE: it is dead, worker_on_ended() follows. Else: it hangs. */
	if (err == -EPIPE)
		w->asked = false;
	else if (err)
		worker_misbehaved(w);
}

static void worker_finished(struct worker *w, int err, bool again)
{
	struct worker_job *j = w->now;

	w->jobless_fails = w->asks = 0;
	w->state = WORKER_IDLE;
	worker_set_priority(w, false); /* it still frees memory */
	j->spent_ms = again ? j->spent_ms + deadline_spent(w) : 0;
	quarantine_clear(w->opts.quarantine, j->file);
	j->file->alone = false;
	/* Replaced between two jobs, before RLIMIT_CPU ends it within one. */
	if (cpu_ns(w) / CLOCK_NSEC_PER_SEC >= w->opts.cpu_s / 2)
		worker_stop(w);
	job_ended(w, err, again);
}

static int worker_on_answer(struct worker *w)
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
		worker_fail(w, 1, SYMBOLIZER_REASON_MEMORY);
		return 0;
	}
	w->opts.stats->index_built += a->built;
	w->opts.stats->index_evicted += a->evicted;
	w->opts.stats->undemangled += a->undemangled;
	w->opts.stats->units_read += a->units_read;
	w->opts.stats->units_cached += a->units_kept;
	if (a->units_damaged && worker_may_keep(w))
		w->opts.store->damaged(w->opts.store_arg, j->file);
	if (a->undemangled && w->opts.undemangled)
		w->opts.undemangled(w->opts.report_arg, j->file->uid,
				    a->undemangled);
	if (j->kind->type == WORKER_NAMES) {
		j->file->symbol_bytes = a->file_bytes;
		j->file->relocation = a->relocation;
	}
	w->opts.stats->index_bytes += a->index_bytes - w->index_bytes;
	w->index_bytes = a->index_bytes;
	if (err || next != WORKER_MORE)
		worker_finished(w, err, !err && next == WORKER_AGAIN);
	return 0;
}

static void worker_on_file(void *arg, uint64_t question, int fd,
			   unsigned int nth)
{
	struct worker_file out = { .err = MIN(fd, 0), .nth = nth };
	struct worker *w = arg;
	int err;

	w->asking--;
	close_if_done(w);
	/* A question that is repeated gets another number. */
	if (w->state != WORKER_BUSY || w->question != question)
		return;
	if (fd == -ENOENT && w->asked_id_len && w->opts.missed)
		w->opts.missed(w->opts.missed_arg, w->now->file, w->asked_id,
			       w->asked_id_len);
	if (fd >= 0 && w->now->file->witnessed)
		witness_fd(&w->now->file->witness, fd);
	err = worker_send(worker_child_socket(w->child), &out.head, WORKER_FILE,
			  sizeof(out), question, fd);
	if (err && err != -EPIPE)
		worker_misbehaved(w);
}

static void worker_on_units(void *arg, int fd, uint64_t at)
{
	struct worker_file out = { .err = MIN(fd, 0), .at = at };
	struct worker *w = arg;
	int err;

	w->look = NULL;
	w->looked = fd >= 0;
	err = worker_send(worker_child_socket(w->child), &out.head, WORKER_FILE,
			  sizeof(out), w->question, fd);
	if (err && err != -EPIPE)
		worker_misbehaved(w);
}

static int worker_on_ask_units(struct worker *w)
{
	if (w->look || !worker_may_keep(w))
		return -EPROTO;
	w->look = w->opts.store->look(w->opts.store_arg, w->now->file,
				      worker_on_units, w);
	if (!w->look)
		worker_on_units(w, -ENOENT, 0);
	return 0;
}

static int worker_on_keep(struct worker *w)
{
	const struct worker_keep *k = worker_keep(&w->in);
	int err = -EPROTO;
	void *map;

	if (!k || k->head.job != w->question || !worker_may_keep(w) ||
	    w->asks++ == WORKER_ASKS_MAX)
		return err;
	map = worker_table_map(w->in.fd, k->bytes);
	if (map) {
		err = w->opts.store->keep(w->opts.store_arg, w->now->file, map,
					  k->bytes);
		munmap(map, k->bytes);
	}
	return err ? -EPROTO : 0;
}

static int worker_on_ask(struct worker *w)
{
	const struct worker_ask *a = worker_ask(&w->in);

	if (!a || a->head.job != w->question || w->asks++ == WORKER_ASKS_MAX)
		return -EPROTO;
	if (a->units)
		return worker_on_ask_units(w);
	w->asking++;
	w->asked_id_len = a->build_id_len;
	memcpy(w->asked_id, a->build_id, a->build_id_len);
	if (worker_ask_start(w->opts.opener, w->opts.debug_dirs, w->now->file,
			     a, worker_on_file, w))
		worker_on_file(w, w->question, -ENOMEM, a->nth);
	return 0;
}

static int worker_on_message(struct worker *w)
{
	if (w->state == WORKER_STARTING)
		return worker_on_hello(w);
	if (w->state != WORKER_BUSY)
		return -EPROTO; /* without a question */
	if (w->in.head.type == WORKER_ASK)
		return worker_on_ask(w);
	return w->in.head.type == WORKER_KEEP ? worker_on_keep(w)
					      : worker_on_answer(w);
}

static void worker_on_readable(void *arg)
{
	struct worker *w = arg;
	struct worker_child *c = w->child;
	int err = 0;

	for (int i = 0; i < WORKER_READS_MAX && w->child == c && !err; i++) {
		err = worker_recv(worker_child_socket(c), &w->in);
		if (!err)
			err = worker_on_message(w);
		worker_in_close(&w->in);
	}
	if (w->child == c && err == -EPIPE)
		worker_child_kill(c); /* worker_on_ended() follows */
	else if (w->child == c && err && err != -EAGAIN)
		worker_misbehaved(w);
	else
		worker_run(w);
}

/* --- deadlines ------------------------------------------------------------ */

/*
 * The deadline is exceeded. If the process used the CPU, this is attributed to
 * the file. A stopped process could not answer. One that got no CPU, or waits
 * for the file, counts as a third: the file may make it wait each time.
 */
static void worker_timed_out(struct worker *w)
{
	uint64_t used = (cpu_ns(w) - w->cpu_ns) / CLOCK_NSEC_PER_MSEC;
	struct procfs_stat st;
	char state =
		procfs_stat(worker_child_pid(w->child), &st) ? st.state : '\0';

	w->opts.stats->worker_hung++;
	if (w->looked)
		w->now->file->unitless = true;
	if (w->state == WORKER_STARTING || used >= w->opts.deadline_ms / 4)
		worker_fail(w, QUARANTINE_WHOLE, SYMBOLIZER_REASON_TIME);
	else if (state == 'T' || state == 't')
		worker_fail(w, 0, SYMBOLIZER_REASON_STOPPED);
	else /* perhaps for the disk of the cache: no fault of the file */
		worker_fail(w, w->looked ? 0 : 1, SYMBOLIZER_REASON_WAITED);
}

static void worker_overdue(struct worker *w)
{
	uint64_t question = w->question;
	enum worker_state state = w->state;
	struct worker_child *c = w->child;
	bool hurried;

	/* The answer may be there already, if the loop was blocked. */
	worker_on_readable(w);
	if (w->child != c || w->question != question || w->state != state)
		return;
	hurried = w->hurried;
	if (w->state == WORKER_BUSY)
		worker_set_priority(w, false);
	/* The time with priority was no tick. */
	if (hurried || ++w->ticks < WORKER_TICKS) {
		worker_set_timer(w, w->tick_ms);
		return;
	}
	worker_timed_out(w);
}

static void worker_on_timer(uv_timer_t *timer)
{
	struct worker *w = container_of(timer, struct worker, timer);

	if (w->freed)
		worker_children_forget(&w->children);
	else if (w->state == WORKER_STARTING || w->state == WORKER_BUSY)
		worker_overdue(w);
	else if (w->state == WORKER_IDLE && !w->now)
		worker_stop(w); /* frees the memory of its indexes */
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

/* Whether its job needs a process that has read no other file. */
static bool worker_unfit(const struct worker *w)
{
	return w->now && w->now->file->alone &&
	       (w->several || (w->read && w->read != w->now->file->id));
}

/* The next step; may call back, so it is never called from a request. */
static void worker_run(struct worker *w)
{
	if (w->freed || w->ending)
		return;
	if (w->state == WORKER_IDLE && worker_unfit(w))
		worker_stop(w);
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
	j->given_at = uv_hrtime();
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

void worker_rest(struct worker *w)
{
	if (w->state == WORKER_IDLE && !w->now)
		worker_stop(w);
}

enum worker_state worker_state(const struct worker *w)
{
	return w->state;
}

struct worker_job *worker_job(const struct worker *w)
{
	return w->now;
}

bool worker_refuses(const struct worker *w)
{
	return w->state == WORKER_DOWN && worker_broken(w) &&
	       uv_now(w->opts.loop) < w->restart_at;
}

bool worker_failing(const struct worker *w)
{
	return w->jobless_fails != 0;
}

/* --- interface ------------------------------------------------------------ */

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
		.gone = close_if_done,
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
	worker_stop(w);
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
