// SPDX-License-Identifier: Apache-2.0
/*
 * perfring: rings in ordinary memory, and the part of a span in which the host may
 * have been awake. (CPUs that go offline: tests/bpf.)
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/perfring.h"

#define S CLOCK_NSEC_PER_SEC

struct wanted {
	struct perfring_look before, after; /* in seconds */
	struct perfring_span span;
	int n;
	struct perfring_span parts[2];
};

static void check(const struct wanted *w)
{
	struct perfring_look before = { w->before.at * S, w->before.slept * S };
	struct perfring_look after = { w->after.at * S, w->after.slept * S };
	struct perfring_span span = { w->span.from * S, w->span.to * S },
			     out[2];
	int i;

	assert_int_equal(perfring_awake(&before, &after, &span, out), w->n);
	for (i = 0; i < w->n; i++) {
		assert_int_equal(out[i].from, w->parts[i].from * S);
		assert_int_equal(out[i].to, w->parts[i].to * S);
	}
}

static void without_a_sleep_all_of_it(void **state)
{
	static const struct wanted w = {
		{ 100, 7 }, { 102, 7 }, { 99, 102 }, 1, { { 99, 102 } },
	};

	check(&w);
}

static void of_a_night_its_ends(void **state)
{
	static const struct wanted w = {
		{ 100, 7 },
		{ 1103, 1007 },
		{ 99, 1104 },
		2,
		{ { 99, 103 }, { 1100, 1104 } },
	};

	check(&w);
}

/* Awake for 3 s, before or after the suspend: possibly the whole span. */
static void of_a_nap_all_of_it(void **state)
{
	static const struct wanted w = {
		{ 100, 0 }, { 105, 2 }, { 100, 105 }, 1, { { 100, 105 } },
	};

	check(&w);
}

static void a_span_that_began_when_it_had_woken_up(void **state)
{
	static const struct wanted w = {
		{ 100, 0 }, { 200, 97 }, { 199, 200 }, 1, { { 199, 200 } },
	};

	check(&w);
}

static void a_span_that_ended_before_it_slept(void **state)
{
	static const struct wanted w = {
		{ 100, 0 }, { 200, 97 }, { 99, 101 }, 1, { { 99, 101 } },
	};

	check(&w);
}

/* Inexact readings: less suspend than before, or more of it than time. */
static void readings_that_cannot_be(void **state)
{
	static const struct wanted less = {
		{ 100, 9 }, { 200, 8 }, { 100, 200 }, 1, { { 100, 200 } },
	};
	static const struct wanted more = {
		{ 100, 0 },
		{ 200, 500 },
		{ 99, 201 },
		2,
		{ { 99, 100 }, { 200, 201 } },
	};

	check(&less);
	check(&more);
}

/* --- rings ---------------------------------------------------------------- */

#define RING 4096

struct record {
	struct perf_event_header h;
	uint64_t value[4];
};

static struct perfring r;
static uint64_t values[256];
static uint32_t n_values;

static int ring_setup(void **state)
{
	size_t page = sysconf(_SC_PAGESIZE);

	memset(&r, 0, sizeof(r));
	r.page = aligned_alloc(page, page + RING);
	memset(r.page, 0, page + RING);
	r.bytes = RING;
	r.scratch = malloc(PERFRING_RECORD_MAX);
	n_values = 0;
	return 0;
}

static int ring_teardown(void **state)
{
	free(r.page);
	free(r.scratch);
	return 0;
}

static void ring_put(const void *rec, size_t len)
{
	char *data = (char *)r.page + sysconf(_SC_PAGESIZE);
	size_t i;

	for (i = 0; i < len; i++)
		data[(r.page->data_head + i) % RING] = ((const char *)rec)[i];
	r.page->data_head += len;
}

static void ring_add(uint64_t value, uint16_t size)
{
	struct record rec = { { .size = size },
			      { value, value, value, value } };

	ring_put(&rec, sizeof(rec));
}

static void ring_take(void *arg, const void *rec, size_t len)
{
	struct record got;

	assert_int_equal(len, sizeof(got));
	memcpy(&got, rec, sizeof(got));
	assert_int_equal(got.value[3], got.value[0]);
	values[n_values++] = got.value[0];
	/* A flood: space is freed before all records are read. */
	if (arg && n_values == 100)
		assert_true(r.page->data_tail > 0);
}

static void records_that_wrap_come_in_one_piece(void **state)
{
	uint64_t at;
	int n;

	for (at = 0; at < RING; at += 8) {
		r.page->data_head = r.page->data_tail = (1ULL << 40) + at;
		n_values = 0;
		ring_add(1, sizeof(struct record));
		ring_add(2, sizeof(struct record));
		n = perfring_drain(&r, ring_take, NULL);
		assert_int_equal(n, 2);
		assert_int_equal(values[0], 1);
		assert_int_equal(values[1], 2);
		assert_int_equal(r.page->data_tail, r.page->data_head);
		assert_int_equal(r.used, 2 * sizeof(struct record));
	}
}

static void a_drain_gives_room_back_meanwhile(void **state)
{
	int i;

	for (i = 0; i < RING / (int)sizeof(struct record); i++)
		ring_add(i, sizeof(struct record));
	assert_int_equal(perfring_drain(&r, ring_take, &r), i);
	assert_int_equal(n_values, i);
}

static void a_length_that_makes_no_sense_ends_the_ring(void **state)
{
	static const uint16_t sizes[] = { 0, 7, 4000, 65535 };
	size_t i, len;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		n_values = 0;
		ring_add(1, sizeof(struct record));
		ring_add(2, sizes[i]);
		ring_add(3, sizeof(struct record));
		assert_int_equal(perfring_drain(&r, ring_take, NULL), -EINVAL);
		assert_int_equal(n_values, 1);
		assert_int_equal(r.page->data_tail, r.page->data_head);
		/* The next drain starts over. */
		ring_add(4, sizeof(struct record));
		assert_int_equal(perfring_drain(&r, ring_take, NULL), 1);
	}
	ring_add(2, 7);
	perfring_begin(&r);
	assert_null(perfring_peek(&r, &len));
	assert_true(r.bad);
}

/* Records written after perfring_begin() are read after the next one. */
static void a_record_is_there_until_it_is_skipped(void **state)
{
	const struct record *rec;
	uint64_t tail;
	size_t len;

	ring_add(1, sizeof(*rec));
	perfring_begin(&r);
	ring_add(2, sizeof(*rec));
	tail = r.page->data_tail;
	rec = perfring_peek(&r, &len);
	assert_ptr_equal(perfring_peek(&r, &len), rec);
	assert_int_equal(rec->value[0], 1);
	perfring_skip(&r);
	assert_null(perfring_peek(&r, &len));
	assert_int_equal(r.page->data_tail, tail);
	perfring_end(&r);
	assert_int_equal(r.page->data_tail, tail + sizeof(*rec));
	perfring_begin(&r);
	rec = perfring_peek(&r, &len);
	assert_int_equal(rec->value[0], 2);
}

static void a_size_is_a_power_of_two_of_the_least(void **state)
{
	assert_int_equal(perfring_size(4096, 0), 4096);
	assert_int_equal(perfring_size(4096, 8191), 4096);
	assert_int_equal(perfring_size(4096, 8192), 8192);
	assert_int_equal(perfring_size(4096, 40000), 32768);
}

#define RING_TEST(fn) \
	cmocka_unit_test_setup_teardown(fn, ring_setup, ring_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		RING_TEST(records_that_wrap_come_in_one_piece),
		RING_TEST(a_drain_gives_room_back_meanwhile),
		RING_TEST(a_length_that_makes_no_sense_ends_the_ring),
		RING_TEST(a_record_is_there_until_it_is_skipped),
		cmocka_unit_test(a_size_is_a_power_of_two_of_the_least),
		cmocka_unit_test(without_a_sleep_all_of_it),
		cmocka_unit_test(of_a_night_its_ends),
		cmocka_unit_test(of_a_nap_all_of_it),
		cmocka_unit_test(a_span_that_began_when_it_had_woken_up),
		cmocka_unit_test(a_span_that_ended_before_it_slept),
		cmocka_unit_test(readings_that_cannot_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
