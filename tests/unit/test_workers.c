// SPDX-License-Identifier: Apache-2.0
/*
 * Several processes that read files: who gets one, while others ask for what is
 * slow, or hostile, or much.
 */
#include "tests/unit/test_symbolize_fake.h"

#define ATTACKER 65534
#define SLOW_FILES 6

struct load {
	struct fixture fx;
	struct symbolizer_file *slow[SLOW_FILES];
	struct symbolizer_file *file; /* opened last */
	int opened, answers, slow_answers, order[16];
	int done; /* in 'order' */
};

static void on_opened(void *arg, int err, struct symbolizer_file *file)
{
	struct load *l = arg;

	assert_int_equal(err, 0);
	l->file = file;
	l->opened++;
}

static struct symbolizer_file *open_as(struct load *l, const char *name,
				       uint32_t uid)
{
	struct symbolizer_open_req req = { .path = in_dir(name), .uid = uid };

	assert_int_equal(symbolizer_open(l->fx.s, &req, on_opened, l), 0);
	wait_for(&l->fx, &l->opened, l->opened + 1);
	return l->file;
}

static void on_slow(void *arg, int err, const struct symbolizer_symbol *syms,
		    size_t n)
{
	struct load *l = arg;

	assert_int_equal(err, 0);
	l->slow_answers++;
}

static void on_fast(void *arg, int err, const struct symbolizer_symbol *syms,
		    size_t n)
{
	struct load *l = arg;

	assert_int_equal(err, 0);
	l->answers++;
}

static void load_init(struct load *l, const char *lie)
{
	struct symbolizer_opts opts = { .worker = fake_program(lie),
					.open_deadline_ms = 60000 };
	char name[32];

	memset(l, 0, sizeof(*l));
	fixture_init(&l->fx, &opts);
	for (int i = 0; i < SLOW_FILES; i++) {
		snprintf(name, sizeof(name), "slow%d.so", i);
		make_library(name, "EVIL");
		l->slow[i] = open_as(l, name, ATTACKER);
	}
}

static void load_fini(struct load *l)
{
	for (int i = 0; i < SLOW_FILES; i++)
		symbolizer_close(l->fx.s, l->slow[i]);
	fixture_fini(&l->fx);
}

/* Each of them takes 300 ms; another user's files do not wait for them all. */
static void one_user_does_not_hold_up_another(void **state)
{
	const uint64_t at = 0x1000;
	struct symbolizer_file *f;
	struct load l;

	load_init(&l, "slow");
	make_library("b.so", "fn");
	for (int i = 0; i < SLOW_FILES; i++)
		symbolizer_resolve(l.fx.s, l.slow[i], &at, 1, on_slow, &l);
	f = open_as(&l, "b.so", 1000);
	assert_in_range(l.slow_answers, 0, SLOW_FILES / 2);
	for (int i = 0; i < 5; i++) {
		symbolizer_resolve(l.fx.s, f, &at, 1, on_fast, &l);
		wait_for(&l.fx, &l.answers, i + 1);
	}
	assert_in_range(l.slow_answers, 0, SLOW_FILES / 2);
	assert_in_range(stats(&l.fx).worker_starts, 2, 3);
	wait_for(&l.fx, &l.slow_answers, SLOW_FILES);
	symbolizer_close(l.fx.s, f);
	load_fini(&l);
}

/* As it may have been the same user, so may its other files go on. */
static void one_file_does_not_hold_up_another(void **state)
{
	const uint64_t at = 0x1000;
	struct symbolizer_file *f;
	struct load l;

	load_init(&l, "slow");
	make_library("b.so", "fn");
	f = open_as(&l, "b.so", ATTACKER);
	for (int i = 0; i < 6; i++)
		symbolizer_resolve(l.fx.s, l.slow[0], &at, 1, on_slow, &l);
	symbolizer_resolve(l.fx.s, f, &at, 1, on_fast, &l);
	wait_for(&l.fx, &l.answers, 1);
	assert_in_range(l.slow_answers, 0, 3);
	wait_for(&l.fx, &l.slow_answers, 6);
	symbolizer_close(l.fx.s, f);
	load_fini(&l);
}

static void on_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	struct load *l = arg;

	assert_int_equal(err, -ENODATA);
	l->order[l->done++] = WORKER_ROWS;
}

static void on_names(void *arg, int err, const struct symbolizer_symbol *syms,
		     size_t n)
{
	struct load *l = arg;

	assert_int_equal(err, 0);
	l->order[l->done++] = WORKER_NAMES;
}

/* Without its table a stack is lost; without its names it has addresses. */
static void tables_come_before_names(void **state)
{
	const uint64_t at = 0x1000;
	struct load l;
	int rows = 0;

	load_init(&l, "crash");
	make_library("b.so", "fn");
	for (int i = 0; i < SLOW_FILES; i++) {
		symbolizer_close(l.fx.s, l.slow[i]);
		l.slow[i] = open_as(&l, "b.so", ATTACKER);
	}
	for (int i = 0; i < SLOW_FILES; i++)
		symbolizer_resolve(l.fx.s, l.slow[i], &at, 1, on_names, &l);
	for (int i = 0; i < SLOW_FILES; i++)
		symbolizer_rows(l.fx.s, l.slow[i], on_rows, &l);
	wait_for(&l.fx, &l.done, 2 * SLOW_FILES);
	for (int i = 0; i < SLOW_FILES; i++)
		rows += l.order[i] == WORKER_ROWS;
	/* One in four is for names all the same. */
	assert_in_range(rows, SLOW_FILES / 2 + 1, SLOW_FILES - 1);
	load_fini(&l);
}

struct hurry {
	struct load *l;
	int i;
};

static void on_rows_of(void *arg, int err, struct symbolizer_rows *rows)
{
	struct hurry *h = arg;

	assert_int_equal(err, -ENODATA);
	h->l->order[h->l->done++] = h->i;
}

/* Samples wait for two of them: these go first, in the order of the waiting. */
static void what_samples_wait_for_comes_first(void **state)
{
	struct hurry each[SLOW_FILES];
	struct load l;

	load_init(&l, "crash");
	make_library("b.so", "fn");
	for (int i = 0; i < SLOW_FILES; i++) {
		symbolizer_close(l.fx.s, l.slow[i]);
		l.slow[i] = open_as(&l, "b.so", ATTACKER);
		each[i] = (struct hurry){ &l, i };
	}
	for (int i = 0; i < SLOW_FILES; i++)
		symbolizer_rows(l.fx.s, l.slow[i], on_rows_of, &each[i]);
	symbolizer_hurry(l.fx.s, l.slow[5]);
	symbolizer_hurry(l.fx.s, l.slow[3]);
	wait_for(&l.fx, &l.done, SLOW_FILES);
	assert_int_equal(l.order[0], 5);
	assert_int_equal(l.order[1], 3);
	load_fini(&l);
}

static void on_turn(uv_timer_t *timer)
{
	*(int *)timer->data = 1;
}

static void turn(struct fixture *fx, uint64_t ms)
{
	int over = 0;
	uv_timer_t timer = { .data = &over };

	uv_timer_init(&fx->loop, &timer);
	uv_timer_start(&timer, on_turn, ms, 0);
	wait_for(fx, &over, 1);
	uv_close((uv_handle_t *)&timer, NULL);
	uv_run(&fx->loop, UV_RUN_NOWAIT);
}

/* What it failed on may go better with another version of us, or more memory. */
static void a_file_put_aside_is_tried_again(void **state)
{
	struct symbolizer_opts opts = { .worker = fake_program("crash"),
					.open_deadline_ms = 60000,
					.retry_ms = 2000 };
	struct fixture fx;
	uint64_t at = 0x1000;

	fixture_init(&fx, &opts);
	make_library("evil.so", "EVIL");
	assert_int_equal(open_path(&fx, in_dir("evil.so")), 0);
	assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), -EBADMSG);
	assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), -EBADMSG);
	assert_int_equal(stats(&fx).put_aside, 1);
	turn(&fx, 2100);
	assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), -EBADMSG);
	assert_int_equal(stats(&fx).put_aside, 2);
	/* Twice as long now. */
	turn(&fx, 2100);
	assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), -EBADMSG);
	assert_int_equal(stats(&fx).put_aside, 2);
	fixture_fini(&fx);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_user_does_not_hold_up_another),
		cmocka_unit_test(one_file_does_not_hold_up_another),
		cmocka_unit_test(tables_come_before_names),
		cmocka_unit_test(what_samples_wait_for_comes_first),
		cmocka_unit_test(a_file_put_aside_is_tried_again),
	};

	if (argc == 3 && !strcmp(argv[1], "fake"))
		return fake_main(argv[2]);
	worker_or_test(argc, argv);
	return cmocka_run_group_tests(tests, setup, teardown);
}
