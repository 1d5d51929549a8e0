// SPDX-License-Identifier: Apache-2.0
/*
 * The backend of libquark that needs no BPF. Where the kernel has kprobe events:
 * what it leaves in tracefs, and what it says differently. Where it has none: that
 * it says so, and the fallback's reasons. The rest of its tests are those of the
 * other backend, with QUARK_TEST_BACKEND=kprobe.
 */
#include <linux/capability.h>

#include "tests/bpf/test_quark.h"

#define TRACEFS "/sys/kernel/tracing/"

static bool has_kprobes(void)
{
	return access(TRACEFS "kprobe_events", F_OK) == 0;
}

static void kprobe_attr(struct quark_queue_attr *attr, int flags)
{
	quark_queue_default_attr(attr);
	attr->flags = flags | QQ_NO_AGG;
	attr->hold_time = 0;
	attr->max_env = 0;
}

/* Lines of kprobe_events that are libquark's, of that process or of any. */
static int count_probes(pid_t pid)
{
	FILE *f = fopen(TRACEFS "kprobe_events", "re");
	char line[8192], want[64];
	int n = 0;

	CHECK(f != NULL);
	if (pid)
		snprintf(want, sizeof(want), "p:libquark_%d_", pid);
	else
		snprintf(want, sizeof(want), "p:libquark_");
	while (fgets(line, sizeof(line), f))
		n += !strncmp(line, want, strlen(want));
	fclose(f);
	return n;
}

/* --- without kprobe events --------------------------------------------------- */

static void body_none(void)
{
	struct quark_queue_attr attr;
	struct quark_queue qq;

	kprobe_attr(&attr, QQ_KPROBE);
	errno = 0;
	CHECK_INT(quark_queue_open(&qq, &attr), -1);
	CHECK_INT(errno, ENOTSUP);
	CHECK(strstr(quark_queue_open_error(), "kprobe: "));
	CHECK(!strstr(quark_queue_open_error(), "ebpf: "));
}

static void test_none(void **state)
{
	in_child(body_none);
}

/* --- with them ----------------------------------------------------------------- */

static void body_gone_after_close(void)
{
	struct quark_queue_attr attr;
	struct quark_queue a, b;

	kprobe_attr(&attr, QQ_KPROBE);
	CHECK(quark_queue_open(&a, &attr) == 0);
	CHECK_INT(count_probes(getpid()), 9);
	CHECK(quark_queue_open(&b, &attr) == 0);
	CHECK_INT(count_probes(getpid()), 18);
	quark_queue_close(&a);
	CHECK_INT(count_probes(getpid()), 9);
	/* The other one goes on. */
	tape_wait(&(struct tape){ 0 }, &b, short_life(), QUARK_EV_REAP);
	quark_queue_close(&b);
	CHECK_INT(count_probes(0), 0);
}

/* Each queue has its own probes, and takes them away with it. */
static void test_gone_after_close(void **state)
{
	in_child(body_gone_after_close);
}

static void body_swept(void)
{
	struct quark_queue_attr attr;
	struct quark_queue qq;
	int ready[2];
	pid_t pid;
	char c;

	kprobe_attr(&attr, QQ_KPROBE);
	CHECK(pipe(ready) == 0);
	pid = fork();
	if (pid == 0) {
		CHECK(quark_queue_open(&qq, &attr) == 0);
		CHECK(write(ready[1], "x", 1) == 1);
		pause();
	}
	close(ready[1]);
	CHECK(read(ready[0], &c, 1) == 1);
	/* One that lives is left alone. */
	CHECK(quark_queue_open(&qq, &attr) == 0);
	quark_queue_close(&qq);
	CHECK_INT(count_probes(pid), 9);
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitpid(pid, NULL, 0) == pid);
	CHECK_INT(count_probes(pid), 9);
	CHECK(quark_queue_open(&qq, &attr) == 0);
	CHECK_INT(count_probes(pid), 0);
	quark_queue_close(&qq);
	CHECK_INT(count_probes(0), 0);
	close(ready[0]);
}

/* What a killed process has left is swept by the next open. */
static void test_swept(void **state)
{
	in_child(body_swept);
}

/* Everything that the probes ask for, and not CAP_BPF. */
static void drop_cap_bpf(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[2];

	memset(caps, 0, sizeof(caps));
	caps[0].effective = 1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH |
			    1 << CAP_IPC_LOCK | 1 << CAP_SYS_PTRACE;
	caps[1].effective = 1 << (CAP_PERFMON - 32);
	caps[0].permitted = caps[0].effective;
	caps[1].permitted = caps[1].effective;
	CHECK(syscall(SYS_capset, &head, caps) == 0);
}

static void body_fallback(void)
{
	struct quark_queue_attr attr;
	struct quark_queue_stats st;
	struct tape t = { 0 };
	struct quark_queue qq;

	kprobe_attr(&attr, QQ_ALL_BACKENDS);
	CHECK(quark_queue_open(&qq, &attr) == 0);
	quark_queue_get_stats(&qq, &st);
	CHECK_INT(st.backend, QQ_EBPF);
	CHECK_STR(quark_queue_open_error(), "");
	quark_queue_close(&qq);
	drop_cap_bpf();
	if (quark_queue_open(&qq, &attr) < 0) {
		fprintf(stderr, "open: %s\n", quark_queue_open_error());
		CHECK(false);
	}
	quark_queue_get_stats(&qq, &st);
	CHECK_INT(st.backend, QQ_KPROBE);
	CHECK(!strncmp(quark_queue_open_error(), "ebpf: ", 6));
	CHECK(strstr(quark_queue_open_error(), "CAP_BPF"));
	CHECK(!strstr(quark_queue_open_error(), "kprobe: "));
	tape_wait(&t, &qq, short_life(), QUARK_EV_REAP);
	tape_fini(&t);
	quark_queue_close(&qq);
	/* Asked for alone, it is not replaced. */
	attr.flags = QQ_EBPF | QQ_NO_AGG;
	errno = 0;
	CHECK_INT(quark_queue_open(&qq, &attr), -1);
	CHECK_INT(errno, EPERM);
}

/* The other backend is taken when BPF will not have us, and why stays known. */
static void test_fallback(void **state)
{
	in_child(body_fallback);
}

static void body_neither(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[2];
	struct quark_queue_attr attr;
	struct quark_queue qq;
	int fds = count_fds();

	memset(caps, 0, sizeof(caps));
	CHECK(syscall(SYS_capset, &head, caps) == 0);
	kprobe_attr(&attr, QQ_ALL_BACKENDS);
	errno = 0;
	CHECK_INT(quark_queue_open(&qq, &attr), -1);
	CHECK_INT(errno, EPERM);
	CHECK(strstr(quark_queue_open_error(), "ebpf: "));
	CHECK(strstr(quark_queue_open_error(), "; kprobe: "));
	CHECK_INT(count_fds(), fds);
}

/* Both reasons are told. */
static void test_neither(void **state)
{
	in_child(body_neither);
}

/* A life's working directory and file, read when it is long gone. */
static void body_paths(void)
{
	char dir[] = "/tmp/kprobeXXXXXX", deep[128], exe[4096];
	struct quark_queue_attr attr;
	struct quark_event *ev;
	struct tape t = { 0 };
	struct quark_queue qq;
	pid_t pid;

	CHECK(mkdtemp(dir) != NULL);
	snprintf(deep, sizeof(deep), "%s/a", dir);
	CHECK(mkdir(deep, 0755) == 0);
	snprintf(exe, sizeof(exe), "%s/program", deep);
	CHECK(symlink("/bin/true", exe) == 0);
	kprobe_attr(&attr, QQ_KPROBE);
	CHECK(quark_queue_open(&qq, &attr) == 0);
	pid = fork();
	if (pid == 0) {
		CHECK(chdir(deep) == 0);
		execl("./program", "program", NULL);
		_exit(99);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	tape_wait(&t, &qq, pid, QUARK_EV_REAP);
	ev = tape_find(&t, pid, QUARK_EV_EXEC);
	/* On another mount than the root; and the link's end. */
	CHECK_STR(ev->process->cwd, deep);
	CHECK(realpath("/bin/true", exe) != NULL);
	CHECK_STR(ev->process->exe, exe);
	CHECK(ev->process->cgroup && ev->process->cgroup[0] == '/');
	tape_fini(&t);
	quark_queue_close(&qq);
	snprintf(exe, sizeof(exe), "%s/program", deep);
	unlink(exe);
	rmdir(deep);
	rmdir(dir);
}

static void test_paths(void **state)
{
	in_child(body_paths);
}

int main(void)
{
	const struct CMUnitTest without[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_neither),
	};
	const struct CMUnitTest with[] = {
		cmocka_unit_test(test_gone_after_close),
		cmocka_unit_test(test_swept),
		cmocka_unit_test(test_fallback),
		cmocka_unit_test(test_neither),
		cmocka_unit_test(test_paths),
	};

	if (has_kprobes())
		return cmocka_run_group_tests(with, NULL, NULL);
	return cmocka_run_group_tests(without, NULL, NULL);
}
