// SPDX-License-Identifier: Apache-2.0
/*
 * The queue of requests: what goes together, what is cancelled, what is freed.
 */
#include "tests/unit/processmanager/test_pm_ask.h"

/* The answer to a requester. */
struct asker {
	int answers, err;
	size_t n;
	void *tags[64];
};

static void on_named(void *arg, int err, void *const *tags,
		     const struct symbolizer_symbol *syms, size_t n)
{
	struct asker *a = arg;

	a->answers++;
	a->err = err;
	a->n = n;
	memcpy(a->tags, tags, n * sizeof(*tags));
	assert_int_equal(!err, syms != NULL);
	for (size_t i = 0; i < n && !err; i++)
		assert_int_equal(syms[i].nfunctions, 1);
}

static void on_read(void *arg, int err, struct symbolizer_rows *rows)
{
	struct asker *a = arg;

	a->answers++;
	a->err = err;
	symbolizer_rows_free(rows);
}

static int want(struct asker *a, struct pm_exe *exe, uintptr_t tag)
{
	return pm_exe_name(exe, tag, (void *)tag, on_named, a);
}

/* Files 1 to 3, mapped by process 5 one page each. */
static void map_file(int i)
{
	static char path[4][32];

	snprintf(path[i], sizeof(path[i]), "/lib/%d.so", i);
	fake_file(path[i], i, i, i);
	do_mmap(5, 8000, 0x1000ULL * i, 0x1000ULL * (i + 1), path[i], i);
}

static void map_files(void)
{
	for (int i = 1; i <= 3; i++)
		map_file(i);
}

static struct pm_exe *file(int i)
{
	return exe_at(5, 0, 0x1000ULL * i);
}

/* Names of one executable requested before pm_names_send(). */
static void names_go_together(void **state)
{
	struct asker a = { 0 }, b = { 0 };

	map_files();
	fake_run();
	for (uintptr_t i = 0; i < 40; i++)
		assert_int_equal(want(&a, file(1), i), 0);
	assert_int_equal(want(&b, file(1), 7), 0);
	assert_int_equal(fake.nqueue, 0);
	pm_names_send(pm);
	assert_int_equal(fake.nqueue, 1);
	assert_int_equal(fake.queue[0]->n, 40);
	fake_run();
	assert_int_equal(a.answers, 1);
	assert_int_equal(a.n, 40);
	for (uintptr_t i = 0; i < 40; i++)
		assert_ptr_equal(a.tags[i], (void *)i);
	assert_int_equal(b.answers, 1); /* of another requester: by itself */
	assert_int_equal(b.n, 1);
}

/* One request an executable at a time; those made meanwhile go together. */
static void one_request_at_a_time(void **state)
{
	struct asker a = { 0 };

	map_files(); /* still being opened */
	for (uintptr_t i = 0; i < 5; i++) {
		want(&a, file(1), i);
		pm_names_send(pm);
	}
	want(&a, file(2), 9);
	pm_names_send(pm);
	while (fake.queue[0]->open_fn)
		fake_turn();
	assert_int_equal(fake.nqueue, 2);
	assert_int_equal(fake.queue[0]->n, 1);
	fake_turn();
	assert_int_equal(a.answers, 1);
	assert_int_equal(fake.nqueue, 2);
	assert_int_equal(fake.queue[1]->n, 4);
	fake_run();
	assert_int_equal(a.answers, 3);
	assert_int_equal(a.n, 4);
}

/* Executables with requests for names, whatever their state; not those for rows. */
static void names_awaited(void **state)
{
	struct asker a = { 0 };
	const struct pm_exe *first;

	map_files();
	fake_run();
	assert_int_equal(pm_names_awaited(pm, &first), 0);
	assert_null(first);
	assert_int_equal(pm_exe_rows(file(3), on_read, &a), 0);
	assert_int_equal(pm_names_awaited(pm, &first), 0);
	want(&a, file(1), 1);
	pm_names_send(pm);
	want(&a, file(1), 2);
	want(&a, file(2), 3);
	assert_int_equal(pm_names_awaited(pm, &first), 2);
	assert_ptr_equal(first, file(1));
	pm_names_send(pm);
	fake_run();
	assert_int_equal(pm_names_awaited(pm, &first), 0);
	assert_int_equal(a.answers, 4);
}

/* Collected requests are sent when the file turns out to be a copy. */
static void collected_for_a_copy(void **state)
{
	struct asker a = { 0 };

	fake_file("/lib/one.so", 1, 1, 1);
	fake_file("/lib/two.so", 1, 1, 2);
	map_inode(5, 0x1000, "/lib/one.so", 1, 1);
	fake_run();
	map_inode(5, 0x2000, "/lib/two.so", 2, 1);
	want(&a, file(2), 1);
	pm_names_send(pm);
	want(&a, file(2), 2);
	fake_run();
	pm_names_send(pm);
	fake_run();
	assert_int_equal(a.answers, 2);
	assert_int_equal(a.err, 0);
	assert_ptr_equal(pm_exe_root(file(2)), file(1));
}

struct each {
	struct asker collecting, under_way, rows, opening, turn, failed, other;
};

/* One request in each state; 'other' of another requester. */
static void ask_each(struct each *e)
{
	pm_free(pm);
	assert_int_equal(setup_files(2), 0);
	do_walk(5, 1, "/bin/a", 7000);
	map_file(1);
	fake_run();
	assert_int_equal(pm_exe_rows(file(1), on_read, &e->rows), 0);
	want(&e->under_way, file(1), 1);
	pm_names_send(pm);
	map_file(2);
	map_file(3);
	assert_int_equal(fake.nqueue, 3); /* an opening, and the requests */
	want(&e->opening, file(2), 2);
	pm_names_send(pm);
	/* Two files are open, or about to be. */
	want(&e->turn, file(3), 3);
	do_mmap(5, 8000, 0x9000, 0xa000, "//anon", 0);
	want(&e->failed, exe_at(5, 0, 0x9000), 4); /* it has no file */
	pm_names_send(pm);
	want(&e->collecting, file(1), 5);
	want(&e->other, file(1), 6);
}

static void the_end_answers_each(void **state)
{
	struct each e = { 0 };
	struct asker *all = (struct asker *)&e;

	ask_each(&e);
	pm_free(pm);
	pm = NULL;
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < sizeof(e) / sizeof(*all); i++) {
			assert_int_equal(all[i].answers, 1);
			assert_int_equal(all[i].err, -ECANCELED);
		}
		/* Later answers of the symbolizer are dropped. */
		fake_run();
	}
	assert_int_equal(fake.held, 0);
}

static void an_asker_cancels_its_own(void **state)
{
	struct each e = { 0 };

	ask_each(&e);
	pm_names_cancel(pm, on_named, &e.collecting);
	pm_names_cancel(pm, on_named, &e.under_way);
	pm_names_cancel(pm, on_named, &e.opening);
	pm_names_cancel(pm, on_named, &e.turn);
	pm_names_cancel(pm, on_named, &e.failed);
	assert_int_equal(e.collecting.err, -ECANCELED);
	assert_int_equal(e.under_way.err, -ECANCELED);
	assert_int_equal(e.opening.err, -ECANCELED);
	assert_int_equal(e.turn.err, -ECANCELED);
	assert_int_equal(e.failed.err, -ECANCELED);
	assert_int_equal(e.other.answers + e.rows.answers, 0);
	pm_names_send(pm);
	fake_run();
	pm_forget(pm, 0);
	assert_int_equal(e.under_way.answers, 1);
	assert_int_equal(e.failed.answers, 1);
	assert_int_equal(e.rows.err + e.other.err, 0);
	assert_int_equal(e.rows.answers + e.other.answers, 2);
}

#define T(name) cmocka_unit_test_setup_teardown(name, two_processes, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(names_go_together),	     T(one_request_at_a_time),
		T(collected_for_a_copy),     T(the_end_answers_each),
		T(an_asker_cancels_its_own), T(names_awaited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
