// SPDX-License-Identifier: Apache-2.0
/* The order in which mappings are re-read, and how soon. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/base.h"
#include "profiler/rescan/rescan_queue.h"

#define SECOND CLOCK_NSEC_PER_SEC
#define MS CLOCK_NSEC_PER_MSEC

static struct rescan_queue *q;
static uint64_t now;

static int setup(void **state)
{
	now = 1000 * SECOND;
	q = rescan_queue_new();
	return q ? 0 : -1;
}

static int teardown(void **state)
{
	rescan_queue_free(q);
	return 0;
}

static void add(uint32_t tgid, uint32_t uid, bool flood)
{
	struct rescan_item item = { tgid, uid, flood, false };

	rescan_queue_add(q, &item);
}

static uint64_t waiting(void)
{
	struct rescan_queue_stats st;

	rescan_queue_get_stats(q, &st);
	return st.waiting;
}

/* The next one, which takes so long to read; 0: none. */
static uint32_t next(uint64_t ns)
{
	struct rescan_item item;

	if (!rescan_queue_take(q, now, &item, 1))
		return 0;
	rescan_queue_charge(q, &item, ns, 0);
	return item.tgid;
}

static void in_the_order_of_asking(void **state)
{
	add(5, 1000, false);
	add(6, 1000, false);
	add(5, 1000, false); /* waits already */
	assert_int_equal(waiting(), 2);
	assert_int_equal(next(MS), 5);
	add(5, 1000, false);
	assert_int_equal(next(MS), 6);
	assert_int_equal(next(MS), 5);
	assert_int_equal(next(MS), 0);
	assert_int_equal(waiting(), 0);
}

static void users_take_turns(void **state)
{
	uint32_t i, tgid, first = 0, second = 0;

	for (i = 0; i < 1000; i++)
		add(1 + i, 1000, false);
	for (i = 0; i < 10; i++)
		add(5000 + i, 1001, false);
	for (i = 0; i < 20; i++) {
		tgid = next(MS);
		first += tgid && tgid <= 1000;
		second += tgid >= 5000;
	}
	assert_int_equal(first, 10);
	assert_int_equal(second, 10);
}

/* By time, not by number: one process takes as long as ten of the other. */
static void longer_readings_have_fewer_turns(void **state)
{
	uint32_t i, tgid, slow = 0, fast = 0;

	for (i = 0; i < 1000; i++) {
		add(1 + i, 1000, false);
		add(5000 + i, 1001, false);
	}
	for (i = 0; i < 110; i++) {
		struct rescan_item item;

		assert_int_equal(rescan_queue_take(q, now, &item, 1), 1);
		tgid = item.tgid;
		rescan_queue_charge(q, &item, tgid < 5000 ? 5 * MS : MS / 2, 0);
		slow += tgid < 5000;
		fast += tgid >= 5000;
	}
	assert_in_range(slow, 8, 12);
	assert_in_range(fast, 98, 102);
}

/* Turns that were not used do not accumulate. */
static void turns_are_not_saved(void **state)
{
	uint32_t i, second = 0;

	for (i = 0; i < 1000; i++)
		add(1 + i, 1000, false);
	for (i = 0; i < 100; i++)
		next(MS);
	for (i = 0; i < 100; i++)
		add(5000 + i, 1001, false);
	for (i = 0; i < 20; i++)
		second += next(MS) >= 5000;
	assert_in_range(second, 9, 11);
}

static uint64_t used_in(uint64_t seconds, uint32_t users, bool flood)
{
	uint64_t end = now + seconds * SECOND, used = 0;
	uint32_t i = 0, tgid;

	for (; now < end; now += 10 * MS) {
		for (tgid = 0; tgid < 5; tgid++, i++)
			add(1 + i, 1000 + i % users, flood);
		while (next(2 * MS))
			used += 2 * MS;
	}
	return used;
}

/* What was saved up is used once; then so much a second. */
static void a_user_has_so_much_a_second(void **state)
{
	assert_in_range(used_in(10, 1, false),
			RESCAN_USER_BURST + 9 * RESCAN_USER_NS,
			RESCAN_USER_BURST + 11 * RESCAN_USER_NS);
}

static void all_have_so_much_a_second(void **state)
{
	assert_in_range(used_in(10, 20, false),
			RESCAN_ALL_BURST + 9 * RESCAN_ALL_NS,
			RESCAN_ALL_BURST + 11 * RESCAN_ALL_NS);
}

/* Among more users than there are accounts, too. */
static void a_crowd_of_users_is_limited(void **state)
{
	assert_in_range(used_in(10, 1000, false), RESCAN_ALL_NS,
			RESCAN_ALL_BURST + 11 * RESCAN_ALL_NS);
}

static void users_limited_by_their_share_are_known(void **state)
{
	uint32_t uid = 0;

	add(5, 1000, true);
	add(6, 2000, true);
	add(7, 2000, true);
	assert_false(rescan_queue_limits(q, &uid));
	assert_int_equal(next(RESCAN_FLOOD_BURST / 2), 5);
	assert_int_equal(next(2 * RESCAN_FLOOD_BURST), 6);
	assert_int_equal(next(0), 0);
	assert_true(rescan_queue_limits(q, &uid));
	assert_int_equal(uid, 2000);
}

static void floods_have_the_smallest_share(void **state)
{
	assert_in_range(used_in(10, 1, true),
			RESCAN_FLOOD_BURST + 9 * RESCAN_FLOOD_NS,
			RESCAN_FLOOD_BURST + 11 * RESCAN_FLOOD_NS);
}

static void floods_come_last(void **state)
{
	add(1, 1000, true);
	add(2, 1000, false);
	add(3, 1001, true);
	add(4, 1002, false);
	assert_true(next(MS) % 2 == 0);
	assert_true(next(MS) % 2 == 0);
	assert_true(next(MS) % 2 == 1);
	assert_true(next(MS) % 2 == 1);
}

/* One reading may take very long: then its user waits, and no other. */
static void a_debt_is_paid_by_its_user(void **state)
{
	add(1, 1000, false);
	assert_int_equal(next(360 * MS), 1);
	add(2, 1000, false);
	add(3, 1001, false);
	assert_int_equal(next(MS), 3);
	assert_int_equal(next(MS), 0);
	now += SECOND / 2;
	assert_int_equal(next(MS), 0);
	now += SECOND;
	assert_int_equal(next(MS), 2);
}

/* Without CPU time: a reading that waits for a lock holds others up, too. */
static void waits_are_charged(void **state)
{
	struct rescan_item item;
	uint64_t waited = 0, end = now + 10 * SECOND;
	uint32_t i = 1;

	for (; now < end; now += 10 * MS, i++) {
		add(i, 1000, false); /* each another process */
		while (rescan_queue_take(q, now, &item, 1)) {
			rescan_queue_charge(q, &item, 0, 15 * MS);
			waited += 15 * MS;
		}
	}
	assert_in_range(waited, 8 * RESCAN_USER_NS,
			RESCAN_USER_BURST + 11 * RESCAN_USER_NS);
}

static void slow_processes_come_last_and_alone(void **state)
{
	struct rescan_item item[8];
	struct rescan_queue_stats st;

	add(5, 1000, false);
	assert_int_equal(rescan_queue_take(q, now, item, 8), 1);
	assert_false(item[0].slow);
	rescan_queue_charge(q, item, MS, 30 * MS);
	add(5, 1000, false);
	add(6, 1000, false);
	add(7, 1001, true);
	assert_int_equal(rescan_queue_take(q, now, item, 8), 2);
	assert_int_equal(item[0].tgid, 6);
	assert_int_equal(item[1].tgid, 7);
	assert_int_equal(rescan_queue_take(q, now, item, 8), 1);
	assert_int_equal(item[0].tgid, 5);
	assert_true(item[0].slow);
	rescan_queue_get_stats(q, &st);
	assert_int_equal(st.slow, 1);
	/* The process is slow, not its user, and not for ever. */
	rescan_queue_charge(q, item, MS, 0);
	add(5, 1000, false);
	add(6, 1000, false);
	assert_int_equal(rescan_queue_take(q, now, item, 8), 2);
	assert_false(item[0].slow || item[1].slow);
}

/* Ten milliseconds a second, of which one attempt takes a tenth of a second. */
static void slow_processes_are_tried_rarely(void **state)
{
	struct rescan_item item;
	uint64_t end = now + 60 * SECOND;
	int tried = 0;

	for (; now < end; now += 100 * MS) {
		add(5, 1000, false);
		while (rescan_queue_take(q, now, &item, 1)) {
			rescan_queue_charge(q, &item, 0, 100 * MS);
			tried++;
		}
	}
	assert_in_range(tried, 4, 9);
}

static void there_is_an_end_of_room(void **state)
{
	struct rescan_queue_stats st;
	uint32_t i;

	for (i = 0; i < 70000; i++)
		add(1 + i, 1000, false);
	rescan_queue_get_stats(q, &st);
	assert_int_equal(st.waiting + st.dropped, 70000);
	assert_int_equal(st.waiting, 65536);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(in_the_order_of_asking),
		T(users_take_turns),
		T(longer_readings_have_fewer_turns),
		T(turns_are_not_saved),
		T(a_user_has_so_much_a_second),
		T(all_have_so_much_a_second),
		T(a_crowd_of_users_is_limited),
		T(users_limited_by_their_share_are_known),
		T(floods_have_the_smallest_share),
		T(floods_come_last),
		T(a_debt_is_paid_by_its_user),
		T(waits_are_charged),
		T(slow_processes_come_last_and_alone),
		T(slow_processes_are_tried_rarely),
		T(there_is_an_end_of_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
