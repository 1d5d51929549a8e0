// SPDX-License-Identifier: Apache-2.0
/* The archive on disk: names, days, boundaries, retention, the list. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <time.h>

#include "reporter/store/store.h"
#include "tests/unit/reporter/test_reporter_common.h"

#define MS CLOCK_NSEC_PER_MSEC
#define DAY 86400

/* --- names ------------------------------------------------------------------ */

static void a_name_tells_time_duration_and_copy(void **state)
{
	char stem[STORE_STEM_MAX], name[STORE_FILE_MAX], day[STORE_DAY_MAX];
	char day_stem[STORE_STEM_MAX];
	struct store_name n;

	store_stem(stem, "my-host.1/x", WALL0 * (int64_t)SEC, 60 * SEC);
	assert_string_equal(stem, "cpu-my-host.1_x-20260821T080000Z-60s");
	snprintf(name, sizeof(name), "%s-12.pb.gz", stem);
	assert_true(store_name_parse(name, &n));
	assert_int_equal(n.begin, WALL0);
	assert_int_equal(n.seconds, 60);
	assert_int_equal(n.copy, 12);
	assert_int_equal(n.kind, STORE_GZIP);
	assert_int_equal(n.stem, strlen(stem) + 3);
	assert_false(n.tmp);
	snprintf(name, sizeof(name), "wait-%s-12.pb.gz", stem + 4);
	assert_true(store_name_parse(name, &n));
	assert_int_equal(n.kind, store_wait(REPORTER_GZIP));
	assert_int_equal(n.begin, WALL0);
	snprintf(name, sizeof(name), "wait-%s-12.times.zst", stem + 4);
	assert_true(store_name_parse(name, &n));
	assert_int_equal(n.kind, STORE_WAIT_TIMES);
	store_name_stem(&n, name, day_stem);
	assert_memory_equal(day_stem, stem, strlen(stem));
	assert_string_equal(day_stem + strlen(stem), "-12");
	store_file(name, stem, store_wait(REPORTER_ZSTD));
	assert_string_equal(name,
			    "wait-my-host.1_x-20260821T080000Z-60s.pb.zst");
	/* A boundary measured a little early, by a clock that is slewed. */
	store_stem(stem, "h", WALL0 * (int64_t)SEC - 30 * MS, 60 * SEC);
	assert_string_equal(stem, "cpu-h-20260821T080000Z-60s");
	store_day(day, WALL0 * (int64_t)SEC);
	assert_string_equal(day, "2026-08-21");
}

static void a_name_that_is_not_ours_is_none(void **state)
{
	static const char *const bad[] = {
		"",
		".",
		".pb.gz",
		"cpu-.pb.gz",
		"cpu-h-20260821T080000Z-60s",
		"cpu-h-20260821T080000Z-60s.pb.gz.gz",
		"cpu-h-20260821T080000Z-60s.pb.gz.tmp",
		"cpu-h-20260821T080000Z-60s.pb.gz.xyz.tmp",
		"cpu--20260821T080000Z-60s.pb.gz",
		"cpu-20260821T080000Z-60s.pb.gz",
		"cpu-h-20261321T080000Z-60s.pb.gz",
		"cpu-h-20260821T080000-60s.pb.gz",
		"cpu-h-20260821T080000Z-60.pb.gz",
		"cpu-h-20260821T080000Z-s.pb.gz",
		"cpu-h-20260821T080000Z--1s.pb.gz",
		"cpu-h-20260821T080000Z-60s-.pb.gz",
		"cpu-h-20260821T080000Z-999999999999s.pb.gz",
		"mem-h-20260821T080000Z-60s.pb.gz",
		"wait--20260821T080000Z-60s.pb.gz",
		"wait-.pb.gz",
		"notes.pb.gz",
	};
	static const char *const days[] = { "", "2026-08-2", "2026-08-211",
					    "2026_08_21", "x026-08-21" };
	struct store_name n;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		if (store_name_parse(bad[i], &n))
			fail_msg("%s", bad[i]);
	for (i = 0; i < ARRAY_SIZE(days); i++)
		assert_false(store_day_parse(days[i]));
	assert_true(store_day_parse("2026-08-21"));
	assert_true(store_name_parse(
		"cpu-h-20260821T080000Z-60s.times.zst.0badcafe.tmp", &n));
	assert_true(n.tmp);
	assert_int_equal(n.kind, STORE_TIMES);
}

/* --- boundaries ------------------------------------------------------------- */

/* A trace a second over [from, to) seconds after T0, each watermark set. */
static void busy(int from, int to)
{
	int i;

	for (i = from; i < to; i++) {
		add_simple(T0 + i * SEC + 1);
		reporter_advance(t.r, T0 + i * SEC + 2);
		settle();
	}
}

static int64_t begin_of(int i)
{
	return checked(t.path[i])->time_nanos / (int64_t)SEC - WALL0;
}

static int64_t seconds_of(int i)
{
	return (checked(t.path[i])->duration_nanos + SEC / 2) / (int64_t)SEC;
}

static void windows_end_at_whole_minutes(void **state)
{
	wall_offset += 17 * SEC; /* the start, in seconds of the minute */
	start(options());
	busy(0, 130);
	finish(T0 + 130 * SEC);
	assert_int_equal(t.written, 3);
	assert_int_equal(begin_of(0), 17);
	assert_int_equal(seconds_of(0), 43);
	assert_int_equal(begin_of(1), 60);
	assert_int_equal(seconds_of(1), 60);
	assert_int_equal(begin_of(2), 120);
	assert_int_equal(seconds_of(2), 27);
	assert_non_null(strstr(t.path[0], "T080017Z-43s.pb.gz"));
	assert_non_null(strstr(t.path[1], "T080100Z-60s.pb.gz"));
	assert_non_null(strstr(t.path[2], "T080200Z-27s.pb.gz"));
}

/* The clock is slewed back and forth: neither a gap nor a sliver. */
static void an_unsteady_clock_makes_no_slivers(void **state)
{
	int i, n = 0;

	start(options());
	for (i = 0; i < 360; i++) {
		wall_offset += (i / 60 % 2 ? 1 : -1) * (int64_t)MS / 2;
		busy(i, i + 1);
	}
	finish(T0 + 360 * SEC);
	assert_in_range(t.written, 6, 7);
	for (i = 0; i < t.written; i++)
		n += (int)t.nsamples[i];
	assert_int_equal(n, 360);
	for (i = 0; i < 6; i++)
		assert_int_equal(seconds_of(i), 60);
}

/* By 'step' seconds at T0 + 90. Windows follow each other in boot time. */
static void stepped(int64_t step)
{
	int i, n = 0;

	start(options());
	busy(0, 90);
	wall_offset += step * (int64_t)SEC;
	busy(90, 260);
	finish(T0 + 260 * SEC);
	assert_in_range(t.written, 5, 6);
	for (i = 0; i < t.written; i++)
		n += (int)t.nsamples[i];
	assert_int_equal(n, 260);
	/* From the second boundary on they are those of the new clock. */
	for (i = 2; i < t.written; i++) {
		int64_t end = begin_of(i) + seconds_of(i);

		if (i + 1 < t.written)
			assert_int_equal(end % 60, 0);
		assert_int_equal(end - begin_of(i), seconds_of(i));
		if (i > 2)
			assert_int_equal(begin_of(i),
					 begin_of(i - 1) + seconds_of(i - 1));
	}
}

static void a_step_of_an_hour_forth(void **state)
{
	stepped(3600);
}

static void a_step_of_an_hour_back(void **state)
{
	stepped(-3600);
}

static void a_step_to_another_second(void **state)
{
	stepped(-3600 + 23);
}

static void names_do_not_collide_after_a_step_back(void **state)
{
	int i, k;

	start(options());
	busy(0, 61);
	wall_offset -= 60 * (int64_t)SEC;
	busy(61, 121);
	wall_offset -= 60 * (int64_t)SEC;
	busy(121, 181);
	finish(T0 + 181 * SEC);
	assert_int_equal(count_files(".pb.gz"), t.written);
	assert_int_equal(count_files(".times.zst"), t.written);
	assert_int_equal(t.failed, 0);
	for (i = 0; i < t.written; i++)
		for (k = 0; k < i; k++)
			assert_string_not_equal(t.path[i], t.path[k]);
}

/* Boot time runs on for two hours, without a sample. */
static void a_suspend_makes_no_windows(void **state)
{
	start(options());
	busy(0, 30);
	busy(7200, 7290);
	finish(T0 + 7290 * SEC);
	assert_int_equal(t.written, 3);
	assert_int_equal(begin_of(0), 0);
	assert_int_equal(begin_of(1), 7200);
	assert_int_equal(seconds_of(1), 60);
	assert_int_equal(t.nsamples[0] + t.nsamples[1] + t.nsamples[2], 120);
}

/* --- retention -------------------------------------------------------------- */

static struct {
	struct store *store;
	struct reporter_keep keep;
	uint64_t removed;
	char last[STORE_STEM_MAX]; /* the window removed last */
} k;

static void on_removed(void *arg, const struct store_window *w)
{
	assert_ptr_equal(arg, &k);
	/* In the order of time. */
	assert_true(strcmp(k.last + 6, w->stem + 6) <= 0);
	snprintf(k.last, sizeof(k.last), "%s", w->stem);
	k.removed++;
}

static void open_store(struct reporter_keep keep)
{
	const struct store_opts o = { .path = t.archive,
				      .keep = keep,
				      .removed = on_removed,
				      .arg = &k };
	uint64_t swept = 0;

	store_free(k.store);
	memset(&k, 0, sizeof(k));
	assert_int_equal(store_new(&k.store, &o, &swept), 0);
}

static void fill(int fd, size_t bytes)
{
	static char zero[4096];
	size_t n;

	for (; bytes; bytes -= n) {
		n = MIN(bytes, sizeof(zero));
		assert_int_equal(write(fd, zero, n), n);
	}
}

/* Writes a window of a minute that began so many seconds ago. */
static int put(int64_t ago, size_t bytes, size_t times,
	       struct store_stats *stats)
{
	int64_t begin = (int64_t)time(NULL) - ago;
	struct store_write w;
	int err;

	err = store_write_begin(&w, k.store, "h", begin * (int64_t)SEC,
				60 * SEC, REPORTER_GZIP);
	if (!err) {
		fill(w.file.fd, bytes);
		err = store_write_commit(&w);
	}
	if (!err && times) {
		assert_int_equal(store_write_beside(&w, STORE_TIMES), 0);
		fill(w.file.fd, times);
		assert_int_equal(store_write_commit_beside(&w, STORE_TIMES), 0);
	}
	store_write_end(&w, stats);
	return err;
}

static void done(void)
{
	store_free(k.store);
	k.store = NULL;
}

/* As an older profd wrote them: directly in the archive. */
static void put_flat(int64_t ago, size_t bytes)
{
	char stem[STORE_STEM_MAX], path[512];
	int64_t begin = (int64_t)time(NULL) - ago;
	int fd;

	store_stem(stem, "h", begin * (int64_t)SEC, 60 * SEC);
	snprintf(path, sizeof(path), "%s/%s.pb.gz", t.archive, stem);
	fd = open(path, O_CREAT | O_WRONLY, 0600);
	assert_true(fd >= 0);
	fill(fd, bytes);
	close(fd);
}

static uint64_t bytes_of(void)
{
	struct store_list list;
	uint64_t n = 0;
	size_t i;

	assert_int_equal(store_list(&list, t.archive, INT64_MIN, INT64_MAX), 0);
	for (i = 0; i < list.n; i++)
		n += list.windows[i].bytes + list.windows[i].times_bytes;
	store_list_free(&list);
	return n;
}

static uint64_t oldest_of(void)
{
	struct store_list list;
	uint64_t begin;

	assert_int_equal(store_list(&list, t.archive, INT64_MIN, INT64_MAX), 0);
	assert_true(list.n > 0);
	begin = list.windows[0].begin_ns / CLOCK_NSEC_PER_SEC;
	store_list_free(&list);
	return begin;
}

static void old_windows_give_way_to_new_ones(void **state)
{
	struct store_stats st;
	int i;

	open_store((struct reporter_keep){ .bytes = 1 << 20 });
	for (i = 0; i < 300; i++) {
		assert_int_equal(put((400 - i) * 3600LL, 10000, 1000, &st), 0);
		assert_true(bytes_of() <= 1 << 20);
		assert_int_equal(st.archive_bytes, bytes_of());
		assert_int_equal(st.archive_oldest_seconds, oldest_of());
	}
	/* There is room for 95. */
	assert_in_range(st.archive_windows, 90, 95);
	assert_int_equal(k.removed, 300 - st.archive_windows);
	assert_int_equal(st.windows_removed, k.removed);
	assert_int_equal(st.removed_bytes, 11000 * k.removed);
	assert_int_equal(count_files(".times.zst"), st.archive_windows);
	done();
}

static int count_days(void)
{
	DIR *d = opendir(t.archive);
	struct dirent *de;
	int n = 0;

	assert_non_null(d);
	while ((de = readdir(d)))
		n += store_day_parse(de->d_name);
	closedir(d);
	return n;
}

static void windows_age_and_empty_days_go(void **state)
{
	struct store_stats st;
	int i;

	open_store((struct reporter_keep){ 0 });
	for (i = 0; i < 20; i++)
		assert_int_equal(put((20 - i) * DAY, 100, 10, &st), 0);
	put_flat(30 * DAY, 100);
	put_flat(5 * DAY, 100);
	assert_int_equal(count_days(), 20);
	open_store((struct reporter_keep){ .age_s = 7 * DAY + 3600 });
	assert_int_equal(put(0, 100, 10, &st), 0);
	assert_int_equal(st.archive_windows, 7 + 1 + 1);
	assert_int_equal(k.removed, 13 + 1);
	assert_in_range(count_days(), 7, 8);
	assert_int_equal(st.archive_unexpected, 0);
	done();
}

static void a_stranger_s_files_stay(void **state)
{
	static const char *const names[] = {
		"README",
		"cpu-x.pb.gz",
		"2001-01-01/mine",
		"cpu-h-20010101T000000Z-60s.pb.gz.bak",
	};
	struct store_stats st;
	char path[512], dir[512];
	size_t i;

	open_store((struct reporter_keep){ .bytes = 1, .age_s = 1 });
	snprintf(dir, sizeof(dir), "%s/2001-01-01", t.archive);
	assert_int_equal(mkdir(dir, 0750), 0);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", t.archive, names[i]);
		close(open(path, O_CREAT | O_WRONLY, 0600));
	}
	/* Its name is ours, but it is a link, and what it names is not. */
	snprintf(path, sizeof(path),
		 "%s/2001-01-01/cpu-h-20010101T000000Z-60s.pb.gz", t.archive);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	snprintf(path, sizeof(path), "%s/2002-01-01", t.archive);
	assert_int_equal(symlink("/etc", path), 0);
	put_flat(100 * DAY, 10);
	assert_int_equal(put(0, 100, 10, &st), 0);
	assert_int_equal(k.removed, 1);
	assert_int_equal(st.archive_unexpected, ARRAY_SIZE(names) + 2);
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", t.archive, names[i]);
		assert_int_equal(access(path, F_OK), 0);
	}
	done();
}

static void another_user_s_window_stays(void **state)
{
	char path[512], stem[STORE_STEM_MAX];
	struct store_stats st;

	if (geteuid())
		skip();
	open_store((struct reporter_keep){ .age_s = DAY });
	put_flat(9 * DAY, 10);
	put_flat(8 * DAY, 10);
	store_stem(stem, "h", ((int64_t)time(NULL) - 9 * DAY) * (int64_t)SEC,
		   60 * SEC);
	snprintf(path, sizeof(path), "%s/%s.pb.gz", t.archive, stem);
	if (chown(path, 65534, 65534)) {
		done();
		skip(); /* a user namespace may have root only */
	}
	assert_int_equal(put(0, 100, 10, &st), 0);
	assert_int_equal(k.removed, 1);
	assert_int_equal(access(path, F_OK), 0);
	done();
}

/* Free space that the disk does not have: nothing new is lost for it. */
static void a_full_disk_stops_writing_and_keeps_the_newest(void **state)
{
	struct store_stats st;
	int i;

	open_store((struct reporter_keep){ 0 });
	for (i = 0; i < 10; i++)
		assert_int_equal(put((40 - i) * DAY, 1000, 100, &st), 0);
	open_store((struct reporter_keep){ .free_bytes = UINT64_MAX / 2 });
	assert_int_equal(put(0, 1000, 100, &st), -ENOSPC);
	assert_int_equal(st.archive_stopped, 1);
	/* 256 MB are kept, however old. */
	assert_int_equal(k.removed, 0);
	assert_int_equal(count_files(".tmp"), 0);
	open_store((struct reporter_keep){ .free_percent = 100 });
	assert_int_equal(put(0, 1000, 100, &st), -ENOSPC);
	open_store((struct reporter_keep){ .free_bytes = 4096 });
	assert_int_equal(put(0, 1000, 100, &st), 0);
	assert_int_equal(st.archive_stopped, 0);
	done();
}

/* Files without blocks: 300 MB in each of them. */
static void free_space_costs_only_what_is_old(void **state)
{
	struct store_stats st;
	struct store_write w;
	int i;

	open_store((struct reporter_keep){ 0 });
	for (i = 0; i < 6; i++) {
		int64_t begin = (int64_t)time(NULL) - (6 - i) * DAY / 3 + 3600;

		assert_int_equal(store_write_begin(&w, k.store, "h",
						   begin * (int64_t)SEC,
						   60 * SEC, REPORTER_GZIP),
				 0);
		assert_int_equal(ftruncate(w.file.fd, 300 << 20), 0);
		assert_int_equal(store_write_commit(&w), 0);
		store_write_end(&w, &st);
	}
	open_store((struct reporter_keep){ .free_bytes = UINT64_MAX / 2 });
	assert_int_equal(put(0, 1000, 100, &st), -ENOSPC);
	/* Those of more than a day ago. */
	assert_int_equal(k.removed, 3);
	assert_int_equal(st.archive_windows, 3);
	done();
}

static void a_left_side_file_is_not_that_of_another_window(void **state)
{
	struct store_list list;
	struct store_stats st;
	char path[512];

	open_store((struct reporter_keep){ 0 });
	assert_int_equal(put(3600, 1000, 100, &st), 0);
	assert_int_equal(store_list(&list, t.archive, INT64_MIN, INT64_MAX), 0);
	assert_int_equal(list.n, 1);
	snprintf(path, sizeof(path), "%s/%s/%s.pb.gz", t.archive,
		 list.windows[0].day, list.windows[0].stem);
	assert_int_equal(unlink(path), 0);
	wall_offset = list.windows[0].begin_ns;
	store_list_free(&list);
	/* The same name again, without a side file. */
	assert_int_equal(put((int64_t)time(NULL) - wall_offset / (int64_t)SEC,
			     1000, 0, &st),
			 0);
	assert_int_equal(st.times_failed, 1);
	assert_int_equal(store_list(&list, t.archive, INT64_MIN, INT64_MAX), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(list.windows[0].times_bytes, 0);
	assert_int_equal(list.windows[0].bytes, 1000);
	store_list_free(&list);
	done();
}

/* Writes a window with its waits. */
static void put_beside(struct store_write *w, enum store_kind kind,
		       size_t bytes)
{
	assert_int_equal(store_write_beside(w, kind), 0);
	fill(w->file.fd, bytes);
	assert_int_equal(store_write_commit_beside(w, kind), 0);
}

static void put_waits(int64_t ago, size_t bytes, struct store_stats *stats)
{
	int64_t begin = (int64_t)time(NULL) - ago;
	struct store_write w;

	assert_int_equal(store_write_begin(&w, k.store, "h",
					   begin * (int64_t)SEC, 60 * SEC,
					   REPORTER_GZIP),
			 0);
	fill(w.file.fd, 1000);
	assert_int_equal(store_write_commit(&w), 0);
	w.waits = w.wait_times = true;
	if (bytes) {
		put_beside(&w, store_wait(REPORTER_GZIP), bytes);
		put_beside(&w, STORE_WAIT_TIMES, 40);
	}
	store_write_end(&w, stats);
}

static void waits_come_and_go_with_their_window(void **state)
{
	struct store_list list;
	struct store_stats st;
	char path[STORE_PATH_MAX];

	open_store((struct reporter_keep){ .bytes = 3580 });
	put_waits(7200, 500, &st);
	assert_int_equal(st.archive_bytes, 1540);
	assert_int_equal(st.archive_windows, 1);
	put_waits(3600, 0, &st);
	assert_int_equal(st.waits_failed, 1);
	assert_int_equal(store_list(&list, t.archive, INT64_MIN, INT64_MAX), 0);
	assert_int_equal(list.n, 2);
	assert_int_equal(list.windows[0].bytes, 1000);
	assert_int_equal(list.windows[0].wait_bytes, 500);
	assert_int_equal(list.windows[0].wait_times_bytes, 40);
	assert_int_equal(list.windows[1].wait_bytes, 0);
	assert_int_equal(list.windows[1].wait_times_bytes, 0);
	store_window_path(&list.windows[0], STORE_GZIP, path);
	assert_int_equal(store_wait_bytes(t.archive, path), 500);
	store_window_path(&list.windows[1], STORE_GZIP, path);
	assert_int_equal(store_wait_bytes(t.archive, path), 0);
	assert_int_equal(store_wait_bytes(t.archive, NULL), 0);
	assert_int_equal(store_wait_bytes(t.archive, "../wait"), 0);
	store_list_free(&list);
	assert_int_equal(count_files(".pb.gz"), 3);
	assert_int_equal(count_files(".times.zst"), 1);
	/* The oldest gives way, with its waits. */
	put_waits(60, 400, &st);
	assert_int_equal(k.removed, 1);
	assert_int_equal(st.archive_bytes, 2440);
	assert_int_equal(count_files(".pb.gz"), 3);
	assert_int_equal(count_files(".times.zst"), 1);
	done();
}

static void waits_without_a_window_are_removed_at_the_start(void **state)
{
	struct store_list list;
	struct store_stats st;
	char path[STORE_PATH_MAX], full[512];

	open_store((struct reporter_keep){ 0 });
	put_waits(7200, 500, &st);
	put_waits(3600, 500, &st);
	assert_int_equal(store_list(&list, t.archive, INT64_MIN, INT64_MAX), 0);
	store_window_path(&list.windows[0], STORE_GZIP, path);
	snprintf(full, sizeof(full), "%s/%s", t.archive, path);
	assert_int_equal(unlink(full), 0);
	store_list_free(&list);
	done();
	open_store((struct reporter_keep){ 0 });
	assert_int_equal(count_files(".pb.gz"), 2);
	assert_int_equal(count_files(".times.zst"), 1);
	assert_int_equal(store_list(&list, t.archive, INT64_MIN, INT64_MAX), 0);
	assert_int_equal(list.n, 1);
	assert_int_equal(list.windows[0].wait_bytes, 500);
	assert_int_equal(list.windows[0].wait_times_bytes, 40);
	store_list_free(&list);
	done();
}

/* What others took meanwhile, as connections do; one more is EMFILE. */
static void at_the_limit_of_descriptors_a_window_is_written(void **state)
{
	struct rlimit was, few;
	struct store_stats st;
	int taken[256], n = 0;

	open_store((struct reporter_keep){ 0 });
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = ARRAY_SIZE(taken);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	for (int i = 0; i < 2; i++) {
		while ((taken[n] = open("/dev/null", O_RDONLY | O_CLOEXEC)) >=
		       0)
			n++;
		assert_int_equal(errno, EMFILE);
		assert_int_equal(put(7200 - i * 3600, 1000, 100, &st), 0);
		assert_int_equal(st.times_failed, 0);
		assert_int_equal(st.archive_windows, i + 1);
	}
	while (n)
		close(taken[--n]);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	done();
}

/* --- the list --------------------------------------------------------------- */

static void the_list_is_in_the_order_of_time(void **state)
{
	int64_t from = (int64_t)(time(NULL) - 3 * DAY + 9) * (int64_t)SEC;
	struct store_list list;
	struct store_stats st;
	int i, fd;

	open_store((struct reporter_keep){ 0 });
	for (i = 0; i < 10; i++)
		assert_int_equal(
			put(((i * 7) % 10) * DAY + 60, 100 + i, i, &st), 0);
	put_flat(2 * DAY + 7200, 77);
	assert_int_equal(store_list(&list, t.archive, INT64_MIN, INT64_MAX), 0);
	assert_int_equal(list.n, 11);
	for (i = 1; i < 11; i++)
		assert_true(list.windows[i - 1].begin_ns <
			    list.windows[i].begin_ns);
	store_list_free(&list);
	assert_int_equal(store_list(&list, t.archive, from, INT64_MAX), 0);
	assert_int_equal(list.n, 4);
	assert_int_equal(list.windows[0].bytes, 77);
	assert_string_equal(list.windows[0].day, "");
	assert_int_equal(list.windows[0].times_bytes, 0);
	assert_int_equal(list.windows[3].duration_ns, 60 * SEC);
	fd = open(t.archive, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (i = 0; i < 4; i++) {
		int of = store_window_open(&list.windows[i], fd, STORE_GZIP);

		assert_true(of >= 0);
		close(of);
	}
	assert_int_equal(store_window_open(&list.windows[0], fd, STORE_TIMES),
			 -ENOENT);
	close(fd);
	store_list_free(&list);
	assert_int_equal(store_list(&list, "/nonexistent", 0, 1), -ENOENT);
	done();
}

/* Its file has no name yet: the directory looks empty. */
static void a_day_stays_while_its_window_is_written(void **state)
{
	struct store_write first, second;
	struct store_stats st;

	open_store((struct reporter_keep){ .bytes = 1 });
	assert_int_equal(store_write_begin(&first, k.store, "h", DAY * SEC,
					   60 * SEC, REPORTER_GZIP),
			 0);
	assert_int_equal(store_write_begin(&second, k.store, "h",
					   (2 * DAY) * SEC, 60 * SEC,
					   REPORTER_GZIP),
			 0);
	fill(first.file.fd, 100);
	assert_int_equal(store_write_commit(&first), 0);
	store_write_end(&first, &st);
	fill(second.file.fd, 100);
	assert_int_equal(store_write_commit(&second), 0);
	store_write_end(&second, &st);
	done();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		cmocka_unit_test(a_name_tells_time_duration_and_copy),
		cmocka_unit_test(a_name_that_is_not_ours_is_none),
		T(windows_end_at_whole_minutes),
		T(an_unsteady_clock_makes_no_slivers),
		T(a_step_of_an_hour_forth),
		T(a_step_of_an_hour_back),
		T(a_step_to_another_second),
		T(names_do_not_collide_after_a_step_back),
		T(a_suspend_makes_no_windows),
		T(old_windows_give_way_to_new_ones),
		T(windows_age_and_empty_days_go),
		T(a_day_stays_while_its_window_is_written),
		T(a_stranger_s_files_stay),
		T(another_user_s_window_stays),
		T(a_full_disk_stops_writing_and_keeps_the_newest),
		T(free_space_costs_only_what_is_old),
		T(at_the_limit_of_descriptors_a_window_is_written),
		T(a_left_side_file_is_not_that_of_another_window),
		T(waits_come_and_go_with_their_window),
		T(waits_without_a_window_are_removed_at_the_start),
		T(the_list_is_in_the_order_of_time),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
