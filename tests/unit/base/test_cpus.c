// SPDX-License-Identifier: Apache-2.0
/* cpus: the parser of the kernel's CPU lists, and this host's list. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

static int parse(const char *list, struct cpus *set)
{
	size_t len = strlen(list);
	/* Exactly as long as the list, so that a sanitizer detects reads beyond it. */
	char *copy = malloc(len ? len : 1);
	int err;

	assert_non_null(copy);
	memcpy(copy, list, len);
	err = cpus_parse(copy, len, set);
	free(copy);
	return err;
}

/* The number of CPUs in the list; -1: invalid. */
static int parsed(const char *list, struct cpus *set)
{
	size_t i, count = 0;

	if (parse(list, set)) {
		assert_null(set->set);
		return -1;
	}
	for (i = 0; i < set->n; i++)
		count += cpus_has(set, i);
	assert_true(cpus_has(set, set->n - 1));
	assert_false(cpus_has(set, set->n));
	return count;
}

static void a_single_cpu(void **state)
{
	struct cpus set;

	assert_int_equal(parsed("0\n", &set), 1);
	assert_true(cpus_has(&set, 0));
	cpus_fini(&set);
}

static void the_newline_may_be_missing(void **state)
{
	struct cpus set;

	assert_int_equal(parsed("7", &set), 1);
	assert_true(cpus_has(&set, 7));
	cpus_fini(&set);
}

static void ranges_and_single_cpus_mix(void **state)
{
	static const int want[] = { 0, 1, 2, 3, 8, 10, 11 };
	struct cpus set;
	size_t i;

	assert_int_equal(parsed("0-3,8,10-11\n", &set), ARRAY_SIZE(want));
	for (i = 0; i < ARRAY_SIZE(want); i++)
		assert_true(cpus_has(&set, want[i]));
	cpus_fini(&set);
}

static void a_range_of_one_is_one(void **state)
{
	struct cpus set;

	assert_int_equal(parsed("5-5\n", &set), 1);
	assert_true(cpus_has(&set, 5));
	cpus_fini(&set);
}

/* A cpu_set_t ends at CPU_SETSIZE (1,024), kernels do not: NR_CPUS is 8,192. */
static void more_cpus_than_a_cpu_set_t_has(void **state)
{
	struct cpus set;

	assert_int_equal(parsed("0-8191\n", &set), 8192);
	assert_int_equal(set.n, 8192);
	cpus_fini(&set);
	assert_int_equal(parsed("3,65536\n", &set), 2);
	assert_true(cpus_has(&set, 65536));
	assert_false(cpus_has(&set, 65535));
	cpus_fini(&set);
}

static void the_highest_cpu_fits_and_the_next_does_not(void **state)
{
	struct cpus set;
	char list[64];

	snprintf(list, sizeof(list), "0-%d\n", CPUS_MAX - 1);
	assert_int_equal(parsed(list, &set), CPUS_MAX);
	cpus_fini(&set);
	snprintf(list, sizeof(list), "0-%d\n", CPUS_MAX);
	assert_int_equal(parsed(list, &set), -1);
	snprintf(list, sizeof(list), "%d\n", CPUS_MAX);
	assert_int_equal(parsed(list, &set), -1);
}

static void numbers_that_wrap_are_refused(void **state)
{
	struct cpus set;

	assert_int_equal(parse("4294967296\n", &set), -EINVAL);
	assert_int_equal(parse("18446744073709551617", &set), -EINVAL);
	assert_int_equal(parse("0,18446744073709551617", &set), -EINVAL);
}

static void what_is_no_list_is_refused(void **state)
{
	static const char *const bad[] = {
		"",    "\n",	"-",   "-1",   "1-",  "1-\n",
		"3-1", "0,3-1", ",1",  "1,,2", "0 1", "a",
		"0x1", "1-2-3", "0,a", " 0",   "1;2", "0-3:1",
	};
	struct cpus set;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		if (parse(bad[i], &set) != -EINVAL)
			fail_msg("accepted: \"%s\"", bad[i]);
}

/* Each set equals the one parsed from its text. */
static void a_printed_set_reads_back(void **state)
{
	const size_t most = 3000;
	struct strbuf sb = STRBUF_INIT;
	bool want[3000];
	size_t cpu, end;
	struct cpus got;
	int round;

	srand(1);
	for (round = 0; round < 500; round++) {
		memset(want, 0, sizeof(want));
		strbuf_reset(&sb);
		for (cpu = rand() % 9; cpu < most;
		     cpu = end + 2 + rand() % 400) {
			end = cpu + (rand() % 3 ? 0 : rand() % 40);
			end = MIN(end, most - 1);
			strbuf_printf(&sb, end > cpu ? "%s%zu-%zu" : "%s%zu",
				      sb.len ? "," : "", cpu, end);
			for (; cpu <= end; cpu++)
				want[cpu] = true;
		}
		strbuf_puts(&sb, "\n");
		assert_true(parsed(strbuf_str(&sb), &got) > 0);
		for (cpu = 0; cpu < most; cpu++)
			assert_int_equal(cpus_has(&got, cpu), want[cpu]);
		cpus_fini(&got);
	}
	strbuf_fini(&sb);
}

static void this_host_has_the_cpus_the_c_library_counts(void **state)
{
	struct cpus online, possible;
	size_t i, n = 0, all = 0;

	assert_int_equal(cpus_online(&online), 0);
	assert_int_equal(cpus_possible(&possible), 0);
	for (i = 0; i < possible.n; i++) {
		n += cpus_has(&online, i);
		all += cpus_has(&possible, i);
	}
	assert_int_equal(n, sysconf(_SC_NPROCESSORS_ONLN));
	assert_int_equal(all, sysconf(_SC_NPROCESSORS_CONF));
	assert_int_equal(cpus_number(), possible.n);
	cpus_fini(&online);
	cpus_fini(&possible);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_single_cpu),
		cmocka_unit_test(the_newline_may_be_missing),
		cmocka_unit_test(ranges_and_single_cpus_mix),
		cmocka_unit_test(a_range_of_one_is_one),
		cmocka_unit_test(more_cpus_than_a_cpu_set_t_has),
		cmocka_unit_test(the_highest_cpu_fits_and_the_next_does_not),
		cmocka_unit_test(numbers_that_wrap_are_refused),
		cmocka_unit_test(what_is_no_list_is_refused),
		cmocka_unit_test(a_printed_set_reads_back),
		cmocka_unit_test(this_host_has_the_cpus_the_c_library_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
