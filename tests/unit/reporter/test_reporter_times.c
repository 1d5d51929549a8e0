// SPDX-License-Identifier: Apache-2.0
/* The times of samples in a window, and profiles of a part of the window. */
#include <zstd.h>

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
		.ids = (unsigned int)rand_r(seed) % 3 * 30000,
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
		assert_int_equal(s.ids, want.ids);
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
	  { "cpu", "nanoseconds" },
	  false },
	{ "offcpu",
	  "time off the CPU",
	  false,
	  { "blocks", "count" },
	  { "offcpu", "nanoseconds" },
	  false },
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

/* --- side files ------------------------------------------------------------ */

static void *side_file(const struct window *w, size_t *len)
{
	const struct store_times_info info = { .wall_ns = -5,
					       .boot_ns = T0,
					       .duration_ns = 60 * SEC,
					       .boot_id = { 1, 2, 3 } };
	struct sink *sink;
	void *data;

	assert_int_equal(sink_new(&sink, REPORTER_ZSTD, -1), 0);
	store_times_write(w, &info, sink);
	assert_int_equal(sink_finish(sink), 0);
	data = sink_steal(sink, len);
	sink_free(sink);
	assert_non_null(data);
	return data;
}

/* Records of two events, late ones, threads and CPUs of any number. */
static void many_records(struct window *w)
{
	unsigned int seed = 3;
	int i;

	window_open(w);
	for (i = 0; i < 5000; i++)
		window_put(w, T0 + rand_r(&seed) % 60000 * MS - 2 * SEC,
			   rand_r(&seed) % 200, rand_r(&seed) % 4096,
			   i % 5 == 4, i % 5 == 4 ? rand_r(&seed) : 0);
	assert_int_equal(window_seal(w), 0);
}

static void a_side_file_has_every_record(void **state)
{
	const struct store_times_event *ev;
	const struct store_times_info *info;
	struct store_times_cursor c;
	struct store_times_record rec;
	struct store_times *file;
	struct times_cursor have;
	struct times_sample want;
	const struct window_sample *at;
	uint32_t tid[256];
	struct window w;
	void *data;
	size_t len;

	many_records(&w);
	data = side_file(&w, &len);
	assert_int_equal(store_times_read(&file, data, len), 0);
	free(data);
	info = store_times_info(file);
	assert_int_equal(info->wall_ns, -5);
	assert_int_equal(info->boot_ns, T0);
	assert_int_equal(info->duration_ns, 60 * SEC);
	assert_int_equal(info->step_ns, 10 * MS);
	assert_int_equal(info->boot_id[2], 3);
	assert_int_equal(info->records, 5000);
	assert_int_equal(info->samples, w.samples.count);
	assert_int_equal(info->untimed, 0);
	ev = store_times_event(file, 1);
	assert_string_equal(ev->name, "offcpu");
	assert_int_equal(ev->count, 2);
	assert_int_equal(ev->nvalues, 2);
	assert_null(store_times_event(file, 2));
	assert_true(store_times_fit(file, -5, w.samples.count));
	assert_false(store_times_fit(file, -4, w.samples.count));
	STAILQ_FOREACH(at, &w.sample_list, entry)
		tid[at->id] = at->tid;
	times_begin(&w.times, &have);
	store_times_begin(file, &c);
	while (times_next(&have, &want)) {
		assert_true(store_times_next(&c, &rec));
		assert_int_equal(rec.step, want.step);
		assert_int_equal(rec.sample, want.sample);
		assert_int_equal(rec.thread, tid[want.sample]);
		assert_int_equal(rec.cpu, want.cpu);
		assert_int_equal(rec.event, want.event);
		assert_int_equal(rec.value, want.event ? want.value : PERIOD);
	}
	assert_false(store_times_next(&c, &rec));
	store_times_free(file);
	window_fini(&w);
}

static void a_side_file_of_nothing_is_one(void **state)
{
	struct store_times_record rec;
	struct store_times_cursor c;
	struct store_times *file;
	struct window w;
	void *data;
	size_t len;

	window_open(&w);
	assert_int_equal(window_seal(&w), 0);
	data = side_file(&w, &len);
	assert_int_equal(store_times_read(&file, data, len), 0);
	store_times_begin(file, &c);
	assert_false(store_times_next(&c, &rec));
	store_times_free(file);
	free(data);
	window_fini(&w);
}

/* Each byte of the unpacked form wrong once: refused, or read to its end. */
static void read_damaged(const uint8_t *raw, size_t len)
{
	size_t room = ZSTD_compressBound(len);
	uint8_t *packed = malloc(room);
	struct store_times_record rec;
	struct store_times_cursor c;
	struct store_times *file;
	size_t n;

	assert_non_null(packed);
	n = ZSTD_compress(packed, room, raw, len, 1);
	if (!store_times_read(&file, packed, n)) {
		store_times_begin(file, &c);
		while (store_times_next(&c, &rec))
			assert_true(rec.sample <
				    store_times_info(file)->samples);
		store_times_free(file);
	}
	free(packed);
}

static void a_damaged_side_file_is_refused(void **state)
{
	struct store_times *file;
	uint8_t raw[4096], was;
	struct window w;
	uint8_t *data;
	size_t i, n, len;

	window_open(&w);
	for (i = 0; i < 20; i++)
		window_put(&w, T0 + i * 7 * MS, 100 + i % 3, i % 4, i % 2, 9);
	assert_int_equal(window_seal(&w), 0);
	data = side_file(&w, &len);
	n = ZSTD_decompress(raw, sizeof(raw), data, len);
	assert_false(ZSTD_isError(n));
	for (i = 0; i < len; i++)
		assert_int_equal(store_times_read(&file, data, i), -EBADMSG);
	for (i = 0; i < n; i++) {
		was = raw[i];
		for (raw[i] = 0; raw[i] < 255; raw[i] += 17)
			read_damaged(raw, n);
		read_damaged(raw, n);
		raw[i] = was;
		read_damaged(raw, i);
	}
	raw[8] = 2;
	free(data);
	data = malloc(ZSTD_compressBound(n));
	len = ZSTD_compress(data, ZSTD_compressBound(n), raw, n, 1);
	assert_int_equal(store_times_read(&file, data, len), -EPROTONOSUPPORT);
	free(data);
	window_fini(&w);
}

/* 128 MiB of zeros are a few KiB of zstd. */
static void a_side_file_has_a_limit(void **state)
{
	size_t len = 128 << 20;
	uint8_t *zero = calloc(1, len), *packed = malloc(1 << 20);
	struct store_times *file;

	assert_non_null(zero);
	assert_non_null(packed);
	len = ZSTD_compress(packed, 1 << 20, zero, len, 1);
	assert_false(ZSTD_isError(len));
	assert_int_equal(store_times_read(&file, packed, len), -EFBIG);
	free(zero);
	free(packed);
}

/* As a later profd may write it: a longer header and entries, other columns. */
static void unknown_parts_are_skipped(void **state)
{
	static const uint8_t more[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	/* Length 23, table 9, coding 77, a name of 7 bytes, 3 bytes of values. */
	static const uint8_t column[23] = {
		23, 0, 0, 0, 9,	  77,  7,   0,	 3,   0,   0,	0,
		0,  0, 0, 0, 't', 'r', 'a', 'c', 'e', 'i', 'd',
	};
	struct store_times_column c;
	struct store_times *file;
	uint8_t raw[4096], made[4096], packed[4096];
	struct window w;
	size_t n, len, at = 0, front;
	void *data;
	uint64_t v;

	window_open(&w);
	window_put(&w, T0 + 70 * MS, 100, 1, 0, 0);
	assert_int_equal(window_seal(&w), 0);
	data = side_file(&w, &len);
	n = ZSTD_decompress(raw, sizeof(raw), data, len);
	free(data);
	memcpy(made, raw, 96);
	made[12] += sizeof(more);
	made[92]++;
	at = 96;
	memcpy(made + at, more, sizeof(more));
	at += sizeof(more);
	/* The events (cpu, offcpu), then ours before all columns. */
	front = 16 + 3 + 16 + 6;
	memcpy(made + at, raw + 96, front);
	at += front;
	memcpy(made + at, column, sizeof(column));
	at += sizeof(column);
	front += 96;
	/* The directory of six columns, the values of ours, and theirs. */
	len = 6 * 16 + strlen("stepsamplecpueventvaluethread");
	memcpy(made + at, raw + front, len);
	at += len;
	memcpy(made + at, more, 3);
	at += 3;
	memcpy(made + at, raw + front + len, n - front - len);
	at += n - front - len;
	len = ZSTD_compress(packed, sizeof(packed), made, at, 1);
	assert_int_equal(store_times_read(&file, packed, len), 0);
	assert_false(store_times_column(file, "traceid", &c));
	assert_true(store_times_column(file, "step", &c));
	assert_true(store_times_value(&c, &v));
	assert_int_equal(v, 7);
	store_times_free(file);
	window_fini(&w);
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
		cmocka_unit_test(a_side_file_has_every_record),
		cmocka_unit_test(a_side_file_of_nothing_is_one),
		cmocka_unit_test(a_damaged_side_file_is_refused),
		cmocka_unit_test(a_side_file_has_a_limit),
		cmocka_unit_test(unknown_parts_are_skipped),
		T(an_end_in_the_past_is_exact_to_10_ms),
		T(an_end_within_10_ms_keeps_all_of_them),
		T(a_window_that_ends_at_once_is_empty),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
