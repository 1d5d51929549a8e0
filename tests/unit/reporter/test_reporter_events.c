// SPDX-License-Identifier: Apache-2.0
/* Samples of several events: their sample types, sums, windows and metrics. */
#include "reporter/internal.h"
#include "reporter/waits.h"
#include "tests/unit/reporter/test_reporter_common.h"

enum {
	CPU,
	OFFCPU,
	FAULTS
};

static const struct reporter_event_type three[] = {
	[CPU] = { "cpu",
		  "the CPU clock",
		  true,
		  { "samples", "count" },
		  { "cpu", "nanoseconds" },
		  false },
	[OFFCPU] = { "offcpu",
		     "time off the CPU",
		     false,
		     { "blocks", "count" },
		     { "offcpu", "nanoseconds" },
		     false },
	[FAULTS] = { "faults",
		     "page faults",
		     false,
		     { "page_faults", "count" },
		     { NULL, NULL },
		     false },
};

static const char *const three_types[][2] = { { "samples", "count" },
					      { "cpu", "nanoseconds" },
					      { "blocks", "count" },
					      { "offcpu", "nanoseconds" },
					      { "page_faults", "count" } };

#define MS CLOCK_NSEC_PER_MSEC
#define PERIOD 10101010 /* of 99 Hz */

static struct reporter_opts three_options(void)
{
	struct reporter_opts o = options();

	o.event_types = three;
	o.nevent_types = ARRAY_SIZE(three);
	return o;
}

static int setup_three(void **state)
{
	pprof_check_expect(three_types, ARRAY_SIZE(three_types));
	return setup(state);
}

static int teardown_three(void **state)
{
	pprof_check_expect(NULL, 0);
	return teardown(state);
}

static int add_event(uint64_t time, uint32_t event, uint64_t value,
		     const char *function)
{
	struct pm_image img = image(1, 100, EXE_A);
	struct reporter_frame f[] = {
		frame(EXE_A, 0x401200 + 0x10 * strlen(function),
		      0x401200 + 0x10 * strlen(function), function),
		frame(EXE_A, 0x401100, 0x401100, "main"),
	};
	struct reporter_trace tr = { .time = time,
				     .event = event,
				     .value = value,
				     .image = &img,
				     .tid = 100,
				     .thread = "alpha",
				     .frames = f,
				     .nframes = ARRAY_SIZE(f) };

	return reporter_add(t.r, &tr);
}

/* work: 3 of the clock, off the CPU for 12 ms; reader: for 1 ms, and 4 faults */
static void add_three(uint64_t time)
{
	int i;

	for (i = 0; i < 3; i++)
		assert_int_equal(add_event(time, CPU, 0, "work"), 0);
	assert_int_equal(add_event(time, OFFCPU, 5 * MS, "work"), 0);
	assert_int_equal(add_event(time, OFFCPU, 7 * MS, "work"), 0);
	assert_int_equal(add_event(time, OFFCPU, 1 * MS, "reader"), 0);
	for (i = 0; i < 4; i++)
		assert_int_equal(add_event(time, FAULTS, 0, "reader"), 0);
}

static void a_profile_has_the_types_of_all_its_events(void **state)
{
	const Perftools__Profiles__Profile *p;

	start(three_options());
	add_three(T0);
	finish(T0 + SEC);
	p = checked(t.path[0]);
	assert_int_equal(t.nsamples[0], 10);
	/* a stack of two events is one sample with the values of both */
	assert_int_equal(p->n_sample, 2);
	assert_int_equal(pprof_sum(p, "samples"), 3);
	assert_int_equal(pprof_sum(p, "cpu"), 3 * PERIOD);
	assert_int_equal(pprof_sum(p, "blocks"), 3);
	assert_int_equal(pprof_sum(p, "offcpu"), 13 * MS);
	assert_int_equal(pprof_sum(p, "page_faults"), 4);
	assert_int_equal(p->period, PERIOD);
	assert_true(pprof_has_comment(p, "samples of the CPU clock: 3"));
	assert_true(pprof_has_comment(p, "samples of time off the CPU: 3"));
	assert_true(pprof_has_comment(p, "samples of page faults: 4"));
}

#define TOP PPROF_GO "-top -sample_index="

static void go_and_protoc_read_each_type(void **state)
{
	const char *path;

	start(three_options());
	add_three(T0);
	finish(T0 + SEC);
	path = t.path[0];
	assert_int_equal(run(TOP "offcpu %s 2>&1", path, "Type: offcpu"), 1);
	assert_int_equal(
		run(TOP "offcpu %s 2>&1", path,
		    "      12ms 92.31% 92.31%       12ms 92.31%  work"),
		1);
	assert_int_equal(
		run(TOP "offcpu %s 2>&1", path,
		    "       1ms  7.69%   100%        1ms  7.69%  reader"),
		1);
	assert_int_equal(
		run(TOP "page_faults %s 2>&1", path,
		    "         4   100%   100%          4   100%  reader"),
		1);
	assert_int_equal(run(TOP "page_faults %s 2>&1", path, "  work"), 0);
	assert_int_equal(
		run(TOP "samples %s 2>&1", path,
		    "         3   100%   100%          3   100%  work"),
		1);
	assert_int_equal(run(PPROF_GO "-top %s 2>&1", path, "Type: cpu"), 1);
	assert_int_equal(run(PPROF_GO "-raw %s 2>&1", path,
			     "samples/count cpu/nanoseconds[dflt] blocks/count "
			     "offcpu/nanoseconds page_faults/count"),
			 1);
	assert_int_equal(run("gzip -dcq %s | protoc --proto_path=reporter "
			     "--decode=perftools.profiles.Profile "
			     "profile.proto | grep -c ^sample_type",
			     path, "5"),
			 1);
	assert_int_equal(run("gzip -dcq %s | protoc --proto_path=reporter "
			     "--decode=perftools.profiles.Profile "
			     "profile.proto",
			     path, "  value: 12000000"),
			 1);
}

static void a_window_has_the_events_it_was_opened_for(void **state)
{
	const Perftools__Profiles__Profile *p;
	const char *wrong;

	start(three_options());
	open_window((struct reporter_window_opts){ .begin = T0,
						   .end = T0 + SEC,
						   .events = 1 << OFFCPU |
							     1 << FAULTS });
	add_three(T0);
	reporter_advance(t.r, T0 + SEC);
	settle();
	pprof_check_expect(three_types + 2, 3);
	wrong = pprof_check(got.data, got.len);
	if (wrong)
		fail_msg("%s", wrong);
	p = pprof_checked();
	assert_int_equal(got.nsamples, 7);
	assert_int_equal(pprof_sum(p, "offcpu"), 13 * MS);
	assert_int_equal(pprof_sum(p, "page_faults"), 4);
	assert_int_equal(p->period, 1);
	assert_false(pprof_has_comment(p, "CPU clock"));
	free(got.data);

	open_window((struct reporter_window_opts){
		.begin = T0 + SEC, .end = T0 + 2 * SEC, .events = 1 << CPU });
	add_three(T0 + SEC);
	reporter_advance(t.r, T0 + 2 * SEC);
	settle();
	pprof_check_expect(NULL, 0);
	wrong = pprof_check(got.data, got.len);
	if (wrong)
		fail_msg("%s", wrong);
	assert_int_equal(pprof_samples(pprof_checked()), 3);
	assert_false(pprof_has_comment(pprof_checked(), "samples of"));
	free(got.data);
}

static void a_value_of_its_own_stands_for_the_period(void **state)
{
	const Perftools__Profiles__Profile *p;

	start(three_options());
	assert_int_equal(add_event(T0, CPU, 500, "work"), 0);
	assert_int_equal(add_event(T0, CPU, 0, "work"), 0);
	finish(T0 + SEC);
	p = checked(t.path[0]);
	assert_int_equal(pprof_sum(p, "cpu"), 500 + PERIOD);
}

static void sums_stay_positive(void **state)
{
	const Perftools__Profiles__Profile *p;

	start(three_options());
	assert_int_equal(add_event(T0, OFFCPU, 5, "work"), 0);
	assert_int_equal(add_event(T0, OFFCPU, UINT64_MAX, "work"), 0);
	assert_int_equal(add_event(T0, OFFCPU, INT64_MAX, "work"), 0);
	finish(T0 + SEC);
	p = checked(t.path[0]);
	assert_int_equal(p->n_sample, 1);
	assert_true(p->sample[0]->value[3] == INT64_MAX);
}

static void unknown_events_are_refused(void **state)
{
	struct reporter_window *w;
	struct reporter_window_opts o = { .begin = T0,
					  .end = T0 + SEC,
					  .events = 1 << 3 };

	start(three_options());
	assert_int_equal(add_event(T0, 3, 0, "work"), -EINVAL);
	assert_int_equal(add_event(T0, UINT32_MAX, 0, "work"), -EINVAL);
	assert_int_equal(reporter_window_open(t.r, &o, &w), -EINVAL);
	finish(T0 + SEC);
	assert_int_equal(t.written, 0);
}

static void event_types_are_checked(void **state)
{
	static const struct reporter_event_type bad[] = {
		{ "a",
		  "a",
		  false,
		  { "page-faults", "count" },
		  { NULL, NULL },
		  false },
		{ "b", "b", false, { "", "count" }, { NULL, NULL }, false },
		{ "c", "c", false, { NULL, NULL }, { NULL, NULL }, false },
		{ "d", "d", false, { "x", "count" }, { "x", "bytes" }, false },
		{ "e", "e", true, { "x", "count" }, { NULL, NULL }, false },
		{ "f", "f", false, { "blocks", "count" }, { NULL, NULL }, false },
		{ "g", NULL, false, { "x", "count" }, { NULL, NULL }, false },
	};
	struct reporter_event_type types[2] = { three[OFFCPU] };
	struct reporter_opts o = options();
	const char *where;
	size_t i;

	o.event_types = types;
	o.nevent_types = 2;
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		types[1] = bad[i];
		if (reporter_new(&t.r, &o, &where) != -EINVAL)
			fail_msg("type %zu was accepted", i);
	}
	o.nevent_types = 0;
	assert_int_equal(reporter_new(&t.r, &o, &where), -EINVAL);
	o.nevent_types = REPORTER_EVENTS_MAX + 1;
	assert_int_equal(reporter_new(&t.r, &o, &where), -EINVAL);
	t.r = NULL;
}

static void samples_are_counted_by_event(void **state)
{
	size_t len;
	char *text;

	start(three_options());
	add_three(T0);
	text = metrics_text(t.r, METRICS_PROMETHEUS, &len);
	assert_non_null(text);
#define HAS(name, n) \
	strstr(text, "\nprofd_reporter_samples_total{event=\"" name "\"} " n)
	assert_non_null(HAS("cpu", "3\n"));
	assert_non_null(HAS("offcpu", "3\n"));
	assert_non_null(HAS("faults", "4\n"));
#undef HAS
	free(text);
	finish(T0 + SEC);
}

/* --- events that are apart: sums ------------------------------------------ */

enum {
	WAIT = 1,
	QUEUE
};

static const struct reporter_event_type sums[] = {
	[CPU] = { "cpu",
		  "the CPU clock",
		  true,
		  { "samples", "count" },
		  { "cpu", "nanoseconds" },
		  false },
	[WAIT] = { "wait",
		   "waits",
		   false,
		   { "waits", "count" },
		   { "wait", "nanoseconds" },
		   true },
	[QUEUE] = { "runqueue",
		    "times in the run queue",
		    false,
		    { "runqueues", "count" },
		    { "runqueue", "nanoseconds" },
		    true },
};

static const char *const sum_types[][2] = { { "waits", "count" },
					    { "wait", "nanoseconds" },
					    { "runqueues", "count" },
					    { "runqueue", "nanoseconds" } };

static struct reporter_opts sum_options(void)
{
	struct reporter_opts o = options();

	o.event_types = sums;
	o.nevent_types = ARRAY_SIZE(sums);
	return o;
}

static int add_sum(uint64_t time, uint32_t event, uint64_t count, uint64_t ns,
		   const char *reason)
{
	struct pm_image img = image(1, 100, EXE_A);
	struct reporter_function fn = { .name = "[wait]",
					.system_name = "[wait]",
					.file = "" };
	struct reporter_line line = { .function = &fn };
	struct reporter_frame f = {
		.place = { .kind = REPORTER_PLACE_MARK, .id = 1 },
		.lines = &line,
		.nlines = 1,
	};
	struct reporter_trace tr = { .time = time,
				     .event = event,
				     .count = count,
				     .value = ns,
				     .image = &img,
				     .reason = reason,
				     .syscall = event == WAIT ? "read" : NULL,
				     .fd = event == WAIT ? "pipe" : NULL,
				     .frames = &f,
				     .nframes = 1 };

	return reporter_add(t.r, &tr);
}

static void sums_are_in_windows_of_their_own(void **state)
{
	const Perftools__Profiles__Profile *p;
	const char *wrong;
	int i;

	start(sum_options());
	assert_int_equal(reporter_apart(t.r), 1 << WAIT | 1 << QUEUE);
	open_window((struct reporter_window_opts){ .begin = T0,
						   .end = T0 + SEC,
						   .events = 1 << WAIT |
							     1 << QUEUE });
	assert_int_equal(add_event(T0, CPU, 0, "work"), 0);
	assert_int_equal(add_sum(T0 - 1, WAIT, 9, 9 * MS, "pipe"), 0);
	assert_int_equal(add_sum(T0, WAIT, 5, 7 * MS, "pipe"), 0);
	/* a part of one that has not ended */
	assert_int_equal(add_sum(T0, WAIT, 0, 2 * MS, "pipe"), 0);
	assert_int_equal(add_sum(T0, WAIT, 1, MS, "fault"), 0);
	assert_int_equal(add_sum(T0, QUEUE, 3, MS, "woken"), 0);
	assert_int_equal(add_sum(T0 + SEC, WAIT, 9, 9 * MS, "pipe"), 0);
	reporter_advance(t.r, T0 + SEC);
	settle();
	pprof_check_expect(sum_types, ARRAY_SIZE(sum_types));
	wrong = pprof_check(got.data, got.len);
	if (wrong)
		fail_msg("%s", wrong);
	p = pprof_checked();
	assert_int_equal(p->n_sample, 3);
	assert_int_equal(pprof_sum(p, "waits"), 6);
	assert_int_equal(pprof_sum(p, "wait"), 10 * MS);
	assert_int_equal(pprof_sum(p, "runqueues"), 3);
	assert_int_equal(pprof_sum(p, "runqueue"), MS);
	for (i = 0; i < 3; i++)
		if (p->sample[i]->value[0] == 5)
			break;
	assert_int_equal(p->sample[i]->value[1], 9 * MS);
	assert_string_equal(pprof_label(p, p->sample[i], "reason"), "pipe");
	assert_string_equal(pprof_label(p, p->sample[i], "syscall"), "read");
	assert_string_equal(pprof_label(p, p->sample[i], "fd"), "pipe");
	free(got.data);
	/* the archive has the sample only */
	finish(T0 + 2 * SEC);
	pprof_check_expect(NULL, 0);
	p = checked(t.path[0]);
	assert_int_equal(pprof_samples(p), 1);
	assert_int_equal(p->n_sample, 1);
}

/* At each begin and end sums are to be cut: a window of them closes after that. */
static void windows_of_sums_have_edges(void **state)
{
	struct reporter_window_opts o = { .begin = T0 + SEC,
					  .end = UINT64_MAX,
					  .events = 1 << WAIT };
	struct reporter_window *w;

	start(sum_options());
	assert_int_equal(reporter_apart_edge(t.r, 0), UINT64_MAX);
	open_window((struct reporter_window_opts){ .begin = T0,
						   .end = T0 + SEC / 2 });
	assert_int_equal(reporter_apart_edge(t.r, 0), UINT64_MAX);
	w = open_window(o);
	assert_int_equal(reporter_apart_edge(t.r, 0), T0 + SEC);
	assert_int_equal(reporter_apart_edge(t.r, T0 + SEC), UINT64_MAX);
	reporter_advance(t.r, T0 + 3 * SEC);
	reporter_window_end(t.r, w, T0 + 2 * SEC);
	assert_int_equal(reporter_apart_edge(t.r, T0 + SEC), T0 + 2 * SEC);
	assert_int_equal(add_sum(T0 + 2 * SEC - 1, WAIT, 1, MS, "pipe"), 0);
	reporter_advance(t.r, T0 + 3 * SEC + 1);
	settle();
	assert_int_equal(got.nsamples, 1);
	free(got.data);
	/* with samples they cannot be in one */
	o.events |= 1 << CPU;
	assert_int_equal(reporter_window_open(t.r, &o, &w), -EINVAL);
	finish(T0 + 4 * SEC);
}

static void read_waits(char path[512])
{
	char *name;

	snprintf(path, 512, "%s", t.path[0]);
	name = strrchr(path, '/') + 1;
	assert_memory_equal(name, "cpu-", 4);
	memmove(name + 5, name + 4, strlen(name + 4) + 1);
	memcpy(name, "wait-", 5);
}

static void the_archive_has_sums_beside(void **state)
{
	const Perftools__Profiles__Profile *p;
	struct reporter_opts o = sum_options();
	char path[512];

	o.waits = true;
	start(o);
	pprof_check_expect(NULL, 0);
	assert_int_equal(reporter_apart_edge(t.r, T0), T0 + 60 * SEC);
	assert_int_equal(add_event(T0, CPU, 0, "work"), 0);
	assert_int_equal(add_sum(T0, WAIT, 5, 7 * MS, "pipe"), 0);
	assert_int_equal(add_sum(T0 + SEC, QUEUE, 3, MS, "woken"), 0);
	assert_int_equal(add_sum(T0 + 60 * SEC, WAIT, 9, 9 * MS, "pipe"), 0);
	reporter_advance(t.r, T0 + 60 * SEC + 1);
	settle();
	assert_int_equal(t.written, 1);
	p = checked(t.path[0]);
	assert_int_equal(p->n_sample_type, 2);
	assert_int_equal(pprof_samples(p), 1);
	assert_int_equal(p->n_sample, 1);
	read_waits(path);
	pprof_check_expect(sum_types, ARRAY_SIZE(sum_types));
	p = checked(path);
	assert_int_equal(p->n_sample, 2);
	assert_int_equal(pprof_sum(p, "wait"), 7 * MS);
	assert_int_equal(pprof_sum(p, "runqueue"), MS);
	assert_int_equal(p->duration_nanos, 60 * SEC);
	/* A window of sums only is written, too. */
	finish(T0 + 61 * SEC);
	pprof_check_expect(NULL, 0);
	assert_int_equal(t.written, 2);
	assert_int_equal(pprof_samples(checked(t.path[1])), 0);
}

/* Images without end cost no more than half of the samples of a profile of sums. */
static void sums_of_too_many_images_have_no_labels(void **state)
{
	const struct window_opts wo = { .types = sums,
					.ntypes = ARRAY_SIZE(sums),
					.events = 1 << WAIT };
	struct pm_image_info info = { .uid = 7 };
	struct reporter_trace tr = { .event = WAIT,
				     .count = 1,
				     .value = MS,
				     .reason = "pipe",
				     .syscall = "read" };
	struct waits *w = waits_new(&wo);
	struct window_sample *s;
	uint64_t all = 0, nobody = 0;
	const uint32_t n = WAITS_ROWS / 2 + 1000;

	assert_non_null(w);
	assert_false(waits_any(w));
	for (uint32_t i = 1; i <= n; i++) {
		info.serial = info.key.tgid = i;
		assert_int_equal(waits_add(w, &tr, &info), 0);
	}
	/* Another user's are with their labels, and what is there already. */
	info.uid = 8;
	info.serial = info.key.tgid = n + 1;
	assert_int_equal(waits_add(w, &tr, &info), 0);
	info.uid = 7;
	info.serial = info.key.tgid = 1;
	assert_int_equal(waits_add(w, &tr, &info), 0);
	assert_int_equal(w->folded, 1000);
	assert_int_equal(w->tables.samples.count, WAITS_ROWS / 2 + 2);
	STAILQ_FOREACH(s, &w->tables.sample_list, entry) {
		all += s->values[1];
		if (!s->image->tgid)
			nobody += s->values[1];
	}
	assert_int_equal(all, (n + 2) * MS);
	assert_int_equal(nobody, 1000 * MS);
	waits_free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) \
	cmocka_unit_test_setup_teardown(name, setup_three, teardown_three)
		T(a_profile_has_the_types_of_all_its_events),
		T(go_and_protoc_read_each_type),
		T(a_window_has_the_events_it_was_opened_for),
		T(a_value_of_its_own_stands_for_the_period),
		T(sums_stay_positive),
		T(unknown_events_are_refused),
		T(event_types_are_checked),
		T(samples_are_counted_by_event),
		T(sums_are_in_windows_of_their_own),
		T(windows_of_sums_have_edges),
		T(the_archive_has_sums_beside),
		T(sums_of_too_many_images_have_no_labels),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
