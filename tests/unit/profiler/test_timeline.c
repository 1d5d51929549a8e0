// SPDX-License-Identifier: Apache-2.0
/*
 * Records of segments, in whatever order they come from the ring, become the segments of a
 * thread: what a cut has divided is one again, what is missing is not filled.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/waiting/timeline.h"

#define ON ABI_WAIT_WHAT_ON
#define SLEEP ABI_WAIT_WHAT(35, ABI_WAIT_SLEEP, 0)
#define PIPE ABI_WAIT_WHAT(0, ABI_WAIT_PIPE, 0)
#define WOKEN ABI_WAIT_WHAT(ABI_WAIT_NO_CALL, ABI_WAIT_WOKEN, 0)

static struct reporter_segment record(uint32_t tid, uint64_t begin,
				      uint64_t end, uint32_t what, bool open)
{
	return (struct reporter_segment){
		.of = { .begin = begin,
			.end = end,
			.tid = tid,
			.what = what,
			.flags = open ? ABI_SEGMENT_OPEN : 0,
			.waker.kind = open ? ABI_WAKER_NONE : ABI_WAKER_IRQ },
	};
}

static void check(const struct reporter_segment *s, uint32_t tid,
		  uint64_t begin, uint64_t end, uint32_t what, bool open)
{
	assert_int_equal(s->of.tid, tid);
	assert_int_equal(s->of.begin, begin);
	assert_int_equal(s->of.end, end);
	assert_int_equal(s->of.what, what);
	assert_int_equal(s->of.flags, open ? ABI_SEGMENT_OPEN : 0);
}

static void test_cuts_are_joined(void **state)
{
	struct reporter_segment s[] = {
		record(1, 30, 40, WOKEN, false),
		record(1, 20, 30, SLEEP, false),
		record(1, 10, 20, SLEEP, true),
		record(1, 0, 10, SLEEP, true),
		record(1, 40, 50, ON, true),
	};

	assert_int_equal(timeline_join(s, ARRAY_SIZE(s)), 3);
	check(&s[0], 1, 0, 30, SLEEP, false);
	assert_int_equal(s[0].latency, 10);
	/* Of the record that ended it. */
	assert_int_equal(s[0].of.waker.kind, ABI_WAKER_IRQ);
	check(&s[1], 1, 30, 40, WOKEN, false);
	check(&s[2], 1, 40, 50, ON, true);
}

/* The interval ended before the time of the cut, whose program came first. */
static void test_cut_too_late(void **state)
{
	struct reporter_segment s[] = {
		record(1, 0, 20, SLEEP, true),
		record(1, 20, 15, SLEEP, false),
		record(1, 15, 15, WOKEN, false),
		record(1, 15, 40, ON, false),
	};

	assert_int_equal(timeline_join(s, ARRAY_SIZE(s)), 3);
	check(&s[0], 1, 0, 15, SLEEP, false);
	check(&s[1], 1, 15, 15, WOKEN, false);
	check(&s[2], 1, 15, 40, ON, false);
}

static void test_gaps_stay(void **state)
{
	struct reporter_segment s[] = {
		record(1, 0, 10, SLEEP, true),
		record(1, 11, 20, SLEEP, false),
		record(1, 25, 30, WOKEN, false),
		record(2, 30, 40, ON, false),
	};

	assert_int_equal(timeline_join(s, ARRAY_SIZE(s)), 4);
	check(&s[0], 1, 0, 10, SLEEP, true);
	check(&s[1], 1, 11, 20, SLEEP, false);
	assert_int_equal(s[1].latency, 0);
	check(&s[3], 2, 30, 40, ON, false);
}

/* Two waits that end and begin at the same time are two; so are those of two threads. */
static void test_only_what_was_cut(void **state)
{
	struct reporter_segment s[] = {
		record(1, 0, 10, SLEEP, false), record(1, 10, 20, SLEEP, false),
		record(1, 20, 30, PIPE, true),	record(1, 30, 40, SLEEP, false),
		record(2, 20, 30, SLEEP, true), record(3, 30, 40, SLEEP, false),
	};

	assert_int_equal(timeline_join(s, ARRAY_SIZE(s)), ARRAY_SIZE(s));
}

#define RANDOM 200

/* Any cuts, any order: the same segments. */
static void test_random(void **state)
{
	struct reporter_segment whole[RANDOM], cut[RANDOM * 4], *c;
	uint64_t at = 0, to;
	size_t n, i;

	srand(1);
	for (int round = 0; round < 200; round++) {
		for (n = i = 0; i < RANDOM; i++) {
			to = at + 1 + (uint64_t)rand() % 100;
			whole[i] = record(7, at, to, i % 2 ? ON : SLEEP, false);
			for (int k = rand() % 4; k && to - at > 1; k--) {
				uint64_t end = at + 1 +
					       (uint64_t)rand() % (to - at - 1);

				cut[n++] = record(7, at, end, whole[i].of.what,
						  true);
				at = end;
			}
			cut[n++] = record(7, at, to, whole[i].of.what, false);
			at = to;
		}
		for (i = 0; i < n; i++) {
			struct reporter_segment was = cut[i];

			c = &cut[(size_t)rand() % n];
			cut[i] = *c;
			*c = was;
		}
		assert_int_equal(timeline_join(cut, n), RANDOM);
		for (i = 0; i < RANDOM; i++)
			check(&cut[i], 7, whole[i].of.begin, whole[i].of.end,
			      whole[i].of.what, false);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cuts_are_joined),
		cmocka_unit_test(test_cut_too_late),
		cmocka_unit_test(test_gaps_stay),
		cmocka_unit_test(test_only_what_was_cut),
		cmocka_unit_test(test_random),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
