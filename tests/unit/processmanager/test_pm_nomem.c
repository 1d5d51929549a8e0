// SPDX-License-Identifier: Apache-2.0
/*
 * The manager without memory: one sequence, run once for each of its
 * allocations, which fails. Each failure is counted, the rest of the sequence
 * is applied, and in the end nothing is left. Linked with the allocator
 * wrapped.
 */
#include <stdlib.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t n, size_t size);
void *__real_realloc(void *p, size_t size);
void __real_free(void *p);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_realloc(void *p, size_t size);
void __wrap_free(void *p);

/* The fake symbolizer is not tested. */
#define calloc(n, size) __real_calloc(n, size)
#define free(p) __real_free(p)
#include "tests/unit/processmanager/test_pm_fake.h"
#undef calloc
#undef free

static struct {
	long at; /* this one fails, and none before; 0: none at all */
	long seen;
	bool failed;
	bool from_then_on;
} memory;

static bool fails(void)
{
	memory.seen++;
	if (!memory.at || memory.seen < memory.at ||
	    (memory.seen > memory.at && !memory.from_then_on))
		return false;
	memory.failed = true;
	return true;
}

void *__wrap_malloc(size_t size)
{
	return fails() ? NULL : __real_malloc(size);
}

void *__wrap_calloc(size_t n, size_t size)
{
	return fails() ? NULL : __real_calloc(n, size);
}

void *__wrap_realloc(void *p, size_t size)
{
	return fails() ? NULL : __real_realloc(p, size);
}

void __wrap_free(void *p)
{
	__real_free(p);
}

/* Nothing else is an answer. */
static void taken(int err)
{
	if (err != -ENOMEM)
		assert_int_equal(err, 0);
	else
		assert_true(memory.failed);
}

static void tell(uint64_t kind, uint32_t pid, uint32_t parent, uint64_t id,
		 uint64_t time, const char *exe)
{
	struct quark_process qp = qp_of(pid, id);

	qp.proc_ppid = parent;
	qp.parent_key.pid = parent;
	qp.parent_key.start_boottime = born(parent);
	qp.exe = (char *)exe;
	qp.cmdline = (char *)"a\0b";
	qp.cmdline_len = 4;
	qp.cwd = (char *)"/";
	qp.cgroup = (char *)"/lxc/web";
	snprintf(qp.comm, sizeof(qp.comm), "p%u", pid);
	taken(feed(kind, &qp, time, 17));
}

static void map(uint32_t pid, uint64_t time, uint64_t start, const char *path,
		uint8_t build_id)
{
	struct pm_map_event ev = map_of(start, start + 0x1000, path, build_id);

	ev.tgid = pid;
	ev.time = time;
	ev.ino = build_id ? 0 : start;
	taken(pm_map_event(pm, &ev));
}

static void comm(uint32_t pid, uint64_t time)
{
	struct pm_map_event ev = { .kind = PM_MAP_EXEC,
				   .tgid = pid,
				   .time = time };

	taken(pm_map_event(pm, &ev));
}

static void on_names(void *arg, int err, void *const *tags,
		     const struct symbolizer_symbol *syms, size_t n)
{
}

static void on_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	symbolizer_rows_free(rows);
}

/* A sample: its image, its place, and requests. */
static void sample(uint32_t pid, uint64_t id, uint64_t time, uint64_t addr)
{
	struct abi_key key = { born(pid), id, pid, 0 };
	struct pm_image *img = pm_image_get(pm, &key, time);
	struct pm_view *view;
	struct pm_mapping m;
	struct pm_image_info info;

	if (!img) {
		assert_true(memory.failed);
		return;
	}
	pm_image_info(img, &info);
	assert_int_equal(info.key.tgid, pid);
	pm_image_sampled(img);
	view = pm_view_new(pm, img, time);
	if (pm_image_find(pm, img, time, addr, &m) == PM_FOUND) {
		taken(pm_exe_name(m.exe, addr, NULL, on_names, NULL));
		pm_names_send(pm);
		taken(pm_exe_rows(m.exe, on_rows, NULL));
	}
	if (view)
		pm_view_find(view, addr, &m);
	else
		assert_true(memory.failed);
	pm_view_free(view);
}

static void walk(void)
{
	struct quark_process qp = qp_of(4, 0);
	struct pm_map_event maps[2] = {
		map_of(0x1000, 0x2000, "/bin/sh", 0),
		map_of(0x7000, 0x8000, "/lib/libc.so", 0),
	};
	struct pm_maps m = { .tgid = 4, .begin = 6000, .end = 6010, .n = 2 };

	qp.exe = (char *)"/bin/sh";
	taken(pm_scan_process(pm, &qp, 6000));
	m.maps = maps;
	if (pm_scan_maps(pm, &m) == -ESRCH)
		assert_true(memory.failed);
}

static void later_walk(uint64_t time)
{
	struct quark_process qp = qp_of(4, 0), other = qp_of(8, 2);

	pm_rescan_begin(pm, time);
	taken(pm_scan_process(pm, &qp, time));
	taken(pm_scan_process(pm, &other, time));
	pm_rescan_end(pm);
}

/* Every kind of record. */
static void story(void)
{
	walk();
	tell(QUARK_EV_FORK, 7, 4, 0, 7001, NULL);
	sample(7, 0, 7002, 0x1000);
	map(7, 7003, 0x3000, "/lib/new.so", 3);
	map(7, 7004, 0x5000, "/lib/other.so", 0);
	map(7, 7005, 0x9000, "//anon", 0);
	sample(7, 0, 7006, 0x9000);
	fake_run();
	comm(7, 7100);
	map(7, 7101, 0x1000, "/bin/ls", 4);
	sample(7, 1, 7102, 0x1000); /* before its exec event: provisional */
	tell(QUARK_EV_EXEC, 7, 4, 1, 7103, "/bin/ls");
	sample(7, 1, 7104, 0x1000);
	tell(QUARK_EV_SETPROCTITLE, 7, 4, 1, 7105, NULL);
	tell(QUARK_EV_ID_CHANGE, 7, 4, 1, 7106, NULL);
	pm_select(pm, 4);
	later_walk(7200);
	fake_run();
	tell(QUARK_EV_EXIT, 7, 4, 1, 7300, NULL);
	sample(7, 1, 7301, 0x1000);
	tell(QUARK_EV_REAP, 7, 4, 1, 7302, NULL);
	pm_forget(pm, 7400);
	fake_run();
	pm_forget(pm, 30 * CLOCK_NSEC_PER_SEC);
}

static int begin(void)
{
	struct pm_opts opts = { .symbolizer = &fake, .open_files = 2 };
	int err;

	memset(&fake, 0, sizeof(fake));
	fake_file("/bin/sh", 0, 1, 1);
	fake_file("/lib/libc.so", 0, 2, 2);
	fake_file("/lib/new.so", 3, 3, 3);
	fake_file("/lib/other.so", 0, 4, 0x5000);
	fake_file("/bin/ls", 4, 5, 5);
	pm = NULL;
	err = pm_new(&pm, &opts);
	taken(err);
	return err;
}

static void end(void)
{
	memory.at = 0;
	pm_free(pm);
	fake_run();
	assert_int_equal(fake.held, 0);
}

/* The number of allocations of the sequence. */
static long count(void)
{
	memset(&memory, 0, sizeof(memory));
	assert_int_equal(begin(), 0);
	story();
	assert_int_equal(stats().nomem, 0);
	end();
	return memory.seen;
}

static void fail_each(bool from_then_on)
{
	long n = count(), i, survived = 0;

	assert_true(n > 60);
	for (i = 1; i <= n; i++) {
		memset(&memory, 0, sizeof(memory));
		memory.at = i;
		memory.from_then_on = from_then_on;
		if (begin())
			continue;
		story();
		assert_true(memory.failed);
		survived++;
		/* With memory again, it goes on. */
		memory.at = 0;
		do_fork(4, 0, 20, 40 * CLOCK_NSEC_PER_SEC);
		assert_int_equal(info_at(20, 0, 0).ppid, 4);
		do_mmap(20, 41 * CLOCK_NSEC_PER_SEC, 0x1000, 0x2000, "/x", 9);
		assert_string_equal(found(20, 0, 0, 0x1000), "x");
		end();
	}
	assert_true(survived > 40);
	print_message("# %ld allocations, %ld after its making\n", n, survived);
}

static void one_allocation_fails(void **state)
{
	fail_each(false);
}

static void memory_ends(void **state)
{
	fail_each(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_allocation_fails),
		cmocka_unit_test(memory_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
