// SPDX-License-Identifier: Apache-2.0
/* trim: what a burst leaves behind is given back, once. */
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/memory/memory_trim.h"

#ifndef __SANITIZE_ADDRESS__
#define PIECES 200000
#define SECOND CLOCK_NSEC_PER_SEC

static void *pieces[PIECES];

static long resident_mib(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%*u %ld", &pages), 1);
	fclose(f);
	return pages * sysconf(_SC_PAGESIZE) >> 20;
}

/* 100 MiB in small pieces. */
static void burst(void)
{
	int i;

	for (i = 0; i < PIECES; i++) {
		pieces[i] = malloc(512);
		assert_non_null(pieces[i]);
		memset(pieces[i], 1, 512);
	}
}

/* Only the last of them stays. */
static void burst_over(void)
{
	int i;

	for (i = 0; i < PIECES - 1; i++)
		free(pieces[i]);
}

static void what_a_burst_needed_is_given_back(void **state)
{
	struct memory_trim t = { 0, 0 };
	long before = resident_mib();

	assert_false(memory_trim_tick(&t, 1));
	burst();
	burst_over();
	assert_true(resident_mib() > before + 64);
	/* Looked at every ten seconds. */
	assert_false(memory_trim_tick(&t, 9 * SECOND));
	assert_true(memory_trim_tick(&t, 10 * SECOND + 1));
	assert_in_range(resident_mib(), 0, before + 16);
	/* Nothing more to be had. */
	assert_false(memory_trim_tick(&t, 30 * SECOND));
	free(pieces[PIECES - 1]);
}

static void what_was_in_use_at_the_last_look_too(void **state)
{
	struct memory_trim t = { 0, 0 };
	long before;

	malloc_trim(0);
	before = resident_mib();
	burst();
	assert_false(memory_trim_tick(&t, 1));
	burst_over();
	assert_true(memory_trim_tick(&t, 20 * SECOND));
	assert_in_range(resident_mib(), 0, before + 16);
	free(pieces[PIECES - 1]);
}

static void what_is_in_use_is_no_reason(void **state)
{
	struct memory_trim t = { 0, 0 };
	char *p = malloc(64 << 20);

	assert_non_null(p);
	memset(p, 1, 64 << 20);
	assert_false(memory_trim_tick(&t, 1));
	assert_int_equal(p[1 << 20], 1);
	free(p);
}

#endif

static void a_try_is_not_repeated_for_nothing(void **state)
{
	struct memory_trim t = { 0, UINT64_MAX };

	/* What the last try left is what counts, also when it was more. */
	assert_false(memory_trim_tick(&t, 1));
	assert_true(t.waste < UINT64_MAX);
	t.waste = 0;
	assert_false(memory_trim_tick(&t, 2));
	assert_int_equal(t.waste, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifndef __SANITIZE_ADDRESS__ /* another malloc, with a mind of its own */
		cmocka_unit_test(what_a_burst_needed_is_given_back),
		cmocka_unit_test(what_was_in_use_at_the_last_look_too),
		cmocka_unit_test(what_is_in_use_is_no_reason),
#endif
		cmocka_unit_test(a_try_is_not_repeated_for_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
