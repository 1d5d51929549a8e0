// SPDX-License-Identifier: Apache-2.0
/* The archive, files, other readers of profiles, memory of a window. */
#include <seccomp.h>

#include "tests/unit/reporter/test_reporter_common.h"

/* --- files --------------------------------------------------------------- */

static void file_names_sort_by_time_and_never_collide(void **state)
{
	struct reporter_opts o = options();
	int i;

	o.window_s = 1;
	start(o);
	/* Two windows that begin within one second. */
	for (i = 0; i < 4; i++) {
		add_simple(T0 + i * SEC);
		reporter_rotate(t.r, T0 + i * SEC + 500);
		reporter_advance(t.r, T0 + i * SEC + 500);
		settle();
	}
	finish(T0 + 4 * SEC);
	assert_int_equal(t.failed, 0);
	assert_int_equal(count_files(".pb.gz"), t.written);
	assert_int_equal(t.written, 4);
	assert_non_null(strstr(t.path[0], "/deep/archive/2026-08-21/"
					  "cpu-host_one-20260821T080000Z"));
	assert_non_null(strstr(t.path[0], "Z-1s.pb.gz"));
	for (i = 0; i < t.written; i++)
		checked(t.path[i]);
}

static void one_archive_has_one_profd(void **state)
{
	struct reporter_opts o = options();
	struct reporter *second;
	const char *where = NULL;

	start(o);
	assert_int_equal(reporter_new(&second, &o, &where), -EBUSY);
	assert_string_equal(where, t.archive);
	finish(T0);
}

static void an_impossible_archive_is_an_error(void **state)
{
	struct reporter_opts o = options();
	struct reporter *r;
	const char *where = NULL;

	o.archive = "/dev/null/x";
	assert_int_equal(reporter_new(&r, &o, &where), -ENOTDIR);
	assert_string_equal(where, o.archive);
}

static void touch(const char *name)
{
	char path[256];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", t.archive, name);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	close(fd);
}

static void the_start_sweeps_leftovers_and_nothing_else(void **state)
{
	struct reporter_stats st;

	start(options());
	reporter_free(t.r);
	settle();
	touch("cpu-h-20260101T000000Z-60s.pb.gz.3.tmp");
	touch("cpu-h-20260101T000000Z-60s.pb.gz");
	touch("notes.tmp");
	touch("notes.pb.gz.tmp");
	start(options());
	reporter_get_stats(t.r, &st);
	assert_int_equal(st.swept, 1);
	assert_int_equal(count_files(".tmp"), 2);
	assert_int_equal(count_files(".gz"), 1);
	finish(T0);
}

/* Creates the directory t.archive with a mode. */
static void make_archive(mode_t mode)
{
	char parent[128];

	snprintf(parent, sizeof(parent), "%s/deep", t.dir);
	assert_int_equal(mkdir(parent, 0755), 0);
	assert_int_equal(mkdir(t.archive, 0700), 0);
	assert_int_equal(chmod(t.archive, mode), 0);
}

static void refused(int err)
{
	struct reporter_opts o = options();
	const char *where = NULL;
	struct reporter *r;

	assert_int_equal(reporter_new(&r, &o, &where), err);
	assert_string_equal(where, o.archive);
}

static void an_archive_of_another_user_is_refused(void **state)
{
	make_archive(0770);
	refused(-EPERM);
	assert_int_equal(chmod(t.archive, 01777), 0);
	refused(-EPERM);
	assert_int_equal(chmod(t.archive, 0755), 0);
	/* Only where other users exist: a user namespace may have root only. */
	if (!geteuid() && !chown(t.archive, 65534, 65534)) {
		refused(-EPERM);
		assert_int_equal(chown(t.archive, 0, 0), 0);
	}
	start(options());
	finish(T0);
}

static void an_archive_is_no_symbolic_link(void **state)
{
	char away[128];

	make_archive(0755);
	snprintf(away, sizeof(away), "%s/away", t.dir);
	assert_int_equal(rename(t.archive, away), 0);
	assert_int_equal(symlink(away, t.archive), 0);
	refused(-ENOTDIR);
}

static void a_planted_name_neither_blocks_nor_is_followed(void **state)
{
	struct reporter_outfile f;
	char name[64], fifo[256];
	int i, dirfd;

	make_archive(0755);
	dirfd = open(t.archive, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(dirfd >= 0);
	/* The consecutive names of earlier versions. */
	for (i = 0; i < 8; i++) {
		snprintf(fifo, sizeof(fifo), "%s/x.pb.gz.%d.tmp", t.archive, i);
		assert_int_equal(mkfifo(fifo, 0666), 0);
	}
	alarm(20);
	assert_int_equal(reporter_outfile_open_at(&f, dirfd, "x.pb.gz"), 0);
	alarm(0);
	assert_int_equal(write(f.fd, "x", 1), 1);
	/* An existing file is not replaced. */
	touch("x.pb.gz");
	assert_int_equal(reporter_outfile_commit(&f), 0);
	snprintf(name, sizeof(name), "%s", f.name);
	reporter_outfile_fini(&f);
	assert_string_equal(name, "x-1.pb.gz");
	assert_int_equal(count_files(".tmp"), 8);
	close(dirfd);
}

/* Adds much data that compresses badly, so that writing takes long. */
static void add_many(int n)
{
	struct pm_image img = image(1, 100, EXE_A);
	struct reporter_frame f[30];
	unsigned int seed = 1;
	int i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < 30; k++) {
			uint64_t at = 0x401000 + rand_r(&seed) % 0x2000;

			f[k] = frame(EXE_A, at, at & ~0xfUL, "some_function");
		}
		assert_int_equal(add(&img, T0 + i, 100 + i % 7, "t", f, 30), 0);
	}
}

static void holds(const char *path, const char *text)
{
	char have[64] = "";
	FILE *f = fopen(path, "r");

	assert_non_null(f);
	assert_int_equal(fread(have, 1, sizeof(have) - 1, f), strlen(text));
	fclose(f);
	assert_string_equal(have, text);
}

/* As on a file system without O_TMPFILE. */
static void forbid_unnamed_files(void)
{
	scmp_filter_ctx ctx = seccomp_init(SCMP_ACT_ALLOW);

	assert_non_null(ctx);
	assert_int_equal(seccomp_rule_add(ctx, SCMP_ACT_ERRNO(EOPNOTSUPP),
					  SCMP_SYS(openat), 1,
					  SCMP_A2(SCMP_CMP_MASKED_EQ, O_TMPFILE,
						  O_TMPFILE)),
			 0);
	assert_int_equal(seccomp_load(ctx), 0);
	seccomp_release(ctx);
}

/* Whether a file without a name is open in the archive. */
static bool writes_unnamed(void)
{
	char link[64], path[512];
	ssize_t n;
	int fd;

	for (fd = 3; fd < 64; fd++) {
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		n = readlink(link, path, sizeof(path) - 1);
		path[n > 0 ? n : 0] = '\0';
		if (!strncmp(path, t.archive, strlen(t.archive)) &&
		    strstr(path, " (deleted)"))
			return true;
	}
	return false;
}

/*
 * The number of temporary files that ten killed processes leave. One that got no CPU
 * between the look and its end has written its file: then once more.
 */
static int kill_while_writing(bool unnamed)
{
	int i, leftovers = 0, tries = 0;
	char cmd[512];
	pid_t pid;

	for (i = 0; i < 10; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			if (!unnamed)
				forbid_unnamed_files();
			start(options());
			add_many(3000);
			reporter_advance(t.r, T0 + 60 * SEC);
			while (unnamed ? !writes_unnamed()
				       : !count_files(".tmp"))
				usleep(100);
			raise(SIGKILL);
		}
		waitpid(pid, NULL, 0);
		if (count_files(".gz") && tries++ < 10) {
			snprintf(cmd, sizeof(cmd), "rm -rf %s/*", t.archive);
			assert_int_equal(system(cmd), 0);
			leftovers = 0;
			i = -1;
			continue;
		}
		assert_int_equal(count_files(".gz"), 0);
		leftovers += count_files(".tmp");
	}
	return leftovers;
}

static void killed_while_writing_leaves_nothing(void **state)
{
	assert_int_equal(kill_while_writing(true), 0);
	start(options());
	finish(T0 + SEC);
}

static void what_a_killed_one_left_is_removed(void **state)
{
	assert_true(kill_while_writing(false) > 0);
	start(options());
	assert_int_equal(count_files(".tmp"), 0);
	finish(T0 + SEC);
}

/* Both ways to write a file have the same results. */
static void a_file_without_unnamed_files(void **state)
{
	struct reporter_outfile f;
	char path[256];
	int status;
	pid_t pid;

	make_archive(0755);
	snprintf(path, sizeof(path), "%s/a.pb", t.archive);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		forbid_unnamed_files();
		if (reporter_outfile_open(&f, path) || !f.tmp ||
		    write(f.fd, "abc", 3) != 3 || reporter_outfile_commit(&f))
			_exit(1);
		_exit(0);
	}
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	holds(path, "abc");
	assert_int_equal(reporter_outfile_open(&f, path), 0);
	assert_null(f.tmp);
	assert_int_equal(write(f.fd, "abcd", 4), 4);
	holds(path, "abc");
	assert_int_equal(reporter_outfile_commit(&f), 0);
	reporter_outfile_fini(&f);
	holds(path, "abcd");
	assert_int_equal(count_files(".tmp"), 0);
	assert_int_equal(reporter_outfile_open(&f, path), 0);
	reporter_outfile_abort(&f);
	holds(path, "abcd");
}

static void a_full_disk_is_counted_and_leaves_nothing(void **state)
{
	struct rlimit small = { 20000, RLIM_INFINITY }, old;

	start(options());
	add_many(3000);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &old);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	reporter_advance(t.r, T0 + 60 * SEC);
	settle();
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
	assert_int_equal(t.failed, 1);
	assert_int_equal(t.err, -EFBIG);
	assert_int_equal(count_files(".tmp") + count_files(".gz"), 0);
	/* The next one works again. */
	add_simple(T0 + 61 * SEC);
	finish(T0 + 62 * SEC);
	assert_int_equal(t.written, 1);
	checked(t.path[0]);
}

static void a_recording_is_a_file_by_its_name(void **state)
{
	struct reporter_opts o = options();
	static const char *const names[] = { "x.pb", "x.pb.gz", "x.pb.zst" };
	char path[128];
	size_t i;

	o.archive = NULL;
	start(o);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		uint64_t at = T0 + i * 10 * SEC;

		snprintf(path, sizeof(path), "%s/%s", t.dir, names[i]);
		open_window((struct reporter_window_opts){
			.begin = at,
			.end = at + SEC,
			.path = path,
			.format = reporter_format_of(path) });
		assert_int_equal(access(path, F_OK), -1);
		add_simple(at);
		reporter_advance(t.r, at + SEC);
		settle();
		assert_int_equal(got.err, 0);
		assert_null(got.data);
		assert_int_equal(pprof_samples(checked(path)), 1);
	}
	finish(T0 + 60 * SEC);
	assert_int_equal(reporter_format_of("x.pb.xz"), -EINVAL);
	assert_int_equal(reporter_format_of(".pb"), -EINVAL);
}

static void put_file(char path[256], const char *name, const void *data,
		     size_t len)
{
	FILE *f;

	snprintf(path, 256, "%s/%s", t.dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static void a_recording_spares_the_file_beside_it(void **state)
{
	char mine[256], path[128];

	put_file(mine, "x.pb.gz.tmp", "mine\n", 5);
	start(options());
	snprintf(path, sizeof(path), "%s/x.pb.gz", t.dir);
	open_window((struct reporter_window_opts){
		.begin = T0, .end = T0 + SEC, .path = path });
	add_simple(T0);
	finish(T0 + SEC);
	assert_int_equal(got.err, 0);
	holds(mine, "mine\n");
	checked(path);
}

static void a_profile_is_known_from_another_file(void **state)
{
	static const enum reporter_format formats[] = { REPORTER_RAW,
							REPORTER_GZIP,
							REPORTER_ZSTD };
	static const char text[] = "Dear diary,\ntoday I profiled.\n";
	static const uint8_t gzip[] = { 0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3 };
	static const uint8_t zstd[] = { 0x28, 0xb5, 0x2f, 0xfd, 0x04, 0x58 };
	char path[256];
	size_t i;

	start(options());
	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		open_window((struct reporter_window_opts){
			.begin = T0 + i * SEC,
			.end = T0 + (i + 1) * SEC,
			.format = formats[i] });
		add_many(i ? 3000 : 1);
		reporter_advance(t.r, T0 + (i + 1) * SEC);
		settle();
		put_file(path, "profile", got.data, got.len);
		free(got.data);
		assert_true(reporter_is_profile(path));
		put_file(path, "text", text, sizeof(text));
		assert_false(reporter_is_profile(path));
	}
	put_file(path, "gzip", gzip, sizeof(gzip));
	assert_false(reporter_is_profile(path));
	put_file(path, "zstd", zstd, sizeof(zstd));
	assert_false(reporter_is_profile(path));
	put_file(path, "empty", "", 0);
	assert_true(reporter_is_profile(path));
	snprintf(path, sizeof(path), "%s/fifo", t.dir);
	assert_int_equal(mkfifo(path, 0600), 0);
	assert_false(reporter_is_profile(path));
	assert_false(reporter_is_profile("/dev/zero"));
	assert_false(reporter_is_profile("/nonexistent"));
	finish(T0 + 60 * SEC);
}

static void a_recording_to_a_missing_directory_fails_at_once(void **state)
{
	struct reporter_window_opts o = { .begin = T0,
					  .end = T0 + SEC,
					  .path = "/proc/nothing/x.pb" };
	struct reporter_window *w;

	start(options());
	assert_int_equal(reporter_window_open(t.r, &o, &w), -ENOENT);
	o.path = "/proc/x.pb";
	assert_true(reporter_window_open(t.r, &o, &w) < 0);
	finish(T0 + SEC);
}

static void a_recording_to_a_device_leaves_the_device(void **state)
{
	struct stat st;

	start(options());
	open_window((struct reporter_window_opts){
		.begin = T0, .end = T0 + SEC, .path = "/dev/null" });
	add_simple(T0);
	finish(T0 + SEC);
	assert_int_equal(got.err, 0);
	assert_int_equal(got.nsamples, 1);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(S_ISCHR(st.st_mode));
}

/* --- other readers ------------------------------------------------------- */

static void protoc_and_gzip_and_go_read_it(void **state)
{
	char path[128];

	start(options());
	snprintf(path, sizeof(path), "%s/x.pb.gz", t.dir);
	open_window((struct reporter_window_opts){ .begin = T0,
						   .end = T0 + SEC,
						   .path = path,
						   .format = REPORTER_GZIP });
	add_many(200);
	finish(T0 + SEC);
	assert_int_equal(run("gzip -tq %s && echo fine", t.path[0], "fine"), 1);
	assert_int_equal(
		run("gzip -dcq %s | protoc --proto_path=reporter "
		    "--decode=perftools.profiles.Profile profile.proto",
		    t.path[0], "some_function"),
		1);
	assert_int_equal(run(PPROF_GO "-top %s 2>&1", path, "some_function"),
			 1);
	assert_int_equal(run(PPROF_GO "-top %s 2>&1", path, "File: alpha"), 1);
	assert_int_equal(run(PPROF_GO "-top %s 2>&1", path, "Type: cpu"), 1);
	assert_int_equal(run(PPROF_GO "-raw %s 2>&1", path,
			     "samples/count cpu/nanoseconds"),
			 1);
	assert_int_equal(run(PPROF_GO "-raw %s 2>&1", path, "abcd01"), 1);
	assert_int_equal(run(PPROF_GO "-tags %s 2>&1", path, "/usr/bin/alpha"),
			 1);
}

/* --- memory -------------------------------------------------------------- */

static void a_window_is_small(void **state)
{
	struct reporter_stats st;
	double each;

	start(options());
	add_many(12000); /* all different: the worst case */
	reporter_get_stats(t.r, &st);
	each = (double)st.memory_bytes / 12000;
	print_message("# 12,000 samples of 30 frames: %llu bytes, %.0f each\n",
		      (unsigned long long)st.memory_bytes, each);
	assert_true(each < 100 + 4 * 30 + 100); /* + their 8,192 places */
	finish(T0 + SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(file_names_sort_by_time_and_never_collide),
		T(one_archive_has_one_profd),
		T(an_impossible_archive_is_an_error),
		T(the_start_sweeps_leftovers_and_nothing_else),
		T(an_archive_of_another_user_is_refused),
		T(an_archive_is_no_symbolic_link),
		T(a_planted_name_neither_blocks_nor_is_followed),
		T(killed_while_writing_leaves_nothing),
		T(what_a_killed_one_left_is_removed),
		T(a_file_without_unnamed_files),
		T(a_full_disk_is_counted_and_leaves_nothing),
		T(a_recording_is_a_file_by_its_name),
		T(a_recording_spares_the_file_beside_it),
		T(a_profile_is_known_from_another_file),
		T(a_recording_to_a_missing_directory_fails_at_once),
		T(a_recording_to_a_device_leaves_the_device),
		T(protoc_and_gzip_and_go_read_it),
		T(a_window_is_small),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
