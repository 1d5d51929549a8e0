// SPDX-License-Identifier: Apache-2.0
/* Profiles that are merged, selected and printed; and those that are refused. */
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

#include "reporter/profile.pb-c.h"
#include "reporter/reporter.h"
#include "tests/unit/reporter/test_query_pb.h"

/* --- profiles ----------------------------------------------------------------- */

static const char *const strings[] = { "",	   "cpu",   "nanoseconds",
				       "main",	   "work",  "comm",
				       "cc1",	   "sh",    "leaf",
				       "lib+0x1f", "[anon]" };
enum {
	S_NONE,
	S_CPU,
	S_NS,
	S_MAIN,
	S_WORK,
	S_COMM,
	S_CC1,
	S_SH,
	S_LEAF,
	S_OFFSET,
	S_ANON,
};

/* Types, strings, and functions main, work, leaf with a location each: 1, 2, 3. */
static void profile(struct msg *p)
{
	struct msg type = { .len = 0 };

	p->len = 0;
	number(&type, 1, S_CPU);
	number(&type, 2, S_NS);
	inner(p, 1, &type);
	for (size_t i = 0; i < ARRAY_SIZE(strings); i++)
		bytes(p, 6, strings[i], strlen(strings[i]));
	for (uint64_t id = 1; id <= 3; id++) {
		static const uint64_t names[] = { 0, S_MAIN, S_WORK, S_LEAF };
		struct msg f = { .len = 0 }, l = { .len = 0 },
			   line = { .len = 0 };

		number(&f, 1, id);
		number(&f, 2, names[id]);
		inner(p, 5, &f);
		number(&line, 1, id);
		number(&l, 1, id);
		inner(&l, 4, &line);
		inner(p, 4, &l);
	}
}

/* The locations leaf first, as digits. */
static void sample(struct msg *p, const char *stack, int64_t value,
		   uint64_t comm)
{
	struct msg s = { .len = 0 }, label = { .len = 0 };

	for (; *stack; stack++)
		number(&s, 1, (uint64_t)(*stack - '0'));
	number(&s, 2, (uint64_t)value);
	number(&label, 1, S_COMM);
	number(&label, 2, comm);
	inner(&s, 3, &label);
	inner(p, 2, &s);
}

static struct reporter_query *query(const struct reporter_query_opts *opts)
{
	static const struct reporter_query_opts none;
	struct reporter_query *q;

	assert_int_equal(reporter_query_new(&q, opts ? opts : &none), 0);
	return q;
}

static void add(struct reporter_query *q, const struct msg *p, bool base)
{
	const char *what;

	assert_int_equal(reporter_query_add(q, p->bytes, p->len, base, &what),
			 0);
	assert_int_equal(reporter_query_select(q, NULL), 0);
}

/* The rows as "name flat cum;". */
static char *rows(struct reporter_query *q, const char *by)
{
	const struct reporter_query_table t = { .by = by, .json = true };
	struct strbuf out = STRBUF_INIT;
	static char text[1024];
	char name[64];
	long long flat, cum;
	char *line, *next;

	*text = '\0';
	assert_int_equal(reporter_query_table(q, &t, &out), 0);
	for (line = out.data; line && *line; line = next) {
		next = strchr(line, '\n') + 1;
		assert_int_equal(sscanf(line,
					"{\"name\":\"%63[^\"]\",\"flat\":%lld,"
					"\"cum\":%lld",
					name, &flat, &cum),
				 3);
		snprintf(text + strlen(text), sizeof(text) - strlen(text),
			 "%s %lld %lld;", name, flat, cum);
	}
	strbuf_fini(&out);
	return text;
}

/* --- tests ---------------------------------------------------------------------- */

static void flat_and_cum(void **state)
{
	struct reporter_query *q = query(NULL);
	struct msg p;

	profile(&p);
	sample(&p, "321", 10, S_CC1);
	sample(&p, "21", 5, S_CC1);
	/* A function that calls itself counts once. */
	sample(&p, "2221", 1, S_SH);
	add(q, &p, false);
	assert_string_equal(rows(q, "function"),
			    "leaf 10 10;work 6 16;main 0 16;");
	assert_string_equal(rows(q, "comm"), "cc1 15 15;sh 1 1;");
	reporter_query_free(q);
}

static void profiles_are_added_and_subtracted(void **state)
{
	struct reporter_query *q = query(NULL);
	struct msg p;

	profile(&p);
	sample(&p, "321", 10, S_CC1);
	add(q, &p, false);
	profile(&p);
	sample(&p, "321", 4, S_CC1);
	sample(&p, "21", 7, S_SH);
	add(q, &p, false);
	assert_string_equal(rows(q, "function"),
			    "leaf 14 14;work 7 21;main 0 21;");
	add(q, &p, true);
	assert_string_equal(rows(q, "function"),
			    "leaf 10 10;main 0 10;work 0 10;");
	reporter_query_free(q);
}

static void sums_saturate(void **state)
{
	struct reporter_query *q = query(NULL);
	char want[64];
	struct msg p;

	profile(&p);
	sample(&p, "1", INT64_MAX, S_CC1);
	sample(&p, "1", INT64_MAX, S_SH);
	add(q, &p, false);
	snprintf(want, sizeof(want), "main %lld %lld;", (long long)INT64_MAX,
		 (long long)INT64_MAX);
	assert_string_equal(rows(q, "function"), want);
	reporter_query_free(q);
}

static void terms_select(void **state)
{
	static const struct {
		const char *key[3], *value[3];
		const char *rows;
	} cases[] = {
		{ { "comm" }, { "cc1" }, "cc1 10 10;" },
		{ { "comm", "comm" }, { "cc1", "sh" }, "cc1 10 10;sh 5 5;" },
		{ { "comm" }, { "c*" }, "cc1 10 10;" },
		{ { "not-comm" }, { "c?1" }, "sh 5 5;" },
		{ { "comm" }, { "!sh" }, "cc1 10 10;" },
		{ { "comm", "not-comm" }, { "*", "sh" }, "cc1 10 10;" },
		{ { "comm", "exe" }, { "cc1", "x" }, "" },
	};
	struct reporter_query_terms t = { 0 };
	const struct reporter_query_opts opts = { .terms = &t };
	struct reporter_query *q;
	const char *want;
	struct msg p;

	profile(&p);
	sample(&p, "321", 10, S_CC1);
	sample(&p, "21", 5, S_SH);
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		for (size_t k = 0; cases[i].key[k]; k++)
			assert_int_equal(reporter_query_terms_parse(
						 &t, cases[i].key[k],
						 cases[i].value[k], &want),
					 0);
		q = query(&opts);
		add(q, &p, false);
		assert_string_equal(rows(q, "comm"), cases[i].rows);
		reporter_query_free(q);
		reporter_query_terms_fini(&t);
		memset(&t, 0, sizeof(t));
	}
}

static void terms_are_checked(void **state)
{
	static const struct {
		const char *key, *value;
		int err;
	} cases[] = {
		{ "color", "x", -ENOENT },
		{ "comm", "", -EINVAL },
		{ "comm", "!", -EINVAL },
		{ "pid", "x", -EINVAL },
		{ "pid", "!12", 0 },
		{ "pid", "-1", -EINVAL },
		{ "user", "root", -EINVAL },
		{ "user", "0", 0 },
		{ "subtree", "12", 0 },
		{ "subtree", "12-ab", 0 },
		{ "subtree", "make", -EINVAL },
		{ "exit", "ok", 0 },
		{ "exit", "fail", 0 },
		{ "exit", "!signal", 0 },
		{ "exit", "255", 0 },
		{ "exit", "256", -EINVAL },
		{ "exit", "SIGSEGV", 0 },
		{ "exit", "kill", 0 },
		{ "exit", "SIGNONE", -EINVAL },
		{ "entry", "sshd", 0 },
		{ "not-argv", "*-O2*", 0 },
		{ "under", "make", 0 },
	};
	struct reporter_query_terms t = { 0 };
	const char *want;

	assert_null(reporter_query_terms_history(&t));
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		assert_int_equal(reporter_query_terms_parse(&t, cases[i].key,
							    cases[i].value,
							    &want),
				 cases[i].err);
		if (cases[i].err == -EINVAL)
			assert_non_null(want);
	}
	assert_string_equal(reporter_query_terms_history(&t), "user");
	while (t.n < REPORTER_QUERY_TERMS_MAX)
		assert_int_equal(
			reporter_query_terms_parse(&t, "comm", "a", &want), 0);
	assert_int_equal(reporter_query_terms_parse(&t, "comm", "a", &want),
			 -E2BIG);
	reporter_query_terms_fini(&t);
}

static void labels_are_roots(void **state)
{
	const struct reporter_query_opts opts = { .roots = { "comm" },
						  .nroots = 1 };
	const struct reporter_query_table t = { .by = "function" };
	struct reporter_query *q = query(&opts);
	struct strbuf out = STRBUF_INIT;
	struct msg p;

	profile(&p);
	sample(&p, "321", 10, S_CC1);
	sample(&p, "21", 5, S_SH);
	add(q, &p, false);
	assert_string_equal(rows(q, "function"),
			    "leaf 10 10;work 5 15;cc1 0 10;main 0 15;sh 0 5;");
	assert_int_equal(reporter_query_tree(q, &t, &out), 0);
	assert_string_equal(out.data, "       cum   cum%       self\n"
				      "      10ns 66.67%          0  cc1\n"
				      "      10ns 66.67%          0  main\n"
				      "      10ns 66.67%          0  work\n"
				      "      10ns 66.67%       10ns  leaf\n"
				      "       5ns 33.33%          0  sh\n"
				      "       5ns 33.33%          0  main\n"
				      "       5ns 33.33%        5ns  work\n");
	strbuf_fini(&out);
	reporter_query_free(q);
}

/* Location 4, without a name, and location 5: both of mapping 1. */
static void with_mapping(struct msg *p, uint64_t text)
{
	const uint64_t names[] = { text, S_LEAF };
	struct msg m = { .len = 0 };

	profile(p);
	number(&m, 1, 1);
	number(&m, 2, 0x1000);
	number(&m, 3, 0x2000);
	inner(p, 3, &m);
	for (uint64_t id = 4; id <= 5; id++) {
		struct msg f = { .len = 0 }, l = { .len = 0 },
			   line = { .len = 0 };

		number(&f, 1, id);
		number(&f, 2, names[id - 4]);
		inner(p, 5, &f);
		number(&line, 1, id);
		number(&l, 1, id);
		number(&l, 2, 1);
		number(&l, 3, 0x1000 + id);
		inner(&l, 4, &line);
		inner(p, 4, &l);
	}
}

static bool says_functions(const struct reporter_query_opts *opts,
			   uint64_t text)
{
	struct reporter_query *q = query(opts);
	Perftools__Profiles__Profile *m;
	struct msg p;
	void *data;
	size_t len;
	bool says;

	with_mapping(&p, text);
	sample(&p, "51", 10, S_CC1);
	sample(&p, "451", 10, S_SH);
	add(q, &p, false);
	assert_int_equal(reporter_query_data(q, REPORTER_QUERY_PPROF,
					     REPORTER_RAW, &data, &len),
			 0);
	m = perftools__profiles__profile__unpack(NULL, len, data);
	assert_non_null(m);
	assert_int_equal(m->n_mapping, 1);
	says = m->mapping[0]->has_functions;
	perftools__profiles__profile__free_unpacked(m, NULL);
	free(data);
	reporter_query_free(q);
	return says;
}

static void has_functions_is_of_what_is_selected(void **state)
{
	struct reporter_query_terms t = { 0 };
	const struct reporter_query_opts opts = { .terms = &t };
	const char *want;

	assert_false(says_functions(NULL, S_OFFSET));
	assert_false(says_functions(NULL, S_ANON));
	assert_int_equal(reporter_query_terms_parse(&t, "comm", "cc1", &want),
			 0);
	assert_true(says_functions(&opts, S_OFFSET));
	reporter_query_terms_fini(&t);
}

static void damage_is_named(void **state)
{
	struct reporter_query *q;
	const char *what;
	struct msg p;

	for (int i = 0; i < 4; i++) {
		q = query(NULL);
		profile(&p);
		if (i == 0)
			sample(&p, "4", 1, S_CC1); /* no such location */
		else if (i == 1)
			sample(&p, "1", 1, 99); /* no such string */
		else if (i == 2)
			bytes(&p, 5, "\010\001", 2); /* function 1 again */
		else
			p.len--;
		assert_int_equal(reporter_query_add(q, p.bytes, p.len, false,
						    &what),
				 -EBADMSG);
		assert_non_null(what);
		reporter_query_free(q);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flat_and_cum),
		cmocka_unit_test(profiles_are_added_and_subtracted),
		cmocka_unit_test(sums_saturate),
		cmocka_unit_test(terms_select),
		cmocka_unit_test(terms_are_checked),
		cmocka_unit_test(labels_are_roots),
		cmocka_unit_test(has_functions_is_of_what_is_selected),
		cmocka_unit_test(damage_is_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
