// SPDX-License-Identifier: Apache-2.0
/* cursor and vector: bounds of reads, growth, binary search. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static struct cursor over(const void *p, size_t len)
{
	return (struct cursor){ p, (const uint8_t *)p + len, false };
}

static void numbers_are_little_endian_and_signed(void **state)
{
	static const uint8_t b[] = { 0x01, 0x02, 0xfe, 0xff, 0x80 };
	struct cursor c = over(b, sizeof(b));

	assert_int_equal(cursor_fixed(&c, 2), 0x0201);
	assert_int_equal(cursor_signed(&c, 2), -2);
	assert_int_equal(cursor_signed(&c, 1), -128);
	assert_ptr_equal(c.p, c.end);
	assert_false(c.bad);
}

static void leb128_of_the_dwarf_standard(void **state)
{
	/* DWARF 5, figures 22 and 23: 128, 12857, -2, 127, -127, 128 */
	static const uint8_t b[] = { 0x80, 0x01, 0xb9, 0x64, 0x7e, 0xff,
				     0x00, 0x81, 0x7f, 0x80, 0x01 };
	struct cursor c = over(b, sizeof(b));

	assert_int_equal(cursor_uleb(&c), 128);
	assert_int_equal(cursor_uleb(&c), 12857);
	assert_int_equal(cursor_sleb(&c), -2);
	assert_int_equal(cursor_sleb(&c), 127);
	assert_int_equal(cursor_sleb(&c), -127);
	assert_int_equal(cursor_sleb(&c), 128);
	assert_false(c.bad);
}

static void a_read_past_the_end_is_bad_and_so_are_all_after_it(void **state)
{
	static const uint8_t b[] = { 1, 2, 3 };
	uint8_t endless[11];
	struct cursor c = over(b, sizeof(b));

	assert_null(cursor_bytes(&c, 4));
	assert_true(c.bad);
	assert_int_equal(cursor_fixed(&c, 1), 0);
	assert_ptr_equal(c.p, c.end);

	c = over(b, sizeof(b));
	assert_null(cursor_bytes(&c, UINT64_MAX));
	assert_true(c.bad);

	memset(endless, 0xff, sizeof(endless));
	c = over(endless, 3);
	assert_int_equal(cursor_uleb(&c), 0);
	assert_true(c.bad);
	c = over(endless, sizeof(endless));
	assert_int_equal(cursor_sleb(&c), 0);
	assert_true(c.bad);
}

static void a_vector_grows_and_keeps_what_it_has(void **state)
{
	uint32_t *v = NULL, n, cap = 0;

	for (n = 0; n < 1000; v[n] = n, n++)
		assert_int_equal(VECTOR_ROOM(v, n, cap), 0);
	assert_in_range(cap, 1000, 2000);
	for (n = 0; n < 1000; n++)
		assert_int_equal(v[n], n);
	free(v);
}

static void a_search_finds_the_first_that_is_not_before(void **state)
{
	static const int v[] = { 1, 3, 3, 3, 7 };
	static const size_t first[] = { 0, 0, 1, 1, 4, 4, 4, 4, 5 };
	size_t i;

	for (int x = 0; x < (int)ARRAY_SIZE(first); x++) {
		VECTOR_SEARCH(i, ARRAY_SIZE(v), v[i] < x);
		assert_int_equal(i, first[x]);
	}
	VECTOR_SEARCH(i, 0, true);
	assert_int_equal(i, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_little_endian_and_signed),
		cmocka_unit_test(leb128_of_the_dwarf_standard),
		cmocka_unit_test(
			a_read_past_the_end_is_bad_and_so_are_all_after_it),
		cmocka_unit_test(a_vector_grows_and_keeps_what_it_has),
		cmocka_unit_test(a_search_finds_the_first_that_is_not_before),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
