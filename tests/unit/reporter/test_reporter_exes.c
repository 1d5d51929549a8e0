// SPDX-License-Identifier: Apache-2.0
/* Executables over HTTP: their lines, and the lookup by id. */
#include "tests/unit/reporter/test_reporter_client.h"

#include <jansson.h>

#include "reporter/ledger/ledger.h"

#define BUILD_ID "abcdabcdabcdabcdabcdabcdabcdabcdabcdabcd"
#define FILE_ID "0123456789abcdef00112233445566ff"

static struct pm_exe_info a_program(void)
{
	struct pm_exe_info i = {
		.path = "/usr/bin/\"al\xff"
			"pha\"",
		.base = "alpha",
		.opened = true,
		.held = true,
		.mapped = 7,
		.short_id = 0x0123456789abcdefULL,
		.rows = 0,
		.names = -ENODATA,
		.sources = { [SYMBOLIZER_SOURCE_NONE] = 3,
			     [SYMBOLIZER_SOURCE_DYNSYM] = 12 },
		.ident = { .build_id_len = 20,
			   .file_id = { 0x01, 0x23, 0x45, 0x67, 0x89, 0xab,
					0xcd, 0xef, 0x00, 0x11, 0x22, 0x33,
					0x44, 0x55, 0x66, 0xff } },
	};

	for (int k = 0; k < 20; k++)
		i.ident.build_id[k] = k % 2 ? 0xcd : 0xab;
	return i;
}

static json_t *line_of(const struct pm_exe_info *info)
{
	struct pm_exe exe = { .info = *info };
	struct strbuf sb = STRBUF_INIT;
	json_error_t err;
	json_t *o;

	ledger_executable(&exe, &sb);
	assert_int_equal(sb.data[sb.len - 1], '\n');
	o = json_loadb(sb.data, sb.len - 1, JSON_REJECT_DUPLICATES, &err);
	strbuf_fini(&sb);
	assert_non_null(o);
	return o;
}

static void assert_line(const struct pm_exe_info *info, json_t *want)
{
	json_t *o = line_of(info);
	char *text = json_dumps(o, 0);

	assert_non_null(want);
	if (!json_equal(o, want))
		fail_msg("%s", text);
	free(text);
	json_decref(o);
	json_decref(want);
}

static void all_that_is_known_of_one(void **state)
{
	struct pm_exe_info i = a_program();

	assert_line(&i,
		    json_pack("{ss ss ss ss sb si ss ss s{si si}}", "file_id",
			      FILE_ID, "short_id", "0123456789abcdef",
			      "build_id", BUILD_ID, "path",
			      "/usr/bin/\"al\xef\xbf\xbdpha\"", "open", 1,
			      "mappings", 7, "rows", "yes", "names", "none",
			      "sources", "none", 3, "dynsym", 12));
}

static void what_is_not_known_is_left_out(void **state)
{
	struct pm_exe_info i = { .path = "/bin/x",
				 .rows = PM_EXE_NOT_ASKED,
				 .names = PM_EXE_NOT_ASKED,
				 .open_error = -ENOENT };

	assert_line(&i, json_pack("{ss sb si ss}", "path", "/bin/x", "open", 0,
				  "mappings", 0, "error", strerror(ENOENT)));
}

/* The path of the answer's only line; "" if there is none. */
static void assert_answer(const char *query, const char *status,
			  const char *text, size_t lines)
{
	struct strbuf sb = get_whole(query);
	const char *p;
	size_t len, n = 0;

	assert_has(&sb, status);
	assert_has(&sb, text);
	p = body(&sb, &len);
	while ((p = strchr(p, '\n'))) {
		p++;
		n++;
	}
	assert_int_equal(n, lines);
	strbuf_fini(&sb);
}

static void executables_are_found_by_any_id(void **state)
{
	struct pm_exe_info was = exes[EXE_A].info;

	exes[EXE_A].info = a_program();
	exes[EXE_B].info.rows = exes[EXE_B].info.names = PM_EXE_NOT_ASKED;
	assert_answer("/executables", "200 OK", "/usr/bin/beta", 2);
	assert_answer("/executables", "200 OK", BUILD_ID, 2);
	assert_answer("/executables?id=0123456789abcdef", "200 OK", BUILD_ID,
		      1);
	assert_answer("/executables?id=" FILE_ID, "200 OK", BUILD_ID, 1);
	assert_answer("/executables?id=" BUILD_ID, "200 OK", BUILD_ID, 1);
	exes[EXE_A].info = was;
}

static void unknown_and_malformed_ids_are_errors(void **state)
{
	assert_answer("/executables?id=fedcba9876543210", "404 Not Found",
		      "no executable with the id fedcba9876543210", 1);
	assert_answer("/executables?id=00000000000000000000000000000001",
		      "404 Not Found", "no executable", 1);
	assert_answer("/executables?id=0000000000000000", "404 Not Found",
		      "no executable", 1);
	assert_answer("/executables?id=", "400 Bad Request", "id: 16 to 40", 1);
	assert_answer("/executables?id=0123456789abcde", "400 Bad Request",
		      "id: 16 to 40", 1);
	assert_answer("/executables?id=0123456789abcdeg", "400 Bad Request",
		      "id: 16 to 40", 1);
	assert_answer("/executables?id=" BUILD_ID "ab", "400 Bad Request",
		      "id: 16 to 40", 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_that_is_known_of_one),
		cmocka_unit_test(what_is_not_known_is_left_out),
		T(executables_are_found_by_any_id),
		T(unknown_and_malformed_ids_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
