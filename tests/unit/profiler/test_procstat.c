// SPDX-License-Identifier: Apache-2.0
/* Busy time of the CPUs from /proc/stat. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/procstat.h"

/* user nice system idle iowait irq softirq steal guest guest_nice */
static const char text[] =
	"cpu  1111 2222 3333 4444 5555 6666 7777 8888 9999 1010\n"
	"cpu0 1 20 300 4000 50000 600000 7000000 80000000 1 2\n"
	"cpu2 5 0 0 9 0 0 0 0 0 0\n"
	"intr 12345 0 1\n"
	"ctxt 1\n";

/* idle, iowait and steal are not busy; guest is in user already */
static void test_columns(void **state)
{
	uint64_t busy[4] = { 9, 9, 9, 9 };

	assert_int_equal(procstat_parse(text, strlen(text), busy, 4), 0);
	assert_int_equal(busy[0], 7600321);
	assert_int_equal(busy[1], 0);
	assert_int_equal(busy[2], 5);
	assert_int_equal(busy[3], 0);
}

static void test_cpus_beyond_the_table(void **state)
{
	uint64_t busy[2] = { 0, 7 };

	assert_int_equal(procstat_parse(text, strlen(text), busy, 1), 0);
	assert_int_equal(busy[0], 7600321);
	assert_int_equal(busy[1], 7);
}

/* An incomplete line is ignored; nothing is read behind the end. */
static void test_every_truncation(void **state)
{
	size_t len, line = strchr(strchr(text, '\n') + 1, '\n') - text + 1;
	uint64_t busy[4];

	for (len = 0; len < sizeof(text); len++) {
		char *cut = malloc(len ? len : 1);
		int err;

		assert_non_null(cut);
		memcpy(cut, text, len);
		err = procstat_parse(cut, len, busy, 4);
		assert_int_equal(err, len < line ? -EINVAL : 0);
		free(cut);
	}
}

static void test_short_and_odd_lines(void **state)
{
	static const char odd[] =
		"cpu\ncpux 1\ncpu1\ncpu3 1 2\ncpu99999999999 1\n";
	uint64_t busy[4];

	assert_int_equal(procstat_parse(odd, strlen(odd), busy, 4), 0);
	assert_int_equal(busy[1], 0);
	assert_int_equal(busy[3], 3);
	assert_int_equal(procstat_parse("", 0, busy, 4), -EINVAL);
}

static void test_this_host(void **state)
{
	uint64_t busy[1024], sum = 0;
	size_t i;

	assert_int_equal(procstat_read("/proc/stat", busy, 1024), 0);
	for (i = 0; i < 1024; i++)
		sum += busy[i];
	assert_true(sum > 0);
	assert_int_equal(procstat_read("/proc/nonesuch", busy, 1024), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_columns),
		cmocka_unit_test(test_cpus_beyond_the_table),
		cmocka_unit_test(test_every_truncation),
		cmocka_unit_test(test_short_and_odd_lines),
		cmocka_unit_test(test_this_host),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
