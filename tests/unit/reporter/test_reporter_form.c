// SPDX-License-Identifier: Apache-2.0
/* Profiles with some of the labels, with a prefix, and without invented names or marks. */
#include "reporter/labels.h"
#include "tests/unit/reporter/test_reporter_common.h"

typedef Perftools__Profiles__Profile Profile;

static uint32_t without(const char *labels)
{
	uint32_t out = 77;

	assert_int_equal(reporter_labels_parse(labels, &out), 0);
	return out;
}

/* Three processes of two programs: one stack, and one more in the last. */
static const Profile *profile_as(struct reporter_form form)
{
	struct pm_image img[] = { image(1, 10, EXE_A), image(2, 20, EXE_A),
				  image(3, 30, EXE_B) };
	struct reporter_frame f[] = {
		frame(EXE_A, 0x401234, 0x401200, "work"),
		frame(EXE_B, 0x5678, 0, "beta+0x5678"),
		frame(EXE_MARK, 7, 0, "[tables late]"),
	};
	const struct reporter_window_opts o = { .begin = T0,
						.end = T0 + SEC,
						.form = form };
	const char *wrong;

	start(options());
	open_window(o);
	for (size_t i = 0; i < ARRAY_SIZE(img); i++)
		assert_int_equal(add(&img[i], T0 + i, img[i].info.key.tgid,
				     "thread", f, ARRAY_SIZE(f)),
				 0);
	assert_int_equal(add(&img[2], T0 + 9, 30, "thread", f, 1), 0);
	reporter_advance(t.r, T0 + 2 * SEC);
	while (!got.calls)
		uv_run(&t.loop, UV_RUN_ONCE);
	assert_int_equal(got.err, 0);
	pprof_check_bare(form.bare);
	wrong = pprof_check(got.data, got.len);
	pprof_check_bare(false);
	free(got.data);
	if (wrong)
		fail_msg("%s", wrong);
	return pprof_checked();
}

static bool has_string(const Profile *p, const char *text)
{
	for (size_t i = 0; i < p->n_string_table; i++)
		if (!strcmp(p->string_table[i], text))
			return true;
	return false;
}

static void a_list_of_labels_is_parsed(void **state)
{
	static const char *const bad[] = { "",	    ",",       "comm,",
					   "Comm",  "comm,x",  "comm, exe",
					   "all,x", "comm,all" };
	const uint32_t every = (1U << LABELS_N) - 1;
	uint32_t out;

	assert_int_equal(without("all"), 0);
	assert_int_equal(without("none"), every);
	assert_int_equal(without("comm"), every & ~(1U << LABELS_comm));
	assert_int_equal(without("image,pid,pid"),
			 every & ~(1U << LABELS_image | 1U << LABELS_pid));
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(reporter_labels_parse(bad[i], &out), -EINVAL);
}

static void in_full_each_process_has_its_samples(void **state)
{
	const Profile *p = profile_as((struct reporter_form){ 0 });

	assert_int_equal(p->n_sample, 4);
	assert_int_equal(pprof_label_num(p, p->sample[0], "pid"), 10);
	assert_string_equal(pprof_label(p, p->sample[0], "process"), "10-1f");
	assert_string_equal(pprof_label(p, p->sample[3], "comm"), "beta");
}

/* Nor is anything else of theirs in the file. */
static void without_marks_only_code_is_in_the_stacks(void **state)
{
	const Profile *p = profile_as((struct reporter_form){
		.without = without("none"), .drop_marks = true });

	assert_int_equal(p->n_sample, 2);
	assert_int_equal(p->sample[0]->n_location_id, 2);
	assert_int_equal(p->sample[0]->value[0], 3);
	assert_int_equal(p->n_location, 2);
	assert_int_equal(p->n_function, 2);
	assert_false(has_string(p, "[tables late]"));
}

static void samples_that_are_equal_without_a_label_are_one(void **state)
{
	const Profile *p = profile_as(
		(struct reporter_form){ .without = without("comm") });

	assert_int_equal(p->n_sample, 3);
	assert_int_equal(pprof_samples(p), 4);
	assert_int_equal(p->sample[0]->value[0], 2);
	assert_int_equal(p->sample[1]->value[0], 1);
	assert_int_equal(p->sample[0]->n_label, 1);
	assert_string_equal(pprof_label(p, p->sample[0], "comm"), "alpha");
	assert_string_equal(pprof_label(p, p->sample[1], "comm"), "beta");
	/* Nor are its values in the file. */
	assert_false(has_string(p, "10-1f"));
	assert_false(has_string(p, "process"));
}

static void without_any_label_a_stack_is_one_sample(void **state)
{
	const Profile *p = profile_as(
		(struct reporter_form){ .without = without("none") });

	assert_int_equal(p->n_sample, 2);
	assert_int_equal(p->sample[0]->value[0], 3);
	assert_int_equal(p->sample[0]->n_label, 0);
}

static void keys_get_a_prefix(void **state)
{
	const Profile *p =
		profile_as((struct reporter_form){ .prefix = "profd_" });

	assert_string_equal(pprof_label(p, p->sample[0], "profd_comm"),
			    "alpha");
	assert_null(pprof_label(p, p->sample[0], "comm"));
	assert_int_equal(pprof_label_num(p, p->sample[0], "profd_tid"), 10);
}

static void bare_locations_have_no_line(void **state)
{
	const Profile *p = profile_as((struct reporter_form){ .bare = true });
	const Perftools__Profiles__Mapping *m;

	assert_int_equal(p->n_location, 3);
	assert_int_equal(p->location[0]->n_line, 1);
	assert_int_equal(p->location[1]->n_line, 0);
	assert_int_equal(p->location[1]->address, 0x5678);
	m = pprof_frame_mapping(p, p->sample[0], 1);
	assert_string_equal(p->string_table[m->filename], "/usr/bin/beta");
	assert_false(m->has_functions);
	/* Nobody else can name a mark. */
	assert_string_equal(pprof_frame(p, p->sample[0], 2), "[tables late]");
	assert_int_equal(p->n_function, 2);
	assert_false(has_string(p, "beta+0x5678"));
}

int main(void)
{
#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_of_labels_is_parsed),
		test(in_full_each_process_has_its_samples),
		test(without_marks_only_code_is_in_the_stacks),
		test(samples_that_are_equal_without_a_label_are_one),
		test(without_any_label_a_stack_is_one_sample),
		test(keys_get_a_prefix),
		test(bare_locations_have_no_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
