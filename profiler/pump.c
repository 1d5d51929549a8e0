// SPDX-License-Identifier: Apache-2.0
/*
 * pump: one binary heap over all streams, ordered by (time, stream, number of
 * pushing), and one watermark a stream. Streams may push out of order within
 * themselves (the sample ring lies in reserve order, perf rings are per CPU);
 * the heap does not care. The least watermark is the promise that nothing
 * below it will come; what lies below it is handed on.
 *
 * Equal times are no accident: a watermark says "nothing below", so a record
 * exactly at it could still be joined by another of the same time, and must
 * wait to keep the order (time, stream) a function of the records alone.
 */
#include <errno.h>
#include <stdlib.h>

#include "profiler/pump.h"

struct pump_entry {
	uint64_t time;
	uint64_t seq; /* stream in the top byte, then order of pushing */
	void *rec;
	size_t size;
};

struct pump {
	pump_deliver_fn deliver;
	pump_drop_fn drop;
	void *arg;
	struct pump_entry *heap;
	size_t n, cap;
	uint64_t pushes;
	uint64_t watermark[PUMP_STREAM_MAX];
	uint64_t passed; /* all below was handed on */
	struct pump_stats stats;
};

#define PUMP_SEQ_BITS 56

int pump_new(struct pump **pp, pump_deliver_fn deliver, pump_drop_fn drop,
	     void *arg)
{
	struct pump *p = calloc(1, sizeof(*p));

	if (!p)
		return -ENOMEM;
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

void pump_free(struct pump *p)
{
	size_t i;

	if (!p)
		return;
	for (i = 0; i < p->n; i++)
		p->drop(p->arg, pump_stream(&p->heap[i]), p->heap[i].rec);
	free(p->heap);
	free(p);
}

static bool pump_before(const struct pump_entry *a, const struct pump_entry *b)
{
	return a->time < b->time || (a->time == b->time && a->seq < b->seq);
}

static void pump_swap(struct pump_entry *a, struct pump_entry *b)
{
	struct pump_entry t = *a;

	*a = *b;
	*b = t;
}

static void pump_up(struct pump *p, size_t i)
{
	for (; i > 0 && pump_before(&p->heap[i], &p->heap[(i - 1) / 2]);
	     i = (i - 1) / 2)
		pump_swap(&p->heap[i], &p->heap[(i - 1) / 2]);
}

static void pump_down(struct pump *p, size_t i)
{
	size_t c;

	for (; (c = 2 * i + 1) < p->n; i = c) {
		if (c + 1 < p->n && pump_before(&p->heap[c + 1], &p->heap[c]))
			c++;
		if (!pump_before(&p->heap[c], &p->heap[i]))
			return;
		pump_swap(&p->heap[c], &p->heap[i]);
	}
}

static bool pump_grow(struct pump *p)
{
	size_t cap = p->cap ? p->cap * 2 : 256;
	struct pump_entry *h;

	if (p->n < p->cap)
		return true;
	h = realloc(p->heap, cap * sizeof(*h));
	if (!h)
		return false;
	p->heap = h;
	p->cap = cap;
	return true;
}

int pump_push(struct pump *p, enum pump_stream stream, uint64_t time, void *rec,
	      size_t size)
{
	struct pump_entry *e;

	p->stats.pushed[stream]++;
	if (time < p->passed) {
		p->stats.late[stream]++;
		p->deliver(p->arg, stream, time, rec, true);
		return 0;
	}
	if (!pump_grow(p)) {
		p->stats.nomem[stream]++;
		p->drop(p->arg, stream, rec);
		return -ENOMEM;
	}
	e = &p->heap[p->n++];
	e->time = time;
	e->seq = (uint64_t)stream << PUMP_SEQ_BITS | p->pushes++;
	e->rec = rec;
	e->size = size;
	p->stats.bytes += size;
	if (p->stats.bytes > p->stats.bytes_max)
		p->stats.bytes_max = p->stats.bytes;
	pump_up(p, p->n - 1);
	return 0;
}

void pump_watermark(struct pump *p, enum pump_stream stream, uint64_t time)
{
	if (time > p->watermark[stream])
		p->watermark[stream] = time;
}

uint64_t pump_run(struct pump *p)
{
	uint64_t limit = UINT64_MAX;
	struct pump_entry e;
	int i;

	for (i = 0; i < PUMP_STREAM_MAX; i++)
		if (p->watermark[i] < limit)
			limit = p->watermark[i];
	while (p->n && p->heap[0].time < limit) {
		e = p->heap[0];
		p->heap[0] = p->heap[--p->n];
		pump_down(p, 0);
		p->stats.bytes -= e.size;
		p->passed = e.time;
		p->deliver(p->arg, pump_stream(&e), e.time, e.rec, false);
	}
	if (limit > p->passed)
		p->passed = limit;
	return p->passed;
}

void pump_get_stats(const struct pump *p, struct pump_stats *out)
{
	*out = p->stats;
	out->records = p->n;
}
