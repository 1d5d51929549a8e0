// SPDX-License-Identifier: Apache-2.0
/*
 * Of the time in which a CPU was not listened to, what the host was awake in, as
 * far as two looks tell. (Rings: test_sideband.c; CPUs that go: tests/bpf.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/perfring.h"

#define S CLOCK_NSEC_PER_SEC

struct wanted {
	struct perfring_look before, after; /* in seconds */
	struct perfring_span span;
	int n;
	struct perfring_span parts[2];
};

static void check(const struct wanted *w)
{
	struct perfring_look before = { w->before.at * S, w->before.slept * S };
	struct perfring_look after = { w->after.at * S, w->after.slept * S };
	struct perfring_span span = { w->span.from * S, w->span.to * S },
			     out[2];
	int i;

	assert_int_equal(perfring_awake(&before, &after, &span, out), w->n);
	for (i = 0; i < w->n; i++) {
		assert_int_equal(out[i].from, w->parts[i].from * S);
		assert_int_equal(out[i].to, w->parts[i].to * S);
	}
}

static void without_a_sleep_all_of_it(void **state)
{
	static const struct wanted w = {
		{ 100, 7 }, { 102, 7 }, { 99, 102 }, 1, { { 99, 102 } },
	};

	check(&w);
}

static void of_a_night_its_ends(void **state)
{
	static const struct wanted w = {
		{ 100, 7 },
		{ 1103, 1007 },
		{ 99, 1104 },
		2,
		{ { 99, 103 }, { 1100, 1104 } },
	};

	check(&w);
}

/* Awake for 3 s, before or after: that may be all of it. */
static void of_a_nap_all_of_it(void **state)
{
	static const struct wanted w = {
		{ 100, 0 }, { 105, 2 }, { 100, 105 }, 1, { { 100, 105 } },
	};

	check(&w);
}

static void a_span_that_began_when_it_had_woken_up(void **state)
{
	static const struct wanted w = {
		{ 100, 0 }, { 200, 97 }, { 199, 200 }, 1, { { 199, 200 } },
	};

	check(&w);
}

static void a_span_that_ended_before_it_slept(void **state)
{
	static const struct wanted w = {
		{ 100, 0 }, { 200, 97 }, { 99, 101 }, 1, { { 99, 101 } },
	};

	check(&w);
}

/* Readings stray: less sleep than before, more of it than time. */
static void readings_that_cannot_be(void **state)
{
	static const struct wanted less = {
		{ 100, 9 }, { 200, 8 }, { 100, 200 }, 1, { { 100, 200 } },
	};
	static const struct wanted more = {
		{ 100, 0 },
		{ 200, 500 },
		{ 99, 201 },
		2,
		{ { 99, 100 }, { 200, 201 } },
	};

	check(&less);
	check(&more);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_a_sleep_all_of_it),
		cmocka_unit_test(of_a_night_its_ends),
		cmocka_unit_test(of_a_nap_all_of_it),
		cmocka_unit_test(a_span_that_began_when_it_had_woken_up),
		cmocka_unit_test(a_span_that_ended_before_it_slept),
		cmocka_unit_test(readings_that_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
