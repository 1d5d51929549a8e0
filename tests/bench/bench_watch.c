// SPDX-License-Identifier: Apache-2.0
/*
 * What watching costs those who are watched: a connection over loopback, a message of one
 * byte there and back, a signal to itself, and a process, each without a subscriber, with
 * one of other events, and with one of its own; ns of one CPU, which the ends share. Then
 * system calls, beside the least that hooks on them can cost: empty programs. Then the
 * first subscription, the next one, and the end of both.
 *
 * For bench_watch.sh:
 *	bench_watch hooks	keeps empty hooks on system calls until it is killed
 *	bench_watch call NAME	prints the ns of a call
 */
#include <arpa/inet.h>
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "processmanager/watch/watch.h"

#define ROUNDS 9

static struct watch *watch;
static int server, client, conn;
static struct sockaddr_in address;

static void die(const char *what)
{
	fprintf(stderr, "bench_watch: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void settle(void)
{
	while (watch_pending(watch)) {
		if (watch_work(watch))
			die("attaching");
		watch_worked(watch);
	}
}

static size_t delivered; /* events of this process */

static bool take_none(void *arg, const struct watch_event *e)
{
	delivered += e->key.tgid == (uint32_t)getpid();
	return false;
}

static struct watch_sub *subscribe(const char *name, uint64_t slower)
{
	const struct watch_want want = { .names = &name,
					 .n_names = 1,
					 .slower_ns = slower,
					 .take = take_none };
	struct strbuf why = STRBUF_INIT;
	struct watch_sub *s;

	if (watch_subscribe(watch, &want, &s, &why))
		die(strbuf_str(&why));
	strbuf_fini(&why);
	settle();
	return s;
}

/* --- what is watched ---------------------------------------------------------- */

static void a_connection(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0), accepted;

	if (fd < 0 || connect(fd, (void *)&address, sizeof(address)))
		die("connect");
	accepted = accept(server, NULL, NULL);
	close(accepted);
	close(fd);
}

static void a_message(void)
{
	char byte = 0;

	if (send(client, &byte, 1, 0) != 1 || recv(conn, &byte, 1, 0) != 1 ||
	    send(conn, &byte, 1, 0) != 1 || recv(client, &byte, 1, 0) != 1)
		die("message");
}

static void a_signal(void)
{
	kill(getpid(), SIGUSR1);
}

static void a_process(void)
{
	/* fork(2) would copy the page table of the ring. */
	pid_t pid = vfork();

	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
}

static const struct {
	const char *name;
	void (*run)(void);
	int n;
	const char *other, *own;
} loads[] = {
	{ "connection", a_connection, 1000, "process_exec", "tcp_*" },
	{ "connection", a_connection, 1000, "signal_generate", "tcp_connect" },
	{ "message", a_message, 5000, "process_exec", "tcp_close" },
	{ "message", a_message, 5000, "process_exec", "tcp_*" },
	{ "signal", a_signal, 5000, "process_exec", "signal_*" },
	{ "process", a_process, 300, "signal_deliver", "process_*" },
};

static int cmp_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double ns_of(void (*run)(void), int n)
{
	uint64_t from = clock_boottime_ns();

	for (int i = 0; i < n; i++)
		run();
	return (double)(clock_boottime_ns() - from) / n;
}

/* Of each state the median; the states take turns. */
static void bench_load(size_t which)
{
	const char *names[] = { NULL, loads[which].other, loads[which].own };
	double ns[ARRAY_SIZE(names)][ROUNDS];
	struct watch_sub *s;

	for (int r = 0; r < ROUNDS; r++) {
		for (size_t k = 0; k < ARRAY_SIZE(names); k++) {
			s = names[k] ? subscribe(names[k], 0) : NULL;
			ns_of(loads[which].run, loads[which].n / 10);
			watch_read(watch);
			ns[k][r] = ns_of(loads[which].run, loads[which].n);
			watch_read(watch);
			watch_unsubscribe(s);
			settle();
		}
	}
	for (size_t k = 0; k < ARRAY_SIZE(names); k++)
		qsort(ns[k], ROUNDS, sizeof(ns[k][0]), cmp_double);
	printf("{\"bench\":\"watch\",\"load\":\"%s\",\"watched\":\"%s\","
	       "\"ns\":%.0f,\"ns_other\":%.0f,\"ns_watched\":%.0f}\n",
	       loads[which].name, loads[which].own, ns[0][ROUNDS / 2],
	       ns[1][ROUNDS / 2], ns[2][ROUNDS / 2]);
}

/* --- system calls -------------------------------------------------------------- */

static int zero_fd;

static void a_null_call(void)
{
	syscall(SYS_getppid);
}

static void a_read(void)
{
	char byte;

	if (read(zero_fd, &byte, 1) != 1)
		die("read");
}

static void a_stat(void)
{
	struct stat st;

	/* stat(3) is another call. */
	if (syscall(SYS_stat, "/dev/zero", &st))
		die("stat");
}

static const struct {
	const char *name;
	void (*run)(void);
	const char *own;
} calls[] = {
	{ "getppid", a_null_call, "syscall_exit-getppid" },
	{ "read", a_read, "syscall_exit-read" },
	{ "stat", a_stat, "syscall_exit-stat" },
};

/* A program that does nothing on a tracepoint, attached; close(2) detaches it. */
static int empty_hook(const char *tracepoint)
{
	const struct bpf_insn insns[] = {
		{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
		{ .code = BPF_JMP | BPF_EXIT },
	};
	int prog = bpf_prog_load(BPF_PROG_TYPE_RAW_TRACEPOINT, "empty", "GPL",
				 insns, ARRAY_SIZE(insns), NULL);
	int fd = prog < 0 ? prog : bpf_raw_tracepoint_open(tracepoint, prog);

	if (fd < 0)
		die(tracepoint);
	close(prog);
	return fd;
}

enum {
	BARE,
	EMPTY_EXIT,
	EMPTY,
	OTHER,
	OWN,
	SLOWER,
	CALL_STATES
};

/* Few enough that the ring holds them all, below the limit of users. */
#define CALLS 3000

/* An event that was lost costs less than one that is delivered. */
static bool all_delivered(void)
{
	for (int i = 0; i < 100 && delivered < CALLS; i++) {
		watch_read(watch);
		usleep(1000);
	}
	return delivered >= CALLS;
}

/* < 0: events were lost. */
static double call_ns(size_t which, int state)
{
	struct watch_sub *s = NULL;
	int fds[2] = { -1, -1 };
	double ns;

	if (state == EMPTY_EXIT || state == EMPTY)
		fds[0] = empty_hook("sys_exit");
	if (state == EMPTY)
		fds[1] = empty_hook("sys_enter");
	if (state >= OTHER)
		s = subscribe(state == OTHER ? "syscall_exit-vhangup"
					     : calls[which].own,
			      state == SLOWER ? CLOCK_NSEC_PER_SEC : 0);
	ns_of(calls[which].run, 100);
	if (s)
		watch_read(watch);
	delivered = 0;
	ns = ns_of(calls[which].run, CALLS);
	if (state == OWN && !all_delivered())
		ns = -1;
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	watch_unsubscribe(s);
	settle();
	return ns;
}

static void bench_call(size_t which)
{
	double ns[CALL_STATES][ROUNDS];
	int lost = 0;

	for (int r = 0; r < ROUNDS; r++)
		for (int k = 0; k < CALL_STATES; k++)
			for (int tries = 0; tries < 20; tries++) {
				ns[k][r] = call_ns(which, k);
				if (ns[k][r] >= 0)
					break;
				lost++;
			}
	for (int k = 0; k < CALL_STATES; k++)
		qsort(ns[k], ROUNDS, sizeof(ns[k][0]), cmp_double);
	printf("{\"bench\":\"watch\",\"call\":\"%s\",\"ns\":%.0f,"
	       "\"ns_empty_exit\":%.0f,\"ns_empty\":%.0f,\"ns_other\":%.0f,"
	       "\"ns_watched\":%.0f,\"ns_slower\":%.0f,"
	       "\"ns_above_empty\":%.0f,\"ratio_empty\":%.2f,"
	       "\"ratio_watched\":%.2f,\"ratio_slower\":%.2f,"
	       "\"rounds_lost\":%d}\n",
	       calls[which].name, ns[BARE][ROUNDS / 2],
	       ns[EMPTY_EXIT][ROUNDS / 2], ns[EMPTY][ROUNDS / 2],
	       ns[OTHER][ROUNDS / 2], ns[OWN][ROUNDS / 2],
	       ns[SLOWER][ROUNDS / 2],
	       ns[OWN][ROUNDS / 2] - ns[EMPTY][ROUNDS / 2],
	       ns[EMPTY][ROUNDS / 2] / ns[BARE][ROUNDS / 2],
	       ns[OWN][ROUNDS / 2] / ns[BARE][ROUNDS / 2],
	       ns[SLOWER][ROUNDS / 2] / ns[BARE][ROUNDS / 2], lost);
	if (ns[OWN][0] < 0)
		die("events are lost in each round");
}

static void keep_hooks(void)
{
	empty_hook("sys_exit");
	empty_hook("sys_enter");
	puts("ready");
	fflush(stdout);
	for (;;)
		pause();
}

static int print_call(const char *name)
{
	double ns[ROUNDS];
	size_t which = 0;

	while (which < ARRAY_SIZE(calls) && strcmp(calls[which].name, name))
		which++;
	if (which == ARRAY_SIZE(calls)) {
		errno = EINVAL;
		die(name);
	}
	zero_fd = open("/dev/zero", O_RDONLY);
	ns_of(calls[which].run, 100);
	for (int r = 0; r < ROUNDS; r++)
		ns[r] = ns_of(calls[which].run, CALLS);
	qsort(ns, ROUNDS, sizeof(ns[0]), cmp_double);
	printf("%.0f\n", ns[ROUNDS / 2]);
	return 0;
}

static void bench_subscribe(void)
{
	uint64_t from = clock_boottime_ns(), first, next, last;
	struct watch_sub *s = subscribe("*", 0), *more;

	first = clock_boottime_ns();
	more = subscribe("*", 0);
	next = clock_boottime_ns();
	watch_unsubscribe(more);
	watch_unsubscribe(s);
	settle();
	last = clock_boottime_ns();
	printf("{\"bench\":\"watch\",\"first_ms\":%.1f,\"next_ms\":%.1f,"
	       "\"end_ms\":%.1f}\n",
	       (double)(first - from) / CLOCK_NSEC_PER_MSEC,
	       (double)(next - first) / CLOCK_NSEC_PER_MSEC,
	       (double)(last - next) / CLOCK_NSEC_PER_MSEC);
}

int main(int argc, char **argv)
{
	socklen_t len = sizeof(address);
	cpu_set_t one;

	if (argc == 2 && !strcmp(argv[1], "hooks"))
		keep_hooks();
	if (argc == 3 && !strcmp(argv[1], "call"))
		return print_call(argv[2]);
	/* Loopback delivers on the CPU of the sender. */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	signal(SIGUSR1, SIG_IGN);
	if (watch_new(&watch, &(struct watch_opts){ 0 }))
		die("watch");
	bench_subscribe();
	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server = socket(AF_INET, SOCK_STREAM, 0);
	if (bind(server, (void *)&address, sizeof(address)) ||
	    listen(server, 16) || getsockname(server, (void *)&address, &len))
		die("listen");
	client = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(client, (void *)&address, sizeof(address)))
		die("connect");
	conn = accept(server, NULL, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(loads); i++)
		bench_load(i);
	zero_fd = open("/dev/zero", O_RDONLY);
	for (size_t i = 0; i < ARRAY_SIZE(calls); i++)
		bench_call(i);
	watch_free(watch);
	return 0;
}
