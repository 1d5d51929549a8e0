// SPDX-License-Identifier: Apache-2.0
/* JSON as it is written: another's parser has to read it, whatever is in it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "reporter/jsonw.h"

static struct strbuf sb;
static struct jsonw w;

static int setup(void **state)
{
	w = (struct jsonw){ .sb = &sb };
	return 0;
}

static int teardown(void **state)
{
	strbuf_fini(&sb);
	return 0;
}

static void commas_stand_between(void **state)
{
	jsonw_open(&w, '{');
	jsonw_key(&w, "a");
	jsonw_int(&w, 0);
	jsonw_key(&w, "b");
	jsonw_open(&w, '[');
	jsonw_text(&w, "x", 1);
	jsonw_open(&w, '{');
	jsonw_close(&w, '}');
	jsonw_open(&w, '[');
	jsonw_close(&w, ']');
	jsonw_bool(&w, true);
	jsonw_bool(&w, false);
	jsonw_close(&w, ']');
	jsonw_key(&w, "c");
	jsonw_real(&w, 0.25);
	jsonw_close(&w, '}');
	assert_string_equal(
		strbuf_str(&sb),
		"{\"a\":0,\"b\":[\"x\",{},[],true,false],\"c\":0.25}");
}

static void numbers_are_whole(void **state)
{
	jsonw_open(&w, '[');
	jsonw_int(&w, 10);
	jsonw_int(&w, 1234567890123456789ULL);
	jsonw_int(&w, UINT64_MAX);
	jsonw_real(&w, 1e-9);
	jsonw_real(&w, 123456.75);
	jsonw_close(&w, ']');
	assert_string_equal(
		strbuf_str(&sb),
		"[10,1234567890123456789,18446744073709551615,1e-09,123456.75]");
}

static void text(const char *s, size_t len, const char *want)
{
	strbuf_reset(&sb);
	w.more = false;
	jsonw_text(&w, s, len);
	assert_string_equal(strbuf_str(&sb), want);
}

static void texts_are_escaped(void **state)
{
	text("", 0, "\"\"");
	text("plain", 5, "\"plain\"");
	text("plain", 3, "\"pla\"");
	text("a\"b\\c", 5, "\"a\\\"b\\\\c\"");
	text("\n\x01\x1f\x7f", 4, "\"\\u000a\\u0001\\u001f\\u007f\"");
	text("\0x", 2, "\"\\u0000x\"");
	text("\xc3\xa4\xf0\x9f\x90\xa7", 6, "\"\xc3\xa4\xf0\x9f\x90\xa7\"");
	/* alone, overlong, a surrogate, beyond the last, cut by its length */
	text("\xa4z", 2, "\"\xef\xbf\xbdz\"");
	text("\xc0\xaf", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	text("\xed\xa0\x80", 3, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	text("\xf4\x90\x80\x80", 4,
	     "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\"");
	text("\xc3\xa4", 1, "\"\xef\xbf\xbd\"");
}

/* Whatever a process calls itself. */
static void anything_can_be_read(void **state)
{
	unsigned int seed = 1;
	char bytes[65] = "";
	size_t i, k, n;
	json_t *v;

	for (i = 0; i < 20000; i++) {
		n = rand_r(&seed) % 64;
		for (k = 0; k < n; k++)
			bytes[k] = rand_r(&seed) >> 4;
		bytes[n] = '\0';
		strbuf_reset(&sb);
		w.more = false;
		jsonw_open(&w, '[');
		jsonw_text(&w, bytes, n);
		jsonw_close(&w, ']');
		v = json_loadb(sb.data, sb.len, JSON_ALLOW_NUL, NULL);
		if (!v)
			fail_msg("%s", sb.data);
		assert_true(json_is_string(json_array_get(v, 0)));
		json_decref(v);
	}
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(commas_stand_between),
		T(numbers_are_whole),
		T(texts_are_escaped),
		T(anything_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
