// SPDX-License-Identifier: Apache-2.0
/*
 * The first scan: what is read of a process that no stream reported meanwhile
 * counts from before the first sample, of any other from its reading.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/base.h"
#include "profiler/rescan/rescan_start.h"

#define SINCE 1000

static struct rescan_start *start;
static struct pm_maps maps[1000];
static size_t given;

static int setup(void **state)
{
	memset(maps, 0, sizeof(maps));
	given = 0;
	start = rescan_start_new(SINCE);
	return start ? 0 : -1;
}

/* Process 'tgid' was read in the ten nanoseconds from 'begin' on. */
static void was_read(uint32_t tgid, uint64_t begin)
{
	struct pm_maps *m = &maps[tgid];

	m->tgid = tgid;
	m->begin = begin;
	m->end = begin + 10;
	assert_int_equal(rescan_start_add(start, m, m, sizeof(*m)), 0);
}

static void reported(uint32_t tgid, uint64_t time, uint64_t events)
{
	struct quark_process qp = { .pid = tgid };
	struct quark_event ev = { .events = events,
				  .process = &qp,
				  .boottime = time };

	rescan_start_saw_event(start, &ev);
}

static void mapped(uint32_t tgid, uint64_t time, enum pm_map_kind kind)
{
	struct pm_map_event ev = { .tgid = tgid, .time = time, .kind = kind };

	rescan_start_saw_map(start, &ev);
}

static void on_record(void *arg, void *rec, const struct pm_maps *m)
{
	assert_ptr_equal(rec, m);
	assert_ptr_equal(arg, &given);
	given++;
}

static void end(void)
{
	rescan_start_end(start, on_record, &given);
}

static void nothing_was_reported(void **state)
{
	was_read(5, 2000);
	was_read(6, 3000);
	assert_int_equal(rescan_start_until(start), 3010);
	end();
	assert_int_equal(given, 2);
	assert_int_equal(maps[5].begin, SINCE);
	assert_int_equal(maps[5].end, 2010);
	assert_int_equal(maps[6].begin, SINCE);
}

static void a_changed_process_counts_from_its_reading(void **state)
{
	static const uint64_t events[] = { QUARK_EV_FORK, QUARK_EV_EXEC,
					   QUARK_EV_EXIT, QUARK_EV_REAP };
	uint32_t i;

	for (i = 0; i < ARRAY_SIZE(events); i++)
		reported(10 + i, 1500, events[i]);
	mapped(20, 1500, PM_MAP_MMAP);
	mapped(21, 1500, PM_MAP_EXEC);
	mapped(22, 2010, PM_MAP_MMAP); /* as it ended */
	for (i = 10; i < 30; i++)
		was_read(i, 2000);
	end();
	for (i = 10; i < 30; i++)
		assert_int_equal(maps[i].begin,
				 i < 14 || (i >= 20 && i < 23) ? 2000 : SINCE);
}

/* An exec between the opening of the streams and the first sample. */
static void what_was_before_the_first_sample_does_not_matter(void **state)
{
	reported(5, SINCE - 1, QUARK_EV_EXEC);
	mapped(5, SINCE - 2, PM_MAP_MMAP);
	reported(6, SINCE, QUARK_EV_EXEC);
	was_read(5, 2000);
	was_read(6, 2000);
	end();
	assert_int_equal(maps[5].begin, SINCE);
	assert_int_equal(maps[6].begin, 2000);
}

static void what_follows_the_reading_is_put_on_top(void **state)
{
	was_read(5, 2000);
	was_read(6, 2000);
	mapped(5, 2011, PM_MAP_MMAP);
	reported(6, 2011, QUARK_EV_EXIT);
	end();
	assert_int_equal(maps[5].begin, SINCE);
	assert_int_equal(maps[6].begin, SINCE);
}

static void the_first_of_many_counts(void **state)
{
	uint32_t i;

	for (i = 0; i < 700; i++)
		mapped(i, 3000, PM_MAP_MMAP);
	mapped(300, 1500, PM_MAP_MMAP);
	for (i = 0; i < 700; i++)
		was_read(i, 2000);
	end();
	assert_int_equal(given, 700);
	for (i = 0; i < 700; i++)
		assert_int_equal(maps[i].begin, i == 300 ? 2000 : SINCE);
}

static void a_new_name_changes_no_mapping(void **state)
{
	reported(5, 1500, QUARK_EV_SETPROCTITLE);
	reported(5, 1500, QUARK_EV_ID_CHANGE);
	was_read(5, 2000);
	end();
	assert_int_equal(maps[5].begin, SINCE);
}

/* Whoever it was of. */
static void after_a_loss_nothing_is_certain(void **state)
{
	struct quark_event gap = { .events = QUARK_EV_GAP };
	int i;

	for (i = 0; i < 4; i++) {
		was_read(5, 2000);
		if (i == 0)
			mapped(0, 1500, PM_MAP_LOST);
		else if (i == 1)
			rescan_start_saw_event(start, &gap);
		else if (i == 2)
			rescan_start_saw_event(start, NULL);
		else
			rescan_start_saw_map(start, NULL);
		end();
		assert_int_equal(maps[5].begin, 2000);
		assert_int_equal(setup(state), 0);
	}
	end();
}

/* Only of the process that had too many records. */
static void a_loss_of_one_process(void **state)
{
	was_read(5, 2000);
	was_read(6, 2000);
	mapped(5, 1500, PM_MAP_LOST);
	end();
	assert_int_equal(maps[5].begin, 2000);
	assert_int_equal(maps[6].begin, SINCE);
}

/* What the records hold counts, not only what waits in the pump. */
static void what_is_held_has_a_bound(void **state)
{
	size_t i, some = 200 << 10;

	assert_false(rescan_start_full(start, 0));
	assert_true(rescan_start_full(start, 13 << 20));
	for (i = 0; i < 400 && !rescan_start_full(start, 0); i++)
		assert_int_equal(
			rescan_start_add(start, &maps[i], &maps[i], some), 0);
	assert_in_range(i * some, 60 << 20, 68 << 20);
	end();
	assert_int_equal(given, i);
}

/* Of a few processes with very many mappings. */
static void large_ones_leave_room_for_others(void **state)
{
	size_t i;

	for (i = 0; i < 400; i++)
		if (rescan_start_add(start, &maps[i], &maps[i], 8 << 20))
			break;
	assert_in_range(i, 2, 8);
	assert_false(rescan_start_full(start, 0));
	was_read(500, 2000);
	end();
	assert_int_equal(given, i + 1);
	assert_int_equal(maps[500].begin, SINCE);
}

#define T(name) cmocka_unit_test_setup(name, setup)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(nothing_was_reported),
		T(a_changed_process_counts_from_its_reading),
		T(what_was_before_the_first_sample_does_not_matter),
		T(what_follows_the_reading_is_put_on_top),
		T(the_first_of_many_counts),
		T(a_new_name_changes_no_mapping),
		T(after_a_loss_nothing_is_certain),
		T(a_loss_of_one_process),
		T(what_is_held_has_a_bound),
		T(large_ones_leave_room_for_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
