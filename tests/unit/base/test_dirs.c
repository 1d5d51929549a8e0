// SPDX-License-Identifier: Apache-2.0
/* dirs: missing parent directories are created. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"

static void parents_are_made_and_the_last_name_is_not(void **state)
{
	char dir[] = "/tmp/test_dirs.XXXXXX";
	struct stat st;

	assert_non_null(mkdtemp(dir));
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(dirs_make_parents("a/b/c", 0750), 0);
	assert_int_equal(stat("a/b", &st), 0);
	assert_int_equal(st.st_mode & 0777, 0750);
	assert_int_equal(stat("a/b/c", &st), -1);
	assert_int_equal(dirs_make_parents("a/b/c", 0750), 0);
	/* A file is in the way. */
	assert_int_equal(mknod("a/f", S_IFREG | 0600, 0), 0);
	assert_int_equal(dirs_make_parents("a/f/c/d", 0750), -ENOTDIR);
	assert_int_equal(unlink("a/f") | rmdir("a/b") | rmdir("a"), 0);
	assert_int_equal(rmdir(dir), 0);
}

static void names_without_a_parent_need_none(void **state)
{
	assert_int_equal(dirs_make_parents("", 0750), 0);
	assert_int_equal(dirs_make_parents("name", 0750), 0);
	assert_int_equal(dirs_make_parents("/", 0750), 0);
	assert_int_equal(dirs_make_parents("/name", 0750), 0);
	assert_int_equal(dirs_make_parents("//tmp//name", 0750), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parents_are_made_and_the_last_name_is_not),
		cmocka_unit_test(names_without_a_parent_need_none),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests_name("dirs", tests, NULL, NULL);
}
