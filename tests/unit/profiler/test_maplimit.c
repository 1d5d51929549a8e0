// SPDX-License-Identifier: Apache-2.0
/* How many mapping records of a process pass. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/maplimit.h"

#define T0 (10 * CLOCK_NSEC_PER_SEC)
#define SECOND CLOCK_NSEC_PER_SEC

static struct maplimit *limit;
static struct maplimit_drops told[8];
static size_t ntold;

static void on_told(void *arg, const struct maplimit_drops *t)
{
	assert_true(ntold < ARRAY_SIZE(told));
	told[ntold++] = *t;
}

static int setup(void **state)
{
	ntold = 0;
	limit = maplimit_new(on_told, NULL);
	return limit ? 0 : -1;
}

static int teardown(void **state)
{
	maplimit_free(limit);
	return 0;
}

static enum maplimit_verdict map_bytes(uint32_t tgid, uint64_t time,
				       uint64_t what, size_t bytes)
{
	char key[MAPLIMIT_KEY] = { 0 };

	memcpy(key, &what, sizeof(what));
	return maplimit_map(limit, tgid, time, bytes, key);
}

static enum maplimit_verdict map(uint32_t tgid, uint64_t time, uint64_t what)
{
	return map_bytes(tgid, time, what, 88);
}

static void a_repeat_is_skipped(void **state)
{
	int i;

	assert_int_equal(map(5, T0, 1), MAPLIMIT_PASS);
	for (i = 1; i < 100000; i++)
		assert_int_equal(map(5, T0 + i, 1), MAPLIMIT_REPEAT);
	assert_int_equal(map(6, T0 + i, 1), MAPLIMIT_PASS);
	assert_int_equal(map(5, T0 + i, 2), MAPLIMIT_PASS);
	assert_int_equal(map(5, T0 + i + 1, 1), MAPLIMIT_PASS);
	maplimit_flush(limit);
	assert_int_equal(ntold, 0);
}

/* What was lost may have taken its place: another one is no repeat. */
static void behind_a_loss_nothing_repeats(void **state)
{
	assert_int_equal(map(5, T0, 1), MAPLIMIT_PASS);
	assert_int_equal(map(6, T0, 1), MAPLIMIT_PASS);
	assert_int_equal(map(6, T0 + 1, 1), MAPLIMIT_REPEAT);
	assert_int_equal(map(7, T0, 1), MAPLIMIT_PASS);
	assert_int_equal(map(7, T0 + 9, 1), MAPLIMIT_REPEAT);
	maplimit_lost(limit, T0 + 5);
	assert_int_equal(map(5, T0 + 10, 1), MAPLIMIT_PASS);
	assert_int_equal(map(7, T0 + 10, 1), MAPLIMIT_PASS);
	/* Skipped, perhaps behind what was lost. */
	maplimit_flush(limit);
	assert_int_equal(ntold, 1);
	assert_int_equal(told[0].tgid, 7);
	assert_int_equal(told[0].from, T0 + 9);
	assert_int_equal(told[0].to, T0 + 9);
}

/*
 * The pid may be another's by then, or a re-read may have come between; and behind
 * an exec nothing is mapped.
 */
static void no_repeat_after_a_while_or_an_exec(void **state)
{
	uint64_t i, passed = 0;

	for (i = 0; i < 1000; i++)
		passed += map(5, T0 + i * SECOND / 1000, 1) == MAPLIMIT_PASS;
	assert_in_range(passed, 80, 120);
	assert_int_equal(map(5, T0 + SECOND + 1, 1), MAPLIMIT_PASS);
	maplimit_exec(limit, 5, T0 + SECOND + 2);
	assert_int_equal(map(5, T0 + SECOND + 3, 1), MAPLIMIT_PASS);
	maplimit_flush(limit);
	assert_int_equal(ntold, 0);
}

/* A process that moves: records of one CPU are read before the other's. */
static void what_comes_late_from_another_cpu(void **state)
{
	map(5, T0, 1);
	assert_int_equal(map(5, T0 + 8, 1), MAPLIMIT_REPEAT);
	assert_int_equal(map(5, T0 + 4, 1), MAPLIMIT_REPEAT);
	maplimit_flush(limit);
	assert_int_equal(ntold, 0);
	/* In its place of time something else: at 8 the first was back. */
	assert_int_equal(map(5, T0 + 5, 2), MAPLIMIT_DROP);
	maplimit_flush(limit);
	assert_int_equal(ntold, 1);
	assert_int_equal(told[0].tgid, 5);
	assert_int_equal(told[0].from, T0 + 5);
	assert_int_equal(told[0].to, T0 + 8);
	assert_int_equal(map(5, T0 + 9, 1), MAPLIMIT_PASS);
}

static void an_exec_between_repeats(void **state)
{
	map(5, T0, 1);
	map(5, T0 + 8, 1);
	maplimit_exec(limit, 5, T0 + 4);
	maplimit_flush(limit);
	assert_int_equal(ntold, 1);
	assert_int_equal(told[0].to, T0 + 8);
}

static void a_flood_is_dropped_and_told_once_a_drain(void **state)
{
	uint64_t i;

	for (i = 0; i < MAPLIMIT_PROCESS; i++)
		assert_int_equal(map(5, T0 + i, i), MAPLIMIT_PASS);
	for (; i < 10000; i++)
		assert_int_equal(map(5, T0 + i, i), MAPLIMIT_DROP);
	assert_int_equal(map(6, T0 + i, 1), MAPLIMIT_PASS);
	maplimit_flush(limit);
	maplimit_flush(limit);
	assert_int_equal(ntold, 1);
	assert_int_equal(told[0].tgid, 5);
	assert_int_equal(told[0].from, T0 + MAPLIMIT_PROCESS);
	assert_int_equal(told[0].to, T0 + 9999);
	assert_true(told[0].flood);
	assert_int_equal(map(5, T0 + SECOND, 1), MAPLIMIT_PASS);
}

/* Ever new processes, as by fork(2): the first few of each still pass. */
static void a_crowd_gets_less(void **state)
{
	uint64_t passed = 0, last = 0;
	uint32_t tgid, i;

	for (tgid = 1; tgid <= 200; tgid++) {
		last = 0;
		for (i = 0; i < 2000; i++)
			last += map(tgid, T0 + i, i) == MAPLIMIT_PASS;
		passed += last;
		ntold = 0;
		maplimit_flush(limit);
	}
	assert_true(passed < MAPLIMIT_ALL + 2000 + 200 * MAPLIMIT_CROWD);
	assert_int_equal(map(5000, T0 + SECOND, 1), MAPLIMIT_PASS);
}

/* Ever new processes of 65 mappings: so many, and the number that passed. */
static uint64_t children(uint32_t first, uint32_t n, uint64_t *time)
{
	uint64_t passed = 0, i;

	for (; n; n--, first++)
		for (i = 0; i < 65; i++) {
			passed += map(first, *time += 3000, i) == MAPLIMIT_PASS;
			maplimit_flush(limit);
			ntold = 0;
		}
	return passed;
}

/*
 * 5,000 of them a second. Programs that others execute meanwhile are whole, and so
 * is what a process that is not one of them maps.
 */
static void children_take_nothing_from_others(void **state)
{
	uint64_t time = T0, passed, i;
	uint32_t tgid;

	passed = children(1000000, 5000, &time);
	assert_true(passed < 100000);
	assert_true(time < T0 + SECOND);
	for (tgid = 1; tgid <= 3000; tgid++) {
		assert_int_equal(map(tgid, time, 1), MAPLIMIT_PASS);
		if (tgid > 200)
			continue;
		maplimit_exec(limit, tgid, time);
		for (i = 0; i < 200; i++)
			assert_int_equal(map(tgid, time + i, i), MAPLIMIT_PASS);
	}
	maplimit_flush(limit);
	assert_int_equal(ntold, 0);
}

/* What a process made before its exec is not held against the new program. */
static void an_exec_begins_a_new_count(void **state)
{
	uint64_t time = T0, i;

	for (i = 0; i < MAPLIMIT_CROWD; i++)
		map(5, T0, i);
	children(1000, 1000, &time);
	assert_int_equal(map(5, time, 1), MAPLIMIT_DROP);
	maplimit_flush(limit);
	assert_int_equal(ntold, 1);
	assert_false(told[0].flood);
	maplimit_exec(limit, 5, time);
	for (i = 0; i < MAPLIMIT_EXEC; i++)
		assert_int_equal(map(5, time, i), MAPLIMIT_PASS);
	assert_int_equal(map(5, time, i), MAPLIMIT_DROP);
}

static void bytes_are_limited(void **state)
{
	uint64_t passed = 0, time = T0, bytes = 0, i;
	uint32_t tgid;

	for (i = 0; i < 4000; i++)
		passed += map_bytes(5, time++, i, 4200) == MAPLIMIT_PASS;
	assert_in_range(passed * 4200, MAPLIMIT_PROCESS_BYTES - 4200,
			MAPLIMIT_PROCESS_BYTES);
	maplimit_flush(limit);
	assert_int_equal(ntold, 1);
	assert_true(told[0].flood);
	for (tgid = 100; tgid < 3000; tgid++) {
		for (i = 0; i < 65; i++)
			if (map_bytes(tgid, time++, i, 4200) == MAPLIMIT_PASS)
				bytes += 4200;
		ntold = 0;
		maplimit_flush(limit);
	}
	/* The pump holds 8 MiB. */
	assert_true(bytes < (4 << 20));
	assert_int_equal(map(6, time, 1), MAPLIMIT_PASS);
}

/* More than there are slots live and map in turns: there is an end all the same. */
static void processes_in_turns(void **state)
{
	uint64_t passed = 0, i;
	uint32_t tgid;

	for (i = 0; i < 50; i++)
		for (tgid = 1; tgid <= 10000; tgid++) {
			ntold = 0;
			passed += map(tgid, T0 + i, i) == MAPLIMIT_PASS;
		}
	assert_true(passed <= 8 * MAPLIMIT_ALL);
	ntold = 0;
	maplimit_exec(limit, 77, T0 + i);
	assert_int_equal(map(77, T0 + i, 1), MAPLIMIT_PASS);
	maplimit_lost(limit, T0 + SECOND);
}

/* It passed, and was dropped later on. */
static void no_room_further_on(void **state)
{
	assert_int_equal(map(5, T0, 1), MAPLIMIT_PASS);
	maplimit_drop(limit, 5, T0);
	assert_int_equal(map(5, T0 + 1, 1), MAPLIMIT_PASS);
	maplimit_drop(limit, 5, T0 + 1);
	maplimit_flush(limit);
	assert_int_equal(ntold, 1);
	assert_int_equal(told[0].tgid, 5);
	assert_int_equal(told[0].from, T0);
	assert_int_equal(told[0].to, T0 + 1);
	assert_false(told[0].flood);
}

/* More processes than slots: each drop is reported of the right process. */
static void slots_change_hands(void **state)
{
	uint32_t tgid, n = 0;

	for (tgid = 1; tgid < 20000; tgid++)
		assert_int_equal(map(tgid, T0 + tgid * SECOND, 1),
				 MAPLIMIT_PASS);
	for (n = 0; n <= MAPLIMIT_PROCESS; n++)
		map(77, T0 + 20000 * SECOND + n, n);
	/* Somebody else gets the slot before the drain is over. */
	for (tgid = 1000; !ntold && tgid < 100000; tgid++)
		map(tgid, T0 + 20000 * SECOND + n, 1);
	assert_int_equal(ntold, 1);
	assert_int_equal(told[0].tgid, 77);
	assert_true(told[0].flood);
	maplimit_flush(limit);
	assert_int_equal(ntold, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(behind_a_loss_nothing_repeats),
		T(a_repeat_is_skipped),
		T(no_repeat_after_a_while_or_an_exec),
		T(what_comes_late_from_another_cpu),
		T(an_exec_between_repeats),
		T(a_flood_is_dropped_and_told_once_a_drain),
		T(a_crowd_gets_less),
		T(slots_change_hands),
		T(children_take_nothing_from_others),
		T(an_exec_begins_a_new_count),
		T(bytes_are_limited),
		T(processes_in_turns),
		T(no_room_further_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
