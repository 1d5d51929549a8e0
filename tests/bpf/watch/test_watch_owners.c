// SPDX-License-Identifier: Apache-2.0
/*
 * Owners of sockets: a thousand connections from forty ports, each made by one process,
 * passed to another one that uses it, and closed there. All events must have the right
 * owner.
 */
#include "tests/bpf/watch/test_watch_tcp.h"

#define WORKERS 5
#define CONNECTIONS 1000
#define PORTS 40

static struct {
	pid_t pid;
	int fd; /* sockets to it, and its answers */
} workers[WORKERS];

static struct {
	uint16_t port;
	pid_t user;
} made[CONNECTIONS];

static void pass_socket(int to, int fd)
{
	char control[CMSG_SPACE(sizeof(fd))] = { 0 };
	struct iovec one = { .iov_base = "s", .iov_len = 1 };
	struct msghdr m = { .msg_iov = &one,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	assert_int_equal(sendmsg(to, &m, 0), 1);
}

/* -1: there is no more. */
static int take_socket(int from)
{
	char control[CMSG_SPACE(sizeof(int))], byte;
	struct iovec one = { .iov_base = &byte, .iov_len = 1 };
	struct msghdr m = { .msg_iov = &one,
			    .msg_iovlen = 1,
			    .msg_control = control,
			    .msg_controllen = sizeof(control) };
	int fd;

	if (recvmsg(from, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static void work(int from)
{
	char byte;
	int fd;

	while ((fd = take_socket(from)) >= 0) {
		if (recv(fd, &byte, 1, 0) != 1 ||
		    send(fd, "a", 1, MSG_NOSIGNAL) != 1 ||
		    recv(fd, &byte, 1, 0) != 0)
			_exit(1);
		close(fd);
		if (write(from, "d", 1) != 1)
			_exit(1);
	}
	_exit(0);
}

static void start_workers(void)
{
	int pair[2];

	for (int i = 0; i < WORKERS; i++) {
		assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
		workers[i].pid = fork();
		if (!workers[i].pid) {
			close(pair[0]);
			for (int k = 0; k < i; k++)
				close(workers[k].fd);
			work(pair[1]);
		}
		close(pair[1]);
		workers[i].fd = pair[0];
	}
}

static void end_workers(void)
{
	int status;

	for (int i = 0; i < WORKERS; i++) {
		close(workers[i].fd);
		assert_int_equal(waitpid(workers[i].pid, &status, 0),
				 workers[i].pid);
		assert_int_equal(status, 0);
	}
}

/* The server closes first, so that the client's port is free again. */
static void make_one(int server, size_t i)
{
	int client = dial(AF_INET, port), conn, worker = (int)(i % WORKERS);
	char byte;

	assert_true(client >= 0);
	conn = accept(server, NULL, NULL);
	made[i].port = port_of(client);
	made[i].user = workers[worker].pid;
	pass_socket(workers[worker].fd, client);
	close(client);
	assert_int_equal(send(conn, "q", 1, 0), 1);
	assert_int_equal(recv(conn, &byte, 1, 0), 1);
	close(conn);
	assert_int_equal(read(workers[worker].fd, &byte, 1), 1);
	collect();
}

static size_t check_clients(void)
{
	size_t connects = 0, closes = 0, wrong = 0;
	char src[WATCH_ADDRESS_MAX];

	for (size_t k = 0; k < n_got; k++) {
		const struct watch_event *e = &got[k];
		bool closed = !strcmp(watch_name(e->name)->name, "tcp_close");
		size_t i = closed ? closes : connects;

		if (strcmp(e->fd.role, "client") != 0 || i >= CONNECTIONS)
			continue;
		snprintf(src, sizeof(src), "127.0.0.1:%u", made[i].port);
		wrong += strcmp(src, e->fd.src) != 0;
		if (closed) {
			closes++;
			wrong += (pid_t)e->key.tgid != made[i].user ||
				 (pid_t)e->created_by.tgid != getpid();
		} else {
			connects++;
			wrong += (pid_t)e->key.tgid != getpid();
		}
	}
	assert_int_equal(connects, CONNECTIONS);
	assert_int_equal(closes, CONNECTIONS);
	return wrong;
}

static bool few_ports(void)
{
	FILE *f = fopen("/proc/sys/net/ipv4/ip_local_port_range", "w");
	bool ok = f && fprintf(f, "20001 %d\n", 20000 + PORTS) > 0;

	return f && !fclose(f) && ok;
}

static bool of_connection(void *arg, const struct watch_event *e)
{
	return of_port(arg, e) && *e->fd.role;
}

static void all_owners_are_right(void **state)
{
	static const char *const names[] = { "tcp_connect", "tcp_close" };
	const struct watch_want want = { .names = names,
					 .n_names = 2,
					 .take = of_connection };
	int server;

	assert_true(own_net());
	assert_true(few_ports());
	start("tcp_close", NULL);
	stop();
	sub = subscribe(&want);
	server = serve(AF_INET);
	start_workers();
	for (size_t i = 0; i < CONNECTIONS; i++)
		make_one(server, i);
	end_workers();
	wait_nth("tcp_close", 2 * CONNECTIONS - 1);
	assert_int_equal(check_clients(), 0);
	close(server);
	stop();
	back();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_owners_are_right),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
