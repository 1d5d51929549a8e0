// SPDX-License-Identifier: Apache-2.0
/* Files are the same if their contents are, whatever else is equal. */
#include "tests/unit/processmanager/test_pm_ask.h"

/*
 * Build ids are set by the linker's command line, or kept when the file was
 * changed; the file id does not cover the middle. Neither is enough.
 */
static void test_a_build_id_is_no_identity(void **state)
{
	fake_file("/bin/x", 7, 1, 10);
	fake_file("/bin/y", 7, 2, 11); /* --build-id=0x07... */
	fake_file("/bin/z", 7, 1, 12); /* x, changed in the middle */
	fake.disk[2].content = 3;
	map_inode(5, 0x1000, "/bin/x", 10, 3);
	map_inode(5, 0x2000, "/bin/y", 11, 3);
	map_inode(5, 0x3000, "/bin/z", 12, 3);
	fake_run();
	assert_string_equal(name_of(exe_at(5, 0, 0x1000)), "/bin/x");
	assert_string_equal(name_of(exe_at(5, 0, 0x2000)), "/bin/y");
	assert_string_equal(name_of(exe_at(5, 0, 0x3000)), "/bin/z");
}

/* cp(1) over a file leaves its inode and generation as they are. */
static void test_a_file_copied_over_is_another(void **state)
{
	struct pm_exe *a;

	fake_file("/bin/x", 7, 1, 10);
	map_inode(5, 0x1000, "/bin/x", 10, 3);
	fake_run();
	a = exe_at(5, 0, 0x1000);
	map_inode(6, 0x1000, "/bin/x", 10, 3);
	assert_ptr_equal(exe_at(6, 0, 0x1000), a);
	assert_int_equal(fake.opens, 1);
	fake.disk[0].version++;
	fake.disk[0].content = 9;
	map_inode(6, 0x2000, "/bin/x", 10, 3);
	fake_run();
	assert_ptr_not_equal(pm_exe_root(exe_at(6, 0, 0x2000)), a);
	assert_int_equal(exe_info(exe_at(6, 0, 0x2000)).ident.content[0], 9);
	/* Earlier mappings have the earlier content. */
	assert_ptr_equal(exe_at(5, 0, 0x1000), a);
	/* chmod(1) changes ctime, too, but nothing else. */
	a = exe_at(6, 0, 0x2000);
	fake.disk[0].version++;
	map_inode(6, 0x3000, "/bin/x", 10, 3);
	fake_run();
	assert_ptr_equal(exe_at(6, 0, 0x3000), a);
}

/* A file that is not held any more is checked again. */
static void test_a_closed_file_is_no_proof(void **state)
{
	struct pm_exe *a;

	fake_file("/bin/x", 7, 1, 10);
	map_inode(5, 0x1000, "/bin/x", 10, 3);
	fake_run();
	a = pm_exe_get(exe_at(5, 0, 0x1000));
	pm_set_open_files(pm, 0);
	pm_set_open_files(pm, 10);
	assert_int_equal(fake.held, 0);
	map_inode(6, 0x1000, "/bin/x", 10, 3);
	fake_run();
	assert_int_equal(fake.opens, 2);
	assert_ptr_equal(exe_at(6, 0, 0x1000), a); /* as it was */
	assert_int_equal(fake.held, 1);
	map_inode(6, 0x2000, "/bin/x", 10, 3);
	assert_int_equal(fake.opens, 2);
	pm_exe_put(a);
}

/*
 * Another mapper's lookup is for the file that it maps, not for the one that
 * was seen first.
 */
static void test_a_copy_is_a_way_to_the_content(void **state)
{
	struct pm_exe *a;

	fake_file("/lib/c.so", 7, 1, 10);
	fake_file("/mnt/c.so", 7, 1, 11);
	map_inode(5, 0x1000, "/lib/c.so", 10, 3);
	map_inode(6, 0x1000, "/mnt/c.so", 11, 4);
	fake_run();
	a = exe_at(5, 0, 0x1000);
	pm_set_open_files(pm, 0);
	pm_set_open_files(pm, 10);
	fake.gone[fake.ngone++] = 5;
	assert_string_equal(name_of(a), "/mnt/c.so");
	assert_int_equal(fake.last_pid, 6);
}

#define T(name) cmocka_unit_test_setup_teardown(name, two_processes, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_a_build_id_is_no_identity),
		T(test_a_file_copied_over_is_another),
		T(test_a_closed_file_is_no_proof),
		T(test_a_copy_is_a_way_to_the_content),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
