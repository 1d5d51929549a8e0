// SPDX-License-Identifier: Apache-2.0
/*
 * libquark's backend that needs no BPF. If the kernel has kprobe events: its probes
 * in tracefs, and its differences. If not: its error, and those of both backends.
 * Its other tests are those of the other backend, with QUARK_TEST_BACKEND=kprobe.
 */
#include <linux/capability.h>
#include <mntent.h>
#include <sys/mount.h>

#include "tests/bpf/place.h"
#include "tests/bpf/quark/test_quark.h"

#define TRACEFS "/sys/kernel/tracing/"

/* One mount that has, or would have, a tracefs in it. False: there is none. */
static bool unmount_one(void)
{
	FILE *f = setmntent("/proc/self/mounts", "re");
	bool gone = false;
	struct mntent *m;

	CHECK(f != NULL);
	while (!gone && (m = getmntent(f)))
		if (!strcmp(m->mnt_type, "tracefs") ||
		    !strcmp(m->mnt_type, "debugfs"))
			gone = umount2(m->mnt_dir, MNT_DETACH) == 0;
	endmntent(f);
	return gone;
}

/*
 * Mounts of our own, none of tracefs, wherever the host has some: it may have a
 * chroot with a /sys of its own. What another mount hides cannot be unmounted,
 * nor be found.
 */
static void unmount_tracefs(void)
{
	CHECK(place_own_mounts() == 0);
	while (unmount_one())
		;
}

/* One, and in its usual place, whatever else the host has mounted. */
static void mount_tracefs(void)
{
	unmount_tracefs();
	/* A kernel without has no such place. */
	CHECK(mount("t", TRACEFS, "tracefs", 0, NULL) == 0 || errno == ENOENT);
}

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
	/* A running process's stay. */
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

/* The next open removes the probes of a killed process. */
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

/* Without BPF the other backend is used; the reason stays available. */
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

/* Both reasons are reported. */
static void test_neither(void **state)
{
	in_child(body_neither);
}

/* Working directory and file of a process, read long after its end. */
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

/* --- where tracefs is ---------------------------------------------------------- */

/* With kprobe events it opens; without, the reason names the place. */
static void expect_place(bool has, const char *place)
{
	struct quark_queue_attr attr;
	struct quark_queue qq;

	kprobe_attr(&attr, QQ_KPROBE);
	errno = 0;
	if (has) {
		if (quark_queue_open(&qq, &attr)) {
			fprintf(stderr, "%s\n", quark_queue_open_error());
			CHECK(false);
		}
		quark_queue_close(&qq);
		return;
	}
	CHECK_INT(quark_queue_open(&qq, &attr), -1);
	CHECK_INT(errno, ENOTSUP);
	CHECK(strstr(quark_queue_open_error(), place));
	CHECK(strstr(quark_queue_open_error(), "has no kprobe events"));
}

static void expect_reason(int err, const char *why)
{
	struct quark_queue_attr attr;
	struct quark_queue qq;

	kprobe_attr(&attr, QQ_KPROBE);
	errno = 0;
	CHECK_INT(quark_queue_open(&qq, &attr), -1);
	if (!strstr(quark_queue_open_error(), why)) {
		fprintf(stderr, "%s\n", quark_queue_open_error());
		CHECK(false);
	}
	CHECK_INT(errno, err);
}

static void body_tracefs(void)
{
	char dir[] = "/tmp/tracefsXXXXXX", file[64];
	bool has = has_kprobes();

	unmount_tracefs();
	expect_reason(ENOTSUP, "kprobe: tracefs is not mounted");
	/* Debugfs alone, as on hosts of old. */
	CHECK(mount("d", "/sys/kernel/debug", "debugfs", 0, NULL) == 0);
	expect_place(has, "/sys/kernel/debug/tracing: ");
	umount2("/sys/kernel/debug/tracing", MNT_DETACH);
	CHECK(umount2("/sys/kernel/debug", MNT_DETACH) == 0);
	/* Anywhere. */
	CHECK(mkdtemp(dir) != NULL);
	CHECK(mount("t", dir, "tracefs", 0, NULL) == 0);
	expect_place(has, dir);
	/* Not to be written to. */
	CHECK(mount(NULL, dir, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL) ==
	      0);
	snprintf(file, sizeof(file), "%s/kprobe_events: Read-only", dir);
	if (has)
		expect_reason(EPERM, file);
	CHECK(umount2(dir, MNT_DETACH) == 0);
	CHECK(rmdir(dir) == 0);
	/* A kernel without any. */
	CHECK(mount("n", "/sys/kernel", "tmpfs", 0, NULL) == 0);
	expect_reason(ENOTSUP, "kprobe: the kernel has no tracefs");
}

/* It is found where it is; if not, why. */
static void test_tracefs(void **state)
{
	in_child(body_tracefs);
}

/* A host with more of them, one out of reach, as a chroot's may be. */
static void body_tracefs_elsewhere(void)
{
	char dir[] = "/tmp/trace fsXXXXXX", under[64], seen[64], hidden[64];

	CHECK(place_own_mounts() == 0);
	CHECK(mkdtemp(dir) != NULL);
	snprintf(under, sizeof(under), "%s/under", dir);
	snprintf(seen, sizeof(seen), "%s/seen", dir);
	snprintf(hidden, sizeof(hidden), "%s/under/hidden", dir);
	CHECK(mkdir(under, 0700) == 0);
	CHECK(mkdir(seen, 0700) == 0);
	CHECK(mkdir(hidden, 0700) == 0);
	CHECK(mount("t", hidden, "tracefs", 0, NULL) == 0);
	CHECK(mount("n", under, "tmpfs", 0, NULL) == 0);
	CHECK(mount("d", seen, "debugfs", 0, NULL) == 0);
	CHECK(mount("t", seen, "tracefs", 0, NULL) == 0);
	body_tracefs();
	/* What was mounted goes with this process's mounts. */
	CHECK(umount2(under, MNT_DETACH) == 0);
	CHECK(umount2(hidden, MNT_DETACH) == 0);
	CHECK(rmdir(hidden) == 0);
	CHECK(rmdir(under) == 0);
	CHECK(rmdir(seen) == 0);
	CHECK(rmdir(dir) == 0);
}

static void test_tracefs_elsewhere(void **state)
{
	in_child(body_tracefs_elsewhere);
}

static void body_fallback_reasons(void)
{
	struct quark_queue_attr attr;
	struct quark_queue qq;

	unmount_tracefs();
	/* Without CAP_BPF the first is refused; then the second has no tracefs. */
	drop_cap_bpf();
	kprobe_attr(&attr, QQ_ALL_BACKENDS);
	errno = 0;
	CHECK_INT(quark_queue_open(&qq, &attr), -1);
	CHECK_INT(errno, EPERM);
	CHECK(!strncmp(quark_queue_open_error(), "ebpf: ", 6));
	CHECK(strstr(quark_queue_open_error(), "CAP_BPF missing; "
					       "kprobe: tracefs is not"));
}

/* From one to the other, the reasons of both are kept, the first's errno. */
static void test_fallback_reasons(void **state)
{
	in_child(body_fallback_reasons);
}

static void body_paranoid(void)
{
	struct __user_cap_header_struct head = {
		.version = _LINUX_CAPABILITY_VERSION_3,
	};
	struct __user_cap_data_struct caps[2];
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	char why[80];
	int level;

	CHECK(f && fscanf(f, "%d", &level) == 1);
	fclose(f);
	memset(caps, 0, sizeof(caps));
	caps[0].effective = 1 << CAP_DAC_OVERRIDE | 1 << CAP_DAC_READ_SEARCH;
	caps[0].permitted = caps[0].effective;
	CHECK(syscall(SYS_capset, &head, caps) == 0);
	snprintf(why, sizeof(why),
		 "Permission denied (kernel.perf_event_paranoid is %d)", level);
	/* At 0 and below it is not what keeps us out, if anything does. */
	if (level > 0)
		expect_reason(EPERM, why);
	CHECK_INT(count_probes(0), 0);
}

/* Probes may be made, but not be read: which setting it is. */
static void test_paranoid(void **state)
{
	in_child(body_paranoid);
}

/* --- CPUs that come and go ------------------------------------------------------ */

#define CPU1 "/sys/devices/system/cpu/cpu1/online"

static void set_online(bool on)
{
	int fd = open(CPU1, O_WRONLY | O_CLOEXEC);

	CHECK(fd >= 0);
	CHECK(write(fd, on ? "1" : "0", 1) == 1);
	close(fd);
}

static int back_online(void **state)
{
	set_online(true);
	return 0;
}

static void run_on(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	if (cpu < 0)
		memset(&set, -1, sizeof(set));
	else
		CPU_SET(cpu, &set);
	CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
}

/* Its fork, exec and exit happen there. */
static pid_t life_on(int cpu)
{
	pid_t pid;

	run_on(cpu);
	pid = spawn_true();
	CHECK(waitpid(pid, NULL, 0) == pid);
	run_on(-1);
	return pid;
}

static size_t count_gaps(const struct tape *t)
{
	size_t i, n = 0;

	for (i = 0; i < t->n; i++)
		n += t->ev[i]->events == QUARK_EV_GAP;
	return n;
}

static const struct quark_event *last_gap(const struct tape *t)
{
	size_t i;

	for (i = t->n; i-- > 0;)
		if (t->ev[i]->events == QUARK_EV_GAP)
			return t->ev[i];
	return NULL;
}

/* Until the stream has one more of them. */
static const struct quark_event *next_gap(struct tape *t, struct quark_queue *q,
					  size_t before)
{
	double end = seconds() + 60;

	while (count_gaps(t) == before) {
		if (seconds() > end) {
			fprintf(stderr, "no gap but %zu, %d descriptors\n",
				before, count_fds());
			_exit(1);
		}
		CHECK(quark_queue_block(q) == 0);
		tape_read(t, q);
	}
	return last_gap(t);
}

static void check_whole(struct tape *t, struct quark_queue *qq, pid_t pid)
{
	tape_wait(t, qq, pid, QUARK_EV_EXIT);
	CHECK_INT(tape_count(t, pid, QUARK_EV_FORK), 1);
	CHECK_INT(tape_count(t, pid, QUARK_EV_EXEC), 1);
	CHECK_INT(tape_count(t, pid, QUARK_EV_EXIT), 1);
}

static void body_hotplug(void)
{
	const uint64_t kinds = QUARK_EV_FORK | QUARK_EV_EXEC | QUARK_EV_EXIT |
			       QUARK_EV_ID_CHANGE | QUARK_EV_SETPROCTITLE |
			       QUARK_EV_REAP;
	const struct quark_event *gap;
	struct quark_queue_attr attr;
	struct quark_queue_stats st;
	struct tape t = { 0 };
	struct quark_queue qq;
	int with_two, i;
	pid_t pid;

	kprobe_attr(&attr, QQ_KPROBE);
	CHECK(quark_queue_open(&qq, &attr) == 0);
	with_two = count_fds();
	/* What it did before it went is not lost with it. */
	pid = life_on(1);
	set_online(false);
	check_whole(&t, &qq, pid);
	CHECK(count_fds() < with_two);
	CHECK_INT(count_gaps(&t), 0);
	/* It comes back: what it did before it had a ring is a gap. */
	set_online(true);
	gap = next_gap(&t, &qq, 0);
	CHECK(gap->process == NULL);
	CHECK(gap->gap_from < gap->gap_to);
	CHECK_INT(gap->gap_kinds, kinds);
	CHECK_INT(gap->gap_lost, 0);
	CHECK_INT(count_fds(), with_two);
	check_whole(&t, &qq, life_on(1));
	/* Away and back between two looks: its events are dead all the same. */
	for (i = 1; i < 4; i++) {
		pid = life_on(1);
		set_online(false);
		set_online(true);
		next_gap(&t, &qq, i);
		check_whole(&t, &qq, pid);
		check_whole(&t, &qq, life_on(1));
		CHECK_INT(count_fds(), with_two);
	}
	quark_queue_get_stats(&qq, &st);
	CHECK_INT(st.lost, 0);
	tape_fini(&t);
	quark_queue_close(&qq);
}

/* A CPU's ring goes and comes with it. */
static void test_hotplug(void **state)
{
	in_child(body_hotplug);
}

static void body_hotplug_loss(void)
{
	enum {
		LIVES = 300
	};
	uint64_t forks = 0, told = 0;
	struct quark_queue_attr attr;
	struct quark_queue_stats st;
	struct tape t = { 0 };
	struct quark_queue qq;
	size_t k;
	int i;

	kprobe_attr(&attr, QQ_KPROBE);
	attr.ring_bytes = 64 * 1024;
	CHECK(quark_queue_open(&qq, &attr) == 0);
	for (i = 0; i < LIVES; i++)
		life_on(1);
	set_online(false);
	tape_wait(&t, &qq, short_life(), QUARK_EV_EXIT);
	quark_queue_get_stats(&qq, &st);
	for (k = 0; k < t.n; k++) {
		forks += t.ev[k]->events == QUARK_EV_FORK &&
			 t.ev[k]->process->proc_ppid == (uint32_t)getpid();
		if (t.ev[k]->events == QUARK_EV_GAP)
			told += t.ev[k]->gap_lost;
	}
	CHECK(st.losses.kernel[0] > 0);
	CHECK(forks + st.losses.kernel[0] >= LIVES);
	CHECK_INT(told, st.lost);
	tape_fini(&t);
	quark_queue_close(&qq);
}

/* Lost records of its ring are counted when it is offline. */
static void test_hotplug_loss(void **state)
{
	in_child(body_hotplug_loss);
}

int main(void)
{
	const struct CMUnitTest without[] = {
		cmocka_unit_test(test_none),
		cmocka_unit_test(test_neither),
		cmocka_unit_test(test_tracefs),
		cmocka_unit_test(test_tracefs_elsewhere),
		cmocka_unit_test(test_fallback_reasons),
	};
	const struct CMUnitTest with[] = {
		cmocka_unit_test(test_gone_after_close),
		cmocka_unit_test(test_swept),
		cmocka_unit_test(test_fallback),
		cmocka_unit_test(test_neither),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_tracefs),
		cmocka_unit_test(test_tracefs_elsewhere),
		cmocka_unit_test(test_fallback_reasons),
		cmocka_unit_test(test_paranoid),
	};
	/* Not on a machine that others use. */
	const struct CMUnitTest hotplug[] = {
		cmocka_unit_test_teardown(test_hotplug, back_online),
		cmocka_unit_test_teardown(test_hotplug_loss, back_online),
	};

	mount_tracefs();
	if (getenv("QUARK_TEST_HOTPLUG"))
		return cmocka_run_group_tests(hotplug, NULL, NULL);
	if (has_kprobes())
		return cmocka_run_group_tests(with, NULL, NULL);
	return cmocka_run_group_tests(without, NULL, NULL);
}
