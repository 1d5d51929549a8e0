// SPDX-License-Identifier: Apache-2.0
/* The times of samples in a window, and profiles of a part of the window. */
#include "reporter/internal.h"
#include "tests/unit/reporter/test_reporter_common.h"

#define MS CLOCK_NSEC_PER_MSEC

/* --- the list -------------------------------------------------------------- */

static struct times_sample made(unsigned int *seed)
{
	static const uint64_t values[] = { 0, 1, 127, 128, UINT64_MAX };

	return (struct times_sample){
		.step = (int64_t)rand_r(seed) % 100000 - 50000,
		.sample = (uint32_t)rand_r(seed) << 1,
		.cpu = (unsigned int)rand_r(seed) % 4096,
		.event = (unsigned int)rand_r(seed) % REPORTER_EVENTS_MAX,
		.value =
			values[(unsigned int)rand_r(seed) % ARRAY_SIZE(values)],
	};
}

static void what_is_added_is_read(void **state)
{
	const int n = 20000;
	struct times_sample want, s;
	struct times times = { 0 };
	struct times_cursor c;
	unsigned int seed = 7;
	struct arena arena;
	int i;

	arena_init(&arena);
	times_begin(&times, &c);
	assert_false(times_next(&c, &s));
	for (i = 0; i < n; i++) {
		s = made(&seed);
		times_add(&times, &arena, &s);
	}
	assert_int_equal(times.count, n);
	assert_int_equal(times.dropped, 0);
	times_begin(&times, &c);
	for (i = 0, seed = 7; i < n; i++) {
		want = made(&seed);
		assert_true(times_next(&c, &s));
		assert_int_equal(s.step, want.step);
		assert_int_equal(s.sample, want.sample);
		assert_int_equal(s.cpu, want.cpu);
		assert_int_equal(s.event, want.event);
		assert_true(s.value == want.value);
		assert_in_range(s.step + 50000, times.min + 50000,
				times.max + 50000);
	}
	assert_false(times_next(&c, &s));
	arena_fini(&arena);
}

static void steps_are_rounded_down(void **state)
{
	assert_int_equal(times_step(T0, T0), 0);
	assert_int_equal(times_step(T0, T0 + 10 * MS - 1), 0);
	assert_int_equal(times_step(T0, T0 + 10 * MS), 1);
	assert_int_equal(times_step(T0, T0 - 1), -1);
	assert_int_equal(times_step(T0, T0 - 10 * MS), -1);
	assert_int_equal(times_step(T0, T0 - 10 * MS - 1), -2);
}

static void a_list_has_a_limit(void **state)
{
	struct times_sample s = { .sample = 1 << 20, .cpu = 1, .value = 1 };
	struct times times = { 0 };
	struct times_cursor c;
	struct arena arena;
	uint64_t n = 0;
	int i;

	arena_init(&arena);
	for (i = 0; i < TIMES_MAX / 4; i++) {
		s.step++;
		times_add(&times, &arena, &s);
	}
	assert_true(times.bytes <= TIMES_MAX && times.bytes > TIMES_MAX - 4096);
	assert_true(times.dropped > 0);
	assert_int_equal(times.count + times.dropped, TIMES_MAX / 4);
	times_begin(&times, &c);
	while (times_next(&c, &s))
		n++;
	assert_int_equal(n, times.count);
	arena_fini(&arena);
}

/* --- the window ------------------------------------------------------------ */

static const struct reporter_event_type two[] = {
	{ "cpu",
	  "the CPU clock",
	  true,
	  { "samples", "count" },
	  { "cpu", "nanoseconds" } },
	{ "offcpu",
	  "time off the CPU",
	  false,
	  { "blocks", "count" },
	  { "offcpu", "nanoseconds" } },
};

#define PERIOD 100

static void window_open(struct window *w)
{
	const struct window_opts opts = { .types = two,
					  .ntypes = ARRAY_SIZE(two),
					  .events = 3,
					  .period = PERIOD,
					  .begin = T0 };

	assert_int_equal(window_init(w, &opts), 0);
}

static void window_put(struct window *w, uint64_t time, uint32_t tid,
		       uint32_t cpu, uint32_t event, uint64_t value)
{
	struct pm_image img = image(1, 100, EXE_A);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "work");
	struct reporter_trace tr = { .time = time,
				     .event = event,
				     .value = value,
				     .image = &img,
				     .tid = tid,
				     .cpu = cpu,
				     .thread = "alpha",
				     .frames = &f,
				     .nframes = 1 };

	assert_int_equal(window_add(w, &tr, &img.info), 0);
}

/* The sum of a column. */
static int64_t window_total(const struct window *w, uint32_t column)
{
	const struct window_sample *s;
	int64_t sum = 0;

	STAILQ_FOREACH(s, &w->sample_list, entry)
		sum += s->values[column];
	return sum;
}

/* A sample each millisecond, of three threads; every tenth of the other event. */
static void a_cut_has_the_samples_of_its_time(void **state)
{
	struct window w;
	int i, from, to;

	window_open(&w);
	for (i = 0; i < 1000; i++)
		window_put(&w, T0 + i * MS, 100 + i % 3, i % 2, 0, 0);
	for (i = 0; i < 100; i++) /* out of order */
		window_put(&w, T0 + 10 * i * MS, 100, 0, 1, 1000 + i);
	assert_int_equal(window_seal(&w), 0);
	assert_int_equal(w.samples.count, 3);
	for (from = 0; from < 100; from += 7) {
		for (to = from; to <= 100; to += 9) {
			int n = to - from;

			assert_int_equal(window_cut(&w, from, to), 0);
			assert_int_equal(w.nsamples, 11 * n);
			assert_int_equal(window_total(&w, 0), 10 * n);
			assert_int_equal(window_total(&w, 1), 10 * n * PERIOD);
			assert_int_equal(window_total(&w, 2), n);
			assert_int_equal(window_total(&w, 3),
					 1000 * n + (from + to - 1) * n / 2);
		}
	}
	assert_int_equal(window_cut(&w, INT64_MIN, INT64_MAX), 0);
	assert_int_equal(w.nsamples, 1100);
	window_fini(&w);
}

static void a_sample_keeps_its_time_thread_and_cpu(void **state)
{
	static const struct {
		uint64_t time;
		uint32_t tid, cpu;
		int64_t step;
	} all[] = {
		{ T0 + 10 * MS, 100, 3, 1 },
		{ T0 + 59990 * MS, 101, 127, 5999 },
		{ T0 + 10 * MS, 100, 4, 1 },
		{ T0 - 5 * MS, 101, 0, -1 }, /* late: before the window */
		{ T0 + 20 * MS - 1, 100, 3, 1 },
	};
	const struct window_sample *of[ARRAY_SIZE(all)], *at;
	struct times_cursor c;
	struct times_sample s;
	struct window w;
	size_t i;

	window_open(&w);
	for (i = 0; i < ARRAY_SIZE(all); i++)
		window_put(&w, all[i].time, all[i].tid, all[i].cpu, 0, 0);
	STAILQ_FOREACH(at, &w.sample_list, entry)
		of[at->id] = at;
	times_begin(&w.times, &c);
	for (i = 0; i < ARRAY_SIZE(all); i++) {
		assert_true(times_next(&c, &s));
		assert_int_equal(s.step, all[i].step);
		assert_int_equal(s.cpu, all[i].cpu);
		assert_int_equal(of[s.sample]->tid, all[i].tid);
	}
	assert_false(times_next(&c, &s));
	window_fini(&w);
}

/* 12,000 samples, a minute of two CPUs, each with its own stack. */
static void a_time_is_few_bytes(void **state)
{
	size_t before, after;
	struct window w;
	double each;
	int i;

	window_open(&w);
	before = window_bytes(&w);
	for (i = 0; i < 12000; i++)
		window_put(&w, T0 + i * 5 * MS, 1000 + i, i % 2, 0, 0);
	after = window_bytes(&w);
	each = (double)w.times.bytes / 12000;
	print_message("# a time is %.2f bytes\n", each);
	assert_true(each < 8);
	assert_true(after - before >= w.times.bytes);
	window_fini(&w);
}

/* --- the reporter ---------------------------------------------------------- */

static const Perftools__Profiles__Profile *ended(uint64_t after)
{
	struct reporter_window *w;
	const char *wrong;
	int i;

	start(options());
	w = open_window(
		(struct reporter_window_opts){ .begin = T0, .end = T0 + SEC });
	for (i = 0; i < 1000; i++)
		add_simple(T0 + i * MS);
	reporter_window_end(t.r, w, T0 + after);
	reporter_advance(t.r, T0 + SEC);
	settle();
	assert_int_equal(got.calls, 1);
	assert_int_equal(got.err, 0);
	wrong = pprof_check(got.data, got.len);
	if (wrong)
		fail_msg("%s", wrong);
	free(got.data);
	return pprof_checked();
}

static void an_end_in_the_past_is_exact_to_10_ms(void **state)
{
	const Perftools__Profiles__Profile *p = ended(500 * MS);

	assert_int_equal(p->duration_nanos, 500 * MS);
	assert_int_equal(pprof_samples(p), 500);
	assert_int_equal(got.nsamples, 500);
}

static void an_end_within_10_ms_keeps_all_of_them(void **state)
{
	assert_int_equal(pprof_samples(ended(505 * MS)), 510);
}

static void a_window_that_ends_at_once_is_empty(void **state)
{
	struct reporter_window *w;

	start(options());
	w = open_window(
		(struct reporter_window_opts){ .begin = T0, .end = T0 + SEC });
	add_simple(T0);
	reporter_window_end(t.r, w, T0 - SEC);
	reporter_advance(t.r, T0 + SEC);
	settle();
	assert_int_equal(got.err, 0);
	assert_int_equal(got.nsamples, 0);
	free(got.data);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		cmocka_unit_test(what_is_added_is_read),
		cmocka_unit_test(steps_are_rounded_down),
		cmocka_unit_test(a_list_has_a_limit),
		cmocka_unit_test(a_cut_has_the_samples_of_its_time),
		cmocka_unit_test(a_sample_keeps_its_time_thread_and_cpu),
		cmocka_unit_test(a_time_is_few_bytes),
		T(an_end_in_the_past_is_exact_to_10_ms),
		T(an_end_within_10_ms_keeps_all_of_them),
		T(a_window_that_ends_at_once_is_empty),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
