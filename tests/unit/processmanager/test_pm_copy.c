// SPDX-License-Identifier: Apache-2.0
/*
 * Memory in place of a file's code: a copy of it is that file's code, by the bytes of the
 * process, which is this one; other memory is not.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "base/proc/procfs.h"
#include "tests/unit/processmanager/test_pm_fake.h"

#define NOW 20000
#define BYTES 0x1000 /* the segment of a fake file */
#define FILE_PATH "/bin/moved"

static uint8_t *memory; /* of the process */
static uint64_t at;
static struct abi_key self;

static int setup_self(void **state)
{
	struct procfs_stat st;
	uint8_t code[BYTES];

	if (setup(state))
		return -1;
	assert_true(procfs_stat((uint32_t)getpid(), &st));
	self = (struct abi_key){ st.start, 0, (uint32_t)getpid(), 0 };
	memory = mmap(NULL, 2 * BYTES, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(memory, MAP_FAILED);
	at = (uintptr_t)memory;
	for (size_t i = 0; i < BYTES; i++)
		code[i] = (uint8_t)(i * 7 + i / 256);
	memcpy(memory, code, BYTES);
	fake_content = memfd_create("code", MFD_CLOEXEC);
	assert_int_equal(write(fake_content, code, BYTES), BYTES);
	fake_file(FILE_PATH, 0, 77, 77);
	return 0;
}

static int teardown_self(void **state)
{
	munmap(memory, 2 * BYTES);
	close(fake_content);
	fake_content = -1;
	return teardown(state);
}

static void add_process(void)
{
	struct quark_process qp = qp_of(self.tgid, 0);

	qp.key.start_boottime = self.start_boottime;
	qp.exe = (char *)FILE_PATH;
	assert_int_equal(pm_scan_process(pm, &qp, NOW), 0);
}

static void map_self(uint64_t time, uint64_t start, uint64_t end,
		     const char *path)
{
	struct pm_map_event ev = map_of(start, end, path, 0);

	ev.tgid = self.tgid;
	ev.time = self.start_boottime + time;
	assert_int_equal(pm_map_event(pm, &ev), 0);
}

/* What a sample there belongs to; the file's offset in *offset. */
static const char *code_at(uint64_t time, uint64_t addr, uint64_t *offset)
{
	struct pm_image *img = pm_image_get(pm, &self, time);
	struct pm_exe_info info;
	struct pm_mapping m;

	if (pm_image_find(pm, img, UINT64_MAX, addr, &m) != PM_FOUND)
		return "none";
	*offset = addr - m.start + m.pgoff;
	pm_exe_info(m.exe, &info);
	return info.base;
}

/* A later time at which the memory is compared again. */
static const char *code_later(uint64_t *offset)
{
	static uint64_t later;

	later += 60 * CLOCK_NSEC_PER_SEC;
	return code_at(self.start_boottime + later, at + 0x10, offset);
}

static void test_memory_over_code(void **state)
{
	uint64_t offset = 0;

	add_process();
	map_self(1, at, at + BYTES, FILE_PATH);
	map_self(2, at, at + BYTES, "//anon");
	/* Not known while the file is being opened. */
	assert_string_equal(code_later(&offset), "[anon]");
	fake_run();
	assert_string_equal(code_later(&offset), "moved");
	assert_int_equal(offset, 0x10);
	assert_int_equal(stats().copies, 1);
	/* Read once: what the memory has later does not matter. */
	memset(memory, 0, BYTES);
	assert_string_equal(code_later(&offset), "moved");
	assert_int_equal(stats().copies, 1);
	/* Memory over memory may be a copy as well, and is compared again. */
	map_self(3, at, at + BYTES, "//anon");
	assert_string_equal(code_later(&offset), "[anon]");
}

static void test_each_place_counts(void **state)
{
	static const size_t places[] = { 3, BYTES / 2, BYTES - 2 };
	uint64_t offset = 0;

	add_process();
	map_self(1, at, at + BYTES, FILE_PATH);
	map_self(2, at, at + BYTES, "//anon");
	fake_run();
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		memory[places[i]]++;
		assert_string_equal(code_later(&offset), "[anon]");
		assert_int_equal(offset, at + 0x10);
		memory[places[i]]--;
	}
	assert_string_equal(code_later(&offset), "moved");
}

static void test_padding_proves_nothing(void **state)
{
	uint8_t zero[BYTES] = { 0 };
	uint64_t offset = 0;

	assert_int_equal(pwrite(fake_content, zero, BYTES, 0), BYTES);
	memset(memory, 0, BYTES);
	add_process();
	map_self(1, at, at + BYTES, FILE_PATH);
	map_self(2, at, at + BYTES, "//anon");
	fake_run();
	assert_string_equal(code_later(&offset), "[anon]");
}

/* Of memory that is larger than the code only that part can be a copy. */
static void test_memory_over_more(void **state)
{
	uint64_t offset = 0;

	add_process();
	map_self(1, at, at + BYTES, FILE_PATH);
	map_self(2, at - BYTES, at + 2 * BYTES, "//anon");
	fake_run();
	assert_string_equal(code_later(&offset), "moved");
	assert_string_equal(code_at(NOW, at - 1, &offset), "[anon]");
	assert_string_equal(code_at(NOW, at + BYTES, &offset), "[anon]");
}

/* Found by a scan: the mapping below tells which file it may be. */
static void test_memory_above_a_file(void **state)
{
	struct pm_map_event maps[] = {
		map_of(at - 0x3000, at, FILE_PATH, 0),
		map_of(at, at + BYTES, "", 0),
	};
	struct pm_maps m = { .tgid = self.tgid,
			     .begin = self.start_boottime + 5,
			     .end = self.start_boottime + 6,
			     .n = 2,
			     .maps = maps };
	uint64_t offset = 0;

	add_process();
	maps[0].below = true;
	assert_int_equal(pm_scan_maps(pm, &m), 0);
	assert_string_equal(code_later(&offset), "[anon]");
	fake_run();
	assert_string_equal(code_later(&offset), "moved");
	assert_int_equal(offset, 0x10);
	/* What is below is no code. */
	assert_string_equal(code_at(NOW, at - 1, &offset), "none");
	/* A later scan sees the same. */
	m.begin = m.end =
		pm_image_get(pm, &self, NOW) ? clock_boottime_ns() : 0;
	assert_int_equal(pm_scan_maps(pm, &m), 0);
	assert_string_equal(code_later(&offset), "moved");
}

/* Another process has the pid now: its memory says nothing. */
static void test_another_process(void **state)
{
	uint64_t offset = 0;

	self.start_boottime -= CLOCK_NSEC_PER_SEC;
	add_process();
	map_self(1, at, at + BYTES, FILE_PATH);
	map_self(2, at, at + BYTES, "//anon");
	fake_run();
	assert_string_equal(code_later(&offset), "[anon]");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, setup_self, teardown_self)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_memory_over_code),	   TEST(test_each_place_counts),
		TEST(test_padding_proves_nothing), TEST(test_memory_over_more),
		TEST(test_memory_above_a_file),	   TEST(test_another_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
