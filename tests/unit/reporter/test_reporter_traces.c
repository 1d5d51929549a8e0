// SPDX-License-Identifier: Apache-2.0
/* The ids of traces: in side files, in profiles of the archive, and as a choice. */
#include "reporter/times.h"
#include "reporter/request/request.h"
#include "reporter/store/times_file.h"
#include "tests/unit/reporter/test_reporter_common.h"

#define MS CLOCK_NSEC_PER_MSEC
#define RED "aa000000000000000000000000000001"
#define BLUE "bb000000000000000000000000000002"

static const uint8_t red[IDS_TRACE] = { 0xaa, [15] = 1 };
static const uint8_t blue[IDS_TRACE] = { 0xbb, [15] = 2 };
static const uint8_t first[IDS_SPAN] = { 0xa1, [7] = 1 };
static const uint8_t second[IDS_SPAN] = { 0xa2, [7] = 2 };

static void put(uint64_t time, const uint8_t *trace, const uint8_t *span)
{
	struct pm_image img = image(1, 100, EXE_A);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "work");
	struct reporter_trace tr = {
		.time = time,
		.image = &img,
		.tid = 100,
		.thread = "alpha",
		.frames = &f,
		.nframes = 1,
		.trace_id = trace,
		.span_id = span,
		.trace_flags = 1,
	};

	assert_int_equal(reporter_add(t.r, &tr), 0);
}

/* Two windows: red in the first, blue in both, each sample in the same row. */
static void two_windows(void)
{
	int i;

	start(options());
	for (i = 0; i < 100; i++)
		put(T0 + i * 100 * MS, red, i % 2 ? first : second);
	for (i = 0; i < 30; i++)
		put(T0 + 20 * SEC + i * MS, blue, first);
	for (i = 0; i < 7; i++)
		put(T0 + 30 * SEC, NULL, NULL);
	reporter_advance(t.r, T0 + 65 * SEC);
	settle();
	for (i = 0; i < 5; i++)
		put(T0 + 70 * SEC, blue, second);
	finish(T0 + 80 * SEC);
	assert_int_equal(t.written, 2);
}

/* --- requests ------------------------------------------------------------------- */

struct term {
	const char *key, *value;
};

static struct reporter_request_run ran;

static int request(const struct term *terms, size_t n,
		   struct reporter_query **q, struct reporter_request **r)
{
	const char *want;

	ran = (struct reporter_request_run){ .archive = t.archive };
	assert_int_equal(reporter_request_new(r, (WALL0 + 100) * (int64_t)SEC,
					      false),
			 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(reporter_request_set(*r, terms[i].key,
						      terms[i].value, &want),
				 0);
	return reporter_request_run(*r, &ran, q);
}

/* The number of samples, and of those the rows with 'text' as a label. */
static uint64_t samples(const struct term *terms, size_t n, const char *key,
			const char *value, uint64_t *labelled)
{
	struct reporter_request *r;
	struct reporter_query *q;
	uint64_t all = 0, with = 0;
	const char *wrong;
	void *data;
	size_t len;

	assert_int_equal(request(terms, n, &q, &r), 0);
	assert_int_equal(reporter_query_data(q, REPORTER_QUERY_PPROF,
					     REPORTER_GZIP, &data, &len),
			 0);
	wrong = pprof_check(data, len);
	if (wrong)
		fail_msg("%s", wrong);
	free(data);
	for (size_t i = 0; i < pprof_checked()->n_sample; i++) {
		const Perftools__Profiles__Sample *s =
			pprof_checked()->sample[i];
		const char *has = pprof_label(pprof_checked(), s, key);

		all += (uint64_t)s->value[0];
		if (has && (!value || !strcmp(has, value)))
			with += (uint64_t)s->value[0];
	}
	if (labelled)
		*labelled = with;
	reporter_query_free(q);
	reporter_request_free(r);
	return all;
}

#define SAMPLES(...)                                           \
	samples((const struct term[]){ __VA_ARGS__ },          \
		sizeof((const struct term[]){ __VA_ARGS__ }) / \
			sizeof(struct term),                   \
		"trace_id", NULL, NULL)

static void a_trace_is_a_choice_of_samples(void **state)
{
	two_windows();
	assert_int_equal(SAMPLES({ "trace", RED }), 100);
	assert_int_equal(ran.found.read, 1);
	assert_int_equal(SAMPLES({ "trace", BLUE }), 35);
	assert_int_equal(ran.found.read, 2);
	assert_int_equal(SAMPLES({ "trace", RED }, { "trace", BLUE }), 135);
	assert_int_equal(SAMPLES({ "span", "a100000000000001" }), 80);
	assert_int_equal(
		SAMPLES({ "trace", RED }, { "span", "a100000000000001" }), 50);
	assert_int_equal(SAMPLES({ "not-trace", RED }), 42);
	assert_int_equal(SAMPLES({ "trace", "cc"
					    "000000000000000000000000000003" }),
			 0);
	assert_int_equal(SAMPLES({ "trace", RED }, { "comm", "other" }), 0);
	/* Exact to 10 ms, as all times: red has one each 100 ms. */
	assert_int_equal(SAMPLES({ "trace", RED },
				 { "from", "2026-08-21T08:00:02Z" },
				 { "to", "2026-08-21T08:00:04Z" }),
			 20);
}

static void labels_are_there_if_asked_for(void **state)
{
	static const struct term none = { "type", "cpu" };
	static const struct term traces = { "traces", "1" };
	uint64_t with;

	two_windows();
	assert_int_equal(samples(&none, 1, "trace_id", NULL, &with), 142);
	assert_int_equal(with, 0);
	assert_int_equal(samples(&traces, 1, "trace_id", NULL, &with), 142);
	assert_int_equal(with, 135);
	assert_int_equal(samples(&traces, 1, "trace_id", RED, &with), 142);
	assert_int_equal(with, 100);
	assert_int_equal(
		samples(&traces, 1, "span_id", "a200000000000002", &with), 142);
	assert_int_equal(with, 55);
}

/* Of a window without times nothing has a trace, and the answer says so. */
static void a_window_without_times_has_no_traces(void **state)
{
	char cmd[256];

	two_windows();
	snprintf(cmd, sizeof(cmd), "rm %s/*/*T080000Z*.times.zst", t.archive);
	assert_int_equal(system(cmd), 0);
	assert_int_equal(SAMPLES({ "trace", RED }), 0);
	assert_int_equal(ran.found.untraced, 1);
	assert_int_equal(SAMPLES({ "trace", BLUE }), 5);
	assert_int_equal(SAMPLES({ "traces", "1" }), 142);
	assert_int_equal(ran.found.untraced, 1);
	assert_int_equal(ran.found.whole, 0);
}

static void ids_are_32_and_16_digits(void **state)
{
	static const struct term bad[] = {
		{ "trace", "" },
		{ "trace", "aa" },
		{ "trace", "AA000000000000000000000000000001" },
		{ "trace", "aa00000000000000000000000000000*" },
		{ "trace", RED "0" },
		{ "span", RED },
		{ "span", "a10000000000000" },
		{ "span", "a10000000000000g" },
		{ "traces", "2" },
	};
	struct reporter_request *r;
	const char *want;

	assert_int_equal(reporter_request_new(&r, 0, false), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		assert_int_equal(reporter_request_set(r, bad[i].key,
						      bad[i].value, &want),
				 -EINVAL);
	assert_int_equal(reporter_request_set(r, "trace", "!" RED, &want), 0);
	assert_int_equal(reporter_request_set(r, "type", "wall", &want), 0);
	assert_string_equal(reporter_request_wrong(r), "trace");
	reporter_request_free(r);
}

/* --- windows -------------------------------------------------------------------- */

static void a_live_profile_can_choose_a_trace(void **state)
{
	struct reporter_window_opts o = { .begin = T0, .end = T0 + SEC };
	const char *want, *wrong;

	start(options());
	assert_int_equal(
		reporter_query_terms_parse(&o.terms, "trace", RED, &want), 0);
	open_window(o);
	put(T0 + MS, red, first);
	put(T0 + MS, blue, first);
	put(T0 + MS, NULL, NULL);
	reporter_advance(t.r, T0 + SEC);
	settle();
	assert_int_equal(got.err, 0);
	wrong = pprof_check(got.data, got.len);
	if (wrong)
		fail_msg("%s", wrong);
	free(got.data);
	assert_int_equal(pprof_checked()->n_sample, 1);
	assert_int_equal(pprof_samples(pprof_checked()), 1);
	assert_string_equal(pprof_label(pprof_checked(),
					pprof_checked()->sample[0], "trace_id"),
			    RED);
}

static struct store_times *side_file(void)
{
	char path[512], *ending;
	struct strbuf sb = STRBUF_INIT;
	struct store_times *file;
	char piece[4096];
	size_t n;
	FILE *f;

	snprintf(path, sizeof(path), "%s", t.path[0]);
	ending = strstr(path, ".pb.gz");
	assert_non_null(ending);
	strcpy(ending, ".times.zst");
	f = fopen(path, "r");
	assert_non_null(f);
	while ((n = fread(piece, 1, sizeof(piece), f)))
		strbuf_add(&sb, piece, n);
	fclose(f);
	assert_int_equal(store_times_read(&file, sb.data, sb.len), 0);
	strbuf_fini(&sb);
	return file;
}

static void a_side_file_has_each_pair_once(void **state)
{
	struct store_times_record rec;
	struct store_times_cursor c;
	struct store_times *file;
	unsigned int n[4] = { 0 };

	two_windows();
	file = side_file();
	assert_int_equal(store_times_pairs(file), 3);
	assert_memory_equal(store_times_pair(file, 1), red, IDS_TRACE);
	assert_memory_equal(store_times_pair(file, 1) + IDS_TRACE, second,
			    IDS_SPAN);
	assert_int_equal(store_times_pair(file, 1)[IDS_FLAGS_AT], 1);
	store_times_begin(file, &c);
	while (store_times_next(&c, &rec)) {
		assert_true(rec.ids <= 3);
		n[rec.ids]++;
	}
	assert_int_equal(n[0], 7);
	assert_int_equal(n[1], 50);
	assert_int_equal(n[2], 50);
	assert_int_equal(n[3], 30);
	/* All are one row of the profile, which has no ids. */
	assert_int_equal(store_times_info(file)->samples, 1);
	store_times_free(file);
}

static void more_pairs_than_the_limit_are_counted(void **state)
{
	uint8_t span[IDS_SPAN] = { 1 };
	struct store_times *file;
	uint32_t i;

	start(options());
	for (i = 0; i < IDS_MAX + 10; i++) {
		memcpy(span + 1, &i, sizeof(i));
		put(T0 + SEC, red, span);
	}
	finish(T0 + 60 * SEC);
	file = side_file();
	assert_int_equal(store_times_pairs(file), IDS_MAX);
	store_times_free(file);
	checked(t.path[0]);
	assert_true(pprof_has_comment(pprof_checked(),
				      "samples with a trace: 65546"));
	assert_true(pprof_has_comment(pprof_checked(),
				      "samples without their trace, as there "
				      "were too many: 10"));
}

/* --- services --------------------------------------------------------------------- */

/* It is read after the samples; in a window that is closed nothing changes. */
static void a_service_is_that_of_the_end_of_the_window(void **state)
{
	struct pm_image img = image(1, 100, EXE_A),
			other = image(2, 101, EXE_A);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "work");
	static const char *const services[] = { "shop", "cart" };
	const Perftools__Profiles__Profile *p;
	const char *service;

	start(options());
	for (size_t i = 0; i < ARRAY_SIZE(services); i++) {
		add(&img, T0 + i * 70 * SEC, 100, "alpha", &f, 1);
		add(&img, T0 + i * 70 * SEC + SEC, 100, "alpha", &f, 1);
		add(&other, T0 + i * 70 * SEC, 101, "alpha", &f, 1);
		img.info.service = services[i];
		reporter_describe(t.r, &img);
		reporter_advance(t.r, T0 + i * 70 * SEC + 65 * SEC);
		settle();
	}
	finish(T0 + 150 * SEC);
	for (int i = 0; i < t.written; i++) {
		p = checked(t.path[i]);
		assert_int_equal(p->n_sample, 2);
		for (size_t k = 0; k < p->n_sample; k++) {
			service = pprof_label(p, p->sample[k], "service");
			if (pprof_label_num(p, p->sample[k], "pid") == 100)
				assert_string_equal(service, services[i]);
			else
				assert_null(service);
		}
	}
	assert_int_equal(t.written, 2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(a_trace_is_a_choice_of_samples),
		T(labels_are_there_if_asked_for),
		T(a_window_without_times_has_no_traces),
		cmocka_unit_test(ids_are_32_and_16_digits),
		T(a_live_profile_can_choose_a_trace),
		T(a_side_file_has_each_pair_once),
		T(more_pairs_than_the_limit_are_counted),
		T(a_service_is_that_of_the_end_of_the_window),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
