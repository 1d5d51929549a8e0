// SPDX-License-Identifier: Apache-2.0
/* What the reporter does with traces: windows, profiles, files. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "tests/unit/pprof_check.h"
#include "tests/unit/test_reporter_pm.h"

#define SEC CLOCK_NSEC_PER_SEC
#define T0 (1000 * SEC)

static struct {
	uv_loop_t loop;
	struct reporter *r;
	char dir[64];
	char archive[96];
	bool finished;
	int written, failed;
	char path[8][256];
	int err;
	uint64_t nsamples[8];
} t;

static const char *const losses[] = { "samples lost: ring full",
				      "records lost: out of memory" };

static void on_written(void *arg, const char *path, int err, uint64_t nsamples)
{
	if (err) {
		t.failed++;
		t.err = err;
		return;
	}
	snprintf(t.path[t.written % 8], sizeof(t.path[0]), "%s", path);
	t.nsamples[t.written++ % 8] = nsamples;
}

static void on_finished(void *arg)
{
	t.finished = true;
}

static struct reporter_opts options(void)
{
	return (struct reporter_opts){
		.loop = &t.loop,
		.hostname = "host one",
		.version = "9.9",
		.freq_hz = 99,
		.archive = t.archive,
		.window_s = 60,
		.loss_names = losses,
		.nlosses = ARRAY_SIZE(losses),
		.written = on_written,
	};
}

static void start(struct reporter_opts o)
{
	const char *where;

	assert_int_equal(reporter_new(&t.r, &o, &where), 0);
	reporter_start(t.r, T0);
}

static int setup(void **state)
{
	memset(&t, 0, sizeof(t));
	snprintf(t.dir, sizeof(t.dir), "/tmp/test_reporter.XXXXXX");
	assert_non_null(mkdtemp(t.dir));
	snprintf(t.archive, sizeof(t.archive), "%s/deep/archive", t.dir);
	return uv_loop_init(&t.loop);
}

static int teardown(void **state)
{
	char cmd[128];

	reporter_free(t.r);
	uv_run(&t.loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&t.loop), 0);
	assert_int_equal(exe_refs(), 0);
	pprof_check_end();
	snprintf(cmd, sizeof(cmd), "rm -rf %s", t.dir);
	return system(cmd);
}

static void finish(uint64_t time)
{
	reporter_finish(t.r, time, on_finished, NULL);
	while (!t.finished)
		uv_run(&t.loop, UV_RUN_ONCE);
}

/* Until nothing is under way any more. */
static void settle(void)
{
	uv_run(&t.loop, UV_RUN_DEFAULT);
}

static int add(struct pm_image *img, uint64_t time, uint32_t tid,
	       const char *thread, const struct reporter_frame *f, size_t n)
{
	struct reporter_trace tr = { .time = time,
				     .image = img,
				     .tid = tid,
				     .thread = thread,
				     .frames = f,
				     .nframes = n };

	return reporter_add(t.r, &tr);
}

static void add_simple(uint64_t time)
{
	struct pm_image img = image(1, 100, EXE_A);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "work");

	assert_int_equal(add(&img, time, 100, "alpha", &f, 1), 0);
}

static const Perftools__Profiles__Profile *checked(const char *path)
{
	const char *wrong = pprof_check_file(path);

	if (wrong)
		fail_msg("%s: %s", path, wrong);
	return pprof_checked();
}

static int count_files(const char *ending)
{
	DIR *d = opendir(t.archive);
	struct dirent *de;
	int n = 0;

	assert_non_null(d);
	while ((de = readdir(d))) {
		size_t len = strlen(de->d_name), el = strlen(ending);

		n += len > el && !strcmp(de->d_name + len - el, ending);
	}
	closedir(d);
	return n;
}

/* --- content ------------------------------------------------------------- */

static void a_sample_keeps_frames_labels_and_mappings(void **state)
{
	struct pm_image img = image(7, 4321, EXE_A);
	struct reporter_frame f[] = {
		frame(EXE_KERNEL, 0xffffffff81000123, 0xffffffff81000100,
		      "do_syscall_64"),
		frame(EXE_LIBC, 0x30010, 0x30000, "write"),
		frame(EXE_A, 0x401234, 0x401200, "main"),
		frame(EXE_MARK, 0, 0, "[no frame pointer]"),
	};
	const Perftools__Profiles__Profile *p;
	const Perftools__Profiles__Sample *s;
	int i;

	start(options());
	for (i = 0; i < 3; i++)
		add(&img, T0 + i, 4322, "worker", f, ARRAY_SIZE(f));
	finish(T0 + 5 * SEC);
	p = checked(t.path[0]);
	assert_int_equal(p->n_sample, 1);
	assert_int_equal(p->period, 10101010);
	assert_int_equal(p->duration_nanos, 5 * SEC);
	s = p->sample[0];
	assert_int_equal(s->value[0], 3);
	assert_string_equal(pprof_frame(p, s, 0), "do_syscall_64");
	assert_string_equal(pprof_frame(p, s, 1), "write");
	assert_string_equal(pprof_frame(p, s, 2), "main");
	assert_string_equal(pprof_frame(p, s, 3), "[no frame pointer]");
	assert_null(pprof_frame_mapping(p, s, 3));
	assert_int_equal(p->location[s->location_id[2] - 1]->address, 0x401234);
	assert_int_equal(pprof_label_num(p, s, "pid"), 4321);
	assert_int_equal(pprof_label_num(p, s, "tid"), 4322);
	assert_string_equal(pprof_label(p, s, "comm"), "alpha");
	assert_string_equal(pprof_label(p, s, "thread"), "worker");
	assert_string_equal(pprof_label(p, s, "exe"), "/usr/bin/alpha");
	assert_string_equal(pprof_label(p, s, "cgroup"),
			    "/system.slice/x.service");
	assert_string_equal(pprof_label(p, s, "process"), "4321-1f");
	assert_string_equal(pprof_label(p, s, "image"), "4321-1f-7");
	assert_true(pprof_has_comment(p, "profd 9.9 host one"));
}

static void samples_of_one_stack_are_counted_others_kept_apart(void **state)
{
	struct pm_image a = image(1, 10, EXE_A), b = image(2, 10, EXE_B);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "f");
	struct reporter_frame g = frame(EXE_A, 0x401238, 0x401200, "f");

	start(options());
	add(&a, T0, 10, "x", &f, 1);
	add(&a, T0, 10, "x", &f, 1);
	add(&a, T0, 11, "x", &f, 1); /* another thread */
	add(&a, T0, 10, "y", &f, 1); /* a thread renamed */
	add(&b, T0, 10, "x", &f, 1); /* the image after an exec */
	add(&a, T0, 10, "x", &g, 1); /* another place in the function */
	finish(T0 + SEC);
	assert_int_equal(t.nsamples[0], 6);
	assert_int_equal(checked(t.path[0])->n_sample, 5);
	assert_int_equal(pprof_checked()->n_location, 2);
	assert_int_equal(pprof_checked()->n_function, 1);
}

static void marks_and_late_names_are_told_apart_by_name(void **state)
{
	struct pm_image img = image(1, 10, EXE_A);
	struct reporter_frame f[] = {
		frame(EXE_MARK, 0, 0, "[exec]"),
		frame(EXE_MARK, 0, 0, "[stack cut]"),
		frame(EXE_B, 0x1234, 0, "beta+0x1234"),
		frame(EXE_B, 0x1234, 0x1200, "named"),
	};
	const Perftools__Profiles__Profile *p;
	size_t i;

	start(options());
	add(&img, T0, 10, "x", f, ARRAY_SIZE(f));
	finish(T0 + SEC);
	p = checked(t.path[0]);
	for (i = 0; i < ARRAY_SIZE(f); i++)
		assert_string_equal(pprof_frame(p, p->sample[0], i), f[i].name);
}

static void labels_that_are_empty_are_left_out(void **state)
{
	struct pm_image img = image(1, 10, EXE_A);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "f");
	const Perftools__Profiles__Profile *p;

	img.info.exe = NULL;
	img.info.cgroup = "";
	start(options());
	add(&img, T0, 10, "x", &f, 1);
	finish(T0 + SEC);
	p = checked(t.path[0]);
	assert_null(pprof_label(p, p->sample[0], "exe"));
	assert_null(pprof_label(p, p->sample[0], "cgroup"));
	assert_int_equal(p->sample[0]->n_label, 6);
}

static void a_provisional_image_gets_its_labels_when_it_has_them(void **state)
{
	struct pm_image img = image(1, 10, EXE_A);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "f");
	const Perftools__Profiles__Profile *p;

	start(options());
	img.info.provisional = true;
	img.info.comm = "bash";
	img.info.main_exe = NULL;
	add(&img, T0, 10, "x", &f, 1);
	img.info.provisional = false;
	img.info.comm = "alpha";
	img.info.main_exe = &exes[EXE_A];
	add(&img, T0, 10, "x", &f, 1);
	/* Later it renames itself: the label stays, it is one sample. */
	img.info.comm = "renamed";
	add(&img, T0, 10, "x", &f, 1);
	finish(T0 + SEC);
	p = checked(t.path[0]);
	assert_int_equal(p->n_sample, 1);
	assert_int_equal(p->sample[0]->value[0], 3);
	assert_string_equal(pprof_label(p, p->sample[0], "comm"), "alpha");
}

static void names_that_are_not_utf8_are_repaired(void **state)
{
	struct pm_image img = image(1, 10, EXE_A);
	struct reporter_frame f[] = {
		frame(EXE_A, 0x401234, 0x401200, "a\xff\xc3\xa9z"),
		frame(EXE_A, 0x401334, 0x401300,
		      "\xed\xa0\x80"), /* surrogate */
		frame(EXE_A, 0x401434, 0x401400, "\xc0\xaf"), /* overlong */
		frame(EXE_A, 0x401534, 0x401500, "end\xe2\x82"), /* cut */
		frame(EXE_A, 0x401634, 0x401600, "\xf0\x9f\x90\xa7"),
	};
	static const char *const want[] = {
		"a\xef\xbf\xbd\xc3\xa9z",
		"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd",
		"\xef\xbf\xbd\xef\xbf\xbd",
		"end\xef\xbf\xbd\xef\xbf\xbd",
		"\xf0\x9f\x90\xa7",
	};
	const Perftools__Profiles__Profile *p;
	size_t i;

	start(options());
	add(&img, T0, 10, "\x80", f, ARRAY_SIZE(f));
	finish(T0 + SEC);
	p = checked(t.path[0]);
	for (i = 0; i < ARRAY_SIZE(f); i++)
		assert_string_equal(pprof_frame(p, p->sample[0], i), want[i]);
	assert_string_equal(pprof_label(p, p->sample[0], "thread"),
			    "\xef\xbf\xbd");
}

static const Perftools__Profiles__Mapping *
mapping_of(const Perftools__Profiles__Profile *p, size_t frame_index)
{
	return pprof_frame_mapping(p, p->sample[0], frame_index);
}

static void mappings_are_the_segments_that_were_used(void **state)
{
	struct pm_image img = image(1, 10, EXE_A);
	struct reporter_frame f[] = {
		frame(EXE_A, 0x601010, 0x601000, "second segment"),
		frame(EXE_LIBC, 0x30010, 0x30000, "write"),
		frame(EXE_KERNEL, 0xffffffff81000123, 0xffffffff81000100, "k"),
		frame(EXE_KERNEL, 0xffffffff81005000, 0xffffffff81004000, "l"),
		frame(EXE_ANON, 0x7f0000001234, 0, "//anon+0x7f0000001234"),
		frame(EXE_VDSO, 0x800, 0x700, "__vdso_clock_gettime"),
		frame(EXE_B, 0x5678, 0, "beta+0x5678"), /* never opened */
	};
	const Perftools__Profiles__Profile *p;

	start(options());
	add(&img, T0, 10, "x", f, ARRAY_SIZE(f));
	finish(T0 + SEC);
	p = checked(t.path[0]);
#define STR(i) p->string_table[i]
	assert_int_equal(mapping_of(p, 0)->memory_start, 0x601000);
	assert_int_equal(mapping_of(p, 0)->memory_limit, 0x602000);
	assert_int_equal(mapping_of(p, 0)->file_offset, 0x5000);
	assert_string_equal(STR(mapping_of(p, 0)->build_id), "abcd01");
	assert_string_equal(STR(mapping_of(p, 1)->filename), "/lib/libc.so.6");
	assert_string_equal(STR(mapping_of(p, 1)->build_id), "");
	assert_ptr_equal(mapping_of(p, 2), mapping_of(p, 3));
	assert_string_equal(STR(mapping_of(p, 2)->filename),
			    "[kernel.kallsyms]");
	assert_string_equal(STR(mapping_of(p, 2)->build_id), "fe");
	assert_true(mapping_of(p, 2)->memory_start == 0xffffffff81000000);
	assert_true(mapping_of(p, 2)->memory_limit == 0xffffffff81006000);
	assert_string_equal(STR(mapping_of(p, 4)->filename), "//anon");
	assert_string_equal(STR(mapping_of(p, 5)->filename), "[vdso]");
	assert_int_equal(mapping_of(p, 6)->memory_start, 0x5000);
	assert_int_equal(mapping_of(p, 6)->file_offset, 0x5000);
	/* Of alpha's two segments one was used. */
	assert_int_equal(p->n_mapping, 6);
#undef STR
}

static const char *first_mapping(void)
{
	const Perftools__Profiles__Profile *p = checked(t.path[0]);

	return p->n_mapping ? p->string_table[p->mapping[0]->filename] : "";
}

static void the_first_mapping_is_the_program_with_most_samples(void **state)
{
	struct pm_image a = image(1, 10, EXE_A), b = image(2, 20, EXE_B);
	struct reporter_frame k = frame(EXE_KERNEL, ~0xfffUL, ~0xfffUL, "k");
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "f");
	struct reporter_frame g = frame(EXE_B, 0x1234, 0x1200, "g");
	struct reporter_frame c = frame(EXE_LIBC, 0x30010, 0x30000, "c");
	int i;

	start(options());
	add(&a, T0, 10, "x", &k, 1);
	add(&a, T0, 10, "x", &c, 1);
	add(&a, T0, 10, "x", &f, 1);
	for (i = 0; i < 4; i++)
		add(&b, T0, 20, "x", &g, 1);
	finish(T0 + SEC);
	assert_string_equal(first_mapping(), "/usr/bin/beta");
}

static void a_program_seen_only_in_its_library_is_still_named(void **state)
{
	struct pm_image a = image(1, 10, EXE_A);
	struct reporter_frame c = frame(EXE_LIBC, 0x30010, 0x30000, "c");

	start(options());
	add(&a, T0, 10, "x", &c, 1);
	finish(T0 + SEC);
	assert_string_equal(first_mapping(), "/usr/bin/alpha");
}

static void the_kernel_is_first_only_when_alone(void **state)
{
	struct pm_image a = image(1, 10, EXE_A);
	struct reporter_frame k = frame(EXE_KERNEL, ~0xfffUL, ~0xfffUL, "k");

	a.info.main_exe = NULL;
	start(options());
	add(&a, T0, 10, "x", &k, 1);
	finish(T0 + SEC);
	assert_string_equal(first_mapping(), "[kernel.kallsyms]");
}

static void losses_are_said_by_each_profile_for_its_time(void **state)
{
	const uint64_t at_start[] = { 5, 0 }, now[] = { 12, 0 };
	struct reporter_opts o = options();
	const char *where;

	assert_int_equal(reporter_new(&t.r, &o, &where), 0);
	reporter_losses(t.r, at_start);
	reporter_start(t.r, T0);
	add_simple(T0);
	reporter_losses(t.r, now);
	reporter_advance(t.r, T0 + 60 * SEC);
	finish(T0 + 61 * SEC);
	assert_int_equal(t.written, 2);
	assert_true(pprof_has_comment(checked(t.path[0]),
				      "samples lost: ring full: 7"));
	assert_false(pprof_has_comment(pprof_checked(), "out of memory"));
	assert_false(pprof_has_comment(checked(t.path[1]), "ring full"));
}

/* --- windows ------------------------------------------------------------- */

static void traces_go_into_the_window_of_their_time(void **state)
{
	start(options());
	add_simple(T0 + 59 * SEC);
	add_simple(T0 + 61 * SEC); /* ahead of the watermark */
	add_simple(T0 + 60 * SEC - 1);
	reporter_advance(t.r, T0 + 60 * SEC - 1);
	settle();
	assert_int_equal(t.written, 0);
	reporter_advance(t.r, T0 + 60 * SEC);
	settle();
	assert_int_equal(t.written, 1);
	assert_int_equal(t.nsamples[0], 2);
	assert_int_equal(pprof_samples(checked(t.path[0])), 2);
	assert_int_equal(pprof_checked()->duration_nanos, 60 * SEC);
	finish(T0 + 90 * SEC);
	assert_int_equal(t.nsamples[1], 1);
	assert_int_equal(checked(t.path[1])->duration_nanos, 30 * SEC);
}

static void a_late_trace_is_counted_and_kept(void **state)
{
	struct reporter_stats st;

	start(options());
	reporter_advance(t.r, T0 + 60 * SEC);
	add_simple(T0 + 30 * SEC);
	finish(T0 + 70 * SEC);
	reporter_get_stats(t.r, &st);
	assert_int_equal(st.traces_late, 1);
	assert_int_equal(t.nsamples[0] + t.nsamples[1], 1);
	assert_true(pprof_has_comment(checked(t.path[t.nsamples[1] ? 1 : 0]),
				      "came late: 1"));
}

static void an_idle_host_has_empty_windows_but_none_for_its_sleep(void **state)
{
	start(options());
	reporter_advance(t.r, T0 + 60 * SEC);
	reporter_advance(t.r, T0 + 120 * SEC);
	settle();
	assert_int_equal(t.written, 2);
	assert_int_equal(pprof_samples(checked(t.path[1])), 0);
	reporter_advance(t.r, T0 + 36000 * SEC);
	settle();
	assert_int_equal(t.written, 3);
	finish(T0 + 36001 * SEC);
	assert_int_equal(t.written, 4);
}

static void rotation_cuts_between_traces(void **state)
{
	start(options());
	add_simple(T0 + 10 * SEC);
	add_simple(T0 + 20 * SEC);
	reporter_rotate(t.r, T0 + 15 * SEC);
	add_simple(T0 + 12 * SEC); /* still of the first */
	add_simple(T0 + 25 * SEC);
	reporter_advance(t.r, T0 + 30 * SEC);
	settle();
	assert_int_equal(t.written, 1);
	assert_int_equal(t.nsamples[0], 3);
	assert_int_equal(checked(t.path[0])->duration_nanos, 20 * SEC + 1);
	/* The next is a whole one again. */
	reporter_advance(t.r, T0 + 80 * SEC);
	settle();
	assert_int_equal(t.written, 1);
	reporter_advance(t.r, T0 + 80 * SEC + 1);
	settle();
	assert_int_equal(t.written, 2);
	assert_int_equal(checked(t.path[1])->duration_nanos, 60 * SEC);
	finish(T0 + 81 * SEC);
}

static void rotating_twice_at_once_makes_no_empty_window(void **state)
{
	start(options());
	add_simple(T0);
	reporter_rotate(t.r, T0 + 10 * SEC);
	reporter_rotate(t.r, T0 + 10 * SEC);
	finish(T0 + 10 * SEC);
	assert_int_equal(t.written, 1);
	assert_int_equal(t.failed, 0);
}

static struct got {
	int calls;
	int err;
	uint64_t nsamples;
	void *data;
	size_t len;
} got;

static void on_window(void *arg, int err, uint64_t nsamples, void *data,
		      size_t len)
{
	struct got *g = arg;

	free(g->data);
	g->calls++;
	g->err = err;
	g->nsamples = nsamples;
	g->data = data;
	g->len = len;
}

static struct reporter_window *open_window(struct reporter_window_opts o)
{
	struct reporter_window *w;

	memset(&got, 0, sizeof(got));
	o.done = on_window;
	o.arg = &got;
	assert_int_equal(reporter_window_open(t.r, &o, &w), 0);
	return w;
}

static void a_window_in_memory_has_what_lies_in_it(void **state)
{
	static const enum reporter_format formats[] = { REPORTER_RAW,
							REPORTER_GZIP,
							REPORTER_ZSTD };
	size_t i;

	start(options());
	for (i = 0; i < ARRAY_SIZE(formats); i++) {
		uint64_t at = T0 + 10 * SEC * i;
		struct reporter_window *w = open_window(
			(struct reporter_window_opts){ .begin = at + SEC,
						       .end = at + 3 * SEC,
						       .format = formats[i] });

		add_simple(at + SEC - 1);
		add_simple(at + SEC);
		add_simple(at + 3 * SEC - 1);
		add_simple(at + 3 * SEC);
		assert_int_equal(reporter_window_samples(w), 2);
		reporter_advance(t.r, at + 3 * SEC);
		settle();
		assert_int_equal(got.calls, 1);
		assert_int_equal(got.err, 0);
		assert_int_equal(got.nsamples, 2);
		assert_null(pprof_check(got.data, got.len));
		assert_int_equal(pprof_checked()->duration_nanos, 2 * SEC);
		free(got.data);
	}
	finish(T0 + 50 * SEC);
	assert_int_equal(t.nsamples[0], 12); /* all are in the archive's */
}

static void a_window_of_the_selected_has_no_others(void **state)
{
	struct pm_image in = image(1, 10, EXE_A), out = image(2, 20, EXE_B);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "f");
	struct reporter_window *w;

	start(options());
	w = open_window((struct reporter_window_opts){
		.begin = T0, .end = UINT64_MAX, .selected_only = true });
	in.info.selected = true;
	add(&in, T0 + 1, 10, "x", &f, 1);
	add(&out, T0 + 2, 20, "x", &f, 1);
	reporter_window_end(t.r, w, T0 + SEC);
	reporter_advance(t.r, T0 + SEC);
	settle();
	assert_int_equal(got.nsamples, 1);
	assert_null(pprof_check(got.data, got.len));
	free(got.data);
	finish(T0 + 2 * SEC);
}

static void finish_ends_open_windows_with_what_they_have(void **state)
{
	start(options());
	open_window((struct reporter_window_opts){ .begin = T0,
						   .end = T0 + 3600 * SEC });
	add_simple(T0 + SEC);
	finish(T0 + 2 * SEC);
	assert_int_equal(got.calls, 1);
	assert_null(pprof_check(got.data, got.len));
	assert_int_equal(pprof_checked()->duration_nanos, 2 * SEC);
	free(got.data);
}

static void free_drops_open_windows_without_a_word(void **state)
{
	start(options());
	open_window((struct reporter_window_opts){ .begin = T0,
						   .end = T0 + 3600 * SEC });
	add_simple(T0 + SEC);
	reporter_free(t.r);
	settle();
	t.r = NULL;
	assert_int_equal(got.calls, 0);
	assert_int_equal(count_files(".zst") + count_files(".tmp"), 0);
}

static void free_while_a_window_is_written_is_safe(void **state)
{
	start(options());
	add_simple(T0);
	reporter_advance(t.r, T0 + 60 * SEC); /* its job is under way */
	reporter_free(t.r);
	t.r = NULL;
	settle();
	assert_int_equal(count_files(".tmp"), 0);
	assert_int_equal(count_files(".pb.zst"), 1);
}

/* --- files --------------------------------------------------------------- */

static void file_names_sort_by_time_and_never_collide(void **state)
{
	struct reporter_opts o = options();
	int i;

	o.window_s = 1;
	start(o);
	/* Two windows that begin within one second. */
	for (i = 0; i < 4; i++) {
		add_simple(T0 + i * 1000);
		reporter_rotate(t.r, T0 + i * 1000 + 500);
		reporter_advance(t.r, T0 + i * 1000 + 500);
		settle();
	}
	finish(T0 + SEC / 2);
	assert_int_equal(t.failed, 0);
	assert_int_equal(count_files(".pb.zst"), t.written);
	assert_int_equal(t.written, 5);
	assert_non_null(strstr(t.path[0], "/deep/archive/cpu-host_one-20"));
	assert_non_null(strstr(t.path[0], "Z-1s.pb.zst"));
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

static void an_archive_that_cannot_be_is_an_error(void **state)
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
	touch("cpu-h-20260101T000000Z-60s.pb.zst.3.tmp");
	touch("cpu-h-20260101T000000Z-60s.pb.zst");
	touch("notes.tmp");
	start(options());
	reporter_get_stats(t.r, &st);
	assert_int_equal(st.swept, 1);
	assert_int_equal(count_files(".tmp"), 1);
	assert_int_equal(count_files(".zst"), 1);
	finish(T0);
}

/* Adds much that compresses badly, so that writing takes its time. */
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

static void killed_while_writing_leaves_no_half_file(void **state)
{
	int i, leftovers = 0;
	pid_t pid;

	for (i = 0; i < 10; i++) {
		pid = fork();
		assert_true(pid >= 0);
		if (!pid) {
			start(options());
			add_many(3000);
			reporter_advance(t.r, T0 + 60 * SEC);
			while (!count_files(".tmp") && !count_files(".zst"))
				usleep(100);
			raise(SIGKILL);
		}
		waitpid(pid, NULL, 0);
		leftovers += count_files(".tmp");
	}
	assert_true(leftovers > 0);
	start(options());
	assert_int_equal(count_files(".tmp"), 0);
	finish(T0 + SEC);
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
	assert_int_equal(count_files(".tmp") + count_files(".zst"), 0);
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

static void a_recording_nowhere_fails_at_once(void **state)
{
	struct reporter_window_opts o = { .begin = T0,
					  .end = T0 + SEC,
					  .path = "/nonexistent/x.pb" };
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

static int run(const char *fmt, const char *path, const char *want)
{
	char cmd[768], line[4096];
	bool found = false;
	FILE *f;

	snprintf(cmd, sizeof(cmd), fmt, path);
	f = popen(cmd, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f))
		found |= !!strstr(line, want);
	if (pclose(f))
		return -1;
	return found;
}

/*
 * Newer Go builds pprof when it is first asked for: a cache below build/ has it
 * for the next time.
 */
#define GO_PPROF                                          \
	"b=$(realpath ${B:-build}) && mkdir -p $b/go && " \
	"HOME=$b/go GOCACHE=$b/go/cache PPROF_TMPDIR=$b/go go tool pprof "

static void protoc_and_zstd_and_go_read_it(void **state)
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
	assert_int_equal(run("zstd -tq %s && echo fine", t.path[0], "fine"), 1);
	assert_int_equal(
		run("zstd -dcq %s | protoc --proto_path=reporter "
		    "--decode=perftools.profiles.Profile profile.proto",
		    t.path[0], "some_function"),
		1);
	assert_int_equal(run(GO_PPROF "-top %s 2>&1", path, "some_function"),
			 1);
	assert_int_equal(run(GO_PPROF "-top %s 2>&1", path, "File: alpha"), 1);
	assert_int_equal(run(GO_PPROF "-top %s 2>&1", path, "Type: cpu"), 1);
	assert_int_equal(run(GO_PPROF "-raw %s 2>&1", path,
			     "samples/count cpu/nanoseconds"),
			 1);
	assert_int_equal(run(GO_PPROF "-raw %s 2>&1", path, "abcd01"), 1);
	assert_int_equal(run(GO_PPROF "-tags %s 2>&1", path, "/usr/bin/alpha"),
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
	assert_true(each < 100 + 4 * 30 + 100); /* + 8,192 places of theirs */
	finish(T0 + SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(a_sample_keeps_frames_labels_and_mappings),
		T(samples_of_one_stack_are_counted_others_kept_apart),
		T(marks_and_late_names_are_told_apart_by_name),
		T(labels_that_are_empty_are_left_out),
		T(a_provisional_image_gets_its_labels_when_it_has_them),
		T(names_that_are_not_utf8_are_repaired),
		T(mappings_are_the_segments_that_were_used),
		T(the_first_mapping_is_the_program_with_most_samples),
		T(a_program_seen_only_in_its_library_is_still_named),
		T(the_kernel_is_first_only_when_alone),
		T(losses_are_said_by_each_profile_for_its_time),
		T(traces_go_into_the_window_of_their_time),
		T(a_late_trace_is_counted_and_kept),
		T(an_idle_host_has_empty_windows_but_none_for_its_sleep),
		T(rotation_cuts_between_traces),
		T(rotating_twice_at_once_makes_no_empty_window),
		T(a_window_in_memory_has_what_lies_in_it),
		T(a_window_of_the_selected_has_no_others),
		T(finish_ends_open_windows_with_what_they_have),
		T(free_drops_open_windows_without_a_word),
		T(free_while_a_window_is_written_is_safe),
		T(file_names_sort_by_time_and_never_collide),
		T(one_archive_has_one_profd),
		T(an_archive_that_cannot_be_is_an_error),
		T(the_start_sweeps_leftovers_and_nothing_else),
		T(killed_while_writing_leaves_no_half_file),
		T(a_full_disk_is_counted_and_leaves_nothing),
		T(a_recording_is_a_file_by_its_name),
		T(a_recording_nowhere_fails_at_once),
		T(a_recording_to_a_device_leaves_the_device),
		T(protoc_and_zstd_and_go_read_it),
		T(a_window_is_small),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
