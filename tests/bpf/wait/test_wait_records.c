// SPDX-License-Identifier: Apache-2.0
/*
 * Long waits, one by one, of processes that nobody has chosen: each of the shortest length
 * and longer is recorded with its whole time and what woke it, none that is shorter; cuts
 * divide none; and one user's storm is bounded.
 */
#include <linux/futex.h>
#include <sys/mman.h>

#include "profiler/waiting/records.h"
#include "tests/bpf/wait/test_wait.h"

#define LEAST (5 * MSEC)
#define ROUNDS 20

static struct waiting_records *records;
static struct abi_segment *list;
static size_t n_list, cap_list;
static struct shared {
	uint32_t word; /* a futex */
	uint64_t asked[2 * ROUNDS], woken[2 * ROUNDS]; /* times */
} * shared;

static int open_least(uint64_t least, unsigned int flags)
{
	const char *what;
	int err =
		waiting_sums_new(&sums, 0, WAITING_SUMS_RECORDS | flags, &what);

	if (!err)
		err = waiting_records_new(&records, sums, least);
	if (err)
		print_message("%s: %s\n", what, strerror(-err));
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return err || shared == MAP_FAILED;
}

static int open_records(void **state)
{
	return open_least(LEAST, 0);
}

static int open_all(void **state)
{
	return open_least(1, WAITING_SUMS_FEW);
}

static int close_records(void **state)
{
	waiting_records_free(records);
	records = NULL;
	munmap(shared, sizeof(*shared));
	free(list);
	list = NULL;
	n_list = cap_list = 0;
	return close_sums(state);
}

static void on_record(void *arg, const struct abi_segment *s)
{
	assert_int_equal(VECTOR_ROOM(list, n_list, cap_list), 0);
	list[n_list++] = *s;
}

/* All that was recorded up to now is in 'list'. */
static void read_records(void)
{
	waiting_records_poll(records);
	waiting_records_give(records, UINT64_MAX, on_record, NULL);
}

static void print_records(pid_t pid)
{
	for (const struct abi_segment *s = list; s < list + n_list; s++)
		if (s->key.tgid == (uint32_t)pid)
			print_message("  %u: %" PRIu64 " %" PRId64
				      " ns, reason %u call %u flags %u, "
				      "waker %u %u/%u\n",
				      s->tid, (uint64_t)s->begin,
				      (int64_t)(s->end - s->begin),
				      ABI_WAIT_WHAT_REASON(s->what),
				      ABI_WAIT_WHAT_NR(s->what), s->flags,
				      s->waker.kind, s->waker.key.tgid,
				      s->waker.tid);
}

/* --- sleeps ------------------------------------------------------------------------ */

/* Every other one is too short, unless the host is so busy that it is not. */
static void do_sleeps(void)
{
	const struct timespec lengths[] = { { 0, MSEC / 10 }, { 0, 8 * MSEC } };

	for (int i = 0; i < 2 * ROUNDS; i++)
		syscall(SYS_nanosleep, &lengths[i % 2], NULL);
}

static pid_t run(void (*fn)(void))
{
	pid_t pid = fork();

	if (!pid) {
		fn();
		_exit(0);
	}
	return pid;
}

static size_t count(pid_t pid, uint32_t what, uint64_t *ns)
{
	size_t n = 0;

	*ns = 0;
	for (const struct abi_segment *s = list; s < list + n_list; s++)
		if (s->key.tgid == (uint32_t)pid && s->what == what &&
		    !(s->flags & ABI_SEGMENT_OPEN)) {
			n++;
			*ns += s->end - s->begin;
		}
	return n;
}

static void test_sleeps(void **state)
{
	const uint32_t what =
		ABI_WAIT_WHAT(SYS_nanosleep, ABI_WAIT_SLEEP, ABI_FD_NONE);
	pid_t pid = run(do_sleeps);
	const struct waiting_sum *all;
	size_t n, unseen = 0;
	uint64_t ns;

	reap(pid);
	read_records();
	n = count(pid, what, &ns);
	all = sum_exact(pid, what);
	assert_non_null(all);
	print_message("%zu of %" PRIu64 " sleeps recorded, %" PRIu64
		      " of %" PRIu64 " ns\n",
		      n, all->count, ns, all->ns);
	if (n < ROUNDS || n > all->count || ns > all->ns) {
		print_records(pid);
		fail_msg("%zu sleeps are recorded", n);
	}
	/* All the others together are shorter than one each may be. */
	assert_true(all->ns - ns <= (all->count - n) * LEAST);
	for (const struct abi_segment *s = list; s < list + n_list; s++) {
		assert_true(s->end - s->begin >= LEAST);
		if (s->key.tgid != (uint32_t)pid || s->what != what)
			continue;
		/* One that interrupts the program at sched_waking is not seen there. */
		unseen += s->waker.kind == ABI_WAKER_NONE;
		assert_true(s->waker.kind == ABI_WAKER_IRQ ||
			    s->waker.kind == ABI_WAKER_NONE);
		assert_true(s->site != ABI_WAIT_SITE_NONE);
		assert_int_equal(s->tid, pid);
	}
	assert_true(unseen * 4 <= n);
}

/* --- who wakes ----------------------------------------------------------------------- */

static uint64_t futex_asked(int i, uint32_t value)
{
	shared->asked[i] = clock_boottime_ns();
	syscall(SYS_futex, &shared->word, FUTEX_WAIT, value, NULL, NULL, 0);
	return shared->woken[i] = clock_boottime_ns();
}

static void do_waits(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		while (__atomic_load_n(&shared->word, __ATOMIC_SEQ_CST) ==
		       (uint32_t)i)
			futex_asked(i, (uint32_t)i);
	}
}

static void do_wakes(void)
{
	for (int i = 0; i < ROUNDS; i++) {
		sleep_ms(10);
		__atomic_add_fetch(&shared->word, 1, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
}

/* Cut meanwhile: each is whole all the same. */
static void test_wakers(void **state)
{
	const uint32_t what =
		ABI_WAIT_WHAT(SYS_futex, ABI_WAIT_FUTEX, ABI_FD_NONE);
	pid_t waits = run(do_waits), wakes = run(do_wakes);
	size_t n = 0, whole = 0;

	for (int i = 0; i < 50; i++) {
		sleep_ms(3);
		assert_int_equal(waiting_sums_cut(sums, clock_boottime_ns()),
				 0);
	}
	reap(waits);
	reap(wakes);
	read_records();
	for (const struct abi_segment *s = list; s < list + n_list; s++) {
		if (s->key.tgid != (uint32_t)waits || s->what != what)
			continue;
		assert_int_equal(s->flags, 0);
		assert_int_equal(s->waker.kind, ABI_WAKER_TASK);
		assert_int_equal(s->waker.key.tgid, wakes);
		assert_int_equal(s->waker.tid, wakes);
		assert_true(s->waker.key.start_boottime != 0);
		n++;
		for (int i = 0; i < ROUNDS; i++)
			whole += s->begin >= shared->asked[i] &&
				 s->end <= shared->woken[i] &&
				 s->end - s->begin >= 9 * MSEC;
	}
	print_message("%zu waits, %zu of them whole\n", n, whole);
	if (n < ROUNDS - 3 || whole < ROUNDS - 3)
		print_records(waits);
	assert_true(n >= ROUNDS - 3 && n <= ROUNDS);
	assert_true(whole >= ROUNDS - 3);
}

/* --- what lasts ------------------------------------------------------------------------ */

static void do_long(void)
{
	sleep_ms(300);
}

/* Only a cut at an edge records it, as open; and later it is there whole. */
static void test_open(void **state)
{
	pid_t pid = run(do_long);
	size_t open = 0, ended = 0;
	uint64_t begin = 0, edge;

	sleep_ms(100);
	assert_int_equal(waiting_sums_cut(sums, clock_boottime_ns()), 0);
	waiting_records_edge(records, true);
	edge = clock_boottime_ns();
	assert_int_equal(waiting_sums_cut(sums, edge), 0);
	waiting_records_edge(records, false);
	assert_int_equal(waiting_sums_cut(sums, clock_boottime_ns()), 0);
	reap(pid);
	read_records();
	for (const struct abi_segment *s = list; s < list + n_list; s++) {
		if (s->key.tgid != (uint32_t)pid)
			continue;
		if (s->flags & ABI_SEGMENT_OPEN) {
			assert_int_equal(s->end, edge);
			assert_int_equal(s->waker.kind, ABI_WAKER_NONE);
			begin = s->begin;
			open++;
		} else {
			assert_int_equal(s->begin, begin);
			assert_true(s->end - s->begin >= 300 * MSEC);
			ended++;
		}
	}
	if (open != 1 || ended != 1)
		print_records(pid);
	assert_int_equal(open, 1);
	assert_int_equal(ended, 1);
	/* So is what waits for ever, and is none of the kernel's threads at rest. */
	for (const struct abi_segment *s = list; s < list + n_list; s++)
		assert_false(s->key.tgid == 2);
}

/* --- storms ------------------------------------------------------------------------------ */

/* Pairs of processes: more than one, so that the user's budget is less than theirs. */
#define PAIRS 3

static int there[2], back[2];
static volatile bool *over;

static void ping(int from, int to)
{
	char c;

	if (setuid(65534))
		_exit(1);
	while (!*over)
		if (write(to, "", 1) != 1 || read(from, &c, 1) != 1)
			_exit(1);
	if (write(to, "", 1) != 1)
		_exit(1);
}

static void do_ping(void)
{
	ping(back[0], there[1]);
}

static void do_pong(void)
{
	ping(there[0], back[1]);
}

static void do_sleeps_as_other(void)
{
	if (setuid(65533))
		_exit(1);
	do_sleeps();
}

/* As many as a second may bring are let through, and the others are counted. */
static void test_storm(void **state)
{
	const uint32_t what =
		ABI_WAIT_WHAT(SYS_nanosleep, ABI_WAIT_SLEEP, ABI_FD_NONE);
	const uint32_t pipes =
		ABI_WAIT_WHAT(SYS_read, ABI_WAIT_PIPE, ABI_FD_PIPE);
	uint64_t begin = clock_boottime_ns(), seconds, ns, ended = 0, n = 0;
	struct abi_wait_counters c;
	pid_t storm[2 * PAIRS], pid;

	over = (volatile bool *)&shared->asked[0];
	for (int i = 0; i < PAIRS; i++) {
		assert_int_equal(pipe(there) | pipe(back), 0);
		storm[2 * i] = run(do_ping);
		storm[2 * i + 1] = run(do_pong);
	}
	do {
		sleep_ms(50);
		read_records();
		waiting_sums_counters(sums, &c);
	} while (!c.records_limited &&
		 clock_boottime_ns() - begin < WAIT_SECONDS * 1000 * MSEC);
	pid = run(do_sleeps_as_other);
	for (int i = 0; i < 10; i++) {
		sleep_ms(50);
		read_records();
	}
	reap(pid);
	*over = true;
	for (size_t i = 0; i < ARRAY_SIZE(storm); i++)
		reap(storm[i]);
	read_records();
	seconds = (clock_boottime_ns() - begin) / (1000 * MSEC) + 2;
	waiting_sums_counters(sums, &c);
	for (size_t i = 0; i < ARRAY_SIZE(storm); i++) {
		n += count(storm[i], pipes, &ns);
		if (sum_exact(storm[i], pipes))
			ended += sum_exact(storm[i], pipes)->count;
	}
	print_message("%" PRIu64 " of %" PRIu64 " waits of the storm, %" PRIu64
		      " limited, %" PRIu64 " without room\n",
		      n, ended, (uint64_t)c.records_limited,
		      (uint64_t)c.records_full);
	assert_true(c.records_limited > 0 && n < ended);
	assert_true(n <= ABI_RECORD_USER / ABI_RECORD_FEW * seconds);
	/* Another user's are all there. */
	assert_int_equal(count(pid, what, &ns), sum_exact(pid, what)->count);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) \
	cmocka_unit_test_setup_teardown(name, open_records, close_records)
		T(test_sleeps),
		T(test_wakers),
		T(test_open),
		cmocka_unit_test_setup_teardown(test_storm, open_all,
						close_records),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
