// SPDX-License-Identifier: Apache-2.0
/* procfs: lines as in proc(5), cut lines, and files of this process. */
#include <errno.h>
#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

static const char line[] = "77 (a) b (c) S 12 76 75 34816 -1 2097216 0 0 0 0 "
			   "31 17 0 0 20 0 1 0 4711 0 0\n";

static void a_stat_line_is_read(void **state)
{
	struct procfs_stat st;

	assert_int_equal(procfs_stat_parse(line, sizeof(line) - 1, &st), 0);
	assert_string_equal(st.comm, "a) b (c");
	assert_int_equal(st.state, 'S');
	assert_int_equal(st.ppid, 12);
	assert_int_equal(st.pgid, 76);
	assert_int_equal(st.sid, 75);
	assert_int_equal(st.tty, 34816);
	assert_true(st.kthread);
	assert_int_equal(st.utime, 31);
	assert_int_equal(st.stime, 17);
	assert_int_equal(st.start, 4711 * procfs_tick());
	assert_int_equal(procfs_tick_of(st.start + procfs_tick() - 1),
			 st.start);
}

static void a_stat_line_that_is_cut_is_refused(void **state)
{
	struct procfs_stat st;

	assert_int_equal(procfs_stat_parse(line, 40, &st), -EINVAL);
	assert_int_equal(procfs_stat_parse("", 0, &st), -EINVAL);
	assert_int_equal(procfs_stat_parse(") (", 3, &st), -EINVAL);
	assert_int_equal(procfs_stat_parse("1 (x)", 5, &st), -EINVAL);
}

static void ids_are_those_behind_the_name(void **state)
{
	struct procfs_ids ids;

	assert_true(procfs_ids_parse("Name:\tx\\nUid:\n"
				     "Uid:\t1\t2\t3\t4\nGid:\t5\t6\t7\t8\n",
				     &ids));
	assert_int_equal(ids.uid, 1);
	assert_int_equal(ids.euid, 2);
	assert_int_equal(ids.suid, 3);
	assert_int_equal(ids.gid, 5);
	assert_int_equal(ids.egid, 6);
	assert_int_equal(ids.sgid, 7);
	assert_false(procfs_ids_parse("Name:\tx\nUid:\t1\t2\t3\t4\n", &ids));
	assert_false(procfs_ids_parse("", &ids));
}

static void this_process_is_read(void **state)
{
	char text[PATH_MAX], cut[4];
	struct procfs_stat st, at;
	int dir = procfs_open(getpid());

	assert_true(dir >= 0);
	assert_true(procfs_stat(getpid(), &st));
	assert_true(procfs_stat_at(dir, &at));
	assert_int_equal(st.ppid, getppid());
	assert_int_equal(at.start, st.start);
	assert_true(st.start <= clock_boottime_ns());
	assert_true(procfs_read(dir, "stat", text, sizeof(text)) > 0);
	assert_int_equal(procfs_read(dir, "stat", cut, sizeof(cut)), 3);
	assert_memory_equal(cut, text, 3);
	assert_int_equal(cut[3], '\0');
	assert_int_equal(procfs_read(dir, "none", cut, sizeof(cut)), -ENOENT);
	assert_string_equal(cut, "");
	close(dir);
	assert_int_equal(procfs_open(4194304), -ENOENT);
	assert_false(procfs_stat(4194304, &st));
}

static void words_of_mountinfo_are_unescaped(void **state)
{
	static const struct {
		const char *from, *to;
		size_t cap;
	} words[] = {
		{ "/a\\040b\\134c\\011\\0", "/a b\\c\t\\0", 32 },
		{ "\\011\\012", "\t\n", 32 },
		{ "\\04", "\\04", 32 }, /* cut off */
		{ "\\089", "\\089", 32 }, /* not octal */
		{ "abcdef", "abc", 4 },
		{ "abc", "", 1 },
	};
	char to[32];
	size_t i;

	for (i = 0; i < ARRAY_SIZE(words); i++) {
		procfs_unescape(to, words[i].cap, words[i].from,
				strlen(words[i].from));
		assert_string_equal(to, words[i].to);
	}
	/* In place. */
	strcpy(to, "x\\040y");
	procfs_unescape(to, strlen(to) + 1, to, strlen(to));
	assert_string_equal(to, "x y");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_mountinfo_are_unescaped),
		cmocka_unit_test(a_stat_line_is_read),
		cmocka_unit_test(a_stat_line_that_is_cut_is_refused),
		cmocka_unit_test(ids_are_those_behind_the_name),
		cmocka_unit_test(this_process_is_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
