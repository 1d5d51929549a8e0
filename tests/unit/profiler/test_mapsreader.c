// SPDX-License-Identifier: Apache-2.0
/* The process that reads maps: its answers, and that it may hang. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/rescan/mapsreader.h"

#define MS CLOCK_NSEC_PER_MSEC
#define NOBODY 0x7ffffffe /* no process has this id */

static struct mapsreader *r;
static struct pm_maps maps[MAPSREADER_BATCH];
static struct mapsreader_result results[MAPSREADER_BATCH];
static size_t answers;

static void on_answer(void *arg, size_t i, const struct mapsreader_result *res,
		      struct pm_maps *m)
{
	assert_ptr_equal(arg, &answers);
	assert_int_equal(i, answers++);
	results[i] = *res;
	maps[i] = *m;
}

static int setup(void **state)
{
	answers = 0;
	r = mapsreader_new(uv_default_loop(), on_answer, &answers);
	return r ? 0 : -1;
}

static void forget(void)
{
	while (answers)
		pm_maps_fini(&maps[--answers]);
}

static int teardown(void **state)
{
	forget();
	mapsreader_free(r);
	uv_run(uv_default_loop(), UV_RUN_NOWAIT);
	/* No child is left. */
	return waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? 0 : -1;
}

static void until_idle(void)
{
	while (mapsreader_busy(r)) {
		mapsreader_wait(r, 10);
		mapsreader_check(r, clock_boottime_ns());
	}
}

static void read_all(const uint32_t *tgids, size_t n)
{
	assert_int_equal(mapsreader_ask(r, tgids, n, UINT64_MAX, 10000 * MS),
			 0);
	until_idle();
	assert_int_equal(answers, n);
}

/* The youngest child: the reader. */
static int reader_pid(void)
{
	FILE *f = fopen("/proc/thread-self/children", "r");
	int next, pid = 0;

	assert_non_null(f);
	while (fscanf(f, "%d", &next) == 1)
		pid = next;
	fclose(f);
	assert_int_not_equal(pid, 0);
	return pid;
}

static void as_it_is_read_here(void **state)
{
	uint32_t tgids[] = { (uint32_t)getpid(), NOBODY, (uint32_t)getppid() };
	struct pm_maps own;
	size_t i;

	read_all(tgids, 3);
	assert_int_equal(pm_maps_read("/proc", tgids[0], &own), 0);
	assert_int_equal(results[0].err, 0);
	assert_int_equal(maps[0].tgid, tgids[0]);
	assert_true(maps[0].begin && maps[0].begin < maps[0].end);
	assert_int_equal(maps[0].n, own.n);
	for (i = 0; i < own.n; i++) {
		assert_int_equal(maps[0].maps[i].start, own.maps[i].start);
		assert_int_equal(maps[0].maps[i].ino, own.maps[i].ino);
		assert_string_equal(maps[0].maps[i].path, own.maps[i].path);
	}
	pm_maps_fini(&own);
	assert_int_equal(results[1].err, -ENOENT);
	assert_int_equal(maps[1].n, 0);
	assert_int_equal(maps[2].tgid, tgids[2]);
}

/* More than the socket holds. */
static void many_mappings(void **state)
{
	uint32_t self[] = { (uint32_t)getpid() };
	size_t page = (size_t)sysconf(_SC_PAGESIZE), n = 20000, i;
	char *p = mmap(NULL, n * page, PROT_READ | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	for (i = 0; i < n; i += 2)
		assert_int_equal(mprotect(p + i * page, page,
					  PROT_READ | PROT_WRITE | PROT_EXEC),
				 0);
	read_all(self, 1);
	assert_int_equal(results[0].err, 0);
	assert_in_range(maps[0].n, n, n + 1000);
	munmap(p, n * page);
}

static void what_exceeds_the_slice_waits(void **state)
{
	uint32_t tgids[MAPSREADER_BATCH];
	size_t i;

	for (i = 0; i < MAPSREADER_BATCH; i++)
		tgids[i] = (uint32_t)getpid();
	assert_int_equal(
		mapsreader_ask(r, tgids, MAPSREADER_BATCH, 0, 10000 * MS), 0);
	assert_int_equal(mapsreader_ask(r, tgids, 1, 0, MS), -EBUSY);
	until_idle();
	assert_int_equal(answers, MAPSREADER_BATCH);
	assert_int_equal(results[0].err, 0);
	for (i = 1; i < MAPSREADER_BATCH; i++)
		assert_int_equal(results[i].err, -EAGAIN);
}

/*
 * Stopped, it stands for one that waits for a lock for ever: profd waits for it no
 * longer than its patience, and another reader reads the rest.
 */
static void one_that_hangs_is_abandoned(void **state)
{
	uint32_t tgids[] = { (uint32_t)getpid(), (uint32_t)getpid() };
	uint64_t begin;
	int pid;

	read_all(tgids, 1);
	forget();
	pid = reader_pid();
	assert_int_equal(kill(pid, SIGSTOP), 0);
	begin = clock_boottime_ns();
	assert_int_equal(mapsreader_ask(r, tgids, 2, UINT64_MAX, 100 * MS), 0);
	/* For a short time what is merged by time waits for it. */
	assert_in_range(mapsreader_since(r, begin + 30 * MS), begin,
			begin + 30 * MS);
	assert_true(mapsreader_since(r, begin + 1500 * MS) == UINT64_MAX);
	until_idle();
	assert_in_range(clock_boottime_ns() - begin, 100 * MS, 1500 * MS);
	assert_int_equal(answers, 2);
	assert_int_equal(results[0].err, -ETIMEDOUT);
	assert_true(results[0].waited && results[0].wall_ns >= 100 * MS);
	assert_int_equal(results[1].err, -EAGAIN);
	forget();
	read_all(tgids, 2);
	assert_int_equal(results[0].err | results[1].err, 0);
	assert_int_not_equal(reader_pid(), pid);
}

static void one_that_dies_is_replaced(void **state)
{
	uint32_t tgids[] = { (uint32_t)getpid(), (uint32_t)getpid() };

	read_all(tgids, 1);
	forget();
	assert_int_equal(kill(reader_pid(), SIGSTOP), 0);
	assert_int_equal(mapsreader_ask(r, tgids, 2, UINT64_MAX, 10000 * MS),
			 0);
	assert_int_equal(kill(reader_pid(), SIGKILL), 0);
	until_idle();
	assert_int_equal(results[0].err, -EIO);
	assert_int_equal(results[1].err, -EAGAIN);
	/* Not at once. */
	assert_int_equal(mapsreader_ask(r, tgids, 2, UINT64_MAX, MS), -EAGAIN);
	usleep(1100 * 1000);
	forget();
	read_all(tgids, 2);
}

static void the_end_does_not_wait(void **state)
{
	uint32_t self[] = { (uint32_t)getpid() };
	uint64_t begin;

	read_all(self, 1);
	forget();
	assert_int_equal(kill(reader_pid(), SIGSTOP), 0);
	assert_int_equal(mapsreader_ask(r, self, 1, UINT64_MAX, 10000 * MS), 0);
	begin = clock_boottime_ns();
	mapsreader_free(r);
	r = NULL;
	assert_true(clock_boottime_ns() - begin < 1000 * MS);
	assert_int_equal(answers, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		T(as_it_is_read_here),		 T(many_mappings),
		T(what_exceeds_the_slice_waits), T(one_that_hangs_is_abandoned),
		T(one_that_dies_is_replaced),	 T(the_end_does_not_wait),
	};

	if (mapsreader_wanted(argc, argv))
		return mapsreader_main();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
