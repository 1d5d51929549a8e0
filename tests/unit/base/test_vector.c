// SPDX-License-Identifier: Apache-2.0
/* vector: arrays grow element by element; a search finds the first not before. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/base.h"

static void an_array_grows_and_keeps_its_elements(void **state)
{
	uint32_t *v = NULL, n = 0, cap = 0, i;

	while (n < 1000) {
		assert_int_equal(VECTOR_ROOM(v, n, cap), 0);
		assert_true(n < cap);
		v[n] = n;
		n++;
	}
	assert_int_equal(cap, 1024);
	for (i = 0; i < n; i++)
		assert_int_equal(v[i], i);
	free(v);
}

static void an_array_with_room_is_left_alone(void **state)
{
	size_t n = 3, cap = 4;
	char few[4], *v = few;

	assert_int_equal(VECTOR_ROOM(v, n, cap), 0);
	assert_ptr_equal(v, few);
	assert_int_equal(cap, 4);
}

static void a_size_that_does_not_fit_is_refused(void **state)
{
	uint64_t *v = NULL;
	size_t n = SIZE_MAX / 8, cap = n;
	uint8_t few_cap = 128, few = 128;
	char *bytes = NULL;

	assert_int_equal(VECTOR_ROOM(v, n, cap), -ENOMEM);
	assert_null(v);
	assert_int_equal(cap, SIZE_MAX / 8);
	/* Twice the capacity overflows its type. */
	assert_int_equal(VECTOR_ROOM(bytes, few, few_cap), -ENOMEM);
	assert_null(bytes);
	assert_int_equal(few_cap, 128);
}

static void a_search_finds_the_first_that_is_not_before(void **state)
{
	static const int v[] = { 1, 3, 3, 3, 8 };
	size_t i, n;
	int x, want;

	for (n = 0; n <= ARRAY_SIZE(v); n++) {
		for (x = 0; x < 10; x++) {
			for (want = 0; want < (int)n && v[want] < x; want++)
				;
			VECTOR_SEARCH(i, n, v[i] < x);
			assert_int_equal(i, want);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_array_grows_and_keeps_its_elements),
		cmocka_unit_test(an_array_with_room_is_left_alone),
		cmocka_unit_test(a_size_that_does_not_fit_is_refused),
		cmocka_unit_test(a_search_finds_the_first_that_is_not_before),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("vector", tests, NULL, NULL);
}
