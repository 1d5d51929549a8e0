// SPDX-License-Identifier: Apache-2.0
/* A record that the pump drops is freed with all that it has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <malloc.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/walk_internal.h"

#define TIMES 200 /* what malloc keeps for later is less than a tenth */
/* The paths of this process's mappings alone are more. */
#define LEAK_BYTES 500

static void drop_walk_record(void)
{
	struct walkqueue_item self = { .tgid = (uint32_t)getpid() };
	struct walk_record *w = calloc(1, sizeof(*w));
	struct engine e = { 0 };
	struct pump_stats st;

	assert_int_equal(engine_pump_new(&e), 0);
	assert_non_null(w);
	w->kind = WALK_MAPS;
	assert_int_equal(pm_maps_read("/proc", self.tgid, &w->maps), 0);
	walk_keep(&e, &self, w);
	pump_get_stats(e.pump, &st);
	assert_int_equal(st.records, 1);
	pump_free(e.pump);
	vault_free(e.vault);
}

static void test_walk_records(void **state)
{
	size_t before;

	drop_walk_record(); /* whatever is allocated once */
	before = mallinfo2().uordblks;
	for (int i = 0; i < TIMES; i++)
		drop_walk_record();
	assert_true(mallinfo2().uordblks <= before + TIMES * LEAK_BYTES);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_walk_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
