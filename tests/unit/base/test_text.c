// SPDX-License-Identifier: Apache-2.0
/* text: no untrusted text controls a terminal, or misleads its user. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/base.h"

static void shows(const char *in, size_t len, const char *want)
{
	struct strbuf sb = STRBUF_INIT;

	text_add(&sb, in, len);
	assert_string_equal(strbuf_str(&sb), want);
	strbuf_fini(&sb);
}

#define SHOWS(in, want) shows(in, sizeof(in) - 1, want)

static void text_stays_text(void **state)
{
	SHOWS("", "");
	SHOWS("cc1 -quiet 'a b' C:\\x", "cc1 -quiet 'a b' C:\\x");
	SHOWS("\xc3\xa4\xe2\x82\xac\xf0\x9f\xa6\x84 \xe4\xb8\xad",
	      "\xc3\xa4\xe2\x82\xac\xf0\x9f\xa6\x84 \xe4\xb8\xad");
}

static void control_characters_are_escaped(void **state)
{
	SHOWS("a\033[2Jb", "a\\033[2Jb");
	SHOWS("a\nb\tc\177", "a\\012b\\011c\\177");
	SHOWS("a\0b", "a\\000b");
	/* CSI and NEL of C1, in UTF-8 and as bare bytes. */
	SHOWS("a\xc2\x9bmb\xc2\x85", "a\\u{9b}mb\\u{85}");
	SHOWS("a\x9bm", "a\\233m");
}

static void marks_of_direction_are_escaped(void **state)
{
	SHOWS("a\xe2\x80\xae"
	      "b\xe2\x80\xaa",
	      "a\\u{202e}b\\u{202a}");
	SHOWS("\xe2\x81\xa6x\xe2\x81\xa9", "\\u{2066}x\\u{2069}");
	SHOWS("\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c", "\\u{200e}\\u{200f}\\u{61c}");
	SHOWS("\xe2\x80\xa8\xe2\x80\x8b\xef\xbb\xbf\xf3\xa0\x80\x81",
	      "\\u{2028}\\u{200b}\\u{feff}\\u{e0001}");
}

static void what_is_not_utf8_is_escaped(void **state)
{
	SHOWS("\xc0\x80", "\\300\\200"); /* overlong */
	SHOWS("\xe0\x82\x9b", "\\340\\202\\233");
	SHOWS("\xed\xa0\x80", "\\355\\240\\200"); /* a surrogate */
	SHOWS("\xf4\x90\x80\x80", "\\364\\220\\200\\200");
	SHOWS("\xff x", "\\377 x");
	/* Cut in the middle: the next character is not part of it. */
	SHOWS("\xe2\x82", "\\342\\202");
	SHOWS("\xe2\x82z", "\\342\\202z");
	SHOWS("\xc3\x1b", "\\303\\033");
}

static void json_keeps_its_values(void **state)
{
	static const char in[] = "{\"a\":\"\\u001b \xc2\x9b\xe2\x80\xae"
				 "\xf0\x9f\xa6\x84\xff\"}";
	struct strbuf sb = STRBUF_INIT;

	text_add_json(&sb, in, sizeof(in) - 1);
	assert_string_equal(strbuf_str(&sb), "{\"a\":\"\\u001b \\u009b\\u202e"
					     "\\ud83e\\udd84\\ufffd\"}");
	strbuf_fini(&sb);
}

static void json_strings_are_quoted(void **state)
{
	struct strbuf sb = STRBUF_INIT;

	text_add_json_string(&sb, "");
	text_add_json_string(&sb, "a\"\\/\n\x7f\xe2\x80\xae\xff\"");
	assert_string_equal(strbuf_str(&sb),
			    "\"\"\"a\\\"\\\\/\\u000a\\u007f\\u202e"
			    "\\ufffd\\\"\"");
	strbuf_fini(&sb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_stays_text),
		cmocka_unit_test(control_characters_are_escaped),
		cmocka_unit_test(marks_of_direction_are_escaped),
		cmocka_unit_test(what_is_not_utf8_is_escaped),
		cmocka_unit_test(json_keeps_its_values),
		cmocka_unit_test(json_strings_are_quoted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
