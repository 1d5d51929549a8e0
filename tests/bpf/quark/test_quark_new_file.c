// SPDX-License-Identifier: Apache-2.0
/*
 * quark_queue_attr.new_file: the exec of a new file wakes up the reader and calls
 * the function before its event; that of a known file does not. Wakeups are limited.
 */
#include <sys/sysmacros.h>

#include "tests/bpf/quark/test_quark.h"

static struct quark_new_file told[4096];
static char paths[4096][64];
static int n_told;
static struct quark_queue qq;

static void on_new_file(void *arg, const struct quark_new_file *file)
{
	CHECK(arg == &qq);
	if (strncmp(file->path, "/tmp/quark-new-", 15) || n_told == 4096)
		return; /* another user's */
	told[n_told] = *file;
	snprintf(paths[n_told], sizeof(paths[n_told]), "%s", file->path);
	n_told++;
}

static void open_new(bool ask)
{
	struct quark_queue_attr attr;

	quark_queue_default_attr(&attr);
	attr.flags = QQ_EBPF | QQ_NO_AGG;
	attr.hold_time = 0;
	attr.max_env = 0;
	attr.no_wakeup = 1;
	attr.new_file = ask ? on_new_file : NULL;
	attr.new_file_arg = &qq;
	if (quark_queue_open(&qq, &attr) < 0) {
		fprintf(stderr, "open: %s\n", quark_queue_open_error());
		_exit(1);
	}
	n_told = 0;
}

static void copy_true(const char *to)
{
	char buf[65536];
	int in = open("/bin/true", O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0755);
	ssize_t n;

	CHECK(in >= 0 && out >= 0);
	while ((n = read(in, buf, sizeof(buf))) > 0)
		CHECK(write(out, buf, n) == n);
	close(in);
	close(out);
}

static pid_t run(const char *path)
{
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (!pid) {
		CHECK(syscall(SYS_setresuid, 65534, 65534, 65534) == 0);
		execl(path, path, NULL);
		_exit(1);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	return pid;
}

static struct quark_file_ident ident_of(const char *path)
{
	struct stat st;

	CHECK(stat(path, &st) == 0);
	return (struct quark_file_ident){
		.dev = st.st_dev,
		.ino = st.st_ino,
		.ctime_ns =
			st.st_ctim.tv_sec * 1000000000ULL + st.st_ctim.tv_nsec,
		.size = st.st_size,
	};
}

/* Becomes readable within that time. */
static bool woken(int ms)
{
	struct pollfd p = { quark_queue_get_epollfd(&qq), POLLIN, 0 };

	return poll(&p, 1, ms) == 1;
}

static void body_new(void)
{
	struct quark_file_ident ident;
	struct tape t = { 0 };
	char path[64];
	pid_t pid;

	open_new(true);
	tape_read(&t, &qq);
	snprintf(path, sizeof(path), "/tmp/quark-new-%d", getpid());
	copy_true(path);
	ident = ident_of(path);
	pid = run(path);
	CHECK(woken(10000));
	CHECK(quark_queue_populate(&qq) >= 0);
	CHECK_INT(n_told, 1);
	CHECK_INT(told[0].pid, pid);
	CHECK_INT(told[0].uid, 65534);
	CHECK_STR(paths[0], path);
	CHECK(!memcmp(&told[0].ident, &ident, sizeof(ident)));
	tape_wait(&t, &qq, pid, QUARK_EV_REAP);
	CHECK_INT(
		told[0].start_boottime,
		tape_find(&t, pid, QUARK_EV_EXEC)->process->key.start_boottime);
	CHECK_INT(told[0].boottime,
		  tape_find(&t, pid, QUARK_EV_EXEC)->boottime);

	/* Known, it is an exec like others. */
	CHECK_INT(quark_queue_know_file(&qq, &ident), 0);
	pid = run(path);
	tape_wait(&t, &qq, pid, QUARK_EV_REAP);
	CHECK_INT(n_told, 1);
	CHECK_INT(quark_queue_forget_file(&qq, &ident), 0);
	CHECK_INT(quark_queue_forget_file(&qq, &ident), 0);
	pid = run(path);
	tape_wait(&t, &qq, pid, QUARK_EV_REAP);
	CHECK_INT(n_told, 2);

	/* Copied over it is another file, though its inode is the same. */
	CHECK_INT(quark_queue_know_file(&qq, &ident), 0);
	copy_true(path);
	CHECK_INT(ident_of(path).ino, ident.ino);
	pid = run(path);
	tape_wait(&t, &qq, pid, QUARK_EV_REAP);
	CHECK_INT(n_told, 3);
	unlink(path);
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_new(void **state)
{
	in_child(body_new);
}

#define FLOOD 2000

/* One user's many new files cause limited wakeups; all are reported. */
static void body_bound(void)
{
	struct quark_queue_stats st;
	struct tape t = { 0 };
	double begin, took;
	char path[64];
	int i;

	open_new(true);
	tape_read(&t, &qq);
	snprintf(path, sizeof(path), "/tmp/quark-new-%d", getpid());
	copy_true(path);
	begin = seconds();
	for (i = 0; i < FLOOD; i++)
		run(path);
	took = seconds() - begin;
	tape_read(&t, &qq);
	quark_queue_get_stats(&qq, &st);
	printf("# %d new files in %.1f s, %llu woke nobody\n", FLOOD, took,
	       (unsigned long long)st.unwoken);
	CHECK_INT(n_told, FLOOD);
	CHECK(FLOOD - (double)st.unwoken <= 200 * (took + 1) + 5);
	CHECK(st.unwoken > 0 || took > FLOOD / 200 - 2);
	unlink(path);
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_bound(void **state)
{
	in_child(body_bound);
}

static void body_nobody_asks(void)
{
	struct quark_file_ident ident = ident_of("/bin/true");
	struct tape t = { 0 };
	char path[64];
	pid_t pid;

	open_new(false);
	tape_read(&t, &qq);
	snprintf(path, sizeof(path), "/tmp/quark-new-%d", getpid());
	copy_true(path);
	pid = run(path);
	CHECK(!woken(300));
	tape_wait(&t, &qq, pid, QUARK_EV_REAP);
	CHECK_INT(n_told, 0);
	errno = 0;
	CHECK_INT(quark_queue_know_file(&qq, &ident), -1);
	CHECK_INT(errno, ENOTSUP);
	unlink(path);
	tape_fini(&t);
	quark_queue_close(&qq);
}

static void test_nobody_asks(void **state)
{
	in_child(body_nobody_asks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_new),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_nobody_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
