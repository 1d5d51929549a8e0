// SPDX-License-Identifier: Apache-2.0
/* The mapping stream of the real kernel: records of real execs and mmaps. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "profiler/source/sideband.h"

struct seen {
	struct pm_map_event ev[256];
	char path[256][128];
	size_t n;
	uint32_t tgid;
};

static void on_map(void *arg, const struct pm_map_event *ev)
{
	struct seen *s = arg;

	if (ev->tgid != s->tgid || s->n == 256)
		return;
	s->ev[s->n] = *ev;
	snprintf(s->path[s->n], sizeof(s->path[0]), "%s",
		 ev->path ? ev->path : "");
	s->n++;
}

/* Ordered like in the pump: a process that migrates has records on several CPUs. */
static void sort_by_time(struct seen *s)
{
	struct pm_map_event ev;
	char path[128];
	size_t i, j;

	for (i = 1; i < s->n; i++)
		for (j = i; j && s->ev[j].time < s->ev[j - 1].time; j--) {
			ev = s->ev[j];
			s->ev[j] = s->ev[j - 1];
			s->ev[j - 1] = ev;
			memcpy(path, s->path[j], sizeof(path));
			memcpy(s->path[j], s->path[j - 1], sizeof(path));
			memcpy(s->path[j - 1], path, sizeof(path));
		}
}

static struct sideband *open_sideband(struct seen *s)
{
	struct sideband_opts opts = { .map = on_map, .arg = s };
	struct sideband *sb;
	const char *what = NULL;

	memset(s, 0, sizeof(*s));
	assert_int_equal(sideband_new(&sb, &opts, &what), 0);
	return sb;
}

static struct quark_queue queue;

static int on_mark(void *arg, unsigned int cpu, int fd)
{
	return quark_queue_mark_execs(&queue, cpu, fd) ? -errno : 0;
}

/* With marks of execs, which one of libquark's BPF programs writes. */
static struct sideband *open_marked(struct seen *s, size_t ring_bytes)
{
	struct sideband_opts opts = { .map = on_map,
				      .mark = on_mark,
				      .ring_bytes = ring_bytes,
				      .arg = s };
	struct quark_queue_attr attr;
	struct sideband *sb;
	const char *what = NULL;

	memset(s, 0, sizeof(*s));
	quark_queue_default_attr(&attr);
	attr.flags = QQ_EBPF | QQ_NO_AGG;
	attr.no_wakeup = 1;
	assert_int_equal(quark_queue_open(&queue, &attr), 0);
	assert_int_equal(sideband_new(&sb, &opts, &what), 0);
	assert_int_equal(sideband_mark(sb), 0);
	return sb;
}

static void close_marked(struct sideband *sb)
{
	sideband_free(sb);
	quark_queue_close(&queue);
}

static void an_exec_and_its_mappings_in_order(void **state)
{
	struct seen *s = malloc(sizeof(*s));
	struct sideband *sb = open_marked(s, 0);
	size_t i, exe = SIZE_MAX, cut = SIZE_MAX;
	bool vdso = false;
	pid_t pid, ended;
	struct stat st;
	int go[2];

	assert_int_equal(pipe(go), 0);
	pid = fork();
	if (pid == 0) {
		char c;

		if (read(go[0], &c, 1) == 1)
			execl("/bin/true", "true", NULL);
		_exit(127);
	}
	s->tgid = pid;
	assert_int_equal(write(go[1], "x", 1), 1);
	/* Drains meanwhile: other processes fill the rings, too. */
	while ((ended = waitpid(pid, NULL, WNOHANG)) == 0) {
		sideband_poll(sb);
		usleep(1000);
	}
	assert_int_equal(ended, pid);
	sideband_poll(sb);
	sort_by_time(s);
	for (i = 0; i < s->n; i++) {
		if (s->ev[i].kind == PM_MAP_EXEC) {
			assert_true(cut == SIZE_MAX);
			assert_int_equal(s->ev[i].tid, pid);
			cut = i;
		}
		if (strstr(s->path[i], "/true") && exe == SIZE_MAX)
			exe = i;
		vdso |= !strcmp(s->path[i], "[vdso]");
	}
	assert_true(cut != SIZE_MAX);
	assert_true(exe != SIZE_MAX);
	assert_true(cut < exe);
	assert_true(vdso);
	assert_int_equal(stat("/bin/true", &st), 0);
	assert_int_equal(s->ev[exe].dev, st.st_dev);
	assert_int_equal(s->ev[exe].ino, st.st_ino);
	assert_int_equal(s->ev[exe].build_id_len, 0);
	close(go[0]);
	close(go[1]);
	close_marked(sb);
	free(s);
}

static void a_mapping_of_a_running_process(void **state)
{
	struct seen *s = malloc(sizeof(*s));
	struct sideband *sb = open_sideband(s);
	char dir[] = "/tmp/sidebandXXXXXX", path[64];
	uint64_t before = clock_boottime_ns();
	struct stat st;
	void *p;
	int fd;

	s->tgid = getpid();
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/plain", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0700);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, 8192), 0);
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 4096);
	assert_true(p != MAP_FAILED);
	sideband_poll(sb);
	assert_int_equal(s->n, 1);
	assert_int_equal(s->ev[0].start, (uintptr_t)p);
	assert_int_equal(s->ev[0].end, (uintptr_t)p + 4096);
	assert_int_equal(s->ev[0].pgoff, 4096);
	assert_string_equal(s->path[0], path);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(s->ev[0].build_id_len, 0);
	assert_int_equal(s->ev[0].ino, st.st_ino);
	assert_in_range(s->ev[0].time, before, clock_boottime_ns());
	munmap(p, 4096);
	close(fd);
	unlink(path);
	rmdir(dir);
	sideband_free(sb);
	free(s);
}

static void the_watermark_follows_the_clock(void **state)
{
	struct seen *s = malloc(sizeof(*s));
	struct sideband *sb = open_sideband(s);
	uint64_t before = clock_boottime_ns();

	sideband_poll(sb);
	assert_in_range(sideband_watermark(sb), before - CLOCK_NSEC_PER_MSEC,
			clock_boottime_ns());
	sideband_free(sb);
	free(s);
}

/* Different from the last one: repeats are skipped. */
static void map_one(void)
{
	static unsigned int i;
	size_t len = 4096 << (i++ & 1);

	munmap(mmap(NULL, len, PROT_READ | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	       len);
}

/* Repeated mappings are reported once. */
static void repeats_are_skipped(void **state)
{
	struct seen *s = malloc(sizeof(*s));
	struct sideband *sb = open_sideband(s);
	struct sideband_stats st;
	unsigned int i;
	void *p;

	s->tgid = getpid();
	for (i = 0; i < 100; i++) {
		p = mmap(NULL, 4096, PROT_READ | PROT_EXEC,
			 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		munmap(p, 4096);
	}
	sideband_poll(sb);
	sideband_get_stats(sb, &st);
	assert_int_equal(s->n, 1);
	assert_true(st.repeats >= 99);
	assert_int_equal(st.limited, 0);
	sideband_free(sb);
	free(s);
}

/*
 * A rename writes no record, so that a loop of them leaves space for mappings. Nor
 * does it write a mark of an exec, even from another thread.
 */
static void renames_take_no_room(void **state)
{
	struct seen *s = malloc(sizeof(*s));
	struct sideband *sb = open_marked(s, 4096);
	struct sideband_stats st;
	char path[64];
	unsigned int i;
	int fd;

	s->tgid = getpid();
	for (i = 0; i < 100000; i++)
		prctl(PR_SET_NAME, i & 1 ? "odd" : "even");
	snprintf(path, sizeof(path), "/proc/%d/comm", getpid());
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, "other", 5), 5);
	close(fd);
	sideband_poll(sb);
	sideband_get_stats(sb, &st);
	assert_int_equal(s->n, 0);
	/* Other processes' execs may overflow a page, but not by so many. */
	assert_in_range(st.lost, 0, 10000);
	close_marked(sb);
	free(s);
}

/* Above the limit one record says from when to when records are missing. */
static void a_flood_is_limited(void **state)
{
	struct seen *s = malloc(sizeof(*s));
	struct sideband *sb = open_sideband(s);
	struct sideband_stats st;
	unsigned int i;

	for (i = 0; i < 10000; i++) {
		map_one();
		if (i % 1000 == 0)
			sideband_poll(sb);
	}
	s->tgid = getpid();
	map_one();
	sideband_poll(sb);
	sideband_get_stats(sb, &st);
	assert_true(st.limited > 0);
	assert_int_equal(st.lost, 0);
	assert_true(s->n > 0);
	assert_int_equal(s->ev[s->n - 1].kind, PM_MAP_LOST);
	assert_true(s->ev[s->n - 1].end >= s->ev[s->n - 1].time);
	sideband_free(sb);
	free(s);
}

/* A ring becomes readable when it is half full. */
static void half_a_ring_wakes(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct sideband_opts opts = { .map = on_map,
				      .arg = s,
				      .ring_bytes = 64 << 10 };
	struct sideband *sb;
	struct pollfd p = { .events = POLLIN };
	const char *what;
	unsigned int i;

	assert_int_equal(sideband_new(&sb, &opts, &what), 0);
	p.fd = sideband_epoll_fd(sb);
	for (i = 0; i < 100; i++) /* less than a quarter */
		map_one();
	assert_int_equal(poll(&p, 1, 0), 0);
	/* On any CPUs; perf reports it once. */
	for (i = 0; i < 100000 && poll(&p, 1, 0) == 0; i++)
		map_one();
	assert_in_range(i, 200, 99999);
	sideband_free(sb);
	free(s);
}

/*
 * A ring of one page cannot hold 200 mappings: a record reports the dropped ones. The
 * kernel writes it with the next record of that CPU that fits.
 */
static void a_full_ring_says_what_it_lost(void **state)
{
	struct seen *s = calloc(1, sizeof(*s));
	struct sideband_opts opts = { .map = on_map,
				      .arg = s,
				      .ring_bytes = 4096 };
	struct sideband_stats st;
	struct sideband *sb;
	cpu_set_t before, one;
	const char *what;
	size_t made;

	assert_int_equal(sched_getaffinity(0, sizeof(before), &before), 0);
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	assert_int_equal(sched_setaffinity(0, sizeof(one), &one), 0);
	assert_int_equal(sideband_new(&sb, &opts, &what), 0);
	s->tgid = getpid();
	for (made = 0; made < 200; made++)
		map_one();
	/* Other processes may fill it again before our next one. */
	do {
		sideband_poll(sb);
		map_one();
		made++;
		sideband_poll(sb);
		sideband_get_stats(sb, &st);
	} while (s->n + st.lost < made && made < 300);
	assert_true(st.lost > 0);
	assert_true(s->n + st.lost >= made);
	assert_int_equal(st.bad, 0);
	assert_int_equal(sched_setaffinity(0, sizeof(before), &before), 0);
	sideband_free(sb);
	free(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exec_and_its_mappings_in_order),
		cmocka_unit_test(a_mapping_of_a_running_process),
		cmocka_unit_test(the_watermark_follows_the_clock),
		cmocka_unit_test(a_full_ring_says_what_it_lost),
		cmocka_unit_test(repeats_are_skipped),
		cmocka_unit_test(renames_take_no_room),
		cmocka_unit_test(a_flood_is_limited),
		cmocka_unit_test(half_a_ring_wakes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
