// SPDX-License-Identifier: Apache-2.0
/*
 * libquark's published interface on the running kernel: aggregation, changes of ids
 * and paths, rules, JSON, copies.
 */
#include <sys/fsuid.h>
#include <sys/mount.h>

#include "tests/bpf/place.h"
#include "tests/bpf/quark/test_quark.h"

#define SHORT_HOLD 200

static void defaults(struct quark_queue_attr *attr)
{
	quark_queue_default_attr(attr);
	attr->flags = backend();
	attr->hold_time = SHORT_HOLD;
	attr->cache_grace_time = 1000;
	/* Other processes of a busy host do not shorten the hold time. */
	attr->max_length = 1000000;
}

/*
 * Waits for it. Nothing is read before the record of its end is ripe, so that all its
 * records are read together and its duration does not affect the hold.
 */
static void wait_end(pid_t pid)
{
	CHECK(waitpid(pid, NULL, 0) == pid);
	usleep(50000);
}

static void open_attr(struct quark_queue *qq, struct quark_queue_attr *attr)
{
	if (quark_queue_open(qq, attr) < 0) {
		fprintf(stderr, "open: %s\n", quark_queue_open_error());
		_exit(1);
	}
}

static void open_agg(struct quark_queue *qq, int flags)
{
	struct quark_queue_attr attr;

	defaults(&attr);
	attr.flags |= flags;
	open_attr(qq, &attr);
}

/* A child that does something and then executes /bin/true, or ends with 0. */
static pid_t child(void (*fn)(void), bool exec)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		if (fn)
			fn();
		if (exec)
			execl("/bin/true", "true", NULL);
		_exit(exec ? 99 : 0);
	}
	wait_end(pid);
	return pid;
}

static void body_one_life(void)
{
	char *argv[] = { "sh", "-c", "exit 3", "a b", NULL };
	char *env[] = { "A=b", "C=d e", NULL };
	const struct quark_process *p;
	struct quark_queue_stats st;
	struct tape t = { 0 };
	struct quark_queue qq;
	struct quark_event *ev;
	char cgroup[4096] = "";
	pid_t pid;

	open_agg(&qq, 0);
	p = quark_process_lookup(&qq, getpid());
	CHECK(p && p->cgroup);
	strcpy(cgroup, p->cgroup);
	CHECK(posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, env) == 0);
	wait_end(pid);
	ev = tape_wait(&t, &qq, pid, QUARK_EV_EXIT);
	CHECK_INT(ev->events, QUARK_EV_FORK | QUARK_EV_EXEC | QUARK_EV_EXIT);
	CHECK_INT(tape_count(&t, pid, ~0ULL), 1);
	p = ev->process;
	CHECK_INT(p->proc_ppid, getpid());
	CHECK_INT(p->proc_uid, getuid());
	CHECK_INT(p->proc_gid, getgid());
	CHECK_STR(p->comm, "sh");
	CHECK(p->exe && p->exe[0] == '/');
	CHECK_INT(p->cmdline_len, sizeof("sh\0-c\0exit 3\0a b"));
	CHECK(!memcmp(p->cmdline, "sh\0-c\0exit 3\0a b", p->cmdline_len));
	CHECK_INT(p->env_len, sizeof("A=b\0C=d e"));
	CHECK(!memcmp(p->env, "A=b\0C=d e", p->env_len));
	CHECK_STR(p->cgroup, cgroup);
	CHECK(p->cwd && p->cwd[0] == '/');
	CHECK(p->flags & QUARK_F_EXIT);
	CHECK_INT(p->exit_code, 3);
	CHECK(p->proc_time_boot <= ev->time && ev->time < p->exit_time_event);
	quark_queue_get_stats(&qq, &st);
	CHECK(st.aggregations >= 2);
	CHECK_INT(st.backend, backend());
	CHECK_INT(st.lost, 0);
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_one_life(void **state)
{
	in_child(body_one_life);
}

static void set_uid(void)
{
	CHECK(setgid(12345) == 0);
	CHECK(setuid(54321) == 0);
}

static void set_sid(void)
{
	CHECK(setsid() > 0);
}

static void body_ids(void)
{
	struct tape t = { 0 };
	struct quark_queue qq;
	struct quark_event *ev;
	pid_t pid;

	open_agg(&qq, 0);
	pid = child(set_uid, true);
	/* Different ids at fork and exec: two events. */
	tape_wait(&t, &qq, pid, QUARK_EV_EXIT);
	CHECK_INT(tape_count(&t, pid, ~0ULL), 2);
	ev = tape_find(&t, pid, QUARK_EV_FORK);
	CHECK_INT(ev->events, QUARK_EV_FORK | QUARK_EV_ID_CHANGE);
	CHECK_INT(ev->id_change,
		  QUARK_ID_CHANGE_SETUID | QUARK_ID_CHANGE_SETGID);
	CHECK_INT(ev->process->proc_uid, 54321);
	CHECK_INT(ev->process->proc_egid, 12345);
	CHECK_INT(ev->process->proc_cap_effective, 0);
	ev = tape_find(&t, pid, QUARK_EV_EXEC);
	CHECK_INT(ev->events, QUARK_EV_EXEC | QUARK_EV_EXIT);
	CHECK_INT(ev->process->proc_uid, 54321);

	pid = child(set_sid, false);
	tape_wait(&t, &qq, pid, QUARK_EV_EXIT);
	ev = tape_find(&t, pid, QUARK_EV_ID_CHANGE);
	CHECK(ev != NULL);
	CHECK_INT(ev->id_change, QUARK_ID_CHANGE_SETSID);
	CHECK_INT(ev->process->proc_sid, pid);
	CHECK_INT(ev->process->proc_pgid, pid);
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_ids(void **state)
{
	in_child(body_ids);
}

/* Until the cache's record of this process has that directory. */
static void wait_cwd(struct quark_queue *qq, const char *cwd)
{
	const struct quark_process *p;
	double end = seconds() + 120;

	do {
		CHECK(seconds() < end);
		while (quark_queue_get_event(qq))
			;
		CHECK(quark_queue_block(qq) == 0);
		p = quark_process_lookup(qq, getpid());
		CHECK(p != NULL);
	} while (!p->cwd || strcmp(p->cwd, cwd));
}

static void body_cwd(void)
{
	struct quark_queue qq;
	int fd;

	open_agg(&qq, 0);
	CHECK(chdir("/usr/lib") == 0);
	wait_cwd(&qq, "/usr/lib");
	fd = open("/usr", O_RDONLY | O_DIRECTORY);
	CHECK(fd >= 0 && fchdir(fd) == 0);
	close(fd);
	wait_cwd(&qq, "/usr");
	quark_queue_close(&qq);
}

static void test_cwd(void **state)
{
	in_child(body_cwd);
}

/* Until the cached process satisfies 'is', with a value. */
static const struct quark_process *
wait_cached(struct quark_queue *qq, pid_t pid,
	    bool (*is)(const struct quark_process *, uint32_t), uint32_t value)
{
	const struct quark_process *p;
	struct tape t = { 0 };
	double end = seconds() + 120;

	do {
		CHECK(seconds() < end);
		CHECK(quark_queue_block(qq) == 0);
		tape_read(&t, qq);
		p = quark_process_lookup(qq, pid);
	} while (!p || !is(p, value));
	tape_fini(&t);
	return p;
}

static uint32_t inum(const char *name)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/self/ns/%s", name);
	CHECK(stat(path, &st) == 0);
	return st.st_ino;
}

static bool in_uts(const struct quark_process *p, uint32_t ino)
{
	return p->proc_uts_inonum == ino;
}

/* unshare(2) and setns(2): no event, but in the cache at once. */
static void body_namespaces(void)
{
	uint32_t before = inum("uts"), after;
	int fd = open("/proc/self/ns/uts", O_RDONLY);
	struct quark_queue qq;

	CHECK(fd >= 0);
	open_agg(&qq, 0);
	CHECK_INT(quark_process_lookup(&qq, getpid())->proc_uts_inonum, before);
	CHECK(unshare(CLONE_NEWUTS) == 0);
	after = inum("uts");
	CHECK(after != before);
	wait_cached(&qq, getpid(), in_uts, after);
	CHECK(setns(fd, CLONE_NEWUTS) == 0);
	wait_cached(&qq, getpid(), in_uts, before);
	close(fd);
	quark_queue_close(&qq);
}

static void test_namespaces(void **state)
{
	if (backend() != QQ_EBPF) /* see LIMITS of quark(7) */
		skip();
	in_child(body_namespaces);
}

static bool child_of(const struct quark_process *p, uint32_t ppid)
{
	return p->proc_ppid == ppid;
}

/* This process is a subreaper; the child of its child becomes its own. */
static void body_reparent(void)
{
	struct quark_queue qq;
	pid_t pid, kid;
	int fd[2];

	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	open_agg(&qq, 0);
	CHECK(pipe(fd) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		kid = fork();
		if (kid == 0)
			for (;;)
				pause();
		CHECK(write(fd[1], &kid, sizeof(kid)) == sizeof(kid));
		pause();
	}
	CHECK(read(fd[0], &kid, sizeof(kid)) == sizeof(kid));
	wait_cached(&qq, kid, child_of, pid);
	kill(pid, SIGKILL);
	wait_end(pid);
	wait_cached(&qq, kid, child_of, getpid());
	kill(kid, SIGKILL);
	wait_end(kid);
	close(fd[0]);
	close(fd[1]);
	quark_queue_close(&qq);
}

static void test_reparent(void **state)
{
	in_child(body_reparent);
}

/* A child of fork(2) gets no events and removes none. */
static void body_forked(void)
{
	const struct quark_process *p;
	struct tape t = { 0 };
	struct quark_queue qq;
	pid_t pid, life;

	open_agg(&qq, 0);
	life = child(NULL, false);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		CHECK(!quark_queue_get_event(&qq) && errno == ECHILD);
		CHECK(quark_queue_block(&qq) == -1 && errno == ECHILD);
		quark_queue_close(&qq);
		_exit(0);
	}
	wait_end(pid);
	p = tape_wait(&t, &qq, life, QUARK_EV_EXIT)->process;
	CHECK(p->flags & QUARK_F_PROC);
	p = tape_wait(&t, &qq, pid, QUARK_EV_EXIT)->process;
	CHECK_INT(p->exit_code, 0);
	/* New ones too: the child's close has not closed the queue. */
	life = child(NULL, true);
	tape_wait(&t, &qq, life, QUARK_EV_EXIT);
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_forked(void **state)
{
	in_child(body_forked);
}

/* Where a cgroup can be made: a hierarchy that libquark reads. */
static bool make_cgroup(char *dir, size_t len)
{
	static const char *const options[] = { "memory", "pids", NULL };
	char mnt[] = "/tmp/quark-cgroup-XXXXXX";
	int i, ret = -1;

	CHECK(mkdtemp(mnt) != NULL);
	ret = mount("cgroup2", mnt, "cgroup2", 0, NULL);
	for (i = 0; !ret || options[i]; i++) {
		if (!ret) {
			snprintf(dir, len, "%s/quark-test-%d", mnt, getpid());
			if (mkdir(dir, 0755) == 0)
				return true;
			CHECK(umount(mnt) == 0);
			ret = -1;
			if (!options[i])
				break;
		}
		ret = mount("cgroup", mnt, "cgroup", 0, options[i]);
	}
	CHECK(rmdir(mnt) == 0);
	return false;
}

static void write_pid(const char *dir, const char *up, pid_t pid)
{
	char path[512], text[16];
	int fd;

	snprintf(path, sizeof(path), "%s%s/cgroup.procs", dir, up);
	snprintf(text, sizeof(text), "%d", pid);
	fd = open(path, O_WRONLY);
	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	close(fd);
}

/* Until the cache's record of it has that cgroup. */
static void wait_cgroup(struct quark_queue *qq, struct tape *t, pid_t pid,
			const char *cgroup)
{
	const struct quark_process *p;
	double end = seconds() + 120;

	do {
		CHECK(seconds() < end);
		CHECK(quark_queue_block(qq) == 0);
		tape_read(t, qq);
		p = quark_process_lookup(qq, pid);
	} while (!p || !p->cgroup || strcmp(p->cgroup, cgroup));
}

static void body_cgroup(void)
{
	struct tape t = { 0 };
	struct quark_queue qq;
	struct quark_event *ev;
	char dir[256], want[64], *mnt;
	pid_t pid;
	int fds[2];

	CHECK(place_own_mounts() == 0);
	CHECK(make_cgroup(dir, sizeof(dir)));
	open_agg(&qq, 0);
	CHECK(pipe(fds) == 0);
	pid = fork();
	if (pid == 0) {
		char c;

		CHECK(read(fds[0], &c, 1) == 1);
		_exit(0);
	}
	write_pid(dir, "", pid);
	/* The KPROBE backend reads the process that was moved. */
	snprintf(want, sizeof(want), "/quark-test-%d", getpid());
	wait_cgroup(&qq, &t, pid, want);
	CHECK(write(fds[1], "x", 1) == 1);
	CHECK(waitpid(pid, NULL, 0) == pid);
	ev = tape_wait(&t, &qq, pid, QUARK_EV_EXIT);
	CHECK_STR(ev->process->cgroup, want);
	close(fds[0]);
	close(fds[1]);
	CHECK(rmdir(dir) == 0);
	mnt = dir;
	*strrchr(mnt, '/') = '\0';
	CHECK(umount(mnt) == 0);
	CHECK(rmdir(mnt) == 0);
	tape_fini(&t);
	quark_queue_close(&qq);
}

/* Moved after its fork: seen without any exec. */
static void test_cgroup(void **state)
{
	in_child(body_cgroup);
}

static void body_min_agg(void)
{
	struct quark_queue_attr attr;
	struct tape t = { 0 };
	struct quark_queue qq;
	pid_t pid;

	defaults(&attr);
	attr.flags |= QQ_MIN_AGG;
	attr.hold_time = 10;
	open_attr(&qq, &attr);
	pid = child(NULL, true);
	tape_wait(&t, &qq, pid, QUARK_EV_EXIT);
	CHECK_INT(tape_count(&t, pid, ~0ULL), 3);
	CHECK_INT(tape_find(&t, pid, QUARK_EV_FORK)->events, QUARK_EV_FORK);
	CHECK_INT(tape_find(&t, pid, QUARK_EV_EXEC)->events, QUARK_EV_EXEC);
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_min_agg(void **state)
{
	in_child(body_min_agg);
}

static int asked;

static int never(struct quark_queue *qq, struct raw_event *parent,
		 struct raw_event *joining)
{
	asked++;
	return 0;
}

static void body_matrix(void)
{
	struct tape t = { 0 };
	struct quark_queue qq;
	pid_t pid;

	open_agg(&qq, 0);
	CHECK_INT(quark_queue_set_agg_matrix(&qq, RAW_INVALID, RAW_EXEC, NULL),
		  0);
	CHECK_INT(quark_queue_set_agg_matrix(&qq, RAW_EXEC, RAW_NUM_TYPES,
					     NULL),
		  -1);
	CHECK_INT(errno, EINVAL);
	CHECK_INT(quark_queue_set_agg_matrix(&qq, RAW_WAKE_UP_NEW_TASK,
					     RAW_EXEC, never),
		  0);
	CHECK_INT(quark_queue_set_agg_matrix(&qq, RAW_EXEC, RAW_EXIT_THREAD,
					     NULL),
		  0);
	pid = child(NULL, true);
	tape_wait(&t, &qq, pid, QUARK_EV_EXIT);
	CHECK_INT(tape_count(&t, pid, ~0ULL), 3);
	CHECK(asked > 0);
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_matrix(void **state)
{
	in_child(body_matrix);
}

static void *nothing(void *arg)
{
	prctl(PR_SET_NAME, "quark-thread");
	return NULL;
}

static void start_thread(void)
{
	pthread_t th;

	CHECK(pthread_create(&th, NULL, nothing, NULL) == 0);
	CHECK(pthread_join(th, NULL) == 0);
}

static void body_thread_events(void)
{
	struct tape t = { 0 };
	struct quark_queue qq;
	struct quark_event *ev = NULL;
	pid_t pid;
	size_t i;

	open_agg(&qq, QQ_THREAD_EVENTS);
	pid = child(start_thread, false);
	tape_wait(&t, &qq, pid, QUARK_EV_EXIT);
	/* The process's came, so the thread's has been held long enough too. */
	while (!ev) {
		CHECK(quark_queue_block(&qq) == 0);
		tape_read(&t, &qq);
		for (i = 0; i < t.n; i++)
			if (t.ev[i]->process->pid == (uint32_t)pid &&
			    t.ev[i]->tid != (uint32_t)pid)
				ev = t.ev[i];
	}
	CHECK_INT(ev->events,
		  QUARK_EV_FORK | QUARK_EV_SETPROCTITLE | QUARK_EV_EXIT);
	CHECK_INT(ev->group_dead, 0);
	CHECK(strcmp(ev->process->comm, "quark-thread"));
	CHECK(!(ev->process->flags & QUARK_F_EXIT));
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_thread_events(void **state)
{
	in_child(body_thread_events);
}

static void parse_rules(struct quark_ruleset *rs, const char *text)
{
	FILE *f = fmemopen((void *)text, strlen(text), "r");
	char err[256];

	CHECK(f != NULL);
	quark_ruleset_init(rs);
	if (quark_ruleset_parse(rs, f, err, sizeof(err)) < 0) {
		fprintf(stderr, "%s\n", err);
		_exit(1);
	}
	fclose(f);
}

static void run_shell(void)
{
	CHECK(system("/bin/true; exit 0") == 0);
}

static void body_rules(void)
{
	struct quark_queue_attr attr;
	struct quark_ruleset rs;
	struct tape t = { 0 };
	struct quark_queue qq;
	struct quark_event *ev;
	char text[256];
	pid_t dropped, kept;
	size_t i;
	int n = 0;

	snprintf(text, sizeof(text),
		 "poison 6 on process.comm quark-poison\n"
		 "drop on process.exe */true, process.ppid %d\n"
		 "pass on process.ppid %d\n"
		 "pass on poison 4\n"
		 "drop on any\n",
		 getpid(), getpid());
	parse_rules(&rs, text);
	defaults(&attr);
	attr.ruleset = &rs;
	open_attr(&qq, &attr);
	dropped = child(NULL, true);
	kept = fork();
	if (kept == 0) {
		prctl(PR_SET_NAME, "quark-poison");
		run_shell();
		_exit(0);
	}
	CHECK(waitpid(kept, NULL, 0) == kept);
	ev = tape_wait(&t, &qq, kept, QUARK_EV_EXIT);
	CHECK_INT(ev->process->poison_tag, 6);
	CHECK_INT(tape_count(&t, dropped, ~0ULL), 0);
	/*
	 * It began earlier than its children, so it comes before them. Of all
	 * others of this host only the descendants of the poisoned come.
	 */
	while (!n) {
		CHECK(quark_queue_block(&qq) == 0);
		tape_read(&t, &qq);
		for (i = 0; i < t.n; i++)
			n += t.ev[i]->process->proc_ppid == (uint32_t)kept;
	}
	for (i = 0; i < t.n; i++)
		CHECK(t.ev[i]->process->proc_ppid == (uint32_t)getpid() ||
		      t.ev[i]->process->poison_tag == 6);
	tape_fini(&t);
	quark_queue_close(&qq);
	quark_ruleset_clear(&rs);
}

static void test_rules(void **state)
{
	in_child(body_rules);
}

static void crash(void)
{
	struct rlimit none = { 0, 0 };

	setrlimit(RLIMIT_CORE, &none);
	raise(SIGKILL);
}

static void body_ecs(void)
{
	const struct quark_passwd *pw;
	const struct quark_group *gr;
	struct tape t = { 0 };
	struct quark_queue qq;
	struct quark_event *ev;
	char *json, want[128];
	size_t len;
	pid_t pid;

	open_agg(&qq, QQ_ENTRY_LEADER);
	pid = child(crash, false);
	ev = tape_wait(&t, &qq, pid, QUARK_EV_EXIT);
	CHECK(quark_event_to_ecs(&qq, ev, &json, &len) == 0);
	CHECK_INT(strlen(json), len);
	CHECK(!strchr(json, '\n'));
	CHECK(!strncmp(json, "{\"@timestamp\":\"2", 16));
	snprintf(want, sizeof(want),
		 "\"process\":{\"pid\":%d,\"entity_id\":\"%s\"", pid,
		 ev->process->proc_entity_id);
	CHECK(strstr(json, want));
	snprintf(want, sizeof(want), "\"parent\":{\"pid\":%d,\"entity_id\":\"",
		 getpid());
	CHECK(strstr(json, want));
	CHECK(strstr(json, "\"exit_code\":137"));
	CHECK(strstr(json, "\"quark\":{\"signal\":9,\"core_dumped\":false"));
	CHECK(strstr(json, "\"type\":[\"start\",\"end\"]"));
	free(json);
	pw = quark_passwd_lookup(&qq, 0);
	CHECK(pw != NULL);
	CHECK_STR(pw->name, "root");
	CHECK(!quark_passwd_lookup(&qq, 4000000000U) && errno == ENOENT);
	gr = quark_group_lookup(&qq, 0);
	CHECK(gr != NULL);
	CHECK_STR(gr->name, "root");
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_ecs(void **state)
{
	in_child(body_ecs);
}

static void body_older(void)
{
	struct quark_event evs[4], first;
	struct quark_queue qq;
	double end = seconds() + 120;
	pid_t pid;
	int n, i, seen = 0, fd;

	CHECK(quark_init() == 0);
	open_agg(&qq, 0);
	CHECK_INT(quark_queue_get_fds(&qq, &fd, 1), 1);
	CHECK_INT(fd, quark_queue_get_epollfd(&qq));
	pid = child(NULL, true);
	while (!seen) {
		CHECK(seconds() < end);
		n = quark_queue_get_events(&qq, evs, 4);
		CHECK(n >= 0 && n <= 4);
		/* All of them stay good, until the next call. */
		for (i = 0; i < n; i++) {
			CHECK(evs[i].process->pid > 0);
			CHECK(strlen(evs[i].process->proc_entity_id) == 16);
			seen += evs[i].process->pid == (uint32_t)pid &&
				evs[i].events & QUARK_EV_EXIT;
		}
		if (!n)
			CHECK(quark_queue_block(&qq) == 0);
	}
	CHECK_INT(quark_event_lookup(&qq, &first, getpid()), 0);
	CHECK_INT(first.process->pid, getpid());
	CHECK_INT(quark_event_lookup(&qq, &first, 1 << 30), -1);
	CHECK_INT(quark_queue_get_events(&qq, evs, 0), -1);
	quark_queue_close(&qq);
	quark_close();
}

static void test_older(void **state)
{
	in_child(body_older);
}

static void body_btf(void)
{
	struct quark_btf *qb = quark_btf_open();

	CHECK(qb != NULL);
	CHECK(quark_btf_offset(qb, "task_struct.comm") > 0);
	CHECK_INT(quark_btf_offset(qb, "dentry.d_name.len"),
		  quark_btf_offset(qb, "dentry.d_name") + 4);
	CHECK_INT(quark_btf_offset(qb, "list_head.prev"), sizeof(void *));
	CHECK_INT(quark_btf_offset(qb, "task_struct.no_such"), -1);
	CHECK_INT(errno, ENOENT);
	CHECK_INT(quark_btf_offset(qb, "no_such.comm"), -1);
	CHECK_INT(quark_btf_offset(qb, "task_struct"), -1);
	CHECK_INT(quark_btf_offset(qb, "task_struct.mm.pgd"), -1);
	CHECK_INT(quark_btf_offset(qb, "task_struct.in_execve"), -1);
	CHECK_INT(errno, EINVAL);
	quark_btf_close(qb);
	CHECK(!quark_btf_open2("/dev/null", "x"));
	CHECK(errno != 0);
}

static void test_btf(void **state)
{
	in_child(body_btf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_life),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_cwd),
		cmocka_unit_test(test_namespaces),
		cmocka_unit_test(test_reparent),
		cmocka_unit_test(test_forked),
		cmocka_unit_test(test_cgroup),
		cmocka_unit_test(test_min_agg),
		cmocka_unit_test(test_matrix),
		cmocka_unit_test(test_thread_events),
		cmocka_unit_test(test_rules),
		cmocka_unit_test(test_ecs),
		cmocka_unit_test(test_older),
		cmocka_unit_test(test_btf),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
