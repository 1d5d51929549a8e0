// SPDX-License-Identifier: Apache-2.0
/* The answers of a running profd, in lines, and their members as text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "profiler/cmd/lines.h"
#include "profiler/timeline/stack.h"

#define ID "3f1b6e0c9d2a47580e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f"

/* 'fn' prints 'want' for an object. */
static void prints(void (*fn)(struct strbuf *sb, const json_t *o),
		   const char *object, const char *want)
{
	json_t *o = json_loads(object, 0, NULL);
	struct strbuf sb = STRBUF_INIT;

	assert_non_null(o);
	fn(&sb, o);
	assert_string_equal(strbuf_str(&sb), want);
	strbuf_fini(&sb);
	json_decref(o);
}

static void where_is_a_container_or_a_unit(void **state)
{
	prints(lines_where, "{\"container\":\"" ID "\",\"engine\":\"docker\"}",
	       "docker:3f1b6e0c9d2a");
	prints(lines_where, "{\"container\":\"" ID "\",\"unit\":\"x.scope\"}",
	       "3f1b6e0c9d2a");
	prints(lines_where,
	       "{\"container\":\"a-long-name\",\"engine\":\"lxc\"}",
	       "lxc:a-long-name");
	prints(lines_where, "{\"unit\":\"cron.service\"}", "cron.service");
	prints(lines_where, "{\"unit\":\"\\u001b[2J.service\"}",
	       "\\033[2J.service");
	prints(lines_where, "{}", "");
}

/* A share is printed only if a sample was expected. */
static void coverage_has_its_error(void **state)
{
	prints(lines_coverage,
	       "{\"coverage\":0.98,\"coverage_deviation\":0.031}", "98%±3%");
	prints(lines_coverage, "{\"coverage\":11.7,\"coverage_deviation\":3.4}",
	       "");
	prints(lines_coverage, "{}", "");
}

static void a_status_is_a_code_or_a_signal(void **state)
{
	prints(lines_status, "{\"exit_code\":0}", "0");
	prints(lines_status, "{\"exit_code\":3}", "3");
	prints(lines_status,
	       "{\"signal\":11,\"signal_name\":\"SEGV\","
	       "\"core\":true}",
	       "SIGSEGV core");
	prints(lines_status, "{\"signal\":63}", "signal 63");
	prints(lines_status, "{}", "");
}

static void arguments_are_a_command(void **state)
{
	prints(lines_command, "{\"args\":[\"sh\",\"-c\",\"a b\"]}",
	       "sh -c a b");
	prints(lines_command, "{\"args\":[\"a\\n\\u0007\\u009bb\\u00e4\"]}",
	       "a\\012\\007\\u{9b}b\xc3\xa4");
	prints(lines_command, "{\"args\":[\"ls\",\"a\"],\"args_cut\":true}",
	       "ls a ...");
	prints(lines_command, "{\"args\":[],\"comm\":\"kworker/0:1\"}",
	       "[kworker/0:1]");
}

static void times_are_local(void **state)
{
	json_t *o = json_loads("{\"t\":\"2026-01-02T03:04:05.123456789Z\","
			       "\"bad\":\"yesterday\"}",
			       0, NULL);
	struct strbuf sb = STRBUF_INIT;

	setenv("TZ", "XYZ-2", 1);
	lines_clock(&sb, o, "t", false);
	assert_string_equal(strbuf_str(&sb), "05:04:05.123456");
	lines_clock(&sb, o, "bad", false);
	lines_clock(&sb, o, "none", false);
	assert_string_equal(strbuf_str(&sb), "05:04:05.123456");
	strbuf_reset(&sb);
	lines_clock(&sb, o, "t", true);
	assert_string_equal(strbuf_str(&sb), "2026-01-02 05:04:05.123456");
	assert_int_equal(lines_time(o, "t"), 1767323045);
	assert_int_equal(lines_time(o, "bad"), 0);
	strbuf_fini(&sb);
	json_decref(o);
}

static void a_line_is_cut_between_characters(void **state)
{
	struct strbuf sb = STRBUF_INIT;

	strbuf_puts(&sb, "head: a\xc3\xa4\xe2\x82\xac z");
	assert_int_equal(lines_width(sb.data), 11);
	lines_cut(&sb, 6, 20);
	assert_int_equal(lines_width(sb.data), 11);
	lines_cut(&sb, 6, 3);
	assert_string_equal(sb.data, "head: a\xc3\xa4\xe2\x82\xac");
	assert_int_equal(sb.len, strlen(sb.data));
	lines_cut(&sb, 6, 2);
	assert_string_equal(sb.data, "head: a\xc3\xa4");
	lines_cut(&sb, 6, 0);
	assert_string_equal(sb.data, "head: ");
	strbuf_fini(&sb);
}

/* --- the answer, in pieces --------------------------------------------------- */

static size_t nlines;

static bool count(void *arg, json_t *o)
{
	nlines++;
	return true;
}

static void an_answer_may_be_split_anywhere(void **state)
{
	const char text[] = "{\"a\":1}\n{\"b\":\"\xc3\xa4\"}\n";
	size_t step, i, n = strlen(text);

	for (step = 1; step <= n; step++) {
		struct lines l = { .line = count };

		nlines = 0;
		for (i = 0; i < n; i += step)
			assert_true(lines_body(&l, text + i, MIN(step, n - i)));
		assert_true(lines_end(&l));
		assert_int_equal(nlines, 2);
		assert_null(l.bad);
	}
}

/* An argument of 100,000 bytes, eighteen times over, is a line of megabytes. */
static void a_line_may_be_long(void **state)
{
	struct lines l = { .line = count };
	static char piece[1 << 16];
	size_t i;

	memset(piece, 'x', sizeof(piece));
	nlines = 0;
	assert_true(lines_body(&l, "{\"a\":\"", 6));
	for (i = 0; i < (32 << 20) / sizeof(piece); i++)
		assert_true(lines_body(&l, piece, sizeof(piece)));
	assert_true(lines_body(&l, "\"}\n{\"b\":1}\n", 11));
	assert_true(lines_end(&l));
	assert_int_equal(nlines, 2);
	assert_int_equal(l.skipped, 0);
}

/* A line beyond the limit is skipped, and takes no more memory than the limit. */
static void a_line_beyond_the_limit_is_skipped(void **state)
{
	struct lines l = { .line = count };
	static char piece[1 << 20];
	size_t i;

	memset(piece, 'x', sizeof(piece));
	nlines = 0;
	assert_true(lines_body(&l, "{\"a\":1}\n", 8));
	for (i = 0; i <= LINES_LONGEST / sizeof(piece); i++) {
		assert_true(lines_body(&l, piece, sizeof(piece)));
		assert_true(l.part.cap <= 2UL * LINES_LONGEST);
	}
	assert_int_equal(l.skipped, 1);
	assert_true(lines_body(&l, "y\n{\"b\":1}\n", 10));
	assert_int_equal(nlines, 2);
	assert_null(l.bad);
	assert_true(lines_body(&l, piece, 3));
	assert_false(lines_end(&l));
	assert_string_equal(l.bad, "the answer is cut short");
}

static void an_invalid_answer_is_an_error(void **state)
{
	struct lines half = { .line = count }, other = { .line = count };
	struct lines list = { .line = count };

	assert_true(lines_body(&half, "{\"a\":", 5));
	assert_false(lines_end(&half));
	assert_string_equal(half.bad, "the answer is cut short");
	assert_false(lines_body(&other, "<html>\n", 7));
	lines_end(&other);
	assert_non_null(other.bad);
	assert_false(lines_body(&list, "[1]\n", 4));
	lines_end(&list);
	assert_non_null(list.bad);
}

#define LIBC(name) \
	"{\"function\":\"" name "\",\"mapping\":\"/usr/lib/libc.so.6\"}"
#define OURS(name)                                              \
	"{\"function\":\"" name "\",\"mapping\":\"/bin/prog\"," \
	"\"file\":\"/src/prog.c\",\"line\":7}"
#define STACK(number, frames, more) \
	"{\"stack\":" number ",\"frames\":[" frames "]" more "}"

static void puts_stack(struct stack_list *l, const char *step, bool whole,
		       const char *want)
{
	json_t *o = json_loads(step, 0, NULL);
	struct strbuf sb = STRBUF_INIT;

	assert_non_null(o);
	stack_list_add(l, o);
	stack_put(l, &sb, o, 2, whole);
	assert_string_equal(strbuf_str(&sb) ?: "", want);
	strbuf_fini(&sb);
	json_decref(o);
}

static void a_stack_is_a_function_and_its_caller(void **state)
{
	struct stack_list l = { .steps = NULL };

	puts_stack(&l,
		   STACK("0",
			 LIBC("read") "," OURS("take") "," OURS(
				 "serve") "," OURS("main"),
			 ""),
		   false, "  in take < serve at prog.c:7\n");
	puts_stack(&l, "{\"stack\":0}", false,
		   "  in take < serve at prog.c:7\n");
	puts_stack(&l,
		   STACK("1", OURS("main") "," LIBC("__libc_start_main"), ""),
		   false, "  in main at prog.c:7\n");
	puts_stack(&l, STACK("2", LIBC("read") "," LIBC("start_thread"), ""),
		   false, "  in read in libc.so.6\n");
	puts_stack(&l,
		   STACK("3",
			 "{\"function\":\"runtime.futex\"},"
			 "{\"function\":\"main.work\",\"mapping\":\"/bin/go\"}",
			 ""),
		   false, "  in main.work in go\n");
	/* Names are those of a program of anyone. */
	puts_stack(&l, STACK("4", "{\"function\":\"a\\u001b[2J\"}", ""), false,
		   "  in a\\033[2J\n");
	puts_stack(&l, "{\"stack\":9}", false, "");
	puts_stack(&l, "{\"no_stack\":\"ring\"}", false,
		   "  [wait site not copied]: the ring was full\n");
	puts_stack(&l, "{\"state\":\"on\"}", false, "");
	stack_list_fini(&l);
}

static void a_whole_stack_comes_once(void **state)
{
	struct stack_list l = { .steps = NULL };

	puts_stack(&l,
		   STACK("0", LIBC("read") "," OURS("main"), ",\"cut\":true"),
		   true,
		   "  read in /usr/lib/libc.so.6\n  main at /src/prog.c:7\n"
		   "  ... and more callers\n");
	puts_stack(&l, "{\"stack\":0}", true, "  in main at prog.c:7\n");
	puts_stack(&l, STACK("1", "{\"function\":\"a\",\"inlined\":true}", ""),
		   true, "  a (inlined)\n");
	stack_list_fini(&l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_is_a_container_or_a_unit),
		cmocka_unit_test(coverage_has_its_error),
		cmocka_unit_test(a_status_is_a_code_or_a_signal),
		cmocka_unit_test(arguments_are_a_command),
		cmocka_unit_test(times_are_local),
		cmocka_unit_test(a_line_is_cut_between_characters),
		cmocka_unit_test(an_answer_may_be_split_anywhere),
		cmocka_unit_test(a_line_may_be_long),
		cmocka_unit_test(a_line_beyond_the_limit_is_skipped),
		cmocka_unit_test(an_invalid_answer_is_an_error),
		cmocka_unit_test(a_stack_is_a_function_and_its_caller),
		cmocka_unit_test(a_whole_stack_comes_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
