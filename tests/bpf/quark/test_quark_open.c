// SPDX-License-Identifier: Apache-2.0
/* Opening, its errors, waiting; nothing stays open. */
#include <linux/capability.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include <bpf/libbpf.h>

#include "tests/bpf/quark/test_quark.h"

static void expect(struct quark_queue_attr *attr, int err)
{
	struct quark_queue qq;
	int fds = count_fds();

	errno = 0;
	CHECK_INT(quark_queue_open(&qq, attr), -1);
	CHECK_INT(errno, err);
	CHECK(*quark_queue_open_error());
	CHECK(!strchr(quark_queue_open_error(), '\n'));
	CHECK_INT(count_fds(), fds);
}

static void body_bad_attr(void)
{
	struct quark_queue_attr good, a;

	quark_queue_default_attr(&good);
	CHECK_INT(good.flags, QQ_ALL_BACKENDS);
	CHECK_INT(good.max_length, 10000);
	CHECK_INT(good.cache_grace_time, 4000);
	CHECK_INT(good.hold_time, 1000);
	CHECK_INT(good.max_env, 4096);
	CHECK_INT(good.kubefd, -1);
	CHECK(good.ruleset == NULL);
	good.flags |= QQ_NO_AGG;
	a = good, a.flags = QQ_NO_AGG, expect(&a, EINVAL);
	a = good, a.flags |= 1 << 27, expect(&a, EINVAL);
	a = good, a.max_length = 0, expect(&a, EINVAL);
	a = good, a.max_length = -1, expect(&a, EINVAL);
	a = good, a.cache_grace_time = -1, expect(&a, EINVAL);
	a = good, a.reap_grace_time = -1, expect(&a, EINVAL);
	a = good, a.hold_time = -1, expect(&a, EINVAL);
	a = good, a.flags &= ~QQ_NO_AGG, a.hold_time = 9, expect(&a, EINVAL);
	a = good, a.max_env = -1, expect(&a, EINVAL);
	a = good, a.ring_bytes = 1UL << 40, expect(&a, EINVAL);
	a = good, a.flags |= QQ_FILE, expect(&a, ENOTSUP);
	a = good, a.flags |= QQ_SOCK_CONN, expect(&a, ENOTSUP);
	a = good, a.flags |= QQ_DNS, expect(&a, ENOTSUP);
	a = good, a.flags |= QQ_SHM, expect(&a, ENOTSUP);
	a = good, a.flags |= QQ_TTY, expect(&a, ENOTSUP);
	a = good, a.flags |= QQ_PTRACE, expect(&a, ENOTSUP);
	a = good, a.flags |= QQ_MODULE_LOAD, expect(&a, ENOTSUP);
	a = good, a.flags |= QQ_BYPASS, expect(&a, ENOTSUP);
}

static void test_bad_attr(void **state)
{
	in_child(body_bad_attr);
}

static void body_sockets(void)
{
	struct quark_sockaddr addr = { .af = AF_INET, .u.addr4 = 1 };
	struct quark_socket_iter it;
	struct quark_queue qq;

	open_raw(&qq, 0);
	CHECK_INT(addr.addr4, 1);
	errno = 0;
	CHECK(!quark_socket_lookup(&qq, &addr, &addr));
	CHECK_INT(errno, ENOTSUP);
	memset(&it, 0xff, sizeof(it));
	quark_socket_iter_init(&it, &qq);
	CHECK(!quark_socket_iter_next(&it));
	CHECK(!quark_socket_iter_next(&it));
	quark_queue_close(&qq);
}

/* The flag is refused above; its calls are there and find nothing. */
static void test_sockets(void **state)
{
	in_child(body_sockets);
}

static void drop_caps(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct none[2];

	memset(none, 0, sizeof(none));
	CHECK(syscall(SYS_capset, &head, none) == 0);
}

static void body_no_privilege(void)
{
	struct quark_queue_attr a;

	drop_caps();
	quark_queue_default_attr(&a);
	a.flags |= QQ_NO_AGG;
	expect(&a, EPERM);
	CHECK(strstr(quark_queue_open_error(), "CAP_BPF and CAP_PERFMON"));
}

static void test_no_privilege(void **state)
{
	in_child(body_no_privilege);
}

static int printed;

static int count_print(enum libbpf_print_level level, const char *fmt,
		       va_list ap)
{
	printed++;
	return 0;
}

static void body_half_way(void)
{
	struct quark_queue_attr a;
	struct rlimit rl;

	libbpf_set_print(count_print);
	quark_queue_default_attr(&a);
	a.flags = backend();
	CHECK(getrlimit(RLIMIT_NOFILE, &rl) == 0);
	rl.rlim_cur = 12;
	CHECK(setrlimit(RLIMIT_NOFILE, &rl) == 0);
	expect(&a, EMFILE);
	CHECK_INT(printed, 0);
	CHECK(libbpf_set_print(NULL) == count_print);
}

/*
 * test_quark_fault.c has every step. libbpf prints nothing meanwhile, and its user's
 * print function is restored.
 */
static void test_half_way(void **state)
{
	in_child(body_half_way);
}

static void *later(void *arg)
{
	usleep(100000);
	short_life();
	return NULL;
}

/* Whether the descriptor wakes up for a process that begins meanwhile. */
static bool woken(struct quark_queue *qq, int timeout)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), n;
	struct epoll_event ev = { .events = EPOLLIN };
	pthread_t th;

	CHECK(ep >= 0);
	CHECK(epoll_ctl(ep, EPOLL_CTL_ADD, quark_queue_get_epollfd(qq), &ev) ==
	      0);
	pthread_create(&th, NULL, later, NULL);
	/* What is there already does not count. */
	do {
		while (quark_queue_get_event(qq))
			;
	} while (epoll_wait(ep, &ev, 1, 0) > 0);
	n = epoll_wait(ep, &ev, 1, timeout);
	pthread_join(th, NULL);
	close(ep);
	return n > 0;
}

static void body_epoll(void)
{
	struct quark_queue_attr attr;
	struct quark_queue qq;
	int i;

	open_raw(&qq, 0);
	CHECK(woken(&qq, 5000));
	quark_queue_close(&qq);

	/* A timer wakes up for held events, also without a get_event(). */
	quark_queue_default_attr(&attr);
	attr.flags = backend();
	CHECK(quark_queue_open(&qq, &attr) == 0);
	CHECK(woken(&qq, 5000));
	quark_queue_close(&qq);

	attr.flags = backend() | QQ_NO_AGG;
	attr.hold_time = 0;
	attr.no_wakeup = 1;
	CHECK(quark_queue_open(&qq, &attr) == 0);
	/* Another process may slip in before the wait: not every time. */
	for (i = 0; i < 10 && woken(&qq, 300); i++)
		;
	CHECK(i < 10);
	/* Asleep or not, the event is there. */
	while (!quark_queue_get_event(&qq))
		CHECK(quark_queue_block(&qq) == 0);
	quark_queue_close(&qq);
}

/* The caller's own epoll wakes up for an event, unless it asked not to. */
static void test_epoll(void **state)
{
	in_child(body_epoll);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_attr),
		cmocka_unit_test(test_sockets),
		cmocka_unit_test(test_no_privilege),
		cmocka_unit_test(test_half_way),
		cmocka_unit_test(test_epoll),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
