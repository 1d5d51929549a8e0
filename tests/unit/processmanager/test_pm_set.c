// SPDX-License-Identifier: Apache-2.0
/*
 * Mapping sets: a mapping replaces what it overlaps. Compared with a
 * model that keeps a file and an offset for every single byte, and at sizes
 * at which anything but a sorted array would be slow.
 */
#include "tests/unit/processmanager/test_pm_fake.h"

#define NOW 20000
#define SPACE 256
#define FILES 20

static int one_process(void **state)
{
	if (setup(state))
		return -1;
	do_walk(5, 1, "/bin/a", 6000);
	return 0;
}

static void map_at(uint32_t pid, uint64_t start, uint64_t end, uint64_t pgoff,
		   uint8_t build_id)
{
	struct pm_map_event ev = map_of(start, end, "/lib/x.so", build_id);

	ev.tgid = pid;
	ev.time = NOW;
	ev.pgoff = pgoff;
	assert_int_equal(pm_map_event(pm, &ev), 0);
}

/* The file (by its build id) and the offset mapped at 'addr'; 0: none. */
static uint8_t at(uint32_t pid, uint64_t addr, uint64_t *offset)
{
	struct pm_exe_info info;
	struct pm_mapping m;

	if (pm_image_find(pm, image_at(pid, 0, NOW), NOW, addr, &m) != PM_FOUND)
		return 0;
	assert_true(m.start <= addr && addr < m.end);
	pm_exe_info(m.exe, &info);
	*offset = addr - m.start + m.pgoff;
	return info.ident.build_id[0];
}

static void test_overlaps_are_cut(void **state)
{
	/* what is mapped over [0x100, 0x200) of file 1, and what is then at */
	static const struct {
		uint64_t start, end;
		uint8_t at_100, at_180, at_1ff;
		uint64_t mappings;
	} table[] = {
		{ 0x200, 0x300, 1, 1, 1, 2 }, /* behind */
		{ 0x080, 0x100, 1, 1, 1, 2 }, /* before */
		{ 0x100, 0x200, 2, 2, 2, 1 }, /* the same */
		{ 0x080, 0x280, 2, 2, 2, 1 }, /* all and more */
		{ 0x080, 0x180, 2, 1, 1, 2 }, /* the front */
		{ 0x180, 0x280, 1, 2, 2, 2 }, /* the back */
		{ 0x140, 0x1c0, 1, 2, 1, 3 }, /* the middle */
		{ 0x100, 0x101, 2, 1, 1, 2 }, { 0x1ff, 0x200, 1, 1, 2, 2 },
	};
	uint64_t off;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(table); i++) {
		assert_int_equal(do_maps(5, 8000, 8001, NULL, 0), 0);
		map_at(5, 0, 0x1000, 0, 3); /* wipes what was */
		map_at(5, 0x100, 0x200, 0x5000, 1);
		map_at(5, table[i].start, table[i].end, 0x9000, 2);
		assert_int_equal(at(5, 0x100, &off), table[i].at_100);
		assert_int_equal(off,
				 table[i].at_100 == 1
					 ? 0x5000
					 : 0x9000 + 0x100 - table[i].start);
		assert_int_equal(at(5, 0x180, &off), table[i].at_180);
		assert_int_equal(off,
				 table[i].at_180 == 1
					 ? 0x5080
					 : 0x9000 + 0x180 - table[i].start);
		assert_int_equal(at(5, 0x1ff, &off), table[i].at_1ff);
		assert_int_equal(stats().mappings, table[i].mappings + 2);
	}
}

struct model {
	uint8_t file[SPACE];
	uint64_t offset[SPACE];
};

static void model_map(struct model *m, uint64_t start, uint64_t end,
		      uint64_t pgoff, uint8_t file)
{
	uint64_t a;

	for (a = start; a < end; a++) {
		m->file[a] = file;
		m->offset[a] = pgoff + a - start;
	}
}

static void model_check(const struct model *m, uint32_t pid)
{
	uint64_t a, off = 0;

	for (a = 0; a < SPACE; a++) {
		assert_int_equal(at(pid, a, &off), m->file[a]);
		if (m->file[a])
			assert_int_equal(off, m->offset[a]);
	}
}

/* A family of processes that map at random, some after they forked. */
static void test_random_maps_against_a_model(void **state)
{
	static struct model models[8];
	uint64_t a, b, pgoff;
	unsigned int n, p, seed = 42;
	uint8_t file;

	memset(models, 0, sizeof(models));
	for (p = 1; p < 8; p++)
		do_fork(5, 0, 5 + p, born(5 + p));
	for (n = 0; n < 3000; n++) {
		p = (unsigned int)rand_r(&seed) % 8;
		a = (uint64_t)rand_r(&seed) % SPACE;
		b = a + 1 + (uint64_t)rand_r(&seed) % 40;
		b = MIN(b, SPACE);
		pgoff = (uint64_t)rand_r(&seed) % 100000;
		file = (uint8_t)(1 + rand_r(&seed) % FILES);
		if (n % 500 == 499) { /* p starts anew, as a child of 5 */
			if (!p)
				continue;
			do_reap(5 + p, 0, NOW);
			pm_forget(pm, NOW + 1);
			do_fork(5, 0, 5 + p, born(5 + p));
			models[p] = models[0];
		}
		map_at(5 + p, a, b, pgoff, file);
		model_map(&models[p], a, b, pgoff, file);
		if (n % 50 == 0)
			model_check(&models[p], 5 + p);
	}
	for (p = 0; p < 8; p++)
		model_check(&models[p], 5 + p);
}

static void test_the_ends_of_the_address_space(void **state)
{
	uint64_t off = 0;

	map_at(5, 0, 0x1000, 0, 1);
	map_at(5, UINT64_MAX - 0xfff, UINT64_MAX, 0x10, 2);
	assert_int_equal(at(5, 0, &off), 1);
	assert_int_equal(at(5, UINT64_MAX - 1, &off), 2);
	assert_int_equal(off, 0x10 + 0xffe);
	assert_int_equal(at(5, UINT64_MAX, &off), 0);
}

static void test_bad_records_are_refused(void **state)
{
	struct pm_map_event ev = map_of(0x2000, 0x1000, "/x", 1);

	ev.tgid = 5;
	ev.time = NOW;
	assert_int_equal(pm_map_event(pm, &ev), -EINVAL);
	ev.start = 0x2000;
	ev.end = 0x2000;
	assert_int_equal(pm_map_event(pm, &ev), -EINVAL);
	ev.end = 0x3000;
	ev.path = NULL;
	assert_int_equal(pm_map_event(pm, &ev), -EINVAL);
	ev.path = "/x";
	ev.build_id_len = 21;
	assert_int_equal(pm_map_event(pm, &ev), -EINVAL);
	assert_int_equal(stats().mappings, 0);
}

static void test_sixty_thousand_mappings(void **state)
{
	const uint64_t n = 60000, m = 60000;
	uint64_t i, off = 0;

	for (i = 0; i < n; i++) /* as a loader does: upwards */
		map_at(5, i * 0x2000, i * 0x2000 + 0x1000, 0, 1 + i % 7);
	for (i = 0; i < m; i++) /* as mmap does: downwards */
		map_at(5, (2 * n - i) * 0x2000, (2 * n - i) * 0x2000 + 0x1000,
		       0, 1 + i % 7);
	assert_int_equal(stats().mappings, n + m);
	for (i = 0; i < n; i += 997) {
		assert_int_equal(at(5, i * 0x2000 + 0x800, &off), 1 + i % 7);
		assert_int_equal(off, 0x800);
		assert_int_equal(at(5, i * 0x2000 + 0x1800, &off), 0);
	}
	do_fork(5, 0, 6, NOW); /* shared: costs nothing */
	assert_int_equal(stats().mappings, n + m);
	map_at(5, 0, 3 * n * 0x2000, 0, 9); /* one over all of them */
	assert_int_equal(stats().mappings, n + m + 1);
	assert_int_equal(at(6, 0, &off), 1);
}

/* munmap(2) is not reported: a set that only grows is dropped. */
static void test_a_set_has_a_ceiling(void **state)
{
	uint64_t i, off = 0;

	assert_int_equal(do_maps(5, 8000, 8001, NULL, 0), 0);
	for (i = 0; i < 300000; i++)
		map_at(5, i * 0x1000, i * 0x1000 + 0x1000, 0, 1);
	assert_int_equal(stats().maps_overflow, 1);
	assert_int_equal(stats().mappings, 300000 - 262144);
	assert_int_equal(at(5, 299999 * 0x1000, &off), 1);
	assert_string_equal(found(5, 0, NOW, 0x1000), "lost");
}

static const char *seen(struct pm_view *view, uint64_t addr)
{
	struct pm_exe_info info;
	struct pm_mapping m;

	switch (pm_view_find(view, addr, &m)) {
	case PM_FOUND:
		pm_exe_info(m.exe, &info);
		return info.base;
	case PM_LOST:
		return "lost";
	default:
		return "none";
	}
}

static void add_up(void *arg, const struct pm_mapping *map)
{
	*(uint64_t *)arg += map->start;
}

/* A view does not change, whatever happens to the image. */
static void test_a_view_stays(void **state)
{
	struct pm_map_event other = map_of(0x9000, 0xa000, "/lib/other.so", 3);
	struct pm_view *view;
	struct pm_mapping m;
	uint64_t sum = 0;

	assert_int_equal(do_maps(5, 8000, 8001, NULL, 0), 0);
	do_mmap(5, NOW, 0x1000, 0x2000, "/lib/x.so", 1);
	do_mmap(5, NOW, 0x5000, 0x6000, "//anon", 0);
	view = pm_view_new(pm, image_at(5, 0, NOW), NOW);
	assert_non_null(view);
	do_mmap(5, NOW + 1, 0x1000, 0x2000, "/lib/y.so", 2);
	do_mmap(5, NOW + 1, 0x3000, 0x4000, "/lib/y.so", 2);
	assert_string_equal(seen(view, 0x1000), "x.so");
	assert_string_equal(seen(view, 0x3000), "none");
	assert_string_equal(found(5, 0, NOW, 0x1000), "y.so");
	assert_string_equal(found(5, 0, NOW, 0x3000), "y.so");
	assert_int_equal(pm_view_find(view, 0x5000, &m), PM_FOUND);
	assert_ptr_equal(m.exe, exe_at(5, 0, 0x5000));
	do_lost(NOW + 2);
	assert_string_equal(found(5, 0, NOW, 0x8000), "lost");
	assert_string_equal(seen(view, 0x8000), "none");
	assert_int_equal(do_maps(5, NOW + 3, NOW + 4, &other, 1), 0);
	do_whole_exec(5, 1, NOW + 10, "/bin/b", 4);
	assert_string_equal(seen(view, 0x1000), "x.so");
	assert_string_equal(seen(view, 0x9000), "none");
	pm_view_each(view, add_up, &sum);
	assert_int_equal(sum, 0x1000 + 0x5000);
	/* A stale view stays stale, whatever is read later. */
	do_lost(NOW + 11);
	assert_string_equal(seen(view, 0x1000), "x.so");
	pm_view_free(view);
	view = pm_view_new(pm, image_at(5, 1, NOW), NOW + 11);
	assert_int_equal(do_maps(5, NOW + 12, NOW + 13, &other, 1), 0);
	assert_string_equal(seen(view, 0x1000), "lost");
	assert_string_equal(seen(view, 0x3000), "lost");
	assert_string_equal(found(5, 1, NOW + 13, 0x3000), "none");
	pm_view_free(view);
}

/* The real mappings of the process: n of them, from 'at' on. */
static void read_anew(uint64_t time, uint64_t at, size_t n)
{
	struct pm_map_event *maps = calloc(n, sizeof(*maps));
	size_t i;

	assert_non_null(maps);
	for (i = 0; i < n; i++)
		maps[i] = map_of(at + i * 0x2000, at + i * 0x2000 + 0x1000,
				 "/lib/y.so", 0);
	assert_int_equal(do_maps(5, time, time + 1, maps, n), 0);
	free(maps);
}

/* Like a JIT compiler that unmaps its code, which is not reported. */
static void test_what_is_unmapped_does_not_pile_up(void **state)
{
	uint64_t addr = 0x1000000, time = NOW;
	int i;

	read_anew(time, 0x1000, 10);
	for (i = 0; i < 10000; i++) {
		time += CLOCK_NSEC_PER_SEC / 10;
		addr += 0x10000;
		do_mmap(5, time, addr, addr + 0x1000, "/lib/x.so", 1);
		if (!nwants)
			continue;
		nwants = 0;
		read_anew(time + 1, 0x1000, 10);
		assert_int_equal(stats().mappings, 10);
	}
	assert_in_range(stats().mappings, 10, 300);
	assert_in_range(stats().rereads, 20, 50);
}

/* 60,000 real mappings need few re-reads. */
static void test_what_stays_is_seldom_read_anew(void **state)
{
	uint64_t addr = 0x1000000, time = NOW;
	int i;

	for (i = 0; i < 20000; i++) {
		time += CLOCK_NSEC_PER_SEC / 10;
		do_mmap(5, time, addr + i * 0x2000UL,
			addr + i * 0x2000UL + 0x1000, "/lib/x.so", 1);
		if (!nwants)
			continue;
		nwants = 0;
		read_anew(time + 1, addr, i + 1);
		assert_int_equal(stats().mappings, i + 1);
	}
	assert_int_equal(stats().mappings, 20000);
	assert_in_range(stats().rereads, 5, 8);
	/* A fork's child has the same threshold. */
	do_fork(5, 0, 6, time + 10);
	do_mmap(6, time + 20, 0x1000, 0x2000, "/lib/x.so", 1);
	assert_int_equal(nwants, 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, one_process, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(test_overlaps_are_cut),
		T(test_random_maps_against_a_model),
		T(test_the_ends_of_the_address_space),
		T(test_bad_records_are_refused),
		T(test_sixty_thousand_mappings),
		T(test_a_set_has_a_ceiling),
		T(test_a_view_stays),
		T(test_what_is_unmapped_does_not_pile_up),
		T(test_what_stays_is_seldom_read_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
