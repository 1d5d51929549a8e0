// SPDX-License-Identifier: Apache-2.0
/* cpus: the parser of the kernel's CPU lists, and this host's own list. */
#include <errno.h>
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

static int parse(const char *list, cpu_set_t *set)
{
	size_t len = strlen(list);
	/* Exactly as long as the list, so that a reader beyond it is seen. */
	char *copy = malloc(len ? len : 1);
	int err;

	assert_non_null(copy);
	memcpy(copy, list, len);
	err = cpus_parse(copy, len, set);
	free(copy);
	return err;
}

static void a_single_cpu(void **state)
{
	cpu_set_t set;

	assert_int_equal(parse("0\n", &set), 0);
	assert_int_equal(CPU_COUNT(&set), 1);
	assert_true(CPU_ISSET(0, &set));
}

static void the_newline_may_be_missing(void **state)
{
	cpu_set_t set;

	assert_int_equal(parse("7", &set), 0);
	assert_int_equal(CPU_COUNT(&set), 1);
	assert_true(CPU_ISSET(7, &set));
}

static void ranges_and_single_cpus_mix(void **state)
{
	static const int want[] = { 0, 1, 2, 3, 8, 10, 11 };
	cpu_set_t set;
	size_t i;

	assert_int_equal(parse("0-3,8,10-11\n", &set), 0);
	assert_int_equal(CPU_COUNT(&set), ARRAY_SIZE(want));
	for (i = 0; i < ARRAY_SIZE(want); i++)
		assert_true(CPU_ISSET(want[i], &set));
}

static void a_range_of_one_is_one(void **state)
{
	cpu_set_t set;

	assert_int_equal(parse("5-5\n", &set), 0);
	assert_int_equal(CPU_COUNT(&set), 1);
	assert_true(CPU_ISSET(5, &set));
}

static void the_highest_cpu_fits_and_the_next_does_not(void **state)
{
	char list[64];
	cpu_set_t set;

	snprintf(list, sizeof(list), "0-%d\n", CPU_SETSIZE - 1);
	assert_int_equal(parse(list, &set), 0);
	assert_int_equal(CPU_COUNT(&set), CPU_SETSIZE);
	snprintf(list, sizeof(list), "0-%d\n", CPU_SETSIZE);
	assert_int_equal(parse(list, &set), -EINVAL);
	snprintf(list, sizeof(list), "%d\n", CPU_SETSIZE);
	assert_int_equal(parse(list, &set), -EINVAL);
}

static void numbers_that_wrap_are_refused(void **state)
{
	cpu_set_t set;

	assert_int_equal(parse("4294967296\n", &set), -EINVAL);
	assert_int_equal(parse("18446744073709551617", &set), -EINVAL);
}

static void what_is_no_list_is_refused(void **state)
{
	static const char *const bad[] = {
		"",    "\n",	"-",   "-1",   "1-",  "1-\n",
		"3-1", "0,3-1", ",1",  "1,,2", "0 1", "a",
		"0x1", "1-2-3", "0,a", " 0",   "1;2", "0-3:1",
	};
	cpu_set_t set;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		if (parse(bad[i], &set) != -EINVAL)
			fail_msg("accepted: \"%s\"", bad[i]);
}

static void a_list_of_an_earlier_call_leaves_nothing(void **state)
{
	cpu_set_t set;

	assert_int_equal(parse("0-63\n", &set), 0);
	assert_int_equal(parse("2\n", &set), 0);
	assert_int_equal(CPU_COUNT(&set), 1);
}

/* Every set there is comes back from its own text. */
static void a_printed_set_reads_back(void **state)
{
	struct strbuf sb = STRBUF_INIT;
	cpu_set_t want, got;
	int round, cpu, end;

	srand(1);
	for (round = 0; round < 500; round++) {
		CPU_ZERO(&want);
		strbuf_reset(&sb);
		for (cpu = rand() % 9; cpu < CPU_SETSIZE;
		     cpu = end + 2 + rand() % 200) {
			end = cpu + (rand() % 3 ? 0 : rand() % 40);
			if (end >= CPU_SETSIZE)
				end = CPU_SETSIZE - 1;
			strbuf_printf(&sb, end > cpu ? "%s%d-%d" : "%s%d",
				      sb.len ? "," : "", cpu, end);
			for (; cpu <= end; cpu++)
				CPU_SET(cpu, &want);
		}
		strbuf_puts(&sb, "\n");
		assert_int_equal(parse(strbuf_str(&sb), &got), 0);
		assert_true(CPU_EQUAL(&want, &got));
	}
	strbuf_fini(&sb);
}

static void this_host_has_the_cpus_the_c_library_counts(void **state)
{
	cpu_set_t set;

	assert_int_equal(cpus_online(&set), 0);
	assert_int_equal(CPU_COUNT(&set), sysconf(_SC_NPROCESSORS_ONLN));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_single_cpu),
		cmocka_unit_test(the_newline_may_be_missing),
		cmocka_unit_test(ranges_and_single_cpus_mix),
		cmocka_unit_test(a_range_of_one_is_one),
		cmocka_unit_test(the_highest_cpu_fits_and_the_next_does_not),
		cmocka_unit_test(numbers_that_wrap_are_refused),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(a_list_of_an_earlier_call_leaves_nothing),
		cmocka_unit_test(a_printed_set_reads_back),
		cmocka_unit_test(this_host_has_the_cpus_the_c_library_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
