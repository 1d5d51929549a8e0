// SPDX-License-Identifier: Apache-2.0
/*
 * The sampler alone. Stacks may hold secrets: the sample ring is not in core dumps of
 * profd. And errors name what could not be opened.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <bpf/libbpf.h>
#include <cmocka.h>

#include "profiler/source/sampler.h"

static void ignore(void *arg, const struct abi_sample *rec, size_t len)
{
}

/* Every mapping of a BPF map has the flag "dd" (proc(5), VmFlags). */
static void test_ring_is_in_no_core_dump(void **state)
{
	struct sampler_opts opts = { .freq_hz = 99, .sample = ignore };
	const char *what = "nothing";
	unsigned long lo, hi, size = 0, large = 0;
	struct sampler *s = NULL;
	bool map = false;
	char line[512];
	FILE *f;

	assert_int_equal(sampler_new(&s, &opts, &what), 0);
	f = fopen("/proc/self/smaps", "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx", &lo, &hi) == 2) {
			map = strstr(line, "bpf-map") ||
			      strstr(line, "bpf_map");
			size = hi - lo;
		}
		if (!map || strncmp(line, "VmFlags:", 8))
			continue;
		if (size >= 16UL << 20) { /* the data, mapped twice */
			large++;
			assert_non_null(strstr(line, " dd"));
		}
	}
	fclose(f);
	assert_int_equal(large, 1);
	sampler_free(s);
}

static int quiet(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	return 0;
}

static void test_errors_name_the_step(void **state)
{
	struct sampler_opts opts = { .freq_hz = 99, .ring_bytes = 12345 };
	const char *what = NULL;
	struct sampler *s = NULL;
	libbpf_print_fn_t before = libbpf_set_print(quiet);

	assert_int_equal(sampler_new(&s, &opts, &what), -EINVAL);
	assert_string_equal(what, "size of the sample ring");
	assert_null(s);
	opts.ring_bytes = 0;
	opts.freq_hz = 100000000;
	assert_int_equal(sampler_new(&s, &opts, &what), -EINVAL);
	assert_string_equal(what, "perf_event_open of the CPU clock");
	assert_ptr_equal(libbpf_set_print(before), quiet);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ring_is_in_no_core_dump),
		cmocka_unit_test(test_errors_name_the_step),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
