// SPDX-License-Identifier: Apache-2.0
/* why: see reporter/ledger/why.h. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "reporter/ledger/why.h"

/* A thread that is followed, from the innermost to the one that was asked for. */
struct why_level {
	const struct why_level *outer;
	const struct reporter_segment *wait; /* of the outer, that led here */
	struct abi_key key;
	uint32_t tid, depth;
};

struct why {
	const struct why_opts *opts;
	struct reporter_step *steps; /* the last one first */
	size_t n, cap;
	bool failed;
};

static struct reporter_step *why_add(struct why *w, const struct why_level *l,
				     uint64_t from, uint64_t to)
{
	struct reporter_step *s;

	if (w->failed || VECTOR_ROOM(w->steps, w->n, w->cap)) {
		w->failed = true;
		return NULL;
	}
	s = &w->steps[w->n++];
	*s = (struct reporter_step){ .depth = l->depth };
	s->segment.of.key = l->key;
	s->segment.of.tid = l->tid;
	s->segment.of.begin = from;
	s->segment.of.end = to;
	return s;
}

/* A wait of a thread that is being followed explains nothing. */
static bool why_again(const struct why_level *l,
		      const struct reporter_segment *s)
{
	for (; l; l = l->outer)
		if (l->wait == s)
			return true;
	return false;
}

/*
 * The waker itself waits when the wake-up takes effect, which may be some microseconds after
 * it was made: what ends that wait comes later, and explains nothing.
 */
static bool why_waits_again(const struct why_level *l,
			    const struct reporter_segment *s)
{
	return l->wait && s->of.end > l->wait->of.end;
}

/* How a segment is explained. */
static enum reporter_step_end why_end(const struct why_level *l,
				      const struct reporter_segment *s)
{
	const struct abi_waker *by = &s->of.waker;

	if (s->between)
		return REPORTER_STEP_SHORT;
	if (ABI_WAIT_WHAT_REASON(s->of.what) < ABI_WAIT_SLEEP)
		return REPORTER_STEP_ITSELF;
	if (why_waits_again(l, s))
		return REPORTER_STEP_DELIVERY;
	if (s->of.flags & ABI_SEGMENT_OPEN)
		return REPORTER_STEP_OPEN;
	/* A soft one without a task ran on an idle CPU. */
	if (by->kind == ABI_WAKER_IRQ ||
	    (by->kind != ABI_WAKER_NONE && !by->key.tgid))
		return REPORTER_STEP_INTERRUPT;
	if (by->kind == ABI_WAKER_NONE)
		return REPORTER_STEP_UNSEEN;
	if (by->kind != ABI_WAKER_TASK)
		return REPORTER_STEP_PERHAPS;
	if (why_again(l, s))
		return REPORTER_STEP_CIRCLE;
	if (l->depth + 1 >= WHY_DEPTH)
		return REPORTER_STEP_DEEP;
	return REPORTER_STEP_FOLLOWED;
}

static void why_walk(struct why *w, const struct why_level *l, uint64_t from,
		     uint64_t to);

/* What its waker did while it waited, from the begin of the wait, or 'from'. */
static bool why_follow(struct why *w, const struct why_level *l,
		       const struct reporter_segment *s, uint64_t from,
		       uint64_t to)
{
	const struct abi_waker *by = &s->of.waker;
	const struct why_level inner = {
		.outer = l,
		.wait = s,
		.key = by->key,
		.tid = by->tid,
		.depth = l->depth + 1,
	};
	uint64_t until;

	if (!w->opts->find(w->opts->arg, &by->key, by->tid, to, &until))
		return false;
	why_walk(w, &inner, from, to);
	return true;
}

/* Backwards. */
static void why_walk(struct why *w, const struct why_level *l, uint64_t from,
		     uint64_t to)
{
	const struct reporter_segment *s;
	enum reporter_step_end end;
	struct reporter_step *step;
	uint64_t begin, until;

	while (to > from && !w->failed) {
		s = w->opts->find(w->opts->arg, &l->key, l->tid, to, &until);
		begin = MAX(s ? s->of.begin : until, from);
		end = s ? why_end(l, s) : REPORTER_STEP_GAP;
		if (w->n >= WHY_STEPS) {
			s = NULL;
			begin = from;
			end = REPORTER_STEP_MANY;
		}
		if (end == REPORTER_STEP_FOLLOWED &&
		    !why_follow(w, l, s, begin, to))
			end = REPORTER_STEP_UNRECORDED;
		step = why_add(w, l, begin, to);
		if (!step)
			return;
		step->end = end;
		if (s) {
			step->segment = *s;
			step->segment.of.begin = begin;
			step->segment.of.end = to;
		}
		to = begin;
	}
}

struct reporter_step *why_path(const struct why_opts *o,
			       const struct abi_key *key, uint32_t tid,
			       uint64_t from, uint64_t to, size_t *n)
{
	const struct why_level first = { .key = *key, .tid = tid };
	struct why w = { .opts = o };
	struct reporter_step last;

	why_walk(&w, &first, from, to);
	if (w.failed || VECTOR_ROOM(w.steps, w.n, w.cap)) {
		free(w.steps);
		return NULL;
	}
	for (size_t i = 0; i < w.n / 2; i++) {
		last = w.steps[i];
		w.steps[i] = w.steps[w.n - 1 - i];
		w.steps[w.n - 1 - i] = last;
	}
	*n = w.n;
	return w.steps;
}
