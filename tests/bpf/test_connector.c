// SPDX-License-Identifier: Apache-2.0
/*
 * Sockets that hostile processes name: which of them are connected to, and as which user.
 * Runs as root, and connects as the user of a child. Without BPF: it is here for its
 * privilege.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/fuse.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/tracing/connector.h"

static char dir[] = "/tmp/test_connector.XXXXXX";

#include "tests/unit/files.h"

#define NOBODY 65534
#define GROUP 4321

static uv_loop_t loop;
static uv_timer_t alive; /* the connector does not keep the loop running */
static struct connector *connector;
static unsigned int answers;
static int answer_err, answer_fd;

static void on_done(void *arg, const struct abi_key *key, int err, int fd)
{
	answers++;
	answer_err = err;
	answer_fd = fd;
}

/* --- processes ------------------------------------------------------------------ */

struct user {
	uid_t uid, euid;
	gid_t gid;
	bool grouped; /* it has GROUP, too */
	const char *root; /* NULL: ours */
};

static const struct user nobody = { NOBODY, NOBODY, NOBODY, false, NULL };

/* Waits to be killed. */
static pid_t process(const struct user *u)
{
	const gid_t group = GROUP;
	int ready[2];
	pid_t pid;
	char c;

	assert_int_equal(pipe(ready), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if ((u->root && (chroot(u->root) || chdir("/"))) ||
		    setgroups(u->grouped, &group) ||
		    setresgid(u->gid, u->gid, u->gid) ||
		    setresuid(u->uid, u->euid, u->uid))
			_exit(1);
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (write(ready[1], "", 1) == 1)
			for (;;)
				pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &c, 1), 1);
	close(ready[0]);
	return pid;
}

static void process_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static struct abi_key key_of(pid_t pid)
{
	struct procfs_stat st;

	assert_true(procfs_stat((uint32_t)pid, &st));
	return (struct abi_key){ .start_boottime = st.start,
				 .tgid = (uint32_t)pid };
}

/* --- sockets --------------------------------------------------------------------- */

static int bound(const char *path, int type, uid_t owner)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_true(strlen(path) < sizeof(sa.sun_path));
	strcpy(sa.sun_path, path);
	unlink(path);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, sizeof(sa)), 0);
	assert_int_equal(chown(path, owner, owner), 0);
	assert_int_equal(chmod(path, 0600), 0);
	return fd;
}

static const char *in_dir(const char *name)
{
	static char path[4][256];
	static unsigned int n;
	char *p = path[n++ % 4];

	snprintf(p, sizeof(path[0]), "%s/%s", dir, name);
	return p;
}

static void await(unsigned int n)
{
	while (answers < n)
		uv_run(&loop, UV_RUN_ONCE);
	assert_int_equal(answers, n);
}

/* 0, or -errno of the attempt. */
static int ask_key(const struct abi_key *key, uint32_t uid, const char *path)
{
	int err = connector_ask(connector, key, uid, path);

	if (err)
		return err;
	await(answers + 1);
	return answer_err;
}

static int ask(pid_t pid, const char *path)
{
	struct abi_key key = key_of(pid);

	return ask_key(&key, NOBODY, path);
}

/* What is sent comes out at 'server'. */
static void leads_to(int server)
{
	char c = 0;

	assert_int_equal(answer_err, 0);
	assert_true(answer_fd >= 0);
	assert_int_equal(send(answer_fd, "x", 1, MSG_DONTWAIT), 1);
	assert_int_equal(recv(server, &c, 1, MSG_DONTWAIT), 1);
	assert_int_equal(c, 'x');
	close(answer_fd);
}

/* --- honest ones ------------------------------------------------------------------ */

static void an_agents_socket_is_connected_to(void **state)
{
	pid_t pid = process(&nobody); /* without the socket */
	int server = bound(in_dir("agent"), SOCK_DGRAM, NOBODY);

	for (int i = 0; i < 20; i++) {
		assert_int_equal(ask(pid, in_dir("agent")), 0);
		leads_to(server);
	}
	/* By a link on the way. */
	sh("mkdir d; ln -s .. d/up");
	assert_int_equal(ask(pid, in_dir("d/up/agent")), 0);
	leads_to(server);
	close(server);
	/* Nobody reads it. */
	assert_int_equal(ask(pid, in_dir("agent")), -ECONNREFUSED);
	sh("rm -r agent d");
	assert_int_equal(ask(pid, in_dir("agent")), -ENOENT);
	process_end(pid);
}

static void a_path_may_be_as_long_as_any(void **state)
{
	int server = bound(in_dir("agent"), SOCK_DGRAM, NOBODY);
	pid_t pid = process(&nobody);
	char path[CONNECTOR_PATH_MAX + 1];
	size_t n = (size_t)snprintf(path, sizeof(path), "%s", dir);

	while (n < CONNECTOR_PATH_MAX - sizeof("/agent"))
		path[n++] = '/';
	strcpy(path + n, "/agent");
	assert_int_equal(strlen(path), CONNECTOR_PATH_MAX - 1);
	assert_int_equal(ask(pid, path), 0);
	leads_to(server);
	memmove(path + 1, path, strlen(path) + 1);
	assert_int_equal(ask(pid, path), -ENAMETOOLONG);
	process_end(pid);
	close(server);
}

/* --- who connects ------------------------------------------------------------------ */

static void it_reaches_what_the_process_reaches(void **state)
{
	struct user grouped = nobody;
	pid_t pid = process(&nobody), other;
	int server;

	sh("mkdir own; chmod 700 own; mkdir groups; chgrp %d groups; "
	   "chmod 750 groups",
	   GROUP);
	server = bound(in_dir("own/agent"), SOCK_DGRAM, NOBODY);
	assert_int_equal(ask(pid, in_dir("own/agent")), -EACCES);
	sh("chown %d own", NOBODY);
	assert_int_equal(ask(pid, in_dir("own/agent")), 0);
	leads_to(server);
	assert_int_equal(chmod(in_dir("own/agent"), 0), 0);
	assert_int_equal(ask(pid, in_dir("own/agent")), -EACCES);
	close(server);
	server = bound(in_dir("groups/agent"), SOCK_DGRAM, NOBODY);
	grouped.grouped = true;
	other = process(&grouped);
	assert_int_equal(ask(pid, in_dir("groups/agent")), -EACCES);
	assert_int_equal(ask(other, in_dir("groups/agent")), 0);
	leads_to(server);
	close(server);
	process_end(pid);
	process_end(other);
}

/* As of root's process: without a capability, too. */
static void root_has_no_more_than_its_files(void **state)
{
	const struct user root = { 0 };
	pid_t pid = process(&root);
	struct abi_key key = key_of(pid);
	int server = bound(in_dir("agent"), SOCK_DGRAM, 0);

	assert_int_equal(ask_key(&key, 0, in_dir("agent")), 0);
	leads_to(server);
	sh("mkdir other; chown %d other; chmod 700 other", NOBODY);
	close(bound(in_dir("other/agent"), SOCK_DGRAM, 0));
	assert_int_equal(ask_key(&key, 0, in_dir("other/agent")), -EACCES);
	process_end(pid);
	close(server);
}

static void only_of_the_process_and_user_that_named_it(void **state)
{
	const struct user suid = { NOBODY, 0, NOBODY, false, NULL };
	int server = bound(in_dir("agent"), SOCK_DGRAM, NOBODY);
	pid_t pid = process(&nobody), other;
	struct abi_key key = key_of(pid);

	assert_int_equal(ask_key(&key, 0, in_dir("agent")), -ESRCH);
	key.start_boottime += CLOCK_NSEC_PER_SEC;
	assert_int_equal(ask_key(&key, NOBODY, in_dir("agent")), -ESRCH);
	other = process(&suid);
	assert_int_equal(ask(other, in_dir("agent")), -ESRCH);
	process_end(other);
	key = key_of(pid);
	process_end(pid);
	assert_true(ask_key(&key, NOBODY, in_dir("agent")) < 0);
	close(server);
}

/* --- hostile ones ------------------------------------------------------------------- */

static void what_is_no_socket_of_the_user_is_refused(void **state)
{
	int server = bound(in_dir("agent"), SOCK_DGRAM, NOBODY);
	int roots = bound(in_dir("roots"), SOCK_DGRAM, 0);
	int stream = bound(in_dir("stream"), SOCK_STREAM, NOBODY);
	pid_t pid = process(&nobody);

	assert_int_equal(listen(stream, 1), 0);
	assert_int_equal(chmod(in_dir("roots"), 0777), 0);
	sh("ln -s agent link; mkfifo fifo; chmod 666 fifo; touch file; "
	   "chmod 666 file");
	assert_int_equal(ask(pid, in_dir("link")), -ENOTSOCK);
	assert_int_equal(ask(pid, in_dir("fifo")), -ENOTSOCK);
	assert_int_equal(ask(pid, in_dir("file")), -ENOTSOCK);
	assert_int_equal(ask(pid, dir), -ENOTSOCK);
	assert_int_equal(ask(pid, "/dev/null"), -ENOTSOCK);
	assert_int_equal(ask(pid, in_dir("roots")), -EPERM);
	assert_int_equal(ask(pid, in_dir("stream")), -EPROTOTYPE);
	process_end(pid);
	close(server);
	close(roots);
	close(stream);
}

static void no_link_leads_out_of_its_root(void **state)
{
	struct user inside = nobody;
	int outer, inner;
	char path[256];
	pid_t pid;

	sh("mkdir -p out root%s/out root/proc && mount -t proc proc root/proc "
	   "&& ln -s %s/out root/link && ln -s ../../../../../..%s/out root/up",
	   dir, dir, dir);
	outer = bound(in_dir("out/agent"), SOCK_DGRAM, NOBODY);
	inside.root = in_dir("root");
	pid = process(&inside);
	assert_int_equal(ask(pid, "/link/agent"), -ENOENT);
	assert_int_equal(ask(pid, "/up/agent"), -ENOENT);
	assert_int_equal(ask(pid, in_dir("out/agent")), -ENOENT);
	/* Links of /proc lead anywhere. */
	snprintf(path, sizeof(path), "/proc/%d/root%s/out/agent", getpid(),
		 dir);
	assert_int_equal(ask(pid, path), -EACCES);
	snprintf(path, sizeof(path), "/proc/self/root%s/out/agent", dir);
	assert_int_equal(ask(pid, path), -ELOOP);
	snprintf(path, sizeof(path), "%s/root%s/out/agent", dir, dir);
	inner = bound(path, SOCK_DGRAM, NOBODY);
	assert_int_equal(ask(pid, "/link/agent"), 0);
	leads_to(inner);
	assert_int_equal(ask(pid, "/up/agent"), 0);
	leads_to(inner);
	process_end(pid);
	sh("umount root/proc");
	close(inner);
	close(outer);
}

/* Each of two users has as many of the eight as the other leaves. */
static void a_user_does_not_take_all_attempts(void **state)
{
	pid_t pid = process(&nobody);
	unsigned int n = 0, before = answers;
	struct abi_key key = key_of(pid);

	while (!connector_ask(connector, &key, NOBODY, "/nothing"))
		n++;
	assert_int_equal(n, CONNECTOR_AT_ONCE / 2);
	assert_int_equal(connector_ask(connector, &key, 1, "/nothing"), 0);
	await(before + n + 1);
	assert_true(answer_err < 0);
	process_end(pid);
}

/* --- a file system that does not answer --------------------------------------------- */

/* Reads requests, and answers none but the first, which mounts it. */
static void fuse_serve(int dev)
{
	static char buf[FUSE_MIN_READ_BUFFER + (128 << 10)];
	const struct fuse_in_header *in = (void *)buf;
	struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION,
		.minor = 31,
		.max_write = 4096,
	};
	struct fuse_out_header out = { .len = sizeof(out) + sizeof(init) };
	struct iovec iov[] = { { &out, sizeof(out) }, { &init, sizeof(init) } };

	while (read(dev, buf, sizeof(buf)) > 0) {
		out.unique = in->unique;
		if (in->opcode == FUSE_INIT && writev(dev, iov, 2) < 0)
			break;
	}
	_exit(1);
}

/* The process that serves it. */
static pid_t fuse_mount(const char *at)
{
	int dev = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	char opts[128];
	pid_t pid;

	assert_true(dev >= 0);
	snprintf(opts, sizeof(opts),
		 "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other", dev);
	assert_int_equal(mkdir(at, 0755), 0);
	assert_int_equal(mount("fuse", at, "fuse", 0, opts), 0);
	pid = fork();
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fuse_serve(dev);
	}
	close(dev);
	return pid;
}

/*
 * A request that was read is waited for even by a process that was killed. So the attempts
 * stay; a user has eight of 16, four at a time.
 */
static void attempts_that_hang_leave_room_for_others(void **state)
{
	static const int answer[] = { -ETIMEDOUT, -ETIMEDOUT, -EBUSY };
	const struct user root = { 0 };
	int server = bound(in_dir("agent"), SOCK_DGRAM, NOBODY);
	int own = bound(in_dir("own_agent"), SOCK_DGRAM, 0);
	pid_t pid = process(&nobody), roots = process(&root), fuse;
	struct abi_key key = key_of(pid), root_key = key_of(roots);

	if (access("/dev/fuse", R_OK | W_OK)) {
		puts("# this place forbids FUSE");
		skip();
	}
	fuse = fuse_mount(in_dir("fuse"));
	for (size_t i = 0; i < ARRAY_SIZE(answer); i++) {
		unsigned int n = answers;

		while (!connector_ask(connector, &key, NOBODY,
				      in_dir("fuse/agent")))
			n++;
		await(n);
		assert_int_equal(answer_err, answer[i]);
	}
	assert_int_equal(ask(pid, in_dir("agent")), -EBUSY);
	assert_int_equal(ask_key(&root_key, 0, in_dir("own_agent")), 0);
	leads_to(own);
	process_end(fuse);
	/* They end now. */
	while (ask(pid, in_dir("agent")) == -EBUSY)
		usleep(20000);
	leads_to(server);
	sh("umount fuse");
	process_end(pid);
	process_end(roots);
	close(server);
	close(own);
}

/* --- without CAP_SETUID and CAP_SETGID ------------------------------------------------ */

/* Of this process's children that execute a program. The last test: it stays so. */
static void without_privilege_it_writes_as_itself(void **state)
{
	const struct connector_opts opts = { .loop = &loop, .done = on_done };
	const struct user root = { 0 };
	int server = bound(in_dir("agent"), SOCK_DGRAM, NOBODY);
	int own = bound(in_dir("own_agent"), SOCK_DGRAM, 0);
	pid_t pid = process(&nobody), roots = process(&root);
	struct abi_key root_key = key_of(roots);

	assert_true(connector_permitted());
	connector_free(connector);
	assert_int_equal(connector_new(&connector, &opts), 0);
	assert_int_equal(prctl(PR_CAPBSET_DROP, CAP_SETUID), 0);
	assert_int_equal(prctl(PR_CAPBSET_DROP, CAP_SETGID), 0);
	assert_int_equal(ask(pid, in_dir("agent")), -EACCES);
	assert_int_equal(chmod(in_dir("agent"), 0666), 0);
	assert_int_equal(ask(pid, in_dir("agent")), 0);
	leads_to(server);
	assert_int_equal(ask_key(&root_key, 0, in_dir("own_agent")), 0);
	leads_to(own);
	process_end(pid);
	process_end(roots);
	close(server);
	close(own);
}

static void on_alive(uv_timer_t *timer)
{
}

static int setup(void **state)
{
	const struct connector_opts opts = { .loop = &loop, .done = on_done };

	if (getuid() || !mkdtemp(dir) || chmod(dir, 0755))
		return -1;
	return uv_loop_init(&loop) || connector_new(&connector, &opts) ||
	       uv_timer_init(&loop, &alive) ||
	       uv_timer_start(&alive, on_alive, 10, 10);
}

static int teardown(void **state)
{
	connector_free(connector);
	uv_close((uv_handle_t *)&alive, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	sh("umount -l root/proc fuse 2>/dev/null; rm -rf %s", dir);
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_agents_socket_is_connected_to),
		cmocka_unit_test(a_path_may_be_as_long_as_any),
		cmocka_unit_test(it_reaches_what_the_process_reaches),
		cmocka_unit_test(root_has_no_more_than_its_files),
		cmocka_unit_test(only_of_the_process_and_user_that_named_it),
		cmocka_unit_test(what_is_no_socket_of_the_user_is_refused),
		cmocka_unit_test(no_link_leads_out_of_its_root),
		cmocka_unit_test(a_user_does_not_take_all_attempts),
		cmocka_unit_test(attempts_that_hang_leave_room_for_others),
		cmocka_unit_test(without_privilege_it_writes_as_itself),
	};

	/* The connector's processes are this program. */
	if (connector_wanted(argc, argv))
		return connector_main();
	return cmocka_run_group_tests(tests, setup, teardown);
}
