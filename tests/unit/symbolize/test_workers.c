// SPDX-License-Identifier: Apache-2.0
/*
 * Several worker processes: how they are shared, while other users request
 * slow, hostile or many files.
 */
#include <sys/resource.h>

#include "symbolize/reader/quarantine.h"
#include "symbolize/reader/worker_pace.h"
#include "tests/unit/symbolize/test_symbolize_fake.h"

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

/* The files of all tests: compilers are slow. */
static int setup_files(void **state)
{
	int err = setup(state);
	char name[32];

	for (int i = 0; !err && i < SLOW_FILES; i++) {
		snprintf(name, sizeof(name), "slow%d.so", i);
		make_library(name, "EVIL");
	}
	make_library("b.so", "fn");
	return err;
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

/* The same for two files, perhaps of one user. */
static void one_file_does_not_hold_up_another(void **state)
{
	const uint64_t at = 0x1000;
	struct symbolizer_file *f;
	struct load l;

	load_init(&l, "slow");
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

static void on_late(void *arg, int err, const struct symbolizer_symbol *syms,
		    size_t n)
{
	struct load *l = arg;

	l->slow_answers++;
}

static void on_context(void *arg, int err, const struct symbolizer_context *c)
{
	struct load *l = arg;

	assert_int_equal(err, 0);
	l->answers++;
}

/* Two of its user's files are at work, for seconds; no third one may be. */
static void a_context_does_not_wait_for_files(void **state)
{
	const uint64_t at[] = { 0x1000, 0x1001, 0x1002, 0x1003, 0x1004 };
	struct load l;

	load_init(&l, "drip");
	for (int i = 0; i < SLOW_FILES; i++)
		symbolizer_resolve(l.fx.s, l.slow[i], at, ARRAY_SIZE(at),
				   on_late, &l);
	while (stats(&l.fx).worker_starts < 2)
		uv_run(&l.fx.loop, UV_RUN_ONCE);
	turn(&l.fx, 50);
	assert_int_equal(
		symbolizer_context(l.fx.s, "", 0, ATTACKER, on_context, &l), 0);
	wait_for(&l.fx, &l.answers, 1);
	assert_int_equal(l.slow_answers, 0);
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
	/* One in four is still for names. */
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

/* Samples wait for two of them: these are first, in that order. */
static void what_samples_wait_for_comes_first(void **state)
{
	struct hurry each[SLOW_FILES];
	struct load l;

	load_init(&l, "crash");
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

/* --- priority -------------------------------------------------------------------- */

#define MS WORKER_PACE_MS

static void priority_has_a_budget(void **state)
{
	struct worker_pace_party user = { .owner = 1, .uid = 1 };
	struct worker_pace_party library = { .owner = 0, .uid = 1 };
	struct worker_pace_party root = { 0 };
	struct worker_pace all = { 0 };
	uint64_t now = 1000 * MS;

	assert_int_equal(worker_pace_hurry(&all, &user, now), 500 * MS);
	worker_pace_charge(&all, &user, 400 * MS, true, now);
	assert_int_equal(worker_pace_hurry(&all, &user, now), 100 * MS);
	worker_pace_charge(&all, &user, 500 * MS, true, now);
	assert_int_equal(worker_pace_hurry(&all, &user, now), 0);
	/* The rest is for files of root. */
	assert_int_equal(worker_pace_hurry(&all, &library, now), 100 * MS);
	assert_int_equal(worker_pace_hurry(&all, &root, now), 100 * MS);
	worker_pace_charge(&all, &root, 100 * MS, true, now);
	assert_int_equal(worker_pace_hurry(&all, &root, now), 0);
	/* It recovers with time, however often it is read. */
	for (int i = 0; i < 10000; i++, now += MS / 10)
		worker_pace_charge(&all, &root, 0, true, now);
	assert_in_range(worker_pace_hurry(&all, &library, now), 99 * MS,
			100 * MS);
	now += 8000 * MS;
	assert_in_range(worker_pace_hurry(&all, &user, now), 49 * MS, 51 * MS);
	now += 100000 * MS;
	assert_int_equal(worker_pace_hurry(&all, &user, now), 500 * MS);
	assert_true(worker_pace_fresh(&user, now));
}

static void cpu_time_has_a_budget(void **state)
{
	struct worker_pace_party user = { .owner = 1, .uid = 1 }, root = { 0 };
	struct worker_pace all = { 0 };
	uint64_t now = 1000 * MS;

	worker_pace_charge(&all, &user, 2000 * MS, false, now);
	worker_pace_charge(&all, &root, 9000 * MS, false, now);
	assert_false(worker_pace_over(&user, now));
	assert_false(worker_pace_fresh(&user, now));
	worker_pace_charge(&all, &user, 1000 * MS, false, now);
	assert_true(worker_pace_over(&user, now));
	assert_false(worker_pace_over(&root, now));
	assert_int_equal(worker_pace_hurry(&all, &user, now), 500 * MS);
	assert_true(worker_pace_over(&user, now + 3900 * MS));
	assert_false(worker_pace_over(&user, now + 4000 * MS));
	assert_true(worker_pace_fresh(&user, now + 12000 * MS));
}

struct watch {
	struct load *l;
	uint64_t last, hurried_ms;
};

/* Adds up how long processes have high priority. */
static void on_watch(uv_timer_t *timer)
{
	struct watch *w = timer->data;
	uint64_t now = uv_hrtime() / MS;
	char text[1024], *at = text;
	int pid;

	symbolizer_worker_status(w->l->fx.s, text, sizeof(text));
	for (; (at = strstr(at, "process ")); at++)
		if (sscanf(at, "process %d", &pid) == 1 &&
		    getpriority(PRIO_PROCESS, (id_t)pid) <
			    getpriority(PRIO_PROCESS, 0))
			w->hurried_ms += now - w->last;
	w->last = now;
}

static void on_no_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	struct load *l = arg;

	assert_int_equal(err, -ENODATA);
	l->slow_answers++;
}

static void names_have_a_budget(void **state)
{
	struct worker_pace_party user = { .owner = 1, .uid = 1 }, root = { 0 };
	uint64_t now = 100000 * MS;

	worker_pace_charge_names(&user, 2000 * MS, now);
	worker_pace_charge_names(&root, 2000 * MS, now);
	assert_int_equal(worker_pace_names(&user, now), 2000 * MS);
	assert_int_equal(worker_pace_names(&root, now), 0);
	assert_false(worker_pace_fresh(&user, now));
	now += 8000 * MS; /* an eighth of it */
	assert_int_equal(worker_pace_names(&user, now), 1000 * MS);
	now += 8000 * MS;
	assert_true(worker_pace_fresh(&user, now));
}

/* Whose names take more CPU time than that waits, and delays nobody. */
static void names_beyond_the_budget_wait(void **state)
{
	const uint64_t at = 0x1000;
	struct symbolizer_file *f;
	struct load l;

	load_init(&l, "spin");
	f = open_as(&l, "b.so", 1000);
	for (int i = 0; i < SLOW_FILES; i++)
		symbolizer_resolve(l.fx.s, l.slow[i], &at, 1, on_slow, &l);
	while (!stats(&l.fx).names_waited && l.slow_answers < SLOW_FILES)
		uv_run(&l.fx.loop, UV_RUN_ONCE);
	/* 1,200 ms are over 1,000, and the fifth may have begun. */
	assert_in_range(l.slow_answers, 3, 5);
	for (int i = 0; i < 5; i++) {
		symbolizer_resolve(l.fx.s, f, &at, 1, on_fast, &l);
		wait_for(&l.fx, &l.answers, i + 1);
	}
	assert_in_range(l.slow_answers, 3, 5);
	wait_for(&l.fx, &l.slow_answers, SLOW_FILES);
	symbolizer_close(l.fx.s, f);
	load_fini(&l);
}

/* One user's files fill a process; another's file is not blamed for that. */
static void what_others_left_is_not_blamed_on_a_file(void **state)
{
	const uint64_t at = 0x1000;
	struct symbolizer_file *f;
	struct load l;

	load_init(&l, "full");
	f = open_as(&l, "b.so", 1000);
	for (int i = 0; i < 4; i++) {
		symbolizer_resolve(l.fx.s, l.slow[0], &at, 1, on_slow, &l);
		wait_for(&l.fx, &l.slow_answers, i + 1);
		symbolizer_resolve(l.fx.s, f, &at, 1, on_fast, &l);
		wait_for(&l.fx, &l.answers, i + 1);
	}
	assert_int_equal(stats(&l.fx).worker_shared, 4);
	assert_int_equal(stats(&l.fx).quarantined, 0);
	symbolizer_close(l.fx.s, f);
	load_fini(&l);
}

static struct symbolizer_file quarantine_file(uint64_t ino, uint32_t uid)
{
	return (struct symbolizer_file){ .ident.ino = ino, .uid = uid };
}

/* Many files of one user do not make room by dropping another's. */
static void a_full_quarantine_forgets_the_user_with_most(void **state)
{
	struct quarantine q = { .retry_ms = 1000 };
	struct symbolizer_file f = quarantine_file(1, 1000);
	struct symbolizer_quarantined out;

	assert_true(quarantine_add(&q, &f, QUARANTINE_WHOLE,
				   SYMBOLIZER_REASON_MEMORY, 0));
	for (uint64_t i = 2; i < 3 * QUARANTINE_MAX; i++) {
		f = quarantine_file(i, ATTACKER);
		quarantine_add(&q, &f, QUARANTINE_WHOLE,
			       SYMBOLIZER_REASON_CRASHED, 0);
	}
	assert_int_equal(quarantine_count(&q), QUARANTINE_MAX);
	assert_int_equal(q.counts[SYMBOLIZER_REASON_MEMORY], 1);
	assert_int_equal(q.counts[SYMBOLIZER_REASON_CRASHED],
			 3 * QUARANTINE_MAX - 2);
	assert_true(quarantine_at(&q, 0, &out)); /* the newest */
	assert_int_equal(out.uid, ATTACKER);
	assert_true(quarantine_at(&q, QUARANTINE_MAX - 1, &out));
	assert_int_equal(out.uid, 1000);
	assert_int_equal(out.why, SYMBOLIZER_REASON_MEMORY);
	assert_false(quarantine_at(&q, QUARANTINE_MAX, &out));
	quarantine_fini(&q);
}

/* Slow files one after the other: most are read at the usual priority. */
static void one_user_does_not_run_before_all(void **state)
{
	const int n = 2 * SLOW_FILES;
	struct load l;
	struct watch w = { .l = &l, .last = uv_hrtime() / MS };
	uv_timer_t timer = { .data = &w };
	struct symbolizer_file *f;
	uint64_t before;

	if (geteuid())
		skip();
	load_init(&l, "slow");
	f = open_as(&l, "b.so", 1000);
	uv_timer_init(&l.fx.loop, &timer);
	uv_timer_start(&timer, on_watch, 5, 5);
	for (int i = 0; i < n; i++)
		symbolizer_rows(l.fx.s, l.slow[i % SLOW_FILES], on_no_rows, &l);
	wait_for(&l.fx, &l.slow_answers, n);
	uv_close((uv_handle_t *)&timer, NULL);
	/* Each takes 300 ms. */
	assert_in_range(w.hurried_ms, 1, (uint64_t)n * 300 / 2);
	before = stats(&l.fx).worker_unhurried;
	/* Another user still has a full budget. */
	symbolizer_rows(l.fx.s, f, on_no_rows, &l);
	wait_for(&l.fx, &l.slow_answers, n + 1);
	assert_int_equal(stats(&l.fx).worker_unhurried, before);
	symbolizer_close(l.fx.s, f);
	load_fini(&l);
}

/* --- failures -------------------------------------------------------------------- */

#define CRASHES 40

static void on_crash(void *arg, int err, const struct symbolizer_symbol *syms,
		     size_t n)
{
	struct load *l = arg;

	assert_true(err == -EBADMSG || err == -EIO);
	l->slow_answers++;
}

/* One user's files crash the worker repeatedly; another's are read. */
static void failures_of_one_user_do_not_hold_up_another(void **state)
{
	struct symbolizer_file *evil[CRASHES], *f;
	const uint64_t at = 0x1000;
	uint64_t before;
	struct load l;
	char name[32];

	load_init(&l, "crash");
	f = open_as(&l, "b.so", 1000);
	for (int i = 0; i < CRASHES; i++) {
		snprintf(name, sizeof(name), "evil%d.so", i);
		sh("cp slow0.so %s", name);
		evil[i] = open_as(&l, name, ATTACKER);
	}
	for (int i = 0; i < CRASHES; i++)
		symbolizer_resolve(l.fx.s, evil[i], &at, 1, on_crash, &l);
	wait_for(&l.fx, &l.slow_answers, CRASHES);
	/* on_fast(): and there is no error. */
	symbolizer_resolve(l.fx.s, f, &at, 1, on_fast, &l);
	wait_for(&l.fx, &l.answers, 1);
	assert_true(stats(&l.fx).worker_refused > 0);
	before = stats(&l.fx).quarantined;
	assert_in_range(before, 8, 10); /* one at a time is at work, or two */
	/* The other user has another turn, too. */
	for (int i = 0; i < 100 && stats(&l.fx).quarantined == before; i++) {
		l.slow_answers = 0;
		symbolizer_resolve(l.fx.s, evil[CRASHES - 1], &at, 1, on_crash,
				   &l);
		wait_for(&l.fx, &l.slow_answers, 1);
		turn(&l.fx, 100);
	}
	assert_true(stats(&l.fx).quarantined > before);
	for (int i = 0; i < CRASHES; i++)
		symbolizer_close(l.fx.s, evil[i]);
	symbolizer_close(l.fx.s, f);
	load_fini(&l);
}

/* A quarantined file is tried again after a time. */
static void a_quarantined_file_is_tried_again(void **state)
{
	struct symbolizer_opts opts = { .worker = fake_program("crash"),
					.open_deadline_ms = 60000,
					.retry_ms = 800 };
	struct fixture fx;
	uint64_t at = 0x1000;

	fixture_init(&fx, &opts);
	assert_int_equal(open_path(&fx, in_dir("slow0.so")), 0);
	assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), -EBADMSG);
	assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), -EBADMSG);
	assert_int_equal(stats(&fx).quarantined, 1);
	turn(&fx, 850);
	assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), -EBADMSG);
	assert_int_equal(stats(&fx).quarantined, 2);
	/* Twice as long now. */
	turn(&fx, 850);
	assert_int_equal(resolve_wait(&fx, fx.file, &at, 1), -EBADMSG);
	assert_int_equal(stats(&fx).quarantined, 2);
	fixture_fini(&fx);
}

/* --- the end --------------------------------------------------------------------- */

struct ends {
	int answers, opened, rows;
};

static void on_end_names(void *arg, int err,
			 const struct symbolizer_symbol *syms, size_t n)
{
	assert_int_equal(err, -ECANCELED);
	assert_true(!syms && !n);
	((struct ends *)arg)->answers++;
}

static void on_end_rows(void *arg, int err, struct symbolizer_rows *rows)
{
	assert_int_equal(err, -ECANCELED);
	assert_null(rows);
	((struct ends *)arg)->rows++;
}

static void on_end_open(void *arg, int err, struct symbolizer_file *file)
{
	assert_int_equal(err, -ECANCELED);
	assert_null(file);
	((struct ends *)arg)->opened++;
}

/*
 * One request in each state when the symbolizer is freed: openings waiting for
 * an opener and at one, waiting for a worker and at one; names and rows waiting
 * for a worker and at one; names of the kernel waiting for the pool and in it.
 * Closing the files ends theirs, the rest ends with the symbolizer; nothing
 * leaks.
 */
static void the_end_answers_each_state_once(void **state)
{
	struct symbolizer_open_req req = { .uid = ATTACKER };
	struct ends e = { 0 };
	const uint64_t at = 0x1000;
	struct load l;

	load_init(&l, "hang");
	sh("cp slow0.so new1.so; cp slow0.so new2.so");
	/* Two get a worker, one after the other; the others wait. */
	for (int i = 0; i < SLOW_FILES / 2; i++) {
		symbolizer_resolve(l.fx.s, l.slow[i], &at, 1, on_end_names, &e);
		symbolizer_rows(l.fx.s, l.slow[i], on_end_rows, &e);
	}
	turn(&l.fx, 200);
	/* Found, and waiting to be identified behind these. */
	req.path = in_dir("new1.so");
	symbolizer_open(l.fx.s, &req, on_end_open, &e);
	turn(&l.fx, 200);
	/* With an opener, and behind it. */
	statfs_sleep_ms = 200;
	req.path = in_dir("new2.so");
	for (int i = 0; i < 3; i++)
		symbolizer_open(l.fx.s, &req, on_end_open, &e);
	for (int i = 0; i < 3; i++)
		symbolizer_resolve(l.fx.s, symbolizer_kernel(l.fx.s), &at, 1,
				   on_end_names, &e);
	assert_int_equal(e.answers + e.rows + e.opened, 0);
	for (int i = 0; i < SLOW_FILES; i++) {
		symbolizer_close(l.fx.s, l.slow[i]);
		assert_int_equal(e.answers, MIN(i + 1, SLOW_FILES / 2));
		assert_int_equal(e.rows, MIN(i + 1, SLOW_FILES / 2));
	}
	assert_int_equal(e.opened, 0);
	symbolizer_free(l.fx.s);
	statfs_sleep_ms = 0;
	for (int pass = 0; pass < 2; pass++) {
		assert_int_equal(e.answers, SLOW_FILES / 2 + 3);
		assert_int_equal(e.rows, SLOW_FILES / 2);
		assert_int_equal(e.opened, 4);
		uv_run(&l.fx.loop, UV_RUN_DEFAULT);
	}
	assert_int_equal(uv_loop_close(&l.fx.loop), 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_user_does_not_hold_up_another),
		cmocka_unit_test(one_file_does_not_hold_up_another),
		cmocka_unit_test(a_context_does_not_wait_for_files),
		cmocka_unit_test(tables_come_before_names),
		cmocka_unit_test(what_samples_wait_for_comes_first),
		cmocka_unit_test(names_have_a_budget),
		cmocka_unit_test(names_beyond_the_budget_wait),
		cmocka_unit_test(what_others_left_is_not_blamed_on_a_file),
		cmocka_unit_test(a_full_quarantine_forgets_the_user_with_most),
		cmocka_unit_test(a_quarantined_file_is_tried_again),
		cmocka_unit_test(priority_has_a_budget),
		cmocka_unit_test(cpu_time_has_a_budget),
		cmocka_unit_test(one_user_does_not_run_before_all),
		cmocka_unit_test(failures_of_one_user_do_not_hold_up_another),
		cmocka_unit_test(the_end_answers_each_state_once),
	};

	if (argc == 3 && !strcmp(argv[1], "fake"))
		return fake_main(argv[2]);
	worker_or_test(argc, argv);
	return cmocka_run_group_tests(tests, setup_files, teardown);
}
