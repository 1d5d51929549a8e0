// SPDX-License-Identifier: Apache-2.0
/*
 * System calls as events: each call of the table below is made on purpose, and both its
 * events are compared with it: name, category, arguments by name, result, latency.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include "tests/bpf/watch/test_watch_calls.h"

#define P(text) (long)(text)

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
	ROW(setsid, "process", ""),
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
	ROW(epoll_pwait2, "wait",
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
	ROW(landlock_create_ruleset, "other", "attr size flags", BAD, 1, 2),
	ROW(landlock_restrict_self, "other", "ruleset_fd flags", -1, 0),
	ROW(landlock_add_rule, "other", "ruleset_fd rule_type rule_attr flags",
	    -1, 1, 0, 0),
	ROW(io_uring_enter, "other",
	    "fd to_submit min_complete flags argp argsz", -1, 0, 0, 0, 0, 0),
};

/*
 * What Kindling's probe 0.9 publishes, and newer calls; by any of their names. Those that
 * a process does not come back from unharmed are made by other tests below.
 */
static const char published[] =
	"read pread readv preadv recvfrom recvmsg recvmmsg write pwrite writev "
	"pwritev sendto sendmsg sendmmsg sendfile close dup dup2 dup3 fcntl "
	"ioctl splice open openat creat stat lstat fstat stat64 lstat64 "
	"fstat64 fstatat64 lseek llseek getcwd chdir fchdir mkdir mkdirat "
	"rmdir unlink unlinkat link linkat rename renameat symlink symlinkat "
	"getdents getdents64 flock mount umount access chmod fchmod fchmodat "
	"socket bind connect listen accept accept4 shutdown getsockname "
	"getpeername setsockopt getsockopt socketpair pipe pipe2 eventfd "
	"eventfd2 futex inotify_init inotify_init1 execve clone fork vfork "
	"getrlimit setrlimit prlimit ptrace setns semop semctl semget chroot "
	"setsid setpgid unshare brk mmap mmap2 munmap signalfd signalfd4 kill "
	"tkill tgkill nanosleep timerfd_create setuid getuid setgid getgid "
	"setresuid getresuid setresgid getresgid geteuid getegid quotactl "
	"epoll_wait poll ppoll select bpf seccomp alarm epoll_create epoll_ctl "
	"lchown pause process_vm_readv process_vm_writev pselect6 "
	"sched_getparam sched_setparam syslog uselib utime openat2 statx "
	"renameat2 faccessat2 close_range clone3 execveat preadv2 pwritev2 "
	"copy_file_range io_uring_enter epoll_pwait epoll_pwait2 pidfd_open "
	"pidfd_send_signal memfd_create futex_waitv landlock_create_ruleset "
	"landlock_add_rule landlock_restrict_self mount_setattr";
static const char *const elsewhere[] = { "fork", "vfork", "pause" };

static bool has_row(const char *call)
{
	for (size_t i = 0; i < ARRAY_SIZE(elsewhere); i++)
		if (!strcmp(elsewhere[i], call))
			return true;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		if (!strcmp(rows[i].name, call))
			return true;
	return false;
}

/* Half an event's name: that a pattern means, and no other. */
static void means_a_row(const char *half, const char *word)
{
	const char *pattern, *call = NULL;
	const struct watch_want want = { .names = &pattern, .n_names = 1 };
	struct strbuf why = STRBUF_INIT;
	struct watch_sub *s;
	char text[64];

	snprintf(text, sizeof(text), "%s%s", half, word);
	pattern = text;
	if (watch_subscribe(watch, &want, &s, &why))
		fail_msg("%s: %s", text, strbuf_str(&why));
	for (size_t i = 0; watch_name(i); i++) {
		if (!watch_wants(s, i))
			continue;
		assert_null(call);
		call = watch_name(i)->name;
		assert_int_equal(strncmp(call, half, strlen(half)), 0);
		if (!has_row(call + strlen(half)))
			fail_msg("%s: no test makes %s", text, call);
	}
	assert_non_null(call);
	watch_unsubscribe(s);
	strbuf_fini(&why);
}

static void every_published_call_is_made(void **state)
{
	char copy[sizeof(published)], *save, *word;

	begin("getppid", 0, false, false);
	memcpy(copy, published, sizeof(copy));
	for (word = strtok_r(copy, " ", &save); word;
	     word = strtok_r(NULL, " ", &save)) {
		means_a_row("syscall_enter-", word);
		means_a_row("syscall_exit-", word);
	}
	stop();
}

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
		for (size_t i = 0; (e = nth_of(name, child, i)); i++)
			if (args_are(e, row, half[1] == 'x'))
				return e;
		usleep(5000);
		collect();
	}
	e = nth_of(name, child, 0);
	for (size_t i = 0; e && i < e->n_attributes; i++)
		print_message("%s=%" PRId64 "\n", e->attributes[i].key,
			      e->attributes[i].i);
	fail_msg("no %s with %s", name, rows[row].args);
	return NULL;
}

/* What the child saw of its calls. */
struct outcome {
	long res[ARRAY_SIZE(rows)];
	uint64_t took[ARRAY_SIZE(rows)];
};

static void make_calls(struct outcome *out)
{
	uint64_t before;

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		const long *v = rows[i].v;

		before = clock_boottime_ns();
		out->res[i] =
			syscall(rows[i].nr, v[0], v[1], v[2], v[3], v[4], v[5]);
		out->took[i] = clock_boottime_ns() - before;
		if (out->res[i] == -1)
			out->res[i] = -errno;
	}
}

/*
 * A child that makes all calls when 'go' says so. It leads a group: its setsid(2) fails.
 * Pages of paths and of the code must be there, so it makes them once before.
 */
static pid_t caller(struct outcome *out, int go[2])
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid)
		return pid;
	close(go[1]);
	if (setpgid(0, 0))
		_exit(1);
	make_calls(out);
	if (write(go[0], "r", 1) != 1 || read(go[0], &(char){ 0 }, 1) != 1)
		_exit(1);
	make_calls(out);
	_exit(0);
}

static void every_call(void **state)
{
	struct outcome *out = mmap(NULL, sizeof(*out), PROT_READ | PROT_WRITE,
				   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	const struct watch_event *e;
	int go[2], status;

	assert_true(out != MAP_FAILED);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, go), 0);
	child = caller(out, go);
	assert_int_equal(read(go[1], &(char){ 0 }, 1), 1);
	begin_of(child, "syscall_*", 0, false);
	assert_int_equal(write(go[1], "x", 1), 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		e = made("enter", i);
		assert_false(e->timed || e->failed);
		assert_string_equal(watch_name(e->name)->category,
				    rows[i].category);
		e = made("exit", i);
		if (number(e, "res") != out->res[i])
			fail_msg("%s: res %" PRId64 ", not %ld", rows[i].name,
				 number(e, "res"), out->res[i]);
		assert_int_equal(e->failed,
				 out->res[i] < 0 && out->res[i] >= -4095);
		assert_true(e->timed && e->latency_ns > 0);
		assert_true(e->latency_ns <= out->took[i]);
		assert_int_equal(e->tid, child);
		assert_int_equal(e->uid, getuid());
	}
	stop();
	close(go[0]);
	close(go[1]);
	munmap(out, sizeof(*out));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_published_call_is_made),
		cmocka_unit_test(every_call),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
