// SPDX-License-Identifier: Apache-2.0
/*
 * Both backends of libquark with the same load: the same events with the same
 * fields, except those that quark(7) lists. If the kernel has no kprobe events, two
 * queues of one backend are compared, without exceptions.
 */
#include <sys/prctl.h>

#include "tests/bpf/quark/test_quark.h"

#define CGROUPS "/sys/fs/cgroup"
#define HANG 60

/* --- fields ------------------------------------------------------------------- */

struct field {
	const char *name;
	size_t offset, size; /* size 0: a string */
	uint64_t not_of; /* kinds that may differ between the backends */
};

#define E(member, kinds)                                                 \
	{                                                                \
		"event." #member, offsetof(struct quark_event, member),  \
			sizeof(((struct quark_event *)0)->member), kinds \
	}
#define P(member)                                                      \
	{                                                              \
#member, offsetof(struct quark_process, member),       \
			sizeof(((struct quark_process *)0)->member), 0 \
	}
#define S(member)                                                     \
	{                                                             \
#member, offsetof(struct quark_process, member), 0, 0 \
	}

static const struct field event_fields[] = {
	E(events, 0),
	E(tid, 0),
	E(id_change, 0),
	E(clone_flags, 0),
	E(fork_key.pid, 0),
	E(fork_key.exec_id, 0),
	E(fork_key.start_boottime, 0),
	E(cpu_time, QUARK_EV_EXIT),
	E(utime, 0),
	E(stime, 0),
	E(maxrss, 0),
	E(minflt, 0),
	E(majflt, 0),
	E(group_dead, 0),
	E(cpu_exact, 0),
};

/* All but proc_time_boot and exit_time_event: each queue has its wall clock. */
static const struct field process_fields[] = {
	P(pid),
	P(flags),
	P(poison_tag),
	P(proc_cap_inheritable),
	P(proc_cap_permitted),
	P(proc_cap_effective),
	P(proc_cap_bset),
	P(proc_cap_ambient),
	P(proc_ppid),
	P(proc_uid),
	P(proc_gid),
	P(proc_suid),
	P(proc_sgid),
	P(proc_euid),
	P(proc_egid),
	P(proc_pgid),
	P(proc_sid),
	P(proc_tty_major),
	P(proc_tty_minor),
	P(proc_entry_leader_type),
	P(proc_entry_leader),
	P(proc_uts_inonum),
	P(proc_ipc_inonum),
	P(proc_mnt_inonum),
	P(proc_net_inonum),
	P(proc_entity_id),
	P(exit_code),
	P(comm),
	S(exe),
	P(cmdline_len),
	S(cwd),
	S(cgroup),
	P(env_len),
	P(key.pid),
	P(key.start_boottime),
	P(key.exec_id),
	P(parent_key.pid),
	P(parent_key.start_boottime),
	P(parent_key.exec_id),
	P(exe_ident.dev),
	P(exe_ident.ino),
	P(exe_ident.ctime_ns),
	P(exe_ident.size),
	P(wait_status),
	P(x_flags),
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static uint64_t number(const void *p, const struct field *f)
{
	uint64_t v = 0;

	memcpy(&v, (const char *)p + f->offset, f->size);
	return v;
}

static const char *string(const void *p, const struct field *f)
{
	const char *s;

	memcpy(&s, (const char *)p + f->offset, sizeof(s));
	return s ? s : "(none)";
}

static int differ(const struct field *f, const void *a, const void *b,
		  const struct quark_event *ev)
{
	if (f->not_of & ev->events)
		return 0;
	if (!f->size) {
		if (!strcmp(string(a, f), string(b, f)))
			return 0;
		fprintf(stderr, "%s: \"%s\" and \"%s\"", f->name, string(a, f),
			string(b, f));
	} else {
		if (!memcmp((const char *)a + f->offset,
			    (const char *)b + f->offset, f->size))
			return 0;
		fprintf(stderr, "%s: %#llx and %#llx", f->name,
			(unsigned long long)(f->size > 8 ? 0 : number(a, f)),
			(unsigned long long)(f->size > 8 ? 0 : number(b, f)));
	}
	fprintf(stderr, " of kind %#llx, pid %u, tid %u\n",
		(unsigned long long)ev->events, ev->process->pid, ev->tid);
	return 1;
}

static int differ_bytes(const char *name, const char *a, const char *b,
			size_t len)
{
	if ((!a && !b) || (a && b && !memcmp(a, b, len)))
		return 0;
	fprintf(stderr, "%s are not the same\n", name);
	return 1;
}

static bool together; /* threads ended at the same moment */

static int compare_event(const struct quark_event *a,
			 const struct quark_event *b)
{
	const struct quark_process *p = a->process, *q = b->process;
	int bad = 0;
	size_t i;

	for (i = 0; i < COUNT(event_fields); i++) {
		/* A reap that was inferred has no account. */
		if (a->events == QUARK_EV_REAP &&
		    !(a->cpu_exact && b->cpu_exact))
			break;
		/*
		 * Before 6.16 EBPF does not know which thread was the last.
		 * Another one still ends, and faults, while this one is read:
		 * the account is compared at the reap.
		 */
		if (a->events == QUARK_EV_EXIT && together &&
		    (!strcmp(event_fields[i].name, "event.tid") ||
		     !strcmp(event_fields[i].name, "event.minflt")))
			continue;
		bad += differ(&event_fields[i], a, b, a);
	}
	for (i = 0; i < COUNT(process_fields); i++)
		bad += differ(&process_fields[i], p, q, a);
	if (p->cmdline_len == q->cmdline_len)
		bad += differ_bytes("arguments", p->cmdline, q->cmdline,
				    p->cmdline_len);
	if (p->env_len == q->env_len)
		bad += differ_bytes("environments", p->env, q->env, p->env_len);
	return bad;
}

/* --- streams -------------------------------------------------------------------- */

struct pair {
	struct quark_queue qq[2];
	struct tape tape[2];
};

static int second(void)
{
	return access("/sys/kernel/tracing/kprobe_events", F_OK) ? QQ_EBPF
								 : QQ_KPROBE;
}

static void pair_open(struct pair *p, int flags)
{
	const int backends[2] = { QQ_EBPF, second() };
	struct quark_queue_attr attr;
	int i;

	memset(p, 0, sizeof(*p));
	for (i = 0; i < 2; i++) {
		quark_queue_default_attr(&attr);
		attr.flags = backends[i] | QQ_NO_AGG | QQ_ID_EVENTS |
			     QQ_ENTRY_LEADER | flags;
		attr.hold_time = 0;
		attr.max_env = 4096;
		if (quark_queue_open(&p->qq[i], &attr) < 0) {
			fprintf(stderr, "%s\n", quark_queue_open_error());
			_exit(1);
		}
	}
}

static void pair_close(struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++) {
		tape_fini(&p->tape[i]);
		quark_queue_close(&p->qq[i]);
	}
}

static void pair_read(struct pair *p)
{
	int i;

	for (i = 0; i < 2; i++)
		tape_read(&p->tape[i], &p->qq[i]);
}

static bool descends(const struct tape *t, uint32_t pid)
{
	const struct quark_event *ev;

	while (pid != (uint32_t)getpid()) {
		ev = tape_find(t, pid, QUARK_EV_FORK);
		if (!ev || pid == ev->fork_key.pid)
			return false;
		pid = ev->fork_key.pid;
	}
	return true;
}

/* Of one process: by kind, then by thread, then as they came. */
static int by_kind(const void *a, const void *b)
{
	const struct quark_event *x = *(struct quark_event *const *)a;
	const struct quark_event *y = *(struct quark_event *const *)b;

	if (x->process->pid != y->process->pid)
		return x->process->pid < y->process->pid ? -1 : 1;
	if (x->events != y->events)
		return x->events < y->events ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->boottime < y->boottime ? -1 : x->boottime > y->boottime;
}

/* What descends from here, sorted; the tape keeps the events. */
static struct quark_event **ours(const struct tape *t, size_t *n)
{
	struct quark_event **ev = calloc(t->n + 1, sizeof(*ev));
	size_t i;

	CHECK(ev != NULL);
	*n = 0;
	for (i = 0; i < t->n; i++)
		if (t->ev[i]->process && descends(t, t->ev[i]->process->pid) &&
		    t->ev[i]->process->pid != (uint32_t)getpid())
			ev[(*n)++] = t->ev[i];
	qsort(ev, *n, sizeof(*ev), by_kind);
	return ev;
}

static void say(const char *which, struct quark_event **ev, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		fprintf(stderr, "%s: pid %u tid %u kind %#llx %s\n", which,
			ev[i]->process->pid, ev[i]->tid,
			(unsigned long long)ev[i]->events,
			ev[i]->process->comm);
}

/* All events of our children, which have ended; at least 'least'. */
static void compare(struct pair *p, size_t least)
{
	struct quark_event **ev[2];
	pid_t last = short_life();
	size_t n[2], i;
	int bad = 0;

	for (i = 0; i < 2; i++) {
		tape_wait(&p->tape[i], &p->qq[i], last, QUARK_EV_REAP);
		ev[i] = ours(&p->tape[i], &n[i]);
	}
	if (n[0] != n[1] || n[0] < least) {
		say("first", ev[0], n[0]);
		say("second", ev[1], n[1]);
		_exit(1);
	}
	for (i = 0; i < n[0]; i++)
		bad += compare_event(ev[0][i], ev[1][i]);
	CHECK_INT(bad, 0);
	free(ev[0]);
	free(ev[1]);
}

/* The last one's reap is what all of it waits for. */
static void reaped(struct pair *p, pid_t pid)
{
	int i;

	CHECK(waitpid(pid, NULL, 0) == pid);
	for (i = 0; i < 2; i++)
		tape_wait(&p->tape[i], &p->qq[i], pid, QUARK_EV_REAP);
}

/* --- loads ------------------------------------------------------------------------ */

static char *const some_env[] = { "A=1", "B=two words", NULL };

static void load_life(struct pair *p)
{
	pid_t pid = fork();

	if (pid == 0) {
		CHECK(chdir("/usr/lib") == 0);
		execle("/bin/sh", "sh", "-c", "exit 3", "a b", "", NULL,
		       some_env);
		_exit(99);
	}
	reaped(p, pid);
}

/* By a script: the file is the interpreter's, the name the script's. */
static void load_script(struct pair *p)
{
	static const char text[] = "#!/bin/sh -e\n:\n";
	char path[] = "/tmp/quark-sameXXXXXX";
	int fd = mkstemp(path);
	pid_t pid;

	CHECK(fd >= 0);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	CHECK(fchmod(fd, 0755) == 0);
	close(fd);
	pid = fork();
	if (pid == 0) {
		execle(path, "ignored", "x", NULL, some_env);
		_exit(99);
	}
	reaped(p, pid);
	unlink(path);
}

/* Two images, one after the other, and 1500 bytes of arguments. */
static void load_execs(struct pair *p)
{
	char many[1500];
	pid_t pid;

	memset(many, 'm', sizeof(many));
	many[sizeof(many) - 1] = '\0';
	pid = fork();
	if (pid == 0) {
		execle("/bin/sh", "sh", "-c", "exec /bin/true \"$0\"", many,
		       NULL, some_env);
		_exit(99);
	}
	reaped(p, pid);
}

static void load_vfork(struct pair *p)
{
	pid_t pid = vfork();

	if (pid == 0)
		_exit(4);
	reaped(p, pid);
	pid = vfork();
	if (pid == 0) {
		execle("/bin/true", "true", NULL, some_env);
		_exit(99);
	}
	reaped(p, pid);
}

static void load_signals(struct pair *p)
{
	static const int signals[] = { SIGKILL, SIGSEGV, SIGTERM, SIGABRT };
	size_t i;

	for (i = 0; i < COUNT(signals); i++) {
		pid_t pid = fork();

		if (pid == 0) {
			signal(signals[i], SIG_DFL);
			raise(signals[i]);
			_exit(0);
		}
		reaped(p, pid);
	}
}

/* A sibling: the parent is the process that waits, not the caller. */
static void load_clone_parent(struct pair *p)
{
	int fds[2];
	pid_t pid, sibling;

	CHECK(pipe(fds) == 0);
	pid = fork();
	if (pid == 0) {
		sibling =
			syscall(SYS_clone, CLONE_PARENT | SIGCHLD, 0, 0, 0, 0);
		if (sibling == 0)
			_exit(5);
		CHECK(write(fds[1], &sibling, sizeof(sibling)) ==
		      sizeof(sibling));
		_exit(0);
	}
	CHECK(read(fds[0], &sibling, sizeof(sibling)) == sizeof(sibling));
	reaped(p, pid);
	reaped(p, sibling);
	close(fds[0]);
	close(fds[1]);
}

static void load_ids(struct pair *p)
{
	pid_t pid = fork();

	if (pid == 0) {
		CHECK(setsid() > 0);
		CHECK(setresgid(11, 12, 13) == 0);
		CHECK(setresuid(21, 0, 23) == 0);
		CHECK(setreuid(21, 21) == 0);
		_exit(0);
	}
	reaped(p, pid);
	/* Those of an image. */
	pid = fork();
	if (pid == 0) {
		CHECK(setsid() > 0);
		CHECK(setgid(5) == 0);
		CHECK(setuid(6) == 0);
		execle("/bin/true", "true", NULL, some_env);
		_exit(99);
	}
	reaped(p, pid);
}

static void load_rename(struct pair *p)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_NAME, "one");
		prctl(PR_SET_NAME, "another-name-that-is-cut");
		execle("/bin/true", "true", NULL, some_env);
		_exit(99);
	}
	reaped(p, pid);
}

/* --- threads -------------------------------------------------------------------- */

static void *named(void *arg)
{
	prctl(PR_SET_NAME, "thread");
	return NULL;
}

static void *execs(void *arg)
{
	execle("/bin/true", "true", "by a thread", NULL, some_env);
	_exit(99);
}

static void *lasts(void *arg)
{
	struct timespec ts = { 0, 20000000 };

	nanosleep(&ts, NULL);
	syscall(SYS_exit, 9);
	return NULL;
}

static void *ends_all(void *arg)
{
	_exit(7);
}

/* A joined thread may still be on its way out. */
static void alone(void)
{
	int n;
	DIR *d;

	do {
		d = opendir("/proc/self/task");
		CHECK(d != NULL);
		for (n = 0; readdir(d); n++)
			;
		closedir(d);
	} while (n > 3);
}

/* A thread that ends; one that executes; one that outlives. */
static void load_threads(struct pair *p)
{
	static void *(*const what[])(void *) = { named, execs, lasts };
	pthread_t th;
	size_t i;

	for (i = 0; i < COUNT(what); i++) {
		pid_t pid = fork();

		if (pid == 0) {
			CHECK(pthread_create(&th, NULL, what[i], NULL) == 0);
			if (what[i] == lasts)
				syscall(SYS_exit, 5);
			pthread_join(th, NULL);
			alone();
			_exit(0);
		}
		reaped(p, pid);
	}
}

/* One that ends all others. */
static void load_group_exit(struct pair *p)
{
	pthread_t th;
	pid_t pid = fork();

	if (pid == 0) {
		CHECK(pthread_create(&th, NULL, ends_all, NULL) == 0);
		pause();
	}
	together = true;
	reaped(p, pid);
}

/* --- changes of a running process ------------------------------------------------- */

static bool is(const char *a, const char *b)
{
	return a && !strcmp(a, b);
}

/* Until both caches have that directory and that cgroup of it. */
static void both_know(struct pair *p, pid_t pid, const char *cwd,
		      const char *cgroup)
{
	const struct quark_process *proc;
	double end = seconds() + HANG;
	int i;

	for (i = 0; i < 2; i++)
		for (;;) {
			pair_read(p);
			proc = quark_process_lookup(&p->qq[i], pid);
			if (proc && is(proc->cwd, cwd) &&
			    (!cgroup || is(proc->cgroup, cgroup)))
				break;
			if (seconds() > end) {
				fprintf(stderr, "queue %d: %s, %s\n", i,
					proc ? proc->cwd : "-",
					proc ? proc->cgroup : "-");
				_exit(1);
			}
			CHECK(quark_queue_block(&p->qq[i]) == 0);
		}
}

static void move_to(const char *cgroup, pid_t pid)
{
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/cgroup.procs", cgroup);
	f = fopen(path, "we");
	CHECK(f != NULL);
	CHECK(fprintf(f, "%d\n", pid) > 0);
	CHECK(fclose(f) == 0);
}

/* To another directory, and to 'cgroup' if it is not NULL. */
static void move(struct pair *p, const char *cgroup)
{
	int go[2], done[2];
	pid_t pid;
	char c;

	CHECK(pipe(go) == 0 && pipe(done) == 0);
	pid = fork();
	if (pid == 0) {
		CHECK(prctl(PR_SET_PDEATHSIG, SIGKILL) == 0);
		CHECK(chdir("/usr") == 0);
		CHECK(write(done[1], "x", 1) == 1);
		CHECK(read(go[0], &c, 1) == 1);
		_exit(0);
	}
	CHECK(read(done[0], &c, 1) == 1);
	both_know(p, pid, "/usr", NULL);
	if (cgroup) {
		move_to(cgroup, pid);
		both_know(p, pid, "/usr", strrchr(cgroup, '/'));
	}
	CHECK(write(go[1], "x", 1) == 1);
	reaped(p, pid);
	close(go[0]);
	close(go[1]);
	close(done[0]);
	close(done[1]);
}

static void load_moves(struct pair *p)
{
	move(p, NULL);
}

static bool has_cgroups(void)
{
	return !access(CGROUPS "/cgroup.procs", W_OK);
}

/* Where it lies below the mount, as both say it. */
static void load_cgroup(struct pair *p)
{
	char cgroup[64];

	snprintf(cgroup, sizeof(cgroup), CGROUPS "/quark-same-%d", getpid());
	CHECK(mkdir(cgroup, 0755) == 0);
	move(p, cgroup);
	CHECK(rmdir(cgroup) == 0);
}

/* --- tests ------------------------------------------------------------------------ */

static const struct load {
	void (*fn)(struct pair *p);
	size_t least; /* events of it, without threads' */
} loads[] = {
	{ load_life, 4 },	{ load_script, 4 },   { load_execs, 5 },
	{ load_vfork, 7 },	{ load_signals, 12 }, { load_clone_parent, 6 },
	{ load_ids, 7 + 7 },	{ load_rename, 6 },   { load_threads, 10 },
	{ load_group_exit, 3 }, { load_moves, 3 },    { load_cgroup, 3 },
};

static const struct load *load;
static int flags;

static void body(void)
{
	struct pair p;

	pair_open(&p, flags);
	load->fn(&p);
	compare(&p, load->least + 3);
	pair_close(&p);
}

static void run(void (*fn)(struct pair *))
{
	for (load = loads; load->fn != fn; load++)
		;
	flags = 0;
	in_child(body);
	/* Of which of them it is the process's exit before 6.16 is a toss-up. */
	flags = QQ_THREAD_EVENTS;
	if (fn != load_group_exit)
		in_child(body);
}

#define TEST(name)                            \
	static void test_##name(void **state) \
	{                                     \
		run(load_##name);             \
	}
TEST(life)
TEST(script)
TEST(execs)
TEST(vfork)
TEST(signals)
TEST(clone_parent)
TEST(ids)
TEST(rename)
TEST(threads)
TEST(group_exit)
TEST(moves)
TEST(cgroup)
#undef TEST

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),
		cmocka_unit_test(test_script),
		cmocka_unit_test(test_execs),
		cmocka_unit_test(test_vfork),
		cmocka_unit_test(test_signals),
		cmocka_unit_test(test_clone_parent),
		cmocka_unit_test(test_ids),
		cmocka_unit_test(test_rename),
		cmocka_unit_test(test_threads),
		cmocka_unit_test(test_group_exit),
		cmocka_unit_test(test_moves),
		/* The last: where there is a unified hierarchy. */
		cmocka_unit_test(test_cgroup),
	};
	size_t n = sizeof(tests) / sizeof(*tests) - !has_cgroups();

	if (!has_cgroups())
		printf("# no unified cgroup hierarchy: moves there are not seen\n");
	if (second() == QQ_EBPF)
		printf("# no kprobe events: two queues of eBPF are compared\n");
	return _cmocka_run_group_tests("tests", tests, n, NULL, NULL);
}
