// SPDX-License-Identifier: Apache-2.0
/*
 * CPU hotplug, with the sampler, the mapping stream and the perf source. perf detaches
 * its events from a CPU that goes offline and does not attach them again, so each
 * source must open new ones.
 *
 * With PROFD_TEST_HOTPLUG=1 CPU 1 is taken offline (tests/vm/run), which is not
 * acceptable on a shared machine; without it, CPUs stay and nothing may change.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/perfsource.h"
#include "profiler/source/sampler.h"
#include "profiler/source/sideband.h"

#define PATIENCE_NS (120 * CLOCK_NSEC_PER_SEC)
#define LOOKS 10

static const char online_file[] = "/sys/devices/system/cpu/cpu1/online";

/* Records of the child that runs on CPU 1. */
struct seen {
	uint32_t child;
	size_t samples; /* on CPU 1 */
	size_t maps;
	size_t lost; /* records of dropped records */
};

static void on_sample(void *arg, const struct abi_sample *rec, size_t len)
{
	struct seen *s = arg;

	s->samples += rec->key.tgid == s->child && rec->cpu == 1;
}

static void on_map(void *arg, const struct pm_map_event *ev)
{
	struct seen *s = arg;

	s->maps += ev->kind == PM_MAP_MMAP && ev->tgid == s->child;
	s->lost += ev->kind == PM_MAP_LOST;
}

static void on_record(void *arg, const struct perfsource_record *r)
{
	struct seen *s = arg;

	if (r->kind == PERFSOURCE_SAMPLE)
		s->samples += r->pid == s->child && r->cpu == 1;
	if (r->kind == PERFSOURCE_MAP || r->kind == PERFSOURCE_LOST)
		on_map(s, &r->map);
}

/* The three sources, each with its records. */
struct streams {
	struct sampler *sampler;
	struct sideband *sideband;
	struct perfsource *perf;
	struct seen bpf, side, other;
};

static void look(struct streams *t)
{
	assert_int_equal(sampler_hotplug(t->sampler), 0);
	assert_int_equal(sideband_hotplug(t->sideband), 0);
	assert_int_equal(perfsource_hotplug(t->perf), 0);
}

static void poll_all(struct streams *t)
{
	assert_true(sampler_poll(t->sampler) >= 0);
	sideband_poll(t->sideband);
	perfsource_poll(t->perf);
}

static void streams_open(struct streams *t)
{
	struct sampler_opts so = { .freq_hz = 97,
				   .sample = on_sample,
				   .arg = &t->bpf };
	struct sideband_opts bo = { .map = on_map, .arg = &t->side };
	struct perfsource_opts po = { .freq_hz = 97,
				      .record = on_record,
				      .arg = &t->other };
	const char *what;

	memset(t, 0, sizeof(*t));
	assert_int_equal(sampler_new(&t->sampler, &so, &what), 0);
	assert_int_equal(sideband_new(&t->sideband, &bo, &what), 0);
	assert_int_equal(perfsource_new(&t->perf, &po, &what), 0);
	assert_int_equal(sampler_enable(t->sampler), 0);
	assert_int_equal(perfsource_enable(t->perf), 0);
}

static void streams_close(struct streams *t)
{
	sampler_free(t->sampler);
	sideband_free(t->sideband);
	perfsource_free(t->perf);
}

/* Runs on CPU 1, maps code and spins, over and over. */
static void child_main(void)
{
	cpu_set_t one;
	unsigned int i;
	void *p;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	CPU_ZERO(&one);
	CPU_SET(1, &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (;;) {
		p = mmap(NULL, 4096, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap(p, 4096);
		for (i = 0; i < 20000000; i++)
			__asm__ volatile("" : "+r"(i));
	}
}

/* All three streams have new records from CPU 1. */
static void hear(struct streams *t)
{
	uint64_t end = clock_boottime_ns() + PATIENCE_NS;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		child_main();
		_exit(0);
	}
	t->bpf.child = t->side.child = t->other.child = pid;
	t->bpf.samples = t->side.maps = 0;
	t->other.samples = t->other.maps = 0;
	while (!t->bpf.samples || !t->side.maps || !t->other.samples ||
	       !t->other.maps) {
		if (clock_boottime_ns() > end)
			fail_msg("of CPU 1: %zu samples, %zu mappings; by "
				 "perf: %zu samples, %zu mappings",
				 t->bpf.samples, t->side.maps, t->other.samples,
				 t->other.maps);
		usleep(10000);
		poll_all(t);
	}
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static int count_fds(void)
{
	int fd, n = 0;

	for (fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* While CPUs stay, a check opens nothing again and reports no dropped records. */
static void who_stays_is_left_alone(void **state)
{
	struct streams t;
	int i, fds;

	streams_open(&t);
	fds = count_fds();
	for (i = 0; i < LOOKS; i++) {
		look(&t);
		poll_all(&t);
		usleep(1000);
	}
	assert_int_equal(count_fds(), fds);
	assert_int_equal(t.side.lost, 0);
	assert_int_equal(t.other.lost, 0);
	streams_close(&t);
}

/* --- with a CPU that can be taken offline ----------------------------------- */

static void write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	ssize_t n = strlen(text);

	if (fd < 0 || write(fd, text, n) != n)
		fail_msg("%s: %s: %s", path, text, strerror(errno));
	close(fd);
}

static int back_online(void **state)
{
	write_file(online_file, "1");
	return 0;
}

static unsigned int online_cpus(struct sampler *s)
{
	struct sampler_cpu_stats st[8];
	int i, n = sampler_get_stats(s, st, ARRAY_SIZE(st));
	unsigned int online = 0;

	assert_true(n > 0);
	for (i = 0; i < n && i < (int)ARRAY_SIZE(st); i++)
		online += st[i].online;
	return online;
}

/* Offline at one check, online at the next. */
static void a_cpu_goes_and_comes(void **state)
{
	struct streams t;
	int fds;

	streams_open(&t);
	fds = count_fds();
	hear(&t);
	write_file(online_file, "0");
	look(&t);
	assert_int_equal(online_cpus(t.sampler), 1);
	/* The clock and its program; the mapping event and its ring; perf's event. */
	assert_int_equal(count_fds(), fds - 5);
	assert_int_equal(t.side.lost + t.other.lost, 0);
	write_file(online_file, "1");
	look(&t);
	assert_int_equal(online_cpus(t.sampler), 2);
	assert_int_equal(count_fds(), fds);
	/* It ran before it had events again. */
	assert_int_equal(t.side.lost, 1);
	assert_int_equal(t.other.lost, 1);
	hear(&t);
	streams_close(&t);
}

/* Offline and online between two checks: its events have stopped, too. */
static void a_cpu_goes_and_comes_unseen(void **state)
{
	struct sideband_stats st;
	struct streams t;
	int i, fds;

	streams_open(&t);
	fds = count_fds();
	for (i = 1; i < 4; i++) {
		hear(&t);
		write_file(online_file, "0");
		write_file(online_file, "1");
		look(&t);
		assert_int_equal(count_fds(), fds);
		assert_int_equal(t.side.lost, i);
		assert_int_equal(t.other.lost, i);
		hear(&t);
	}
	sideband_get_stats(t.sideband, &st);
	assert_int_equal(st.lost, 3);
	streams_close(&t);
}

/* Records from before it had events again are missing, and counted. */
static void what_was_not_sampled_is_missed(void **state)
{
	struct sampler_cpu_stats before[2], after[2];
	uint64_t end = clock_boottime_ns() + PATIENCE_NS;
	struct streams t;
	pid_t pid;

	streams_open(&t);
	hear(&t);
	assert_int_equal(sampler_get_stats(t.sampler, before, 2), 2);
	write_file(online_file, "0");
	write_file(online_file, "1");
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		child_main();
		_exit(0);
	}
	do { /* a second without a check */
		usleep(10000);
		assert_true(clock_boottime_ns() < end);
		assert_int_equal(sampler_get_stats(t.sampler, after, 2), 2);
	} while (after[1].busy_s < before[1].busy_s + 1);
	look(&t);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(sampler_get_stats(t.sampler, after, 2), 2);
	assert_true(after[1].missed > 80);
	assert_true(after[1].busy_s >= before[1].busy_s + 1);
	streams_close(&t);
}

/* In this mount namespace, a file of our own covers that of sysfs. */
static void claim(const char *file, const char *text)
{
	char temp[] = "/tmp/test_hotplug.XXXXXX";
	int fd = mkstemp(temp);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	assert_int_equal(mount(temp, file, NULL, MS_BIND, NULL), 0);
	unlink(temp);
}

static int mount_ns = -1;

static int own_mounts(void **state)
{
	mount_ns = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	return mount_ns < 0 || unshare(CLONE_NEWNS) ||
	       mount(NULL, "/sys", NULL, MS_REC | MS_PRIVATE, NULL);
}

static int former_mounts(void **state)
{
	int err = setns(mount_ns, CLONE_NEWNS);

	close(mount_ns);
	return err;
}

/*
 * A fake sysfs file lists possible CPUs with a gap in their numbers: per-CPU values
 * from the kernel have no entries for the gap.
 */
static void more_cpus_than_a_cpu_set_t_has(void **state)
{
	struct sampler_cpu_stats *st;
	struct streams t;
	int n;

	claim("/sys/devices/system/cpu/possible", "0,5-4095\n");
	streams_open(&t);
	look(&t);
	hear(&t);
	n = sampler_get_stats(t.sampler, NULL, 0);
	assert_int_equal(n, 4096);
	st = calloc(n, sizeof(*st));
	assert_non_null(st);
	assert_int_equal(sampler_get_stats(t.sampler, st, n), n);
	assert_int_equal(st[1].counters[ABI_SAMPLER_TAKEN], 0);
	assert_true(st[5].counters[ABI_SAMPLER_TAKEN] > 0);
	assert_int_equal(perfsource_cpu_stats(t.perf, st, n), n);
	assert_true(st[1].online && st[1].counters[ABI_SAMPLER_TAKEN] > 0);
	free(st);
	streams_close(&t);
}

int main(void)
{
	const struct CMUnitTest here[] = {
		cmocka_unit_test(who_stays_is_left_alone),
		cmocka_unit_test_setup_teardown(more_cpus_than_a_cpu_set_t_has,
						own_mounts, former_mounts),
	};
	const struct CMUnitTest away[] = {
		cmocka_unit_test_teardown(a_cpu_goes_and_comes, back_online),
		cmocka_unit_test_teardown(a_cpu_goes_and_comes_unseen,
					  back_online),
		cmocka_unit_test_teardown(what_was_not_sampled_is_missed,
					  back_online),
	};

	if (getenv("PROFD_TEST_HOTPLUG"))
		return cmocka_run_group_tests(away, NULL, NULL);
	return cmocka_run_group_tests(here, NULL, NULL);
}
