// SPDX-License-Identifier: Apache-2.0
/*
 * How long libquark holds an event, live: the line of quark(7), hold_time below a
 * tenth of max_length, nothing from nine tenths on, straight between.
 *
 * A queue is filled to the brim and then read. Each event that comes out lowers
 * the fill and so lengthens the hold of the next: the queue itself walks down the
 * line. An event may be later than the line when the reader is, never earlier;
 * and the reader is never sent to sleep while one is due. Both are checked by the
 * queue's own clock, the watermark, so that a busy host does not matter.
 */
#include "processmanager/quark/priv.h"
#include "tests/bpf/quark/test_quark.h"

/* Its twentieth is more than most hosts' own events of a second. */
#define MAX_LENGTH 4500
#define HOLD_NS 1000000000ULL

/* The fills to pass, in percent; figures of each are shown. */
static const int fills[] = { 95, 50, 20, 5 };

#define FILLS (sizeof(fills) / sizeof(fills[0]))

struct passed {
	int n;
	double least, most; /* latency, ms */
};

static uint64_t line(size_t waiting)
{
	size_t permille = waiting * 1000 / MAX_LENGTH;

	if (permille < 100)
		return HOLD_NS;
	return permille < 900 ? HOLD_NS * (900 - permille) / 800 : 0;
}

static void note(struct passed *p, size_t waiting, double ms)
{
	size_t percent = waiting * 100 / MAX_LENGTH, i;

	for (i = 0; i < FILLS; i++, p++) {
		if (llabs((long long)percent - fills[i]) > 4)
			continue;
		p->least = !p->n || ms < p->least ? ms : p->least;
		p->most = ms > p->most ? ms : p->most;
		p->n++;
	}
}

/* The next event, or that none is due: both are true. */
static bool next(struct quark_queue *q, struct passed *p)
{
	const struct quark_queue_priv *qq = q->priv;
	uint64_t joined = qq->stats.aggregations;
	const struct quark_event *ev = quark_queue_get_event(q);
	size_t waiting;

	if (!ev) {
		if (qq->held.count)
			CHECK(TAILQ_FIRST(&qq->held.list)->ev.boottime +
				      line(qq->held.count) >
			      qq->watermark);
		return false;
	}
	/* As many as there were when it was taken out, with it and its own. */
	waiting = qq->order.count + qq->held.count + 1 +
		  (qq->stats.aggregations - joined);
	CHECK(ev->boottime + line(waiting) <= qq->watermark);
	note(p, waiting, (clock_boottime_ns() - ev->boottime) / 1e6);
	return true;
}

static bool all_passed(const struct passed *p)
{
	size_t i;

	for (i = 0; i < FILLS; i++)
		if (!p[i].n)
			return false;
	return true;
}

static void shortest_life(void)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(0);
	CHECK(pid > 0 && waitpid(pid, NULL, 0) == pid);
}

static void body_hold(void)
{
	struct passed passed[FILLS] = { 0 };
	struct quark_queue_attr attr;
	double end;
	struct quark_queue qq;
	size_t i;

	quark_queue_default_attr(&attr);
	/* So that every record is an event that waits. */
	attr.flags = backend() | QQ_OWN_EVENTS;
	attr.max_length = MAX_LENGTH;
	attr.max_env = 0;
	CHECK(quark_queue_open(&qq, &attr) == 0);
	/* Taken out of the ring, not out of the queue. */
	for (i = 0; i < MAX_LENGTH / 2; i++) {
		shortest_life();
		CHECK(quark_queue_populate(&qq) >= 0);
	}
	/* Where the host itself fills it anew, not all the way down. */
	end = seconds() + 30;
	while (!all_passed(passed) && seconds() < end) {
		if (!next(&qq, passed))
			CHECK(quark_queue_block(&qq) == 0);
	}
	CHECK(passed[0].n > 0);
	for (i = 0; i < FILLS; i++) {
		fprintf(stderr, "# %d %%: %d events, %.1f to %.1f ms\n",
			fills[i], passed[i].n, passed[i].least, passed[i].most);
		/* The line's own order: the emptier, the later. */
		if (i > 0 && passed[i].n)
			CHECK(passed[i].least >=
			      line((fills[i] + 5) * MAX_LENGTH / 100) / 1e6);
	}
	quark_queue_close(&qq);
}

static void test_hold(void **state)
{
	in_child(body_hold);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_hold),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
