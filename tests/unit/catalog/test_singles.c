// SPDX-License-Identifier: Apache-2.0
/*
 * Long waits one by one: how many are kept, of whom, and that their side file has each of
 * them; a damaged one is refused, or read to its end.
 */
#include <zstd.h>

#include "reporter/internal.h"
#include "tests/unit/reporter/test_reporter_common.h"

#define MS CLOCK_NSEC_PER_MSEC
#define FUTEX ABI_WAIT_WHAT(202, ABI_WAIT_FUTEX, ABI_FD_NONE)
#define PIPE ABI_WAIT_WHAT(0, ABI_WAIT_PIPE, ABI_FD_PIPE)
#define OTHER ABI_WAIT_WHAT(ABI_WAIT_NO_CALL, ABI_WAIT_OTHER, ABI_FD_NONE)

static struct singles s;

static int begin(void **state)
{
	return singles_init(&s, MS);
}

static int end(void **state)
{
	singles_fini(&s);
	return 0;
}

static struct abi_segment wait_of(uint32_t tid, uint64_t begin, uint64_t length)
{
	struct abi_segment w = {
		.begin = begin,
		.end = begin + length,
		.key = { .tgid = 100, .start_boottime = 7, .exec_id = 1 },
		.tid = tid,
		.what = FUTEX,
		.comm = "waiter",
	};

	return w;
}

static void put(uint32_t uid, const struct abi_segment *w)
{
	assert_int_equal(singles_add(&s, w, SINGLES_NONE, uid, ""), 0);
}

static size_t of_user(uint32_t uid, uint64_t *shortest)
{
	uint16_t user = hash_u64(uid) % SINGLES_USERS;
	size_t n = 0;

	*shortest = UINT64_MAX;
	for (size_t i = 0; i < s.n; i++)
		if (s.items[i].user == user) {
			n++;
			*shortest = MIN(*shortest, s.items[i].length);
		}
	return n;
}

/* --- how many -------------------------------------------------------------------- */

/* One user's storm: his shortest wait rises, and those of others are all there. */
static void the_minimum_rises(void **state)
{
	const size_t storm = 3 * SINGLES_MAX;
	uint64_t shortest, mine;
	struct abi_segment w;
	size_t others = 0, longer = 0;

	for (size_t i = 0; i < storm; i++) {
		w = wait_of(1 + i % 7, i * 10 * MS, (1 + i % 64) * MS);
		put(65534, &w);
		if (i % 1000)
			continue;
		w = wait_of(1000, i * 10 * MS, MS);
		put(0, &w);
		others++;
	}
	assert_int_equal(of_user(0, &mine), others);
	assert_int_equal(mine, MS);
	assert_true(singles_top(&s) > MS && singles_top(&s) <= 64 * MS);
	for (size_t i = 0; i < storm; i++)
		longer += (1 + i % 64) * MS >= singles_top(&s);
	assert_int_equal(of_user(65534, &shortest), longer);
	assert_true(shortest >= singles_top(&s));
	assert_int_equal(s.n + s.dropped, storm + others);
	assert_true(s.n * sizeof(*s.items) <= 8 << 20);
	/* Each is still one of its thread, and none is shorter than his shortest. */
	for (size_t i = 0; i < s.nthreads; i++)
		if (s.threads[i]->last != SINGLES_NONE)
			assert_int_equal(s.items[s.threads[i]->last].thread, i);
	/* Others have room afterwards, too. */
	w = wait_of(1001, 0, MS);
	put(1, &w);
	assert_int_equal(of_user(1, &mine), 1);
}

/* All equally long: no minimum helps, and nothing hangs. */
static void equal_waits_are_bounded(void **state)
{
	struct abi_segment w;
	uint64_t shortest;

	for (size_t i = 0; i < SINGLES_MAX; i++) {
		w = wait_of(1, i * MS, MS);
		put(1, &w);
	}
	assert_true(s.n <= SINGLES_MAX / 2 + 1);
	assert_int_equal(s.n + s.dropped, SINGLES_MAX);
	w = wait_of(2, 0, MS);
	put(2, &w);
	assert_int_equal(of_user(2, &shortest), 1);
}

static void threads_are_bounded(void **state)
{
	struct abi_segment w;
	uint64_t shortest;

	for (uint32_t i = 0; i < SINGLES_THREADS; i++) {
		w = wait_of(i + 1, i, MS);
		put(1, &w);
	}
	assert_true(s.nthreads <= SINGLES_THREADS / 2 + 1);
	assert_int_equal(s.n, s.nthreads);
	assert_int_equal(s.dropped, SINGLES_THREADS - s.n);
	w = wait_of(1 << 20, 0, MS);
	put(2, &w);
	assert_int_equal(of_user(2, &shortest), 1);
}

static void short_ones_are_none(void **state)
{
	struct abi_segment w = wait_of(1, 0, MS - 1);

	put(0, &w);
	assert_int_equal(s.n, 0);
	assert_int_equal(s.nthreads, 0);
	assert_int_equal(s.dropped, 1);
}

/* What was cut at the end of a window, and then ended in it after all. */
static void an_open_wait_is_replaced(void **state)
{
	struct abi_segment w = wait_of(1, 5 * MS, 10 * MS);

	w.flags = ABI_SEGMENT_OPEN;
	put(0, &w);
	assert_int_equal(s.items[0].end, SINGLES_OPEN);
	w.end += 3 * MS;
	w.flags = 0;
	w.waker = (struct abi_waker){ .key.tgid = 9,
				      .tid = 10,
				      .kind = ABI_WAKER_TASK };
	put(0, &w);
	assert_int_equal(s.n, 1);
	assert_int_equal(s.items[0].length, 13 * MS);
	assert_int_equal(s.threads[s.items[0].waker]->tid, 10);
	/* Another one is another one. */
	w = wait_of(1, 20 * MS, 10 * MS);
	put(0, &w);
	assert_int_equal(s.n, 2);
}

/* --- the side file ------------------------------------------------------------------ */

static const struct reporter_event_type types[] = {
	{ "wait",
	  "waits",
	  false,
	  { "waits", "count" },
	  { "wait", "nanoseconds" },
	  true },
};

static void window_with(struct window *w, uint32_t rows)
{
	const struct window_opts opts = { .types = types,
					  .ntypes = ARRAY_SIZE(types),
					  .events = 1,
					  .begin = T0 };
	struct pm_image img = image(1, 100, EXE_A);
	struct reporter_frame f = frame(EXE_A, 0x401234, 0x401200, "work");
	struct reporter_trace tr = { .time = T0,
				     .reason = "futex",
				     .count = 1,
				     .value = MS,
				     .image = &img,
				     .frames = &f,
				     .nframes = 1 };

	assert_int_equal(window_init(w, &opts), 0);
	for (uint32_t i = 0; i < rows; i++) {
		tr.syscall = i % 2 ? "futex" : "read";
		tr.tid = i;
		assert_int_equal(window_add(w, &tr, &img.info), 0);
	}
	assert_int_equal(window_seal(w), 0);
}

static void *side_file(const struct window *w, size_t *len)
{
	const struct store_times_info info = { .wall_ns = 5,
					       .boot_ns = T0,
					       .duration_ns = 60 * SEC,
					       .unrecorded = 77 };
	struct sink *sink;
	void *data;

	assert_int_equal(sink_new(&sink, REPORTER_ZSTD, -1), 0);
	store_times_write_waits(w, &s, &info, sink);
	assert_int_equal(sink_finish(sink), 0);
	data = sink_steal(sink, len);
	sink_free(sink);
	assert_non_null(data);
	return data;
}

#define ROWS 5

/* Of every kind, some from before the window; one for each 'i'. */
static struct abi_segment made(unsigned int i, uint32_t *sample)
{
	static const uint32_t whats[] = { FUTEX, PIPE, OTHER };
	struct abi_segment w =
		wait_of(1 + i % 50, T0 - SEC + i * MS, MS + i % 9 * 12345678);

	w.what = whats[i % ARRAY_SIZE(whats)];
	w.key.tgid = 100 + i % 3;
	w.key.exec_id = i % 2;
	w.waker.kind = i % ABI_WAKER_MAX;
	if (w.waker.kind == ABI_WAKER_TASK ||
	    w.waker.kind == ABI_WAKER_SOFTIRQ) {
		w.waker.key.tgid = 7000 + i % 5;
		w.waker.key.start_boottime = 12345;
		w.waker.tid = 7000 + i % 5;
	}
	if (i % 11 == 10) {
		w.flags = ABI_SEGMENT_OPEN;
		w.waker = (struct abi_waker){ .kind = ABI_WAKER_NONE };
	}
	*sample = i % 4 ? i % ROWS : SINGLES_NONE;
	return w;
}

static void fill(unsigned int n)
{
	struct abi_segment w;
	uint32_t sample;

	for (unsigned int i = 0; i < n; i++) {
		w = made(i, &sample);
		assert_int_equal(singles_add(&s, &w, sample, 0, "by"), 0);
	}
	assert_int_equal(s.n, n);
}

static void check_thread(const struct store_times *file, uint32_t i,
			 const struct abi_key *key, uint32_t tid,
			 const char *name)
{
	const struct store_times_thread *of = store_times_thread(file, i);

	assert_non_null(of);
	assert_int_equal(of->key.tgid, key->tgid);
	assert_int_equal(of->key.start_boottime, key->start_boottime);
	assert_int_equal(of->key.exec_id, key->exec_id);
	assert_int_equal(of->tid, tid);
	assert_int_equal(strncmp(of->name, name, sizeof(of->name)), 0);
}

static void a_side_file_has_every_wait(void **state)
{
	const struct store_times_info *info;
	struct store_times_waits c;
	struct store_times_wait wait;
	struct store_times *file;
	struct window w;
	size_t len;
	void *data;

	window_with(&w, ROWS);
	fill(3000);
	data = side_file(&w, &len);
	assert_int_equal(store_times_read(&file, data, len), 0);
	free(data);
	info = store_times_info(file);
	assert_int_equal(info->records, 0);
	assert_int_equal(info->samples, ROWS);
	assert_int_equal(info->waits, 3000);
	assert_int_equal(info->threads, s.nthreads);
	assert_int_equal(info->wait_min, MS);
	assert_int_equal(info->wait_top, MS);
	assert_int_equal(info->unrecorded, 77);
	assert_true(store_times_fit(file, 5, ROWS));
	store_times_waits_begin(file, &c);
	for (unsigned int i = 0; i < 3000; i++) {
		uint32_t sample;
		const struct abi_segment want = made(i, &sample);

		assert_true(store_times_waits_next(&c, &wait));
		assert_int_equal(wait.begin, want.begin);
		assert_int_equal(wait.end, want.end);
		assert_int_equal(wait.what, want.what);
		assert_int_equal(wait.sample, sample);
		assert_int_equal(wait.open, want.flags == ABI_SEGMENT_OPEN);
		assert_int_equal(wait.kind, want.waker.kind);
		check_thread(file, wait.thread, &want.key, want.tid, "waiter");
		if (want.waker.key.tgid)
			check_thread(file, wait.waker, &want.waker.key,
				     want.waker.tid, "by");
		else
			assert_int_equal(wait.waker, STORE_TIMES_NONE);
	}
	assert_false(store_times_waits_next(&c, &wait));
	assert_null(store_times_thread(file, (uint32_t)s.nthreads));
	store_times_free(file);
	window_fini(&w);
}

static void a_side_file_without_waits_is_one(void **state)
{
	struct store_times_waits c;
	struct store_times_wait wait;
	struct store_times *file;
	struct window w;
	size_t len;
	void *data;

	window_with(&w, 1);
	data = side_file(&w, &len);
	assert_int_equal(store_times_read(&file, data, len), 0);
	store_times_waits_begin(file, &c);
	assert_false(store_times_waits_next(&c, &wait));
	assert_int_equal(store_times_info(file)->wait_min, MS);
	store_times_free(file);
	free(data);
	window_fini(&w);
}

static int read_raw(const uint8_t *raw, size_t len)
{
	size_t room = ZSTD_compressBound(len), n;
	struct store_times_waits c;
	struct store_times_wait wait;
	struct store_times *file;
	uint8_t *packed = malloc(room);
	int err;

	assert_non_null(packed);
	n = ZSTD_compress(packed, room, raw, len, 1);
	err = store_times_read(&file, packed, n);
	free(packed);
	if (err)
		return err;
	store_times_waits_begin(file, &c);
	while (store_times_waits_next(&c, &wait)) {
		assert_non_null(store_times_thread(file, wait.thread));
		assert_true(wait.waker == STORE_TIMES_NONE ||
			    store_times_thread(file, wait.waker));
		assert_true(wait.sample == STORE_TIMES_NONE ||
			    wait.sample < store_times_info(file)->samples);
		assert_true(wait.end >= wait.begin &&
			    wait.kind < ABI_WAKER_MAX);
		assert_in_range(ABI_WAIT_WHAT_REASON(wait.what), ABI_WAIT_SLEEP,
				ABI_WAIT_OTHER);
	}
	store_times_free(file);
	return 0;
}

/* Each byte of the unpacked form wrong, and each cut. */
static void a_damaged_side_file_is_refused(void **state)
{
	uint8_t raw[8192], was;
	struct window w;
	size_t len, n;
	void *data;

	window_with(&w, ROWS);
	fill(30);
	data = side_file(&w, &len);
	n = ZSTD_decompress(raw, sizeof(raw), data, len);
	assert_false(ZSTD_isError(n));
	free(data);
	assert_int_equal(read_raw(raw, n), 0);
	for (size_t i = 0; i < n; i++) {
		was = raw[i];
		for (raw[i] = 0; raw[i] < 255; raw[i] += 17)
			read_raw(raw, n);
		read_raw(raw, n);
		raw[i] = was;
		assert_int_not_equal(read_raw(raw, i), 0);
	}
	/* More waits than their columns have. */
	raw[96]++;
	assert_int_equal(read_raw(raw, n), -EBADMSG);
	raw[96]--;
	raw[104]++;
	assert_int_equal(read_raw(raw, n), -EBADMSG);
	window_fini(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, begin, end)
		T(the_minimum_rises),
		T(equal_waits_are_bounded),
		T(threads_are_bounded),
		T(short_ones_are_none),
		T(an_open_wait_is_replaced),
		T(a_side_file_has_every_wait),
		T(a_side_file_without_waits_is_one),
		T(a_damaged_side_file_is_refused),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
