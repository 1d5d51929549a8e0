// SPDX-License-Identifier: Apache-2.0
/*
 * Executables: one file is one, whatever its path; it is opened once, by
 * whichever lookup succeeds, closed for the limit, and opened again when names
 * are requested.
 */
#include "tests/unit/processmanager/test_pm_ask.h"

#define SEC CLOCK_NSEC_PER_SEC

static void test_opened_when_first_seen(void **state)
{
	const struct symbolizer_segment *seg;
	size_t n;
	struct pm_exe *exe;

	fake_file("/lib/c.so", 7, 1, 10);
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/c.so", 7);
	assert_int_equal(fake.opens, 1);
	assert_int_equal(fake.last_pid, 5);
	assert_int_equal(fake.last_map_start, 0x1000);
	exe = exe_at(5, 0, 0x1000);
	assert_false(exe_info(exe).opened);
	assert_int_equal(exe_info(exe).ident.build_id_len, 20);
	assert_null(pm_exe_segments(exe, &n));
	fake_run();
	assert_true(exe_info(exe).opened);
	assert_int_equal(exe_info(exe).ident.ino, 10);
	assert_string_equal(exe_info(exe).path, "/lib/c.so");
	assert_string_equal(exe_info(exe).base, "c.so");
	seg = pm_exe_segments(exe, &n);
	assert_int_equal(n, 1);
	assert_int_equal(seg[0].vaddr, 0x400000);
	do_mmap(6, 8001, 0x9000, 0xa000, "/lib/c.so", 7);
	assert_ptr_equal(exe_at(6, 0, 0x9000), exe);
	assert_int_equal(fake.opens, 1);
	assert_int_equal(stats().open_files, 1);
}

static void test_build_id_is_the_identity(void **state)
{
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/c.so", 7);
	do_mmap(6, 8001, 0x1000, 0x2000, "/lib/c.so", 8); /* upgraded */
	do_mmap(6, 8002, 0x3000, 0x4000, "/mnt/lib/c.so", 7);
	assert_ptr_not_equal(exe_at(5, 0, 0x1000), exe_at(6, 0, 0x1000));
	assert_ptr_equal(exe_at(5, 0, 0x1000), exe_at(6, 0, 0x3000));
	assert_string_equal(exe_info(exe_at(6, 0, 0x3000)).path, "/lib/c.so");
}

static void test_deleted_is_no_part_of_a_name(void **state)
{
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/c.so (deleted)", 7);
	assert_string_equal(exe_info(exe_at(5, 0, 0x1000)).path, "/lib/c.so");
}

static void test_same_file_by_two_inode_keys(void **state)
{
	struct pm_exe *a, *b;

	fake_file("/lib/c.so", 7, 1, 10);
	fake_file("/mnt/c.so", 7, 1, 11);
	map_inode(5, 0x1000, "/lib/c.so", 10, 3);
	map_inode(6, 0x1000, "/mnt/c.so", 11, 4);
	a = exe_at(5, 0, 0x1000);
	b = pm_exe_get(exe_at(6, 0, 0x1000));
	assert_ptr_not_equal(a, b);
	fake_run();
	/* Each has its path; names are those of the first. */
	assert_ptr_equal(exe_at(6, 0, 0x1000), b);
	map_inode(6, 0x5000, "/mnt/c.so", 11, 4);
	assert_ptr_equal(exe_at(6, 0, 0x5000), b);
	assert_ptr_equal(pm_exe_root(b), a);
	assert_true(exe_info(b).opened);
	assert_int_equal(exe_info(b).ident.build_id[0], 7);
	assert_string_equal(exe_info(b).path, "/mnt/c.so");
	assert_string_equal(name_of(b), "/lib/c.so");
	/* The second's file shows whether it was written to. */
	assert_int_equal(fake.held, 2);
	assert_int_equal(stats().open_files, 2);
	pm_exe_put(b);
}

static void test_same_file_without_build_id(void **state)
{
	fake_file("/lib/c.so", 0, 1, 10);
	fake_file("/mnt/c.so", 0, 1, 11);
	fake_file("/opt/c.so", 0, 2, 12);
	map_inode(5, 0x1000, "/lib/c.so", 10, 3);
	map_inode(5, 0x2000, "/mnt/c.so", 11, 4);
	map_inode(5, 0x3000, "/opt/c.so", 12, 5);
	fake_run();
	assert_ptr_equal(pm_exe_root(exe_at(5, 0, 0x2000)),
			 exe_at(5, 0, 0x1000));
	assert_ptr_equal(pm_exe_root(exe_at(5, 0, 0x3000)),
			 exe_at(5, 0, 0x3000));
}

/* An inode number without a generation is valid while it is mapped. */
static void test_inode_of_proc_is_not_kept(void **state)
{
	struct pm_map_event maps[] = { map_of(0x1000, 0x2000, "/tmp/x", 0) };

	maps[0].dev = 1;
	maps[0].ino = 10;
	fake_file("/tmp/x", 7, 1, 10);
	assert_int_equal(do_maps(5, 7010, 7020, maps, 1), 0);
	fake_run();
	assert_int_equal(do_maps(6, 7010, 7020, maps, 1), 0);
	assert_ptr_equal(exe_at(5, 0, 0x1000), exe_at(6, 0, 0x1000));
	assert_int_equal(fake.opens, 1);
	do_reap(5, 0, 8000);
	do_reap(6, 0, 8000);
	pm_forget(pm, 8001);
	/* As long as its file is held open, the inode number is not reused. */
	do_walk(7, 4, "/tmp/y", 8001 + 5 * SEC);
	pm_forget(pm, 8001 + 5 * SEC);
	fake.disk[0].build_id = 8; /* compiled anew, the inode number reused */
	assert_int_equal(do_maps(7, 9010 + 5 * SEC, 9020 + 5 * SEC, maps, 1),
			 0);
	fake_run();
	assert_int_equal(exe_info(exe_at(7, 0, 0x1000)).ident.build_id[0], 8);
}

/* A re-read has no build ids: those of known mappings are kept. */
static void test_reread_keeps_the_executable(void **state)
{
	struct pm_map_event maps[] = { map_of(0x1000, 0x2000, "/lib/c.so", 0),
				       map_of(0x5000, 0x6000, "/lib/d.so", 0) };
	struct pm_exe *exe;

	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/c.so", 7);
	exe = exe_at(5, 0, 0x1000);
	assert_int_equal(do_maps(5, 9000, 9001, maps, 2), 0);
	assert_ptr_equal(exe_at(5, 0, 0x1000), exe);
	assert_string_equal(exe_info(exe_at(5, 0, 0x5000)).base, "d.so");
}

static void test_kinds_by_path(void **state)
{
	static const struct {
		const char *path;
		uint64_t ino;
		enum pm_exe_kind kind;
	} table[] = {
		{ "/bin/x", 1, PM_EXE_FILE },
		{ "/memfd:x (deleted)", 1, PM_EXE_FILE },
		{ "//toolong", 1, PM_EXE_FILE },
		{ "[vdso]", 0, PM_EXE_VDSO },
		{ "//anon", 0, PM_EXE_ANON },
		{ "", 0, PM_EXE_ANON },
		{ "[heap]", 0, PM_EXE_ANON },
		{ "[stack]", 0, PM_EXE_ANON },
		{ "[uprobes]", 0, PM_EXE_ANON },
		{ "[vsyscall]", 0, PM_EXE_ANON },
		{ "[anon:jit]", 0, PM_EXE_ANON },
		{ "/SYSV00000000 (deleted)", 9, PM_EXE_ANON },
		{ "/dev/zero (deleted)", 9, PM_EXE_ANON },
		{ "/anon_hugepage (deleted)", 9, PM_EXE_ANON },
		{ "/bin/x", 0, PM_EXE_ANON },
		{ "anon_inode:[x]", 9, PM_EXE_ANON },
	};
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		map_inode(5, 0x1000, table[i].path, table[i].ino, 1);
		assert_int_equal(exe_info(exe_at(5, 0, 0x1000)).kind,
				 table[i].kind);
	}
	assert_int_equal(fake.opens, 3);
}

/* JIT code means something in its address space only. */
static void test_anonymous_memory_belongs_to_its_process(void **state)
{
	struct pm_mapping m;
	struct pm_exe *exe;

	do_mmap(5, 8000, 0x1000, 0x2000, "//anon", 0);
	do_mmap(5, 8000, 0x3000, 0x4000, "[heap]", 0);
	do_mmap(6, 8000, 0x1000, 0x2000, "//anon", 0);
	exe = exe_at(5, 0, 0x1000);
	assert_ptr_equal(exe, exe_at(5, 0, 0x3000));
	assert_ptr_not_equal(exe, exe_at(6, 0, 0x1000));
	assert_int_equal(pm_image_find(pm, image_at(5, 0, 0), 8000, 0x3010, &m),
			 0);
	assert_int_equal(0x3010 - m.start + m.pgoff, 0x3010);
	assert_string_equal(exe_info(exe).base, "[anon]");
	assert_string_equal(name_of(exe), strerror(ENOENT));
	do_fork(5, 0, 7, 8001);
	assert_ptr_not_equal(exe, exe_at(7, 0, 0x1000));
}

static void test_singletons(void **state)
{
	assert_int_equal(exe_info(pm_exe_kernel(pm)).kind, PM_EXE_KERNEL);
	assert_true(exe_info(pm_exe_kernel(pm)).opened);
	assert_string_equal(exe_info(pm_exe_kernel(pm)).base,
			    "[kernel.kallsyms]");
	strcpy(fake.kernel.path, "kernel");
	assert_string_equal(name_of(pm_exe_kernel(pm)), "kernel");
	assert_int_equal(exe_info(pm_exe_vsyscall(pm)).kind, PM_EXE_VSYSCALL);
	assert_string_equal(name_of(pm_exe_vsyscall(pm)), strerror(ENOENT));
	do_mmap(5, 8000, 0x1000, 0x2000, "[vdso]", 0);
	assert_int_equal(exe_info(exe_at(5, 0, 0x1000)).kind, PM_EXE_VDSO);
	do_mmap(5, 8000, 0x3000, 0x4000, "[vdso]", 0);
	assert_ptr_equal(exe_at(5, 0, 0x1000), exe_at(5, 0, 0x3000));
}

static void test_resolve_waits_for_the_file(void **state)
{
	fake_file("/lib/c.so", 7, 1, 10);
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/c.so", 7);
	assert_string_equal(name_of(exe_at(5, 0, 0x1000)), "/lib/c.so");
	assert_int_equal(fake.opens, 1);
}

static void test_resolve_answers_with_the_error(void **state)
{
	fake_file("/bin/script", 0, 1, 10);
	fake.disk[0].err = -ENOEXEC;
	map_inode(5, 0x1000, "/bin/script", 10, 1);
	assert_int_equal(ask(exe_at(5, 0, 0x1000)), 0);
	fake_run();
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, -ENOEXEC);
	/* and does not try again at once */
	assert_string_equal(name_of(exe_at(5, 0, 0x1000)), strerror(ENOEXEC));
	assert_int_equal(fake.opens, 1);
	pm_forget(pm, 20 * CLOCK_NSEC_PER_SEC);
	assert_int_equal(ask(exe_at(5, 0, 0x1000)), 0);
	fake_run();
	assert_int_equal(fake.opens, 2);
}

/* The mapper has exited: by another mapper, an ancestor, or our own root. */
static void test_other_ways_to_a_file(void **state)
{
	fake_file("/lib/c.so", 7, 1, 10);
	fake_file("/lib/d.so", 8, 2, 11);
	fake.gone[fake.ngone++] = 5;
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/c.so", 7);
	do_mmap(6, 8000, 0x4000, 0x5000, "/lib/c.so", 7);
	fake_run();
	assert_true(exe_info(exe_at(5, 0, 0x1000)).opened);
	assert_int_equal(fake.last_pid, 6);
	assert_int_equal(fake.last_map_start, 0x4000);
	do_mmap(5, 8000, 0x2000, 0x3000, "/lib/d.so", 8);
	fake_run();
	assert_true(exe_info(exe_at(5, 0, 0x2000)).opened);
	assert_int_equal(fake.last_pid, 4); /* d.so, by the parent */
	assert_int_equal(fake.opens, 4);
	fake.gone[fake.ngone++] = 4;
	fake_file("/lib/e.so", 9, 3, 12);
	map_inode(5, 0x5000, "/lib/e.so", 12, 3);
	fake_run();
	assert_int_equal(fake.last_pid, 0);
	assert_true(exe_info(exe_at(5, 0, 0x5000)).opened);
	/* Not by our own root without an inode: the process chose the path. */
	fake_file("/lib/f.so", 10, 4, 13);
	do_mmap(5, 8001, 0x7000, 0x8000, "/lib/f.so", 10);
	fake_run();
	assert_false(exe_info(exe_at(5, 0, 0x7000)).opened);
}

/* Our own file of that name is another one. */
static void test_wrong_file_is_refused(void **state)
{
	fake_file("/lib/c.so", 8, 1, 10);
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/c.so", 7);
	fake_run();
	assert_false(exe_info(exe_at(5, 0, 0x1000)).opened);
	assert_int_equal(exe_info(exe_at(5, 0, 0x1000)).open_error, -ESTALE);
	/* Without any identity no file of ours is touched. */
	map_inode(5, 0x2000, "/lib/none.so", 0, 0);
	fake_run();
	assert_int_not_equal(fake.last_pid, 0);
}

static void test_next_process_makes_another_try(void **state)
{
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/c.so", 7);
	fake_run();
	assert_int_equal(exe_info(exe_at(5, 0, 0x1000)).open_error, -ENOENT);
	fake_file("/lib/c.so", 7, 1, 10);
	do_mmap(6, 8001, 0x1000, 0x2000, "/lib/c.so", 7);
	fake_run();
	assert_true(exe_info(exe_at(5, 0, 0x1000)).opened);
	assert_int_equal(exe_info(exe_at(5, 0, 0x1000)).open_error, 0);
}

/* A file that can never be opened is not tried 2,000 times a second. */
static void test_tries_become_rare(void **state)
{
	uint64_t i;

	for (i = 0; i < 1000; i++) {
		do_mmap(5, 8000 + i, 0x1000, 0x2000, "/lib/c.so", 7);
		fake_run();
	}
	assert_true(fake.opens < 20);
}

static void test_limit_of_open_files(void **state)
{
	char path[16][16];
	struct pm_exe *first;
	uint8_t i;

	pm_free(pm);
	assert_int_equal(setup_files(4), 0);
	do_walk(5, 1, "/bin/a", 7000);
	for (i = 0; i < 16; i++) {
		snprintf(path[i], sizeof(path[i]), "/lib/%u.so", i);
		fake_file(path[i], i + 1, i + 1, i + 100);
		do_mmap(5, 8000, 0x1000ULL * (i + 1), 0x1000ULL * (i + 2),
			path[i], i + 1);
		fake_run();
		assert_true(fake.held <= 4);
	}
	assert_int_equal(stats().open_files, 4);
	assert_int_equal(stats().open_closed, 12);
	first = exe_at(5, 0, 0x1000);
	assert_true(exe_info(first).opened); /* known, though closed */
	assert_int_equal(fake.opens, 16);
	assert_string_equal(name_of(first), "/lib/0.so");
	assert_int_equal(fake.opens, 17);
	assert_int_equal(fake.held, 4);
	/* Another file with its path is detected. */
	for (i = 1; i < 8; i++)
		name_of(exe_at(5, 0, 0x1000ULL * (i + 1)));
	fake_lookup("/lib/0.so")->build_id = 99;
	assert_int_equal(ask(first), 0);
	fake_run();
	assert_int_equal(answer_err, -ESTALE);
}

static void test_limit_lowered(void **state)
{
	char path[8][16];
	uint8_t i;

	do_walk(5, 1, "/bin/a", 7000);
	for (i = 0; i < 8; i++) {
		snprintf(path[i], sizeof(path[i]), "/lib/%u.so", i);
		fake_file(path[i], i + 1, i + 1, i + 100);
		do_mmap(5, 8000, 0x1000ULL * (i + 1), 0x1000ULL * (i + 2),
			path[i], i + 1);
	}
	fake_run();
	assert_int_equal(fake.held, 8);
	name_of(exe_at(5, 0, 0x1000)); /* the first is used last */
	pm_set_open_files(pm, 2);
	assert_int_equal(fake.held, 2);
	assert_int_equal(stats().open_closed, 6);
	assert_int_equal(fake.opens, 8);
	assert_string_equal(name_of(exe_at(5, 0, 0x1000)), "/lib/0.so");
	assert_int_equal(fake.opens, 8); /* it was not among them */
	assert_string_equal(name_of(exe_at(5, 0, 0x2000)), "/lib/1.so");
	assert_int_equal(fake.opens, 9);
	assert_int_equal(fake.held, 2);
}

/* Whatever is requested at once, and however long the answers take. */
static void test_limit_is_never_exceeded(void **state)
{
	char path[8][16];
	uint8_t i;

	pm_free(pm);
	assert_int_equal(setup_files(2), 0);
	do_walk(5, 1, "/bin/a", 7000);
	for (i = 0; i < 8; i++) {
		snprintf(path[i], sizeof(path[i]), "/lib/%u.so", i);
		fake_file(path[i], i + 1, i + 1, i + 100);
		do_mmap(5, 8000, 0x1000ULL * (i + 1), 0x1000ULL * (i + 2),
			path[i], i + 1);
	}
	assert_int_equal(fake.opens, 2); /* under way; the others wait */
	answers = 0;
	for (i = 0; i < 8; i++)
		ask_name(exe_at(5, 0, 0x1000ULL * (i + 1)));
	while (fake.nqueue) {
		fake_turn();
		assert_true(fake.held <= 2);
	}
	assert_int_equal(answers, 8);
	assert_int_equal(answer_err, 0);
	assert_true(fake.opens >= 8); /* and those closed before their turn */
	assert_true(fake.opens <= 16);
}

/* Requests that wait for room are answered by pm_free(). */
static void test_free_with_opens_waiting(void **state)
{
	pm_free(pm);
	assert_int_equal(setup_files(1), 0);
	do_walk(5, 1, "/bin/a", 7000);
	fake_file("/lib/a.so", 1, 1, 1);
	fake_file("/lib/b.so", 2, 2, 2);
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/a.so", 1);
	do_mmap(5, 8000, 0x2000, 0x3000, "/lib/b.so", 2);
	assert_int_equal(fake.opens, 1);
	assert_int_equal(ask(exe_at(5, 0, 0x2000)), 0);
	pm_free(pm);
	pm = NULL;
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, -ECANCELED);
	assert_int_equal(fake.opens, 1);
}

/* An unmapped file is closed, so that its file system can be unmounted. */
static void test_unmapped_files_are_closed(void **state)
{
	struct pm_exe *exe;

	fake_file("/mnt/a.so", 1, 1, 10);
	fake_file("/mnt/b.so", 1, 1, 10); /* the same, by another name */
	do_mmap(5, 8000, 0x1000, 0x2000, "/mnt/a.so", 0);
	do_mmap(6, 8001, 0x1000, 0x2000, "/mnt/b.so", 0);
	fake_run();
	exe = pm_exe_get(exe_at(5, 0, 0x1000));
	assert_ptr_equal(pm_exe_root(exe_at(6, 0, 0x1000)), exe);
	assert_int_equal(fake.held, 2);
	do_exit(5, 0, SEC);
	do_reap(5, 0, SEC);
	pm_forget(pm, 9 * SEC);
	assert_int_equal(fake.held, 2); /* the other one maps it */
	do_exit(6, 0, 10 * SEC);
	do_reap(6, 0, 10 * SEC);
	pm_forget(pm, 11 * SEC);
	assert_int_equal(fake.held, 2); /* a name may still be requested */
	pm_forget(pm, 16 * SEC);
	assert_int_equal(fake.held, 0);
	assert_int_equal(stats().open_released, 2);
	assert_true(exe_info(exe).opened); /* the identity stays known */
	pm_exe_put(exe);
}

/* Of a file system that may be unmounted at once; its samples have their names then. */
static void test_unmapped_files_of_others_are_closed_soon(void **state)
{
	const struct pm_opts opts = { .symbolizer = &fake, .root_dev = 2 };

	pm_free(pm);
	assert_int_equal(pm_new(&pm, &opts), 0);
	do_walk(5, 1, "/bin/a", 7000);
	fake_file("/mnt/a.so", 1, 1, 10);
	do_mmap(5, 8000, 0x1000, 0x2000, "/mnt/a.so", 0);
	fake_run();
	do_exit(5, 0, SEC);
	do_reap(5, 0, SEC);
	pm_forget(pm, SEC);
	assert_int_equal(fake.held, 1);
	pm_forget(pm, SEC + 1);
	assert_int_equal(fake.held, 1); /* it may be run again at once */
	pm_forget(pm, SEC + SEC / 2);
	assert_int_equal(fake.held, 0);
}

/* Requests for names are answered from the file that was mapped. */
static void test_unmapped_files_at_work_stay(void **state)
{
	fake_file("/mnt/a.so", 1, 1, 10);
	do_mmap(5, 8000, 0x1000, 0x2000, "/mnt/a.so", 0);
	fake_run();
	assert_int_equal(ask(exe_at(5, 0, 0x1000)), 0);
	do_exit(5, 0, SEC);
	do_reap(5, 0, SEC);
	pm_forget(pm, 60 * SEC);
	pm_forget(pm, 70 * SEC);
	assert_int_equal(fake.held, 1);
	fake_run();
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, 0);
	pm_forget(pm, 71 * SEC);
	assert_int_equal(fake.held, 0);
}

/* Files with requests under way are not closed, not even for the limit. */
static void test_limit_spares_what_is_asked(void **state)
{
	pm_free(pm);
	assert_int_equal(setup_files(1), 0);
	do_walk(5, 1, "/bin/a", 7000);
	fake_file("/lib/a.so", 1, 1, 1);
	fake_file("/lib/b.so", 2, 2, 2);
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/a.so", 1);
	fake_run();
	assert_int_equal(ask(exe_at(5, 0, 0x1000)), 0);
	do_mmap(5, 8000, 0x2000, 0x3000, "/lib/b.so", 2);
	assert_int_equal(fake.opens, 1); /* b waits while a is read */
	fake_run();
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, 0);
	assert_int_equal(fake.opens, 2);
	assert_int_equal(fake.held, 1);
	assert_int_equal(ask(exe_at(5, 0, 0x1000)), 0);
	assert_int_equal(ask(exe_at(5, 0, 0x2000)), 0);
	fake_run();
	assert_int_equal(answers, 2);
	assert_int_equal(answer_err, 0);
	assert_int_equal(fake.held, 1);
}

/* The inode is the same, the file is not. */
static void test_file_rewritten_in_place(void **state)
{
	pm_free(pm);
	assert_int_equal(setup_files(1), 0);
	do_walk(5, 1, "/bin/a", 7000);
	fake_file("/lib/a.so", 0, 1, 1);
	fake_file("/lib/b.so", 0, 2, 2);
	map_inode(5, 0x1000, "/lib/a.so", 1, 1);
	map_inode(5, 0x2000, "/lib/b.so", 2, 1);
	fake_run();
	assert_int_equal(fake.held, 1);
	fake_lookup("/lib/a.so")->file_id = 3;
	assert_int_equal(ask(exe_at(5, 0, 0x1000)), 0);
	fake_run();
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, -ESTALE);
}

/* Unreferenced executables are kept, with their files, up to a number. */
static void test_idle_executables_are_kept(void **state)
{
	static char path[300][32];
	uint16_t i;

	fake_file("/bin/true", 7, 1, 10);
	for (i = 0; i < 10; i++) {
		do_mmap(5, 8000, 0x1000, 0x2000, "/bin/true", 7);
		fake_run();
		do_mmap(5, 8000, 0x1000, 0x2000, "//anon", 0);
	}
	assert_int_equal(fake.opens, 1);
	for (i = 0; i < 300; i++) {
		snprintf(path[i], sizeof(path[i]), "/tmp/conftest%u", i);
		fake_file(path[i], 0, i, i + 100);
		map_inode(5, 0x1000, path[i], i + 100, 5);
		fake_run();
	}
	do_mmap(5, 8001, 0x1000, 0x2000, "[vdso]", 0);
	assert_true(stats().exes <= 256 + 5);
	assert_true(stats().open_files <= 256 + 1);
}

static void test_reference_outlives_the_mapping(void **state)
{
	struct pm_exe *exe;

	fake_file("/lib/c.so", 7, 1, 10);
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/c.so", 7);
	exe = pm_exe_get(exe_at(5, 0, 0x1000));
	do_reap(5, 0, 8001);
	pm_forget(pm, 8002);
	assert_string_equal(name_of(exe), "/lib/c.so");
	pm_exe_put(exe);
}

/* Waiting for the file, opening it again, errors: as for names. */
static void test_rows(void **state)
{
	struct pm_exe *c, *none;

	fake_file("/lib/c.so", 7, 1, 10);
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/c.so", 7);
	do_mmap(5, 8000, 0x3000, 0x4000, "/lib/none.so", 8);
	c = exe_at(5, 0, 0x1000);
	none = exe_at(5, 0, 0x3000);
	answers = 0;
	assert_int_equal(pm_exe_rows(c, on_rows, NULL), 0);
	assert_int_equal(answers, 0); /* never from inside */
	fake_run();
	assert_int_equal(answers, 1);
	assert_string_equal(answer, "/lib/c.so");
	assert_int_equal(pm_exe_rows(none, on_rows, NULL), 0);
	fake_run();
	pm_forget(pm, 0);
	assert_int_equal(answers, 2);
	assert_int_equal(answer_err, -ENOENT);
	do_mmap(5, 8000, 0x6000, 0x7000, "[vdso]", 0);
	assert_int_equal(pm_exe_rows(exe_at(5, 0, 0x6000), on_rows, NULL), 0);
	fake_run();
	assert_int_equal(answers, 3);
	assert_int_equal(answer_err, 0);
	/* memory: its file may be a jitdump */
	do_mmap(5, 8000, 0x4000, 0x5000, "//anon", 0);
	assert_int_equal(pm_exe_rows(exe_at(5, 0, 0x4000), on_rows, NULL), 0);
	assert_int_equal(answers, 3);
	fake_run();
	pm_forget(pm, 0);
	assert_int_equal(answers, 4);
	assert_int_equal(answer_err, -ENOENT);
}

/* pm_free() with requests in every state. */
/* A file id of the fake disk is two bytes, low one first. */
#define SHORT_ID(file_id) \
	((uint64_t)((file_id)&0xff) << 56 | (uint64_t)((file_id) >> 8) << 48)

static void test_short_ids_lead_to_executables(void **state)
{
	struct pm_exe *a, *b;

	fake_file("/lib/a.so", 1, 0x1234, 10);
	fake_file("/lib/b.so", 0, 0x5678, 11); /* no build id */
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/a.so", 1);
	do_mmap(5, 8001, 0x2000, 0x3000, "/lib/b.so", 0);
	a = exe_at(5, 0, 0x1000);
	assert_int_equal(exe_info(a).short_id, 0); /* not opened yet */
	fake_run();
	a = exe_at(5, 0, 0x1000);
	b = exe_at(5, 0, 0x2000);
	assert_int_equal(exe_info(a).short_id, SHORT_ID(0x1234));
	assert_int_equal(exe_info(b).short_id, SHORT_ID(0x5678));
	assert_ptr_equal(pm_exe_by_short_id(pm, SHORT_ID(0x1234)), a);
	assert_ptr_equal(pm_exe_by_short_id(pm, SHORT_ID(0x5678)), b);
	assert_null(pm_exe_by_short_id(pm, SHORT_ID(0x9999)));
	assert_null(pm_exe_by_short_id(pm, 0));
	assert_int_equal(stats().short_id_clashes, 0);
}

/* An attacker can make the 64 bits equal: the ids still differ. */
static void test_short_ids_that_clash(void **state)
{
	struct pm_exe *exe[3];
	char path[3][16];
	uint8_t i;

	for (i = 0; i < 3; i++) {
		snprintf(path[i], sizeof(path[i]), "/lib/%u.so", i);
		fake_file(path[i], i + 1, 0x1234, i + 10);
		do_mmap(5, 8000 + i, 0x1000ULL * (i + 1), 0x1000ULL * (i + 2),
			path[i], i + 1);
	}
	fake_run();
	for (i = 0; i < 3; i++) {
		exe[i] = exe_at(5, 0, 0x1000ULL * (i + 1));
		assert_int_equal(exe_info(exe[i]).short_id,
				 SHORT_ID(0x1234) + i);
		assert_ptr_equal(pm_exe_by_short_id(pm, SHORT_ID(0x1234) + i),
				 exe[i]);
	}
	assert_int_equal(stats().short_id_clashes, 1 + 2);
}

static void test_each_executable_is_listed_once(void **state)
{
	struct pm_exe *exe;
	size_t n = 0, named = 0;

	fake_file("/lib/a.so", 1, 1, 10);
	fake_file("/lib/b.so", 1, 1, 10); /* the same by another name */
	fake_file("/lib/c.so", 2, 2, 11);
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/a.so", 0);
	do_mmap(5, 8001, 0x2000, 0x3000, "/lib/b.so", 0);
	do_mmap(5, 8002, 0x3000, 0x4000, "/lib/c.so", 2);
	do_mmap(6, 8003, 0x3000, 0x4000, "/lib/c.so", 2);
	fake_run();
	assert_string_equal(name_of(exe_at(5, 0, 0x3000)), "/lib/c.so");
	for (exe = pm_exe_next(pm, NULL); exe; exe = pm_exe_next(pm, exe)) {
		struct pm_exe_info i = exe_info(exe);

		assert_string_equal(i.path, n ? "/lib/c.so" : "/lib/a.so");
		assert_int_equal(i.mapped, 2);
		assert_true(i.held);
		assert_int_equal(i.names, n ? 0 : PM_EXE_NOT_ASKED);
		assert_int_equal(i.rows, PM_EXE_NOT_ASKED);
		/* Only the second was asked for a name. */
		for (size_t k = 0; k < SYMBOLIZER_N_SOURCES; k++)
			named += i.sources[k];
		assert_int_equal(named, n);
		n++;
	}
	assert_int_equal(n, 2);
}

static void test_free_with_requests_under_way(void **state)
{
	struct pm_exe *c, *d;

	fake_file("/lib/c.so", 7, 1, 10);
	fake_file("/lib/d.so", 8, 2, 11);
	do_mmap(5, 8000, 0x1000, 0x2000, "/lib/c.so", 7);
	fake_run();
	do_mmap(5, 8000, 0x2000, 0x3000, "/lib/d.so", 8);
	c = exe_at(5, 0, 0x1000);
	d = exe_at(5, 0, 0x2000);
	answers = 0;
	assert_int_equal(ask_name(c), 0);
	assert_int_equal(ask_name(d), 0);
	do_mmap(5, 8000, 0x3000, 0x4000, "//anon", 0);
	assert_int_equal(ask_name(exe_at(5, 0, 0x3000)), 0);
	do_mmap(5, 8000, 0x6000, 0x7000, "[vdso]", 0);
	assert_int_equal(pm_exe_rows(exe_at(5, 0, 0x6000), on_rows, NULL), 0);
	pm_free(pm);
	pm = NULL;
	/*
	 * c's and the rows, under way; d's, whose file did not come; //anon's
	 */
	assert_int_equal(answers, 4);
	assert_int_equal(answer_err, -ECANCELED);
	fake_run(); /* the symbolizer's own answers are dropped */
	assert_int_equal(answers, 4);
	assert_int_equal(fake.held, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, two_processes, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_opened_when_first_seen),
		T(test_build_id_is_the_identity),
		T(test_deleted_is_no_part_of_a_name),
		T(test_same_file_by_two_inode_keys),
		T(test_same_file_without_build_id),
		T(test_inode_of_proc_is_not_kept),
		T(test_reread_keeps_the_executable),
		T(test_kinds_by_path),
		T(test_anonymous_memory_belongs_to_its_process),
		T(test_singletons),
		T(test_resolve_waits_for_the_file),
		T(test_resolve_answers_with_the_error),
		T(test_other_ways_to_a_file),
		T(test_wrong_file_is_refused),
		T(test_next_process_makes_another_try),
		T(test_tries_become_rare),
		T(test_limit_of_open_files),
		T(test_limit_lowered),
		T(test_limit_is_never_exceeded),
		T(test_unmapped_files_are_closed),
		T(test_unmapped_files_of_others_are_closed_soon),
		T(test_unmapped_files_at_work_stay),
		T(test_limit_spares_what_is_asked),
		T(test_file_rewritten_in_place),
		T(test_idle_executables_are_kept),
		T(test_rows),
		T(test_reference_outlives_the_mapping),
		T(test_short_ids_lead_to_executables),
		T(test_short_ids_that_clash),
		T(test_each_executable_is_listed_once),
		T(test_free_with_requests_under_way),
		T(test_free_with_opens_waiting),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
