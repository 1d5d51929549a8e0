// SPDX-License-Identifier: Apache-2.0
/* A descriptor that fails calls nobody back, and does not keep the loop busy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include "profiler/source/wake.h"

static int readable;

static void on_readable(void *arg)
{
	char c;

	readable++;
	assert_int_equal(read(*(int *)arg, &c, 1), 1);
}

static void test_readable(void **state)
{
	struct wake w = { .what = "test", .readable = on_readable };
	uv_loop_t loop;
	int p[2];

	readable = 0;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	assert_int_equal(uv_loop_init(&loop), 0);
	w.arg = &p[0];
	assert_int_equal(wake_start(&w, &loop, p[0]), 0);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(readable, 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(readable, 1);
	wake_close(&w, NULL);
	wake_close(&w, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	close(p[0]);
	close(p[1]);
}

/* The end of a pipe that nobody reads: POLLERR, always. */
static void test_error(void **state)
{
	struct wake w = { .what = "a test", .readable = on_readable };
	uv_loop_t loop;
	int p[2], i;

	readable = 0;
	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	close(p[0]);
	assert_int_equal(uv_loop_init(&loop), 0);
	w.arg = &p[1];
	assert_int_equal(wake_start(&w, &loop, p[1]), 0);
	for (i = 0; i < 3; i++)
		uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(readable, 0);
	/* Nothing is left to wait for. */
	assert_int_equal(uv_loop_alive(&loop), 0);
	wake_close(&w, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	close(p[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_readable),
		cmocka_unit_test(test_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
