// SPDX-License-Identifier: Apache-2.0
/*
 * Perf maps: the names of executable memory, the versions of a map that grows, when
 * one is looked for, and how long its file is held.
 */
#include "processmanager/internal.h"
#include "tests/unit/processmanager/test_pm_ask.h"

#define SEC CLOCK_NSEC_PER_SEC
#define MS CLOCK_NSEC_PER_MSEC

static struct fake_disk *map;
static uint64_t base; /* the present: later samples make it look at the file */

/* Time passes for the manager with any record. */
static void now(uint64_t time)
{
	do_exit(99, 0, time);
}

/* Process 5 and its code; its map has 100 bytes. */
static struct pm_exe *with_map(void)
{
	fake_file("[anon]", 0, 0, 77);
	map = fake_lookup("[anon]");
	map->size = 100;
	base = clock_boottime_ns();
	do_mmap(5, 8000, 0x4000, 0x5000, "//anon", 0);
	return exe_at(5, 0, 0x4000);
}

static uint32_t version_at(struct pm_exe *exe, uint64_t time)
{
	struct pm_code_state st = pm_exe_code(exe, time);

	assert_true(st.named);
	assert_false(st.timed);
	return st.version;
}

/* Requests a name for a sample; the size of the map that is sent. */
static uint64_t size_at(struct pm_exe *exe, uint64_t time)
{
	uint64_t at;

	assert_int_equal(
		pm_exe_name_at(exe, 0x4010, time, NULL, on_names, NULL), 0);
	pm_names_send(pm);
	if (fake.queue[0]->open_fn)
		fake_turn();
	assert_non_null(fake.queue[0]->resolve_fn);
	at = fake.queue[0]->at;
	answers = 0;
	fake_run();
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, 0);
	return at;
}

static void test_the_map_is_its_file(void **state)
{
	struct pm_exe *exe = with_map();

	assert_int_equal(version_at(exe, base), 1);
	assert_int_equal(
		pm_exe_name_at(exe, 0x4010, base, NULL, on_names, NULL), 0);
	pm_names_send(pm);
	assert_true(fake.queue[0]->perf_map);
	assert_int_equal(fake.queue[0]->pid, 5);
	answers = 0;
	fake_run();
	assert_int_equal(answers, 1);
	assert_string_equal(answer, "[anon]");
	assert_int_equal(stats().open_files, 1);
	assert_int_equal(version_at(exe, base), 1);
	assert_int_equal(fake.opens, 1);
}

static void test_growth_is_a_version(void **state)
{
	struct pm_exe *exe = with_map();
	uint32_t version = version_at(exe, base);
	uint64_t mid;

	assert_int_equal(size_at(exe, base), 100);
	assert_int_equal(version_at(exe, base + SEC), version);
	mid = clock_boottime_ns();
	map->size = 200;
	assert_int_equal(version_at(exe, base + 2 * SEC), version + 1);
	/* Samples from before the last check but one had the old map. */
	assert_int_equal(version_at(exe, base), version);
	assert_int_equal(size_at(exe, base + 2 * SEC), 200);
	assert_int_equal(size_at(exe, base), 100);
	/* It is not checked for samples that are older than the last check. */
	map->size = 300;
	assert_int_equal(version_at(exe, mid), version + 1);
	assert_int_equal(version_at(exe, base + 3 * SEC), version + 2);
	/* After a large file grew there is a pause. */
	map->size = 30 << 20;
	now(base + 4 * SEC);
	assert_int_equal(version_at(exe, base + 4 * SEC), version + 3);
	map->size++;
	now(base + 6 * SEC);
	assert_int_equal(version_at(exe, base + 6 * SEC), version + 3);
	now(base + 7 * SEC);
	assert_int_equal(version_at(exe, base + 7 * SEC), version + 4);
	/* What is gone from a file that shrank cannot be read. */
	map->size = 10;
	map->written++;
	now(base + 20 * SEC);
	assert_int_equal(version_at(exe, base + 20 * SEC), version + 5);
	assert_int_equal(size_at(exe, base), 10);
}

/* The file of the request for a sample's name. */
static uint64_t inode_at(struct pm_exe *exe, uint64_t time)
{
	uint64_t ino;

	assert_int_equal(
		pm_exe_name_at(exe, 0x4010, time, NULL, on_names, NULL), 0);
	pm_names_send(pm);
	while (fake.queue[0]->open_fn)
		fake_turn();
	ino = fake.queue[0]->file->ident.ino;
	answers = 0;
	fake_run();
	assert_int_equal(answers, 1);
	return ino;
}

/* Equal size, other contents: a version, for samples since then. */
static void test_written_anew(void **state)
{
	struct pm_exe *exe = with_map();
	uint32_t version = version_at(exe, base);

	assert_int_equal(size_at(exe, base), 100);
	map->written++;
	assert_int_equal(version_at(exe, base + SEC), version + 1);
	assert_int_equal(version_at(exe, base), version);
	assert_int_equal(size_at(exe, base + SEC), 100);
	assert_int_equal(size_at(exe, base), 100);
	assert_int_equal(version_at(exe, base + 2 * SEC), version + 1);
	assert_int_equal(fake.opens, 1);
}

/* Renamed over: samples from before have the names of the file that was there. */
static void test_renamed_over(void **state)
{
	struct pm_exe *exe = with_map();
	uint32_t version = version_at(exe, base);

	assert_int_equal(inode_at(exe, base), 77);
	map->ino = 78;
	map->size = 300;
	assert_int_equal(version_at(exe, base + SEC), version + 1);
	assert_int_equal(version_at(exe, base), version);
	assert_int_equal(inode_at(exe, base + SEC), 78);
	assert_int_equal(inode_at(exe, base), 77);
	assert_int_equal(size_at(exe, base), 100);
	assert_int_equal(size_at(exe, base + SEC), 300);
	assert_int_equal(fake.opens, 2);
	assert_int_equal(fake.held, 2);
	/* The new one grows as usual. */
	map->size = 400;
	assert_int_equal(version_at(exe, base + 2 * SEC), version + 2);
	assert_int_equal(size_at(exe, base + 2 * SEC), 400);
	/* The old one is released. */
	now(base + 9 * SEC);
	pm_forget(pm, base + 9 * SEC);
	assert_int_equal(fake.held, 1);
	assert_int_equal(inode_at(exe, base), 78);
	/* And again. */
	map->ino = 79;
	assert_int_equal(version_at(exe, base + 10 * SEC), version + 3);
	assert_int_equal(inode_at(exe, base + 10 * SEC), 79);
	assert_int_equal(stats().open_files, 2);
}

/* A map without a name, as at the end of its process, goes on; it is looked for again. */
static void test_unlinked(void **state)
{
	struct pm_exe *exe = with_map();
	uint32_t version = version_at(exe, base);

	assert_int_equal(inode_at(exe, base), 77);
	map->err = -ENOENT;
	now(base + SEC);
	assert_int_equal(version_at(exe, base + SEC), version + 1);
	assert_int_equal(inode_at(exe, base + SEC), 77);
	assert_int_equal(fake.opens, 2);
	assert_int_equal(fake.held, 1);
	/* At growing intervals. */
	now(base + 2 * SEC);
	assert_int_equal(version_at(exe, base + 2 * SEC), version + 2);
	assert_int_equal(inode_at(exe, base + 2 * SEC), 77);
	now(base + 3 * SEC);
	assert_int_equal(version_at(exe, base + 3 * SEC), version + 2);
	now(base + 4 * SEC);
	map->err = 0;
	map->ino = 78;
	assert_int_equal(version_at(exe, base + 4 * SEC), version + 3);
	assert_int_equal(inode_at(exe, base + 4 * SEC), 78);
	/* The process has ended: there is no other. */
	map->ino = 79;
	do_exit(5, 0, base + 9 * SEC);
	assert_int_equal(version_at(exe, base + 9 * SEC), version + 4);
	assert_int_equal(inode_at(exe, base + 9 * SEC), 78);
}

static void test_none_is_looked_for_again(void **state)
{
	struct pm_exe *exe;

	base = clock_boottime_ns();
	do_mmap(5, 8000, 0x4000, 0x5000, "//anon", 0);
	now(base);
	exe = exe_at(5, 0, 0x4000);
	assert_int_equal(version_at(exe, base), 1);
	assert_string_equal(name_of(exe), strerror(ENOENT));
	assert_int_equal(fake.opens, 1);
	/* Known not to be there: frames ask for nothing. */
	now(base + 500 * MS);
	assert_false(pm_exe_code(exe, base + 500 * MS).named);
	assert_int_equal(pm_exe_code(exe, base + 500 * MS).version, 1);
	now(base + SEC);
	assert_int_equal(version_at(exe, base + SEC), 2);
	assert_string_equal(name_of(exe), strerror(ENOENT));
	now(base + 3 * SEC - 1);
	assert_false(pm_exe_code(exe, base + 3 * SEC).named);
	now(base + 3 * SEC);
	assert_int_equal(version_at(exe, base + 3 * SEC), 3);
	fake_file("[anon]", 0, 0, 77);
	assert_string_equal(name_of(exe), "[anon]");
	assert_int_equal(fake.opens, 3);
}

/* The i-th source of its names; NULL: it has fewer. */
static struct pm_exe *source_of(struct pm_exe *exe, size_t i)
{
	struct pm_exe *all[PM_CODE_SOURCES];

	return i < pm_exe_code_sources(exe, all) ? all[i] : NULL;
}

/* Jitdumps go before the perf map, also if they come later. */
static void test_a_jitdump(void **state)
{
	struct pm_exe *exe = with_map(), *dump;
	struct pm_code_state st;

	fake_file("/tmp/jit-5.dump", 0, 0, 88);
	fake_lookup("/tmp/jit-5.dump")->size = 1000;
	assert_string_equal(name_of(exe), "[anon]");
	assert_ptr_equal(source_of(exe, 0), exe);
	now(2 * SEC);
	/* Not opened as an executable. */
	do_mmap(5, 8001, 0x8000, 0x9000, "/tmp/jit-5.dump", 0);
	assert_int_equal(fake.nqueue, 0);
	assert_ptr_equal(exe_at(5, 0, 0x4000), exe);
	st = pm_exe_code(exe, base);
	assert_true(st.timed && st.named);
	dump = source_of(exe, 0);
	assert_ptr_not_equal(dump, exe);
	assert_ptr_equal(source_of(exe, 1), exe);
	assert_null(source_of(exe, 2));
	assert_string_equal(name_of(dump), "/tmp/jit-5.dump");
	assert_int_equal(fake.held, 2);
	/* The request has a time, of a clock that does not count suspends. */
	pm_forget(pm, 0);
	assert_in_range(size_at(dump, base) + clock_slept_ns(), base - MS,
			base + MS);
	/* Slept for ten seconds, between these times at the earliest and latest. */
	pm->slept.from = base - 20 * SEC;
	pm->slept.before = 3 * SEC;
	pm->slept.ns = 13 * SEC;
	assert_int_equal(size_at(dump, base - 15 * SEC), base - 18 * SEC);
	assert_int_equal(size_at(dump, base - 10 * SEC), base - 23 * SEC);
	/* So have those for unwind rows. */
	answers = 0;
	assert_int_equal(pm_exe_code_rows(dump, base - 15 * SEC, on_rows, NULL),
			 0);
	assert_int_equal(fake.queue[0]->at, base - 18 * SEC);
	fake_run();
	assert_int_equal(answers, 1);
	assert_string_equal(answer, "/tmp/jit-5.dump");
	/* Its own mapping is no code. */
	assert_string_equal(name_of(exe_at(5, 0, 0x8000)), strerror(ENOENT));
}

/* Rows make it open, too. */
static void test_rows_open_a_jitdump(void **state)
{
	struct pm_exe *exe;

	base = clock_boottime_ns();
	fake_file("/tmp/jit-5.dump", 0, 0, 88);
	do_mmap(5, 8001, 0x8000, 0x9000, "/tmp/jit-5.dump", 0);
	do_mmap(5, 8000, 0x4000, 0x5000, "//anon", 0);
	exe = exe_at(5, 0, 0x4000);
	assert_true(pm_exe_code(exe, base).timed);
	answers = 0;
	assert_int_equal(
		pm_exe_code_rows(source_of(exe, 0), base, on_rows, NULL), 0);
	fake_run();
	assert_int_equal(answers, 1);
	assert_string_equal(answer, "/tmp/jit-5.dump");
	/* There is no perf map. It is looked for again, which is no other version. */
	assert_null(source_of(exe, 1));
	assert_int_equal(fake.opens, 2);
	now(base);
	assert_int_equal(pm_exe_code(exe, base + SEC).version,
			 pm_exe_code(exe, base + 4 * SEC).version);
	fake_run();
	now(base + 30 * SEC);
	fake_file("[anon]", 0, 0, 77);
	pm_exe_code(exe, base + 30 * SEC);
	fake_run();
	assert_ptr_equal(source_of(exe, 1), exe);
}

/* One that cannot be opened takes nothing from the perf map. */
static void test_a_jitdump_that_is_gone(void **state)
{
	struct pm_exe *exe = with_map(), *dump;

	do_mmap(5, 8001, 0x8000, 0x9000, "/tmp/jit-5.dump", 0);
	now(base);
	exe_at(5, 0, 0x4000);
	assert_true(pm_exe_code(exe, base).timed);
	dump = source_of(exe, 0);
	assert_ptr_not_equal(dump, exe);
	assert_string_equal(name_of(dump), strerror(ENOENT));
	fake_run();
	assert_false(pm_exe_code(exe, base).timed);
	assert_ptr_equal(source_of(exe, 0), exe);
	assert_null(source_of(exe, 1));
	assert_string_equal(name_of(exe), "[anon]");
	/* It is looked for again. */
	now(base + 2 * SEC);
	assert_true(pm_exe_code(exe, base + 2 * SEC).timed);
	assert_ptr_equal(source_of(exe, 0), dump);
}

/* All that it maps are sources, the last one first; of too many the last ones. */
static void test_several_jitdumps(void **state)
{
	static const char *const paths[] = {
		"/tmp/jit-0.dump", "/tmp/jit-1.dump", "/tmp/jit-2.dump",
		"/tmp/jit-3.dump", "/tmp/jit-4.dump"
	};
	struct pm_exe *exe = with_map(), *first;
	uint32_t version;

	fake_run();
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		fake_file(paths[i], 0, 0, 90 + i);
	do_mmap(5, 8001, 0x8000, 0x9000, paths[0], 0);
	do_mmap(5, 8001, 0x9000, 0xa000, paths[1], 0);
	now(base);
	assert_ptr_equal(exe_at(5, 0, 0x4000), exe);
	pm_exe_code(exe, base);
	first = source_of(exe, 1);
	assert_string_equal(name_of(source_of(exe, 0)), paths[1]);
	assert_string_equal(name_of(first), paths[0]);
	version = pm_exe_code(exe, base).version;
	/* Mapped again it is the same; another one is a version, after a pause. */
	do_mmap(5, 8002, 0xa000, 0xb000, paths[0], 0);
	do_mmap(5, 8002, 0xb000, 0xc000, paths[2], 0);
	exe_at(5, 0, 0x4000);
	assert_int_equal(pm_exe_code(exe, base).version, version);
	now(base + SEC);
	exe_at(5, 0, 0x4000);
	assert_true(pm_exe_code(exe, base).version != version);
	assert_ptr_equal(source_of(exe, 2), first);
	assert_string_equal(name_of(source_of(exe, 0)), paths[2]);
	do_mmap(5, 8002, 0xc000, 0xd000, paths[3], 0);
	do_mmap(5, 8002, 0xd000, 0xe000, paths[4], 0);
	now(base + 2 * SEC);
	exe_at(5, 0, 0x4000);
	assert_string_equal(name_of(source_of(exe, 0)), paths[4]);
	assert_string_equal(name_of(source_of(exe, 3)), paths[1]);
	assert_int_equal(name_of(source_of(exe, 4))[0], '[');
	/* They are held while their memory is. */
	now(base + 20 * SEC);
	pm_forget(pm, base + 20 * SEC);
	assert_int_equal(fake.held, 4);
	do_exit(5, 0, base + 20 * SEC);
	do_reap(5, 0, base + 20 * SEC);
	pm_forget(pm, base + 40 * SEC);
	now(base + 41 * SEC);
	pm_forget(pm, base + 41 * SEC);
	assert_int_equal(fake.held, 0);
}

static struct pm_mapping mapping_at(uint64_t addr)
{
	struct pm_mapping m;

	assert_int_equal(pm_image_find(pm, image_at(5, 0, 0), 8000, addr, &m),
			 0);
	return m;
}

/* Files that are no ELF files, once that is known, have names and rows by address. */
static void test_bare_files(void **state)
{
	struct pm_exe *exe = with_map();

	fake_file("/memfd:doublemapper", 0, 0, 11);
	fake_lookup("/memfd:doublemapper")->err = -ENOEXEC;
	fake_file("/memfd:closed", 0, 0, 12);
	fake_lookup("/memfd:closed")->err = -EPERM;
	fake_file("/lib/closed.so", 0, 0, 13);
	fake_lookup("/lib/closed.so")->err = -EPERM;
	fake_file("/lib/c.so", 0, 1, 14);
	map_inode(5, 0x10000, "/memfd:doublemapper (deleted)", 11, 1);
	map_inode(5, 0x20000, "/memfd:closed (deleted)", 12, 1);
	map_inode(5, 0x30000, "/lib/closed.so", 13, 1);
	map_inode(5, 0x40000, "/lib/c.so", 14, 1);
	assert_null(mapping_at(0x10000).code); /* not known yet */
	fake_run();
	assert_ptr_equal(mapping_at(0x10000).code, exe);
	assert_ptr_equal(mapping_at(0x20000).code, exe);
	assert_null(mapping_at(0x30000).code);
	assert_null(mapping_at(0x40000).code);
	assert_null(mapping_at(0x4000).code);
	assert_ptr_equal(mapping_at(0x4000).exe, exe);
	assert_string_equal(exe_info(mapping_at(0x10000).exe).base,
			    "memfd:doublemapper");
	assert_true(pm_exe_code(exe, base).named);
}

static void test_names_of_jitdumps(void **state)
{
	assert_true(pm_code_is_dump("/tmp/jit-1.dump"));
	assert_true(
		pm_code_is_dump("/root/.debug/jit/x/jit-77.dump (deleted)"));
	assert_false(pm_code_is_dump("/tmp/jit-.dump"));
	assert_false(pm_code_is_dump("/tmp/jit-1.dumps"));
	assert_false(pm_code_is_dump("/tmp/jit-1.dump/x"));
	assert_false(pm_code_is_dump("jit-1.dump"));
	assert_false(pm_code_is_dump(""));
}

static void test_each_process_has_its_own(void **state)
{
	struct pm_exe *five = with_map(), *six;

	do_mmap(6, 8000, 0x4000, 0x5000, "//anon", 0);
	six = exe_at(6, 0, 0x4000);
	assert_ptr_not_equal(five, six);
	assert_string_equal(name_of(five), "[anon]");
	assert_string_equal(name_of(six), "[anon]");
	assert_int_equal(fake.last_pid, 6);
	assert_int_equal(fake.held, 2);
}

static void test_held_after_the_end(void **state)
{
	struct pm_exe *exe = pm_exe_get(with_map());

	assert_string_equal(name_of(exe), "[anon]");
	do_exit(5, 0, 2 * SEC);
	do_reap(5, 0, 2 * SEC);
	pm_forget(pm, 3 * SEC);
	assert_string_equal(name_of(exe), "[anon]");
	now(7 * SEC);
	pm_forget(pm, 7 * SEC);
	assert_int_equal(fake.held, 0);
	assert_string_equal(name_of(exe), strerror(ESRCH));
	pm_exe_put(exe);
}

static void test_no_map_of_a_process_that_ended(void **state)
{
	struct pm_exe *exe = pm_exe_get(with_map());

	do_exit(5, 0, 2 * SEC);
	assert_string_equal(name_of(exe), strerror(ESRCH));
	assert_int_equal(fake.opens, 0);
	pm_exe_put(exe);
}

/* One that was written as the process ended is found in its root, if that is held. */
static void test_written_at_the_end(void **state)
{
	struct pm_exe *exe;

	pm->opts.late_maps = true;
	base = clock_boottime_ns();
	do_mmap(5, 8000, 0x4000, 0x5000, "//anon", 0);
	now(base);
	exe = pm_exe_get(exe_at(5, 0, 0x4000));
	assert_int_equal(version_at(exe, base), 1);
	assert_string_equal(name_of(exe), strerror(ENOENT));
	assert_int_equal(fake.roots, 1);
	assert_false(fake.rooted);
	fake_file("[anon]", 0, 0, 77);
	do_exit(5, 0, base);
	do_reap(5, 0, base);
	/* Not before it makes sense again, but at once if that is requested. */
	assert_string_equal(name_of(exe), strerror(ENOENT));
	assert_int_equal(fake.opens, 1);
	pm_exe_code_again(exe);
	assert_string_equal(name_of(exe), "[anon]");
	assert_true(fake.rooted);
	assert_int_equal(fake.opens, 2);
	assert_int_equal(pm->shared[PM_SHARE_ROOTS], 1);
	pm_forget(pm, base + SEC);
	assert_int_equal(pm->shared[PM_SHARE_ROOTS], 0);
	pm_exe_put(exe);
}

/* They are files held open: at the limit one is closed, and opened again. */
static void test_files_are_limited(void **state)
{
	struct pm_exe *five = with_map(), *six;

	do_mmap(6, 8000, 0x4000, 0x5000, "//anon", 0);
	six = exe_at(6, 0, 0x4000);
	pm_set_open_files(pm, 1);
	assert_string_equal(name_of(five), "[anon]");
	assert_string_equal(name_of(six), "[anon]");
	assert_int_equal(fake.held, 1);
	assert_string_equal(name_of(five), "[anon]");
	assert_int_equal(fake.opens, 3);
}

int main(void)
{
#define T(fn) cmocka_unit_test_setup_teardown(fn, two_processes, teardown)
	const struct CMUnitTest tests[] = {
		T(test_the_map_is_its_file),
		T(test_growth_is_a_version),
		T(test_written_anew),
		T(test_renamed_over),
		T(test_unlinked),
		T(test_none_is_looked_for_again),
		T(test_a_jitdump),
		T(test_rows_open_a_jitdump),
		T(test_a_jitdump_that_is_gone),
		T(test_several_jitdumps),
		T(test_bare_files),
		T(test_names_of_jitdumps),
		T(test_each_process_has_its_own),
		T(test_held_after_the_end),
		T(test_no_map_of_a_process_that_ended),
		T(test_written_at_the_end),
		T(test_files_are_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
