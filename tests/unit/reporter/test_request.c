// SPDX-License-Identifier: Apache-2.0
/* Requests as clients write them: what is refused, and which need an archive. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "reporter/request/request.h"

#define S 1000000000LL
#define NOW (1795435200LL * S)

static struct reporter_request *request(void)
{
	struct reporter_request *r;

	assert_int_equal(reporter_request_new(&r, NOW, false), 0);
	return r;
}

static void keys(void **state)
{
	static const struct {
		const char *key, *value;
		int err;
	} cases[] = {
		{ "from", "-1h", 0 },
		{ "from", "-2h", -EEXIST },
		{ "to", "2026-11-23T11:00", -EINVAL },
		/* What was refused was not given. */
		{ "to", "2026-11-23T11:00Z", 0 },
		{ "last", "1h", 0 },
		{ "life", "", -EINVAL },
		{ "by", "comm", 0 },
		{ "by", "exe", 0 },
		{ "drop_marks", "2", -EINVAL },
		{ "inline", "none", -EINVAL },
		{ "format", "none", -EINVAL },
		{ "diff", "1h", -EINVAL },
		{ "diff", "1h..2h", -EINVAL },
		{ "diff", "1h..", -EINVAL },
		{ "diff", "..1h", -EINVAL },
		{ "diff", "4h..30m", 0 },
		{ "diff", "4h..3h", -EEXIST },
		{ "comm", "a", 0 },
		{ "comm", "b", 0 },
		{ "not-comm", "c", 0 },
		{ "type", "waits", -EINVAL },
		{ "type", "", -EINVAL },
		{ "type", "wall", 0 },
		{ "type", "cpu", -EEXIST },
		{ "colour", "red", -ENOENT },
		{ "", "red", -ENOENT },
		{ "not-from", "1", -ENOENT },
	};
	struct reporter_request *r = request();
	const char *want;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(reporter_request_set(r, cases[i].key,
						      cases[i].value, &want),
				 cases[i].err);
		if (cases[i].err == -EINVAL)
			assert_non_null(want);
	}
	/* The later end of both spans. */
	assert_int_equal(reporter_request_end(r), NOW - 1800 * S);
	reporter_request_free(r);
}

static void the_past_is_known(void **state)
{
	static const struct {
		const char *key, *value, *past;
	} cases[] = {
		{ "from", "-1s", "from" },   { "to", "0", "to" },
		{ "last", "1s", "last" },    { "life", "1", "life" },
		{ "exit", "ok", "exit" },    { "argv", "x", "argv" },
		{ "comm", "x", NULL },	     { "by", "comm", NULL },
		{ "by", "tree", "by tree" }, { "diff", "2h..1h", "diff" },
	};
	struct reporter_request *r;
	const char *want, *past;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		r = request();
		assert_int_equal(reporter_request_set(r, cases[i].key,
						      cases[i].value, &want),
				 0);
		past = reporter_request_past(r);
		if (cases[i].past)
			assert_string_equal(past, cases[i].past);
		else
			assert_null(past);
		reporter_request_free(r);
	}
}

/* Of an archive without a window: how a request fails. */
static void runs_that_fail(void **state)
{
	static const struct {
		const char *key[2], *value[2];
		int err;
		const char *why;
	} cases[] = {
		{ { "from", "to" }, { "-1h", "-2h" }, -EINVAL, "not before" },
		{ { "last", "to" }, { "1h", "-2h" }, -EINVAL, "exclude" },
		{ { "last", "life" }, { "1h", "1" }, -EINVAL, "exclude" },
		{ { "last" }, { "1h" }, -ENODATA, "no window of that time" },
		{ { "life" }, { "1" }, -ENOENT, "no catalog" },
		{ { "exit" }, { "ok" }, -ENOENT, "no catalog" },
		{ { "by" }, { "tree" }, -ENOENT, "no catalog" },
		/* For these the catalog is not needed. */
		{ { "pid" }, { "1" }, -ENODATA, "no window" },
		/* Waits are of images, and their frames are no code. */
		{ { "type", "tid" }, { "wall", "1" }, -EINVAL, "tid: only" },
		{ { "thread", "type" }, { "x", "wait" }, -EINVAL, "thread: " },
		{ { "type", "drop_marks" },
		  { "runqueue", "1" },
		  -EINVAL,
		  "drop_marks: only of type cpu" },
		{ { "type", "tid" }, { "cpu", "1" }, -ENODATA, "no window" },
	};
	char dir[] = "/tmp/test_request.XXXXXX";
	struct reporter_request_run run = { .archive = dir };
	struct reporter_query *q;
	struct reporter_request *r;
	const char *want;

	assert_non_null(mkdtemp(dir));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		r = request();
		for (size_t k = 0; k < 2 && cases[i].key[k]; k++)
			assert_int_equal(
				reporter_request_set(r, cases[i].key[k],
						     cases[i].value[k], &want),
				0);
		assert_int_equal(reporter_request_run(r, &run, &q),
				 cases[i].err);
		assert_null(q);
		assert_non_null(strstr(run.why, cases[i].why));
		reporter_request_free(r);
	}
	assert_int_equal(rmdir(dir), 0);
	r = request();
	assert_int_equal(reporter_request_run(r, &run, &q), -ENOENT);
	assert_non_null(strstr(run.why, dir));
	reporter_request_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keys),
		cmocka_unit_test(the_past_is_known),
		cmocka_unit_test(runs_that_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
