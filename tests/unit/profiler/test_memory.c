// SPDX-License-Identifier: Apache-2.0
/* memory: the ceiling, the levels below it, and where limits and figures come from. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "profiler/memory/memory.h"

#define MIB (1ULL << 20)
#define SECOND CLOCK_NSEC_PER_SEC

static char dir[] = "/tmp/test_memory.XXXXXX";
static char mount[64], cgroups[64];

static void put(const char *name, const char *text)
{
	char path[256], *slash;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	for (slash = path + strlen(dir) + 1; (slash = strchr(slash, '/'));
	     slash++) {
		*slash = '\0';
		mkdir(path, 0755);
		*slash = '/';
	}
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static int make_dir(void **state)
{
	strcpy(dir, "/tmp/test_memory.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(mount, sizeof(mount), "%s/fs", dir);
	snprintf(cgroups, sizeof(cgroups), "%s/cgroup", dir);
	return 0;
}

static int remove_dir(void **state)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r %s", dir);
	return system(command);
}

static uint64_t limit_of(const char *text)
{
	const struct memory_host host = { .cgroups = cgroups, .mount = mount };

	put("cgroup", text);
	return memory_cgroup_limit(&host);
}

static void version_2_has_the_lowest_of_its_groups(void **state)
{
	put("fs/system.slice/profd.service/memory.max", "max\n");
	put("fs/system.slice/memory.max", "104857600\n");
	assert_int_equal(limit_of("0::/system.slice/profd.service\n"),
			 100 * MIB);
	put("fs/system.slice/profd.service/memory.max", "52428800\n");
	assert_int_equal(limit_of("0::/system.slice/profd.service\n"),
			 50 * MIB);
	/* systemd's hybrid hierarchy */
	put("fs/unified/a/memory.max", "1048576\n");
	assert_int_equal(limit_of("0::/a\n"), MIB);
}

static void version_1_has_memory_among_others(void **state)
{
	put("fs/memory/a/b/memory.limit_in_bytes", "9223372036854771712\n");
	put("fs/memory/a/memory.limit_in_bytes", "209715200\n");
	assert_int_equal(limit_of("9:cpu,memory:/a/b\n0::/\n"), 200 * MIB);
	assert_int_equal(limit_of("9:cpu,memoryx:/a/b\n"), UINT64_MAX);
	assert_int_equal(limit_of("9:memory:/c/d\n"), UINT64_MAX);
	/* A container: the path is one of the host, the mount its own. */
	put("fs/memory/memory.limit_in_bytes", "1048576\n");
	assert_int_equal(limit_of("9:memory:/docker/0123\n"), MIB);
}

static void without_files_there_is_no_limit(void **state)
{
	const struct memory_host host = { .cgroups = "/nonexistent",
					  .mount = mount };

	assert_int_equal(memory_cgroup_limit(&host), UINT64_MAX);
	assert_int_equal(limit_of(""), UINT64_MAX);
	assert_int_equal(limit_of("0\n:\n::\n0::\n"), UINT64_MAX);
	put("fs/x/memory.max", "none of them\n");
	assert_int_equal(limit_of("0::/x\n"), UINT64_MAX);
}

static void the_ceiling_is_the_lower_one(void **state)
{
	struct memory m = { .option = 100 * MIB, .rings = 16 * MIB };

	memory_set_max(&m, UINT64_MAX);
	assert_int_equal(m.max, 100 * MIB);
	assert_false(m.cgroup);
	memory_set_max(&m, 800 * MIB);
	assert_int_equal(m.max, 100 * MIB);
	memory_set_max(&m, 80 * MIB);
	assert_int_equal(m.max, 54 * MIB);
	assert_true(m.cgroup);
	memory_set_max(&m, 8 * MIB);
	assert_int_equal(m.max, 1);
	m.option = 0;
	memory_set_max(&m, UINT64_MAX);
	assert_int_equal(m.max, 0);
	m.used = UINT64_MAX;
	assert_false(memory_decide(&m, SECOND));
	assert_false(memory_hurries(&m));
}

static unsigned int level(struct memory *m, uint64_t mib, uint64_t second)
{
	m->used = mib * MIB;
	memory_decide(m, second * SECOND);
	return m->level;
}

static void caches_are_shed_step_by_step(void **state)
{
	struct memory m = { .max = 100 * MIB };

	assert_int_equal(level(&m, 69, 1), 0);
	assert_int_equal(level(&m, 71, 2), 1);
	assert_int_equal(level(&m, 79, 3), 1);
	assert_int_equal(level(&m, 91, 4), 2);
	assert_int_equal(level(&m, 91, 5), 3);
	assert_int_equal(level(&m, 91, 6), 3);
	for (int i = 0; i < MEMORY_LEVELS; i++)
		assert_int_equal(m.shed[i], 1);
}

static void at_the_ceiling_all_at_once(void **state)
{
	struct memory m = { .max = 100 * MIB };

	assert_int_equal(level(&m, 101, 1), 3);
	assert_int_equal(m.shed[0], 1);
	assert_int_equal(m.shed[2], 1);
}

static void room_is_given_back_slowly(void **state)
{
	struct memory m = { .max = 100 * MIB };

	assert_int_equal(level(&m, 120, 1), 3);
	assert_int_equal(level(&m, 10, 5), 3);
	assert_int_equal(level(&m, 10, 6), 2);
	assert_int_equal(level(&m, 10, 7), 2);
	assert_int_equal(level(&m, 85, 30), 2); /* still needed */
	assert_int_equal(level(&m, 75, 34), 2);
	assert_int_equal(level(&m, 75, 35), 1);
	assert_int_equal(level(&m, 75, 100), 1);
	assert_int_equal(level(&m, 69, 104), 1);
	assert_int_equal(level(&m, 69, 105), 0);
}

static void caches_that_do_not_fit_are_not_filled_again_and_again(void **state)
{
	struct memory m = { .max = 100 * MIB };
	uint64_t falls = 0;
	unsigned int now;

	/* Without the cut it would need 80 MiB, with it 60. */
	for (uint64_t second = 1; second <= 3600; second++) {
		now = m.level;
		falls += level(&m, now ? 60 : 80, second) < now;
	}
	assert_in_range(falls, 5, 20);
	/* An hour later that is forgotten. */
	level(&m, 10, 7200);
	assert_int_equal(level(&m, 10, 7201), 0);
	assert_int_equal(level(&m, 80, 7300), 1);
	assert_int_equal(level(&m, 10, 7305), 0);
}

/* Its own memory, and that of a child with 32 MiB. */
static void processes_are_measured(void **state)
{
	struct memory_usage before, after;
	int to[2], from[2];
	char c = 0, *p;
	pid_t pid;

	assert_int_equal(pipe(to) | pipe(from), 0);
	memory_measure(&memory_this_host, &before);
	assert_true(before.own > 0);
	pid = fork();
	if (!pid) {
		p = malloc(32 * MIB);
		if (p)
			memset(p, 1, 32 * MIB);
		if (write(from[1], &c, 1) == 1 && read(to[0], &c, 1) == 1)
			_exit(p[MIB]);
		_exit(2);
	}
	assert_int_equal(read(from[0], &c, 1), 1);
	memory_measure(&memory_this_host, &after);
	assert_int_equal(after.largest, pid);
	assert_true(after.largest_bytes >= 32 * MIB);
	assert_true(after.others >= before.others + 32 * MIB);
	assert_true(after.own < before.own + 8 * MIB);
	assert_int_equal(write(to[1], &c, 1), 1);
	waitpid(pid, NULL, 0);
	memory_measure(&memory_this_host, &after);
	assert_true(after.others < 32 * MIB);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			version_2_has_the_lowest_of_its_groups, make_dir,
			remove_dir),
		cmocka_unit_test_setup_teardown(
			version_1_has_memory_among_others, make_dir,
			remove_dir),
		cmocka_unit_test_setup_teardown(without_files_there_is_no_limit,
						make_dir, remove_dir),
		cmocka_unit_test(the_ceiling_is_the_lower_one),
		cmocka_unit_test(caches_are_shed_step_by_step),
		cmocka_unit_test(at_the_ceiling_all_at_once),
		cmocka_unit_test(room_is_given_back_slowly),
		cmocka_unit_test(
			caches_that_do_not_fit_are_not_filled_again_and_again),
		cmocka_unit_test(processes_are_measured),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
