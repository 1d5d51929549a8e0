// SPDX-License-Identifier: Apache-2.0
/* libquark's raw stream on the running kernel: processes of all kinds. */
#include "tests/bpf/quark/test_quark.h"

static bool same_process(const struct quark_process *a,
			 const struct quark_process *b)
{
	return a->pid == b->pid &&
	       a->key.start_boottime == b->key.start_boottime &&
	       !strcmp(a->proc_entity_id, b->proc_entity_id);
}

static void check_forked(const struct quark_event *ev,
			 const struct quark_process *self)
{
	const struct quark_process *p = ev->process;

	CHECK_INT(p->proc_ppid, getpid());
	CHECK_INT(p->parent_key.pid, getpid());
	CHECK_INT(p->parent_key.start_boottime, self->key.start_boottime);
	CHECK_INT(p->parent_key.exec_id, self->key.exec_id);
	CHECK_INT(ev->fork_key.start_boottime, self->key.start_boottime);
	CHECK_INT(p->key.exec_id, self->key.exec_id);
	CHECK_INT(ev->clone_flags & 0xff, 0); /* the signal is not in them */
	/* What it has of its parent. */
	CHECK_STR(p->exe, self->exe);
	CHECK_STR(p->cwd, self->cwd);
	CHECK_STR(p->comm, self->comm);
	CHECK_INT(p->cmdline_len, self->cmdline_len);
}

static void check_executed(const struct quark_event *ev,
			   const struct quark_process *self)
{
	static const char *const want[] = { "sh", "-c", "exit 3", "a b" };
	const struct quark_process *p = ev->process;
	struct quark_cmdline_iter it;
	struct stat st;
	char exe[4096];
	size_t i;

	CHECK_INT(p->key.exec_id, self->key.exec_id + 1);
	CHECK(realpath("/bin/sh", exe) != NULL);
	CHECK_STR(p->exe, exe);
	CHECK_STR(p->comm, "sh");
	CHECK_STR(p->cwd, "/usr/lib");
	CHECK_STR(p->cgroup, self->cgroup);
	CHECK(p->env == NULL);
	quark_cmdline_iter_init(&it, p->cmdline, p->cmdline_len);
	for (i = 0; i < 4; i++)
		CHECK_STR(quark_cmdline_iter_next(&it), want[i]);
	CHECK(quark_cmdline_iter_next(&it) == NULL);
	CHECK_INT(p->proc_uid, getuid());
	CHECK_INT(p->proc_egid, getegid());
	CHECK_INT(p->proc_sid, getsid(0));
	CHECK_INT(p->proc_pgid, getpgid(0));
	CHECK_INT(p->proc_mnt_inonum, self->proc_mnt_inonum);
	CHECK(stat(exe, &st) == 0);
	CHECK_INT(p->exe_ident.ino, st.st_ino);
	CHECK_INT(p->exe_ident.dev, st.st_dev);
	CHECK_INT(p->exe_ident.size, st.st_size);
	CHECK_INT(p->exe_ident.ctime_ns,
		  st.st_ctim.tv_sec * 1000000000LL + st.st_ctim.tv_nsec);
}

static void body_life(void)
{
	struct quark_event *fork_ev, *exec_ev, *exit_ev, *reap_ev;
	const struct quark_process *p;
	struct quark_process *self;
	struct timespec now, wall;
	struct tape t = { 0 };
	struct quark_queue qq;
	pid_t pid;

	open_raw(&qq, 0);
	p = quark_process_lookup(&qq, getpid());
	CHECK(p != NULL);
	CHECK(p->flags & QUARK_F_PROC);
	self = quark_process_dup(p);
	pid = fork();
	if (pid == 0) {
		CHECK(chdir("/usr/lib") == 0);
		execl("/bin/sh", "sh", "-c", "exit 3", "a b", NULL);
		_exit(99);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	reap_ev = tape_wait(&t, &qq, pid, QUARK_EV_REAP);
	fork_ev = tape_find(&t, pid, QUARK_EV_FORK);
	exec_ev = tape_find(&t, pid, QUARK_EV_EXEC);
	exit_ev = tape_find(&t, pid, QUARK_EV_EXIT);
	CHECK(fork_ev && exec_ev && exit_ev);
	CHECK(fork_ev->boottime < exec_ev->boottime);
	CHECK(exec_ev->boottime < exit_ev->boottime);
	CHECK(exit_ev->boottime < reap_ev->boottime);
	CHECK(fork_ev->process->key.start_boottime <= fork_ev->boottime);
	CHECK(same_process(fork_ev->process, exec_ev->process));
	CHECK(same_process(fork_ev->process, exit_ev->process));
	CHECK(same_process(fork_ev->process, reap_ev->process));
	check_forked(fork_ev, self);
	check_executed(exec_ev, self);
	CHECK(!(exec_ev->process->flags & QUARK_F_EXIT));
	CHECK(exit_ev->process->flags & QUARK_F_EXIT);
	CHECK_INT(exit_ev->process->exit_code, 3);
	CHECK_INT(exit_ev->process->wait_status, 3 << 8);
	CHECK_INT(exit_ev->process->exit_boottime, exit_ev->boottime);
	CHECK_INT(exit_ev->group_dead, 1);
	CHECK(exit_ev->maxrss > 100000);
	CHECK(exit_ev->cpu_time <= reap_ev->cpu_time);
	/* Wall time: now, give or take a second. */
	clock_gettime(CLOCK_BOOTTIME, &now);
	clock_gettime(CLOCK_REALTIME, &wall);
	CHECK(llabs((long long)(wall.tv_sec - now.tv_sec) -
		    (long long)((exit_ev->time - exit_ev->boottime) /
				1000000000)) <= 1);
	/* Within the grace time it can still be looked up. */
	p = quark_process_lookup(&qq, pid);
	CHECK(p && p->flags & QUARK_F_EXIT && p->exit_code == 3);
	errno = 0;
	CHECK(!quark_process_lookup(&qq, 1 << 30) && errno == ESRCH);
	free(self);
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_life(void **state)
{
	in_child(body_life);
}

static void body_signals(void)
{
	static const int signals[] = { SIGKILL, SIGSEGV, SIGTERM, SIGABRT };
	struct tape t = { 0 };
	struct quark_queue qq;
	struct quark_event *ev;
	size_t i;

	open_raw(&qq, 0);
	for (i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			signal(signals[i], SIG_DFL);
			raise(signals[i]);
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid);
		ev = tape_wait(&t, &qq, pid, QUARK_EV_REAP);
		CHECK_INT(ev->process->wait_status, status);
		ev = tape_find(&t, pid, QUARK_EV_EXIT);
		CHECK(ev != NULL);
		CHECK_INT(ev->process->wait_status, status);
		CHECK_INT(ev->process->wait_status & 0x7f, signals[i]);
		CHECK_INT(ev->process->exit_code, 128 + signals[i]);
	}
	tape_fini(&t);
	quark_queue_close(&qq);
}

/* The raw status, core flag and all, is what the parent gets. */
static void test_signals(void **state)
{
	in_child(body_signals);
}

static void *exec_thread(void *arg)
{
	execl("/bin/true", "true", NULL);
	_exit(99);
}

static void *spin_thread(void *arg)
{
	struct timespec ts = { 0, 20000000 };

	nanosleep(&ts, NULL);
	if (arg)
		_exit(7);
	return NULL;
}

/* Ends alone, after the leader, with a code that is not the process's. */
static void *last_thread(void *arg)
{
	struct timespec ts = { 0, 20000000 };

	nanosleep(&ts, NULL);
	syscall(SYS_exit, 9);
	return NULL;
}

/* Before a leak checker of the parent's has its turn in the child. */
static void leave(void)
{
	_exit(0);
}

/* How a threaded child ends. */
static pid_t threaded(int how)
{
	pid_t pid = fork();
	pthread_t th;

	if (pid)
		return pid;
	if (how == 0) {
		pthread_create(&th, NULL, exec_thread, NULL);
		pause();
	}
	if (how == 3) {
		pthread_create(&th, NULL, last_thread, NULL);
		syscall(SYS_exit, 5);
	}
	CHECK(atexit(leave) == 0);
	pthread_create(&th, NULL, spin_thread, how == 1 ? &th : NULL);
	pthread_exit(NULL);
}

static void body_threads(void)
{
	/* Of the leader's 5 and the last thread's 9, since 6.0 the latter. */
	static const int codes[] = { 0, 7, 0, 9 };
	struct quark_event *reap, *ev;
	struct tape t = { 0 };
	struct quark_queue qq;
	int how, status;
	pid_t pid;

	open_raw(&qq, 0);
	for (how = 0; how < 4; how++) {
		pid = threaded(how);
		CHECK(waitpid(pid, &status, 0) == pid);
		CHECK_INT(WEXITSTATUS(status), codes[how]);
		reap = tape_wait(&t, &qq, pid, QUARK_EV_REAP);
		CHECK_INT(reap->process->wait_status, status);
		CHECK_INT(tape_count(&t, pid, QUARK_EV_FORK), 1);
		CHECK_INT(tape_count(&t, pid, QUARK_EV_EXIT), 1);
		CHECK_INT(tape_count(&t, pid, QUARK_EV_REAP), 1);
		CHECK_INT(tape_count(&t, pid, QUARK_EV_EXEC), how == 0);
		ev = tape_find(&t, pid, QUARK_EV_EXIT);
		CHECK_INT(ev->process->wait_status, status);
		CHECK(same_process(ev->process, reap->process));
		/* The last thread to go is the one that called, or lived on. */
		CHECK((ev->tid != (uint32_t)pid) == (how > 0));
		if (how)
			continue;
		ev = tape_find(&t, pid, QUARK_EV_EXEC);
		CHECK(ev->tid != (uint32_t)pid);
		CHECK(same_process(ev->process, reap->process));
		CHECK_INT(
			ev->process->key.exec_id,
			tape_find(&t, pid, QUARK_EV_FORK)->process->key.exec_id +
				1);
	}
	tape_fini(&t);
	quark_queue_close(&qq);
}

/*
 * exec by a thread that is not the leader, exit by such a thread, main's end by
 * pthread_exit: one process each, which ends once, with its last thread.
 */
static void test_threads(void **state)
{
	in_child(body_threads);
}

#define STORM 2000

static int by_start(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/*
 * Each of our children once, of that kind. They were born one after the other;
 * a pid may have come again meanwhile.
 */
static void check_each_once(const struct tape *t, int n, uint64_t kind)
{
	uint64_t *starts = calloc(n, sizeof(*starts));
	const struct quark_process *p;
	int seen = 0, k;
	size_t i;

	for (i = 0; i < t->n; i++) {
		p = t->ev[i]->process;
		if (!p || p->parent_key.pid != (uint32_t)getpid() ||
		    t->ev[i]->events != kind)
			continue;
		CHECK(seen < n);
		starts[seen++] = p->key.start_boottime;
	}
	CHECK_INT(seen, n);
	qsort(starts, n, sizeof(*starts), by_start);
	for (k = 1; k < n; k++)
		CHECK(starts[k - 1] < starts[k]);
	free(starts);
}

static int count_own(const struct tape *t, uint64_t kind)
{
	int n = 0;
	size_t i;

	for (i = 0; i < t->n; i++)
		n += t->ev[i]->events == kind && t->ev[i]->process &&
		     t->ev[i]->process->parent_key.pid == (uint32_t)getpid();
	return n;
}

static void body_storm(void)
{
	static const uint64_t kinds[] = { QUARK_EV_FORK, QUARK_EV_EXEC,
					  QUARK_EV_EXIT, QUARK_EV_REAP };
	struct quark_queue_stats st;
	struct tape t = { 0 };
	double end = seconds() + 120;
	struct quark_queue qq;
	pid_t pid;
	size_t i;

	open_raw(&qq, 0);
	for (i = 0; i < STORM; i++) {
		pid = spawn_true();
		CHECK(waitpid(pid, NULL, 0) == pid);
		if (i % 100 == 0)
			tape_read(&t, &qq);
	}
	/* Reaps come when the kernel frees, inferred ones a grace time later. */
	while (count_own(&t, QUARK_EV_REAP) < STORM) {
		CHECK(seconds() < end);
		CHECK(quark_queue_block(&qq) == 0);
		tape_read(&t, &qq);
	}
	for (i = 0; i < 4; i++)
		check_each_once(&t, STORM, kinds[i]);
	quark_queue_get_stats(&qq, &st);
	CHECK_INT(st.lost, 0);
	CHECK_INT(st.late, 0);
	CHECK(st.insertions >= 4 * STORM);
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_storm(void **state)
{
	in_child(body_storm);
}

/* pid and entity id of everything in the cache, into a table by pid. */
static int snapshot(char (*ids)[17], int max)
{
	const struct quark_process *p;
	struct quark_process_iter it;
	struct quark_queue qq;
	int n = 0;

	open_raw(&qq, 0);
	quark_process_iter_init(&it, &qq);
	while ((p = quark_process_iter_next(&it))) {
		n++;
		CHECK(strlen(p->proc_entity_id) == 16);
		CHECK(p->key.start_boottime != 0 || p->pid == 1);
		if (p->pid < (uint32_t)max)
			strcpy(ids[p->pid], p->proc_entity_id);
	}
	quark_queue_close(&qq);
	return n;
}

static void body_entity_ids(void)
{
	enum {
		MAX = 1 << 16
	};
	char(*a)[17] = calloc(MAX, 17), (*b)[17] = calloc(MAX, 17);
	int same = 0, other = 0, i;

	CHECK(a && b);
	CHECK(snapshot(a, MAX) > 2);
	CHECK(snapshot(b, MAX) > 2);
	for (i = 0; i < MAX; i++) {
		if (!a[i][0] || !b[i][0])
			continue;
		/* A pid may be another process's by now, of a busy host. */
		if (strcmp(a[i], b[i]))
			other++;
		else
			same++;
	}
	CHECK_STR(a[getpid()], b[getpid()]);
	CHECK_STR(a[getppid()], b[getppid()]);
	CHECK(other <= same);
	CHECK(a[getpid()][0] && a[getppid()][0]);
	CHECK(same > 2);
	free(a);
	free(b);
}

/* One process has one id, in any queue, at any time. */
static void test_entity_ids(void **state)
{
	in_child(body_entity_ids);
}

static void body_rename(void)
{
	struct tape t = { 0 };
	struct quark_queue qq;
	struct quark_event *ev;
	pid_t pid;

	open_raw(&qq, 0);
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_NAME, "quark-renamed");
		execl("/bin/true", "true", NULL);
		_exit(99);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	tape_wait(&t, &qq, pid, QUARK_EV_REAP);
	/* An exec's change of name is no rename. */
	CHECK_INT(tape_count(&t, pid, QUARK_EV_SETPROCTITLE), 1);
	ev = tape_find(&t, pid, QUARK_EV_SETPROCTITLE);
	CHECK_STR(ev->process->comm, "quark-renamed");
	CHECK_INT(ev->process->key.exec_id,
		  tape_find(&t, pid, QUARK_EV_FORK)->process->key.exec_id);
	/* The fork's record has not changed. */
	CHECK(strcmp(tape_find(&t, pid, QUARK_EV_FORK)->process->comm,
		     "quark-renamed"));
	CHECK_STR(tape_find(&t, pid, QUARK_EV_EXEC)->process->comm, "true");
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_rename(void **state)
{
	in_child(body_rename);
}

static void body_clone_parent(void)
{
	struct tape t = { 0 };
	struct quark_queue qq;
	struct quark_event *ev;
	int pipefd[2], status;
	pid_t pid, sibling;

	CHECK(pipe(pipefd) == 0);
	open_raw(&qq, 0);
	pid = fork();
	if (pid == 0) {
		sibling =
			syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
		if (sibling == 0)
			_exit(5);
		CHECK(write(pipefd[1], &sibling, sizeof(sibling)) ==
		      sizeof(sibling));
		_exit(0);
	}
	CHECK(read(pipefd[0], &sibling, sizeof(sibling)) == sizeof(sibling));
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK(waitpid(sibling, &status, 0) == sibling);
	CHECK_INT(WEXITSTATUS(status), 5);
	tape_wait(&t, &qq, sibling, QUARK_EV_REAP);
	ev = tape_find(&t, sibling, QUARK_EV_FORK);
	CHECK_INT(ev->process->parent_key.pid, getpid());
	CHECK_INT(ev->fork_key.pid, pid);
	CHECK(ev->clone_flags & CLONE_PARENT);
	close(pipefd[0]);
	close(pipefd[1]);
	tape_fini(&t);
	quark_queue_close(&qq);
}

/* The parent is the process that waits; strings come from the caller. */
static void test_clone_parent(void **state)
{
	in_child(body_clone_parent);
}

static void body_long_args(void)
{
	/* A probe's record holds less, of a process that is gone. */
	const size_t most = backend() == QQ_KPROBE ? 2048 : 20480;
	char *arg = malloc(30001);
	struct tape t = { 0 };
	struct quark_queue qq;
	struct quark_event *ev;
	pid_t pid;

	CHECK(arg != NULL);
	memset(arg, 'x', 30000);
	arg[30000] = '\0';
	open_raw(&qq, 0);
	pid = fork();
	if (pid == 0) {
		execl("/bin/true", "true", arg, NULL);
		_exit(99);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	tape_wait(&t, &qq, pid, QUARK_EV_REAP);
	ev = tape_find(&t, pid, QUARK_EV_EXEC);
	CHECK(ev->process->x_flags & QUARK_X_ARGS_CUT);
	CHECK_INT(ev->process->cmdline_len, most);
	CHECK_STR(ev->process->cmdline, "true");
	CHECK(ev->process->cmdline[most - 1] == 'x');
	CHECK(!(tape_find(&t, pid, QUARK_EV_FORK)->process->x_flags &
		QUARK_X_ARGS_CUT));
	free(arg);
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_long_args(void **state)
{
	in_child(body_long_args);
}

static void body_zombie(void)
{
	struct quark_queue_attr attr;
	struct tape t = { 0 };
	struct quark_queue qq;
	pid_t pid;
	int i;

	quark_queue_default_attr(&attr);
	attr.flags = QQ_EBPF | QQ_NO_AGG;
	attr.max_env = 0;
	attr.cache_grace_time = 0;
	CHECK(quark_queue_open(&qq, &attr) == 0);
	pid = fork();
	if (pid == 0)
		_exit(4);
	tape_wait(&t, &qq, pid, QUARK_EV_EXIT);
	for (i = 0; i < 5; i++) {
		usleep(100000);
		tape_read(&t, &qq);
	}
	CHECK_INT(tape_count(&t, pid, QUARK_EV_REAP), 0);
	/* Lookups do not find it any more; its reap still has its record. */
	CHECK(!quark_process_lookup(&qq, pid));
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK_INT(tape_wait(&t, &qq, pid, QUARK_EV_REAP)->process->exit_code,
		  4);
	usleep(300000);
	tape_read(&t, &qq);
	CHECK_INT(tape_count(&t, pid, QUARK_EV_REAP), 1);
	tape_fini(&t);
	quark_queue_close(&qq);
}

/* Not waited for, without a grace time: looked up rarely, one event. */
static void test_zombie(void **state)
{
	in_child(body_zombie);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_storm),
		cmocka_unit_test(test_entity_ids),
		cmocka_unit_test(test_rename),
		cmocka_unit_test(test_clone_parent),
		cmocka_unit_test(test_long_args),
		cmocka_unit_test(test_zombie),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
