/* SPDX-License-Identifier: Apache-2.0 */
/* A reporter with an archive in a temporary directory, made for each test. */
#ifndef TESTS_UNIT_TEST_REPORTER_COMMON_H
#define TESTS_UNIT_TEST_REPORTER_COMMON_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/unit/pprof_check.h"
#include "tests/unit/reporter/test_reporter_pm.h"

#define SEC CLOCK_NSEC_PER_SEC
#define T0 (1000 * SEC)

/* The wall clock: at T0 it is a full hour. */
#define WALL0 1787299200LL /* 2026-08-21T08:00:00Z */
static int64_t wall_offset = (WALL0 - 1000) * (int64_t)SEC;
int64_t __wrap_clock_wall_offset_ns(void);

int64_t __wrap_clock_wall_offset_ns(void)
{
	return wall_offset;
}

static struct {
	uv_loop_t loop;
	struct reporter *r;
	char dir[64];
	char archive[96];
	bool finished;
	int written, failed;
	char path[8][256];
	int err;
	uint64_t nsamples[8];
} t;

static const char *const losses[] = { "samples lost: ring full",
				      "records lost: out of memory" };

static inline void on_written(void *arg, const char *path, int err,
			      uint64_t nsamples)
{
	if (err) {
		t.failed++;
		t.err = err;
		return;
	}
	snprintf(t.path[t.written % 8], sizeof(t.path[0]), "%s", path);
	t.nsamples[t.written++ % 8] = nsamples;
}

static inline void on_finished(void *arg)
{
	t.finished = true;
}

static inline struct reporter_opts options(void)
{
	return (struct reporter_opts){
		.loop = &t.loop,
		.hostname = "host one",
		.version = "9.9",
		.freq_hz = 99,
		.event_types = cpu_clock,
		.nevent_types = ARRAY_SIZE(cpu_clock),
		.archive = t.archive,
		.archive_format = REPORTER_GZIP,
		.window_s = 60,
		.loss_names = losses,
		.nlosses = ARRAY_SIZE(losses),
		.written = on_written,
	};
}

static inline void start(struct reporter_opts o)
{
	const char *where;

	assert_int_equal(reporter_new(&t.r, &o, &where), 0);
	reporter_start(t.r, T0);
}

static inline int setup(void **state)
{
	memset(&t, 0, sizeof(t));
	wall_offset = (WALL0 - 1000) * (int64_t)SEC;
	snprintf(t.dir, sizeof(t.dir), "/tmp/test_reporter.XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	snprintf(t.archive, sizeof(t.archive), "%s/deep/archive", t.dir);
	return uv_loop_init(&t.loop);
}

static inline int teardown(void **state)
{
	char cmd[128];

	reporter_free(t.r);
	uv_run(&t.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&t.loop), 0);
	assert_int_equal(exe_refs(), 0);
	pprof_check_end();
	snprintf(cmd, sizeof(cmd), "rm -rf %s", t.dir);
	return system(cmd);
}

static inline void finish(uint64_t time)
{
	reporter_finish(t.r, time, on_finished, NULL);
	while (!t.finished)
		uv_run(&t.loop, UV_RUN_ONCE);
}

/* Runs the loop until no job is left. */
static inline void settle(void)
{
	uv_run(&t.loop, UV_RUN_DEFAULT);
}

static inline int add(struct pm_image *img, uint64_t time, uint32_t tid,
		      const char *thread, const struct reporter_frame *f,
		      size_t n)
{
	struct reporter_trace tr = { .time = time,
				     .image = img,
				     .tid = tid,
				     .thread = thread,
				     .frames = f,
				     .nframes = n };

	return reporter_add(t.r, &tr);
}

static inline void add_simple(uint64_t time)
{
	struct pm_image img = image(1, 100, EXE_A);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "work");

	assert_int_equal(add(&img, time, 100, "alpha", &f, 1), 0);
}

static inline const Perftools__Profiles__Profile *checked(const char *path)
{
	const char *wrong = pprof_check_file(path);

	if (wrong)
		fail_msg("%s: %s", path, wrong);
	return pprof_checked();
}

/* In a directory, and in those of days in it, which retention may remove meanwhile. */
static inline int count_files_in(const char *path, const char *ending)
{
	DIR *d = opendir(path);
	struct dirent *de;
	char sub[768];
	int n = 0;

	if (!d && errno == ENOENT && path != t.archive)
		return 0;
	assert_non_null(d);
	while ((de = readdir(d))) {
		size_t len = strlen(de->d_name), el = strlen(ending);

		n += len > el && !strcmp(de->d_name + len - el, ending);
		if (de->d_type != DT_DIR || de->d_name[0] == '.')
			continue;
		snprintf(sub, sizeof(sub), "%.500s/%.250s", path, de->d_name);
		n += count_files_in(sub, ending);
	}
	closedir(d);
	return n;
}

static inline int count_files(const char *ending)
{
	return count_files_in(t.archive, ending);
}

static struct got {
	int calls;
	int err;
	uint64_t nsamples;
	void *data;
	size_t len;
} got;

static inline void on_window(void *arg, int err, uint64_t nsamples, void *data,
			     size_t len)
{
	struct got *g = arg;

	free(g->data);
	g->calls++;
	g->err = err;
	g->nsamples = nsamples;
	g->data = data;
	g->len = len;
}

static inline struct reporter_window *open_window(struct reporter_window_opts o)
{
	struct reporter_window *w;

	memset(&got, 0, sizeof(got));
	o.done = on_window;
	o.arg = &got;
	assert_int_equal(reporter_window_open(t.r, &o, &w), 0);
	return w;
}

/* Whether a command on a file prints 'want'; -1: it failed. */
static inline int run(const char *fmt, const char *path, const char *want)
{
	char cmd[768], line[4096];
	bool found = false;
	FILE *f;

	snprintf(cmd, sizeof(cmd), fmt, path);
	f = popen(cmd, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found |= !!strstr(line, want);
	if (pclose(f))
		return -1;
	return found;
}

#endif /* TESTS_UNIT_TEST_REPORTER_COMMON_H */
