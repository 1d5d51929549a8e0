// SPDX-License-Identifier: Apache-2.0
/*
 * A frame in inlined functions, or in one without a name: from the worker's message
 * through the trace handler and a window to the profile.
 */
#include <fcntl.h>
#include <unistd.h>

#include "reporter/ledger/ledger.h"
#include "reporter/window.h"
#include "symbolize/reader/worker_msg.h"
#include "tests/unit/pprof_check.h"
#include "tests/unit/tracehandler/test_trace_fake.h"
#include "tracehandler/cache.h"
#include "tracehandler/names.h"

/* Linked instead of the ledger's, which needs a whole process manager. */
const char *ledger_entry(uint32_t leader_type)
{
	return NULL;
}

static const struct reporter_event_type cpu = {
	.name = "cpu",
	.label = "the CPU clock",
	.periodic = true,
	.count = { "samples", "count" },
	.value = { "cpu", "nanoseconds" },
};

static struct window window;

static void to_window(const struct reporter_trace *t)
{
	const struct pm_image_info info = { .serial = 1,
					    .comm = "worker",
					    .main_exe = &pm.program };

	assert_int_equal(window_add(&window, t, &info), 0);
}

static void window_begin(void)
{
	const struct window_opts opts = {
		.types = &cpu, .ntypes = 1, .events = 1, .period = 10 * MS
	};

	assert_int_equal(window_init(&window, &opts), 0);
	resolved_too = to_window;
}

/* Writes the window to a file; the caller frees its name. */
static char *window_end(void)
{
	const struct window_meta meta = { .time_ns = 1,
					  .duration_ns = 1,
					  .from = INT64_MIN,
					  .to = INT64_MAX,
					  .comments = "",
					  .comments_len = 0 };
	char *path = strdup("/tmp/test_trace.XXXXXX");
	struct sink *sink;
	int fd = mkstemp(path);

	resolved_too = NULL;
	assert_true(fd >= 0);
	assert_int_equal(window_seal(&window), 0);
	assert_int_equal(sink_new(&sink, REPORTER_GZIP, fd), 0);
	assert_int_equal(reporter_window_encode(&window, &meta, sink), 0);
	assert_int_equal(sink_finish(sink), 0);
	sink_free(sink);
	close(fd);
	window_fini(&window);
	return path;
}

/*
 * The output of `go tool pprof`, with runs of spaces as one, and without columns,
 * which newer versions print.
 */
static char *go_pprof(const char *what, const char *path)
{
	static char text[8192];
	char cmd[512];
	FILE *f;
	size_t n;

	snprintf(cmd, sizeof(cmd),
		 PPROF_GO "%s %s 2>&1 | tr -s ' ' | sed 's/:0 s=/ s=/'", what,
		 path);
	f = popen(cmd, "r");
	assert_non_null(f);
	n = fread(text, 1, sizeof(text) - 1, f);
	text[n] = '\0';
	assert_int_equal(pclose(f), 0);
	return text;
}

static const struct symbolizer_function leaf[] = {
	{ "deep()", "_Z4deepv", "/src/deep.h", 12, 10 },
	{ "mid", "mid", "/src/mid.h", 99, 90 },
	{ "outer", "outer", "/src/outer.c", 7, 5 },
};
static const struct symbolizer_function root[] = {
	{ "main", "main", "/src/main.c", 40, 30 },
};

/* The answer for one address, after it was a worker message. */
static void answer_one(struct symbolizer_symbol *s, uint64_t offset,
		       const struct symbolizer_function *functions, size_t n)
{
	static struct worker_cursor c[8];
	static uint8_t buf[8][1024];
	static size_t last;
	size_t i = last++ % 8, len;

	*s = (struct symbolizer_symbol){
		.offset = offset,
		.vaddr = offset + 0x10000,
		.start = (offset + 0x10000) & ~255ULL,
		.size = 256,
		.functions = functions,
		.nfunctions = n,
	};
	len = worker_name_add(buf[i], 0, sizeof(buf[i]), s);
	assert_int_not_equal(len, 0);
	c[i].p = buf[i];
	c[i].end = buf[i] + len;
	assert_true(worker_name_next(&c[i], s->vaddr, s));
}

static struct ask take_ask(size_t n)
{
	struct ask a = pm.asks[0];

	assert_int_equal(pm.nasks, 1);
	assert_int_equal(a.n, n);
	pm.nasks = 0;
	a.exe->refs--;
	return a;
}

static void answer_lists(void)
{
	struct symbolizer_symbol syms[2];
	struct ask a = take_ask(2);

	answer_one(&syms[0], a.offsets[0], leaf, ARRAY_SIZE(leaf));
	answer_one(&syms[1], a.offsets[1], root, ARRAY_SIZE(root));
	a.fn(a.arg, 0, a.tags, syms, 2);
}

static const uint64_t pcs[] = { CODE + 0x1200, CODE + 0x2300 };

static void inlined_functions_reach_the_profile_in_order(void **state)
{
	struct fixture *f = begin((struct trace_opts){ 0 });
	const char *text;
	struct rec r;
	char *path;

	window_begin();
	sample(&r, 100, 0, pcs, 2, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, 1000 * MS);
	answer_lists();
	give(f, &r); /* from the cache */
	assert_int_equal(f->out.n, 2);
	assert_string_equal(f->out.text[0], "deep();mid;outer;main;");
	assert_string_equal(f->out.text[1], f->out.text[0]);
	assert_int_equal(f->st.cache_hits, 2);
	path = window_end();
	finish_all(f);
	text = go_pprof("-lines -traces", path);
	if (!strstr(text, " 20ms deep() /src/deep.h:12 (inline)\n"
			  " mid /src/mid.h:99 (inline)\n"
			  " outer /src/outer.c:7\n"
			  " main /src/main.c:40\n"))
		fail_msg("%s", text);
	text = go_pprof("-raw", path);
	if (!strstr(text, "deep() /src/deep.h:12 s=10") ||
	    !strstr(text, "mid /src/mid.h:99 s=90") ||
	    !strstr(text, "outer /src/outer.c:7 s=5") ||
	    !strstr(text, "program [FN][FL][LN][IN]"))
		fail_msg("%s", text);
	unlink(path);
	free(path);
}

/* All addresses of a function without a name have one name, made of its start. */
static void a_function_without_a_name_is_one_function(void **state)
{
	static const uint64_t at[] = { CODE + 0x1210, CODE + 0x1280,
				       CODE + 0x1310 };
	struct fixture *f = begin((struct trace_opts){ 0 });
	struct symbolizer_symbol syms[3];
	const char *text;
	struct rec r;
	struct ask a;
	char *path;

	window_begin();
	for (size_t i = 0; i < ARRAY_SIZE(at); i++) {
		sample(&r, 100, 0, &at[i], 1, ABI_STACK_WHOLE);
		give(f, &r);
	}
	tick(f, 1000 * MS);
	a = take_ask(ARRAY_SIZE(at));
	for (size_t i = 0; i < a.n; i++)
		answer_one(&syms[i], a.offsets[i], NULL, 0);
	a.fn(a.arg, 0, a.tags, syms, a.n);
	assert_int_equal(f->out.n, 3);
	assert_string_equal(f->out.text[0], "program+0x12200;");
	assert_string_equal(f->out.text[1], "program+0x12200;");
	assert_string_equal(f->out.text[2], "program+0x12300;");
	assert_int_equal(f->out.leaf[0].vaddr, 0x12210);
	assert_int_equal(f->out.leaf[1].vaddr, 0x12280);
	tick(f, 1001 * MS);
	assert_int_equal(f->st.unnamed, 3);
	path = window_end();
	finish_all(f);
	text = go_pprof("-top -symbolize=none", path);
	if (!strstr(text, " 20ms 66.67% 66.67% 20ms 66.67% program+0x12200\n"))
		fail_msg("%s", text);
	/* Readers look for names. */
	text = go_pprof("-raw -symbolize=none", path);
	if (!strstr(text, ": 0x12210 M=1 program+0x12200 ") ||
	    !strstr(text, ": 0x12280 M=1 program+0x12200 ") ||
	    !strstr(text, "/0x1000 program \n"))
		fail_msg("%s", text);
	unlink(path);
	free(path);
}

/* An answer after the deadline is that of the frames after it. */
static void a_late_answer_names_the_frames_after_it(void **state)
{
	static const uint64_t at = CODE + 0x1210;
	struct fixture *f = begin((struct trace_opts){ .wait_ms = 10 });
	struct symbolizer_symbol sym;
	const char *text;
	struct rec r;
	struct ask a;
	char *path;

	window_begin();
	sample(&r, 100, 0, &at, 1, ABI_STACK_WHOLE);
	give(f, &r);
	tick(f, 1000 * MS);
	tick(f, 1020 * MS);
	assert_string_equal(f->out.text[0], "program+0x12210;");
	a = take_ask(1);
	answer_one(&sym, a.offsets[0], NULL, 0);
	a.fn(a.arg, 0, a.tags, &sym, 1);
	give(f, &r);
	assert_string_equal(f->out.text[1], "program+0x12200;");
	path = window_end();
	finish_all(f);
	text = go_pprof("-raw -symbolize=none", path);
	if (!strstr(text, ": 0x12210 M=1 program+0x12210 ") ||
	    !strstr(text, ": 0x12210 M=1 program+0x12200 "))
		fail_msg("%s", text);
	unlink(path);
	free(path);
}

/* A function inlined in two places is one function of the profile. */
static void an_inlined_function_is_one_function(void **state)
{
	const struct symbolizer_symbol two[] = {
		{ .start = 0x100, .functions = leaf, .nfunctions = 3 },
		{ .start = 0x100, .functions = leaf, .nfunctions = 3 },
	};
	struct reporter_place place = { .kind = REPORTER_PLACE_EXE,
					.exe = &pm.program };
	struct trace_cache c;
	struct trace_frame *f[2];
	bool fresh;
	int i;

	memset(&pm, 0, sizeof(pm));
	assert_int_equal(trace_cache_init(&c, 8), 0);
	for (i = 0; i < 2; i++) {
		place.id = 0x100 + i;
		f[i] = trace_cache_get(&c, &place, 0, false, &fresh);
		assert_non_null(f[i]);
		trace_frame_known(&c, f[i], &two[i]);
		assert_int_equal(f[i]->nlines, 3);
	}
	for (i = 0; i < 3; i++)
		assert_ptr_equal(f[0]->lines[i].function,
				 f[1]->lines[i].function);
	assert_int_equal(f[0]->lines[0].function->start, 0);
	assert_int_equal(f[0]->lines[2].function->start, 0x100);
	/* A list of functions can be replaced. */
	trace_frame_known(&c, f[0],
			  &(struct symbolizer_symbol){ .functions = root,
						       .nfunctions = 1 });
	assert_int_equal(f[0]->nlines, 1);
	assert_string_equal(f[0]->lines->function->name, "main");
	for (i = 0; i < 2; i++)
		trace_frame_put(&c, f[i]);
	trace_cache_fini(&c);
	assert_int_equal(pm.program.refs, 0);
}

/* Places of equal numbers but other kinds are different frames. */
static void places_of_other_kinds_are_other_frames(void **state)
{
	const struct reporter_place places[] = {
		{ .kind = REPORTER_PLACE_EXE, .exe = &pm.program, .id = 7 },
		{ .kind = REPORTER_PLACE_OBJECT,
		  .space = (uintptr_t)&pm.program,
		  .id = 7 },
		{ .kind = REPORTER_PLACE_OBJECT, .space = 0, .id = 7 },
		{ .kind = REPORTER_PLACE_OBJECT, .space = 0, .id = 8 },
		{ .kind = REPORTER_PLACE_MARK, .id = 7 },
	};
	const struct symbolizer_symbol sym = { .functions = leaf,
					       .nfunctions = 3 };
	struct trace_frame *f[ARRAY_SIZE(places)], *again;
	struct trace_cache c;
	bool fresh;
	size_t i;

	memset(&pm, 0, sizeof(pm));
	assert_int_equal(trace_cache_init(&c, 8), 0);
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		f[i] = trace_cache_get(&c, &places[i], 0, false, &fresh);
		assert_non_null(f[i]);
		assert_true(fresh);
	}
	assert_int_equal(pm.program.refs, 1);
	for (i = 0; i < ARRAY_SIZE(places); i++) {
		again = trace_cache_get(&c, &places[i], 0, false, &fresh);
		assert_ptr_equal(again, f[i]);
		assert_false(fresh);
		trace_frame_put(&c, again);
	}
	/* Frames of a runtime get names like those of a file. */
	trace_frame_known(&c, f[1], &sym);
	assert_false(f[1]->pending);
	assert_int_equal(f[1]->nlines, 3);
	assert_string_equal(f[1]->lines[2].function->name, "outer");
	trace_names_plain(f[2]);
	assert_string_equal(f[2]->line.function->name, "[unknown]+0x7");
	for (i = 0; i < ARRAY_SIZE(places); i++)
		trace_frame_put(&c, f[i]);
	trace_cache_fini(&c);
	assert_int_equal(pm.program.refs, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_functions_reach_the_profile_in_order),
		cmocka_unit_test(an_inlined_function_is_one_function),
		cmocka_unit_test(a_function_without_a_name_is_one_function),
		cmocka_unit_test(a_late_answer_names_the_frames_after_it),
		cmocka_unit_test(places_of_other_kinds_are_other_frames),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
