// SPDX-License-Identifier: Apache-2.0
/* The last line of a recording: losses and incomplete stacks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "base/base.h"
#include "profiler/cmd/summary.h"

static struct summary from, to;

static int setup(void **state)
{
	memset(&from, 0, sizeof(from));
	memset(&to, 0, sizeof(to));
	return 0;
}

static void reads(uint64_t samples, const char *want)
{
	struct strbuf sb = STRBUF_INIT;

	summary_text(&from, &to, samples, &sb);
	assert_string_equal(strbuf_str(&sb), want);
	strbuf_fini(&sb);
}

static void without_losses_the_line_is_short(void **state)
{
	reads(0, "0 samples, 0 lost");
	reads(1, "1 sample, 0 lost");
	to.stacks.stack_root = 7;
	reads(7, "7 samples, 0 lost");
}

/* Losses from before the recording are not counted. */
static void counts_before_the_recording_do_not_count(void **state)
{
	from.losses[LOSS_RING_FULL] = to.losses[LOSS_RING_FULL] = 1000;
	from.losses[LOSS_MISSED] = to.losses[LOSS_MISSED] = 50;
	from.stacks.stack_late = to.stacks.stack_late = 9;
	reads(5, "5 samples, 0 lost");
	to.losses[LOSS_MISSED] += 3;
	reads(5, "5 samples, 0 lost, 3 missing");
}

static void all_dropped_samples_are_lost(void **state)
{
	to.losses[LOSS_RING_FULL] = 1;
	to.losses[LOSS_PUMP_FULL] = 20;
	to.losses[LOSS_NOMEM] = 300;
	to.losses[LOSS_BAD] = 4000;
	reads(5, "5 samples, 4321 lost");
}

/* Each loss in a profile's comments is in the line. */
static void every_kind_of_loss_shows(void **state)
{
	struct strbuf sb = STRBUF_INIT;
	size_t i;

	for (i = 0; i < LOSS_MAX; i++) {
		if (i == LOSS_LIFECYCLE_MS || i == LOSS_MAPPING_MS ||
		    i == LOSS_TABLES_LATE || i == LOSS_FILE_GONE ||
		    i == LOSS_WAITS_MS)
			continue; /* durations, and incomplete stacks */
		setup(NULL);
		to.losses[i] = 77;
		summary_text(&from, &to, 5, &sb);
		if (!strstr(strbuf_str(&sb), "77"))
			fail_msg("loss %zu (%s): %s", i, losses_names()[i],
				 sb.data);
		strbuf_fini(&sb);
	}
}

/* Every kind of incomplete stack is counted, in words. */
static void every_incomplete_stack_shows(void **state)
{
	struct strbuf sb = STRBUF_INIT;

#define X(name, gauge, help)                                             \
	setup(NULL);                                                     \
	to.stacks.name = 66;                                             \
	summary_text(&from, &to, 99, &sb);                               \
	assert_int_equal(!strstr(strbuf_str(&sb), "66 incomplete (66 "), \
			 !strcmp(#name, "stack_root"));                  \
	strbuf_fini(&sb);
	TRACE_STACK_STATS(X)
#undef X
	setup(NULL);
	to.stacks.stack_late = 2;
	to.stacks.stack_no_cfi = 1;
	summary_text(&from, &to, 812, &sb);
	assert_non_null(strstr(strbuf_str(&sb), "812 samples, 3 incomplete ("));
	assert_non_null(strstr(sb.data, "2 tables late"));
	assert_non_null(strstr(sb.data, "1 no unwind info"));
	strbuf_fini(&sb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(without_losses_the_line_is_short, setup),
		cmocka_unit_test_setup(counts_before_the_recording_do_not_count,
				       setup),
		cmocka_unit_test_setup(all_dropped_samples_are_lost, setup),
		cmocka_unit_test_setup(every_kind_of_loss_shows, setup),
		cmocka_unit_test_setup(every_incomplete_stack_shows, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
