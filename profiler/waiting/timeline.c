// SPDX-License-Identifier: Apache-2.0
/* timeline: see profiler/waiting/timeline.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "profiler/waiting/timeline.h"

/* The ring of a process: its oldest record is at 'first'. */
struct timeline {
	struct abi_key key; /* without exec_id */
	uint64_t since, asked; /* CLOCK_BOOTTIME */
	struct abi_chosen
		before; /* counts of that time: it was followed already */
	struct abi_segment *records;
	size_t first, n, cap;
	uint64_t overwritten;
	/*
	 * The pid of a process that profd why was asked for, whose path may come here: itself,
	 * or what woke it. The processes of wakers are recorded, too. 0: none.
	 */
	uint32_t why;
	bool by_waker; /* no request was for it */
};

struct timelines {
	struct timeline_opts opts;
	struct waiting_segments *segments;
	struct timeline of[ABI_CHOSEN_MAX];
	size_t n;
	struct timeline *last; /* that the last record belonged to */
	size_t room; /* sum of their 'cap' */
	uint64_t recorded, lost; /* 'lost': of those that were ended */
};

/* --- records ------------------------------------------------------------------------ */

static bool timeline_is(const struct timeline *t, const struct abi_key *key)
{
	return t->key.tgid == key->tgid &&
	       (!key->start_boottime ||
		t->key.start_boottime == key->start_boottime);
}

static struct timeline *timeline_find(struct timelines *t,
				      const struct abi_key *key)
{
	if (t->last && timeline_is(t->last, key))
		return t->last;
	for (size_t i = 0; i < t->n; i++)
		if (timeline_is(&t->of[i], key))
			return &t->of[i];
	return NULL;
}

/* Twice as much, if the budget allows it; what is there begins at 0 then. */
static void timeline_grow(struct timelines *t, struct timeline *of)
{
	size_t cap = of->cap ? of->cap * 2 : TIMELINE_FIRST;
	struct abi_segment *records;

	if (cap > TIMELINE_SEGMENTS ||
	    (of->cap && t->room - of->cap + cap > TIMELINE_BUDGET))
		return;
	records = malloc(cap * sizeof(*records));
	if (!records)
		return;
	for (size_t i = 0; i < of->n; i++)
		records[i] = of->records[(of->first + i) % of->cap];
	free(of->records);
	of->records = records;
	of->first = 0;
	t->room += cap - of->cap;
	of->cap = cap;
}

static void timeline_drop_oldest(struct timelines *t, struct timeline *of)
{
	waiting_sites_unrecord(t->opts.sites, of->records[of->first].site);
	of->first = (of->first + 1) % of->cap;
	of->n--;
}

static void timeline_keep(struct timelines *t, struct timeline *of,
			  const struct abi_segment *s)
{
	if (of->n == of->cap)
		timeline_grow(t, of);
	of->overwritten += of->n == of->cap;
	if (!of->cap)
		return;
	/* Before the oldest is dropped, which may have the same. */
	waiting_sites_record(t->opts.sites, s->site, s->end);
	if (of->n == of->cap)
		timeline_drop_oldest(t, of);
	of->records[(of->first + of->n++) % of->cap] = *s;
}

/* --- which processes ----------------------------------------------------------------- */

static void timeline_add_lost(const struct timelines *t,
			      const struct timeline *of,
			      struct reporter_timeline *out)
{
	struct abi_chosen counts;

	waiting_segments_counts(t->segments, of->key.tgid, &counts);
	out->lost_rate += counts.lost_rate - of->before.lost_rate;
	out->lost_ring += counts.lost_ring - of->before.lost_ring;
	out->lost_memory += of->overwritten;
}

static uint64_t timeline_lost(const struct timelines *t,
			      const struct timeline *of)
{
	struct reporter_timeline lost = { 0 };

	timeline_add_lost(t, of, &lost);
	return lost.lost_rate + lost.lost_ring + lost.lost_memory;
}

static void timeline_end(struct timelines *t, struct timeline *of)
{
	while (of->n)
		timeline_drop_oldest(t, of);
	t->lost += timeline_lost(t, of);
	waiting_segments_unchoose(t->segments, of->key.tgid);
	t->room -= of->cap;
	free(of->records);
	*of = t->of[--t->n];
	t->last = NULL;
}

/* Of those for wakers the one that ends first. NULL: there is none. */
static struct timeline *timeline_of_waker(struct timelines *t)
{
	struct timeline *least = NULL;

	for (size_t i = 0; i < t->n; i++)
		if (t->of[i].by_waker &&
		    (!least || t->of[i].asked < least->asked))
			least = &t->of[i];
	return least;
}

/* If all places are taken, in place of a waker's; one that is followed keeps its place. */
static void timeline_make_room(struct timelines *t)
{
	struct timeline *least;

	while (waiting_segments_chosen(t->segments) >= ABI_CHOSEN_MAX &&
	       (least = timeline_of_waker(t)))
		timeline_end(t, least);
}

static struct timeline *timeline_by_pid(struct timelines *t, uint32_t tgid)
{
	for (size_t i = 0; i < t->n; i++)
		if (t->of[i].key.tgid == tgid)
			return &t->of[i];
	return NULL;
}

static int timeline_add(struct timelines *t, const struct timeline *new)
{
	int err;

	err = waiting_segments_choose(t->segments, new->key.tgid);
	if (err)
		return err;
	t->of[t->n] = *new;
	waiting_segments_counts(t->segments, new->key.tgid,
				&t->of[t->n++].before);
	return 0;
}

int timeline_choose(struct timelines *t, const struct abi_key *key, bool why,
		    uint64_t now)
{
	struct timeline new = { .since = now, .asked = now },
			*of = timeline_by_pid(t, key->tgid);

	if (of && !timeline_is(of, key)) {
		/* The pid has another process now. */
		timeline_end(t, of);
		of = NULL;
	}
	if (of) {
		of->by_waker = false;
		if (why)
			of->why = key->tgid;
		return 0;
	}
	timeline_make_room(t);
	new.key.tgid = key->tgid;
	new.key.start_boottime = key->start_boottime;
	new.why = why ? key->tgid : 0;
	return timeline_add(t, &new);
}

/* Whether one more waker of a path may be recorded. */
static bool timeline_wakers_room(const struct timelines *t, uint32_t why)
{
	size_t all = 0, own = 0;

	for (size_t i = 0; i < t->n; i++) {
		all += t->of[i].by_waker;
		own += t->of[i].by_waker && t->of[i].why == why;
	}
	return all < TIMELINE_WAKERS && own < TIMELINE_PATH_WAKERS;
}

/* 'of' is on a path, and so is what woke it. */
static void timeline_waker(struct timelines *t, const struct timeline *of,
			   const struct abi_key *waker)
{
	struct timeline new = {
		.asked = of->asked,
		.why = of->why,
		.by_waker = true,
	}, *old = timeline_by_pid(t, waker->tgid);

	if (old && (timeline_is(old, waker) || !old->by_waker))
		return;
	if (old)
		timeline_end(t, old);
	if (!timeline_wakers_room(t, new.why))
		return;
	new.since = clock_boottime_ns();
	new.key.tgid = waker->tgid;
	new.key.start_boottime = waker->start_boottime;
	timeline_add(t, &new);
}

static void timeline_record(void *arg, const struct abi_segment *s)
{
	struct timelines *t = arg;
	struct timeline *of = timeline_find(t, &s->key);

	if (s->waker.kind >= ABI_WAKER_MAX ||
	    ABI_WAIT_WHAT_REASON(s->what) >= ABI_WAIT_REASON_MAX)
		return;
	t->recorded++;
	if (t->opts.segment)
		t->opts.segment(t->opts.arg, s);
	if (!of)
		return;
	t->last = of;
	timeline_keep(t, of, s);
	if (of->why && s->waker.kind == ABI_WAKER_TASK &&
	    s->waker.key.tgid != s->key.tgid)
		timeline_waker(t, of, &s->waker.key);
}

void timeline_tick(struct timelines *t, uint64_t now)
{
	int n = waiting_segments_poll(t->segments);

	if (n < 0)
		log_warn("reading segments: %s", strerror(-n));
	for (size_t i = t->n; i--;)
		if (now - t->of[i].asked > TIMELINE_IDLE_NS)
			timeline_end(t, &t->of[i]);
}

bool timeline_busy(const struct timelines *t)
{
	return t->n;
}

int timeline_follow(struct timelines *t, uint32_t tgid, bool begins)
{
	int err;

	if (!begins) {
		waiting_segments_unchoose(t->segments, tgid);
		return 0;
	}
	err = waiting_segments_choose(t->segments, tgid);
	if (err != -E2BIG)
		return err;
	timeline_make_room(t);
	return waiting_segments_choose(t->segments, tgid);
}

void timeline_followed(const struct timelines *t, uint32_t tgid,
		       struct abi_chosen *out)
{
	waiting_segments_counts(t->segments, tgid, out);
}

/* --- joining ----------------------------------------------------------------------------- */

static uint64_t timeline_least(const struct abi_segment *s)
{
	return MIN(s->begin, s->end);
}

#define TIMELINE_ORDER(a, b)                       \
	do {                                       \
		if ((a) != (b))                    \
			return (a) < (b) ? -1 : 1; \
	} while (0)

/*
 * By thread and begin; 'pad' is the place in the ring. A record that takes back what a cut had too
 * much comes before what began at its end.
 */
static int timeline_by_thread(const void *a, const void *b)
{
	const struct abi_segment *x = &((const struct reporter_segment *)a)->of;
	const struct abi_segment *y = &((const struct reporter_segment *)b)->of;

	TIMELINE_ORDER(x->tid, y->tid);
	TIMELINE_ORDER(timeline_least(x), timeline_least(y));
	TIMELINE_ORDER(x->begin <= x->end, y->begin <= y->end);
	TIMELINE_ORDER(x->end, y->end);
	TIMELINE_ORDER(x->pad, y->pad);
	return 0;
}

static int timeline_by_time(const void *a, const void *b)
{
	const struct abi_segment *x = &((const struct reporter_segment *)a)->of;
	const struct abi_segment *y = &((const struct reporter_segment *)b)->of;

	TIMELINE_ORDER(x->begin, y->begin);
	TIMELINE_ORDER(x->tid, y->tid);
	TIMELINE_ORDER(x->pad, y->pad);
	return 0;
}

static bool timeline_goes_on(const struct abi_segment *a,
			     const struct abi_segment *b)
{
	return a->flags & ABI_SEGMENT_OPEN && a->tid == b->tid &&
	       a->end == b->begin && a->what == b->what;
}

static bool timeline_in_queue(const struct abi_segment *s)
{
	uint32_t reason = ABI_WAIT_WHAT_REASON(s->what);

	return reason != ABI_WAIT_ON && reason < ABI_WAIT_SLEEP;
}

/* Of a wait, how long the thread then was in the run queue. */
static void timeline_latency(struct reporter_segment *s, size_t n)
{
	for (size_t i = 1; i < n; i++)
		if (s[i].of.tid == s[i - 1].of.tid &&
		    s[i].of.begin == s[i - 1].of.end &&
		    timeline_in_queue(&s[i].of))
			s[i - 1].latency = s[i].of.end - s[i].of.begin;
}

size_t timeline_join(struct reporter_segment *s, size_t n)
{
	size_t to = 0;

	for (size_t i = 0; i < n; i++)
		s[i].of.pad = (uint32_t)i;
	qsort(s, n, sizeof(*s), timeline_by_thread);
	for (size_t i = 0; i < n; i++) {
		struct abi_segment *last = to ? &s[to - 1].of : NULL;

		if (!last || !timeline_goes_on(last, &s[i].of)) {
			s[to++] = s[i];
			continue;
		}
		last->end = s[i].of.end;
		last->flags = s[i].of.flags;
		/* One that was open had it copied later. */
		if (last->site < ABI_WAIT_SITE_LEAST)
			last->site = s[i].of.site;
		last->waker = s[i].of.waker;
		last->key = s[i].of.key;
		memcpy(last->comm, s[i].of.comm, sizeof(last->comm));
	}
	for (size_t i = 0; i < to; i++)
		s[i].of.pad = (uint32_t)i;
	timeline_latency(s, to);
	return to;
}

int timeline_get(struct timelines *t, const struct abi_key *key, uint32_t tid,
		 uint64_t now, struct reporter_timeline *out)
{
	struct timeline *of = timeline_find(t, key);
	const struct abi_segment *s;
	size_t n = 0;

	if (!of)
		return -ESRCH;
	of->asked = now;
	out->key = of->key;
	out->since = of->since;
	timeline_add_lost(t, of, out);
	out->segments = malloc(MAX(of->n, 1) * sizeof(*out->segments));
	if (!out->segments)
		return -ENOMEM;
	for (size_t i = 0; i < of->n; i++) {
		s = &of->records[(of->first + i) % of->cap];
		if (!tid || s->tid == tid)
			out->segments[n++] = (struct reporter_segment){
				.of = *s,
			};
	}
	n = timeline_join(out->segments, n);
	for (size_t i = 0; i < n; i++) {
		s = &out->segments[i].of;
		if (s->end >= out->from && s->begin < out->to)
			out->segments[out->n++] = out->segments[i];
	}
	qsort(out->segments, out->n, sizeof(*out->segments), timeline_by_time);
	return 0;
}

/* --- paths ------------------------------------------------------------------------------- */

/* The segments of the processes that a path has come to, by thread. */
struct timeline_path {
	struct timelines *t;
	uint64_t from; /* of the span */
	struct {
		const struct timeline *of;
		struct reporter_segment *segments;
		size_t n;
	} read[ABI_CHOSEN_MAX];
	size_t n;
	bool failed;
};

/* Those that end after 'from'. NULL: out of memory. */
static struct reporter_segment *timeline_copy(const struct timeline *of,
					      uint64_t from, size_t *n)
{
	struct reporter_segment *out = calloc(MAX(of->n, 1), sizeof(*out));
	const struct abi_segment *s;

	*n = 0;
	for (size_t i = 0; out && i < of->n; i++) {
		s = &of->records[(of->first + i) % of->cap];
		if (MAX(s->begin, s->end) >= from)
			out[(*n)++].of = *s;
	}
	if (out)
		*n = timeline_join(out, *n);
	return out;
}

/* The place of a process in p->read; p->n: it is not recorded, or there is no memory. */
static size_t timeline_path_read(struct timeline_path *p,
				 const struct abi_key *key)
{
	const struct timeline *of;
	size_t i;

	for (i = 0; i < p->n; i++)
		if (timeline_is(p->read[i].of, key))
			return i;
	of = timeline_find(p->t, key);
	if (!of)
		return p->n;
	p->read[i].segments = timeline_copy(of, p->from, &p->read[i].n);
	if (!p->read[i].segments) {
		p->failed = true;
		return p->n;
	}
	p->read[i].of = of;
	p->n++;
	return i;
}

/* How many of 's' are before those of a thread that begin at 'time', or later. */
static size_t timeline_before(const struct reporter_segment *s, size_t n,
			      uint32_t tid, uint64_t time)
{
	size_t from = 0, mid;

	while (from < n) {
		mid = from + (n - from) / 2;
		if (s[mid].of.tid < tid ||
		    (s[mid].of.tid == tid && s[mid].of.begin < time))
			from = mid + 1;
		else
			n = mid;
	}
	return from;
}

/* Of struct why_opts. */
static const struct reporter_segment *
timeline_path_find(void *arg, const struct abi_key *key, uint32_t tid,
		   uint64_t time, uint64_t *until)
{
	struct timeline_path *p = arg;
	const struct reporter_segment *s;
	size_t i = timeline_path_read(p, key), n;

	*until = 0;
	if (i == p->n)
		return NULL;
	n = timeline_before(p->read[i].segments, p->read[i].n, tid, time);
	s = n ? &p->read[i].segments[n - 1] : NULL;
	if (!s || s->of.tid != tid)
		return NULL;
	if (s->of.end >= time)
		return s;
	*until = s->of.end;
	return NULL;
}

/* What the processes of the path have lost; frees their segments. */
static void timeline_path_end(struct timeline_path *p,
			      struct reporter_timeline *out)
{
	out->lost_rate = out->lost_ring = out->lost_memory = 0;
	for (size_t i = 0; i < p->n; i++) {
		timeline_add_lost(p->t, p->read[i].of, out);
		free(p->read[i].segments);
	}
}

int timeline_path(struct timelines *t, const struct abi_key *key, uint64_t now,
		  struct reporter_path *out)
{
	struct timeline *of = timeline_find(t, key);
	struct timeline_path p = { .t = t, .from = out->of.from };
	const struct why_opts opts = { .find = timeline_path_find, .arg = &p };

	if (!of)
		return -ESRCH;
	for (size_t i = 0; i < t->n; i++)
		if (t->of[i].why == of->key.tgid)
			t->of[i].asked = now;
	of->asked = now;
	out->of.key = of->key;
	out->of.since = of->since;
	out->tid = out->tid ?: of->key.tgid;
	out->steps = why_path(&opts, &of->key, out->tid, out->of.from,
			      MAX(out->of.from, out->of.to), &out->n);
	timeline_path_end(&p, &out->of);
	if (out->steps && !p.failed)
		return 0;
	free(out->steps);
	out->steps = NULL;
	return -ENOMEM;
}

/* --- the object -------------------------------------------------------------------------- */

void timeline_get_stats(const struct timelines *t, struct timeline_stats *out)
{
	*out = (struct timeline_stats){
		.chosen = waiting_segments_chosen(t->segments),
		.segments = t->recorded,
		.lost = t->lost,
	};
	for (size_t i = 0; i < t->n; i++)
		out->lost += timeline_lost(t, &t->of[i]);
}

struct timelines *timeline_new(struct waiting_sums *sums,
			       const struct timeline_opts *opts)
{
	struct timelines *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->opts = *opts;
	t->segments = waiting_segments_new(sums, timeline_record, t);
	if (t->segments)
		return t;
	free(t);
	return NULL;
}

void timeline_free(struct timelines *t)
{
	if (!t)
		return;
	while (t->n)
		timeline_end(t, &t->of[0]);
	waiting_segments_free(t->segments);
	free(t);
}
