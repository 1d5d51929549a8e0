// SPDX-License-Identifier: Apache-2.0
/*
 * Programs whose waits are known: their reasons, system calls and descriptors, and their
 * durations against the clock that the program itself reads around them. What lies
 * between its two readings is at most what it was on a CPU, in the run queue and in other
 * waits: so the bounds hold however loaded the host is.
 */
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>

#include "tests/bpf/wait/test_wait.h"

#define LONG_MS 30

/* What a child and the test share. */
static struct shared {
	uint64_t measured; /* by the child: the time around its wait */
	uint32_t word; /* a futex */
	uint32_t pad;
} * shared;

static void *helper_of(void *arg)
{
	void (*fn)(void) = *(void (**)(void))arg;

	sleep_ms(LONG_MS);
	fn();
	return NULL;
}

/* Runs 'fn' in another process of the test after a while, so that its waits are not ours. */
static pid_t later(void (*fn)(void))
{
	pid_t pid = fork();

	if (!pid) {
		helper_of(&fn);
		_exit(0);
	}
	return pid;
}

static int fds[2];
static pid_t self;

static void wake_futex(void)
{
	__atomic_store_n(&shared->word, 1, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, &shared->word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

static void write_fd(void)
{
	uint64_t one = 1;

	if (write(fds[1], &one, sizeof(one)) != sizeof(one))
		_exit(1);
}

static void continue_self(void)
{
	char path[64], state = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/stat", self);
	while (state != 'T') {
		f = fopen(path, "r");
		if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			_exit(1);
		fclose(f);
		sched_yield();
	}
	sleep_ms(LONG_MS);
	kill(self, SIGCONT);
}

static struct sockaddr_un address = { .sun_family = AF_UNIX };

static void connect_to(void)
{
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	if (connect(fd, (struct sockaddr *)&address, sizeof(address)))
		_exit(1);
}

static void nothing(void)
{
}

/* --- the waits: each takes LONG_MS, but for fsync ------------------------------- */

static void do_nanosleep(void)
{
	struct timespec ts = { 0, LONG_MS * 1000000L };

	syscall(SYS_nanosleep, &ts, NULL);
}

static void do_clock_nanosleep(void)
{
	struct timespec ts = { 0, LONG_MS * 1000000L };

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &ts, NULL);
}

static void do_futex(void)
{
	while (!__atomic_load_n(&shared->word, __ATOMIC_SEQ_CST))
		syscall(SYS_futex, &shared->word, FUTEX_WAIT, 0, NULL, NULL, 0);
}

static void do_read(void)
{
	uint64_t n;

	if (read(fds[0], &n, sizeof(n)) != sizeof(n))
		_exit(1);
}

static void do_epoll(void)
{
	struct epoll_event ev;

	syscall(SYS_epoll_wait, fds[0], &ev, 1, LONG_MS);
}

static void do_poll(void)
{
	struct pollfd p = { .fd = fds[0], .events = POLLIN };

	syscall(SYS_poll, &p, 1, LONG_MS);
}

static void do_accept(void)
{
	if (syscall(SYS_accept, fds[0], NULL, NULL) < 0)
		_exit(1);
}

static void do_stop(void)
{
	kill(getpid(), SIGSTOP);
}

static void do_wait(void)
{
	int status;

	if (syscall(SYS_wait4, -1, &status, 0, NULL) < 0)
		_exit(1);
}

static void do_vfork(void)
{
	pid_t pid = vfork();

	if (!pid) {
		do_nanosleep();
		_exit(0);
	}
}

static void do_fsync(void)
{
	char data[65536] = { 1 };

	for (int i = 0; i < 16; i++)
		if (pwrite(fds[0], data, sizeof(data),
			   (off_t)i * (off_t)sizeof(data)) < 0)
			_exit(1);
	if (fsync(fds[0]))
		_exit(1);
}

/* --- what they need --------------------------------------------------------------- */

static void make_pipe(void)
{
	if (pipe(fds))
		_exit(1);
}

/* fds[0] alone would wait for one who writes. */
static void make_fifo(void)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/profd-test-wait-%d", getpid());
	fds[0] = mkfifo(path, 0600) ? -1 : open(path, O_RDWR);
	if (fds[0] < 0)
		_exit(1);
	fds[1] = fds[0];
	unlink(path);
}

static void make_sockets(void)
{
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		_exit(1);
}

static void make_epoll(void)
{
	fds[0] = epoll_create1(0);
}

static void make_eventfd(void)
{
	fds[0] = fds[1] = eventfd(0, 0);
}

static void make_timerfd(void)
{
	struct itimerspec its = { .it_value.tv_nsec = LONG_MS * 1000000L };

	fds[0] = timerfd_create(CLOCK_MONOTONIC, 0);
	if (timerfd_settime(fds[0], 0, &its, NULL))
		_exit(1);
}

static void make_listener(void)
{
	snprintf(address.sun_path + 1, sizeof(address.sun_path) - 1,
		 "profd-test-wait-%d", getpid());
	fds[0] = socket(AF_UNIX, SOCK_STREAM, 0);
	if (bind(fds[0], (struct sockaddr *)&address, sizeof(address)) ||
	    listen(fds[0], 1))
		_exit(1);
}

static void make_file(void)
{
	char path[] = "/tmp/profd-test-wait-XXXXXX";

	fds[0] = mkstemp(path);
	if (fds[0] < 0)
		_exit(1);
	unlink(path);
}

/* --- the table ---------------------------------------------------------------------- */

struct wait {
	const char *name;
	void (*make)(void);
	void (*other)(void); /* in another process, LONG_MS later */
	void (*wait)(void);
	long nr;
	uint32_t reason, fd;
	bool may_not; /* it may not wait at all: what it writes to may be memory */
};

#define W(name, make, other, wait, nr, REASON, FD, may_not)                  \
	{                                                                    \
		name, make, other, wait, nr, ABI_WAIT_##REASON, ABI_FD_##FD, \
			may_not                                              \
	}

static const struct wait waits[] = {
	W("nanosleep", nothing, NULL, do_nanosleep, SYS_nanosleep, SLEEP, NONE,
	  false),
	W("clock_nanosleep", nothing, NULL, do_clock_nanosleep,
	  SYS_clock_nanosleep, SLEEP, NONE, false),
	W("futex", nothing, wake_futex, do_futex, SYS_futex, FUTEX, NONE,
	  false),
	W("a pipe", make_pipe, write_fd, do_read, SYS_read, PIPE, PIPE, false),
	W("a fifo", make_fifo, write_fd, do_read, SYS_read, PIPE, FIFO, false),
	W("a socket", make_sockets, write_fd, do_read, SYS_read, SOCKET, SOCKET,
	  false),
	W("an eventfd", make_eventfd, write_fd, do_read, SYS_read, OTHER,
	  EVENTFD, false),
	W("a timerfd", make_timerfd, NULL, do_read, SYS_read, SLEEP, TIMERFD,
	  false),
	W("epoll_wait", make_epoll, NULL, do_epoll, SYS_epoll_wait, POLL, EPOLL,
	  false),
	W("poll", make_pipe, NULL, do_poll, SYS_poll, POLL, NONE, false),
	W("accept", make_listener, connect_to, do_accept, SYS_accept, SOCKET,
	  SOCKET, false),
	W("a stop", nothing, continue_self, do_stop, SYS_kill, STOP, NONE,
	  false),
	W("wait4", nothing, nothing, do_wait, SYS_wait4, CHILD, NONE, false),
	W("vfork", nothing, NULL, do_vfork, SYS_vfork, CHILD, NONE, false),
	W("fsync", make_file, NULL, do_fsync, SYS_fsync, DISK, FILE, true),
};

/* The child: measures its wait, and leaves nothing else that could be it. */
static void child(const struct wait *w)
{
	uint64_t begin;

	self = getpid();
	w->make();
	if (w->other && later(w->other) < 0)
		_exit(1);
	begin = clock_boottime_ns();
	w->wait();
	shared->measured = clock_boottime_ns() - begin;
	_exit(0);
}

/*
 * On some hosts no program runs in the context of a certain process, as the kernel's
 * first: then a wake-up or a switch in its time is not seen, which is counted. Such a
 * wait has no exact end.
 */
static bool all_seen(void)
{
	static struct abi_wait_counters before;
	struct abi_wait_counters now;
	bool same;

	waiting_sums_counters(sums, &now);
	same = now.missed == before.missed && now.unwoken == before.unwoken;
	before = now;
	return same;
}

static bool try_wait(const struct wait *w)
{
	uint32_t what = ABI_WAIT_WHAT(w->nr, w->reason, w->fd);
	/* What may lie between the two readings, too. */
	static const uint32_t beside[] = {
		ABI_WAIT_ON,	ABI_WAIT_WOKEN,	    ABI_WAIT_PREEMPTED,
		ABI_WAIT_YIELD, ABI_WAIT_THROTTLED, ABI_WAIT_FAULT,
		ABI_WAIT_LOCK,
	};
	const struct waiting_sum *s;
	uint64_t ns, rest = 0;
	pid_t pid;

	memset(shared, 0, sizeof(*shared));
	all_seen();
	pid = fork();
	if (!pid)
		child(w);
	reap(pid);
	s = sum_exact(pid, what);
	ns = s ? s->ns : 0;
	for (size_t i = 0; i < ARRAY_SIZE(beside); i++)
		rest += sum_of(pid, beside[i]).ns;
	print_message("%-16s %9" PRIu64 " ns, measured %9" PRIu64
		      ", not waiting %" PRIu64 "\n",
		      w->name, ns, shared->measured, rest);
	if (ns <= shared->measured && ns + rest >= shared->measured &&
	    (w->may_not || (s && s->count)))
		return true;
	print_sums(pid);
	return false;
}

static void check_wait(const struct wait *w)
{
	for (int i = 0; i < 10; i++)
		if (try_wait(w))
			return;
		else if (all_seen())
			break;
	fail_msg("%s: not what was measured", w->name);
}

static void test_known_waits(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(waits); i++)
		check_wait(&waits[i]);
}

/* --- the run queue ----------------------------------------------------------------- */

static void pin(void)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(sched_getcpu(), &set);
	if (sched_setaffinity(0, sizeof(set), &set))
		_exit(1);
}

static uint64_t cpu_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * CLOCK_NSEC_PER_SEC + (uint64_t)ts.tv_nsec;
}

/* Two processes on one CPU, each needs 60 ms of it. */
static void spin_until(uint64_t ns, bool yields)
{
	while (cpu_ns() < ns)
		if (yields)
			sched_yield();
	_exit(0);
}

static void check_queue(bool yields, uint32_t reason)
{
	pid_t pids[2];

	for (int i = 0; i < 2; i++) {
		if (!i)
			pin();
		pids[i] = fork();
		if (!pids[i])
			spin_until(60 * MSEC, yields);
	}
	for (int i = 0; i < 2; i++)
		reap(pids[i]);
	for (int i = 0; i < 2; i++) {
		struct waiting_sum s = sum_of(pids[i], reason);

		if (s.count && s.ns)
			continue;
		print_sums(pids[i]);
		fail_msg("not in the run queue for that reason");
	}
}

static void restore_affinity(const cpu_set_t *set)
{
	assert_int_equal(sched_setaffinity(0, sizeof(*set), set), 0);
}

static void test_preempted(void **state)
{
	cpu_set_t all;

	sched_getaffinity(0, sizeof(all), &all);
	check_queue(false, ABI_WAIT_PREEMPTED);
	restore_affinity(&all);
}

static void test_yield(void **state)
{
	cpu_set_t all;

	sched_getaffinity(0, sizeof(all), &all);
	check_queue(true, ABI_WAIT_YIELD);
	restore_affinity(&all);
}

/* Each process is new once, and was woken as often as it waited. */
static void test_new_and_woken(void **state)
{
	pid_t pid = fork();
	uint64_t waited = 0;

	if (!pid) {
		for (int i = 0; i < 20; i++)
			sleep_ms(1);
		_exit(0);
	}
	reap(pid);
	for (uint32_t r = ABI_WAIT_SLEEP; r < ABI_WAIT_REASON_MAX; r++)
		waited += sum_of(pid, r).count;
	assert_int_equal(sum_of(pid, ABI_WAIT_NEW).count, 1);
	assert_true(waited >= 20);
	assert_true(sum_of(pid, ABI_WAIT_WOKEN).count +
			    sum_of(pid, ABI_WAIT_THROTTLED).count <=
		    waited);
	assert_true(sum_of(pid, ABI_WAIT_WOKEN).count > 0);
}

static int set_up(void **state)
{
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	return shared == MAP_FAILED ? -1 : open_sums(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_known_waits),
		cmocka_unit_test(test_preempted),
		cmocka_unit_test(test_yield),
		cmocka_unit_test(test_new_and_woken),
	};

	return cmocka_run_group_tests(tests, set_up, close_sums);
}
