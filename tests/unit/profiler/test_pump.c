// SPDX-License-Identifier: Apache-2.0
/*
 * The pump by replay: three streams recorded beforehand are pushed in random
 * interleavings, with watermarks that are true but come at random moments, and
 * what comes out must be the same every time.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "profiler/pump.h"

#define CEILING (64 << 20)

struct rec {
	uint64_t time;
	enum pump_stream stream;
	int id;
};

struct out {
	struct rec recs[4096];
	size_t n;
	size_t late;
	size_t dropped;
};

static void deliver(void *arg, enum pump_stream stream, uint64_t time,
		    void *rec, bool late)
{
	struct out *o = arg;
	struct rec *r = rec;

	assert_int_equal(r->time, time);
	assert_int_equal(r->stream, stream);
	assert_true(o->n < 4096);
	o->recs[o->n++] = *r;
	o->late += late;
	free(rec);
}

static void drop(void *arg, enum pump_stream stream, void *rec)
{
	struct out *o = arg;
	struct rec *r = rec;

	assert_int_equal(r->stream, stream);
	o->dropped++;
	free(rec);
}

static void push(struct pump *p, struct rec r)
{
	struct rec *copy = malloc(sizeof(*copy));

	*copy = r;
	assert_int_equal(pump_push(p, r.stream, r.time, copy, sizeof(*copy)),
			 0);
}

static void watermark_all(struct pump *p, uint64_t t)
{
	int i;

	for (i = 0; i < PUMP_STREAM_MAX; i++)
		pump_watermark(p, i, t);
}

static void nothing_before_every_stream_has_passed(void **state)
{
	struct out *o = calloc(1, sizeof(*o));
	struct pump *p;
	int i;

	assert_int_equal(pump_new(&p, CEILING, deliver, drop, o), 0);
	push(p, (struct rec){ 10, PUMP_SAMPLE, 1 });
	for (i = 0; i < PUMP_STREAM_MAX; i++) {
		assert_int_equal(o->n, 0);
		pump_watermark(p, i, 11);
		pump_run(p);
	}
	assert_int_equal(o->n, 1);
	pump_free(p);
	free(o);
}

/* "Nothing below T will come" leaves room for one more at T itself. */
static void a_record_at_the_watermark_waits(void **state)
{
	struct out *o = calloc(1, sizeof(*o));
	struct pump *p;

	assert_int_equal(pump_new(&p, CEILING, deliver, drop, o), 0);
	push(p, (struct rec){ 10, PUMP_SAMPLE, 2 });
	watermark_all(p, 10);
	assert_int_equal(pump_run(p), 10);
	assert_int_equal(o->n, 0);
	push(p, (struct rec){ 10, PUMP_LIFECYCLE, 1 });
	watermark_all(p, 11);
	assert_int_equal(pump_run(p), 11);
	assert_int_equal(o->n, 2);
	assert_int_equal(o->recs[0].id, 1);
	assert_int_equal(o->recs[1].id, 2);
	assert_int_equal(o->late, 0);
	pump_free(p);
	free(o);
}

/* So that the caller can do something else in between. */
static void a_part_of_what_is_ripe(void **state)
{
	struct out *o = calloc(1, sizeof(*o));
	struct pump *p;
	int i;

	assert_int_equal(pump_new(&p, CEILING, deliver, drop, o), 0);
	for (i = 0; i < 10; i++)
		push(p, (struct rec){ 10 + i, PUMP_SAMPLE, i });
	watermark_all(p, 19);
	assert_true(pump_run_some(p, 4));
	assert_int_equal(o->n, 4);
	assert_int_equal(pump_passed(p), 13);
	/* Not late: it goes between those that are left. */
	push(p, (struct rec){ 14, PUMP_LIFECYCLE, 99 });
	assert_true(pump_run_some(p, 5));
	assert_int_equal(o->recs[4].id, 99);
	assert_int_equal(pump_passed(p), 17);
	assert_false(pump_run_some(p, 1));
	assert_int_equal(o->n, 10);
	assert_int_equal(pump_passed(p), 19);
	assert_int_equal(o->late, 0);
	pump_free(p);
	assert_int_equal(o->dropped, 1);
	free(o);
}

static void a_watermark_never_falls(void **state)
{
	struct out *o = calloc(1, sizeof(*o));
	struct pump *p;

	assert_int_equal(pump_new(&p, CEILING, deliver, drop, o), 0);
	watermark_all(p, 100);
	watermark_all(p, 50);
	assert_int_equal(pump_run(p), 100);
	pump_free(p);
	free(o);
}

static void late_records_are_counted_and_lose_nothing(void **state)
{
	struct out *o = calloc(1, sizeof(*o));
	struct pump_stats st;
	struct pump *p;

	assert_int_equal(pump_new(&p, CEILING, deliver, drop, o), 0);
	watermark_all(p, 100);
	pump_run(p);
	push(p, (struct rec){ 99, PUMP_MAPPING, 1 });
	push(p, (struct rec){ 100, PUMP_MAPPING, 2 });
	assert_int_equal(o->n, 1);
	assert_int_equal(o->late, 1);
	watermark_all(p, UINT64_MAX);
	pump_run(p);
	assert_int_equal(o->n, 2);
	pump_get_stats(p, &st);
	assert_int_equal(st.late[PUMP_MAPPING], 1);
	assert_int_equal(st.pushed[PUMP_MAPPING], 2);
	assert_int_equal(st.records, 0);
	assert_int_equal(st.bytes, 0);
	pump_free(p);
	free(o);
}

#define REPLAY_N 600
#define REPLAY_JITTER 40

static int by_time(const void *a, const void *b)
{
	const struct rec *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	if (x->stream != y->stream)
		return x->stream < y->stream ? -1 : 1;
	return x->id - y->id;
}

/*
 * Each stream pushes its records in the order of id (times out of order by up
 * to the jitter, as a ring has them) and claims as watermark the least time it
 * has still to push.
 */
static uint64_t least_to_come(const struct rec *recs, size_t from, int stream)
{
	uint64_t least = UINT64_MAX;
	size_t i;

	for (i = from; i < REPLAY_N; i++)
		if ((int)recs[i].stream == stream && recs[i].time < least)
			least = recs[i].time;
	return least;
}

static void replay_once(const struct rec *recs, struct out *o, unsigned seed)
{
	size_t next[PUMP_STREAM_MAX] = { 0 };
	size_t left = REPLAY_N;
	struct pump *p;
	int s;

	srandom(seed);
	memset(o, 0, sizeof(*o));
	assert_int_equal(pump_new(&p, CEILING, deliver, drop, o), 0);
	while (left) {
		s = random() % PUMP_STREAM_MAX;
		while (next[s] < REPLAY_N && (int)recs[next[s]].stream != s)
			next[s]++;
		if (next[s] < REPLAY_N) {
			push(p, recs[next[s]++]);
			left--;
		}
		if (random() % 3 == 0)
			pump_watermark(p, s, least_to_come(recs, next[s], s));
		if (random() % 5 == 0)
			pump_run(p);
	}
	watermark_all(p, UINT64_MAX);
	pump_run(p);
	pump_free(p);
}

static void any_interleaving_gives_the_same(void **state)
{
	struct rec *recs = calloc(REPLAY_N, sizeof(*recs));
	struct rec *want = calloc(REPLAY_N, sizeof(*recs));
	struct out *o = calloc(1, sizeof(*o));
	unsigned seed;
	size_t i;

	srandom(1);
	for (i = 0; i < REPLAY_N; i++) {
		recs[i].id = i;
		recs[i].stream = random() % PUMP_STREAM_MAX;
		/* coarse, so that equal times are common */
		recs[i].time = 1000 + i + random() % REPLAY_JITTER;
		recs[i].time -= recs[i].time % 4;
	}
	memcpy(want, recs, REPLAY_N * sizeof(*recs));
	qsort(want, REPLAY_N, sizeof(*want), by_time);
	for (seed = 0; seed < 200; seed++) {
		replay_once(recs, o, seed);
		assert_int_equal(o->n, REPLAY_N);
		assert_int_equal(o->late, 0);
		for (i = 0; i < REPLAY_N; i++)
			assert_int_equal(o->recs[i].id, want[i].id);
	}
	free(recs);
	free(want);
	free(o);
}

struct chain {
	struct pump *p;
	struct out out;
};

/* Each record at an even time pushes the one at the odd time that follows. */
static void deliver_and_push(void *arg, enum pump_stream stream, uint64_t time,
			     void *rec, bool late)
{
	struct chain *c = arg;

	deliver(&c->out, stream, time, rec, late);
	if (time % 2 == 0)
		push(c->p, (struct rec){ time + 1, PUMP_LIFECYCLE, 0 });
}

static void what_a_delivery_pushes_finds_its_place(void **state)
{
	struct chain *c = calloc(1, sizeof(*c));
	size_t i;

	assert_int_equal(pump_new(&c->p, CEILING, deliver_and_push, drop, c),
			 0);
	for (i = 0; i < 1000; i++)
		push(c->p, (struct rec){ 2 * (i * 7 % 1000), PUMP_SAMPLE, 0 });
	watermark_all(c->p, 2000);
	assert_int_equal(pump_run(c->p), 2000);
	assert_int_equal(c->out.n, 2000);
	assert_int_equal(c->out.late, 0);
	for (i = 0; i < 2000; i++)
		assert_int_equal(c->out.recs[i].time, i);
	pump_free(c->p);
	free(c);
}

static size_t counted;

static void count(void *arg, enum pump_stream stream, uint64_t time, void *rec,
		  bool late)
{
	uint64_t *last = arg;

	assert_true(time >= *last);
	*last = time;
	counted++;
	free(rec);
}

/* More than it keeps room for, the worst way round, and then again. */
static void a_burst_comes_out_in_order(void **state)
{
	struct pump_stats st;
	struct pump *p;
	uint64_t last = 0, t;

	assert_int_equal(pump_new(&p, CEILING, count, drop, &last), 0);
	for (t = 20000; t > 0; t--)
		push(p, (struct rec){ t, PUMP_MAPPING, 0 });
	pump_get_stats(p, &st);
	assert_int_equal(st.records, 20000);
	watermark_all(p, 15001);
	pump_run(p);
	assert_int_equal(counted, 15000);
	pump_get_stats(p, &st);
	assert_int_equal(st.records, 5000);
	watermark_all(p, 20001);
	pump_run(p);
	assert_int_equal(counted, 20000);
	push(p, (struct rec){ 30000, PUMP_SAMPLE, 0 });
	watermark_all(p, UINT64_MAX);
	pump_run(p);
	assert_int_equal(counted, 20001);
	pump_get_stats(p, &st);
	assert_int_equal(st.records, 0);
	assert_int_equal(st.bytes, 0);
	pump_free(p);
}

static void what_was_not_delivered_is_dropped(void **state)
{
	struct out *o = calloc(1, sizeof(*o));
	struct pump *p;

	assert_int_equal(pump_new(&p, CEILING, deliver, drop, o), 0);
	push(p, (struct rec){ 10, PUMP_SAMPLE, 1 });
	push(p, (struct rec){ 9, PUMP_MAPPING, 2 });
	pump_free(p);
	assert_int_equal(o->n, 0);
	assert_int_equal(o->dropped, 2);
	pump_free(NULL);
	free(o);
}

/* --- the ceiling ------------------------------------------------------------ */

#define LOW_CEILING 65536
#define BIG 1000 /* with its entries no less, no more than 2,000 */

static struct rec *big(enum pump_stream stream, uint64_t time)
{
	struct rec *r = calloc(1, BIG);

	*r = (struct rec){ time, stream, 0 };
	return r;
}

static int push_big(struct pump *p, enum pump_stream stream, uint64_t time)
{
	return pump_push(p, stream, time, big(stream, time), BIG);
}

/* Pushes until one is refused; how many were not. */
static size_t fill(struct pump *p, enum pump_stream stream, uint64_t *time)
{
	size_t n = 0;

	while (!push_big(p, stream, (*time)++)) {
		n++;
		assert_true(n < LOW_CEILING / BIG + 1);
	}
	return n;
}

/* What it has now, and ever had, and no record unaccounted for. */
static struct pump_stats within(struct pump *p, const struct out *o)
{
	struct pump_stats st;
	uint64_t pushed = 0, full = 0;
	int i;

	pump_get_stats(p, &st);
	/* A quarter more, of stacks of waits. */
	assert_true(st.bytes_max <= LOW_CEILING / 4 * 5);
	for (i = 0; i < PUMP_STREAM_MAX; i++) {
		pushed += st.pushed[i];
		full += st.full[i];
	}
	assert_int_equal(full, o->dropped);
	assert_int_equal(pushed, full + o->n + st.records);
	return st;
}

/* Beyond a stream's part, but not for ever. */
static void what_is_rare_has_room_of_its_own(void **state)
{
	struct out *o = calloc(1, sizeof(*o));
	struct pump_stats st;
	uint64_t time = 1;
	struct pump *p;
	size_t n, rare;

	assert_int_equal(pump_new(&p, LOW_CEILING, deliver, drop, o), 0);
	n = fill(p, PUMP_MAPPING, &time);
	for (rare = 0; rare < n; rare++, time++)
		if (pump_push_rare(p, PUMP_MAPPING, time,
				   big(PUMP_MAPPING, time), BIG))
			break;
	assert_in_range(rare, n / 2 - 1, n / 2 + 1);
	st = within(p, o);
	assert_int_equal(st.full[PUMP_MAPPING], 2);
	pump_free(p);
	free(o);
}

/* Each stream's flood costs that stream alone. */
static void a_flood_takes_no_room_of_others(void **state)
{
	static const size_t quarters[PUMP_STREAM_MAX] = {
		[PUMP_LIFECYCLE] = 1,
		[PUMP_MAPPING] = 1,
		[PUMP_SAMPLE] = 2,
		[PUMP_SITE] = 1,
	};
	struct out *o;
	struct pump_stats st;
	uint64_t time;
	struct pump *p;
	size_t n, before;
	int flood, i;

	for (flood = 0; flood < PUMP_STREAM_MAX; flood++) {
		if (!quarters[flood])
			continue;
		o = calloc(1, sizeof(*o));
		time = 1;
		assert_int_equal(pump_new(&p, LOW_CEILING, deliver, drop, o),
				 0);
		for (i = 0; i < 200; i++)
			push_big(p, flood, time++);
		st = within(p, o);
		assert_true(st.full[flood] > 0);
		assert_true(st.bytes <= LOW_CEILING / 4 * quarters[flood]);
		for (i = 0; i < PUMP_STREAM_MAX; i++) {
			if (i == flood || !quarters[i])
				continue;
			before = st.records;
			n = fill(p, i, &time);
			assert_true(n >=
				    LOW_CEILING / 4 * quarters[i] / (2 * BIG));
			st = within(p, o);
			assert_int_equal(st.full[i], 1);
			assert_int_equal(st.records, before + n);
		}
		watermark_all(p, UINT64_MAX);
		pump_run(p);
		assert_int_equal(o->n, st.records);
		assert_int_equal(o->late, 0);
		pump_free(p);
		free(o);
	}
}

/* It repairs the rest, and takes no other stream's room. */
static void a_walk_is_never_refused(void **state)
{
	struct out *o = calloc(1, sizeof(*o));
	struct pump_stats st;
	uint64_t time = 1;
	struct pump *p;
	size_t n, i;

	assert_int_equal(pump_new(&p, LOW_CEILING, deliver, drop, o), 0);
	n = fill(p, PUMP_SAMPLE, &time);
	for (i = 0; i < 2 * LOW_CEILING / BIG; i++)
		assert_int_equal(push_big(p, PUMP_SCAN, time++), 0);
	assert_int_equal(push_big(p, PUMP_LIFECYCLE, time), 0);
	assert_int_equal(push_big(p, PUMP_SAMPLE, time), -ENOBUFS);
	pump_get_stats(p, &st);
	assert_int_equal(st.full[PUMP_SAMPLE], 2);
	assert_int_equal(st.full[PUMP_SCAN], 0);
	watermark_all(p, UINT64_MAX);
	pump_run(p);
	assert_int_equal(o->n, n + i + 1);
	pump_free(p);
	free(o);
}

/*
 * A lifecycle stream that is far behind: samples wait for it while there is room
 * for those to come, then they go on, and its records are late.
 */
static void samples_wait_for_lifecycle_while_there_is_room(void **state)
{
	struct out *o = calloc(1, sizeof(*o));
	struct pump_stats st;
	uint64_t time = 100;
	struct pump *p;
	size_t n = 0;

	assert_int_equal(pump_new(&p, LOW_CEILING, deliver, drop, o), 0);
	pump_watermark(p, PUMP_SITE, UINT64_MAX);
	do {
		pump_watermark(p, PUMP_LIFECYCLE, 10);
		pump_watermark(p, PUMP_MAPPING, time);
		pump_watermark(p, PUMP_SAMPLE, time);
		if (!n)
			pump_watermark(p, PUMP_SCAN, time);
		pump_run(p);
		assert_int_equal(o->n, 0);
		assert_int_equal(push_big(p, PUMP_SAMPLE, time++), 0);
		n++;
		pump_get_stats(p, &st);
	} while (st.bytes_of[PUMP_SAMPLE] <= LOW_CEILING / 4);
	pump_watermark(p, PUMP_SAMPLE, time);
	pump_watermark(p, PUMP_MAPPING, time);
	pump_run(p);
	assert_int_equal(o->n, 0); /* samples always wait for a scan */
	pump_watermark(p, PUMP_SCAN, time);
	pump_run(p);
	assert_int_equal(o->n, n);
	pump_get_stats(p, &st);
	assert_true(st.hurried > 0);
	assert_int_equal(st.full[PUMP_SAMPLE], 0);
	assert_int_equal(push_big(p, PUMP_LIFECYCLE, 100), 0);
	assert_int_equal(o->late, 1);
	assert_int_equal(push_big(p, PUMP_LIFECYCLE, time), 0);
	assert_int_equal(o->n, n + 1);
	pump_free(p);
	free(o);
}

static void what_was_handed_on_makes_room(void **state)
{
	struct out *o = calloc(1, sizeof(*o));
	uint64_t time = 1;
	struct pump *p;
	size_t n, again;

	assert_int_equal(pump_new(&p, LOW_CEILING, deliver, drop, o), 0);
	n = fill(p, PUMP_LIFECYCLE, &time);
	watermark_all(p, n / 2 + 1);
	pump_run(p);
	assert_int_equal(o->n, n / 2);
	again = fill(p, PUMP_LIFECYCLE, &time);
	assert_int_equal(again, n / 2);
	within(p, o);
	/* A late one goes on at once, and needs none. */
	assert_int_equal(push_big(p, PUMP_SAMPLE, 1), 0);
	assert_int_equal(o->late, 1);
	pump_free(p);
	free(o);
}

/* The order of the rest is what it would have been without what was dropped. */
static void dropping_disturbs_no_order(void **state)
{
	struct out *o = calloc(1, sizeof(*o));
	struct pump_stats st;
	uint64_t time, last, mark;
	struct pump *p;
	unsigned seed;
	size_t i;

	for (seed = 0; seed < 100; seed++) {
		srandom(seed);
		memset(o, 0, sizeof(*o));
		assert_int_equal(pump_new(&p, LOW_CEILING, deliver, drop, o),
				 0);
		for (i = 0, mark = 0; i < 1250; i++) {
			time = mark + random() % 100;
			push_big(p, random() % PUMP_STREAM_MAX, time);
			if (random() % 100)
				continue;
			mark += 40;
			watermark_all(p, mark);
			pump_run(p);
		}
		watermark_all(p, UINT64_MAX);
		pump_run(p);
		pump_get_stats(p, &st);
		assert_true(st.full[PUMP_SAMPLE] > 0);
		assert_int_equal(st.full[PUMP_SCAN], 0);
		assert_int_equal(o->n + o->dropped, 1250);
		assert_int_equal(o->late, 0);
		assert_int_equal(st.records + st.bytes, 0);
		for (i = 0, last = 0; i < o->n; i++) {
			assert_true(o->recs[i].time >= last);
			last = o->recs[i].time;
		}
		pump_free(p);
	}
	free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_before_every_stream_has_passed),
		cmocka_unit_test(a_record_at_the_watermark_waits),
		cmocka_unit_test(a_part_of_what_is_ripe),
		cmocka_unit_test(a_watermark_never_falls),
		cmocka_unit_test(late_records_are_counted_and_lose_nothing),
		cmocka_unit_test(any_interleaving_gives_the_same),
		cmocka_unit_test(what_a_delivery_pushes_finds_its_place),
		cmocka_unit_test(a_burst_comes_out_in_order),
		cmocka_unit_test(what_was_not_delivered_is_dropped),
		cmocka_unit_test(a_flood_takes_no_room_of_others),
		cmocka_unit_test(what_is_rare_has_room_of_its_own),
		cmocka_unit_test(a_walk_is_never_refused),
		cmocka_unit_test(what_was_handed_on_makes_room),
		cmocka_unit_test(dropping_disturbs_no_order),
		cmocka_unit_test(
			samples_wait_for_lifecycle_while_there_is_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
