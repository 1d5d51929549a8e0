// SPDX-License-Identifier: Apache-2.0
/*
 * Files that are executed for the first time: opened at once by their process,
 * kept until their mapping comes, and known to the kernel side from then on.
 */
#include "tests/unit/processmanager/test_pm_fake.h"

#define SEC CLOCK_NSEC_PER_SEC
#define T0 (100 * SEC)

static struct quark_file_ident known[1024];
static size_t nknown;
static int answers, answer_err;

static void on_known(void *arg, const struct quark_file_ident *ident, bool add)
{
	size_t i;

	for (i = 0; i < nknown; i++)
		if (!memcmp(&known[i], ident, sizeof(*ident)))
			break;
	if (add && i == nknown) {
		assert_true(nknown < ARRAY_SIZE(known));
		known[nknown++] = *ident;
	} else if (!add && i < nknown) {
		known[i] = known[--nknown];
	}
}

static struct {
	unsigned int told;
	struct quark_file_ident ident;
	struct symbolizer_go go; /* all zero: forgotten */
} go_file;

static void on_go_file(void *arg, const struct quark_file_ident *ident,
		       const struct symbolizer_go *go)
{
	go_file.told++;
	go_file.ident = *ident;
	memset(&go_file.go, 0, sizeof(go_file.go));
	if (go)
		go_file.go = *go;
}

static int setup_early(void **state)
{
	struct pm_opts opts = { .symbolizer = &fake,
				.want_maps = on_want,
				.known_file = on_known,
				.go_file = on_go_file };
	int err;

	memset(&fake, 0, sizeof(fake));
	nwants = nknown = 0;
	memset(&go_file, 0, sizeof(go_file));
	err = pm_new(&pm, &opts);
	if (err)
		return err;
	do_walk(5, 4, "/bin/sh", T0 - SEC);
	do_walk(6, 4, "/bin/sh", T0 - SEC);
	return 0;
}

static int teardown_early(void **state)
{
	int err = teardown(state);

	/* The kernel side forgets it too. */
	assert_int_equal(nknown, 0);
	return err;
}

static void executes(uint32_t pid, uint32_t uid, const char *path, uint64_t ino,
		     uint64_t ctime)
{
	struct quark_new_file f = {
		.pid = pid,
		.uid = uid,
		.start_boottime = born(pid),
		.boottime = T0,
		.ident = { .dev = 1, .ino = ino, .ctime_ns = ctime },
		.path = path,
	};

	assert_int_equal(pm_new_file(pm, &f), 0);
}

static void maps(uint32_t pid, const char *path, uint64_t ino)
{
	struct pm_map_event ev = map_of(0x1000, 0x2000, path, 0);

	ev.tgid = pid;
	ev.time = T0 + 1;
	ev.dev = 1;
	ev.ino = ino;
	ev.ino_generation = 3;
	assert_int_equal(pm_map_event(pm, &ev), 0);
}

static void on_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	answers++;
	answer_err = err;
	symbolizer_rows_free(rows);
}

static void ask_rows(struct pm_exe *exe)
{
	answers = 0;
	answer_err = 1;
	assert_int_equal(pm_exe_rows(exe, on_rows, NULL), 0);
}

static struct pm_exe_info exe_info(const struct pm_exe *exe)
{
	struct pm_exe_info info;

	pm_exe_info(exe, &info);
	return info;
}

/* Its process and its path do not exist when the mapping comes. */
static void test_open_before_its_mapping(void **state)
{
	fake_file("/tmp/new", 7, 1, 77);
	executes(5, 1000, "/tmp/new", 77, 1);
	assert_int_equal(fake.last_pid, 5);
	fake_run();
	assert_int_equal(fake.held, 1);
	assert_int_equal(nknown, 0);
	fake.gone[fake.ngone++] = 5;
	fake.disk[0].path = "/tmp/deleted";
	maps(5, "/tmp/new", 77);
	assert_int_equal(fake.opens, 1);
	assert_true(exe_info(exe_at(5, 0, 0x1000)).held);
	assert_int_equal(stats().open_files, 1);
	assert_int_equal(nknown, 1);
	ask_rows(exe_at(5, 0, 0x1000));
	fake_run();
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, 0);
	/* One that the kernel side forgot is reported, and not opened. */
	nknown = 0;
	executes(6, 1000, "/tmp/new", 77, 1);
	assert_int_equal(nknown, 1);
	assert_int_equal(fake.opens, 1);
}

static void test_mapping_comes_first(void **state)
{
	fake_file("/tmp/new", 7, 1, 77);
	executes(5, 1000, "/tmp/new", 77, 1);
	/* Another process, at the same time: one opening. */
	executes(6, 1000, "/tmp/new", 77, 1);
	maps(5, "/tmp/new", 77);
	maps(6, "/tmp/new", 77);
	assert_int_equal(fake.opens, 1);
	ask_rows(exe_at(5, 0, 0x1000));
	assert_int_equal(answers, 0);
	fake_run();
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, 0);
	assert_int_equal(fake.opens, 1);
	assert_int_equal(nknown, 1);
	assert_int_equal(stats().early, 1);
	assert_int_equal(stats().early_opened, 1);
}

/*
 * That it is of Go is known with its rows. It is reported for each identity that it was
 * executed with, before and after, until the kernel side forgets that one.
 */
static void test_go(void **state)
{
	fake_file("/tmp/go", 7, 1, 77);
	executes(5, 1000, "/tmp/go", 77, 1);
	maps(5, "/tmp/go", 77);
	ask_rows(exe_at(5, 0, 0x1000));
	fake_run();
	assert_int_equal(answers, 1);
	assert_int_equal(go_file.told, 0);
	fake.go = (struct symbolizer_go){ -72, 184 };
	ask_rows(exe_at(5, 0, 0x1000));
	fake_run();
	assert_int_equal(go_file.told, 1);
	assert_int_equal(go_file.ident.ino, 77);
	assert_int_equal(go_file.ident.ctime_ns, 1);
	assert_int_equal(go_file.go.tls, -72);
	assert_int_equal(go_file.go.curg, 184);
	executes(6, 1000, "/tmp/go", 77, 2);
	fake_run();
	maps(6, "/tmp/go", 77);
	assert_int_equal(go_file.told, 2);
	assert_int_equal(go_file.ident.ctime_ns, 2);
	assert_int_equal(go_file.go.tls, -72);
	do_exit(5, 0, T0 + SEC);
	do_reap(5, 0, T0 + SEC);
	do_exit(6, 0, T0 + SEC);
	do_reap(6, 0, T0 + SEC);
	pm_forget(pm, T0 + 2 * SEC);
	do_fork(6, 0, 10, T0 + 9 * SEC);
	pm_forget(pm, T0 + 9 * SEC);
	assert_int_equal(go_file.told, 4);
	assert_int_equal(go_file.go.tls, 0);
}

/* It failed: the usual lookup strategies are tried. */
static void test_failed(void **state)
{
	fake_file("/tmp/new", 7, 1, 77);
	fake.disk[0].err = -ENOENT;
	executes(5, 1000, "/tmp/new", 77, 1);
	maps(5, "/tmp/new", 77);
	ask_rows(exe_at(5, 0, 0x1000));
	fake_turn();
	assert_int_equal(answers, 0);
	assert_int_equal(stats().early_failed, 1);
	fake.disk[0].err = 0;
	fake_run();
	assert_int_equal(answers, 1);
	assert_int_equal(answer_err, 0);
	assert_int_equal(nknown, 0);
	/* No mapping waits, and it can never be read: not reported again. */
	fake_file("/tmp/script", 0, 2, 78);
	fake.disk[1].err = -ENOEXEC;
	executes(5, 1000, "/tmp/script", 78, 1);
	fake_run();
	assert_int_equal(nknown, 1);
	nknown = 0;
}

/* The process has executed another file by then. */
static void test_another_file(void **state)
{
	fake_file("/tmp/new", 7, 1, 0);
	executes(5, 1000, "/tmp/new", 77, 1);
	fake.disk[0].ino = 78;
	fake_run();
	assert_int_equal(stats().early_failed, 1);
	assert_int_equal(fake.held, 0);
}

/* Copied over: the same inode and generation, another ctime. */
static void test_changed_file(void **state)
{
	struct pm_exe *first;

	fake_file("/tmp/new", 7, 1, 77);
	executes(5, 1000, "/tmp/new", 77, 1);
	fake_run();
	maps(5, "/tmp/new", 77);
	first = exe_at(5, 0, 0x1000);
	fake.disk[0].build_id = 8;
	executes(6, 1000, "/tmp/new", 77, 2);
	fake_run();
	maps(6, "/tmp/new", 77);
	assert_ptr_not_equal(exe_at(6, 0, 0x1000), first);
	assert_int_equal(exe_info(exe_at(6, 0, 0x1000)).ident.build_id[0], 8);
	assert_int_equal(exe_info(first).ident.build_id[0], 7);
	assert_int_equal(nknown, 2);
}

static void test_bounds(void **state)
{
	char path[32];
	unsigned int i;

	for (i = 0; i < 300; i++) {
		snprintf(path, sizeof(path), "/tmp/new%u", i);
		executes(5, 1000, path, 100 + i, 1);
	}
	/* One user's flood leaves room for another's. */
	assert_int_equal(stats().early, 128);
	assert_int_equal(stats().early_refused, 300 - 128);
	for (i = 0; i < 300; i++) {
		snprintf(path, sizeof(path), "/tmp/other%u", i);
		executes(6, 1001, path, 1000 + i, 1);
	}
	assert_int_equal(stats().early, 256);
	executes(6, 1002, "/tmp/third", 5000, 1);
	assert_int_equal(stats().early, 256);
	fake_run(); /* no such file exists */
	assert_int_equal(stats().early_failed, 256);
	executes(6, 1002, "/tmp/third", 5000, 1);
	assert_int_equal(stats().early, 257);
}

/* Short-lived programs do not close the files of running ones. */
static void test_mapped_files_stay_open(void **state)
{
	char path[16][32];
	struct pm_exe *exe;
	unsigned int i;

	pm_set_open_files(pm, 8);
	fake_file("/tmp/runs", 7, 1, 77);
	maps(5, "/tmp/runs", 77);
	fake_run();
	exe = exe_at(5, 0, 0x1000);
	for (i = 0; i < 16; i++) {
		snprintf(path[i], sizeof(path[i]), "/tmp/new%u", i);
		fake_file(path[i], 20 + i, 100 + i, 100 + i);
		executes(6, 1000, path[i], 100 + i, 1);
		fake_run();
		maps(6, path[i], 100 + i);
	}
	assert_true(exe_info(exe).held);
	assert_true(stats().open_files <= 8);
	assert_true(stats().open_closed >= 9);
}

/* Closed, it may be deleted by its next exec, which is reported. */
static void test_known_while_open(void **state)
{
	fake_file("/tmp/new", 7, 1, 77);
	executes(5, 1000, "/tmp/new", 77, 1);
	fake_run();
	maps(5, "/tmp/new", 77);
	assert_int_equal(nknown, 1);
	do_exit(5, 0, T0 + SEC);
	do_reap(5, 0, T0 + SEC);
	pm_forget(pm, T0 + 2 * SEC);
	assert_int_equal(nknown, 1);
	do_fork(6, 0, 10, T0 + 9 * SEC);
	pm_forget(pm, T0 + 9 * SEC);
	assert_int_equal(fake.held, 0);
	assert_int_equal(nknown, 0);
}

static void test_unused(void **state)
{
	fake_file("/tmp/new", 7, 1, 77);
	executes(5, 1000, "/tmp/new", 77, 1);
	fake_run();
	do_fork(5, 0, 9, T0 + SEC);
	pm_forget(pm, 0);
	assert_int_equal(fake.held, 1);
	do_fork(5, 0, 10, T0 + 5 * SEC);
	pm_forget(pm, 0);
	assert_int_equal(fake.held, 0);
	assert_int_equal(stats().early_unused, 1);
}

/* Final, so it is reported only for errors of that very file. */
static void test_never(void **state)
{
	static const struct {
		int err;
		size_t known;
	} errs[] = {
		{ -ENOEXEC, 1 }, { -SYMBOLIZER_EPLACE, 1 }, { -EACCES, 0 },
		{ -EPERM, 0 },	 { -EBADMSG, 0 },	    { -ESTALE, 0 },
	};

	fake_file("/tmp/new", 7, 1, 77);
	for (size_t i = 0; i < ARRAY_SIZE(errs); i++) {
		fake.disk[0].err = errs[i].err;
		executes(5, 1000, "/tmp/new", 77, 1);
		fake_run();
		assert_int_equal(nknown, errs[i].known);
		nknown = 0;
	}
}

/* pm_free() with one under way, and one with a mapping. */
static void test_end(void **state)
{
	fake_file("/tmp/new", 7, 1, 77);
	fake_file("/tmp/two", 8, 2, 78);
	executes(5, 1000, "/tmp/new", 77, 1);
	executes(6, 1000, "/tmp/two", 78, 1);
	maps(5, "/tmp/new", 77);
	ask_rows(exe_at(5, 0, 0x1000));
}

static void test_end_with_one_open(void **state)
{
	fake_file("/tmp/new", 7, 1, 77);
	executes(5, 1000, "/tmp/new", 77, 1);
	fake_run();
	assert_int_equal(fake.held, 1);
}

#define EARLY(name) \
	cmocka_unit_test_setup_teardown(name, setup_early, teardown_early)

int main(void)
{
	const struct CMUnitTest tests[] = {
		EARLY(test_open_before_its_mapping),
		EARLY(test_mapping_comes_first),
		EARLY(test_go),
		EARLY(test_failed),
		EARLY(test_another_file),
		EARLY(test_changed_file),
		EARLY(test_bounds),
		EARLY(test_mapped_files_stay_open),
		EARLY(test_known_while_open),
		EARLY(test_unused),
		EARLY(test_never),
		EARLY(test_end),
		EARLY(test_end_with_one_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
