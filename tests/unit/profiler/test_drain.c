// SPDX-License-Identifier: Apache-2.0
/* A descriptor of the source wakes the loop; one that fails does not keep it busy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "profiler/drain.h"

static struct {
	int fd; /* of the one poll */
	enum source_urgency urgency; /* of what is left in it */
	size_t readable, now, ticks;
} t;

static enum source_urgency on_readable(void *state)
{
	char c;

	t.readable++;
	assert_int_equal(read(t.fd, &c, 1), 1);
	return t.urgency;
}

static size_t polls(void *state, struct source_poll *out)
{
	out[0] = (struct source_poll){ .what = "a test",
				       .fd = t.fd,
				       .readable = on_readable };
	return 1;
}

static void on_tick(void *arg)
{
	t.ticks++;
}

static uint64_t on_now(void *arg)
{
	t.now++;
	return 0;
}

static bool is_busy(void *arg, uint64_t now)
{
	return false;
}

static const struct source_row row = { .polls = polls };

static void start(struct drain *d, uv_loop_t *loop)
{
	struct source_run run = { .row = &row };

	assert_int_equal(uv_loop_init(loop), 0);
	*d = (struct drain){
		.loop = loop, .tick = on_tick, .now = on_now, .busy = is_busy
	};
	t.readable = t.now = t.ticks = 0;
	assert_int_equal(drain_start(d, clock_boottime_ns(), &run), 0);
}

static void end(struct drain *d, uv_loop_t *loop)
{
	drain_close(d);
	drain_close(d);
	assert_int_equal(uv_loop_close(loop), 0);
}

static void test_readable(void **state)
{
	struct drain d;
	uv_loop_t loop;
	int p[2];

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	t.fd = p[0];
	start(&d, &loop);
	drain_stop(&d);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(t.readable, 0);
	/* What is left is drained at once, or left to the timer. */
	t.urgency = SOURCE_NOW;
	assert_int_equal(write(p[1], "x", 1), 1);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(t.readable, 1);
	assert_int_equal(t.now, 1);
	t.urgency = SOURCE_LATER;
	assert_int_equal(write(p[1], "x", 1), 1);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(t.readable, 2);
	assert_int_equal(t.now, 1);
	/* Not twice in 100 ms. */
	t.urgency = SOURCE_DUE;
	assert_int_equal(write(p[1], "x", 1), 1);
	d.drained = clock_boottime_ns();
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(t.now, 1);
	assert_int_equal(write(p[1], "x", 1), 1);
	d.drained = 0;
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(t.now, 2);
	assert_int_equal(t.ticks, 0);
	end(&d, &loop);
	close(p[0]);
	close(p[1]);
}

/* A pipe without a reader: POLLERR, always. The timer goes on. */
static void test_error(void **state)
{
	struct drain d;
	uv_loop_t loop;
	int p[2], i;

	assert_int_equal(pipe2(p, O_CLOEXEC), 0);
	close(p[0]);
	t.fd = p[1];
	start(&d, &loop);
	for (i = 0; i < 3; i++)
		uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(t.readable, 0);
	while (!t.ticks)
		uv_run(&loop, UV_RUN_ONCE);
	/* Nothing is left to wait for. */
	drain_stop(&d);
	assert_int_equal(uv_loop_alive(&loop), 0);
	end(&d, &loop);
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
