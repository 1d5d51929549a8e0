// SPDX-License-Identifier: Apache-2.0
/* Lines of the ledger with any names of processes: bounded, and JSON. */
#include "tests/unit/reporter/test_reporter_ledger.h"

#define LINE_MAX_BYTES 32768
#define MANY 20480 /* bytes of arguments that the BPF programs copy */

/* The length of the first process's line, without end of line. */
static size_t line_length(const struct strbuf *sb)
{
	return strcspn(strbuf_str(sb), "\n");
}

static void check_long(struct pm_image *img)
{
	struct strbuf sb = STRBUF_INIT;
	json_t *o, *e;
	size_t i;

	processes[0] = img;
	read_table(&sb);
	processes[0] = NULL;
	assert_true(line_length(&sb) <= LINE_MAX_BYTES);
	o = line_at(sb.data, 0);
	assert_true(json_is_true(json_object_get(o, "args_cut")));
	/* The name comes first and must be present. */
	assert_string_equal(str(o, "exe"), "/usr/bin/alpha");
	assert_true(json_array_size(json_object_get(o, "args")) > 0);
	assert_int_equal(json_array_size(json_object_get(o, "images")),
			 PM_HISTORY_MAX);
	for (i = 0; i < PM_HISTORY_MAX; i++) {
		e = json_array_get(json_object_get(o, "images"), i);
		assert_string_equal(str(e, "exe"), "/usr/bin/alpha");
		assert_true(json_is_true(json_object_get(e, "args_cut")));
	}
	json_decref(o);
	strbuf_fini(&sb);
}

static void a_line_is_bounded(void **state)
{
	/* A letter, a character that JSON escapes, not UTF-8, empty. */
	static const char fills[] = { 'x', '\1', '\xff', '"', '\0' };
	struct pm_image img = make(7, PM_ALIVE), old[PM_HISTORY_MAX - 1];
	char args[MANY + 1] = "", deep[4096], was[4096];
	size_t i, k;

	img.info.cmdline = args;
	img.info.cmdline_len = MANY;
	for (i = 0; i < ARRAY_SIZE(old); i++) {
		old[i] = img;
		older[i] = &old[i];
	}
	for (k = 0; k < ARRAY_SIZE(fills); k++) {
		memset(args, fills[k], MANY);
		check_long(&img);
	}
	memset(args, 'x', MANY);
	/* Directories, too, which leave no room. */
	memset(deep, '\2', sizeof(deep));
	deep[0] = '/';
	deep[sizeof(deep) - 1] = '\0';
	memcpy(was, deep, sizeof(was));
	img.info.cwd = img.info.cgroup = deep;
	for (i = 0; i < ARRAY_SIZE(old); i++)
		old[i].info.cwd = old[i].info.cgroup = was;
	check_long(&img);
	memset(older, 0, sizeof(older));
}

static void an_event_is_bounded_too(void **state)
{
	static char args[MANY], deep[4096];
	struct quark_process qp = { .pid = 7, .exe = "/bin/long" };
	struct quark_event ev = { .events = QUARK_EV_EXEC, .process = &qp };
	const struct ledger_head head = { .id = UINT64_MAX, .host = "h" };
	struct strbuf sb = STRBUF_INIT;
	json_t *o;

	memset(args, '\3', sizeof(args) - 1);
	memset(deep, '\3', sizeof(deep) - 1);
	qp.cmdline = args;
	qp.cmdline_len = sizeof(args);
	qp.cwd = qp.cgroup = deep;
	ledger_event(&ev, &head, &sb);
	assert_true(line_length(&sb) <= LINE_MAX_BYTES);
	o = line_at(sb.data, 0);
	assert_string_equal(str(o, "process.executable.path"), "/bin/long");
	assert_true(json_is_true(json_object_get(o, "profd.args_cut")));
	assert_true(json_is_true(json_object_get(o, "cut")));
	json_decref(o);
	strbuf_fini(&sb);
}

/* Names with control characters or invalid UTF-8 are valid JSON strings. */
static void hostile_names_are_json_strings(void **state)
{
	static const char name[] = "\xc2\x9b\xe2\x80\xae\x1b[2J\n\x7f\"\\";
	static const char bad[] = "\xc0\xaf\xed\xa0\x80\xf5\x80\x80\x80";
	struct pm_image img = make(7, PM_ALIVE);
	struct strbuf sb = STRBUF_INIT;
	json_t *o;
	size_t i;

	img.info.comm = name;
	img.info.exe = bad;
	processes[0] = &img;
	read_table(&sb);
	processes[0] = NULL;
	for (i = 0; i + 1 < sb.len; i++)
		assert_true((unsigned char)sb.data[i] >= ' ');
	o = line_at(sb.data, 0);
	assert_string_equal(str(o, "comm"), name);
	/* Each byte that is not UTF-8 becomes U+FFFD. */
	assert_int_equal(strlen(str(o, "exe")), 3 * (sizeof(bad) - 1));
	json_decref(o);
	strbuf_fini(&sb);
}

static void a_table_is_read_in_pieces(void **state)
{
	struct pm_image img[5];
	struct strbuf sb = STRBUF_INIT;
	struct ledger_table *table;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(img); i++) {
		img[i] = make(10 + i, PM_ALIVE);
		processes[i] = &img[i];
	}
	table = ledger_table_new(NULL, true, 100);
	assert_true(ledger_table_read(table, 2, &sb));
	assert_int_equal(count_lines(strbuf_str(&sb)), 2);
	/* In between one process is removed and one is added. */
	img[2].process.pid = 99;
	assert_true(ledger_table_read(table, 2, &sb));
	assert_int_equal(count_lines(strbuf_str(&sb)), 3);
	assert_false(ledger_table_read(table, 2, &sb));
	assert_int_equal(count_lines(strbuf_str(&sb)), 4);
	assert_false(ledger_table_read(table, 2, &sb));
	ledger_table_free(table);
	memset(processes, 0, sizeof(processes));
	strbuf_fini(&sb);
}

static void a_process_that_exits_between_two_pieces_is_left_out(void **state)
{
	struct pm_image img[2] = { make(10, PM_ALIVE), make(11, PM_ALIVE) };
	struct strbuf sb = STRBUF_INIT;
	struct ledger_table *table;

	processes[0] = &img[0];
	processes[1] = &img[1];
	table = ledger_table_new(NULL, false, 100);
	assert_true(ledger_table_read(table, 1, &sb));
	img[1].process.end = PM_EXITED;
	assert_false(ledger_table_read(table, 1, &sb));
	assert_int_equal(count_lines(strbuf_str(&sb)), 1);
	ledger_table_free(table);
	memset(processes, 0, sizeof(processes));
	strbuf_fini(&sb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(a_line_is_bounded),
		T(an_event_is_bounded_too),
		T(hostile_names_are_json_strings),
		T(a_table_is_read_in_pieces),
		T(a_process_that_exits_between_two_pieces_is_left_out),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
