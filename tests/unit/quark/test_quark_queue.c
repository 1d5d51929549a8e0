// SPDX-License-Identifier: Apache-2.0
/*
 * libquark: the queue with a fake backend: losses and the scans that they cause;
 * calls in a child of fork(2) and on a closed queue fail.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "processmanager/quark/agg.c"
#include "processmanager/quark/apply.c"
#include "processmanager/quark/cache.c"
#include "processmanager/quark/error.c"
#include "processmanager/quark/event.c"
#include "processmanager/quark/file.c"
#include "processmanager/quark/leader.c"
#include "processmanager/quark/lookup.c"
#include "processmanager/quark/names.c"
#include "processmanager/quark/order.c"
#include "processmanager/quark/parent.c"
#include "processmanager/quark/proc/procfs.c"
#include "processmanager/quark/proc/procfs_task.c"
#include "processmanager/quark/proc/reader.c"
#include "processmanager/quark/queue.c"
#include "processmanager/quark/record.c"
#include "processmanager/quark/rules.c"
#include "processmanager/quark/scan.c"

/* What the backend returns. */
static struct {
	ring_fn fn;
	void *arg;
	int epfd, fd[2];
	int closed, scans;
	uint64_t watermark;
	struct quark_loss_report lost;
} fake;

static int fake_open(void **b, const struct quark_backend_conf *conf,
		     ring_fn fn, void *arg)
{
	fake.fn = fn;
	fake.arg = arg;
	fake.epfd = epoll_create1(EPOLL_CLOEXEC);
	*b = &fake;
	return 0;
}

static void fake_close(void *b)
{
	close(fake.epfd);
	fake.closed++;
}

static int fake_consume(void *b)
{
	return 0;
}

static uint64_t fake_watermark(const void *b)
{
	return fake.watermark;
}

static uint64_t fake_slack(const void *b)
{
	return 0;
}

static int fake_epoll_fd(const void *b)
{
	return fake.epfd;
}

static size_t fake_backlog(const void *b)
{
	return 0;
}

static void fake_losses(void *b, struct quark_loss_report *out)
{
	*out = fake.lost;
	memset(&fake.lost, 0, sizeof(fake.lost));
}

static int fake_scan(void *b, ring_fn fn, void *arg)
{
	fake.scans++;
	return 0;
}

const struct quark_backend quark_ebpf = {
	.flag = QQ_EBPF,
	.name = "fake",
	.open = fake_open,
	.close = fake_close,
	.consume = fake_consume,
	.watermark = fake_watermark,
	.slack = fake_slack,
	.epoll_fd = fake_epoll_fd,
	.backlog = fake_backlog,
	.losses = fake_losses,
	.scan = fake_scan,
};
const struct quark_backend quark_kprobe = { .flag = QQ_KPROBE };

static struct quark_queue q;

static int setup(void **state)
{
	struct quark_queue_attr attr;

	memset(&fake, 0, sizeof(fake));
	quark_queue_default_attr(&attr);
	attr.flags = QQ_EBPF | QQ_NO_AGG;
	return quark_queue_open(&q, &attr);
}

static int teardown(void **state)
{
	quark_queue_close(&q);
	return 0;
}

static void rename_at(uint64_t time)
{
	struct abi_quark_rename r = { 0 };

	r.head.kind = ABI_QUARK_RENAME;
	r.head.time = time;
	r.head.key = (struct abi_key){ 1, 1, 0x7ffffffe, 0 };
	r.head.tid = r.head.key.tgid;
	assert_int_equal(fake.fn(fake.arg, &r, sizeof(r)), 0);
}

/* --- losses ------------------------------------------------------------------- */

/*
 * A second loss, the time of which the kernel side has not written yet, does not
 * cancel the scan for the first one.
 */
static void a_pending_scan_is_not_cancelled(void **state)
{
	uint64_t now = clock_boottime_ns();

	fake.watermark = now;
	fake.lost.lost[ABI_QUARK_FORK] = fake.lost.total = 1;
	fake.lost.first = now;
	fake.lost.last = now + 1000;
	assert_int_equal(quark_queue_populate(&q), 0);
	fake.lost.lost[ABI_QUARK_FORK] = fake.lost.total = 1;
	assert_int_equal(quark_queue_populate(&q), 0);
	assert_int_equal(q.priv->gap_from, now);
	assert_int_equal(q.priv->gap_to, now + 1000);
	assert_int_equal(fake.scans, 1); /* when the queue was opened */
	fake.watermark = now + CLOCK_NSEC_PER_SEC;
	while (quark_queue_get_event(&q))
		;
	assert_int_equal(fake.scans, 2);
	assert_int_equal(q.priv->gap_to, 0);
}

/* --- zombies ------------------------------------------------------------------- */

static size_t looked_at(void)
{
	struct quark_proc *p;
	size_t n = 0;

	TAILQ_FOREACH(p, &q.priv->cache.all, link)
		n += p->looks;
	return n;
}

/* Zombies looked up in one call, all of which exist. */
static void look(uint64_t now)
{
	fake.watermark = now;
	assert_null(quark_queue_get_event(&q));
}

/* A call looks up a limited number of zombies, each less and less often. */
static void few_zombies_are_looked_at(void **state)
{
	uint64_t tick = CLOCK_NSEC_PER_SEC / sysconf(_SC_CLK_TCK);
	uint64_t start = quark_procfs_start(getpid()) * tick;
	uint64_t grace = q.priv->cache.zombie_ns, now = 1;
	struct quark_cache *c = &q.priv->cache;
	size_t i, n, calls;

	/* This process with many starts, which are one clock tick in /proc. */
	for (i = 0; i < 1000; i++) {
		struct abi_key k = { start + i, 1, getpid(), 0 };

		quark_cache_exit(c, quark_cache_add(c, &k), 1);
	}
	look(grace);
	assert_int_equal(looked_at(), 0);
	look(now += grace);
	n = looked_at();
	assert_true(n > 0 && n <= 100);
	for (i = 0; i < 100; i++)
		look(now);
	assert_int_equal(looked_at(), 1000);
	/* In 200 grace times each is looked up at most 11 times. */
	for (calls = 0, i = 0; i < 200; i++) {
		now += grace;
		do {
			look(now);
			calls++;
		} while (quark_cache_overdue(c, now));
	}
	assert_true(calls <= 200 + 11 * 1000 / 64);
}

/* --- children of fork(2), closed queues ------------------------------------------ */

/* The number of calls that did not fail with that error. */
static int not_refused(int err)
{
	struct quark_event ev;
	int fds[1], n = 0;

#define REFUSED(call, value) (errno = 0, n += (call) != (value) || errno != err)
	REFUSED(quark_queue_get_event(&q), NULL);
	REFUSED(quark_queue_get_events(&q, &ev, 1), -1);
	REFUSED(quark_queue_populate(&q), -1);
	REFUSED(quark_queue_block(&q), -1);
	REFUSED(quark_queue_get_epollfd(&q), -1);
	REFUSED(quark_queue_get_fds(&q, fds, 1), -1);
	REFUSED(quark_queue_set_agg_matrix(&q, RAW_EXEC, RAW_EXEC, NULL), -1);
	REFUSED(quark_queue_watermark(&q), 0);
#undef REFUSED
	return n;
}

static void a_child_gets_no_records(void **state)
{
	const struct quark_event *ev;
	int status;
	pid_t pid;

	rename_at(10);
	fake.watermark = 20;
	pid = fork();
	if (pid == 0) {
		status = not_refused(ECHILD);
		/* Its copy of the memory may be read. */
		status += quark_process_lookup(&q, 0x7ffffffe) != NULL;
		quark_queue_close(&q);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* The parent's queue still works. */
	ev = quark_queue_get_event(&q);
	assert_non_null(ev);
	assert_int_equal(ev->events, QUARK_EV_SETPROCTITLE);
	assert_null(quark_queue_get_event(&q));
	assert_int_equal(errno, EAGAIN);
}

static void a_closed_queue_is_an_error(void **state)
{
	struct quark_process_iter it;
	struct quark_queue_stats st;
	struct quark_event ev;

	quark_queue_close(&q);
	assert_int_equal(fake.closed, 1);
	assert_int_equal(not_refused(EBADF), 0);
	errno = 0;
	assert_null(quark_process_lookup(&q, 1));
	assert_int_equal(errno, EBADF);
	assert_int_equal(quark_event_lookup(&q, &ev, 1), -1);
	errno = 0;
	assert_null(quark_passwd_lookup(&q, 0));
	assert_int_equal(errno, EBADF);
	assert_null(quark_group_lookup(&q, 0));
	quark_process_iter_init(&it, &q);
	assert_null(quark_process_iter_next(&it));
	memset(&st, 1, sizeof(st));
	quark_queue_get_stats(&q, &st);
	assert_int_equal(st.insertions, 0);
	quark_queue_close(&q); /* again */
	assert_int_equal(fake.closed, 1);
}

/* --- the matrix ------------------------------------------------------------------ */

static void the_matrix_has_all_published_kinds(void **state)
{
	int i;

	for (i = RAW_INVALID; i < RAW_NUM_TYPES; i++)
		assert_int_equal(
			quark_queue_set_agg_matrix(&q, i, RAW_NUM_TYPES - 1 - i,
						   quark_can_aggregate_mult),
			0);
	errno = 0;
	assert_int_equal(quark_queue_set_agg_matrix(&q, RAW_NUM_TYPES, 0, NULL),
			 -1);
	assert_int_equal(errno, EINVAL);
	assert_int_equal(quark_queue_set_agg_matrix(&q, 0, -1, NULL), -1);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(a_pending_scan_is_not_cancelled),
		T(few_zombies_are_looked_at),
		T(a_child_gets_no_records),
		T(a_closed_queue_is_an_error),
		T(the_matrix_has_all_published_kinds),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
