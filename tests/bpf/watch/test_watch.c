// SPDX-License-Identifier: Apache-2.0
/*
 * Processes and signals as events; and what holds of all: one subscriber's filter is not
 * another's, what nobody wants is detached, a user's storm takes no event of others.
 */
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <sys/syscall.h>

#include "tests/bpf/watch/test_watch.h"

static pid_t mine; /* whose events and those of its children are taken */

static bool of_mine(void *arg, const struct watch_event *e)
{
	for (size_t i = 0; i < e->n_attributes; i++)
		if (!strcmp(e->attributes[i].key, "ppid") &&
		    e->attributes[i].i == getpid())
			mine = (pid_t)e->key.tgid;
	return mine && (pid_t)e->key.tgid == mine;
}

static void a_life(void **state)
{
	struct watch_event *fork_e, *exec_e, *exit_e;
	pid_t pid;

	start("process_*", of_mine);
	mine = 0;
	pid = fork();
	if (!pid) {
		execl("/bin/sh", "sh", "-c", "exit 7", NULL);
		_exit(1);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	exit_e = wait_nth("process_exit", 0);
	fork_e = nth("process_fork", 0);
	exec_e = nth("process_exec", 0);
	assert_non_null(fork_e);
	assert_non_null(exec_e);
	assert_int_equal(n_got, 3);
	assert_true(fork_e < exec_e && exec_e < exit_e);
	assert_true(fork_e->time < exec_e->time && exec_e->time < exit_e->time);
	assert_int_equal(fork_e->key.tgid, pid);
	assert_int_equal(exec_e->key.tgid, pid);
	assert_int_equal(exec_e->key.start_boottime,
			 fork_e->key.start_boottime);
	/* The exec's event is of the new image. */
	assert_int_equal(exec_e->key.exec_id, fork_e->key.exec_id + 1);
	assert_string_equal(exec_e->comm, "sh");
	assert_int_equal(number(exit_e, "status"), 7 << 8);
	assert_true(exit_e->failed && !exec_e->failed);
	stop();
}

static bool of_usr1(void *arg, const struct watch_event *e)
{
	for (size_t i = 0; i < e->n_attributes; i++)
		if (!strcmp(e->attributes[i].key, "dpid"))
			return (pid_t)e->attributes[i].i == mine;
	return false;
}

static void quit(int sig)
{
	_exit(0);
}

static void a_signal(void **state)
{
	struct watch_event *e;
	sigset_t usr1;
	int status;
	pid_t pid;

	start("signal*", of_usr1);
	/* Handled: a signal that kills is delivered as SIGKILL (kernel/signal.c). */
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	pid = fork();
	if (!pid) {
		signal(SIGUSR1, quit);
		sigprocmask(SIG_UNBLOCK, &usr1, NULL);
		for (;;)
			pause();
	}
	mine = pid;
	assert_int_equal(kill(pid, SIGUSR1), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	sigprocmask(SIG_UNBLOCK, &usr1, NULL);
	assert_true(WIFEXITED(status));
	e = wait_nth("signal_generate", 0);
	assert_int_equal(e->key.tgid, getpid());
	assert_int_equal(number(e, "sig"), SIGUSR1);
	assert_int_equal(number(e, "spid"), getpid());
	assert_int_equal(number(e, "code"), SI_USER);
	assert_string_equal(text(e, "result"), "delivered");
	e = wait_nth("signal_deliver", 0);
	assert_int_equal(e->key.tgid, pid);
	assert_int_equal(number(e, "sig"), SIGUSR1);
	assert_int_equal(number(e, "spid"), getpid());
	stop();

	/* The kernel's own have no sender. */
	start("signal*", of_usr1);
	pid = fork();
	if (!pid) {
		usleep(100000);
		signal(SIGILL, SIG_DFL); /* cmocka has a handler */
		__builtin_trap();
	}
	mine = pid;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	e = wait_nth("signal_deliver", 0);
	assert_int_equal(number(e, "sig"), SIGILL);
	assert_null(attribute(e, "spid"));
	e = wait_nth("signal_generate", 0);
	assert_int_equal(e->key.tgid, pid);
	assert_null(attribute(e, "spid"));
	stop();
}

static pid_t end_with(int code)
{
	pid_t pid = fork();

	if (!pid)
		_exit(code);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void drain(struct watch_sub *s, uint32_t pid, size_t *own, size_t *other)
{
	struct watch_event e;

	*own = *other = 0;
	while (!watch_next(s, &e))
		++*(e.key.tgid == pid ? own : other);
}

/* Two subscribers with filters; the kernel has their union. */
static void each_its_own(void **state)
{
	static const char *const name[] = { "procexit" };
	struct watch_want want = { .names = name, .n_names = 1, .n_pids = 1 };
	size_t own, other, tries;
	struct watch_sub *by_pid, *by_failure;
	uint32_t pid;
	int go[2];
	pid_t a, b;

	start("process_exit", NULL);
	stop();
	assert_int_equal(pipe(go), 0);
	a = fork();
	if (!a) {
		close(go[1]);
		_exit(read(go[0], &(char){ 0 }, 1) > 0);
	}
	pid = (uint32_t)a;
	want.pids = &pid;
	by_pid = subscribe(&want);
	want.n_pids = 0;
	want.failed = true;
	by_failure = subscribe(&want);
	b = end_with(3);
	end_with(0);
	close(go[1]);
	close(go[0]);
	assert_int_equal(waitpid(a, NULL, 0), a);
	for (tries = own = 0; !own && tries < 1000; tries++) {
		usleep(5000);
		watch_read(watch);
		drain(by_pid, pid, &own, &other);
		assert_int_equal(other, 0);
	}
	assert_int_equal(own, 1);
	drain(by_failure, (uint32_t)b, &own, &other);
	assert_int_equal(own, 1);
	watch_unsubscribe(by_pid);
	watch_unsubscribe(by_failure);
	settle();
}

static pid_t grandchild;

static bool of_family(void *arg, const struct watch_event *e)
{
	return e->key.tgid == (uint32_t)mine ||
	       e->key.tgid == (uint32_t)grandchild ||
	       e->key.tgid == (uint32_t)getpid();
}

/* profd and its helpers are left out, but not what those start. */
static void not_its_own(void **state)
{
	static const char *const names[] = { "process_*", "signal_*" };
	const struct watch_want want = { .names = names,
					 .n_names = 2,
					 .take = of_family };
	const struct watch_opts opts = { .self = getpid() };
	struct watch_event *e;
	int fds[2], go[2];

	watch_free(watch);
	assert_int_equal(watch_new(&watch, &opts), 0);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(pipe(go), 0);
	n_got = 0;
	sub = subscribe(&want);
	mine = fork();
	if (!mine) {
		grandchild = fork();
		if (!grandchild)
			_exit(read(go[0], &(char){ 0 }, 1) != 1);
		if (write(fds[1], &grandchild, sizeof(grandchild)) < 0)
			_exit(1);
		waitpid(grandchild, NULL, 0);
		_exit(2);
	}
	assert_int_equal(read(fds[0], &grandchild, sizeof(grandchild)),
			 sizeof(grandchild));
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(mine, NULL, 0), mine);
	kill(getpid(), SIGCONT);
	e = wait_nth("process_exit", 0);
	assert_int_equal(e->key.tgid, grandchild);
	for (size_t i = 0; i < n_got; i++)
		assert_int_equal(got[i].key.tgid, grandchild);
	stop();
	for (int i = 0; i < 2; i++) {
		close(fds[i]);
		close(go[i]);
	}
	watch_free(watch);
	watch = NULL;
}

/* The loop may ask between the two halves of the work. */
static void ready_at_last(void **state)
{
	static const char *const name[] = { "process_exec" };
	const struct watch_want want = { .names = name, .n_names = 1 };
	struct strbuf why = STRBUF_INIT;
	struct watch_sub *s;
	const char *text;

	start("process_exec", NULL);
	stop();
	assert_int_equal(watch_subscribe(watch, &want, &s, &why), 0);
	assert_int_equal(watch_ready(s, &text), 0);
	assert_int_equal(watch_work(watch), 0);
	assert_int_equal(watch_ready(s, &text), 0);
	watch_worked(watch);
	assert_int_equal(watch_ready(s, &text), 1);
	watch_unsubscribe(s);
	settle();
	strbuf_fini(&why);
}

static int hooks(void)
{
	struct watch_stats stats;

	watch_stats(watch, &stats);
	return (int)stats.hooks;
}

static int count_fds(void)
{
	DIR *d = opendir("/proc/self/fd");
	int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

static void nothing_is_left(void **state)
{
	size_t heap = 0;
	int before;

	start("tcp_*", NULL);
	assert_true(hooks() > 5);
	stop();
	before = count_fds();
	for (int i = 0; i < 40; i++) {
		/* What malloc(3) keeps grows at first. */
		if (i == 20)
			heap = mallinfo2().uordblks;
		start(i % 10 ? "tcp_connect" : "*", NULL);
		assert_true(hooks() > 0);
		stop();
		assert_int_equal(hooks(), 0);
	}
	assert_int_equal(count_fds(), before);
	assert_true(mallinfo2().uordblks < heap + 20 * 64);
	assert_int_equal(watch_fd(watch), -1);
}

/* A user that floods the ring, and another whose events are complete. */
static void a_storm(void **state)
{
	static const char *const name[] = { "signal_generate" };
	const struct watch_want want = { .names = name, .n_names = 1 };
	size_t own, other, all = 0, flood = 0, sent = 0, i = 0;
	struct watch_sub *s;
	pid_t storm;

	while (strcmp(watch_name(i)->name, *name) != 0)
		i++;

	start("signal_generate", NULL);
	stop();
	s = subscribe(&want);
	own_budget(true);
	storm = fork();
	if (!storm) {
		assert_int_equal(syscall(SYS_setuid, 65534), 0);
		signal(SIGUSR1, SIG_IGN);
		for (;;)
			kill(getpid(), SIGUSR1);
	}
	/* The ring is read so late that the storm fills it many times. */
	for (int round = 0; round < 10; round++) {
		usleep(150000);
		for (int k = 0; k < 5; k++, sent++)
			kill(getpid(), SIGCONT);
		watch_read(watch);
		drain(s, (uint32_t)getpid(), &own, &other);
		all += own;
		flood += other;
	}
	kill(storm, SIGKILL);
	sent++;
	waitpid(storm, NULL, 0);
	for (int tries = 0; tries < 1000 && all < sent; tries++) {
		usleep(5000);
		watch_read(watch);
		drain(s, (uint32_t)getpid(), &own, &other);
		all += own;
	}
	own_budget(false);
	assert_int_equal(all, sent);
	assert_true(flood > 0);
	assert_true(watch_lost(s, i) > 0);
	watch_unsubscribe(s);
	settle();
}

#define BURST 250
#define BURSTS 36 /* together more than the queue of a subscriber */

static size_t count(struct watch_sub *s)
{
	struct watch_event e;
	size_t n = 0;

	while (!watch_next(s, &e))
		n++;
	return n;
}

/* One that does not read loses events of its own, and knows how many. */
static void a_slow_one(void **state)
{
	static const char *const name[] = { "signal_generate" };
	const uint32_t self = (uint32_t)getpid();
	const struct watch_want want = {
		.names = name, .n_names = 1, .pids = &self, .n_pids = 1
	};
	struct watch_sub *quick, *slow;
	size_t all = 0, i = 0, late;

	while (strcmp(watch_name(i)->name, *name) != 0)
		i++;
	start("signal_generate", NULL);
	stop();
	quick = subscribe(&want);
	slow = subscribe(&want);
	for (int k = 1; k <= BURSTS; k++) {
		for (int n = 0; n < BURST; n++)
			kill(getpid(), SIGCONT);
		for (int tries = 0; tries < 1000 && all < (size_t)k * BURST;
		     tries++) {
			watch_read(watch);
			all += count(quick);
			usleep(1000);
		}
	}
	assert_int_equal(all, BURSTS * BURST);
	assert_int_equal(watch_lost(quick, i), 0);
	late = count(slow);
	assert_true(late < all);
	assert_int_equal(late + watch_lost(slow, i), all);
	watch_unsubscribe(quick);
	watch_unsubscribe(slow);
	settle();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_life),
		cmocka_unit_test(a_signal),
		cmocka_unit_test(each_its_own),
		cmocka_unit_test(a_storm),
		cmocka_unit_test(a_slow_one),
		cmocka_unit_test(not_its_own),
		cmocka_unit_test(ready_at_last),
		cmocka_unit_test(nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
