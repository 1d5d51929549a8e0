// SPDX-License-Identifier: Apache-2.0
/*
 * The manager and a host that does things at random: what the fuzz target
 * checks, over inputs that are the same each time. Linked with the allocator
 * wrapped.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <unistd.h>
#include <cmocka.h>

#include "tests/fuzz/processmanager/fuzz_pm.c"

#define LIVES 400
#define LENGTH 900

static volatile unsigned int mode, life;

static void on_abort(int sig)
{
	dprintf(STDERR_FILENO, "# mode %u, life %u\n", mode, life);
}

static uint64_t next(uint64_t *state)
{
	*state = hash_u64(*state + 1);
	return *state;
}

static void lives(unsigned int what)
{
	uint8_t in[LENGTH];
	uint64_t state;
	size_t i, n;

	mode = what;
	for (life = 0; life < LIVES; life++) {
		state = (uint64_t)mode << 32 | life;
		n = 1 + next(&state) % LENGTH;
		in[0] = mode | (next(&state) & MODE_FILES);
		for (i = 1; i < n; i++)
			in[i] = next(&state) >> 11;
		LLVMFuzzerTestOneInput(in, n);
	}
}

static void all_is_told(void **state)
{
	lives(0);
}

static void records_are_lost_and_that_is_told(void **state)
{
	lives(MODE_LOSSY);
}

static void memory_ends_now_and_then(void **state)
{
	lives(MODE_POOR);
	lives(MODE_POOR | MODE_LOSSY);
}

static void records_come_late_and_twice(void **state)
{
	lives(MODE_UNRULY);
	lives(MODE_UNRULY | MODE_LOSSY | MODE_POOR);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_is_told),
		cmocka_unit_test(records_are_lost_and_that_is_told),
		cmocka_unit_test(memory_ends_now_and_then),
		cmocka_unit_test(records_come_late_and_twice),
	};

	signal(SIGABRT, on_abort);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
