// SPDX-License-Identifier: Apache-2.0
/* libquark: rules, from text and by calls, and what they decide. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "processmanager/quark/rules.c"
#include "processmanager/quark/rules_parse.c"

static struct quark_ruleset rs;
static char err[256];

static int setup(void **state)
{
	quark_ruleset_init(&rs);
	return 0;
}

static int teardown(void **state)
{
	quark_ruleset_clear(&rs);
	return 0;
}

static int parse(const char *text)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	int ret;

	assert_non_null(f);
	ret = quark_ruleset_parse_append(&rs, f, err, sizeof(err));
	fclose(f);
	return ret;
}

static struct quark_process proc = {
	.pid = 10,
	.proc_ppid = 9,
	.proc_uid = 1000,
	.proc_gid = 100,
	.proc_sid = 8,
	.comm = "cc1",
	.exe = (char *)"/usr/lib/gcc/cc1",
};
static const struct quark_event event = { .process = &proc };

/* The number of the rule that decides, -1 for none. */
static int decides(void)
{
	struct quark_rule *r = quark_ruleset_match(&rs, &event);

	return r ? (int)r->number : -1;
}

static void test_each_field(void **state)
{
	static const struct {
		const char *yes, *no;
	} cases[] = {
		{ "process.pid 10", "process.pid 11" },
		{ "process.ppid 9", "process.ppid 10" },
		{ "process.uid 1000", "process.uid 0" },
		{ "process.gid 100", "process.gid 0" },
		{ "process.sid 8", "process.sid 0" },
		{ "process.comm cc1", "process.comm cc" },
		{ "process.exe /usr/lib/*", "process.exe /usr/lib" },
		{ "process.exe */cc1", "process.exe cc1" },
		{ "process.filename \"/usr/lib/gcc/cc1\"",
		  "process.filename /opt/*" },
		{ "any", "file.path *" },
	};
	char text[256];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		snprintf(text, sizeof(text), "drop on %s\npass on %s\n",
			 cases[i].no, cases[i].yes);
		assert_int_equal(parse(text), 0);
		assert_int_equal(rs.n_rules, 2);
		assert_int_equal(decides(), 1);
		quark_ruleset_clear(&rs);
	}
}

static void test_first_wins(void **state)
{
	assert_int_equal(parse("# none of this counts\n\n"
			       "drop on process.uid 0 # root\n"
			       "pass on process.uid 1000, process.comm cc1\n"
			       "drop on any"),
			 0);
	assert_int_equal(rs.n_rules, 3);
	assert_int_equal(rs.rules[1].n_fields, 2);
	assert_int_equal(decides(), 1);
	assert_int_equal(rs.rules[0].evals, 1);
	assert_int_equal(rs.rules[0].hits, 0);
	assert_int_equal(rs.rules[1].hits, 1);
	assert_int_equal(rs.rules[2].evals, 0);
	/* All fields, not one of them. */
	quark_ruleset_clear(&rs);
	assert_int_equal(parse("drop on process.uid 1000 process.comm x"), 0);
	assert_int_equal(decides(), -1);
}

static void test_poison(void **state)
{
	assert_int_equal(parse("poison 4 on process.comm cc1\n"
			       "poison 8 on poison 4\n"
			       "drop on poison 8\n"
			       "poison 16 on any\n"),
			 0);
	/* Later rules match poison; a decision ends the rules. */
	assert_int_equal(quark_ruleset_poison(&rs, &event), 4 | 8);
	assert_int_equal(decides(), -1);
	proc.poison_tag = 4 | 8;
	assert_int_equal(decides(), 2);
	proc.poison_tag = 0;
}

static void test_quotes(void **state)
{
	static char odd[] = "/a b/c\"#,\\";

	assert_int_equal(parse("pass on process.exe \"/a b/c\\\"#,\\\\\"\n"
			       "drop on \\\n  process.comm a\\ b\\,\\#\n"),
			 0);
	assert_string_equal(rs.rules[0].fields[0].path, "/a b/c\"#,\\");
	assert_string_equal(rs.rules[1].fields[0].comm, "a b,#");
	proc.exe = odd;
	assert_int_equal(decides(), 0);
	proc.exe = NULL;
	assert_int_equal(decides(), -1);
	proc.exe = (char *)"/usr/lib/gcc/cc1";
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *where;
	} cases[] = {
		{ "allow on any", "line 1, column 1: pass, drop" },
		{ "\n\n  drop any", "line 3, column 8: \"on\"" },
		{ "drop on", "line 1, column 8: a field" },
		{ "drop on process.pid", "line 1, column 20: a number" },
		{ "drop on process.pid x", "line 1, column 21: \"x\"" },
		{ "drop on process.pid -1", "line 1, column 21:" },
		{ "drop on process.pid 4294967296", "line 1, column 21:" },
		{ "drop on process.pid 1x", "line 1, column 21:" },
		{ "drop on process.foo 1",
		  "line 1, column 9: \"process.foo\"" },
		{ "drop on process.pid 1,,", "line 1, column 23:" },
		{ "drop on process.pid 1,", "line 1, column 23: a field" },
		{ "drop on , process.pid 1", "line 1, column 9: a field" },
		{ "drop on any x", "line 1, column 13:" },
		{ "poison on any", "line 1, column 8: \"on\"" },
		{ "poison 0 on any", "line 1, column" },
		{ "drop on process.exe \"abc\n", "line 1, column 21: a quote" },
		{ "drop on process.exe \"abc", "line 1, column 21: a quote" },
		{ "drop on process.exe \"abc\n\"",
		  "line 1, column 21: a quote" },
		{ "drop on process.exe abc\\", "line 1, column 21: a back" },
		{ "drop on process.exe", "line 1, column 20: a pattern" },
		{ "drop on process.comm 0123456789abcdef",
		  "line 1, column 22: a name" },
		{ "pass on any\ndrop on any\nx", "line 3, column 1:" },
	};
	size_t i;

	assert_int_equal(parse("pass on any"), 0);
	for (i = 0; i < ARRAY_SIZE(cases); i++) {
		errno = 0;
		assert_int_equal(parse(cases[i].text), -1);
		assert_int_equal(errno, EINVAL);
		if (strncmp(err, cases[i].where, strlen(cases[i].where)))
			fail_msg("%s: %s", cases[i].text, err);
		/* A file with an error adds no rules. */
		assert_int_equal(rs.n_rules, 1);
	}
	/* A second file is appended. */
	assert_int_equal(parse("drop on any"), 0);
	assert_int_equal(rs.n_rules, 2);
	assert_int_equal(rs.rules[1].number, 1);
	/* Without room for the message nothing is written. */
	assert_int_equal(quark_ruleset_parse_text(&rs, "x", 1, NULL, 0), -1);
	assert_int_equal(quark_ruleset_parse_text(&rs, "x", 1, err, 5), -1);
}

static void test_limits(void **state)
{
	static char text[TEXT_MAX + 1];
	FILE *f;

	/* Lines of other systems, and a last one without an end. */
	assert_int_equal(parse("pass on any\r\n\r\ndrop on any\r"), 0);
	assert_int_equal(rs.n_rules, 2);
	assert_int_equal(parse(""), 0);
	assert_int_equal(parse("pass on process.comm \"\""), 0);
	assert_int_equal(quark_ruleset_parse_text(&rs,
						  "drop on process.exe a\0", 22,
						  err, sizeof(err)),
			 -1);
	assert_string_equal(err, "line 1, column 21: a NUL character");
	/* The longest word, and one that is longer. */
	memset(text, 'x', sizeof(text));
	memcpy(text, "pass on process.exe ", 20);
	assert_int_equal(quark_ruleset_parse_text(&rs, text, 20 + WORD_MAX - 1,
						  err, sizeof(err)),
			 0);
	assert_int_equal(quark_ruleset_parse_text(&rs, text, 20 + WORD_MAX, err,
						  sizeof(err)),
			 -1);
	assert_string_equal(err, "line 1, column 21: a word is too long");
	/* The shortest file that is too long, all comment. */
	text[0] = '#';
	f = fmemopen(text, sizeof(text), "r");
	assert_non_null(f);
	errno = 0;
	assert_int_equal(quark_ruleset_parse_append(&rs, f, err, sizeof(err)),
			 -1);
	assert_int_equal(errno, EFBIG);
	assert_string_equal(err, "more than 1048576 bytes");
	fclose(f);
	f = fopen("/", "re");
	assert_non_null(f);
	assert_int_equal(quark_ruleset_parse_append(&rs, f, err, sizeof(err)),
			 -1);
	assert_int_equal(errno, EIO);
	fclose(f);
	assert_int_equal(rs.n_rules, 4);
}

static void test_calls(void **state)
{
	struct quark_rule_field f = { .code = QUARK_RF_PROCESS_UID };
	char pattern[] = "/usr/*";
	struct quark_rule *r;

	r = quark_ruleset_append_rule(&rs, QUARK_RA_DROP, 0);
	assert_non_null(r);
	f.id = 1000;
	assert_int_equal(quark_rule_match_field(r, f), 0);
	f.code = QUARK_RF_PROCESS_EXE;
	f.path = pattern;
	assert_int_equal(quark_rule_match_field(r, f), 0);
	memset(pattern, 'x', sizeof(pattern) - 1); /* it was copied */
	assert_int_equal(decides(), 0);
	f.path = NULL;
	assert_int_equal(quark_rule_match_field(r, f), -1);
	f.code = 0;
	assert_int_equal(quark_rule_match_field(r, f), -1);
	f.code = QUARK_RF_PROCESS_PID | QUARK_RF_PROCESS_UID;
	assert_int_equal(quark_rule_match_field(r, f), -1);
	assert_null(quark_ruleset_append_rule(&rs, QUARK_RA_INVALID, 0));
	assert_null(quark_ruleset_append_rule(&rs, QUARK_RA_POISON, 0));
	assert_null(quark_ruleset_append_rule(&rs, QUARK_RA_DROP, 1));
	assert_null(quark_ruleset_append_rule(&rs, 4, 0));
}

/* An uninitialised set, and one that has rules already. */
static void test_parse_initialises(void **state)
{
	char text[] = "drop on any\n", wrong[] = "pass on any\nx";
	FILE *f = fmemopen(text, strlen(text), "r");

	memset(&rs, 0x5a, sizeof(rs));
	assert_int_equal(quark_ruleset_parse(&rs, f, err, sizeof(err)), 0);
	fclose(f);
	assert_int_equal(rs.n_rules, 1);
	assert_int_equal(rs.rules[0].number, 0);
	assert_int_equal(decides(), 0);
	quark_ruleset_clear(&rs);
	memset(&rs, 0x5a, sizeof(rs));
	f = fmemopen(wrong, strlen(wrong), "r");
	assert_int_equal(quark_ruleset_parse(&rs, f, err, sizeof(err)), -1);
	fclose(f);
	assert_int_equal(rs.n_rules, 0);
	assert_null(rs.rules);
}

/* Only '*' is special. */
static void test_patterns(void **state)
{
	static const struct {
		const char *pattern, *path;
		bool match;
	} v[] = {
		{ "/bin/sh", "/bin/sh", true },
		{ "/bin/sh", "/bin/sh2", false },
		{ "/bin/*", "/bin/a/b", true },
		{ "/bin/*", "/bin/", true },
		{ "/bin/*", "/bin", false },
		{ "*/sh", "/bin/sh", true },
		{ "*/sh", "/bin/shx", false },
		{ "*", "", true },
		{ "/a*b*c", "/abbcbc", true },
		{ "/a*b*c", "/acb", false },
		{ "/a*a", "/a", false },
		{ "*a*", "/xay", true },
		{ "/opt/[ab]?", "/opt/[ab]?", true },
		{ "/opt/[ab]?", "/opt/ax", false },
		{ "/x\\y", "/x\\y", true },
		{ "/\\*", "/\\z", true },
	};
	struct quark_rule_field f = { .code = QUARK_RF_PROCESS_EXE };
	struct quark_rule *r;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(v); i++)
		assert_int_equal(path_matches(v[i].pattern, v[i].path),
				 v[i].match);
	r = quark_ruleset_append_rule(&rs, QUARK_RA_DROP, 0);
	f.path = "/a/**/b";
	errno = 0;
	assert_int_equal(quark_rule_match_field(r, f), -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(parse("pass on file.path /a/**"), -1);
	assert_string_equal(err, "line 1, column 19: \"**\" is in a pattern");
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_each_field), T(test_first_wins),
		T(test_poison),	    T(test_quotes),
		T(test_errors),	    T(test_limits),
		T(test_calls),	    T(test_parse_initialises),
		T(test_patterns),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
