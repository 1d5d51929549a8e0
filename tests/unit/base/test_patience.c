// SPDX-License-Identifier: Apache-2.0
/* Jobs that are begun and polled: done, abandoned while they sleep, or at the end. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

#define HANG_S 60

/* Parts: each reads a byte from a pipe, which may never come. */
struct job {
	struct patience_job job;
	int fd;
	size_t parts;
	int *released;
};

static void job_run(struct patience_job *job)
{
	struct job *j = container_of(job, struct job, job);
	char c;

	for (size_t i = 0; i < j->parts; i++) {
		if (read(j->fd, &c, 1) != 1)
			return;
		patience_step(job);
	}
}

static void job_release(struct patience_job *job)
{
	struct job *j = container_of(job, struct job, job);

	__atomic_store_n(j->released, 1, __ATOMIC_RELEASE);
	free(j);
}

static struct job *job_new(int fd, size_t parts, int *released)
{
	struct job *j = calloc(1, sizeof(*j));

	assert_non_null(j);
	*j = (struct job){ { job_run, job_release, 0 }, fd, parts, released };
	return j;
}

static int polled(struct patience *p, size_t *at)
{
	time_t end = time(NULL) + HANG_S;
	int err = -EINPROGRESS;

	while (err == -EINPROGRESS && time(NULL) < end) {
		usleep(1000);
		err = patience_poll(p, at);
	}
	return err;
}

static void wait_released(int *released)
{
	time_t end = time(NULL) + HANG_S;

	while (!__atomic_load_n(released, __ATOMIC_ACQUIRE) ||
	       patience_abandoned()) {
		assert_true(time(NULL) < end);
		usleep(1000);
	}
}

static void a_job_is_polled_until_it_is_done(void **state)
{
	struct patience p = { 0 };
	int fds[2], released = 0;
	struct job *j;
	size_t at = 99;

	assert_int_equal(pipe(fds), 0);
	j = job_new(fds[0], 3, &released);
	assert_int_equal(patience_begin(&p, &j->job), 0);
	assert_int_equal(patience_poll(&p, &at), -EINPROGRESS);
	assert_int_equal(write(fds[1], "abc", 3), 3);
	assert_int_equal(polled(&p, &at), 0);
	assert_int_equal(j->job.at, 3);
	/* The thread takes the next one. */
	assert_int_equal(write(fds[1], "abc", 3), 3);
	assert_int_equal(patience_begin(&p, &j->job), 0);
	assert_int_equal(polled(&p, &at), 0);
	assert_int_equal(at, 99);
	assert_int_equal(released, 0);
	patience_fini(&p);
	free(j);
	close(fds[0]);
	close(fds[1]);
}

static void a_job_that_sleeps_is_abandoned(void **state)
{
	struct patience p = { 0 };
	int fds[2], released = 0;
	uint64_t begin;
	struct job *j;
	size_t at = 99;

	assert_int_equal(pipe(fds), 0);
	assert_int_equal(write(fds[1], "ab", 2), 2);
	j = job_new(fds[0], 3, &released);
	begin = clock_awake_ns();
	assert_int_equal(patience_begin(&p, &j->job), 0);
	assert_int_equal(polled(&p, &at), -ETIMEDOUT);
	assert_true(clock_awake_ns() - begin >= 100 * CLOCK_NSEC_PER_MSEC);
	assert_int_equal(at, 2);
	assert_int_equal(patience_abandoned(), 1);
	assert_int_equal(released, 0);
	close(fds[1]);
	wait_released(&released);
	patience_fini(&p);
	close(fds[0]);
}

static void a_job_can_be_abandoned_at_the_end(void **state)
{
	struct patience p = { 0 };
	int fds[2], released = 0;
	struct job *j;
	size_t at;

	assert_int_equal(pipe(fds), 0);
	j = job_new(fds[0], 1, &released);
	assert_int_equal(patience_begin(&p, &j->job), 0);
	assert_false(patience_abandon(&p));
	assert_int_equal(write(fds[1], "a", 1), 1);
	wait_released(&released);
	/* One that is done is not. */
	j = job_new(fds[0], 0, &released);
	assert_int_equal(patience_begin(&p, &j->job), 0);
	assert_int_equal(polled(&p, &at), 0);
	assert_true(patience_abandon(&p));
	patience_fini(&p);
	free(j);
	close(fds[0]);
	close(fds[1]);
}

/* Who can wait leaves threads to others. */
static void a_spare_thread_is_left_to_others(void **state)
{
	struct patience p = { .spare = PATIENCE_ABANDONED_MAX - 1 },
			other = { 0 };
	int fds[2], released = 0;
	struct job *j;
	size_t at;

	assert_int_equal(pipe(fds), 0);
	j = job_new(fds[0], 1, &released);
	assert_int_equal(patience_begin(&p, &j->job), 0);
	assert_false(patience_abandon(&p));
	j = job_new(fds[0], 0, &released);
	assert_int_equal(patience_begin(&p, &j->job), -EAGAIN);
	assert_int_equal(patience_begin(&other, &j->job), 0);
	assert_int_equal(polled(&other, &at), 0);
	close(fds[1]);
	wait_released(&released);
	assert_int_equal(patience_begin(&p, &j->job), 0);
	assert_int_equal(polled(&p, &at), 0);
	patience_fini(&p);
	patience_fini(&other);
	free(j);
	close(fds[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_spare_thread_is_left_to_others),
		cmocka_unit_test(a_job_is_polled_until_it_is_done),
		cmocka_unit_test(a_job_that_sleeps_is_abandoned),
		cmocka_unit_test(a_job_can_be_abandoned_at_the_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
