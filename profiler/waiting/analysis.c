// SPDX-License-Identifier: Apache-2.0
/* analysis: see profiler/waiting/analysis.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "bpf/abi_watch.h"
#include "profiler/waiting/analysis.h"

/* A program that was at work at the cut has written its record by then. */
#define ANALYSIS_FLIGHT_NS CLOCK_NSEC_PER_MSEC
/* A thread that may have ended, or whose next segment was lost. */
#define ANALYSIS_STALE_NS (10 * CLOCK_NSEC_PER_SEC)

struct analysis_held {
	SLIST_ENTRY(analysis_held) entry;
	struct abi_segment s;
};

enum analysis_state {
	ANALYSIS_NEW, /* no segment came, or some are missing */
	ANALYSIS_ON,
	ANALYSIS_LEFT, /* its CPU; why is not known yet */
	ANALYSIS_OFF,
};

struct analysis_thread {
	struct hash_node node; /* by tid */
	LIST_ENTRY(analysis_thread) entry; /* of its process */
	struct analysis_process *of;
	uint32_t tid;
	struct abi_key key;
	char comm[ABI_COMM_LEN];
	uint64_t end; /* its segments up to here are known; 0: none */
	SLIST_HEAD(, analysis_held) held; /* that begin later */
	size_t n_held;
	uint64_t held_since; /* the tick that saw it first; 0: none did */
	enum analysis_state state;
	/* Of the segment that ends with 'end', as an event has it: */
	uint64_t since;
	bool whole; /* 'since' is its begin */
	struct watch_segment off; /* without 'ns' */
	bool queued_whole; /* off.queued_ns is from its begin on */
	/* In the run queue before it came to its CPU. */
	uint64_t latency;
	bool timed; /* 'latency' is known */
	/* The next event. */
	struct watch_segment *segments; /* NULL: there was none yet */
	size_t n;
	uint64_t start, lost, first; /* 'first': when the first one came */
	uint64_t told; /* the end of the last one of all; 0: none */
};

struct analysis_process {
	LIST_ENTRY(analysis_process) entry;
	LIST_HEAD(, analysis_thread) threads;
	size_t n_threads;
	uint32_t tgid;
	unsigned int times; /* it is followed */
	struct abi_chosen lost; /* as counted so far */
	uint64_t lost_at; /* when that last grew */
	uint64_t untold; /* segments of threads without a place */
	uint64_t owned; /* the tick at which the owner was read */
	uint32_t uid, gid;
};

struct analysis {
	struct analysis_opts opts;
	LIST_HEAD(, analysis_process) processes;
	struct hash threads;
	uint64_t now; /* the last tick */
	uint64_t cut; /* the last */
};

/* --- events --------------------------------------------------------------------------- */

static struct watch_thread analysis_owner(struct analysis *a,
					  const struct analysis_thread *t)
{
	struct watch_thread who = { .key = t->key, .tid = t->tid };
	struct analysis_process *p = t->of;

	if (p->owned != a->now) {
		a->opts.owner(a->opts.arg, &who);
		p->owned = a->now;
		p->uid = who.uid;
		p->gid = who.gid;
	}
	who.uid = p->uid;
	who.gid = p->gid;
	memcpy(who.comm, t->comm, sizeof(who.comm));
	return who;
}

/* The segments so far. */
static void analysis_flush(struct analysis *a, struct analysis_thread *t)
{
	const struct watch_analysis e = {
		.start = t->start,
		.end = t->told,
		.lost_ns = t->lost,
		.n = t->n,
		.segments = t->segments,
	};
	struct watch_thread who;

	if (!t->n)
		return;
	who = analysis_owner(a, t);
	watch_post_analysis(a->opts.watch, &who, &e);
	t->n = 0;
}

static void analysis_append(struct analysis *a, struct analysis_thread *t,
			    struct watch_segment s, uint64_t end)
{
	if (!t->segments)
		t->segments = calloc(WATCH_SEGMENTS_MAX, sizeof(*t->segments));
	if (!t->segments) {
		t->of->untold++;
		return;
	}
	/* What is in an event adjoins. */
	if (t->n && t->told != t->since)
		analysis_flush(a, t);
	if (!t->n) {
		t->start = t->since;
		t->lost = t->told ? t->since - t->told : 0;
		t->first = a->now;
	}
	s.ns = end - t->since;
	t->segments[t->n++] = s;
	t->told = end;
	if (t->n == WATCH_SEGMENTS_MAX)
		analysis_flush(a, t);
}

/* The segment from t->since to 'end' is over. */
static void analysis_add(struct analysis *a, struct analysis_thread *t,
			 struct watch_segment s, uint64_t end)
{
	if (!watch_is_wanted(a->opts.watch, ABI_WATCH_CPU_ANALYSIS))
		t->n = t->told = 0;
	else if (t->whole)
		analysis_append(a, t, s, end);
}

/* It has left its CPU at t->end, and what it does since then is known. */
static void analysis_left(struct analysis *a, struct analysis_thread *t,
			  uint32_t what)
{
	const struct watch_switch e = {
		.time = t->end,
		.on_ns = t->whole ? t->end - t->since : 0,
		.timed = t->timed,
		.latency_ns = t->latency,
		.what = what,
	};
	struct watch_thread who = analysis_owner(a, t);

	watch_post_switch(a->opts.watch, &who, &e);
	analysis_add(a, t, (struct watch_segment){ .what = ABI_WAIT_WHAT_ON },
		     t->end);
}

/* --- the segments of a thread ------------------------------------------------------- */

static uint32_t analysis_reason(const struct abi_segment *s)
{
	return ABI_WAIT_WHAT_REASON(s->what);
}

static void analysis_on(struct analysis *a, struct analysis_thread *t,
			const struct abi_segment *s)
{
	/* An exec is no switch: then it is the same time on its CPU. */
	if (t->state == ANALYSIS_OFF) {
		analysis_add(a, t, t->off, s->begin);
		t->latency = t->off.queued_ns;
		t->timed = t->queued_whole;
		t->since = s->begin;
		t->whole = true;
	} else if (t->state == ANALYSIS_NEW) {
		t->since = s->begin;
		t->whole = t->timed = false;
	}
	t->state = s->flags & ABI_SEGMENT_OPEN ? ANALYSIS_ON : ANALYSIS_LEFT;
}

static void analysis_off(struct analysis *a, struct analysis_thread *t,
			 const struct abi_segment *s)
{
	uint32_t reason = analysis_reason(s);

	if (t->state == ANALYSIS_LEFT || t->state == ANALYSIS_ON)
		analysis_left(a, t, s->what);
	if (t->state != ANALYSIS_OFF) {
		t->whole = t->state != ANALYSIS_NEW || reason == ABI_WAIT_NEW;
		t->queued_whole = t->whole;
		t->since = s->begin;
		t->off = (struct watch_segment){ .what = s->what };
		t->state = ANALYSIS_OFF;
	}
	if (reason < ABI_WAIT_SLEEP) {
		t->off.queued_ns += s->end - s->begin;
		t->off.queue = reason;
	} else {
		t->off.queued_ns = 0;
		t->off.queue = 0;
		t->queued_whole = true;
	}
}

/* The next one. */
static void analysis_next(struct analysis *a, struct analysis_thread *t,
			  const struct abi_segment *s)
{
	if (analysis_reason(s) == ABI_WAIT_ON)
		analysis_on(a, t, s);
	else
		analysis_off(a, t, s);
	t->key = s->key;
	memcpy(t->comm, s->comm, sizeof(t->comm));
	t->end = s->end;
}

/* What was between its last segment and the next one is lost. */
static void analysis_gap(struct analysis *a, struct analysis_thread *t)
{
	if (t->state == ANALYSIS_LEFT)
		analysis_left(a, t, WATCH_SWITCH_UNKNOWN);
	analysis_flush(a, t);
	t->state = ANALYSIS_NEW;
	t->whole = false;
}

/* --- threads -------------------------------------------------------------------------- */

static void analysis_drop_held(struct analysis_thread *t,
			       struct analysis_held *h)
{
	SLIST_REMOVE(&t->held, h, analysis_held, entry);
	t->n_held--;
	free(h);
}

static void analysis_drop(struct analysis *a, struct analysis_thread *t)
{
	while (!SLIST_EMPTY(&t->held))
		analysis_drop_held(t, SLIST_FIRST(&t->held));
	LIST_REMOVE(t, entry);
	t->of->n_threads--;
	hash_remove(&a->threads, &t->node);
	free(t->segments);
	free(t);
}

/* It has no more segments. */
static void analysis_end(struct analysis *a, struct analysis_thread *t)
{
	if (t->state == ANALYSIS_LEFT)
		analysis_left(a, t, WATCH_SWITCH_ENDS);
	analysis_flush(a, t);
	analysis_drop(a, t);
}

static struct analysis_thread *analysis_find(struct analysis *a,
					     const struct analysis_process *p,
					     uint32_t tid)
{
	struct analysis_thread *t;

	HASH_FIND(t, &a->threads, hash_u64(tid), node,
		  t->tid == tid && t->of == p);
	return t;
}

/* NULL: there is no room. */
static struct analysis_thread *
analysis_make(struct analysis *a, struct analysis_process *p, uint32_t tid)
{
	struct analysis_thread *t;

	if (p->n_threads >=
	    ANALYSIS_THREADS - MIN(a->threads.count, ANALYSIS_THREADS))
		return NULL;
	t = calloc(1, sizeof(*t));
	if (!t)
		return NULL;
	t->of = p;
	t->tid = tid;
	SLIST_INIT(&t->held);
	LIST_INSERT_HEAD(&p->threads, t, entry);
	p->n_threads++;
	hash_insert(&a->threads, &t->node, hash_u64(tid));
	return t;
}

/*
 * A thread that executes a program becomes the first one of its process: the segment after
 * the exec has another tid. NULL: 's' is no such.
 */
static struct analysis_thread *analysis_moved(struct analysis *a,
					      struct analysis_process *p,
					      const struct abi_segment *s)
{
	struct analysis_thread *t;

	if (s->tid != s->key.tgid || analysis_reason(s) != ABI_WAIT_ON)
		return NULL;
	LIST_FOREACH(t, &p->threads, entry)
		if (t->state == ANALYSIS_LEFT && t->end == s->begin &&
		    t->key.exec_id != s->key.exec_id)
			break;
	if (!t)
		return NULL;
	hash_remove(&a->threads, &t->node);
	t->tid = s->tid;
	hash_insert(&a->threads, &t->node, hash_u64(t->tid));
	return t;
}

/* --- the order of records ------------------------------------------------------------- */

/* Those that were held for what has come now. */
static void analysis_go_on(struct analysis *a, struct analysis_thread *t)
{
	struct analysis_held *h, *next;
	bool more = t->n_held;

	while (more) {
		more = false;
		for (h = SLIST_FIRST(&t->held); h; h = next) {
			next = SLIST_NEXT(h, entry);
			if (h->s.begin > t->end)
				continue;
			if (h->s.begin == t->end) {
				analysis_next(a, t, &h->s);
				more = true;
			}
			analysis_drop_held(t, h);
		}
	}
	t->held_since = 0;
}

/* What was before those that are held does not come. */
static void analysis_give_up(struct analysis *a, struct analysis_thread *t)
{
	uint64_t least = UINT64_MAX;
	struct analysis_held *h;

	SLIST_FOREACH(h, &t->held, entry)
	least = MIN(least, h->s.begin);
	analysis_gap(a, t);
	t->end = least;
	analysis_go_on(a, t);
}

static void analysis_hold(struct analysis *a, struct analysis_thread *t,
			  const struct abi_segment *s)
{
	struct analysis_held *h = malloc(sizeof(*h));

	if (!h) {
		t->of->untold++;
		return;
	}
	h->s = *s;
	t->n_held++;
	SLIST_INSERT_HEAD(&t->held, h, entry);
	if (t->n_held > ANALYSIS_HELD)
		analysis_give_up(a, t);
}

static struct analysis_process *analysis_process_of(struct analysis *a,
						    uint32_t tgid)
{
	struct analysis_process *p;

	LIST_FOREACH(p, &a->processes, entry)
		if (p->tgid == tgid)
			return p;
	return NULL;
}

void analysis_segment(struct analysis *a, const struct abi_segment *s)
{
	struct analysis_process *p = analysis_process_of(a, s->key.tgid);
	struct analysis_thread *t = NULL, *moved;

	if (!p)
		return;
	t = analysis_find(a, p, s->tid);
	/* The tid is another thread's now. */
	if (t && t->end && analysis_reason(s) == ABI_WAIT_NEW &&
	    s->begin > t->end) {
		analysis_end(a, t);
		t = NULL;
	}
	if (!t || s->begin > t->end) {
		moved = analysis_moved(a, p, s);
		if (moved && t)
			analysis_end(a, t);
		t = moved ?: t ?: analysis_make(a, p, s->tid);
	}
	if (!t) {
		p->untold++;
	} else if (!t->end || s->begin == t->end) {
		analysis_next(a, t, s);
		analysis_go_on(a, t);
	} else if (s->begin > t->end) {
		analysis_hold(a, t, s);
	}
}

/* --- time ------------------------------------------------------------------------------ */

static void analysis_count(struct analysis *a, struct analysis_process *p)
{
	uint64_t rate, ring;
	struct abi_chosen c;

	a->opts.lost(a->opts.arg, p->tgid, &c);
	rate = c.lost_rate - p->lost.lost_rate;
	ring = c.lost_ring - p->lost.lost_ring + p->untold;
	p->lost = c;
	p->untold = 0;
	if (!rate && !ring)
		return;
	p->lost_at = a->now;
	watch_post_lost(a->opts.watch, p->tgid, ring, rate);
}

/* Whether why it left its CPU should be found out. */
static bool analysis_tick_thread(struct analysis *a, struct analysis_thread *t)
{
	if (t->n_held && !t->held_since)
		t->held_since = a->now;
	else if (t->n_held && a->now - t->held_since > ANALYSIS_HOLD_NS)
		analysis_give_up(a, t);
	if (t->n && a->now - t->first >= ANALYSIS_EVENT_NS)
		analysis_flush(a, t);
	return t->state == ANALYSIS_LEFT && a->now > t->end + ANALYSIS_CUT_NS;
}

bool analysis_tick(struct analysis *a, uint64_t now)
{
	struct analysis_process *p;
	struct analysis_thread *t;
	bool cut = false;

	a->now = now;
	LIST_FOREACH(p, &a->processes, entry) {
		analysis_count(a, p);
		LIST_FOREACH(t, &p->threads, entry)
			cut |= analysis_tick_thread(a, t);
	}
	return cut && now - a->cut > ANALYSIS_CUT_NS;
}

/* Whoever lives has a segment up to the cut, unless it was lost. */
static void analysis_cut_thread(struct analysis *a, struct analysis_thread *t,
				uint64_t time)
{
	if (t->n_held || t->end + ANALYSIS_FLIGHT_NS >= time)
		return;
	if (t->state == ANALYSIS_NEW) {
		if (t->end + ANALYSIS_STALE_NS < time)
			analysis_drop(a, t);
	} else if (t->state == ANALYSIS_LEFT && t->of->lost_at >= t->end) {
		analysis_gap(a, t);
	} else if (t->state == ANALYSIS_LEFT) {
		analysis_end(a, t);
	}
}

void analysis_cut(struct analysis *a, uint64_t time)
{
	struct analysis_thread *t, *next;
	struct analysis_process *p;

	a->cut = time;
	LIST_FOREACH(p, &a->processes, entry) {
		analysis_count(a, p);
		for (t = LIST_FIRST(&p->threads); t; t = next) {
			next = LIST_NEXT(t, entry);
			analysis_cut_thread(a, t, time);
		}
	}
}

/* --- processes ------------------------------------------------------------------------- */

static void analysis_forget(struct analysis *a, struct analysis_process *p)
{
	while (!LIST_EMPTY(&p->threads))
		analysis_drop(a, LIST_FIRST(&p->threads));
	LIST_REMOVE(p, entry);
	a->opts.follow(a->opts.arg, p->tgid, false);
	free(p);
}

static int analysis_begin(struct analysis *a, uint32_t tgid)
{
	struct analysis_process *p = calloc(1, sizeof(*p));
	int err;

	if (!p)
		return -ENOMEM;
	err = a->opts.follow(a->opts.arg, tgid, true);
	if (err) {
		free(p);
		return err;
	}
	p->tgid = tgid;
	p->times = 1;
	p->owned = UINT64_MAX;
	LIST_INIT(&p->threads);
	/* It may have been recorded before. */
	a->opts.lost(a->opts.arg, tgid, &p->lost);
	LIST_INSERT_HEAD(&a->processes, p, entry);
	return 0;
}

int analysis_follow(struct analysis *a, uint32_t tgid, bool begins)
{
	struct analysis_process *p = analysis_process_of(a, tgid);

	if (begins && !p)
		return analysis_begin(a, tgid);
	if (begins)
		p->times++;
	else if (p && !--p->times)
		analysis_forget(a, p);
	return 0;
}

bool analysis_busy(const struct analysis *a)
{
	return !LIST_EMPTY(&a->processes);
}

struct analysis *analysis_new(const struct analysis_opts *opts)
{
	struct analysis *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	if (hash_init(&a->threads, 0)) {
		free(a);
		return NULL;
	}
	a->opts = *opts;
	LIST_INIT(&a->processes);
	return a;
}

void analysis_free(struct analysis *a)
{
	if (!a)
		return;
	while (!LIST_EMPTY(&a->processes))
		analysis_forget(a, LIST_FIRST(&a->processes));
	hash_fini(&a->threads);
	free(a);
}
