// SPDX-License-Identifier: Apache-2.0
/* The edges of waiting: which slot of the kernel's sums has which time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/waiting/edges.h"

static __u64 begins[ABI_WAIT_SLOTS];
static struct waiting_edges edges;

/* As the kernel's side finds it. */
static uint32_t slot_of(uint64_t time)
{
	uint32_t slot = 0;
	uint64_t begin = 0;

	for (uint32_t i = 0; i < ABI_WAIT_SLOTS; i++)
		if (begins[i] <= time && begins[i] >= begin) {
			begin = begins[i];
			slot = i;
		}
	return slot;
}

/* What is read before the first edge has the time before it, and nothing after it. */
static bool is_read(uint64_t time)
{
	return waiting_edges_before(&edges, slot_of(time));
}

static void set(uint64_t now, const uint64_t *times, size_t n)
{
	waiting_edges_set(&edges, times, n, now);
}

static int set_up(void **state)
{
	begins[0] = 0;
	for (int i = 1; i < ABI_WAIT_SLOTS; i++)
		begins[i] = UINT64_MAX;
	waiting_edges_init(&edges, begins);
	return 0;
}

static void test_none(void **state)
{
	assert_int_equal(waiting_edges_first(&edges), UINT64_MAX);
	assert_true(is_read(100));
	assert_false(waiting_edges_pass(&edges, 100));
	assert_true(is_read(UINT64_MAX - 1));
}

/* More than there are slots, as they come. */
static void test_many(void **state)
{
	uint64_t times[20];

	for (uint64_t i = 0; i < ARRAY_SIZE(times); i++)
		times[i] = 100 * (i + 1);
	for (size_t i = 0; i < ARRAY_SIZE(times); i++) {
		set(100 * i + 10, times + i, ARRAY_SIZE(times) - i);
		assert_int_equal(waiting_edges_first(&edges), times[i]);
		assert_true(is_read(times[i] - 1));
		assert_false(is_read(times[i]));
		if (i + 2 < ARRAY_SIZE(times))
			assert_int_not_equal(slot_of(times[i]),
					     slot_of(times[i + 1]));
		assert_true(waiting_edges_pass(&edges, times[i]));
		assert_true(is_read(times[i]));
	}
	assert_true(is_read(UINT64_MAX - 1));
}

/* One that comes before those that are set, and one that is withdrawn. */
static void test_changes(void **state)
{
	const uint64_t first[] = { 200, 400 }, second[] = { 150, 200, 400 };

	set(100, first, 2);
	set(100, second, 3);
	assert_int_equal(waiting_edges_first(&edges), 150);
	assert_int_not_equal(slot_of(149), slot_of(150));
	assert_int_not_equal(slot_of(150), slot_of(200));
	assert_int_not_equal(slot_of(399), slot_of(400));
	set(100, second + 2, 1);
	assert_int_equal(waiting_edges_first(&edges), 400);
	assert_int_equal(slot_of(399), slot_of(0));
	assert_int_not_equal(slot_of(400), slot_of(0));
	set(100, NULL, 0);
	assert_true(is_read(UINT64_MAX - 1));
}

/* Whose time has come stays until it is passed: the kernel's side may have used its slot. */
static void test_begun(void **state)
{
	const uint64_t begun[] = { 200 }, past[] = { 150, 300 };

	set(100, begun, 1);
	set(250, past, 2);
	assert_int_equal(waiting_edges_first(&edges), 200);
	assert_false(waiting_edges_pass(&edges, 150));
	assert_true(waiting_edges_pass(&edges, 200));
	assert_true(waiting_edges_pass(&edges, 300));
}

static void test_late(void **state)
{
	const uint64_t times[] = { 200, 300 };

	set(250, times, 2);
	assert_false(is_read(260));
	assert_false(waiting_edges_pass(&edges, 200));
	assert_true(is_read(260));
	assert_true(waiting_edges_pass(&edges, 300));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(test_none, set_up),
		cmocka_unit_test_setup(test_many, set_up),
		cmocka_unit_test_setup(test_changes, set_up),
		cmocka_unit_test_setup(test_begun, set_up),
		cmocka_unit_test_setup(test_late, set_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
