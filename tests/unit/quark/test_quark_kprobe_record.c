// SPDX-License-Identifier: Apache-2.0
/*
 * libquark's kprobe backend: a probe's values become the record that the other
 * backend would send.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Memory may end while mounts are read. */
static bool no_memory;

static void *may_fail(void *p, size_t size)
{
	return no_memory ? NULL : realloc(p, size);
}
#define realloc(p, size) may_fail(p, size)
#include "processmanager/quark/kprobe/kprobe_path.c"
#undef realloc
#include "processmanager/quark/kprobe/kprobe_record.c"
#include "processmanager/quark/proc/procfs.c"
#include "processmanager/quark/proc/procfs_task.c"
#include "processmanager/quark/proc/reader.c"

static struct kprobe_record r;
static struct quark_reader reader;
static struct kprobe_values v, answer;
static bool alive;
static char got[65536];
static size_t got_len;

static int take(void *arg, void *data, size_t len)
{
	assert_true(len <= sizeof(got));
	memcpy(got, data, len);
	got_len = len;
	return 0;
}

static bool ask(void *arg, uint32_t pid, struct kprobe_values *out)
{
	*out = answer;
	return alive;
}

static int setup(void **state)
{
	memset(&r, 0, sizeof(r));
	memset(&v, 0, sizeof(v));
	r.paths = kprobe_paths_new();
	r.ask = ask;
	r.reader = &reader;
	alive = false;
	v.start = 1000;
	v.exec_id = 3;
	v.pid = v.tgid = 0x7ffffff0; /* not in use, also not in /proc */
	v.p_tgid = 70;
	v.p_start = 500;
	v.p_exec_id = 2;
	v.tty = v.nsproxy = v.mm = v.exe_file = v.fs = 1;
	memcpy(&v.comm0, "sixteenc", 8);
	memcpy(&v.comm1, "haracter", 8);
	return r.paths ? 0 : -1;
}

static int teardown(void **state)
{
	kprobe_paths_free(r.paths);
	strbuf_fini(&r.out);
	strbuf_fini(&r.proc);
	strbuf_fini(&r.root);
	patience_fini(&reader.patience);
	return 0;
}

/* The length of the record; 0: none. */
static size_t record(enum kprobe_id id, uint32_t tgid)
{
	const struct kprobe_sample s = { .time = 9000,
					 .cpu = 1,
					 .tgid = tgid,
					 .tid = tgid,
					 .exec_tid = 88 };

	got_len = 0;
	assert_int_equal(kprobe_record(&r, id, &s, &v, take, NULL), 0);
	return got_len;
}

static void check_head(uint32_t kind)
{
	const struct abi_quark_head *h = (const void *)got;

	assert_int_equal(h->kind, kind);
	assert_int_equal(h->time, 9000);
	assert_int_equal(h->cpu, 1);
	assert_int_equal(h->key.tgid, v.tgid);
	assert_int_equal(h->key.start_boottime, 1000);
	assert_int_equal(h->key.exec_id, 3);
}

static void test_fork(void **state)
{
	const struct abi_quark_fork *f = (const void *)got;

	v.clone_flags = CLONE_VM | CLONE_VFORK;
	v.ids.uid = 5;
	v.ids.tty_major = 4;
	v.ids.tty_minor = 64;
	v.tty_index = 2;
	assert_int_equal(record(KPROBE_FORK, 70), sizeof(*f));
	check_head(ABI_QUARK_FORK);
	assert_int_equal(f->head.tid, v.pid);
	assert_int_equal(f->parent.tgid, 70);
	assert_int_equal(f->parent.start_boottime, 500);
	/* The caller is the parent: its key is known. */
	assert_int_equal(f->origin.tgid, 70);
	assert_int_equal(f->origin.start_boottime, 500);
	assert_int_equal(f->clone_flags, CLONE_VM | CLONE_VFORK);
	assert_string_equal(f->comm, "sixteencharacte");
	assert_int_equal(f->ids.uid, 5);
	assert_int_equal(f->ids.tty_minor, 66);
	/* With CLONE_PARENT it is another process: its start is unknown. */
	assert_int_equal(record(KPROBE_FORK, 71), sizeof(*f));
	assert_int_equal(f->origin.tgid, 71);
	assert_int_equal(f->origin.start_boottime, 0);
	/* The origin of a thread is the process itself. */
	assert_int_equal(record(KPROBE_FORK, v.tgid), sizeof(*f));
	assert_int_equal(f->origin.start_boottime, 1000);
	/* The idle task of a CPU that goes online is no process. */
	v.pid = 0;
	assert_int_equal(record(KPROBE_FORK, 70), 0);
}

static void test_exit(void **state)
{
	const struct abi_quark_exit *e = (const void *)got;

	v.sum_runtime = 100;
	v.own_runtime = 20;
	v.leader_runtime = 3;
	v.leader_pid = v.pid;
	v.leader_exit_code = 5 << 8;
	v.group_exit_code = SIGNAL_GROUP_EXIT; /* another process */
	v.maxrss = 10;
	v.group_dead = 1;
	assert_int_equal(record(KPROBE_EXIT, v.tgid), sizeof(*e));
	check_head(ABI_QUARK_EXIT);
	assert_int_equal(e->head.flags, ABI_QUARK_GROUP_DEAD);
	assert_int_equal(e->cpu_time, 120);
	assert_int_equal(e->maxrss, 10);
	assert_int_equal(e->wait_status, 5 << 8);
	/* If another thread is the last, the leader's time is added. */
	v.pid++;
	v.group_dead = 0;
	v.sig_flags = SIGNAL_GROUP_EXIT;
	v.group_exit_code = 9;
	assert_int_equal(record(KPROBE_EXIT, v.tgid), sizeof(*e));
	assert_int_equal(e->head.flags, 0);
	assert_int_equal(e->cpu_time, 123);
	assert_int_equal(e->wait_status, 9);
}

static void test_reap(void **state)
{
	const struct abi_quark_reap *e = (const void *)got;

	v.sum_runtime = 100;
	v.utime = 60;
	v.stime = 40;
	v.leader_exit_code = 256;
	assert_int_equal(record(KPROBE_REAP, 1), sizeof(*e));
	check_head(ABI_QUARK_REAP);
	assert_int_equal(e->cpu_time, 100);
	assert_int_equal(e->utime, 60);
	assert_int_equal(e->stime, 40);
	assert_int_equal(e->wait_status, 256);
	/* A thread's end does not end the process. */
	v.pid++;
	assert_int_equal(record(KPROBE_REAP, 1), 0);
}

static void test_rename(void **state)
{
	const struct abi_quark_rename *e = (const void *)got;

	v.name = (struct quark_span){ "a name longer than that", 23 };
	assert_int_equal(record(KPROBE_RENAME, v.tgid), sizeof(*e));
	check_head(ABI_QUARK_RENAME);
	assert_string_equal(e->comm, "a name longer t");
	/* Part of an exec: the lowest byte is the flag, the rest is noise. */
	v.exec = 0xffffff01;
	assert_int_equal(record(KPROBE_RENAME, v.tgid), 0);
	v.exec = 0xffffff00;
	assert_int_equal(record(KPROBE_RENAME, v.tgid), sizeof(*e));
}

static void test_ids(void **state)
{
	const struct abi_quark_id_change *e = (const void *)got;

	v.ids.sid = 9;
	assert_int_equal(record(KPROBE_SID, v.tgid), sizeof(*e));
	check_head(ABI_QUARK_ID_CHANGE);
	assert_int_equal(e->ids.sid, 9);
	assert_int_equal(e->cwd_len + e->cgroup_len, 0);
	assert_int_equal(record(KPROBE_UID, v.tgid), sizeof(*e));
	check_head(ABI_QUARK_ID_CHANGE);
}

/* --- images ---------------------------------------------------------------------- */

static void set_names(struct quark_span *out, const char *const *names)
{
	for (; *names; names++, out++)
		*out = (struct quark_span){ *names, strlen(*names) };
}

#define ROOT_MOUNT (UINT32_MAX - 1)

/* A mount at "/", the root of which may be a directory of its file system. */
static uint32_t mount_at_root(const char *dir)
{
	char line[128];
	int n;

	n = snprintf(line, sizeof(line), "%u 1 8:1 %s / rw - ext4 /dev/x rw",
		     ROOT_MOUNT, dir);
	assert_true(n > 0 && n < (int)sizeof(line));
	assert_int_equal(add_mount(r.paths, line), 0);
	return ROOT_MOUNT;
}

/* The mount of this test's root. */
static uint32_t root_mount(void)
{
	return mount_at_root("/");
}

/* The strings of the record, in order. */
static const char *strings(void)
{
	return got + sizeof(struct abi_quark_image);
}

static void test_exec(void **state)
{
	static const char *const exe[] = { "true", "bin", "usr", "/", NULL };
	static const char *const cwd[] = { "/", NULL };
	const struct abi_quark_image *im = (const void *)got;

	v.ino = 11;
	v.dev = 8 << 20 | 1;
	v.size = 1234;
	v.ctime_sec = 2;
	v.ctime_nsec = 0xc0000003; /* with a flag above, from 6.13 on */
	set_names(v.exe, exe);
	set_names(v.cwd, cwd);
	v.exe_mnt = v.cwd_mnt = root_mount();
	v.arg_start = 0x1000;
	v.arg_end = 0x1007;
	memcpy(v.args, "true\0x\0garbage", 14);
	record(KPROBE_EXEC, v.tgid);
	check_head(ABI_QUARK_EXEC);
	assert_int_equal(im->head.tid, 88);
	assert_int_equal(im->ino, 11);
	assert_int_equal(im->dev, 8 << 20 | 1);
	assert_int_equal(im->size, 1234);
	assert_int_equal(im->ctime_ns, 2000000003);
	assert_int_equal(im->exe_len, 13);
	assert_int_equal(im->args_len, 7);
	assert_int_equal(im->cwd_len, 1);
	assert_int_equal(im->env_len, 0);
	assert_memory_equal(strings(), "/usr/bin/truetrue\0x\0/", 21);
	assert_int_equal(im->head.flags, 0);
	assert_int_equal(got_len, sizeof(*im) + 13 + 7 + 1 + im->cgroup_len);
}

/* Values behind a NULL pointer have what was in the buffer. */
static void test_null(void **state)
{
	static const char *const names[] = { "x", "/", NULL };
	const struct abi_quark_image *im = (const void *)got;
	int i;

	for (i = 0; i < 2; i++) {
		v.mm = i;
		v.tty = v.nsproxy = v.exe_file = v.fs = 0;
		v.ids.tty_major = v.ids.tty_minor = v.tty_index = 99;
		v.ids.uts_inonum = v.ids.ipc_inonum = 99;
		v.ids.mnt_inonum = v.ids.net_inonum = 99;
		v.ino = v.dev = v.size = v.ctime_sec = 99;
		set_names(v.exe, names);
		set_names(v.cwd, names);
		v.exe_mnt = v.cwd_mnt = root_mount();
		record(KPROBE_SCAN, v.tgid);
		assert_int_equal(im->ids.tty_major, 0);
		assert_int_equal(im->ids.tty_minor, 0);
		assert_int_equal(im->ids.uts_inonum + im->ids.ipc_inonum +
					 im->ids.mnt_inonum +
					 im->ids.net_inonum,
				 0);
		assert_int_equal(im->ino + im->dev + im->size + im->ctime_ns,
				 0);
		assert_int_equal(im->exe_len, 0);
		assert_int_equal(im->cwd_len, 0);
	}
}

/* Deeper than a probe reads, and gone: execve's path is used. */
static void test_exec_cut(void **state)
{
	static const char *const exe[] = { "e", "d", "c", "b", "a", NULL };
	const struct abi_quark_image *im = (const void *)got;

	v.ino = 11;
	set_names(v.exe, exe);
	v.exe_mnt = root_mount();
	strcpy(r.filename, "./a/b/c/d/e");
	record(KPROBE_EXEC, v.tgid);
	assert_int_equal(im->head.flags, ABI_QUARK_PATH_CUT);
	assert_int_equal(im->exe_len, 11);
	assert_memory_equal(strings(), "./a/b/c/d/e", 11);
	/* The same with an unknown mount. */
	v.exe_mnt = UINT32_MAX;
	record(KPROBE_EXEC, v.tgid);
	assert_int_equal(im->head.flags, ABI_QUARK_PATH_CUT);
}

/* execve's path leads to that file: resolved. */
static void test_exec_file(void **state)
{
	const struct abi_quark_image *im = (const void *)got;
	char self[4096], link[] = "/proc/self/exe";
	struct stat st;
	ssize_t n = readlink(link, self, sizeof(self));

	assert_true(n > 0);
	assert_int_equal(stat(link, &st), 0);
	v.ino = st.st_ino;
	v.dev = gnu_dev_major(st.st_dev) << 20 | gnu_dev_minor(st.st_dev);
	strcpy(r.filename, link);
	record(KPROBE_EXEC, v.tgid);
	assert_int_equal(im->head.flags, 0);
	assert_int_equal(im->exe_len, n);
	assert_memory_equal(strings(), self, n);
}

/* More arguments than a probe reads; their addresses have the length. */
static void test_long_args(void **state)
{
	static const uint64_t lens[] = { 2048, 2049, 1 << 20, UINT64_MAX / 2 };
	const struct abi_quark_image *im = (const void *)got;
	size_t i;

	memset(v.args, 'x', sizeof(v.args));
	v.arg_start = 0x1000;
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		v.arg_end = v.arg_start + lens[i];
		record(KPROBE_EXEC, v.tgid);
		assert_int_equal(im->args_len, 2048);
		assert_int_equal(im->head.flags,
				 lens[i] > 2048 ? ABI_QUARK_ARGS_CUT : 0);
	}
	/* None, or invalid. */
	v.arg_end = v.arg_start;
	record(KPROBE_EXEC, v.tgid);
	assert_int_equal(im->args_len, 0);
	v.arg_end = v.arg_start - 1;
	record(KPROBE_EXEC, v.tgid);
	assert_int_equal(im->args_len, 0);
}

static void test_env(void **state)
{
	static const uint32_t max[] = { 0, 10, 4096 }, want[] = { 0, 10, 512 };
	const struct abi_quark_image *im = (const void *)got;
	size_t i;

	memset(v.env, 'e', sizeof(v.env));
	v.env_start = 0x1000;
	v.env_end = 0x2000;
	for (i = 0; i < ARRAY_SIZE(max); i++) {
		r.max_env = max[i];
		record(KPROBE_EXEC, v.tgid);
		assert_int_equal(im->env_len, want[i]);
	}
	v.env_end = v.env_start + 7;
	record(KPROBE_EXEC, v.tgid);
	assert_int_equal(im->env_len, 7);
}

/* All is read from a process that still has the same image. */
static void test_live(void **state)
{
	const struct abi_quark_image *im = (const void *)got;
	char stat_line[1024], *p;
	unsigned long long ticks;
	FILE *f = fopen("/proc/self/stat", "re");

	assert_non_null(f);
	assert_non_null(fgets(stat_line, sizeof(stat_line), f));
	fclose(f);
	p = strrchr(stat_line, ')');
	assert_int_equal(sscanf(p + 1,
				" %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u"
				" %*u %*u %*d %*d %*d %*d %*d %*d %llu",
				&ticks),
			 1);
	v.tgid = v.pid = getpid();
	v.start = ticks * (1000000000 / sysconf(_SC_CLK_TCK));
	v.arg_start = 0x1000;
	v.arg_end = v.arg_start + 3000;
	answer = v;
	alive = true;
	memset(v.args, 'x', sizeof(v.args));
	record(KPROBE_EXEC, v.tgid);
	assert_true(im->args_len > 0);
	assert_int_not_equal(im->args_len, 2048);
	assert_non_null(memmem(got, got_len, "test_quark_kprobe_record", 24));
	/* It has executed another file since: not its arguments. */
	answer.exec_id++;
	record(KPROBE_EXEC, v.tgid);
	assert_int_equal(im->args_len, 2048);
	answer.exec_id--;
	alive = false;
	record(KPROBE_EXEC, v.tgid);
	assert_int_equal(im->args_len, 2048);
}

static void test_scan(void **state)
{
	const struct abi_quark_image *im = (const void *)got;

	v.live = 1;
	v.leader_exit_code = 7 << 8;
	record(KPROBE_SCAN, 1);
	check_head(ABI_QUARK_TASK);
	assert_int_equal(im->head.flags, 0);
	assert_int_equal(im->wait_status, 0);
	/* A zombie. */
	v.live = 0;
	record(KPROBE_SCAN, 1);
	assert_int_equal(im->head.flags, ABI_QUARK_GROUP_DEAD);
	assert_int_equal(im->wait_status, 7 << 8);
	v.flags = PF_KTHREAD;
	record(KPROBE_SCAN, 1);
	assert_true(im->head.flags & ABI_QUARK_KTHREAD);
	assert_int_equal(im->cwd_len, 0);
}

/* The current directory and cgroup, behind the ids. */
static void test_places(void **state)
{
	static const char *const cwd[] = { "tmp", "/", NULL };
	const struct abi_quark_id_change *e = (const void *)got;

	set_names(v.cwd, cwd);
	v.cwd_mnt = root_mount();
	record(KPROBE_CWD, v.tgid);
	check_head(ABI_QUARK_ID_CHANGE);
	assert_int_equal(e->cwd_len, 4);
	assert_memory_equal(got + sizeof(*e), "/tmp", 4);
	assert_int_equal(got_len, sizeof(*e) + 4 + e->cgroup_len);
}

/* If the root is a bind mount, paths begin at the bound directory. */
static void test_bound_root(void **state)
{
	static const char *const exe[] = { "true", "bin", "jail", "/", NULL };
	static const char *const cwd[] = { "tmp", "jail", "/", NULL };
	const struct abi_quark_image *im = (const void *)got;

	v.ino = 11;
	set_names(v.exe, exe);
	set_names(v.cwd, cwd);
	v.exe_mnt = v.cwd_mnt = mount_at_root("/jail");
	record(KPROBE_EXEC, v.tgid);
	assert_int_equal(im->exe_len, 9);
	assert_int_equal(im->cwd_len, 4);
	assert_memory_equal(strings(), "/bin/true/tmp", 13);
}

/* --- a process with another root ---------------------------------------------- */

struct jail {
	char dir[32];
	pid_t pid;
	int out[2];
};

/* The names of a path below "/", the last one first. Borrowed from it. */
static void names_of(struct quark_span *out, char *path)
{
	char *slash;

	while ((slash = strrchr(path, '/'))) {
		*out++ = (struct quark_span){ slash + 1, strlen(slash + 1) };
		*slash = '\0';
	}
	*out = (struct quark_span){ "/", 1 };
}

static uint64_t start_of(pid_t pid)
{
	struct strbuf sb = STRBUF_INIT;
	uint64_t start;

	assert_true(quark_procfs_task(pid, &sb));
	start = ((struct abi_quark_image *)sb.data)->head.key.start_boottime;
	strbuf_fini(&sb);
	return start;
}

/* Its root becomes 'dir', by 'enter'; it waits in /work. */
static void jail(struct jail *j, bool (*enter)(const char *dir))
{
	char c;

	strcpy(j->dir, "/tmp/quarkXXXXXX");
	assert_non_null(mkdtemp(j->dir));
	assert_int_equal(pipe(j->out), 0);
	j->pid = fork();
	if (j->pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		c = enter(j->dir) && !mkdir("/work", 0755) && !chdir("/work");
		if (write(j->out[1], &c, 1) == 1)
			pause();
		_exit(0);
	}
	assert_int_equal(read(j->out[0], &c, 1), 1);
	assert_true(c);
	v.tgid = v.pid = j->pid;
	v.start = start_of(j->pid);
}

static void end_jail(struct jail *j)
{
	char work[64];

	kill(j->pid, SIGKILL);
	assert_int_equal(waitpid(j->pid, NULL, 0), j->pid);
	snprintf(work, sizeof(work), "%s/work", j->dir);
	rmdir(work);
	rmdir(j->dir);
	close(j->out[0]);
	close(j->out[1]);
}

static bool by_chroot(const char *dir)
{
	return !chroot(dir) && !chdir("/");
}

/* As a container engine does. */
static bool by_pivot_root(const char *dir)
{
	return !unshare(CLONE_NEWNS) &&
	       !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount(dir, dir, NULL, MS_BIND, NULL) && !chdir(dir) &&
	       !syscall(SYS_pivot_root, ".", ".") &&
	       !umount2(".", MNT_DETACH) && !chdir("/");
}

/* ... and one that only binds a directory and makes that its root. */
static bool by_bind(const char *dir)
{
	return !unshare(CLONE_NEWNS) &&
	       !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount(dir, dir, NULL, MS_BIND, NULL) && by_chroot(dir);
}

/* Not in a chroot whose root is no mount. */
static bool may_mount(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(unshare(CLONE_NEWNS) ||
		      mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	return waitpid(pid, &status, 0) == pid && status == 0;
}

static void test_roots(void **state)
{
	static bool (*const ways[])(const char *) = { by_chroot, by_pivot_root,
						      by_bind };
	const struct abi_quark_id_change *e = (const void *)got;
	char path[64];
	struct jail j;
	size_t i;

	if (geteuid() != 0)
		skip();
	for (i = 0; i < (may_mount() ? ARRAY_SIZE(ways) : 1); i++) {
		jail(&j, ways[i]);
		snprintf(path, sizeof(path), "%s/work", j.dir);
		memset(v.cwd, 0, sizeof(v.cwd));
		names_of(v.cwd, path);
		/* Mounts of another mount namespace are unknown. */
		v.cwd_mnt = i ? UINT32_MAX : root_mount();
		record(KPROBE_CWD, v.tgid);
		assert_int_equal(e->cwd_len, 5);
		assert_memory_equal(got + sizeof(*e), "/work", 5);
		end_jail(&j);
	}
	if (may_mount())
		return;
	puts("# this place forbids roots other than by chroot");
	skip();
}

/* --- cgroups ------------------------------------------------------------------ */

#define CONTAINER                                                \
	"0123456789abcdef0123456789abcdef0123456789abcdef012345" \
	"6789quark1"

static bool join(const char *dir, pid_t pid)
{
	char path[256];
	FILE *f;
	bool ok;

	if (mkdir(dir, 0755) && errno != EEXIST)
		return false;
	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	f = fopen(path, "we");
	if (!f)
		return false;
	ok = fprintf(f, "%d", pid) > 0;
	return !fclose(f) && ok;
}

/* A version 1 container, which is not in the unified hierarchy. */
static void test_hybrid(void **state)
{
	static const char unified[] = "/sys/fs/cgroup/unified/quark-test";
	static const char memory[] = "/sys/fs/cgroup/memory/" CONTAINER;
	const struct abi_quark_id_change *e = (const void *)got;
	struct stat st;
	bool joined;

	v.tgid = v.pid = fork();
	if (v.pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	v.start = start_of(v.pid);
	joined = join(unified, v.pid) && join(memory, v.pid) &&
		 !stat(unified, &st);
	v.cgroup = st.st_ino;
	if (joined)
		record(KPROBE_CGROUP, v.tgid);
	kill(v.pid, SIGKILL);
	waitpid(v.pid, NULL, 0);
	rmdir(unified);
	rmdir(memory);
	if (!joined) {
		puts("# this place forbids cgroups of both versions");
		skip();
	}
	assert_int_equal(e->cgroup_len, strlen("/" CONTAINER));
	assert_memory_equal(got + got_len - e->cgroup_len, "/" CONTAINER,
			    e->cgroup_len);
	/* A process that is gone has no path instead of a wrong one. */
	record(KPROBE_CGROUP, v.tgid);
	assert_int_equal(e->cgroup_len, 0);
}

/* --- paths ------------------------------------------------------------------------ */

static void expect_path(const char *root, const char *point, bool ok,
			const char *want)
{
	static const char *const names[] = { "b", "a", "/", NULL };
	struct quark_span spans[KPROBE_CWD_LEVELS] = { 0 };
	struct strbuf out = STRBUF_INIT;
	struct mount_entry m = { 77, (char *)root, (char *)point };
	struct kprobe_paths p = { .fd = -1, .mounts = &m, .n = 1 };

	set_names(spans, names);
	strbuf_puts(&out, "before");
	assert_int_equal(kprobe_path(&p, 77, spans, 3, &out), ok);
	assert_string_equal(strbuf_str(&out), want);
	strbuf_fini(&out);
}

static void test_mounts(void **state)
{
	expect_path("/", "/", true, "before/a/b");
	expect_path("/", "/mnt", true, "before/mnt/a/b");
	/* A bound directory: itself and what is below. */
	expect_path("/a", "/mnt", true, "before/mnt/b");
	expect_path("/a/b", "/mnt", true, "before/mnt");
	expect_path("/a/b", "/", true, "before/");
	/* Outside of it, also by one letter. */
	expect_path("/c", "/mnt", false, "before");
	expect_path("/a/bc", "/mnt", false, "before");
	expect_path("/a/b/c", "/mnt", false, "before");
}

/* The array's size is right, also when it could not grow. */
static void test_no_memory(void **state)
{
	const char text[] = "5 1 8:1 / /x rw - ext4 /dev/x rw";
	struct kprobe_paths p = { .fd = -1, .cgroupfd = -1 };
	char line[sizeof(text)];
	int i;

	for (i = 0; i < 65; i++) {
		strcpy(line, text);
		no_memory = i == 64;
		assert_int_equal(add_mount(&p, line), no_memory ? -ENOMEM : 0);
	}
	strcpy(line, text);
	assert_int_equal(add_mount(&p, line), -ENOMEM);
	no_memory = false;
	assert_int_equal(p.n, 64);
	assert_int_equal(p.cap, 64);
	forget_mounts(&p);
	free(p.mounts);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_fork),	   T(test_exit),       T(test_reap),
		T(test_rename),	   T(test_ids),	       T(test_exec),
		T(test_null),	   T(test_exec_cut),   T(test_exec_file),
		T(test_long_args), T(test_env),	       T(test_live),
		T(test_scan),	   T(test_places),     T(test_mounts),
		T(test_no_memory), T(test_bound_root), T(test_roots),
		T(test_hybrid),
	};
#undef T

	return cmocka_run_group_tests(tests, NULL, NULL);
}
