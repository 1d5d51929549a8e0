// SPDX-License-Identifier: Apache-2.0
/*
 * TCP as events where it is hard: packets that are none of TCP's, packets that leave,
 * sockets that are only a remainder, connections that nobody answers, and what is of no
 * process.
 */
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include "tests/bpf/watch/test_watch_tcp.h"

/* A port of loopback on which nobody listens. */
static void unused_port(void)
{
	close(serve(AF_INET));
}

/* --- packets ------------------------------------------------------------------ */

/* A datagram between processes that looks like a packet of TCP, and is dropped. */
static void drop_forgery(void)
{
	uint8_t packet[64] = { [0] = 0x45, [9] = IPPROTO_TCP };
	int fds[2];

	packet[22] = (uint8_t)(port >> 8);
	packet[23] = (uint8_t)port;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, fds), 0);
	assert_int_equal(send(fds[0], packet, sizeof(packet), 0),
			 sizeof(packet));
	close(fds[0]);
	close(fds[1]);
}

static void a_forged_packet(void **state)
{
	struct watch_event *e;

	start("tcp_drop", of_port);
	unused_port();
	drop_forgery();
	assert_int_equal(dial(AF_INET, port), -ECONNREFUSED);
	e = wait_nth("tcp_drop", 0);
	assert_string_equal(text(e, "reason"), "NO_SOCKET");
	assert_true(strncmp(e->fd.src, "127.0.0.1:", 10) == 0);
	assert_int_equal(n_got, 1);
	stop();
}

/* A connection that closed, and then gets data: what resets it is its remainder. */
static void a_reset_after_the_close(void **state)
{
	int server, client, conn;
	struct watch_event *e;
	uint16_t mine;

	start("tcp_*", of_port);
	server = serve(AF_INET);
	client = dial(AF_INET, port);
	mine = port_of(client);
	conn = accept(server, NULL, NULL);
	close(client);
	wait_nth("tcp_close", 0);
	send_all(conn, 1);
	is_mine(wait_nth("tcp_receive_reset", 0));
	if (!lacks("tcp_send_reset")) {
		e = wait_nth("tcp_send_reset", 0);
		ends_are(e, "127.0.0.1", mine, port);
	}
	close(conn);
	close(server);
	stop();
}

/* Who resets a connection on purpose is named, and both ends have their totals. */
static void a_reset_by_close(void **state)
{
	struct linger now = { .l_onoff = 1 };
	int server, client, conn;
	struct watch_event *e;
	uint16_t mine;

	start("tcp_*", of_port);
	server = serve(AF_INET);
	client = dial(AF_INET, port);
	mine = port_of(client);
	conn = accept(server, NULL, NULL);
	send_all(client, 1000);
	receive_all(conn, 1000);
	setsockopt(client, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
	close(client);
	e = wait_nth("tcp_send_reset", 0);
	is_mine(e);
	ends_are(e, "127.0.0.1", mine, port);
	assert_string_equal(e->fd.role, "client");
	e = wait_nth("tcp_receive_reset", 0);
	is_mine(e);
	ends_are(e, "127.0.0.1", port, mine);
	assert_string_equal(e->fd.role, "server");
	close(conn);
	wait_nth("tcp_close", 1);
	e = nth("tcp_close", 0);
	is_mine(e);
	ends_are(e, "127.0.0.1", mine, port);
	assert_in_range(number(e, "bytes_acked"), 1000, 1002);
	assert_false(e->failed);
	e = nth("tcp_close", 1);
	is_mine(e);
	ends_are(e, "127.0.0.1", port, mine);
	assert_in_range(number(e, "bytes_received"), 1000, 1002);
	assert_int_equal(number(e, "error"), ECONNRESET);
	assert_true(e->failed);
	close(server);
	stop();
}

/* The listener is closed before it accepts. */
static void never_accepted(void **state)
{
	struct watch_event *e;
	int server, client;
	uint16_t mine;

	start("tcp_*", of_port);
	server = serve(AF_INET);
	client = dial(AF_INET, port);
	mine = port_of(client);
	send_all(client, 10);
	wait_nth("tcp_accept", 0);
	close(server);
	close(client);
	wait_nth("tcp_close", 1);
	e = nth("tcp_close", 0);
	is_mine(e);
	ends_are(e, "127.0.0.1", port, mine);
	assert_string_equal(e->fd.role, "server");
	assert_in_range(number(e, "bytes_received"), 10, 11);
	assert_null(nth("tcp_close", 2));
	stop();
}

/* --- connections -------------------------------------------------------------- */

/* A socket that connects to itself has two SYNs that cross, and no listener. */
static void to_itself(void **state)
{
	struct sockaddr_storage a;
	struct watch_event *e;
	socklen_t len;
	int fd;

	start("tcp_*", of_port);
	unused_port();
	fd = socket(AF_INET, SOCK_STREAM, 0);
	len = loopback(&a, AF_INET, port);
	assert_int_equal(bind(fd, (void *)&a, len), 0);
	assert_int_equal(connect(fd, (void *)&a, len), 0);
	close(fd);
	wait_nth("tcp_close", 0);
	e = nth("tcp_connect", 0);
	assert_non_null(e);
	is_mine(e);
	assert_int_equal(number(e, "retval"), 0);
	assert_true(e->timed);
	assert_null(nth("tcp_connect", 1));
	assert_null(nth("tcp_accept", 0));
	stop();
}

/* A listener whose queue is full does not answer. */
static void a_time_out(void **state)
{
	int server, fds[3], client, once = 1, soon = 500, err = 0;
	socklen_t len = sizeof(err), a_len;
	struct pollfd p = { .events = POLLOUT };
	struct sockaddr_storage a;
	struct watch_event *e = NULL;

	start("tcp_connect", of_port);
	server = socket(AF_INET, SOCK_STREAM, 0);
	a_len = loopback(&a, AF_INET, 0);
	assert_int_equal(bind(server, (void *)&a, a_len), 0);
	assert_int_equal(listen(server, 0), 0);
	port = port_of(server);
	loopback(&a, AF_INET, port);
	for (int i = 0; i < 3; i++) {
		fds[i] = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
		connect(fds[i], (void *)&a, a_len);
	}
	client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	/* After the second SYN, which follows after a second, it waits no more. */
	setsockopt(client, IPPROTO_TCP, TCP_SYNCNT, &once, sizeof(once));
	setsockopt(client, IPPROTO_TCP, TCP_USER_TIMEOUT, &soon, sizeof(soon));
	assert_int_equal(connect(client, (void *)&a, a_len), -1);
	p.fd = client;
	assert_int_equal(poll(&p, 1, WAIT_SECONDS * 1000), 1);
	getsockopt(client, SOL_SOCKET, SO_ERROR, &err, &len);
	assert_int_equal(err, ETIMEDOUT);
	for (size_t i = 0; !e || !e->failed; i++)
		e = wait_nth("tcp_connect", i);
	is_mine(e);
	assert_int_equal(number(e, "retval"), -ETIMEDOUT);
	assert_true(e->timed && e->latency_ns > CLOCK_NSEC_PER_SEC / 2);
	close(client);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	close(server);
	stop();
}

/* --- losses ------------------------------------------------------------------- */

/* Loopback sends through a slow queue; false: it cannot, and the network is left. */
static bool narrow(const char *tbf)
{
	char command[256];

	snprintf(command, sizeof(command),
		 "ip link set lo mtu 1500 && tc qdisc add dev lo root tbf %s "
		 "2>/dev/null",
		 tbf);
	if (!system(command))
		return true;
	back();
	print_message("# no tc(8), or a kernel without tbf\n");
	return false;
}

/* Segments, of all events of the client so far; before 6.17 those of failures are not in them. */
static int64_t sent_again(void)
{
	struct watch_event *e;
	int64_t segs = 0;

	for (size_t i = 0; (e = nth("tcp_retransmit_skb", i)); i++) {
		if (strcmp(e->fd.role, "client") != 0)
			continue;
		assert_int_equal(e->failed, attribute(e, "retval") != NULL);
		if (e->failed)
			assert_int_equal(number(e, "retval"), -ENOBUFS);
		segs += number(e, "segs");
	}
	return segs;
}

static void dropped_on_its_way_out(void **state)
{
	int server, client, conn;
	struct watch_event *e;
	uint16_t mine;

	assert_true(own_net());
	if (!narrow("rate 800kbit burst 1600 limit 4000"))
		skip();
	start("tcp_*", of_port);
	server = serve(AF_INET);
	client = dial(AF_INET, port);
	mine = port_of(client);
	conn = accept(server, NULL, NULL);
	send_all(client, 60000);
	receive_all(conn, 60000);
	/* The host's end is the sender's. */
	e = wait_nth("tcp_drop", 0);
	ends_are(e, "127.0.0.1", mine, port);
	e = wait_nth("tcp_retransmit_skb", 0);
	is_mine(e);
	ends_are(e, "127.0.0.1", mine, port);
	assert_true(number(e, "segs") > 0);
	assert_string_equal(text(e, "state"), "ESTABLISHED");
	close(client);
	close(conn);
	for (size_t i = 0;; i++) {
		e = wait_nth("tcp_close", i);
		if (!strcmp(e->fd.role, "client"))
			break;
	}
	assert_int_equal(number(e, "retransmits"), sent_again());
	assert_in_range(number(e, "bytes_acked"), 60000, 60002);
	close(server);
	stop();
	back();
}

/* For some time-outs, which send nothing again that is in the queue. */
static void waits_on_its_way_out(void **state)
{
	int server, client, conn, one = 1;
	struct watch_event *e;

	assert_true(own_net());
	if (!narrow("rate 40kbit burst 1600 limit 100000"))
		skip();
	start("tcp_*", of_port);
	server = serve(AF_INET);
	client = dial(AF_INET, port);
	conn = accept(server, NULL, NULL);
	setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	/* Packets of their own, as many as may be under way at first. */
	for (int i = 0; i < 10; i++)
		send_all(client, 1000);
	receive_all(conn, 10000);
	close(client);
	close(conn);
	for (size_t i = 0;; i++) {
		e = wait_nth("tcp_close", i);
		if (!strcmp(e->fd.role, "client"))
			break;
	}
	assert_int_equal(number(e, "retransmits"), sent_again());
	close(server);
	stop();
	back();
}

/* What comes over loopback is received by the second CPU, which is interrupted for it. */
static bool received_by_another(void)
{
	static const char file[] = "/sys/class/net/lo/queues/rx-0/rps_cpus";
	int status, fd;
	pid_t pid = fork();

	if (!pid) { /* sysfs shows the network of who mounts it */
		if (unshare(CLONE_NEWNS) ||
		    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
		    mount("sysfs", "/sys", "sysfs", 0, NULL))
			_exit(1);
		fd = open(file, O_WRONLY | O_CLOEXEC);
		_exit(write(fd, "2", 1) != 1);
	}
	return waitpid(pid, &status, 0) == pid && !status;
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	assert_int_equal(sched_setaffinity(0, sizeof(set), &set), 0);
}

/* Drops packets all the time: those that are in a queue when it is closed. */
static pid_t drop_always(int cpu)
{
	pid_t pid = fork();
	int fds[2];

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_on(cpu);
	while (!socketpair(AF_UNIX, SOCK_DGRAM, 0, fds)) {
		while (send(fds[0], "", 1, MSG_DONTWAIT) == 1)
			;
		close(fds[0]);
		close(fds[1]);
	}
	_exit(1);
}

/* Datagrams that nobody receives, until the kernel has skipped the program. */
static void drop_in_interrupts(size_t name)
{
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_storage a;
	socklen_t len = loopback(&a, AF_INET, 9);

	for (int i = 0; !watch_lost(sub, name); i++) {
		assert_true(i < WAIT_SECONDS * 100);
		for (int k = 0; k < 20; k++) {
			sendto(fd, "", 1, 0, (void *)&a, len);
			usleep(50);
		}
		collect();
	}
	close(fd);
}

/* A hook of what is interrupted by the same does not run: it counts as a loss. */
static void skipped_by_the_kernel(void **state)
{
	struct watch_stats before, after;
	cpu_set_t all;
	size_t name;
	pid_t pid;

	assert_int_equal(sched_getaffinity(0, sizeof(all), &all), 0);
	if (CPU_COUNT(&all) < 2)
		skip();
	assert_true(own_net());
	assert_true(received_by_another());
	start("tcp_drop", of_port);
	for (name = 0; strcmp(watch_name(name)->name, "tcp_drop") != 0; name++)
		;
	watch_stats(watch, &before);
	pid = drop_always(1);
	run_on(0);
	drop_in_interrupts(name);
	watch_stats(watch, &after);
	assert_int_equal(after.skipped - before.skipped, watch_lost(sub, name));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(sched_setaffinity(0, sizeof(all), &all), 0);
	stop();
	back();
}

/* --- whose budget ------------------------------------------------------------- */

static bool of_my_signals(void *arg, const struct watch_event *e)
{
	return !strcmp(watch_name(e->name)->name, "signal_generate") &&
	       e->key.tgid == (uint32_t)getpid();
}

/* Resets and drops that are of no process use up no user's events. */
static void a_storm_of_no_process(void **state)
{
	size_t sent = 0;
	pid_t storm;

	start("*", of_my_signals);
	unused_port();
	own_budget(true);
	storm = fork();
	if (!storm) {
		assert_int_equal(syscall(SYS_setuid, 65534), 0);
		for (;;)
			dial(AF_INET, port);
	}
	for (int round = 0; round < 10; round++) {
		usleep(200000);
		for (int k = 0; k < 5; k++, sent++)
			kill(getpid(), SIGCONT);
		collect();
	}
	kill(storm, SIGKILL);
	waitpid(storm, NULL, 0);
	own_budget(false);
	wait_nth("signal_generate", sent - 1);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_forged_packet),
		cmocka_unit_test(a_reset_after_the_close),
		cmocka_unit_test(a_reset_by_close),
		cmocka_unit_test(never_accepted),
		cmocka_unit_test(to_itself),
		cmocka_unit_test(a_time_out),
		cmocka_unit_test(a_storm_of_no_process),
		cmocka_unit_test(dropped_on_its_way_out),
		cmocka_unit_test(waits_on_its_way_out),
		cmocka_unit_test(skipped_by_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
