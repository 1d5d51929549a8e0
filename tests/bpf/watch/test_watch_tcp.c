// SPDX-License-Identifier: Apache-2.0
/*
 * TCP as events: each name by a connection over loopback that makes it on purpose, with
 * its owner, its addresses and its values.
 */
#include "tests/bpf/watch/test_watch_tcp.h"

#define BYTES 100000

static void a_connection(int family, const char *ip)
{
	int server, client, conn;
	struct watch_event *e;
	uint16_t mine;
	uint64_t before = clock_boottime_ns();

	start("tcp_*", of_port);
	server = serve(family);
	client = dial(family, port);
	assert_true(client >= 0);
	mine = port_of(client);
	conn = accept(server, NULL, NULL);
	assert_true(conn >= 0);
	send_all(client, BYTES);
	receive_all(conn, BYTES);
	send_all(conn, 7);
	receive_all(client, 7);
	close(client);
	close(conn);

	e = wait_nth("tcp_connect", 0);
	is_mine(e);
	ends_are(e, ip, mine, port);
	assert_string_equal(e->fd.role, "client");
	assert_int_equal(number(e, "retval"), 0);
	assert_true(e->timed && !e->failed);
	assert_true(e->latency_ns > 0 &&
		    e->latency_ns < clock_boottime_ns() - before);
	assert_true(e->time > before && e->time < clock_boottime_ns());
	e = wait_nth("tcp_accept", 0);
	is_mine(e);
	ends_are(e, ip, port, mine);
	assert_string_equal(e->fd.role, "server");
	e = wait_nth("tcp_close", 1);
	for (size_t i = 0; i < 2; i++) {
		e = nth("tcp_close", i);
		is_mine(e);
		if (!strcmp(e->fd.role, "client")) {
			ends_are(e, ip, mine, port);
			/* The SYN or FIN may count as one more. */
			assert_in_range(number(e, "bytes_acked"), BYTES,
					BYTES + 2);
			assert_in_range(number(e, "bytes_received"), 7, 8);
		} else {
			assert_string_equal(e->fd.role, "server");
			ends_are(e, ip, port, mine);
			assert_in_range(number(e, "bytes_acked"), 7, 9);
			assert_in_range(number(e, "bytes_received"), BYTES,
					BYTES + 1);
		}
		assert_true(number(e, "segs_in") > 0);
		assert_true(number(e, "segs_out") > 0);
	}
	e = wait_nth("tcp_rcv_established", 0);
	is_mine(e);
	assert_true(number(e, "rtt") > 0);
	assert_null(nth("tcp_send_reset", 0));
	close(server);
	stop();
}

static void over_ipv4(void **state)
{
	a_connection(AF_INET, "127.0.0.1");
}

static void over_ipv6(void **state)
{
	a_connection(AF_INET6, "[::1]");
}

static void states_follow_each_other(void **state)
{
	static const char *const want[] = { "SYN_SENT", "ESTABLISHED",
					    "FIN_WAIT1", "FIN_WAIT2",
					    "TIME_WAIT" };
	int server, client, conn;
	const char *last = "CLOSE";
	size_t n = 0, i;

	start("kprobe-tcp_set_state", of_port);
	server = serve(AF_INET);
	client = dial(AF_INET, port);
	conn = accept(server, NULL, NULL);
	shutdown(client, SHUT_WR);
	assert_int_equal(read(conn, &(char){ 0 }, 1), 0);
	close(conn);
	close(client);
	/* Of the client. Its last state, TIME_WAIT or CLOSE, is of another kind. */
	for (i = 0; n < 4; i++) {
		struct watch_event *e = wait_nth("tcp_set_state", i);

		if (strcmp(e->fd.role, "client") != 0)
			continue;
		assert_string_equal(text(e, "old_state"), last);
		last = text(e, "new_state");
		assert_string_equal(last, want[n++]);
		is_mine(e);
	}
	close(server);
	stop();
}

static void refused_and_reset(void **state)
{
	struct linger now = { .l_onoff = 1 };
	int server, client, conn;
	struct watch_event *e;

	start("tcp_*", of_port);
	server = serve(AF_INET);
	close(server); /* nobody listens there any more */
	assert_int_equal(dial(AF_INET, port), -ECONNREFUSED);
	e = wait_nth("tcp_connect", 0);
	is_mine(e);
	assert_true(e->failed && e->timed);
	assert_int_equal(number(e, "retval"), -ECONNREFUSED);
	/* The reset is of no socket: it has the ends of the packet it answers. */
	if (!lacks("tcp_send_reset")) {
		e = wait_nth("tcp_send_reset", 0);
		assert_int_equal(e->key.tgid, 0);
		assert_true(of_port(NULL, e));
	}
	is_mine(wait_nth("tcp_receive_reset", 0));
	/* The segment that nobody waited for is dropped; that has no owner either. */
	e = wait_nth("tcp_drop", 0);
	assert_string_equal(text(e, "reason"), "NO_SOCKET");
	assert_int_equal(e->key.tgid, 0);
	stop();

	start("tcp_*_reset", of_port);
	server = serve(AF_INET);
	client = dial(AF_INET, port);
	conn = accept(server, NULL, NULL);
	send_all(client, 1);
	setsockopt(conn, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(conn);
	e = wait_nth("tcp_receive_reset", 0);
	is_mine(e);
	assert_string_equal(e->fd.role, "client");
	close(client);
	close(server);
	stop();
}

/* --- owners ------------------------------------------------------------------- */

static int closer; /* a child waits for its end */

static pid_t child(int fd, void (*run)(int fd))
{
	int pipefd[2];
	pid_t pid;

	assert_int_equal(pipe2(pipefd, 0), 0);
	pid = fork();
	if (!pid) {
		close(pipefd[1]);
		run(fd);
		while (read(pipefd[0], &(char){ 0 }, 1) > 0)
			;
		_exit(0);
	}
	close(pipefd[0]);
	closer = pipefd[1];
	return pid;
}

static void sends(int fd)
{
	if (send(fd, "x", 1, MSG_NOSIGNAL) != 1)
		_exit(1);
}

static void receives(int fd)
{
	if (recv(fd, &(char){ 0 }, 1, 0) != 1)
		_exit(1);
}

/* Who used a socket last is its owner, who made it is named beside. */
static void passes_socket(void (*use)(int fd))
{
	int server, client, conn;
	struct watch_event *e;
	pid_t pid;

	start("tcp_close", of_port);
	server = serve(AF_INET);
	client = dial(AF_INET, port);
	conn = accept(server, NULL, NULL);
	send_all(conn, 1);
	pid = child(client, use);
	if (use == sends)
		receive_all(conn, 1);
	close(client);
	close(closer); /* the child ends, and with it the socket */
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(conn);
	for (size_t i = 0;; i++) {
		e = wait_nth("tcp_close", i);
		if (!strcmp(e->fd.role, "client"))
			break;
	}
	assert_int_equal(e->key.tgid, pid);
	assert_int_equal(e->created_by.tgid, getpid());
	close(server);
	stop();
}

static void a_passed_socket(void **state)
{
	passes_socket(receives);
	if (!lacks("tcp_close")) /* before 6.3 */
		passes_socket(sends);
}

static void accepts(int fd)
{
	int conn = accept(fd, NULL, NULL);

	receives(conn);
	dup2(conn, fd); /* open until the end */
}

/* A connection is the listener's until the one that accepted it uses it. */
static void a_worker_accepts(void **state)
{
	struct watch_event *e;
	int server, client;
	pid_t pid;

	start("tcp_*", of_port);
	server = serve(AF_INET);
	client = dial(AF_INET, port);
	e = wait_nth("tcp_accept", 0);
	is_mine(e);
	assert_int_equal(e->created_by.tgid, 0);
	send_all(client, 1);
	pid = child(server, accepts);
	close(server);
	close(closer);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(client);
	for (size_t i = 0;; i++) {
		e = wait_nth("tcp_close", i);
		if (!strcmp(e->fd.role, "server"))
			break;
	}
	assert_int_equal(e->key.tgid, pid);
	assert_int_equal(e->created_by.tgid, getpid());
	stop();
}

/* Each connection is of another process. */
static void many_owners(void **state)
{
	enum {
		N = 300
	};
	static struct {
		uint16_t port;
		pid_t pid;
	} clients[N];
	int server, conn, wrong = 0, seen = 0, fd[2];
	pid_t pid;

	start("tcp_connect", of_port);
	server = serve(AF_INET);
	for (int i = 0; i < N; i++) {
		assert_int_equal(pipe(fd), 0);
		pid = fork();
		if (!pid) {
			int c = dial(AF_INET, port);
			uint16_t p = c < 0 ? 0 : port_of(c);

			_exit(write(fd[1], &p, sizeof(p)) != sizeof(p));
		}
		conn = accept(server, NULL, NULL);
		close(fd[1]);
		assert_int_equal(read(fd[0], &clients[i].port, 2), 2);
		close(fd[0]);
		clients[i].pid = pid;
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		close(conn);
	}
	for (int i = 0; i < N; i++) {
		struct watch_event *e = wait_nth("tcp_connect", (size_t)i);

		for (int k = 0; k < N; k++) {
			char src[WATCH_ADDRESS_MAX];

			if ((pid_t)e->key.tgid != clients[k].pid)
				continue;
			snprintf(src, sizeof(src), "127.0.0.1:%u",
				 clients[k].port);
			seen++;
			wrong += strcmp(src, e->fd.src) != 0;
		}
	}
	assert_int_equal(seen, N);
	assert_int_equal(wrong, 0);
	close(server);
	stop();
}

/* Sockets that were there before the subscription. */
static void an_old_socket(void **state)
{
	int server = serve(AF_INET), client = dial(AF_INET, port);
	int conn = accept(server, NULL, NULL);
	struct watch_event *e;

	start("tcp_close", of_port);
	close(client);
	close(conn);
	e = wait_nth("tcp_close", 1);
	is_mine(e);
	is_mine(nth("tcp_close", 0));
	assert_int_equal(e->created_by.tgid, 0);
	close(server);
	stop();
}

/* It was passed on while nobody watched, but other events were. */
static void passed_in_between(void **state)
{
	static const char *const name[] = { "process_exit" };
	const struct watch_want other = { .names = name, .n_names = 1 };
	int server, client, conn;
	struct watch_event *e;
	struct watch_sub *s;
	pid_t pid;

	start("tcp_close", of_port);
	s = subscribe(&other);
	server = serve(AF_INET);
	client = dial(AF_INET, port);
	conn = accept(server, NULL, NULL);
	send_all(client, 1);
	stop();
	pid = child(client, sends);
	receive_all(conn, 2);
	close(client);
	start("tcp_close", of_port);
	close(closer);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(conn);
	for (size_t i = 0;; i++) {
		e = wait_nth("tcp_close", i);
		if (!strcmp(e->fd.role, "client"))
			break;
	}
	assert_int_equal(e->key.tgid, pid);
	close(server);
	watch_unsubscribe(s);
	stop();
}

/* --- losses of the network ------------------------------------------------------ */

/* A listener whose queue is full lets those who still connect wait. */
static void sent_again(void **state)
{
	struct sockaddr_storage a;
	struct watch_event *e;
	int server, fds[8], n = 0;
	socklen_t len;

	assert_true(own_net());
	start("tcp_*", of_port);
	server = socket(AF_INET, SOCK_STREAM, 0);
	len = loopback(&a, AF_INET, 0);
	assert_int_equal(bind(server, (void *)&a, len), 0);
	assert_int_equal(listen(server, 0), 0);
	port = port_of(server);
	loopback(&a, AF_INET, port);
	for (; n < 8; n++) {
		fds[n] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fds[n], (void *)&a, len);
	}
	e = wait_nth("tcp_retransmit_skb", 0);
	is_mine(e);
	assert_int_equal(number(e, "segs"), 1);
	assert_string_equal(text(e, "state"), "SYN_SENT");
	/* Given up by who connects: there is no error to tell. */
	close(fds[7]);
	for (size_t i = 0;; i++) {
		e = wait_nth("tcp_connect", i);
		if (e->failed)
			break;
	}
	assert_null(attribute(e, "retval"));
	while (n)
		close(fds[--n]);
	close(server);
	stop();
	back();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_ipv4),
		cmocka_unit_test(over_ipv6),
		cmocka_unit_test(states_follow_each_other),
		cmocka_unit_test(refused_and_reset),
		cmocka_unit_test(a_passed_socket),
		cmocka_unit_test(a_worker_accepts),
		cmocka_unit_test(many_owners),
		cmocka_unit_test(an_old_socket),
		cmocka_unit_test(passed_in_between),
		cmocka_unit_test(sent_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
