// SPDX-License-Identifier: Apache-2.0
/* A record that the pump drops: its memory is freed, its process becomes stale. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/engine_internal.h"
#include "profiler/rescan/rescan_internal.h"

#define TIMES 200 /* what malloc keeps for later is less than a tenth */
/* The paths of this process's mappings alone are more. */
#define LEAK_BYTES 500

static void drop_scan_record(void)
{
	struct rescan_item self = { .tgid = (uint32_t)getpid() };
	struct rescan_record *w = calloc(1, sizeof(*w));
	struct engine e = { 0 };
	struct rescan r = { 0 };
	struct pump_stats st;

	assert_int_equal(engine_intake_open(&e), 0);
	r.opts.pump = e.in.pump;
	assert_non_null(w);
	w->kind = RESCAN_MAPS;
	assert_int_equal(pm_maps_read("/proc", self.tgid, &w->maps), 0);
	rescan_keep(&r, &self, w);
	pump_get_stats(e.in.pump, &st);
	assert_int_equal(st.records, 1);
	intake_fini(&e.in);
}

static void test_scan_records(void **state)
{
	size_t before;

	drop_scan_record(); /* whatever is allocated once */
	before = mallinfo2().uordblks;
	for (int i = 0; i < TIMES; i++)
		drop_scan_record();
	assert_true(mallinfo2().uordblks <= before + TIMES * LEAK_BYTES);
}

/* One mapping with a path as long as it gets. */
static void map_long(struct intake *in, uint32_t tgid, struct pump_stats *st)
{
	static char path[4096];
	struct pm_map_event ev = {
		.kind = PM_MAP_MMAP, .tgid = tgid, .time = 7, .path = path
	};

	memset(path, 'x', sizeof(path) - 1);
	intake_map(in, &ev);
	pump_get_stats(in->pump, st);
}

/*
 * Paths that fill the room of mappings: the next one is lost by its process alone
 * (there is no process manager here that another could reach), and an exec has
 * its place all the same.
 */
static void test_no_room_for_mappings(void **state)
{
	struct pm_map_event exec = { .kind = PM_MAP_EXEC,
				     .tgid = 6,
				     .time = 8 };
	struct pump_stats before = { 0 }, st;
	struct engine e = { 0 };

	assert_int_equal(engine_intake_open(&e), 0);
	for (map_long(&e.in, 5, &st); !st.full[PUMP_MAPPING];) {
		before = st;
		map_long(&e.in, 5, &st);
	}
	assert_int_equal(st.pushed[PUMP_MAPPING],
			 before.pushed[PUMP_MAPPING] + 2);
	assert_int_equal(st.full[PUMP_MAPPING], 1);
	assert_int_equal(st.records, before.records + 1);
	intake_map(&e.in, &exec);
	pump_get_stats(e.in.pump, &st);
	assert_int_equal(st.full[PUMP_MAPPING], 1);
	assert_int_equal(st.records, before.records + 2);
	intake_fini(&e.in);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_room_for_mappings),
		cmocka_unit_test(test_scan_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
