/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of TCP as events share: connections over loopback. */
#ifndef TESTS_BPF_WATCH_TEST_WATCH_TCP_H
#define TESTS_BPF_WATCH_TEST_WATCH_TCP_H

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/socket.h>

#include "tests/bpf/watch/test_watch.h"

static uint16_t port; /* of the server; only its connections are taken */

/* Whether an end of the event is the server's. */
static inline bool of_port(void *arg, const struct watch_event *e)
{
	char end[16];

	snprintf(end, sizeof(end), ":%u", port);
	return port &&
	       ((strlen(e->fd.src) > strlen(end) &&
		 !strcmp(e->fd.src + strlen(e->fd.src) - strlen(end), end)) ||
		(strlen(e->fd.dst) > strlen(end) &&
		 !strcmp(e->fd.dst + strlen(e->fd.dst) - strlen(end), end)));
}

static inline socklen_t loopback(struct sockaddr_storage *a, int family,
				 uint16_t p)
{
	struct sockaddr_in *v4 = (void *)a;
	struct sockaddr_in6 *v6 = (void *)a;

	memset(a, 0, sizeof(*a));
	a->ss_family = family;
	if (family == AF_INET) {
		v4->sin_port = htons(p);
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		return sizeof(*v4);
	}
	v6->sin6_port = htons(p);
	v6->sin6_addr = in6addr_loopback;
	return sizeof(*v6);
}

static inline int serve(int family)
{
	struct sockaddr_storage a;
	socklen_t len = loopback(&a, family, 0);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_int_equal(bind(fd, (void *)&a, len), 0);
	assert_int_equal(listen(fd, 64), 0);
	assert_int_equal(getsockname(fd, (void *)&a, &len), 0);
	port = ntohs(((struct sockaddr_in *)&a)->sin_port);
	return fd;
}

static inline int dial(int family, uint16_t p)
{
	struct sockaddr_storage a;
	socklen_t len = loopback(&a, family, p);
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	if (!connect(fd, (void *)&a, len))
		return fd;
	close(fd);
	return -errno;
}

static inline uint16_t port_of(int fd)
{
	struct sockaddr_storage a;
	socklen_t len = sizeof(a);

	assert_int_equal(getsockname(fd, (void *)&a, &len), 0);
	return ntohs(((struct sockaddr_in *)&a)->sin_port);
}

static inline void send_all(int fd, size_t n)
{
	static char buf[65536];
	ssize_t sent;

	for (; n; n -= (size_t)sent) {
		sent = send(fd, buf, MIN(n, sizeof(buf)), MSG_NOSIGNAL);
		assert_true(sent > 0);
	}
}

static inline void receive_all(int fd, size_t n)
{
	static char buf[65536];
	ssize_t got_now;

	for (; n; n -= (size_t)got_now) {
		got_now = recv(fd, buf, MIN(n, sizeof(buf)), 0);
		assert_true(got_now > 0);
	}
}

static inline void is_mine(const struct watch_event *e)
{
	assert_int_equal(e->key.tgid, getpid());
	assert_int_equal(e->tid, gettid());
	assert_int_equal(e->uid, getuid());
	assert_true(e->key.start_boottime > 0);
	assert_string_equal(e->fd.protocol, "tcp");
}

static inline void ends_are(const struct watch_event *e, const char *ip,
			    uint16_t src, uint16_t dst)
{
	char want[WATCH_ADDRESS_MAX];

	snprintf(want, sizeof(want), "%s:%u", ip, src);
	assert_string_equal(e->fd.src, want);
	snprintf(want, sizeof(want), "%s:%u", ip, dst);
	assert_string_equal(e->fd.dst, want);
}

/* A network of its own: what happens in it is of this test only. */
static int saved_net;

static inline bool own_net(void)
{
	saved_net = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	return saved_net >= 0 && !unshare(CLONE_NEWNET) &&
	       !system("ip link set lo up");
}

static inline void back(void)
{
	assert_int_equal(setns(saved_net, CLONE_NEWNET), 0);
	close(saved_net);
}

#endif /* TESTS_BPF_WATCH_TEST_WATCH_TCP_H */
