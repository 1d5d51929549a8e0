// SPDX-License-Identifier: Apache-2.0
/*
 * Segments of chosen processes: what programs with known waits did, one by one, and what
 * woke them. The segments of a thread adjoin, and together are its sums to the nanosecond;
 * what is not recorded is counted, and costs others nothing.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>

#include "profiler/waiting/segments.h"
#include "tests/bpf/wait/test_wait.h"

#define ROUNDS 50

static struct waiting_segments *segments;
static struct abi_segment *list;
static size_t n_list, cap_list;
static int gate[2]; /* a child begins when it is chosen */
static struct shared {
	uint32_t tids[2];
	uint32_t turn; /* a futex */
} * shared;

static void on_segment(void *arg, const struct abi_segment *s)
{
	assert_int_equal(VECTOR_ROOM(list, n_list, cap_list), 0);
	list[n_list++] = *s;
}

/* --- children ---------------------------------------------------------------------- */

static void wait_for_gate(void)
{
	char c;

	if (read(gate[0], &c, 1) != 1)
		_exit(1);
}

static void open_gate(size_t n)
{
	while (n--)
		assert_int_equal(write(gate[1], "", 1), 1);
}

static pid_t start(void (*fn)(void))
{
	pid_t pid = fork();

	if (!pid) {
		wait_for_gate();
		fn();
		_exit(0);
	}
	return pid;
}

static bool at_gate(pid_t pid)
{
	return sum_exact(pid,
			 ABI_WAIT_WHAT(SYS_read, ABI_WAIT_PIPE, ABI_FD_PIPE));
}

/* Children at the gate. What they did before the result is in 'got'. */
static uint64_t choose(const pid_t *pids, size_t n)
{
	uint64_t now = 0;

	for (size_t i = 0; i < n; i++)
		assert_int_equal(waiting_segments_choose(segments,
							 (uint32_t)pids[i]),
				 0);
	for (int i = 0; i < WAIT_SECONDS * 100; i++) {
		now = clock_boottime_ns();
		assert_int_equal(waiting_sums_cut(sums, now), 0);
		read_sums();
		if (at_gate(pids[0]) && at_gate(pids[n - 1]))
			return now;
		sleep_ms(10);
	}
	fail_msg("the children do not come to the gate");
	return 0;
}

/* --- checks ------------------------------------------------------------------------- */

static bool is_of(const struct abi_segment *s, pid_t pid, uint64_t from)
{
	return s->key.tgid == (uint32_t)pid && MIN(s->begin, s->end) >= from;
}

static uint32_t reason_of(const struct abi_segment *s)
{
	return ABI_WAIT_WHAT_REASON(s->what);
}

/* Of a thread by time; of two that begin at the same time that which ends first. */
static int by_time(const void *a, const void *b)
{
	const struct abi_segment *x = a, *y = b;
	uint64_t at = MIN(x->begin, x->end), other = MIN(y->begin, y->end);

	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	if (at != other)
		return at < other ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

static void print_segments(pid_t pid)
{
	for (const struct abi_segment *s = list; s < list + n_list; s++)
		if (s->key.tgid == (uint32_t)pid)
			print_message("  %u: %" PRIu64 " %" PRId64
				      " ns, reason %u call %u flags %u, "
				      "waker %u %u/%u\n",
				      s->tid, (uint64_t)s->begin,
				      (int64_t)(s->end - s->begin),
				      reason_of(s), ABI_WAIT_WHAT_NR(s->what),
				      s->flags, s->waker.kind,
				      s->waker.key.tgid, s->waker.tid);
}

/*
 * Nothing is missing between two segments of a thread, and they are the sums of 'before'
 * and now.
 */
static void check_whole(pid_t pid, uint64_t from, const uint64_t *before)
{
	uint64_t ns[ABI_WAIT_REASON_MAX] = { 0 };
	const struct abi_segment *s, *last = NULL;

	waiting_segments_poll(segments);
	qsort(list, n_list, sizeof(*list), by_time);
	for (s = list; s < list + n_list; s++) {
		if (!is_of(s, pid, from))
			continue;
		ns[reason_of(s)] += s->end - s->begin;
		if (last && last->tid == s->tid && s->begin != last->end) {
			print_segments(pid);
			fail_msg("a gap before %" PRIu64, (uint64_t)s->begin);
		}
		last = s;
	}
	assert_non_null(last);
	for (uint32_t i = 0; i < ABI_WAIT_REASON_MAX; i++)
		if (ns[i] != sum_of(pid, i).ns - before[i]) {
			print_sums(pid);
			print_segments(pid);
			fail_msg("reason %u: %" PRIu64 " ns in segments, "
				 "%" PRIu64 " in sums",
				 i, ns[i], sum_of(pid, i).ns - before[i]);
		}
}

/* Runs 'n' chosen children to their end. */
static uint64_t run(const pid_t *pids, size_t n)
{
	uint64_t before[2][ABI_WAIT_REASON_MAX], from = choose(pids, n);
	struct abi_chosen counts;

	for (size_t i = 0; i < n; i++)
		for (uint32_t r = 0; r < ABI_WAIT_REASON_MAX; r++)
			before[i][r] = sum_of(pids[i], r).ns;
	open_gate(n);
	for (size_t i = 0; i < n; i++) {
		reap(pids[i]);
		waiting_segments_counts(segments, (uint32_t)pids[i], &counts);
		assert_true(counts.written > 0);
		assert_int_equal(counts.lost_rate + counts.lost_ring, 0);
		check_whole(pids[i], from, before[i]);
	}
	for (size_t i = 0; i < n; i++)
		waiting_segments_unchoose(segments, (uint32_t)pids[i]);
	return from;
}

/* Waits of this kind that ended, and those of them with this waker; 0: any thread. */
static size_t count(pid_t pid, uint64_t from, uint32_t what,
		    enum abi_waker_kind kind, pid_t waker, size_t *right)
{
	size_t n = 0;

	*right = 0;
	for (const struct abi_segment *s = list; s < list + n_list; s++) {
		if (!is_of(s, pid, from) || s->what != what ||
		    s->flags & ABI_SEGMENT_OPEN)
			continue;
		n++;
		*right += s->waker.kind == kind &&
			  (!waker || s->waker.key.tgid == (uint32_t)waker);
	}
	return n;
}

static void check_waker(pid_t pid, uint64_t from, uint32_t what, size_t least,
			enum abi_waker_kind kind, pid_t waker)
{
	size_t right, n = count(pid, from, what, kind, waker, &right);

	print_message("call %u, reason %u: %zu waits, %zu with the right "
		      "waker\n",
		      ABI_WAIT_WHAT_NR(what), ABI_WAIT_WHAT_REASON(what), n,
		      right);
	if (n < least || right != n) {
		print_segments(pid);
		fail_msg("of %zu waits, at least %zu, %zu have the right waker",
			 n, least, right);
	}
}

/* --- known waits ---------------------------------------------------------------------- */

static void do_sleeps(void)
{
	const struct timespec ts = { 0, MSEC };

	for (int i = 0; i < ROUNDS; i++)
		syscall(SYS_nanosleep, &ts, NULL);
}

static void test_sleep(void **state)
{
	pid_t pid = start(do_sleeps);
	uint64_t from;

	from = run(&pid, 1);
	check_waker(pid, from,
		    ABI_WAIT_WHAT(SYS_nanosleep, ABI_WAIT_SLEEP, ABI_FD_NONE),
		    ROUNDS - 5, ABI_WAKER_IRQ, 0);
}

static void *hand_off(void *arg)
{
	const uint32_t me = arg != NULL;
	uint32_t turn;

	shared->tids[me] = (uint32_t)syscall(SYS_gettid);
	for (int i = 0; i < ROUNDS; i++) {
		while ((turn = __atomic_load_n(&shared->turn,
					       __ATOMIC_SEQ_CST)) != me)
			syscall(SYS_futex, &shared->turn, FUTEX_WAIT, turn,
				NULL, NULL, 0);
		__atomic_store_n(&shared->turn, !me, __ATOMIC_SEQ_CST);
		syscall(SYS_futex, &shared->turn, FUTEX_WAKE, 1, NULL, NULL, 0);
	}
	return NULL;
}

static void do_hand_off(void)
{
	pthread_t t;

	if (pthread_create(&t, NULL, hand_off, shared))
		_exit(1);
	hand_off(NULL);
	/* Not by a futex. */
	while (pthread_tryjoin_np(t, NULL))
		sleep_ms(1);
}

static void test_futex(void **state)
{
	const uint32_t what =
		ABI_WAIT_WHAT(SYS_futex, ABI_WAIT_FUTEX, ABI_FD_NONE);
	const struct abi_segment *s;
	pid_t pid = start(do_hand_off);
	uint64_t from;

	from = run(&pid, 1);
	check_waker(pid, from, what, 10, ABI_WAKER_TASK, pid);
	for (s = list; s < list + n_list; s++) {
		if (!is_of(s, pid, from) || s->what != what ||
		    s->flags & ABI_SEGMENT_OPEN)
			continue;
		assert_int_equal(s->waker.tid,
				 shared->tids[s->tid == shared->tids[0]]);
		assert_int_equal(s->waker.key.start_boottime,
				 s->key.start_boottime);
		assert_int_equal(s->waker.key.exec_id, s->key.exec_id);
	}
}

static int there[2], back[2];

static void pong(int from, int to)
{
	char c;

	for (int i = 0; i < ROUNDS; i++)
		if (read(from, &c, 1) != 1 || write(to, "", 1) != 1)
			_exit(1);
}

static void do_ping(void)
{
	if (write(there[1], "", 1) != 1)
		_exit(1);
	pong(back[0], there[1]);
}

static void do_pong(void)
{
	pong(there[0], back[1]);
}

static void test_pipe(void **state)
{
	const uint32_t what =
		ABI_WAIT_WHAT(SYS_read, ABI_WAIT_PIPE, ABI_FD_PIPE);
	size_t n = 0, by_other = 0, by_gate = 0;
	pid_t pids[2];
	uint64_t from;

	assert_int_equal(pipe(there) | pipe(back), 0);
	pids[0] = start(do_ping);
	pids[1] = start(do_pong);
	from = run(pids, 2);
	/*
	 * The first of each was at the gate. There the test wakes one of them, which
	 * lets the other in.
	 */
	for (int i = 0; i < 2; i++) {
		size_t by_test, right;

		count(pids[i], from, what, ABI_WAKER_TASK, getpid(), &by_test);
		n = count(pids[i], from, what, ABI_WAKER_TASK, pids[!i],
			  &right);
		print_message("%zu waits, %zu ended by the other, %zu by the "
			      "test\n",
			      n, right, by_test);
		assert_int_equal(right + by_test, n);
		by_other += right;
		by_gate += by_test;
	}
	assert_true(by_other >= 10);
	assert_true(by_gate == 1 || by_gate == 2);
}

/* A child's child lets it go on. */
static void do_stop(void)
{
	pid_t self = getpid(), other = fork();
	char path[64], state = 0;
	FILE *f;

	if (other) {
		shared->tids[0] = (uint32_t)other;
		kill(self, SIGSTOP);
		return;
	}
	snprintf(path, sizeof(path), "/proc/%d/stat", self);
	while (state != 'T') {
		f = fopen(path, "r");
		if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			_exit(1);
		fclose(f);
		sched_yield();
	}
	kill(self, SIGCONT);
	_exit(0);
}

static void test_stop(void **state)
{
	pid_t pid = start(do_stop);
	uint64_t from;

	from = run(&pid, 1);
	check_waker(pid, from,
		    ABI_WAIT_WHAT(SYS_kill, ABI_WAIT_STOP, ABI_FD_NONE), 1,
		    ABI_WAKER_TASK, (pid_t)shared->tids[0]);
}

/* --- cuts, an exec ---------------------------------------------------------------------- */

static void do_long(void)
{
	sleep_ms(100);
	execl("/bin/true", "true", NULL);
	_exit(1);
}

/* Cut again and again, and by an exec: no gap, and each image has its own. */
static void test_cuts(void **state)
{
	uint64_t before[ABI_WAIT_REASON_MAX], from;
	pid_t pid = start(do_long);
	size_t open = 0, old = 0, new = 0;
	uint64_t exec_id = 0;

	from = choose(&pid, 1);
	for (uint32_t r = 0; r < ABI_WAIT_REASON_MAX; r++)
		before[r] = sum_of(pid, r).ns;
	open_gate(1);
	for (int i = 0; i < 20; i++) {
		sleep_ms(3);
		assert_int_equal(waiting_sums_cut(sums, clock_boottime_ns()),
				 0);
	}
	reap(pid);
	check_whole(pid, from, before);
	waiting_segments_unchoose(segments, (uint32_t)pid);
	for (const struct abi_segment *s = list; s < list + n_list; s++) {
		if (!is_of(s, pid, from))
			continue;
		if (!exec_id)
			exec_id = s->key.exec_id;
		open += s->flags & ABI_SEGMENT_OPEN;
		old += s->key.exec_id == exec_id;
		new += s->key.exec_id == exec_id + 1;
	}
	print_message("%zu cut, %zu before the exec, %zu after\n", open, old,
		      new);
	assert_true(open > 10 && old > 0 && new > 0);
}

/* --- a storm ------------------------------------------------------------------------------ */

#define STORM_NS (CLOCK_NSEC_PER_SEC * 2)

static void pin_to_one(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		_exit(1);
}

static void *storm(void *arg)
{
	uint64_t end = clock_boottime_ns() + STORM_NS;

	while (clock_boottime_ns() < end)
		for (int i = 0; i < 100; i++)
			sched_yield();
	return NULL;
}

static void do_storm(void)
{
	pthread_t t;

	pin_to_one();
	if (pthread_create(&t, NULL, storm, NULL))
		_exit(1);
	storm(NULL);
	pthread_join(t, NULL);
}

static void do_other(void)
{
	if (setresuid(65534, 65534, 65534))
		_exit(1);
	do_sleeps();
	do_sleeps();
}

/* Each interval that ended was recorded or counted as lost. */
static uint64_t check_counted(pid_t pid, uint64_t before)
{
	uint64_t ended = sum_of(pid, 0xff).count - before;
	struct abi_chosen c;

	waiting_segments_counts(segments, (uint32_t)pid, &c);
	print_message("%d: %" PRIu64 " intervals, %" PRIu64 " recorded, "
		      "%" PRIu64 " beyond the rate, %" PRIu64 " ring full\n",
		      pid, ended, (uint64_t)c.written, (uint64_t)c.lost_rate,
		      (uint64_t)c.lost_ring);
	assert_int_equal(c.written + c.lost_rate + c.lost_ring, ended);
	waiting_segments_unchoose(segments, (uint32_t)pid);
	return c.lost_rate + c.lost_ring;
}

static void test_storm(void **state)
{
	pid_t pids[] = { start(do_storm), start(do_other) };
	uint64_t before[2], cuts[2], end;
	struct abi_chosen c;

	choose(pids, 2);
	for (int i = 0; i < 2; i++) {
		/* Those of cuts are no intervals that ended. */
		waiting_segments_counts(segments, (uint32_t)pids[i], &c);
		cuts[i] = c.written;
		before[i] = sum_of(pids[i], 0xff).count - cuts[i];
	}
	open_gate(2);
	end = clock_boottime_ns() + STORM_NS;
	while (clock_boottime_ns() < end) {
		n_list = 0;
		waiting_segments_poll(segments);
		sleep_ms(10);
	}
	/* Time in no sum, or in two, would be missing here. */
	for (int i = 0; i < 2; i++)
		reap(pids[i]);
	assert_true(check_counted(pids[0], before[0]) > 0);
	check_counted(pids[1], before[1]);
}

/* --- choosing ---------------------------------------------------------------------------- */

static void test_choose(void **state)
{
	struct abi_chosen c;
	uint32_t i;

	/* The same bit as 7's. */
	assert_int_equal(waiting_segments_choose(segments, 7 + ABI_CHOSEN_BITS),
			 0);
	for (i = 1; i < ABI_CHOSEN_MAX; i++)
		assert_int_equal(waiting_segments_choose(segments, i), 0);
	assert_int_equal(waiting_segments_choose(segments, i), -E2BIG);
	waiting_segments_unchoose(segments, 7);
	waiting_segments_counts(segments, 7, &c);
	assert_int_equal(c.written, 0);
	/* Once more it takes no place, and keeps its own until the last one ends. */
	assert_int_equal(waiting_segments_choose(segments, 1), 0);
	assert_int_equal(waiting_segments_chosen(segments), ABI_CHOSEN_MAX - 1);
	assert_int_equal(waiting_segments_choose(segments, i), 0);
	waiting_segments_unchoose(segments, 1);
	assert_int_equal(waiting_segments_choose(segments, i + 1), -E2BIG);
	waiting_segments_unchoose(segments, 1);
	assert_int_equal(waiting_segments_choose(segments, i + 1), 0);
	waiting_segments_unchoose(segments, 7 + ABI_CHOSEN_BITS);
	for (i = 2; i <= ABI_CHOSEN_MAX + 1; i++)
		waiting_segments_unchoose(segments, i);
	assert_int_equal(waiting_segments_chosen(segments), 0);
}

static int set_up(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED || pipe(gate) || open_sums(state))
		return -1;
	segments = waiting_segments_new(sums, on_segment, NULL);
	return segments ? 0 : -1;
}

static int set_down(void **state)
{
	waiting_segments_free(segments);
	free(list);
	return close_sums(state);
}

static int clear(void **state)
{
	n_list = 0;
	memset(shared, 0, sizeof(*shared));
	return 0;
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup(test_##name, clear)
	const struct CMUnitTest tests[] = {
		TEST(sleep), TEST(futex), TEST(pipe),	TEST(stop),
		TEST(cuts),  TEST(storm), TEST(choose),
	};
#undef TEST

	return cmocka_run_group_tests(tests, set_up, set_down);
}
