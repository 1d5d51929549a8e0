// SPDX-License-Identifier: Apache-2.0
/*
 * Paths of the past: long waits go through the archive's side files and come back as the steps
 * of a thread and of what woke it. What is not recorded, what lasts, and what no window has.
 */
#include <jansson.h>

#include "reporter/request/request.h"
#include "tests/unit/reporter/test_reporter_common.h"

#define MS CLOCK_NSEC_PER_MSEC
#define START 77 /* of all processes, ns of CLOCK_BOOTTIME */

enum {
	CPU,
	WAIT
};

static const struct reporter_event_type types[] = {
	[CPU] = { "cpu",
		  "the CPU clock",
		  true,
		  { "samples", "count" },
		  { "cpu", "nanoseconds" },
		  false },
	[WAIT] = { "wait",
		   "waits",
		   false,
		   { "waits", "count" },
		   { "wait", "nanoseconds" },
		   true },
};

static json_t *lines; /* of the last answer, an array */
static char why_not[512];

static void start_waits(void)
{
	struct reporter_opts o = options();

	o.event_types = types;
	o.nevent_types = ARRAY_SIZE(types);
	o.waits = true;
	o.wait_min = MS;
	start(o);
}

/* A wait of thread 'pid' of that process; 'by' has ended it, 0: a timer; -1: it lasts. */
static void put(uint32_t pid, uint64_t begin, uint64_t end, int by,
		uint32_t what)
{
	struct pm_image img = image(pid, pid, EXE_A);
	struct reporter_frame frames[] = {
		frame(EXE_MARK, 1, 0, "[wait futex]"),
		frame(EXE_A, 0x401234, 0x401200, "blocks"),
		frame(EXE_A, 0x401334, 0x401300, "main"),
	};
	struct reporter_trace tr = {
		.time = end - 1,
		.event = WAIT,
		.count = 1,
		.value = end - begin,
		.image = &img,
		.reason = "futex",
		.frames = frames,
		.nframes = ARRAY_SIZE(frames),
	};
	struct abi_segment s = {
		.begin = begin,
		.end = end,
		.key = { .tgid = pid, .start_boottime = START, .exec_id = 3 },
		.tid = pid,
		.what = what,
		.flags = by < 0 ? ABI_SEGMENT_OPEN : 0,
		.comm = "waiter",
	};

	s.waker.kind = by > 0	? ABI_WAKER_TASK
		       : by < 0 ? ABI_WAKER_NONE
				: ABI_WAKER_IRQ;
	if (by > 0) {
		s.waker.tid = s.waker.key.tgid = (uint32_t)by;
		s.waker.key.start_boottime = START;
	}
	assert_int_equal(reporter_add(t.r, &tr), 0);
	tr.count = tr.value = 0;
	assert_int_equal(reporter_add_wait(t.r, &tr, &s), 0);
}

#define FUTEX ABI_WAIT_WHAT(202, ABI_WAIT_FUTEX, ABI_FD_NONE)
#define PIPE ABI_WAIT_WHAT(0, ABI_WAIT_PIPE, ABI_FD_PIPE)
#define SLEEP ABI_WAIT_WHAT(230, ABI_WAIT_SLEEP, ABI_FD_NONE)

/* Asks for T0 + from to T0 + to. 0 or -errno; the lines are in 'lines'. */
static int ask(uint32_t pid, uint32_t tid, uint64_t from, uint64_t to)
{
	const struct reporter_why why = {
		.key.tgid = pid,
		.tid = tid,
		.from = (int64_t)(T0 + from) + wall_offset,
		.to = (int64_t)(T0 + to) + wall_offset,
	};
	struct reporter_request_run run = { .archive = t.archive };
	struct strbuf out = STRBUF_INIT;
	int err = reporter_why_run(&why, &run, &out);
	const char *p = out.data, *end;
	json_t *o;

	snprintf(why_not, sizeof(why_not), "%s", run.why);
	json_decref(lines);
	lines = json_array();
	for (; !err && p < out.data + out.len; p = end + 1) {
		end = memchr(p, '\n', (size_t)(out.data + out.len - p));
		assert_non_null(end);
		o = json_loadb(p, (size_t)(end - p), 0, NULL);
		assert_non_null(o);
		json_array_append_new(lines, o);
	}
	strbuf_fini(&out);
	return err;
}

static const json_t *line(size_t i)
{
	const json_t *o = json_array_get(lines, i);

	assert_non_null(o);
	return o;
}

static uint64_t number(const json_t *o, const char *key)
{
	const json_t *v = json_object_get(o, key);

	assert_non_null(v);
	return json_is_string(v) ? strtoull(json_string_value(v), NULL, 10)
				 : (uint64_t)json_integer_value(v);
}

/* Step 'i' is of that thread and time, and is explained so. */
static void step(size_t i, uint32_t pid, uint32_t depth, uint64_t begin,
		 uint64_t end, const char *how)
{
	const json_t *o = line(i + 1);
	uint64_t at = number(o, "time_boot_ns");

	assert_string_equal(json_string_value(json_object_get(o, "end")), how);
	assert_int_equal(number(o, "pid"), pid);
	assert_int_equal(number(o, "depth"), depth);
	assert_int_equal(at - T0, begin);
	assert_int_equal(at + number(o, "duration_ns") - T0, end);
}

static size_t steps(void)
{
	return json_array_size(lines) - 1;
}

/* A waits for B, B for C, which sleeps and runs; the processes are known by their waits. */
static void a_chain(void **state)
{
	const json_t *o, *frames;

	start_waits();
	add_simple(T0 + 1);
	put(3, T0 + 100 * MS, T0 + 150 * MS, 0, SLEEP);
	put(2, T0 + 90 * MS, T0 + 170 * MS, 3, FUTEX);
	put(1, T0 + 80 * MS, T0 + 172 * MS, 2, PIPE);
	put(1, T0 + 180 * MS, T0 + 280 * MS, 0, SLEEP);
	reporter_advance(t.r, T0 + SEC);
	finish(T0 + SEC);
	assert_int_equal(ask(1, 0, 75 * MS, 175 * MS), 0);
	o = line(0);
	assert_int_equal(number(o, "wait_min_ns"), MS);
	assert_int_equal(number(o, "tid"), 1);
	assert_int_equal(number(o, "since_boot_ns"), T0);
	assert_int_equal(number(o, "steps"), steps());
	assert_int_equal(steps(), 9);
	step(0, 1, 0, 75 * MS, 80 * MS, "short");
	step(1, 1, 0, 80 * MS, 172 * MS, "followed");
	step(2, 2, 1, 80 * MS, 90 * MS, "short");
	step(3, 2, 1, 90 * MS, 170 * MS, "followed");
	step(4, 3, 2, 90 * MS, 100 * MS, "short");
	step(5, 3, 2, 100 * MS, 150 * MS, "interrupt");
	step(6, 3, 2, 150 * MS, 170 * MS, "short");
	step(7, 2, 1, 170 * MS, 172 * MS, "short");
	step(8, 1, 0, 172 * MS, 175 * MS, "short");
	o = line(2);
	assert_string_equal(json_string_value(json_object_get(o, "reason")),
			    "pipe");
	assert_string_equal(json_string_value(json_object_get(o, "syscall")),
			    "read");
	assert_string_equal(json_string_value(json_object_get(o, "fd")),
			    "pipe");
	assert_string_equal(json_string_value(json_object_get(o, "thread")),
			    "waiter");
	assert_string_equal(json_string_value(json_object_get(
				    json_object_get(o, "waker"), "comm")),
			    "waiter");
	assert_null(json_object_get(line(1), "state"));
	/* Once: all three have the same. */
	assert_int_equal(number(line(2), "stack"), 0);
	assert_int_equal(number(line(4), "stack"), 0);
	assert_null(json_object_get(line(4), "frames"));
	frames = json_object_get(line(2), "frames");
	assert_int_equal(json_array_size(frames), 2);
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(frames, 0), "function")),
			    "blocks");
	assert_string_equal(json_string_value(json_object_get(
				    json_array_get(frames, 1), "mapping")),
			    "/usr/bin/alpha");
	/* Wall time is that of the window. */
	assert_string_equal(json_string_value(json_object_get(line(1), "time")),
			    "2026-08-21T08:00:00.075000000Z");
}

/* It ends in another window than it began, and lasts at the end of the first. */
static void a_wait_across_windows(void **state)
{
	start_waits();
	add_simple(T0 + 1);
	put(1, T0 + 50 * SEC, T0 + 60 * SEC, -1, PIPE);
	reporter_advance(t.r, T0 + 60 * SEC);
	add_simple(T0 + 61 * SEC);
	put(1, T0 + 50 * SEC, T0 + 70 * SEC, 2, PIPE);
	put(2, T0 + 65 * SEC, T0 + 66 * SEC, 0, SLEEP);
	put(4, T0 + 100 * SEC, T0 + 119 * SEC, -1, PIPE);
	reporter_advance(t.r, T0 + 119 * SEC);
	finish(T0 + 119 * SEC);
	assert_int_equal(t.written, 2);
	/* A span of the first window only: what ends after it is in the next one. */
	assert_int_equal(ask(1, 1, 49 * SEC, 55 * SEC), 0);
	assert_int_equal(steps(), 3);
	step(0, 1, 0, 49 * SEC, 50 * SEC, "short");
	step(1, 1, 0, 50 * SEC, 55 * SEC, "followed");
	step(2, 2, 1, 50 * SEC, 55 * SEC, "short");
	/* Of both. */
	assert_int_equal(ask(1, 1, 49 * SEC, 71 * SEC), 0);
	assert_int_equal(steps(), 6);
	step(1, 1, 0, 50 * SEC, 70 * SEC, "followed");
	step(2, 2, 1, 50 * SEC, 65 * SEC, "short");
	step(3, 2, 1, 65 * SEC, 66 * SEC, "interrupt");
	step(4, 2, 1, 66 * SEC, 70 * SEC, "short");
	step(5, 1, 0, 70 * SEC, 71 * SEC, "short");
	/* It lasts; and of the time after the last window nothing is known. */
	assert_int_equal(ask(4, 0, 99 * SEC, 130 * SEC), 0);
	assert_int_equal(steps(), 3);
	step(0, 4, 0, 99 * SEC, 100 * SEC, "short");
	step(1, 4, 0, 100 * SEC, 119 * SEC, "open");
	step(2, 4, 0, 119 * SEC, 130 * SEC, "gap");
}

static void what_is_not_there(void **state)
{
	start_waits();
	add_simple(T0 + 1);
	put(1, T0 + 10 * MS, T0 + 20 * MS, 2, PIPE);
	reporter_advance(t.r, T0 + SEC);
	finish(T0 + SEC);
	assert_int_equal(ask(9, 0, 0, SEC), -ESRCH);
	assert_non_null(strstr(why_not, "process 9: nothing"));
	assert_int_equal(ask(1, 5, 0, SEC), -ESRCH);
	assert_non_null(strstr(why_not, "thread 5: nothing"));
	assert_int_equal(ask(1, 0, 3600 * SEC, 3601 * SEC), -ENODATA);
	assert_non_null(strstr(why_not, "no window of that time"));
	/* One that has only ended a wait is known, too. */
	assert_int_equal(ask(2, 0, 0, SEC), 0);
	assert_int_equal(steps(), 1);
	step(0, 2, 0, 0, SEC, "short");
}

/* A damaged file is none. */
static void a_damaged_file(void **state)
{
	char cmd[256];

	start_waits();
	add_simple(T0 + 1);
	put(1, T0 + 10 * MS, T0 + 20 * MS, 2, PIPE);
	reporter_advance(t.r, T0 + SEC);
	finish(T0 + SEC);
	snprintf(cmd, sizeof(cmd),
		 "for f in %s/*/wait-*.times.zst; do echo x >$f; done",
		 t.archive);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(ask(1, 0, 0, SEC), -ENODATA);
}

static void ids(void **state)
{
	struct reporter_why why;

	assert_int_equal(reporter_why_process(&why, "12"), 0);
	assert_int_equal(why.key.tgid, 12);
	assert_int_equal(why.key.start_boottime, 0);
	assert_int_equal(reporter_why_process(&why, "12-1f"), 0);
	assert_int_equal(why.key.start_boottime, 0x1f);
	assert_int_equal(reporter_why_process(&why, ""), -EINVAL);
	assert_int_equal(reporter_why_process(&why, "0"), -EINVAL);
	assert_int_equal(reporter_why_process(&why, "12-"), -EINVAL);
	assert_int_equal(reporter_why_process(&why, "12x"), -EINVAL);
	assert_int_equal(reporter_why_process(&why, "99999999999"), -EINVAL);
}

static int forget(void **state)
{
	json_decref(lines);
	lines = NULL;
	return teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, forget)
		T(a_chain),
		T(a_wait_across_windows),
		T(what_is_not_there),
		T(a_damaged_file),
		cmocka_unit_test(ids),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
