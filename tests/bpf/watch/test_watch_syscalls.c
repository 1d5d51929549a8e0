// SPDX-License-Identifier: Apache-2.0
/*
 * System calls as events: each call of the table below is made on purpose, and both its
 * events are compared with it: name, category, arguments by name, result, latency. Then
 * what is special: paths, execs, forks, ends without an event, 32-bit calls, thresholds,
 * and a user's storm beside another user.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "tests/bpf/watch/test_watch.h"

#define NOWHERE "/nonexistent-dir/file"
#define P(text) (long)(text)
#define BAD 0x1230 /* no page is there */

static pid_t child; /* events are read when it is known */

static bool of_family(void *arg, const struct watch_event *e)
{
	return e->key.tgid == (uint32_t)getpid() ||
	       e->key.tgid == (uint32_t)child;
}

#define NAMES_MAX 8

/* Its words, which it keeps. */
static size_t split(char *list, const char *words[NAMES_MAX])
{
	size_t n = 0;
	char *save, *word = strtok_r(list, " ", &save);

	for (; word && n < NAMES_MAX; word = strtok_r(NULL, " ", &save))
		words[n++] = word;
	return n;
}

/*
 * 'list' has names. They are of this process alone, or 'all': the child's, too; then
 * they are few on the whole host, whose processes of one user share a budget.
 */
static void begin(const char *list, uint64_t slower, bool failed, bool all)
{
	const char *names[NAMES_MAX];
	char copy[128];
	const uint32_t self = (uint32_t)getpid();
	struct watch_want want = {
		.names = names,
		.pids = &self,
		.n_pids = all ? 0 : 1,
		.slower_ns = slower,
		.failed = failed,
		.take = of_family,
	};

	snprintf(copy, sizeof(copy), "%s", list);
	want.n_names = split(copy, names);
	if (!watch)
		assert_int_equal(watch_new(&watch, &(struct watch_opts){ 0 }),
				 0);
	if (!got)
		got = calloc(GOT_MAX, sizeof(*got));
	n_got = 0;
	sub = subscribe(&want);
}

/* The i-th event of a name and a process. */
static struct watch_event *nth_of(const char *name, pid_t pid, size_t i)
{
	for (size_t k = 0; k < n_got; k++)
		if (!strcmp(watch_name(got[k].name)->name, name) &&
		    got[k].key.tgid == (uint32_t)pid && i-- == 0)
			return &got[k];
	return NULL;
}

static struct watch_event *wait_of(const char *name, pid_t pid)
{
	struct watch_event *e;

	for (int tries = 0; tries < WAIT_SECONDS * 200; tries++) {
		collect();
		e = nth_of(name, pid, 0);
		if (e)
			return e;
		usleep(5000);
	}
	fail_msg("no event %s of %d among %zu", name, pid, n_got);
	return NULL;
}

/* --- every call that can be made without harm ----------------------------------- */

/*
 * 'args': the kernel's names of the first arguments, with their values; a name with a '$'
 * is a path.
 */
static const struct {
	int nr;
	const char *name, *category, *args;
	long v[6];
} rows[] = {
#define ROW(name, category, args, ...)             \
	{                                          \
		SYS_##name, #name, category, args, \
		{                                  \
			__VA_ARGS__                \
		}                                  \
	}
	ROW(read, "other", "fd buf count", -1, BAD, 7),
	ROW(pread64, "other", "fd buf count pos", -1, BAD, 7, -5),
	ROW(readv, "other", "fd vec vlen", -1, BAD, 1),
	ROW(preadv, "other", "fd vec vlen pos_l pos_h", -1, BAD, 1, 2, 3),
	ROW(preadv2, "other", "fd vec vlen pos_l pos_h flags", -1, BAD, 1, 2, 3,
	    4),
	ROW(recvfrom, "other", "fd ubuf size flags addr addr_len", -1, BAD, 1,
	    2, 3, 4),
	ROW(recvmsg, "other", "fd msg flags", -1, BAD, 64),
	ROW(recvmmsg, "other", "fd mmsg vlen flags timeout", -1, BAD, 1, 2, 0),
	ROW(write, "other", "fd buf count", -1, BAD, 7),
	ROW(pwrite64, "other", "fd buf count pos", -1, BAD, 7, 8),
	ROW(writev, "other", "fd vec vlen", -1, BAD, 1),
	ROW(pwritev, "other", "fd vec vlen pos_l pos_h", -1, BAD, 1, 2, 3),
	ROW(pwritev2, "other", "fd vec vlen pos_l pos_h flags", -1, BAD, 1, 2,
	    3, 4),
	ROW(sendto, "other", "fd buff len flags addr addr_len", -1, BAD, 1, 2,
	    3, 4),
	ROW(sendmsg, "other", "fd msg flags", -1, BAD, 64),
	ROW(sendmmsg, "other", "fd mmsg vlen flags", -1, BAD, 1, 2),
	ROW(sendfile, "other", "out_fd in_fd offset count", -1, -2, BAD, 9),
	ROW(close, "other", "fd", -1),
	ROW(dup, "other", "fildes", -1),
	ROW(dup2, "other", "oldfd newfd", -1, -2),
	ROW(dup3, "other", "oldfd newfd flags", -1, -2, 5),
	ROW(fcntl, "other", "fd cmd arg", -1, 1, 2),
	ROW(ioctl, "other", "fd cmd arg", -1, 0x5401, BAD),
	ROW(splice, "other", "fd_in off_in fd_out off_out len flags", -1, BAD,
	    -2, BAD, 5, 6),
	ROW(open, "file", "$filename flags mode", P(NOWHERE), O_RDWR, 0640),
	ROW(openat, "file", "dfd $filename flags mode", -100, P(NOWHERE),
	    O_WRONLY, 0),
	ROW(openat2, "file", "dfd $filename how usize", -100, P(NOWHERE), BAD,
	    24),
	ROW(creat, "file", "$pathname mode", P(NOWHERE), 0600),
	ROW(stat, "file", "$filename statbuf", P(NOWHERE), BAD),
	ROW(lstat, "file", "$filename statbuf", P(NOWHERE), BAD),
	ROW(fstat, "file", "fd statbuf", -1, BAD),
	ROW(newfstatat, "file", "dfd $filename statbuf flag", -1, P(NOWHERE),
	    BAD, 0),
	ROW(statx, "file", "dfd $filename flags mask buffer", -1, P(NOWHERE), 0,
	    7, BAD),
	ROW(lseek, "file", "fd offset whence", -1, -9, 1),
	ROW(getcwd, "file", "buf size", BAD, 0),
	ROW(chdir, "file", "$filename", P(NOWHERE)),
	ROW(fchdir, "file", "fd", -1),
	ROW(mkdir, "file", "$pathname mode", P(NOWHERE), 0700),
	ROW(mkdirat, "file", "dfd $pathname mode", -1, P(NOWHERE), 0700),
	ROW(rmdir, "file", "$pathname", P(NOWHERE)),
	ROW(unlink, "file", "$pathname", P(NOWHERE)),
	ROW(unlinkat, "file", "dfd $pathname flag", -100, P(NOWHERE), 0),
	ROW(link, "file", "$oldname $newname", P(NOWHERE), P(NOWHERE "2")),
	ROW(linkat, "file", "olddfd $oldname newdfd $newname flags", -1,
	    P(NOWHERE), -2, P(NOWHERE "2"), 0),
	ROW(rename, "file", "$oldname $newname", P(NOWHERE), P(NOWHERE "2")),
	ROW(renameat, "file", "olddfd $oldname newdfd $newname", -1, P(NOWHERE),
	    -2, P(NOWHERE "2")),
	ROW(renameat2, "file", "olddfd $oldname newdfd $newname flags", -1,
	    P(NOWHERE), -2, P(NOWHERE "2"), 1),
	ROW(symlink, "file", "$oldname $newname", P("x"), P(NOWHERE)),
	ROW(symlinkat, "file", "$oldname newdfd $newname", P("x"), -1,
	    P(NOWHERE)),
	ROW(getdents, "file", "fd dirent count", -1, BAD, 9),
	ROW(getdents64, "file", "fd dirent count", -1, BAD, 9),
	ROW(flock, "file", "fd cmd", -1, 2),
	ROW(mount, "file", "$dev_name $dir_name type flags data", P("none"),
	    P(NOWHERE), BAD, 1, 2),
	ROW(umount2, "file", "$name flags", P(NOWHERE), 2),
	ROW(access, "file", "$filename mode", P(NOWHERE), 4),
	ROW(faccessat2, "file", "dfd $filename mode flags", -1, P(NOWHERE), 4,
	    0),
	ROW(chmod, "file", "$filename mode", P(NOWHERE), 0600),
	ROW(fchmod, "file", "fd mode", -1, 0600),
	ROW(fchmodat, "file", "dfd $filename mode", -1, P(NOWHERE), 0600),
	ROW(copy_file_range, "file", "fd_in off_in fd_out off_out len flags",
	    -1, 0, -2, 0, 5, 0),
	ROW(socket, "net", "family type protocol", 9999, 1, 2),
	ROW(bind, "net", "fd umyaddr addrlen", -1, BAD, 16),
	ROW(connect, "net", "fd uservaddr addrlen", -1, BAD, 16),
	ROW(listen, "net", "fd backlog", -1, 5),
	ROW(accept, "net", "fd upeer_sockaddr upeer_addrlen", -1, BAD, BAD),
	ROW(accept4, "net", "fd upeer_sockaddr upeer_addrlen flags", -1, BAD,
	    BAD, 0),
	ROW(shutdown, "net", "fd how", -1, 2),
	ROW(getsockname, "net", "fd usockaddr usockaddr_len", -1, BAD, BAD),
	ROW(getpeername, "net", "fd usockaddr usockaddr_len", -1, BAD, BAD),
	ROW(setsockopt, "net", "fd level optname optval optlen", -1, 1, 2, BAD,
	    4),
	ROW(getsockopt, "net", "fd level optname optval optlen", -1, 1, 2, BAD,
	    BAD),
	ROW(socketpair, "ipc", "family type protocol usockvec", 9999, 1, 0,
	    BAD),
	ROW(pipe, "ipc", "fildes", BAD),
	ROW(pipe2, "ipc", "fildes flags", BAD, 0),
	ROW(eventfd, "ipc", "count", 1),
	ROW(inotify_init, "ipc", ""),
	ROW(eventfd2, "ipc", "count flags", 1, -1),
	ROW(futex, "ipc", "uaddr op val utime uaddr2 val3", BAD, 1, 1, 0, 0, 0),
	ROW(futex_waitv, "ipc", "waiters nr_futexes flags timeout clockid", BAD,
	    0, 0, 0, 1),
	ROW(inotify_init1, "ipc", "flags", 1),
	ROW(execve, "process", "$filename argv envp", P(NOWHERE), 0, 0),
	ROW(execveat, "process", "fd $filename argv envp flags", -1, P("x"), 0,
	    0, 0),
	ROW(clone, "process",
	    "clone_flags newsp parent_tidptr child_tidptr tls", 0x800, 0, 0, 0,
	    0),
	ROW(clone3, "process", "uargs size", BAD, 3),
	ROW(getrlimit, "process", "resource rlim", 999, BAD),
	ROW(setrlimit, "process", "resource rlim", 999, BAD),
	ROW(prlimit64, "process", "pid resource new_rlim old_rlim", 0, 999, 0,
	    0),
	ROW(ptrace, "process", "request pid addr data", 9999, -1, 1, 2),
	ROW(setns, "process", "fd flags", -1, 0),
	ROW(semop, "process", "semid tsops nsops", -1, BAD, 1),
	ROW(semctl, "process", "semid semnum cmd arg", -1, 1, 2, 3),
	ROW(semget, "process", "key nsems semflg", 0x7777, -1, 0),
	ROW(chroot, "process", "$filename", P(NOWHERE)),
	ROW(setpgid, "process", "pid pgid", -1, -1),
	ROW(unshare, "process", "unshare_flags", 1),
	ROW(pidfd_open, "process", "pid flags", -1, 0),
	ROW(brk, "memory", "brk", 0),
	ROW(mmap, "memory", "addr len prot flags fd off", 0, 0, 0, 2, -1, 0),
	ROW(munmap, "memory", "addr len", 0x1000, 0),
	ROW(signalfd, "signal", "ufd user_mask sizemask", -1, BAD, 1),
	ROW(signalfd4, "signal", "ufd user_mask sizemask flags", -1, BAD, 1, 0),
	ROW(kill, "signal", "pid sig", 0x3fffffff, 0),
	ROW(tkill, "signal", "pid sig", -1, 0),
	ROW(tgkill, "signal", "tgid pid sig", -1, -1, 0),
	ROW(pidfd_send_signal, "signal", "pidfd sig info flags", -1, 0, 0, 0),
	ROW(nanosleep, "sleep", "rqtp rmtp", BAD, 0),
	ROW(timerfd_create, "time", "clockid flags", 99, 0),
	ROW(setuid, "user", "uid", 0xffffffff),
	ROW(setgid, "user", "gid", 0xffffffff),
	ROW(getuid, "user", ""),
	ROW(getgid, "user", ""),
	ROW(geteuid, "user", ""),
	ROW(getegid, "user", ""),
	ROW(getresuid, "user", "ruidp euidp suidp", BAD, BAD, BAD),
	ROW(getresgid, "user", "rgidp egidp sgidp", BAD, BAD, BAD),
	ROW(setresuid, "user", "ruid euid suid", 0xffffffff, 0xffffffff,
	    0xffffffff),
	ROW(setresgid, "user", "rgid egid sgid", 0xffffffff, 0xffffffff,
	    0xffffffff),
	ROW(quotactl, "user", "cmd $special id addr", 99, P(NOWHERE), 1, BAD),
	ROW(epoll_wait, "wait", "epfd events maxevents timeout", -1, BAD, 1, 0),
	ROW(epoll_pwait, "wait",
	    "epfd events maxevents timeout sigmask sigsetsize", -1, BAD, 1, 0,
	    0, 8),
	ROW(poll, "wait", "ufds nfds timeout_msecs", 0, 0, 0),
	ROW(ppoll, "wait", "ufds nfds tsp sigmask sigsetsize", BAD, 1, 0, 0, 8),
	ROW(select, "wait", "n inp outp exp tvp", -1, 0, 0, 0, 0),
	ROW(bpf, "other", "cmd uattr size", 9999, BAD, 1),
	ROW(seccomp, "other", "op flags uargs", 99, 0, 0),
	ROW(alarm, "other", "seconds", 0),
	ROW(epoll_create, "other", "size", -1),
	ROW(epoll_ctl, "other", "epfd op fd event", -1, 1, -2, 0),
	ROW(lchown, "other", "$filename user group", P(NOWHERE), 1, 2),
	ROW(process_vm_readv, "other", "pid lvec liovcnt rvec riovcnt flags",
	    -1, 0, 0, 0, 0, 0),
	ROW(process_vm_writev, "other", "pid lvec liovcnt rvec riovcnt flags",
	    -1, 0, 0, 0, 0, 0),
	ROW(pselect6, "other", "n inp outp exp tsp sig", -1, 0, 0, 0, 0, 0),
	ROW(sched_getparam, "other", "pid param", -1, 0),
	ROW(sched_setparam, "other", "pid param", -1, 0),
	ROW(syslog, "other", "type buf len", 99, 0, 0),
	ROW(uselib, "other", "$library", P(NOWHERE)),
	ROW(utime, "other", "$filename times", P(NOWHERE), BAD),
	ROW(memfd_create, "file", "uname flags", BAD, 0),
	ROW(close_range, "other", "fd max_fd flags", 9, 1, 0),
	ROW(mount_setattr, "file", "dfd $path flags uattr usize", -1,
	    P(NOWHERE), 0, BAD, 32),
	ROW(landlock_add_rule, "other", "ruleset_fd rule_type rule_attr flags",
	    -1, 1, 0, 0),
	ROW(io_uring_enter, "other",
	    "fd to_submit min_complete flags argp argsz", -1, 0, 0, 0, 0, 0),
};

/* Whether the attributes of an event are the arguments of a row. */
static bool args_are(const struct watch_event *e, size_t row, bool exit)
{
	char copy[128], *save, *word;
	const struct watch_attribute *a;
	size_t n = 0;

	snprintf(copy, sizeof(copy), "%s", rows[row].args);
	for (word = strtok_r(copy, " ", &save); word;
	     word = strtok_r(NULL, " ", &save), n++) {
		a = &e->attributes[n];
		if (n >= e->n_attributes ||
		    strcmp(a->key, word + (*word == '$')) != 0)
			return false;
		if ((*word == '$') != (a->type == WATCH_STRING))
			return false;
		if (*word == '$' ? strcmp(a->s, (char *)rows[row].v[n]) != 0
				 : a->i != rows[row].v[n])
			return false;
	}
	return e->n_attributes == n + exit;
}

static const struct watch_event *made(const char *half, size_t row)
{
	const struct watch_event *e;
	char name[64];

	snprintf(name, sizeof(name), "syscall_%s-%s", half, rows[row].name);
	for (int tries = 0; tries < WAIT_SECONDS * 200; tries++) {
		for (size_t i = 0; (e = nth_of(name, getpid(), i)); i++)
			if (args_are(e, row, half[1] == 'x'))
				return e;
		usleep(5000);
		collect();
	}
	e = nth_of(name, getpid(), 0);
	for (size_t i = 0; e && i < e->n_attributes; i++)
		print_message("%s=%" PRId64 "\n", e->attributes[i].key,
			      e->attributes[i].i);
	fail_msg("no %s with %s", name, rows[row].args);
	return NULL;
}

static void every_call(void **state)
{
	const struct watch_event *e;
	uint64_t before, took[ARRAY_SIZE(rows)];
	long res[ARRAY_SIZE(rows)];

	/* Pages of paths and of the code must be there. */
	for (int pass = 0; pass < 2; pass++) {
		if (pass)
			begin("syscall_*", 0, false, false);
		for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
			const long *v = rows[i].v;

			before = clock_boottime_ns();
			res[i] = syscall(rows[i].nr, v[0], v[1], v[2], v[3],
					 v[4], v[5]);
			took[i] = clock_boottime_ns() - before;
			if (res[i] == -1)
				res[i] = -errno;
		}
	}
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		e = made("enter", i);
		assert_false(e->timed || e->failed);
		assert_string_equal(watch_name(e->name)->category,
				    rows[i].category);
		e = made("exit", i);
		if (number(e, "res") != res[i])
			fail_msg("%s: res %" PRId64 ", not %ld", rows[i].name,
				 number(e, "res"), res[i]);
		assert_int_equal(e->failed, res[i] < 0 && res[i] >= -4095);
		assert_true(e->timed && e->latency_ns > 0);
		assert_true(e->latency_ns <= took[i]);
		assert_int_equal(e->tid, getpid());
		assert_int_equal(e->uid, getuid());
	}
	stop();
}

/* --- paths ---------------------------------------------------------------------- */

static const struct watch_event *of_path(const char *half)
{
	char name[64];

	snprintf(name, sizeof(name), "syscall_%s-chdir", half);
	return wait_of(name, getpid());
}

/* A page of a file that no process has touched. */
static char *untouched(const char *text)
{
	char name[] = "/tmp/watch-XXXXXX";
	int fd = mkstemp(name);
	char *at;

	assert_true(fd >= 0);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(write(fd, text, strlen(text) + 1), strlen(text) + 1);
	at = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(at != MAP_FAILED);
	close(fd);
	return at;
}

static void paths(void **state)
{
	char *late = untouched(NOWHERE), any[4096], long_one[4096];
	const struct watch_event *e;

	begin("chdir", 0, false, false);
	assert_int_equal(chdir(late), -1);
	e = of_path("enter");
	assert_string_equal(text(e, "path_unread"), "filename");
	assert_int_equal(attribute(e, "filename")->u, (uint64_t)late);
	e = of_path("exit");
	assert_string_equal(text(e, "filename"), NOWHERE);
	assert_string_equal(text(e, "path_late"), "filename");
	assert_null(attribute(e, "path_unread"));
	stop();

	begin("chdir", 0, false, false);
	assert_int_equal(syscall(SYS_chdir, BAD), -1);
	e = of_path("exit");
	assert_int_equal(attribute(e, "filename")->type, WATCH_POINTER);
	assert_int_equal(attribute(e, "filename")->u, BAD);
	assert_string_equal(text(e, "path_unread"), "filename");
	assert_int_equal(number(e, "res"), -EFAULT);
	stop();

	/* NULL is no path. */
	begin("chdir", 0, false, false);
	assert_int_equal(syscall(SYS_chdir, NULL), -1);
	e = of_path("exit");
	assert_null(attribute(e, "path_unread"));
	stop();

	for (size_t i = 0; i < 600; i++)
		any[i] = (char)(1 + i % 255);
	any[600] = '\0';
	memset(long_one, 'x', sizeof(long_one));
	long_one[sizeof(long_one) - 1] = '\0';
	begin("chdir", 0, false, false);
	assert_int_equal(chdir(any), -1);
	assert_int_equal(chdir(long_one), -1);
	e = of_path("exit");
	assert_string_equal(text(e, "filename"), any);
	assert_null(attribute(e, "path_cut"));
	wait_nth("syscall_exit-chdir", 1);
	e = nth_of("syscall_exit-chdir", getpid(), 1);
	assert_non_null(e);
	long_one[1023] = '\0';
	assert_string_equal(text(e, "filename"), long_one);
	assert_string_equal(text(e, "path_cut"), "filename");
	assert_int_equal(number(e, "res"), -ENAMETOOLONG);
	stop();
	munmap(late, 4096);
}

/* --- processes ------------------------------------------------------------------- */

static bool same_image(const struct abi_key *a, const struct abi_key *b)
{
	return a->tgid == b->tgid && a->start_boottime == b->start_boottime &&
	       a->exec_id == b->exec_id;
}

static void an_exec_names_both_images(void **state)
{
	const struct watch_event *e, *enter;
	char *const argv[] = { "true", NULL };
	pid_t pid;

	for (int absent = 0; absent < 2; absent++) {
		char *file = untouched("/bin/true");

		begin("syscall_*-exec*", 0, false, true);
		pid = child = fork();
		if (!pid) {
			if (absent || *file)
				syscall(SYS_execve, file, argv, NULL);
			_exit(1);
		}
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		e = wait_of("syscall_exit-execve", pid);
		enter = wait_of("syscall_enter-execve", pid);
		assert_true(same_image(&e->key, &enter->key));
		assert_int_equal(e->image_new.exec_id, e->key.exec_id + 1);
		assert_int_equal(e->image_new.tgid, pid);
		assert_int_equal(e->image_new.start_boottime,
				 e->key.start_boottime);
		assert_string_equal(e->comm, enter->comm);
		assert_string_not_equal(e->comm, "true");
		assert_string_equal(text(e, "filename"), "/bin/true");
		assert_true(!attribute(e, "path_late") == !absent);
		assert_int_equal(attribute(e, "argv")->u, (uint64_t)argv);
		assert_int_equal(number(e, "res"), 0);
		assert_true(e->timed && !e->failed);
		stop();
		munmap(file, 4096);
	}
}

static void forks_and_ends(void **state)
{
	const struct watch_event *e;
	pid_t pid;

	begin("fork exit setsid", 0, false, true);
	pid = child = (pid_t)syscall(SYS_fork);
	if (!pid) {
		syscall(SYS_setsid);
		syscall(SYS_exit, 7);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	e = wait_of("syscall_enter-exit", pid);
	assert_int_equal(number(e, "error_code"), 7);
	e = wait_of("syscall_exit-fork", getpid());
	assert_int_equal(number(e, "res"), pid);
	assert_true(e->timed);
	/* It ends in the child as well, which has not begun it. */
	e = wait_of("syscall_exit-fork", pid);
	assert_int_equal(number(e, "res"), 0);
	assert_false(e->timed);
	assert_null(nth_of("syscall_enter-fork", pid, 0));
	e = wait_of("syscall_exit-setsid", pid);
	assert_int_equal(number(e, "res"), pid);
	assert_string_equal(watch_name(e->name)->category, "process");
	stop();
}

static void on_signal(int sig)
{
}

static void more_ends(void **state)
{
	pid_t pid, other;

	begin("exit_group rt_sigreturn vfork pause", 0, false, true);
	pid = child = fork();
	if (!pid) {
		signal(SIGALRM, on_signal);
		alarm(1);
		syscall(SYS_pause);
		other = vfork();
		if (!other)
			_exit(0);
		syscall(SYS_exit_group, 3);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(number(wait_of("syscall_enter-exit_group", pid),
				"error_code"),
			 3);
	assert_non_null(nth_of("syscall_enter-rt_sigreturn", pid, 0));
	assert_non_null(nth_of("syscall_exit-vfork", pid, 0));
	/* What the program sees as EINTR is ERESTARTNOHAND here. */
	assert_int_equal(number(nth_of("syscall_exit-pause", pid, 0), "res"),
			 -514);
	stop();
}

/* Their numbers are those of other calls. */
static void calls_of_32_bits_are_left_out(void **state)
{
	int status;
	long res = 20; /* getpid there, writev here */
	pid_t pid;

	begin("writev getppid exit_group", 0, false, true);
	pid = child = fork();
	if (!pid) {
		signal(SIGSEGV, SIG_DFL);
		asm volatile("int $0x80"
			     : "+a"(res)
			     :
			     : "memory", "r8", "r9", "r10", "r11");
		syscall(SYS_getppid);
		_exit(res != getpid());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status)) {
		stop();
		skip(); /* a kernel without them */
	}
	assert_int_equal(status, 0);
	wait_of("syscall_exit-getppid", pid);
	wait_of("syscall_enter-exit_group", pid);
	assert_null(nth_of("syscall_enter-writev", pid, 0));
	assert_null(nth_of("syscall_exit-writev", pid, 0));
	stop();
}

/* --- filters ---------------------------------------------------------------------- */

static void nap(long ms)
{
	const struct timespec t = { ms / 1000, ms % 1000 * 1000000 };

	syscall(SYS_nanosleep, &t, NULL);
}

static void slow_and_failed_ones(void **state)
{
	const struct watch_event *e;

	begin("nanosleep", 20 * CLOCK_NSEC_PER_MSEC, false, false);
	nap(0);
	nap(50);
	e = wait_of("syscall_exit-nanosleep", getpid());
	assert_true(e->latency_ns >= 50 * CLOCK_NSEC_PER_MSEC);
	assert_null(nth_of("syscall_exit-nanosleep", getpid(), 1));
	stop();

	begin("close", 0, true, false);
	close(dup(0));
	close(-1);
	e = wait_of("syscall_exit-close", getpid());
	assert_int_equal(number(e, "res"), -EBADF);
	assert_int_equal(number(e, "fd"), -1);
	/* A begin has not failed. */
	assert_null(nth_of("syscall_enter-close", getpid(), 0));
	assert_null(nth_of("syscall_exit-close", getpid(), 1));
	stop();
}

/* Who reads events makes more by each. */
static void not_of_who_watches(void **state)
{
	pid_t pid;
	static const char *const name[] = { "getppid", "exit_group" };
	const struct watch_want want = { .names = name,
					 .n_names = 2,
					 .take = of_family,
					 .client = (uint32_t)getpid() };

	begin("getppid", 0, false, true);
	stop();
	n_got = 0;
	sub = subscribe(&want);
	syscall(SYS_getppid);
	pid = child = fork();
	if (!pid)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	wait_of("syscall_enter-exit_group", pid);
	for (size_t i = 0; i < n_got; i++)
		assert_true(got[i].key.tgid != (uint32_t)getpid());
	stop();
}

static void drain_of(pid_t pid, size_t *own, size_t *other)
{
	struct watch_event e;

	assert_true(watch_read(watch) >= 0);
	while (!watch_next(sub, &e))
		++*(e.key.tgid == (uint32_t)pid ? own : other);
}

/* Long paths of one user, in two processes, and the calls of another. */
static void a_storm_of_calls(void **state)
{
	static const char *const name[] = { "syscall_exit-chdir" };
	const struct watch_want want = { .names = name, .n_names = 1 };
	size_t own = 0, flood = 0, sent = 0, lost = 0;
	char path[4000];
	pid_t storm[2];

	memset(path, 'x', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	begin("syscall_exit-chdir", 0, false, true);
	stop();
	sub = subscribe(&want);
	own_budget(true);
	for (int i = 0; i < 2; i++) {
		storm[i] = fork();
		if (!storm[i]) {
			assert_int_equal(syscall(SYS_setuid, 65534), 0);
			for (;;)
				syscall(SYS_chdir, path);
		}
	}
	for (int round = 0; round < 20; round++) {
		usleep(150000);
		for (int k = 0; k < 20; k++, sent++)
			syscall(SYS_chdir, NOWHERE);
		drain_of(getpid(), &own, &flood);
	}
	for (int i = 0; i < 2; i++) {
		kill(storm[i], SIGKILL);
		waitpid(storm[i], NULL, 0);
	}
	for (int tries = 0; tries < 1000 && own < sent; tries++) {
		usleep(5000);
		drain_of(getpid(), &own, &flood);
	}
	for (size_t i = 0; watch_name(i); i++)
		lost += watch_lost(sub, i);
	print_message("%zu of the storm, %zu lost\n", flood, lost);
	own_budget(false);
	assert_int_equal(own, sent);
	assert_true(flood > 0 && lost > 0);
	stop();
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_call),
		cmocka_unit_test(paths),
		cmocka_unit_test(an_exec_names_both_images),
		cmocka_unit_test(forks_and_ends),
		cmocka_unit_test(more_ends),
		cmocka_unit_test(calls_of_32_bits_are_left_out),
		cmocka_unit_test(slow_and_failed_ones),
		cmocka_unit_test(not_of_who_watches),
		cmocka_unit_test(a_storm_of_calls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
