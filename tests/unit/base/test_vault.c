// SPDX-License-Identifier: Apache-2.0
/* vault: memory that is not in core dumps, for short-lived blocks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

/* Is the mapping of this address marked "dd" (proc(5), VmFlags)? */
static bool hidden(const void *p)
{
	unsigned long lo, hi, at = (uintptr_t)p;
	bool inside = false, found = false;
	char line[512];
	FILE *f = fopen("/proc/self/smaps", "r");

	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx", &lo, &hi) == 2)
			inside = at >= lo && at < hi;
		else if (inside && !strncmp(line, "VmFlags:", 8))
			found = strstr(line, " dd") != NULL;
	}
	fclose(f);
	return found;
}

static void test_hidden(void **state)
{
	static const size_t sizes[] = { 1, 3000, 70000, 600000 };
	struct vault *v;
	char *p;

	assert_int_equal(vault_new(&v), 0);
	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		p = vault_take(v, sizes[i]);
		assert_non_null(p);
		assert_int_equal((uintptr_t)p % 8, 0);
		memset(p, 'x', sizes[i]);
		assert_true(hidden(p));
		assert_true(hidden(p + sizes[i] - 1));
	}
	p = malloc(8);
	assert_false(hidden(p));
	free(p);
	vault_give(NULL);
	vault_free(v);
	vault_free(NULL);
}

/* Blocks of any size, freed roughly in order: each keeps its bytes. */
static void test_blocks_keep_apart(void **state)
{
	struct {
		uint8_t *p;
		size_t size;
	} b[64] = { { NULL, 0 } };
	struct vault *v;
	unsigned int seed = 1;

	assert_int_equal(vault_new(&v), 0);
	for (int i = 0; i < 20000; i++) {
		size_t k = (size_t)(rand_r(&seed) % 64);

		if (b[k].p)
			for (size_t n = 0; n < b[k].size; n += 97)
				assert_int_equal(b[k].p[n], k);
		vault_give(b[k].p);
		b[k].size =
			(size_t)(rand_r(&seed) % (i % 50 ? 8000 : 200000)) + 1;
		b[k].p = vault_take(v, b[k].size);
		assert_non_null(b[k].p);
		memset(b[k].p, (int)k, b[k].size);
	}
	vault_free(v);
}

/* A block of size 0 is a block; blocks do not extend beyond their region. */
static void test_no_bytes(void **state)
{
	static void *b[40000];
	struct vault *v;
	size_t i;

	assert_int_equal(vault_new(&v), 0);
	for (i = 0; i < ARRAY_SIZE(b); i++) {
		b[i] = vault_take(v, 0);
		assert_non_null(b[i]);
		assert_true(!i || b[i] != b[i - 1]);
	}
	for (i = 0; i < ARRAY_SIZE(b); i++)
		vault_give(b[i]);
	assert_true(vault_bytes(v) <= 2 * 262144);
	vault_free(v);
}

/*
 * Memory is proportional to the blocks in use at once, and so much is kept for later
 * blocks until less has been enough for a while.
 */
static void test_memory_goes_back(void **state)
{
	void *ring[100] = { NULL };
	size_t most = 0, kept;
	struct vault *v;

	assert_int_equal(vault_new(&v), 0);
	assert_int_equal(vault_bytes(v), 0);
	for (int i = 0; i < 10000; i++) {
		vault_give(ring[i % 100]);
		ring[i % 100] = vault_take(v, 5000);
		assert_non_null(ring[i % 100]);
		most = MAX(most, vault_bytes(v));
	}
	assert_true(most >= 500000 && most < 1500000);
	for (int i = 0; i < 100; i++)
		vault_give(ring[i]);
	kept = vault_bytes(v);
	assert_true(kept >= 500000 && kept <= most);
	/* As many again at once: from the kept memory. */
	for (int i = 0; i < 100; i++)
		ring[i] = vault_take(v, 5000);
	assert_int_equal(vault_bytes(v), kept);
	for (int i = 0; i < 100; i++)
		vault_give(ring[i]);
	for (int i = 0; i < 10000; i++)
		vault_give(vault_take(v, 5000));
	assert_true(vault_bytes(v) <= 2 * 262144);
	assert_null(vault_take(v, SIZE_MAX));
	vault_free(v);
}

/* Not all memory of a burst is kept. */
static void test_burst_goes_back(void **state)
{
	static void *burst[4000];
	struct vault *v;

	assert_int_equal(vault_new(&v), 0);
	for (size_t i = 0; i < ARRAY_SIZE(burst); i++)
		assert_non_null(burst[i] = vault_take(v, 5000));
	assert_true(vault_bytes(v) >= 20000000);
	for (size_t i = 0; i < ARRAY_SIZE(burst); i++)
		vault_give(burst[i]);
	assert_true(vault_bytes(v) <= 8 * 262144);
	vault_free(v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hidden),
		cmocka_unit_test(test_blocks_keep_apart),
		cmocka_unit_test(test_no_bytes),
		cmocka_unit_test(test_memory_goes_back),
		cmocka_unit_test(test_burst_goes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
