// SPDX-License-Identifier: Apache-2.0
/*
 * Which processes get an entry in the sampling program's table, when, and which are
 * refused. Processes and what is found in their memory are made up.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "profiler/tracing/tracing.h"

#define SEC CLOCK_NSEC_PER_SEC
#define HANG_S 60
#define PROCS_MAX 256

/* --- processes ------------------------------------------------------------------ */

struct pm_image {
	struct abi_key key;
	uint32_t uid;
	bool exited, hangs, silent;
	bool set; /* has an entry */
	unsigned int looks;
};

struct pm {
	int unused;
};

struct pm_exe {
	int unused;
};

struct pm_view {
	int unused;
};

static struct pm_image procs[PROCS_MAX];
static size_t nprocs;
static uint64_t tracers;
static struct pm the_pm;
static struct pm_exe the_exe;
static struct pm_view the_view;
static int hang[2]; /* what a hung look reads from */

struct abi_key *pm_keys(struct pm *pm, bool all, size_t *np)
{
	struct abi_key *keys = calloc(nprocs + 1, sizeof(*keys));

	assert_non_null(keys);
	for (size_t i = 0; i < nprocs; i++)
		keys[i] = procs[i].key;
	*np = nprocs;
	return keys;
}

struct pm_image *pm_newest(struct pm *pm, const struct abi_key *key)
{
	for (size_t i = 0; i < nprocs; i++)
		if (procs[i].key.tgid == key->tgid &&
		    procs[i].key.start_boottime == key->start_boottime)
			return &procs[i];
	return NULL;
}

void pm_image_info(const struct pm_image *img, struct pm_image_info *out)
{
	memset(out, 0, sizeof(*out));
	out->key = img->key;
	out->uid = img->uid;
	out->exited = img->exited;
}

struct pm_view *pm_view_new(struct pm *pm, struct pm_image *img, uint64_t time)
{
	return &the_view;
}

void pm_view_free(struct pm_view *view)
{
}

void pm_view_each(struct pm_view *view,
		  void (*fn)(void *arg, const struct pm_mapping *map),
		  void *arg)
{
	const struct pm_mapping map = {
		.start = 0x1000,
		.end = 0x2000,
		.exe = &the_exe,
	};

	fn(arg, &map);
}

const struct symbolizer_slot *pm_exe_slot(const struct pm_exe *exe)
{
	static const struct symbolizer_slot slot = {
		.model = SYMBOLIZER_SLOT_EXEC,
	};

	return &slot;
}

const struct symbolizer_segment *pm_exe_segments(const struct pm_exe *exe,
						 size_t *np)
{
	static const struct symbolizer_segment seg = { .size = 0x1000 };

	*np = 1;
	return &seg;
}

bool pm_image_forked(const struct pm_image *img)
{
	return false;
}

uint64_t pm_tracers(const struct pm *pm)
{
	return tracers;
}

/* In the thread. */
void tracing_find(struct tracing_find *f)
{
	char c;

	memset(&f->entry, 0, sizeof(f->entry));
	f->entry.start_boottime = f->key.start_boottime;
	f->entry.exec_id = f->key.exec_id;
	f->found = TRACING_GONE;
	for (size_t i = 0; i < nprocs; i++) {
		if (procs[i].key.tgid != f->key.tgid)
			continue;
		__atomic_fetch_add(&procs[i].looks, 1, __ATOMIC_RELAXED);
		if (procs[i].hangs && read(hang[0], &c, 1) == 1)
			return;
		f->found = procs[i].silent ? TRACING_NO_CONTEXT : TRACING_FOUND;
	}
}

/* --- the table ------------------------------------------------------------------ */

static struct tracing tracing;
static uint64_t now;

static int on_set(void *arg, uint32_t tgid, const struct abi_trace_slot *slot)
{
	for (size_t i = 0; i < nprocs; i++)
		if (procs[i].key.tgid == tgid)
			procs[i].set = slot;
	return 0;
}

static struct pm_image *proc(uint32_t tgid, uint32_t uid)
{
	struct pm_image *p = &procs[nprocs++];

	*p = (struct pm_image){ .key = { .tgid = tgid,
					 .start_boottime = tgid * SEC },
				.uid = uid };
	return p;
}

static size_t count_set(void)
{
	size_t n = 0;

	for (size_t i = 0; i < nprocs; i++)
		n += procs[i].set;
	return n;
}

/* Turns until all that is marked was looked at; clocks go on meanwhile. */
static void turns(void)
{
	time_t end = time(NULL) + HANG_S;

	do {
		now += SEC / 10;
		tracing_tick(&tracing, now);
		usleep(1000);
	} while ((tracing.batch || tracing.any) && time(NULL) < end);
	assert_null(tracing.batch);
	assert_false(tracing.any);
}

static void begin(uint32_t slots)
{
	const struct tracing_opts opts = {
		.pm = &the_pm,
		.set = on_set,
		.slots = slots,
	};

	assert_int_equal(tracing_init(&tracing, &opts), 0);
}

static int setup(void **state)
{
	memset(procs, 0, sizeof(procs));
	nprocs = 0;
	tracers = 1;
	now = 1000 * SEC;
	return pipe(hang);
}

static int teardown(void **state)
{
	tracing_fini(&tracing);
	close(hang[0]);
	close(hang[1]);
	return 0;
}

static void without_a_tracer_nothing_is_done(void **state)
{
	const struct pm_image *p = proc(10, 1);

	tracers = 0;
	begin(0);
	tracing_mapped(&tracing, 10);
	tracing_sampled(&tracing, &p->key);
	tracing_tick(&tracing, now);
	assert_false(tracing_busy(&tracing, now));
	assert_int_equal(tracing.procs.count, 0);
	/* The first file with the variable: all processes are looked at. */
	tracers = 1;
	turns();
	assert_true(p->set);
}

static void more_than_a_batch_are_all_found(void **state)
{
	unsigned int looks = 0;
	uint32_t i;

	for (i = 0; i < 200; i++)
		proc(100 + i, i % 3);
	begin(0);
	turns();
	assert_int_equal(count_set(), 200);
	assert_int_equal(tracing.stats.processes, 200);
	/* The first are due again if the last were late. */
	for (i = 0; i < 200; i++)
		looks += procs[i].looks;
	assert_int_equal(tracing.stats.found[TRACING_FOUND], looks);
}

/* Four entries: a user has as many as are left for others. */
static void a_user_leaves_room_for_others(void **state)
{
	uint32_t i;

	begin(4);
	for (i = 0; i < 5; i++)
		proc(10 + i, 1);
	turns();
	assert_int_equal(count_set(), 2);
	assert_int_equal(tracing.stats.refused_user, 3);
	assert_int_equal(tracing.stats.refused_full, 0);
	for (i = 0; i < 3; i++)
		proc(20 + i, 2 + i);
	tracing_mapped(&tracing, 0);
	turns();
	assert_int_equal(count_set(), 4);
	assert_int_equal(tracing.stats.refused_user, 3);
	/* All others are refused for the table now, those of the first user, too. */
	assert_true(tracing.stats.refused_full >= 1);
}

static void samples_in_refused_processes_are_counted(void **state)
{
	uint32_t i;

	begin(2);
	for (i = 0; i < 4; i++)
		proc(10 + i, 1);
	turns();
	assert_int_equal(count_set(), 1);
	for (i = 0; i < 4; i++)
		tracing_sampled(&tracing, &procs[i].key);
	assert_int_equal(tracing.stats.samples_user, 3);
	proc(20, 2);
	tracing_mapped(&tracing, 20);
	turns();
	proc(30, 3);
	tracing_mapped(&tracing, 30);
	turns();
	assert_int_equal(tracing.stats.refused_full, 1);
	tracing_sampled(&tracing, &procs[5].key);
	assert_int_equal(tracing.stats.samples_full, 1);
	assert_int_equal(tracing.stats.samples_user, 3);
	/* One ends: there is room again, at the next look. */
	procs[4].exited = true;
	now += 20 * SEC;
	turns();
	tracing_mapped(&tracing, 30);
	turns();
	assert_true(procs[5].set);
	tracing_sampled(&tracing, &procs[5].key);
	assert_int_equal(tracing.stats.samples_full, 1);
}

/* It maps nothing. */
static void a_child_of_fork_is_found_by_its_first_sample(void **state)
{
	struct pm_image *p;

	proc(10, 1);
	begin(0);
	turns();
	p = proc(11, 1);
	turns();
	assert_int_equal(p->looks, 0);
	tracing_sampled(&tracing, &p->key);
	assert_true(tracing_busy(&tracing, now + SEC));
	turns();
	assert_true(p->set);
	assert_int_equal(p->looks, 1);
	tracing_sampled(&tracing, &p->key);
	turns();
	assert_int_equal(p->looks, 1);
}

static void an_exec_and_an_end_remove_the_entry(void **state)
{
	struct pm_image *p = proc(10, 1), *q = proc(11, 1);

	begin(0);
	turns();
	assert_int_equal(count_set(), 2);
	p->key.exec_id++;
	q->exited = true;
	now += SEC;
	tracing_tick(&tracing, now);
	assert_int_equal(count_set(), 0);
	assert_int_equal(tracing.stats.processes, 0);
	tracing_sampled(&tracing, &p->key);
	turns();
	assert_true(p->set);
}

static void what_hangs_keeps_no_other_waiting(void **state)
{
	uint32_t i;

	for (i = 0; i < 10; i++)
		proc(10 + i, 1);
	procs[4].hangs = true;
	begin(0);
	turns();
	assert_int_equal(tracing.stats.hung, 1);
	assert_int_equal(count_set(), 9);
	assert_false(procs[4].set);
	tracing_mapped(&tracing, procs[4].key.tgid);
	turns();
	assert_int_equal(procs[4].looks, 1);
	/* The thread that waits ends when its read does. */
	procs[4].hangs = false;
	assert_int_equal(write(hang[1], "x", 1), 1);
	while (patience_abandoned())
		usleep(1000);
	now += 61 * SEC;
	turns();
	assert_true(procs[4].set);
}

/* It is missed for no longer than its process had been there before. */
static void a_context_that_is_late_is_found(void **state)
{
	struct pm_image *p = proc(10, 1);
	const uint64_t first = now;
	uint64_t published;

	p->silent = true;
	begin(0);
	while (now < first + 12 * SEC)
		turns();
	assert_in_range(p->looks, 4, 6);
	p->silent = false;
	published = now;
	while (!p->set && now < published + 60 * SEC)
		turns();
	assert_true(p->set);
	assert_true(now - published <= published - first + SEC);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
		T(without_a_tracer_nothing_is_done),
		T(more_than_a_batch_are_all_found),
		T(a_user_leaves_room_for_others),
		T(samples_in_refused_processes_are_counted),
		T(a_child_of_fork_is_found_by_its_first_sample),
		T(an_exec_and_an_end_remove_the_entry),
		T(what_hangs_keeps_no_other_waiting),
		T(a_context_that_is_late_is_found),
#undef T
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
