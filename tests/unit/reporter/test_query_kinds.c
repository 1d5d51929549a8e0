// SPDX-License-Identifier: Apache-2.0
/* Waits, the run queue and wall time, of profiles of CPU time and of waits. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "reporter/reporter.h"
#include "tests/unit/reporter/test_query_pb.h"

#define NAMES_MAX 64

/* A profile, and its strings so far; they are written at its end. */
struct made {
	struct msg body;
	const char *names[NAMES_MAX];
	size_t n;
	uint64_t functions;
};

static uint64_t name_of(struct made *m, const char *s)
{
	for (size_t i = 0; i < m->n; i++)
		if (!strcmp(m->names[i], s))
			return i;
	assert_true(m->n < NAMES_MAX);
	m->names[m->n] = s;
	return m->n++;
}

static void begin_profile(struct made *m, const char *const *types, size_t n)
{
	memset(m, 0, sizeof(*m));
	name_of(m, "");
	for (size_t i = 0; i < n; i++) {
		struct msg type = { .len = 0 };

		number(&type, 1, name_of(m, types[i]));
		/* A number of things is a plural. */
		number(&type, 2,
		       name_of(m, types[i][strlen(types[i]) - 1] == 's'
					  ? "count"
					  : "nanoseconds"));
		inner(&m->body, 1, &type);
	}
}

static void cpu_profile(struct made *m)
{
	static const char *const types[] = { "samples", "cpu" };

	begin_profile(m, types, ARRAY_SIZE(types));
}

static void waits_profile(struct made *m)
{
	static const char *const types[] = { "waits",	 "wait", "runqueues",
					     "runqueue", "runs", "running" };

	begin_profile(m, types, ARRAY_SIZE(types));
}

static void put_label(struct made *m, struct msg *s, const char *key,
		      const char *value)
{
	struct msg label = { .len = 0 };

	if (!value)
		return;
	number(&label, 1, name_of(m, key));
	number(&label, 2, name_of(m, value));
	inner(s, 3, &label);
}

/* A sample of one frame; values of the columns from 'first' on. */
static void put(struct made *m, const char *frame, const char *image,
		const char *reason, size_t ncolumns, size_t first,
		int64_t count, int64_t value)
{
	struct msg f = { .len = 0 }, l = { .len = 0 }, line = { .len = 0 },
		   s = { .len = 0 };
	uint64_t id = ++m->functions;

	number(&f, 1, id);
	number(&f, 2, name_of(m, frame));
	inner(&m->body, 5, &f);
	number(&line, 1, id);
	number(&l, 1, id);
	inner(&l, 4, &line);
	inner(&m->body, 4, &l);
	number(&s, 1, id);
	for (size_t i = 0; i < ncolumns; i++)
		number(&s, 2,
		       i == first	? (uint64_t)count
		       : i == first + 1 ? (uint64_t)value
					: 0);
	put_label(m, &s, "image", image);
	put_label(m, &s, "comm", image ? "cc1" : NULL);
	put_label(m, &s, "exe", image && *image != 'k' ? "/bin/cc1" : NULL);
	put_label(m, &s, "reason", reason);
	inner(&m->body, 2, &s);
}

static void sampled(struct made *m, const char *frame, const char *image,
		    int64_t ns)
{
	put(m, frame, image, NULL, 2, 0, ns / 10, ns);
}

static void waited(struct made *m, const char *reason, const char *image,
		   int64_t n, int64_t ns)
{
	static const char *const frames[][2] = { { "sleep", "[wait sleep]" },
						 { "poll", "[wait poll]" },
						 { "disk", "[wait disk]" } };
	const char *frame = "[wait]";

	for (size_t i = 0; i < ARRAY_SIZE(frames); i++)
		if (!strcmp(frames[i][0], reason))
			frame = frames[i][1];
	put(m, frame, image, reason, 6, 0, n, ns);
}

static void queued(struct made *m, const char *image, int64_t n, int64_t ns)
{
	put(m, "[runqueue woken]", image, "woken", 6, 2, n, ns);
}

static void ran(struct made *m, const char *image, int64_t cpu, int64_t beyond)
{
	put(m, "[cpu]", image, NULL, 6, 4, 3, cpu);
	if (beyond)
		put(m, "[on a CPU, not CPU time]", image, NULL, 6, 4, 0,
		    beyond);
}

static struct msg *finished(struct made *m)
{
	for (size_t i = 0; i < m->n; i++)
		bytes(&m->body, 6, m->names[i], strlen(m->names[i]));
	m->n = 0;
	return &m->body;
}

static struct reporter_query *query(enum reporter_query_kind kind)
{
	const struct reporter_query_opts opts = { .kind = kind };
	struct reporter_query *q;

	assert_int_equal(reporter_query_new(&q, &opts), 0);
	return q;
}

static int add(struct reporter_query *q, struct made *m, bool base)
{
	struct msg *p = finished(m);
	const char *what;

	return reporter_query_add(q, p->bytes, p->len, base, &what);
}

/* The rows as "name flat;", the largest first. */
static char *rows(struct reporter_query *q, const char *by)
{
	const struct reporter_query_table t = { .by = by };
	struct reporter_query_rows r;
	static char text[1024];
	size_t len = 0;

	assert_int_equal(reporter_query_select(q, NULL), 0);
	assert_int_equal(reporter_query_rows(q, &t, &r), 0);
	*text = '\0';
	for (size_t i = 0; i < r.n; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
					"%s %lld;", r.items[i].name,
					(long long)r.items[i].flat);
	reporter_query_rows_fini(&r);
	return text;
}

static char *types(struct reporter_query *q)
{
	static char text[128];
	struct strbuf sb = STRBUF_INIT;

	reporter_query_types(q, &sb);
	snprintf(text, sizeof(text), "%s", strbuf_str(&sb));
	strbuf_fini(&sb);
	return text;
}

/* Two images: a with samples, b without any. */
static void waits_of_two(struct made *m)
{
	waits_profile(m);
	waited(m, "sleep", "a", 5, 1000);
	queued(m, "a", 2, 30);
	ran(m, "a", 100, 7);
	waited(m, "disk", "b", 1, 400);
	ran(m, "b", 9, 0);
}

static void samples_of_one(struct made *m)
{
	cpu_profile(m);
	sampled(m, "work", "a", 20);
	sampled(m, "main", "a", 10);
	sampled(m, "leaf", "a", 10);
}

/* --- tests ------------------------------------------------------------------------ */

static void words(void **state)
{
	enum reporter_query_kind kind;

	assert_int_equal(reporter_query_kind_parse("wall", &kind), 0);
	assert_int_equal(kind, REPORTER_QUERY_WALL);
	assert_string_equal(reporter_query_kind_word(kind), "wall");
	assert_int_equal(reporter_query_kind_parse("", &kind), -EINVAL);
	assert_int_equal(reporter_query_kind_parse("waits", &kind), -EINVAL);
}

static void a_kind_has_its_columns_only(void **state)
{
	struct reporter_query *q = query(REPORTER_QUERY_WAIT);
	struct made m;

	waits_of_two(&m);
	assert_int_equal(add(q, &m, false), 0);
	assert_int_equal(reporter_query_end(q), 0);
	assert_string_equal(rows(q, "function"),
			    "[wait sleep] 1000;[wait disk] 400;");
	assert_string_equal(types(q), "waits, wait");
	reporter_query_free(q);
	q = query(REPORTER_QUERY_RUNQUEUE);
	waits_of_two(&m);
	assert_int_equal(add(q, &m, false), 0);
	assert_string_equal(rows(q, "function"), "[runqueue woken] 30;");
	assert_string_equal(types(q), "runqueues, runqueue");
	reporter_query_free(q);
}

static void without_waits_there_is_no_other_kind(void **state)
{
	struct reporter_query *q = query(REPORTER_QUERY_WAIT);
	struct made m;

	samples_of_one(&m);
	assert_int_equal(add(q, &m, false), -EBADMSG);
	reporter_query_free(q);
	q = query(REPORTER_QUERY_WALL);
	samples_of_one(&m);
	assert_int_equal(add(q, &m, false), 0);
	assert_int_equal(reporter_query_end(q), -ENODATA);
	reporter_query_free(q);
}

static void wall_time_adds_up(void **state)
{
	struct reporter_query *q = query(REPORTER_QUERY_WALL);
	struct made m;

	samples_of_one(&m);
	assert_int_equal(add(q, &m, false), 0);
	waits_of_two(&m);
	assert_int_equal(add(q, &m, false), 0);
	assert_int_equal(reporter_query_end(q), 0);
	assert_string_equal(types(q), "wall");
	/* 100 ns of a in proportion to its samples. */
	assert_string_equal(rows(q, "function"),
			    "[wait sleep] 1000;[wait disk] 400;work 50;"
			    "[runqueue woken] 30;leaf 25;main 25;"
			    "[cpu not sampled] 9;[on a CPU, not CPU time] 7;");
	assert_string_equal(rows(q, "image"), "a 1137;b 409;");
	/* Once made, it is what it is. */
	assert_int_equal(reporter_query_end(q), 0);
	samples_of_one(&m);
	assert_int_equal(add(q, &m, false), -EBADMSG);
	reporter_query_free(q);
}

/* No nanosecond is lost to rounding, also of what is subtracted. */
static void wall_time_is_exact(void **state)
{
	static const int64_t cpu[] = { 1, 7, 1000003, 4000000000000000007 };
	struct made m;

	for (size_t i = 0; i < 2 * ARRAY_SIZE(cpu); i++) {
		struct reporter_query *q = query(REPORTER_QUERY_WALL);
		bool base = i % 2;
		char want[64];

		cpu_profile(&m);
		sampled(&m, "x", "a", 333333333);
		sampled(&m, "y", "a", 10);
		sampled(&m, "z", "a", 4000000000000000000);
		assert_int_equal(add(q, &m, base), 0);
		waits_profile(&m);
		ran(&m, "a", cpu[i / 2], 0);
		assert_int_equal(add(q, &m, base), 0);
		assert_int_equal(reporter_query_end(q), 0);
		snprintf(want, sizeof(want), "a %s%lld;", base ? "-" : "",
			 (long long)cpu[i / 2]);
		assert_string_equal(rows(q, "image"), want);
		reporter_query_free(q);
	}
}

static void images_without_an_account_share_that_of_no_image(void **state)
{
	struct reporter_query *q = query(REPORTER_QUERY_WALL);
	struct made m;

	cpu_profile(&m);
	sampled(&m, "x", "a", 10);
	sampled(&m, "y", "b", 30);
	assert_int_equal(add(q, &m, false), 0);
	waits_profile(&m);
	ran(&m, NULL, 200, 0);
	assert_int_equal(add(q, &m, false), 0);
	assert_int_equal(reporter_query_end(q), 0);
	assert_string_equal(rows(q, "function"), "y 150;x 50;");
	reporter_query_free(q);
	/* Without that one their samples stay as they are. */
	q = query(REPORTER_QUERY_WALL);
	cpu_profile(&m);
	sampled(&m, "x", "a", 10);
	assert_int_equal(add(q, &m, false), 0);
	waits_profile(&m);
	waited(&m, "disk", "b", 1, 5);
	assert_int_equal(add(q, &m, false), 0);
	assert_int_equal(reporter_query_end(q), 0);
	assert_string_equal(rows(q, "function"), "x 10;[wait disk] 5;");
	reporter_query_free(q);
}

static void labels_are_left_out_after_the_join(void **state)
{
	struct reporter_query_opts opts = { .kind = REPORTER_QUERY_WALL,
					    .prefix = "p_" };
	struct reporter_query *q;
	struct made m;

	assert_int_equal(reporter_labels_parse("comm", &opts.without), 0);
	assert_int_equal(reporter_query_new(&q, &opts), 0);
	samples_of_one(&m);
	assert_int_equal(add(q, &m, false), 0);
	waits_of_two(&m);
	assert_int_equal(add(q, &m, false), 0);
	assert_int_equal(reporter_query_end(q), 0);
	assert_string_equal(rows(q, "image"), "[no image] 1546;");
	assert_string_equal(rows(q, "p_comm"), "cc1 1546;");
	reporter_query_free(q);
}

/* The answer of a server is of its kind already. */
static void an_answer_stays_as_it_is(void **state)
{
	static const enum reporter_query_kind kinds[] = {
		REPORTER_QUERY_WAIT, REPORTER_QUERY_RUNQUEUE,
		REPORTER_QUERY_WALL
	};
	struct reporter_query *q, *again;
	const char *what;
	char want[1024];
	struct made m;
	void *data;
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		q = query(kinds[i]);
		waits_of_two(&m);
		assert_int_equal(add(q, &m, false), 0);
		assert_int_equal(reporter_query_end(q), 0);
		assert_int_equal(reporter_query_data(q, REPORTER_QUERY_PPROF,
						     REPORTER_RAW, &data, &len),
				 0);
		snprintf(want, sizeof(want), "%s", rows(q, "function"));
		again = query(kinds[i]);
		assert_int_equal(
			reporter_query_add(again, data, len, false, &what), 0);
		assert_int_equal(reporter_query_end(again), 0);
		assert_string_equal(rows(again, "function"), want);
		reporter_query_free(again);
		reporter_query_free(q);
		free(data);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words),
		cmocka_unit_test(a_kind_has_its_columns_only),
		cmocka_unit_test(without_waits_there_is_no_other_kind),
		cmocka_unit_test(wall_time_adds_up),
		cmocka_unit_test(wall_time_is_exact),
		cmocka_unit_test(
			images_without_an_account_share_that_of_no_image),
		cmocka_unit_test(labels_are_left_out_after_the_join),
		cmocka_unit_test(an_answer_stays_as_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
