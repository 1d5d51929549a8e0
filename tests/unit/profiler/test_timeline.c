// SPDX-License-Identifier: Apache-2.0
/*
 * Records of segments, in whatever order they come from the ring, become the segments of a
 * thread: what a cut has divided is one again, what is missing is not filled. The stacks of
 * their waits last as long as the records, within a ceiling.
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

/* What was open had its stack copied later; what had one keeps it. */
static void test_site_of_cuts(void **state)
{
	struct reporter_segment s[] = {
		record(1, 0, 10, SLEEP, true),
		record(1, 10, 20, SLEEP, true),
		record(1, 20, 30, SLEEP, false),
	};

	s[0].of.site = ABI_WAIT_SITE_BEFORE;
	s[1].of.site = 77;
	s[2].of.site = ABI_WAIT_SITE_ROOM;
	assert_int_equal(timeline_join(s, ARRAY_SIZE(s)), 1);
	assert_int_equal(s[0].of.site, 77);
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

/* --- stacks ------------------------------------------------------------------------- */

#define SECOND CLOCK_NSEC_PER_SEC
#define BEGIN (1000 * SECOND)
#define PID 5

/* In place of the kernel's side, of the trace handler, and of the process manager. */
static void (*put)(void *arg, const struct abi_segment *s);
static void *put_arg;
static uint32_t uid; /* of all images */
static size_t kept; /* stacks */

struct waiting_segments *
waiting_segments_new(struct waiting_sums *sums,
		     void (*fn)(void *arg, const struct abi_segment *s),
		     void *arg)
{
	put = fn;
	put_arg = arg;
	return arg;
}

void waiting_segments_free(struct waiting_segments *s)
{
}

int waiting_segments_choose(struct waiting_segments *s, uint32_t tgid)
{
	return 0;
}

void waiting_segments_unchoose(struct waiting_segments *s, uint32_t tgid)
{
}

void waiting_segments_counts(const struct waiting_segments *s, uint32_t tgid,
			     struct abi_chosen *out)
{
	*out = (struct abi_chosen){ 0 };
}

int waiting_segments_poll(struct waiting_segments *s)
{
	return 0;
}

struct trace_kept *trace_handler_keep(struct trace_handler *th)
{
	kept++;
	return (struct trace_kept *)&kept;
}

void trace_handler_unkeep(struct trace_handler *th, struct trace_kept *k)
{
	kept--;
}

size_t trace_handler_kept(struct trace_kept *k, struct reporter_frame *out,
			  size_t n)
{
	return 0;
}

void pm_image_info(const struct pm_image *image, struct pm_image_info *out)
{
	*out = (struct pm_image_info){ .uid = uid };
}

void pm_exe_info(const struct pm_exe *exe, struct pm_exe_info *out)
{
}

static struct waiting_sites sites;
static struct timelines *timelines;

static int set_up(void **state)
{
	const struct abi_key key = { .tgid = PID, .start_boottime = 1 };

	uid = 1000;
	assert_int_equal(waiting_sites_init(&sites, NULL), 0);
	timelines = timeline_new(NULL, &sites);
	assert_non_null(timelines);
	assert_int_equal(timeline_choose(timelines, &key, false, BEGIN), 0);
	return 0;
}

/* Nothing is left, nor is it counted. */
static int tear_down(void **state)
{
	timeline_free(timelines);
	assert_int_equal(sites.lasting.bytes, 0);
	for (size_t i = 0; i < WAITING_SITES_USERS; i++)
		assert_int_equal(sites.lasting.users[i], 0);
	waiting_sites_fini(&sites);
	assert_int_equal(sites.held.bytes, 0);
	assert_int_equal(kept, 0);
	return 0;
}

/* A wait there has ended. */
static void wait_at(uint64_t site, uint64_t now)
{
	const struct abi_segment s = {
		.begin = now - 1,
		.end = now,
		.key = { .tgid = PID, .start_boottime = 1 },
		.tid = PID,
		.what = SLEEP,
		.site = site,
	};

	put(put_arg, &s);
}

static void stack_comes(uint64_t site, uint64_t now)
{
	static const struct reporter_frame frames[30];
	const struct reporter_trace t = {
		.value = site,
		.frames = frames,
		.nframes = ARRAY_SIZE(frames),
	};

	waiting_sites_add(&sites, &t, now);
}

static bool has_stack(uint64_t site)
{
	const struct waiting_site *s = waiting_sites_find(&sites, site);

	return s && s->stack;
}

/* Its sum is there for a second. */
static void whole_life(uint64_t site, uint64_t now)
{
	stack_comes(site, now);
	waiting_sites_use(&sites, site);
	wait_at(site, now);
	waiting_sites_unuse(&sites, site);
}

static void test_lasts(void **state)
{
	whole_life(100, BEGIN);
	/* Nothing has this one. */
	stack_comes(101, BEGIN);
	waiting_sites_use(&sites, 101);
	waiting_sites_unuse(&sites, 101);
	assert_false(has_stack(101));
	waiting_sites_tick(&sites, BEGIN + 200 * SECOND);
	timeline_tick(timelines, BEGIN + 200 * SECOND);
	assert_true(has_stack(100));
	/* It is no longer asked for. */
	timeline_tick(timelines, BEGIN + TIMELINE_IDLE_NS + 1);
	assert_false(has_stack(100));
	assert_int_equal(kept, 0);
}

/* The oldest are overwritten, also by one of the same site. */
static void test_ends_with_its_records(void **state)
{
	whole_life(100, BEGIN);
	whole_life(200, BEGIN);
	for (size_t i = 0; i < TIMELINE_SEGMENTS - 2; i++)
		wait_at(ABI_WAIT_SITE_NONE, BEGIN + i);
	assert_true(has_stack(100));
	wait_at(200, BEGIN + SECOND);
	assert_false(has_stack(100));
	wait_at(ABI_WAIT_SITE_NONE, BEGIN + SECOND);
	assert_true(has_stack(200));
	for (size_t i = 0; i < TIMELINE_SEGMENTS - 2; i++)
		wait_at(ABI_WAIT_SITE_NONE, BEGIN + SECOND + i);
	assert_true(has_stack(200));
	wait_at(ABI_WAIT_SITE_NONE, BEGIN + 2 * SECOND);
	assert_false(has_stack(200));
	whole_life(300, BEGIN + 3 * SECOND);
	for (size_t i = 0; i < TIMELINE_SEGMENTS - 1; i++)
		wait_at(ABI_WAIT_SITE_NONE, BEGIN + 3 * SECOND + i);
	wait_at(300, BEGIN + 4 * SECOND);
	assert_true(has_stack(300));
}

/* The record comes first, then the reading of the sum, then the stack. */
static void test_stack_comes_later(void **state)
{
	wait_at(100, BEGIN);
	waiting_sites_tick(&sites, BEGIN + SECOND);
	waiting_sites_use(&sites, 100);
	stack_comes(100, BEGIN + 3 * SECOND);
	waiting_sites_unuse(&sites, 100);
	waiting_sites_tick(&sites, BEGIN + 60 * SECOND);
	assert_true(has_stack(100));
	/* Of this one the sum was refused, for want of memory. */
	wait_at(101, BEGIN);
	stack_comes(101, BEGIN + 3 * SECOND);
	waiting_sites_tick(&sites, BEGIN + 60 * SECOND);
	assert_true(has_stack(101));
}

/* A site without a stack is of no use. */
static void test_no_stack(void **state)
{
	wait_at(100, BEGIN);
	waiting_sites_use(&sites, 100);
	waiting_sites_unuse(&sites, 100);
	assert_null(waiting_sites_find(&sites, 100));
	assert_int_equal(sites.forgotten, 0);
	/* Its record ends, and takes nothing from the next one. */
	whole_life(100, BEGIN + SECOND);
	assert_true(has_stack(100));
}

/* It has a sum again, and is copied again. */
static void test_again(void **state)
{
	whole_life(100, BEGIN);
	stack_comes(100, BEGIN + 60 * SECOND);
	assert_int_equal(sites.lasting.bytes, 0);
	waiting_sites_use(&sites, 100);
	wait_at(100, BEGIN + 60 * SECOND);
	waiting_sites_unuse(&sites, 100);
	assert_true(has_stack(100));
	assert_int_equal(kept, 1);
}

/* One user has half at most, and the next one half of what is left. */
static void test_ceiling(void **state)
{
	size_t all = 20000, mine, theirs;

	for (size_t i = 0; i < all; i++)
		whole_life(1000 + i, BEGIN);
	mine = sites.known.count;
	assert_in_range(mine, 1000, all - 1);
	assert_int_equal(sites.forgotten, all - mine);
	assert_in_range(sites.lasting.bytes, 1 << 20, 2 << 20);
	uid = 2000;
	for (size_t i = 0; i < all / 2; i++)
		whole_life(100000 + i, BEGIN);
	theirs = sites.known.count - mine;
	assert_in_range(theirs, mine / 2 - 10, mine / 2 + 10);
	assert_in_range(sites.lasting.bytes, 1 << 20, 4 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cuts_are_joined),
		cmocka_unit_test(test_cut_too_late),
		cmocka_unit_test(test_gaps_stay),
		cmocka_unit_test(test_only_what_was_cut),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_site_of_cuts),
#define STACKS(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
		STACKS(test_lasts),
		STACKS(test_ends_with_its_records),
		STACKS(test_stack_comes_later),
		STACKS(test_no_stack),
		STACKS(test_again),
		STACKS(test_ceiling),
#undef STACKS
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
