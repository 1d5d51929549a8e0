// SPDX-License-Identifier: Apache-2.0
/*
 * Code that a runtime made: names by perf map, which change while the map grows; unwind
 * rows by jitdump, which are those of a time.
 */
#include "symbolize/rows/rows_table.h"
#include "tests/unit/tracehandler/test_trace_fake.h"

/* Answers the oldest request with this name for each address,
 * valid so long before and after the time of the request. */
static void answer_for(const char *name, uint64_t before, uint64_t after)
{
	struct symbolizer_function fn = { name, name, "", 0, 0 };
	struct symbolizer_symbol syms[64];
	struct ask a = pm.asks[0];

	assert_int_equal(pm.nasks, 1);
	assert_ptr_equal(a.exe, &pm.anon);
	pm.nasks = 0;
	for (size_t i = 0; i < a.n; i++)
		syms[i] = (struct symbolizer_symbol){
			.offset = a.offsets[i],
			.vaddr = a.offsets[i],
			.start = JIT,
			.size = 0x100,
			.functions = &fn,
			.nfunctions = 1,
			.before = before,
			.after = after,
			.source = SYMBOLIZER_SOURCE_PERF_MAP,
		};
	a.fn(a.arg, 0, a.tags, syms, a.n);
	a.exe->refs--;
}

/* Answers the oldest request with this name for each address. */
static void answer_as(const char *name)
{
	answer_for(name, 0, 0);
}

/* Answers the oldest request: there is no name. */
static void answer_none_named(void)
{
	struct symbolizer_symbol syms[64] = { 0 };
	struct ask a = pm.asks[0];

	assert_int_equal(pm.nasks, 1);
	pm.nasks = 0;
	for (size_t i = 0; i < a.n; i++)
		syms[i].offset = syms[i].vaddr = a.offsets[i];
	a.fn(a.arg, 0, a.tags, syms, a.n);
	a.exe->refs--;
}

static void give_at(struct fixture *f, uint64_t time)
{
	static const uint64_t pcs[] = { JIT + 0x20 };
	struct rec r;

	sample(&r, time, 0, pcs, 1, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, time);
}

static void test_named_by_the_map(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });

	pm.perf_map = true;
	pm.version = 1;
	give_at(f, 1);
	assert_int_equal(f->out.n, 0);
	answer_as("js");
	assert_string_equal(f->out.text[0], "js;");
	/* Other code may follow at the address: the name identifies it. */
	assert_int_equal(f->out.start[0], 0);
	assert_int_equal(f->out.leaf[0].vaddr, JIT + 0x20);
	assert_int_equal(f->out.leaf[0].place.version, 0);
	give_at(f, 2);
	assert_string_equal(f->out.text[1], "js;");
	assert_int_equal(pm.anon.asked, 1);
	finish_all(f);
}

/* The map has grown since: the address is asked for again, for new samples. */
static void test_a_version_is_asked_for(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });

	pm.perf_map = true;
	pm.version = 1;
	give_at(f, 1);
	answer_as("first");
	for (int i = 0; i < 3; i++) /* a stack that is kept */
		give_at(f, 2);
	pm.version = 2;
	pm.since = 10;
	give_at(f, 9);
	assert_string_equal(f->out.text[f->out.n - 1], "first;");
	give_at(f, 11);
	answer_as("second");
	for (int i = 0; i < 3; i++)
		give_at(f, 12);
	assert_string_equal(f->out.text[f->out.n - 1], "second;");
	give_at(f, 9);
	assert_string_equal(f->out.text[f->out.n - 1], "first;");
	assert_int_equal(pm.anon.asked, 2);
	finish_all(f);
}

/* Without a map nothing waits, until one may be there. */
static void test_no_map_no_wait(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });

	pm.version = 1;
	give_at(f, 1);
	assert_string_equal(f->out.text[0], "[anon];");
	assert_int_equal(pm.anon.asked, 0);
	pm.version = 2;
	pm.perf_map = true;
	give_at(f, 2);
	answer_as("late");
	assert_string_equal(f->out.text[1], "late;");
	finish_all(f);
}

static char late_names[256]; /* as addresses got them */

static void on_named(void *arg, const struct reporter_frame *f)
{
	size_t len = strlen(late_names);

	assert_int_equal(f->nlines, 1);
	assert_int_equal(f->place.version, 0);
	snprintf(late_names + len, sizeof(late_names) - len, "%lx=%s;",
		 (unsigned long)f->place.id, f->lines[0].function->name);
}

/* What the map has when the process has ended names earlier frames, once. */
static void test_named_at_the_end(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .named = on_named });

	late_names[0] = '\0';
	pm.version = 1;
	give_at(f, 1);
	assert_string_equal(f->out.text[0], "[anon];");
	trace_handler_late_names(f->th, &pm.image);
	assert_int_equal(pm.anon.again, 1);
	assert_int_equal(trace_handler_late(f->th), 1);
	answer_as("late");
	assert_int_equal(trace_handler_late(f->th), 0);
	assert_string_equal(late_names, "500020=late;");
	trace_handler_late_names(f->th, NULL);
	assert_int_equal(pm.nasks, 0);
	/* One that a map which was there did not name, and has no name now either. */
	pm.version = 2;
	pm.perf_map = true;
	give_at(f, 2);
	answer_none_named();
	assert_string_equal(f->out.text[1], "[anon];");
	trace_handler_late_names(f->th, NULL);
	answer_none_named();
	assert_string_equal(late_names, "500020=late;");
	finish_all(f);
}

static void give_bare(struct fixture *f, uint64_t time)
{
	static const uint64_t pcs[] = { LIB + 0x20 };
	struct rec r;

	sample(&r, time, 0, pcs, 1, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, time);
}

/* In a file that is no ELF file the same; what has no name is given by the file. */
static void test_in_a_bare_file(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });

	pm.bare = true;
	pm.version = 1;
	give_bare(f, 1); /* no map yet: the file is asked, in vain */
	assert_int_equal(pm.library.asked, 1);
	answer(0);
	assert_string_equal(f->out.text[0], "library+0x11020;");
	pm.version = 2;
	pm.perf_map = true;
	for (uint64_t i = 2; i < 5; i++) { /* the last of a kept stack */
		give_bare(f, i);
		if (i == 2)
			answer_as("doubled");
		assert_string_equal(f->out.text[i - 1], "doubled;");
	}
	assert_int_equal(f->out.leaf[3].vaddr, LIB + 0x20);
	assert_int_equal(pm.library.asked, 1);
	/* The map has no line there. */
	pm.version = 3;
	give_bare(f, 5);
	answer_none_named();
	assert_string_equal(f->out.text[4], "library+0x1020;");
	finish_all(f);
}

/* By jitdump: each answer has the times that it is valid for. */
static void test_names_have_times(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });

	pm.jitdump = true;
	pm.version = 1;
	give_at(f, 100);
	answer_for("first", 50, 100); /* 50 to 199 */
	assert_string_equal(f->out.text[0], "first;");
	give_at(f, 50);
	give_at(f, 199);
	assert_int_equal(pm.anon.asked, 1);
	assert_string_equal(f->out.text[1], "first;");
	assert_string_equal(f->out.text[2], "first;");
	give_at(f, 200);
	answer_for("second", 0, UINT64_MAX); /* from 200 on */
	give_at(f, 49);
	answer_for("before", 49, 1); /* 0 to 49 */
	give_at(f, 300);
	give_at(f, 100);
	give_at(f, 0);
	assert_int_equal(pm.anon.asked, 3);
	assert_string_equal(f->out.text[3], "second;");
	assert_string_equal(f->out.text[4], "before;");
	assert_string_equal(f->out.text[5], "second;");
	assert_string_equal(f->out.text[6], "first;");
	assert_string_equal(f->out.text[7], "before;");
	finish_all(f);
}

/* Answers the request of this source. NULL: it has no name. */
static void source_answer(struct pm_exe *source, const char *name,
			  uint64_t before, uint64_t after)
{
	struct symbolizer_function fn = { name, name, "", 0, 0 };
	struct symbolizer_symbol sym = {
		.start = JIT, .size = 0x100, .before = before, .after = after
	};
	struct ask a;
	size_t i = 0;

	while (i < pm.nasks && pm.asks[i].exe != source)
		i++;
	assert_true(i < pm.nasks);
	a = pm.asks[i];
	assert_int_equal(a.n, 1);
	memmove(&pm.asks[i], &pm.asks[i + 1],
		(--pm.nasks - i) * sizeof(pm.asks[0]));
	sym.offset = sym.vaddr = a.offsets[0];
	sym.functions = &fn;
	sym.nfunctions = name != NULL;
	a.fn(a.arg, 0, a.tags, &sym, 1);
	a.exe->refs--;
}

/*
 * Two jitdumps and a perf map: the code that was loaded last by the time of the sample,
 * whatever the order of the answers; the map if they have none.
 */
static void test_several_sources(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct pm_exe *one = &pm.dumps[0], *two = &pm.dumps[1];

	pm.jitdump = true;
	pm.version = 1;
	pm.ndumps = 2;
	give_at(f, 100);
	assert_int_equal(pm.nasks, 3);
	source_answer(&pm.anon, "map", 0, 0);
	source_answer(one, "older", 80, 200);
	assert_int_equal(f->out.n, 0);
	source_answer(two, "newer", 30, 50);
	assert_string_equal(f->out.text[0], "newer;");
	/* It is so from 70 to 149. */
	give_at(f, 70);
	give_at(f, 149);
	assert_int_equal(pm.nasks, 0);
	assert_string_equal(f->out.text[2], "newer;");
	give_at(f, 150);
	source_answer(two, "again", 0, UINT64_MAX);
	source_answer(one, "older", 130, 150);
	source_answer(&pm.anon, "map", 0, 0);
	assert_string_equal(f->out.text[3], "again;");
	/* Not loaded yet in one, and never in the other. */
	give_at(f, 69);
	source_answer(one, "older", 49, 300);
	source_answer(two, NULL, 69, 1);
	source_answer(&pm.anon, NULL, 0, 0);
	assert_string_equal(f->out.text[4], "older;");
	give_at(f, 19);
	source_answer(one, NULL, 19, 1);
	source_answer(two, NULL, 19, 51);
	source_answer(&pm.anon, "map", 0, 0);
	assert_string_equal(f->out.text[5], "map;");
	give_at(f, 10);
	assert_string_equal(f->out.text[6], "map;");
	assert_int_equal(pm.nasks, 0);
	finish_all(f);
}

/* --- unwind rows -------------------------------------------------------------- */

/* The code is called by the program, and its frame pointer leads nowhere. */
static void give_blind(struct fixture *f, uint64_t time)
{
	static const uint64_t pcs[] = { JIT + 0x20, CODE + 0x120 };
	struct rec r;

	sample(&r, time, 0, pcs, 2, ABI_STACK_WHOLE);
	regs_of(&r)->gpr[ABI_REG_BP] = 1;
	give(f, &r);
}

/* The same through the library's mapping, at the same address. */
static void give_blind_bare(struct fixture *f, uint64_t time)
{
	static const uint64_t pcs[] = { LIB + 0x20, CODE + 0x120 };
	struct rec r;

	sample(&r, time, 0, pcs, 2, ABI_STACK_WHOLE);
	regs_of(&r)->gpr[ABI_REG_BP] = 1;
	give(f, &r);
}

static void free_rows(void *arg, const void *map, size_t len)
{
	free((void *)map);
}

/* Rows for the code, with the times they are for around that of their request. */
static struct symbolizer_rows *rows_of(const char *text, uint64_t before,
				       uint64_t after)
{
	struct symbolizer_rows *parsed, *rows;
	struct symbolizer_rows_error error;
	struct rows_head *copy;
	size_t len;

	assert_int_equal(
		symbolizer_rows_parse(text, strlen(text), &parsed, &error), 0);
	symbolizer_rows_bytes(parsed, &len);
	copy = malloc(len);
	assert_non_null(copy);
	memcpy(copy, symbolizer_rows_bytes(parsed, &len), len);
	symbolizer_rows_free(parsed);
	copy->before = before;
	copy->after = after;
	assert_int_equal(
		symbolizer_rows_adopt(copy, len, free_rows, NULL, &rows), 0);
	return rows;
}

#define RIGHT "500000 rsp+32 c-16\n500100 end\n"
#define ELSEWHERE "500200 rsp+32 c-16\n500300 end\n"

/* Answers the request for the code's rows, and then those for names. */
static void answer_code(struct fixture *f, uint64_t time, int err,
			struct symbolizer_rows *rows)
{
	assert_true(pm.nrows > 0);
	assert_ptr_equal(pm.rows[0].exe, &pm.anon);
	assert_int_equal(pm.rows[0].time, time);
	answer_rows(err, rows);
	while (pm.nrows && pm.rows[0].exe != &pm.anon)
		answer_rows(-ENODATA, NULL);
	tick(f, time);
	while (pm.nasks)
		answer(0);
	trace_handler_get_stats(f->th, &f->st);
}

static struct fixture *begin_code(void)
{
	struct fixture *f = begin((struct trace_opts){ 0 });

	pm.jitdump = true;
	pm.hold_rows = true;
	pm.version = 1;
	return f;
}

static void test_rows_of_a_time(void **state)
{
	struct fixture *f = begin_code();

	give_blind(f, 100);
	assert_int_equal(f->out.n, 0);
	answer_code(f, 100, 0, rows_of(RIGHT, 50, 100));
	assert_int_equal(f->out.n, 1);
	assert_int_equal(f->st.stack_root, 1);
	give_blind(f, 199);
	give_blind(f, 50);
	assert_int_equal(f->st.stack_root, 3);
	assert_int_equal(pm.anon.rows_asked, 1);
	/* Other code is there then. */
	give_blind(f, 200);
	answer_code(f, 200, 0, rows_of(ELSEWHERE, 0, UINT64_MAX));
	assert_int_equal(f->st.stack_root, 3);
	assert_int_equal(f->st.stack_no_fp, 1);
	give_blind(f, 1000000);
	assert_int_equal(f->st.stack_no_fp, 2);
	assert_int_equal(pm.anon.rows_asked, 2);
	assert_int_equal(f->st.tables, 1);
	/* A worker must not make a sample ask for ever. */
	give_blind(f, 10);
	answer_code(f, 10, 0, rows_of(RIGHT, 0, 0));
	assert_int_equal(f->st.stack_root, 4);
	assert_int_equal(pm.anon.rows_asked, 3);
	finish_all(f);
}

/* They are asked for again after the file grew, for samples from then on. */
static void test_rows_of_a_version(void **state)
{
	struct fixture *f = begin_code();

	give_blind(f, 100);
	answer_code(f, 100, -ENODATA, NULL);
	assert_int_equal(f->st.stack_no_fp, 1);
	assert_int_equal(f->st.tables_none, 2); /* the other files */
	give_blind(f, 101);
	assert_int_equal(f->st.stack_no_fp, 2);
	assert_int_equal(pm.anon.rows_asked, 1);
	pm.version = 2;
	give_blind(f, 102);
	assert_int_equal(pm.anon.rows_asked, 2);
	assert_int_equal(f->st.stack_no_fp, 2);
	/* It grows further while the sample waits. */
	pm.version = 3;
	answer_code(f, 102, 0, rows_of(RIGHT, 102, UINT64_MAX));
	assert_int_equal(f->st.stack_root, 1);
	assert_int_equal(pm.anon.rows_asked, 2);
	give_blind(f, 103);
	assert_int_equal(pm.anon.rows_asked, 3);
	answer_code(f, 103, 0, rows_of(RIGHT, 103, UINT64_MAX));
	assert_int_equal(f->st.stack_root, 2);
	finish_all(f);
}

/* The code of each of two jitdumps has the rows of that one. */
static void test_rows_of_two_dumps(void **state)
{
	struct fixture *f = begin_code();

	pm.ndumps = 2;
	give_blind(f, 100);
	assert_int_equal(pm.nrows,
			 4); /* with the program's and the library's */
	while (pm.nrows)
		answer_rows(pm.rows[0].exe->kind != PM_EXE_ANON ? -ENODATA : 0,
			    pm.rows[0].exe == &pm.dumps[0]
				    ? rows_of(ELSEWHERE, 50, 100)
			    : pm.rows[0].exe == &pm.dumps[1]
				    ? rows_of(RIGHT, 50, 100)
				    : NULL);
	tick(f, 100);
	while (pm.nasks)
		answer(0);
	trace_handler_get_stats(f->th, &f->st);
	assert_int_equal(f->st.stack_root, 1);
	finish_all(f);
}

static void test_rows_of_a_bare_file(void **state)
{
	struct fixture *f = begin_code();

	pm.bare = true;
	give_blind_bare(f, 100);
	answer_code(f, 100, 0,
		    rows_of("600000 rsp+32 c-16\n600100 end\n", 50, 100));
	assert_int_equal(f->st.stack_root, 1);
	assert_int_equal(pm.library.rows_asked, 0);
	finish_all(f);
}

/* A sample waits until the file is open whose code the memory may be. */
static void test_maybe_a_copy(void **state)
{
	struct fixture *f = begin_code();

	pm.jitdump = false;
	pm.maybe = true;
	give_blind(f, 100);
	assert_int_equal(f->st.stack_no_fp, 0);
	assert_int_equal(pm.library.rows_asked, 1);
	pm.maybe = false;
	while (pm.nrows)
		answer_rows(-ENODATA, NULL);
	tick(f, 100);
	trace_handler_get_stats(f->th, &f->st);
	assert_int_equal(f->st.stack_no_fp, 1);
	finish_all(f);
}

/* A perf map has none: nothing waits. */
static void test_no_rows_of_a_map(void **state)
{
	struct fixture *f = begin_code();

	pm.jitdump = false;
	give_blind(f, 100);
	assert_int_equal(pm.anon.rows_asked, 0);
	assert_int_equal(f->st.stack_no_fp, 1);
	finish_all(f);
}

/* Too late: frame pointers, and a mark. */
static void test_rows_are_late(void **state)
{
	struct fixture *f = begin_code();

	give_blind(f, 100);
	tick(f, 1000);
	tick(f, 1000 + 4000 * MS);
	while (pm.nasks)
		answer(0);
	trace_handler_get_stats(f->th, &f->st);
	assert_int_equal(f->st.stack_late, 1);
	assert_non_null(strstr(f->out.text[0], "[tables late]"));
	finish_all(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_named_by_the_map),
		cmocka_unit_test(test_a_version_is_asked_for),
		cmocka_unit_test(test_no_map_no_wait),
		cmocka_unit_test(test_named_at_the_end),
		cmocka_unit_test(test_in_a_bare_file),
		cmocka_unit_test(test_names_have_times),
		cmocka_unit_test(test_several_sources),
		cmocka_unit_test(test_rows_of_a_time),
		cmocka_unit_test(test_rows_of_a_version),
		cmocka_unit_test(test_rows_of_two_dumps),
		cmocka_unit_test(test_rows_of_a_bare_file),
		cmocka_unit_test(test_maybe_a_copy),
		cmocka_unit_test(test_no_rows_of_a_map),
		cmocka_unit_test(test_rows_are_late),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
