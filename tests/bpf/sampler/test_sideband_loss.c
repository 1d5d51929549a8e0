// SPDX-License-Identifier: Apache-2.0
/*
 * Dropped mapping records: their number and the time span are known when the ring is
 * drained, not only when the kernel writes its next record.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/sideband.h"

#define SMALL 4096

struct seen {
	struct sideband *sb;
	uint32_t tgid;
	uint64_t own; /* mappings of this process */
	uint64_t losses;
	uint64_t from, to; /* of the last one */
	uint64_t first; /* time of the first own mapping after it */
	bool ordered; /* no drop was reported below the watermark */
	uint64_t promised;
};

static void on_map(void *arg, const struct pm_map_event *ev)
{
	struct seen *s = arg;

	if (ev->kind == PM_MAP_LOST) {
		s->ordered &= ev->time >= s->promised;
		s->losses++;
		s->from = ev->time;
		s->to = ev->end;
		s->first = 0;
	} else if (ev->tgid == s->tgid) {
		s->own++;
		s->first = s->first ? s->first : ev->time;
	}
}

static uint64_t lost(const struct seen *s)
{
	struct sideband_stats st;

	sideband_get_stats(s->sb, &st);
	return st.lost;
}

static void poll_it(struct seen *s)
{
	sideband_poll(s->sb);
	s->promised = sideband_watermark(s->sb);
}

/* On one CPU, so that one ring overflows. */
static int setup(void **state)
{
	static struct seen s;
	struct sideband_opts opts = { .ring_bytes = SMALL,
				      .map = on_map,
				      .arg = &s };
	const char *what;
	cpu_set_t set;

	memset(&s, 0, sizeof(s));
	s.tgid = getpid();
	s.ordered = true;
	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
	assert_int_equal(sideband_new(&s.sb, &opts, &what), 0);
	*state = &s;
	return 0;
}

static int teardown(void **state)
{
	struct seen *s = *state;

	sideband_free(s->sb);
	return 0;
}

static void map_some(unsigned int n)
{
	int fd = open("/proc/self/exe", O_RDONLY);

	assert_true(fd >= 0);
	while (n--) {
		static size_t len;
		void *p;

		len = len % (4096 * 4096) +
		      4096; /* a repeat would be skipped */
		p = mmap(NULL, len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		assert_ptr_not_equal(p, MAP_FAILED);
		munmap(p, len);
	}
	close(fd);
}

static void a_loss_is_known_before_the_next_record(void **state)
{
	struct seen *s = *state;
	uint64_t end;

	poll_it(s);
	map_some(500);
	end = clock_boottime_ns();
	poll_it(s);
	assert_true(s->losses > 0);
	/* Other processes' records may have been dropped, too. */
	assert_true(s->own < 500);
	assert_true(lost(s) >= 500 - s->own);
	/* Our last one was dropped. */
	assert_true(s->from <= s->to && s->to >= end);
	assert_true(s->ordered);
}

/* The kernel's own record of it comes later and is not counted again. */
static void a_loss_is_told_once(void **state)
{
	struct seen *s = *state;
	uint64_t before, losses, own;

	map_some(500);
	poll_it(s);
	before = lost(s);
	losses = s->losses;
	own = s->own;
	map_some(1);
	poll_it(s);
	/* On a busy machine other processes may have filled the ring meanwhile. */
	assert_true(s->own > own || lost(s) > before);
	assert_int_equal(s->losses > losses, lost(s) > before);
	assert_true(s->ordered);
}

/* Records delivered before and after the drop are outside of its span. */
static void the_span_ends_with_the_loss(void **state)
{
	struct seen *s = *state;
	uint64_t before, after, losses;

	map_some(500);
	poll_it(s);
	losses = s->losses;
	before = s->to;
	map_some(1);
	after = clock_boottime_ns();
	poll_it(s);
	if (s->losses == losses) {
		assert_int_equal(s->to, before);
		assert_true(s->first > before && s->first <= after);
	}
	assert_true(s->ordered);
}

static void without_loss_none_is_told(void **state)
{
	struct seen *s = *state;
	unsigned int i;

	for (i = 0; i < 50; i++) {
		map_some(1);
		poll_it(s);
	}
	assert_int_equal(s->losses > 0, lost(s) > 0);
	if (!s->losses)
		assert_int_equal(s->own, 50);
	assert_true(s->ordered);
}

/* The ring grows with each drain that finds dropped records, which it reports. */
static void a_ring_grows_while_records_are_lost(void **state)
{
	struct seen *s = *state;
	struct sideband_opts opts = { .ring_bytes = SMALL,
				      .rings_max = 1 << 20,
				      .map = on_map,
				      .arg = s };
	struct sideband_stats st;
	const char *what;
	uint64_t base, before;
	unsigned int i;

	sideband_free(s->sb);
	assert_int_equal(sideband_new(&s->sb, &opts, &what), 0);
	sideband_get_stats(s->sb, &st);
	base = st.rings_bytes;
	for (i = 0; i < 12; i++) {
		map_some(300);
		poll_it(s);
	}
	sideband_get_stats(s->sb, &st);
	assert_true(st.rings_bytes > base);
	assert_true(st.rings_bytes <= 1 << 20);
	assert_true(s->losses > 0);
	/*
	 * Now all of ours fit, and in the next second a process may have as many again
	 * (profiler/source/maplimit.h).
	 */
	usleep(1100000);
	poll_it(s);
	s->own = 0;
	before = st.lost;
	map_some(100);
	poll_it(s);
	assert_true(s->own == 100 || lost(s) > before);
	/* Each is counted once: delivered or dropped, none skipped. */
	assert_true(s->ordered);
}

/* The ring also grows without dropped records. */
static void a_ring_grows_before_it_is_full(void **state)
{
	struct seen *s = *state;
	struct sideband_opts opts = { .ring_bytes = 64 << 10,
				      .rings_max = 1 << 20,
				      .map = on_map,
				      .arg = s };
	struct sideband_stats st;
	char path[4096];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path));
	/* Three quarters of a ring: header, MMAP2, path and time. */
	size_t n = (48 << 10) / (8 + 64 + (len + 8) / 8 * 8 + 8);
	const char *what;
	uint64_t base;

	assert_true(len > 0);
	sideband_free(s->sb);
	assert_int_equal(sideband_new(&s->sb, &opts, &what), 0);
	sideband_get_stats(s->sb, &st);
	base = st.rings_bytes;
	map_some(n / 2);
	poll_it(s);
	sideband_get_stats(s->sb, &st);
	/* Other processes may have mapped something meanwhile. */
	if (s->own == n / 2 && !st.lost && st.records < n)
		assert_int_equal(st.rings_bytes, base);
	map_some(n);
	poll_it(s);
	sideband_get_stats(s->sb, &st);
	assert_true(st.rings_bytes > base);
	if (!st.lost)
		assert_int_equal(s->own, n / 2 + n);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_loss_is_known_before_the_next_record),
		T(a_loss_is_told_once),
		T(the_span_ends_with_the_loss),
		T(without_loss_none_is_told),
		T(a_ring_grows_while_records_are_lost),
		T(a_ring_grows_before_it_is_full),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
