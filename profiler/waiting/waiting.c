// SPDX-License-Identifier: Apache-2.0
/* waiting: see profiler/waiting/waiting.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/waiting/edges.h"
#include "profiler/waiting/followed.h"
#include "profiler/waiting/opened.h"
#include "profiler/waiting/records.h"
#include "profiler/waiting/sites.h"
#include "profiler/waiting/spans.h"
#include "profiler/waiting/sums.h"
#include "profiler/waiting/timeline.h"
#include "profiler/waiting/waiting.h"

#define WAITING_READ_NS (900 * CLOCK_NSEC_PER_MSEC)
/* With many lives a second sums are freed more often. */
#define WAITING_CROWDED_NS (90 * CLOCK_NSEC_PER_MSEC)
#define WAITING_KEEPS_NS (3 * CLOCK_NSEC_PER_SEC)
/* Clients cannot have open intervals cut more often. */
#define WAITING_SHOWN_NS (100 * CLOCK_NSEC_PER_MSEC)
/* Beyond that, sums stay in the kernel until the pump has caught up. */
#define WAITING_KEPT_MAX 262144
#define WAITING_CHECK_NS (60 * CLOCK_NSEC_PER_SEC)
#define WAITING_POOL 1024 /* blocks that are not in use */
/* Programs that read the clock before an edge have changed their sums after that. */
#define WAITING_FLIGHT_NS CLOCK_NSEC_PER_MSEC

/* Read, and to be given when the pump has passed 'time'. */
struct waiting_kept {
	STAILQ_ENTRY(waiting_kept) entry;
	uint64_t time; /* of the cut, or the reading */
	struct waiting_sum sum;
};

/* The frame of a reason; those of the time on a CPU are two. */
struct waiting_frame {
	char text[48];
	struct reporter_function function;
	struct reporter_line line;
	struct reporter_frame frame;
	struct reporter_memo memo;
};

struct waiting {
	struct waiting_opts opts;
	struct waiting_sums *sums;
	struct waiting_sites sites;
	struct waiting_spans spans;
	struct waiting_opened opened;
	struct timelines *timelines;
	struct waiting_followed followed;
	struct waiting_records *records; /* NULL: without an archive */
	uint64_t records_given; /* up to this time */
	uint64_t records_lost; /* that the reporter knows of */
	struct pool pool; /* of 'kept' */
	STAILQ_HEAD(, waiting_kept) kept; /* by time */
	size_t nkept;
	uint64_t now; /* 'time' of what is being read */
	uint64_t read; /* the last time */
	uint64_t checked; /* likewise, waiting_sums_check() */
	uint64_t edge; /* of windows: the last at which all were cut */
	uint64_t shown; /* the last cut for a timeline */
	uint64_t end; /* waiting_ends(); UINT64_MAX: not yet */
	uint64_t untracked; /* the counter, when the iterator last ran for it */
	struct waiting_frame frames[ABI_WAIT_REASON_MAX], beyond, uncopied;
	/* Of traces of a reason and 'uncopied'. */
	struct reporter_memo uncopied_memo[ABI_WAIT_REASON_MAX];
	struct reporter_frame *stack; /* of the trace that is being given */
	size_t cap_stack;
	struct waiting_stats stats;
};

static const char *const waiting_reasons[] = {
#define X(NAME, name) #name,
	ABI_WAIT_REASONS(X)
#undef X
};

static const char *const waiting_fds[ABI_FD_KINDS] = {
#define X(NAME, word, category) word,
	ABI_FDS(X)
#undef X
};

static uint32_t waiting_event(uint32_t reason)
{
	return reason == ABI_WAIT_ON	 ? ABI_EVENT_RUNNING
	       : reason < ABI_WAIT_SLEEP ? ABI_EVENT_RUNQUEUE
					 : ABI_EVENT_WAIT;
}

/* --- frames -------------------------------------------------------------------- */

/* Marks are told apart by their number: those of the trace handler are small. */
#define WAITING_MARKS 0x77616974ULL << 32

static void waiting_frame_init(struct waiting_frame *f, uint64_t number)
{
	f->function = (struct reporter_function){
		.name = f->text,
		.system_name = f->text,
		.file = "",
	};
	f->line = (struct reporter_line){ .function = &f->function };
	f->frame = (struct reporter_frame){
		.place = { .kind = REPORTER_PLACE_MARK,
			   .id = (WAITING_MARKS) + number },
		.lines = &f->line,
		.nlines = 1,
	};
}

static void waiting_init_frames(struct waiting *w)
{
	static const char *const kinds[] = {
		[ABI_EVENT_WAIT] = "wait ",
		[ABI_EVENT_RUNQUEUE] = "runqueue ",
	};
	struct waiting_frame *f;

	for (uint32_t i = 0; i < ABI_WAIT_REASON_MAX; i++) {
		f = &w->frames[i];
		if (i == ABI_WAIT_ON)
			snprintf(f->text, sizeof(f->text), REPORTER_CPU_EXACT);
		else
			snprintf(f->text, sizeof(f->text), "[%s%s]",
				 kinds[waiting_event(i)], waiting_reasons[i]);
		waiting_frame_init(f, i);
	}
	f = &w->beyond;
	snprintf(f->text, sizeof(f->text), "[on a CPU, not CPU time]");
	waiting_frame_init(f, ABI_WAIT_REASON_MAX);
	f = &w->uncopied;
	snprintf(f->text, sizeof(f->text), REPORTER_WAIT_UNCOPIED);
	waiting_frame_init(f, ABI_WAIT_REASON_MAX + 1);
}

/* --- to the reporter ----------------------------------------------------------- */

static void waiting_put(struct waiting *w, struct reporter_trace *t,
			uint64_t count, uint64_t ns)
{
	t->count = count;
	t->value = ns;
	if ((count || ns) && reporter_add(w->opts.reporter, t))
		w->stats.nomem++;
}

static void waiting_frame_of(struct waiting_frame *f, struct reporter_trace *t)
{
	t->frames = &f->frame;
	t->nframes = 1;
	t->memo = &f->memo;
}

static void waiting_add(struct waiting *w, struct waiting_frame *f,
			struct reporter_trace *t, uint64_t count, uint64_t ns)
{
	waiting_frame_of(f, t);
	waiting_put(w, t, count, ns);
}

/* --- the stack of a site -------------------------------------------------------- */

/* Makes room in w->stack. */
static bool waiting_stack_room(struct waiting *w, size_t n)
{
	struct reporter_frame *stack;

	if (n <= w->cap_stack)
		return true;
	stack = realloc(w->stack, n * sizeof(*stack));
	if (!stack)
		return false;
	w->stack = stack;
	w->cap_stack = n;
	return true;
}

/* The frame of the reason, and those of the site. False: it is not there. */
static bool waiting_stack(struct waiting *w, struct waiting_site *site,
			  uint32_t reason, struct reporter_trace *t)
{
	size_t n;

	if (!site || !site->stack)
		return false;
	n = trace_handler_kept(site->stack, NULL, 0);
	if (!waiting_stack_room(w, n + 1))
		return false;
	w->stack[0] = w->frames[reason].frame;
	trace_handler_kept(site->stack, w->stack + 1, n);
	if (site->reason != reason)
		site->memo = (struct reporter_memo){ 0 };
	site->reason = reason;
	t->frames = w->stack;
	t->nframes = n + 1;
	t->memo = &site->memo;
	return true;
}

/* The stack that is not there. False: no memory. */
static bool waiting_uncopied(struct waiting *w, const struct waiting_sum *sum,
			     uint32_t reason, struct reporter_trace *t)
{
	/* It was copied, and lost on its way. */
	uint32_t why = sum->site < ABI_WAIT_SITE_LEAST ? sum->site : 0;

	if (!waiting_stack_room(w, 2)) {
		w->stats.nomem++;
		return false;
	}
	w->stack[0] = w->frames[reason].frame;
	w->stack[1] = w->uncopied.frame;
	t->frames = w->stack;
	t->nframes = 2;
	t->memo = &w->uncopied_memo[reason];
	w->stats.uncopied[why] += sum->count;
	w->stats.uncopied_ns[why] += sum->ns;
	return true;
}

/* The frames of a wait. False: no memory. */
static bool waiting_wait_frames(struct waiting *w,
				const struct waiting_sum *sum, uint32_t reason,
				struct reporter_trace *t)
{
	struct waiting_site *site;

	if (sum->site == ABI_WAIT_SITE_NONE) {
		waiting_frame_of(&w->frames[reason], t);
		return true;
	}
	site = waiting_sites_find(&w->sites, sum->site);
	if (!waiting_stack(w, site, reason, t))
		return waiting_uncopied(w, sum, reason, t);
	w->stats.sited += sum->count;
	return true;
}

static void waiting_add_wait(struct waiting *w, const struct waiting_sum *sum,
			     uint32_t reason, struct reporter_trace *t)
{
	/* The reporter would have none of them. */
	if (w->opts.selected_only && !pm_image_selected(t->image))
		return;
	if (waiting_wait_frames(w, sum, reason, t))
		waiting_put(w, t, sum->count, sum->ns);
}

/* Until its exec, the command that profd starts and records is profd. */
static bool waiting_own_fork(const struct waiting *w,
			     const struct pm_image *image)
{
	struct pm_image_info info;

	if (!w->opts.selected_only || !pm_image_selected(image))
		return false;
	pm_image_info(image, &info);
	return info.ppid == (uint32_t)getpid() &&
	       info.begin == info.key.start_boottime;
}

/*
 * The trace of a sum, or of a wait, of before 'time', without frames. False: its process
 * is not known any more, or it is none of the recording.
 */
static bool waiting_trace(struct waiting *w, const struct abi_key *key,
			  uint32_t what, uint64_t time,
			  struct reporter_trace *t)
{
	uint32_t reason = ABI_WAIT_WHAT_REASON(what);
	uint32_t fd = ABI_WAIT_WHAT_FD(what);

	*t = (struct reporter_trace){
		.time = time - 1,
		.event = waiting_event(reason),
		.reason = waiting_reasons[reason],
		.syscall = watch_syscall(ABI_WAIT_WHAT_NR(what)),
		.fd = fd ? waiting_fds[fd] : NULL,
	};
	/* An image that it has forgotten must not be made again. */
	if (pm_newest(w->opts.pm, key))
		t->image = pm_image_get(w->opts.pm, key, time);
	if (!t->image) {
		w->stats.unknown++;
		return false;
	}
	return !waiting_own_fork(w, t->image);
}

static void waiting_give(struct waiting *w, const struct waiting_kept *k)
{
	uint32_t reason = ABI_WAIT_WHAT_REASON(k->sum.what);
	const struct waiting_sum *sum = &k->sum;
	struct reporter_trace t;

	if (sum->last) {
		waiting_sites_unuse(&w->sites, sum->site);
		return;
	}
	if (!waiting_trace(w, &sum->key, sum->what, k->time, &t))
		return;
	if (t.event == ABI_EVENT_WAIT) {
		waiting_add_wait(w, sum, reason, &t);
		return;
	}
	if (reason != ABI_WAIT_ON) {
		waiting_add(w, &w->frames[reason], &t, sum->count, sum->ns);
		return;
	}
	t.reason = NULL;
	waiting_add(w, &w->frames[reason], &t, sum->count, sum->cpu_ns);
	if (sum->ns > sum->cpu_ns)
		waiting_add(w, &w->beyond, &t, 0, sum->ns - sum->cpu_ns);
}

/* --- long waits ------------------------------------------------------------------ */

/* With the stack of its sum, which was given before it. */
static void waiting_give_record(void *arg, const struct abi_segment *s)
{
	const struct waiting_sum sum = { .site = s->site };
	struct waiting *w = arg;
	struct reporter_trace t;

	if (waiting_trace(w, &s->key, s->what, s->end, &t) &&
	    waiting_wait_frames(w, &sum, ABI_WAIT_WHAT_REASON(s->what), &t) &&
	    reporter_add_wait(w->opts.reporter, &t, s))
		w->stats.nomem++;
}

/* Those of before 'time', whose sums were given. */
static void waiting_give_records(struct waiting *w, uint64_t time)
{
	struct waiting_records_stats stats;

	if (!w->records || time <= w->records_given)
		return;
	w->records_given = time;
	waiting_records_give(w->records, time, waiting_give_record, w);
	waiting_records_get_stats(w->records, &stats);
	if (stats.lost > w->records_lost)
		reporter_lost_waits(w->opts.reporter, time - 1,
				    stats.lost - w->records_lost);
	w->records_lost = stats.lost;
}

static void waiting_deliver(struct waiting *w, uint64_t passed)
{
	struct waiting_kept *k;
	uint64_t given = 0;

	while ((k = STAILQ_FIRST(&w->kept)) && k->time <= passed) {
		STAILQ_REMOVE_HEAD(&w->kept, entry);
		w->nkept--;
		given = k->time;
		/* They may need the site. */
		if (k->sum.last)
			waiting_give_records(w, given);
		waiting_give(w, k);
		pool_give(&w->pool, k);
	}
	waiting_give_records(w, given);
}

/* --- from the kernel ------------------------------------------------------------ */

static void waiting_total(struct waiting_stats *st,
			  const struct waiting_sum *sum)
{
	switch (waiting_event(ABI_WAIT_WHAT_REASON(sum->what))) {
	case ABI_EVENT_WAIT:
		st->wait_ns += sum->ns;
		break;
	case ABI_EVENT_RUNQUEUE:
		st->queue_ns += sum->ns;
		break;
	default:
		st->on_ns += sum->ns;
		st->cpu_ns += sum->cpu_ns;
	}
}

static void waiting_on_sum(void *arg, const struct waiting_sum *sum)
{
	struct waiting *w = arg;
	struct waiting_kept *k;

	if (ABI_WAIT_WHAT_REASON(sum->what) >= ABI_WAIT_REASON_MAX ||
	    ABI_WAIT_WHAT_FD(sum->what) >= ABI_FD_KINDS)
		return; /* the kernel's side writes none */
	if (sum->first)
		waiting_sites_use(&w->sites, sum->site);
	waiting_total(&w->stats, sum);
	if (!sum->key.tgid && !sum->last) {
		w->stats.unkept += sum->count;
		w->stats.unkept_ns += sum->ns;
		return;
	}
	/* There is no window that it could be in. */
	if (!sum->last &&
	    reporter_apart_edge(w->opts.reporter, 0) == UINT64_MAX)
		return;
	k = pool_take(&w->pool);
	if (!k) {
		w->stats.nomem++;
		return;
	}
	k->time = w->now;
	k->sum = *sum;
	STAILQ_INSERT_TAIL(&w->kept, k, entry);
	w->nkept++;
}

static void waiting_read(struct waiting *w, uint64_t time)
{
	w->now = time;
	waiting_sums_read(w->sums, waiting_on_sum, w);
}

static uint64_t waiting_cpu_ns(void)
{
	struct timespec ts = { 0 };

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return ts.tv_sec * CLOCK_NSEC_PER_SEC + ts.tv_nsec;
}

/* Cuts all open intervals at 'time'. */
static void waiting_cut(struct waiting *w, uint64_t time)
{
	uint64_t begin = waiting_cpu_ns();

	w->stats.cuts++;
	if (waiting_sums_cut(w->sums, time))
		w->stats.cut_failed++;
	w->stats.cut_ns += waiting_cpu_ns() - begin;
}

/* The next edge after a time: of a window, or the end of all. */
static uint64_t waiting_next_edge(const struct waiting *w, uint64_t time)
{
	uint64_t edge = reporter_apart_edge(w->opts.reporter, time);

	return w->end > time ? MIN(edge, w->end) : edge;
}

void waiting_set_edges(struct waiting *w)
{
	uint64_t times[WAITING_EDGES], edge;
	size_t n = 0;

	if (!w)
		return;
	for (edge = w->edge; n < WAITING_EDGES; n++) {
		edge = waiting_next_edge(w, edge);
		if (edge == UINT64_MAX)
			break;
		times[n] = edge;
	}
	waiting_sums_edges(w->sums, times, n, clock_boottime_ns());
}

/* One that was set may be of a window that is gone. */
static uint64_t waiting_edge(const struct waiting *w)
{
	return MIN(waiting_sums_edge(w->sums), waiting_next_edge(w, w->edge));
}

/* The edges up to 'time': what was before each is read, with that time. */
static void waiting_cut_edges(struct waiting *w, uint64_t time)
{
	uint64_t edge;

	while ((edge = waiting_edge(w)) <= time) {
		w->edge = edge;
		waiting_records_edge(w->records, true);
		waiting_cut(w, edge);
		waiting_records_edge(w->records, false);
		waiting_records_poll(w->records);
		waiting_read(w, edge);
		if (!waiting_sums_pass(w->sums, edge))
			w->stats.late++;
		waiting_set_edges(w);
	}
	waiting_set_edges(w);
}

/*
 * A thread is not followed if its account could not be opened: the storage of tasks was
 * locked on that CPU, or there was no memory. The iterator opens it.
 */
static bool waiting_lacks(struct waiting *w)
{
	struct abi_wait_counters c;
	bool more;

	waiting_sums_counters(w->sums, &c);
	more = c.untracked != w->untracked;
	w->untracked = c.untracked;
	return more;
}

/* After timeline_tick(), which gives them the records. */
static void waiting_tick_followed(struct waiting *w, uint64_t now)
{
	if (!waiting_followed_tick(&w->followed, now) || w->edge >= w->end)
		return;
	waiting_cut(w, now);
	waiting_followed_cut(&w->followed, now);
}

void waiting_tick(struct waiting *w, uint64_t now, uint64_t passed)
{
	uint64_t pause;

	if (!w)
		return;
	timeline_tick(w->timelines, now);
	waiting_tick_followed(w, now);
	waiting_records_poll(w->records);
	waiting_cut_edges(w, now - WAITING_FLIGHT_NS);
	if (w->edge >= w->end) {
		waiting_deliver(w, passed);
		return;
	}
	waiting_spans_tick(&w->spans, w->sums, now);
	waiting_sites_tick(&w->sites, now);
	waiting_opened_tick(&w->opened, w->sums, now, w->opts.stack,
			    w->opts.arg);
	pause = waiting_sums_crowded(w->sums) ? WAITING_CROWDED_NS
					      : WAITING_READ_NS;
	if (now - w->read >= pause && w->nkept < WAITING_KEPT_MAX) {
		w->read = now;
		if (waiting_lacks(w) || waiting_sums_wants_cut(w->sums))
			waiting_cut(w, now);
		/* What is after an edge is not read before the edge is passed. */
		waiting_read(w, MIN(now, waiting_edge(w)));
	}
	if (now - w->checked >= WAITING_CHECK_NS) {
		w->checked = now;
		w->stats.unended += waiting_sums_check(w->sums);
	}
	waiting_deliver(w, passed);
}

uint64_t waiting_due(const struct waiting *w)
{
	return w ? waiting_edge(w) : UINT64_MAX;
}

void waiting_ends(struct waiting *w, uint64_t end)
{
	if (!w)
		return;
	w->end = end;
	waiting_set_edges(w);
}

void waiting_end(struct waiting *w)
{
	if (!w)
		return;
	waiting_cut_edges(w, w->end);
	waiting_deliver(w, UINT64_MAX);
}

/* --- events for the watch ---------------------------------------------------------- */

static void waiting_on_segment(void *arg, const struct abi_segment *s)
{
	const struct waiting *w = arg;

	waiting_followed_segment(&w->followed, s);
}

int waiting_follow(struct waiting *w, uint32_t pid, bool begins)
{
	return w ? waiting_followed_pid(&w->followed, pid, begins) : -ENOTSUP;
}

/* --- timelines -------------------------------------------------------------------- */

/* What was recorded up to now is there afterwards; 'why': for a path. 0 or -errno. */
static int waiting_show(struct waiting *w, const struct abi_key *key,
			bool lives, bool why, uint64_t now)
{
	int err;

	if (!w)
		return -ENOTSUP;
	err = lives ? timeline_choose(w->timelines, key, why, now) : 0;
	if (err)
		return err;
	/* So that what is open is recorded up to now. */
	if (now - w->shown >= WAITING_SHOWN_NS && w->edge < w->end) {
		w->shown = now;
		waiting_cut(w, now);
	}
	timeline_tick(w->timelines, now);
	return 0;
}

int waiting_timeline(struct waiting *w, const struct abi_key *key, bool lives,
		     uint32_t tid, struct reporter_timeline *out)
{
	uint64_t now = clock_boottime_ns();
	int err = waiting_show(w, key, lives, false, now);

	if (!err)
		err = timeline_get(w->timelines, key, tid, now, out);
	out->begun = !err && out->since == now;
	return err;
}

int waiting_path(struct waiting *w, const struct abi_key *key, bool lives,
		 struct reporter_path *out)
{
	uint64_t now = clock_boottime_ns();
	int err = waiting_show(w, key, lives, true, now);

	if (err)
		return err;
	/* What is open was recorded up to the last cut. */
	if (out->of.from < w->shown)
		out->of.to = MIN(out->of.to, w->shown);
	err = timeline_path(w->timelines, key, now, out);
	if (!err)
		err = reporter_path_stacks(out, waiting_sites_lines, &w->sites);
	out->of.begun = !err && out->of.since == now;
	return err;
}

bool waiting_busy(const struct waiting *w)
{
	return w && (timeline_busy(w->timelines) ||
		     waiting_records_busy(w->records) ||
		     waiting_followed_busy(&w->followed));
}

uint64_t waiting_keeps(const struct waiting *w)
{
	return w ? WAITING_KEEPS_NS : 0;
}

uint64_t waiting_drain(struct waiting *w)
{
	if (!w)
		return UINT64_MAX;
	waiting_sums_poll(w->sums);
	return waiting_sums_watermark(w->sums);
}

int waiting_epoll_fd(const struct waiting *w)
{
	return w ? waiting_sums_epoll_fd(w->sums) : -1;
}

void waiting_resolved(struct waiting *w, const struct reporter_trace *t)
{
	if (w)
		waiting_sites_add(&w->sites, t, clock_boottime_ns());
}

void waiting_mapped(struct waiting *w, uint32_t tgid)
{
	if (w)
		waiting_spans_mapped(&w->spans, tgid);
}

void waiting_get_stats(const struct waiting *w, struct waiting_stats *out)
{
	struct waiting_records_stats records;
	struct abi_wait_counters kernel;
	struct timeline_stats timelines;

	*out = (struct waiting_stats){ 0 };
	if (!w)
		return;
	*out = w->stats;
	out->unheld = w->sites.refused;
	out->again = w->sites.again;
	out->differ = w->sites.differ;
	out->forgotten = w->sites.forgotten;
	out->opened = w->opened.copied;
	out->unread = w->opened.unread;
	timeline_get_stats(w->timelines, &timelines);
	out->chosen = timelines.chosen;
	out->segments = timelines.segments;
	out->segments_lost = timelines.lost;
	waiting_records_get_stats(w->records, &records);
	out->records = records.records;
	out->records_unkept = records.unkept;
	waiting_sums_counters(w->sums, &kernel);
#define X(name, gauge, help) out->name = kernel.name;
	ABI_WAIT_COUNTERS(X)
#undef X
}

/* --- the object ------------------------------------------------------------------ */

static unsigned int waiting_sums_flags(const struct waiting_opts *opts)
{
	return (opts->copy_all ? WAITING_SUMS_COPY_ALL : 0) |
	       (opts->min ? WAITING_SUMS_RECORDS : 0);
}

int waiting_new(struct waiting **wp, const struct waiting_opts *opts,
		const char **what)
{
	struct waiting *w = calloc(1, sizeof(*w));
	int err;

	*what = "memory";
	if (!w)
		return -ENOMEM;
	w->opts = *opts;
	waiting_spans_init(&w->spans, opts->pm);
	STAILQ_INIT(&w->kept);
	pool_init(&w->pool, sizeof(struct waiting_kept), WAITING_POOL);
	waiting_init_frames(w);
	err = waiting_sites_init(&w->sites, opts->th);
	if (!err)
		err = waiting_sums_new(&w->sums, 0, waiting_sums_flags(opts),
				       what);
	if (!err) {
		*what = "mapping the ring of --wait";
		err = waiting_sums_stacks(w->sums, opts->stack, opts->arg);
	}
	if (!err) {
		*what = "memory";
		w->timelines = timeline_new(
			w->sums, &(struct timeline_opts){
					 .sites = &w->sites,
					 .segment = waiting_on_segment,
					 .arg = w,
				 });
		err = w->timelines
			      ? waiting_followed_init(&w->followed,
						      w->timelines, opts->pm,
						      opts->watch)
			      : -ENOMEM;
	}
	if (!err && opts->min) {
		*what = "mapping the ring of long waits";
		err = waiting_records_new(&w->records, w->sums, opts->min);
	}
	w->read = w->edge = w->checked = clock_boottime_ns();
	w->end = UINT64_MAX;
	waiting_opened_init(&w->opened, w->read);
	if (err)
		waiting_free(w);
	else
		*wp = w;
	return err;
}

void waiting_free(struct waiting *w)
{
	struct waiting_kept *k;

	if (!w)
		return;
	while ((k = STAILQ_FIRST(&w->kept))) {
		STAILQ_REMOVE_HEAD(&w->kept, entry);
		pool_give(&w->pool, k);
	}
	waiting_followed_fini(&w->followed);
	timeline_free(w->timelines);
	waiting_records_free(w->records);
	waiting_sums_free(w->sums);
	waiting_opened_fini(&w->opened);
	waiting_sites_fini(&w->sites);
	free(w->stack);
	pool_fini(&w->pool);
	free(w);
}
