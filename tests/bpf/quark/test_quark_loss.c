// SPDX-License-Identifier: Apache-2.0
/*
 * All lost records are counted, by kind. The counts are of the whole host, so a
 * second queue with a sufficient ring counts the records between two marks.
 */
#include "tests/bpf/quark/test_quark.h"

#define LIVES 2000
#define KINDS 4
/* Nothing else may happen this close to a mark, or two queues may differ. */
#define QUIET_NS 100000

static const uint64_t kinds[KINDS] = { QUARK_EV_FORK, QUARK_EV_EXEC,
				       QUARK_EV_EXIT, QUARK_EV_REAP };
static const int loss_index[KINDS] = { 0, 1, 2, 5 };

/* From behind the fork of 'first' to before that of 'last'. */
static void count_between(const struct tape *t, pid_t first, pid_t last,
			  uint64_t *count, bool *quiet)
{
	const struct quark_event *a = tape_find(t, first, QUARK_EV_FORK);
	const struct quark_event *b = tape_find(t, last, QUARK_EV_FORK);
	size_t i, k;

	CHECK(a && b);
	*quiet = true;
	memset(count, 0, KINDS * sizeof(*count));
	for (i = 0; i < t->n; i++) {
		uint64_t at = t->ev[i]->boottime;

		if (t->ev[i] != a && t->ev[i] != b &&
		    (llabs((long long)(at - a->boottime)) < QUIET_NS ||
		     llabs((long long)(at - b->boottime)) < QUIET_NS))
			*quiet = false;
		if (at <= a->boottime || at >= b->boottime)
			continue;
		/* One that is inferred was never a record. */
		if (t->ev[i]->events == QUARK_EV_REAP && !t->ev[i]->cpu_exact)
			continue;
		for (k = 0; k < KINDS; k++)
			count[k] += t->ev[i]->events == kinds[k];
	}
}

/* A process whose end is not close to its beginning. */
static pid_t mark(void)
{
	struct timespec ts = { 0, 5000000 };
	pid_t pid;

	nanosleep(&ts, NULL);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		nanosleep(&ts, NULL);
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	return pid;
}

/* Whether its fork comes: what else the host does may fill a small ring. */
static bool comes(struct tape *t, struct quark_queue *qq, pid_t pid)
{
	double end = seconds() + 3;

	for (;;) {
		tape_read(t, qq);
		if (tape_find(t, pid, QUARK_EV_FORK))
			return true;
		if (seconds() > end)
			return false;
		CHECK(quark_queue_block(qq) == 0);
	}
}

/* False: something else ran beside a mark. */
static bool storm(struct quark_queue *small, struct quark_queue *large)
{
	uint64_t all[KINDS], delivered[KINDS], lost = 0;
	struct quark_queue_stats before, after;
	struct tape s = { 0 }, l = { 0 };
	bool quiet, unused;
	pid_t first, last;
	int i, k;

	first = mark();
	if (!comes(&s, small, first)) {
		tape_fini(&s);
		return false;
	}
	quark_queue_get_stats(small, &before);
	/* The reader of the small ring stands still. */
	for (i = 0; i < LIVES; i++) {
		pid_t pid = spawn_true();

		CHECK(waitpid(pid, NULL, 0) == pid);
		if (i % 100 == 0)
			tape_read(&l, large);
	}
	tape_read(&s, small);
	last = mark();
	if (!comes(&s, small, last)) {
		tape_fini(&s);
		tape_fini(&l);
		return false;
	}
	tape_wait(&l, large, last, QUARK_EV_FORK);
	quark_queue_get_stats(small, &after);
	count_between(&l, first, last, all, &quiet);
	count_between(&s, first, last, delivered, &unused);
	for (k = 0; quiet && k < KINDS; k++) {
		uint64_t n = after.losses.kernel[loss_index[k]] -
			     before.losses.kernel[loss_index[k]];

		CHECK(all[k] >= LIVES * 9 / 10);
		CHECK_INT(delivered[k] + n, all[k]);
		lost += n;
	}
	/* It did overflow, and the stream has the times. */
	if (quiet) {
		uint64_t told = 0;
		size_t j;

		CHECK(lost > LIVES);
		CHECK(after.lost - before.lost >= lost);
		for (j = 0; j < s.n; j++) {
			const struct quark_event *ev = s.ev[j];

			if (ev->events != QUARK_EV_GAP)
				continue;
			CHECK(ev->process == NULL);
			CHECK(ev->gap_from <= ev->gap_to);
			CHECK(ev->gap_kinds & QUARK_EV_FORK);
			told += ev->gap_lost;
		}
		CHECK_INT(told, after.lost);
	}
	tape_fini(&s);
	tape_fini(&l);
	return quiet;
}

/* The queue with the loss has all processes of a newly opened queue. */
static bool same_cache(struct quark_queue *lossy, struct tape *t)
{
	const struct quark_process *p, *q;
	struct quark_process_iter it;
	struct quark_queue fresh;
	bool same = true;
	size_t mark;
	int n = 0;

	open_raw(&fresh, 0);
	mark = t->n;
	/* Nobody has read the small ring meanwhile: it may be full again. */
	tape_read(t, lossy);
	tape_wait(t, lossy, short_life(), QUARK_EV_EXIT);
	quark_process_iter_init(&it, &fresh);
	while ((p = quark_process_iter_next(&it))) {
		if (p->flags & QUARK_F_EXIT)
			continue;
		q = quark_process_lookup(lossy, p->pid);
		/* It may have ended, or executed, since. */
		if (tape_count_from(t, mark, p->pid))
			continue;
		same &= q && q->key.start_boottime == p->key.start_boottime &&
			q->key.exec_id == p->key.exec_id;
		n++;
	}
	quark_process_iter_init(&it, lossy);
	while ((p = quark_process_iter_next(&it))) {
		if (p->flags & QUARK_F_EXIT || tape_count_from(t, mark, p->pid))
			continue;
		q = quark_process_lookup(&fresh, p->pid);
		same &= q && q->key.start_boottime == p->key.start_boottime;
	}
	CHECK(n > 2);
	quark_queue_close(&fresh);
	return same;
}

/* Not beyond the end of the test, however it ends. */
static void hold_on(void)
{
	CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
	for (;;)
		pause();
}

static void body_reconcile(void)
{
	const struct quark_process *p;
	struct tape t = { 0 };
	struct quark_queue qq;
	pid_t lives, dies = 0;
	double end;
	int i;

	open_raw(&qq, 64 * 1024);
	for (i = 0; i < 20; i++) {
		dies = fork();
		if (dies == 0)
			hold_on();
		if (comes(&t, &qq, dies))
			break;
		CHECK(kill(dies, SIGKILL) == 0);
		CHECK(waitpid(dies, NULL, 0) == dies);
	}
	CHECK(i < 20);
	/* Without a reader: a fork, an exec and an exit are lost. */
	for (i = 0; i < 300; i++) {
		pid_t pid = spawn_true();

		CHECK(waitpid(pid, NULL, 0) == pid);
	}
	lives = fork();
	if (lives == 0) {
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		execl("/bin/sleep", "sleep", "60", NULL);
		_exit(99);
	}
	CHECK(kill(dies, SIGKILL) == 0);
	CHECK(waitpid(dies, NULL, 0) == dies);
	usleep(50000);
	tape_read(&t, &qq);
	CHECK_INT(tape_count(&t, lives, ~0ULL), 0);
	CHECK_INT(tape_count(&t, dies, QUARK_EV_EXIT), 0);
	end = seconds() + 120;
	do {
		CHECK(seconds() < end);
		CHECK(quark_queue_block(&qq) == 0);
		tape_read(&t, &qq);
		p = quark_process_lookup(&qq, lives);
	} while (!p || !same_cache(&qq, &t));
	CHECK_STR(p->comm, "sleep");
	CHECK_STR(p->cmdline, "sleep");
	CHECK(!quark_process_lookup(&qq, dies) ||
	      quark_process_lookup(&qq, dies)->flags & QUARK_F_EXIT);
	CHECK(kill(lives, SIGKILL) == 0);
	CHECK(waitpid(lives, NULL, 0) == lives);
	tape_fini(&t);
	quark_queue_close(&qq);
}

/* After a loss the cache equals the task iterator's processes. */
static void test_reconcile(void **state)
{
	in_child(body_reconcile);
}

/*
 * It infers no reaps: the kernel may report one late, which would be a record that
 * the test does not see.
 */
static void open_patient(struct quark_queue *qq, size_t ring_bytes)
{
	struct quark_queue_attr attr;

	quark_queue_default_attr(&attr);
	attr.flags = backend() | QQ_NO_AGG;
	attr.hold_time = 0;
	attr.max_env = 0;
	attr.cache_grace_time = 120000;
	attr.ring_bytes = ring_bytes;
	CHECK(quark_queue_open(qq, &attr) == 0);
}

static void body_small_ring(void)
{
	struct quark_queue_stats st;
	struct quark_queue small, large;
	int tries = 0;
	bool done;

	do {
		open_patient(&large, 0);
		open_patient(&small, 256 * 1024);
		done = storm(&small, &large);
		quark_queue_get_stats(&large, &st);
		CHECK_INT(st.lost, 0);
		quark_queue_close(&small);
		quark_queue_close(&large);
	} while (!done && ++tries < 50);
	CHECK(done);
}

static void test_small_ring(void **state)
{
	in_child(body_small_ring);
}

static void body_full_queue(void)
{
	struct quark_queue_attr attr;
	struct quark_queue_stats st;
	struct tape t = { 0 };
	struct quark_queue qq;
	int i;

	quark_queue_default_attr(&attr);
	attr.flags = backend() | QQ_NO_AGG;
	attr.hold_time = 0;
	attr.max_env = 0;
	attr.max_length = 50;
	CHECK(quark_queue_open(&qq, &attr) == 0);
	for (i = 0; i < 500; i++)
		short_life();
	tape_wait(&t, &qq, short_life(), QUARK_EV_EXIT);
	quark_queue_get_stats(&qq, &st);
	CHECK_INT(st.lost, 0);
	CHECK_INT(st.late, 0);
	CHECK(t.n >= 1000);
	tape_fini(&t);
	quark_queue_close(&qq);
}

/* A queue that is full leaves the rest in the ring: order holds, none is lost. */
static void test_full_queue(void **state)
{
	in_child(body_full_queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_small_ring),
		cmocka_unit_test(test_reconcile),
		cmocka_unit_test(test_full_queue),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
