// SPDX-License-Identifier: Apache-2.0
/*
 * The trace handler with a fake process manager: samples in, traces out, and waits
 * while names are missing.
 */
#include "tests/unit/tracehandler/test_trace_fake.h"

static const uint64_t two[] = { CODE + 0x1200, CODE + 0x2300 };

/*
 * Names are requested at a tick, once for each frame, return addresses less one. A
 * trace is delivered when all its names are there, the next one immediately.
 */
static void test_names(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 100, 0, two, 2, ABI_STACK_WHOLE);
	give(f, &r);
	assert_int_equal(pm.nasks, 0);
	assert_int_equal(trace_handler_oldest(f->th), 100);
	tick(f, 1000 * MS);
	assert_int_equal(pm.nasks, 1);
	assert_int_equal(pm.asks[0].n, 2);
	assert_int_equal(pm.asks[0].offsets[0], 0x2200);
	assert_int_equal(pm.asks[0].offsets[1], 0x32ff);
	assert_int_equal(f->out.n, 0);
	answer(0);
	assert_int_equal(f->out.n, 1);
	assert_string_equal(f->out.text[0], "fn_22;fn_32;");
	assert_string_equal(f->out.thread, "worker");
	assert_int_equal(f->out.leaf[0].place.id, 0x2200);
	assert_int_equal(f->out.leaf[0].vaddr, 0x12200);
	assert_int_equal(f->out.start[0], 0x12200);
	assert_int_equal(trace_handler_oldest(f->th), UINT64_MAX);
	give(f, &r);
	assert_int_equal(f->out.n, 2);
	assert_string_equal(f->out.text[1], "fn_22;fn_32;");
	assert_int_equal(f->st.cache_misses, 2);
	assert_int_equal(f->st.cache_hits, 2);
	assert_int_equal(f->st.stack_root, 2);
	assert_int_equal(f->st.frames, 4);
	finish_all(f);
}

static void test_kernel_before_user(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 100, 3, two, 2, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	assert_int_equal(pm.nasks, 2);
	assert_int_equal(pm.kernel.asked, 1);
	answer(0);
	answer(0);
	assert_string_equal(f->out.text[0],
			    "fn_ffffffff810000;fn_ffffffff81000f;"
			    "fn_ffffffff81001f;fn_22;fn_32;");
	finish_all(f);
}

/* Without a symbol: file and address; kernel and JIT code, too. */
static void test_unnamed(void **state)
{
	static const uint64_t pcs[] = { CODE + 0x10, JIT + 0x21 };
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 1, 1, pcs, 2, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	answer(pm.asks[0].exe == &pm.kernel ? -EACCES : 0);
	answer(pm.asks[0].exe == &pm.kernel ? -EACCES : 0);
	assert_string_equal(f->out.text[0],
			    "[kernel]+0xffffffff81000000;program+0x11010;"
			    "[anon];");
	give(f, &r);
	assert_string_equal(f->out.text[1], f->out.text[0]);
	assert_int_equal(pm.nasks, 0);
	assert_int_equal(pm.program.asked, 1);
	finish_all(f);
}

static void test_mapping_lost(void **state)
{
	static const uint64_t pcs[] = { 0x900000 };
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 1, 0, pcs, 1, ABI_STACK_WHOLE);
	give(f, &r);
	pm.elsewhere = PM_LOST;
	give(f, &r);
	assert_string_equal(f->out.text[0],
			    "[unmapped]+0x900000;[caller not certain];");
	assert_string_equal(f->out.text[1],
			    "[mapping lost]+0x900000;[caller not certain];");
	assert_int_equal(f->st.not_mapped, 2);
	assert_int_not_equal(f->out.leaf[0].place.id, f->out.leaf[1].place.id);
	finish_all(f);
}

/* The reason why a stack ended is its last frame, and counted. */
static void test_ends(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .max_frames = 2 });
	static const uint64_t jit[] = { JIT, JIT + 1, JIT + 2 };
	static const uint64_t bad[] = { JIT, 0x900000 };
	struct rec r;

	sample(&r, 1, 0, jit, 3, ABI_STACK_WHOLE);
	give(f, &r);
	assert_string_equal(f->out.text[0], "[anon];[anon];[depth limit];");
	sample(&r, 1, 0, jit, 1, ABI_STACK_CAP);
	regs_of(&r)->gpr[ABI_REG_BP] = STACK + 8192;
	give(f, &r);
	assert_string_equal(f->out.text[1], "[anon];[stack cut at 0 KiB];");
	regs_of(&r)->gpr[ABI_REG_BP] = 1;
	give(f, &r);
	assert_string_equal(f->out.text[2], "[anon];[no frame pointer];");
	assert_int_equal(f->out.leaf[2].place.id, JIT);
	/* A return address must be in code. */
	sample(&r, 1, 0, bad, 2, ABI_STACK_WHOLE);
	give(f, &r);
	assert_string_equal(f->out.text[3], "[anon];[no frame pointer];");
	assert_int_equal(f->st.stack_depth, 1);
	assert_int_equal(f->st.stack_cap, 1);
	assert_int_equal(f->st.stack_no_fp, 2);
	finish_all(f);
}

/* A file that could not be opened or read may have unwind information. */
static void test_file_gone(void **state)
{
	static const uint64_t pc[] = { CODE + 0x1200, LIB + 0x1200 };
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;
	int i;

	pm.hold_rows = true;
	for (i = 0; i < 2; i++) {
		sample(&r, i, 0, &pc[i], 1, ABI_STACK_WHOLE);
		regs_of(&r)->gpr[ABI_REG_BP] = 1;
		give(f, &r);
	}
	while (pm.nrows)
		answer_rows(pm.rows[0].exe == &pm.program ? -ENOENT
							  : -SYMBOLIZER_EPLACE,
			    NULL);
	tick(f, MS);
	answer(0);
	answer(0);
	i = strstr(f->out.text[0], "library") != NULL; /* which came first */
	assert_string_equal(f->out.text[i], "fn_22;[file gone: program];");
	assert_string_equal(f->out.text[!i], "fn_22;[file not read: library];");
	finish_all(f);
}

/* Code of a file without unwind information. */
static void test_no_unwind_info(void **state)
{
	static const uint64_t pc[] = { CODE + 0x1200, LIB + 0x1200 };
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;
	int i;

	for (i = 0; i < 2; i++) {
		sample(&r, i, 0, &pc[i], 1, ABI_STACK_WHOLE);
		regs_of(&r)->gpr[ABI_REG_BP] = 1;
		give(f, &r);
	}
	tick(f, MS);
	answer(0);
	answer(0);
	i = strstr(f->out.text[0], "library") != NULL; /* which came first */
	assert_string_equal(f->out.text[i], "fn_22;[no unwind info: program];");
	assert_string_equal(f->out.text[!i],
			    "fn_22;[no unwind info: library];");
	assert_int_equal(f->st.stack_no_cfi, 2);
	assert_int_equal(f->st.tables_none, 2);
	assert_int_equal(pm.program.rows_asked, 1);
	finish_all(f);
}

static void test_no_user_side(void **state)
{
	static const struct {
		uint32_t flags;
		const char *text;
	} t[] = {
		{ ABI_SAMPLE_KTHREAD, "" },
		{ ABI_SAMPLE_EXEC, "[exec];" },
		{ ABI_SAMPLE_NOMM, "[no user stack];" },
	};
	struct fixture *f = begin((struct trace_opts){ 0 });
	char want[64];
	struct rec r;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(t); i++) {
		sample(&r, i, 1, NULL, 0, ABI_STACK_WHOLE);
		finish(&r, i, t[i].flags);
		give(f, &r);
	}
	tick(f, MS);
	answer(0);
	assert_int_equal(f->out.n, ARRAY_SIZE(t));
	for (i = 0; i < ARRAY_SIZE(t); i++) {
		snprintf(want, sizeof(want), "fn_ffffffff810000;%s", t[i].text);
		assert_string_equal(f->out.text[i], want);
	}
	assert_int_equal(f->st.stack_exec, 1);
	assert_int_equal(f->st.stack_none, 1);
	finish_all(f);
}

/* One request an executable at a time; frames until the next are collected. */
static void test_one_request_at_a_time(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	uint64_t pc;
	struct rec r;

	for (pc = CODE + 0x2000; pc < CODE + 0x2500; pc += 0x100) {
		sample(&r, pc, 0, &pc, 1, ABI_STACK_WHOLE);
		give(f, &r);
		tick(f, MS);
	}
	assert_int_equal(pm.nasks, 1);
	assert_int_equal(pm.asks[0].n, 1);
	answer(0);
	assert_int_equal(f->out.n, 1);
	assert_int_equal(pm.nasks, 1);
	assert_int_equal(pm.asks[0].n, 4);
	answer(0);
	assert_int_equal(f->out.n, 5);
	assert_int_equal(pm.nasks, 0);
	assert_int_equal(pm.program.asked, 2);
	finish_all(f);
}

/* The wait ends, counted from the first tick; a later trace has the name. */
static void test_deadline(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .wait_ms = 500 });
	struct rec r;

	sample(&r, 100, 0, two, 2, ABI_STACK_WHOLE);
	assert_int_equal(trace_handler_due(f->th), UINT64_MAX);
	give(f, &r);
	tick(f, 9000 * MS);
	assert_int_equal(trace_handler_due(f->th), 9500 * MS);
	tick(f, 9499 * MS);
	assert_int_equal(trace_handler_due(f->th), 9500 * MS);
	assert_int_equal(f->out.n, 0);
	tick(f, 9500 * MS);
	assert_int_equal(f->out.n, 1);
	assert_string_equal(f->out.text[0], "program+0x12200;program+0x132ff;");
	assert_int_equal(f->st.names_late, 1);
	assert_int_equal(f->st.unnamed, 2);
	assert_int_equal(f->st.waiting, 0);
	assert_int_equal(trace_handler_due(f->th), UINT64_MAX);
	answer(0);
	assert_int_equal(f->out.n, 1);
	give(f, &r);
	assert_string_equal(f->out.text[1], "fn_22;fn_32;");
	assert_int_equal(f->st.names_late, 1);
	finish_all(f);
}

/* While profd is idle, requests of a second are sent together. */
static void test_idle(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .wait_ms = 3000 });
	struct rec r;

	trace_handler_tick(f->th, 9000 * MS, true);
	sample(&r, 100, 0, two, 2, ABI_STACK_WHOLE);
	give(f, &r);
	trace_handler_tick(f->th, 9001 * MS, true);
	assert_int_equal(pm.nasks, 0);
	trace_handler_tick(f->th, 9500 * MS, true);
	assert_int_equal(pm.nasks, 0);
	trace_handler_tick(f->th, 10001 * MS, true);
	assert_int_equal(pm.nasks, 1);
	answer(0);
	assert_string_equal(f->out.text[0], "fn_22;fn_32;");
	assert_int_equal(trace_handler_oldest(f->th), UINT64_MAX);
	finish_all(f);
}

/* With all_names names have no deadline; the trace is delivered at a tick. */
static void test_all_names(void **state)
{
	struct fixture *f =
		begin((struct trace_opts){ .wait_ms = 500, .all_names = true });
	struct rec r;

	sample(&r, 100, 0, two, 2, ABI_STACK_WHOLE);
	give(f, &r);
	assert_int_equal(trace_handler_unnamed(f->th), 2);
	trace_handler_tick(f->th, 9000 * MS, true);
	assert_int_equal(pm.nasks, 1);
	tick(f, 900000 * MS);
	assert_int_equal(f->out.n, 0);
	assert_int_equal(trace_handler_due(f->th), UINT64_MAX);
	assert_int_equal(trace_handler_oldest(f->th), 100);
	answer(0);
	assert_int_equal(trace_handler_unnamed(f->th), 0);
	tick(f, 900001 * MS);
	assert_int_equal(f->out.n, 1);
	assert_string_equal(f->out.text[0], "fn_22;fn_32;");
	assert_int_equal(trace_handler_oldest(f->th), UINT64_MAX);
	assert_int_equal(f->st.names_late, 0);
	assert_int_equal(f->st.waiting_bytes, 0);
	/* What is quarantined has no name, and is not waited for. */
	sample(&r, 200, 0, &two[0], 1, ABI_STACK_WHOLE);
	regs_of(&r)->ip += 8;
	give(f, &r);
	tick(f, 900002 * MS);
	answer(-EBADMSG);
	tick(f, 900003 * MS);
	assert_string_equal(f->out.text[1], "program+0x12208;");
	assert_int_equal(trace_handler_unnamed(f->th), 0);
	finish_all(f);
}

/*
 * Traces that wait for names then have a byte limit of their own, and samples that
 * wait for tables keep theirs and their deadline.
 */
static void test_all_names_limits(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .wait_ms = 500,
						       .wait_bytes = 2000,
						       .names_bytes = 1000,
						       .all_names = true });
	static const uint64_t pc = LIB + 0x1200;
	struct rec r;
	int i;

	pm.hold_rows = true;
	sample(&r, 99, 0, &pc, 1, ABI_STACK_WHOLE);
	regs_of(&r)->gpr[ABI_REG_BP] = 1;
	give(f, &r);
	tick(f, 1000 * MS);
	while (pm.rows[0].exe == &pm.library) {
		pm.rows[pm.nrows++] = pm.rows[0];
		memmove(pm.rows, pm.rows + 1, --pm.nrows * sizeof(pm.rows[0]));
	}
	answer_rows(-ENODATA, NULL);
	for (i = 0; i < 20; i++) {
		sample(&r, 100 + i, 0, two, 2, ABI_STACK_WHOLE);
		give(f, &r);
	}
	assert_true(f->out.n > 10 && f->out.n < 20);
	assert_int_equal(f->out.time[0], 100);
	assert_int_equal(f->st.names_late, f->out.n);
	assert_int_equal(f->st.waiting, 21 - f->out.n);
	assert_true(f->st.waiting_bytes <= 3000);
	assert_int_equal(trace_handler_oldest(f->th), 99);
	assert_int_equal(trace_handler_due(f->th), 1500 * MS);
	tick(f, 1500 * MS);
	assert_int_equal(f->st.stack_late, 1);
	assert_int_equal(trace_handler_due(f->th), UINT64_MAX);
	trace_handler_flush(f->th);
	trace_handler_get_stats(f->th, &f->st);
	assert_int_equal(f->st.waiting, 0);
	assert_int_equal(f->out.n, 21);
	finish_all(f);
}

/*
 * A stack is kept whole from its second trace on, and then found by one lookup; the
 * counters count its frames as before.
 */
static void test_known_stacks(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 100, 3, two, 2, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	answer(0);
	answer(0);
	for (int i = 0; i < 4; i++)
		give(f, &r);
	assert_int_equal(f->out.n, 5);
	for (int i = 1; i < 5; i++)
		assert_string_equal(f->out.text[i], f->out.text[0]);
	assert_int_equal(f->st.stacks_known, 3);
	assert_int_equal(f->st.stack_root, 5);
	assert_int_equal(f->st.frames, 25);
	assert_int_equal(f->st.cache_hits, 20);
	sample(&r, 100, 2, two, 2, ABI_STACK_WHOLE); /* not the same one */
	give(f, &r);
	assert_int_equal(f->st.stacks_known, 3);
	assert_int_equal(strlen(f->out.text[5]) < strlen(f->out.text[0]), 1);
	sample(&r, 100, 0, two, 1, ABI_STACK_CAP); /* nor is one that was cut */
	regs_of(&r)->gpr[ABI_REG_BP] = STACK + 8192;
	give(f, &r);
	give(f, &r);
	assert_int_equal(f->st.stacks_known, 3);
	finish_all(f);
}

/* A kept stack is not found after a frame was forgotten. */
static void test_known_stack_forgotten(void **state)
{
	static const uint64_t other[] = { CODE + 0x4400 };
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r, o;

	sample(&r, 100, 0, two, 2, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	answer(0);
	for (int i = 0; i < 3; i++)
		give(f, &r);
	assert_int_equal(f->st.stacks_known, 2);
	sample(&o, 100, 0, other, 1, ABI_STACK_WHOLE);
	give(f, &o);
	tick(f, MS);
	answer(-EMFILE);
	give(f, &r);
	assert_int_equal(f->st.stacks_known, 2);
	give(f, &r);
	give(f, &r);
	assert_true(f->st.stacks_known > 2);
	finish_all(f);
}

/* A transient error is not remembered; one of the file is. */
static void test_errors(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 100, 0, two, 1, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	answer(-EMFILE);
	assert_string_equal(f->out.text[0], "program+0x12200;");
	give(f, &r);
	assert_int_equal(f->out.n, 1);
	tick(f, MS);
	answer(-ENOENT);
	assert_string_equal(f->out.text[1], "program+0x12200;");
	give(f, &r);
	assert_int_equal(f->out.n, 3);
	assert_int_equal(f->st.names_late, 0);
	finish_all(f);
}

/* Of several frames any may be forgotten; the others are still found. */
static void test_forget_among_others(void **state)
{
	static const uint64_t mixed[] = { CODE + 0x1200, JIT + 1, CODE + 0x2300,
					  JIT + 0x101 };
	struct fixture *f = begin((struct trace_opts){ .cache_frames = 4 });
	struct rec r;

	sample(&r, 1, 0, mixed, 4, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	answer(-ETIMEDOUT);
	give(f, &r);
	assert_int_equal(f->st.cache_entries, 4);
	assert_int_equal(f->st.cache_evicted, 0);
	assert_int_equal(f->st.cache_misses, 4);
	tick(f, MS);
	answer(0);
	assert_string_equal(f->out.text[1], "fn_22;[anon];fn_32;[anon];");
	give(f, &r);
	assert_int_equal(f->out.n, 3);
	finish_all(f);
}

static void test_byte_limit(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .wait_bytes = 1000 });
	struct rec r;
	int i;

	for (i = 0; i < 20; i++) {
		sample(&r, 100 + i, 0, two, 2, ABI_STACK_WHOLE);
		give(f, &r);
	}
	assert_true(f->out.n > 10 && f->out.n < 20);
	assert_int_equal(f->st.names_late, f->out.n);
	assert_int_equal(f->st.waiting, 20 - f->out.n);
	assert_int_equal(f->out.time[0], 100);
	assert_int_equal(trace_handler_oldest(f->th), 100 + f->out.n);
	finish_all(f);
}

/* Samples that came out of order do not hide an older one. */
static void test_oldest(void **state)
{
	static const uint64_t times[] = { 50, 70, 60, 40 };
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;
	size_t i;

	for (i = 0; i < ARRAY_SIZE(times); i++) {
		sample(&r, times[i], 0, two, 1, ABI_STACK_WHOLE);
		give(f, &r);
	}
	assert_int_equal(trace_handler_oldest(f->th), 40);
	tick(f, MS);
	answer(0);
	assert_int_equal(f->out.n, 4);
	for (i = 0; i < 4; i++)
		assert_int_equal(f->out.time[i], 40 + 10 * i);
	finish_all(f);
}

/* A sample waits for the exec event of its image. */
static void test_provisional(void **state)
{
	static const uint64_t pcs[] = { JIT };
	struct fixture *f = begin((struct trace_opts){ .wait_ms = 100 });
	struct rec r;

	pm.image.provisional = true;
	sample(&r, 100, 0, pcs, 1, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	assert_int_equal(f->out.n, 0);
	assert_int_equal(trace_handler_oldest(f->th), 100);
	pm.image.provisional = false;
	tick(f, 2 * MS);
	assert_int_equal(f->out.n, 1);
	assert_string_equal(f->out.text[0], "[anon];");
	pm.image.provisional = true;
	sample(&r, 200, 0, two, 1, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, 1000 * MS);
	tick(f, 1100 * MS);
	answer_rows(-ENODATA, NULL);
	assert_int_equal(f->out.n, 1);
	tick(f, 1101 * MS);
	assert_int_equal(f->out.n, 2);
	assert_string_equal(f->out.text[1], "program+0x12200;");
	assert_int_equal(f->st.names_late, 1);
	assert_int_equal(f->st.samples, 2);
	finish_all(f);
}

/* With selected_only, other processes' samples request nothing. */
static void test_selected_only(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .selected_only = true });
	struct rec r;

	sample(&r, 1, 1, two, 2, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	assert_int_equal(pm.nasks, 0);
	assert_int_equal(pm.program.rows_asked, 0);
	assert_int_equal(f->st.unselected, 1);
	assert_int_equal(f->out.n, 0);
	/* Whether it is selected is known after its exec event. */
	pm.image.provisional = true;
	give(f, &r);
	pm.image.provisional = false;
	pm.image.selected = true;
	tick(f, MS);
	assert_int_equal(f->st.unselected, 1);
	assert_int_equal(pm.program.rows_asked, 1);
	finish_all(f);
}

static void test_flush(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 1, 0, two, 2, ABI_STACK_WHOLE);
	give(f, &r);
	pm.image.provisional = true;
	give(f, &r);
	tick(f, MS);
	trace_handler_flush(f->th);
	assert_int_equal(f->out.n, 2);
	assert_int_equal(trace_handler_oldest(f->th), UINT64_MAX);
	assert_string_equal(f->out.text[1], "program+0x12200;program+0x132ff;");
	finish_all(f); /* ... with an unanswered request */
}

/* The cache stays within its bound, pending traces valid, used frames in it. */
static void test_cache_is_bounded(void **state)
{
	struct fixture *f = begin((struct trace_opts){ .cache_frames = 8 });
	uint64_t pc = CODE + 0x2000;
	struct rec r;
	int i;

	sample(&r, 1, 0, &pc, 1, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, MS);
	answer(0);
	for (i = 1; i <= 40; i++) {
		give(f, &r); /* used all the time */
		pc = CODE + 0x2000 + 0x10 * i;
		struct rec other;

		sample(&other, 1 + i, 0, &pc, 1, ABI_STACK_WHOLE);
		give(f, &other);
	}
	assert_int_equal(f->st.cache_entries, 8);
	assert_int_equal(f->st.cache_evicted, 33);
	assert_int_equal(f->out.n, 41);
	tick(f, MS);
	answer(0);
	assert_int_equal(f->out.n, 81);
	finish_all(f);
}

static void test_bad_records(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct rec r;

	sample(&r, 1, 0, two, 2, ABI_STACK_WHOLE);
	assert_int_equal(trace_handler_sample(f->th, r.buf, r.len - 8),
			 -EINVAL);
	assert_int_equal(trace_handler_sample(f->th, r.buf, 3), -EINVAL);
	pm.no_memory = true;
	assert_int_equal(trace_handler_sample(f->th, r.buf, r.len), -ENOMEM);
	pm.no_memory = false;
	give(f, &r);
	pm.no_memory = true; /* a request that fails is tried again */
	tick(f, MS);
	pm.no_memory = false;
	tick(f, MS);
	answer(0);
	assert_int_equal(f->out.n, 1);
	assert_int_equal(f->st.bad_records, 2);
	assert_int_equal(f->st.nomem, 1);
	assert_int_equal(f->st.samples, 2);
	finish_all(f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_kernel_before_user),
		cmocka_unit_test(test_unnamed),
		cmocka_unit_test(test_mapping_lost),
		cmocka_unit_test(test_ends),
		cmocka_unit_test(test_no_user_side),
		cmocka_unit_test(test_one_request_at_a_time),
		cmocka_unit_test(test_deadline),
		cmocka_unit_test(test_idle),
		cmocka_unit_test(test_all_names),
		cmocka_unit_test(test_all_names_limits),
		cmocka_unit_test(test_known_stacks),
		cmocka_unit_test(test_known_stack_forgotten),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_forget_among_others),
		cmocka_unit_test(test_byte_limit),
		cmocka_unit_test(test_oldest),
		cmocka_unit_test(test_provisional),
		cmocka_unit_test(test_no_unwind_info),
		cmocka_unit_test(test_file_gone),
		cmocka_unit_test(test_selected_only),
		cmocka_unit_test(test_flush),
		cmocka_unit_test(test_cache_is_bounded),
		cmocka_unit_test(test_bad_records),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
