// SPDX-License-Identifier: Apache-2.0
/*
 * libcurl: it is loaded by its first user, not with the program, and options of each
 * type of value reach it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/libcurl.h"

#define TEXT "0123456789"

static bool is_mapped(const char *library)
{
	FILE *f = fopen("/proc/self/maps", "re");
	bool found = false;
	char line[512];

	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found |= strstr(line, library) != NULL;
	fclose(f);
	return found;
}

static void it_is_loaded_by_its_first_user(void **state)
{
	const char *why = NULL;

	assert_false(is_mapped("/libcurl"));
	assert_int_equal(libcurl_load(&why), 0);
	assert_true(is_mapped("/libcurl"));
	assert_int_equal(libcurl_load(&why), 0);
	assert_null(why);
}

static size_t curl_on_body(char *data, size_t size, size_t n, void *arg)
{
	strbuf_add(arg, data, size * n);
	return size * n;
}

static void options_and_results_have_their_types(void **state)
{
	char path[] = "/tmp/test_libcurl.XXXXXX", url[64];
	struct strbuf body = STRBUF_INIT;
	int fd = mkstemp(path);
	const char *why;
	curl_off_t size = 0;
	CURL *c;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, TEXT, strlen(TEXT)), strlen(TEXT));
	close(fd);
	snprintf(url, sizeof(url), "file://%s", path);
	assert_int_equal(libcurl_load(&why), 0);
	c = curl_easy_init();
	assert_non_null(c);
	assert_int_equal(curl_easy_setopt(c, CURLOPT_URL, url), CURLE_OK);
	assert_int_equal(curl_easy_setopt(c, CURLOPT_WRITEDATA, &body),
			 CURLE_OK);
	assert_int_equal(curl_easy_setopt(c, CURLOPT_WRITEFUNCTION,
					  curl_on_body),
			 CURLE_OK);
	assert_int_equal(curl_easy_setopt(c, CURLOPT_RESUME_FROM_LARGE,
					  (curl_off_t)6),
			 CURLE_OK);
	assert_int_equal(curl_easy_perform(c), CURLE_OK);
	assert_int_equal(body.len, 4);
	assert_memory_equal(body.data, "6789", 4);
	assert_int_equal(curl_easy_getinfo(c, CURLINFO_SIZE_DOWNLOAD_T, &size),
			 CURLE_OK);
	assert_int_equal(size, 4);
	/* Without a body: a long. */
	body.len = 0;
	assert_int_equal(curl_easy_setopt(c, CURLOPT_NOBODY, 1L), CURLE_OK);
	assert_int_equal(curl_easy_perform(c), CURLE_OK);
	assert_null(memmem(body.data, body.len, "789", 3));
	curl_easy_cleanup(c);
	strbuf_fini(&body);
	unlink(path);
}

static void text_is_escaped(void **state)
{
	const char *why;
	char *text;

	assert_int_equal(libcurl_load(&why), 0);
	text = curl_easy_escape(NULL, "a b/c", 0);
	assert_string_equal(text, "a%20b%2Fc");
	curl_free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(it_is_loaded_by_its_first_user),
		cmocka_unit_test(options_and_results_have_their_types),
		cmocka_unit_test(text_is_escaped),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("libcurl", tests, NULL, NULL);
}
