// SPDX-License-Identifier: Apache-2.0
/* /proc/PID/maps: which lines and paths are kept, and reading a real file. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "tests/unit/processmanager/test_pm_fake.h"

static struct pm_maps parse(const char *text)
{
	struct pm_maps m;

	assert_int_equal(pm_maps_parse(text, strlen(text), &m), 0);
	return m;
}

static void test_a_line(void **state)
{
	struct pm_maps m = parse("7f00a000-7f00b000 r-xp 0001f000 fd:1a "
				 "4711                       /lib/c.so\n");

	assert_int_equal(m.n, 1);
	assert_int_equal(m.maps[0].kind, PM_MAP_MMAP);
	assert_int_equal(m.maps[0].start, 0x7f00a000);
	assert_int_equal(m.maps[0].end, 0x7f00b000);
	assert_int_equal(m.maps[0].pgoff, 0x1f000);
	assert_int_equal(m.maps[0].dev, makedev(0xfd, 0x1a));
	assert_int_equal(m.maps[0].ino, 4711);
	assert_int_equal(m.maps[0].ino_generation, 0);
	assert_int_equal(m.maps[0].build_id_len, 0);
	assert_string_equal(m.maps[0].path, "/lib/c.so");
	pm_maps_fini(&m);
	assert_null(m.maps);
}

static void test_lines(void **state)
{
	/* a line, and the path kept of it; NULL: nothing is kept */
	static const struct {
		const char *line;
		const char *path;
	} table[] = {
		{ "1-2 r-xp 0 0:0 0", "" },
		{ "1-2 r-xp 0 0:0 0 ", "" },
		{ "1-2 --xp 0 0:0 0 [vsyscall]", "[vsyscall]" },
		{ "1-2 rwxs 0 0:0 1 /dev/zero (deleted)",
		  "/dev/zero (deleted)" },
		{ "1-2 r-xp 0 0:0 1 /a b  c", "/a b  c" },
		{ "1-2 r-xp 0 0:0 1 /a\\012b", "/a\nb" },
		{ "1-2 r-xp 0 0:0 1 /a\\01", "/a\\01" },
		{ "1-2 r-xp 0 0:0 1 /a\\134", "/a\\134" },
		{ "1-2 r-xp 0 0:0 1 /memfd:x (deleted)", "/memfd:x (deleted)" },
		{ "0-ffffffffffffffff r-xp ffffffffffffffff ffffffff:ffffffff "
		  "18446744073709551615 /x",
		  "/x" },
		/* not executable */
		{ "1-2 rw-p 0 0:0 0 [heap]", NULL },
		{ "1-2 ---p 0 0:0 0", NULL },
		/* absurd */
		{ "", NULL },
		{ " ", NULL },
		{ "-", NULL },
		{ "1-2", NULL },
		{ "1-2 ", NULL },
		{ "1-2 r-x", NULL },
		{ "1-2 r-xp", NULL },
		{ "1-2 r-xp ", NULL },
		{ "1-2 r-xpp 0 0:0 0", NULL },
		{ "1-2 r-xp 0 0:0", NULL },
		{ "1-2 r-xp 0 0:0 ", NULL },
		{ "1-2 r-xp 0 00 0", NULL },
		{ "2-1 r-xp 0 0:0 0 /x", NULL },
		{ "1-1 r-xp 0 0:0 0 /x", NULL },
		{ "1 2 r-xp 0 0:0 0 /x", NULL },
		{ "g-h r-xp 0 0:0 0 /x", NULL },
		{ "-1-2 r-xp 0 0:0 0 /x", NULL },
		{ "0x1-0x2 r-xp 0 0:0 0 /x", NULL },
		{ "1-10000000000000000 r-xp 0 0:0 0 /x", NULL },
		{ "1-2 r-xp 10000000000000000 0:0 0 /x", NULL },
		{ "1-2 r-xp 0 100000000:0 0 /x", NULL },
		{ "1-2 r-xp 0 0:100000000 0 /x", NULL },
		{ "1-2 r-xp 0 0:0 18446744073709551616 /x", NULL },
		{ "1-2 r-xp 0 0:0 a /x", NULL },
	};
	char text[256];
	struct pm_maps m;
	size_t i, good;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		good = table[i].path != NULL;
		/* alone, without a newline; then between others */
		m = parse(table[i].line);
		assert_int_equal(m.n, good);
		if (good)
			assert_string_equal(m.maps[0].path, table[i].path);
		pm_maps_fini(&m);
		snprintf(text, sizeof(text),
			 "7-8 r-xp 0 0:0 1 /before\n%s\n9-a r-xp 0 0:0 1 /z\n",
			 table[i].line);
		m = parse(text);
		assert_int_equal(m.n, 2 + good);
		assert_string_equal(m.maps[0].path, "/before");
		assert_string_equal(m.maps[1 + good].path, "/z");
		pm_maps_fini(&m);
	}
}

/*
 * What is not executable is kept, and marked, if it is a file's and lies directly below
 * executable memory without a file.
 */
static void test_below_memory(void **state)
{
	static const char text[] =
		"1000-2000 r--p 00003000 08:01 77   /a\\012b\n"
		"2000-3000 r-xp 00000000 00:00 0\n"
		"3000-4000 r--p 00005000 08:01 77   /a\\012b\n"
		"4000-5000 r-xp 00005000 08:01 77   /c\n"
		"5000-6000 r--p 00005000 08:01 77   /d\n"
		"6000-7000 rw-p 00000000 00:00 0    [heap]\n"
		"7000-8000 r-xp 00000000 00:00 0    [anon:x]\n"
		"8000-9000 r--p 00006000 08:01 77   /e\n"
		"9000-a000 r-xp 00000000 00:00 0    [anon:x]\n";
	static const struct {
		uint64_t start;
		bool below;
		const char *path;
	} wanted[] = {
		{ 0x1000, true, "/a\nb" }, { 0x2000, false, "" },
		{ 0x4000, false, "/c" },   { 0x7000, false, "[anon:x]" },
		{ 0x8000, true, "/e" },	   { 0x9000, false, "[anon:x]" },
	};
	struct pm_maps m = parse(text);

	assert_int_equal(m.n, ARRAY_SIZE(wanted));
	for (size_t i = 0; i < m.n; i++) {
		assert_int_equal(m.maps[i].start, wanted[i].start);
		assert_int_equal(m.maps[i].below, wanted[i].below);
		assert_string_equal(m.maps[i].path, wanted[i].path);
	}
	assert_int_equal(m.maps[0].pgoff, 0x3000);
	assert_int_equal(m.maps[0].ino, 77);
	pm_maps_fini(&m);
}

/* Each prefix of a text, in memory of exactly that size. */
static void test_every_cut(void **state)
{
	static const char text[] =
		"1000-2000 r-xp 00001000 08:01 77   /usr/lib/a\\012b.so\n"
		"2000-3000 r-xp 00002000 08:01 77   /usr/lib/a\\012b.so\n";
	struct pm_maps m;
	size_t len;
	char *copy;

	for (len = 0; len < sizeof(text); len++) {
		copy = malloc(len ? len : 1);
		assert_non_null(copy);
		memcpy(copy, text, len);
		assert_int_equal(pm_maps_parse(copy, len, &m), 0);
		assert_true(m.n <= 2);
		pm_maps_fini(&m);
		free(copy);
	}
}

static void test_nul_and_long_paths(void **state)
{
	static const char nul[] = "1-2 r-xp 0 0:0 1 /a\0b\n2-3 r-xp 0 0:0 1 /c";
	char *text = malloc(20000);
	struct pm_maps m;

	assert_non_null(text);
	assert_int_equal(pm_maps_parse(nul, sizeof(nul) - 1, &m), 0);
	assert_int_equal(m.n, 1);
	assert_string_equal(m.maps[0].path, "/c");
	pm_maps_fini(&m);
	strcpy(text, "1-2 r-xp 0 0:0 1 ");
	memset(text + 17, 'x', 4096);
	strcpy(text + 17 + 4096, "\n");
	m = parse(text);
	assert_int_equal(m.n, 1);
	assert_int_equal(strlen(m.maps[0].path), 4096);
	pm_maps_fini(&m);
	strcpy(text + 17 + 4096, "x\n");
	m = parse(text);
	assert_int_equal(m.n, 0);
	pm_maps_fini(&m);
	free(text);
}

static void test_own_process(void **state)
{
	uintptr_t here = (uintptr_t)test_own_process;
	struct pm_maps m;
	struct stat st;
	char self[512];
	ssize_t n;
	size_t i, hits = 0;

	n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	assert_true(n > 0);
	self[n] = '\0';
	assert_int_equal(stat(self, &st), 0);
	assert_int_equal(pm_maps_read("/proc", (uint32_t)getpid(), &m), 0);
	assert_int_equal(m.tgid, getpid());
	assert_int_equal(m.start_boottime, 0);
	assert_true(m.begin > 0 && m.begin <= m.end);
	for (i = 0; i < m.n; i++) {
		if (here < m.maps[i].start || here >= m.maps[i].end)
			continue;
		hits++;
		assert_string_equal(m.maps[i].path, self);
		assert_int_equal(m.maps[i].ino, st.st_ino);
	}
	assert_int_equal(hits, 1);
	pm_maps_fini(&m);
}

static void test_nobody(void **state)
{
	struct pm_maps m;

	assert_int_equal(pm_maps_read("/proc", 0x7fffffff, &m), -ENOENT);
	assert_null(m.maps);
	pm_maps_fini(&m);
}

/* Lines that cross the boundaries of read(2). */
static void test_a_large_file(void **state)
{
	char dir[] = "/tmp/test_maps.XXXXXX", path[64];
	struct pm_maps m;
	uint64_t i;
	FILE *f;

	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/1", dir);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/1/maps", dir);
	f = fopen(path, "w");
	assert_non_null(f);
	for (i = 1; i <= 60000; i++)
		fprintf(f, "%lx-%lx r-xp 0 8:1 %lu /lib/%lu.so\n", i << 12,
			(i + 1) << 12, i, i / 3);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(pm_maps_read(dir, 1, &m), 0);
	assert_int_equal(m.n, 60000);
	for (i = 1; i <= 60000; i++) {
		assert_int_equal(m.maps[i - 1].start, i << 12);
		assert_int_equal(m.maps[i - 1].ino, i);
		assert_int_equal(atoi(m.maps[i - 1].path + 5), i / 3);
	}
	pm_maps_fini(&m);
	unlink(path);
	snprintf(path, sizeof(path), "%s/1", dir);
	rmdir(path);
	rmdir(dir);
}

/* The manager takes the result unchanged. */
static void test_read_and_walk(void **state)
{
	struct quark_process qp;
	struct abi_key key = { 1, 0, (uint32_t)getpid(), 0 };
	struct pm_maps m;
	struct pm_mapping map;
	struct pm_exe_info info;

	memset(&qp, 0, sizeof(qp));
	qp.key.pid = key.tgid;
	qp.key.start_boottime = key.start_boottime;
	assert_int_equal(pm_scan_process(pm, &qp, 2), 0);
	assert_int_equal(pm_maps_read("/proc", key.tgid, &m), 0);
	assert_int_equal(pm_scan_maps(pm, &m), 0);
	pm_maps_fini(&m);
	assert_int_equal(pm_image_find(pm, pm_image_get(pm, &key, 3),
				       UINT64_MAX,
				       (uintptr_t)test_read_and_walk, &map),
			 PM_FOUND);
	pm_exe_info(map.exe, &info);
	assert_string_equal(info.base, "test_maps");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_line),
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_below_memory),
		cmocka_unit_test(test_every_cut),
		cmocka_unit_test(test_nul_and_long_paths),
		cmocka_unit_test(test_own_process),
		cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_a_large_file),
		cmocka_unit_test_setup_teardown(test_read_and_walk, setup,
						teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
