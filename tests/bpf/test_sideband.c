// SPDX-License-Identifier: Apache-2.0
/* The mapping stream, live: what the kernel says of a real exec and mmap. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/base.h"
#include "profiler/sideband.h"

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

/* As the pump has them: a process that moves has left records on several CPUs. */
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

/* Build id of a file as readelf(1) has it, in hex. */
static void readelf_build_id(const char *path, char *hex, size_t len)
{
	char cmd[256];
	FILE *f;

	snprintf(cmd, sizeof(cmd),
		 "readelf -n '%s' 2>/dev/null | awk '/Build ID/{print $3}'",
		 path);
	f = popen(cmd, "r");
	assert_non_null(f);
	assert_non_null(fgets(hex, len, f));
	hex[strcspn(hex, "\n")] = '\0';
	pclose(f);
}

static void an_exec_and_its_mappings_in_order(void **state)
{
	struct seen *s = malloc(sizeof(*s));
	struct sideband *sb = open_sideband(s);
	char want[64], got[64] = "";
	size_t i, exe = SIZE_MAX, cut = SIZE_MAX;
	bool vdso = false;
	pid_t pid, ended;
	int j, go[2];

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
	/* Read meanwhile: others fill the rings too. */
	while ((ended = waitpid(pid, NULL, WNOHANG)) == 0) {
		sideband_poll(sb);
		usleep(1000);
	}
	assert_int_equal(ended, pid);
	sideband_poll(sb);
	sort_by_time(s);
	for (i = 0; i < s->n; i++) {
		if (s->ev[i].kind == PM_MAP_EXEC)
			cut = i;
		if (strstr(s->path[i], "/true") && exe == SIZE_MAX)
			exe = i;
		vdso |= !strcmp(s->path[i], "[vdso]");
	}
	assert_true(cut != SIZE_MAX);
	assert_true(exe != SIZE_MAX);
	assert_true(cut < exe);
	assert_true(vdso);
	readelf_build_id("/bin/true", want, sizeof(want));
	for (j = 0; j < s->ev[exe].build_id_len; j++)
		sprintf(got + 2 * j, "%02x", s->ev[exe].build_id[j]);
	assert_string_equal(got, want);
	close(go[0]);
	close(go[1]);
	sideband_free(sb);
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

static void map_one(void)
{
	munmap(mmap(NULL, 4096, PROT_READ | PROT_EXEC,
		    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
	       4096);
}

/*
 * A ring of one page cannot hold 200 mappings: the loss shows, as a record, which
 * comes with the next one of that CPU that has room.
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
	/* Others may fill it again before our next one. */
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
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
