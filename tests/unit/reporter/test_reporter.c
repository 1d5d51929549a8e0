// SPDX-License-Identifier: Apache-2.0
/* Traces to profiles and windows. */
#include "tests/unit/reporter/test_reporter_common.h"

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

/* A memo is valid in one window only. */
static void a_memo_stands_for_its_frames(void **state)
{
	struct pm_image img = image(1, 10, EXE_A);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "f");
	struct reporter_frame g = frame(EXE_A, 0x501234, 0x501200, "g");
	struct reporter_memo memo = { 0 };
	struct reporter_trace tr = { .time = T0,
				     .image = &img,
				     .tid = 10,
				     .thread = "x",
				     .frames = &f,
				     .nframes = 1,
				     .memo = &memo };
	const Perftools__Profiles__Profile *p;

	start(options());
	assert_int_equal(reporter_add(t.r, &tr), 0);
	assert_int_not_equal(memo.window, 0);
	tr.frames = &g; /* ignored */
	assert_int_equal(reporter_add(t.r, &tr), 0);
	tr.time = T0 + 60 * SEC;
	assert_int_equal(reporter_add(t.r, &tr), 0);
	reporter_advance(t.r, T0 + 60 * SEC);
	settle(); /* written before the second */
	finish(T0 + 61 * SEC);
	assert_int_equal(t.written, 2);
	assert_int_equal(t.nsamples[0], 2);
	p = checked(t.path[0]);
	assert_int_equal(p->n_function, 1);
	assert_string_equal(pprof_frame(p, p->sample[0], 0), "f");
	p = checked(t.path[1]);
	assert_string_equal(pprof_frame(p, p->sample[0], 0), "g");
}

/* The archive's windows may close late. */
static void the_next_end_that_is_awaited(void **state)
{
	struct reporter_window_opts o = { .begin = T0, .end = T0 + 9 * SEC };
	struct reporter_window *w;

	start(options());
	assert_int_equal(reporter_due(t.r), UINT64_MAX);
	w = open_window(o);
	assert_int_equal(reporter_due(t.r), T0 + 9 * SEC);
	o.end = T0 + 5 * SEC;
	open_window(o);
	assert_int_equal(reporter_due(t.r), T0 + 5 * SEC);
	reporter_advance(t.r, T0 + 6 * SEC);
	assert_int_equal(reporter_due(t.r), T0 + 9 * SEC);
	reporter_window_end(t.r, w, T0 + 7 * SEC);
	assert_int_equal(reporter_due(t.r), T0 + 7 * SEC);
	reporter_advance(t.r, T0 + 8 * SEC);
	assert_int_equal(reporter_due(t.r), UINT64_MAX);
	settle();
	free(got.data);
}

static void marks_and_late_names_are_told_apart_by_name(void **state)
{
	struct pm_image img = image(1, 10, EXE_A);
	struct reporter_frame f[] = {
		frame(EXE_MARK, 0, 0, "[exec]"),
		frame(EXE_MARK, 0, 0, "[stack cut]"),
		frame(EXE_B, 0x1234, 0, "beta+0x1234"),
		frame(EXE_B, 0x1234, 0, "beta+0x1200"),
		frame(EXE_B, 0x1234, 0x1200, "named"),
		/* Of the kernel: another program was loaded there. */
		frame(EXE_KERNEL, 0x81001234, 0x81001200, "bpf_prog_1_old"),
		frame(EXE_KERNEL, 0x81001234, 0x81001200, "bpf_prog_1_new"),
	};
	const Perftools__Profiles__Profile *p;
	size_t i;

	start(options());
	add(&img, T0, 10, "x", f, ARRAY_SIZE(f));
	finish(T0 + SEC);
	p = checked(t.path[0]);
	for (i = 0; i < ARRAY_SIZE(f); i++)
		assert_string_equal(pprof_frame(p, p->sample[0], i),
				    f[i].lines->function->name);
}

/* Code objects of a runtime are identified by number and name space. */
static void a_name_may_come_after_the_samples(void **state)
{
	struct pm_image img = image(1, 10, EXE_A);
	struct reporter_frame f[] = { frame(EXE_A, 0x401234, 0, "x+0x1"),
				      frame(EXE_A, 0x401238, 0, "x+0x1"),
				      frame(EXE_A, 0x40123c, 0, "f") };
	struct reporter_frame late = frame(EXE_A, 0x401234, 0, "late");
	struct reporter_frame other = frame(EXE_A, 0x40123c, 0, "other");
	const Perftools__Profiles__Profile *p;

	start(options());
	open_window((struct reporter_window_opts){
		.begin = T0, .end = T0 + SEC, .format = REPORTER_RAW });
	add(&img, T0, 10, "x", f, ARRAY_SIZE(f));
	reporter_rename(t.r, &late);
	reporter_rename(t.r, &other); /* that has a name */
	reporter_advance(t.r, T0 + SEC);
	settle();
	assert_null(pprof_check(got.data, got.len));
	p = pprof_checked();
	assert_int_equal(p->n_sample, 1);
	assert_string_equal(pprof_frame(p, p->sample[0], 0), "late");
	assert_string_equal(pprof_frame(p, p->sample[0], 1), "x+0x1");
	assert_string_equal(pprof_frame(p, p->sample[0], 2), "f");
	free(got.data);
	finish(T0 + 2 * SEC);
}

static void a_frame_may_be_a_code_object(void **state)
{
	const struct reporter_function script = {
		"serve", "serve", "/app/web.py", 0, 30, false
	};
	const struct reporter_line line = { &script, 42 };
	struct pm_image img = image(1, 10, EXE_A);
	struct reporter_frame f[] = {
		{ .place = { .kind = REPORTER_PLACE_OBJECT,
			     .space = 1,
			     .id = 0x401234 },
		  .lines = &line,
		  .nlines = 1 },
		frame(EXE_A, 0x401234, 0x401200, "eval"),
	};
	const Perftools__Profiles__Profile *p;
	const Perftools__Profiles__Location *l;
	const Perftools__Profiles__Function *fn;
	const Perftools__Profiles__Sample *s;

	start(options());
	add(&img, T0, 10, "x", f, 2);
	add(&img, T0, 10, "x", f, 2);
	f[0].place.space = 2;
	add(&img, T0, 10, "x", f, 2);
	finish(T0 + SEC);
	p = checked(t.path[0]);
	assert_int_equal(p->n_sample, 2);
	assert_int_equal(p->n_location, 3);
	assert_int_equal(p->n_function, 2);
	s = p->sample[0];
	assert_int_equal(s->value[0], 2);
	assert_string_equal(pprof_frame(p, s, 0), "serve");
	assert_null(pprof_frame_mapping(p, s, 0));
	assert_string_equal(pprof_frame(p, s, 1), "eval");
	assert_non_null(pprof_frame_mapping(p, s, 1));
	l = p->location[s->location_id[0] - 1];
	assert_int_equal(l->line[0]->line, 42);
	fn = p->function[l->line[0]->function_id - 1];
	assert_string_equal(p->string_table[fn->filename], "/app/web.py");
	assert_int_equal(fn->start_line, 30);
}

/* has_functions of the mapping of these frames of one executable. */
static bool has_functions(const struct reporter_frame *f, size_t n)
{
	struct pm_image img = image(1, 10, EXE_A);
	const Perftools__Profiles__Profile *p;
	bool has;

	start(options());
	add(&img, T0, 10, "x", f, n);
	finish(T0 + SEC);
	p = checked(t.path[0]);
	assert_int_equal(p->n_location, n);
	has = pprof_frame_mapping(p, p->sample[0], 0)->has_functions;
	reporter_free(t.r);
	settle();
	t.r = NULL;
	t.finished = false;
	t.written = 0;
	return has;
}

/* Readers look for names in mappings that do not have all. */
static void a_mapping_has_functions_if_all_are_named(void **state)
{
	struct reporter_frame f[] = {
		frame(EXE_B, 0x1234, 0x1200, "named"),
		frame(EXE_B, 0x1334, 0x1300, "named too"),
		frame(EXE_B, 0x1444, 0, "beta+0x1440"),
		frame(EXE_B, 0x1454, 0, "beta+0x1440"),
	};

	assert_true(has_functions(f, 2));
	assert_false(has_functions(f, 3));
	assert_false(has_functions(f + 2, 2));
}

#define ID "3f1b6e0c9d2a47580e1f2a3b4c5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f"

static void labels_have_container_pod_and_unit(void **state)
{
	struct pm_image pod = image(1, 10, EXE_A), unit = image(2, 11, EXE_A);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "f");
	const Perftools__Profiles__Profile *p;
	const Perftools__Profiles__Sample *s, *u;

	pod.info.cgroup =
		"/kubepods/podc0ffee00-1234-4abc-8def-0123456789ab/" ID;
	pod.info.leader_type = QUARK_ELT_CONTAINER;
	pod.info.leader = 9;
	unit.info.leader_type = QUARK_ELT_SSHD;
	unit.info.leader = 8;
	start(options());
	add(&pod, T0, 10, "x", &f, 1);
	add(&unit, T0, 11, "x", &f, 1);
	finish(T0 + SEC);
	p = checked(t.path[0]);
	s = p->sample[pprof_label_num(p, p->sample[0], "pid") == 11];
	u = p->sample[pprof_label_num(p, p->sample[0], "pid") != 11];
	assert_string_equal(pprof_label(p, s, "container"), ID);
	assert_string_equal(pprof_label(p, s, "pod"),
			    "c0ffee00-1234-4abc-8def-0123456789ab");
	assert_null(pprof_label(p, s, "unit"));
	assert_string_equal(pprof_label(p, s, "entry"), "container");
	assert_int_equal(pprof_label_num(p, s, "entry_pid"), 9);
	assert_string_equal(pprof_label(p, u, "unit"), "x.service");
	assert_null(pprof_label(p, u, "container"));
	assert_null(pprof_label(p, u, "pod"));
	assert_string_equal(pprof_label(p, u, "entry"), "sshd");
	assert_int_equal(pprof_label_num(p, u, "entry_pid"), 8);
}

/* A sample has the control group of its time. */
static void a_move_to_another_cgroup_changes_labels(void **state)
{
	struct pm_image img = image(1, 10, EXE_A);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "f");
	const Perftools__Profiles__Profile *p;
	const Perftools__Profiles__Sample *s;
	size_t i, lxc = 0, old = 0;

	start(options());
	add(&img, T0, 10, "x", &f, 1);
	img.info.cgroup = "/lxc/web";
	add(&img, T0, 10, "x", &f, 1);
	add(&img, T0, 10, "x", &f, 1);
	img.info.cgroup = "/system.slice/x.service";
	add(&img, T0, 10, "x", &f, 1);
	finish(T0 + SEC);
	p = checked(t.path[0]);
	assert_int_equal(p->n_sample, 2);
	for (i = 0; i < p->n_sample; i++) {
		s = p->sample[i];
		if (pprof_label(p, s, "container")) {
			assert_string_equal(pprof_label(p, s, "container"),
					    "web");
			assert_null(pprof_label(p, s, "unit"));
			lxc += s->value[0];
		} else {
			assert_string_equal(pprof_label(p, s, "unit"),
					    "x.service");
			old += s->value[0];
		}
		assert_string_equal(pprof_label(p, s, "image"), "10-1f-1");
	}
	assert_int_equal(lxc, 2);
	assert_int_equal(old, 2);
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
	assert_null(pprof_label(p, p->sample[0], "unit"));
	assert_null(pprof_label(p, p->sample[0], "entry"));
	assert_int_equal(pprof_label_num(p, p->sample[0], "entry_pid"), -1);
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
	/* A rename afterwards changes no label, so it stays one sample. */
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

static void comments_have_the_drops_of_the_profile_s_time(void **state)
{
	const uint64_t at_start[] = { 5, 0 }, now[] = { 12, 0 };
	struct reporter_opts o = options();
	char note[16] = "";
	const char *where;

	o.note = note;
	assert_int_equal(reporter_new(&t.r, &o, &where), 0);
	strcpy(note, "seen by half");
	reporter_losses(t.r, at_start);
	reporter_start(t.r, T0);
	add_simple(T0);
	reporter_losses(t.r, now);
	reporter_advance(t.r, T0 + 60 * SEC);
	settle();
	add_simple(T0 + 60 * SEC);
	finish(T0 + 61 * SEC);
	assert_int_equal(t.written, 2);
	assert_true(pprof_has_comment(checked(t.path[0]),
				      "samples lost: ring full: 7"));
	assert_true(pprof_has_comment(pprof_checked(), "seen by half"));
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

/* Drops during an empty window are in the comments of the next one. */
static void a_window_without_a_trace_is_not_written(void **state)
{
	const uint64_t lost[] = { 3, 0 };
	struct reporter_stats st;

	start(options());
	reporter_advance(t.r, T0 + 60 * SEC);
	reporter_losses(t.r, lost);
	reporter_advance(t.r, T0 + 120 * SEC);
	reporter_advance(t.r, T0 + 36000 * SEC);
	settle();
	assert_int_equal(t.written + t.failed, 0);
	add_simple(T0 + 36000 * SEC);
	reporter_rotate(t.r, T0 + 36001 * SEC);
	reporter_rotate(t.r, T0 + 36003 * SEC);
	finish(T0 + 36005 * SEC);
	assert_int_equal(t.written, 1);
	assert_true(pprof_has_comment(checked(t.path[0]),
				      "samples lost: ring full: 3"));
	assert_int_equal(count_files(".pb.gz"), 1);
	reporter_get_stats(t.r, &st);
	assert_int_equal(st.windows_empty, 5);
}

static void rotation_cuts_between_traces(void **state)
{
	start(options());
	add_simple(T0 + 10 * SEC);
	add_simple(T0 + 20 * SEC);
	reporter_rotate(t.r, T0 + 15 * SEC);
	add_simple(T0 + 12 * SEC); /* in the first window */
	add_simple(T0 + 25 * SEC);
	reporter_advance(t.r, T0 + 30 * SEC);
	settle();
	assert_int_equal(t.written, 1);
	assert_int_equal(t.nsamples[0], 3);
	assert_int_equal(checked(t.path[0])->duration_nanos, 20 * SEC + 1);
	/* The next one ends at the boundary. */
	reporter_advance(t.r, T0 + 60 * SEC - 1);
	settle();
	assert_int_equal(t.written, 1);
	reporter_advance(t.r, T0 + 60 * SEC);
	settle();
	assert_int_equal(t.written, 2);
	assert_int_equal(checked(t.path[1])->duration_nanos, 40 * SEC - 1);
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

/* Rotations are limited to one a second; the last one is not lost. */
static void rotations_are_a_second_apart(void **state)
{
	uint64_t at;

	start(options());
	for (at = T0; at < T0 + 3 * SEC; at += SEC / 100) {
		add_simple(at);
		reporter_rotate(t.r, at);
		reporter_advance(t.r, at);
	}
	settle();
	assert_int_equal(t.written, 3);
	reporter_advance(t.r, at + SEC);
	settle();
	assert_int_equal(t.written, 4);
	add_simple(at + 2 * SEC);
	finish(at + 3 * SEC);
	assert_int_equal(t.written, 5);
	assert_int_equal(t.nsamples[0] + t.nsamples[1] + t.nsamples[2] +
				 t.nsamples[3],
			 300);
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
	assert_int_equal(t.nsamples[0], 12); /* the archive's window has all */
}

static void a_selected_window_has_no_other_images(void **state)
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

static void finish_writes_open_windows(void **state)
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

static void free_discards_open_windows(void **state)
{
	start(options());
	open_window((struct reporter_window_opts){ .begin = T0,
						   .end = T0 + 3600 * SEC });
	add_simple(T0 + SEC);
	reporter_free(t.r);
	settle();
	t.r = NULL;
	assert_int_equal(got.calls, 0);
	assert_int_equal(count_files(".gz") + count_files(".tmp"), 0);
}

static void free_while_a_window_is_written_is_safe(void **state)
{
	start(options());
	add_simple(T0);
	reporter_advance(t.r, T0 + 60 * SEC); /* its job is running */
	reporter_free(t.r);
	t.r = NULL;
	settle();
	assert_int_equal(count_files(".tmp"), 0);
	assert_int_equal(count_files(".pb.gz"), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(a_sample_keeps_frames_labels_and_mappings),
		T(samples_of_one_stack_are_counted_others_kept_apart),
		T(a_memo_stands_for_its_frames),
		T(the_next_end_that_is_awaited),
		T(marks_and_late_names_are_told_apart_by_name),
		T(a_name_may_come_after_the_samples),
		T(a_frame_may_be_a_code_object),
		T(a_mapping_has_functions_if_all_are_named),
		T(labels_have_container_pod_and_unit),
		T(a_move_to_another_cgroup_changes_labels),
		T(labels_that_are_empty_are_left_out),
		T(a_provisional_image_gets_its_labels_when_it_has_them),
		T(names_that_are_not_utf8_are_repaired),
		T(mappings_are_the_segments_that_were_used),
		T(the_first_mapping_is_the_program_with_most_samples),
		T(a_program_seen_only_in_its_library_is_still_named),
		T(the_kernel_is_first_only_when_alone),
		T(comments_have_the_drops_of_the_profile_s_time),
		T(traces_go_into_the_window_of_their_time),
		T(a_late_trace_is_counted_and_kept),
		T(a_window_without_a_trace_is_not_written),
		T(rotation_cuts_between_traces),
		T(rotating_twice_at_once_makes_no_empty_window),
		T(rotations_are_a_second_apart),
		T(a_window_in_memory_has_what_lies_in_it),
		T(a_selected_window_has_no_other_images),
		T(finish_writes_open_windows),
		T(free_discards_open_windows),
		T(free_while_a_window_is_written_is_safe),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
