// SPDX-License-Identifier: Apache-2.0
/*
 * pump: one array over all streams, ordered by (time, stream, order of
 * pushing), and a watermark for each stream. A stream may push out of order
 * (the sample ring is in reserve order, perf rings are per CPU), but it has
 * long runs in order: so the array is sorted by merging its runs, just before
 * records are delivered. That takes a few steps for each record; a heap takes
 * twice the logarithm of their number. Nothing below the least watermark will
 * be pushed; what is below it is delivered.
 *
 * Equal times are normal: a watermark promises "nothing below", so another
 * record of the same time may still come, and a record exactly at the watermark
 * must wait: the order (time, stream) is then a function of the records alone.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "profiler/pump.h"

#define PUMP_SEQ_BITS 56
/* An empty pump with more entries frees its memory. */
#define PUMP_KEEP 4096

struct pump_entry {
	uint64_t time;
	uint64_t seq; /* stream in the top byte, then order of pushing */
	void *rec;
	size_t size;
};

struct pump {
	size_t ceiling;
	pump_deliver_fn deliver;
	pump_drop_fn drop;
	void *arg;
	/* The records are v[head] to v[n - 1], in order below v[sorted]. */
	struct pump_entry *v;
	struct pump_entry *spare; /* as large: there is always room to merge */
	size_t head, sorted, n, cap;
	uint64_t pushes;
	uint64_t watermark[PUMP_STREAM_MAX];
	uint64_t passed; /* all records below were delivered */
	struct pump_stats stats;
};

int pump_new(struct pump **pp, size_t ceiling, pump_deliver_fn deliver,
	     pump_drop_fn drop, void *arg)
{
	struct pump *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
	p->ceiling = ceiling;
	p->deliver = deliver;
	p->drop = drop;
	p->arg = arg;
	*pp = p;
	return 0;
}

static enum pump_stream pump_stream(const struct pump_entry *e)
{
	return e->seq >> PUMP_SEQ_BITS;
}

static void pump_release(struct pump *p)
{
	free(p->v);
	free(p->spare);
	p->v = p->spare = NULL;
	p->cap = 0;
}

void pump_free(struct pump *p)
{
	size_t i;

	if (!p)
		return;
	for (i = p->head; i < p->n; i++)
		p->drop(p->arg, pump_stream(&p->v[i]), p->v[i].rec);
	pump_release(p);
	free(p);
}

static bool pump_before(const struct pump_entry *a, const struct pump_entry *b)
{
	return a->time < b->time || (a->time == b->time && a->seq < b->seq);
}

/* Where the run that begins at 'i' ends. */
static size_t pump_run_end(const struct pump *p, size_t i)
{
	for (i++; i < p->n && pump_before(&p->v[i - 1], &p->v[i]);)
		i++;
	return MIN(i, p->n);
}

/* Merges two adjacent runs of v into the same place of spare. */
static void pump_merge(struct pump *p, size_t begin, size_t middle, size_t end)
{
	struct pump_entry *out = p->spare + begin;
	size_t a = begin, b = middle;

	while (a < middle && b < end) {
		if (pump_before(&p->v[b], &p->v[a]))
			*out++ = p->v[b++];
		else
			*out++ = p->v[a++];
	}
	memcpy(out, &p->v[a], (middle - a) * sizeof(*out));
	out += middle - a;
	memcpy(out, &p->v[b], (end - b) * sizeof(*out));
}

/* Merges adjacent runs in pairs, until there is one. */
static void pump_sort(struct pump *p)
{
	size_t begin, middle, end, runs;
	struct pump_entry *t;

	do {
		runs = 0;
		for (begin = p->head; begin < p->n; begin = end) {
			middle = pump_run_end(p, begin);
			end = middle < p->n ? pump_run_end(p, middle) : middle;
			pump_merge(p, begin, middle, end);
			runs++;
		}
		t = p->v;
		p->v = p->spare;
		p->spare = t;
	} while (runs > 1);
	p->sorted = p->n;
}

static bool pump_grow(struct pump *p)
{
	size_t cap = p->cap ? p->cap * 2 : 256;
	struct pump_entry *v;

	if (p->n < p->cap)
		return true;
	v = realloc(p->spare, cap * sizeof(*v));
	if (!v)
		return false;
	p->spare = v;
	v = realloc(p->v, cap * sizeof(*v));
	if (!v)
		return false;
	p->v = v;
	p->cap = cap;
	return true;
}

/* Parts of the ceiling, in quarters; 0: no limit. */
static const unsigned int pump_quarters[PUMP_STREAM_MAX] = {
	[PUMP_LIFECYCLE] = 1,
	[PUMP_MAPPING] = 1,
	[PUMP_SAMPLE] = 2,
	[PUMP_SITE] = 1,
};

static size_t pump_budget(const struct pump *p, enum pump_stream stream)
{
	return p->ceiling / 4 * pump_quarters[stream];
}

static bool pump_room(const struct pump *p, enum pump_stream stream,
		      size_t size, bool rare)
{
	size_t budget = pump_budget(p, stream);

	if (rare)
		budget += budget / 2;
	return !pump_quarters[stream] ||
	       p->stats.bytes_of[stream] + size <= budget;
}

static int pump_put(struct pump *p, enum pump_stream stream, uint64_t time,
		    void *rec, size_t size, bool rare)
{
	struct pump_entry *e;

	p->stats.pushed[stream]++;
	if (time < p->passed) {
		p->stats.late[stream]++;
		p->deliver(p->arg, stream, time, rec, true);
		return 0;
	}
	/* Its entries in v and spare. */
	size += 2 * sizeof(*e);
	if (!pump_room(p, stream, size, rare)) {
		p->stats.full[stream]++;
		p->drop(p->arg, stream, rec);
		return -ENOBUFS;
	}
	if (!pump_grow(p)) {
		p->stats.nomem[stream]++;
		p->drop(p->arg, stream, rec);
		return -ENOMEM;
	}
	e = &p->v[p->n];
	e->time = time;
	e->seq = (uint64_t)stream << PUMP_SEQ_BITS | p->pushes++;
	e->rec = rec;
	e->size = size;
	if (p->sorted == p->n && (p->n == p->head || pump_before(e - 1, e)))
		p->sorted++;
	p->n++;
	p->stats.bytes += size;
	p->stats.bytes_of[stream] += size;
	if (p->stats.bytes > p->stats.bytes_max)
		p->stats.bytes_max = p->stats.bytes;
	return 0;
}

int pump_push(struct pump *p, enum pump_stream stream, uint64_t time, void *rec,
	      size_t size)
{
	return pump_put(p, stream, time, rec, size, false);
}

int pump_push_rare(struct pump *p, enum pump_stream stream, uint64_t time,
		   void *rec, size_t size)
{
	return pump_put(p, stream, time, rec, size, true);
}

void pump_watermark(struct pump *p, enum pump_stream stream, uint64_t time)
{
	if (time > p->watermark[stream])
		p->watermark[stream] = time;
}

/* Moves the rest, which is usually small, to the front. */
static void pump_close_up(struct pump *p)
{
	p->n -= p->head;
	p->sorted -= p->head;
	if (p->n)
		memmove(p->v, p->v + p->head, p->n * sizeof(*p->v));
	else if (p->cap > PUMP_KEEP)
		pump_release(p);
	p->head = 0;
}

/*
 * The least watermark. With half of their room taken, samples ignore that of
 * lifecycle records. Those are late then, which the process manager handles by
 * their keys; a dropped sample would be lost.
 */
static uint64_t pump_limit(struct pump *p)
{
	bool hurry = p->stats.bytes_of[PUMP_SAMPLE] >
		     pump_budget(p, PUMP_SAMPLE) / 2;
	uint64_t limit = UINT64_MAX;
	int i;

	for (i = 0; i < PUMP_STREAM_MAX; i++)
		if (i != PUMP_LIFECYCLE && p->watermark[i] < limit)
			limit = p->watermark[i];
	if (p->watermark[PUMP_LIFECYCLE] >= limit)
		return limit;
	p->stats.hurried += hurry;
	return hurry ? limit : p->watermark[PUMP_LIFECYCLE];
}

bool pump_run_some(struct pump *p, size_t n)
{
	uint64_t limit = pump_limit(p);
	struct pump_entry e;

	for (;; n--) {
		/* Again, since deliver() may push. */
		if (p->sorted < p->n)
			pump_sort(p);
		if (p->head == p->n || p->v[p->head].time >= limit)
			break;
		if (!n) {
			/* Not each time: the rest may be large. */
			if (p->head > p->n / 2)
				pump_close_up(p);
			return true;
		}
		e = p->v[p->head++];
		p->stats.bytes -= e.size;
		p->stats.bytes_of[pump_stream(&e)] -= e.size;
		p->passed = e.time;
		p->deliver(p->arg, pump_stream(&e), e.time, e.rec, false);
	}
	pump_close_up(p);
	if (limit > p->passed)
		p->passed = limit;
	return false;
}

uint64_t pump_run(struct pump *p)
{
	pump_run_some(p, SIZE_MAX);
	return p->passed;
}

uint64_t pump_passed(const struct pump *p)
{
	return p->passed;
}

void pump_get_stats(const struct pump *p, struct pump_stats *out)
{
	*out = p->stats;
	out->records = p->n - p->head;
}
