// SPDX-License-Identifier: Apache-2.0
/*
 * The path of a span: each moment is in one step, waits are explained by what their wakers
 * did meanwhile, and where that ends is said.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/waiting/why.h"

#define ON ABI_WAIT_WHAT_ON
#define SLEEP ABI_WAIT_WHAT(35, ABI_WAIT_SLEEP, 0)
#define PIPE ABI_WAIT_WHAT(0, ABI_WAIT_PIPE, 0)
#define WOKEN ABI_WAIT_WHAT(ABI_WAIT_NO_CALL, ABI_WAIT_WOKEN, 0)

static const struct reporter_segment *list;
static size_t n_list;

static struct reporter_segment segment(uint32_t tid, uint64_t begin,
				       uint64_t end, uint32_t what,
				       enum abi_waker_kind kind, uint32_t by)
{
	struct reporter_segment s = { .latency = 0 };

	s.of.key.tgid = s.of.tid = tid;
	s.of.begin = begin;
	s.of.end = end;
	s.of.what = what;
	s.of.waker.kind = kind;
	s.of.waker.key.tgid = s.of.waker.tid = by;
	return s;
}

static const struct reporter_segment *find(void *arg, const struct abi_key *key,
					   uint32_t tid, uint64_t time,
					   uint64_t *until)
{
	*until = 0;
	for (size_t i = 0; i < n_list; i++) {
		if (list[i].of.tid != tid || list[i].of.begin >= time)
			continue;
		if (list[i].of.end >= time)
			return &list[i];
		*until = MAX(*until, list[i].of.end);
	}
	return NULL;
}

/* Its steps that are not followed adjoin, from 'from' to 'to'. */
static struct reporter_step *path(const struct reporter_segment *s, size_t n,
				  uint32_t tid, uint64_t from, uint64_t to,
				  size_t *n_steps)
{
	const struct why_opts opts = { .find = find };
	const struct abi_key key = { .tgid = tid };
	struct reporter_step *steps;
	uint64_t at = from;

	list = s;
	n_list = n;
	steps = why_path(&opts, &key, tid, from, to, n_steps);
	assert_non_null(steps);
	for (size_t i = 0; i < *n_steps; i++) {
		if (steps[i].end == REPORTER_STEP_FOLLOWED)
			continue;
		assert_int_equal(steps[i].segment.of.begin, at);
		at = steps[i].segment.of.end;
	}
	assert_int_equal(at, to);
	return steps;
}

static void check(const struct reporter_step *s, uint32_t depth, uint32_t tid,
		  uint64_t begin, uint64_t end, enum reporter_step_end how)
{
	assert_int_equal(s->depth, depth);
	assert_int_equal(s->segment.of.tid, tid);
	assert_int_equal(s->segment.of.begin, begin);
	assert_int_equal(s->segment.of.end, end);
	assert_int_equal(s->end, how);
}

/* A client sends, a server works, sleeps, works and answers. */
static void test_server(void **state)
{
	const struct reporter_segment s[] = {
		segment(1, 0, 10, ON, 0, 0),
		segment(1, 10, 90, PIPE, ABI_WAKER_TASK, 2),
		segment(1, 90, 95, WOKEN, 0, 0),
		segment(1, 95, 120, ON, 0, 0),
		segment(2, 0, 9, PIPE, ABI_WAKER_TASK, 1),
		segment(2, 9, 12, WOKEN, 0, 0),
		segment(2, 12, 30, ON, 0, 0),
		segment(2, 30, 70, SLEEP, ABI_WAKER_IRQ, 0),
		segment(2, 70, 71, WOKEN, 0, 0),
		segment(2, 71, 100, ON, 0, 0),
	};
	struct reporter_step *p;
	size_t n;

	p = path(s, ARRAY_SIZE(s), 1, 5, 100, &n);
	assert_int_equal(n, 9);
	check(&p[0], 0, 1, 5, 10, REPORTER_STEP_ITSELF);
	check(&p[1], 0, 1, 10, 90, REPORTER_STEP_FOLLOWED);
	check(&p[2], 1, 2, 10, 12, REPORTER_STEP_ITSELF);
	check(&p[3], 1, 2, 12, 30, REPORTER_STEP_ITSELF);
	check(&p[4], 1, 2, 30, 70, REPORTER_STEP_INTERRUPT);
	check(&p[5], 1, 2, 70, 71, REPORTER_STEP_ITSELF);
	check(&p[6], 1, 2, 71, 90, REPORTER_STEP_ITSELF);
	check(&p[7], 0, 1, 90, 95, REPORTER_STEP_ITSELF);
	check(&p[8], 0, 1, 95, 100, REPORTER_STEP_ITSELF);
	free(p);
}

/* What was not recorded is a step, of the thread or of its waker. */
static void test_unrecorded(void **state)
{
	const struct reporter_segment s[] = {
		segment(1, 0, 10, ON, 0, 0),
		segment(1, 20, 50, PIPE, ABI_WAKER_TASK, 3),
		segment(1, 50, 60, PIPE, ABI_WAKER_SOFTIRQ, 3),
		segment(1, 60, 70, PIPE, ABI_WAKER_NONE, 0),
	};
	struct reporter_step *p;
	size_t n;

	p = path(s, ARRAY_SIZE(s), 1, 0, 80, &n);
	assert_int_equal(n, 6);
	check(&p[0], 0, 1, 0, 10, REPORTER_STEP_ITSELF);
	check(&p[1], 0, 1, 10, 20, REPORTER_STEP_GAP);
	check(&p[2], 0, 1, 20, 50, REPORTER_STEP_UNRECORDED);
	check(&p[3], 0, 1, 50, 60, REPORTER_STEP_PERHAPS);
	check(&p[4], 0, 1, 60, 70, REPORTER_STEP_UNSEEN);
	check(&p[5], 0, 1, 70, 80, REPORTER_STEP_GAP);
	free(p);
	p = path(s, 0, 9, 5, 8, &n);
	assert_int_equal(n, 1);
	check(&p[0], 0, 9, 5, 8, REPORTER_STEP_GAP);
	free(p);
}

/* Interrupts are the end of a path; what a soft one has interrupted is not followed. */
static void test_interrupts(void **state)
{
	const struct reporter_segment s[] = {
		segment(1, 0, 10, PIPE, ABI_WAKER_IRQ, 0),
		segment(1, 10, 20, PIPE, ABI_WAKER_SOFTIRQ, 2),
		segment(1, 20, 30, PIPE, ABI_WAKER_SOFTIRQ, 0),
		segment(1, 30, 40, PIPE, ABI_WAKER_UNKNOWN, 2),
		segment(2, 0, 40, ON, 0, 0),
	};
	struct reporter_step *p;
	size_t n;

	p = path(s, ARRAY_SIZE(s), 1, 0, 40, &n);
	assert_int_equal(n, 4);
	check(&p[0], 0, 1, 0, 10, REPORTER_STEP_INTERRUPT);
	check(&p[1], 0, 1, 10, 20, REPORTER_STEP_PERHAPS);
	check(&p[2], 0, 1, 20, 30, REPORTER_STEP_INTERRUPT);
	check(&p[3], 0, 1, 30, 40, REPORTER_STEP_PERHAPS);
	free(p);
}

/*
 * A wake-up takes some time: its waker may wait by then, even for the one that it woke. That
 * wait's end does not explain it.
 */
static void test_delivery(void **state)
{
	struct reporter_segment s[] = {
		segment(1, 0, 50, PIPE, ABI_WAKER_TASK, 2),
		segment(1, 50, 60, ON, 0, 0),
		segment(2, 0, 10, SLEEP, ABI_WAKER_IRQ, 0),
		segment(2, 10, 45, ON, 0, 0),
		segment(2, 45, 60, PIPE, ABI_WAKER_TASK, 1),
	};
	struct reporter_step *p;
	size_t n;

	for (int open = 0; open < 2; open++) {
		s[4].of.flags = open ? ABI_SEGMENT_OPEN : 0;
		p = path(s, ARRAY_SIZE(s), 1, 0, 60, &n);
		assert_int_equal(n, 5);
		check(&p[0], 0, 1, 0, 50, REPORTER_STEP_FOLLOWED);
		check(&p[1], 1, 2, 0, 10, REPORTER_STEP_INTERRUPT);
		check(&p[2], 1, 2, 10, 45, REPORTER_STEP_ITSELF);
		check(&p[3], 1, 2, 45, 50, REPORTER_STEP_DELIVERY);
		check(&p[4], 0, 1, 50, 60, REPORTER_STEP_ITSELF);
		free(p);
	}
}

/* A span that begins and ends within waits has the part of the path in between. */
static void test_clipped(void **state)
{
	const struct reporter_segment s[] = {
		segment(1, 0, 90, PIPE, ABI_WAKER_TASK, 2),
		segment(2, 0, 70, SLEEP, ABI_WAKER_IRQ, 0),
		segment(2, 70, 100, ON, 0, 0),
	};
	struct reporter_step *p;
	size_t n;

	p = path(s, ARRAY_SIZE(s), 1, 20, 50, &n);
	assert_int_equal(n, 2);
	check(&p[0], 0, 1, 20, 50, REPORTER_STEP_FOLLOWED);
	check(&p[1], 1, 2, 20, 50, REPORTER_STEP_INTERRUPT);
	free(p);
}

/* The end of the records: what has not ended yet is not explained. */
static void test_open(void **state)
{
	struct reporter_segment s[] = {
		segment(1, 0, 10, ON, 0, 0),
		segment(1, 10, 50, PIPE, 0, 0),
	};
	struct reporter_step *p;
	size_t n;

	s[1].of.flags = ABI_SEGMENT_OPEN;
	p = path(s, ARRAY_SIZE(s), 1, 0, 50, &n);
	assert_int_equal(n, 2);
	check(&p[1], 0, 1, 10, 50, REPORTER_STEP_OPEN);
	free(p);
}

#define RANDOM 400
#define THREADS 5

/* Whatever is recorded, the steps are the span. */
static void test_random(void **state)
{
	static struct reporter_segment s[RANDOM * THREADS];
	size_t n, steps;
	uint64_t at, to;
	uint32_t what;

	srand(1);
	for (int round = 0; round < 200; round++) {
		n = 0;
		for (uint32_t tid = 1; tid <= THREADS; tid++) {
			for (at = 0; at < RANDOM; at = to) {
				to = at + 1 + (uint64_t)rand() % 20;
				what = rand() % 2 ? ON : PIPE;
				if (rand() % 10)
					s[n++] = segment(
						tid, at, to, what,
						(uint32_t)rand() %
							ABI_WAKER_MAX,
						1 + (uint32_t)rand() % THREADS);
			}
		}
		free(path(s, n, 1, 5, RANDOM - 5, &steps));
	}
}

/* Two that wait for each other, as far as the records go. */
static void test_circle(void **state)
{
	const struct reporter_segment s[] = {
		segment(1, 0, 50, PIPE, ABI_WAKER_TASK, 2),
		segment(2, 0, 50, PIPE, ABI_WAKER_TASK, 1),
	};
	struct reporter_step *p;
	size_t n;

	p = path(s, ARRAY_SIZE(s), 1, 0, 50, &n);
	assert_int_equal(n, 3);
	check(&p[0], 0, 1, 0, 50, REPORTER_STEP_FOLLOWED);
	check(&p[1], 1, 2, 0, 50, REPORTER_STEP_FOLLOWED);
	check(&p[2], 2, 1, 0, 50, REPORTER_STEP_CIRCLE);
	free(p);
}

#define CHAIN 100

/* A chain of wakers is not followed for ever, nor are many steps. */
static void test_bounds(void **state)
{
	static struct reporter_segment s[WHY_STEPS * 2];
	struct reporter_step *p;
	size_t n;

	for (uint32_t i = 0; i < CHAIN; i++)
		s[i] = segment(i + 1, 0, 50, PIPE, ABI_WAKER_TASK, i + 2);
	p = path(s, CHAIN, 1, 0, 50, &n);
	assert_int_equal(n, WHY_DEPTH);
	check(&p[n - 1], WHY_DEPTH - 1, WHY_DEPTH, 0, 50, REPORTER_STEP_DEEP);
	free(p);
	for (uint32_t i = 0; i < ARRAY_SIZE(s); i++)
		s[i] = segment(1, i, i + 1, ON, 0, 0);
	p = path(s, ARRAY_SIZE(s), 1, 0, ARRAY_SIZE(s), &n);
	assert_true(n <= WHY_STEPS + WHY_DEPTH);
	assert_int_equal(p[0].end, REPORTER_STEP_MANY);
	free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_server),
		cmocka_unit_test(test_unrecorded),
		cmocka_unit_test(test_interrupts),
		cmocka_unit_test(test_delivery),
		cmocka_unit_test(test_clipped),
		cmocka_unit_test(test_open),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_circle),
		cmocka_unit_test(test_bounds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
