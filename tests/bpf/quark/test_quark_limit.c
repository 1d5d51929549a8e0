// SPDX-License-Identifier: Apache-2.0
/*
 * quark_queue_attr.repeat_limit: a process that renames itself or changes its
 * directory in a loop causes few records, and the last state is reported before its
 * next fork, exec or exit.
 */
#include "tests/bpf/quark/test_quark.h"

#define LIMIT 10
#define TIMES 20000
/* Of a loop that may take long where the machine is busy. */
#define SECONDS 20

static void open_limited(struct quark_queue *qq, int limit, int flags)
{
	struct quark_queue_attr attr;

	quark_queue_default_attr(&attr);
	attr.flags = QQ_EBPF | QQ_NO_AGG | flags;
	attr.hold_time = 0;
	attr.max_env = 0;
	attr.cache_grace_time = 500;
	attr.repeat_limit = limit;
	if (quark_queue_open(qq, &attr) < 0) {
		fprintf(stderr, "open: %s\n", quark_queue_open_error());
		_exit(1);
	}
}

static void nobody(void)
{
	CHECK(syscall(SYS_setresgid, 65534, 65534, 65534) == 0);
	CHECK(syscall(SYS_setresuid, 65534, 65534, 65534) == 0);
}

static void rename_often(const char *last)
{
	char name[16];
	int i;

	for (i = 0; i < TIMES; i++) {
		snprintf(name, sizeof(name), "name-%d", i);
		prctl(PR_SET_NAME, name);
	}
	prctl(PR_SET_NAME, last);
}

/* The last rename in front of the n-th event. */
static const struct quark_event *renamed_before(const struct tape *t, size_t n,
						uint32_t pid)
{
	while (n--)
		if (t->ev[n]->process && t->ev[n]->process->pid == pid &&
		    t->ev[n]->events == QUARK_EV_SETPROCTITLE)
			return t->ev[n];
	return NULL;
}

static size_t index_of(const struct tape *t, uint32_t pid, uint64_t kind)
{
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->ev[i]->process && t->ev[i]->process->pid == pid &&
		    t->ev[i]->events & kind)
			return i;
	CHECK(!"an event of that kind");
	return 0;
}

static void check_limited(struct quark_queue *qq, const struct tape *t,
			  uint32_t pid, double took)
{
	struct quark_queue_stats st;
	int n = tape_count(t, pid, QUARK_EV_SETPROCTITLE);
	uint64_t said = 0;
	size_t i;

	for (i = 0; i < t->n; i++)
		if (t->ev[i]->process && t->ev[i]->process->pid == pid &&
		    t->ev[i]->events == QUARK_EV_SETPROCTITLE)
			said += t->ev[i]->limited;
	quark_queue_get_stats(qq, &st);
	/* Renames that are reported say how many were not. */
	CHECK(said >= (uint64_t)(TIMES - n));
	CHECK(said <= st.limited);
	printf("# %d renames told of in %.1f s, %llu limited\n", n, took,
	       (unsigned long long)st.limited);
	/* A second's worth at once, and what was pending at its end. */
	CHECK(n <= LIMIT * (2 + took) + 2);
	CHECK(st.limited >= TIMES - LIMIT * (SECONDS + 2));
	CHECK_INT(st.lost, 0);
}

static void child_forks(void)
{
	pid_t pid;

	nobody();
	rename_often("before-fork");
	pid = fork();
	if (!pid) {
		prctl(PR_SET_NAME, "of-the-child");
		_exit(0);
	}
	waitpid(pid, NULL, 0);
	/* Not reported before its exit; the budget has no time to fill. */
	rename_often("at-the-end");
	_exit(0);
}

static void body_fork(void)
{
	struct tape t = { 0 };
	double begin = seconds();
	const struct quark_event *ev;
	struct quark_queue qq;
	uint32_t child = 0;
	pid_t pid;
	size_t i;

	open_limited(&qq, LIMIT, 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		child_forks();
	CHECK(waitpid(pid, NULL, 0) == pid);
	tape_wait(&t, &qq, pid, QUARK_EV_REAP);
	check_limited(&qq, &t, pid, seconds() - begin);
	for (i = 0; i < t.n && !child; i++)
		if (t.ev[i]->events == QUARK_EV_FORK &&
		    t.ev[i]->process->proc_ppid == (uint32_t)pid)
			child = t.ev[i]->process->pid;
	CHECK(child);
	i = index_of(&t, child, QUARK_EV_FORK);
	ev = renamed_before(&t, i, pid);
	CHECK(ev);
	CHECK_STR(ev->process->comm, "before-fork");
	CHECK_STR(t.ev[i]->process->comm, "before-fork");
	/* Its budget is its own. */
	ev = tape_find(&t, child, QUARK_EV_SETPROCTITLE);
	CHECK(ev);
	CHECK_STR(ev->process->comm, "of-the-child");
	ev = tape_find(&t, pid, QUARK_EV_EXIT);
	CHECK_STR(ev->process->comm, "at-the-end");
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_fork(void **state)
{
	in_child(body_fork);
}

static void body_exec(void)
{
	const struct quark_event *ev, *exec;
	struct tape t = { 0 };
	double begin = seconds();
	struct quark_queue qq;
	pid_t pid;

	open_limited(&qq, LIMIT, 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		nobody();
		rename_often("before-exec");
		execl("/bin/true", "true", NULL);
		_exit(1);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	tape_wait(&t, &qq, pid, QUARK_EV_REAP);
	check_limited(&qq, &t, pid, seconds() - begin);
	exec = tape_find(&t, pid, QUARK_EV_EXEC);
	CHECK(exec);
	CHECK_STR(exec->process->comm, "true");
	ev = renamed_before(&t, index_of(&t, pid, QUARK_EV_EXEC), pid);
	CHECK(ev);
	CHECK_STR(ev->process->comm, "before-exec");
	CHECK_INT(ev->process->key.exec_id, exec->process->key.exec_id - 1);
	ev = tape_find(&t, pid, QUARK_EV_EXIT);
	CHECK_STR(ev->process->comm, "true");
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_exec(void **state)
{
	in_child(body_exec);
}

static void child_moves(void)
{
	pid_t pid;
	int i;

	for (i = 0; i < TIMES; i++)
		CHECK(chdir(i & 1 ? "/tmp" : "/usr") == 0);
	CHECK(chdir("/var") == 0);
	pid = fork();
	if (!pid)
		_exit(0);
	waitpid(pid, NULL, 0);
	_exit(0);
}

/* chdir() makes no event, so what is limited shows in what was taken in. */
static void body_chdir(void)
{
	struct quark_queue_stats st;
	const struct quark_event *fork_ev = NULL;
	struct tape t = { 0 };
	struct quark_queue qq;
	pid_t pid;
	size_t i;

	open_limited(&qq, LIMIT, QQ_ID_EVENTS);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid)
		child_moves();
	CHECK(waitpid(pid, NULL, 0) == pid);
	tape_wait(&t, &qq, pid, QUARK_EV_REAP);
	for (i = 0; i < t.n; i++)
		if (t.ev[i]->events == QUARK_EV_FORK &&
		    t.ev[i]->process->proc_ppid == (uint32_t)pid)
			fork_ev = t.ev[i];
	CHECK(fork_ev);
	CHECK_STR(fork_ev->process->cwd, "/var");
	CHECK_STR(tape_find(&t, pid, QUARK_EV_EXIT)->process->cwd, "/var");
	quark_queue_get_stats(&qq, &st);
	CHECK(st.limited >= TIMES - LIMIT * (SECONDS + 2));
	CHECK_INT(st.lost, 0);
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_chdir(void **state)
{
	in_child(body_chdir);
}

/* Without a limit all renames are reported. */
static void body_unlimited(void)
{
	struct quark_queue_stats st;
	struct tape t = { 0 };
	struct quark_queue qq;
	pid_t pid;

	open_limited(&qq, 0, 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		rename_often("last");
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	tape_wait(&t, &qq, pid, QUARK_EV_REAP);
	CHECK_INT(tape_count(&t, pid, QUARK_EV_SETPROCTITLE), TIMES + 1);
	quark_queue_get_stats(&qq, &st);
	CHECK_INT(st.limited, 0);
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_unlimited(void **state)
{
	in_child(body_unlimited);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fork),
		cmocka_unit_test(test_exec),
		cmocka_unit_test(test_chdir),
		cmocka_unit_test(test_unlimited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
