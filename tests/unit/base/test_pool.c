// SPDX-License-Identifier: Apache-2.0
/* pool: which block is reused, how many are kept, that they are zeroed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

#define SIZE 200

static void assert_empty(const unsigned char *block, size_t size)
{
	size_t i;

	for (i = 0; i < size; i++)
		assert_int_equal(block[i], 0);
}

static void *take(struct pool *p)
{
	void *block = pool_take(p);

	assert_non_null(block);
	assert_empty(block, p->size);
	memset(block, 0xaa, p->size);
	return block;
}

static void the_last_one_given_back_comes_first(void **state)
{
	struct pool p;
	void *a, *b, *c;

	pool_init(&p, SIZE, 8);
	p.max = 8; /* with a sanitizer, too, where it is 0 */
	a = take(&p);
	b = take(&p);
	c = take(&p);
	pool_give(&p, a);
	pool_give(&p, c);
	pool_give(&p, b);
	assert_ptr_equal(take(&p), b);
	assert_ptr_equal(take(&p), c);
	pool_give(&p, b);
	assert_ptr_equal(take(&p), b);
	assert_ptr_equal(take(&p), a);
	pool_give(&p, a);
	pool_give(&p, b);
	pool_give(&p, c);
	pool_fini(&p);
}

static void no_more_are_kept_than_agreed(void **state)
{
	struct pool p;
	void *v[5];
	size_t i;

	pool_init(&p, SIZE, 3);
	assert_true(p.max <= 3);
	p.max = 3;
	for (i = 0; i < ARRAY_SIZE(v); i++)
		v[i] = take(&p);
	for (i = 0; i < ARRAY_SIZE(v); i++)
		pool_give(&p, v[i]);
	assert_int_equal(p.n, 3);
	pool_fini(&p);
	assert_null(p.kept);
	assert_int_equal(p.n, 0);
	pool_give(&p, NULL);
}

/* Blocks in use stay valid after the pool's end, and are freed when given back. */
static void nothing_is_kept_after_the_end(void **state)
{
	struct pool p;
	void *v;

	pool_init(&p, SIZE, 3);
	v = take(&p);
	pool_fini(&p);
	pool_give(&p, v);
	assert_int_equal(p.n, 0);
}

/* Blocks are large enough for the list of kept blocks. */
static void the_smallest_blocks(void **state)
{
	struct pool p;
	void *a, *b;

	pool_init(&p, 1, 2);
	p.max = 2;
	a = take(&p);
	b = take(&p);
	pool_give(&p, a);
	pool_give(&p, b);
	assert_ptr_equal(take(&p), b);
	assert_ptr_equal(take(&p), a);
	pool_give(&p, a);
	pool_give(&p, b);
	pool_fini(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_one_given_back_comes_first),
		cmocka_unit_test(no_more_are_kept_than_agreed),
		cmocka_unit_test(nothing_is_kept_after_the_end),
		cmocka_unit_test(the_smallest_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
