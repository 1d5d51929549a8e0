// SPDX-License-Identifier: Apache-2.0
/* The trace handler and unwind tables: requests, waits, eviction. */
#include "symbolize/rows/rows.h"
#include "tests/unit/tracehandler/test_trace_fake.h"

/*
 * Rows of a file: [0x11000, 0x12000) has frames of 32 bytes, the next page has
 * outermost frames, and a gap follows.
 */
static struct symbolizer_rows *make_rows_of(enum symbolizer_from ra,
					    struct symbolizer_go go)
{
	struct symbolizer_rule rule = {
		.cfa = { SYMBOLIZER_REG, ABI_REG_SP, 0, 32 },
		.regs = { [ABI_REG_SP] = { SYMBOLIZER_CFA, 0, 0, 0 },
			  [16] = { SYMBOLIZER_AT_CFA, 0, 0, -8 } },
	};
	struct symbolizer_rows_build b = { .base = 0x10000, .n_exec = 1 };
	struct symbolizer_rows_info info = { .go = go };
	struct symbolizer_rows *rows = NULL;
	int err = 0;

	b.exec->start = 0x10000;
	b.exec->end = 0x30000;
	assert_true(symbolizer_rows_func(&b, 0x11000, 0x12000, &err));
	assert_int_equal(symbolizer_rows_add(&b, 0x11000, &rule), 0);
	assert_true(symbolizer_rows_func(&b, 0x12000, 0x13000, &err));
	rule.regs[16] = (struct symbolizer_value){ .from = ra };
	assert_int_equal(symbolizer_rows_add(&b, 0x12000, &rule), 0);
	assert_int_equal(symbolizer_rows_end(&b, &info, &rows), 0);
	symbolizer_rows_build_fini(&b);
	return rows;
}

static struct symbolizer_rows *make_rows_ending(enum symbolizer_from ra)
{
	return make_rows_of(ra, (struct symbolizer_go){ 0 });
}

static struct symbolizer_rows *make_rows(void)
{
	return make_rows_ending(SYMBOLIZER_UNDEFINED);
}

/*
 * A function with a frame of 32 bytes at LIB, called from one at CODE, called from
 * an outermost one. The frame pointer is not valid.
 */
static void tables_sample(struct rec *r, uint64_t time)
{
	static const uint64_t pc = LIB + 0x100;
	uint64_t ret[2] = { CODE + 0x300, LIB + 0x1010 };

	sample(r, time, 0, &pc, 1, ABI_STACK_WHOLE);
	regs_of(r)->gpr[ABI_REG_BP] = 1;
	memcpy(r->buf + r->len - 64 * 8 + 24, &ret[0], 8);
	memcpy(r->buf + r->len - 64 * 8 + 56, &ret[1], 8);
}

/*
 * The first sample requests all tables of its image and waits for those it needs,
 * with the mappings of its time.
 */
static void test_waits_for_tables(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	pm.hold_rows = true;
	tables_sample(&r, 100);
	give(f, &r);
	assert_int_equal(pm.nrows, 2); /* and none for the JIT's code */
	assert_int_equal(f->st.waiting, 1);
	assert_true(f->st.waiting_bytes >= r.len);
	assert_int_equal(trace_handler_oldest(f->th), 100);
	pm.swapped = true; /* the library is mapped over the program */
	assert_ptr_equal(pm.rows[0].exe, &pm.library);
	answer_rows(0, make_rows());
	tick(f, MS);
	assert_int_equal(f->st.waiting, 1);
	assert_int_equal(pm.nasks, 0);
	answer_rows(0, make_rows());
	tick(f, 2 * MS);
	answer(0);
	answer(0);
	assert_int_equal(f->out.n, 1);
	assert_string_equal(f->out.text[0],
			    "library+0x11100;program+0x112ff;fn_20;");
	assert_int_equal(f->out.leaf[0].place.id, 0x1100);
	assert_int_equal(f->st.tables, 2);
	assert_true(f->st.tables_bytes > 0);
	assert_int_equal(f->st.stack_root, 1);
	assert_int_equal(f->st.stack_late, 0);
	assert_int_equal(f->st.samples, 1);
	/* Later samples do not wait. */
	pm.swapped = false;
	give(f, &r);
	assert_int_equal(f->out.n, 2);
	assert_int_equal(pm.program.rows_asked + pm.library.rows_asked, 2);
	finish_all(f);
}

/* Only tables that samples wait for are hurried. */
static void test_tables_hurry(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	pm.hold_rows = true;
	tables_sample(&r, 100);
	assert_false(trace_handler_awaits(f->th));
	give(f, &r);
	give(f, &r);
	assert_int_equal(pm.library.hurried, 1);
	assert_int_equal(pm.program.hurried, 0);
	assert_true(trace_handler_awaits(f->th));
	if (pm.rows[0].exe != &pm.library)
		answer_rows(0, make_rows());
	answer_rows(0, make_rows());
	tick(f, MS);
	if (pm.nrows) {
		assert_int_equal(pm.program.hurried, 1);
		assert_true(trace_handler_awaits(f->th));
	}
	/* The samples are dropped; the tables come nevertheless. */
	trace_handler_drop(f->th);
	trace_handler_get_stats(f->th, &f->st);
	assert_int_equal(f->st.waiting, 0);
	assert_int_equal(f->st.waiting_bytes, 0);
	assert_int_equal(trace_handler_oldest(f->th), UINT64_MAX);
	while (pm.nrows)
		answer_rows(0, make_rows());
	assert_false(trace_handler_awaits(f->th));
	assert_int_equal(f->out.n, 0);
	finish_all(f);
}

/* Go's runtime switches from a goroutine's stack to that of its thread. */
static void test_another_stack(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	pm.hold_rows = true;
	tables_sample(&r, 100);
	give(f, &r);
	answer_rows(0, make_rows_ending(SYMBOLIZER_ELSEWHERE));
	answer_rows(0, make_rows_ending(SYMBOLIZER_ELSEWHERE));
	tick(f, 2 * MS);
	trace_handler_flush(f->th);
	trace_handler_get_stats(f->th, &f->st);
	assert_int_equal(f->out.n, 1);
	assert_non_null(strstr(f->out.text[0], "[another stack];"));
	assert_int_equal(f->st.stack_other, 1);
	assert_int_equal(f->st.stack_root, 0);
	finish_all(f);
}

static struct {
	unsigned int n;
	uint32_t tgid;
	struct symbolizer_go go;
} wanted;

static void on_want_go(void *arg, uint32_t tgid, const struct symbolizer_go *go)
{
	wanted.n++;
	wanted.tgid = tgid;
	wanted.go = *go;
}

/* The part that a sample of Go needs is requested until samples have it. */
static void test_go_is_wanted(void **state)
{
	struct abi_go go = { .state = ABI_GO_NONE };
	struct fixture *f = begin((struct trace_opts){ .want_go = on_want_go });
	unsigned int n;
	struct rec r;

	memset(&wanted, 0, sizeof(wanted));
	pm.hold_rows = true;
	tables_sample(&r, 100);
	give(f, &r);
	assert_int_equal(wanted.n, 0);
	answer_rows(0, make_rows_of(SYMBOLIZER_UNDEFINED,
				    (struct symbolizer_go){ -72, 184 }));
	answer_rows(0, make_rows());
	tick(f, 2 * MS);
	assert_true(wanted.n > 0);
	assert_int_equal(wanted.tgid, ((struct abi_sample *)r.buf)->key.tgid);
	assert_int_equal(wanted.go.tls, -72);
	assert_int_equal(wanted.go.curg, 184);
	n = wanted.n;
	tables_sample(&r, 200);
	give(f, &r);
	assert_true(wanted.n > n);
	n = wanted.n;
	tables_sample(&r, 300);
	part(&r, ABI_PART_GO, &go, sizeof(go), NULL, 0);
	finish(&r, 300, 0);
	give(f, &r);
	assert_int_equal(wanted.n, n);
	finish_all(f);
}

/* The wait ends: by the frame pointer, with a mark. */
static void test_tables_late(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .wait_ms = 100 });
	struct rec r;

	pm.hold_rows = true;
	tables_sample(&r, 100);
	give(f, &r);
	tick(f, 1000 * MS);
	tick(f, 1099 * MS);
	assert_int_equal(f->st.stack_late, 0);
	tick(f, 1100 * MS);
	tick(f, 1101 * MS);
	assert_int_equal(f->out.n, 1);
	assert_string_equal(f->out.text[0], "library+0x11100;[tables late];");
	assert_int_equal(f->st.stack_late, 1);
	finish_all(f); /* ... and the answers come later */
}

/* Memory is limited: the oldest waits end first. */
static void test_tables_byte_limit(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .wait_bytes = 5000 });
	struct rec r;

	pm.hold_rows = true;
	for (int i = 0; i < 10; i++) {
		tables_sample(&r, 100 + i);
		give(f, &r);
	}
	assert_true(f->st.waiting_bytes <= 5000);
	assert_true(f->st.stack_late > 0 && f->st.stack_late < 10);
	trace_handler_flush(f->th);
	trace_handler_get_stats(f->th, &f->st);
	assert_int_equal(f->st.stack_late, 10);
	assert_int_equal(f->st.waiting_bytes, 0);
	assert_int_equal(f->out.n, 10);
	finish_all(f);
}

/* A table that could not be read is requested again, but not immediately. */
static void test_tables_retry(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	pm.hold_rows = true;
	tables_sample(&r, 100);
	tick(f, MS);
	give(f, &r);
	answer_rows(-EMFILE, NULL);
	answer_rows(-EMFILE, NULL);
	give(f, &r);
	assert_int_equal(pm.nrows, 0);
	assert_int_equal(f->st.tables_failed, 2);
	tick(f, 60000 * MS);
	answer(0);
	give(f, &r);
	assert_int_equal(pm.nrows, 2);
	/* The files may have unwind information. */
	assert_int_equal(f->st.stack_unread, 2);
	assert_int_equal(f->st.stack_no_cfi, 0);
	tick(f, 120000 * MS);
	give(f, &r);
	answer_rows(-ENOENT, NULL);
	answer_rows(-ENOENT, NULL);
	tick(f, 120001 * MS);
	assert_int_equal(f->st.stack_gone, 2);
	finish_all(f);
}

/* Within the budget: the least recently used goes, too large ones are refused. */
static void test_tables_budget(void **state)
{
	struct symbolizer_rows *rows = make_rows();
	struct symbolizer_rows_info info;
	struct fixture *f;
	struct rec r;
	size_t budget;
	int i;

	symbolizer_rows_info(rows, &info);
	symbolizer_rows_free(rows);
	for (budget = info.bytes; budget < 3 * info.bytes;
	     budget += info.bytes) {
		f = begin((struct trace_opts){ .table_bytes = budget,
					       .wait_ms = 100 });
		pm.hold_rows = true;
		tables_sample(&r, 100);
		give(f, &r);
		for (i = 0; i < 10 && pm.nrows; i++)
			answer_rows(0, make_rows());
		tick(f, MS);
		assert_int_equal(f->st.tables, budget / info.bytes);
		assert_true(f->st.tables_bytes <= budget);
		assert_int_equal(f->st.tables_evicted > 0,
				 budget == info.bytes);
		finish_all(f);
	}
	f = begin((struct trace_opts){ .table_bytes = info.bytes - 1 });
	pm.hold_rows = true;
	give(f, &r);
	answer_rows(0, make_rows());
	answer_rows(-EFBIG, NULL); /* by its size alone */
	tick(f, MS);
	assert_int_equal(f->st.tables, 0);
	assert_int_equal(f->st.tables_refused, 2);
	assert_int_equal(f->st.stack_unread, 1);
	finish_all(f);
}

/* One sample, with all tables and names that it asks for. */
static void give_whole(struct fixture *f, struct rec *r, uint64_t now)
{
	give(f, r);
	for (int i = 0; i < 10 && pm.nrows; i++)
		answer_rows(0, make_rows());
	tick(f, now);
	for (int i = 0; i < 10 && pm.nasks; i++)
		answer(0);
	tick(f, now + MS);
}

/*
 * Caches that were cut: tables and frames go, but no table is refused, the next sample
 * has all of them again, and with the usual size they stay.
 */
static void test_shed(void **state)
{
	struct symbolizer_rows *rows = make_rows();
	struct symbolizer_rows_info info;
	struct fixture *f;
	struct rec r;

	symbolizer_rows_info(rows, &info);
	symbolizer_rows_free(rows);
	f = begin((struct trace_opts){ .table_bytes = 2 * info.bytes,
				       .cache_frames = 4 });
	pm.hold_rows = true;
	tables_sample(&r, 100);
	give_whole(f, &r, MS);
	assert_int_equal(f->out.n, 1);
	assert_int_equal(f->st.tables, 2);
	assert_int_equal(f->st.cache_entries, 3);
	/* A quarter is half of one table: the newest stays all the same. */
	trace_handler_shed(f->th, 2);
	tick(f, 5 * MS);
	assert_int_equal(f->st.tables, 1);
	assert_int_equal(f->st.tables_evicted, 1);
	assert_true(f->st.cache_entries < 2);
	trace_handler_shed(f->th, 0);
	give_whole(f, &r, 10 * MS);
	assert_int_equal(f->out.n, 2);
	assert_string_equal(f->out.text[0], f->out.text[1]);
	assert_int_equal(f->st.tables, 2);
	assert_int_equal(f->st.tables_refused, 0);
	assert_int_equal(f->st.stack_late, 0);
	finish_all(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_another_stack),
		cmocka_unit_test(test_go_is_wanted),
		cmocka_unit_test(test_waits_for_tables),
		cmocka_unit_test(test_tables_hurry),
		cmocka_unit_test(test_tables_late),
		cmocka_unit_test(test_tables_byte_limit),
		cmocka_unit_test(test_tables_retry),
		cmocka_unit_test(test_tables_budget),
		cmocka_unit_test(test_shed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
